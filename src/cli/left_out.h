/* cli/left_out.h: what a reader did not show, said on stderr.
 *
 * After a process that wrote was killed, entries may be whole in the log and not known to be durable
 * (pawl_unwitnessed). They are not shown; whoever reads is told how many they are. */
#ifndef CLI_LEFT_OUT_H
#define CLI_LEFT_OUT_H

#include <pawl/pawl.h>

struct left_out {
    const char *only; /* the stream that matters; NULL: all of them */
    uint64_t entries;
    uint64_t streams;
    char stream[PAWL_STREAM_TEXT_MAX]; /* the first of them */
    uint64_t first;                    /* and its first entry */
};

/* A pawl_unwitnessed_visit: arg is a struct left_out. */
void left_out_note(void *arg, const char *stream, uint64_t first, uint64_t count);

/* One line on stderr, if there is something, with the way to have them shown. */
void left_out_say(const struct left_out *left_out);

#endif

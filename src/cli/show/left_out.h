/* cli/show/left_out.h: says on stderr how many entries a reader did not show.
 *
 * If a writer was killed, the log may have entries that are whole and not known to be durable
 * (pawl_unwitnessed). Readers do not show them; they say how many there are. */
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

/* If there are such entries, print one line on stderr, and say how to have them shown. */
void left_out_say(const struct left_out *left_out);

#endif

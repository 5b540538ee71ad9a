/* cli/progress.h: how far a long reading has come, on stderr: a bar that moves if that is a terminal, else a
 * plain line every ten seconds. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <pawl/types.h>

struct progress {
    const char *what;
    bool terminal;
    bool drawn;
    double begun;
    double said;
};

void progress_begin(struct progress *progress, const char *what);
void progress_step(void *arg, uint64_t done, uint64_t of_bytes);
void progress_count(void *arg, uint64_t events); /* when nobody knows how many there will be */
void progress_end(struct progress *progress);    /* the bar goes away */

#endif

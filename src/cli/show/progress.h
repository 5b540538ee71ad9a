/* cli/show/progress.h: shows on stderr how far a long reading has come: a moving bar on a terminal, otherwise a
 * plain line every ten seconds. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <pawl/types.h>

struct progress {
    const char *what;    /* "verifying" */
    const char *counted; /* "events" */
    bool terminal;
    bool drawn;
    double begun;
    double said;
};

/* Borrows both words until the end. */
void progress_begin(struct progress *progress, const char *what, const char *counted);
bool progress_step(void *arg, uint64_t done, uint64_t total);  /* a pawl_progress that counts bytes */
bool progress_count(void *arg, uint64_t done, uint64_t total); /* counts other things; total may be unknown */
void progress_end(struct progress *progress);                  /* the bar goes away */

#endif

/* figures.h: what an engine has done, and how far its parts are: numbers for whoever watches it. */
#ifndef PAWL_FIGURES_H
#define PAWL_FIGURES_H

#include <pawl/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sums over all shards, since opening, unless it says otherwise. */
typedef struct pawl_figures {
    /* The checkpoint stores (docs/OPERATIONS.md). */
    uint64_t checkpoint_lag;     /* events that a checkpoint lacks, now, of the shard where it lacks most */
    uint64_t checkpoint_lag_max; /* its bound, as configured */
    uint64_t checkpoint_events;  /* derived */
    uint64_t checkpoint_rows;    /* written: fewer than what the events changed, because each is written once a
                                    commit */
    uint64_t checkpoint_commits;
    uint64_t checkpoint_failures; /* of reading, deriving or writing; each is tried again */
    uint64_t checkpoint_made;     /* copied from the live store, because there was none that could be used */
    uint32_t checkpoints_ready;   /* shards that a loss of power would cost no more than the lag */
    uint64_t held;                /* times that commands had to wait for a checkpoint */

    /* Opening. */
    uint32_t taken_over; /* shards whose live store was thrown away, and whose checkpoint took its place */
    uint64_t
        replayed; /* events that were applied because the state lacked them; also after a failure of the log */
} pawl_figures;

/* Any thread that is not one of Pawl's own. Errors: PAWL_EMISUSE, PAWL_ECLOSED. */
PAWL_API int pawl_figures_get(pawl_engine *engine, pawl_figures *ret_figures, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif

/* engine/knobs.h: opening a directory as a test or a bench wants it: another boot, smaller numbers, a hook
 * between the steps of what must survive a crash at any of them. Not for users: pawl_open is this with nothing
 * set. */
#ifndef ENGINE_KNOBS_H
#define ENGINE_KNOBS_H

#include <pawl/pawl.h>

struct engine_knobs {
    const char *boot_id; /* NULL: the kernel's */
    bool no_checkpoint;  /* the live stores alone */
    bool backup; /* read-only: of a directory without live stores the checkpoints, as far as they have come */

    /* Zero means the default. */
    uint64_t checkpoint_events;   /* 256,000 at a time */
    size_t checkpoint_bytes;      /* 12 MiB */
    uint64_t checkpoint_rows;     /* 8,192 in a transaction */
    pawl_duration checkpoint_age; /* 5 s */
    uint64_t audit_every;         /* 65,536th offset */
    pawl_duration scrub_pause;    /* 1 s, or more after a large table */
    size_t scrub_bytes;           /* 64 MiB of a table */

    void (*step)(void *arg, const char *what); /* may be NULL; on any of the engine's threads */
    void *arg;
};

/* knobs may be NULL; it is borrowed until close. */
int engine_open(const char *dir, const pawl_options *options, const struct engine_knobs *knobs,
                pawl_engine **ret_engine, pawl_error *error);

static inline void knobs_step(const struct engine_knobs *knobs, const char *what)
{
    if (knobs->step)
        knobs->step(knobs->arg, what);
}

#endif

/* engine/knobs.h: settings for tests and benches: another boot, smaller numbers, and a hook between steps,
 * where a test can simulate a crash. Not for users: pawl_open is engine_open with none of these set. */
#ifndef ENGINE_KNOBS_H
#define ENGINE_KNOBS_H

#include <pawl/pawl.h>

struct engine_knobs {
    const char *boot_id; /* NULL: the kernel's */
    bool no_checkpoint;  /* only live stores */
    const char *log;     /* read-only: a log on Kafka that is read in place of the directory's own */
    bool backup;         /* read-only: a directory without live stores is opened with its checkpoints */

    /* Zero means the default. */
    uint32_t threads; /* that the shards run on: one, if the machine has few processors; else one each */
    pawl_duration gather_time;    /* commands gather for so long, if the log does not answer: 20 ms */
    uint32_t gather_max;          /* and so many at most: 128. 1: each is taken as soon as it comes */
    uint64_t checkpoint_events;   /* at most so many in one commit: 256,000 */
    size_t checkpoint_bytes;      /* at most so many in one commit: 12 MiB */
    uint64_t checkpoint_rows;     /* at most so many in one transaction: 8,192 */
    pawl_duration checkpoint_age; /* after so long what was read is committed: 5 s */
    uint64_t audit_every;         /* the states are compared at every so many offsets: 65,536 */
    pawl_duration scrub_pause;    /* between two tables: 1 s, more after a large table */
    size_t scrub_bytes;           /* larger tables are not scrubbed: 64 MiB */
    uint32_t slice_rows;          /* of a view's building, at most: 8,192 */

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

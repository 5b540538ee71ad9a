/* adapter/uv/linger.h: for how long a runner whose mailbox is empty stays awake.
 *
 * A processor that sleeps takes 50 us to wake, which is longer than most things that a shard waits for: the answer of
 * another shard, or of a log in files. So a runner stays awake for a moment. But what a broker must answer comes later
 * than that, and then the moment is only taken from the threads that the answer depends on. So a runner looks at how
 * long it has waited lately, and goes to sleep at once after several waits in a row that were too long.
 *
 * Pure: the runner brings the time. */
#ifndef ADAPTER_UV_LINGER_H
#define ADAPTER_UV_LINGER_H

#include <pawl/types.h>

/* How long a runner stays awake. */
#define LINGER (50 * PAWL_MICROSECOND)

/* A wait up to this was worth staying awake, even if the runner slept through it: that it was woken is a part of it. */
#define LINGER_WORTH (2 * LINGER)

/* So many waits in a row must have been longer, before a runner no longer stays awake. */
#define LINGER_VAIN_MAX 8

/* All zero is a runner that has not waited yet. */
struct uv_linger {
    uint64_t since; /* when the mailbox was found empty; 0: it is not known to be */
    uint32_t vain;  /* waits in a row that were too long */
};

/* The mailbox is empty. Returns until when to stay awake: now, if it is not worth it. */
static inline uint64_t linger_begin(struct uv_linger *l, uint64_t now)
{
    l->since = now;
    return l->vain < LINGER_VAIN_MAX ? now + LINGER : now;
}

/* Something has come. */
static inline void linger_end(struct uv_linger *l, uint64_t now)
{
    if (l->since == 0)
        return;
    if (now - l->since <= LINGER_WORTH)
        l->vain = 0;
    else if (l->vain < LINGER_VAIN_MAX)
        l->vain++;
    l->since = 0;
}

#endif

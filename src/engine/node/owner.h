/* engine/node/owner.h: whether this node owns its log, if that is one that nodes share.
 *
 *     open ── group0, read to its end ──► nobody's ── claim group0, write an assignment ──┐
 *                                    ├──► ours ───────────────────────────────────────────┼──► claim on it ─► OWNS
 *                                    └──► another's ── PAWL_EFENCED, unless take_over ────┘                    │
 *                                                                                                              │
 *                  another is assigned (group0 is followed), or has claimed a stream of ours on an assignment  │
 *                  that is not older                                                                    LOST ◄─┘
 *
 * LOST is for good: two nodes that take back from each other would never end. Commands end with PAWL_EFENCED until
 * the directory is opened again, with take_over. What makes this safe is the log (port/claim.h): a node that has not
 * noticed yet writes nothing that counts.
 *
 * A node with a log of its own, in files, always owns it. */
#ifndef ENGINE_NODE_OWNER_H
#define ENGINE_NODE_OWNER_H

#include <pawl/engine.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/latch.h"
#include "core/group0/assignment.h"
#include "port/env.h"
#include "port/log.h"

struct owner_watch {
    pthread_mutex_t lock;
    atomic_bool lost;
    pawl_error words; /* under lock; why it is lost */

    /* The follower of group0: on shard 0 only. */
    pawl_follow follow;
    uint64_t from;
    bool following;
    pawl_timer again;

    /* Who has taken over: group0 is read to its end. */
    atomic_bool asked;
    pawl_task ask;
    pawl_read read;
    bool reading;

    bool closing;
    struct latch *ended; /* set when nobody follows or reads any more */
};

/* Read group0, and become its owner; engine->assignment is what all other claims rest on. Blocks. PAWL_EFENCED: it is
 * another node's, which error names, or others claimed it meanwhile; errors of the log. */
int owner_open(pawl_engine *engine, pawl_error *error);

/* Follow group0, to learn at once that another node is assigned. */
void owner_follow(pawl_engine *engine);

/* End that. Before the log is closed; also if owner_open was never called. */
void owner_close(pawl_engine *engine);

/* Another writer has claimed a stream of this node. It is lost as soon as group0 was read to its end, which names the
 * other, or cannot be read. Any thread, until owner_close. */
void owner_lose(pawl_engine *engine);

/* PAWL_EFENCED, with the words, if it was lost. Any thread. */
int owner_check(const pawl_engine *engine, pawl_error *error);

#endif

/* engine/shard/turn_appends.h: what the partitions of a shard, or of several on one thread, append in one turn
 * of its loop goes to the log together.
 *
 * Each partition appends its own batch. The first one would wake the log's writer, which would sync for it
 * alone, and the others would miss that sync. So all appends of a turn are kept until its end, and then go as
 * one.
 *
 *     processor ── append ──┐
 *     processor ── append ──┼── the turn's end ──► one append ──► log ──► done, done, ...
 *     processor ── append ──┘                          │
 *                                             busy ────┴──► kept, tried again; new ones are PAWL_EBUSY
 *
 * It is a log port in front of the real one, and changes only append. The shard decides at its turn's end
 * whether all that is kept is sent as alone: then its own thread writes and syncs it. On the shard's thread only.
 *
 * A log gathers too, for those who append without this: lanes, other threads, and whoever uses it alone
 * (adapter/journal/journal.h).
 *
 * Invariants
 *   C1  Appends reach the log in the order in which they came.
 *   C2  Each append has its own outcome, that of its own entries, as if it had gone by itself. An append that
 *       is too large, or finds no room, can fail only those that go together with it: TURN_APPENDS_BYTES_MAX.
 *   C3  While something is kept, a task or a timer is under way that will send it.
 *   C4  The log is asked on one shard only, whichever shard of the thread appends. It answers the requests of one shard in
 *       their order, and between shards there is none: a stream's outcomes would overtake each other. */
#ifndef ENGINE_SHARD_TURN_APPENDS_H
#define ENGINE_SHARD_TURN_APPENDS_H

#include "port/env.h"
#include "port/log.h"

#define TURN_APPENDS_BYTES_MAX ((size_t)1 << 20) /* of bodies; one append that has more goes by itself */

struct joined_append;

struct turn_appends {
    pawl_log port; /* first */
    pawl_log *log;
    pawl_env *env;
    uint32_t shard;
    const pawl_allocator *alloc;
    pawl_task task;
    pawl_timer timer;
    bool busy;          /* the log was busy: the timer is set */
    pawl_append *first; /* what is kept, linked through impl[0] */
    pawl_append *last;
    struct joined_append *free; /* requests to the log that were used before */
    uint32_t under_way;         /* with the log, not answered yet */
    void (*idle)(void *arg);    /* the last of them was answered; NULL: nobody wants to know */
    void (*send)(void *arg); /* the turn's end: calls turn_appends_send; NULL: nobody, and nothing is alone */
    void *arg;               /* of both */
};

void turn_appends_init(struct turn_appends *appends, pawl_log *log, pawl_env *env, uint32_t shard,
                       const pawl_allocator *alloc);

/* Nothing may be under way. */
void turn_appends_release(struct turn_appends *appends);

/* Send what is kept now, before the loop's turn ends. alone: as in pawl_append, for all that is kept; done may
 * then be called before this returns. On the shard that this belongs to (C4), and not from inside an append or a done. */
void turn_appends_send(struct turn_appends *appends, bool alone);

/* How many entries are kept. */
size_t turn_appends_kept(const struct turn_appends *appends);

/* Whether the log has something to answer. When it has answered the last of it, and whoever appended was told, idle is
 * called, on the shard. An append that was sent without memory does not count. */
static inline bool turn_appends_under_way(const struct turn_appends *appends)
{
    return appends->under_way > 0;
}

static inline pawl_log *turn_appends_port(struct turn_appends *appends)
{
    return &appends->port;
}

#endif

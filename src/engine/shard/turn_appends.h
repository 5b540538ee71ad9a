/* engine/shard/turn_appends.h: what the partitions of a shard append in one turn of its loop goes to the log together.
 *
 * Each partition appends its own batch. The first of them would wake the log's writer, which would sync for it
 * alone while the others just miss that sync. So appends are kept until all of the turn have come, and go as
 * one.
 *
 *     processor ── append ──┐
 *     processor ── append ──┼── the turn's end ──► one append ──► log ──► done, done, ...
 *     processor ── append ──┘                          │
 *                                             busy ────┴──► kept, tried again; new ones are PAWL_EBUSY
 *
 * It is the log port before the log port: everything but append goes through, and so does an append that is
 * alone. What is kept may be alone as a whole: a shard that has nothing else to do writes it by itself. On the
 * shard's thread only.
 *
 * Invariants
 *   C1  Appends reach the log in the order in which they came.
 *   C2  Each has its own outcome, that of its own entries, as if it had gone by itself; what is wrong with one
 *       append's size or room does not befall more than the TURN_APPENDS_BYTES_MAX around it.
 *   C3  While something is kept, a task or a timer is under way that will send it. */
#ifndef ENGINE_SHARD_TURN_APPENDS_H
#define ENGINE_SHARD_TURN_APPENDS_H

#include "port/env.h"
#include "port/log.h"

#define TURN_APPENDS_BYTES_MAX ((size_t)1 << 20) /* of bodies; one append that has more goes by itself */

struct combined;

struct turn_appends {
    pawl_log port; /* first */
    pawl_log *log;
    pawl_env *env;
    uint32_t shard;
    const pawl_allocator *alloc;
    pawl_task task;
    pawl_timer timer;
    bool busy;          /* the log was: the timer is set */
    pawl_append *first; /* kept, linked through impl[0] */
    pawl_append *last;
    struct combined *free; /* requests to the log that were used before */
};

void turn_appends_init(struct turn_appends *appends, pawl_log *log, pawl_env *env, uint32_t shard,
                       const pawl_allocator *alloc);

/* Nothing may be under way. */
void turn_appends_release(struct turn_appends *appends);

/* The turn has come to its end, before the loop says so. alone: as in pawl_append, for all that is kept; dones
 * may then be called from in here. Not from inside an append or a done. */
void turn_appends_send(struct turn_appends *appends, bool alone);

/* Entries that are kept. */
size_t turn_appends_kept(const struct turn_appends *appends);

static inline pawl_log *turn_appends_port(struct turn_appends *appends)
{
    return &appends->port;
}

#endif

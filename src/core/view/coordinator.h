/* core/view/coordinator.h: decides who builds what, on the leader only.
 *
 *     group0: views, tasks, tablets ──► coordinator ── WORK ──► worker of each shard ──► results
 *                 ▲                          │                                             │
 *                 └────────── commands ◄─────┴───── finished, every 200 ms together ◄──────┘
 *
 * It has no state that matters: what it must remember is in group0, and a new leader's coordinator begins with
 * that and with what the workers answer. It lives on one shard and is called there only; time, calls and
 * proposals are asynchronous.
 *
 * What it does, whenever something has changed:
 *   1. It asks every shard what it does not cover (UNCOVERED), at the beginning of its term, and when the
 *      list of views or the map has changed; for what has no task it proposes tasks.
 *   2. No base is processed: it chooses one, with only process_staging tasks if there is such a one, else with
 *      the least work left, and proposes it. If another base comes to have much less work left (an eighth),
 *      that one takes its turn: calls under way are cancelled, and coverage keeps what they did. Work is counted
 *      in rows that are not covered, as the shards tell them with UNCOVERED.
 *   3. For each replica that has tasks of that base and no call under way, it chooses a batch: all tasks of
 *      one type and tablet, build_range first, of views that are not paused; and calls the worker.
 *   4. Tasks that a worker has finished are kept, and 200 ms after the first of them proposed as finished,
 *      together. A failed view is proposed at once.
 *
 *     replica:  IDLE ── batch ──► CALLED ── answered ──► IDLE
 *                ▲                  └── lost, EBUSY, failed ──► WAITING (1 s) ──┐
 *                └──────────────────────────────────────────────────────────────┘
 *
 * Invariants
 *   O1  At most one call is under way for a replica.
 *   O2  No task of a tablet in transition is given out; while the map is being resized, none is.
 *   O3  Only IDs that were answered FINISHED, in this term, are proposed as finished.
 *   O4  At most one proposal is under way; one that is refused (PAWL_ECONFLICT) is decided anew.
 *   O5  A step looks at no more than a bounded number of tasks, whatever their number. */
#ifndef CORE_VIEW_COORDINATOR_H
#define CORE_VIEW_COORDINATOR_H

#include "core/group0/building.h"
#include "port/bus.h"
#include "port/env.h"

struct coordinator_ops {
    /* group0's state does not change between look and looked; the coordinator calls nothing else meanwhile. */
    const struct building *(*look)(void *ctx);
    void (*looked)(void *ctx);

    /* Have a command written to group0; coordinator_proposed tells what became of it. Borrowed until then. */
    void (*propose)(void *ctx, pawl_bytes command);
};

struct coordinator_options {
    pawl_env *env;
    uint32_t shard;
    pawl_bus *bus;
    uint64_t term;
    const struct coordinator_ops *ops;
    void *ctx;
    pawl_duration collect; /* 200 ms; and as long until what is not durable yet is asked about again */
    pawl_duration backoff; /* 1 s */
    pawl_duration timeout; /* of a call: 10 s; then it is made again, and attaches */
    const pawl_allocator *allocator;
};

struct coordinator_figures {
    uint64_t steps;
    uint64_t calls;
    uint64_t lost; /* calls without an answer */
    uint64_t proposals;
    uint64_t conflicts;
    uint64_t finished; /* tasks */
    uint64_t turns;    /* times that another base took its turn */
};

struct coordinator;

/* Takes its first step at the loop's next turn. On the shard. PAWL_ENOMEM. */
int coordinator_new(const struct coordinator_options *options, struct coordinator **ret_coordinator);

/* group0 has changed. On the shard; so are the others. */
void coordinator_changed(struct coordinator *coordinator);

/* A durable side covers more than before: tasks that were not durable are asked about again now. */
void coordinator_covered(struct coordinator *coordinator);

/* The command that was proposed is applied (PAWL_OK), or was not written. */
void coordinator_proposed(struct coordinator *coordinator, int status);

/* Why a view's building does not go on: words of the last failure of a call for it that was not followed by an
 * answer. False: nothing is known to be wrong. */
bool coordinator_trouble(const struct coordinator *coordinator, uint32_t view, pawl_error *ret_error);

const struct coordinator_figures *coordinator_figures(const struct coordinator *coordinator);

/* For a leader that ends in order, when nothing is proposed any more: the command that says which tasks are
 * finished; empty: none are. The next leader would find out by itself. It proposes nothing after this. Borrowed
 * until it is freed. PAWL_ENOMEM. */
int coordinator_last_words(struct coordinator *coordinator, pawl_bytes *ret_command);

/* Calls are cancelled; an answer to a proposal must not come any more. Free it at once, on the shard. */
void coordinator_free(struct coordinator *coordinator);

#endif

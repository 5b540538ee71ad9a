/* core/view/worker.h: builds views from the rows of one shard, when the coordinator asks for it.
 *
 *     WORK(term, ids) ──► batch ── slice, slice, ... ──► covered ── durable? unique? ──► results
 *                          ▲ a second call with the same tasks attaches to it
 *
 * A worker lives on a shard and is called there only. It has at most one batch: tasks of one type, base and
 * tablet, built in one scan, by slices between which the shard does its other work. What was built is in the
 * store's coverage, so everything here is idempotent, and what a crash costs is at most one slice.
 *
 *     IDLE ── call ──► SCANNING ── all tasks are covered, aborted or gone ──► answered: IDLE
 *                          └── no caller is left (cancelled), or closed ──► IDLE
 *
 * Invariants
 *   X1  A term is never answered after a higher one was seen: PAWL_EFENCED.
 *   X2  A task is called FINISHED only if its range is covered in the live store and in the durable one, and
 *       group0 has it, not aborted, at that moment.
 *   X3  The batch holds only tasks that group0 has, not aborted: worker_changed removes the others.
 *   X4  While a batch scans, a call for other tasks gets PAWL_EBUSY; a batch that has lost all its callers ends
 *       before its next slice. */
#ifndef CORE_VIEW_WORKER_H
#define CORE_VIEW_WORKER_H

#include "core/group0/tasks.h"
#include "core/view/work.h"
#include "port/bus.h"
#include "port/env.h"

/* What one slice did. */
struct slice_report {
    uint64_t rows; /* base rows scanned */
    bool covered;  /* all views of the batch cover the tablet now */
};

struct worker_ops {
    /* group0 as this node knows it. PAWL_ENOTFOUND. */
    int (*task)(void *ctx, uint64_t id, struct task *ret_task);

    /* Build a slice of at most rows_max base rows of these tasks, which have one base and tablet, in a
     * transaction of its own. Errors: PAWL_EFULL and others of the store: nothing was written; error says
     * why. */
    int (*slice)(void *ctx, const struct task *tasks, size_t count, uint32_t rows_max,
                 struct slice_report *ret_report, pawl_error *error);

    /* A task whose tablet is covered here: FINISHED, NOT_DURABLE or FAILED (then error has the words). */
    enum work_outcome (*judge)(void *ctx, const struct task *task, pawl_error *error);

    /* Whether the live store covers the tablet for the task's view. */
    bool (*covers)(void *ctx, const struct task *task);

    /* All that is not covered here, at most UNCOVERED_MAX; and of how many rows. Lies in the arena. PAWL_ENOMEM. */
    int (*uncovered)(void *ctx, struct arena *arena, struct uncovered_reply *ret_reply);

    /* Rows a second that this shard may scan; 0: no bound. */
    uint64_t (*throttle)(void *ctx);

    /* Whether others wait for this shard: then building takes a quarter of its time, not all that is left. NULL:
     * nobody ever does. */
    bool (*busy)(void *ctx);
};

struct worker_options {
    pawl_env *env;
    uint32_t shard;
    pawl_bus *bus;
    const struct worker_ops *ops;
    void *ctx;
    pawl_duration slice_time; /* 500 us: slices are made as large as fits into this */
    uint32_t slice_rows_max;  /* 8192 */
    const pawl_allocator *allocator;
};

struct worker_figures {
    uint64_t rows; /* scanned */
    uint64_t slices;
    uint64_t batches;
    uint64_t attached; /* calls that found their batch running */
    uint64_t refused;  /* calls of an old term */
    double rate;       /* rows a second, lately; 0: it is idle */
    uint32_t base;     /* of the batch; 0: none */
    uint32_t tablet;
    pawl_error error; /* why the last slice failed; code 0: it did not */
};

struct worker;

/* Begins to serve both verbs. On the shard. PAWL_ENOMEM. */
int worker_new(const struct worker_options *options, struct worker **ret_worker);

/* group0's tasks have changed, or the settings. On the shard. */
void worker_changed(struct worker *worker);

const struct worker_figures *worker_figures(const struct worker *worker);

/* Callers get no answer. Free it at once, on the shard. */
void worker_free(struct worker *worker);

#endif

/* engine/results.h: what a handler or a worker wants, being put together as intents (core/state/acting.h) in
 * the memory of its run.
 *
 * Expressions are compiled against the run's schema. A crew keeps those of its handler's texts, up to a number,
 * until it ends; beyond that they are the job's own, which outlives all use of them. */
#ifndef ENGINE_RESULTS_H
#define ENGINE_RESULTS_H

#include "core/event/event.h"
#include "engine/lanes.h"

struct expr_cache;

int expr_cache_new(const pawl_allocator *alloc, struct expr_cache **ret_cache);
void expr_cache_free(struct expr_cache *cache); /* NULL is allowed */

struct results_write;

struct pawl_results {
    struct job *job;
    struct expr_cache *cache;
    const struct event *event;
    const pawl_allocator *alloc;
    struct results_write *first, **last, *open;
    size_t count;
    size_t bytes;
    bool failed; /* the handler said so, in error */
    bool permanent;
    pawl_error error; /* its code is that of the first thing that went wrong */
};

void results_init(struct pawl_results *results, struct job *job, struct expr_cache *cache,
                  const struct event *event);

/* The intents are the run's from here on. PAWL_EINVAL, PAWL_ETOOBIG, PAWL_ENOMEM: what went wrong, in error. */
int results_finish(struct pawl_results *results);

/* The job's own expressions, when its run is over. */
void results_forget(struct job *job);

#endif

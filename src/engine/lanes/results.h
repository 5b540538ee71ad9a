/* engine/lanes/results.h: what a handler or a worker wants, being put together as intents (core/state/acting.h) in
 * the memory of its run.
 *
 * How much that may be is what an entry of the log can hold: every write is counted as it would be encoded with
 * one row. Whether it is less, because no row matches, or more, because many do, comes out when it is exploded
 * (core/project/explode.h), which has the same bound. The memory that it takes meanwhile is a small multiple of
 * that; what is needed only while it is put together is given back before the run waits for its turn.
 *
 * Expressions are compiled against the run's schema. A worker pool keeps those of its handler's texts, up to a number,
 * until it ends; beyond that they are the job's own, which outlives all use of them. */
#ifndef ENGINE_LANES_RESULTS_H
#define ENGINE_LANES_RESULTS_H

#include "engine/lanes/impl.h"

#include "core/event/event.h"

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
    struct arena building; /* the lists above */
    size_t count;
    size_t bytes; /* of the entry, as far as it can be known */
    bool failed;  /* the handler said so, in error */
    bool permanent;
    pawl_error error; /* its code is that of the first thing that went wrong */
};

void results_init(struct pawl_results *results, struct job *job, struct expr_cache *cache,
                  const struct event *event);

/* In any case, when it is no longer added to. */
void results_release(struct pawl_results *results);

/* The intents are the run's from here on. PAWL_EINVAL, PAWL_ETOOBIG, PAWL_ENOMEM: what went wrong, in error. */
int results_finish(struct pawl_results *results);

/* results_expr.c: an expression over the event and a row of the entity. The run may use it to its end.
 * PAWL_EINVAL, PAWL_ENOMEM: what went wrong, in error. */
int results_compile(struct pawl_results *results, const struct schema_type *entity, enum value_type want,
                    const char *text, const struct expr **ret_expr);

/* The job's own expressions, when its run is over. */
void results_forget(struct job *job);

#endif

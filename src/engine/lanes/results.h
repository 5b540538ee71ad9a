/* engine/lanes/results.h: the results of a handler or a worker become intents (core/state/acting.h), in the
 * memory of the run.
 *
 * Results may be as large as an entry of the log: every write is counted as if it hit one row. A write may hit
 * no row, or many; this is known only when the run is exploded (core/project/explode.h), which checks the same
 * limit again. The memory that results take is a small multiple of that limit. Memory that only building them
 * needs is given back before the run waits for its turn.
 *
 * Expressions are compiled against the run's schema. A worker pool keeps a limited number of them until it
 * ends. All others belong to the job, which outlives every use of them. */
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
    struct arena building; /* memory of the lists above */
    size_t count;
    size_t bytes;     /* the size of the entry, as far as it can be known */
    bool failed;      /* the handler called pawl_results_fail */
    bool permanent;   /* and another run would fail too */
    pawl_error error; /* the first error; its code is 0 while there is none */
};

void results_init(struct pawl_results *results, struct job *job, struct expr_cache *cache,
                  const struct event *event);

/* Call this in any case, when nothing more is added. */
void results_release(struct pawl_results *results);

/* Give the intents to the run. PAWL_EINVAL, PAWL_ETOOBIG, PAWL_ENOMEM: results->error says what went wrong. */
int results_finish(struct pawl_results *results);

/* results_expr.c: compile an expression over the event and a row of the entity. It lasts as long as the run.
 * PAWL_EINVAL, PAWL_ENOMEM: results->error says what went wrong. */
int results_compile(struct pawl_results *results, const struct schema_type *entity, enum value_type want,
                    const char *text, const struct expr **ret_expr);

/* Free the expressions that belong to the job. Its run must have ended. */
void results_forget(struct job *job);

#endif

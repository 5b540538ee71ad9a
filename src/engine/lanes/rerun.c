/* engine/lanes/rerun.c: a handler, run again on a store of the caller's choice. */
#include "base/alloc.h"
#include "base/error.h"
#include "engine/lanes/impl.h"
#include "engine/lanes/results.h"

struct rerun {
    pawl_engine *engine;
    pawl_store *store;
    const pawl_allocator *alloc;
    struct job job;
    struct run_buffers buffers;
    struct expr_cache *cache;
};

int rerun_new(pawl_engine *engine, pawl_store *store, const pawl_allocator *alloc, struct rerun **ret_rerun)
{
    struct rerun *r = mem_new(alloc, 1, sizeof *r);
    if (!r)
        return PAWL_ENOMEM;
    r->engine = engine;
    r->store = store;
    r->alloc = alloc;
    run_init(&r->job.run, alloc);
    int status = run_buffers_init(&r->buffers, alloc);
    if (status == PAWL_OK)
        status = expr_cache_new(alloc, &r->cache);
    if (status == PAWL_OK)
        *ret_rerun = r;
    else
        rerun_free(r);
    return status;
}

void rerun_free(struct rerun *r)
{
    if (!r)
        return;
    results_forget(&r->job);
    run_release(&r->job.run);
    run_buffers_release(&r->buffers);
    expr_cache_free(r->cache);
    mem_free(r->alloc, r, sizeof *r);
}

bool rerun_can(const struct rerun *r, const struct schema_projector *projector)
{
    pawl_handler fn;
    void *arg;
    return handler_find(r->engine, projector->id, &fn, &arg);
}

int rerun_handle(struct rerun *r, const struct rerun_of *of, const struct intent **ret_intents,
                 size_t *ret_count, pawl_error *error)
{
    struct run *run = &r->job.run;
    struct handling handling = {.engine = r->engine, .store = r->store, .cache = r->cache};
    results_forget(&r->job);
    run_reset(run);
    run->event = of->event;
    run->number = of->number;
    run->attempt = of->attempt;
    run->partition = of->partition;
    run->lane = of->lane;
    run->generation = of->generation;
    run->schema = of->schema;
    run->projector = of->projector;
    if (!handler_find(r->engine, of->projector->id, &handling.fn, &handling.arg))
        return error_set(error, PAWL_ENOTFOUND, "no handler is registered");
    int status = job_handle(&handling, &r->job, &r->buffers);
    if (status != PAWL_OK)
        return error_set(error, r->job.outcome == JOB_POSTPONED ? status : PAWL_EINVAL, "%s", r->job.words);
    *ret_intents = run->intents;
    *ret_count = run->intent_count;
    return PAWL_OK;
}

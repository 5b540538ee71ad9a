/* engine/lanes/handler.c: one run, on a worker thread: the handler, if there is one, and the explosion. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/schema/row.h"
#include "core/sequence/storage.h"
#include "core/state/key.h"
#include "engine/lanes/handler.h"
#include "engine/lanes/impl.h"
#include "engine/lanes/results.h"
#include "engine/lanes/worker_pool.h"
#include "engine/read/read.h"

#define ARENA_CHUNK ((size_t)4096)
#define TRIES       20 /* to explode a run, while snapshots or memory are lacking */
#define TRY_AGAIN   (5 * PAWL_MILLISECOND)

/* --- the event --- */

static int show_event(pawl_engine *e, const struct job *job, struct json_out *out,
                      struct pawl_event_source *ret_source, pawl_event *ret_event, pawl_error *error)
{
    const struct lane_event *held = job->run.event;
    return event_show(e, job->run.partition, held->offset, (pawl_bytes){held->bytes, held->size}, out,
                      ret_source, ret_event, error);
}

/* --- reading --- */

/* One read of an entity of the lane. */
struct handler_read {
    struct entity_read read;
    pawl_handler_ctx *ctx;
};

static bool is_among(const struct schema_type *const *entities, size_t count, const struct schema_type *entity)
{
    for (size_t i = 0; i < count; i++)
        if (entities[i]->id == entity->id)
            return true;
    return false;
}

/* The schema makes lanes from what each projector says that it reads and writes. A handler that could read
 * other entities too would break when a later schema puts these into another lane. */
static bool may_read(const struct schema_projector *p, const struct schema_type *entity)
{
    return is_among(p->writes, p->write_count, entity) || is_among(p->reads, p->read_count, entity);
}

static int begin_read(struct handler_read *r, pawl_handler_ctx *ctx, const char *name, struct entity_query at,
                      pawl_error *error)
{
    const struct run *run = &ctx->job->run;
    if (ctx->reading)
        return error_set(error, PAWL_EMISUSE, "called from inside a visit of another read");
    const struct schema_type *entity = schema_type_by_name(run->schema, (pawl_bytes){name, strlen(name)});
    if (!entity || entity->kind != TYPE_ENTITY || entity->lane != run->lane)
        return error_set(error, PAWL_EINVAL, "%s is not an entity of this lane", name);
    if (!may_read(run->projector, entity))
        return error_set(
            error, PAWL_EINVAL,
            "projector %.*s may not read %s: the schema has it neither in its writes nor in its reads",
            (int)run->projector->name.size, (const char *)run->projector->name.data, name);
    *r = (struct handler_read){.read = {.engine = ctx->engine,
                                        .schema = run->schema,
                                        .entity = entity,
                                        .table = schema_table(entity, run->generation),
                                        .wsid = ctx->wsid,
                                        .at = at,
                                        .error = error},
                               .ctx = ctx};
    entity_read_begin(&r->read, ctx->engine->options.allocator);
    ctx->reading = true;
    return PAWL_OK;
}

/* Whether the status of a read is an answer: about the arguments, or about the rows. Any other status means
 * that the read failed; then the results of the handler do not count. */
static bool is_an_answer(int status)
{
    return status == PAWL_OK || status == PAWL_ENOTFOUND || status == PAWL_EINVAL || status == PAWL_ETOOBIG;
}

static int end_read(struct handler_read *r, int status, pawl_text *ret_text)
{
    status = entity_read_end(&r->read, status, ret_text);
    r->ctx->reading = false;
    if (!is_an_answer(status) && r->ctx->status == PAWL_OK)
        r->ctx->status = status;
    return status;
}

/* The state lasts until run_close_snapshot. */
static int begin_state(struct handler_read *r, struct state *ret_state)
{
    struct job *job = r->ctx->job;
    int status = run_open_snapshot(&job->run, r->ctx->store, r->ctx->buffers, &job->run.seen, ret_state);
    return status == PAWL_OK
               ? status
               : error_set(r->read.error, status, "cannot read %.*s", (int)r->read.entity->name.size,
                           (const char *)r->read.entity->name.data);
}

/* ret_text: NULL if there is a visitor. */
static int read_one(pawl_handler_ctx *ctx, const char *entity, struct entity_query at, pawl_text *ret_text,
                    pawl_error *error)
{
    struct handler_read r;
    struct state state;
    pawl_bytes key, value;
    int status = begin_read(&r, ctx, entity, at, error);
    if (status != PAWL_OK)
        return status;
    status = entity_read_key(&r.read, &key);
    if (status == PAWL_OK)
        status = begin_state(&r, &state);
    if (status != PAWL_OK)
        return end_read(&r, status, ret_text);
    status = reads_add_row(&ctx->job->run.seen, key);
    if (status == PAWL_OK)
        status = state_get(&state, key, &value);
    if (status == PAWL_OK)
        status = entity_read_show(&r.read, value);
    else
        error_set(error, status, status == PAWL_ENOTFOUND ? "there is no such %s" : "cannot read %s", entity);
    run_close_snapshot(ctx->buffers);
    return end_read(&r, status, ret_text);
}

int pawl_handler_get(pawl_handler_ctx *ctx, const char *entity, pawl_bytes json, pawl_text *ret_text,
                     pawl_error *error)
{
    return read_one(ctx, entity, (struct entity_query){.json = json}, ret_text, error);
}

int pawl_handler_read(pawl_handler_ctx *ctx, const char *entity, pawl_key key, pawl_row_visit visit, void *arg,
                      pawl_error *error)
{
    return read_one(ctx, entity, (struct entity_query){.key = key, .visit = visit, .arg = arg}, NULL, error);
}

static int scan(void *ctx, pawl_bytes from, pawl_bytes to, pawl_visit_row visit, void *arg)
{
    struct handler_read *r = ctx;
    struct arena scratch;
    struct state state;
    int status = begin_state(r, &state);
    if (status != PAWL_OK)
        return status;
    arena_init(&scratch, r->ctx->engine->options.allocator, ARENA_CHUNK);
    status = reads_add_range(&r->ctx->job->run.seen, r->read.table, r->read.wsid);
    if (status == PAWL_OK)
        status = state_scan(&state, from, to, &scratch, visit, arg);
    arena_release(&scratch);
    run_close_snapshot(r->ctx->buffers);
    return status == PAWL_OK ? PAWL_OK : error_set(r->read.error, status, "cannot read the rows");
}

static int read_many(pawl_handler_ctx *ctx, const char *entity, struct entity_query at, pawl_text *ret_text,
                     pawl_error *error)
{
    struct handler_read r;
    int status = begin_read(&r, ctx, entity, at, error);
    return status == PAWL_OK ? end_read(&r, entity_read_list(&r.read, scan, &r), ret_text) : status;
}

int pawl_handler_list(pawl_handler_ctx *ctx, const char *entity, pawl_bytes after, size_t limit,
                      pawl_text *ret_text, pawl_error *error)
{
    return read_many(ctx, entity, (struct entity_query){.json = after, .limit = limit}, ret_text, error);
}

int pawl_handler_scan(pawl_handler_ctx *ctx, const char *entity, pawl_key after, pawl_cursor *cursor,
                      size_t limit, pawl_row_visit visit, void *arg, pawl_error *error)
{
    struct entity_query at = {.key = after, .visit = visit, .arg = arg, .limit = limit, .cursor = cursor};
    return read_many(ctx, entity, at, NULL, error);
}

uint32_t pawl_handler_attempt(const pawl_handler_ctx *ctx)
{
    return ctx->job->run.attempt;
}

bool pawl_handler_given_up(const pawl_handler_ctx *ctx)
{
    return atomic_load(&ctx->job->given_up) || atomic_load(&ctx->engine->closing);
}

/* --- working --- */

static void end(struct job *job, enum job_outcome outcome, bool permanent, const char *words)
{
    job->outcome = outcome;
    job->permanent = permanent;
    snprintf(job->words, sizeof job->words, "%.*s", (int)sizeof job->words - 1, words);
}

static int postpone(struct job *job, const char *what, int status)
{
    char words[PAWL_LEASE_WORDS_MAX];
    snprintf(words, sizeof words, "%s: %s", what, pawl_status_text(status));
    end(job, JOB_POSTPONED, false, words);
    return status;
}

/* The handler returned this status: whether its results count, or the run failed, or is postponed. */
static int judge(const pawl_handler_ctx *ctx, struct pawl_results *results, int status)
{
    struct job *job = ctx->job;
    char words[64];
    if (ctx->status != PAWL_OK)
        return postpone(job, "a read failed", ctx->status);
    if (status == PAWL_OK)
        status = results_finish(results);
    if (status == PAWL_OK)
        return status;
    if (results->error.code == PAWL_ENOMEM)
        return postpone(job, "the handler's results", PAWL_ENOMEM);
    snprintf(words, sizeof words, "the handler returned %d", status);
    end(job, JOB_FAILED, results->permanent, results->error.code ? results->error.text : words);
    return status;
}

int job_handle(const struct handling *h, struct job *job, struct run_buffers *buffers)
{
    pawl_engine *e = h->engine;
    pawl_handler_ctx ctx = {.job = job, .engine = e, .store = h->store, .buffers = buffers};
    struct pawl_results results;
    struct pawl_event_source source;
    struct json_out out;
    pawl_event shown;
    pawl_error error = {0};
    json_out_init(&out, e->options.allocator);
    int status = show_event(e, job, &out, &source, &shown, &error);
    if (status != PAWL_OK) {
        end(job, status == PAWL_ENOMEM ? JOB_POSTPONED : JOB_FAILED, false, error.text);
        json_out_release(&out);
        return status;
    }
    ctx.wsid = shown.wsid;
    results_init(&results, job, h->cache, &source.event);
    status = h->fn(&ctx, &shown, &results, h->arg);
    json_out_release(&out);
    status = judge(&ctx, &results, status);
    results_release(&results);
    return status;
}

void job_work(struct job *job, struct worker_pool *pool, struct run_buffers *buffers)
{
    pawl_engine *e = pool->generation->engine;
    pawl_error error = {0};
    struct handling handling = {.engine = e,
                                .store = shard_of(e, job->run.partition)->store,
                                .fn = pool->handler,
                                .arg = pool->arg,
                                .cache = pool->cache};
    if (pool->handler && job_handle(&handling, job, buffers) != PAWL_OK)
        return;
    int status = PAWL_EBUSY;
    for (int i = 0; i < TRIES && status != PAWL_OK; i++) {
        if (i > 0 && atomic_load(&job->given_up))
            break;
        if (i > 0)
            wait_pause(TRY_AGAIN); /* too many snapshots, for instance: that is over in a moment */
        status = run_explode(&job->run, shard_of(e, job->run.partition)->store, buffers, &error);
    }
    end(job, status == PAWL_OK ? JOB_DONE : JOB_POSTPONED, false, error.text);
}

/* --- registering --- */

bool handler_find(pawl_engine *e, uint16_t projector, pawl_handler *ret_fn, void **ret_arg)
{
    struct lanes *lanes = e->lanes;
    pthread_mutex_lock(&lanes->lock);
    const struct handler *handler = lanes->handlers;
    while (handler && handler->projector != projector)
        handler = handler->next;
    if (handler) {
        *ret_fn = handler->fn;
        *ret_arg = handler->arg;
    }
    pthread_mutex_unlock(&lanes->lock);
    return handler != NULL;
}

static int add_handler(pawl_engine *e, uint16_t projector, pawl_handler fn, void *arg, pawl_error *error)
{
    struct lanes *lanes = e->lanes;
    struct handler *handler = mem_new(e->options.allocator, 1, sizeof *handler);
    if (!handler)
        return error_set(error, PAWL_ENOMEM, "no memory for a handler");
    *handler = (struct handler){.projector = projector, .fn = fn, .arg = arg};
    pthread_mutex_lock(&lanes->lock);
    struct handler **at = &lanes->handlers;
    while (*at && (*at)->projector != projector)
        at = &(*at)->next;
    bool taken = *at != NULL;
    if (!taken)
        *at = handler;
    pthread_mutex_unlock(&lanes->lock);
    if (!taken)
        return PAWL_OK;
    mem_free(e->options.allocator, handler, sizeof *handler);
    return error_set(error, PAWL_EEXISTS, "the projector has a handler already");
}

int pawl_projector_register(pawl_engine *e, const char *name, pawl_handler fn, void *arg, pawl_error *error)
{
    int status = engine_enter_writing(e, error);
    if (status != PAWL_OK)
        return status;
    pthread_mutex_lock(&e->schema_lock);
    const struct schema_projector *projector =
        schema_projector_by_name(engine_schema(e), (pawl_bytes){name, strlen(name)});
    if (!projector)
        status = error_set(error, PAWL_ENOTFOUND, "there is no projector %s", name);
    else if (!projector->handler)
        status = error_set(error, PAWL_EINVAL, "%s has actions in the schema, so it takes no handler", name);
    else
        status = add_handler(e, projector->id, fn, arg, error);
    struct generation *g = NULL;
    while (status == PAWL_OK && (g = generation_hold_next(e, g))) {
        for (uint32_t i = 0; i < g->projections; i++)
            if (g->pools[i].projector->id == projector->id && g->pools[i].projector->handler)
                worker_pool_set_handler(&g->pools[i], fn, arg);
        generation_visit(g, partition_lane_fill);
    }
    pthread_mutex_unlock(&e->schema_lock);
    return status;
}

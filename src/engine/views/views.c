#include "engine/views/views.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "core/view/unique.h"
#include "engine/views/impl.h"

const struct building *building_lock(pawl_engine *e)
{
    pthread_mutex_lock(&e->group0_lock);
    return group0_building(e->group0);
}

void building_unlock(pawl_engine *e)
{
    pthread_mutex_unlock(&e->group0_lock);
}

int views_new(pawl_engine *e)
{
    struct views *v = mem_new(e->options.allocator, 1, sizeof *v);
    if (!v)
        return PAWL_ENOMEM;
    v->engine = e;
    pthread_mutex_init(&v->lock, NULL);
    cond_init(&v->wake);
    cond_init(&v->progress);
    e->views = v;
    return PAWL_OK;
}

void views_free(pawl_engine *e)
{
    struct views *v = e->views;
    if (!v)
        return;
    local_bus_close(v->bus);
    local_network_close(v->network);
    mem_free(e->options.allocator, v->work, v->work ? e->file.shards * sizeof v->work[0] : 0);
    pthread_cond_destroy(&v->progress);
    pthread_cond_destroy(&v->wake);
    pthread_mutex_destroy(&v->lock);
    mem_free(e->options.allocator, v, sizeof *v);
    e->views = NULL;
}

/* --- what a shard's store keeps --- */

struct refreshing {
    struct view_tables *tables;
    const struct view_list *list;
    const struct schema *schema;
};

static int put_refresh(void *ctx, pawl_store *store, pawl_error *error)
{
    struct refreshing *r = ctx;
    (void)store;
    return view_tables_refresh(r->tables, r->list, r->schema, error);
}

static void remove_soon(struct shard *shard)
{
    if (shard->building && (shard->views.removing || !shard->views.refreshed))
        (void)pawl_env_post(shard->engine->env, shard->index, &shard->building->remove);
}

static int refresh(struct shard *shard, const struct view_list *list, const struct schema *schema,
                   pawl_error *error)
{
    struct refreshing r = {.tables = &shard->views, .list = list, .schema = schema};
    knobs_step(&shard->engine->knobs, "a shard learns of views");
    int status = applier_write(&shard->applier, put_refresh, &r, error);
    for (size_t i = 0; i < shard->partitions.count; i++)
        if (shard_partition(shard, i)->processor)
            processor_rebind(shard_partition(shard, i)->processor);
    return status;
}

int views_refresh_shard(struct shard *shard, const struct view_list *list, const struct schema *schema,
                        pawl_error *error)
{
    int status = refresh(shard, list, schema, error);
    remove_soon(shard);
    return status;
}

int views_refresh_again(struct shard *shard)
{
    const struct view_tables *t = &shard->views;
    applier_retreat(
        &shard->applier); /* what a transaction that may be aborted knows of the views does not count */
    return t->refreshed ? PAWL_OK : refresh(shard, t->list, t->schema, NULL);
}

int views_open_shard(struct shard *shard, pawl_error *error)
{
    pawl_engine *e = shard->engine;
    view_tables_init(&shard->views, shard->store, shard->partitions, e->file.partitions, e->options.allocator);
    shard->applier.hook = &shard->views.hook;
    struct refreshing r = {
        .tables = &shard->views, .list = atomic_load(&e->view_list), .schema = engine_schema(e)};
    int status = applier_write(&shard->applier, put_refresh, &r, error);
    return status == PAWL_OK ? work_cover_unique(shard, error) : status;
}

void views_close_shard(struct shard *shard)
{
    shard->applier.hook = NULL;
    view_tables_release(&shard->views);
}

/* --- lanes --- */

struct covering {
    struct shard *shard;
    uint32_t table;
    bool covered;
};

static void check_covered(void *arg)
{
    struct covering *c = arg;
    struct view_tables *tables = &c->shard->views;
    const struct view_table *found = view_tables_find(tables, c->table);
    c->covered = found != NULL;
    for (size_t i = 0; found && i < tables->set.count; i++)
        c->covered = c->covered && view_tables_settle(tables, &found->states[i]) == PAWL_OK
                     && found->states[i].state.complete;
}

/* Whether a table of a view covers all partitions. */
static bool is_covered(pawl_engine *e, uint32_t table)
{
    bool covered = true;
    for (uint32_t i = 0; i < e->file.shards && covered; i++) {
        struct covering c = {.shard = &e->shards[i], .table = table};
        covered = pawl_env_call(e->env, i, check_covered, &c) == PAWL_OK && c.covered;
    }
    return covered;
}

/* What covers the generation that serves answers completely, whatever group0 says of it. */
bool views_allow_switch(pawl_engine *e, uint16_t lane, uint32_t generation)
{
    const struct view_list *list = atomic_load(&e->view_list);
    const struct schema *schema = engine_schema(e);
    bool allowed = true;
    for (size_t i = 0; i < list->count && allowed; i++) {
        const struct view *view = list->entries[i].view;
        const struct schema_type *base = schema_type_by_id(schema, view->base->id);
        if (!base || base->kind != TYPE_ENTITY || base->lane != lane)
            continue;
        uint32_t serving = schema_serving_table(schema, base) >> SCHEMA_TABLE_BITS;
        allowed = is_covered(e, view_table(view->number, generation))
                  || !is_covered(e, view_table(view->number, serving));
    }
    return allowed;
}

/* --- beginning and ending --- */

struct starting {
    struct view_work *work;
    pawl_bus *bus;
    int status;
};

static void start_shard(void *arg)
{
    struct starting *s = arg;
    s->status = work_open(s->work, s->bus);
    if (s->status == PAWL_OK)
        s->work->shard->building = s->work;
    remove_soon(s->work->shard);
}

static int start_shards(pawl_engine *e)
{
    struct views *v = e->views;
    v->work = mem_new(e->options.allocator, e->file.shards, sizeof v->work[0]);
    if (!v->work)
        return PAWL_ENOMEM;
    int status = PAWL_OK;
    for (uint32_t i = 0; i < e->file.shards && status == PAWL_OK; i++) {
        v->work[i].shard = &e->shards[i];
        struct starting s = {.work = &v->work[i], .bus = local_bus_port(v->bus)};
        status = pawl_env_call(e->env, i, start_shard, &s);
        status = status == PAWL_OK ? s.status : status;
    }
    return status;
}

int views_start(pawl_engine *e, pawl_error *error)
{
    struct views *v = e->views;
    struct local_network_options options = {.allocator = e->options.allocator};
    int status = local_network_open(&options, &v->network);
    if (status == PAWL_OK)
        status = local_bus_open(v->network, VIEW_NODE, e->env, &v->bus);
    if (status == PAWL_OK)
        status = start_shards(e);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot begin to build views");
    status = lead_open(e, error);
    atomic_store(&v->open, status == PAWL_OK);
    if (status == PAWL_OK) /* for what has changed meanwhile */
        views_changed(e);
    return status;
}

static void stop_shard(void *arg)
{
    struct view_work *work = arg;
    work_close(work);
}

void views_close(pawl_engine *e)
{
    struct views *v = e->views;
    if (!v || !v->bus)
        return;
    lead_close(e);
    for (uint32_t i = 0; v->work && i < e->file.shards; i++)
        if (v->work[i].shard)
            (void)pawl_env_call(e->env, i, stop_shard, &v->work[i]);
    local_bus_leave(v->bus);
}

void views_changed(pawl_engine *e)
{
    struct views *v = e->views;
    pthread_mutex_lock(&v->lock);
    v->changes++;
    pthread_cond_broadcast(&v->progress);
    pthread_mutex_unlock(&v->lock);
    if (!atomic_load(&v->open))
        return; /* the engine is being opened */
    (void)pawl_env_post(e->env, 0, &v->changed);
    for (uint32_t i = 0; i < e->file.shards; i++)
        (void)pawl_env_post(e->env, i, &v->work[i].changed);
    for (uint32_t i = 0; i < e->file.shards; i++)
        if (e->shards[i].checkpointer)
            checkpointer_views_changed(e->shards[i].checkpointer);
}

bool views_may_build(pawl_engine *e, uint32_t table)
{
    const struct building *b = building_lock(e);
    const struct view_entry *entry = view_list_by_table(b->views, table);
    bool may = entry && !entry->paused && !b->paused;
    building_unlock(e);
    return may;
}

uint64_t views_throttle(pawl_engine *e)
{
    uint64_t rows = building_lock(e)->throttle, shards = e->file.shards;
    building_unlock(e);
    return (rows + shards - 1) / shards;
}

/* The coordinator asks again by itself for tasks that were not durable; this makes it sooner. */
void views_checkpointed(struct shard *shard)
{
    struct views *v = shard->engine->views;
    if (atomic_load(&v->open))
        (void)pawl_env_post(shard->engine->env, 0, &v->covered);
}

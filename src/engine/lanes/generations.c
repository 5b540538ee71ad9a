/* engine/lanes/generations.c: the list of the lanes' generations; opening, retiring and freeing them. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/lanes/impl.h"
#include "engine/lanes/worker_pool.h"

int lanes_new(pawl_engine *e)
{
    struct lanes *lanes = mem_new(e->options.allocator, 1, sizeof *lanes);
    if (!lanes)
        return PAWL_ENOMEM;
    e->lanes = lanes;
    pthread_mutex_init(&lanes->lock, NULL);
    pthread_cond_init(&lanes->waits_gone, NULL);
    pthread_mutex_init(&lanes->maintenance_lock, NULL);
    cond_init(&lanes->maintenance_wake);
    return PAWL_OK;
}

/* --- one generation --- */

static void generation_free(struct generation *g)
{
    pawl_engine *e = g->engine;
    const pawl_allocator *alloc = e->options.allocator;
    for (uint32_t i = 0; g->lanes && i < e->file.partitions; i++)
        kept_leases_release(&g->lanes[i]);
    mem_free(alloc, g->pools, g->projections * sizeof *g->pools);
    mem_free(alloc, g->lanes, g->lanes ? e->file.partitions * sizeof *g->lanes : 0);
    mem_free(alloc, g, sizeof *g);
}

/* End its threads, which have nothing left to do. */
static void release_pools(struct generation *g)
{
    for (uint32_t i = 0; g->pools && i < g->projections; i++)
        if (g->pools[i].generation)
            worker_pool_release(&g->pools[i]);
}

static const struct schema_projector *projector_of(const struct schema *schema, uint16_t lane, uint32_t i)
{
    for (size_t k = 0; k < schema->projector_count; k++)
        if (schema->projectors[k].lane == lane && i-- == 0)
            return &schema->projectors[k];
    return NULL;
}

static const struct handler *handler_of(const struct lanes *lanes, uint16_t projector)
{
    const struct handler *h = lanes->handlers;
    while (h && h->projector != projector)
        h = h->next;
    return h;
}

static int make_pools(struct generation *g)
{
    struct lanes *lanes = g->engine->lanes;
    g->pools = mem_new(g->engine->options.allocator, g->projections, sizeof *g->pools);
    if (!g->pools)
        return PAWL_ENOMEM;
    int status = PAWL_OK;
    for (uint32_t i = 0; i < g->projections && status == PAWL_OK; i++) {
        status = worker_pool_init(&g->pools[i], g, i, projector_of(g->schema, g->id, i));
        if (status != PAWL_OK)
            continue;
        pthread_mutex_lock(&lanes->lock);
        const struct handler *h = handler_of(lanes, g->pools[i].projector->id);
        if (h
            && g->pools[i].projector->handler) /* an old handler may be left of a projector with actions now */
            worker_pool_set_handler(&g->pools[i], h->fn, h->arg);
        pthread_mutex_unlock(&lanes->lock);
    }
    return status;
}

static struct generation *generation_new(pawl_engine *e, uint16_t id, uint32_t number, pawl_bytes name)
{
    struct generation *g = mem_new(e->options.allocator, 1, sizeof *g);
    if (!g)
        return NULL;
    g->engine = e;
    g->id = id;
    g->number = number;
    g->name = name;
    g->schema = engine_schema_for(e, id, number, engine_schema(e)->position);
    while (g->schema && projector_of(g->schema, id, g->projections))
        g->projections++;
    g->lanes = mem_new(e->options.allocator, e->file.partitions, sizeof *g->lanes);
    if (!g->schema || !g->lanes || make_pools(g) != PAWL_OK) {
        release_pools(g);
        generation_free(g);
        return NULL;
    }
    for (uint32_t i = 0; i < e->file.partitions; i++) {
        g->lanes[i].generation = g;
        g->lanes[i].partition = (uint16_t)i;
    }
    return g;
}

/* --- the list --- */

static struct generation *find(const struct lanes *lanes, uint16_t id, uint32_t number)
{
    struct generation *found = NULL;
    for (struct generation *g = lanes->first; g; g = g->next)
        if (g->id == id && !g->retired && (g->number == number || number == 0)
            && (!found || g->number > found->number))
            found = g;
    return found;
}

struct generation *generation_hold(pawl_engine *e, uint16_t id, uint32_t number)
{
    pthread_mutex_lock(&e->lanes->lock);
    struct generation *g = find(e->lanes, id, number);
    if (g)
        g->holders++;
    pthread_mutex_unlock(&e->lanes->lock);
    return g;
}

static struct generation *hold_next(pawl_engine *e, struct generation *after, bool retired)
{
    pthread_mutex_lock(&e->lanes->lock);
    struct generation *g = after ? after->next : e->lanes->first;
    while (g && g->retired && !retired)
        g = g->next;
    if (g)
        g->holders++;
    pthread_mutex_unlock(&e->lanes->lock);
    if (after)
        generation_release(after);
    return g;
}

struct generation *generation_hold_next(pawl_engine *e, struct generation *after)
{
    return hold_next(e, after, false);
}

struct generation *generation_hold_any(pawl_engine *e, struct generation *after)
{
    return hold_next(e, after, true);
}

void generation_hold_more(struct generation *g)
{
    pthread_mutex_lock(&g->engine->lanes->lock);
    g->holders++;
    pthread_mutex_unlock(&g->engine->lanes->lock);
}

void generation_release(struct generation *g)
{
    struct lanes *lanes = g->engine->lanes;
    pthread_mutex_lock(&lanes->lock);
    if (--g->holders == 0 && g->retired)
        maintenance_ask(lanes); /* under the lock: closing the engine waits for this, and then frees lanes */
    pthread_mutex_unlock(&lanes->lock);
}

bool lanes_has_generation(pawl_engine *e, uint16_t id, uint32_t number)
{
    bool there = false;
    pthread_mutex_lock(&e->lanes->lock);
    for (const struct generation *g = e->lanes->first; g && !there; g = g->next)
        there = g->id == id && g->number == number;
    pthread_mutex_unlock(&e->lanes->lock);
    return there;
}

/* By lane, then by generation. */
static void enlist(struct lanes *lanes, struct generation *g)
{
    pthread_mutex_lock(&lanes->lock);
    struct generation **at = &lanes->first;
    while (*at && ((*at)->id < g->id || ((*at)->id == g->id && (*at)->number < g->number)))
        at = &(*at)->next;
    g->next = *at;
    *at = g;
    pthread_mutex_unlock(&lanes->lock);
}

/* --- opening and closing --- */

struct visiting {
    struct generation *generation;
    struct shard *shard;
    void (*visit)(struct partition_lane *pl);
};

static void visit_here(void *arg)
{
    const struct visiting *v = arg;
    for (size_t i = 0; i < v->shard->partitions.count; i++)
        v->visit(&v->generation->lanes[partition_set_at(&v->shard->partitions, i)]);
}

void generation_visit(struct generation *g, void (*visit)(struct partition_lane *pl))
{
    for (uint32_t i = 0; i < g->engine->file.shards; i++) {
        struct visiting v = {.generation = g, .shard = &g->engine->shards[i], .visit = visit};
        (void)pawl_env_call(g->engine->env, i, visit_here, &v);
    }
}

static void partition_lane_follow(struct partition_lane *pl)
{
    if (pl->lane && !pl->closing)
        lane_follow(pl->lane, engine_schema(pl->generation->engine));
}

/* A new schema may change a projector's number of workers and its policy for failures without a new generation.
 * So these come from the newest schema, not from the generation's own. */
static void resize_pools(struct generation *g, const struct schema *schema)
{
    for (uint32_t i = 0; i < g->projections; i++) {
        const struct schema_projector *p = projector_of(schema, g->id, i);
        if (p && p->id == g->pools[i].projector->id)
            worker_pool_resize(&g->pools[i], p->workers);
    }
}

static int open_generation(pawl_engine *e, const struct schema_lane *lane, uint32_t number)
{
    struct generation *g = generation_hold(e, lane->id, number);
    if (g) {
        generation_visit(g, partition_lane_follow);
        resize_pools(g, engine_schema(e));
        generation_release(g);
        return PAWL_OK;
    }
    g = generation_new(e, lane->id, number, lane->name);
    if (!g)
        return PAWL_ENOMEM;
    resize_pools(g, engine_schema(e));
    enlist(e->lanes, g);
    generation_visit(g, partition_lane_open);
    return PAWL_OK;
}

static bool is_wanted(const struct schema *schema, const struct generation *g)
{
    const struct schema_lane *lane = schema_lane_by_id(schema, g->id);
    return lane && (g->number == lane->generation || g->number == lane->serving);
}

static void retire(pawl_engine *e, const struct schema *schema)
{
    struct generation *g = NULL;
    while ((g = generation_hold_next(e, g))) {
        if (is_wanted(schema, g))
            continue;
        pthread_mutex_lock(&e->lanes->lock);
        g->retired = true;
        pthread_mutex_unlock(&e->lanes->lock);
        generation_visit(g, partition_lane_retire);
    }
}

int lanes_reconcile(pawl_engine *e, pawl_error *error)
{
    const struct schema *schema = engine_schema(e);
    int status = PAWL_OK;
    for (size_t i = 0; i < schema->lane_count && status == PAWL_OK; i++) {
        const struct schema_lane *lane = &schema->lanes[i];
        if (lane->serving != 0 && lane->serving != lane->generation)
            status = open_generation(e, lane, lane->serving);
        if (status == PAWL_OK)
            status = open_generation(e, lane, lane->generation);
    }
    retire(e, schema);
    if (schema->lane_count > 0 && status == PAWL_OK)
        status = maintenance_start(e, error);
    maintenance_ask(e->lanes);
    return status == PAWL_ENOMEM ? error_set(error, status, "no memory for a lane") : status;
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Afterwards all posted tasks of a freed generation have run, and the shard has left the function that let go
 * of it last. */
static void wait_for_shards(pawl_engine *e)
{
    for (uint32_t i = 0; i < e->file.shards; i++)
        (void)pawl_env_call(e->env, i, nothing, NULL);
}

bool generations_free_retired(pawl_engine *e)
{
    struct lanes *lanes = e->lanes;
    struct generation *dead = NULL;
    bool left = false;
    pthread_mutex_lock(&lanes->lock);
    for (struct generation **at = &lanes->first; *at;) {
        struct generation *g = *at;
        if (g->retired && g->holders == 0 && atomic_load(&g->busy) == 0) {
            *at = g->next;
            g->next = dead;
            dead = g;
            continue;
        }
        left = left || g->retired;
        at = &g->next;
    }
    pthread_mutex_unlock(&lanes->lock);
    for (struct generation *g = dead; g; g = g->next)
        release_pools(g);
    if (dead)
        wait_for_shards(e);
    while (dead) {
        struct generation *g = dead;
        dead = g->next;
        generation_free(g);
    }
    return left;
}

void lanes_close(pawl_engine *e)
{
    struct lanes *lanes = e->lanes;
    struct generation *g = NULL;
    maintenance_stop(e);
    leases_close(e);
    while ((g = generation_hold_next(e, g))) {
        pthread_mutex_lock(&lanes->lock);
        g->retired = true;
        pthread_mutex_unlock(&lanes->lock);
        generation_visit(g, partition_lane_close);
    }
    while (generations_free_retired(e))
        maintenance_sleep(lanes, WAIT_FOREVER);
}

void lanes_free_all(pawl_engine *e)
{
    struct lanes *lanes = e->lanes;
    const pawl_allocator *alloc = e->options.allocator;
    if (!lanes)
        return;
    while (lanes->handlers) {
        struct handler *h = lanes->handlers;
        lanes->handlers = h->next;
        mem_free(alloc, h, sizeof *h);
    }
    paused_forget(e);
    kept_leases_forget(e);
    pthread_cond_destroy(&lanes->maintenance_wake);
    pthread_mutex_destroy(&lanes->maintenance_lock);
    pthread_cond_destroy(&lanes->waits_gone);
    pthread_mutex_destroy(&lanes->lock);
    mem_free(alloc, lanes, sizeof *lanes);
    e->lanes = NULL;
}

bool lanes_is_self(pawl_engine *e)
{
    bool self = false;
    struct generation *g = NULL;
    while ((g = generation_hold_any(e, g)))
        for (uint32_t i = 0; i < g->projections; i++)
            self = worker_pool_is_self(&g->pools[i]) || self;
    return self;
}

int lanes_find(pawl_engine *e, const char *name, const struct schema_lane **ret_lane, pawl_error *error)
{
    const struct schema_lane *lane = schema_lane_by_name(engine_schema(e), (pawl_bytes){name, strlen(name)});
    if (!lane)
        return error_set(error, PAWL_ENOTFOUND, "there is no lane %s", name);
    *ret_lane = lane;
    return PAWL_OK;
}

int lanes_find_in_partition(pawl_engine *e, uint16_t partition, const char *name,
                            const struct schema_lane **ret_lane, pawl_error *error)
{
    int status = engine_enter_writing(e, error);
    if (status == PAWL_OK)
        status = lanes_find(e, name, ret_lane, error);
    if (status == PAWL_OK && partition >= e->file.partitions)
        status = error_set(error, PAWL_EINVAL, "there is no partition %u", partition);
    return status;
}

/* --- readers --- */

unsigned lanes_read_begin(pawl_engine *e)
{
    struct lanes *lanes = e->lanes;
    for (;;) {
        unsigned parity = (unsigned)(atomic_load(&lanes->epoch) & 1);
        atomic_fetch_add(&lanes->readers[parity], 1);
        if ((atomic_load(&lanes->epoch) & 1) == parity)
            return parity;
        atomic_fetch_sub(&lanes->readers[parity], 1);
    }
}

void lanes_read_end(pawl_engine *e, unsigned parity)
{
    atomic_fetch_sub(&e->lanes->readers[parity], 1);
}

struct partition_lane *lanes_hold_serving(pawl_engine *e, const char *name, uint16_t partition)
{
    const struct schema *schema = engine_schema(e);
    const struct schema_type *entity = schema_type_by_name(schema, (pawl_bytes){name, strlen(name)});
    uint32_t number = entity ? schema_serving_table(schema, entity) >> SCHEMA_TABLE_BITS : 0;
    struct generation *g = number > 0 && entity->lane > 0 ? generation_hold(e, entity->lane, number) : NULL;
    return g ? &g->lanes[partition] : NULL;
}

void lanes_release(struct partition_lane *pl)
{
    generation_release(pl->generation);
}

uint64_t lanes_offset(const struct partition_lane *pl)
{
    return atomic_load(&pl->offset);
}

bool lanes_is_open(const struct partition_lane *pl)
{
    return pl->lane && !pl->closing;
}

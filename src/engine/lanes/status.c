/* engine/lanes/status.c: the status of the lanes, their operations under way, and waiting until they have
 * caught up. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/lanes/impl.h"
#include "engine/lanes/status.h"
#include "engine/lanes/worker_pool.h"

#define TIMEOUT_DEFAULT (10 * PAWL_SECOND)
#define POLL_EVERY      (5 * PAWL_MILLISECOND)
#define LEASES_AT_ONCE  256

/* --- one generation, in all partitions --- */

struct gathering {
    struct generation *generation;
    const struct shard *shard;
    struct partition_lane_status *statuses; /* by partition */
};

static pawl_lane_state state_of(enum writer_state state)
{
    switch (state) {
    case WRITER_RUNNING: return PAWL_LANE_RUNNING;
    case WRITER_REFUSED: return PAWL_LANE_REFUSED;
    case WRITER_CLAIMING:
    case WRITER_CATCHING_UP:
    case WRITER_PREPARING:
    case WRITER_DRAINING:
    case WRITER_CLOSED: break;
    }
    return PAWL_LANE_RECOVERING;
}

/* Whether an operation waits for an outside worker, because no thread here runs its projector. */
static bool waits_for_workers(const struct partition_lane *pl)
{
    const struct generation *g = pl->generation;
    for (uint32_t i = 0; i < g->projections; i++)
        if (!g->pools[i].quick && !worker_pool_is_staffed(&g->pools[i]) && lane_offer(pl->lane, i) != 0)
            return true;
    return false;
}

static void read_status(const struct partition_lane *pl, struct partition_lane_status *s)
{
    struct lane_figures figures = {0};
    s->error = pl->error;
    s->status.partition = pl->partition;
    s->status.offset = atomic_load(&pl->offset);
    s->status.end = atomic_load(&pl->generation->engine->partitions[pl->partition].offset);
    s->status.state = pl->status == PAWL_OK ? PAWL_LANE_RECOVERING : PAWL_LANE_REFUSED;
    if (!pl->lane)
        return;
    lane_figures(pl->lane, &figures);
    s->error = *lane_error(pl->lane);
    s->status.state = state_of(figures.state);
    s->status.paused = figures.paused;
    s->status.operations = figures.applied;
    s->status.repeated = figures.repeated;
    s->status.run_ahead = figures.run_ahead;
    s->status.held = figures.held;
    s->status.leases = figures.leases;
    s->lacks_workers = waits_for_workers(pl);
}

static void gather_here(void *arg)
{
    const struct gathering *g = arg;
    for (size_t i = 0; i < g->shard->partitions.count; i++) {
        uint16_t partition = partition_set_at(&g->shard->partitions, i);
        read_status(&g->generation->lanes[partition], &g->statuses[partition]);
    }
}

int lane_status_gather(struct generation *g, const struct schema_lane *lane,
                       struct partition_lane_status *statuses)
{
    const pawl_engine *e = g->engine;
    memset(statuses, 0, e->file.partitions * sizeof *statuses);
    for (uint32_t i = 0; i < e->file.shards; i++) {
        struct gathering gathering = {.generation = g, .shard = &e->shards[i], .statuses = statuses};
        int status = pawl_env_call(e->env, i, gather_here, &gathering);
        if (status != PAWL_OK)
            return status;
    }
    for (uint32_t i = 0; i < e->file.partitions; i++) {
        statuses[i].status.id = g->id;
        statuses[i].status.generation = g->number;
        statuses[i].status.serving = lane && lane->serving == g->number;
        statuses[i].status.building = lane && lane->generation == g->number && lane->serving != g->number;
    }
    return PAWL_OK;
}

/* --- all of them --- */

struct reading {
    pawl_lane_visit visit;
    void *arg;
    char name[SCHEMA_QNAME_BYTES_MAX + 1];
    bool stopped;
};

static void show(struct reading *r, struct partition_lane_status *s, pawl_bytes name)
{
    snprintf(r->name, sizeof r->name, "%.*s", (int)name.size, (const char *)name.data);
    s->status.lane = r->name;
    s->status.error = s->status.state == PAWL_LANE_REFUSED ? s->error.text : NULL;
    r->stopped = r->stopped || !r->visit(r->arg, &s->status);
}

/* For a process that only reads: what the stores say. */
static int read_stored(pawl_engine *e, const struct schema_lane *lane, uint32_t generation, struct reading *r,
                       pawl_error *error)
{
    for (uint32_t i = 0; i < e->file.partitions && !r->stopped; i++) {
        struct partition_lane_status s = {.status = {.id = lane->id,
                                                     .generation = generation,
                                                     .serving = generation == lane->serving,
                                                     .building = generation != lane->serving,
                                                     .partition = (uint16_t)i,
                                                     .state = PAWL_LANE_CLOSED,
                                                     .paused = lanes_is_paused(e, lane->name)}};
        pawl_store *store = shard_of(e, (uint16_t)i)->store;
        pawl_reader *snapshot;
        int status = pawl_store_snapshot(store, &snapshot);
        if (status == PAWL_OK) {
            struct position position;
            position_init(&position, e->options.allocator, (uint16_t)i);
            status = position_read(&position, snapshot, error);
            s.status.end = position.offset;
            position_release(&position);
            if (status == PAWL_OK)
                status = cursor_peek(snapshot, (uint16_t)i, lane->id, generation, &s.status.operations,
                                     &s.status.offset);
            pawl_store_release(store, snapshot);
        }
        if (status != PAWL_OK)
            return error_set(error, status, "cannot read the state of partition %u", i);
        show(r, &s, lane->name);
    }
    return PAWL_OK;
}

static int read_all_stored(pawl_engine *e, const char *name, struct reading *r, pawl_error *error)
{
    const struct schema *schema = engine_schema_refresh(e);
    int status = PAWL_OK;
    for (size_t i = 0; i < schema->lane_count && status == PAWL_OK; i++) {
        const struct schema_lane *lane = &schema->lanes[i];
        if (name && !bytes_equal(lane->name, (pawl_bytes){name, strlen(name)}))
            continue;
        if (lane->serving && lane->serving != lane->generation)
            status = read_stored(e, lane, lane->serving, r, error);
        if (status == PAWL_OK)
            status = read_stored(e, lane, lane->generation, r, error);
    }
    return status;
}

int pawl_lanes_read(pawl_engine *e, const char *name, pawl_lane_visit visit, void *arg, pawl_error *error)
{
    const struct schema_lane *lane = NULL;
    struct reading r = {.visit = visit, .arg = arg};
    int status = engine_enter(e, error);
    if (status == PAWL_OK && name)
        status = lanes_find(e, name, &lane, error);
    if (status != PAWL_OK)
        return status;
    if (e->options.read_only)
        return read_all_stored(e, name, &r, error);
    struct partition_lane_status *statuses =
        mem_new(e->options.allocator, e->file.partitions, sizeof *statuses);
    if (!statuses)
        return error_set(error, PAWL_ENOMEM, "no memory for the figures of a lane");
    struct generation *g = NULL;
    while (status == PAWL_OK && !r.stopped && (g = generation_hold_next(e, g))) {
        if (lane && g->id != lane->id)
            continue;
        status = lane_status_gather(g, schema_lane_by_id(engine_schema(e), g->id), statuses);
        if (status == PAWL_OK)
            lane_status_alert(statuses, e->file.partitions, &e->options.thresholds);
        for (uint32_t i = 0; i < e->file.partitions && status == PAWL_OK && !r.stopped; i++)
            show(&r, &statuses[i], g->name);
    }
    if (g)
        generation_release(g);
    mem_free(e->options.allocator, statuses, e->file.partitions * sizeof *statuses);
    return status;
}

/* --- operations under way --- */

struct listed {
    pawl_lease lease;
    char words[PAWL_LEASE_WORDS_MAX + 1];
    uint64_t event;
    char projector[SCHEMA_QNAME_BYTES_MAX + 1];
};

struct listing {
    struct partition_lane *pl;
    uint64_t from;
    size_t limit;
    struct listed *listed;
    size_t count;
};

static bool list_lease(void *arg, const pawl_lease *lease)
{
    struct listing *l = arg;
    struct listed *to = &l->listed[l->count++];
    const struct schema_projector *p = lane_projector(l->pl->lane, lease->projection);
    to->lease = *lease;
    snprintf(to->words, sizeof to->words, "%s", lease->words ? lease->words : "");
    to->event = lane_event_of(l->pl->lane, lease->number);
    snprintf(to->projector, sizeof to->projector, "%.*s", p ? (int)p->name.size : 0,
             p ? (const char *)p->name.data : "");
    return l->count < l->limit;
}

static void list_here(void *arg)
{
    struct listing *l = arg;
    l->count = 0;
    if (l->pl->lane && !l->pl->closing)
        pawl_leases_list(lane_leases(l->pl->lane), l->from, list_lease, l);
}

int pawl_lane_leases(pawl_engine *e, uint16_t partition, const char *name, uint32_t generation, uint64_t from,
                     size_t limit, pawl_lease_visit visit, void *arg, pawl_error *error)
{
    const struct schema_lane *lane;
    int status = lanes_find_in_partition(e, partition, name, &lane, error);
    if (status != PAWL_OK)
        return status;
    struct generation *g = generation_hold(e, lane->id, generation);
    if (!g)
        return error_set(error, PAWL_ENOTFOUND, "lane %s: generation %" PRIu32 " is not open", name,
                         generation);
    struct listed *listed = mem_new(e->options.allocator, LEASES_AT_ONCE, sizeof *listed);
    bool more = listed && limit > 0;
    while (more && status == PAWL_OK) {
        struct listing l = {.pl = &g->lanes[partition],
                            .from = from,
                            .limit = limit < LEASES_AT_ONCE ? limit : LEASES_AT_ONCE,
                            .listed = listed};
        status = partition_call(e, partition, list_here, &l);
        more = status == PAWL_OK && l.count == LEASES_AT_ONCE && limit > l.count;
        for (size_t i = 0; i < l.count && status == PAWL_OK; i++) {
            struct listed *one = &listed[i];
            one->lease.words = one->words;
            from = one->lease.number + 1;
            limit--;
            if (!visit(arg, &one->lease, one->event, one->projector)) {
                more = false;
                break;
            }
        }
    }
    if (!listed)
        status = error_set(error, PAWL_ENOMEM, "no memory for a list of leases");
    mem_free(e->options.allocator, listed, listed ? LEASES_AT_ONCE * sizeof *listed : 0);
    generation_release(g);
    return status;
}

pawl_wall pawl_engine_wall(pawl_engine *e, pawl_instant instant)
{
    if (instant.ns == 0)
        return (pawl_wall){0};
    int64_t ago = (int64_t)(pawl_env_now(e->env).ns - instant.ns); /* below 0: it is in the future */
    return (pawl_wall){pawl_env_wall_now(e->env).ns - ago};
}

/* --- waiting for them --- */

/* Whether lanes have come to the offsets that somebody waits for. */
enum progress { PROGRESS_DONE, PROGRESS_GOING_ON, PROGRESS_STUCK };

static enum progress judge(const struct partition_lane_status *s, uint64_t target, const char **ret_why)
{
    const pawl_lane_status *status = &s->status;
    const pawl_lease_figures *leases = &status->leases;
    if (status->state == PAWL_LANE_REFUSED) {
        *ret_why = "is refused";
        return PROGRESS_STUCK;
    }
    if (status->offset >= target)
        return PROGRESS_DONE;
    if (status->state != PAWL_LANE_RUNNING || leases->active > 0)
        return PROGRESS_GOING_ON;
    *ret_why = status->paused     ? "is paused"
               : leases->stalled  ? "is stalled"
               : s->lacks_workers ? "waits for workers"
                                  : NULL;
    return *ret_why ? PROGRESS_STUCK : PROGRESS_GOING_ON;
}

struct watching {
    pawl_engine *engine;
    const uint64_t *targets;
    struct partition_lane_status *statuses;
    pawl_error why; /* which lane is stuck, and why */
};

static enum progress judge_generation(struct watching *w, struct generation *g, const struct schema_lane *lane)
{
    enum progress all = PROGRESS_DONE;
    if (lane_status_gather(g, lane, w->statuses) != PAWL_OK)
        return PROGRESS_GOING_ON;
    for (uint32_t i = 0; i < w->engine->file.partitions; i++) {
        const char *why;
        enum progress one = judge(&w->statuses[i], w->targets[i], &why);
        if (one == PROGRESS_STUCK)
            error_set(&w->why, PAWL_EBUSY, "lane %.*s, partition %u: it %s", (int)g->name.size,
                      (const char *)g->name.data, i, why);
        if (one == PROGRESS_GOING_ON || all == PROGRESS_GOING_ON)
            all = PROGRESS_GOING_ON;
        else if (one == PROGRESS_STUCK)
            all = one;
    }
    return all;
}

/* All are stuck only if at least one is, and none goes on: a lane that goes on may still get there. */
static enum progress judge_all(struct watching *w, const char *name)
{
    pawl_engine *e = w->engine;
    const struct schema *schema = engine_schema(e);
    enum progress all = PROGRESS_DONE;
    struct generation *g = NULL;
    while ((g = generation_hold_next(e, g))) {
        const struct schema_lane *lane = schema_lane_by_id(schema, g->id);
        if (name && !bytes_equal(g->name, (pawl_bytes){name, strlen(name)}))
            continue;
        enum progress one = judge_generation(w, g, lane);
        if (one == PROGRESS_DONE && lane && lane->generation == g->number && lane->serving != g->number)
            one = PROGRESS_GOING_ON; /* it is complete, and will serve soon */
        if (one == PROGRESS_GOING_ON || all == PROGRESS_GOING_ON)
            all = PROGRESS_GOING_ON;
        else if (one == PROGRESS_STUCK)
            all = one;
    }
    return all;
}

static int watch(struct watching *w, const char *name, pawl_duration timeout, pawl_error *error)
{
    pawl_engine *e = w->engine;
    pawl_instant deadline = engine_deadline(e, timeout ? timeout : TIMEOUT_DEFAULT);
    unsigned stuck = 0;
    for (;;) {
        enum progress progress = judge_all(w, name);
        if (progress == PROGRESS_DONE)
            return PAWL_OK;
        stuck = progress == PROGRESS_STUCK ? stuck + 1 : 0;
        if (stuck > 2) /* a lane seen between two of its steps may look stuck once */
            return error_set(error, PAWL_EBUSY, "%s", w->why.text);
        if (atomic_load(&e->closing))
            return error_set(error, PAWL_ECLOSED, "the engine is being closed");
        if (pawl_env_now(e->env).ns >= deadline.ns)
            return error_set(error, PAWL_ETIMEOUT, "the lanes did not catch up in time");
        wait_pause(POLL_EVERY);
    }
}

/* The offset of each partition's last acknowledged event. It may be beyond the last applied one: an event can
 * be acknowledged as durable before it is applied. */
struct aiming {
    const struct shard *shard;
    uint64_t *targets;
};

static void aim_here(void *arg)
{
    const struct aiming *a = arg;
    for (size_t i = 0; i < a->shard->partitions.count; i++)
        a->targets[partition_set_at(&a->shard->partitions, i)] = shard_partition(a->shard, i)->seen;
}

static int aim(pawl_engine *e, uint64_t *targets, pawl_error *error)
{
    for (uint32_t i = 0; i < e->file.shards; i++) {
        struct aiming aiming = {.shard = &e->shards[i], .targets = targets};
        int status = pawl_env_call(e->env, i, aim_here, &aiming);
        if (status != PAWL_OK)
            return error_set(error, status, "the engine is being closed");
    }
    return PAWL_OK;
}

int pawl_lanes_wait(pawl_engine *e, const char *name, pawl_duration timeout, pawl_error *error)
{
    const struct schema_lane *lane;
    int status = engine_enter_writing(e, error);
    if (status == PAWL_OK && name)
        status = lanes_find(e, name, &lane, error);
    if (status != PAWL_OK)
        return status;
    uint32_t count = e->file.partitions;
    uint64_t *targets = mem_new(e->options.allocator, count, sizeof *targets);
    struct watching w = {
        .engine = e, .targets = targets, .statuses = mem_new(e->options.allocator, count, sizeof *w.statuses)};
    if (!targets || !w.statuses)
        status = error_set(error, PAWL_ENOMEM, "no memory to wait for lanes");
    if (status == PAWL_OK)
        status = aim(e, targets, error);
    if (status == PAWL_OK)
        status = watch(&w, name, timeout, error);
    mem_free(e->options.allocator, w.statuses, w.statuses ? count * sizeof *w.statuses : 0);
    mem_free(e->options.allocator, targets, targets ? count * sizeof *targets : 0);
    return status;
}

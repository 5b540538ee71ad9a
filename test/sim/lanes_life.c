/* How a life begins and ends, and what is fed to it. */
#include "test/sim/lanes.h"

void sim_call(struct sim *s, void (*fn)(void *arg), void *arg)
{
    assert_ok(pawl_env_call(mem_env_port(s->env), 0, fn, arg));
}

/* --- events --- */

static void feed_open(struct sim *s, struct feed *feed, uint16_t partition)
{
    *feed = (struct feed){.room = 64};
    feed->events = malloc(feed->room * sizeof feed->events[0]);
    plog_open(&feed->plog, s->world, s->feeder, partition);
}

static void feed_close(struct feed *feed)
{
    for (size_t i = 0; i < feed->count; i++)
        free((void *)feed->events[i].body.data);
    free(feed->events);
}

static struct sim_event *add_event(struct sim *s, struct feed *feed)
{
    if (feed->count == feed->room) {
        feed->room *= 2;
        feed->events = realloc(feed->events, feed->room * sizeof feed->events[0]);
    }
    struct sim_event *e = &feed->events[feed->count++];
    char command[] = "sim.C0";
    *e = (struct sim_event){.wsid = (uint64_t)feed->plog.partition * 1000 + below(s, s->workspaces),
                            .command = (unsigned)below(s, COMMANDS - 1),
                            .k = (int64_t)below(s, s->keys),
                            .by = (int64_t)below(s, 20)};
    command[5] = (char)('0' + e->command);
    struct plog_event event = {
        .wsid = e->wsid, .command = command, .argument = "sim.Arg", .k = e->k, .by = e->by};
    e->body = plog_body(s->schema, feed->count, &event);
    return e;
}

static void tell_lanes(void *arg)
{
    struct sim *s = arg;
    for (unsigned i = 0; i < s->site_count; i++)
        if (!s->sites[i].closing)
            lane_log_grew(s->sites[i].lane, s->sites[i].feed->plog.last);
}

void sim_feed(struct sim *s, struct feed *feed, size_t count)
{
    pawl_bytes bodies[64];
    for (size_t i = 0; i < count; i++)
        bodies[i] = add_event(s, feed)->body;
    plog_append(&feed->plog, bodies, count);
    if (s->alive)
        sim_call(s, tell_lanes, s);
}

/* --- the world --- */

static void make_sites(struct sim *s)
{
    for (unsigned p = 0; p < s->partitions; p++) {
        feed_open(s, &s->feeds[p], (uint16_t)(p + 3));
        for (unsigned l = 0; l < s->lanes; l++) {
            struct site *site = &s->sites[s->site_count++];
            *site = (struct site){.sim = s, .feed = &s->feeds[p], .lane_number = l};
            site->lane_id = sim_lender(s->schema, l)->lane;
            for (size_t i = 0; i < s->schema->lane_count; i++)
                if (s->schema->lanes[i].id == site->lane_id)
                    site->generation = s->schema->lanes[i].generation;
            assert_true(site->generation > 0);
            model_open(site);
        }
    }
}

void sim_open(struct sim *s, uint64_t seed)
{
    static const unsigned workers[] = {1, 2, 4, 16, 64};
    static const pawl_duration paces[] = {0, PAWL_MILLISECOND, 20 * PAWL_MILLISECOND, 2 * PAWL_SECOND};
    *s = (struct sim){.random = seed};
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = seed}, &s->world, NULL));
    assert_ok(mem_log_disk_open(seed, NULL, &s->log_disk));
    assert_ok(mem_store_disk_new(NULL, &s->store_disk));
    assert_ok(group0_new(NULL, &s->group0));
    assert_ok(mem_env_open(s->world, &(struct mem_env_options){.shards = 1}, &s->feeder_env, NULL));
    assert_ok(mem_log_open(s->log_disk, mem_env_port(s->feeder_env), &(struct mem_log_options){.node = 9},
                           &s->feeder));
    s->workers_count = workers[below(s, 5)];
    s->pace = paces[below(s, 4)];
    s->trouble = below(s, 3) ? (unsigned)(8 + below(s, 60)) : 0;
    s->faults = below(s, 3) != 0;
    s->elsewhere = below(s, 2);
    s->external = (unsigned)below(s, 5);
    bool hot = below(s, 3) != 0;
    s->workspaces = hot ? 1 + below(s, 2) : 20;
    s->keys = hot ? 2 + below(s, 5) : 50;
    s->limits = (struct lane_options){.window = 8u << below(s, 8),
                                      .window_bytes = below(s, 3) ? 0 : 500,
                                      .ready_bytes = below(s, 3) ? 0 : 1 + below(s, 60000),
                                      .batch_operations = (uint32_t)(1 + below(s, 8)),
                                      .batch_bytes = below(s, 3) ? 0 : 300,
                                      .batches = (uint32_t)(1 + below(s, 4)),
                                      .rows_here = 1 + below(s, 4)};
    s->partitions = 1 + (unsigned)below(s, FEEDS_MAX);
    sim_make_schema(s);
    make_sites(s);
}

void sim_close(struct sim *s)
{
    for (unsigned i = 0; i < s->site_count; i++)
        model_close(&s->sites[i]);
    for (unsigned i = 0; i < s->partitions; i++)
        feed_close(&s->feeds[i]);
    assert_ok(pawl_log_close(s->feeder));
    assert_ok(mem_env_close(s->feeder_env));
    mem_world_close(s->world);
    mem_log_disk_close(s->log_disk);
    mem_store_disk_free(s->store_disk);
    group0_free(s->group0);
}

/* --- a life --- */

static const struct schema *schema_for(void *ctx, uint16_t lane, uint32_t generation, uint64_t event_schema)
{
    const struct sim *s = ctx;
    (void)lane;
    (void)generation;
    return group0_schema_at(s->group0, event_schema);
}

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    const struct sim *s = ctx;
    const struct schema *schema = group0_schema_at(s->group0, position);
    return schema->position == position ? schema : NULL;
}

static void applied(void *ctx, struct lane *lane, uint64_t scanned)
{
    struct sim *s = ctx;
    struct site *site = sim_site_of(s, lane);
    model_check_scanned(site, scanned);
    if (s->trouble && !s->settling && !s->closing && below(s, 2000) == 0)
        sim_close_lane(site);
}

static void boot(void *arg)
{
    struct sim *s = arg;
    applier_init(&s->applier, mem_env_port(s->env), 0, s->store);
    assert_ok(run_buffers_init(&s->buffers, &s->memory.allocator));
    workers_init(s);
    for (unsigned i = 0; i < s->site_count; i++) {
        struct site *site = &s->sites[i];
        struct lane_options o = s->limits;
        pawl_error error = {0};
        o.env = mem_env_port(s->env);
        o.log = s->log;
        o.store = s->store;
        o.applier = &s->applier;
        o.partition = site->feed->plog.partition;
        o.lane = site->lane_id;
        o.generation = site->generation;
        o.schema = s->schema;
        o.schema_for = schema_for;
        o.schema_at = schema_at;
        o.explode = s->elsewhere ? workers_explode : NULL;
        o.available = workers_available;
        o.applied = applied;
        o.ctx = s;
        o.lease_store = &lease_twin_store;
        o.lease_store_ctx = &site->leases;
        o.allocator = &s->memory.allocator;
        site->closing = site->closed = false;
        site->scanned = 0;
        int status = lane_new(&o, &site->lane, &error);
        if (status != PAWL_OK)
            print_error("%s\n", error.text);
        assert_ok(status);
        lane_log_grew(site->lane, site->feed->plog.last);
    }
}

void sim_boot(struct sim *s)
{
    struct mem_store_options live = {.name = "live", .mode = PAWL_STORE_FAST};
    struct mem_log_options log = {.node = 1, .requests = below(s, 3) ? 0 : 3};
    mortal_init(&s->memory);
    assert_ok(mem_env_open(s->world, &(struct mem_env_options){.shards = 1}, &s->env, NULL));
    assert_ok(mem_log_open(s->log_disk, mem_env_port(s->env), &log, &s->log));
    assert_ok(mem_store_open(s->store_disk, &live, NULL, &s->store, NULL));
    s->alive = true;
    s->settling = s->closing = false;
    sim_call(s, boot, s);
}

static void closed(void *arg)
{
    struct site *site = arg;
    assert_false(site->closed);
    site->closed = true;
}

void sim_close_lane(struct site *site)
{
    if (site->closing)
        return;
    site->closing = true;
    lane_close(site->lane, closed, site);
}

static void close_lanes(void *arg)
{
    struct sim *s = arg;
    s->closing = true;
    for (unsigned i = 0; i < s->site_count; i++)
        sim_close_lane(&s->sites[i]);
}

static bool all_closed(void *arg)
{
    const struct sim *s = arg;
    for (unsigned i = 0; i < s->site_count; i++)
        if (!s->sites[i].closed)
            return false;
    return true;
}

static void release(void *arg)
{
    struct sim *s = arg;
    for (unsigned i = 0; i < s->site_count; i++) {
        lane_free(s->sites[i].lane);
        s->sites[i].lane = NULL;
    }
    workers_release(s);
    run_buffers_release(&s->buffers);
    assert_null(s->applier.first);
    applier_close(&s->applier);
}

static void take_figures(struct sim *s)
{
    for (unsigned i = 0; i < s->site_count; i++) {
        struct lane_figures f;
        lane_figures(s->sites[i].lane, &f);
        s->seen.repeated += f.repeated;
        s->seen.failures += f.failures;
        s->seen.expired += f.leases.expired;
    }
}

void sim_halt(struct sim *s)
{
    take_figures(s);
    sim_call(s, close_lanes, s);
    assert_true(mem_world_run_until(s->world, all_closed, s, STEPS_MAX));
    assert_false(workers_wait(s));
    sim_call(s, release, s);
    assert_null(s->memory.blocks);
    assert_true(mem_world_run(s->world, STEPS_MAX));
    assert_ok(pawl_log_close(s->log));
    mem_store_disk_fail(s->store_disk, (struct mem_store_fault){0});
    assert_ok(pawl_store_close(s->store));
    assert_ok(mem_env_close(s->env));
    s->alive = false;
}

void sim_crash(struct sim *s, bool power)
{
    take_figures(s);
    workers_forget(s);
    for (unsigned i = 0; i < s->site_count; i++)
        lease_twin_crash(&s->sites[i].leases, power ? 0 : below(s, s->sites[i].leases.op_count + 1));
    mem_env_kill(s->env);
    mem_log_kill(s->log);
    mem_store_disk_fail(s->store_disk, (struct mem_store_fault){0});
    mem_store_disk_crash(s->store_disk);
    if (power) {
        mem_log_disk_crash(s->log_disk);
        mem_store_disk_power_cut(s->store_disk);
    }
    assert_ok(mem_env_close(s->env));
    mortal_drop(&s->memory);
    s->alive = false;
}

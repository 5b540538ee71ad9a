#include "test/lib/lane.h"

#include "test/lib/schema.h"
#include "test/lib/test.h"

enum { STEPS_MAX = 20000000 };

void lane_bed_call(struct lane_bed *b, void (*fn)(void *arg), void *arg)
{
    assert_ok(pawl_env_call(mem_env_port(b->env), 0, fn, arg));
}

/* --- lives --- */

void lane_bed_open(struct lane_bed *b, const char *schema)
{
    enum group0_outcome outcome;
    pawl_error error = {0};
    *b = (struct lane_bed){0};
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = 1}, &b->world, NULL));
    assert_ok(mem_log_disk_open(1, NULL, &b->log_disk));
    assert_ok(mem_store_disk_new(NULL, &b->store_disk));
    assert_ok(group0_new(NULL, &b->group0));
    assert_ok(mem_env_open(b->world, &(struct mem_env_options){.shards = 1}, &b->feeder_env, NULL));
    assert_ok(mem_log_open(b->log_disk, mem_env_port(b->feeder_env), &(struct mem_log_options){.node = 9},
                           &b->feeder));
    int status = schema_apply(b->group0, schema, &outcome, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    b->schema = group0_schema(b->group0);
    b->lane_count = b->schema->lane_count;
    assert_true(b->lane_count <= LANE_BED_LANES);
    plog_open(&b->plog, b->world, b->feeder, LANE_BED_PARTITION);
}

void lane_bed_close(struct lane_bed *b)
{
    assert_ok(pawl_log_close(b->feeder));
    assert_ok(mem_env_close(b->feeder_env));
    mem_world_close(b->world);
    mem_log_disk_close(b->log_disk);
    mem_store_disk_free(b->store_disk);
    group0_free(b->group0);
}

static const struct schema *schema_for(void *ctx, uint16_t lane, uint32_t generation, uint64_t event_schema)
{
    const struct lane_bed *b = ctx;
    (void)lane;
    (void)generation;
    return group0_schema_at(b->group0, event_schema);
}

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    const struct lane_bed *b = ctx;
    return group0_schema_at(b->group0, position);
}

static void available(void *ctx, struct lane *lane)
{
    struct lane_bed *b = ctx;
    (void)lane;
    b->available++;
}

static int new_lane(struct lane_bed *b, size_t i)
{
    struct lane_options o = b->limits;
    o.env = mem_env_port(b->env);
    o.log = b->log;
    o.store = b->store;
    o.applier = &b->applier;
    o.partition = LANE_BED_PARTITION;
    o.lane = b->schema->lanes[i].id;
    o.generation = b->schema->lanes[i].generation;
    o.schema = b->schema;
    o.schema_for = schema_for;
    o.schema_at = schema_at;
    o.available = available;
    o.ctx = b;
    o.allocator = &b->memory.allocator;
    return lane_new(&o, &b->lanes[i], NULL);
}

/* Each of its allocations fails once, before none does. */
static void new_lane_at_last(struct lane_bed *b, size_t i)
{
    const struct mortal_block *before = b->memory.blocks;
    for (uint64_t k = 1; b->memory.fails_in == 0; k++) {
        b->memory.fails_in = k;
        b->memory.fails = 1;
        int status = new_lane(b, i);
        assert_status(status, b->memory.fails_in == 0 ? PAWL_ENOMEM : PAWL_OK);
        assert_true(status == PAWL_OK || b->memory.blocks == before);
    }
    b->memory.fails_in = 0;
}

static void boot(void *arg)
{
    struct lane_bed *b = arg;
    applier_init(&b->applier, mem_env_port(b->env), 0, b->store);
    assert_ok(run_buffers_init(&b->buffers, &b->memory.allocator));
    for (size_t i = 0; i < b->lane_count; i++) {
        new_lane_at_last(b, i);
        lane_log_grew(b->lanes[i], b->plog.last);
    }
}

void lane_bed_boot(struct lane_bed *b)
{
    struct mem_store_options live = {.name = "live", .mode = PAWL_STORE_FAST};
    mortal_init(&b->memory);
    b->closed = 0;
    assert_ok(mem_env_open(b->world, &(struct mem_env_options){.shards = 1}, &b->env, NULL));
    assert_ok(mem_log_open(b->log_disk, mem_env_port(b->env),
                           &(struct mem_log_options){.node = 1, .requests = b->log_requests}, &b->log));
    assert_ok(mem_store_open(b->store_disk, &live, NULL, &b->store, NULL));
    lane_bed_call(b, boot, b);
    lane_bed_pass(b, PAWL_SECOND);
}

static void closed(void *arg)
{
    struct lane_bed *b = arg;
    b->closed++;
}

static void begin_close(void *arg)
{
    struct lane_bed *b = arg;
    for (size_t i = 0; i < b->lane_count; i++) {
        struct lane_figures f;
        lane_figures(b->lanes[i], &f);
        if (f.state != WRITER_CLOSED)
            lane_close(b->lanes[i], closed, b);
    }
}

void lane_bed_begin_halt(struct lane_bed *b)
{
    lane_bed_call(b, begin_close, b);
}

static bool all_closed(void *arg)
{
    const struct lane_bed *b = arg;
    return b->closed == b->lane_count;
}

static void release(void *arg)
{
    struct lane_bed *b = arg;
    for (size_t i = 0; i < b->lane_count; i++)
        lane_free(b->lanes[i]);
    run_buffers_release(&b->buffers);
    assert_null(b->applier.first);
    applier_close(&b->applier);
}

void lane_bed_halt(struct lane_bed *b)
{
    lane_bed_begin_halt(b);
    assert_true(mem_world_run_until(b->world, all_closed, b, STEPS_MAX));
    lane_bed_call(b, release, b);
    assert_null(b->memory.blocks);
    assert_true(mem_world_run(b->world, STEPS_MAX)); /* nothing of it is left that would still come */
    mem_store_disk_fail(b->store_disk, (struct mem_store_fault){0});
    assert_ok(pawl_log_close(b->log));
    assert_ok(pawl_store_close(b->store));
    assert_ok(mem_env_close(b->env));
}

void lane_bed_crash(struct lane_bed *b)
{
    mem_env_kill(b->env);
    mem_log_kill(b->log);
    mem_store_disk_fail(b->store_disk, (struct mem_store_fault){0});
    mem_store_disk_crash(b->store_disk);
    assert_ok(mem_env_close(b->env));
    mortal_drop(&b->memory);
}

/* --- events --- */

static void tell_lanes(void *arg)
{
    struct lane_bed *b = arg;
    for (size_t i = 0; i < b->lane_count; i++)
        lane_log_grew(b->lanes[i], b->plog.last);
}

static void write_events(struct lane_bed *b, const char *command, uint64_t wsid, int64_t k, int64_t by,
                         size_t count)
{
    char name[64];
    pawl_bytes bodies[64];
    snprintf(name, sizeof name, "t.%s", command);
    for (size_t i = 0; i < count; i++) {
        struct plog_event event = {
            .wsid = wsid, .command = name, .argument = "t.Arg", .k = k + (int64_t)i, .by = by};
        bodies[i] = plog_body(b->schema, b->plog.last + 1 + i, &event);
    }
    plog_append(&b->plog, bodies, count);
    for (size_t i = 0; i < count; i++)
        free((void *)bodies[i].data);
}

void lane_bed_event(struct lane_bed *b, const char *command, uint64_t wsid, int64_t k, int64_t by)
{
    write_events(b, command, wsid, k, by, 1);
    lane_bed_call(b, tell_lanes, b);
    lane_bed_pass(b, 10 * PAWL_MILLISECOND);
}

void lane_bed_events(struct lane_bed *b, const char *command, uint64_t wsid, int64_t k, size_t count)
{
    for (size_t n; count > 0; count -= n, k += (int64_t)n) {
        n = count < 64 ? count : 64;
        write_events(b, command, wsid, k, 1, n);
    }
    lane_bed_call(b, tell_lanes, b);
}

void lane_bed_pass(struct lane_bed *b, pawl_duration duration)
{
    mem_world_advance(b->world, duration);
}

/* --- looking --- */

struct lane_figures lane_bed_figures(struct lane_bed *b, size_t lane)
{
    struct lane_figures f;
    lane_figures(b->lanes[lane], &f);
    return f;
}

struct looking_up {
    struct operation *operation;
    char *reason;
    enum operation_kind kind;
};

static bool look_up(void *arg, const pawl_entry *entry, pawl_place place)
{
    struct looking_up *l = arg;
    (void)place;
    assert_ok(operation_decode(entry->body, l->operation, NULL));
    l->kind = l->operation->kind;
    if (l->reason)
        snprintf(l->reason, OPERATION_REASON + 1, "%.*s", (int)l->operation->reason.size,
                 l->operation->reason.data ? (const char *)l->operation->reason.data : "");
    return false;
}

enum operation_kind lane_bed_operation(struct lane_bed *b, size_t lane, uint64_t number,
                                       struct operation *ret_operation, char reason[OPERATION_REASON + 1])
{
    struct operation op = {0};
    struct looking_up l = {.operation = ret_operation ? ret_operation : &op, .reason = reason};
    pawl_stream stream = {.kind = PAWL_STREAM_OPLOG,
                          .partition = LANE_BED_PARTITION,
                          .lane = b->schema->lanes[lane].id,
                          .generation = b->schema->lanes[lane].generation};
    plog_read(b->feeder, stream, number, look_up, &l);
    return l.kind;
}

void lane_bed_cursor(struct lane_bed *b, size_t lane, uint64_t *ret_applied, uint64_t *ret_scanned)
{
    pawl_reader *snapshot;
    const struct schema_lane *l = &b->schema->lanes[lane];
    assert_ok(pawl_store_snapshot(b->store, &snapshot));
    assert_ok(cursor_peek(snapshot, LANE_BED_PARTITION, l->id, l->generation, ret_applied, ret_scanned));
    pawl_store_release(b->store, snapshot);
}

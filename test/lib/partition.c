#include "test/lib/partition.h"

#include "base/error.h"
#include "base/heap.h"
#include "base/id.h"
#include "core/state/key.h"
#include "core/view/unique.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

static const pawl_stream plog = {.kind = PAWL_STREAM_PLOG, .partition = PARTITION_NUMBER};

/* --- lives --- */

void partition_open(struct partition *p, uint64_t seed)
{
    *p = (struct partition){0};
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = seed}, &p->world, NULL));
    assert_ok(mem_log_disk_open(seed, NULL, &p->log_disk));
    assert_ok(mem_store_disk_new(NULL, &p->store_disk));
    assert_ok(group0_new(NULL, &p->group0));
    group0_configure(p->group0, PARTITION_OF, 1, PARTITION_OF);
    assert_ok(mem_env_open(p->world, &(struct mem_env_options){.shards = 1}, &p->observer_env, NULL));
    assert_ok(mem_log_open(p->log_disk, mem_env_port(p->observer_env), &(struct mem_log_options){.node = 9},
                           &p->observer));
}

void partition_close(struct partition *p)
{
    assert_ok(pawl_log_close(p->observer));
    assert_ok(mem_env_close(p->observer_env));
    mem_world_close(p->world);
    mem_log_disk_close(p->log_disk);
    mem_store_disk_free(p->store_disk);
    group0_free(p->group0);
}

const struct schema *partition_apply(struct partition *p, const char *schema)
{
    enum group0_outcome outcome;
    pawl_error error = {0};
    int status = schema_apply(p->group0, schema, &outcome, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    return group0_schema(p->group0);
}

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    const struct partition *p = ctx;
    const struct schema *schema = group0_schema_at(p->group0, position);
    return schema && schema->position == position && !p->no_schemas ? schema : NULL;
}

static int write_sequences(void *ctx, const pawl_sequence_row *rows, size_t count, uint64_t last,
                           pawl_error *error)
{
    struct partition *p = heap_entry(ctx, struct partition, sequences);
    pawl_sequence_storage storage = sequences_storage(&p->sequences);
    return p->no_flushes ? error_set(error, PAWL_EIO, "the storage is out of order")
                         : storage.write_values_and_offset(ctx, rows, count, last, error);
}

static int put_refresh(void *ctx, pawl_store *store, pawl_error *error)
{
    struct partition *p = ctx;
    return view_tables_refresh(&p->views, group0_building(p->group0)->views, group0_schema(p->group0), error);
}

static void boot_views(struct partition *p)
{
    view_tables_init(&p->views, p->store, partition_set_of(PARTITION_NUMBER, PARTITION_OF, PARTITION_OF),
                     PARTITION_OF, &p->memory.allocator);
    p->applier.hook = &p->views.hook;
    assert_ok(applier_write(&p->applier, put_refresh, p, &p->error));
}

static void boot(void *arg)
{
    struct partition *p = arg;
    struct processor_options o = p->options;
    applier_init(&p->applier, mem_env_port(p->env), 0, p->store);
    p->applier.works_ahead = !p->waits;
    if (p->with_views) {
        boot_views(p);
        o.views = &p->views;
    }
    p->sequences = (struct sequences){.log = p->log,
                                      .store = p->store,
                                      .applier = &p->applier,
                                      .env = mem_env_port(p->env),
                                      .partition = PARTITION_NUMBER};
    o.env = mem_env_port(p->env);
    o.log = p->front ? p->front : p->log;
    o.store = p->store;
    o.applier = &p->applier;
    o.partition = PARTITION_NUMBER;
    o.sequences = sequences_storage(&p->sequences);
    o.sequences.write_values_and_offset = write_sequences;
    o.schema = group0_schema(p->group0);
    o.schema_at = schema_at;
    o.ctx = p;
    o.allocator = &p->memory.allocator;
    assert_ok(processor_new(&o, &p->processor, &p->error));
}

void partition_boot(struct partition *p)
{
    mortal_init(&p->memory);
    assert_ok(mem_env_open(p->world, &(struct mem_env_options){.shards = 1}, &p->env, NULL));
    p->log_options.node = 1;
    assert_ok(mem_log_open(p->log_disk, mem_env_port(p->env), &p->log_options, &p->log));
    struct mem_store_options live = {.name = "live", .mode = PAWL_STORE_FAST};
    assert_ok(mem_store_open(p->store_disk, &live, NULL, &p->store, NULL));
    partition_call(p, boot, p);
}

static bool is_settled(void *arg)
{
    const struct partition *p = arg;
    enum writer_state state = processor_state(p->processor);
    return state == WRITER_RUNNING || state == WRITER_REFUSED;
}

enum writer_state partition_wait(struct partition *p)
{
    assert_true(mem_world_run_until(p->world, is_settled, p, PARTITION_STEPS_MAX));
    return processor_state(p->processor);
}

static void closed(void *arg)
{
    struct partition *p = arg;
    p->closed = true;
}

static bool is_closed(void *arg)
{
    const struct partition *p = arg;
    return p->closed;
}

void partition_close_inside(struct partition *p)
{
    if (processor_state(p->processor) == WRITER_CLOSED)
        return;
    p->closed = false;
    processor_close(p->processor, closed, p);
}

static void start_closing(void *arg)
{
    partition_close_inside(arg);
}

void partition_begin_halt(struct partition *p)
{
    partition_call(p, start_closing, p);
}

static void close_applier(void *arg)
{
    struct partition *p = arg;
    applier_close(&p->applier);
}

void partition_end_halt(struct partition *p)
{
    assert_true(mem_world_run_until(p->world, is_closed, p, PARTITION_STEPS_MAX));
    processor_free(p->processor);
    p->processor = NULL;
    p->applier.hook = NULL;
    if (p->with_views)
        view_tables_release(&p->views);
    assert_null(p->memory.blocks);
    assert_null(p->applier.first);
    partition_call(p, close_applier, p);
    assert_true(mem_world_run(p->world, PARTITION_STEPS_MAX));
    assert_ok(pawl_log_close(p->log));
    mem_store_disk_fail(p->store_disk, (struct mem_store_fault){0});
    assert_ok(pawl_store_close(p->store));
    assert_ok(mem_env_close(p->env));
}

void partition_halt(struct partition *p)
{
    partition_begin_halt(p);
    partition_end_halt(p);
}

void partition_crash(struct partition *p, bool power)
{
    mem_env_kill(p->env);
    mem_log_kill(p->log);
    mem_store_disk_fail(p->store_disk, (struct mem_store_fault){0});
    mem_store_disk_crash(p->store_disk);
    if (power) {
        mem_log_disk_crash(p->log_disk);
        mem_store_disk_power_cut(p->store_disk);
    }
    assert_ok(mem_env_close(p->env));
    if (p->with_views)
        view_tables_release(&p->views);
    mortal_drop(&p->memory);
    p->processor = NULL;
}

void partition_forget_state(struct partition *p)
{
    mem_store_disk_free(p->store_disk);
    assert_ok(mem_store_disk_new(NULL, &p->store_disk));
}

/* --- on the shard --- */

void partition_call(struct partition *p, void (*fn)(void *arg), void *arg)
{
    assert_ok(pawl_env_call(mem_env_port(p->env), 0, fn, arg));
}

struct submission {
    struct partition *partition;
    struct call *call;
    const struct schema *schema;
    int status;
};

static void submit(void *arg)
{
    struct submission *s = arg;
    s->status = processor_submit(s->partition->processor, s->call);
}

int partition_submit(struct partition *p, struct call *call)
{
    struct submission s = {.partition = p, .call = call};
    partition_call(p, submit, &s);
    return s.status;
}

static void run(void *arg)
{
    struct partition *p = arg;
    processor_run(p->processor);
}

void partition_run(struct partition *p)
{
    partition_call(p, run, p);
}

static void change_schema(void *arg)
{
    struct submission *s = arg;
    processor_schema(s->partition->processor, s->schema);
}

void partition_schema(struct partition *p, const struct schema *schema)
{
    struct submission s = {.partition = p, .schema = schema};
    partition_call(p, change_schema, &s);
}

/* --- views --- */

uint64_t partition_workspace(uint64_t after)
{
    do
        after++;
    while (partition_of(hash_token(after), PARTITION_OF) != PARTITION_NUMBER);
    return after;
}

struct view_call {
    struct partition *partition;
    uint32_t view;
    uint32_t rows_max;
    struct slice_report report;
    pawl_error *error;
    int status;
    bool settled;
};

static void refresh(void *arg)
{
    struct view_call *c = arg;
    struct partition *p = c->partition;
    c->status = applier_write(&p->applier, put_refresh, p, &p->error);
    processor_schema(p->processor, group0_schema(p->group0));
    processor_rebind(p->processor);
}

int partition_refresh(struct partition *p)
{
    struct view_call c = {.partition = p};
    partition_call(p, refresh, &c);
    return c.status;
}

static int put_slice(void *ctx, pawl_store *store, pawl_error *error)
{
    struct view_call *c = ctx;
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    const struct view_table *table = view_tables_find(&c->partition->views, c->view);
    uint32_t base = table ? table->base : 0;
    struct slice slice = {.partition = PARTITION_NUMBER,
                          .base = base,
                          .views = &c->view,
                          .count = 1,
                          .range =
                              view_partition_range(PARTITION_OF, PARTITION_NUMBER, STATE_SPACE, base, from, to),
                          .rows_max = c->rows_max};
    return slice_put(&c->partition->views, &slice, &c->report);
}

static void build_slice(void *arg)
{
    struct view_call *c = arg;
    c->status = applier_write(&c->partition->applier, put_slice, c, &c->partition->error);
    if (c->status == PAWL_OK && !c->partition->untold)
        processor_rebind(c->partition->processor);
}

int partition_slice(struct partition *p, uint32_t view, uint32_t rows_max, bool *ret_covered)
{
    struct view_call c = {.partition = p, .view = view, .rows_max = rows_max};
    partition_call(p, build_slice, &c);
    if (c.status == PAWL_OK)
        *ret_covered = c.report.covered;
    return c.status;
}

uint32_t partition_view(struct partition *p, const char *name)
{
    const struct view_list *list = group0_building(p->group0)->views;
    const struct view_entry *entry = view_list_by_name(list, text_bytes(name), NULL);
    return entry ? view_table(entry->view->number, 0) : 0;
}

static void find_verdict(void *arg)
{
    struct view_call *c = arg;
    c->status = unique_verdict(&c->partition->views, c->view, PARTITION_NUMBER, c->error);
}

int partition_verdict(struct partition *p, uint32_t view, pawl_error *error)
{
    struct view_call c = {.partition = p, .view = view, .error = error};
    partition_call(p, find_verdict, &c);
    return c.status;
}

static void find_settled(void *arg)
{
    struct view_call *c = arg;
    c->settled = processor_settled(c->partition->processor);
}

bool partition_settled(struct partition *p)
{
    struct view_call c = {.partition = p};
    partition_call(p, find_settled, &c);
    return c.settled;
}

/* --- what there is --- */

struct reading {
    bool (*visit)(void *arg, const pawl_entry *entry);
    void *arg;
};

static bool read_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    const struct reading *reading = read->arg;
    return reading->visit(reading->arg, entry);
}

static void not_called(pawl_read *read)
{
    abort();
}

uint64_t partition_read_log(struct partition *p, uint64_t from,
                            bool (*visit)(void *arg, const pawl_entry *entry), void *arg)
{
    struct reading reading = {.visit = visit, .arg = arg};
    pawl_read read = {.stream = plog,
                      .from = from,
                      .limit = UINT64_MAX,
                      .alone = true,
                      .visit = read_entry,
                      .done = not_called,
                      .arg = &reading};
    assert_int_equal(pawl_log_read(p->observer, &read), PAWL_READ_DONE);
    assert_ok(read.status);
    return read.next;
}

struct dump {
    struct partition *partition;
    uint8_t *bytes;
    size_t size, room;
};

static void dump_bytes(struct dump *d, pawl_bytes bytes)
{
    size_t need = d->size + 4 + bytes.size;
    if (need > d->room) {
        d->room = need * 2;
        d->bytes = realloc(d->bytes, d->room);
        if (!d->bytes)
            abort();
    }
    put_u32(d->bytes + d->size, (uint32_t)bytes.size);
    memcpy(d->bytes + d->size + 4, bytes.data, bytes.size);
    d->size = need;
}

static bool dump_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    dump_bytes(arg, key);
    dump_bytes(arg, value);
    return true;
}

static void dump(void *arg)
{
    struct dump *d = arg;
    assert_ok(pawl_store_scan(pawl_store_writer(d->partition->store), (pawl_range){.space = STATE_SPACE}, false,
                              dump_row, d));
}

pawl_bytes partition_dump(struct partition *p)
{
    struct dump d = {.partition = p};
    partition_call(p, dump, &d);
    return (pawl_bytes){d.bytes, d.size};
}

static void check_digests(void *arg)
{
    struct partition *p = arg;
    const struct position *position = processor_position(p->processor);
    pawl_reader *reader = pawl_store_writer(p->store);
    uint64_t rows = 0;
    for (size_t i = 0; i < position->digests.count; i++) {
        uint8_t from[KEY_TABLE], to[KEY_TABLE];
        pawl_digest digest;
        put_u32_sorted(from, position->digests.tables[i].table);
        put_u32_sorted(to, position->digests.tables[i].table + 1);
        pawl_range range = {.space = STATE_SPACE, .from = {from, KEY_TABLE}, .to = {to, KEY_TABLE}};
        assert_ok(pawl_store_digest(reader, range, &digest));
        assert_true(pawl_digest_equal(&digest, &position->digests.tables[i].digest));
        rows += digest.rows;
    }
    uint8_t from[KEY_TABLE];
    pawl_digest all;
    put_u32_sorted(from, TABLE_PARTITION + 1);
    assert_ok(pawl_store_digest(reader, (pawl_range){.space = STATE_SPACE, .from = {from, KEY_TABLE}}, &all));
    assert_int_equal(all.rows, rows);
}

void partition_check_digests(struct partition *p)
{
    partition_call(p, check_digests, p);
}

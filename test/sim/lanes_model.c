/* The serial run: each match at its turn, alone, on a plain store. If the log has a void, the model takes it
 * over. */
#include "base/bytes.h"
#include "core/project/projector_match.h"
#include "core/project/redo.h"
#include "core/state/key.h"
#include "test/sim/lanes.h"

static pawl_stream operations_of(const struct site *site)
{
    return (pawl_stream){.kind = PAWL_STREAM_OPLOG,
                         .partition = site->feed->plog.partition,
                         .lane = site->lane_id,
                         .generation = site->generation};
}

void model_open(struct site *site)
{
    struct model *m = &site->model;
    *m = (struct model){.event = 1};
    assert_ok(mem_store_disk_new(NULL, &m->disk));
    assert_ok(mem_store_open(m->disk, &(struct mem_store_options){.name = "model"}, NULL, &m->store, NULL));
    m->room = 64;
    m->digests = calloc(m->room, sizeof m->digests[0]);
    m->heads = calloc(m->room, sizeof m->heads[0]);
    if (!m->digests || !m->heads)
        abort();
}

void model_close(struct site *site)
{
    struct model *m = &site->model;
    mem_store_disk_free(m->disk);
    free(m->digests);
    free(m->heads);
}

/* The next match of the partition's log. NULL: there is none. */
static const struct schema_projector *next_match(struct site *site, const struct schema **ret_schema)
{
    struct model *m = &site->model;
    for (; m->event <= site->feed->count; m->event++, m->place = 0) {
        struct event event;
        assert_ok(event_decode(site->feed->events[m->event - 1].body, &event, NULL));
        const struct schema *schema = group0_schema_at(site->sim->group0, event.head.schema);
        for (; m->place < schema->projector_count; m->place++) {
            const struct schema_projector *p = &schema->projectors[m->place];
            if (p->lane != site->lane_id || !projector_matches(p, event.head.command))
                continue;
            *ret_schema = schema;
            return p;
        }
    }
    return NULL;
}

/* What the match does, on the model's tables; as an operation's writes. */
struct serial {
    struct arena memory;
    struct overlay overlay;
    struct operation_maker writes;
    struct changes changes;
    uint8_t *scratch;
    bool fails; /* its handler */
    int status;
};

static void serial_release(struct serial *serial)
{
    operation_maker_release(&serial->writes);
    overlay_release(&serial->overlay);
    arena_release(&serial->memory);
    free(serial->scratch);
}

static void serial_run(struct site *site, const struct schema *schema, const struct schema_projector *p,
                       struct serial *r)
{
    const struct sim_event *e = &site->feed->events[site->model.event - 1];
    struct handling h = {
        .sim = site->sim, .site = site, .projector = sim_projector(site->sim, schema, p), .event = *e};
    struct event event;
    const struct intent *intents;
    size_t count;
    *r = (struct serial){.scratch = malloc(STATE_SCRATCH_BYTES)};
    arena_init(&r->memory, NULL, 4096);
    overlay_init(&r->overlay, NULL);
    operation_maker_init(&r->writes, NULL);
    struct state state = {
        .overlay = &r->overlay, .reader = pawl_store_writer(site->model.store), .scratch = r->scratch};
    assert_ok(event_decode(e->body, &event, NULL));
    if (h.projector->handler) {
        for (unsigned i = handler_steps(h.projector); i > 0; i--)
            assert_ok(handler_read(&h, schema, &state, NULL, &r->memory));
        r->fails = handler_fails(&h);
        if (r->fails)
            return;
        handler_intents(&h, schema, &r->memory, &intents, &count);
    } else
        assert_ok(intents_of(p, &r->memory, &intents, &count));
    struct derivation derivation = {.offset = site->model.event, .event = &event, .schema = schema};
    struct explosion explosion = {.derivation = &derivation,
                                  .generation = site->generation,
                                  .intents = intents,
                                  .intent_count = count,
                                  .writes = &r->writes};
    r->status = explode(&explosion, &state, &r->memory, &r->changes, NULL);
    if (r->status == PAWL_OK)
        overlay_remove(&r->overlay, &r->changes);
}

static void add_digest(pawl_digest *to, const pawl_digest *digest)
{
    to->low += digest->low;
    to->high += digest->high + (to->low < digest->low);
    to->rows += digest->rows;
}

static void write_changes(struct site *site, const struct changes *changes, pawl_digest *digest)
{
    pawl_store *store = site->model.store;
    for (const struct row_change *c = changes->first; c; c = c->next) {
        add_digest(digest, &c->digest);
        assert_ok(c->value.data ? pawl_store_put(store, STATE_SPACE, c->key, c->value)
                                : pawl_store_remove(store, STATE_SPACE, c->key));
    }
    assert_ok(pawl_store_commit(store));
}

static void make_room(struct model *m)
{
    if (m->operations + 1 < m->room)
        return;
    m->room *= 2;
    m->digests = realloc(m->digests, m->room * sizeof m->digests[0]);
    m->heads = realloc(m->heads, m->room * sizeof m->heads[0]);
    if (!m->digests || !m->heads)
        abort();
}

static void complain(const struct site *site, const struct operation *op, const char *words)
{
    print_error("partition %u, lane %u, operation %" PRIu64 " of event %" PRIu64 ", attempt %u: %s\n",
                site->feed->plog.partition, site->lane_number, op->number, op->event, op->attempt, words);
}

/* A handler that failed because of what it read had read what a serial run reads. */
static void check_failure(struct site *site, const struct schema *schema, const struct schema_projector *p,
                          const struct operation *op)
{
    struct serial serial;
    serial_run(site, schema, p, &serial);
    if (!serial.fails)
        complain(site, op, "in a serial run its handler does not fail");
    assert_true(serial.fails);
    serial_release(&serial);
}

/* An operation of the log is the next match, and writes what the serial run writes. */
static bool compare_operation(void *arg, const pawl_entry *entry, pawl_place place)
{
    struct site *site = arg;
    struct model *m = &site->model;
    const struct schema *schema = NULL;
    struct operation op;
    assert_ok(operation_decode(entry->body, &op, NULL));
    assert_int_equal(entry->offset, m->operations + 1);
    assert_int_equal(op.number, m->operations + 1);
    const struct schema_projector *p = next_match(site, &schema);
    if (!p || op.event != m->event || op.projector != p->id)
        complain(site, &op, "it is not of the next match");
    assert_true(p && op.event == m->event && op.projector == p->id);
    assert_int_equal(op.wsid, site->feed->events[m->event - 1].wsid);
    assert_int_equal(op.schema, schema->position);
    make_room(m);
    pawl_digest digest = m->digests[m->operations];
    if (op.kind == OPERATION_WRITES) {
        struct serial serial;
        pawl_bytes writes;
        uint32_t count;
        serial_run(site, schema, p, &serial);
        if (serial.status != PAWL_OK || serial.fails)
            complain(site, &op, "in a serial run it fails");
        assert_ok(serial.status);
        assert_false(serial.fails);
        assert_ok(operation_maker_writes(&serial.writes, &writes, &count));
        if (op.count != count || !bytes_equal(op.writes, writes))
            complain(site, &op, "a serial run would have written something else");
        assert_true(op.count == count && bytes_equal(op.writes, writes));
        write_changes(site, &serial.changes, &digest);
        serial_release(&serial);
    } else {
        assert_true(op.reason.size > 0 || site->sim->faults); /* without memory there are no words */
        if (bytes_equal(op.reason, text_bytes(READ_REASON)))
            check_failure(site, schema, p, &op);
        m->voids++;
    }
    m->operations++;
    m->digests[m->operations] = digest;
    op.writes = op.reason = (pawl_bytes){0};
    m->heads[m->operations] = op;
    m->place++;
    return true;
}

void model_follow(struct site *site)
{
    plog_read(site->sim->feeder, operations_of(site), site->model.operations + 1, compare_operation, site);
}

/* --- what is compared --- */

struct rows {
    const struct site *site;
    uint32_t table; /* 0: all of the lane's */
    pawl_digest digest;
    bool keep;
    uint8_t *bytes;
    size_t size, room;
};

static bool is_ours(const struct site *site, pawl_bytes key)
{
    uint32_t table = key_table(key);
    if (table < SCHEMA_TABLE_FIRST || key_wsid(key) / 1000 != site->feed->plog.partition)
        return false;
    for (unsigned e = 0; e < site->sim->entities; e++)
        if (site->sim->entity_lane[e] == site->lane_number
            && schema_table(sim_entity(site->sim->schema, e), site->generation) == table)
            return true;
    return false;
}

static bool take_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct rows *r = arg;
    if (!is_ours(r->site, key) || (r->table && r->table != key_table(key)))
        return true;
    pawl_digest_add(&r->digest, key, value);
    if (!r->keep)
        return true;
    size_t need = r->size + 8 + key.size + value.size;
    if (need > r->room) {
        r->room = need * 2;
        r->bytes = realloc(r->bytes, r->room);
        if (!r->bytes)
            abort();
    }
    put_u32(r->bytes + r->size, (uint32_t)key.size);
    put_u32(r->bytes + r->size + 4, (uint32_t)value.size);
    memcpy(r->bytes + r->size + 8, key.data, key.size);
    memcpy(r->bytes + r->size + 8 + key.size, value.data, value.size);
    r->size = need;
    return true;
}

static int take_rows(pawl_reader *reader, struct rows *rows)
{
    return pawl_store_scan(reader, (pawl_range){.space = STATE_SPACE}, false, take_row, rows);
}

/* Whatever the store shows is what the serial run had after as many operations (N3). A store that fails shows
 * nothing. */
void model_check_snapshot(struct site *site)
{
    struct sim *s = site->sim;
    struct rows rows = {.site = site};
    uint64_t applied, scanned;
    pawl_reader *snapshot;
    model_follow(site);
    if (pawl_store_snapshot(s->store, &snapshot) != PAWL_OK)
        return;
    if (cursor_peek(snapshot, site->feed->plog.partition, site->lane_id, site->generation, &applied, &scanned)
            == PAWL_OK
        && take_rows(snapshot, &rows) == PAWL_OK) {
        assert_true(applied <= site->model.operations);
        assert_true(pawl_digest_equal(&rows.digest, &site->model.digests[applied]));
    }
    pawl_store_release(s->store, snapshot);
}

void model_check_scanned(struct site *site, uint64_t scanned)
{
    uint64_t applied = lane_cursor(site->lane)->applied;
    model_follow(site);
    assert_true(scanned >= site->scanned && scanned <= site->feed->count);
    assert_true(applied <= site->model.operations);
    if (applied < site->model.operations)
        assert_true(site->model.heads[applied + 1].event > scanned);
    else if (next_match(site, &(const struct schema *){NULL}))
        assert_true(site->model.event > scanned);
    site->scanned = scanned;
}

static void compare_rows(struct rows *a, struct rows *b)
{
    assert_int_equal(a->size, b->size);
    if (a->size > 0)
        assert_memory_equal(a->bytes, b->bytes, a->size);
    assert_true(pawl_digest_equal(&a->digest, &b->digest));
}

static void check_digests(const struct site *site, pawl_reader *reader, const struct cursor *cursor)
{
    uint64_t total = 0;
    for (unsigned e = 0; e < site->sim->entities; e++) {
        if (site->sim->entity_lane[e] != site->lane_number)
            continue;
        struct rows rows = {.site = site,
                            .table = schema_table(sim_entity(site->sim->schema, e), site->generation)};
        assert_ok(take_rows(reader, &rows));
        pawl_digest kept = digests_of(&cursor->digests, rows.table);
        assert_true(pawl_digest_equal(&kept, &rows.digest));
        total += rows.digest.rows;
    }
    for (size_t i = 0; i < cursor->digests.count; i++)
        total -= cursor->digests.tables[i].digest.rows;
    assert_int_equal(total, 0);
}

/* --- all operations, applied to an empty store --- */

struct again {
    struct redo redo;
    struct site *site;
};

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    const struct sim *s = ctx;
    const struct schema *schema = group0_schema_at(s->group0, position);
    return schema->position == position ? schema : NULL;
}

static bool redo_one(void *arg, const pawl_entry *entry, pawl_place place)
{
    struct again *again = arg;
    pawl_error error = {0};
    int status = redo_operation(&again->redo, entry->offset, place, entry->body, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    assert_ok(redo_commit(&again->redo, NULL));
    return true;
}

static void check_redo(struct site *site, struct rows *model)
{
    struct rows rows = {.site = site, .keep = true};
    struct again again = {.site = site};
    struct cursor cursor, read;
    struct gathered gathered;
    struct arena memory;
    mem_store_disk *disk;
    pawl_store *store;
    assert_ok(mem_store_disk_new(NULL, &disk));
    assert_ok(mem_store_open(disk, &(struct mem_store_options){.name = "again"}, NULL, &store, NULL));
    gathered_init(&gathered, NULL);
    arena_init(&memory, NULL, 4096);
    cursor_init(&cursor, NULL, site->feed->plog.partition, site->lane_id, site->generation);
    cursor_init(&read, NULL, site->feed->plog.partition, site->lane_id, site->generation);
    again.redo = (struct redo){.store = store,
                               .cursor = &cursor,
                               .gathered = &gathered,
                               .memory = &memory,
                               .scratch = malloc(STATE_SCRATCH_BYTES),
                               .schema_at = schema_at,
                               .ctx = site->sim};
    plog_read(site->sim->feeder, operations_of(site), 1, redo_one, &again);
    assert_int_equal(cursor.applied, site->model.operations);
    assert_ok(take_rows(pawl_store_writer(store), &rows));
    compare_rows(&rows, model);
    assert_ok(cursor_read(&read, pawl_store_writer(store), NULL));
    check_digests(site, pawl_store_writer(store), &read);
    free(rows.bytes);
    free(again.redo.scratch);
    cursor_release(&cursor);
    cursor_release(&read);
    arena_release(&memory);
    gathered_release(&gathered);
    mem_store_disk_free(disk);
}

/* Everything has come to its end. */
void model_check_end(struct site *site)
{
    const struct schema *schema;
    struct rows live = {.site = site, .keep = true}, model = {.site = site, .keep = true};
    struct cursor cursor;
    model_follow(site);
    assert_null(next_match(site, &schema));
    pawl_reader *reader = pawl_store_writer(site->sim->store);
    cursor_init(&cursor, NULL, site->feed->plog.partition, site->lane_id, site->generation);
    assert_ok(cursor_read(&cursor, reader, NULL));
    assert_int_equal(cursor.applied, site->model.operations);
    assert_ok(take_rows(reader, &live));
    assert_ok(take_rows(pawl_store_writer(site->model.store), &model));
    compare_rows(&live, &model);
    check_digests(site, reader, &cursor);
    check_redo(site, &model);
    cursor_release(&cursor);
    free(live.bytes);
    free(model.bytes);
}

/* Runs that were made too early, on snapshots of any age, and validated at their turn, write what they would
 * have written one after the other.
 *
 * A history is a list of runs, each a few random intents on its own event. It is done twice:
 *
 *     serial      each run on the state that the one before it left
 *     lane        each run first on a snapshot of some earlier operation, exchanged for later ones between
 *                 slices; at its turn kept if its reads stand, else repeated on the lane's overlay; staged,
 *                 logged, and applied to the store some time later
 *
 * The tables, and what is logged, must be the same bytes; and so must the tables that the log gives when it is
 * applied to an empty store.
 *
 * PAWL_SEEDS=n runs that many histories, from the seed on. */
#include "adapter/mem/store.h"
#include "base/bytes.h"
#include "core/project/cursor.h"
#include "core/project/explode.h"
#include "core/state/key.h"
#include "test/lib/entities.h"
#include "test/lib/test.h"

#define HISTORIES 3000
#define RUNS_MAX  24
#define INTENTS   3
#define SETS      3
#define KEPT      6 /* snapshots */

static uint8_t scratch[STATE_SCRATCH_BYTES];

struct run {
    const struct schema *schema;
    struct event event;
    struct derivation derivation;
    struct intent intents[INTENTS];
    size_t intent_count;
    struct schema_set sets[INTENTS][SETS];
    struct value values[INTENTS][SETS];
    struct value keys[INTENTS][2];
    const struct expr *key_exprs[INTENTS][2];
    pawl_bytes serial; /* what it wrote, one after the other; data NULL: it failed */
    pawl_bytes logged; /* the operation */
    struct changes changes;
};

struct snapshot {
    uint64_t number;
    pawl_reader *reader;
};

struct history {
    uint64_t random;
    struct entities before, after; /* an entity may gain a field */
    struct run runs[RUNS_MAX];
    size_t run_count;
    struct arena memory;
    struct operation_maker maker;
    struct reads reads;
    struct recent_writes *recent;
    struct overlay overlay;
    mem_store_disk *disk;
    pawl_store *serial, *lane, *replayed;
    uint64_t applied, staged;
    struct snapshot snapshots[KEPT]; /* oldest first */
    size_t snapshot_count;
    size_t in_use; /* the one that a run reads */
    struct cursor cursor;
    uint64_t stood, repeated, failed, exchanged;
};

static uint64_t below(struct history *h, uint64_t bound)
{
    return test_below(&h->random, bound);
}

static const char *const letters[] = {"i", "s", "f", "b", "i", "s"};

static void make_schemas(struct history *h)
{
    entities_init(&h->before, 1);
    entities_init(&h->after, 2);
    for (size_t e = 1 + below(h, ENTITIES_MAX); e > 0; e--) {
        char types[ENTITY_FIELDS_MAX + 1] = {0};
        size_t keys = 1 + below(h, 2), fields = keys + 1 + below(h, 3);
        for (size_t i = 0; i < fields; i++)
            types[i] = letters[below(h, 6)][0];
        if (below(h, 4) == 0)
            types[keys] &= (char)~0x20;
        entities_add(&h->before, types, keys);
        if (below(h, 2))
            types[fields] = letters[below(h, 6)][0];
        entities_add(&h->after, types, keys);
    }
}

/* Few keys, so that runs meet. */
static struct value small_value(struct history *h, enum value_type type)
{
    static const char *const words[] = {"", "a", "b", "ab"};
    struct value v = {.type = type};
    uint64_t n = below(h, 4);
    switch (type) {
    case VALUE_INT64: v.integer = (int64_t)n - 1; break;
    case VALUE_FLOAT64: v.real = (double)n / 2; break;
    case VALUE_BOOL: v.boolean = n % 2; break;
    default: v.bytes = text_bytes(words[n]); break;
    }
    return v;
}

static const char *field_name(const struct schema_type *type, size_t place)
{
    return type->fields[place].name.data;
}

/* A field of the type, or -1. */
static int pick_field(struct history *h, const struct schema_type *type, enum value_type of)
{
    size_t from = below(h, type->field_count);
    for (size_t i = 0; i < type->field_count; i++)
        if (type->fields[(from + i) % type->field_count].type == of)
            return (int)((from + i) % type->field_count);
    return -1;
}

static void where_text(struct history *h, const struct schema_type *type, char *text, size_t size)
{
    size_t place = below(h, type->field_count);
    const char *a = field_name(type, place);
    uint64_t n = below(h, 4);
    switch (type->fields[place].type) {
    case VALUE_INT64:
        if (below(h, 20) == 0)
            snprintf(text, size, "1 / (%s - %d) > 0", a, (int)n);
        else if (below(h, 3) == 0)
            snprintf(text, size, "%s is null or %s = %d", a, a, (int)n);
        else
            snprintf(text, size, n % 2 ? "%s > %d" : "%s < %d", a, (int)n);
        break;
    case VALUE_FLOAT64: snprintf(text, size, "%s * 2.0 <= %d.0", a, (int)n); break;
    case VALUE_BOOL: snprintf(text, size, n ? "%s = (%d > 1)" : "%s is null", a, (int)n); break;
    default: snprintf(text, size, n < 2 ? "starts_with(%s, 'a')" : "not %s = 'b'", a); break;
    }
    if (below(h, 6) == 0)
        snprintf(text, size, "$event.offset > 3");
}

static void set_text(struct history *h, const struct schema_type *type, enum value_type want, char *text,
                     size_t size)
{
    int place = pick_field(h, type, want);
    const char *a = place >= 0 ? field_name(type, (size_t)place) : "null";
    bool sees = below(h, 3) > 0 && place >= 0;
    switch (want) {
    case VALUE_INT64:
        if (sees)
            snprintf(text, size, below(h, 8) ? "coalesce(%s, 0) + 1" : "6 / %s", a);
        else
            snprintf(text, size, below(h, 5) ? "$event.offset" : "null");
        break;
    case VALUE_FLOAT64: snprintf(text, size, sees ? "coalesce(%s, 0.5) * 1.5" : "2.5", a); break;
    case VALUE_BOOL: snprintf(text, size, sees ? "not %s" : "true", a); break;
    default: snprintf(text, size, sees ? "coalesce(%s, '') || 'a'" : "'b'", a); break;
    }
}

static void make_sets(struct history *h, struct entities *e, struct run *run, size_t i)
{
    struct intent *intent = &run->intents[i];
    const struct schema_type *type = intent->entity;
    size_t free_fields = type->field_count - type->key_count;
    intent->sets = run->sets[i];
    intent->values = run->values[i];
    intent->set_count = 1 + below(h, SETS);
    for (size_t s = 0; s < intent->set_count; s++) {
        size_t place = type->key_count + below(h, free_fields);
        char text[64];
        enum value_type want = type->fields[place].type;
        run->sets[i][s] = (struct schema_set){.field = (uint16_t)place};
        if (below(h, 3) == 0) {
            run->values[i][s] = below(h, 8) ? small_value(h, want) : (struct value){.type = VALUE_NULL};
            continue;
        }
        set_text(h, type, want, text, sizeof text);
        run->sets[i][s].value = entities_expr(e, type, want, text);
    }
}

static void make_intent(struct history *h, struct entities *e, struct run *run, size_t i)
{
    const struct schema_type *type = &e->types[below(h, e->schema.type_count)];
    uint64_t kind = below(h, 10);
    struct intent *intent = &run->intents[i];
    *intent = (struct intent){.entity = type};
    intent->kind = kind < 5 ? ACTION_UPSERT : kind < 9 ? ACTION_UPDATE : ACTION_DELETE;
    if (intent->kind != ACTION_DELETE)
        make_sets(h, e, run, i);
    if (intent->kind == ACTION_UPSERT || below(h, 4) == 0) {
        for (size_t k = 0; k < type->key_count; k++)
            run->keys[i][k] = small_value(h, type->fields[k].type);
        intent->key = run->keys[i];
        if (type->key_count == 1 && type->fields[0].type == VALUE_INT64 && below(h, 2)) {
            run->key_exprs[i][0] = entities_expr(e, type, VALUE_INT64, "$event.offset / 3");
            intent->key = NULL;
            intent->key_exprs = run->key_exprs[i];
        }
        return;
    }
    char text[64];
    where_text(h, type, text, sizeof text);
    if (below(h, 8))
        intent->where = entities_expr(e, type, VALUE_BOOL, text);
}

static void make_runs(struct history *h)
{
    h->run_count = 2 + below(h, RUNS_MAX - 1);
    size_t change = below(h, h->run_count);
    for (size_t i = 0; i < h->run_count; i++) {
        struct entities *e = i < change ? &h->before : &h->after;
        struct run *run = &h->runs[i];
        *run = (struct run){.schema = &e->schema};
        run->event.envelope.wsid = 1 + below(h, 2);
        run->event.head.schema = e->schema.position;
        run->derivation = (struct derivation){.offset = i + 1, .event = &run->event, .schema = &e->schema};
        run->intent_count = 1 + below(h, INTENTS);
        for (size_t k = 0; k < run->intent_count; k++)
            make_intent(h, e, run, k);
    }
}

static pawl_store *open_store(struct history *h, const char *name)
{
    pawl_store *store;
    assert_ok(mem_store_open(h->disk, &(struct mem_store_options){.name = name}, NULL, &store, NULL));
    return store;
}

static void begin_history(struct history *h)
{
    arena_init(&h->memory, NULL, 1 << 16);
    operation_maker_init(&h->maker, NULL);
    reads_init(&h->reads, NULL);
    assert_ok(recent_writes_new(NULL, 1u << (2 + below(h, 7)), &h->recent));
    recent_writes_reset(h->recent, 1);
    overlay_init(&h->overlay, NULL);
    assert_ok(mem_store_disk_new(NULL, &h->disk));
    h->serial = open_store(h, "serial");
    h->lane = open_store(h, "lane");
    h->replayed = open_store(h, "replayed");
    cursor_init(&h->cursor, NULL, 3, 7, ENTITY_GENERATION);
    h->applied = h->staged = 0;
    h->snapshot_count = 0;
    make_schemas(h);
    make_runs(h);
}

static void end_history(struct history *h)
{
    for (size_t i = 0; i < h->snapshot_count; i++)
        pawl_store_release(h->lane, h->snapshots[i].reader);
    entities_release(&h->before);
    entities_release(&h->after);
    cursor_release(&h->cursor);
    overlay_release(&h->overlay);
    mem_store_disk_free(h->disk);
    recent_writes_free(h->recent);
    reads_release(&h->reads);
    operation_maker_release(&h->maker);
    arena_release(&h->memory);
}

static void write_changes(pawl_store *store, const struct changes *changes)
{
    for (const struct row_change *c = changes->first; c; c = c->next)
        assert_ok(c->value.data ? pawl_store_put(store, STATE_SPACE, c->key, c->value)
                                : pawl_store_remove(store, STATE_SPACE, c->key));
}

static void keep_snapshot(struct history *h)
{
    if (h->snapshot_count == KEPT) {
        pawl_store_release(h->lane, h->snapshots[0].reader);
        memmove(h->snapshots, h->snapshots + 1, (KEPT - 1) * sizeof h->snapshots[0]);
        h->snapshot_count--;
    }
    struct snapshot *s = &h->snapshots[h->snapshot_count++];
    s->number = h->applied;
    assert_ok(pawl_store_snapshot(h->lane, &s->reader));
}

/* Some of what is staged goes to the store. */
static void apply_some(struct history *h, uint64_t until)
{
    while (h->applied < until) {
        struct run *run = &h->runs[h->applied++];
        write_changes(h->lane, &run->changes);
        assert_ok(digests_add(&h->cursor.digests, &run->changes));
        overlay_remove(&h->overlay, &run->changes);
    }
    h->cursor.applied = h->applied;
    assert_ok(cursor_write(&h->cursor, h->lane));
    assert_ok(pawl_store_commit(h->lane));
    keep_snapshot(h);
}

/* A later snapshot in the place of the one at hand. */
static int exchange(void *ctx, pawl_reader **reader)
{
    struct history *h = ctx;
    size_t next = h->in_use + below(h, h->snapshot_count - h->in_use);
    h->exchanged += next != h->in_use;
    h->in_use = next;
    *reader = h->snapshots[next].reader;
    return PAWL_OK;
}

static int explode_run(struct history *h, const struct run *run, struct state *state, bool early,
                       struct changes *ret_changes)
{
    struct explosion explosion = {.derivation = &run->derivation,
                                  .generation = ENTITY_GENERATION,
                                  .intents = run->intents,
                                  .intent_count = run->intent_count,
                                  .writes = &h->maker,
                                  .reads = early ? &h->reads : NULL,
                                  .pause = early ? exchange : NULL,
                                  .pause_ctx = h};
    pawl_error error = {0};
    int status = explode(&explosion, state, &h->memory, ret_changes, &error);
    if (status != PAWL_OK && status != PAWL_EINVAL)
        print_error("%s\n", error.text);
    assert_true(status == PAWL_OK || status == PAWL_EINVAL);
    return status;
}

static pawl_bytes made(struct history *h, uint32_t *ret_count)
{
    pawl_bytes writes;
    assert_ok(operation_maker_writes(&h->maker, &writes, ret_count));
    pawl_bytes copy = arena_copy(&h->memory, writes);
    assert_non_null(copy.data);
    return copy;
}

static struct operation operation_of(const struct run *run)
{
    return (struct operation){.kind = OPERATION_WRITES,
                              .event = run->derivation.offset,
                              .wsid = run->event.envelope.wsid,
                              .schema = run->schema->position};
}

/* What is logged gives the changes that exploding gave, when it is derived on the same state. */
static void check_derived(struct history *h, const struct run *run, struct state *state,
                          const struct changes *exploded)
{
    struct operation o = operation_of(run);
    struct changes derived;
    overlay_remove(state->overlay, exploded);
    assert_ok(operation_maker_writes(&h->maker, &o.writes, &o.count));
    assert_ok(operation_derive(&o, run->schema, ENTITY_GENERATION, state, &h->memory, &derived, NULL));
    const struct row_change *x = exploded->first, *y = derived.first;
    for (; x && y; x = x->next, y = y->next) {
        assert_true(bytes_equal(x->key, y->key) && bytes_equal(x->value, y->value));
        assert_true(pawl_digest_equal(&x->digest, &y->digest));
    }
    assert_true(!x && !y);
}

static void run_serially(struct history *h)
{
    for (size_t i = 0; i < h->run_count; i++) {
        struct run *run = &h->runs[i];
        struct overlay overlay;
        struct changes changes = {0};
        uint32_t count;
        overlay_init(&overlay, NULL);
        struct state state = {&overlay, pawl_store_writer(h->serial), scratch};
        if (explode_run(h, run, &state, false, &changes) == PAWL_OK) {
            run->serial = made(h, &count);
            check_derived(h, run, &state, &changes);
        }
        write_changes(h->serial, &changes);
        assert_ok(pawl_store_commit(h->serial));
        overlay_release(&overlay);
    }
}

/* Too early; false: it failed. */
static bool run_early(struct history *h, const struct run *run)
{
    struct overlay own;
    struct changes changes;
    uint64_t at;
    uint64_t scanned;
    h->in_use = below(h, h->snapshot_count);
    pawl_reader *reader = h->snapshots[h->in_use].reader;
    overlay_init(&own, NULL);
    struct state state = {&own, reader, scratch};
    assert_ok(cursor_peek(reader, 3, 7, ENTITY_GENERATION, &at, &scanned));
    assert_true(at == h->snapshots[h->in_use].number);
    reads_reset(&h->reads, at);
    bool good = explode_run(h, run, &state, true, &changes) == PAWL_OK;
    overlay_release(&own);
    return good;
}

static void log_operation(struct history *h, struct run *run, struct operation *o)
{
    o->number = h->staged + 1;
    assert_ok(operation_encode(o, &h->memory, &run->logged));
    assert_ok(operation_decode(run->logged, o, NULL));
}

static void take_turn(struct history *h, struct run *run)
{
    struct state state = {&h->overlay, pawl_store_writer(h->lane), scratch};
    struct operation o = operation_of(run);
    bool good = run_early(h, run);
    if (good && reads_stand(&h->reads, h->recent)) {
        h->stood++;
        o.writes = made(h, &o.count);
        log_operation(h, run, &o);
        assert_ok(
            operation_derive(&o, run->schema, ENTITY_GENERATION, &state, &h->memory, &run->changes, NULL));
    } else {
        h->repeated++;
        good = explode_run(h, run, &state, false, &run->changes) == PAWL_OK;
        if (good)
            o.writes = made(h, &o.count);
        else
            o.kind = OPERATION_VOID;
        log_operation(h, run, &o);
    }
    h->failed += !good;
    recent_writes_note(h->recent, &o, &run->changes);
    h->staged++;
    assert_int_equal(good, run->serial.data != NULL);
    assert_true(!good || bytes_equal(o.writes, run->serial));
}

static void run_in_a_lane(struct history *h)
{
    apply_some(h, 0);
    for (size_t i = 0; i < h->run_count; i++) {
        take_turn(h, &h->runs[i]);
        if (below(h, 2))
            apply_some(h, h->applied + 1 + below(h, h->staged - h->applied));
    }
    apply_some(h, h->staged);
    assert_int_equal(h->overlay.count, 0);
}

static void replay_log(struct history *h)
{
    for (size_t i = 0; i < h->run_count; i++) {
        struct operation o;
        struct overlay overlay;
        struct changes changes = {0};
        overlay_init(&overlay, NULL);
        struct state state = {&overlay, pawl_store_writer(h->replayed), NULL};
        assert_ok(operation_decode(h->runs[i].logged, &o, NULL));
        assert_ok(
            operation_derive(&o, h->runs[i].schema, ENTITY_GENERATION, &state, &h->memory, &changes, NULL));
        write_changes(h->replayed, &changes);
        overlay_release(&overlay);
    }
}

static pawl_digest digest_of(pawl_store *store)
{
    uint8_t from[KEY_TABLE];
    pawl_digest digest;
    put_u32_sorted(from, TABLE_LANE + 1);
    pawl_range range = {.space = STATE_SPACE, .from = {from, KEY_TABLE}};
    assert_ok(pawl_store_digest(pawl_store_writer(store), range, &digest));
    return digest;
}

static void compare(struct history *h)
{
    pawl_digest serial = digest_of(h->serial), lane = digest_of(h->lane), replayed = digest_of(h->replayed);
    assert_true(pawl_digest_equal(&serial, &lane));
    assert_true(pawl_digest_equal(&serial, &replayed));
    uint64_t rows = 0;
    for (size_t i = 0; i < h->cursor.digests.count; i++)
        rows += h->cursor.digests.tables[i].digest.rows;
    assert_true(rows == serial.rows);
}

TEST(whatever_order_runs_are_made_in_the_tables_are_those_of_one_after_the_other)
{
    static struct history h;
    uint64_t seed = test_seed(20261116), stood = 0, repeated = 0, failed = 0, exchanged = 0;
    const char *text = getenv("PAWL_SEEDS");
    uint64_t histories = text ? strtoull(text, NULL, 0) : HISTORIES;
    for (uint64_t i = 0; i < histories; i++) {
        memset(&h, 0, sizeof h);
        h.random = seed + i;
        begin_history(&h);
        run_serially(&h);
        run_in_a_lane(&h);
        replay_log(&h);
        compare(&h);
        stood += h.stood;
        repeated += h.repeated;
        failed += h.failed;
        exchanged += h.exchanged;
        end_history(&h);
    }
    print_message("# %" PRIu64 " stood, %" PRIu64 " repeated, %" PRIu64 " failed, %" PRIu64 " exchanged\n",
                  stood, repeated, failed, exchanged);
    assert_true(stood > histories && repeated > histories && failed > histories / 10);
    assert_true(exchanged > histories / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(whatever_order_runs_are_made_in_the_tables_are_those_of_one_after_the_other),
    };
    return TEST_MAIN(tests);
}

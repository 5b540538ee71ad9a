/* test/lib/explode.h: one entity, its rows, and intents on them.
 *
 * Entity 300 has fields i0, the key, and whatever else the test names. What is exploded is derived again from
 * its bytes, and must come to the same changes. */
#ifndef TEST_LIB_EXPLODE_H
#define TEST_LIB_EXPLODE_H

#include "base/bytes.h"
#include "core/project/explode.h"
#include "test/lib/entities.h"
#include "test/lib/state.h"

#define NONE   INT64_MIN /* null */
#define NO_ROW (INT64_MIN + 1)

struct bed {
    struct state_bed state;
    struct entities entities;
    struct schema_type *type;
    struct event event;
    struct derivation derivation;
    struct operation_maker maker;
    struct reads reads;
    struct explosion explosion;
    uint8_t scratch[STATE_SCRATCH_BYTES];
    struct changes changes;
    pawl_error error;
};

static inline void open_bed(struct bed *b, const char *fields)
{
    memset(b, 0, sizeof *b);
    state_bed_open(&b->state);
    b->state.state.scratch = b->scratch;
    entities_init(&b->entities, 5);
    b->type = entities_add(&b->entities, fields, 1);
    b->event.envelope.wsid = 7;
    b->event.head.schema = 5;
    b->derivation = (struct derivation){.offset = 50, .event = &b->event, .schema = &b->entities.schema};
    operation_maker_init(&b->maker, &b->state.alloc.allocator);
    reads_init(&b->reads, &b->state.alloc.allocator);
    b->explosion = (struct explosion){
        .derivation = &b->derivation, .generation = ENTITY_GENERATION, .writes = &b->maker, .reads = &b->reads};
}

static inline void close_bed(struct bed *b)
{
    entities_release(&b->entities);
    operation_maker_release(&b->maker);
    reads_release(&b->reads);
    state_bed_close(&b->state);
}

static inline const struct expr *expr(struct bed *b, enum value_type want, const char *text)
{
    return entities_expr(&b->entities, b->type, want, text);
}

static inline struct value number(int64_t n)
{
    struct value value = {.type = VALUE_INT64, .integer = n};
    if (n == NONE)
        value.type = VALUE_NULL;
    return value;
}

static inline pawl_bytes key_of(struct bed *b, int64_t id, uint8_t *room)
{
    struct value key = number(id);
    key_of_workspace(schema_table(b->type, ENTITY_GENERATION), b->event.envelope.wsid, room);
    return (pawl_bytes){room, KEY_WORKSPACE + row_key_write(&key, 1, room + KEY_WORKSPACE, 9)};
}

/* A row as an earlier schema wrote it: count fields. */
static inline void put(struct bed *b, int64_t id, const struct value *values, size_t count)
{
    uint8_t key[64], *row;
    size_t size;
    assert_ok(row_size(values, count, &size));
    row = malloc(size);
    assert_non_null(row);
    row_write(values, count, row);
    assert_ok(pawl_store_put(b->state.store, STATE_SPACE, key_of(b, id, key), (pawl_bytes){row, size}));
    free(row);
}

static inline void put_numbers(struct bed *b, int64_t id, int64_t x, int64_t y)
{
    struct value values[] = {number(id), number(x), number(y), {.type = VALUE_NULL}};
    put(b, id, values, 4);
}

static inline int64_t get(struct bed *b, int64_t id, size_t place)
{
    uint8_t key[64];
    pawl_bytes bytes;
    struct row row;
    if (state_get(&b->state.state, key_of(b, id, key), &bytes) != PAWL_OK)
        return NO_ROW;
    assert_ok(row_open(b->type->fields, b->type->field_count, bytes, &row, NULL));
    assert_int_equal(row_fields(row), b->type->field_count);
    struct value v = row_get(row, place, VALUE_INT64);
    return v.type == VALUE_NULL ? NONE : v.integer;
}

static inline int run(struct bed *b, const struct intent *intents, size_t count)
{
    b->explosion.intents = intents;
    b->explosion.intent_count = count;
    return explode(&b->explosion, &b->state.state, &b->state.memory, &b->changes, &b->error);
}

/* The same from the log, on the same state: the same changes, byte by byte. */
static inline void check_derived(struct bed *b)
{
    struct operation o = {.kind = OPERATION_WRITES, .wsid = b->event.envelope.wsid};
    pawl_bytes bytes;
    struct changes derived;
    overlay_remove(&b->state.overlay, &b->changes);
    assert_ok(operation_maker_writes(&b->maker, &o.writes, &o.count));
    assert_ok(operation_encode(&o, &b->state.memory, &bytes));
    assert_ok(operation_decode(bytes, &o, NULL));
    assert_ok(operation_derive(&o, &b->entities.schema, ENTITY_GENERATION, &b->state.state, &b->state.memory,
                               &derived, &b->error));
    assert_int_equal(derived.count, b->changes.count);
    const struct row_change *x = b->changes.first, *y = derived.first;
    for (; x && y; x = x->next, y = y->next) {
        assert_true(bytes_equal(x->key, y->key) && bytes_equal(x->value, y->value));
        assert_true((x->value.data == NULL) == (y->value.data == NULL));
        assert_true(pawl_digest_equal(&x->digest, &y->digest));
    }
    assert_true(!x && !y);
    b->changes = derived;
}

static inline void run_well(struct bed *b, const struct intent *intents, size_t count)
{
    int status = run(b, intents, count);
    if (status != PAWL_OK)
        print_error("%s\n", b->error.text);
    assert_ok(status);
    check_derived(b);
}

#endif

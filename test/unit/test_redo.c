/* Operations applied again: many in one transaction, whose rows are read only when they are put, give the same
 * tables as one transaction each. */
#include "core/project/redo.h"
#include "test/lib/explode.h"
#include "test/lib/test.h"

#define KEYS       5
#define OPERATIONS 60
#define FIELDS     ((size_t)5)

/* One store that operations are applied to. */
struct side {
    struct state_bed state;
    struct cursor cursor;
    struct gathered gathered;
    struct redo redo;
    uint8_t scratch[STATE_SCRATCH_BYTES];
    pawl_error error;
};

static const struct schema *the_schema(void *ctx, uint64_t position)
{
    const struct schema *schema = ctx;
    return schema->position == position ? schema : NULL;
}

static void open_side(struct side *s, struct bed *b, bool at_once)
{
    memset(s, 0, sizeof *s);
    state_bed_open(&s->state);
    const pawl_allocator *alloc = &s->state.alloc.allocator;
    cursor_init(&s->cursor, alloc, 0, 1, ENTITY_GENERATION);
    gathered_init(&s->gathered, alloc);
    s->redo = (struct redo){.store = s->state.store,
                            .cursor = &s->cursor,
                            .gathered = &s->gathered,
                            .memory = &s->state.memory,
                            .scratch = s->scratch,
                            .schema_at = the_schema,
                            .ctx = &b->entities.schema,
                            .at_once = at_once};
}

static void close_side(struct side *s)
{
    gathered_release(&s->gathered);
    cursor_release(&s->cursor);
    state_bed_close(&s->state);
}

static int apply(struct side *s, struct bed *b, uint64_t number)
{
    struct operation o = {.kind = OPERATION_WRITES, .number = number, .event = number, .wsid = 7, .schema = 5};
    pawl_bytes body;
    assert_ok(operation_maker_writes(&b->maker, &o.writes, &o.count));
    assert_ok(operation_encode(&o, &b->state.memory, &body));
    int status = redo_operation(&s->redo, number, (pawl_place){.position = number}, body, &s->error);
    if (body.size)
        memset((void *)(uintptr_t)body.data, 0x5a, body.size); /* it is borrowed for the call */
    return status;
}

static int64_t value_at(struct side *s, struct bed *b, int64_t id, size_t place)
{
    struct state_bed kept = b->state;
    b->state.state = (struct state){.reader = pawl_store_writer(s->state.store)};
    int64_t value = get(b, id, place);
    b->state = kept;
    return value;
}

/* One row: what it sets, by place, NONE for null, and NO_ROW for what it leaves. */
static void write_row(struct bed *b, enum action_kind kind, int64_t id, const int64_t *sets)
{
    struct value values[FIELDS] = {{0}}, key = number(id);
    uint64_t set = 0;
    uint8_t own[9];
    for (size_t i = 1; sets && i < FIELDS; i++)
        if (sets[i] != NO_ROW) {
            values[i] = number(sets[i]);
            fields_put(&set, i);
        }
    operation_maker_write(&b->maker, kind, b->type->id);
    operation_maker_row(&b->maker, (pawl_bytes){own, row_key_write(&key, 1, own, sizeof own)},
                        sets ? values : NULL, sets ? &set : NULL, FIELDS);
}

TEST(a_change_that_leaves_nothing_of_the_one_before_it_takes_its_place)
{
    static const struct {
        int64_t first[FIELDS], second[FIELDS];
        int64_t now[FIELDS];
    } cases[] = {
        {{0, 1, 2, NO_ROW, NO_ROW}, {0, 3, 4, NO_ROW, NO_ROW}, {0, 3, 4, NONE, NONE}},
        {{0, 1, 2, NO_ROW, NO_ROW}, {0, 3, 4, 5, NO_ROW}, {0, 3, 4, 5, NONE}},
        {{0, 1, 2, 5, NO_ROW}, {0, 3, 4, NO_ROW, NO_ROW}, {0, 3, 4, 5, NONE}},
        {{0, 1, NO_ROW, NO_ROW, NO_ROW}, {0, NO_ROW, 4, NO_ROW, NO_ROW}, {0, 1, 4, NONE, NONE}},
        {{0, 1, 2, NO_ROW, NO_ROW}, {0, NONE, 4, NO_ROW, NO_ROW}, {0, NONE, 4, NONE, NONE}},
        {{0, 1, NONE, NO_ROW, NO_ROW}, {0, 3, NO_ROW, NO_ROW, NO_ROW}, {0, 3, NONE, NONE, NONE}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bed b;
        struct side s;
        open_bed(&b, "iiiii");
        open_side(&s, &b, false);
        write_row(&b, ACTION_UPSERT, 1, cases[i].first);
        assert_ok(apply(&s, &b, 1));
        operation_maker_reset(&b.maker);
        write_row(&b, ACTION_UPSERT, 1, cases[i].second);
        assert_ok(apply(&s, &b, 2));
        assert_ok(redo_commit(&s.redo, &s.error));
        for (size_t k = 1; k < FIELDS; k++)
            assert_true(value_at(&s, &b, 1, k) == cases[i].now[k]);
        close_side(&s);
        close_bed(&b);
    }
}

TEST(a_row_that_is_not_there_is_told_with_its_operation_when_rows_are_put)
{
    static const enum action_kind kinds[] = {ACTION_UPDATE, ACTION_DELETE};
    const int64_t sets[FIELDS] = {0, 1, NO_ROW, NO_ROW, NO_ROW};
    for (size_t i = 0; i < 2; i++) {
        struct bed b;
        struct side s;
        open_bed(&b, "iiiii");
        open_side(&s, &b, false);
        write_row(&b, ACTION_UPSERT, 1, sets);
        assert_ok(apply(&s, &b, 1));
        operation_maker_reset(&b.maker);
        write_row(&b, kinds[i], 2, kinds[i] == ACTION_DELETE ? NULL : sets);
        assert_ok(apply(&s, &b, 2));
        operation_maker_reset(&b.maker);
        write_row(&b, ACTION_UPSERT, 2, sets); /* which does not make good for it */
        assert_ok(apply(&s, &b, 3));
        assert_status(redo_commit(&s.redo, &s.error), PAWL_ECORRUPT);
        assert_contains(s.error.text, "operation 2");
        assert_contains(s.error.text, "is not there");
        close_side(&s);
        close_bed(&b);
    }
}

struct sum {
    uint32_t table;
    pawl_digest digest;
};

static bool sum_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct sum *sum = arg;
    if (key_table(key) == sum->table)
        pawl_digest_add(&sum->digest, key, value);
    return true;
}

static pawl_digest sum_of(struct side *s, const struct bed *b)
{
    struct sum sum = {.table = schema_table(b->type, ENTITY_GENERATION)};
    pawl_range all = {.space = STATE_SPACE};
    assert_ok(pawl_store_scan(pawl_store_writer(s->state.store), all, false, sum_row, &sum));
    pawl_digest kept = digests_of(&s->cursor.digests, sum.table);
    assert_true(pawl_digest_equal(&sum.digest, &kept));
    return kept;
}

/* A random one that fits what is there. */
static void choose(struct bed *b, uint64_t *seed, bool there[KEYS])
{
    operation_maker_reset(&b->maker);
    for (uint64_t left = 1 + test_below(seed, 3); left > 0; left--) {
        size_t id = test_below(seed, KEYS);
        int64_t sets[FIELDS] = {0};
        for (size_t i = 1; i < FIELDS; i++)
            sets[i] = test_below(seed, 3) ? NO_ROW : test_below(seed, 4) ? (int64_t)test_below(seed, 9) : NONE;
        enum action_kind kind = there[id] ? ACTION_UPDATE : ACTION_UPSERT;
        if (there[id] && test_below(seed, 3) == 0)
            kind = test_below(seed, 2) ? ACTION_DELETE : ACTION_UPSERT;
        write_row(b, kind, (int64_t)id, kind == ACTION_DELETE ? NULL : sets);
        there[id] = kind != ACTION_DELETE;
    }
}

TEST(operations_applied_together_come_to_what_they_come_to_one_by_one)
{
    uint64_t seed = test_seed(1);
    for (unsigned round = 0; round < 300; round++) {
        struct bed b;
        struct side one_by_one, together;
        bool there[KEYS] = {false};
        open_bed(&b, "iiiii");
        open_side(&one_by_one, &b, true);
        open_side(&together, &b, test_below(&seed, 4) == 0);
        for (uint64_t n = 1; n <= OPERATIONS; n++) {
            choose(&b, &seed, there);
            assert_ok(apply(&one_by_one, &b, n));
            assert_ok(redo_commit(&one_by_one.redo, NULL));
            assert_ok(apply(&together, &b, n));
            if (test_below(&seed, 30) == 0)
                assert_ok(redo_commit(&together.redo, NULL));
        }
        assert_ok(redo_commit(&together.redo, NULL));
        pawl_digest x = sum_of(&one_by_one, &b), y = sum_of(&together, &b);
        assert_true(pawl_digest_equal(&x, &y));
        assert_int_equal(one_by_one.cursor.checksum, together.cursor.checksum);
        close_side(&one_by_one);
        close_side(&together);
        close_bed(&b);
    }
}

TEST(without_memory_it_fails_and_can_be_done_again)
{
    const int64_t sets[FIELDS] = {0, 1, 2, NO_ROW, NO_ROW}, more[FIELDS] = {0, NO_ROW, NO_ROW, 3, NO_ROW};
    for (uint64_t k = 1;; k++) {
        struct bed b;
        struct side s;
        open_bed(&b, "iiiii");
        open_side(&s, &b, false);
        test_alloc_fail(&s.state.alloc, k, TEST_ALLOC_ONCE);
        write_row(&b, ACTION_UPSERT, 1, sets);
        write_row(&b, ACTION_UPSERT, 1, more);
        int status = apply(&s, &b, 1);
        if (status == PAWL_OK)
            status = redo_commit(&s.redo, &s.error);
        bool failed = test_alloc_failed(&s.state.alloc);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        if (failed) {
            pawl_store_abort(s.state.store);
            gathered_clear(&s.gathered);
            assert_ok(cursor_read(&s.cursor, pawl_store_writer(s.state.store), NULL));
            assert_ok(apply(&s, &b, 1));
            assert_ok(redo_commit(&s.redo, &s.error));
        }
        assert_true(value_at(&s, &b, 1, 3) == 3);
        (void)sum_of(&s, &b);
        close_side(&s);
        close_bed(&b);
        if (!failed)
            break;
    }
}

/* A row of 64 KiB that becomes a byte longer each time. */
TEST(a_row_that_grows_again_and_again_takes_no_memory_for_each_time)
{
    static uint8_t bytes[(64 << 10) + 1000];
    struct bed b;
    struct side s;
    struct gathered_row *row;
    open_bed(&b, "iiiii");
    open_side(&s, &b, false);
    assert_ok(gathered_row(&s.gathered, text_bytes("a table's key"), &s.cursor.digests, &row));
    assert_ok(gathered_settle(&s.gathered, s.state.store, row, &s.error));
    for (size_t size = sizeof bytes - 1000; size <= sizeof bytes; size++) {
        assert_ok(gathered_set(&s.gathered, row, (pawl_bytes){bytes, size}));
        assert_int_equal(row->change.value.size, size);
    }
    assert_true(gathered_bytes(&s.gathered) < 8 * sizeof bytes);
    close_side(&s);
    close_bed(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_change_that_leaves_nothing_of_the_one_before_it_takes_its_place),
        RUN(a_row_that_is_not_there_is_told_with_its_operation_when_rows_are_put),
        RUN(operations_applied_together_come_to_what_they_come_to_one_by_one),
        RUN(without_memory_it_fails_and_can_be_done_again),
        RUN(a_row_that_grows_again_and_again_takes_no_memory_for_each_time),
    };
    return TEST_MAIN(tests);
}

#include "test/lib/test.h"

#include "base/bytes.h"
#include "core/project/operation.h"
#include "test/lib/alloc.h"

#define FIELDS 70 /* more than one word of bits */

static struct value number(int64_t n)
{
    return (struct value){.type = VALUE_INT64, .integer = n};
}

static pawl_bytes writes_of(const struct operation_maker *m, uint32_t *ret_count)
{
    pawl_bytes writes = {0};
    assert_ok(operation_maker_writes(m, &writes, ret_count));
    return writes;
}

static struct operation operation_of(const struct operation_maker *m)
{
    struct operation o = {.kind = OPERATION_WRITES,
                          .projector = 0x203,
                          .attempt = 5,
                          .number = 6,
                          .id = {7, 8},
                          .event = 9,
                          .wsid = 10,
                          .schema = 11,
                          .time = {-12}};
    o.writes = writes_of(m, &o.count);
    return o;
}

/* Two fields, of which the second is cleared; then a delete. */
static void make_two(struct operation_maker *m)
{
    struct value values[3] = {number(1), number(2), {.type = VALUE_NULL}};
    uint64_t set = 6;
    operation_maker_write(m, ACTION_UPDATE, 0x104);
    operation_maker_row(m, text_bytes("k"), values, &set, 3);
    operation_maker_write(m, ACTION_DELETE, 0x105);
    operation_maker_row(m, text_bytes("gone"), NULL, NULL, 3);
}

TEST(its_bytes_are_as_documented)
{
    static const uint8_t expected[] = {
        1,    1,    3,    2,    5,    0,    0,    0,    6,   0,   0,   0,  0, 0, 0, 0, /* to 16 */
        7,    0,    0,    0,    0,    0,    0,    0,    8,   0,   0,   0,  0, 0, 0, 0, /* the ID: to 32 */
        9,    0,    0,    0,    0,    0,    0,    0,    10,  0,   0,   0,  0, 0, 0, 0, /* to 48 */
        11,   0,    0,    0,    0,    0,    0,    0,                                   /* schema: to 56 */
        0xf4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,   0,   0,   0,  0, 0, 0, 0, /* to 72 */
        2,    0,    4,    1,    1,    0,    0,    0,                          /* an update of one row */
        1,    0,    1,    0,    13,   0,    0,    0,    'k',                  /* sizes, key */
        1,    0,    3,    0,    2,    2,    0,    0,    0,   0,   0,   0,  0, /* row: the second field is 2 */
        2,    0,                                                              /* cleared: the third */
        3,    0,    5,    1,    1,    0,    0,    0,                          /* a delete of one row */
        4,    0,    0,    0,    0,    0,    0,    0,    'g', 'o', 'n', 'e'};
    struct operation_maker m;
    struct arena arena;
    pawl_bytes bytes;
    operation_maker_init(&m, NULL);
    arena_init(&arena, NULL, 4096);
    make_two(&m);
    struct operation o = operation_of(&m);
    assert_ok(operation_encode(&o, &arena, &bytes));
    assert_int_equal(bytes.size, sizeof expected);
    assert_memory_equal(bytes.data, expected, sizeof expected);
    operation_maker_release(&m);
    arena_release(&arena);
}

TEST(a_void_is_its_reason_cut_between_characters)
{
    char text[OPERATION_REASON + 10];
    struct arena arena;
    struct operation o = {.kind = OPERATION_VOID, .number = 3}, read;
    pawl_bytes bytes;
    arena_init(&arena, NULL, 4096);
    memset(text, 'a', sizeof text);
    memcpy(text + OPERATION_REASON - 2, "\xe2\x82\xac", 3); /* its last byte is beyond */
    for (size_t size = 0; size <= sizeof text; size += 7) {
        size_t expected = size <= OPERATION_REASON ? size : OPERATION_REASON - 2;
        o.reason = (pawl_bytes){text, size};
        assert_ok(operation_encode(&o, &arena, &bytes));
        assert_ok(operation_decode(bytes, &read, NULL));
        assert_true(read.kind == OPERATION_VOID && read.number == 3 && read.count == 0);
        assert_true(read.writes.size == 0);
        assert_true(bytes_equal(read.reason, (pawl_bytes){text, expected}));
    }
    arena_release(&arena);
}

TEST(a_write_without_rows_is_left_out)
{
    for (unsigned with = 0; with < 16; with++) { /* bit i: write i has a row */
        struct operation_maker m;
        uint32_t count, expected = 0;
        operation_maker_init(&m, NULL);
        for (uint16_t i = 0; i < 4; i++) {
            operation_maker_write(&m, ACTION_DELETE, (uint16_t)(i + 1));
            if (with >> i & 1)
                operation_maker_row(&m, text_bytes("key"), NULL, NULL, 0);
            expected += with >> i & 1;
        }
        struct operation o = {.kind = OPERATION_WRITES};
        o.writes = writes_of(&m, &o.count);
        count = o.count;
        assert_int_equal(count, expected);
        struct operation_write write;
        unsigned found = 0;
        for (size_t at = 0; operation_next_write(&o, &at, &write);) {
            assert_int_equal(write.rows, 1);
            found |= 1u << (write.entity - 1);
        }
        assert_int_equal(found, with);
        operation_maker_release(&m);
    }
}

/* One row as it was given. */
struct given {
    enum action_kind kind;
    uint16_t entity;
    char key[24];
    uint64_t set[2];
    int64_t values[FIELDS]; /* 0: null */
};

static void check_row(const struct given *g, const struct operation_row *row)
{
    static struct schema_field fields[FIELDS];
    for (size_t i = 0; i < FIELDS; i++)
        fields[i].type = VALUE_INT64;
    assert_true(bytes_equal(row->key, text_bytes(g->key)));
    assert_true((g->kind == ACTION_DELETE) == (row->set.size == 0));
    if (g->kind == ACTION_DELETE)
        return;
    struct row set;
    size_t cleared = 0;
    assert_ok(row_open(fields, FIELDS, row->set, &set, NULL));
    for (size_t i = 0; i < FIELDS; i++) {
        bool is_set = fields_have(g->set, i);
        assert_int_equal(row_has(set, i), is_set && g->values[i] != 0);
        if (row_has(set, i))
            assert_true(row_get(set, i, VALUE_INT64).integer == g->values[i]);
        if (is_set && g->values[i] == 0)
            assert_int_equal(operation_cleared(row, cleared++), i);
    }
    assert_int_equal(row->cleared_count, cleared);
}

static size_t make_random(struct operation_maker *m, struct given *given, size_t max, uint64_t *random)
{
    size_t count = 0;
    operation_maker_reset(m);
    for (uint64_t w = test_below(random, 4); w > 0; w--) {
        enum action_kind kind = (enum action_kind)(1 + test_below(random, 3));
        uint16_t entity = (uint16_t)(1 + test_below(random, 9));
        operation_maker_write(m, kind, entity);
        for (uint64_t r = test_below(random, 4); r > 0 && count < max; r--) {
            struct given *g = &given[count++];
            struct value values[FIELDS];
            *g = (struct given){.kind = kind, .entity = entity};
            snprintf(g->key, sizeof g->key, "%" PRIu64, test_random(random) >> test_below(random, 60));
            g->set[0] = test_random(random);
            g->set[1] = test_random(random) & 63;
            for (size_t i = 0; i < FIELDS; i++) {
                g->values[i] = (int64_t)test_below(random, 3);
                values[i] = g->values[i] ? number(g->values[i]) : (struct value){.type = VALUE_NULL};
            }
            bool deletes = kind == ACTION_DELETE;
            operation_maker_row(m, text_bytes(g->key), deletes ? NULL : values, deletes ? NULL : g->set,
                                FIELDS);
        }
    }
    return count;
}

TEST(what_was_made_is_read_back)
{
    uint64_t random = test_seed(20261101);
    struct operation_maker m;
    struct arena arena;
    operation_maker_init(&m, NULL);
    arena_init(&arena, NULL, 4096);
    for (int i = 0; i < 2000; i++) {
        static struct given given[16];
        size_t count = make_random(&m, given, 16, &random), seen = 0;
        struct operation o = operation_of(&m), read;
        pawl_bytes bytes;
        struct operation_write write;
        struct operation_row row;
        assert_ok(operation_encode(&o, &arena, &bytes));
        assert_ok(operation_decode(bytes, &read, NULL));
        assert_true(read.number == o.number && id128_equal(read.id, o.id) && read.time.ns == o.time.ns);
        assert_true(read.event == o.event && read.wsid == o.wsid && read.schema == o.schema);
        assert_true(read.attempt == o.attempt && read.projector == o.projector && read.count == o.count);
        for (size_t at = 0; operation_next_write(&read, &at, &write);) {
            uint32_t rows = 0;
            for (size_t in = 0; operation_next_row(&write, &in, &row); rows++) {
                assert_true(seen < count && given[seen].entity == write.entity);
                assert_true(given[seen].kind == write.kind);
                check_row(&given[seen++], &row);
            }
            assert_int_equal(rows, write.rows);
        }
        assert_int_equal(seen, count);
        arena_reset(&arena);
    }
    operation_maker_release(&m);
    arena_release(&arena);
}

TEST(bytes_that_are_no_operation_are_refused)
{
    static const struct {
        size_t at;
        uint8_t value;
        int status;
        const char *words;
    } cases[] = {
        {0, 0, PAWL_ECORRUPT, "byte 0"},
        {0, 2, PAWL_EVERSION, "version 2"},
        {1, 0, PAWL_ECORRUPT, "byte 0"},
        {1, 2, PAWL_ECORRUPT, "byte 0"},
        {1, OPERATION_VOID, PAWL_ECORRUPT, "reason"},
        {68, 1, PAWL_ECORRUPT, "byte 0"},
        {64, 1, PAWL_ECORRUPT, "there are bytes behind the last write"},
        {64, 3, PAWL_ECORRUPT, "head of a write"},
        {72, 0, PAWL_ECORRUPT, "byte 80: this is not the head of a write"},
        {72, 4, PAWL_ECORRUPT, "head of a write"},
        {72, 3, PAWL_ECORRUPT, "head of a row"}, /* a delete that sets */
        {73, 1, PAWL_ECORRUPT, "head of a write"},
        {76, 0, PAWL_ECORRUPT, "head of a write"}, /* no rows */
        {76, 2, PAWL_ECORRUPT, "ascend"},          /* the second write, as a row */
        {80, 0, PAWL_ECORRUPT, "head of a row"},   /* no key */
        {82, 2, PAWL_ECORRUPT, "byte 114: this is not the head of a write"},
        {82, 3, PAWL_ECORRUPT, "head of a write"},
        {82, 200, PAWL_ECORRUPT, "ascend"},
        {83, 0xff, PAWL_ECORRUPT, "larger"},
        {87, 0xff, PAWL_ECORRUPT, "larger"},
        {104, 3, PAWL_ECORRUPT, "head of a write"}, /* behind the cleared place: see below */
    };
    struct operation_maker m;
    struct arena arena;
    pawl_bytes bytes;
    operation_maker_init(&m, NULL);
    arena_init(&arena, NULL, 4096);
    make_two(&m);
    struct operation o = operation_of(&m), read = {.number = 77};
    assert_ok(operation_encode(&o, &arena, &bytes));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t copy[200];
        pawl_error error = {0};
        memcpy(copy, bytes.data, bytes.size);
        copy[cases[i].at] = cases[i].value;
        if (cases[i].at == 104) /* the second write is of no entity */
            copy[106] = copy[107] = 0;
        assert_status(operation_decode((pawl_bytes){copy, bytes.size}, &read, &error), cases[i].status);
        assert_contains(error.text, cases[i].words);
    }
    for (size_t size = 0; size < bytes.size; size++)
        assert_status(operation_decode((pawl_bytes){bytes.data, size}, &read, NULL), PAWL_ECORRUPT);
    assert_true(read.number == 77);
    operation_maker_release(&m);
    arena_release(&arena);
}

TEST(more_than_an_operation_holds_is_refused_and_remembered)
{
    struct operation_maker m;
    struct value value = {.type = VALUE_BYTES, .bytes = {.size = (size_t)15 << 20}};
    uint64_t set = 1;
    void *large = calloc(1, value.bytes.size);
    assert_non_null(large);
    value.bytes.data = large;
    pawl_bytes writes = {.size = 5};
    uint32_t count = 5;
    operation_maker_init(&m, NULL);
    operation_maker_write(&m, ACTION_UPSERT, 1);
    for (int i = 0; i < 4; i++)
        operation_maker_row(&m, text_bytes("key"), &value, &set, 1);
    assert_ok(m.status);
    operation_maker_row(&m, text_bytes("key"), &value, &set, 1);
    assert_status(operation_maker_writes(&m, &writes, &count), PAWL_ETOOBIG);
    operation_maker_write(&m, ACTION_DELETE, 1);
    operation_maker_row(&m, text_bytes("key"), NULL, NULL, 0);
    assert_status(operation_maker_writes(&m, &writes, &count), PAWL_ETOOBIG);
    assert_true(writes.size == 5 && count == 5);

    operation_maker_reset(&m);
    make_two(&m);
    assert_ok(operation_maker_writes(&m, &writes, &count));
    assert_int_equal(count, 2);
    operation_maker_release(&m);
    free(large);
}

TEST(every_allocation_of_a_maker_may_fail)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct operation_maker m;
        struct arena arena;
        pawl_bytes writes, bytes = {0};
        uint32_t count;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        operation_maker_init(&m, &memory.allocator);
        arena_init(&arena, &memory.allocator, 1);
        for (int i = 0; i < 40; i++)
            make_two(&m);
        int status = operation_maker_writes(&m, &writes, &count);
        if (status == PAWL_OK) {
            struct operation o = operation_of(&m);
            assert_int_equal(count, 80);
            status = operation_encode(&o, &arena, &bytes);
        }
        bool failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        operation_maker_reset(&m);
        make_two(&m);
        assert_ok(operation_maker_writes(&m, &writes, &count));
        operation_maker_release(&m);
        arena_release(&arena);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(its_bytes_are_as_documented),
        RUN(a_void_is_its_reason_cut_between_characters),
        RUN(a_write_without_rows_is_left_out),
        RUN(what_was_made_is_read_back),
        RUN(bytes_that_are_no_operation_are_refused),
        RUN(more_than_an_operation_holds_is_refused_and_remembered),
        RUN(every_allocation_of_a_maker_may_fail),
    };
    return TEST_MAIN(tests);
}

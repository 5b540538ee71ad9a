#include "test/lib/test.h"

#include "core/state/position.h"
#include "test/lib/state.h"

#define TABLES ((uint32_t)40)

static pawl_bytes table_key(uint32_t table, uint64_t number, uint8_t key[KEY_NUMBERED])
{
    return key_numbered(table, 7, number, key);
}

/* One change of its own event. */
static struct changes change(struct state_bed *bed, uint32_t table, uint64_t number, pawl_bytes value)
{
    struct changes changes = {0};
    uint8_t key[KEY_NUMBERED];
    assert_ok(state_bed_change(bed, &bed->memory, &changes, table_key(table, number, key), value));
    return changes;
}

/* The position's sums are those of the rows that are there. */
static void assert_sums(const struct position *p, pawl_store *store)
{
    for (uint32_t table = 256; table < 256 + TABLES; table++) {
        uint8_t from[KEY_TABLE], to[KEY_TABLE];
        pawl_digest expected, got = digests_of(&p->digests, table);
        put_u32_sorted(from, table);
        put_u32_sorted(to, table + 1);
        pawl_range range = {STATE_SPACE, {from, KEY_TABLE}, {to, KEY_TABLE}};
        assert_ok(pawl_store_digest(pawl_store_writer(store), range, &expected));
        assert_true(pawl_digest_equal(&got, &expected));
    }
    for (size_t i = 1; i < p->digests.count; i++)
        assert_true(p->digests.tables[i - 1].table < p->digests.tables[i].table);
}

static void assert_same(const struct position *a, const struct position *b)
{
    assert_true(a->offset == b->offset && a->checksum == b->checksum);
    assert_true(a->place.position == b->place.position && a->place.hint == b->place.hint);
    for (uint32_t table = 256; table < 256 + TABLES; table++) {
        pawl_digest x = digests_of(&a->digests, table), y = digests_of(&b->digests, table);
        assert_true(pawl_digest_equal(&x, &y));
    }
}

static void assert_reads_back(const struct position *p, struct state_bed *bed)
{
    struct position read;
    position_init(&read, &bed->alloc.allocator, p->partition);
    assert_ok(position_read(&read, pawl_store_writer(bed->store), NULL));
    assert_same(&read, p);
    position_release(&read);
}

TEST(a_partition_that_was_never_written_is_at_the_beginning)
{
    struct state_bed bed;
    struct position p;
    state_bed_open(&bed);
    position_init(&p, &bed.alloc.allocator, 3);
    p.offset = 9;
    p.checksum = 9;
    assert_ok(position_read(&p, pawl_store_writer(bed.store), NULL));
    assert_true(p.offset == 0 && p.checksum == 0 && p.place.position == 0 && p.digests.count == 0);
    position_release(&p);
    state_bed_close(&bed);
}

TEST(a_position_reads_back_as_it_was_written_beside_those_of_other_partitions)
{
    struct state_bed bed;
    struct position positions[3];
    state_bed_open(&bed);
    for (uint16_t i = 0; i < 3; i++) {
        struct position *p = &positions[i];
        position_init(p, &bed.alloc.allocator, (uint16_t)(i * 30000));
        for (uint32_t table = 0; table <= i * 15u; table++) {
            struct changes c = change(&bed, 256 + TABLES - 1 - table, i, text_bytes("row"));
            assert_ok(digests_add(&p->digests, &c));
        }
        p->offset = 100 + i;
        p->place = (pawl_place){UINT64_MAX - i, i};
        p->checksum = UINT64_C(0x8000000000000001) + i;
        assert_ok(position_write(p, bed.store));
    }
    for (uint16_t i = 0; i < 3; i++) {
        assert_reads_back(&positions[i], &bed);
        position_release(&positions[i]);
    }
    state_bed_close(&bed);
}

TEST(its_bytes_are_as_documented)
{
    static const uint8_t key[] = {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3};
    static const uint8_t expected[] = {1, 0, 3, 2, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, /* to 16 */
                                       6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, /* the place: to 32 */
                                       8, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0};
    struct state_bed bed;
    struct position p;
    pawl_bytes bytes;
    state_bed_open(&bed);
    position_init(&p, &bed.alloc.allocator, 0x203);
    struct changes c = change(&bed, 0x104, 1, text_bytes("row"));
    assert_ok(digests_add(&p.digests, &c));
    p.offset = 5;
    p.place = (pawl_place){6, 7};
    p.checksum = 8;
    assert_ok(position_write(&p, bed.store));
    assert_ok(pawl_store_get(pawl_store_writer(bed.store), STATE_SPACE, (pawl_bytes){key, sizeof key}, &bytes));
    assert_int_equal(bytes.size, 68);
    assert_memory_equal(bytes.data, expected, sizeof expected);
    const uint8_t *sums = (const uint8_t *)bytes.data + sizeof expected;
    assert_true(get_u64(sums) == c.first->digest.low && get_u64(sums + 8) == c.first->digest.high);
    assert_true(get_u64(sums + 16) == 1);
    position_release(&p);
    state_bed_close(&bed);
}

struct run {
    struct state_bed bed;
    struct position position;
    uint64_t random;
};

static struct changes random_event(struct run *run)
{
    struct changes changes = {0};
    for (uint64_t n = 1 + test_below(&run->random, 8); n > 0; n--) {
        uint8_t key[KEY_NUMBERED], value[8];
        uint32_t table = 256 + (uint32_t)test_below(&run->random, TABLES);
        pawl_bytes at = table_key(table, test_below(&run->random, 3), key), old;
        bool there = state_get(&run->bed.state, at, &old) == PAWL_OK;
        put_u64(value, test_random(&run->random));
        pawl_bytes now = {value, sizeof value};
        if (there && test_below(&run->random, 2))
            now = (pawl_bytes){0};
        assert_ok(state_bed_change(&run->bed, &run->bed.memory, &changes, at, now));
    }
    return changes;
}

/* A batch of events in one transaction, which may fail in its middle or at its end. */
static void random_batch(struct run *run)
{
    struct changes events[4];
    size_t count = 1 + test_below(&run->random, 4), added = 0;
    uint64_t before = run->position.offset;
    bool fails = test_below(&run->random, 3) == 0;
    int status = PAWL_OK;
    for (size_t i = 0; i < count; i++)
        events[i] = random_event(run);
    if (fails)
        mem_store_disk_fail(
            run->bed.disk,
            (struct mem_store_fault){.op = test_below(&run->random, 2) ? MEM_STORE_COMMIT : MEM_STORE_PUT,
                                     .countdown = 1,
                                     .times = 1,
                                     .status = PAWL_EFULL});
    for (; status == PAWL_OK && added < count; added++) {
        assert_ok(digests_add(&run->position.digests, &events[added]));
        run->position.offset++;
        status = state_bed_write(run->bed.store, &events[added]);
    }
    if (status == PAWL_OK)
        status = position_write(&run->position, run->bed.store);
    if (status == PAWL_OK)
        status = pawl_store_commit(run->bed.store);
    else
        pawl_store_abort(run->bed.store);
    if (status != PAWL_OK) {
        run->position.offset = before;
        while (added-- > 0)
            digests_subtract(&run->position.digests, &events[added]);
    }
    for (size_t i = 0; i < count; i++)
        overlay_remove(&run->bed.overlay, &events[i]);
}

TEST(sums_are_those_of_the_rows_whatever_was_committed_and_whatever_failed)
{
    struct run run = {.random = test_seed(20260702)};
    state_bed_open(&run.bed);
    position_init(&run.position, &run.bed.alloc.allocator, 1);
    for (int i = 0; i < 300; i++) {
        random_batch(&run);
        assert_sums(&run.position, run.bed.store);
        assert_reads_back(&run.position, &run.bed);
        arena_reset(&run.bed.memory);
    }
    position_release(&run.position);
    state_bed_close(&run.bed);
}

TEST(taking_back_what_was_added_leaves_no_trace_in_the_row)
{
    struct state_bed bed;
    struct position p;
    pawl_bytes before, after;
    uint8_t key[12] = {0, 0, 0, TABLE_PARTITION}, copy[256];
    state_bed_open(&bed);
    position_init(&p, &bed.alloc.allocator, 0);
    struct changes kept = change(&bed, 300, 1, text_bytes("kept"));
    assert_ok(digests_add(&p.digests, &kept));
    assert_ok(position_write(&p, bed.store));
    assert_ok(pawl_store_get(bed.state.reader, STATE_SPACE, (pawl_bytes){key, 12}, &before));
    memcpy(copy, before.data, before.size);
    struct changes gone = change(&bed, 299, 1, text_bytes("gone"));
    assert_ok(digests_add(&p.digests, &gone));
    digests_subtract(&p.digests, &gone);
    assert_ok(position_write(&p, bed.store));
    assert_ok(pawl_store_get(bed.state.reader, STATE_SPACE, (pawl_bytes){key, 12}, &after));
    assert_int_equal(after.size, before.size);
    assert_memory_equal(after.data, copy, before.size);
    position_release(&p);
    state_bed_close(&bed);
}

/* Rows that cancel out in number and not in content can only come from a bug; the row must not hide it. */
TEST(a_sum_without_rows_that_is_not_zero_is_kept)
{
    struct state_bed bed;
    struct position p;
    state_bed_open(&bed);
    position_init(&p, &bed.alloc.allocator, 0);
    struct row_change wrong = {.digest = {.low = 5}};
    uint8_t key[KEY_NUMBERED];
    wrong.key = table_key(256, 1, key);
    assert_ok(digests_add(&p.digests, &(struct changes){.first = &wrong, .last = &wrong, .count = 1}));
    assert_ok(position_write(&p, bed.store));
    assert_reads_back(&p, &bed);
    position_release(&p);
    state_bed_close(&bed);
}

TEST(sums_carry_and_borrow_across_64_bits)
{
    struct state_bed bed;
    struct position p;
    uint8_t key[KEY_NUMBERED];
    struct row_change c = {.key = table_key(256, 1, key), .digest = {.low = UINT64_MAX, .rows = 1}};
    struct changes changes = {.first = &c, .last = &c, .count = 1};
    state_bed_open(&bed);
    position_init(&p, &bed.alloc.allocator, 0);
    for (int i = 0; i < 3; i++)
        assert_ok(digests_add(&p.digests, &changes));
    pawl_digest sum = digests_of(&p.digests, 256);
    assert_true(sum.low == UINT64_MAX - 2 && sum.high == 2 && sum.rows == 3);
    for (int i = 0; i < 3; i++)
        digests_subtract(&p.digests, &changes);
    sum = digests_of(&p.digests, 256);
    assert_true(sum.low == 0 && sum.high == 0 && sum.rows == 0);
    position_release(&p);
    state_bed_close(&bed);
}

TEST(a_row_that_is_no_position_is_refused_and_leaves_it_as_it_was)
{
    static const struct {
        size_t at;
        uint8_t value;
        int status;
        const char *words;
    } cases[] = {
        {0, 2, PAWL_EVERSION, "version 2"},     {0, 0, PAWL_ECORRUPT, "is not one"},
        {1, 1, PAWL_ECORRUPT, "is not one"},    {2, 1, PAWL_ECORRUPT, "is not one"}, /* another partition's */
        {4, 1, PAWL_ECORRUPT, "is not one"},    {4, 3, PAWL_ECORRUPT, "is not one"},
        {7, 0xff, PAWL_ECORRUPT, "is not one"}, {68, 0, PAWL_ECORRUPT, "no order"}, /* equal tables */
        {40, 9, PAWL_ECORRUPT, "no order"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct state_bed bed;
        struct position p, before;
        uint8_t key[12] = {0, 0, 0, TABLE_PARTITION}, copy[96];
        pawl_bytes row;
        pawl_error error = {0};
        state_bed_open(&bed);
        position_init(&p, &bed.alloc.allocator, 0);
        position_init(&before, &bed.alloc.allocator, 0);
        for (uint32_t table = 256; table < 258; table++) {
            struct changes c = change(&bed, table, 1, text_bytes("row"));
            assert_ok(digests_add(&p.digests, &c));
            if (table == 256)
                assert_ok(digests_add(&before.digests, &c));
        }
        assert_ok(position_write(&p, bed.store));
        assert_ok(pawl_store_get(bed.state.reader, STATE_SPACE, (pawl_bytes){key, 12}, &row));
        assert_int_equal(row.size, 96);
        memcpy(copy, row.data, 96);
        copy[cases[i].at] = cases[i].value;
        assert_ok(pawl_store_put(bed.store, STATE_SPACE, (pawl_bytes){key, 12}, (pawl_bytes){copy, 96}));
        struct changes c = change(&bed, 256, 1, text_bytes("another"));
        assert_ok(digests_add(&before.digests, &c));
        pawl_digest sum = digests_of(&before.digests, 256);
        assert_status(position_read(&before, bed.state.reader, &error), cases[i].status);
        assert_contains(error.text, cases[i].words);
        pawl_digest after = digests_of(&before.digests, 256);
        assert_true(before.digests.count == 1 && pawl_digest_equal(&after, &sum));
        position_release(&p);
        position_release(&before);
        state_bed_close(&bed);
    }
}

TEST(a_row_that_ends_too_early_is_refused_at_every_length)
{
    struct state_bed bed;
    struct position p;
    uint8_t key[12] = {0, 0, 0, TABLE_PARTITION}, copy[68];
    pawl_bytes row;
    state_bed_open(&bed);
    position_init(&p, &bed.alloc.allocator, 0);
    struct changes c = change(&bed, 256, 1, text_bytes("row"));
    assert_ok(digests_add(&p.digests, &c));
    assert_ok(position_write(&p, bed.store));
    assert_ok(pawl_store_get(bed.state.reader, STATE_SPACE, (pawl_bytes){key, 12}, &row));
    assert_int_equal(row.size, sizeof copy);
    memcpy(copy, row.data, sizeof copy);
    for (size_t n = 0; n < sizeof copy; n++) {
        assert_ok(pawl_store_put(bed.store, STATE_SPACE, (pawl_bytes){key, 12}, (pawl_bytes){copy, n}));
        assert_status(position_read(&p, bed.state.reader, NULL), PAWL_ECORRUPT);
    }
    position_release(&p);
    state_bed_close(&bed);
}

TEST(every_allocation_may_fail_and_then_nothing_was_added)
{
    for (uint64_t k = 1;; k++) {
        struct state_bed bed;
        struct test_alloc memory;
        struct position p, read;
        struct changes changes = {0};
        uint8_t key[KEY_NUMBERED];
        state_bed_open(&bed);
        test_alloc_init(&memory);
        position_init(&p, &memory.allocator, 1);
        position_init(&read, &memory.allocator, 1);
        for (uint32_t table = 256; table < 256 + TABLES; table++)
            assert_ok(state_bed_change(&bed, &bed.memory, &changes, table_key(table, 1, key), text_bytes("r")));
        assert_ok(state_bed_write(bed.store, &changes));
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int status = digests_add(&p.digests, &changes);
        if (status != PAWL_OK) {
            assert_status(status, PAWL_ENOMEM);
            for (size_t i = 0; i < p.digests.count; i++)
                assert_true(pawl_digest_equal(&p.digests.tables[i].digest, &(pawl_digest){0}));
            assert_ok(digests_add(&p.digests, &changes));
        }
        assert_sums(&p, bed.store);
        if (position_write(&p, bed.store) != PAWL_OK)
            assert_ok(position_write(&p, bed.store));
        if (position_read(&read, pawl_store_writer(bed.store), NULL) != PAWL_OK) {
            assert_int_equal(read.digests.count, 0);
            assert_ok(position_read(&read, pawl_store_writer(bed.store), NULL));
        }
        assert_same(&p, &read);
        bool failed = test_alloc_failed(&memory);
        position_release(&p);
        position_release(&read);
        test_alloc_release(&memory);
        state_bed_close(&bed);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_partition_that_was_never_written_is_at_the_beginning),
        RUN(a_position_reads_back_as_it_was_written_beside_those_of_other_partitions),
        RUN(its_bytes_are_as_documented),
        RUN(sums_are_those_of_the_rows_whatever_was_committed_and_whatever_failed),
        RUN(taking_back_what_was_added_leaves_no_trace_in_the_row),
        RUN(a_sum_without_rows_that_is_not_zero_is_kept),
        RUN(sums_carry_and_borrow_across_64_bits),
        RUN(a_row_that_is_no_position_is_refused_and_leaves_it_as_it_was),
        RUN(a_row_that_ends_too_early_is_refused_at_every_length),
        RUN(every_allocation_may_fail_and_then_nothing_was_added),
    };
    return TEST_MAIN(tests);
}

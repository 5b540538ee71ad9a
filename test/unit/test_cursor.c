#include "test/lib/test.h"

#include "core/project/cursor.h"
#include "test/lib/state.h"

static struct changes change(struct state_bed *bed, uint32_t table, uint64_t id)
{
    struct changes changes = {0};
    uint8_t key[KEY_NUMBERED];
    assert_ok(
        state_bed_change(bed, &bed->memory, &changes, key_numbered(table, 7, id, key), text_bytes("row")));
    return changes;
}

static bool same(const struct cursor *a, const struct cursor *b)
{
    bool good = a->applied == b->applied && a->checksum == b->checksum && a->scanned == b->scanned
                && a->within == b->within && a->place.position == b->place.position
                && a->place.hint == b->place.hint && a->digests.count == b->digests.count;
    for (size_t i = 0; good && i < a->digests.count; i++)
        good = a->digests.tables[i].table == b->digests.tables[i].table
               && pawl_digest_equal(&a->digests.tables[i].digest, &b->digests.tables[i].digest);
    return good;
}

TEST(a_lane_that_was_never_written_is_at_the_beginning)
{
    struct state_bed bed;
    struct cursor c;
    uint64_t applied = 9, scanned = 9;
    state_bed_open(&bed);
    cursor_init(&c, &bed.alloc.allocator, 1, 2, 3);
    c.applied = c.scanned = c.within = c.checksum = 9;
    assert_ok(cursor_read(&c, bed.state.reader, NULL));
    assert_true(c.applied == 0 && c.scanned == 0 && c.within == 0 && c.checksum == 0 && c.digests.count == 0);
    assert_ok(cursor_peek(bed.state.reader, 1, 2, 3, &applied, &scanned));
    assert_true(applied == 0 && scanned == 0);
    cursor_release(&c);
    state_bed_close(&bed);
}

TEST(each_generation_of_each_lane_reads_back_as_it_was_written)
{
    static const struct {
        uint16_t partition, lane;
        uint32_t generation;
    } at[] = {{0, 1, 1}, {0, 1, 2}, {0, 0x102, 1}, {65535, 1, 65535}};
    struct state_bed bed;
    struct cursor cursors[4];
    state_bed_open(&bed);
    for (uint64_t i = 0; i < 4; i++) {
        struct cursor *c = &cursors[i];
        cursor_init(c, &bed.alloc.allocator, at[i].partition, at[i].lane, at[i].generation);
        for (uint32_t table = 0; table < 1 + 10 * i; table++) {
            struct changes changes = change(&bed, 500 - table, i);
            assert_ok(digests_add(&c->digests, &changes));
        }
        c->applied = 100 + i;
        c->place = (pawl_place){UINT64_MAX - i, i};
        c->checksum = UINT64_C(1) << 63 | i;
        c->scanned = 200 + i;
        c->within = i;
        assert_ok(cursor_write(c, bed.store));
    }
    for (size_t i = 0; i < 4; i++) {
        struct cursor read;
        uint64_t applied, scanned;
        cursor_init(&read, &bed.alloc.allocator, at[i].partition, at[i].lane, at[i].generation);
        assert_ok(cursor_read(&read, bed.state.reader, NULL));
        assert_true(same(&read, &cursors[i]));
        assert_ok(
            cursor_peek(bed.state.reader, at[i].partition, at[i].lane, at[i].generation, &applied, &scanned));
        assert_true(applied == 100 + i && scanned == 200 + i);
        cursor_release(&read);
    }
    for (size_t i = 0; i < 4; i++)
        cursor_release(&cursors[i]);
    state_bed_close(&bed);
}

TEST(its_key_and_its_bytes_are_as_documented)
{
    static const uint8_t key[] = {0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    struct state_bed bed;
    struct cursor c;
    pawl_bytes bytes;
    uint16_t partition, lane;
    uint32_t generation;
    state_bed_open(&bed);
    cursor_init(&c, &bed.alloc.allocator, 0x102, 0x304, 0x5060708);
    struct changes changes = change(&bed, 0x104, 1);
    assert_ok(digests_add(&c.digests, &changes));
    c.applied = 5;
    c.place = (pawl_place){6, 7};
    c.checksum = 8;
    c.scanned = 9;
    c.within = 10;
    assert_ok(cursor_write(&c, bed.store));
    assert_ok(pawl_store_get(bed.state.reader, STATE_SPACE, (pawl_bytes){key, sizeof key}, &bytes));
    assert_int_equal(bytes.size, 84);
    const uint8_t *at = bytes.data;
    assert_true(get_u32(at) == 1 && get_u32(at + 4) == 1);
    for (uint64_t i = 0; i < 6; i++)
        assert_true(get_u64(at + 8 + 8 * i) == 5 + i);
    assert_true(get_u32(at + 56) == 0x104 && get_u64(at + 60) == changes.first->digest.low);
    assert_true(get_u64(at + 68) == changes.first->digest.high && get_u64(at + 76) == 1);
    assert_true(cursor_key_read((pawl_bytes){key, sizeof key}, &partition, &lane, &generation));
    assert_true(partition == 0x102 && lane == 0x304 && generation == 0x5060708);
    for (size_t size = 0; size < sizeof key; size++)
        assert_false(cursor_key_read((pawl_bytes){key, size}, &partition, &lane, &generation));
    cursor_release(&c);
    state_bed_close(&bed);
}

TEST(a_row_that_is_no_cursor_is_refused_and_leaves_it_as_it_was)
{
    static const struct {
        size_t at;
        uint8_t value;
        int status;
    } cases[] = {{0, 0, PAWL_ECORRUPT}, {0, 2, PAWL_EVERSION}, {1, 1, PAWL_ECORRUPT},   {3, 1, PAWL_ECORRUPT},
                 {4, 1, PAWL_ECORRUPT}, {4, 3, PAWL_ECORRUPT}, {7, 255, PAWL_ECORRUPT}, {84, 0, PAWL_ECORRUPT}};
    struct state_bed bed;
    struct cursor c, before;
    uint8_t key[CURSOR_KEY], copy[112];
    pawl_bytes at = cursor_key(1, 2, 3, key), row;
    state_bed_open(&bed);
    cursor_init(&c, &bed.alloc.allocator, 1, 2, 3);
    cursor_init(&before, &bed.alloc.allocator, 1, 2, 3);
    struct changes first = change(&bed, 256, 1), second = change(&bed, 257, 1);
    assert_ok(digests_add(&c.digests, &first));
    assert_ok(digests_add(&before.digests, &first));
    assert_ok(digests_add(&c.digests, &second));
    c.applied = 5;
    before.applied = 4;
    assert_ok(cursor_write(&c, bed.store));
    assert_ok(pawl_store_get(bed.state.reader, STATE_SPACE, at, &row));
    assert_int_equal(row.size, sizeof copy);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] + sizeof copy; i++) {
        size_t cut = i < sizeof cases / sizeof cases[0] ? sizeof copy : i - sizeof cases / sizeof cases[0];
        int expected = cut < sizeof copy ? PAWL_ECORRUPT : cases[i].status;
        pawl_error error = {0};
        uint64_t applied = 77, scanned = 77;
        assert_ok(cursor_write(&c, bed.store));
        assert_ok(pawl_store_get(bed.state.reader, STATE_SPACE, at, &row));
        memcpy(copy, row.data, sizeof copy);
        if (cut == sizeof copy)
            copy[cases[i].at] = cases[i].value;
        assert_ok(pawl_store_put(bed.store, STATE_SPACE, at, (pawl_bytes){copy, cut}));
        assert_status(cursor_read(&before, bed.state.reader, &error), expected);
        assert_contains(error.text, "lane 2.3 in partition 1");
        assert_true(before.applied == 4 && before.digests.count == 1);
        if (cut < sizeof copy || cases[i].at != 84) /* which is in the tables, at which peek does not look */
            assert_status(cursor_peek(bed.state.reader, 1, 2, 3, &applied, &scanned), expected);
    }
    cursor_release(&c);
    cursor_release(&before);
    state_bed_close(&bed);
}

TEST(every_allocation_may_fail_and_then_nothing_has_changed)
{
    for (uint64_t k = 1;; k++) {
        struct state_bed bed;
        struct test_alloc memory;
        struct cursor c, read;
        state_bed_open(&bed);
        test_alloc_init(&memory);
        cursor_init(&c, &memory.allocator, 1, 2, 3);
        cursor_init(&read, &memory.allocator, 1, 2, 3);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        for (uint32_t table = 256; table < 296; table++) {
            struct changes changes = change(&bed, table, 1);
            if (digests_add(&c.digests, &changes) != PAWL_OK)
                assert_ok(digests_add(&c.digests, &changes));
        }
        c.applied = 3;
        if (cursor_write(&c, bed.store) != PAWL_OK)
            assert_ok(cursor_write(&c, bed.store));
        int status = cursor_read(&read, bed.state.reader, NULL);
        if (status != PAWL_OK) {
            assert_status(status, PAWL_ENOMEM);
            assert_true(read.applied == 0 && read.digests.count == 0);
            assert_ok(cursor_read(&read, bed.state.reader, NULL));
        }
        assert_true(same(&c, &read));
        bool failed = test_alloc_failed(&memory);
        cursor_release(&c);
        cursor_release(&read);
        test_alloc_release(&memory);
        state_bed_close(&bed);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_lane_that_was_never_written_is_at_the_beginning),
        RUN(each_generation_of_each_lane_reads_back_as_it_was_written),
        RUN(its_key_and_its_bytes_are_as_documented),
        RUN(a_row_that_is_no_cursor_is_refused_and_leaves_it_as_it_was),
        RUN(every_allocation_may_fail_and_then_nothing_has_changed),
    };
    return TEST_MAIN(tests);
}

#include "test/lib/test.h"

#include "core/project/remove.h"
#include "test/lib/state.h"

#define PARTITIONS 4
#define MINE       2 /* the partition whose rows go */

/* Rows of a table by turns in all partitions. */
static void put_rows(struct state_bed *bed, uint32_t table, uint64_t count)
{
    for (uint64_t i = 0; i < count * PARTITIONS; i++) {
        uint8_t key[KEY_NUMBERED];
        uint64_t token = (i % PARTITIONS << 62) + i;
        assert_ok(
            pawl_store_put(bed->store, STATE_SPACE, key_at_token(table, token, i, i, key), text_bytes("row")));
    }
}

/* A generation with tables of so many rows, and its cursor. */
static struct cursor make(struct state_bed *bed, const uint64_t *counts, size_t tables)
{
    struct cursor c;
    cursor_init(&c, &bed->alloc.allocator, MINE, 1, 1);
    for (uint32_t i = 0; i < tables; i++) {
        struct changes changes = {0};
        uint8_t key[KEY_NUMBERED];
        assert_ok(
            state_bed_change(bed, &bed->memory, &changes, key_numbered(100 + i, 1, 1, key), text_bytes("row")));
        assert_ok(digests_add(&c.digests, &changes));
        overlay_remove(&bed->overlay, &changes);
        put_rows(bed, 100 + i, counts[i]);
    }
    c.applied = 1;
    assert_ok(cursor_write(&c, bed->store));
    assert_ok(pawl_store_commit(bed->store));
    return c;
}

static uint64_t rows_in(struct state_bed *bed)
{
    pawl_digest digest;
    assert_ok(pawl_store_digest(pawl_store_writer(bed->store), (pawl_range){.space = STATE_SPACE}, &digest));
    return digest.rows;
}

static bool has_cursor(struct state_bed *bed)
{
    uint64_t applied, scanned;
    assert_ok(cursor_peek(pawl_store_writer(bed->store), MINE, 1, 1, &applied, &scanned));
    return applied > 0;
}

TEST(a_generation_goes_in_pieces_with_its_cursor_last_and_leaves_all_others)
{
    static const struct {
        uint64_t tables[3];
        size_t rows_max, pieces;
    } cases[] = {{{0, 0, 0}, 10, 1},    {{9, 0, 0}, 10, 1},     {{10, 0, 0}, 10, 1}, {{11, 0, 0}, 10, 2},
                 {{10, 10, 10}, 10, 3}, {{3, 0, 4}, 10, 1},     {{5, 7, 9}, 10, 3},  {{1000, 0, 1}, 10, 101},
                 {{20, 30, 1}, 1, 51},  {{20, 30, 1}, 4096, 1}, {{0, 0, 51}, 50, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct state_bed bed;
        state_bed_open(&bed);
        uint64_t sum = cases[i].tables[0] + cases[i].tables[1] + cases[i].tables[2];
        struct cursor c = make(&bed, cases[i].tables, 3);
        struct removal removal = {.store = bed.store,
                                  .cursor = &c,
                                  .partitions = PARTITIONS,
                                  .rows_max = cases[i].rows_max,
                                  .alloc = &bed.alloc.allocator};
        uint64_t before = rows_in(&bed);
        bool last = false;
        size_t pieces = 0;
        while (!last) {
            assert_true(has_cursor(&bed)); /* D1 */
            assert_ok(remove_piece(&removal, &last));
            assert_ok(pawl_store_commit(bed.store));
            uint64_t left = rows_in(&bed);
            assert_in_range(before - left, 1, cases[i].rows_max + last);
            before = left;
            pieces++;
        }
        assert_int_equal(pieces, cases[i].pieces);
        assert_false(has_cursor(&bed));
        assert_int_equal(before, sum * (PARTITIONS - 1));
        cursor_release(&c);
        state_bed_close(&bed);
    }
}

TEST(a_piece_takes_the_same_memory_whatever_there_is_to_remove)
{
    size_t most[2];
    for (size_t i = 0; i < 2; i++) {
        struct state_bed bed;
        uint64_t rows = i == 0 ? 1 : 20000;
        bool last;
        state_bed_open(&bed);
        struct cursor c = make(&bed, &rows, 1);
        bed.alloc.live_bytes_max = bed.alloc.live_bytes;
        struct removal removal = {.store = bed.store,
                                  .cursor = &c,
                                  .partitions = PARTITIONS,
                                  .rows_max = 64,
                                  .alloc = &bed.alloc.allocator};
        assert_ok(remove_piece(&removal, &last));
        most[i] = bed.alloc.live_bytes_max - bed.alloc.live_bytes;
        cursor_release(&c);
        state_bed_close(&bed);
    }
    assert_int_equal(most[0], most[1]);
}

TEST(a_piece_that_fails_says_so_and_can_be_tried_again)
{
    struct state_bed bed;
    uint64_t rows = 10;
    bool last = false;
    state_bed_open(&bed);
    struct cursor c = make(&bed, &rows, 1);
    struct removal removal = {.store = bed.store,
                              .cursor = &c,
                              .partitions = PARTITIONS,
                              .rows_max = 64,
                              .alloc = &bed.alloc.allocator};
    test_alloc_fail(&bed.alloc, 1, TEST_ALLOC_ONCE);
    assert_status(remove_piece(&removal, &last), PAWL_ENOMEM);
    mem_store_disk_fail(bed.disk, (struct mem_store_fault){
                                      .op = MEM_STORE_ANY, .countdown = 2, .times = 1, .status = PAWL_EFULL});
    assert_status(remove_piece(&removal, &last), PAWL_EFULL);
    assert_false(last);
    pawl_store_abort(bed.store);
    assert_ok(remove_piece(&removal, &last));
    assert_true(last);
    assert_ok(pawl_store_commit(bed.store));
    cursor_release(&c);
    state_bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_generation_goes_in_pieces_with_its_cursor_last_and_leaves_all_others),
        RUN(a_piece_takes_the_same_memory_whatever_there_is_to_remove),
        RUN(a_piece_that_fails_says_so_and_can_be_tried_again),
    };
    return TEST_MAIN(tests);
}

/* Promised rows: what a run has made, what the next run of its chain gets, and which rows count as read. */
#include "test/lib/test.h"

#include "core/project/reads.h"
#include "core/state/key.h"

enum { TABLE = 3, OTHER_TABLE = 4, WSID = 7, OTHER_WSID = 8 };

struct row_room {
    uint8_t bytes[KEY_WORKSPACE + 8];
};

static pawl_bytes key(struct row_room *room, uint32_t table, uint64_t wsid, uint64_t number)
{
    (void)key_of_workspace(table, wsid, room->bytes);
    memcpy(room->bytes + KEY_WORKSPACE, &number, 8);
    return (pawl_bytes){room->bytes, sizeof room->bytes};
}

static pawl_bytes text(const char *value)
{
    return (pawl_bytes){value, strlen(value)};
}

static void change(struct changes *changes, struct row_change *c, pawl_bytes row, pawl_bytes value)
{
    *c = (struct row_change){.key = row, .value = value};
    if (changes->last)
        changes->last->next = c;
    else
        changes->first = c;
    changes->last = c;
    changes->count++;
}

static const struct promised_row *only(const struct promise *promise, pawl_bytes row)
{
    uint64_t bit = promise_find(promise, row);
    return bit ? &promise->rows[__builtin_ctzll(bit)] : NULL;
}

TEST(a_row_that_is_changed_twice_is_promised_as_it_is_at_last)
{
    struct arena memory;
    struct row_room a, b;
    struct row_change rows[3];
    struct changes changes = {0};
    struct promise promise = {0};
    arena_init(&memory, NULL, 1024);
    change(&changes, &rows[0], key(&a, TABLE, WSID, 1), text("old"));
    change(&changes, &rows[1], key(&b, TABLE, WSID, 2), (pawl_bytes){0}); /* removed */
    change(&changes, &rows[2], key(&a, TABLE, WSID, 1), text("new"));
    assert_ok(promise_make(&promise, &memory, &changes));
    assert_int_equal(promise.count, 2);
    assert_memory_equal(only(&promise, key(&a, TABLE, WSID, 1))->value.data, "new", 3);
    assert_null(only(&promise, key(&b, TABLE, WSID, 2))->value.data);
    assert_int_equal(promise_find(&promise, key(&a, TABLE, WSID, 3)), 0);
    arena_release(&memory);
}

TEST(the_next_run_gets_what_is_made_and_what_is_not_staged_yet_of_its_workspace)
{
    struct arena memory;
    struct row_room r;
    struct row_change rows[8];
    struct changes first = {0}, second = {0};
    struct promise had, made, had_first, next;
    const struct promise none = {0};
    struct row_room keys[4];
    arena_init(&memory, NULL, 1024);
    change(&first, &rows[0], key(&keys[0], TABLE, WSID, 1), text("1 by 10"));
    change(&first, &rows[1], key(&keys[1], TABLE, WSID, 2), text("2 by 10"));
    assert_ok(promise_make(&had_first, &memory, &first));
    assert_ok(promise_pass_on(&had, &memory, &none, &had_first, 10, 0, WSID));
    change(&second, &rows[2], key(&keys[2], TABLE, WSID, 2), text("2 by 12"));
    change(&second, &rows[3], key(&keys[3], TABLE, OTHER_WSID, 3), text("elsewhere"));
    assert_ok(promise_make(&made, &memory, &second));
    assert_ok(promise_pass_on(&next, &memory, &had, &made, 12, 9, WSID));
    assert_int_equal(next.count, 2);
    assert_int_equal(only(&next, key(&r, TABLE, WSID, 1))->number, 10);
    assert_int_equal(only(&next, key(&r, TABLE, WSID, 2))->number, 12);
    assert_memory_equal(only(&next, key(&r, TABLE, WSID, 2))->value.data, "2 by 12", 7);
    assert_ok(promise_pass_on(&next, &memory, &had, &made, 12, 10, WSID)); /* 10 is staged */
    assert_int_equal(next.count, 1);
    assert_null(only(&next, key(&r, TABLE, WSID, 1)));
    arena_release(&memory);
}

TEST(a_promise_is_bounded)
{
    static struct row_room rooms[PROMISED_ROWS_MAX + 1];
    static struct row_change rows[PROMISED_ROWS_MAX + 1];
    static const char large[PROMISED_BYTES_MAX];
    struct arena memory;
    struct changes changes = {0}, heavy = {0};
    struct promise promise = {.count = 99};
    arena_init(&memory, NULL, 1024);
    for (size_t i = 0; i < PROMISED_ROWS_MAX; i++)
        change(&changes, &rows[i], key(&rooms[i], TABLE, WSID, i), text("x"));
    assert_ok(promise_make(&promise, &memory, &changes));
    assert_int_equal(promise.count, PROMISED_ROWS_MAX);
    assert_int_equal(promise_find(&promise, rows[63].key), UINT64_C(1) << 63);
    change(&changes, &rows[PROMISED_ROWS_MAX], key(&rooms[PROMISED_ROWS_MAX], TABLE, WSID, 1000), text("x"));
    promise.count = 99;
    assert_status(promise_make(&promise, &memory, &changes), PAWL_ETOOBIG);
    change(&heavy, &rows[0], key(&rooms[0], TABLE, WSID, 1), (pawl_bytes){large, sizeof large});
    assert_status(promise_make(&promise, &memory, &heavy), PAWL_ETOOBIG);
    assert_int_equal(promise.count, 99);
    arena_release(&memory);
}

TEST(a_read_of_a_promised_row_is_noted_apart_and_a_range_has_read_all_of_its_table_and_workspace)
{
    struct arena memory;
    struct row_room rooms[3], r;
    struct row_change rows[3];
    struct changes changes = {0};
    struct promise promise;
    struct reads reads;
    arena_init(&memory, NULL, 1024);
    change(&changes, &rows[0], key(&rooms[0], TABLE, WSID, 1), text("x"));
    change(&changes, &rows[1], key(&rooms[1], OTHER_TABLE, WSID, 1), text("x"));
    change(&changes, &rows[2], key(&rooms[2], TABLE, WSID, 2), text("x"));
    assert_ok(promise_make(&promise, &memory, &changes));
    reads_init(&reads, NULL);
    reads_reset(&reads, UINT64_MAX);
    reads.promise = promise;
    assert_ok(reads_add_row(&reads, key(&r, TABLE, WSID, 9)));
    assert_int_equal(reads_promised(&reads), 0);
    assert_int_equal(reads.row_count, 1);
    reads_reset(&reads, UINT64_MAX);
    assert_true(reads_is_blind(&reads));
    assert_ok(reads_add_row(&reads, key(&r, TABLE, WSID, 2)));
    assert_false(reads_is_blind(&reads));
    assert_int_equal(reads.row_count, 0);
    assert_int_equal(reads_promised(&reads), promise_find(&promise, key(&r, TABLE, WSID, 2)));
    reads_reset(&reads, UINT64_MAX);
    assert_ok(reads_add_range(&reads, TABLE, WSID));
    assert_int_equal(reads_promised(&reads), promise_find(&promise, key(&r, TABLE, WSID, 1))
                                                 | promise_find(&promise, key(&r, TABLE, WSID, 2)));
    reads_reset(&reads, UINT64_MAX);
    assert_ok(reads_add_rows(&reads, TABLE, OTHER_WSID, NULL, 0));
    assert_int_equal(reads_promised(&reads), 0);
    reads_coarsen(&reads);
    assert_int_equal(reads.promise.count, promise.count);
    assert_int_equal(reads_promised(&reads), UINT64_MAX);
    reads_release(&reads);
    arena_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_row_that_is_changed_twice_is_promised_as_it_is_at_last),
        RUN(the_next_run_gets_what_is_made_and_what_is_not_staged_yet_of_its_workspace),
        RUN(a_promise_is_bounded),
        RUN(a_read_of_a_promised_row_is_noted_apart_and_a_range_has_read_all_of_its_table_and_workspace),
    };
    return TEST_MAIN(tests);
}

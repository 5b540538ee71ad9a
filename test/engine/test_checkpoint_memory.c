/* test_checkpoint_memory.c: how much memory LMDB takes for a checkpoint.
 *
 * A store that does not write through its map has a block of a page's size for every page that a transaction
 * changes, and keeps it for the next one. So the blocks of that size that are asked for are the most that a
 * transaction has changed: this program stands in for malloc and counts them. */
#include <pawl/types.h>

#include "adapter/lmdb/store.h"
#include "core/state/checkpoint.h"
#include "test/lib/dir.h"
#include "test/lib/plog.h"
#include "test/lib/schema.h"

#define PAGE       4096
#define PARTITIONS 4
#define WORKSPACES 4000 /* each with a page of its own in the table of their logs */

static size_t pages; /* asked for */

__attribute__((visibility("default"))) void *counting_malloc(size_t size) __asm__("malloc");
void *__libc_malloc(size_t size);

void *counting_malloc(size_t size)
{
    pages += size == PAGE;
    return __libc_malloc(size);
}

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    return ctx;
}

/* A state that is large for what changes in it. */
static void fill(pawl_store *store)
{
    static const uint8_t large[1900];
    for (uint64_t wsid = 1; wsid <= WORKSPACES; wsid++) {
        uint8_t key[KEY_NUMBERED];
        assert_ok(pawl_store_put(store, STATE_SPACE, key_numbered(TABLE_WLOG, wsid, 0, key),
                                 (pawl_bytes){large, sizeof large}));
    }
    assert_ok(pawl_store_commit(store));
}

/* An event of each workspace. */
static void follow(struct checkpoint *c, const struct schema *schema)
{
    uint64_t rows;
    pawl_error error;
    for (uint64_t wsid = 1; wsid <= WORKSPACES; wsid++) {
        size_t partition = hash_token(wsid) >> 62;
        uint64_t offset = checkpoint_next(c, partition);
        struct plog_event event = {.wsid = wsid, .command = "t.Note", .argument = "t.Arg"};
        pawl_bytes body = plog_body(schema, offset, &event);
        assert_ok(checkpoint_take(c, partition, offset, (pawl_place){0}, body, &error));
        free((void *)body.data);
        if (checkpoint_is_full(c))
            assert_ok(checkpoint_commit(c, &rows, &error));
    }
    assert_ok(checkpoint_commit(c, &rows, &error));
}

static size_t pages_for(const struct schema *schema, uint64_t rows_max)
{
    char dir[256], path[300];
    pawl_store *store;
    struct checkpoint *c;
    pawl_error error;
    test_dir_make(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/store", dir);
    struct lmdb_options lmdb = {.dir = path, .mode = PAWL_STORE_DURABLE};
    assert_ok(lmdb_store_open(&lmdb, NULL, &store, &error));
    fill(store);
    assert_ok(pawl_store_close(store)); /* and with it the pages of filling it */
    assert_ok(lmdb_store_open(&lmdb, NULL, &store, &error));
    struct checkpoint_options options = {.store = store,
                                         .partitions = {0, 1, PARTITIONS},
                                         .events_max = UINT64_MAX,
                                         .bytes_max = SIZE_MAX,
                                         .rows_max = rows_max,
                                         .schema_at = schema_at,
                                         .ctx = (void *)schema};
    assert_ok(checkpoint_new(&options, &c, &error));
    pages = 0;
    follow(c, schema);
    size_t taken = pages;
    checkpoint_free(c);
    assert_ok(pawl_store_close(store));
    test_dir_remove(dir);
    return taken;
}

TEST(lmdb_keeps_no_more_pages_than_a_transaction_may_have_rows_and_the_branches_above_them)
{
    static const char text[] =
        "{'schema': 1, 'package': 't', 'workspaces': {'w': {}}, 'types': {'Arg': {'kind': 'ODoc', 'fields':"
        " {'k': {'type': 'int64'}, 'by': {'type': 'int64'}}}}, 'commands': {'Note': {'argument': 'Arg'}}}";
    struct group0 *group0;
    enum group0_outcome outcome;
    assert_ok(group0_new(NULL, &group0));
    assert_ok(schema_apply(group0, text, &outcome, NULL));
    const struct schema *schema = group0_schema(group0);
    size_t all = pages_for(schema, UINT64_MAX);
    print_message("# one transaction: %zu pages\n", all);
    assert_true(all > WORKSPACES / 2); /* or this test would show nothing */
    for (uint64_t rows_max = 50; rows_max <= 800; rows_max *= 4) {
        size_t some = pages_for(schema, rows_max);
        print_message("# at most %" PRIu64 " rows: %zu pages\n", rows_max, some);
        assert_in_range(some, rows_max / 4, rows_max + rows_max / 4 + 20);
    }
    group0_free(group0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(lmdb_keeps_no_more_pages_than_a_transaction_may_have_rows_and_the_branches_above_them),
    };
    return TEST_MAIN(tests);
}

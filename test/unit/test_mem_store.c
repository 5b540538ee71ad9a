#include "test/lib/test.h"

#include "adapter/mem/store.h"

static pawl_store *open_store(mem_store_disk *disk)
{
    pawl_store *store;
    assert_ok(mem_store_open(disk, &(struct mem_store_options){.name = "a"}, NULL, &store, NULL));
    return store;
}

static bool visit(void *arg, pawl_bytes key, pawl_bytes value)
{
    ++*(int *)arg;
    return true;
}

static int do_op(mem_store_disk *disk, pawl_store *store, enum mem_store_op op)
{
    pawl_bytes k = text_bytes("k"), value;
    pawl_reader *reader, *writer = pawl_store_writer(store);
    pawl_store *other;
    int seen = 0, status;
    switch (op) {
    case MEM_STORE_ANY:
    case MEM_STORE_GET: return pawl_store_get(writer, 0, k, &value);
    case MEM_STORE_SCAN: return pawl_store_scan(writer, (pawl_range){0}, false, visit, &seen);
    case MEM_STORE_PUT: return pawl_store_put(store, 0, k, k);
    case MEM_STORE_REMOVE: return pawl_store_remove_range(store, (pawl_range){.space = 1});
    case MEM_STORE_COMMIT: return pawl_store_commit(store);
    case MEM_STORE_COPY: return pawl_store_copy(store, "copy", NULL);
    case MEM_STORE_OPEN:
        status = mem_store_open(disk, &(struct mem_store_options){.name = "b"}, NULL, &other, NULL);
        return status == PAWL_OK ? pawl_store_close(other) : status;
    case MEM_STORE_SNAPSHOT:
        status = pawl_store_snapshot(store, &reader);
        if (status == PAWL_OK)
            pawl_store_release(store, reader);
        return status;
    }
    return PAWL_EINVAL;
}

TEST(an_ordered_fault_comes_at_its_turn_and_as_often_as_ordered)
{
    for (int op = MEM_STORE_ANY; op <= MEM_STORE_COPY; op++) {
        mem_store_disk *disk;
        assert_ok(mem_store_disk_new(NULL, &disk));
        pawl_store *store = open_store(disk);
        assert_ok(do_op(disk, store, MEM_STORE_PUT));
        assert_ok(pawl_store_commit(store));
        mem_store_disk_fail(disk,
                            (struct mem_store_fault){
                                .op = (enum mem_store_op)op, .countdown = 3, .times = 2, .status = PAWL_EIO});
        for (int turn = 1; turn <= 5; turn++) {
            int status = do_op(disk, store, (enum mem_store_op)op);
            bool due = turn == 3 || turn == 4;
            if (op == MEM_STORE_COPY && turn > 1 && !due)
                assert_status(status, PAWL_EEXISTS);
            else
                assert_status(status, due ? PAWL_EIO : PAWL_OK);
            pawl_store_abort(store);
        }
        mem_store_disk_free(disk);
    }
}

TEST(a_failed_change_spoils_its_transaction_and_nothing_else)
{
    mem_store_disk *disk;
    assert_ok(mem_store_disk_new(NULL, &disk));
    pawl_store *store = open_store(disk);
    pawl_bytes value;
    for (int with_abort = 0; with_abort < 2; with_abort++) {
        mem_store_disk_fail(disk, (struct mem_store_fault){
                                      .op = MEM_STORE_PUT, .countdown = 2, .times = 1, .status = PAWL_EFULL});
        assert_ok(pawl_store_put(store, 0, text_bytes("a"), text_bytes("1")));
        assert_status(pawl_store_put(store, 0, text_bytes("b"), text_bytes("1")), PAWL_EFULL);
        assert_status(pawl_store_put(store, 0, text_bytes("b"), text_bytes("1")), PAWL_EFULL);
        if (with_abort)
            pawl_store_abort(store);
        else
            assert_status(pawl_store_commit(store), PAWL_EFULL);
        assert_status(pawl_store_get(pawl_store_writer(store), 0, text_bytes("a"), &value), PAWL_ENOTFOUND);
        assert_ok(pawl_store_put(store, 1, text_bytes("c"), text_bytes("1")));
        assert_ok(pawl_store_commit(store));
    }
    assert_ok(pawl_store_close(store));
    mem_store_disk_free(disk);
}

/* An allocator with a budget, which counts what is out. */
struct budget {
    uint64_t left;
    size_t out;
};

static void *budget_resize(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    struct budget *b = ctx;
    if (new_size && b->left == 0)
        return NULL;
    b->left -= new_size ? 1 : 0;
    b->out += new_size - old_size;
    if (new_size == 0) {
        free(memory);
        return NULL;
    }
    return realloc(memory, new_size);
}

static int play(const pawl_allocator *alloc)
{
    mem_store_disk *disk;
    pawl_store *store = NULL;
    pawl_reader *reader = NULL;
    int status = mem_store_disk_new(alloc, &disk);
    if (status != PAWL_OK)
        return status;
    status = mem_store_open(disk, &(struct mem_store_options){.name = "a"}, NULL, &store, NULL);
    for (int i = 0; i < 30 && status == PAWL_OK; i++) {
        char key[8];
        snprintf(key, sizeof key, "%d", i * 7 % 30);
        status = pawl_store_put(store, 0, text_bytes(key), text_bytes("v"));
        if (status == PAWL_OK && i == 20)
            status = pawl_store_commit(store);
    }
    if (status == PAWL_OK)
        status = pawl_store_snapshot(store, &reader);
    if (status == PAWL_OK)
        status = pawl_store_remove(store, 0, text_bytes("14"));
    if (status == PAWL_OK)
        status = pawl_store_remove_range(store, (pawl_range){.from = text_bytes("11"), .to = text_bytes("25")});
    if (status == PAWL_OK)
        status = pawl_store_copy(store, "b", NULL);
    mem_store_disk_free(disk);
    return status;
}

TEST(every_failing_allocation_is_survived)
{
    struct budget budget = {0};
    pawl_allocator alloc = {.resize = budget_resize, .ctx = &budget};
    int status = PAWL_ENOMEM;
    for (uint64_t n = 0; status != PAWL_OK; n++) {
        budget.left = n;
        status = play(&alloc);
        assert_true(status == PAWL_OK || status == PAWL_ENOMEM);
        assert_int_equal(budget.out, 0);
        assert_true(n < 2000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_ordered_fault_comes_at_its_turn_and_as_often_as_ordered),
        RUN(a_failed_change_spoils_its_transaction_and_nothing_else),
        RUN(every_failing_allocation_is_survived),
    };
    return TEST_MAIN(tests);
}

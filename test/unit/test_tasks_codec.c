/* Tasks as bytes, and their digest. */
#include "test/lib/test.h"

#include "core/group0/tasks.h"
#include "test/lib/alloc.h"

#define BASE ((uint32_t)300)
#define VIEW ((uint32_t)0x80000001)

static void make(struct tasks *tasks, uint32_t view, uint32_t tablets)
{
    uint32_t made;
    assert_ok(tasks_make(tasks, BASE, view, tablets, NULL, 0, &made));
}

static void finish(struct tasks *tasks, uint64_t id)
{
    uint64_t finished;
    tasks_finish(tasks, &id, 1, &finished);
    assert_int_equal(finished, 1);
}

static size_t encode(const struct tasks *tasks, uint8_t *bytes, size_t room)
{
    struct encoder e = encoder_over(bytes, room);
    tasks_encode(tasks, &e);
    assert_false(e.bad);
    assert_int_equal(encoder_size(&e), tasks_encoded_size(tasks));
    return encoder_size(&e);
}

static int decode(struct tasks *tasks, const pawl_allocator *alloc, const uint8_t *bytes, size_t size)
{
    struct decoder d = decoder_over((pawl_bytes){bytes, size});
    tasks_init(tasks, alloc);
    int status = tasks_decode(tasks, &d);
    if (status == PAWL_OK)
        assert_int_equal(d.left, 0);
    else
        assert_true(tasks->count == 0 && tasks->next == 1 && !tasks->groups);
    return status;
}

/* Two views; of the first, one is finished and two that were aborted have been made again. */
static size_t example(uint8_t *bytes, size_t room)
{
    static const uint32_t which[] = {1, 66};
    struct tasks tasks;
    uint32_t made;
    tasks_init(&tasks, NULL);
    make(&tasks, VIEW, 70);
    finish(&tasks, 5);
    assert_ok(tasks_abort_all(&tasks));
    make(&tasks, VIEW + 1, 70);
    assert_ok(tasks_make(&tasks, BASE, VIEW, 70, which, 2, &made));
    size_t size = encode(&tasks, bytes, room);
    tasks_release(&tasks);
    return size;
}

enum { HEAD = 16, FIRST = HEAD, SECOND = FIRST + 36 + 32, THIRD = SECOND + 36 + 16 };

TEST(tasks_come_back_from_their_bytes)
{
    uint8_t bytes[512], again[512];
    size_t size = example(bytes, sizeof bytes);
    struct tasks tasks;
    assert_int_equal(size, THIRD + 36 + 16);
    assert_ok(decode(&tasks, NULL, bytes, size));
    assert_int_equal(tasks.count, 3);
    assert_int_equal(tasks.left, 69 + 70 + 2);
    assert_int_equal(tasks.groups[0].aborted_count, 69);
    assert_int_equal(tasks.next, 211);
    assert_int_equal(encode(&tasks, again, sizeof again), size);
    assert_memory_equal(again, bytes, size);
    tasks_release(&tasks);
}

TEST(bytes_that_are_cut_are_refused)
{
    uint8_t bytes[512];
    size_t size = example(bytes, sizeof bytes);
    struct tasks tasks;
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *exact = malloc(cut ? cut : 1);
        assert_non_null(exact);
        memcpy(exact, bytes, cut);
        assert_status(decode(&tasks, NULL, exact, cut), PAWL_ECORRUPT);
        free(exact);
    }
}

TEST(bytes_that_break_an_invariant_are_refused)
{
    static const struct {
        const char *what;
        size_t at, size;
        uint64_t value;
    } cases[] = {
        {"more groups than there are", 0, 4, 4},
        {"very many groups", 0, 4, UINT32_MAX},
        {"not zero in the head", 4, 4, 1},
        {"no next ID", 8, 8, 0},
        {"IDs beyond the next", 8, 8, 210},
        {"a next ID beyond all", 8, 8, (UINT64_C(1) << 62) + 1},
        {"ID 0", FIRST, 8, 0},
        {"an ID beyond all", FIRST, 8, UINT64_MAX - 3},
        {"IDs that overlap (K1)", SECOND, 8, 70},
        {"IDs in no order (K1)", SECOND, 8, 0},
        {"an unknown type", FIRST + 8, 1, 3},
        {"no type", FIRST + 8, 1, 0},
        {"staging of a view", FIRST + 8, 1, TASK_PROCESS_STAGING},
        {"not zero in a group", FIRST + 9, 1, 1},
        {"not zero in a group", FIRST + 10, 2, 256},
        {"no base", FIRST + 12, 4, 0},
        {"a view of two bases", FIRST + 12, 4, BASE + 1},
        {"a range to build of no view", FIRST + 16, 4, 0},
        {"two alive for one tablet (K2)", THIRD + 16, 4, VIEW + 1},
        {"no tablets", FIRST + 20, 4, 0},
        {"tablets that differ (K5)", SECOND + 20, 4, 71},
        {"very many tablets", FIRST + 20, 4, UINT32_MAX},
        {"more made than tablets", FIRST + 24, 4, 71},
        {"fewer made than left", FIRST + 24, 4, 68},
        {"more left than there are", FIRST + 28, 4, 70},
        {"fewer left than there are", SECOND + 28, 4, 69},
        {"more aborted than left", FIRST + 32, 4, 70},
        {"fewer aborted than there are", FIRST + 32, 4, 68},
        {"a bit beyond the tablets", SECOND + 36 + 8, 8, 0xbf},
        {"a task that its count does not have", FIRST + 36, 8, UINT64_MAX},
        {"aborted and not there", FIRST + 36 + 16, 8, UINT64_MAX},
        {"no task (K4)", THIRD + 28, 4, 0},
    };
    uint8_t bytes[512];
    size_t size = example(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tasks tasks;
        uint8_t changed[512];
        memcpy(changed, bytes, size);
        for (size_t n = 0; n < cases[i].size; n++)
            changed[cases[i].at + n] = (uint8_t)(cases[i].value >> (8 * n));
        assert_true(memcmp(changed, bytes, size) != 0);
        int status = decode(&tasks, NULL, changed, size);
        if (status != PAWL_ECORRUPT)
            print_error("%s: %s\n", cases[i].what, pawl_status_name(status));
        assert_status(status, PAWL_ECORRUPT);
    }
}

/* K4 again: with all counts in agreement. */
TEST(a_group_without_a_task_is_refused)
{
    uint8_t bytes[HEAD + 36 + 8];
    struct tasks tasks;
    tasks_init(&tasks, NULL);
    make(&tasks, VIEW, 4);
    assert_int_equal(encode(&tasks, bytes, sizeof bytes), sizeof bytes);
    tasks_release(&tasks);
    assert_ok(decode(&tasks, NULL, bytes, sizeof bytes));
    tasks_release(&tasks);
    memset(bytes + HEAD + 28, 0, 4 + 4 + 8);
    assert_status(decode(&tasks, NULL, bytes, sizeof bytes), PAWL_ECORRUPT);
}

/* The counts agree: the bit of a tablet was moved. */
TEST(bits_in_wrong_places_are_refused)
{
    uint8_t bytes[512];
    size_t size = example(bytes, sizeof bytes);
    struct tasks tasks;
    uint8_t *there = bytes + SECOND + 36, *aborted = bytes + FIRST + 36 + 16;
    there[0] ^= 1;
    there[15] ^= 1; /* tablet 120 of 70 */
    assert_status(decode(&tasks, NULL, bytes, size), PAWL_ECORRUPT);
    there[0] ^= 1;
    there[15] ^= 1;
    aborted[0] ^= 1 << 3 | 1 << 4; /* 4 is finished */
    assert_status(decode(&tasks, NULL, bytes, size), PAWL_ECORRUPT);
    aborted[0] ^= 1 << 3 | 1 << 4;
    assert_ok(decode(&tasks, NULL, bytes, size));
    tasks_release(&tasks);
}

TEST(no_memory_is_taken_for_bits_that_are_not_there)
{
    uint8_t bytes[HEAD + 36 + 8] = {0};
    struct test_alloc memory;
    struct tasks tasks;
    struct encoder e = encoder_over(bytes, sizeof bytes);
    encode_u32(&e, 1);
    encode_u32(&e, 0);
    encode_u64(&e, UINT64_C(1) << 40);
    encode_u64(&e, 1);
    encode_u32(&e, TASK_BUILD_RANGE);
    encode_u32(&e, BASE);
    encode_u32(&e, VIEW);
    encode_u32(&e, UINT32_MAX); /* tablets */
    encode_u32(&e, 1);
    encode_u32(&e, 1);
    encode_u32(&e, 0);
    encode_u64(&e, 1);
    test_alloc_init(&memory);
    assert_status(decode(&tasks, &memory.allocator, bytes, sizeof bytes), PAWL_ECORRUPT);
    assert_true(memory.live_bytes_max < 4096);
    put_u32(bytes + HEAD + 20, 64);
    assert_ok(decode(&tasks, &memory.allocator, bytes, sizeof bytes));
    tasks_release(&tasks);
    test_alloc_release(&memory);
}

TEST(staging_tasks_of_a_base_come_back_and_follow_a_resize)
{
    uint8_t bytes[HEAD + 36 + 8];
    struct tasks tasks;
    struct task task;
    tasks_init(&tasks, NULL);
    make(&tasks, VIEW, 4);
    finish(&tasks, 1);
    encode(&tasks, bytes, sizeof bytes);
    tasks_release(&tasks);
    bytes[HEAD + 8] = TASK_PROCESS_STAGING;
    put_u32(bytes + HEAD + 16, 0);
    assert_ok(decode(&tasks, NULL, bytes, sizeof bytes));
    make(&tasks, VIEW, 4);
    assert_ok(tasks_resize(&tasks, 2));
    assert_int_equal(tasks.left, 4);
    assert_ok(tasks_find(&tasks, 9, &task));
    assert_true(task.type == TASK_PROCESS_STAGING && task.view == 0 && task.base == BASE);
    assert_ok(tasks_find(&tasks, 11, &task));
    assert_true(task.type == TASK_BUILD_RANGE && task.view == VIEW);
    tasks_release(&tasks);
}

TEST(decoding_survives_every_failed_allocation)
{
    uint8_t bytes[512];
    size_t size = example(bytes, sizeof bytes);
    uint64_t k = 1;
    for (bool failed = true; failed; k++) {
        struct test_alloc memory;
        struct tasks tasks;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int status = decode(&tasks, &memory.allocator, bytes, size);
        failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        tasks_release(&tasks);
        test_alloc_release(&memory);
    }
    assert_int_equal(k, 9); /* the groups, four lists of bits, two to check them */
}

static struct hash128 digest_of(const struct tasks *tasks)
{
    struct hash128 digest = {0};
    tasks_digest(tasks, &digest);
    return digest;
}

TEST(each_change_changes_the_digest)
{
    struct tasks tasks;
    struct hash128 seen[6];
    tasks_init(&tasks, NULL);
    seen[0] = digest_of(&tasks);
    make(&tasks, VIEW, 5000);
    seen[1] = digest_of(&tasks);
    finish(&tasks, 4999);
    seen[2] = digest_of(&tasks);
    assert_ok(tasks_abort_all(&tasks));
    seen[3] = digest_of(&tasks);
    assert_ok(tasks_rollback(&tasks));
    seen[4] = digest_of(&tasks);
    tasks_delete_view(&tasks, VIEW);
    seen[5] = digest_of(&tasks); /* without tasks again, but IDs were given */
    for (size_t i = 0; i < 6; i++) {
        for (size_t n = 0; n < i; n++)
            assert_true(seen[i].low != seen[n].low && seen[i].high != seen[n].high);
    }
    tasks_release(&tasks);
}

TEST(the_digest_tells_which_tasks_are_aborted)
{
    uint8_t bytes[HEAD + 36 + 8 + 8] = {0};
    struct tasks tasks;
    struct hash128 seen[2];
    tasks_init(&tasks, NULL);
    make(&tasks, VIEW, 2);
    assert_ok(tasks_abort_all(&tasks));
    encode(&tasks, bytes, sizeof bytes);
    tasks_release(&tasks);
    put_u32(bytes + HEAD + 32, 1);
    for (uint8_t i = 0; i < 2; i++) {
        bytes[HEAD + 36 + 8] = (uint8_t)(1 << i);
        assert_ok(decode(&tasks, NULL, bytes, sizeof bytes));
        seen[i] = digest_of(&tasks);
        tasks_release(&tasks);
    }
    assert_true(seen[0].low != seen[1].low && seen[0].high != seen[1].high);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(tasks_come_back_from_their_bytes),
        RUN(bytes_that_are_cut_are_refused),
        RUN(bytes_that_break_an_invariant_are_refused),
        RUN(a_group_without_a_task_is_refused),
        RUN(bits_in_wrong_places_are_refused),
        RUN(no_memory_is_taken_for_bits_that_are_not_there),
        RUN(staging_tasks_of_a_base_come_back_and_follow_a_resize),
        RUN(decoding_survives_every_failed_allocation),
        RUN(each_change_changes_the_digest),
        RUN(the_digest_tells_which_tasks_are_aborted),
    };
    return TEST_MAIN(tests);
}

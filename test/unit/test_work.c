#include "test/lib/test.h"

#include "core/view/work.h"
#include "test/lib/alloc.h"

static struct arena arena;

static int begin(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 4096);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

/* All that is shorter than these bytes, and one more byte, is refused. */
typedef int decode_fn(pawl_bytes bytes);

static void assert_only_whole(pawl_bytes bytes, decode_fn *decode)
{
    uint8_t *longer = arena_take(&arena, bytes.size + 1);
    memcpy(longer, bytes.data, bytes.size);
    longer[bytes.size] = 0;
    assert_ok(decode(bytes));
    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *exact = malloc(size ? size : 1);
        assert_non_null(exact);
        memcpy(exact, bytes.data, size);
        assert_status(decode((pawl_bytes){exact, size}), PAWL_ECORRUPT);
        free(exact);
    }
    assert_status(decode((pawl_bytes){longer, bytes.size + 1}), PAWL_ECORRUPT);
}

static int try_work(pawl_bytes bytes)
{
    uint64_t term, *ids;
    size_t count;
    return work_decode(bytes, &arena, &term, &ids, &count);
}

static int try_reply(pawl_bytes bytes)
{
    struct work_result *results;
    size_t count;
    return work_reply_decode(bytes, &arena, &results, &count);
}

static int try_uncovered(pawl_bytes bytes)
{
    uint64_t term;
    return uncovered_decode(bytes, &term);
}

static int try_uncovered_reply(pawl_bytes bytes)
{
    struct uncovered_reply reply;
    return uncovered_reply_decode(bytes, &arena, &reply);
}

TEST(a_call_comes_back_as_it_was_sent)
{
    static uint64_t ids[WORK_TASKS_MAX];
    static const size_t counts[] = {0, 1, 2, WORK_TASKS_MAX};
    for (size_t i = 0; i < WORK_TASKS_MAX; i++)
        ids[i] = UINT64_MAX / (WORK_TASKS_MAX - i);
    for (size_t i = 0; i < 4; i++) {
        uint64_t term = 0, *read = NULL;
        size_t count = 99;
        pawl_bytes bytes;
        assert_ok(work_encode(UINT64_C(0x123456789abcdef0), ids, counts[i], &arena, &bytes));
        assert_int_equal(bytes.size, 12 + 8 * counts[i]);
        assert_ok(work_decode(bytes, &arena, &term, &read, &count));
        assert_int_equal(term, UINT64_C(0x123456789abcdef0));
        assert_int_equal(count, counts[i]);
        assert_memory_equal(read, ids, count * sizeof *ids);
    }
}

TEST(a_call_that_is_cut_or_longer_is_refused)
{
    const uint64_t ids[] = {5, 6, 7};
    pawl_bytes bytes;
    assert_ok(work_encode(3, ids, 3, &arena, &bytes));
    assert_only_whole(bytes, try_work);
}

TEST(a_call_with_more_tasks_than_allowed_is_refused)
{
    static uint8_t bytes[12 + 8 * (WORK_TASKS_MAX + 1)];
    put_u32(bytes + 8, (uint32_t)WORK_TASKS_MAX + 1);
    assert_status(try_work((pawl_bytes){bytes, sizeof bytes}), PAWL_ECORRUPT);
    put_u32(bytes + 8, UINT32_MAX);
    assert_status(try_work((pawl_bytes){bytes, sizeof bytes}), PAWL_ECORRUPT);
    put_u32(bytes + 8, (uint32_t)WORK_TASKS_MAX);
    for (size_t i = 0; i < WORK_TASKS_MAX; i++)
        put_u64(bytes + 12 + 8 * i, i);
    assert_ok(try_work((pawl_bytes){bytes, sizeof bytes - 8}));
}

/* A worker would build the task twice in one scan, and count its rows twice. */
TEST(a_call_that_names_a_task_twice_is_refused)
{
    static const uint64_t ids[][2] = {{7, 7}, {8, 7}, {7, 8}};
    for (size_t i = 0; i < 3; i++) {
        pawl_bytes bytes;
        assert_ok(work_encode(1, ids[i], 2, &arena, &bytes));
        assert_status(try_work(bytes), i == 2 ? PAWL_OK : PAWL_ECORRUPT);
    }
}

TEST(a_reply_comes_back_as_it_was_sent)
{
    const struct work_result results[] = {{.id = 1, .outcome = WORK_FINISHED},
                                          {.id = UINT64_MAX, .outcome = WORK_NOT_DURABLE},
                                          {.id = 3, .outcome = WORK_FAILED, .words = {"rows 5 and 7", 12}},
                                          {.id = 4, .outcome = WORK_FAILED},
                                          {.id = 5, .outcome = WORK_GONE}};
    for (size_t n = 0; n <= 5; n++) {
        struct work_result *read = NULL;
        size_t count = 99;
        pawl_bytes bytes;
        assert_ok(work_reply_encode(results, n, &arena, &bytes));
        assert_ok(work_reply_decode(bytes, &arena, &read, &count));
        assert_int_equal(count, n);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(read[i].id, results[i].id);
            assert_int_equal(read[i].outcome, results[i].outcome);
            assert_true(bytes_equal(read[i].words, results[i].words));
        }
        assert_only_whole(bytes, try_reply);
    }
}

TEST(words_are_sent_only_with_a_failure)
{
    const struct work_result result = {.id = 1, .outcome = WORK_GONE, .words = {"nothing", 7}};
    struct work_result *read = NULL;
    size_t count;
    pawl_bytes bytes;
    assert_ok(work_reply_encode(&result, 1, &arena, &bytes));
    assert_ok(work_reply_decode(bytes, &arena, &read, &count));
    assert_int_equal(read->words.size, 0);
}

TEST(long_words_are_cut_between_two_characters)
{
    static const struct {
        const char *character;
        size_t size, left;
    } cases[] = {{"x", 1, 400}, {"\xc3\xa9", 2, 400}, {"\xe2\x82\xac", 3, 399}, {"\xf0\x9f\x98\x80", 4, 400}};
    for (size_t i = 0; i < 4; i++) {
        char words[1200];
        for (size_t at = 0; at < sizeof words; at += cases[i].size)
            memcpy(words + at, cases[i].character, cases[i].size);
        const struct work_result result = {.id = 1, .outcome = WORK_FAILED, .words = {words, sizeof words}};
        struct work_result *read = NULL;
        size_t count;
        pawl_bytes bytes;
        assert_ok(work_reply_encode(&result, 1, &arena, &bytes));
        assert_ok(work_reply_decode(bytes, &arena, &read, &count));
        assert_int_equal(read->words.size, cases[i].left);
        assert_memory_equal(read->words.data, words, read->words.size);
    }
}

TEST(a_reply_that_makes_no_sense_is_refused)
{
    const struct work_result result = {.id = 1, .outcome = WORK_FAILED, .words = {"ab", 2}};
    pawl_bytes bytes;
    assert_ok(work_reply_encode(&result, 1, &arena, &bytes));
    uint8_t *at = (uint8_t *)(uintptr_t)bytes.data;
    for (unsigned outcome = 0; outcome < 256; outcome++) {
        at[12] = (uint8_t)outcome;
        assert_status(try_reply(bytes), outcome == WORK_FAILED ? PAWL_OK : PAWL_ECORRUPT);
    }
    put_u16(at + 13, 0);
    for (unsigned outcome = 0; outcome < 256; outcome++) {
        at[12] = (uint8_t)outcome;
        bool known = outcome >= WORK_FINISHED && outcome <= WORK_GONE;
        assert_status(try_reply((pawl_bytes){at, 15}), known ? PAWL_OK : PAWL_ECORRUPT);
    }
    static uint8_t words[4 + 11 + WORK_WORDS_MAX + 1];
    put_u32(words, 1);
    words[12] = WORK_FAILED;
    put_u16(words + 13, (uint16_t)WORK_WORDS_MAX);
    assert_ok(try_reply((pawl_bytes){words, sizeof words - 1}));
    put_u16(words + 13, (uint16_t)WORK_WORDS_MAX + 1);
    assert_status(try_reply((pawl_bytes){words, sizeof words}), PAWL_ECORRUPT);
}

TEST(a_reply_with_more_results_than_allowed_is_refused)
{
    static uint8_t bytes[4 + 11 * (WORK_TASKS_MAX + 1)];
    for (size_t i = 0; i <= WORK_TASKS_MAX; i++)
        bytes[4 + i * 11 + 8] = WORK_FINISHED;
    put_u32(bytes, (uint32_t)WORK_TASKS_MAX);
    assert_ok(try_reply((pawl_bytes){bytes, sizeof bytes - 11}));
    put_u32(bytes, (uint32_t)WORK_TASKS_MAX + 1);
    assert_status(try_reply((pawl_bytes){bytes, sizeof bytes}), PAWL_ECORRUPT);
    put_u32(bytes, UINT32_MAX);
    assert_status(try_reply((pawl_bytes){bytes, sizeof bytes}), PAWL_ECORRUPT);
}

TEST(the_question_what_is_uncovered_comes_back_as_it_was_sent)
{
    uint64_t term = 0;
    pawl_bytes bytes;
    assert_ok(uncovered_encode(UINT64_MAX - 1, &arena, &bytes));
    assert_ok(uncovered_decode(bytes, &term));
    assert_true(term == UINT64_MAX - 1);
    assert_only_whole(bytes, try_uncovered);
}

TEST(what_is_uncovered_comes_back_as_it_was_sent)
{
    struct uncovered list[] = {{1, 2, 3}, {UINT32_MAX, UINT32_MAX - 1, 0}, {7, 8, UINT32_MAX}};
    struct base_rows bases[] = {{0, 5}, {7, UINT64_MAX}, {UINT32_MAX, 0}};
    for (size_t n = 0; n <= 3; n++)
        for (size_t m = 0; m <= 3; m++) {
            struct uncovered_reply reply = {list, n, bases, m}, read = {.count = 99};
            pawl_bytes bytes;
            assert_ok(uncovered_reply_encode(&reply, &arena, &bytes));
            assert_ok(uncovered_reply_decode(bytes, &arena, &read));
            assert_int_equal(read.count, n);
            for (size_t i = 0; i < n; i++)
                assert_true(read.list[i].base == list[i].base && read.list[i].view == list[i].view
                            && read.list[i].tablet == list[i].tablet);
            assert_int_equal(read.base_count, m);
            for (size_t i = 0; i < m; i++)
                assert_true(read.bases[i].base == bases[i].base && read.bases[i].rows == bases[i].rows);
            assert_only_whole(bytes, try_uncovered_reply);
        }
}

TEST(bases_that_do_not_ascend_are_refused)
{
    struct base_rows bases[] = {{7, 1}, {7, 1}, {6, 1}};
    pawl_bytes bytes;
    assert_ok(
        uncovered_reply_encode(&(struct uncovered_reply){.bases = bases, .base_count = 2}, &arena, &bytes));
    assert_status(try_uncovered_reply(bytes), PAWL_ECORRUPT);
    assert_ok(
        uncovered_reply_encode(&(struct uncovered_reply){.bases = bases + 1, .base_count = 2}, &arena, &bytes));
    assert_status(try_uncovered_reply(bytes), PAWL_ECORRUPT);
}

TEST(a_list_of_more_than_allowed_that_is_uncovered_is_refused)
{
    static uint8_t bytes[8 + 12 * (UNCOVERED_MAX + 1)];
    put_u32(bytes, (uint32_t)UNCOVERED_MAX);
    assert_ok(try_uncovered_reply((pawl_bytes){bytes, sizeof bytes - 12}));
    put_u32(bytes, (uint32_t)UNCOVERED_MAX + 1);
    assert_status(try_uncovered_reply((pawl_bytes){bytes, sizeof bytes}), PAWL_ECORRUPT);
    put_u32(bytes, 0);
    for (uint32_t i = 0; i <= BASES_MAX; i++)
        put_u32(bytes + 8 + (size_t)12 * i, i);
    put_u32(bytes + 4, (uint32_t)BASES_MAX);
    assert_ok(try_uncovered_reply((pawl_bytes){bytes, sizeof bytes - 12}));
    put_u32(bytes + 4, (uint32_t)BASES_MAX + 1);
    assert_status(try_uncovered_reply((pawl_bytes){bytes, sizeof bytes}), PAWL_ECORRUPT);
}

/* Seven functions take memory; outputs stay as they are when there is none. */
TEST(without_memory_nothing_is_returned)
{
    const uint64_t ids[] = {1};
    const struct work_result result = {.id = 1, .outcome = WORK_GONE};
    struct uncovered one = {1, 2, 3};
    const struct uncovered_reply lacks = {.list = &one, .count = 1};
    pawl_bytes work, reply, uncovered, bytes = {&bytes, 1};
    assert_ok(work_encode(1, ids, 1, &arena, &work));
    assert_ok(work_reply_encode(&result, 1, &arena, &reply));
    assert_ok(uncovered_reply_encode(&lacks, &arena, &uncovered));
    struct test_alloc memory;
    struct arena none;
    uint64_t term = 77, *read_ids = NULL;
    struct work_result *results = NULL;
    struct uncovered_reply read = {.count = 77};
    size_t count = 77;
    test_alloc_init(&memory);
    test_alloc_fail(&memory, 1, TEST_ALLOC_FROM_THEN_ON);
    arena_init(&none, &memory.allocator, 4096);
    assert_status(work_encode(1, ids, 1, &none, &bytes), PAWL_ENOMEM);
    assert_status(work_reply_encode(&result, 1, &none, &bytes), PAWL_ENOMEM);
    assert_status(uncovered_encode(1, &none, &bytes), PAWL_ENOMEM);
    assert_status(uncovered_reply_encode(&lacks, &none, &bytes), PAWL_ENOMEM);
    assert_status(work_decode(work, &none, &term, &read_ids, &count), PAWL_ENOMEM);
    assert_status(work_reply_decode(reply, &none, &results, &count), PAWL_ENOMEM);
    assert_status(uncovered_reply_decode(uncovered, &none, &read), PAWL_ENOMEM);
    assert_true(bytes.data == &bytes && bytes.size == 1);
    assert_true(term == 77 && count == 77 && !read_ids && !results && read.count == 77);
    arena_release(&none);
    test_alloc_release(&memory);
}

#define RUN_WITH_ARENA(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_WITH_ARENA(a_call_comes_back_as_it_was_sent),
        RUN_WITH_ARENA(a_call_that_is_cut_or_longer_is_refused),
        RUN_WITH_ARENA(a_call_with_more_tasks_than_allowed_is_refused),
        RUN_WITH_ARENA(a_call_that_names_a_task_twice_is_refused),
        RUN_WITH_ARENA(a_reply_comes_back_as_it_was_sent),
        RUN_WITH_ARENA(words_are_sent_only_with_a_failure),
        RUN_WITH_ARENA(long_words_are_cut_between_two_characters),
        RUN_WITH_ARENA(a_reply_that_makes_no_sense_is_refused),
        RUN_WITH_ARENA(a_reply_with_more_results_than_allowed_is_refused),
        RUN_WITH_ARENA(the_question_what_is_uncovered_comes_back_as_it_was_sent),
        RUN_WITH_ARENA(what_is_uncovered_comes_back_as_it_was_sent),
        RUN_WITH_ARENA(bases_that_do_not_ascend_are_refused),
        RUN_WITH_ARENA(a_list_of_more_than_allowed_that_is_uncovered_is_refused),
        RUN_WITH_ARENA(without_memory_nothing_is_returned),
    };
    return TEST_MAIN(tests);
}

#include "test/lib/test.h"

#include "core/group0/tasks.h"
#include "test/lib/alloc.h"

#define BASE ((uint32_t)300)
#define VIEW ((uint32_t)0x80000001)

static uint32_t make(struct tasks *tasks, uint32_t view, uint32_t tablets)
{
    uint32_t made = 99;
    assert_ok(tasks_make(tasks, BASE, view, tablets, NULL, 0, &made));
    return made;
}

static uint64_t finish(struct tasks *tasks, uint64_t id)
{
    uint64_t finished = 99;
    tasks_finish(tasks, &id, 1, &finished);
    return finished;
}

/* All of them, as "id:tablet" with a mark on those that are aborted. */
static const char *listed(const struct tasks *tasks)
{
    static char text[1024];
    struct tasks_cursor cursor = {0};
    struct task task;
    size_t at = 0;
    text[0] = '\0';
    while (tasks_next(tasks, &cursor, &task)) {
        int n = snprintf(text + at, sizeof text - at, "%s%" PRIu64 ":%u%s", at ? " " : "", task.id, task.tablet,
                         task.aborted ? "!" : "");
        assert_true(n > 0 && (size_t)n < sizeof text - at);
        at += (size_t)n;
    }
    return text;
}

TEST(a_view_gets_a_task_a_tablet)
{
    struct tasks tasks;
    struct task task = {0};
    tasks_init(&tasks, NULL);
    assert_string_equal(listed(&tasks), "");
    assert_int_equal(make(&tasks, VIEW, 4), 4);
    assert_string_equal(listed(&tasks), "1:0 2:1 3:2 4:3");
    assert_ok(tasks_find(&tasks, 3, &task));
    assert_int_equal(task.id, 3);
    assert_int_equal(task.type, TASK_BUILD_RANGE);
    assert_int_equal(task.base, BASE);
    assert_int_equal(task.view, VIEW);
    assert_int_equal(task.tablet, 2);
    assert_false(task.aborted);
    assert_status(tasks_find(&tasks, 0, &task), PAWL_ENOTFOUND);
    assert_status(tasks_find(&tasks, 5, &task), PAWL_ENOTFOUND);
    assert_status(tasks_find(&tasks, UINT64_MAX, &task), PAWL_ENOTFOUND);
    tasks_release(&tasks);
}

TEST(a_tablet_that_has_a_task_gets_no_second_one)
{
    static const uint32_t which[] = {2, 0, 2};
    struct tasks tasks;
    uint32_t made;
    tasks_init(&tasks, NULL);
    assert_ok(tasks_make(&tasks, BASE, VIEW, 4, which, 3, &made));
    assert_int_equal(made, 2);
    assert_int_equal(make(&tasks, VIEW, 4), 2);
    assert_string_equal(listed(&tasks), "1:0 3:2 6:1 8:3");
    assert_int_equal(make(&tasks, VIEW, 4), 0);
    assert_int_equal(tasks.next, 9);
    assert_int_equal(make(&tasks, VIEW + 1, 4), 4);
    assert_int_equal(tasks_of_view(&tasks, VIEW, NULL), 4);
    assert_int_equal(tasks_of_base(&tasks, BASE), 8);
    tasks_release(&tasks);
}

TEST(a_tablet_that_is_not_there_and_another_base_are_refused)
{
    static const uint32_t which[] = {0, 4};
    struct test_alloc memory;
    struct tasks tasks;
    uint32_t made = 99;
    test_alloc_init(&memory);
    tasks_init(&tasks, &memory.allocator);
    assert_status(tasks_make(&tasks, BASE, VIEW, 4, which, 2, &made), PAWL_EINVAL);
    assert_ok(tasks_make(&tasks, BASE, VIEW, 4, which, 1, &made));
    assert_status(tasks_make(&tasks, BASE + 1, VIEW, 4, NULL, 0, &made), PAWL_EINVAL);
    assert_int_equal(made, 1);
    assert_string_equal(listed(&tasks), "1:0");
    tasks_release(&tasks);
    test_alloc_release(&memory);
}

TEST(a_finished_task_is_gone_and_its_id_is_not_given_again)
{
    struct tasks tasks;
    struct task task;
    uint64_t made;
    tasks_init(&tasks, NULL);
    make(&tasks, VIEW, 2);
    assert_int_equal(finish(&tasks, 2), 1);
    assert_int_equal(finish(&tasks, 2), 0);
    assert_status(tasks_find(&tasks, 2, &task), PAWL_ENOTFOUND);
    assert_int_equal(tasks_of_view(&tasks, VIEW, &made), 1);
    assert_int_equal(made, 2);
    assert_int_equal(finish(&tasks, 1), 1);
    assert_int_equal(tasks.count, 0);
    assert_int_equal(tasks_of_view(&tasks, VIEW, &made), 0);
    assert_int_equal(made, 0);
    make(&tasks, VIEW, 2);
    assert_string_equal(listed(&tasks), "3:0 4:1");
    tasks_release(&tasks);
}

TEST(an_aborted_task_is_not_finished)
{
    struct tasks tasks;
    tasks_init(&tasks, NULL);
    make(&tasks, VIEW, 2);
    assert_ok(tasks_abort_all(&tasks));
    assert_int_equal(finish(&tasks, 1), 0);
    assert_string_equal(listed(&tasks), "1:0! 2:1!");
    assert_int_equal(task_group_next(&tasks.groups[0], 0), UINT32_MAX);
    tasks_release(&tasks);
}

TEST(dropping_a_view_or_a_base_deletes_its_tasks_and_no_others)
{
    struct tasks tasks;
    uint32_t made;
    tasks_init(&tasks, NULL);
    make(&tasks, VIEW, 2);
    make(&tasks, VIEW + 1, 2);
    assert_ok(tasks_make(&tasks, BASE + 1, VIEW + 2, 2, NULL, 0, &made));
    assert_ok(tasks_abort_all(&tasks));
    make(&tasks, VIEW, 2);
    tasks_delete_view(&tasks, VIEW);
    assert_string_equal(listed(&tasks), "3:0! 4:1! 5:0! 6:1!");
    tasks_delete_view(&tasks, VIEW);
    tasks_delete_base(&tasks, BASE);
    assert_string_equal(listed(&tasks), "5:0! 6:1!");
    assert_int_equal(tasks.left, 2);
    tasks_delete_base(&tasks, BASE + 1);
    assert_int_equal(tasks.count, 0);
    tasks_release(&tasks);
}

TEST(a_split_makes_two_tasks_of_each_that_is_unfinished)
{
    struct tasks tasks;
    struct task task;
    tasks_init(&tasks, NULL);
    make(&tasks, VIEW, 4);
    assert_ok(tasks_find(&tasks, 3, &task));
    assert_int_equal(task.tablets, 4); /* whatever becomes of the map, the task tells which keys it is about */
    finish(&tasks, 2);
    assert_ok(tasks_abort_all(&tasks));
    assert_ok(tasks_resize(&tasks, 8));
    assert_string_equal(listed(&tasks), "5:0 6:1 9:4 10:5 11:6 12:7");
    assert_int_equal(tasks.next, 13);
    assert_ok(tasks_find(&tasks, 9, &task));
    assert_int_equal(task.tablets, 8);
    tasks_release(&tasks);
}

TEST(a_merge_makes_one_task_of_two)
{
    struct tasks tasks;
    tasks_init(&tasks, NULL);
    make(&tasks, VIEW, 8);
    finish(&tasks, 2); /* half of 0 */
    finish(&tasks, 3); /* all of 1 */
    finish(&tasks, 4);
    assert_ok(tasks_abort_all(&tasks));
    assert_ok(tasks_resize(&tasks, 4));
    assert_string_equal(listed(&tasks), "9:0 11:2 12:3");
    tasks_release(&tasks);
}

/* A view that was created during the operation, and a tablet that got a new task. */
TEST(a_resize_replaces_also_what_was_made_since_it_began)
{
    static const uint32_t which[] = {1};
    struct tasks tasks;
    uint32_t made;
    tasks_init(&tasks, NULL);
    make(&tasks, VIEW + 1, 2);
    assert_ok(tasks_abort_all(&tasks));
    make(&tasks, VIEW, 2);
    assert_ok(tasks_make(&tasks, BASE, VIEW + 1, 2, which, 1, &made));
    assert_string_equal(listed(&tasks), "1:0! 2:1! 3:0 4:1 6:1");
    assert_ok(tasks_resize(&tasks, 4));
    assert_string_equal(listed(&tasks), "7:0 8:1 9:2 10:3 11:0 12:1 13:2 14:3");
    assert_int_equal(tasks.groups[0].view, VIEW);
    tasks_release(&tasks);
}

TEST(a_rollback_copies_the_aborted_with_new_ids)
{
    static const uint32_t which[] = {1};
    struct tasks tasks;
    uint32_t made;
    tasks_init(&tasks, NULL);
    make(&tasks, VIEW, 4);
    finish(&tasks, 1);
    assert_ok(tasks_abort_all(&tasks));
    assert_ok(tasks_make(&tasks, BASE, VIEW, 4, which, 1, &made));
    assert_string_equal(listed(&tasks), "2:1! 3:2! 4:3! 6:1");
    assert_ok(tasks_rollback(&tasks));
    assert_string_equal(listed(&tasks), "6:1 11:2 12:3");
    assert_ok(tasks_rollback(&tasks));
    assert_string_equal(listed(&tasks), "6:1 11:2 12:3");
    assert_int_equal(tasks.next, 13);
    tasks_release(&tasks);
}

TEST(the_steps_of_an_operation_do_nothing_without_tasks)
{
    struct tasks tasks;
    tasks_init(&tasks, NULL);
    assert_ok(tasks_abort_all(&tasks));
    assert_ok(tasks_resize(&tasks, 8));
    assert_ok(tasks_rollback(&tasks));
    assert_int_equal(tasks.next, 1);
    tasks_release(&tasks);
}

TEST(more_tasks_than_the_bound_are_refused)
{
    struct test_alloc memory;
    struct tasks tasks;
    uint32_t made = 99;
    test_alloc_init(&memory);
    tasks_init(&tasks, &memory.allocator);
    tasks.left = TASKS_MAX - 3;
    assert_status(tasks_make(&tasks, BASE, VIEW, 4, NULL, 0, &made), PAWL_ETOOBIG);
    assert_int_equal(made, 99);
    tasks.left = TASKS_MAX - 4;
    assert_ok(tasks_make(&tasks, BASE, VIEW, 4, NULL, 0, &made));
    tasks.left = 4;
    tasks.next = UINT64_C(1) << 62;
    assert_status(tasks_make(&tasks, BASE, VIEW + 1, 4, NULL, 0, &made), PAWL_ETOOBIG);
    assert_status(tasks_resize(&tasks, 8), PAWL_ETOOBIG);
    assert_ok(tasks_abort_all(&tasks));
    assert_status(tasks_rollback(&tasks), PAWL_ETOOBIG);
    assert_string_equal(listed(&tasks), "1:0! 2:1! 3:2! 4:3!");
    tasks_release(&tasks);
    test_alloc_release(&memory);
}

#define MANY_GROUPS  ((uint32_t)16)
#define MANY_TABLETS ((uint32_t)65536)

/* A thousand, spread over all groups, and one twice. */
static void finish_many(struct tasks *tasks)
{
    static uint64_t ids[1001];
    uint64_t finished;
    for (uint64_t i = 0; i < 1000; i++)
        ids[i] = 1 + i * 1048;
    ids[1000] = ids[0];
    tasks_finish(tasks, ids, 1001, &finished);
    assert_int_equal(finished, 1000);
}

TEST(a_million_tasks_take_a_few_bits_each)
{
    struct test_alloc memory;
    struct tasks tasks;
    struct task task;
    const uint64_t all = (uint64_t)MANY_GROUPS * MANY_TABLETS;
    test_alloc_init(&memory);
    tasks_init(&tasks, &memory.allocator);
    for (uint32_t i = 0; i < MANY_GROUPS; i++)
        assert_int_equal(make(&tasks, VIEW + i, MANY_TABLETS), MANY_TABLETS);
    assert_int_equal(tasks.left, all);
    assert_true(memory.live_bytes * 8 < all * 2);
    finish_many(&tasks);
    assert_int_equal(tasks.left, all - 1000);
    for (uint64_t id = 1; id <= all; id++) {
        bool gone = (id - 1) % 1048 == 0 && (id - 1) / 1048 < 1000;
        assert_status(tasks_find(&tasks, id, &task), gone ? PAWL_ENOTFOUND : PAWL_OK);
        if (!gone)
            assert_true(task.id == id && task.tablet == (id - 1) % MANY_TABLETS
                        && task.view == VIEW + (id - 1) / MANY_TABLETS);
    }
    assert_int_equal(task_group_next(&tasks.groups[0], 0), 1);
    assert_int_equal(task_group_next(&tasks.groups[0], 1048), 1049);
    assert_int_equal(task_group_next(&tasks.groups[0], MANY_TABLETS - 1), MANY_TABLETS - 1);
    assert_int_equal(task_group_next(&tasks.groups[0], MANY_TABLETS), UINT32_MAX);
    assert_ok(tasks_abort_all(&tasks));
    assert_true(memory.live_bytes * 8 < all * 3);
    assert_ok(tasks_resize(&tasks, MANY_TABLETS * 2));
    assert_int_equal(tasks.left, (all - 1000) * 2);
    assert_ok(tasks_resize(&tasks, MANY_TABLETS));
    assert_int_equal(tasks.left, all - 1000);
    assert_true(memory.live_bytes * 8 < all * 2);
    tasks_release(&tasks);
    test_alloc_release(&memory);
}

TEST(the_last_task_of_a_large_group_is_found_behind_empty_words)
{
    static const uint32_t which[] = {MANY_TABLETS - 1};
    struct tasks tasks;
    uint32_t made;
    tasks_init(&tasks, NULL);
    assert_ok(tasks_make(&tasks, BASE, VIEW, MANY_TABLETS, which, 1, &made));
    assert_int_equal(task_group_next(&tasks.groups[0], 0), MANY_TABLETS - 1);
    assert_string_equal(listed(&tasks), "65536:65535");
    tasks_release(&tasks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_view_gets_a_task_a_tablet),
        RUN(a_tablet_that_has_a_task_gets_no_second_one),
        RUN(a_tablet_that_is_not_there_and_another_base_are_refused),
        RUN(a_finished_task_is_gone_and_its_id_is_not_given_again),
        RUN(an_aborted_task_is_not_finished),
        RUN(dropping_a_view_or_a_base_deletes_its_tasks_and_no_others),
        RUN(a_split_makes_two_tasks_of_each_that_is_unfinished),
        RUN(a_merge_makes_one_task_of_two),
        RUN(a_resize_replaces_also_what_was_made_since_it_began),
        RUN(a_rollback_copies_the_aborted_with_new_ids),
        RUN(the_steps_of_an_operation_do_nothing_without_tasks),
        RUN(more_tasks_than_the_bound_are_refused),
        RUN(a_million_tasks_take_a_few_bits_each),
        RUN(the_last_task_of_a_large_group_is_found_behind_empty_words),
    };
    return TEST_MAIN(tests);
}

/* Assignments: who opens, who is refused, and what the command says. */
#include "core/group0/assignment.h"

#include "core/group0/group0.h"
#include "test/lib/test.h"

static const struct assignment web1 = {.node = UINT64_C(0x0123456789abcdef),
                                       .time = INT64_C(1794910000000000000),
                                       .name_size = 10,
                                       .name = "web1:/data"};

TEST(a_node_opens_what_is_its_own_or_nobodys_and_takes_over_only_if_told)
{
    static const struct {
        uint64_t position, present;
        bool take_over;
        enum assignment_step step;
    } cases[] = {
        {0, 0, false, ASSIGNMENT_WRITE}, {0, 0, true, ASSIGNMENT_WRITE},   {5, 7, false, ASSIGNMENT_CLAIM},
        {5, 7, true, ASSIGNMENT_CLAIM},  {5, 8, false, ASSIGNMENT_REFUSE}, {5, 8, true, ASSIGNMENT_WRITE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct assignment present = {.position = cases[i].position, .node = cases[i].present};
        assert_int_equal(assignment_decide(&present, 7, cases[i].take_over), cases[i].step);
    }
}

TEST(a_command_reads_back_as_it_was_written)
{
    struct arena arena;
    struct group0_command read;
    struct assignment bad = web1;
    pawl_bytes bytes, cut;
    pawl_error error = {0};
    arena_init(&arena, NULL, 4096);
    assert_ok(group0_assign_encode(&web1, &arena, &bytes));
    assert_ok(group0_command_decode(bytes, &arena, &read, &error));
    assert_int_equal(read.kind, GROUP0_ASSIGN);
    assert_int_equal(read.assignment.node, web1.node);
    assert_int_equal(read.assignment.time, web1.time);
    assert_string_equal(read.assignment.name, web1.name);
    for (cut = bytes; cut.size-- > 4;)
        assert_status(group0_command_decode(cut, &arena, &read, &error), PAWL_ECORRUPT);
    bad.node = 0;
    assert_status(group0_assign_encode(&bad, &arena, &bytes), PAWL_EINVAL);
    bad = web1;
    bad.name_size = ASSIGNMENT_NAME_MAX + 1;
    assert_status(group0_assign_encode(&bad, &arena, &bytes), PAWL_EINVAL);
    arena_release(&arena);
}

TEST(the_last_assignment_counts_and_makes_no_version_of_the_schema)
{
    struct arena arena;
    struct group0 *group0;
    struct assignment other = web1;
    enum group0_outcome outcome;
    pawl_bytes bytes;
    other.node = 9;
    arena_init(&arena, NULL, 4096);
    assert_ok(group0_new(NULL, &group0));
    assert_int_equal(group0_assignment(group0)->position, 0);
    struct hash128 before = group0_digest(group0);
    assert_ok(group0_assign_encode(&web1, &arena, &bytes));
    assert_ok(group0_check(group0, bytes, &outcome, NULL));
    assert_int_equal(outcome, GROUP0_CHANGED);
    assert_int_equal(group0_assignment(group0)->position, 0); /* it was only checked */
    assert_ok(group0_apply(group0, 3, bytes, &outcome, NULL));
    assert_ok(group0_assign_encode(&other, &arena, &bytes));
    assert_ok(group0_apply(group0, 5, bytes, &outcome, NULL));
    assert_int_equal(group0_assignment(group0)->position, 5);
    assert_int_equal(group0_assignment(group0)->node, 9);
    assert_int_equal(group0_schema(group0)->position, 0);
    struct hash128 after = group0_digest(group0);
    assert_memory_not_equal(&before, &after, sizeof before);
    arena_release(&arena);
    group0_free(group0);
}

TEST(an_assignment_is_told_in_words_that_hold_no_control_characters)
{
    char text[ASSIGNMENT_TEXT_MAX];
    struct assignment odd = web1;
    assignment_describe(&web1, text);
    assert_string_equal(text, "node web1:/data (ID 0123456789abcdef, since 2026-11-17T10:06:40Z)");
    odd.name[4] = '\n';
    assignment_describe(&odd, text);
    assert_contains(text, "node web1?/data");
    memset(odd.name, 'x', ASSIGNMENT_NAME_MAX);
    odd.name_size = ASSIGNMENT_NAME_MAX;
    assignment_describe(&odd, text);
    assert_contains(text, "x (ID 0123456789abcdef, since");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_node_opens_what_is_its_own_or_nobodys_and_takes_over_only_if_told),
        RUN(a_command_reads_back_as_it_was_written),
        RUN(the_last_assignment_counts_and_makes_no_version_of_the_schema),
        RUN(an_assignment_is_told_in_words_that_hold_no_control_characters),
    };
    return TEST_MAIN(tests);
}

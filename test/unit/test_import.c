/* The end of an import: what the command says, and what group0 tells of an import that was not ended. */
#include "core/group0/import.h"

#include "core/group0/group0.h"
#include "test/lib/test.h"

#define RUN_ONE (IMPORT_NODES | 1)
#define RUN_TWO (IMPORT_NODES | 2)
#define A_NODE  UINT64_C(0x0123456789abcdef)

static struct arena arena;

static pawl_bytes done_by(uint64_t node)
{
    struct import_done done = {.node = node,
                               .time = INT64_C(1794910000000000000),
                               .entries = 12345,
                               .source = {.high = 7, .low = 8},
                               .name_size = 10,
                               .name = "web1:/data"};
    pawl_bytes bytes;
    assert_ok(group0_import_done_encode(&done, &arena, &bytes));
    return bytes;
}

static pawl_bytes assigned_to(uint64_t node)
{
    struct assignment assignment = {.node = node, .name_size = 3, .name = "web"};
    pawl_bytes bytes;
    assert_ok(group0_assign_encode(&assignment, &arena, &bytes));
    return bytes;
}

TEST(a_command_reads_back_as_it_was_written)
{
    struct group0_command read;
    pawl_bytes bytes, cut;
    pawl_error error = {0};
    struct import_done bad = {.node = A_NODE};
    arena_init(&arena, NULL, 4096);
    bytes = done_by(RUN_ONE);
    assert_ok(group0_command_decode(bytes, &arena, &read, &error));
    assert_int_equal(read.kind, GROUP0_IMPORT_DONE);
    assert_true(read.imported.node == RUN_ONE);
    assert_int_equal(read.imported.entries, 12345);
    assert_int_equal(read.imported.source.high, 7);
    assert_int_equal(read.imported.source.low, 8);
    assert_int_equal(read.imported.time, INT64_C(1794910000000000000));
    assert_string_equal(read.imported.name, "web1:/data");
    for (cut = bytes; cut.size-- > 4;)
        assert_status(group0_command_decode(cut, &arena, &read, &error), PAWL_ECORRUPT);
    assert_status(group0_import_done_encode(&bad, &arena, &bytes), PAWL_EINVAL);
    bad = (struct import_done){.node = RUN_ONE, .name_size = ASSIGNMENT_NAME_MAX + 1};
    assert_status(group0_import_done_encode(&bad, &arena, &bytes), PAWL_EINVAL);
    arena_release(&arena);
}

TEST(what_was_assigned_before_the_end_of_an_import_counts_for_nothing)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    arena_init(&arena, NULL, 4096);
    assert_ok(group0_new(NULL, &group0));
    assert_ok(group0_apply(group0, 1, assigned_to(A_NODE), &outcome, NULL));
    assert_int_equal(group0_assignment(group0)->position, 1);
    assert_ok(group0_check(group0, done_by(RUN_ONE), &outcome, NULL));
    assert_int_equal(group0_assignment(group0)->position, 1); /* it was only checked */
    assert_ok(group0_apply(group0, 2, done_by(RUN_ONE), &outcome, NULL));
    assert_int_equal(outcome, GROUP0_CHANGED);
    assert_int_equal(group0_assignment(group0)->position, 0);
    assert_ok(group0_apply(group0, 3, assigned_to(9), &outcome, NULL));
    assert_int_equal(group0_assignment(group0)->position, 3);
    arena_release(&arena);
    group0_free(group0);
}

TEST(an_import_is_under_way_from_its_claim_to_the_command_that_names_it)
{
    struct import_watch watch = {0};
    arena_init(&arena, NULL, 4096);
    import_claimed(&watch, A_NODE);
    import_entry(&watch, A_NODE, assigned_to(A_NODE));
    assert_int_equal(watch.state, IMPORT_NONE);
    watch = (struct import_watch){0};
    import_claimed(&watch, RUN_ONE);
    assert_int_equal(watch.state, IMPORT_UNDER_WAY);
    import_entry(&watch, RUN_ONE, assigned_to(A_NODE)); /* copied */
    import_entry(&watch, RUN_ONE, (pawl_bytes){"junk", 4});
    import_claimed(&watch, RUN_TWO); /* the first run was killed */
    assert_int_equal(watch.state, IMPORT_UNDER_WAY);
    import_entry(&watch, RUN_TWO, done_by(RUN_TWO));
    assert_int_equal(watch.state, IMPORT_ENDED);
    assert_int_equal(watch.entries, 3);
    assert_int_equal(watch.done.entries, 12345);
    import_claimed(&watch, RUN_ONE);
    import_claimed(&watch, A_NODE);
    import_entry(&watch, A_NODE, assigned_to(A_NODE));
    assert_int_equal(watch.state, IMPORT_ENDED);
    arena_release(&arena);
}

TEST(an_import_that_claims_behind_an_entry_of_a_node_has_not_begun)
{
    struct import_watch watch = {0};
    arena_init(&arena, NULL, 4096);
    import_claimed(&watch, A_NODE);
    import_entry(&watch, A_NODE, assigned_to(A_NODE));
    import_claimed(&watch, RUN_ONE);
    assert_int_equal(watch.state, IMPORT_NONE);
    import_entry(&watch, RUN_ONE, done_by(RUN_ONE)); /* nor does it end */
    assert_int_equal(watch.state, IMPORT_NONE);
    import_claimed(&watch, A_NODE);
    import_entry(&watch, A_NODE, assigned_to(A_NODE));
    import_claimed(&watch, RUN_TWO);
    assert_int_equal(watch.state, IMPORT_NONE);
    arena_release(&arena);
}

TEST(an_end_that_was_copied_with_the_log_ends_nothing)
{
    struct import_watch watch = {0};
    arena_init(&arena, NULL, 4096);
    import_claimed(&watch, RUN_TWO);
    import_entry(&watch, RUN_TWO, done_by(RUN_ONE));
    assert_int_equal(watch.state, IMPORT_UNDER_WAY);
    import_claimed(&watch, A_NODE); /* a node that came at the same moment, and was refused */
    import_entry(&watch, A_NODE, done_by(RUN_TWO));
    assert_int_equal(watch.state, IMPORT_UNDER_WAY);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_command_reads_back_as_it_was_written),
        RUN(what_was_assigned_before_the_end_of_an_import_counts_for_nothing),
        RUN(an_import_is_under_way_from_its_claim_to_the_command_that_names_it),
        RUN(an_import_that_claims_behind_an_entry_of_a_node_has_not_begun),
        RUN(an_end_that_was_copied_with_the_log_ends_nothing),
    };
    return TEST_MAIN(tests);
}

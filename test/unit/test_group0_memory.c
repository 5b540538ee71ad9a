/* group0 when memory ends, at every place where some is taken: this program is linked with a group0 whose
 * arenas allocate each thing by itself. */
#include "core/group0/group0.h"
#include "test/lib/alloc.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

/* Two packages, a third, and then commands about the first one's lane. */
TEST(applying_survives_every_failed_allocation)
{
    static const char *const schemas[] = {
        schema_shop, schema_crm,
        "{'schema': 1, 'package': 'other', 'workspaces': {'w': {'sequences': {'s': {}}}}}"};
    enum { COMMANDS = 5 };
    const uint64_t offsets[] = {7, 8};
    struct arena arenas[3];
    pawl_bytes commands[COMMANDS];
    for (size_t i = 0; i < 3; i++)
        assert_ok(schema_command(NULL, schemas[i], &arenas[i], &commands[i], NULL));
    assert_ok(group0_rebuild_encode(1, &arenas[0], &commands[3]));
    assert_ok(group0_switch_encode(1, 2, offsets, 2, &arenas[0], &commands[4]));
    uint64_t k = 1;
    for (bool failed = true; failed; k++) {
        struct test_alloc memory;
        struct group0 *group0 = NULL;
        enum group0_outcome outcome;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int status = group0_new(&memory.allocator, &group0);
        for (size_t i = 0; i < COMMANDS && status == PAWL_OK; i++) {
            pawl_error error = {0};
            status = group0_apply(group0, i + 1, commands[i], &outcome, &error);
            assert_int_equal(error.code, status);
            assert_int_equal(group0_position(group0), status == PAWL_OK ? i + 1 : i);
        }
        failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        group0_free(group0);
        test_alloc_release(&memory);
    }
    print_message("# %" PRIu64 " allocations\n", k);
    assert_true(k > 300);
    for (size_t i = 0; i < 3; i++)
        arena_release(&arenas[i]);
}

/* What failed for want of memory succeeds when there is some, with the same result. */
TEST(a_failed_apply_can_be_repeated)
{
    struct arena arena;
    pawl_bytes command;
    assert_ok(schema_command(NULL, schema_shop, &arena, &command, NULL));
    struct group0 *reference;
    enum group0_outcome outcome;
    assert_ok(group0_new(NULL, &reference));
    assert_ok(group0_apply(reference, 1, command, &outcome, NULL));
    for (uint64_t k = 1; k < 400; k += 7) {
        struct test_alloc memory;
        struct group0 *group0;
        test_alloc_init(&memory);
        assert_ok(group0_new(&memory.allocator, &group0));
        test_alloc_fail(&memory, k, TEST_ALLOC_FROM_THEN_ON);
        int status = group0_apply(group0, 1, command, &outcome, NULL);
        test_alloc_fail(&memory, 0, TEST_ALLOC_ONCE);
        if (status)
            assert_ok(group0_apply(group0, 1, command, &outcome, NULL));
        assert_int_equal(group0_digest(group0).low, group0_digest(reference).low);
        group0_free(group0);
        test_alloc_release(&memory);
    }
    group0_free(reference);
    arena_release(&arena);
}

TEST(reading_json_survives_every_failed_allocation)
{
    uint64_t k = 1;
    for (bool failed = true; failed; k++) {
        struct test_alloc memory;
        struct arena arena;
        pawl_bytes command, text;
        struct definition definition;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int status = schema_command(&memory.allocator, schema_crm, &arena, &command, NULL);
        if (status == PAWL_OK)
            status = definition_decode((pawl_bytes){(const uint8_t *)command.data + 4, command.size - 4},
                                       &arena, &definition, NULL);
        if (status == PAWL_OK)
            status = schema_show(&definition, &arena, &text);
        failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        arena_release(&arena);
        test_alloc_release(&memory);
    }
    assert_true(k > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(applying_survives_every_failed_allocation),
        RUN(a_failed_apply_can_be_repeated),
        RUN(reading_json_survives_every_failed_allocation),
    };
    return TEST_MAIN(tests);
}

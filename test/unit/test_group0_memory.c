/* group0 when memory ends, at every place where some is taken: this program is linked with a group0 whose
 * arenas allocate each thing by itself. */
#include "core/group0/group0.h"
#include "test/lib/alloc.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"
#include "test/lib/views.h"

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

/* Every command about views, with the memory ending at each place: the state is as it was, and with memory the
 * command gives what it would have given. */
TEST(commands_about_views_change_everything_or_nothing)
{
    static const struct view_text text = {
        .package = "run", .name = "v", .base = "shop.Customer", .key = "name"};
    static const struct view_text totals = {
        .package = "run", .name = "e", .base = "shop.CustomerTotal", .key = "orders", .filter = "orders > 1"};
    const uint64_t ids[] = {3};
    const struct uncovered uncovered[] = {{256, view_table(2, 0), 0}, {256, view_table(2, 0), 1}};
    struct group0_command commands[] = {
        {.kind = GROUP0_VIEW_CREATE},
        {.kind = GROUP0_VIEW_CREATE},
        {.kind = GROUP0_FINISHED, .ids = ids, .id_count = 1},
        {.kind = GROUP0_TASKS, .uncovered = uncovered, .uncovered_count = 2},
        {.kind = GROUP0_VIEW_PAUSE, .name = text_bytes("run.v"), .paused = true},
        {.kind = GROUP0_VIEW_THROTTLE, .throttle = 5},
        {.kind = GROUP0_BASE, .table = 256},
        {.kind = GROUP0_RESIZE_BEGIN, .tablets = 4},
        {.kind = GROUP0_RESIZE_ROLLBACK},
        {.kind = GROUP0_RESIZE_BEGIN, .tablets = 4},
        {.kind = GROUP0_RESIZE_FINISH},
        {.kind = GROUP0_VIEW_REBUILD, .name = text_bytes("run.v")},
        {.kind = GROUP0_FAILED, .table = view_table(4, 0), .words = text_bytes("two rows")},
        {.kind = GROUP0_VIEW_REBUILD, .name = text_bytes("run.v")},
        {.kind = GROUP0_VIEW_DROP, .name = text_bytes("run.v")},
    };
    enum { COMMANDS = sizeof commands / sizeof commands[0], ALL = COMMANDS + 2 };
    struct definition_view views[2];
    struct arena arena, first, last;
    pawl_bytes bytes[ALL];
    arena_init(&arena, NULL, 4096);
    assert_ok(schema_command(NULL, schema_shop, &first, &bytes[0], NULL));
    views_definition(&text, &arena, &views[0], &commands[0].schema);
    views_definition(&totals, &arena, &views[1], &commands[1].schema);
    for (size_t i = 0; i < COMMANDS; i++)
        assert_ok(group0_view_encode(&commands[i], &arena, &bytes[i + 1]));
    /* A package that declares others, and drops what it declared. */
    assert_ok(schema_command(NULL, schema_crm, &last, &bytes[ALL - 1], NULL));
    uint64_t failures = 0;
    for (size_t until = 0; until < ALL; until++)
        for (uint64_t k = 1;; k++) {
            struct test_alloc memory;
            struct group0 *group0;
            enum group0_outcome outcome;
            test_alloc_init(&memory);
            assert_ok(group0_new(&memory.allocator, &group0));
            group0_configure(group0, 2, 1, 1);
            for (size_t i = 0; i < until; i++)
                assert_ok(group0_apply(group0, i + 1, bytes[i], &outcome, NULL));
            struct hash128 before = group0_digest(group0);
            test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
            int status = group0_apply(group0, until + 1, bytes[until], &outcome, NULL);
            bool failed = test_alloc_failed(&memory);
            test_alloc_fail(&memory, 0, TEST_ALLOC_ONCE);
            assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
            struct hash128 after = group0_digest(group0);
            if (failed) {
                failures++;
                assert_memory_equal(&before, &after, sizeof after);
                assert_ok(group0_apply(group0, until + 1, bytes[until], &outcome, NULL));
            }
            assert_int_equal(outcome, GROUP0_CHANGED);
            group0_free(group0);
            test_alloc_release(&memory);
            if (!failed)
                break;
        }
    print_message("# %" PRIu64 " failures\n", failures);
    arena_release(&arena);
    arena_release(&first);
    arena_release(&last);
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
        RUN(commands_about_views_change_everything_or_nothing),
        RUN(reading_json_survives_every_failed_allocation),
    };
    return TEST_MAIN(tests);
}

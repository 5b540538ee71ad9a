/* What group0 decides about views, tablets and tasks. */
#include "core/group0/building.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"
#include "test/lib/views.h"

static const char schema_p[] =
    "{'schema': 1, 'package': 'p',"
    "'types': {'T': {'kind': 'CDoc', 'fields': {'a': {'type': 'int64'}, 'b': {'type': 'string'}}}},"
    "'commands': {'Do': {'records': ['T']}},"
    "'entities': {'E': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'n': {'type': 'int64'}}}},"
    "'projectors': {'q': {'on': ['Do'], 'do': [{'upsert': 'E', 'key': {'k': '1'}, 'set': {'n': '1'}}]}},"
    "'views': {%s}}";

static void apply_views(struct group0 *group0, const char *views, int expected, pawl_error *error)
{
    char text[2048];
    enum group0_outcome outcome;
    snprintf(text, sizeof text, schema_p, views);
    assert_status(schema_apply(group0, text, &outcome, error), expected);
}

static struct group0 *open_with(const char *views)
{
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    group0_configure(group0, 4, 1, 2);
    apply_views(group0, views, PAWL_OK, NULL);
    return group0;
}

static const struct building *of(const struct group0 *group0)
{
    return group0_building(group0);
}

static const struct view_entry *named(const struct group0 *group0, const char *name)
{
    return view_list_by_name(of(group0)->views, text_bytes(name), NULL);
}

static const struct view_text by_a = {.package = "p", .name = "by_a", .base = "T", .key = "a", .include = "b"};

static void create(struct group0 *group0, const struct view_text *text)
{
    enum group0_outcome outcome;
    assert_ok(views_create(group0, text, &outcome, NULL));
    assert_int_equal(outcome, GROUP0_CHANGED);
}

/* A command in the stream that no longer fits; nothing changes. */
static void refused(struct group0 *group0, const struct group0_command *command, int why, const char *words)
{
    struct hash128 before = group0_digest(group0);
    enum group0_outcome outcome;
    pawl_error error = {0};
    assert_status(views_check_command(group0, command, &outcome, &error), why);
    assert_contains(error.text, words);
    assert_ok(views_command(group0, command, &outcome, NULL));
    assert_int_equal(outcome, GROUP0_REFUSED);
    struct hash128 after = group0_digest(group0);
    assert_memory_equal(&before, &after, sizeof before);
}

static void refused_named(struct group0 *group0, enum group0_command_kind kind, const char *name, int why,
                          const char *words)
{
    refused(group0, &(struct group0_command){.kind = kind, .name = text_bytes(name)}, why, words);
}

static void refused_view(struct group0 *group0, const struct view_text *text, int why, const char *words)
{
    struct group0_command command = {.kind = GROUP0_VIEW_CREATE};
    struct definition_view view;
    struct arena arena;
    arena_init(&arena, NULL, 4096);
    views_definition(text, &arena, &view, &command.schema);
    refused(group0, &command, why, words);
    arena_release(&arena);
}

static uint64_t tasks_of(const struct group0 *group0, uint16_t number, uint32_t generation)
{
    return tasks_of_view(&of(group0)->tasks, view_table(number, generation), NULL);
}

TEST(a_view_is_made_built_and_dropped)
{
    struct group0 *group0 = open_with("");
    enum group0_outcome outcome;
    create(group0, &by_a);
    const struct view_entry *e = named(group0, "p.by_a");
    assert_int_equal(e->progress, VIEW_STARTED);
    assert_int_equal(e->view->number, 1);
    assert_int_equal(e->created, group0_position(group0));
    assert_int_equal(of(group0)->views->version, group0_position(group0));
    assert_int_equal(of(group0)->views_version, group0_position(group0));
    assert_int_equal(tasks_of(group0, 1, 0), 4);
    const struct view_list *list = of(group0)->views;
    assert_ok(views_finish(group0, 0, &outcome));
    assert_int_equal(outcome, GROUP0_CHANGED);
    assert_int_equal(named(group0, "p.by_a")->progress, VIEW_SUCCESS);
    assert_int_equal(list->entries[0].progress, VIEW_STARTED); /* a list that was handed out stays as it was */
    assert_ok(views_named(group0, GROUP0_VIEW_DROP, "p.by_a", &outcome, NULL));
    assert_null(named(group0, "p.by_a"));
    create(group0, &by_a);
    assert_int_equal(named(group0, "p.by_a")->view->number, 2); /* B1 */
    assert_ok(views_named(group0, GROUP0_VIEW_DROP, "p.by_a", &outcome, NULL));
    assert_int_equal(of(group0)->tasks.left, 0);
    refused_named(group0, GROUP0_VIEW_DROP, "p.by_a", PAWL_ENOTFOUND, "there is no view p.by_a");
    group0_free(group0);
}

TEST(a_name_is_given_once)
{
    struct group0 *group0 = open_with("'d': {'base': 'T', 'key': ['a']}");
    pawl_error error = {0};
    create(group0, &by_a);
    refused_view(group0, &by_a, PAWL_EEXISTS, "the view p.by_a is there already");
    refused_view(group0, &(struct view_text){.package = "p", .name = "d", .base = "T", .key = "a"},
                 PAWL_EEXISTS, "its package declares it");
    refused_view(group0, &(struct view_text){.package = "p", .name = "T", .base = "T", .key = "a"},
                 PAWL_EEXISTS, "p.T is a type");
    refused_view(group0, &(struct view_text){.package = "p", .name = "1x", .base = "T", .key = "a"},
                 PAWL_EINVAL, "");
    refused_view(group0, &(struct view_text){.package = "p", .name = "v", .base = "T", .key = "zz"},
                 PAWL_EINVAL, "$.views.v.key[0]: p.T has no field 'zz'");
    refused_named(group0, GROUP0_VIEW_DROP, "p.d", PAWL_EINVAL, "the package of p.d declares it");
    struct hash128 before = group0_digest(group0);
    apply_views(group0, "'by_a': {'base': 'T', 'key': ['a']}", PAWL_EINVAL, &error);
    assert_contains(error.text, "$.views.by_a: a view of this name was made at run time; drop it first");
    struct hash128 after = group0_digest(group0);
    assert_memory_equal(&before, &after, sizeof before);
    group0_free(group0);
}

TEST(a_type_cannot_take_the_name_of_a_view_that_was_made_at_run_time)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error = {0};
    assert_ok(group0_new(NULL, &group0));
    apply_views(group0, "", PAWL_OK, NULL);
    create(group0, &(struct view_text){.package = "p2", .name = "x", .base = "p.T", .key = "a"});
    assert_status(
        schema_apply(group0, "{'schema': 1, 'package': 'p2', 'commands': {'x': {}}}", &outcome, &error),
        PAWL_EINVAL);
    assert_contains(error.text, "p2.x is a view that was made at run time: it cannot be a command too");
    /* A package whose name is longer than the view's. */
    assert_ok(schema_apply(group0, "{'schema': 1, 'package': 'p2_and_a_long_name', 'commands': {'x': {}}}",
                           &outcome, &error));
    group0_free(group0);
}

TEST(what_a_package_declares_follows_the_package)
{
    struct group0 *group0 = open_with("'d': {'base': 'T', 'key': ['a']}, 'e': {'base': 'T', 'key': ['b']}");
    enum group0_outcome outcome;
    assert_int_equal(of(group0)->views->count, 2);
    assert_true(named(group0, "p.d")->declared);
    assert_int_equal(of(group0)->tasks.left, 8);
    assert_ok(views_finish(group0, 0, &outcome));
    uint16_t d = named(group0, "p.d")->view->number, e = named(group0, "p.e")->view->number;
    /* d stays, e is another one, f is new. */
    apply_views(
        group0,
        "'d': {'base': 'T', 'key': ['a']}, 'e': {'base': 'T', 'key': ['b'], 'include': ['a']}, 'f': {'base': "
        "'T', 'key': ['id']}",
        PAWL_OK, NULL);
    assert_int_equal(named(group0, "p.d")->view->number, d);
    assert_int_equal(named(group0, "p.d")->progress, VIEW_SUCCESS);
    assert_int_not_equal(named(group0, "p.e")->view->number, e);
    assert_int_equal(named(group0, "p.e")->progress, VIEW_STARTED);
    assert_int_equal(of(group0)->views->count, 3);
    assert_int_equal(of(group0)->tasks.left, 8);
    /* All go, and with them their tasks; also one that is being rebuilt. */
    assert_ok(views_named(group0, GROUP0_VIEW_REBUILD, "p.d", &outcome, NULL));
    assert_int_equal(of(group0)->views->count, 4);
    apply_views(group0, "'f': {'base': 'T', 'key': ['id']}", PAWL_OK, NULL);
    assert_int_equal(of(group0)->views->count, 1);
    assert_int_equal(of(group0)->tasks.left, 4);
    apply_views(group0, "", PAWL_OK, NULL);
    assert_int_equal(of(group0)->views->count, 0);
    assert_int_equal(of(group0)->tasks.left, 0);
    group0_free(group0);
}

TEST(a_view_is_rebuilt_beside_itself_and_exchanged)
{
    struct group0 *group0 = open_with("");
    enum group0_outcome outcome;
    const struct view_entry *rebuilding;
    create(group0, &by_a);
    assert_ok(views_finish(group0, 0, &outcome));
    assert_ok(views_named(group0, GROUP0_VIEW_REBUILD, "p.by_a", &outcome, NULL));
    const struct view_entry *e = view_list_by_name(of(group0)->views, text_bytes("p.by_a"), &rebuilding);
    assert_int_equal(e->view->number, 1);
    assert_int_equal(e->progress, VIEW_SUCCESS);
    assert_int_equal(rebuilding->view->number, 2);
    assert_int_equal(rebuilding->replaces, 1);
    refused_named(group0, GROUP0_VIEW_REBUILD, "p.by_a", PAWL_EBUSY, "p.by_a is being rebuilt already");
    assert_ok(views_finish(group0, view_table(2, 0), &outcome));
    e = view_list_by_name(of(group0)->views, text_bytes("p.by_a"), &rebuilding);
    assert_int_equal(e->view->number, 2);
    assert_int_equal(e->replaces, 0);
    assert_int_equal(e->progress, VIEW_SUCCESS);
    assert_null(rebuilding);
    assert_int_equal(of(group0)->views->count, 1);
    /* Rebuilt before it was built: the old one's tasks go with it. */
    assert_ok(views_named(group0, GROUP0_VIEW_REBUILD, "p.by_a", &outcome, NULL));
    assert_ok(views_named(group0, GROUP0_VIEW_DROP, "p.by_a", &outcome, NULL));
    assert_int_equal(of(group0)->tasks.left, 0);
    create(group0, &by_a);
    assert_ok(views_named(group0, GROUP0_VIEW_REBUILD, "p.by_a", &outcome, NULL));
    assert_int_equal(of(group0)->tasks.left, 8);
    assert_ok(views_finish(group0, view_table(of(group0)->number, 0), &outcome));
    assert_int_equal(of(group0)->views->count, 1);
    assert_int_equal(of(group0)->tasks.left, 0);
    assert_int_equal(named(group0, "p.by_a")->progress, VIEW_SUCCESS);
    group0_free(group0);
}

static void fail_view(struct group0 *group0, uint16_t number, enum group0_outcome expected)
{
    enum group0_outcome outcome;
    assert_ok(views_command(group0,
                            &(struct group0_command){.kind = GROUP0_FAILED,
                                                     .table = view_table(number, 0),
                                                     .words = text_bytes("two rows")},
                            &outcome, NULL));
    assert_int_equal(outcome, expected);
}

TEST(a_view_that_failed_can_be_rebuilt_as_often_as_it_takes)
{
    struct group0 *group0 = open_with("");
    enum group0_outcome outcome;
    create(group0, &(struct view_text){.package = "p", .name = "u", .base = "T", .key = "a", .unique = true});
    fail_view(group0, 1, GROUP0_CHANGED);
    fail_view(group0, 1, GROUP0_UNCHANGED);
    fail_view(group0, 99, GROUP0_UNCHANGED);
    const struct view_entry *e = named(group0, "p.u");
    assert_int_equal(e->progress, VIEW_FAILED);
    assert_true(bytes_equal(e->words, text_bytes("two rows")));
    assert_int_equal(of(group0)->tasks.left, 0); /* B2 */
    /* A replica that has not heard of it yet asks for tasks: it gets none. */
    struct uncovered u = {.base = view_base_table(e->view, 0), .view = view_table(1, 0), .tablet = 0};
    assert_ok(views_command(
        group0, &(struct group0_command){.kind = GROUP0_TASKS, .uncovered = &u, .uncovered_count = 1}, &outcome,
        NULL));
    assert_int_equal(outcome, GROUP0_UNCHANGED);
    assert_ok(views_named(group0, GROUP0_VIEW_REBUILD, "p.u", &outcome, NULL));
    fail_view(group0, 2, GROUP0_CHANGED);
    assert_int_equal(of(group0)->tasks.left, 0);
    assert_ok(views_named(group0, GROUP0_VIEW_REBUILD, "p.u", &outcome, NULL));
    assert_int_equal(outcome, GROUP0_CHANGED);
    assert_int_equal(of(group0)->views->count, 2); /* the one that failed to replace it is gone */
    assert_ok(views_finish(group0, 0, &outcome));
    assert_int_equal(of(group0)->views->count, 1);
    assert_int_equal(named(group0, "p.u")->view->number, 3);
    assert_int_equal(named(group0, "p.u")->progress, VIEW_SUCCESS);
    group0_free(group0);
}

TEST(builds_are_paused_and_throttled)
{
    struct group0 *group0 = open_with("");
    enum group0_outcome outcome;
    create(group0, &by_a);
    for (int round = 0; round < 2; round++) {
        struct group0_command all = {.kind = GROUP0_VIEW_PAUSE, .paused = round == 0}, one = all;
        struct group0_command slow = {.kind = GROUP0_VIEW_THROTTLE, .throttle = round == 0 ? 500 : 0};
        one.name = text_bytes("p.by_a");
        const struct group0_command *commands[] = {&all, &one, &slow};
        for (size_t i = 0; i < 3; i++) {
            assert_ok(views_check_command(group0, commands[i], &outcome, NULL));
            assert_int_equal(outcome, GROUP0_CHANGED);
            assert_int_equal(i == 0   ? of(group0)->paused
                             : i == 1 ? named(group0, "p.by_a")->paused
                                      : of(group0)->throttle > 0,
                             round);
            assert_ok(views_command(group0, commands[i], &outcome, NULL));
            assert_int_equal(outcome, GROUP0_CHANGED);
            uint64_t version = of(group0)->views_version;
            assert_ok(views_command(group0, commands[i], &outcome, NULL));
            assert_int_equal(outcome, GROUP0_UNCHANGED);
            assert_int_equal(of(group0)->views_version, version);
        }
        assert_int_equal(of(group0)->paused, round == 0);
        assert_int_equal(named(group0, "p.by_a")->paused, round == 0);
        assert_int_equal(of(group0)->throttle, round == 0 ? 500 : 0);
    }
    refused_named(group0, GROUP0_VIEW_PAUSE, "p.no", PAWL_ENOTFOUND, "there is no view p.no");
    group0_free(group0);
}

TEST(a_base_is_processed_while_it_has_tasks)
{
    struct group0 *group0 = open_with("");
    enum group0_outcome outcome;
    create(group0, &by_a);
    uint32_t base = view_base_table(named(group0, "p.by_a")->view, 0);
    struct group0_command command = {.kind = GROUP0_BASE, .table = base + 1};
    assert_ok(views_command(group0, &command, &outcome, NULL));
    assert_int_equal(outcome, GROUP0_UNCHANGED);
    command.table = base;
    assert_ok(views_command(group0, &command, &outcome, NULL));
    assert_int_equal(outcome, GROUP0_CHANGED);
    assert_int_equal(of(group0)->processing, base);
    assert_ok(views_finish(group0, 0, &outcome));
    assert_int_equal(of(group0)->processing, 0); /* B3 */
    group0_free(group0);
}

TEST(what_is_not_covered_gets_tasks_once)
{
    struct group0 *group0 = open_with("");
    enum group0_outcome outcome;
    create(group0, &by_a);
    assert_ok(views_finish(group0, 0, &outcome));
    uint32_t base = view_base_table(named(group0, "p.by_a")->view, 0);
    const struct uncovered list[] = {{base, view_table(1, 0), 1}, {base, view_table(1, 0), 3},
                                     {base, view_table(1, 0), 4}, {base + 1, view_table(1, 0), 0},
                                     {base, view_table(9, 0), 0}, {base, view_table(1, 1), 0}};
    struct group0_command command = {.kind = GROUP0_TASKS, .uncovered = list, .uncovered_count = 6};
    assert_ok(views_command(group0, &command, &outcome, NULL));
    assert_int_equal(outcome, GROUP0_CHANGED);
    assert_int_equal(of(group0)->tasks.left, 2);
    assert_int_equal(named(group0, "p.by_a")->progress, VIEW_STARTED); /* B2 */
    uint64_t version = of(group0)->views_version;
    assert_ok(views_command(group0, &command, &outcome, NULL));
    assert_int_equal(outcome, GROUP0_UNCHANGED);
    assert_int_equal(of(group0)->tasks.left, 2);
    assert_int_equal(of(group0)->views_version, version);
    group0_free(group0);
}

static void resized(struct group0 *group0, enum group0_command_kind kind, uint32_t tablets)
{
    enum group0_outcome outcome;
    assert_ok(views_resize(group0, kind, tablets, &outcome, NULL));
    assert_int_equal(outcome, GROUP0_CHANGED);
    assert_int_equal(of(group0)->map_version, group0_position(group0));
}

TEST(tablets_are_split_merged_and_rolled_back)
{
    struct group0 *group0 = open_with("");
    enum group0_outcome outcome;
    create(group0, &by_a);
    struct group0_command end = {.kind = GROUP0_RESIZE_FINISH};
    refused(group0, &end, PAWL_EINVAL, "tablets are neither split nor merged now");
    refused(group0, &(struct group0_command){.kind = GROUP0_RESIZE_BEGIN, .tablets = 16}, PAWL_EINVAL, "");
    refused(group0, &(struct group0_command){.kind = GROUP0_RESIZE_BEGIN, .tablets = 2}, PAWL_EINVAL, "");
    uint64_t next = of(group0)->tasks.next;
    resized(group0, GROUP0_RESIZE_BEGIN, 8);
    assert_int_equal(of(group0)->map.resize_to, 8);
    refused(group0, &(struct group0_command){.kind = GROUP0_RESIZE_BEGIN, .tablets = 8}, PAWL_EBUSY, "");
    assert_ok(views_finish(group0, 0, &outcome)); /* they are aborted: a worker's word comes too late */
    assert_int_equal(outcome, GROUP0_UNCHANGED);
    assert_int_equal(of(group0)->tasks.left, 4);
    resized(group0, GROUP0_RESIZE_ROLLBACK, 0);
    assert_int_equal(of(group0)->map.tablets, 4);
    assert_int_equal(of(group0)->tasks.left, 4);
    assert_true(of(group0)->tasks.groups[0].first >= next);
    resized(group0, GROUP0_RESIZE_BEGIN, 8);
    create(group0, &(struct view_text){.package = "p", .name = "late", .base = "T", .key = "b"});
    resized(group0, GROUP0_RESIZE_FINISH, 0);
    assert_int_equal(of(group0)->map.tablets, 8);
    assert_int_equal(of(group0)->tasks.left, 16);
    assert_int_equal(named(group0, "p.by_a")->progress, VIEW_STARTED);
    resized(group0, GROUP0_RESIZE_BEGIN, 4);
    resized(group0, GROUP0_RESIZE_FINISH, 0);
    assert_int_equal(of(group0)->tasks.left, 8);
    assert_ok(views_finish(group0, 0, &outcome));
    assert_int_equal(named(group0, "p.late")->progress, VIEW_SUCCESS);
    group0_free(group0);
}

TEST(a_command_that_was_decided_on_something_else_is_refused)
{
    struct group0 *group0 = open_with("");
    enum group0_outcome outcome;
    create(group0, &by_a);
    resized(group0, GROUP0_RESIZE_BEGIN, 8);
    const struct building *b = of(group0);
    struct group0_command command = {.kind = GROUP0_VIEW_THROTTLE, .throttle = 9};
    command.guard = (struct group0_guard){.map_version = b->map_version, .views_version = b->views_version - 1};
    refused(group0, &command, PAWL_ECONFLICT, "the views have changed since this was decided");
    command.guard = (struct group0_guard){.map_version = b->map_version + 1, .views_version = b->views_version};
    refused(group0, &command, PAWL_ECONFLICT, "the tablets have changed since this was decided");
    assert_int_equal(b->throttle, 0);
    group0_set_term(group0, 5);
    command.guard = (struct group0_guard){.term = 4};
    pawl_error error = {0};
    assert_status(views_check_command(group0, &command, &outcome, &error), PAWL_ECONFLICT);
    assert_contains(error.text, "a leader of another term");
    command.guard =
        (struct group0_guard){.term = 5, .map_version = b->map_version, .views_version = b->views_version};
    assert_ok(views_check_command(group0, &command, &outcome, NULL));
    assert_ok(views_command(group0, &command, &outcome, NULL));
    assert_int_equal(outcome, GROUP0_CHANGED);
    assert_int_equal(b->throttle, 9);
    group0_free(group0);
}

TEST(a_view_over_an_entity_follows_its_generations)
{
    struct group0 *group0 = open_with("");
    enum group0_outcome outcome;
    assert_ok(lane_rebuild(group0, 1, &outcome, NULL));
    create(group0, &(struct view_text){.package = "p", .name = "v", .base = "E", .key = "n"});
    assert_int_equal(tasks_of(group0, 1, 1), 4);
    assert_int_equal(tasks_of(group0, 1, 2), 4);
    assert_ok(views_finish(group0, view_table(1, 1), &outcome));
    assert_int_equal(named(group0, "p.v")->progress, VIEW_STARTED);
    /* A generation that is given up takes its tasks along. */
    uint64_t version = of(group0)->views_version;
    assert_ok(lane_rebuild(group0, 1, &outcome, NULL));
    assert_int_equal(tasks_of(group0, 1, 2), 0);
    assert_int_equal(named(group0, "p.v")->progress, VIEW_SUCCESS);
    assert_true(of(group0)->views_version > version);
    create(group0, &(struct view_text){.package = "p", .name = "w", .base = "E", .key = "n"});
    assert_int_equal(tasks_of(group0, 2, 1), 4);
    assert_int_equal(tasks_of(group0, 2, 3), 4);
    assert_ok(views_finish(group0, view_table(2, 3), &outcome));
    assert_ok(lane_switch(group0, 1, 3, 7, &outcome, NULL));
    assert_int_equal(of(group0)->tasks.left, 0);
    assert_int_equal(named(group0, "p.w")->progress, VIEW_SUCCESS);
    group0_free(group0);
}

/* The same commands give the same digest, whoever checked them in between; and what differs shows. */
TEST(equal_histories_have_equal_digests)
{
    uint64_t seed = test_seed(3);
    for (int round = 0; round < 40; round++) {
        struct group0 *a = open_with(""), *b = open_with("");
        uint64_t random = seed + (uint64_t)round;
        for (int step = 0; step < 40; step++) {
            static const char *const names[] = {"x", "y", "z"}, *const qnames[] = {"p.x", "p.y", "p.z"};
            size_t which = (size_t)test_below(&random, 3);
            struct group0_command command = {
                .kind = (enum group0_command_kind)(GROUP0_VIEW_CREATE + test_below(&random, 12)),
                .name = text_bytes(qnames[which]),
                .paused = test_below(&random, 2),
                .throttle = test_below(&random, 3),
                .table = view_table((uint16_t)(1 + test_below(&random, of(a)->number + 1u)), 0),
                .words = text_bytes("why"),
                .tablets = of(a)->map.tablets * (test_below(&random, 2) ? 2 : 1)};
            struct view_text text = {.package = "p", .name = names[which], .base = "T", .key = "a"};
            struct definition_view view;
            struct arena arena;
            uint64_t ids[3];
            struct uncovered u = {256, command.table, (uint32_t)test_below(&random, 8)};
            for (size_t i = 0; i < 3; i++)
                ids[i] = test_below(&random, of(a)->tasks.next);
            command.ids = ids;
            command.id_count = 3;
            command.uncovered = &u;
            command.uncovered_count = 1;
            if (command.kind == GROUP0_BASE)
                command.table = 256;
            arena_init(&arena, NULL, 1024);
            views_definition(&text, &arena, &view, &command.schema);
            enum group0_outcome of_a, of_b, checked;
            pawl_error error;
            struct hash128 before = group0_digest(a);
            int status = views_check_command(a, &command, &checked, &error);
            struct hash128 after = group0_digest(a);
            assert_memory_equal(&before, &after, sizeof before);
            assert_ok(views_command(a, &command, &of_a, &error));
            assert_ok(views_command(b, &command, &of_b, &error));
            assert_int_equal(of_a, of_b);
            assert_int_equal(of_a == GROUP0_REFUSED, status != PAWL_OK);
            if (status == PAWL_OK && checked == GROUP0_UNCHANGED)
                assert_int_equal(of_a, GROUP0_UNCHANGED);
            struct hash128 now = group0_digest(a), other = group0_digest(b);
            assert_memory_equal(&now, &other, sizeof now);
            assert_int_equal(memcmp(&before, &now, sizeof now) != 0, of_a == GROUP0_CHANGED);
            for (size_t i = 0; i < of(a)->views->count; i++) { /* B2 */
                const struct view_entry *e = &of(a)->views->entries[i];
                assert_int_equal(e->progress == VIEW_STARTED, tasks_of(a, e->view->number, 0) > 0);
                assert_true(i == 0 || e[-1].view->number < e->view->number);
            }
            assert_true(of(a)->processing == 0 || tasks_of_base(&of(a)->tasks, of(a)->processing) > 0); /* B3 */
            arena_release(&arena);
        }
        group0_free(a);
        group0_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_view_is_made_built_and_dropped),
        RUN(a_name_is_given_once),
        RUN(a_type_cannot_take_the_name_of_a_view_that_was_made_at_run_time),
        RUN(what_a_package_declares_follows_the_package),
        RUN(a_view_is_rebuilt_beside_itself_and_exchanged),
        RUN(a_view_that_failed_can_be_rebuilt_as_often_as_it_takes),
        RUN(builds_are_paused_and_throttled),
        RUN(a_base_is_processed_while_it_has_tasks),
        RUN(what_is_not_covered_gets_tasks_once),
        RUN(tablets_are_split_merged_and_rolled_back),
        RUN(a_command_that_was_decided_on_something_else_is_refused),
        RUN(a_view_over_an_entity_follows_its_generations),
        RUN(equal_histories_have_equal_digests),
    };
    return TEST_MAIN(tests);
}

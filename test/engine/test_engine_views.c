/* test_engine_views.c: views on a real node, its shards and its threads. Each scene ends with: view = filter(base), row
 * by row, in every store. */
#include "test/lib/view_bed.h"

#include <pthread.h>
#include <stdatomic.h>

static const uint32_t shards[] = {2, 4};

#define EACH_NODE(bed)                                                                                         \
    for (size_t node_ = 0; node_ < sizeof shards / sizeof *shards; node_++)                                    \
        for (view_bed_begin((bed), shards[node_]); (bed)->dir[0]; view_bed_end(bed), (bed)->dir[0] = '\0')

TEST(a_view_over_no_data_is_built_at_once)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
        view_bed_wait(&bed, "t.v");
        view_bed_fill(&bed, 3);
        view_bed_check(&bed);
        assert_int_equal(view_bed_status(&bed, "t.v").rows, 3 * VIEW_TENANTS);
    }
}

TEST(views_are_built_over_rows_that_were_there)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 100);
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.rich", "t.Invoice", "cents", NULL, "cents > 50", false));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.by_last", "t.Last", "cents", NULL, NULL, false));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.by_total", "t.Total", "cents", NULL, NULL, false));
        view_bed_check(&bed);
        const char *names[] = {"t.v", "t.rich", "t.by_last", "t.by_total"};
        for (size_t i = 0; i < 4; i++)
            view_bed_wait(&bed, names[i]);
        view_bed_fill(&bed, 5);
        view_bed_check(&bed);
        pawl_view_status status = view_bed_status(&bed, "t.v");
        assert_int_equal(status.state, PAWL_VIEW_BUILT);
        assert_int_equal(status.rows, 105 * VIEW_TENANTS);
        assert_true(view_bed_status(&bed, "t.rich").rows < status.rows);
        assert_int_equal(status.tasks_left, 0);
    }
}

/* A built view is covered by the durable side, too. */
TEST(a_built_view_is_in_the_checkpoint)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 60);
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
        view_bed_wait(&bed, "t.v");
        view_bed_close(&bed);
        char live[400];
        for (uint32_t i = 0; i < shards[node_]; i++) { /* the checkpoints take over */
            snprintf(live, sizeof live, "%s/state/%u", bed.path, i);
            test_dir_remove(live);
        }
        view_bed_open(&bed);
        view_bed_check(&bed);
        assert_int_equal(view_bed_status(&bed, "t.v").state, PAWL_VIEW_BUILT);
        for (uint32_t i = 0; i < bed.engine->file.shards; i++) {
            struct view_tables *tables = &bed.engine->shards[i].views;
            for (size_t k = 0; k < tables->set.count; k++)
                assert_true(tables->tables[0].states[k].state.complete);
        }
    }
}

TEST(a_view_is_added_while_another_is_built_and_one_is_removed_while_both_are)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 80);
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 2000, &bed.error));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.a", "t.Invoice", "customer", NULL, NULL, false));
        view_bed_fill(&bed, 2);
        assert_bed_ok(&bed, view_bed_create(&bed, "t.b", "t.Invoice", "number", NULL, "cents > 0", false));
        view_bed_fill(&bed, 2);
        assert_bed_ok(&bed, pawl_view_drop(bed.engine, "t.a", &bed.error));
        assert_int_equal(pawl_view_drop(bed.engine, "t.a", &bed.error), PAWL_ENOTFOUND);
        view_bed_check(&bed);
        assert_bed_ok(&bed, view_bed_create(&bed, "t.a", "t.Invoice", "cents", NULL, NULL, false)); /* again */
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 0, &bed.error));
        view_bed_wait(&bed, "t.a");
        view_bed_wait(&bed, "t.b");
        view_bed_check(&bed);
    }
}

TEST(a_build_goes_on_where_it_was_after_a_restart)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 120);
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 3000, &bed.error));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
        while (view_bed_status(&bed, "t.v").rows_done == 0)
            wait_pause(PAWL_MILLISECOND);
        view_bed_reopen(&bed);
        view_bed_check(&bed);
        pawl_view_status half = view_bed_status(&bed, "t.v");
        assert_true(half.rows_done > 0);
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 0, &bed.error));
        view_bed_wait(&bed, "t.v");
        view_bed_check(&bed);
        assert_int_equal(view_bed_status(&bed, "t.v").rows_done, 120 * VIEW_TENANTS); /* none was read twice */
    }
}

TEST(tablets_are_split_and_merged_during_a_build)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 100);
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 2000, &bed.error));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
        assert_bed_ok(&bed, pawl_tablets_split(bed.engine, &bed.error));
        view_bed_fill(&bed, 2);
        assert_bed_ok(&bed, pawl_tablets_split(bed.engine, &bed.error));
        view_bed_fill(&bed, 2);
        assert_bed_ok(&bed, pawl_tablets_merge(bed.engine, &bed.error));
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 0, &bed.error));
        view_bed_wait(&bed, "t.v");
        view_bed_check(&bed);
        assert_bed_ok(&bed, pawl_tablets_merge(bed.engine, &bed.error));
        assert_int_equal(pawl_tablets_merge(bed.engine, &bed.error), PAWL_EINVAL);
        for (unsigned i = 0; i < 6; i++)
            assert_bed_ok(&bed, pawl_tablets_split(bed.engine, &bed.error));
        assert_int_equal(pawl_tablets_split(bed.engine, &bed.error), PAWL_EINVAL);
        view_bed_reopen(&bed);
        view_bed_check(&bed);
    }
}

TEST(a_paused_build_stands_still_and_goes_on)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 40);
        assert_bed_ok(&bed, pawl_view_pause(bed.engine, NULL, true, &bed.error));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
        assert_int_equal(pawl_view_wait(bed.engine, "t.v", 300 * PAWL_MILLISECOND, &bed.error), PAWL_ETIMEOUT);
        assert_true(view_bed_status(&bed, "t.v").paused);
        assert_int_equal(view_bed_status(&bed, "t.v").rows_done, 0);
        view_bed_reopen(&bed);
        assert_true(view_bed_status(&bed, "t.v").paused);
        assert_bed_ok(&bed, pawl_view_pause(bed.engine, NULL, false, &bed.error));
        view_bed_wait(&bed, "t.v");
        view_bed_check(&bed);
    }
}

TEST(a_view_is_rebuilt_beside_itself)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 50);
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
        view_bed_wait(&bed, "t.v");
        uint32_t before = view_bed_status(&bed, "t.v").table;
        assert_bed_ok(&bed, pawl_view_rebuild(bed.engine, "t.v", &bed.error));
        assert_int_equal(view_bed_status(&bed, "t.v").state, PAWL_VIEW_BUILT); /* the old one serves */
        view_bed_fill(&bed, 3);
        view_bed_wait(&bed, "t.v");
        assert_int_not_equal(view_bed_status(&bed, "t.v").table, before);
        view_bed_check(&bed);
        assert_int_equal(engine_views(bed.engine)->count, 1);
    }
}

/* What is read is told of, and a pause holds for whatever is built under the name. */
TEST(a_view_that_is_paused_is_rebuilt_when_it_is_resumed)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 20);
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
        view_bed_wait(&bed, "t.v");
        assert_bed_ok(&bed, pawl_view_pause(bed.engine, "t.v", true, &bed.error));
        assert_bed_ok(&bed, pawl_view_rebuild(bed.engine, "t.v", &bed.error));
        assert_int_equal(pawl_view_wait(bed.engine, "t.v", 300 * PAWL_MILLISECOND, &bed.error), PAWL_ETIMEOUT);
        view_bed_reopen(&bed);
        pawl_view_status status = view_bed_status(&bed, "t.v");
        assert_true(status.rebuilding && status.paused);
        assert_int_equal(status.rows_done, 0);
        assert_int_equal(status.rows, 20 * VIEW_TENANTS);
        assert_int_equal(pawl_view_pause(bed.engine, "", false, &bed.error), PAWL_ENOTFOUND);
        assert_bed_ok(&bed, pawl_view_pause(bed.engine, "t.v", false, &bed.error));
        view_bed_wait(&bed, "t.v");
        view_bed_check(&bed);
        assert_int_equal(engine_views(bed.engine)->count, 1);
    }
}

static struct {
    _Atomic bool armed, waits;
} after_slices;

static void wait_after_slices(void *arg, const char *what)
{
    (void)arg;
    if (strcmp(what, "slices of a checkpoint were built") != 0 || !atomic_exchange(&after_slices.armed, false))
        return;
    atomic_store(&after_slices.waits, true);
    while (atomic_load(&after_slices.waits))
        wait_pause(PAWL_MILLISECOND);
}

/* A partition that is in the checkpoint was paid for with minutes; they are not waited for any more. */
TEST(a_throttle_that_is_taken_back_holds_no_checkpoint_back)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 150);
        view_bed_close(&bed);
        bed.knobs.step = wait_after_slices;
        view_bed_open(&bed);
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 400, &bed.error));
        atomic_store(&after_slices.armed, true);
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
        uint64_t until = clock_boot_ns() + VIEW_PATIENCE;
        while (!atomic_load(&after_slices.waits) && clock_boot_ns() < until)
            wait_pause(PAWL_MILLISECOND);
        assert_true(atomic_load(&after_slices.waits));
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 1, &bed.error));
        atomic_store(&after_slices.waits, false);
        uint64_t done = view_bed_status(&bed, "t.v").rows_done;
        while (view_bed_status(&bed, "t.v").rows_done < done + 2 && clock_boot_ns() < until)
            wait_pause(PAWL_MILLISECOND); /* the checkpoint has seen the bound by then */
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 0, &bed.error));
        assert_bed_ok(&bed, pawl_view_wait(bed.engine, "t.v", 60 * PAWL_SECOND, &bed.error));
        view_bed_check(&bed);
    }
}

/* --- rows of a view that was dropped --- */

static _Atomic bool short_of_memory;
static _Atomic unsigned refused;

/* Refuses only what removing rows asks for. */
static void *refuse_keys(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size == 0) {
        free(memory);
        return NULL;
    }
    if (new_size == PAWL_KEY_BYTES_MAX && atomic_load(&short_of_memory)) {
        atomic_fetch_add(&refused, 1);
        return NULL;
    }
    return realloc(memory, new_size);
}

static size_t count_view_rows(struct view_bed *bed)
{
    size_t rows = 0;
    for (uint32_t i = 0; i < bed->engine->file.shards; i++) {
        pawl_store *store = bed->engine->shards[i].store;
        pawl_reader *snapshot;
        assert_ok(pawl_store_snapshot(store, &snapshot));
        rows += views_count_rows(snapshot);
        pawl_store_release(store, snapshot);
    }
    return rows;
}

TEST(rows_that_could_not_be_removed_are_removed_later)
{
    static const pawl_allocator allocator = {.resize = refuse_keys};
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 20);
        view_bed_close(&bed);
        bed.options.allocator = &allocator;
        view_bed_open(&bed);
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
        view_bed_wait(&bed, "t.v");
        atomic_store(&refused, 0);
        atomic_store(&short_of_memory, true);
        assert_bed_ok(&bed, pawl_view_drop(bed.engine, "t.v", &bed.error));
        uint64_t until = clock_boot_ns() + VIEW_PATIENCE;
        while (atomic_load(&refused) < 2 * shards[node_] && clock_boot_ns() < until) /* with the checkpoints */
            wait_pause(PAWL_MILLISECOND);
        assert_int_equal(count_view_rows(&bed), 20 * VIEW_TENANTS);
        atomic_store(&short_of_memory, false);
        while (count_view_rows(&bed) > 0 && clock_boot_ns() < until)
            wait_pause(PAWL_MILLISECOND);
        assert_int_equal(count_view_rows(&bed), 0);
        view_bed_check(&bed);
    }
}

TEST(a_small_base_does_not_wait_behind_a_huge_one)
{
    struct view_bed bed;
    pawl_answer answer;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 150);
        for (uint64_t wsid = 1; wsid <= VIEW_TENANTS; wsid++) {
            (void)pawl_request_begin(bed.request, wsid, "t.Jot");
            (void)pawl_request_record(bed.request, 1, "t.Note");
            (void)pawl_request_set_string(bed.request, "text", "hello");
            assert_bed_ok(&bed, pawl_command(bed.engine, bed.request, &answer, &bed.error));
        }
        assert_bed_ok(&bed, pawl_tablets_split(bed.engine, &bed.error));
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 100, &bed.error));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.huge", "t.Invoice", "customer", "number", NULL, false));
        while (view_bed_status(&bed, "t.huge").rows_done == 0)
            wait_pause(PAWL_MILLISECOND);
        assert_bed_ok(&bed, view_bed_create(&bed, "t.small", "t.Note", "text", NULL, NULL, false));
        view_bed_wait(&bed, "t.small");
        assert_int_equal(view_bed_status(&bed, "t.huge").state, PAWL_VIEW_BUILDING);
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 0, &bed.error));
        view_bed_wait(&bed, "t.huge");
        view_bed_check(&bed);
    }
}

/* --- what a package declares --- */

TEST(a_package_declares_views_and_drops_them)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 20);
        assert_bed_ok(&bed,
                      pawl_schema_apply(bed.engine,
                                        VIEW_SCHEMA("", "1",
                                                    "\"d\": {\"base\": \"Invoice\", \"key\": [\"cents\"]},"
                                                    "\"e\": {\"base\": \"Total\", \"key\": [\"cents\"]}"),
                                        NULL, &bed.error));
        view_bed_wait(&bed, "t.d");
        view_bed_wait(&bed, "t.e");
        assert_int_equal(pawl_view_drop(bed.engine, "t.d", &bed.error), PAWL_EINVAL);
        assert_int_equal(view_bed_create(&bed, "t.d", "t.Invoice", "cents", NULL, NULL, false), PAWL_EEXISTS);
        assert_bed_ok(&bed, view_bed_create(&bed, "t.f", "t.Invoice", "cents", NULL, NULL, false));
        /* A field more; d is another one, e is gone. */
        assert_bed_ok(&bed,
                      pawl_schema_apply(bed.engine,
                                        VIEW_SCHEMA(", \"more\": {\"type\": \"string\"}", "1",
                                                    "\"d\": {\"base\": \"Invoice\", \"key\": [\"more\"]}"),
                                        NULL, &bed.error));
        view_bed_fill(&bed, 2);
        view_bed_wait(&bed, "t.d");
        view_bed_wait(&bed, "t.f");
        assert_int_equal(pawl_view_wait(bed.engine, "t.e", 0, &bed.error), PAWL_ENOTFOUND);
        assert_int_equal(pawl_schema_apply(bed.engine,
                                           VIEW_SCHEMA(", \"more\": {\"type\": \"string\"}", "1",
                                                       "\"f\": {\"base\": \"Invoice\", \"key\": [\"more\"]}"),
                                           NULL, &bed.error),
                         PAWL_EINVAL);
        view_bed_reopen(&bed);
        view_bed_check(&bed);
    }
}

/* --- generations --- */

static uint32_t serving_of(struct view_bed *bed)
{
    const struct schema_lane *lane = &engine_schema(bed->engine)->lanes[0];
    return lane->serving == lane->generation ? lane->serving : 0;
}

TEST(views_follow_the_generations_of_a_lane)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 30);
        assert_bed_ok(&bed, view_bed_create(&bed, "t.by_total", "t.Total", "cents", NULL, NULL, false));
        view_bed_wait(&bed, "t.by_total");
        for (unsigned round = 0; round < 2; round++) {
            uint32_t before = serving_of(&bed);
            assert_bed_ok(&bed, pawl_schema_apply(bed.engine,
                                                  round ? VIEW_SCHEMA("", "3", "") : VIEW_SCHEMA("", "2", ""),
                                                  NULL, &bed.error));
            assert_bed_ok(&bed, view_bed_create(&bed, round ? "t.second" : "t.first", "t.Total", "customer",
                                                "cents", NULL, false)); /* while both generations are there */
            view_bed_fill(&bed, 2);
            uint64_t end = clock_boot_ns() + VIEW_PATIENCE;
            while ((serving_of(&bed) == 0 || serving_of(&bed) == before) && clock_boot_ns() < end)
                wait_pause(PAWL_MILLISECOND);
            assert_int_not_equal(serving_of(&bed), before);
            view_bed_wait(&bed, "t.by_total");
            view_bed_wait(&bed, round ? "t.second" : "t.first");
            view_bed_check(&bed);
        }
        view_bed_reopen(&bed);
        view_bed_check(&bed);
    }
}

/* group0 may have tasks for a view that covers everything: then it calls the view started. */
TEST(a_lane_waits_for_a_view_that_covers_the_generation_that_serves)
{
    struct view_bed bed;
    struct arena arena;
    pawl_bytes command;
    enum group0_outcome outcome;
    view_bed_begin(&bed, 2);
    view_bed_fill(&bed, 30);
    assert_bed_ok(&bed, view_bed_create(&bed, "t.by_total", "t.Total", "cents", NULL, NULL, false));
    view_bed_wait(&bed, "t.by_total");
    assert_bed_ok(&bed, pawl_view_pause(bed.engine, NULL, true, &bed.error));
    const struct schema_lane *lane = &engine_schema(bed.engine)->lanes[0];
    const struct view *view = engine_views(bed.engine)->entries[0].view;
    struct uncovered uncovered = {.base = view_base_table(view, lane->serving),
                                  .view = view_table(view->number, lane->serving)};
    arena_init(&arena, bed.engine->options.allocator, 256);
    assert_int_equal(
        group0_view_encode(
            &(struct group0_command){.kind = GROUP0_TASKS, .uncovered = &uncovered, .uncovered_count = 1},
            &arena, &command),
        PAWL_OK);
    assert_bed_ok(&bed, engine_group0_propose(bed.engine, command, &outcome, &bed.error));
    arena_release(&arena);
    assert_int_equal(outcome, GROUP0_CHANGED);
    assert_int_equal(engine_views(bed.engine)->entries[0].progress, VIEW_STARTED);
    assert_true(views_allow_switch(bed.engine, lane->id, lane->serving));
    assert_false(views_allow_switch(bed.engine, lane->id, lane->serving + 1)); /* nothing of it is covered */
    view_bed_end(&bed);
}

/* The base gets a field, and another base gets a new generation, which takes over, while views of both are built. */
TEST(the_schema_and_the_generation_change_during_a_build)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 60);
        uint32_t before = serving_of(&bed);
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 200, &bed.error));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Invoice", "customer", "number", NULL, false));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.by_total", "t.Total", "cents", NULL, NULL, false));
        while (view_bed_status(&bed, "t.v").rows_done + view_bed_status(&bed, "t.by_total").rows_done == 0)
            wait_pause(PAWL_MILLISECOND);
        assert_bed_ok(&bed,
                      pawl_schema_apply(bed.engine, VIEW_SCHEMA(", \"more\": {\"type\": \"string\"}", "2", ""),
                                        NULL, &bed.error));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.more", "t.Invoice", "more", "cents", NULL, false));
        assert_int_equal(view_bed_status(&bed, "t.v").state, PAWL_VIEW_BUILDING);
        view_bed_fill(&bed, 2);
        view_bed_check(&bed);
        assert_bed_ok(&bed, pawl_view_throttle(bed.engine, 0, &bed.error));
        uint64_t end = clock_boot_ns() + VIEW_PATIENCE;
        while ((serving_of(&bed) == 0 || serving_of(&bed) == before) && clock_boot_ns() < end)
            wait_pause(PAWL_MILLISECOND);
        assert_int_not_equal(serving_of(&bed), before);
        view_bed_wait(&bed, "t.v");
        view_bed_wait(&bed, "t.by_total");
        view_bed_wait(&bed, "t.more");
        view_bed_check(&bed);
        assert_int_equal(view_bed_status(&bed, "t.more").rows, 62 * VIEW_TENANTS);
        view_bed_reopen(&bed);
        view_bed_check(&bed);
    }
}

/* --- bad input --- */

TEST(a_wrong_definition_changes_nothing)
{
    static const struct {
        const char *name, *base, *key, *filter;
        bool unique;
        int status;
        const char *words;
    } cases[] = {
        {"t.v", "t.Nothing", "cents", NULL, false, PAWL_EINVAL, "$.views.v.base: there is no 't.Nothing'"},
        {"t.v", "t.Bill", "cents", NULL, false, PAWL_EINVAL, "$.views.v.base: 't.Bill' is a command"},
        {"t.v", "t.Invoice", "nothing", NULL, false, PAWL_EINVAL, "$.views.v.key[0]: t.Invoice has no field"},
        {"t.v", "t.Invoice", "cents", "cents + 1", false, PAWL_EINVAL, "$.views.v.filter: line 1"},
        {"t.v", "t.Invoice", "cents", "cents >", false, PAWL_EINVAL, "$.views.v.filter: line 1"},
        {"t.v", "t.Total", "cents", NULL, true, PAWL_EINVAL, "$.views.v.unique: t.Total is an entity"},
        {"t.Invoice", "t.Invoice", "cents", NULL, false, PAWL_EEXISTS, "t.Invoice is a type"},
        {"x.v", "t.Invoice", "cents", NULL, false, PAWL_EINVAL, "$.name: there is no package 'x'"},
        {"v", "t.Invoice", "cents", NULL, false, PAWL_EINVAL, "$.name: 'v' is not a qualified name"},
    };
    struct view_bed bed;
    view_bed_begin(&bed, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = view_bed_create(&bed, cases[i].name, cases[i].base, cases[i].key, NULL, cases[i].filter,
                                     cases[i].unique);
        assert_int_equal(status, cases[i].status);
        if (strncmp(bed.error.text, cases[i].words, strlen(cases[i].words)) != 0)
            print_error("%s\n", bed.error.text);
        assert_int_equal(strncmp(bed.error.text, cases[i].words, strlen(cases[i].words)), 0);
    }
    pawl_view_definition none = {.name = "t.v", .base = "t.Invoice"};
    assert_int_equal(pawl_view_create(bed.engine, &none, &bed.error), PAWL_EINVAL);
    assert_int_equal(engine_views(bed.engine)->count, 0);
    view_bed_end(&bed);
}

/* An expression that fails on a row leaves the row out, and is told. */
TEST(rows_on_which_a_filter_fails_are_counted)
{
    struct view_bed bed;
    uint64_t id;
    EACH_NODE(&bed)
    {
        view_bed_fill(&bed, 12); /* cents from -5: once 0 */
        assert_bed_ok(&bed,
                      view_bed_create(&bed, "t.v", "t.Invoice", "customer", NULL, "100 / cents > 0", false));
        view_bed_wait(&bed, "t.v");
        assert_int_equal(view_bed_status(&bed, "t.v").rows_failed, VIEW_TENANTS);
        assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 1, "zero", 0, &id, &bed.error));
        assert_int_equal(view_bed_status(&bed, "t.v").rows_failed, VIEW_TENANTS + 1);
        view_bed_check(&bed);
    }
}

static bool keep_first_failed(void *arg, const pawl_view_status *status)
{
    snprintf(arg, 400, "%s", status->first_failed);
    return true;
}

TEST(a_row_of_an_entity_on_which_a_filter_fails_is_named)
{
    struct view_bed bed;
    char first[400];
    EACH_NODE(&bed)
    {
        assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 1, "Ada", 0, NULL, &bed.error));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.v", "t.Last", "customer", NULL, "100 / cents > 0", false));
        view_bed_wait(&bed, "t.v");
        assert_bed_ok(&bed, pawl_view_status_read(bed.engine, "t.v", keep_first_failed, first, &bed.error));
        assert_string_equal(first,
                            "workspace 1, row {\"customer\":\"Ada\"}: line 1, column 5: division by zero");
    }
}

/* --- unique views --- */

TEST(a_unique_view_binds_commands)
{
    struct view_bed bed;
    uint64_t first;
    EACH_NODE(&bed)
    {
        assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 1, "ada", 1, &first, &bed.error));
        assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 2, "ada", 1, NULL, &bed.error));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.u", "t.Invoice", "customer", NULL, NULL, true));
        view_bed_wait(&bed, "t.u");
        assert_int_equal(view_bed_bill(&bed, bed.request, 1, "ada", 2, NULL, &bed.error), PAWL_EEXISTS);
        assert_non_null(strstr(bed.error.text, "t.u"));
        assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 1, "bob", 2, NULL, &bed.error));
        assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 1, NULL, 2, NULL, &bed.error));
        assert_bed_ok(&bed,
                      view_bed_bill(&bed, bed.request, 1, NULL, 2, NULL, &bed.error)); /* nulls are free */
        view_bed_reopen(&bed);
        assert_int_equal(view_bed_bill(&bed, bed.request, 1, "bob", 2, NULL, &bed.error), PAWL_EEXISTS);
        view_bed_check(&bed);
    }
}

TEST(a_unique_view_over_rows_that_are_not_fails_and_can_be_tried_again)
{
    struct view_bed bed;
    EACH_NODE(&bed)
    {
        assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 3, "ada", 1, NULL, &bed.error));
        assert_bed_ok(&bed, view_bed_bill(&bed, bed.request, 3, "ada", 1, NULL, &bed.error));
        assert_bed_ok(&bed, view_bed_create(&bed, "t.u", "t.Invoice", "customer", NULL, NULL, true));
        assert_int_equal(pawl_view_wait(bed.engine, "t.u", VIEW_PATIENCE, &bed.error), PAWL_EEXISTS);
        assert_non_null(strstr(bed.error.text, "workspace 3"));
        assert_int_equal(view_bed_status(&bed, "t.u").state, PAWL_VIEW_FAILED);
        assert_bed_ok(&bed,
                      view_bed_bill(&bed, bed.request, 3, "ada", 1, NULL, &bed.error)); /* it does not bind */
        view_bed_check(&bed);
        view_bed_reopen(&bed);
        assert_int_equal(view_bed_status(&bed, "t.u").state, PAWL_VIEW_FAILED);
        assert_bed_ok(&bed, pawl_view_rebuild(bed.engine, "t.u", &bed.error));
        assert_int_equal(pawl_view_wait(bed.engine, "t.u", VIEW_PATIENCE, &bed.error), PAWL_EEXISTS);
    }
}

/* --- all at once --- */

struct crowd {
    struct view_bed *bed;
    _Atomic bool stop;
    _Atomic int failed;
    _Atomic uint64_t rows; /* of views, that were read */
};

static void *write_main(void *arg)
{
    struct crowd *crowd = arg;
    pawl_request *request;
    pawl_error error;
    unsigned n = 0;
    if (pawl_request_new(crowd->bed->engine, &request) != PAWL_OK)
        return NULL;
    while (!atomic_load(&crowd->stop)) {
        char customer[32];
        snprintf(customer, sizeof customer, "customer %u", n % 31);
        int status = view_bed_bill(crowd->bed, request, 1 + n % VIEW_TENANTS, customer, (int64_t)(n % 200),
                                   NULL, &error);
        if (status != PAWL_OK)
            atomic_store(&crowd->failed, status);
        n++;
    }
    pawl_request_free(request);
    return NULL;
}

static bool ignore_status(void *arg, const pawl_view_status *status)
{
    (void)arg;
    return status->percent <= 100;
}

/* What a reader sees of view b: its filter holds, and its order. */
struct reading {
    uint64_t wsid;
    int64_t cents;
    bool wrong;
};

static bool see_row(void *arg, const pawl_row *row)
{
    struct reading *r = arg;
    int64_t cents = 0;
    bool null = true;
    if (pawl_row_int64(row, "cents", &cents, &null) != PAWL_OK || null || cents <= 100
        || (pawl_row_wsid(row) == r->wsid && cents < r->cents))
        r->wrong = true;
    r->wsid = pawl_row_wsid(row);
    r->cents = cents;
    return !r->wrong;
}

/* The view may be gone, or be there only in part. */
static void read_rows(struct crowd *crowd)
{
    struct reading r = {0};
    pawl_view_query query = {0};
    pawl_view_answer answer = {0};
    pawl_error error;
    int status = pawl_view_scan(crowd->bed->engine, "t.b", &query, see_row, &r, &answer, &error);
    if (status == PAWL_OK)
        atomic_fetch_add(&crowd->rows, answer.rows);
    if ((status != PAWL_OK && status != PAWL_ENOTFOUND) || r.wrong)
        atomic_store(&crowd->failed, status == PAWL_OK ? 1 : status);
}

static void *read_main(void *arg)
{
    struct crowd *crowd = arg;
    pawl_error error;
    pawl_text text;
    while (!atomic_load(&crowd->stop)) {
        if (pawl_view_status_read(crowd->bed->engine, NULL, ignore_status, NULL, &error) != PAWL_OK)
            atomic_store(&crowd->failed, 1);
        if (pawl_system_read(crowd->bed->engine, "view_building_tasks", &text, &error) == PAWL_OK)
            pawl_text_free(&text);
        read_rows(crowd);
        wait_pause(PAWL_MILLISECOND);
    }
    return NULL;
}

TEST(views_come_and_go_while_others_write_and_read)
{
    struct view_bed bed;
    pthread_t threads[3];
    EACH_NODE(&bed)
    {
        struct crowd crowd = {.bed = &bed};
        view_bed_fill(&bed, 20);
        assert_int_equal(pthread_create(&threads[0], NULL, write_main, &crowd), 0);
        assert_int_equal(pthread_create(&threads[1], NULL, write_main, &crowd), 0);
        assert_int_equal(pthread_create(&threads[2], NULL, read_main, &crowd), 0);
        for (unsigned round = 0; round < 3; round++) {
            assert_bed_ok(&bed, view_bed_create(&bed, "t.a", "t.Invoice", "customer", "number", NULL, false));
            assert_bed_ok(&bed, view_bed_create(&bed, "t.b", "t.Invoice", "cents", NULL, "cents > 100", false));
            assert_bed_ok(&bed, view_bed_create(&bed, "t.c", "t.Total", "cents", NULL, NULL, false));
            assert_bed_ok(&bed, round % 2 ? pawl_tablets_merge(bed.engine, &bed.error)
                                          : pawl_tablets_split(bed.engine, &bed.error));
            view_bed_wait(&bed, "t.a");
            view_bed_check(&bed);
            view_bed_wait(&bed, "t.b");
            view_bed_wait(&bed, "t.c");
            assert_bed_ok(&bed, pawl_view_drop(bed.engine, "t.a", &bed.error));
            assert_bed_ok(&bed, pawl_view_drop(bed.engine, "t.b", &bed.error));
            assert_bed_ok(&bed, pawl_view_drop(bed.engine, "t.c", &bed.error));
        }
        assert_bed_ok(&bed, view_bed_create(&bed, "t.a", "t.Invoice", "customer", "number", NULL, false));
        view_bed_wait(&bed, "t.a");
        atomic_store(&crowd.stop, true);
        for (size_t i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(atomic_load(&crowd.failed), 0);
        assert_true(atomic_load(&crowd.rows) > 0);
        view_bed_check(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_view_over_no_data_is_built_at_once),
        RUN(views_are_built_over_rows_that_were_there),
        RUN(a_built_view_is_in_the_checkpoint),
        RUN(a_view_is_added_while_another_is_built_and_one_is_removed_while_both_are),
        RUN(a_build_goes_on_where_it_was_after_a_restart),
        RUN(tablets_are_split_and_merged_during_a_build),
        RUN(a_paused_build_stands_still_and_goes_on),
        RUN(a_view_is_rebuilt_beside_itself),
        RUN(a_view_that_is_paused_is_rebuilt_when_it_is_resumed),
        RUN(a_throttle_that_is_taken_back_holds_no_checkpoint_back),
        RUN(rows_that_could_not_be_removed_are_removed_later),
        RUN(a_small_base_does_not_wait_behind_a_huge_one),
        RUN(a_package_declares_views_and_drops_them),
        RUN(views_follow_the_generations_of_a_lane),
        RUN(a_lane_waits_for_a_view_that_covers_the_generation_that_serves),
        RUN(the_schema_and_the_generation_change_during_a_build),
        RUN(a_wrong_definition_changes_nothing),
        RUN(rows_on_which_a_filter_fails_are_counted),
        RUN(a_row_of_an_entity_on_which_a_filter_fails_is_named),
        RUN(a_unique_view_binds_commands),
        RUN(a_unique_view_over_rows_that_are_not_fails_and_can_be_tried_again),
        RUN(views_come_and_go_while_others_write_and_read),
    };
    return TEST_MAIN(tests);
}

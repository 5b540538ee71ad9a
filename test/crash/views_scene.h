/* test/crash/views_scene.h: an engine whose views are built and changed, and which dies meanwhile.
 *
 * Whatever is left is opened. Building goes on by itself, and ends with view = filter(base), row by row, in the
 * live and in the checkpoint stores; what was called built before is complete at once. */
#ifndef TEST_CRASH_VIEWS_SCENE_H
#define TEST_CRASH_VIEWS_SCENE_H

#include <pawl/admin.h>

#include "engine/views/impl.h"
#include "test/lib/view_bed.h"

#define SHARDS    2
#define EACH      30 /* invoices of a tenant */
#define ROWS      ((uint64_t)EACH * VIEW_TENANTS)
#define SLICE     16
#define VIEWS_MAX 8

static struct view_bed bed;

/* Of a build. */
static const char *const steps[] = {
    "a slice of a view is built",
    "a slice of a view was built",
    "slices of a checkpoint are built",
    "slices of a checkpoint were built",
    "a command of the coordinator is written",
    "a command of the coordinator was written",
    "tablets are being resized",
};
#define STEPS (sizeof steps / sizeof steps[0])

/* Of views that are built: one is made anew and takes the other's place, one is dropped. */
static const char *const changes[] = {
    "a shard learns of views",
    "a slice of a view was built",
    "a command of the coordinator is written",
    "a command of the coordinator was written",
    "rows of views are removed",
};
#define CHANGES (sizeof changes / sizeof changes[0])

/* Rows are there, and closed. */
static inline void begin(void)
{
    view_bed_begin(&bed, SHARDS);
    view_bed_fill(&bed, EACH);
    view_bed_close(&bed);
    bed.knobs.boot_id = "this boot";
    bed.knobs.checkpoint_age = 2 * PAWL_MILLISECOND;
    bed.knobs.slice_rows = SLICE;
}

static inline void end(void)
{
    view_bed_end(&bed);
}

static inline bool is_complete(struct view_bed *b, pawl_reader *snapshot, const struct view *view,
                               uint16_t partition)
{
    uint32_t generations[2];
    struct view_state state;
    (void)view_generations(engine_schema(b->engine), view, generations);
    view_state_init(&state, NULL, partition, view_table(view->number, generations[0]), 0);
    bool complete = view_state_read(&state, snapshot, NULL) == PAWL_OK && state.complete;
    view_state_release(&state);
    return complete;
}

static inline bool is_complete_everywhere(struct view_bed *b, const struct view *view)
{
    bool all = true;
    for (uint32_t i = 0; i < b->engine->file.shards; i++) {
        struct shard *shard = &b->engine->shards[i];
        pawl_reader *snapshot;
        assert_ok(pawl_store_snapshot(shard->store, &snapshot));
        for (size_t p = 0; p < shard->partitions.count; p++)
            all = is_complete(b, snapshot, view, partition_set_at(&shard->partitions, p)) && all;
        pawl_store_release(shard->store, snapshot);
    }
    return all;
}

/* The views that group0 calls built, or any, that are not complete in every partition: their numbers. */
static inline size_t list_incomplete(struct view_bed *b, bool any, uint16_t numbers[VIEWS_MAX])
{
    const struct view_list *list = engine_views(b->engine);
    size_t count = 0;
    assert_true(list->count <= VIEWS_MAX);
    for (size_t i = 0; i < list->count; i++)
        if ((any || list->entries[i].progress == VIEW_SUCCESS)
            && !is_complete_everywhere(b, list->entries[i].view))
            numbers[count++] = list->entries[i].view->number;
    return count;
}

static inline bool are_complete(struct view_bed *b, bool any)
{
    uint16_t numbers[VIEWS_MAX];
    return list_incomplete(b, any, numbers) == 0;
}

static inline void until_complete(struct view_bed *b)
{
    uint64_t until = clock_boot_ns() + VIEW_PATIENCE;
    while (!are_complete(b, true) && clock_boot_ns() < until)
        wait_pause(PAWL_MILLISECOND);
    assert_true(are_complete(b, true));
}

/* Rows of a view that group0 does not have. */
struct strangers {
    const struct view_list *list;
    bool found;
};

static inline bool find_stranger(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct strangers *s = arg;
    (void)value;
    s->found = table_is_view(key_table(key)) && !view_list_by_table(s->list, key_table(key));
    return !s->found;
}

static inline bool has_strangers(struct view_bed *b, pawl_store *store)
{
    struct strangers s = {.list = engine_views(b->engine)};
    pawl_reader *snapshot;
    assert_ok(pawl_store_snapshot(store, &snapshot));
    assert_ok(pawl_store_scan(snapshot, (pawl_range){.space = VIEW_SPACE}, false, find_stranger, &s));
    pawl_store_release(store, snapshot);
    return s.found;
}

/* Of the live store, or of its checkpoint. */
static inline bool has_strangers_at(struct view_bed *b, uint32_t shard, bool live)
{
    struct checkpointer *c = b->engine->shards[shard].checkpointer;
    if (live)
        return has_strangers(b, b->engine->shards[shard].store);
    pthread_mutex_lock(&c->store_lock);
    bool has = c->store && has_strangers(b, c->store);
    pthread_mutex_unlock(&c->store_lock);
    return has;
}

static inline void until_removed(struct view_bed *b)
{
    uint64_t until = clock_boot_ns() + VIEW_PATIENCE;
    for (uint32_t i = 0; i < 2 * b->engine->file.shards; i++) {
        while (has_strangers_at(b, i / 2, i % 2) && clock_boot_ns() < until)
            wait_pause(PAWL_MILLISECOND);
        assert_false(has_strangers_at(b, i / 2, i % 2));
    }
}

static inline void assert_verified(struct view_bed *b)
{
    pawl_state_report report;
    pawl_replay_options options = {.dir = b->path, .audit = true};
    assert_bed_ok(b, pawl_replay(&options, &report, &b->error));
    if (report.live.differences + report.checkpoint.differences > 0)
        print_error("%s; %s\n", report.live.first.text, report.checkpoint.first.text);
    assert_int_equal(report.live.differences + report.checkpoint.differences, 0);
}

/* Building goes on by itself, and ends as it should. The engine is open, and is closed. */
static inline void finish_and_check(struct view_bed *b)
{
    const struct view_list *list = engine_views(b->engine);
    for (size_t i = 0; i < list->count; i++) {
        char name[100];
        snprintf(name, sizeof name, "%.*s", (int)list->entries[i].view->name.size,
                 (const char *)list->entries[i].view->name.data);
        view_bed_wait(b, name);
    }
    until_complete(b);
    until_removed(b);
    view_bed_fill(b, 1);
    view_bed_check(b);
    view_bed_check_checkpoints(b);
    view_bed_close(b);
    assert_verified(b);
}

static inline void create_views(struct view_bed *b)
{
    assert_bed_ok(b, view_bed_create(b, "t.v", "t.Invoice", "customer", "number", NULL, false));
    assert_bed_ok(b, view_bed_create(b, "t.u", "t.Invoice", "number", NULL, "cents > 0", true));
    assert_bed_ok(b, view_bed_create(b, "t.by_total", "t.Total", "cents", NULL, NULL, false));
}

static inline void wait_for_views(struct view_bed *b)
{
    view_bed_wait(b, "t.v");
    view_bed_wait(b, "t.u");
    view_bed_wait(b, "t.by_total");
}

static inline void change_views(struct view_bed *b)
{
    assert_bed_ok(b, pawl_view_rebuild(b->engine, "t.v", &b->error));
    assert_bed_ok(b, pawl_view_drop(b->engine, "t.by_total", &b->error));
    view_bed_wait(b, "t.v");
    until_removed(b);
}

#endif

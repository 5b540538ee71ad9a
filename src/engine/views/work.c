/* engine/views/work.c: a shard's part of building views: slices through its applier, and what is covered. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "core/view/unique.h"
#include "engine/views/impl.h"

#define REMOVE_ROWS ((size_t)512) /* at once */
#define COVER_ROWS  8192          /* in a slice that nobody waits behind */
#define AGAIN_AFTER PAWL_SECOND   /* when rows could not be removed */

/* Where a task's rows lie. */
struct task_place {
    uint16_t partition;
    pawl_range range;
    uint8_t from[KEY_TOKEN];
    uint8_t to[KEY_TOKEN];
};

/* The task tells by which tablets it is cut. The map would not do: group0 may have resized it since, and then the
 * tablet's number is that of other keys, or of no tablet at all. */
static void place_task(const struct shard *shard, const struct task *task, struct task_place *place)
{
    place->partition = (uint16_t)(task->tablet / (task->tablets / shard->engine->file.partitions));
    place->range = tablet_range(task->tablets, task->tablet, task->base, place->from, place->to);
}

static bool is_here(const struct shard *shard, uint16_t partition)
{
    return partition_shard(partition, shard->engine->file.shards) == shard->index;
}

static int find_task(void *ctx, uint64_t id, struct task *ret_task)
{
    struct view_work *w = ctx;
    const struct building *b = building_lock(w->shard->engine);
    int status = tasks_find(&b->tasks, id, ret_task);
    bool here = status == PAWL_OK && ret_task->tablet < b->map.tablets
                && is_here(w->shard, tablet_partition(&b->map, ret_task->tablet));
    building_unlock(w->shard->engine);
    return status == PAWL_OK && !here ? PAWL_ENOTFOUND : status;
}

/* --- slices --- */

struct slicing {
    struct view_tables *tables;
    struct slice slice;
    struct slice_report report;
};

static int put_slice(void *ctx, pawl_store *store, pawl_error *error)
{
    struct slicing *s = ctx;
    (void)store;
    int status = slice_put(s->tables, &s->slice, &s->report);
    return status == PAWL_OK ? status
                             : error_set(error, status, "a slice cannot be written: %s",
                                         s->tables->store->error.code == status ? s->tables->store->error.text
                                                                                : pawl_status_text(status));
}

static int run_slice(struct shard *shard, struct slicing *s, pawl_error *error)
{
    knobs_step(&shard->engine->knobs, "a slice of a view is built");
    int status = applier_write(&shard->applier, put_slice, s, error);
    if (status != PAWL_OK)
        return status;
    knobs_step(&shard->engine->knobs, "a slice of a view was built");
    struct processor *processor = shard->engine->partitions[s->slice.partition].processor;
    if (s->report.covered && processor) /* a unique view may bind from now on */
        processor_rebind(processor);
    if (s->report.covered && shard->checkpointer) /* its turn */
        checkpointer_views_changed(shard->checkpointer);
    return PAWL_OK;
}

static int build_slice(void *ctx, const struct task *tasks, size_t count, uint32_t rows_max,
                       struct slice_report *ret_report, pawl_error *error)
{
    struct view_work *w = ctx;
    uint32_t views[SLICE_VIEWS_MAX];
    struct task_place place;
    place_task(w->shard, &tasks[0], &place);
    for (size_t i = 0; i < count; i++)
        views[i] = tasks[i].view;
    struct slicing s = {.tables = &w->shard->views,
                        .slice = {.partition = place.partition,
                                  .base = tasks[0].base,
                                  .views = views,
                                  .count = count,
                                  .range = place.range,
                                  .rows_max = rows_max}};
    int status = run_slice(w->shard, &s, error);
    if (status == PAWL_OK)
        *ret_report = s.report;
    return status;
}

static bool covers(void *ctx, const struct task *task)
{
    struct view_work *w = ctx;
    struct task_place place;
    place_task(w->shard, task, &place);
    return slice_covers(&w->shard->views, task->view, place.partition, place.range);
}

/* A unique view binds in a partition when all of it is covered; the task that completes it is judged. */
static enum work_outcome judge_unique(struct view_work *w, const struct task *task, uint16_t partition,
                                      pawl_error *error)
{
    struct shard *shard = w->shard;
    const struct view_table *table = view_tables_find(&shard->views, task->view);
    const struct kept_state *kept = view_tables_state(&shard->views, task->view, partition);
    if (!table || !table->view->unique || !kept || !kept->state.complete)
        return WORK_FINISHED;
    if (!processor_settled(shard->engine->partitions[partition].processor))
        return WORK_NOT_DURABLE;
    int status = unique_verdict(&shard->views, task->view, partition, error);
    return status == PAWL_EEXISTS ? WORK_FAILED : status == PAWL_OK ? WORK_FINISHED : WORK_NOT_DURABLE;
}

static enum work_outcome judge(void *ctx, const struct task *task, pawl_error *error)
{
    struct view_work *w = ctx;
    struct shard *shard = w->shard;
    struct task_place place;
    place_task(shard, task, &place);
    if (shard->checkpointer
        && !checkpointer_covers(shard->checkpointer, task->view, task->base, place.partition, place.range))
        return WORK_NOT_DURABLE;
    return judge_unique(w, task, place.partition, error);
}

/* --- what is not covered --- */

struct listing {
    struct uncovered *list;
    size_t count;
    size_t room;
};

static void list_tablets(struct view_work *w, const struct view_table *table, struct kept_state *kept,
                         uint32_t tablets, struct listing *list)
{
    pawl_engine *e = w->shard->engine;
    uint32_t each = tablets / e->file.partitions, first = kept->state.partition * each;
    for (uint32_t tablet = first; tablet < first + each && list->count < list->room; tablet++) {
        uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
        pawl_range range = tablet_range(tablets, tablet, table->base, from, to);
        if (!coverage_covers(&kept->state.coverage, range.from, range.to))
            list->list[list->count++] =
                (struct uncovered){.base = table->base, .view = table->table, .tablet = tablet};
    }
}

/* How many rows of a base the view that has most to do has not scanned in a partition: all are built in one scan.
 * tables: those over the base. */
static uint64_t count_left(const struct view_work *w, const struct view_table *tables, size_t count,
                           size_t place)
{
    const pawl_engine *e = w->shard->engine;
    const struct view_tables *t = &w->shard->views;
    uint64_t scanned = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct view_state *state = &tables[i].states[place].state;
        if (!state->complete && state->scanned < scanned)
            scanned = state->scanned;
    }
    if (scanned == UINT64_MAX)
        return 0;
    uint64_t rows = views_count_base(e, t->schema, tables[0].view, tables[0].base, pawl_store_writer(t->store),
                                     partition_set_at(&t->set, place));
    return rows > scanned ? rows - scanned : 0;
}

/* Tables are in the order of their bases. */
static int list_bases(struct view_work *w, struct arena *arena, struct uncovered_reply *reply)
{
    const struct view_tables *t = &w->shard->views;
    reply->base_count = 0;
    reply->bases = arena_take(arena, t->count * sizeof *reply->bases);
    if (!reply->bases)
        return PAWL_ENOMEM;
    for (size_t i = 0, end; i < t->count && reply->base_count < BASES_MAX; i = end) {
        struct base_rows rows = {.base = t->tables[i].base};
        for (end = i + 1; end < t->count && t->tables[end].base == rows.base; end++)
            ;
        for (size_t k = 0; k < t->set.count; k++)
            rows.rows += count_left(w, &t->tables[i], end - i, k);
        reply->bases[reply->base_count++] = rows;
    }
    return PAWL_OK;
}

static int list_uncovered(void *ctx, struct arena *arena, struct uncovered_reply *ret_reply)
{
    struct view_work *w = ctx;
    struct view_tables *t = &w->shard->views;
    struct listing list = {.list = arena_take(arena, UNCOVERED_MAX * sizeof list.list[0]),
                           .room = UNCOVERED_MAX};
    if (!list.list)
        return PAWL_ENOMEM;
    uint32_t tablets = building_lock(w->shard->engine)->map.tablets;
    building_unlock(w->shard->engine);
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < t->set.count; k++) {
            struct kept_state *kept = &t->tables[i].states[k];
            if (view_tables_settle(t, kept) == PAWL_OK && !kept->state.complete)
                list_tablets(w, &t->tables[i], kept, tablets, &list);
        }
    struct uncovered_reply reply = {.list = list.list, .count = list.count};
    int status = list_bases(w, arena, &reply);
    if (status == PAWL_OK)
        *ret_reply = reply;
    return status;
}

static uint64_t throttle(void *ctx)
{
    struct view_work *w = ctx;
    return views_throttle(w->shard->engine);
}

static bool busy(void *ctx)
{
    const struct view_work *w = ctx;
    return w->shard->thread->outstanding > 0;
}

/* --- a unique view that is called built --- */

/* A store that was copied before the view was built lacks it; commands must not come before it binds. */
static int cover(struct shard *shard, const struct view_table *table, uint16_t partition, pawl_error *error)
{
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    struct slicing s = {.tables = &shard->views,
                        .slice = {.partition = partition,
                                  .base = table->base,
                                  .views = &table->table,
                                  .count = 1,
                                  .range = view_partition_range(shard->engine->file.partitions, partition,
                                                                STATE_SPACE, table->base, from, to),
                                  .rows_max = COVER_ROWS}};
    int status = PAWL_OK;
    while (status == PAWL_OK && !s.report.covered)
        status = run_slice(shard, &s, error);
    return status;
}

int work_cover_unique(struct shard *shard, pawl_error *error)
{
    struct view_tables *t = &shard->views;
    int status = PAWL_OK;
    for (size_t i = 0; i < t->count && status == PAWL_OK; i++)
        for (size_t k = 0; k < t->set.count && status == PAWL_OK; k++)
            if (t->tables[i].view->unique && t->tables[i].built && !t->tables[i].states[k].state.complete)
                status = cover(shard, &t->tables[i], partition_set_at(&t->set, k), error);
    return status;
}

/* --- rows that are nobody's --- */

static int put_removal(void *ctx, pawl_store *store, pawl_error *error)
{
    struct view_work *w = ctx;
    (void)store;
    int status = view_tables_remove_piece(&w->shard->views, REMOVE_ROWS, &w->more);
    return status == PAWL_OK ? status : error_set(error, status, "rows of views cannot be removed");
}

void work_remove(pawl_task *task)
{
    struct view_work *w = heap_entry(task, struct view_work, remove);
    if (!w->worker)
        return;
    knobs_step(&w->shard->engine->knobs, "rows of views are removed");
    w->more = false;
    int status = views_refresh_again(w->shard);
    if (status == PAWL_OK)
        status = applier_write(&w->shard->applier, put_removal, w, NULL);
    if (status == PAWL_OK && w->more)
        (void)pawl_env_post(w->shard->engine->env, w->shard->index, &w->remove);
    else if (status != PAWL_OK)
        pawl_env_after(w->shard->engine->env, &w->again, AGAIN_AFTER);
}

static void remove_again(pawl_timer *timer)
{
    struct view_work *w = heap_entry(timer, struct view_work, again);
    work_remove(&w->remove);
}

void work_changed(pawl_task *task)
{
    struct view_work *w = heap_entry(task, struct view_work, changed);
    if (w->worker)
        worker_changed(w->worker);
}

int work_open(struct view_work *w, pawl_bus *bus)
{
    static const struct worker_ops ops = {.task = find_task,
                                          .slice = build_slice,
                                          .judge = judge,
                                          .covers = covers,
                                          .uncovered = list_uncovered,
                                          .throttle = throttle,
                                          .busy = busy};
    const pawl_engine *e = w->shard->engine;
    struct worker_options options = {.env = e->env,
                                     .shard = w->shard->index,
                                     .bus = bus,
                                     .ops = &ops,
                                     .ctx = w,
                                     .slice_rows_max = e->knobs.slice_rows,
                                     .allocator = e->options.allocator};
    w->changed.fn = work_changed;
    w->remove.fn = work_remove;
    w->again.fn = remove_again;
    return worker_new(&options, &w->worker);
}

void work_close(struct view_work *w)
{
    if (w->worker)
        worker_free(w->worker);
    pawl_env_cancel(w->shard->engine->env, &w->again);
    w->worker = NULL;
    w->shard->building = NULL;
}

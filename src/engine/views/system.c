/* engine/views/system.c: tablets, and the tables of group0 that are about building views, as JSON lines. Their columns
 * are those of the published design, with the IDs of tables where it has UUIDs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "core/schema/path.h"
#include "engine/json/json.h"
#include "engine/read/read.h"
#include "engine/views/impl.h"

static const char *stage_of(const struct tablet_map *map)
{
    if (map->resize_to == 0)
        return "";
    return map->resize_to > map->tablets ? "split" : "merge";
}

static uint32_t count_tasks(const struct tasks *tasks, uint32_t tablet)
{
    uint32_t count = 0;
    struct task task;
    for (size_t i = 0; i < tasks->count; i++)
        if (tasks_find(tasks, tasks->groups[i].first + tablet, &task) == PAWL_OK)
            count++;
    return count;
}

static pawl_tablet describe_tablet(const struct building *b, uint32_t id)
{
    uint16_t partition = tablet_partition(&b->map, id);
    struct replica home = tablet_map_home(&b->map, partition);
    return (pawl_tablet){.id = id,
                         .partition = partition,
                         .node = home.node,
                         .shard = home.shard,
                         .first_token = tablet_first_token(b->map.tablets, id),
                         .last_token = tablet_last_token(b->map.tablets, id),
                         .tasks = count_tasks(&b->tasks, id),
                         .stage = stage_of(&b->map)};
}

int pawl_tablets_read(pawl_engine *e, pawl_tablet_visit visit, void *arg, pawl_error *error)
{
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    (void)engine_views(e); /* an engine that only reads learns what is new */
    bool go_on = true;
    for (uint32_t id = 0; go_on; id++) {
        const struct building *b = building_lock(e);
        bool there = id < b->map.tablets;
        pawl_tablet tablet = there ? describe_tablet(b, id) : (pawl_tablet){0};
        building_unlock(e);
        go_on = there && visit(arg, &tablet);
    }
    return PAWL_OK;
}

size_t views_tablets(pawl_engine *e, uint32_t table, uint8_t *covered, size_t room)
{
    const struct building *b = building_lock(e);
    struct tasks_cursor cursor = {0};
    struct task task;
    size_t count = b->map.tablets;
    memset(covered, 1, count < room ? count : room);
    while (tasks_next(&b->tasks, &cursor, &task))
        if (task.view == table && task.tablet < room)
            covered[task.tablet] = 0;
    building_unlock(e);
    return count;
}

/* --- tables --- */

struct showing {
    pawl_engine *engine;
    const struct building *building; /* while group0 is locked */
    struct json_out *out;
};

static void begin_line(struct json_out *out)
{
    out_open(out, '{');
}

static void end_line(struct json_out *out)
{
    out_close(out, '}');
    out_raw(out, (pawl_bytes){"\n", 1});
}

static void put_number(struct json_out *out, const char *key, uint64_t number)
{
    out_key(out, key);
    out_unsigned(out, number);
}

static void put_flag(struct json_out *out, const char *key, bool flag)
{
    out_key(out, key);
    out_flag(out, flag);
}

static void put_text(struct json_out *out, const char *key, pawl_bytes text)
{
    out_key(out, key);
    out_text(out, text);
}

static void put_words(struct json_out *out, const char *key, const char *text)
{
    put_text(out, key, (pawl_bytes){text, strlen(text)});
}

/* Of a log that nodes share: to whom it is assigned. */
static void put_assignment(const struct showing *s)
{
    const struct assignment *a = group0_assignment(s->engine->group0);
    char id[17];
    if (a->position == 0)
        return;
    snprintf(id, sizeof id, "%016" PRIx64, a->node);
    put_words(s->out, "node", id);
    put_words(s->out, "name", a->name);
    put_number(s->out, "assigned", a->position);
}

static void show_nodes(const struct showing *s)
{
    for (uint32_t node = 1; node <= s->building->map.nodes; node++) {
        begin_line(s->out);
        put_number(s->out, "host_id", node);
        put_number(s->out, "shards", s->building->map.shards);
        put_number(s->out, "term", s->engine->group0_epoch);
        put_assignment(s);
        end_line(s->out);
    }
}

static void show_tablets(const struct showing *s)
{
    for (uint32_t id = 0; id < s->building->map.tablets; id++) {
        pawl_tablet tablet = describe_tablet(s->building, id);
        begin_line(s->out);
        put_number(s->out, "tablet_id", id);
        put_number(s->out, "partition", tablet.partition);
        put_number(s->out, "host_id", tablet.node);
        put_number(s->out, "shard", tablet.shard);
        put_number(s->out, "first_token", tablet.first_token);
        put_number(s->out, "last_token", tablet.last_token);
        put_words(s->out, "stage", tablet.stage);
        end_line(s->out);
    }
}

static const char *progress_of(enum view_progress progress)
{
    return progress == VIEW_SUCCESS ? "SUCCESS" : progress == VIEW_FAILED ? "FAILED" : "STARTED";
}

static void show_views(const struct showing *s)
{
    const struct view_list *list = s->building->views;
    for (size_t i = 0; i < list->count; i++) {
        const struct view_entry *entry = &list->entries[i];
        begin_line(s->out);
        put_number(s->out, "view_id", view_table(entry->view->number, 0));
        put_text(s->out, "view_name", entry->view->name);
        put_number(s->out, "base_id", view_base_table(entry->view, 0));
        put_text(s->out, "base_name", entry->view->base->name);
        put_flag(s->out, "unique", entry->view->unique);
        put_flag(s->out, "declared", entry->declared);
        put_flag(s->out, "paused", entry->paused);
        put_number(s->out, "created", entry->created);
        if (entry->replaces)
            put_number(s->out, "replaces", view_table(entry->replaces, 0));
        end_line(s->out);
    }
}

static void show_task(const struct showing *s, const struct task *task)
{
    struct replica home = tablet_map_home(&s->building->map, tablet_partition(&s->building->map, task->tablet));
    begin_line(s->out);
    put_words(s->out, "key", "view_building");
    put_number(s->out, "id", task->id);
    put_words(s->out, "type", task->type == TASK_BUILD_RANGE ? "build_range" : "process_staging");
    put_flag(s->out, "aborted", task->aborted);
    put_number(s->out, "base_id", task->base);
    out_key(s->out, "view_id");
    if (task->view)
        out_unsigned(s->out, task->view);
    else
        out_null(s->out);
    put_number(s->out, "base_tablet_id", task->tablet);
    put_number(s->out, "host_id", home.node);
    put_number(s->out, "shard", home.shard);
    end_line(s->out);
}

static void show_tasks(const struct showing *s)
{
    struct tasks_cursor cursor = {0};
    struct task task;
    while (tasks_next(&s->building->tasks, &cursor, &task))
        show_task(s, &task);
}

static void show_status(const struct showing *s)
{
    const struct view_list *list = s->building->views;
    for (size_t i = 0; i < list->count; i++)
        for (uint32_t node = 1; node <= s->building->map.nodes; node++) {
            const struct view_entry *entry = &list->entries[i];
            begin_line(s->out);
            put_text(s->out, "view_name", entry->view->name);
            put_number(s->out, "view_id", view_table(entry->view->number, 0));
            put_number(s->out, "host_id", node);
            put_words(s->out, "status", progress_of(entry->progress));
            if (entry->progress == VIEW_FAILED)
                put_text(s->out, "words", entry->words);
            end_line(s->out);
        }
}

static void show_built(const struct showing *s)
{
    const struct view_list *list = s->building->views;
    for (size_t i = 0; i < list->count; i++) {
        if (list->entries[i].progress != VIEW_SUCCESS)
            continue;
        begin_line(s->out);
        put_text(s->out, "view_name", list->entries[i].view->name);
        put_number(s->out, "view_id", view_table(list->entries[i].view->number, 0));
        end_line(s->out);
    }
}

static void show_processing(const struct showing *s)
{
    if (s->building->processing == 0)
        return;
    begin_line(s->out);
    put_words(s->out, "key", "view_building_processing_base");
    put_number(s->out, "base_id", s->building->processing);
    end_line(s->out);
}

static const struct {
    const char *name;
    void (*show)(const struct showing *s);
} tables[] = {
    {"nodes", show_nodes},
    {"tablets", show_tablets},
    {"views", show_views},
    {"view_building_tasks", show_tasks},
    {"view_build_status", show_status},
    {"built_views", show_built},
    {"view_building_processing_base", show_processing},
};

int pawl_system_read(pawl_engine *e, const char *table, pawl_text *ret_text, pawl_error *error)
{
    struct json_out out;
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    size_t i = 0;
    while (i < sizeof tables / sizeof *tables && strcmp(tables[i].name, table) != 0)
        i++;
    if (i == sizeof tables / sizeof *tables)
        return error_set(
            error, PAWL_ENOTFOUND,
            "there is no system table '%s'; there are: nodes, tablets, views, view_building_tasks, "
            "view_build_status, built_views, view_building_processing_base",
            table);
    (void)engine_views(e);
    json_out_init(&out, e->options.allocator);
    struct showing s = {.engine = e, .building = building_lock(e), .out = &out};
    tables[i].show(&s);
    building_unlock(e);
    return text_take(&out, PAWL_OK, ret_text, error);
}

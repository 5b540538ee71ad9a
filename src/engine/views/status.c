/* engine/views/status.c: how views are doing: gathered from every shard, on its thread, or, if this engine only
 * reads, from the stores. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/project/cursor.h"
#include "core/schema/path.h"
#include "engine/json/json.h"
#include "engine/views/impl.h"

#define NAME_ROOM     (SCHEMA_QNAME_BYTES_MAX + 1)
#define ROW_WORDS_MAX 120
#define ROOM_LOW      ((uint64_t)16 << 20) /* stores grow by so many bytes at a time */

/* What one view sums up to over all partitions. */
struct summing {
    pawl_engine *engine;
    struct shard *shard;            /* at hand */
    const struct view_entry *entry; /* whose building is told */
    uint32_t served;                /* the table that is read */
    const struct schema *schema;
    uint64_t rows; /* of the table that is read */
    uint64_t scanned;
    uint64_t total;
    uint64_t failed;
    double rate;
    char first_failed[VIEW_WHY_MAX + ROW_WORDS_MAX + 40];
    pawl_error trouble;
    int status;
};

static void describe_failed(struct summing *s, const struct view_state *state)
{
    if (s->first_failed[0] || state->failed == 0 || state->example.size < KEY_WORKSPACE)
        return;
    char row[ROW_WORDS_MAX];
    pawl_bytes own = {(const uint8_t *)state->example.data + KEY_WORKSPACE,
                      state->example.size - KEY_WORKSPACE};
    json_row_words(s->schema, schema_type_by_id(s->schema, s->entry->view->base->id), own,
                   s->engine->options.allocator, row, sizeof row);
    snprintf(s->first_failed, sizeof s->first_failed, "workspace %" PRIu64 ", %s: %s", key_wsid(state->example),
             row, state->why);
}

static void add_state(struct summing *s, const struct view_state *state)
{
    s->scanned += state->scanned;
    s->failed += state->failed;
    describe_failed(s, state);
}

static int read_state(const struct summing *s, pawl_reader *reader, uint16_t partition, uint32_t table,
                      uint32_t base, struct view_state *state)
{
    view_state_init(state, s->engine->options.allocator, partition, table, base);
    int status = view_state_read(state, reader, NULL);
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

uint64_t views_count_base(const pawl_engine *e, const struct schema *schema, const struct view *view,
                          uint32_t base, pawl_reader *reader, uint16_t partition)
{
    const pawl_allocator *alloc = e->options.allocator;
    const struct schema_type *type = schema_type_by_id(schema, view->base->id);
    uint32_t generation = base >> SCHEMA_TABLE_BITS;
    uint64_t rows = 0;
    if (generation == 0) {
        struct position position;
        position_init(&position, alloc, partition);
        if (position_read(&position, reader, NULL) == PAWL_OK)
            rows = digests_of(&position.digests, base).rows;
        position_release(&position);
        return rows;
    }
    struct cursor cursor;
    cursor_init(&cursor, alloc, partition, type ? type->lane : 0, generation);
    if (cursor_read(&cursor, reader, NULL) == PAWL_OK)
        rows = digests_of(&cursor.digests, base).rows;
    cursor_release(&cursor);
    return rows;
}

static void add_table(struct summing *s, pawl_reader *reader, uint16_t partition, uint32_t generation)
{
    struct view_state state, served;
    uint32_t base = view_base_table(s->entry->view, generation);
    if (read_state(s, reader, partition, view_table(s->entry->view->number, generation), base, &state)
        == PAWL_OK)
        add_state(s, &state);
    view_state_release(&state);
    if (read_state(s, reader, partition, s->served, base, &served) == PAWL_OK)
        s->rows += served.digest.rows;
    view_state_release(&served);
    s->total += views_count_base(s->engine, s->schema, s->entry->view, base, reader, partition);
}

/* Only of the generation that is built last: that of the one that serves is complete already, if it has one. */
static uint32_t watched_generation(const struct summing *s)
{
    uint32_t generations[2];
    size_t count = view_generations(s->schema, s->entry->view, generations);
    return generations[count - 1];
}

static void add_store(struct summing *s)
{
    pawl_reader *snapshot;
    uint32_t generation = watched_generation(s);
    s->status = pawl_store_snapshot(s->shard->store, &snapshot);
    if (s->status != PAWL_OK)
        return;
    for (size_t i = 0; i < s->shard->partitions.count; i++)
        add_table(s, snapshot, partition_set_at(&s->shard->partitions, i), generation);
    pawl_store_release(s->shard->store, snapshot);
}

static void add_worker(void *arg)
{
    struct summing *s = arg;
    const struct view_work *work = s->shard->building;
    const struct worker_figures *figures = work && work->worker ? worker_figures(work->worker) : NULL;
    if (figures && figures->base == view_base_table(s->entry->view, watched_generation(s)))
        s->rate += figures->rate;
    if (figures && figures->error.code != PAWL_OK && s->trouble.code == PAWL_OK)
        s->trouble = figures->error;
    pawl_error why;
    if (s->trouble.code == PAWL_OK && s->shard->checkpointer
        && checkpointer_error(s->shard->checkpointer, &why))
        error_set(&s->trouble, why.code, "the checkpoint of shard %u cannot be written: %s", s->shard->index,
                  why.text);
}

static void ask_coordinator(void *arg)
{
    struct summing *s = arg;
    const struct views *v = s->engine->views;
    uint32_t table = view_table(s->entry->view->number, watched_generation(s));
    if (v->coordinator && s->trouble.code == PAWL_OK)
        (void)coordinator_trouble(v->coordinator, table, &s->trouble);
}

/* Only the process that builds knows what has failed. Another one can see that the disk has no room. */
static void look_at_disk(struct summing *s)
{
    struct statvfs disk;
    if (statvfs(s->engine->dir, &disk) != 0)
        return;
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (room < ROOM_LOW)
        error_set(&s->trouble, PAWL_EFULL, "its disk has only %" PRIu64 " kB left, and the state may need more",
                  room / 1000);
}

static int sum_up(struct summing *s)
{
    pawl_engine *e = s->engine;
    s->status = PAWL_OK;
    for (uint32_t i = 0; i < e->file.shards && s->status == PAWL_OK; i++) {
        s->shard = &e->shards[i];
        add_store(s);
        if (!e->options.read_only)
            (void)pawl_env_call(e->env, i, add_worker, s);
    }
    if (!e->options.read_only && atomic_load(&e->views->open) && s->entry->progress == VIEW_STARTED)
        (void)pawl_env_call(e->env, 0, ask_coordinator, s);
    if (e->options.read_only)
        look_at_disk(s);
    return s->status;
}

static double percent_of(const struct summing *s, bool built)
{
    if (built)
        return 100;
    double percent = s->total ? 100.0 * (double)s->scanned / (double)s->total : 100;
    return percent > 99.9 ? 99.9 : percent; /* it is not built before everything is durable */
}

static const char *words_of(const struct summing *s, const struct view_entry *e, bool all_paused, char *words,
                            size_t size)
{
    words[0] = '\0';
    if (e->progress == VIEW_FAILED)
        snprintf(words, size, "%.*s", (int)e->words.size, (const char *)e->words.data);
    else if (e->progress == VIEW_STARTED && (e->paused || all_paused))
        snprintf(words, size, "paused");
    else if (e->progress == VIEW_STARTED && s->trouble.code != PAWL_OK)
        snprintf(words, size, "%s", s->trouble.text);
    return words;
}

static pawl_view_state state_of(enum view_progress progress)
{
    return progress == VIEW_SUCCESS  ? PAWL_VIEW_BUILT
           : progress == VIEW_FAILED ? PAWL_VIEW_FAILED
                                     : PAWL_VIEW_BUILDING;
}

static int show(pawl_engine *e, const struct view_entry *serving, const struct view_entry *rebuilding,
                pawl_view_status_visit visit, void *arg, bool *ret_go_on)
{
    const struct view_entry *failed = rebuilding && rebuilding->progress == VIEW_FAILED ? rebuilding : NULL;
    const struct view_entry *entry = rebuilding && !failed ? rebuilding : serving;
    struct summing s = {.engine = e, .entry = entry, .schema = engine_schema(e)};
    uint32_t generations[2];
    (void)view_generations(s.schema, serving->view, generations); /* the first one serves */
    s.served = view_table(serving->view->number, generations[0]);
    char name[NAME_ROOM], base[NAME_ROOM], words[sizeof s.trouble.text];
    int status = sum_up(&s);
    if (status != PAWL_OK)
        return status;
    uint32_t table = view_table(entry->view->number, watched_generation(&s));
    const struct building *b = building_lock(e);
    uint64_t made = 0, left = tasks_of_view(&b->tasks, table, &made);
    bool all_paused = b->paused;
    building_unlock(e);
    snprintf(name, sizeof name, "%.*s", (int)serving->view->name.size, (const char *)serving->view->name.data);
    snprintf(base, sizeof base, "%.*s", (int)serving->view->base->name.size,
             (const char *)serving->view->base->name.data);
    bool built = entry->progress == VIEW_SUCCESS;
    uint64_t todo = s.total > s.scanned ? s.total - s.scanned : 0;
    pawl_view_status shown = {.name = name,
                              .base = base,
                              .state = state_of(serving->progress),
                              .declared = serving->declared,
                              .unique = serving->view->unique,
                              .rebuilding = entry == rebuilding,
                              .paused = entry->paused || all_paused,
                              .table = table,
                              .tasks = made,
                              .tasks_left = left,
                              .rows = s.rows,
                              .rows_done = s.scanned,
                              .rows_total = s.total,
                              .rate = s.rate,
                              .percent = percent_of(&s, built),
                              .eta = built        ? 0
                                     : s.rate > 0 ? (pawl_duration)((double)todo / s.rate * 1e9)
                                                  : UINT64_MAX,
                              .rows_failed = s.failed,
                              .first_failed = s.first_failed,
                              .words = words_of(&s, failed ? failed : entry, all_paused, words, sizeof words)};
    *ret_go_on = visit(arg, &shown);
    return PAWL_OK;
}

/* The next view behind this name, by name. */
static const struct view_entry *next_by_name(const struct view_list *list, pawl_bytes after)
{
    const struct view_entry *next = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct view_entry *entry = &list->entries[i];
        if (entry->replaces || (after.data && bytes_compare(entry->view->name, after) <= 0))
            continue;
        if (!next || bytes_compare(entry->view->name, next->view->name) < 0)
            next = entry;
    }
    return next;
}

int pawl_view_status_read(pawl_engine *e, const char *name, pawl_view_status_visit visit, void *arg,
                          pawl_error *error)
{
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    const struct view_list *list = engine_views(e);
    const struct view_entry *rebuilding, *entry;
    pawl_bytes after = {0};
    bool go_on = true;
    if (name && !view_list_by_name(list, (pawl_bytes){name, strlen(name)}, NULL))
        return error_set(error, PAWL_ENOTFOUND, "there is no view %s", name);
    while (status == PAWL_OK && go_on && (entry = next_by_name(list, after))) {
        after = entry->view->name;
        if (name && !bytes_equal(after, (pawl_bytes){name, strlen(name)}))
            continue;
        (void)view_list_by_name(list, after, &rebuilding);
        status = show(e, entry, rebuilding, visit, arg, &go_on);
    }
    return status == PAWL_OK ? status : error_set(error, status, "cannot read how views are doing");
}

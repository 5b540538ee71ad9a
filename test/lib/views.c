#include "test/lib/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "core/state/key.h"
#include "port/longkey.h"

/* --- expected rows --- */

struct expected {
    pawl_bytes key;
    pawl_bytes value;
    size_t key_fields;
    bool has_null;
};

struct expectation {
    const struct view *view;
    const struct view_state *state;
    struct view_room room;
    struct expected *rows;
    size_t count;
    size_t room_count;
    uint64_t failed;
};

static pawl_bytes copied(pawl_bytes bytes)
{
    void *copy = malloc(bytes.size ? bytes.size : 1);
    if (!copy)
        abort();
    if (bytes.size)
        memcpy(copy, bytes.data, bytes.size);
    return (pawl_bytes){copy, bytes.size};
}

static void let_go(pawl_bytes bytes)
{
    free((void *)(uintptr_t)bytes.data);
}

/* Found one by one: the set's own search is under test. */
static bool is_covered(const struct coverage *c, pawl_bytes key)
{
    for (size_t i = 0; i < c->count; i++)
        if (longkey_compare_keys(c->intervals[i].from, key) <= 0
            && longkey_compare_keys(key, c->intervals[i].to) < 0)
            return true;
    return false;
}

static bool expect_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct expectation *e = arg;
    struct view_row row;
    if (!is_covered(&e->state->coverage, key))
        return true;
    if (view_evaluate(e->view, key, value, &e->room, &row, NULL) != PAWL_OK)
        abort();
    e->failed += row.failed;
    if (!row.there)
        return true;
    if (e->count == e->room_count) {
        e->room_count = e->room_count ? 2 * e->room_count : 64;
        e->rows = realloc(e->rows, e->room_count * sizeof e->rows[0]);
        if (!e->rows)
            abort();
    }
    e->rows[e->count++] = (struct expected){.key = copied(row.key),
                                            .value = copied(row.value),
                                            .key_fields = row.key_fields,
                                            .has_null = row.has_null};
    return true;
}

static int by_key(const void *a, const void *b)
{
    return longkey_compare_keys(((const struct expected *)a)->key, ((const struct expected *)b)->key);
}

static uint64_t count_equal(const struct expectation *e)
{
    uint64_t equal = 0;
    for (size_t i = 0; i < e->count; i++) {
        const struct expected *row = &e->rows[i];
        bool has = false;
        for (size_t k = 0; k < i && !has && !row->has_null; k++)
            has = e->rows[k].key_fields == row->key_fields
                  && memcmp(e->rows[k].key.data, row->key.data, row->key_fields) == 0;
        equal += has;
    }
    return equal;
}

static void release(struct expectation *e)
{
    for (size_t i = 0; i < e->count; i++) {
        let_go(e->rows[i].key);
        let_go(e->rows[i].value);
    }
    free(e->rows);
    view_room_release(&e->room);
}

/* --- comparing --- */

struct comparison {
    struct expectation *expected;
    size_t next;
    pawl_digest digest;
    const char *wrong;
};

static bool compare_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct comparison *c = arg;
    const struct expectation *e = c->expected;
    if (c->next == e->count || longkey_compare_keys(key, e->rows[c->next].key) < 0)
        c->wrong = "a row that should not be there";
    else if (!bytes_equal(key, e->rows[c->next].key))
        c->wrong = "a row is missing";
    else if (!bytes_equal(value, e->rows[c->next].value))
        c->wrong = "a row has another value";
    pawl_digest_add(&c->digest, key, value);
    c->next++;
    return !c->wrong;
}

static bool is_whole(const struct coverage *c, pawl_range range)
{
    return c->count == 1 && longkey_compare_keys(c->intervals[0].from, range.from) <= 0
           && longkey_compare_keys(range.to, c->intervals[0].to) <= 0;
}

static const char *compare_state(const struct comparison *c, const struct view_state *state, pawl_range base)
{
    const struct expectation *e = c->expected;
    if (!pawl_digest_equal(&c->digest, &state->digest))
        return "the digest";
    if (e->failed != state->failed)
        return "the count of rows that fail";
    if (state->failed > 0 && (!state->example.data || !state->why[0]))
        return "no example of a row that fails";
    if (state->equal != (e->view->unique ? count_equal(e) : 0))
        return "the count of equal rows";
    return is_whole(&state->coverage, base) == state->complete ? NULL : "complete";
}

static const char *compare(pawl_reader *reader, const struct view *view, uint32_t generation,
                           uint32_t partitions, uint16_t partition, bool removing)
{
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN], view_from[KEY_TOKEN], view_to[KEY_TOKEN];
    uint32_t table = view_table(view->number, generation), base = view_base_table(view, generation);
    struct view_state state;
    struct expectation e = {.view = view, .state = &state};
    struct comparison c = {.expected = &e};
    pawl_range base_range = view_partition_range(partitions, partition, STATE_SPACE, base, from, to);
    pawl_range view_range = view_partition_range(partitions, partition, VIEW_SPACE, table, view_from, view_to);
    view_state_init(&state, NULL, partition, table, base);
    int status = view_state_read(&state, reader, NULL);
    if (status != PAWL_OK && status != PAWL_ENOTFOUND)
        return "the state cannot be read";
    if (status == PAWL_ENOTFOUND && removing)
        return NULL;
    if (pawl_store_scan(reader, base_range, false, expect_row, &e) != PAWL_OK)
        return "the base cannot be read";
    if (e.count > 0)
        qsort(e.rows, e.count, sizeof e.rows[0], by_key);
    if (pawl_store_scan(reader, view_range, false, compare_row, &c) != PAWL_OK)
        c.wrong = "the view cannot be read";
    if (!c.wrong && c.next != e.count)
        c.wrong = "a row is missing at the end";
    if (!c.wrong && status == PAWL_OK)
        c.wrong = compare_state(&c, &state, base_range);
    release(&e);
    view_state_release(&state);
    return c.wrong;
}

struct strangers {
    const struct view_list *list;
    bool found;
};

static bool find_stranger(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct strangers *s = arg;
    (void)value;
    s->found = table_is_view(key_table(key)) && !view_list_by_table(s->list, key_table(key));
    return !s->found;
}

bool views_are_right(pawl_reader *reader, const struct view_list *list, const struct schema *schema,
                     uint32_t partitions, const uint16_t *which, size_t which_count, bool removing)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct view *view = list->entries[i].view;
        uint32_t generations[2];
        size_t count = view_generations(schema, view, generations);
        for (size_t k = 0; k < count * which_count; k++) {
            const char *wrong =
                compare(reader, view, generations[k % count], partitions, which[k / count], removing);
            if (!wrong)
                continue;
            fprintf(stderr, "# view %.*s (%u), generation %u, partition %u: %s\n", (int)view->name.size,
                    (const char *)view->name.data, view->number, generations[k % count], which[k / count],
                    wrong);
            return false;
        }
    }
    struct strangers strangers = {.list = list};
    if (!removing)
        (void)pawl_store_scan(reader, (pawl_range){.space = VIEW_SPACE}, false, find_stranger, &strangers);
    if (strangers.found)
        fprintf(stderr, "# there are rows of a view that is gone\n");
    return !strangers.found;
}

struct counting {
    size_t rows;
    size_t states;
};

static bool count_one(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct counting *c = arg;
    (void)value;
    if (key_table(key) == TABLE_VIEW)
        c->states++;
    else
        c->rows++;
    return true;
}

static struct counting count_all(pawl_reader *reader)
{
    struct counting c = {0};
    if (pawl_store_scan(reader, (pawl_range){.space = VIEW_SPACE}, false, count_one, &c) != PAWL_OK)
        abort();
    return c;
}

size_t views_count_rows(pawl_reader *reader)
{
    return count_all(reader).rows;
}

size_t views_count_states(pawl_reader *reader)
{
    return count_all(reader).states;
}

/* --- commands --- */

static int say(struct group0 *group0, const struct group0_command *command, bool check,
               enum group0_outcome *ret_outcome, pawl_error *error)
{
    struct arena arena;
    pawl_bytes bytes;
    arena_init(&arena, NULL, 4096);
    int status = group0_view_encode(command, &arena, &bytes);
    if (status == PAWL_OK && check)
        status = group0_check(group0, bytes, ret_outcome, error);
    else if (status == PAWL_OK)
        status = group0_apply(group0, group0_position(group0) + 1, bytes, ret_outcome, error);
    arena_release(&arena);
    return status;
}

int views_command(struct group0 *group0, const struct group0_command *command, enum group0_outcome *ret_outcome,
                  pawl_error *error)
{
    return say(group0, command, false, ret_outcome, error);
}

int views_check_command(struct group0 *group0, const struct group0_command *command,
                        enum group0_outcome *ret_outcome, pawl_error *error)
{
    return say(group0, command, true, ret_outcome, error);
}

static pawl_bytes text_of(const char *text)
{
    return (pawl_bytes){text ? text : "", text ? strlen(text) : 0};
}

static pawl_bytes *split(const char *text, struct arena *arena, size_t *ret_count)
{
    pawl_bytes all = text_of(text);
    const char *at = all.data, *end = at + all.size;
    pawl_bytes *list = arena_take(arena, (all.size + 1) * sizeof *list);
    if (!list)
        abort();
    *ret_count = 0;
    while (at < end) {
        size_t size = strcspn(at, " ");
        if (size > 0)
            list[(*ret_count)++] = (pawl_bytes){at, size};
        at += size + (at + size < end);
    }
    return list;
}

void views_definition(const struct view_text *text, struct arena *arena, struct definition_view *view,
                      struct definition *ret_package)
{
    *view = (struct definition_view){.name = text_of(text->name),
                                     .base = text_of(text->base),
                                     .filter = text_of(text->filter),
                                     .unique = text->unique};
    view->key = split(text->key, arena, &view->key_count);
    view->include = split(text->include, arena, &view->include_count);
    *ret_package = (struct definition){.package = text_of(text->package), .views = view, .view_count = 1};
}

int views_create(struct group0 *group0, const struct view_text *text, enum group0_outcome *ret_outcome,
                 pawl_error *error)
{
    struct group0_command command = {.kind = GROUP0_VIEW_CREATE};
    struct definition_view view;
    struct arena arena;
    arena_init(&arena, NULL, 4096);
    views_definition(text, &arena, &view, &command.schema);
    int status = views_command(group0, &command, ret_outcome, error);
    arena_release(&arena);
    return status;
}

int views_named(struct group0 *group0, enum group0_command_kind kind, const char *name,
                enum group0_outcome *ret_outcome, pawl_error *error)
{
    return views_command(group0, &(struct group0_command){.kind = kind, .name = text_of(name)}, ret_outcome,
                         error);
}

int views_resize(struct group0 *group0, enum group0_command_kind kind, uint32_t tablets,
                 enum group0_outcome *ret_outcome, pawl_error *error)
{
    return views_command(group0, &(struct group0_command){.kind = kind, .tablets = tablets}, ret_outcome,
                         error);
}

int views_finish(struct group0 *group0, uint32_t table, enum group0_outcome *ret_outcome)
{
    const struct tasks *tasks = &group0_building(group0)->tasks;
    struct tasks_cursor cursor = {0};
    struct task task;
    uint64_t *ids = malloc((tasks->left + 1) * sizeof *ids);
    size_t count = 0;
    if (!ids)
        abort();
    while (tasks_next(tasks, &cursor, &task))
        if (table == 0 || task.view == table)
            ids[count++] = task.id;
    int status =
        views_command(group0, &(struct group0_command){.kind = GROUP0_FINISHED, .ids = ids, .id_count = count},
                      ret_outcome, NULL);
    free(ids);
    return status;
}

/* engine/json/schema_read.c: JSON becomes a definition. Only the form is checked here.
 *
 * A reader's verdict keeps the first error; everything that is read after that is empty. */
#include "base/bytes.h"
#include "base/error.h"
#include "engine/json/schema.h"
#include "engine/json/tree.h"

#define TREE_CHUNK ((size_t)64 << 10)

struct reader {
    struct verdict v;
    struct arena *arena;
};

static void *take(struct reader *r, size_t count, size_t size)
{
    void *memory = arena_take(r->arena, count * size);
    if (memory)
        memset(memory, 0, count * size);
    else
        verdict_fail(&r->v, PAWL_ENOMEM);
    return memory;
}

static pawl_bytes copy(struct reader *r, const char *text, size_t size)
{
    pawl_bytes copied = arena_copy(r->arena, (pawl_bytes){text, size});
    if (!copied.data)
        verdict_fail(&r->v, PAWL_ENOMEM);
    return copied.data ? copied : (pawl_bytes){NULL, 0};
}

static pawl_bytes text_of(struct reader *r, const struct path *at, const struct tree *json)
{
    if (!tree_expect(&r->v, at, json, tree_is(json, TREE_STRING), "a string"))
        return (pawl_bytes){NULL, 0};
    if (tree_text(json).size == 0) {
        verdict_refuse(&r->v, at, "it is empty");
        return (pawl_bytes){NULL, 0};
    }
    return copy(r, (const char *)tree_text(json).data, tree_text(json).size);
}

static pawl_bytes read_text(struct reader *r, const struct path *at, const struct tree *object,
                            const char *member, bool required)
{
    struct path here = path_member(at, member);
    const struct tree *json = tree_get(object, member);
    if (json)
        return text_of(r, &here, json);
    if (required)
        verdict_refuse(&r->v, &here, "it is missing");
    return (pawl_bytes){NULL, 0};
}

static bool read_flag(struct reader *r, const struct path *at, const struct tree *object, const char *member)
{
    struct path here = path_member(at, member);
    const struct tree *json = tree_get(object, member);
    return json && tree_expect(&r->v, &here, json, tree_is(json, TREE_BOOL), "true or false") && json->boolean;
}

static uint64_t read_number(struct reader *r, const struct path *at, const struct tree *object,
                            const char *member)
{
    struct path here = path_member(at, member);
    const struct tree *json = tree_get(object, member);
    if (!json || !tree_expect(&r->v, &here, json, tree_is(json, TREE_INTEGER), "an integer"))
        return 0;
    if (json->integer < 1)
        verdict_refuse(&r->v, &here, "it must be at least 1");
    return (uint64_t)json->integer;
}

static pawl_bytes *read_texts(struct reader *r, const struct path *at, const struct tree *object,
                              const char *member, size_t *ret_count)
{
    struct path here = path_member(at, member);
    const struct tree *json = tree_get(object, member);
    if (!json || !tree_expect(&r->v, &here, json, tree_is(json, TREE_ARRAY), "an array of strings"))
        return NULL;
    size_t count = tree_count(json);
    pawl_bytes *texts = take(r, count, sizeof *texts);
    for (size_t i = 0; i < count && texts; i++) {
        struct path item = path_index(&here, i);
        texts[i] = text_of(r, &item, tree_at(json, i));
    }
    *ret_count = texts ? count : 0;
    return texts;
}

/* A member that is an object of named items; its order is kept. */
static void *read_group(struct reader *r, const struct path *at, const struct tree *object, const char *member,
                        size_t item_size,
                        void (*read)(struct reader *, const struct path *, const struct tree *, void *),
                        size_t *ret_count)
{
    struct path group = path_member(at, member);
    const struct tree *json = tree_get(object, member);
    if (!json || !tree_expect(&r->v, &group, json, tree_is(json, TREE_OBJECT), "an object"))
        return NULL;
    uint8_t *items = take(r, tree_count(json), item_size);
    size_t count = 0;
    for (size_t i = 0; i < tree_count(json); i++) {
        const struct tree *value = tree_at(json, i);
        if (!items || r->v.status)
            return NULL;
        void *item = items + count++ * item_size;
        struct path here = path_name(&group, value->name);
        read(r, &here, value, item);
        *(pawl_bytes *)item = copy(r, tree_name(value), value->name.size);
    }
    *ret_count = items ? count : 0;
    return items;
}

#define GROUP(r, at, object, member, read, items, count)                                                       \
    ((items) = read_group((r), (at), (object), (member), sizeof *(items), (read), &(count)))

static void read_sequence(struct reader *r, const struct path *at, const struct tree *json, void *item)
{
    static const char *const members[] = {"first", "end", NULL};
    struct definition_sequence *to = item;
    if (!tree_expect_members(&r->v, at, json, members))
        return;
    to->first = read_number(r, at, json, "first");
    to->end = read_number(r, at, json, "end");
}

static void read_workspace(struct reader *r, const struct path *at, const struct tree *json, void *item)
{
    static const char *const members[] = {"sequences", NULL};
    struct definition_workspace *to = item;
    if (tree_expect_members(&r->v, at, json, members))
        GROUP(r, at, json, "sequences", read_sequence, to->sequences, to->sequence_count);
}

static void read_field(struct reader *r, const struct path *at, const struct tree *json, void *item)
{
    static const char *const members[] = {"type", "required", "sequence", "to", NULL};
    struct definition_field *to = item;
    if (!tree_expect_members(&r->v, at, json, members))
        return;
    to->type = read_text(r, at, json, "type", true);
    to->required = read_flag(r, at, json, "required");
    to->sequence = read_text(r, at, json, "sequence", false);
    to->to = read_text(r, at, json, "to", false);
}

static void read_pair(struct reader *r, const struct path *at, const struct tree *json, void *item)
{
    ((struct definition_pair *)item)->text = text_of(r, at, json);
}

static void read_type(struct reader *r, const struct path *at, const struct tree *json, void *item)
{
    static const char *const members[] = {"kind", "singleton", "fields", "children", NULL};
    struct definition_type *to = item;
    if (!tree_expect_members(&r->v, at, json, members))
        return;
    to->kind = read_text(r, at, json, "kind", true);
    to->singleton = read_flag(r, at, json, "singleton");
    GROUP(r, at, json, "fields", read_field, to->fields, to->field_count);
    GROUP(r, at, json, "children", read_pair, to->children, to->child_count);
}

static void read_entity(struct reader *r, const struct path *at, const struct tree *json, void *item)
{
    static const char *const members[] = {"key", "fields", NULL};
    struct definition_entity *to = item;
    if (!tree_expect_members(&r->v, at, json, members))
        return;
    to->key = read_texts(r, at, json, "key", &to->key_count);
    GROUP(r, at, json, "fields", read_field, to->fields, to->field_count);
}

static void read_command(struct reader *r, const struct path *at, const struct tree *json, void *item)
{
    static const char *const members[] = {"argument", "records", NULL};
    struct definition_command *to = item;
    if (!tree_expect_members(&r->v, at, json, members))
        return;
    to->argument = read_text(r, at, json, "argument", false);
    to->records = read_texts(r, at, json, "records", &to->record_count);
}

static const struct {
    enum action_kind kind;
    const char *const *members; /* the first one names the kind */
} actions[] = {
    {ACTION_UPSERT, (const char *const[]){"upsert", "key", "set", NULL}},
    {ACTION_UPDATE, (const char *const[]){"update", "where", "set", NULL}},
    {ACTION_DELETE, (const char *const[]){"delete", "where", NULL}},
};

static void read_action(struct reader *r, const struct path *at, const struct tree *json,
                        struct definition_action *to)
{
    size_t which = 0;
    if (!tree_expect(&r->v, at, json, tree_is(json, TREE_OBJECT), "an object"))
        return;
    while (which < 3 && !tree_get(json, actions[which].members[0]))
        which++;
    if (which == 3) {
        verdict_refuse(&r->v, at, "an action is an upsert, an update or a delete");
        return;
    }
    if (!tree_expect_members(&r->v, at, json, actions[which].members))
        return;
    to->kind = actions[which].kind;
    to->entity = read_text(r, at, json, actions[which].members[0], true);
    GROUP(r, at, json, "key", read_pair, to->key, to->key_count);
    GROUP(r, at, json, "set", read_pair, to->sets, to->set_count);
    to->where = read_text(r, at, json, "where", false);
}

static void read_actions(struct reader *r, const struct path *at, const struct tree *json,
                         struct definition_projector *to)
{
    struct path all = path_member(at, "do");
    const struct tree *list = tree_get(json, "do");
    if (!list || !tree_expect(&r->v, &all, list, tree_is(list, TREE_ARRAY), "an array of actions"))
        return;
    size_t count = tree_count(list);
    to->actions = take(r, count, sizeof *to->actions);
    to->action_count = to->actions ? count : 0;
    for (size_t i = 0; i < to->action_count && r->v.status == PAWL_OK; i++) {
        struct path here = path_index(&all, i);
        read_action(r, &here, tree_at(list, i), &to->actions[i]);
    }
}

static void read_projector(struct reader *r, const struct path *at, const struct tree *json, void *item)
{
    static const char *const members[] = {"on",    "sync",       "lane",         "do",      "writes",
                                          "reads", "on_failure", "max_attempts", "workers", NULL};
    struct definition_projector *to = item;
    if (!tree_expect_members(&r->v, at, json, members))
        return;
    to->on = read_texts(r, at, json, "on", &to->on_count);
    to->sync = read_flag(r, at, json, "sync");
    to->lane = read_text(r, at, json, "lane", false);
    read_actions(r, at, json, to);
    to->writes = read_texts(r, at, json, "writes", &to->write_count);
    to->reads = read_texts(r, at, json, "reads", &to->read_count);
    to->on_failure = read_text(r, at, json, "on_failure", false);
    to->attempts_max = read_number(r, at, json, "max_attempts");
    to->workers = read_number(r, at, json, "workers");
}

static void read_view(struct reader *r, const struct path *at, const struct tree *json, void *item)
{
    static const char *const members[] = {"base", "key", "include", "filter", "unique", NULL};
    struct definition_view *to = item;
    if (!tree_expect_members(&r->v, at, json, members))
        return;
    to->base = read_text(r, at, json, "base", true);
    to->key = read_texts(r, at, json, "key", &to->key_count);
    to->include = read_texts(r, at, json, "include", &to->include_count);
    to->filter = read_text(r, at, json, "filter", false);
    to->unique = read_flag(r, at, json, "unique");
}

static void read_package(struct reader *r, const struct tree *json, struct definition *to)
{
    static const char *const members[] = {"schema",   "package",    "workspaces", "types", "commands",
                                          "entities", "projectors", "views",      NULL};
    struct path root = {0}, version_at = path_member(&root, "schema");
    if (!tree_expect_members(&r->v, &root, json, members))
        return;
    const struct tree *version = tree_get(json, "schema");
    if (!tree_is(version, TREE_INTEGER) || version->integer != 1)
        verdict_refuse(&r->v, &version_at, "it must be 1, the version of this language");
    to->package = read_text(r, &root, json, "package", true);
    GROUP(r, &root, json, "workspaces", read_workspace, to->workspaces, to->workspace_count);
    GROUP(r, &root, json, "types", read_type, to->types, to->type_count);
    GROUP(r, &root, json, "commands", read_command, to->commands, to->command_count);
    GROUP(r, &root, json, "entities", read_entity, to->entities, to->entity_count);
    GROUP(r, &root, json, "projectors", read_projector, to->projectors, to->projector_count);
    GROUP(r, &root, json, "views", read_view, to->views, to->view_count);
}

int schema_read(pawl_bytes text, struct arena *arena, struct definition *ret_definition, pawl_error *error)
{
    const struct tree_limits limits = {.bytes_max = SCHEMA_JSON_BYTES_MAX, .depth_max = SCHEMA_JSON_DEPTH_MAX};
    struct tree *json;
    struct arena memory; /* of the tree, which nobody needs any more when it was read */
    arena_init(&memory, arena->alloc, TREE_CHUNK);
    int status = tree_read(text, &limits, &memory, &json, error);
    if (status) {
        arena_release(&memory);
        return status;
    }
    struct definition definition = {0};
    struct reader r = {.v = {.error = error}, .arena = arena};
    error_clear(error);
    read_package(&r, json, &definition);
    arena_release(&memory);
    if (r.v.status == PAWL_OK)
        *ret_definition = definition;
    return r.v.status;
}

#include "engine/json/results.h"

#include <string.h>

#include "base/error.h"
#include "engine/json/request_impl.h"

#define ARENA_CHUNK ((size_t)4096)

/* Values are read like those of a command's record: into a request with one record, whose type is the
 * entity. */
struct results_reader {
    struct request_reader r;
    struct request request;
    pawl_results *results;
    struct arena memory;
};

/* If a call that added to the results has failed, keep its error with this path. */
static void took(struct results_reader *w, const struct path *at, int status)
{
    if (status == PAWL_OK || w->r.v.status)
        return;
    char where[256];
    path_format(at, where, sizeof where);
    error_set(w->r.v.error, status, "%s: %s", where, results_error(w->results)->text);
    verdict_fail(&w->r.v, status);
}

/* A string with no 0 inside, and a 0 at its end; NULL: refused. */
static const char *read_words(struct results_reader *w, const struct path *at, const struct tree *json,
                              const char *what)
{
    if (!tree_expect(&w->r.v, at, json, tree_is(json, TREE_STRING), what))
        return NULL;
    if (strlen((const char *)tree_text(json).data) != tree_text(json).size) {
        verdict_refuse(&w->r.v, at, "it has U+0000 in it");
        return NULL;
    }
    return (const char *)tree_text(json).data;
}

static int set_value(pawl_results *results, const char *field, const struct schema *schema,
                     const struct value *value)
{
    switch (value->type) {
    case VALUE_NULL: return pawl_results_set_null(results, field);
    case VALUE_INT64: return pawl_results_set_int64(results, field, value->integer);
    case VALUE_FLOAT64: return pawl_results_set_float64(results, field, value->real);
    case VALUE_BOOL: return pawl_results_set_bool(results, field, value->boolean);
    case VALUE_STRING: return pawl_results_set_text(results, field, value->bytes);
    case VALUE_BYTES: return pawl_results_set_bytes(results, field, value->bytes);
    case VALUE_TIMESTAMP: return pawl_results_set_time(results, field, (pawl_wall){value->integer});
    case VALUE_REF: return pawl_results_set_ref(results, field, value->id);
    case VALUE_QNAME: break;
    }
    char name[SCHEMA_QNAME_BYTES_MAX + 1];
    pawl_bytes text = schema_name_text(schema, value->name);
    memcpy(name, text.data, text.size);
    name[text.size] = '\0';
    return pawl_results_set_name(results, field, name);
}

/* Set in the results what was read: the request's fields from the one numbered first on. */
static void hand_over(struct results_reader *w, const struct path *at, const struct schema_type *entity,
                      size_t first)
{
    for (size_t i = first; i < w->request.field_count && w->r.v.status == PAWL_OK; i++) {
        const struct request_field *field = &w->request.fields[i];
        char name[SCHEMA_NAME_BYTES_MAX + 1];
        pawl_bytes text = entity->fields[field->place].name;
        memcpy(name, text.data, text.size);
        name[text.size] = '\0';
        struct path here = path_name(at, text);
        took(w, &here, set_value(w->results, name, w->r.schema, &field->value));
    }
}

static void read_expression(struct results_reader *w, const struct path *at, const char *field,
                            const struct tree *json)
{
    static const char *const members[] = {"expr", NULL};
    if (!tree_expect_members(&w->r.v, at, json, members))
        return;
    struct path here = path_member(at, "expr");
    const struct tree *expression = tree_get(json, "expr");
    if (!expression)
        verdict_refuse(&w->r.v, &here, "it is missing");
    const char *words = expression ? read_words(w, &here, expression, "an expression as a string") : NULL;
    if (words)
        took(w, &here, pawl_results_set_expr(w->results, field, words));
}

static void read_set(struct results_reader *w, const struct path *at, const struct schema_type *entity,
                     const struct tree *json)
{
    size_t first = w->request.field_count;
    if (!tree_expect(&w->r.v, at, json, tree_is(json, TREE_OBJECT), "an object"))
        return;
    for (size_t i = 0; i < tree_count(json); i++) {
        const struct tree *value = tree_at(json, i);
        struct path here = path_name(at, value->name);
        int place = schema_field_place(entity, here.name);
        if (place < 0)
            verdict_refuse(&w->r.v, &here, "%.*s has no such field", TEXT(entity->name));
        else if (schema_in_key(entity, place))
            verdict_refuse(&w->r.v, &here, "it is a field of the key");
        else if (tree_is(value, TREE_OBJECT))
            read_expression(w, &here, tree_name(value), value);
        else
            request_read_field(&w->r, &here, entity, (uint16_t)place, value);
        if (w->r.v.status)
            return;
    }
    hand_over(w, at, entity, first);
}

static const struct {
    const char *const *members; /* the first one names the kind */
    const char *const *needed;
} writes[] = {
    [ACTION_UPSERT] = {(const char *const[]){"upsert", "key", "set", NULL}, (const char *const[]){"key", NULL}},
    [ACTION_UPDATE] = {(const char *const[]){"update", "key", "where", "set", NULL},
                       (const char *const[]){"set", NULL}},
    [ACTION_DELETE] = {(const char *const[]){"delete", "key", "where", NULL}, (const char *const[]){NULL}},
};

/* The kind of the write; 0: refused. */
static size_t read_kind(struct results_reader *w, const struct path *at, const struct tree *json)
{
    size_t kind = ACTION_UPSERT;
    if (!tree_expect(&w->r.v, at, json, tree_is(json, TREE_OBJECT), "an object"))
        return 0;
    while (kind <= ACTION_DELETE && !tree_get(json, writes[kind].members[0]))
        kind++;
    if (kind > ACTION_DELETE) {
        verdict_refuse(&w->r.v, at, "a write is an upsert, an update or a delete");
        return 0;
    }
    if (!tree_expect_members(&w->r.v, at, json, writes[kind].members))
        return 0;
    for (size_t i = 0; writes[kind].needed[i]; i++) {
        struct path here = path_member(at, writes[kind].needed[i]);
        if (!tree_get(json, writes[kind].needed[i]))
            verdict_refuse(&w->r.v, &here, "it is missing");
    }
    return w->r.v.status == PAWL_OK ? kind : 0;
}

/* Begin the write. False: refused. */
static bool begin(struct results_reader *w, const struct path *at, size_t kind, const struct tree *json)
{
    struct path entity_at = path_member(at, writes[kind].members[0]), where_at = path_member(at, "where");
    const struct tree *where_json = tree_get(json, "where");
    const char *name =
        read_words(w, &entity_at, tree_get(json, writes[kind].members[0]), "the qualified name of an entity");
    const char *where = where_json ? read_words(w, &where_at, where_json, "an expression as a string") : NULL;
    if (w->r.v.status)
        return false;
    const struct schema_type *type = schema_type_by_name(w->r.schema, (pawl_bytes){name, strlen(name)});
    if (!type || type->kind != TYPE_ENTITY)
        verdict_refuse(&w->r.v, &entity_at, "there is no entity '%.130s'", name);
    else if (where && tree_get(json, "key"))
        verdict_refuse(&w->r.v, &where_at, "rows are named by a key or by where, not by both");
    else if (kind == ACTION_UPSERT)
        took(w, &entity_at, pawl_results_upsert(w->results, name));
    else
        took(w, where ? &where_at : &entity_at,
             kind == ACTION_UPDATE ? pawl_results_update(w->results, name, where)
                                   : pawl_results_delete(w->results, name, where));
    return w->r.v.status == PAWL_OK;
}

static void read_write(struct results_reader *w, const struct path *at, const struct tree *json)
{
    size_t kind = read_kind(w, at, json);
    if (kind == 0 || !begin(w, at, kind, json))
        return;
    const struct schema_type *entity = results_entity(w->results);
    struct path key_at = path_member(at, "key"), set_at = path_member(at, "set");
    const struct tree *key = tree_get(json, "key"), *set = tree_get(json, "set");
    arena_reset(&w->memory);
    request_init(&w->request, &w->memory);
    int status = request_add_record(&w->request, 1, entity->id);
    if (status)
        verdict_fail(&w->r.v, status);
    if (key && w->r.v.status == PAWL_OK)
        request_read_key(&w->r, &key_at, entity, key);
    if (key && w->r.v.status == PAWL_OK)
        hand_over(w, &key_at, entity, 0);
    if (set && w->r.v.status == PAWL_OK)
        read_set(w, &set_at, entity, set);
}

static void read_all(struct results_reader *w, const struct tree *json)
{
    static const char *const members[] = {"writes", NULL};
    const struct path root = {0};
    struct path at = path_member(&root, "writes");
    if (!tree_expect_members(&w->r.v, &root, json, members))
        return;
    const struct tree *list = tree_get(json, "writes");
    if (!list)
        verdict_refuse(&w->r.v, &at, "it is missing");
    if (!list || !tree_expect(&w->r.v, &at, list, tree_is(list, TREE_ARRAY), "an array of objects"))
        return;
    for (size_t i = 0; i < tree_count(list) && w->r.v.status == PAWL_OK; i++) {
        struct path here = path_index(&at, i);
        read_write(w, &here, tree_at(list, i));
    }
}

int json_results_read(const char *text, size_t size, pawl_results *results, pawl_error *error)
{
    const struct tree_limits limits = {
        .bytes_max = RESULTS_JSON_BYTES_MAX, .depth_max = RESULTS_JSON_DEPTH_MAX, .zeros = true};
    struct tree *json;
    struct arena tree_memory;
    arena_init(&tree_memory, NULL, ARENA_CHUNK);
    int status = tree_read((pawl_bytes){text, size}, &limits, &tree_memory, &json, error);
    if (status) {
        arena_release(&tree_memory);
        return status;
    }
    struct results_reader w = {.r = {.v = {.error = error}, .schema = results_schema(results)},
                               .results = results};
    w.r.request = &w.request;
    arena_init(&w.memory, NULL, ARENA_CHUNK);
    error_clear(error);
    read_all(&w, json);
    arena_release(&w.memory);
    arena_release(&tree_memory);
    return w.r.v.status;
}

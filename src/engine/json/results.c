#include "engine/json/results.h"

#include <string.h>

#include "base/error.h"
#include "engine/json/request_impl.h"

#define ARENA_CHUNK ((size_t)4096)

/* Values are read as those of a command's record are: into a request with one record, of the entity. */
struct results_reader {
    struct request_reader r;
    struct request request;
    pawl_results *results;
    struct arena memory;
};

/* A call of the results has failed: its words, at this place. */
static void took(struct results_reader *w, const struct path *at, int status)
{
    if (status == PAWL_OK || w->r.v.status)
        return;
    char where[256];
    path_format(at, where, sizeof where);
    error_set(w->r.v.error, status, "%s: %s", where, results_error(w->results)->text);
    verdict_fail(&w->r.v, status);
}

/* A string without zeros, which ends with one; NULL: refused. */
static const char *read_words(struct results_reader *w, const struct path *at, const json_t *json,
                              const char *what)
{
    if (!tree_expect(&w->r.v, at, json, json_is_string(json), what))
        return NULL;
    if (strlen(json_string_value(json)) != json_string_length(json)) {
        verdict_refuse(&w->r.v, at, "it has a zero in it");
        return NULL;
    }
    return json_string_value(json);
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

/* Hand over what was read, from the request's field first on. */
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

static void read_expression(struct results_reader *w, const struct path *at, const char *field, json_t *json)
{
    static const char *const members[] = {"expr", NULL};
    if (!tree_expect_members(&w->r.v, at, json, members))
        return;
    struct path here = path_member(at, "expr");
    const json_t *expression = json_object_get(json, "expr");
    if (!expression)
        verdict_refuse(&w->r.v, &here, "it is missing");
    const char *words = expression ? read_words(w, &here, expression, "an expression as a string") : NULL;
    if (words)
        took(w, &here, pawl_results_set_expr(w->results, field, words));
}

static void read_set(struct results_reader *w, const struct path *at, const struct schema_type *entity,
                     json_t *json)
{
    size_t first = w->request.field_count;
    const char *key;
    json_t *value;
    if (!tree_expect(&w->r.v, at, json, json_is_object(json), "an object"))
        return;
    json_object_foreach(json, key, value)
    {
        struct path here = path_member(at, key);
        int place = schema_field_place(entity, here.name);
        if (place < 0)
            verdict_refuse(&w->r.v, &here, "%.*s has no such field", TEXT(entity->name));
        else if (schema_in_key(entity, place))
            verdict_refuse(&w->r.v, &here, "it is of the key");
        else if (json_is_object(value))
            read_expression(w, &here, key, value);
        else
            request_read_field(&w->r, &here, entity, (uint16_t)place, value);
        if (w->r.v.status)
            return;
    }
    hand_over(w, at, entity, first);
}

static const struct {
    const char *const *members; /* the first says which it is */
    const char *const *needed;
} writes[] = {
    [ACTION_UPSERT] = {(const char *const[]){"upsert", "key", "set", NULL}, (const char *const[]){"key", NULL}},
    [ACTION_UPDATE] = {(const char *const[]){"update", "key", "where", "set", NULL},
                       (const char *const[]){"set", NULL}},
    [ACTION_DELETE] = {(const char *const[]){"delete", "key", "where", NULL}, (const char *const[]){NULL}},
};

/* Which of them it is; 0: refused. */
static size_t read_kind(struct results_reader *w, const struct path *at, json_t *json)
{
    size_t kind = ACTION_UPSERT;
    if (!tree_expect(&w->r.v, at, json, json_is_object(json), "an object"))
        return 0;
    while (kind <= ACTION_DELETE && !json_object_get(json, writes[kind].members[0]))
        kind++;
    if (kind > ACTION_DELETE) {
        verdict_refuse(&w->r.v, at, "a write is an upsert, an update or a delete");
        return 0;
    }
    if (!tree_expect_members(&w->r.v, at, json, writes[kind].members))
        return 0;
    for (size_t i = 0; writes[kind].needed[i]; i++) {
        struct path here = path_member(at, writes[kind].needed[i]);
        if (!json_object_get(json, writes[kind].needed[i]))
            verdict_refuse(&w->r.v, &here, "it is missing");
    }
    return w->r.v.status == PAWL_OK ? kind : 0;
}

/* Begin the write; false: refused. */
static bool begin(struct results_reader *w, const struct path *at, size_t kind, const json_t *json)
{
    struct path entity_at = path_member(at, writes[kind].members[0]), where_at = path_member(at, "where");
    const json_t *where_json = json_object_get(json, "where");
    const char *name = read_words(w, &entity_at, json_object_get(json, writes[kind].members[0]),
                                  "the qualified name of an entity");
    const char *where = where_json ? read_words(w, &where_at, where_json, "an expression as a string") : NULL;
    if (w->r.v.status)
        return false;
    const struct schema_type *type = schema_type_by_name(w->r.schema, (pawl_bytes){name, strlen(name)});
    if (!type || type->kind != TYPE_ENTITY)
        verdict_refuse(&w->r.v, &entity_at, "there is no entity '%.130s'", name);
    else if (where && json_object_get(json, "key"))
        verdict_refuse(&w->r.v, &where_at, "rows are named by a key or by a clause, not by both");
    else if (kind == ACTION_UPSERT)
        took(w, &entity_at, pawl_results_upsert(w->results, name));
    else
        took(w, where ? &where_at : &entity_at,
             kind == ACTION_UPDATE ? pawl_results_update(w->results, name, where)
                                   : pawl_results_delete(w->results, name, where));
    return w->r.v.status == PAWL_OK;
}

static void read_write(struct results_reader *w, const struct path *at, json_t *json)
{
    size_t kind = read_kind(w, at, json);
    if (kind == 0 || !begin(w, at, kind, json))
        return;
    const struct schema_type *entity = results_entity(w->results);
    struct path key_at = path_member(at, "key"), set_at = path_member(at, "set");
    json_t *key = json_object_get(json, "key"), *set = json_object_get(json, "set");
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

static void read_all(struct results_reader *w, json_t *json)
{
    static const char *const members[] = {"writes", NULL};
    const struct path root = {0};
    struct path at = path_member(&root, "writes");
    if (!tree_expect_members(&w->r.v, &root, json, members))
        return;
    const json_t *list = json_object_get(json, "writes");
    if (!list)
        verdict_refuse(&w->r.v, &at, "it is missing");
    if (!list || !tree_expect(&w->r.v, &at, list, json_is_array(list), "an array of objects"))
        return;
    for (size_t i = 0; i < json_array_size(list) && w->r.v.status == PAWL_OK; i++) {
        struct path here = path_index(&at, i);
        read_write(w, &here, json_array_get(list, i));
    }
}

int json_results_read(const char *text, size_t size, pawl_results *results, pawl_error *error)
{
    const struct tree_limits limits = {
        .bytes_max = RESULTS_JSON_BYTES_MAX, .depth_max = RESULTS_JSON_DEPTH_MAX, .zeros = true};
    json_t *json;
    int status = tree_read((pawl_bytes){text, size}, &limits, &json, error);
    if (status)
        return status;
    struct results_reader w = {.r = {.v = {.error = error}, .schema = results_schema(results)},
                               .results = results};
    w.r.request = &w.request;
    arena_init(&w.memory, NULL, ARENA_CHUNK);
    error_clear(error);
    read_all(&w, json);
    arena_release(&w.memory);
    json_decref(json);
    return w.r.v.status;
}

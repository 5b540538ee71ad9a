#include "engine/json/key.h"

#include "base/error.h"
#include "engine/json/request_impl.h"

static void read_member(struct request_reader *r, const struct path *at, const struct schema_type *entity,
                        size_t i, const struct tree *json)
{
    if (tree_is(json, TREE_NULL))
        verdict_refuse(&r->v, at, "a key has no nulls");
    if (r->v.status == PAWL_OK)
        request_read_field(r, at, entity, entity->key[i], json);
}

static void read_array(struct request_reader *r, const struct path *root, const struct schema_type *entity,
                       const struct tree *json)
{
    if (tree_count(json) != entity->key_count)
        verdict_refuse(&r->v, root, "the key of %.*s has %zu fields, not %zu", TEXT(entity->name),
                       entity->key_count, tree_count(json));
    for (size_t i = 0; i < entity->key_count && r->v.status == PAWL_OK; i++) {
        struct path here = path_index(root, i);
        read_member(r, &here, entity, i, tree_at(json, i));
    }
}

static void read_object(struct request_reader *r, const struct path *root, const struct schema_type *entity,
                        const struct tree *json)
{
    for (size_t i = 0; i < tree_count(json); i++) {
        struct path here = path_name(root, tree_at(json, i)->name);
        if (!schema_in_key(entity, schema_field_place(entity, here.name)))
            verdict_refuse(&r->v, &here, "the key of %.*s has no such field", TEXT(entity->name));
    }
    for (size_t i = 0; i < entity->key_count && r->v.status == PAWL_OK; i++) {
        pawl_bytes field = entity->fields[entity->key[i]].name;
        struct path here = path_name(root, field);
        const struct tree *member = tree_get_named(json, field);
        if (member)
            read_member(r, &here, entity, i, member);
        else
            verdict_refuse(&r->v, &here, "it is missing");
    }
}

void request_read_key(struct request_reader *r, const struct path *at, const struct schema_type *entity,
                      const struct tree *json)
{
    if (tree_is(json, TREE_ARRAY))
        read_array(r, at, entity, json);
    else if (tree_expect(&r->v, at, json, tree_is(json, TREE_OBJECT), "an object, or an array of values"))
        read_object(r, at, entity, json);
}

/* What is read of a view's key: its first fields, and nulls. */
static void read_first(struct request_reader *r, const struct path *root, const struct schema_type *view,
                       const struct tree *json, size_t *ret_count)
{
    bool array = tree_is(json, TREE_ARRAY);
    if (!array
        && !tree_expect(&r->v, root, json, tree_is(json, TREE_OBJECT), "an object, or an array of values"))
        return;
    size_t count = tree_count(json);
    for (size_t i = 0; i < count && i < view->key_count && r->v.status == PAWL_OK; i++) {
        pawl_bytes field = view->fields[view->key[i]].name;
        struct path here = array ? path_index(root, i) : path_name(root, field);
        const struct tree *member = array ? tree_at(json, i) : tree_get_named(json, field);
        if (member)
            request_read_field(r, &here, view, view->key[i], member);
        else
            verdict_refuse(&r->v, &here, "it is missing: the first fields of the key of %.*s are needed",
                           TEXT(view->name));
    }
    if (r->v.status == PAWL_OK && count > view->key_count)
        verdict_refuse(&r->v, root, "the key of %.*s has %zu fields, not %zu", TEXT(view->name),
                       view->key_count, count);
    *ret_count = count;
}

static int read_text(pawl_bytes text, const struct schema *schema, const struct schema_type *type, bool first,
                     struct arena *arena, struct value **ret_values, size_t *ret_count, pawl_error *error)
{
    const struct tree_limits limits = {.bytes_max = KEY_JSON_BYTES_MAX, .depth_max = 2, .zeros = true};
    const struct path root = {0};
    struct request request;
    struct request_reader r = {.v = {.error = error}, .schema = schema, .request = &request};
    struct tree *json;
    size_t count = type->key_count;
    request_init(&request, arena);
    struct value *values = arena_take(arena, type->key_count * sizeof *values);
    int status = values ? request_add_record(&request, 1, type->id) : PAWL_ENOMEM;
    if (status == PAWL_OK)
        status = tree_read(text, &limits, arena, &json, error);
    else
        error_set(error, status, "no memory for a key");
    if (status != PAWL_OK)
        return status;
    error_clear(error);
    if (first)
        read_first(&r, &root, type, json, &count);
    else
        request_read_key(&r, &root, type, json);
    if (r.v.status != PAWL_OK)
        return r.v.status;
    for (size_t i = 0; i < count; i++) /* the request's fields are in the key's order */
        values[i] = request.fields[i].value;
    *ret_values = values;
    *ret_count = count;
    return PAWL_OK;
}

int json_key(pawl_bytes text, const struct schema *schema, const struct schema_type *entity,
             struct arena *arena, struct value **ret_values, pawl_error *error)
{
    size_t count;
    return read_text(text, schema, entity, false, arena, ret_values, &count, error);
}

int json_key_first(pawl_bytes text, const struct schema *schema, const struct schema_type *view,
                   struct arena *arena, struct value **ret_values, size_t *ret_count, pawl_error *error)
{
    return read_text(text, schema, view, true, arena, ret_values, ret_count, error);
}

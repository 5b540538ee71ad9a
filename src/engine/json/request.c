/* engine/json/request.c: reads the members of a command, its argument with children, and its records. */
#include "base/bytes.h"
#include "base/error.h"
#include "engine/json/form.h"
#include "engine/json/request_impl.h"

static void refuse_unknown(struct request_reader *r, const struct path *at, const char *what, pawl_bytes name)
{
    char where[256];
    if (r->v.status)
        return;
    path_format(at, where, sizeof where);
    error_set(r->v.error, PAWL_ENOTFOUND, "%s: there is no %s '%.*s'", where, what, TEXT(name));
    verdict_fail(&r->v, PAWL_ENOTFOUND);
}

static const struct tree *required(struct request_reader *r, const struct path *at, const struct tree *object,
                                   const char *member)
{
    const struct tree *json = tree_get(object, member);
    struct path here = path_member(at, member);
    if (!json)
        verdict_refuse(&r->v, &here, "it is missing");
    return json;
}

static bool added(struct request_reader *r, const struct path *at, int status)
{
    if (status == PAWL_ETOOBIG && r->v.status == PAWL_OK) {
        char where[256];
        path_format(at, where, sizeof where);
        error_set(r->v.error, status, "%s: a command has at most %d objects", where, REQUEST_OBJECTS_MAX);
    }
    if (status != PAWL_OK)
        verdict_fail(&r->v, status);
    return status == PAWL_OK;
}

/* The fields of an object: all members of the JSON object except its containers and its id. */
static void read_argument_fields(struct request_reader *r, const struct path *at,
                                 const struct schema_type *type, const struct tree *json)
{
    for (size_t i = 0; i < tree_count(json); i++) {
        const struct tree *value = tree_at(json, i);
        pawl_bytes name = value->name;
        struct path here = path_name(at, name);
        int place = schema_field_place(type, name);
        if (place >= 0)
            request_read_field(r, &here, type, (uint16_t)place, value);
        else if (strcmp(tree_name(value), "id") != 0 && schema_container_place(type, name) < 0)
            verdict_refuse(&r->v, &here, "%.*s has no such field or container", TEXT(type->name));
        if (r->v.status)
            return;
    }
}

static void read_argument(struct request_reader *r, const struct path *at, const struct schema_type *type,
                          const struct tree *json, uint32_t parent, uint16_t container);

/* The children of one object, container by container, in the type's order. */
static void read_children(struct request_reader *r, const struct path *at, const struct schema_type *type,
                          const struct tree *json, uint32_t parent)
{
    for (size_t c = 0; c < type->container_count && r->v.status == PAWL_OK; c++) {
        pawl_bytes name = type->containers[c].name;
        const struct tree *list = tree_get_named(json, name);
        struct path group = path_name(at, name);
        if (!list || !tree_expect(&r->v, &group, list, tree_is(list, TREE_ARRAY), "an array of objects"))
            continue;
        for (size_t i = 0; i < tree_count(list) && r->v.status == PAWL_OK; i++) {
            struct path here = path_index(&group, i);
            read_argument(r, &here, type->containers[c].type, tree_at(list, i), parent, (uint16_t)(c + 1));
        }
    }
}

/* Recurses as deep as the types nest, which the schema limits. */
static void read_argument(struct request_reader *r, const struct path *at, const struct schema_type *type,
                          const struct tree *json, uint32_t parent, uint16_t container)
{
    if (!tree_expect(&r->v, at, json, tree_is(json, TREE_OBJECT), "an object"))
        return;
    struct path id_at = path_member(at, "id");
    const struct tree *id_json = required(r, at, json, "id");
    uint64_t id = id_json ? request_read_id(r, &id_at, id_json) : 0;
    uint32_t self = (uint32_t)r->request->object_count;
    if (id == 0 || !added(r, at, request_add_argument(r->request, id, type->id, parent, container)))
        return;
    read_argument_fields(r, at, type, json);
    read_children(r, at, type, json, self);
}

static void read_record_fields(struct request_reader *r, const struct path *at, const struct schema_type *type,
                               const struct tree *fields)
{
    if (!tree_expect(&r->v, at, fields, tree_is(fields, TREE_OBJECT), "an object"))
        return;
    for (size_t i = 0; i < tree_count(fields); i++) {
        const struct tree *value = tree_at(fields, i);
        pawl_bytes name = value->name;
        struct path here = path_name(at, name);
        int place = schema_field_place(type, name);
        if (place >= 0)
            request_read_field(r, &here, type, (uint16_t)place, value);
        else
            verdict_refuse(&r->v, &here, "%.*s has no such field", TEXT(type->name));
        if (r->v.status)
            return;
    }
}

static const struct schema_type *read_type(struct request_reader *r, const struct path *at,
                                           const struct tree *json)
{
    struct path here = path_member(at, "type");
    const struct tree *name = required(r, at, json, "type");
    if (!name || !tree_expect(&r->v, &here, name, tree_is(name, TREE_STRING), "the qualified name of a type"))
        return NULL;
    const struct schema_type *type = schema_type_by_name(r->schema, tree_text(name));
    if (!type)
        refuse_unknown(r, &here, "type", tree_text(name));
    else if (type->kind == TYPE_ENTITY)
        verdict_refuse(&r->v, &here, "%.*s is an entity: only projectors write it", TEXT(type->name));
    return type;
}

static void read_record(struct request_reader *r, const struct path *at, const struct tree *json)
{
    static const char *const members[] = {"id", "type", "fields", "active", "parent", "container", NULL};
    if (!tree_expect_members(&r->v, at, json, members))
        return;
    struct path id_at = path_member(at, "id"), active_at = path_member(at, "active");
    struct path parent_at = path_member(at, "parent"), fields_at = path_member(at, "fields");
    const struct tree *id_json = required(r, at, json, "id"), *active = tree_get(json, "active");
    uint64_t id = id_json ? request_read_id(r, &id_at, id_json) : 0;
    const struct schema_type *type = read_type(r, at, json);
    if (r->v.status || !added(r, at, request_add_record(r->request, id, type->id)))
        return;
    struct request_object *object = &r->request->objects[r->request->object_count - 1];
    if (active && tree_expect(&r->v, &active_at, active, tree_is(active, TREE_BOOL), "true or false"))
        object->active = active->boolean ? ACTIVE_YES : ACTIVE_NO;
    const struct tree *parent = tree_get(json, "parent");
    if (parent)
        object->parent_id = request_read_id(r, &parent_at, parent);
    const struct tree *fields = tree_get(json, "fields");
    if (fields)
        read_record_fields(r, &fields_at, type, fields);
}

static void read_records(struct request_reader *r, const struct path *root, const struct tree *json)
{
    const struct tree *list = tree_get(json, "records");
    struct path at = path_member(root, "records");
    if (!list || !tree_expect(&r->v, &at, list, tree_is(list, TREE_ARRAY), "an array of objects"))
        return;
    for (size_t i = 0; i < tree_count(list) && r->v.status == PAWL_OK; i++) {
        struct path here = path_index(&at, i);
        read_record(r, &here, tree_at(list, i));
    }
    if (r->v.status == PAWL_OK)
        request_read_containers(r, &at, list);
}

static pawl_bytes read_text(struct request_reader *r, const struct path *root, const struct tree *json,
                            const char *member)
{
    const struct tree *text = tree_get(json, member);
    struct path here = path_member(root, member);
    pawl_bytes copy = {NULL, 0};
    if (!text || !tree_expect(&r->v, &here, text, tree_is(text, TREE_STRING), "a string"))
        return copy;
    copy = arena_copy(r->request->memory, tree_text(text));
    if (!copy.data)
        verdict_fail(&r->v, PAWL_ENOMEM);
    return copy;
}

static void read_expected(struct request_reader *r, const struct path *root, const struct tree *json)
{
    const struct tree *offset = tree_get(json, "expected_offset");
    struct path here = path_member(root, "expected_offset");
    int64_t number = -1;
    if (!offset)
        return;
    if (tree_is(offset, TREE_INTEGER))
        number = offset->integer < FORM_INTEGER_END ? offset->integer : -1;
    else if (!tree_is(offset, TREE_STRING) || !form_integer_read(tree_text(offset), &number))
        number = -1;
    if (number < 0)
        verdict_refuse(&r->v, &here,
                       "expected an offset: an integer from 0 to 2^53 - 1, or a string of digits");
    r->request->expects = true;
    r->request->expected = (uint64_t)number;
}

static const struct schema_command *read_command(struct request_reader *r, const struct path *root,
                                                 const struct tree *json)
{
    struct path here = path_member(root, "command");
    const struct tree *name = required(r, root, json, "command");
    if (!name
        || !tree_expect(&r->v, &here, name, tree_is(name, TREE_STRING), "the qualified name of a command"))
        return NULL;
    const struct schema_command *command = schema_command_by_name(r->schema, tree_text(name));
    if (!command)
        refuse_unknown(r, &here, "command", tree_text(name));
    return command;
}

static void read_request(struct request_reader *r, const struct tree *json)
{
    static const char *const members[] = {"command",         "argument",        "records",
                                          "expected_offset", "actor",           "correlation",
                                          "causation",       "idempotency_key", NULL};
    const struct path root = {0}, argument_at = path_member(&root, "argument"),
                      key_at = path_member(&root, "idempotency_key");
    struct request *request = r->request;
    if (!tree_expect_members(&r->v, &root, json, members))
        return;
    const struct schema_command *command = read_command(r, &root, json);
    if (!command)
        return;
    request->command = command->id;
    read_expected(r, &root, json);
    request->actor = read_text(r, &root, json, "actor");
    request->correlation = read_text(r, &root, json, "correlation");
    request->causation = read_text(r, &root, json, "causation");
    request->key = read_text(r, &root, json, "idempotency_key");
    if (request->key.data && request->key.size == 0)
        verdict_refuse(&r->v, &key_at, "it is empty");
    const struct tree *argument = tree_get(json, "argument");
    if (argument && !command->argument)
        verdict_refuse(&r->v, &argument_at, "%.*s takes none", TEXT(command->name));
    else if (argument && r->v.status == PAWL_OK)
        read_argument(r, &argument_at, command->argument, argument, REQUEST_NO_PARENT, 0);
    if (r->v.status == PAWL_OK)
        read_records(r, &root, json);
}

int json_request(pawl_bytes text, uint64_t wsid, const struct schema *schema, struct arena *arena,
                 struct request *ret_request, pawl_error *error)
{
    const struct tree_limits limits = {
        .bytes_max = REQUEST_JSON_BYTES_MAX, .depth_max = REQUEST_JSON_DEPTH_MAX, .zeros = true};
    struct tree *json;
    struct arena_point start = arena_point(arena);
    int status = tree_read(text, &limits, arena, &json, error);
    if (status) {
        arena_rewind(arena, start);
        return status;
    }
    struct request request;
    request_init(&request, arena);
    request.wsid = wsid;
    struct request_reader r = {.v = {.error = error}, .schema = schema, .request = &request};
    error_clear(error);
    read_request(&r, json);
    if (r.v.status == PAWL_OK)
        *ret_request = request;
    else
        arena_rewind(arena, start);
    return r.v.status;
}

int json_request_key(struct request *request, pawl_bytes key, pawl_error *error)
{
    if (request->key.size && !bytes_equal(request->key, key))
        return error_set(error, PAWL_EINVAL,
                         "$.idempotency_key: the command has another key than the one that is given beside it");
    request->key = key;
    return PAWL_OK;
}

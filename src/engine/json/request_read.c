/* engine/json/request_read.c: reads values of fields, IDs, and the containers of records. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/id.h"
#include "base/timestamp.h"
#include "engine/json/form.h"
#include "engine/json/request_impl.h"

static bool read_integer(struct request_reader *r, const struct path *at, const struct tree *json, int64_t *ret)
{
    if (tree_is(json, TREE_INTEGER)) {
        int64_t integer = json->integer;
        if (integer <= -FORM_INTEGER_END || integer >= FORM_INTEGER_END)
            verdict_refuse(&r->v, at,
                           "%" PRId64
                           " may have been rounded on its way: from 2^53 on, an integer is written as"
                           " a string",
                           integer);
        *ret = integer;
    } else if (tree_is(json, TREE_STRING)) {
        if (!form_integer_read(tree_text(json), ret))
            verdict_refuse(&r->v, at, "the string is not an integer of 64 bits");
    } else
        tree_expect(&r->v, at, json, false, "an integer");
    return r->v.status == PAWL_OK;
}

static uint64_t id_within(struct request_reader *r, const struct path *at, int64_t id)
{
    if (id < 1 || id >= FORM_INTEGER_END)
        verdict_refuse(&r->v, at, "%" PRId64 " is not an ID: those are 1 to 2^53 - 1", id);
    return r->v.status == PAWL_OK ? (uint64_t)id : 0;
}

uint64_t request_read_id(struct request_reader *r, const struct path *at, const struct tree *json)
{
    if (!tree_expect(&r->v, at, json, tree_is(json, TREE_INTEGER), "an integer"))
        return 0;
    return id_within(r, at, json->integer);
}

static void read_reference(struct request_reader *r, const struct path *at, const struct tree *json,
                           uint64_t *ret_id)
{
    int64_t id;
    if (tree_is(json, TREE_STRING) ? read_integer(r, at, json, &id) : tree_is(json, TREE_INTEGER)) {
        *ret_id = id_within(r, at, tree_is(json, TREE_STRING) ? id : json->integer);
        return;
    }
    tree_expect(&r->v, at, json, tree_is(json, TREE_STRING), "an ID");
}

static void read_timestamp(struct request_reader *r, const struct path *at, pawl_bytes text, int64_t *ret_ns)
{
    if (!timestamp_read(text, ret_ns))
        verdict_refuse(
            &r->v, at,
            "this is not a time such as 2026-11-15T10:00:00.123456Z: in UTC, with at most nine digits"
            " of a second, from 1677-09-21 to 2262-04-11");
}

static void read_bytes(struct request_reader *r, const struct path *at, pawl_bytes text, pawl_bytes *ret_bytes)
{
    uint8_t *bytes = arena_take(r->request->memory, text.size / 4 * 3);
    if (!bytes)
        verdict_fail(&r->v, PAWL_ENOMEM);
    else if (!form_base64_read(text, bytes, &ret_bytes->size))
        verdict_refuse(&r->v, at, "this is not base64: A-Z a-z 0-9 + /, padded with =");
    ret_bytes->data = bytes;
}

static void read_name(struct request_reader *r, const struct path *at, pawl_bytes text, uint16_t *ret_name)
{
    *ret_name = schema_name_id(r->schema, text);
    if (*ret_name == 0)
        verdict_refuse(&r->v, at, "there is no name '%.*s'", TEXT(text));
}

/* The form of a field's value in JSON, in words. */
static const char *form_words(enum value_type type)
{
    switch (type) {
    case VALUE_FLOAT64: return "a number";
    case VALUE_BOOL: return "true or false";
    case VALUE_BYTES: return "a string of base64";
    case VALUE_TIMESTAMP: return "a time as a string";
    case VALUE_QNAME: return "a qualified name as a string";
    default: return "a string";
    }
}

static void read_value(struct request_reader *r, const struct path *at, const struct tree *json,
                       struct value *value)
{
    bool number = tree_is(json, TREE_INTEGER) || tree_is(json, TREE_REAL), text = tree_is(json, TREE_STRING);
    switch (value->type) {
    case VALUE_INT64: read_integer(r, at, json, &value->integer); return;
    case VALUE_REF: read_reference(r, at, json, &value->id); return;
    case VALUE_FLOAT64:
        if (tree_expect(&r->v, at, json, number, form_words(value->type)))
            value->real = json->kind == TREE_REAL ? json->real : (double)json->integer;
        return;
    case VALUE_BOOL:
        if (tree_expect(&r->v, at, json, tree_is(json, TREE_BOOL), form_words(value->type)))
            value->boolean = json->boolean;
        return;
    case VALUE_NULL: return;
    default: break;
    }
    if (!tree_expect(&r->v, at, json, text, form_words(value->type)))
        return;
    if (value->type == VALUE_STRING)
        value->bytes = tree_text(json);
    else if (value->type == VALUE_BYTES)
        read_bytes(r, at, tree_text(json), &value->bytes);
    else if (value->type == VALUE_TIMESTAMP)
        read_timestamp(r, at, tree_text(json), &value->integer);
    else
        read_name(r, at, tree_text(json), &value->name);
}

void request_read_field(struct request_reader *r, const struct path *at, const struct schema_type *type,
                        uint16_t place, const struct tree *json)
{
    struct value value = {.type = tree_is(json, TREE_NULL) ? VALUE_NULL : type->fields[place].type};
    read_value(r, at, json, &value);
    if (r->v.status)
        return;
    int status = request_set(r->request, place, value);
    if (status)
        verdict_fail(&r->v, status);
}

struct known {
    uint64_t id;
    uint16_t type;
};

static int by_id(const void *a, const void *b)
{
    const struct known *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* The IDs and types of the request's records, sorted by ID; NULL: no memory. */
static struct known *know_records(struct request_reader *r, size_t count)
{
    struct known *known = arena_take(r->request->memory, count * sizeof *known);
    if (!known) {
        verdict_fail(&r->v, PAWL_ENOMEM);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        const struct request_object *o = &r->request->objects[r->request->argument_count + i];
        known[i] = (struct known){.id = o->id, .type = o->type};
    }
    qsort(known, count, sizeof *known, by_id);
    return known;
}

/* The place plus 1; 0: the type has no such container for such children. */
static uint16_t place_in(const struct schema_type *parent, pawl_bytes name, uint16_t child)
{
    int place = schema_container_place(parent, name);
    return place >= 0 && parent->containers[place].type->id == child ? (uint16_t)(place + 1) : 0;
}

/* The parent is a stored record, whose type is not known here. If all types with such a container have it at
 * the same place: this place, plus 1. 0: no type has one; UINT16_MAX: the places differ. */
static uint16_t place_anywhere(const struct schema *schema, pawl_bytes name, uint16_t child)
{
    uint16_t found = 0;
    for (size_t i = 0; i < schema->type_count; i++) {
        uint16_t place = place_in(&schema->types[i], name, child);
        if (place && found && place != found)
            return UINT16_MAX;
        found = place ? place : found;
    }
    return found;
}

static void read_container(struct request_reader *r, const struct path *at, const struct tree *json,
                           const struct known *known, size_t count, struct request_object *object)
{
    struct path here = path_member(at, "container"), parent_at = path_member(at, "parent");
    const struct tree *name = tree_get(json, "container");
    if (!name) {
        verdict_refuse(&r->v, &here, "it is missing: a child lies in a container of its parent");
        return;
    }
    if (!tree_expect(&r->v, &here, name, tree_is(name, TREE_STRING), "the name of a container"))
        return;
    const struct known wanted = {.id = object->parent_id};
    const struct known *parent = bsearch(&wanted, known, count, sizeof *known, by_id);
    const struct schema_type *type = schema_type_by_id(r->schema, object->type);
    const struct schema_type *above = parent ? schema_type_by_id(r->schema, parent->type) : NULL;
    if (!parent && record_is_raw(object->parent_id))
        verdict_refuse(&r->v, &parent_at, "%" PRIu64 " is not a record that this command creates",
                       object->parent_id);
    object->container = above ? place_in(above, tree_text(name), type->id)
                              : place_anywhere(r->schema, tree_text(name), type->id);
    if (object->container == UINT16_MAX)
        object->container = 0; /* it will be found by its name, when the parent's type is known */
    else if (object->container == 0 && above)
        verdict_refuse(&r->v, &here, "%.*s has no such container for a %.*s", TEXT(above->name),
                       TEXT(type->name));
    else if (object->container == 0)
        verdict_refuse(&r->v, &here, "no type has such a container for a %.*s", TEXT(type->name));
    object->container_name = arena_copy(r->request->memory, tree_text(name));
    if (!object->container_name.data)
        verdict_fail(&r->v, PAWL_ENOMEM);
}

void request_read_containers(struct request_reader *r, const struct path *at, const struct tree *records)
{
    const struct known *known = NULL;
    size_t count = tree_count(records);
    for (size_t i = 0; i < count && r->v.status == PAWL_OK; i++) {
        struct request_object *object = &r->request->objects[r->request->argument_count + i];
        const struct tree *json = tree_at(records, i);
        struct path here = path_index(at, i), container_at = path_member(&here, "container");
        if (object->parent_id == 0) {
            if (tree_get(json, "container"))
                verdict_refuse(&r->v, &container_at, "a container belongs to a parent, and there is none");
            continue;
        }
        if (!known && !(known = know_records(r, count)))
            return;
        read_container(r, &here, json, known, count, object);
    }
}

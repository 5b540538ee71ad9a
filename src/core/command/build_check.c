/* core/command/build_check.c: whether a request makes sense, and if not, where. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "core/command/build_impl.h"
#include "core/schema/row.h"
#include "core/schema/text.h"
#include "core/sequence/storage.h"
#include "core/state/key.h"

#define TEXT(bytes) (int)(bytes).size, (const char *)(bytes).data

/* Refuse, naming the path of an object, or of one of its fields (place >= 0). */
__attribute__((format(printf, 5, 6))) static int refuse(const struct plan *plan, int status, size_t object,
                                                        int place, const char *format, ...)
{
    char path[REQUEST_PATH_MAX], words[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return error_set(plan->error, status, "%s: %s",
                     request_path(plan->build->request, plan->build->schema, object, place, path), words);
}

const struct plan_raw *plan_find_raw(const struct plan *plan, uint64_t raw)
{
    size_t low = 0, high = plan->raw_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (plan->raws[middle].raw < raw)
            low = middle + 1;
        else
            high = middle;
    }
    return low < plan->raw_count && plan->raws[low].raw == raw ? &plan->raws[low] : NULL;
}

static int by_raw(const void *a, const void *b)
{
    const struct plan_raw *x = a, *y = b;
    return x->raw != y->raw ? (x->raw > y->raw) - (x->raw < y->raw)
                            : (x->object > y->object) - (x->object < y->object);
}

/* Sort all ids of the request, raw or not. No id may be there twice, or the outcome would depend on which of
 * the two is taken. */
static int gather_ids(struct plan *plan)
{
    const struct request *r = plan->build->request;
    plan->raws = arena_take(plan->build->memory, r->object_count * sizeof plan->raws[0]);
    if (!plan->raws)
        return PAWL_ENOMEM;
    bool sorted = true;
    for (size_t i = 0; i < r->object_count; i++) {
        plan->raws[i] = (struct plan_raw){.raw = r->objects[i].id, .object = (uint32_t)i};
        sorted = sorted && (i == 0 || plan->raws[i - 1].raw < plan->raws[i].raw);
    }
    plan->raw_count = r->object_count;
    if (sorted)
        return PAWL_OK;
    qsort(plan->raws, plan->raw_count, sizeof plan->raws[0], by_raw);
    for (size_t i = 1; i < plan->raw_count; i++)
        if (plan->raws[i - 1].raw == plan->raws[i].raw && plan->raws[i].raw != 0)
            return refuse(plan, PAWL_EINVAL, plan->raws[i].object, -1, "id %" PRIu64 " is used twice",
                          plan->raws[i].raw);
    return PAWL_OK;
}

static int check_head(const struct plan *plan, const struct schema_command **ret_command)
{
    const struct request *r = plan->build->request;
    const struct {
        const char *path;
        pawl_bytes text;
    } texts[] = {{"$.actor", r->actor},
                 {"$.correlation", r->correlation},
                 {"$.causation", r->causation},
                 {"the idempotency key", r->key}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].text.size > EVENT_TEXT_MAX)
            return error_set(plan->error, PAWL_ETOOBIG, "%s: %zu bytes; at most %zu", texts[i].path,
                             texts[i].text.size, EVENT_TEXT_MAX);
        if (!text_is_utf8(texts[i].text))
            return error_set(plan->error, PAWL_EINVAL, "%s: not valid UTF-8", texts[i].path);
    }
    *ret_command = NULL;
    if (r->command == NAME_WS_CREATE || r->command == NAME_WS_FREEZE || r->command == NAME_WS_THAW)
        return r->object_count == 0
                   ? PAWL_OK
                   : error_set(plan->error, PAWL_EINVAL, "creating or freezing a workspace takes no records");
    *ret_command = schema_command_by_id(plan->build->schema, r->command);
    return *ret_command
               ? PAWL_OK
               : error_set(plan->error, PAWL_ENOTFOUND, "$.command: there is no command %u", r->command);
}

/* Whether a type is one of those that a command may touch, or a child of one, at any depth. */
static bool type_is_within(const struct schema_type *type, const struct schema_type *root, size_t depth)
{
    if (type == root)
        return true;
    if (depth == SCHEMA_DEPTH_MAX)
        return false;
    for (size_t i = 0; i < root->container_count; i++)
        if (type_is_within(type, root->containers[i].type, depth + 1))
            return true;
    return false;
}

static int check_argument_object(const struct plan *plan, const struct schema_command *command, size_t i)
{
    const struct request *r = plan->build->request;
    const struct request_object *o = &r->objects[i];
    const struct schema_type *type = plan->objects[i].type;
    if (!record_is_raw(o->id))
        return refuse(plan, PAWL_EINVAL, i, -1, "id %" PRIu64 ": an argument's ids are raw, 1 to 65535", o->id);
    if (o->parent == REQUEST_NO_PARENT)
        return i == 0 && type == command->argument
                   ? PAWL_OK
                   : refuse(plan, PAWL_EINVAL, i, -1, "the argument is of type %.*s, not %.*s",
                            TEXT(command->argument->name), TEXT(type->name));
    const struct schema_type *parent = plan->objects[o->parent].type;
    if (o->container == 0 || o->container > parent->container_count
        || parent->containers[o->container - 1].type != type)
        return refuse(plan, PAWL_EINVAL, i, -1, "%.*s has no such children", TEXT(parent->name));
    return PAWL_OK;
}

/* The place, plus 1, of the container that a record asks for in a parent of this type; 0: the type has no such
 * container. */
static uint16_t container_in(const struct schema_type *parent, const struct request_object *o,
                             const struct schema_type *child)
{
    int place = o->container_name.size ? schema_container_place(parent, o->container_name) : o->container - 1;
    if (place < 0 || (size_t)place >= parent->container_count || parent->containers[place].type != child)
        return 0;
    return (uint16_t)(place + 1);
}

/* A record with a parent is its child in a container. The parent exists, or this command creates it too. A type
 * that lives only in its event is whole when the event is written: its parts are created together with it. */
static int check_parent(struct plan *plan, size_t i)
{
    const struct request *r = plan->build->request;
    const struct request_object *o = &r->objects[i];
    const struct schema_type *type = plan->objects[i].type;
    bool child = type_is_child(type->kind);
    if (o->parent_id == 0 && (o->container != 0 || o->container_name.size != 0))
        return refuse(plan, PAWL_EINVAL, i, -1, "it names a container, but no parent");
    if (!plan->objects[i].creates)
        return o->parent_id == 0 ? PAWL_OK
                                 : refuse(plan, PAWL_EINVAL, i, -1, "a record's parent cannot be changed");
    if (o->parent_id == 0)
        return child
                   ? refuse(plan, PAWL_EINVAL, i, -1, "a %.*s needs a parent and a container", TEXT(type->name))
                   : PAWL_OK;
    if (!child)
        return refuse(plan, PAWL_EINVAL, i, -1, "a %.*s is a document: it has no parent", TEXT(type->name));
    if (!record_is_raw(o->parent_id))
        return type_has_table(type->kind)
                   ? PAWL_OK /* looked up below, by its type */
                   : refuse(plan, PAWL_EINVAL, i, -1,
                            "a %.*s lives in its event: its parent must be a record that this command creates",
                            TEXT(type->name));
    const struct plan_raw *raw = plan_find_raw(plan, o->parent_id);
    if (!raw || raw->object < r->argument_count)
        return refuse(plan, PAWL_EINVAL, i, -1, "parent %" PRIu64 " is not a record that this command creates",
                      o->parent_id);
    const struct schema_type *parent = plan->objects[raw->object].type;
    plan->objects[i].container = container_in(parent, o, type);
    if (plan->objects[i].container == 0)
        return refuse(plan, PAWL_EINVAL, i, -1, "%.*s has no such container for a %.*s", TEXT(parent->name),
                      TEXT(type->name));
    return PAWL_OK;
}

/* Check that the stored parent exists, in the table of a type that has such children. */
static int check_stored_parent(struct plan *plan, size_t i)
{
    const struct build *b = plan->build;
    const struct request_object *o = &b->request->objects[i];
    const struct schema_type *type = plan->objects[i].type;
    if (o->parent_id == 0 || record_is_raw(o->parent_id))
        return PAWL_OK;
    for (size_t t = 0; t < b->schema->type_count; t++) {
        const struct schema_type *parent = &b->schema->types[t];
        uint16_t container = type_has_table(parent->kind) ? container_in(parent, o, type) : 0;
        if (container == 0)
            continue;
        plan->objects[i].container = container;
        uint8_t key[KEY_NUMBERED];
        pawl_bytes value;
        int status =
            state_get(b->state, key_numbered(parent->table, b->request->wsid, o->parent_id, key), &value);
        if (status != PAWL_ENOTFOUND)
            return status;
    }
    return refuse(plan, PAWL_ENOTFOUND, i, -1, "there is no record %" PRIu64 " that could be the parent",
                  o->parent_id);
}

static int check_existing(const struct plan *plan, size_t i)
{
    const struct build *b = plan->build;
    const struct schema_type *type = plan->objects[i].type;
    uint64_t id = b->request->objects[i].id;
    uint8_t key[KEY_NUMBERED];
    pawl_bytes value;
    int status = state_get(b->state, key_numbered(type->table, b->request->wsid, id, key), &value);
    if (status == PAWL_ENOTFOUND)
        return refuse(plan, status, i, -1, "there is no %.*s %" PRIu64, TEXT(type->name), id);
    return status;
}

/* Check that the singleton does not exist yet, and that the request, argument included, makes only one. */
static int check_singleton(const struct plan *plan, size_t i)
{
    const struct build *b = plan->build;
    const struct schema_type *type = plan->objects[i].type;
    uint8_t key[KEY_NUMBERED];
    pawl_bytes value;
    for (size_t k = 0; k < i; k++)
        if (plan->objects[k].type == type && plan->objects[k].creates)
            return refuse(plan, PAWL_EEXISTS, i, -1, "%.*s is a singleton", TEXT(type->name));
    int status = state_get(b->state, key_numbered(type->table, b->request->wsid, type->singleton, key), &value);
    if (status == PAWL_OK)
        return refuse(plan, PAWL_EEXISTS, i, -1, "%.*s is a singleton and exists already", TEXT(type->name));
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

static int check_record(struct plan *plan, const struct schema_command *command, size_t i)
{
    const struct request_object *o = &plan->build->request->objects[i];
    const struct schema_type *type = plan->objects[i].type;
    bool allowed = false;
    for (size_t k = 0; k < command->record_count && !allowed; k++)
        allowed = type_is_within(type, command->records[k], 0);
    if (!allowed)
        return refuse(plan, PAWL_EINVAL, i, -1, "%.*s does not take a %.*s", TEXT(command->name),
                      TEXT(type->name));
    if (o->id == 0)
        return refuse(plan, PAWL_EINVAL, i, -1, "an id is missing: a raw one, 1 to 65535, or a record's");
    if (!plan->objects[i].creates && !type_has_table(type->kind))
        return refuse(plan, PAWL_EINVAL, i, -1, "a %.*s lives in its event, and never changes",
                      TEXT(type->name));
    if (plan->objects[i].creates && o->active == ACTIVE_NO)
        return refuse(plan, PAWL_EINVAL, i, -1, "a record cannot be created inactive");
    int status = check_parent(plan, i);
    if (status == PAWL_OK)
        status = check_stored_parent(plan, i);
    return status == PAWL_OK && !plan->objects[i].creates ? check_existing(plan, i) : status;
}

/* A reference to a record that this command creates must be of the right type. Any other record that is
 * referred to must exist, if its type has rows. */
static int check_reference(const struct plan *plan, size_t i, const struct request_field *f,
                           const struct schema_field *field)
{
    const struct build *b = plan->build;
    uint64_t id = f->value.id;
    if (record_is_raw(id)) {
        const struct plan_raw *raw = plan_find_raw(plan, id);
        if (!raw)
            return refuse(plan, PAWL_EINVAL, i, f->place, "id %" PRIu64 " is not one that this command creates",
                          id);
        if (field->to != 0 && plan->objects[raw->object].type->id != field->to)
            return refuse(plan, PAWL_EINVAL, i, f->place,
                          "id %" PRIu64 " is a %.*s, not what the field refers to", id,
                          TEXT(plan->objects[raw->object].type->name));
        return PAWL_OK;
    }
    if (id == 0 || id >= RECORD_C_BIT << 1)
        return refuse(plan, PAWL_EINVAL, i, f->place, "%" PRIu64 " is not the ID of a record", id);
    const struct schema_type *to = field->to ? schema_type_by_id(b->schema, field->to) : NULL;
    if (!to || !type_has_table(to->kind))
        return PAWL_OK;
    uint8_t key[KEY_NUMBERED];
    pawl_bytes value;
    int status = state_get(b->state, key_numbered(to->table, b->request->wsid, id, key), &value);
    if (status == PAWL_ENOTFOUND)
        return refuse(plan, status, i, f->place, "there is no %.*s %" PRIu64, TEXT(to->name), id);
    return status;
}

static int check_field(const struct plan *plan, size_t i, const struct request_field *f)
{
    const struct schema_type *type = plan->objects[i].type;
    if (f->place >= type->field_count)
        return refuse(plan, PAWL_EINVAL, i, -1, "%.*s has no field at place %u", TEXT(type->name), f->place);
    const struct schema_field *field = &type->fields[f->place];
    if (field->sequence != 0)
        return refuse(plan, PAWL_EINVAL, i, f->place, "the field is numbered, it cannot be set");
    if (f->value.type == VALUE_NULL)
        return field->required ? refuse(plan, PAWL_EINVAL, i, f->place, "the field is required") : PAWL_OK;
    if (f->value.type != field->type)
        return refuse(plan, PAWL_EINVAL, i, f->place, "the value is not of the field's type");
    if (field->type == VALUE_FLOAT64 && !isfinite(f->value.real))
        return refuse(plan, PAWL_EINVAL, i, f->place, "the number is not finite");
    if (field->type == VALUE_STRING && !text_is_utf8(f->value.bytes))
        return refuse(plan, PAWL_EINVAL, i, f->place, "not valid UTF-8");
    if (field->type == VALUE_QNAME && schema_name_text(plan->build->schema, f->value.name).size == 0)
        return refuse(plan, PAWL_EINVAL, i, f->place, "there is no name %u", f->value.name);
    return field->type == VALUE_REF ? check_reference(plan, i, f, field) : PAWL_OK;
}

static bool workspace_has(const struct build *b, uint16_t sequence)
{
    const struct schema_workspace *kind = schema_workspace_by_id(b->schema, b->workspace->kind);
    return kind && schema_has_sequence(kind, sequence);
}

static int check_fields(struct plan *plan, size_t i)
{
    const struct build *b = plan->build;
    const struct request_object *o = &b->request->objects[i];
    struct plan_object *object = &plan->objects[i];
    const struct schema_type *type = object->type;
    for (uint32_t k = 0; k < o->field_count; k++) {
        const struct request_field *f = &b->request->fields[o->field_first + k];
        int status = check_field(plan, i, f);
        if (status != PAWL_OK)
            return status;
        object->cleared_count += !object->creates && f->value.type == VALUE_NULL;
    }
    plan_fill_values(plan, i, false);
    for (size_t k = 0; object->creates && k < type->field_count; k++) {
        const struct schema_field *field = &type->fields[k];
        if (field->sequence != 0 && !workspace_has(b, field->sequence))
            return refuse(plan, PAWL_EINVAL, i, (int)k,
                          "workspaces of this kind do not have the field's sequence");
        plan->number_count += field->sequence != 0;
        if (field->required && plan->values[k].type == VALUE_NULL)
            return refuse(plan, PAWL_EINVAL, i, (int)k, "the field is required");
    }
    int status = row_size(plan->values, type->field_count, &object->row_size);
    if (status != PAWL_OK)
        return refuse(plan, status, i, -1, "the row is larger than %zu bytes", ROW_BYTES_MAX);
    plan->size += event_object_size(object->cleared_count, object->row_size);
    return PAWL_OK;
}

static int find_types(struct plan *plan)
{
    const struct request *r = plan->build->request;
    size_t fields = 1;
    plan->objects = arena_take(plan->build->memory, r->object_count * sizeof plan->objects[0]);
    if (!plan->objects)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < r->object_count; i++) {
        const struct schema_type *type = schema_type_by_id(plan->build->schema, r->objects[i].type);
        if (!type || type->kind == TYPE_ENTITY)
            return refuse(plan, PAWL_ENOTFOUND, i, -1, "there is no type of records %u", r->objects[i].type);
        bool creates = record_is_raw(r->objects[i].id);
        plan->objects[i] = (struct plan_object){
            .type = type, .creates = creates, .id = r->objects[i].id, .container = r->objects[i].container};
        fields = type->field_count > fields ? type->field_count : fields;
    }
    plan->values = arena_take(plan->build->memory, fields * sizeof plan->values[0]);
    return plan->values ? PAWL_OK : PAWL_ENOMEM;
}

int plan_check(struct plan *plan)
{
    const struct request *r = plan->build->request;
    const struct schema_command *command;
    int status = check_head(plan, &command);
    if (status != PAWL_OK || !command) /* creating a workspace needs no other check */
        return status;
    if ((command->argument != NULL) != (r->argument_count > 0))
        return error_set(plan->error, PAWL_EINVAL,
                         command->argument ? "$.argument: %.*s needs one" : "$.argument: %.*s takes none",
                         TEXT(command->name));
    status = find_types(plan);
    if (status == PAWL_OK)
        status = gather_ids(plan);
    for (size_t i = 0; status == PAWL_OK && i < r->object_count; i++) {
        status =
            i < r->argument_count ? check_argument_object(plan, command, i) : check_record(plan, command, i);
        if (status == PAWL_OK && plan->objects[i].creates && plan->objects[i].type->singleton)
            status = check_singleton(plan, i);
        if (status == PAWL_OK)
            status = check_fields(plan, i);
    }
    return status;
}

#include "core/state/scope.h"

#include <inttypes.h>

#include "base/error.h"
#include "core/sequence/storage.h"

static struct value text_value(pawl_bytes text)
{
    if (text.size == 0)
        return (struct value){.type = VALUE_NULL};
    return (struct value){.type = VALUE_STRING, .bytes = text};
}

static struct value integer_value(uint64_t number)
{
    return (struct value){.type = VALUE_INT64, .integer = (int64_t)number};
}

static struct value event_value(const struct derivation *d, uint32_t which)
{
    const struct event *event = d->event;
    switch ((enum event_slot)which) {
    case EVENT_OFFSET: return integer_value(d->offset);
    case EVENT_WSID: return integer_value(event->envelope.wsid);
    case EVENT_WORKSPACE_OFFSET: return integer_value(event_numbers_of(event, SEQ_WLOG_OFFSET).first);
    case EVENT_TIME: return (struct value){.type = VALUE_TIMESTAMP, .integer = event->head.time.ns};
    case EVENT_COMMAND: return (struct value){.type = VALUE_QNAME, .name = event->head.command};
    case EVENT_ACTOR: return text_value(event->head.actor);
    case EVENT_CORRELATION: return text_value(event->head.correlation);
    case EVENT_CAUSATION: return text_value(event->head.causation);
    }
    return (struct value){.type = VALUE_NULL};
}

static int object_value(const struct derivation *d, const struct event_object *object, uint32_t place,
                        struct value *ret_value, pawl_error *error)
{
    if (place == SLOT_ID) {
        *ret_value = (struct value){.type = VALUE_REF, .id = object->id};
        return PAWL_OK;
    }
    const struct schema_type *type = schema_type_by_id(d->schema, object->type);
    struct row row;
    if (!type || place >= type->field_count)
        return error_set(error, PAWL_ECORRUPT,
                         "the event has an object of type %u, which its schema does not have", object->type);
    int status = row_open(type->fields, type->field_count, object->row, &row, error);
    if (status != PAWL_OK)
        return status;
    *ret_value = row_get(row, place, type->fields[place].type);
    return PAWL_OK;
}

/* The argument, or the first record of a type; null if the event has none. */
static int find_object_value(const struct derivation *d, uint32_t slot, struct value *ret_value,
                             pawl_error *error)
{
    const struct event *event = d->event;
    struct event_object object;
    size_t cursor = 0, i = 0;
    bool argument = slot_of(slot) == SLOT_ARGUMENT;
    while (event_next(event, &cursor, &object)) {
        bool in_argument = i++ < event->head.argument_count;
        if (argument ? in_argument : (!in_argument && object.type == slot_of(slot)))
            return object_value(d, &object, slot_place(slot), ret_value, error);
        if (argument)
            break;
    }
    *ret_value = (struct value){.type = VALUE_NULL};
    return PAWL_OK;
}

static int load(void *ctx, uint32_t slot, struct value *ret_value, pawl_error *error)
{
    const struct scope *scope = ctx;
    uint32_t place = slot_place(slot);
    switch (slot_of(slot)) {
    case SLOT_ROW:
        *ret_value = scope->row ? row_get(*scope->row, place, scope->type->fields[place].type)
                                : (struct value){.type = VALUE_NULL};
        return PAWL_OK;
    case SLOT_EVENT: *ret_value = event_value(scope->derivation, place); return PAWL_OK;
    default: return find_object_value(scope->derivation, slot, ret_value, error);
    }
}

struct expr_source scope_source(struct scope *scope)
{
    return (struct expr_source){.ctx = scope, .load = load};
}

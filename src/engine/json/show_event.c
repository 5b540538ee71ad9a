/* engine/json/show_event.c: shows events, and the answers to commands, which are made from their events. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/schema/row.h"
#include "core/sequence/storage.h"
#include "engine/json/show_impl.h"

/* The IDs and types of an event's records, sorted by ID. This is made when a parent's type is first needed. */
struct known {
    uint64_t id;
    uint16_t type;
};

struct records {
    const struct show *show;
    const struct event *event;
    struct known *known;
};

static int by_id(const void *a, const void *b)
{
    const struct known *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int know_all(struct records *records)
{
    size_t count = records->event->head.object_count, cursor = 0;
    struct event_object object;
    records->known = mem_new(records->show->out->alloc, count, sizeof *records->known);
    if (!records->known)
        return error_set(records->show->error, PAWL_ENOMEM, "%s", pawl_status_text(PAWL_ENOMEM));
    for (size_t i = 0; i < count && event_next(records->event, &cursor, &object); i++)
        records->known[i] = (struct known){.id = object.id, .type = object.type};
    qsort(records->known, count, sizeof *records->known, by_id);
    return PAWL_OK;
}

/* Mostly the schema alone tells the container's name; else the parent's type is found among the event's
 * records. */
static int find_container(struct records *records, const struct event_object *object, pawl_bytes *ret_name)
{
    const struct show *show = records->show;
    pawl_bytes name = show_container(show, NULL, object->type, object->container);
    if (!name.size) {
        int status = records->known ? PAWL_OK : know_all(records);
        if (status)
            return status;
        const struct known wanted = {.id = object->parent};
        const struct known *found =
            bsearch(&wanted, records->known, records->event->head.object_count, sizeof wanted, by_id);
        const struct schema_type *parent = found ? schema_type_by_id(show->schema, found->type) : NULL;
        if (parent)
            name = show_container(show, parent, object->type, object->container);
    }
    *ret_name = name;
    return PAWL_OK;
}

static int show_parent(struct records *records, const struct event_object *object)
{
    struct json_out *out = records->show->out;
    pawl_bytes container;
    if (object->parent == 0)
        return PAWL_OK;
    out_key(out, "parent");
    out_unsigned(out, object->parent);
    int status = find_container(records, object, &container);
    if (status == PAWL_OK && container.size) {
        out_key(out, "container");
        out_text(out, container);
    }
    return status;
}

static int show_record(struct records *records, const struct event_object *object)
{
    const struct show *show = records->show;
    struct json_out *out = show->out;
    const struct schema_type *type;
    int status = show_type(show, object->type, &type);
    if (status)
        return status;
    out_open(out, '{');
    out_key(out, "op");
    out_text(out, object->op == EVENT_CREATE ? (pawl_bytes){"create", 6} : (pawl_bytes){"update", 6});
    out_key(out, "id");
    out_unsigned(out, object->id);
    out_key(out, "type");
    out_text(out, type->name);
    status = show_parent(records, object);
    if (status)
        return status;
    if (object->says_active || !object->active) {
        out_key(out, "active");
        out_flag(out, object->active);
    }
    out_key(out, "fields");
    out_open(out, '{');
    status = show_fields(show, type, object->row, (pawl_bytes){object->cleared, 2 * object->cleared_count});
    out_close(out, '}');
    out_close(out, '}');
    return status ? error_wrap(show->error, status, "record %" PRIu64, object->id) : PAWL_OK;
}

static int show_records(const struct show *show, const struct event *event)
{
    struct records records = {.show = show, .event = event};
    struct event_object object;
    size_t cursor = 0;
    int status = PAWL_OK;
    out_key(show->out, "records");
    out_open(show->out, '[');
    for (uint32_t i = 0; status == PAWL_OK && event_next(event, &cursor, &object); i++)
        if (i >= event->head.argument_count)
            status = show_record(&records, &object);
    out_close(show->out, ']');
    mem_free(show->out->alloc, records.known, event->head.object_count * sizeof *records.known);
    return status;
}

static void show_text(const struct show *show, const char *key, pawl_bytes text)
{
    if (text.size == 0)
        return;
    out_key(show->out, key);
    out_text(show->out, text);
}

/* An event of the partition itself has no workspace_offset. */
static void show_place(const struct show *show, const struct json_source *source, const struct event *event,
                       bool wsid)
{
    struct json_out *out = show->out;
    struct event_numbers wlog = event_numbers_of(event, SEQ_WLOG_OFFSET);
    out_key(out, "partition");
    out_unsigned(out, source->partition);
    out_key(out, "offset");
    out_unsigned(out, source->offset);
    if (wsid) {
        out_key(out, "wsid");
        out_unsigned(out, event->envelope.wsid);
    }
    if (wlog.count) {
        out_key(out, "workspace_offset");
        out_unsigned(out, wlog.first);
    }
}

static int show_event(const struct show *show, const struct json_source *source, const struct event *event)
{
    struct json_out *out = show->out;
    out_open(out, '{');
    show_place(show, source, event, true);
    int status = show_name(show, "command", event->head.command);
    if (status)
        return status;
    out_key(out, "time");
    out_timestamp(out, event->head.time.ns);
    show_text(show, "actor", event->head.actor);
    show_text(show, "correlation", event->head.correlation);
    show_text(show, "causation", event->head.causation);
    out_key(out, "schema");
    out_unsigned(out, event->head.schema);
    if (event->head.command == NAME_WS_CREATE)
        status = show_name(show, "kind", event->envelope.kind);
    if (status == PAWL_OK && event->head.argument_count) {
        out_key(out, "argument");
        status = show_argument(show, event);
    }
    if (status == PAWL_OK)
        status = show_records(show, event);
    out_close(out, '}');
    return status;
}

int json_event(struct json_out *out, const struct json_source *source, pawl_error *error)
{
    struct show show;
    struct event event;
    int status = event_decode(source->body, &event, error);
    if (status == PAWL_OK)
        status = show_begin(&show, out, source->schema, error);
    return status ? status : show_end(&show, show_event(&show, source, &event));
}

static void show_ids(const struct show *show, const struct event *event, bool of_argument)
{
    struct event_object object;
    size_t cursor = 0;
    for (uint32_t i = 0; event_next(event, &cursor, &object); i++)
        if (object.raw && (i < event->head.argument_count) == of_argument) {
            out_number_name(show->out, object.raw);
            out_unsigned(show->out, object.id);
        }
}

static int show_numbers_of(const struct show *show, const struct event_object *object)
{
    const struct schema_type *type;
    struct row row = {0};
    bool any = false;
    int status = show_type(show, object->type, &type);
    for (size_t place = 0; status == PAWL_OK && place < type->field_count; place++) {
        if (type->fields[place].sequence == 0)
            continue;
        if (!row.bytes.data)
            status = row_open(type->fields, type->field_count, object->row, &row, show->error);
        if (status)
            return error_wrap(show->error, status, "record %" PRIu64, object->id);
        struct value number = row_get(row, place, VALUE_INT64);
        if (number.type == VALUE_NULL)
            continue;
        if (!any) {
            out_number_name(show->out, object->id);
            out_open(show->out, '{');
        }
        any = true;
        out_name(show->out, type->fields[place].name);
        out_integer(show->out, number.integer);
    }
    if (any)
        out_close(show->out, '}');
    return status;
}

static int show_answer(const struct show *show, const struct json_source *source, const struct event *event,
                       bool repeated)
{
    struct json_out *out = show->out;
    struct event_object object;
    size_t cursor = 0;
    int status = PAWL_OK;
    out_open(out, '{');
    show_place(show, source, event, false);
    out_key(out, "ids");
    out_open(out, '{');
    show_ids(show, event, false);
    show_ids(show, event, true);
    out_close(out, '}');
    out_key(out, "numbers");
    out_open(out, '{');
    while (status == PAWL_OK && event_next(event, &cursor, &object))
        if (object.op == EVENT_CREATE)
            status = show_numbers_of(show, &object);
    out_close(out, '}');
    if (repeated) {
        out_key(out, "repeated");
        out_flag(out, true);
    }
    out_close(out, '}');
    return status;
}

int json_answer(struct json_out *out, const struct json_source *source, bool repeated, pawl_error *error)
{
    struct show show;
    struct event event;
    int status = event_decode(source->body, &event, error);
    if (status == PAWL_OK)
        status = show_begin(&show, out, source->schema, error);
    return status ? status : show_end(&show, show_answer(&show, source, &event, repeated));
}

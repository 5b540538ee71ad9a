#include "core/state/derive.h"

#include <assert.h>
#include <inttypes.h>

#include "base/error.h"
#include "core/schema/row.h"
#include "core/sequence/storage.h"
#include "core/state/key.h"
#include "core/state/project.h"

static int derive_workspace(const struct derivation *d, const struct state *state, struct arena *memory,
                            struct changes *changes)
{
    uint8_t key[KEY_WORKSPACE], value[WORKSPACE_BYTES];
    struct workspace_row row = {.kind = d->event->envelope.kind};
    return state_change(state, memory, changes, key_of_workspace(TABLE_WORKSPACE, d->event->envelope.wsid, key),
                        (pawl_bytes){0}, workspace_row_write(row, value));
}

/* The workspace is frozen, or no longer. */
static int derive_frozen(const struct derivation *d, const struct state *state, struct arena *memory,
                         struct changes *changes, pawl_error *error)
{
    uint64_t wsid = d->event->envelope.wsid;
    uint8_t room[KEY_WORKSPACE], value[WORKSPACE_BYTES];
    pawl_bytes key = key_of_workspace(TABLE_WORKSPACE, wsid, room), was;
    struct workspace_row row;
    int status = state_get(state, key, &was);
    if (status == PAWL_ENOTFOUND)
        return error_set(error, PAWL_ECORRUPT, "the event freezes workspace %" PRIu64 ", which is not there",
                         wsid);
    if (status != PAWL_OK)
        return status;
    if (!workspace_row_read(was, &row))
        return error_set(error, PAWL_ECORRUPT, "what is stored of workspace %" PRIu64 " is not a workspace",
                         wsid);
    row.frozen = d->event->head.command == NAME_WS_FREEZE;
    return state_change(state, memory, changes, key, was, workspace_row_write(row, value));
}

static int derive_wlog(const struct derivation *d, const struct state *state, struct arena *memory,
                       struct changes *changes, pawl_error *error)
{
    const struct event *event = d->event;
    struct event_numbers number = event_numbers_of(event, SEQ_WLOG_OFFSET);
    if (number.count != 1)
        return error_set(error, PAWL_ECORRUPT, "the event has %" PRIu32 " workspace offsets", number.count);
    struct wlog_row row = {.plog_offset = d->offset,
                           .record = event->head.record,
                           .key_hash = event->head.key.size ? idempotency_hash(event->head.key) : 0};
    uint8_t key[KEY_NUMBERED], value[WLOG_BYTES];
    return state_change(state, memory, changes,
                        key_numbered(TABLE_WLOG, event->envelope.wsid, number.first, key), (pawl_bytes){0},
                        wlog_row_write(row, value));
}

/* A record's bytes: its head and its row. */
static int write_record(struct arena *memory, const struct record_row *record, const struct value *values,
                        size_t count, pawl_bytes *ret_value, pawl_error *error)
{
    size_t size;
    int status = row_size(values, count, &size);
    if (status != PAWL_OK)
        return error_set(error, status, "a record is larger than a row may be");
    uint8_t *bytes = arena_take(memory, RECORD_BYTES + size);
    if (!bytes)
        return PAWL_ENOMEM;
    record_head_write(record, bytes);
    row_write(values, count, bytes + RECORD_BYTES);
    *ret_value = (pawl_bytes){bytes, RECORD_BYTES + size};
    return PAWL_OK;
}

static int create_record(const struct state *state, struct arena *memory, struct changes *changes,
                         const struct event_object *object, pawl_bytes key)
{
    struct record_row record = {.active = object->active,
                                .type = object->type,
                                .container = object->container,
                                .parent = object->parent};
    uint8_t *bytes = arena_take(memory, RECORD_BYTES + object->row.size);
    if (!bytes)
        return PAWL_ENOMEM;
    record_head_write(&record, bytes);
    memcpy(bytes + RECORD_BYTES, object->row.data, object->row.size);
    return state_change(state, memory, changes, key, (pawl_bytes){0},
                        (pawl_bytes){bytes, RECORD_BYTES + object->row.size});
}

/* The old row, with the fields that the event sets. */
static int merge_fields(const struct schema_type *type, struct row old, const struct event_object *object,
                        struct value *values, pawl_error *error)
{
    struct row set;
    int status = row_open(type->fields, type->field_count, object->row, &set, error);
    if (status != PAWL_OK)
        return status;
    for (size_t i = 0; i < type->field_count; i++) {
        struct value value = row_get(set, i, type->fields[i].type);
        values[i] = value.type != VALUE_NULL ? value : row_get(old, i, type->fields[i].type);
    }
    for (size_t i = 0; i < object->cleared_count; i++) {
        uint16_t place = event_cleared(object, i);
        if (place >= type->field_count)
            return error_set(error, PAWL_ECORRUPT, "the event clears field %u of a type with %zu", place,
                             type->field_count);
        values[place] = (struct value){.type = VALUE_NULL};
    }
    return PAWL_OK;
}

static int update_record(const struct state *state, struct arena *memory, struct changes *changes,
                         const struct schema_type *type, const struct event_object *object, pawl_bytes key,
                         pawl_error *error)
{
    pawl_bytes was, value;
    struct record_row record;
    struct row old;
    int status = state_get(state, key, &was);
    if (status == PAWL_ENOTFOUND)
        return error_set(error, PAWL_ECORRUPT, "the event updates record %" PRIu64 ", which is not there",
                         object->id);
    if (status != PAWL_OK)
        return status;
    if (!record_row_read(was, &record))
        return error_set(error, PAWL_ECORRUPT, "what is stored of record %" PRIu64 " is not a record",
                         object->id);
    status = row_open(type->fields, type->field_count, record.row, &old, error);
    if (status != PAWL_OK)
        return status;
    if (row_fields(old) > type->field_count)
        return error_set(error, PAWL_ECORRUPT, "record %" PRIu64 " is of a later schema than the event",
                         object->id);
    struct value *values = arena_take(memory, type->field_count * sizeof *values);
    if (!values)
        return PAWL_ENOMEM;
    status = merge_fields(type, old, object, values, error);
    if (object->says_active)
        record.active = object->active;
    if (status == PAWL_OK)
        status = write_record(memory, &record, values, type->field_count, &value, error);
    if (status == PAWL_OK)
        status = state_change(state, memory, changes, key, was, value);
    return status;
}

static int derive_object(const struct derivation *d, const struct state *state, struct arena *memory,
                         const struct event_object *object, struct changes *changes, pawl_error *error)
{
    const struct schema_type *type = schema_type_by_id(d->schema, object->type);
    if (!type)
        return error_set(error, PAWL_ECORRUPT,
                         "the event has an object of type %u, which its schema does not have", object->type);
    if (!type_has_table(type->kind))
        return PAWL_OK;
    uint8_t room[KEY_NUMBERED];
    pawl_bytes key = key_numbered(type->table, d->event->envelope.wsid, object->id, room);
    if (object->op == EVENT_UPDATE)
        return update_record(state, memory, changes, type, object, key, error);
    struct row row;
    int status = row_open(type->fields, type->field_count, object->row, &row, error);
    return status == PAWL_OK ? create_record(state, memory, changes, object, key) : status;
}

static int derive_all(const struct derivation *d, const struct state *state, struct arena *memory,
                      struct changes *changes, pawl_error *error)
{
    const struct event *event = d->event;
    int status = PAWL_OK;
    if (event->head.command == NAME_WS_CREATE)
        status = derive_workspace(d, state, memory, changes);
    else if (event->head.command == NAME_WS_FREEZE || event->head.command == NAME_WS_THAW)
        status = derive_frozen(d, state, memory, changes, error);
    if (status == PAWL_OK)
        status = derive_wlog(d, state, memory, changes, error);
    struct event_object object;
    for (size_t cursor = 0; status == PAWL_OK && event_next(event, &cursor, &object);)
        status = derive_object(d, state, memory, &object, changes, error);
    for (size_t i = 0; status == PAWL_OK && i < d->schema->projector_count; i++)
        if (projector_is_on(&d->schema->projectors[i], event->head.command))
            status = project(d, &d->schema->projectors[i], state, memory, changes, error);
    return status;
}

int derive(const struct derivation *d, const struct state *state, struct arena *memory,
           struct changes *ret_changes, pawl_error *error)
{
    assert(d->schema->position == d->event->head.schema);
    assert(state->overlay); /* an event sees what it has changed itself */
    struct changes changes = {0};
    int status = derive_all(d, state, memory, &changes, error);
    if (status == PAWL_OK)
        *ret_changes = changes;
    else
        overlay_remove(state->overlay, &changes);
    if (status == PAWL_ENOMEM)
        return error_set(error, status, "no memory to derive what an event writes");
    return status;
}

#include "core/project/redo.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "core/project/operation_rows.h"
#include "core/state/key.h"

#define STEPS_MAX 8 /* a row that is written again and again must not take more memory */

/* Operations come in the order of their events (N1). */
static int advance(struct cursor *cursor, const struct operation *op, pawl_error *error)
{
    if (op->number != cursor->applied + 1)
        return error_set(error, PAWL_ECORRUPT, "it is operation %" PRIu64 ", and the tables are at %" PRIu64,
                         op->number, cursor->applied);
    if (op->event <= cursor->scanned)
        return error_set(error, PAWL_ECORRUPT,
                         "it is of event %" PRIu64 ", and the tables have all up to %" PRIu64, op->event,
                         cursor->scanned);
    bool same = cursor->within > 0 && op->event == cursor->scanned + 1;
    cursor->within = same ? cursor->within + 1 : 1;
    cursor->scanned = op->event - 1;
    return PAWL_OK;
}

static int find_schema(struct redo *r, uint64_t position, pawl_error *error)
{
    if (!r->schema || r->schema->position != position)
        r->schema = r->schema_at(r->ctx, position);
    return r->schema ? PAWL_OK
                     : error_set(error, PAWL_ECORRUPT,
                                 "it was made under the schema at %" PRIu64 ", which is not known", position);
}

/* A change that waits until its row is read. There are many of them, so it is small. */
struct step {
    struct gathered_step step;
    const struct schema_type *entity;
    uint64_t number;
    uint32_t set_size;
    uint32_t room; /* bytes for a set that replaces this one */
    uint16_t cleared_count;
    uint8_t kind;
    uint8_t bytes[]; /* what is set, and what is cleared */
};

/* A row is checked when it comes from the store, and again when the operations come to another schema. */
static int become(const struct operation_change *change, struct gathered_row *row, pawl_bytes was,
                  struct arena *memory, pawl_bytes *ret_value, pawl_error *error)
{
    int status = PAWL_OK;
    if (was.data && row->type != change->entity)
        status = operation_change_fits(change, was, error);
    row->type = change->entity;
    return status == PAWL_OK ? operation_change_becomes(change, was, memory, ret_value, error) : status;
}

static int become_later(struct gathered_step *of, struct gathered_row *row, pawl_bytes was,
                        struct arena *memory, pawl_bytes *ret_value, pawl_error *error)
{
    const struct step *step = (const struct step *)of;
    pawl_bytes key = row->change.key;
    struct operation_change change = {
        .entity = step->entity,
        .kind = (enum action_kind)step->kind,
        .row = {.key = {(const uint8_t *)key.data + KEY_WORKSPACE, key.size - KEY_WORKSPACE},
                .set = {step->bytes, step->set_size},
                .cleared = {step->bytes + step->set_size, (size_t)2 * step->cleared_count},
                .cleared_count = step->cleared_count}};
    int status = become(&change, row, was, memory, ret_value, error);
    return status == PAWL_OK ? status : error_wrap(error, status, "operation %" PRIu64, step->number);
}

/* Whether this change overwrites everything that the row's last change sets. Both need the same row, or none,
 * to exist. */
static bool replaces_last(const struct gathered_row *row, const struct operation_change *change)
{
    const struct step *last = (const struct step *)row->newest;
    return last && last->entity == change->entity && last->kind != ACTION_DELETE
           && change->kind != ACTION_DELETE && last->cleared_count == 0 && change->row.cleared_count == 0
           && change->row.set.size <= last->room
           && row_covers((struct row){change->row.set}, (struct row){{last->bytes, last->set_size}});
}

static int postpone(struct redo *r, struct gathered_row *row, const struct operation_change *change,
                    uint64_t number)
{
    const struct operation_row *from = &change->row;
    size_t bytes = from->set.size + from->cleared.size, size = offsetof(struct step, bytes) + bytes;
    if (replaces_last(row, change)) {
        struct step *last = (struct step *)row->newest;
        last->set_size = (uint32_t)from->set.size;
        memcpy(last->bytes, from->set.data, from->set.size);
        return PAWL_OK;
    }
    struct step *step = arena_take(&r->gathered->memory, size);
    if (!step)
        return PAWL_ENOMEM;
    step->step.become = become_later;
    step->entity = change->entity;
    step->number = number;
    step->set_size = step->room = (uint32_t)from->set.size;
    step->cleared_count = (uint16_t)from->cleared_count;
    step->kind = (uint8_t)change->kind;
    memcpy(step->bytes, from->set.data, bytes); /* they lie side by side */
    gathered_add(row, &step->step);
    return PAWL_OK;
}

static int redo_row(struct redo *r, const struct operation_rows *rows, uint64_t number, pawl_error *error)
{
    struct gathered_row *row;
    pawl_bytes value;
    int status = operation_change_check(&rows->change, error);
    if (status == PAWL_OK)
        status = gathered_row(r->gathered, rows->key, &r->cursor->digests, &row);
    if (status != PAWL_OK)
        return status;
    r->rows++;
    if (row->change.waits) {
        status = postpone(r, row, &rows->change, number);
        if (status == PAWL_OK && (r->at_once || row->steps >= STEPS_MAX))
            status = gathered_settle(r->gathered, r->store, row, error);
        return status;
    }
    status = become(&rows->change, row, row->change.value, r->memory, &value, error);
    return status == PAWL_OK ? gathered_set(r->gathered, row, value) : status;
}

static int redo_rows(struct redo *r, const struct operation *op, pawl_error *error)
{
    struct operation_rows rows;
    struct arena_point start = arena_point(r->memory);
    int status;
    operation_rows_begin(&rows, op, r->schema, r->cursor->generation, r->memory, error);
    while ((status = operation_rows_next(&rows)) == PAWL_OK)
        if ((status = redo_row(r, &rows, op->number, error)) != PAWL_OK)
            break;
    arena_rewind(r->memory, start);
    if (status == PAWL_ENOMEM)
        return error_set(error, status, "no memory for what operations write");
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

int redo_operation(struct redo *r, uint64_t number, pawl_place place, pawl_bytes body, pawl_error *error)
{
    struct operation op;
    int status = operation_decode(body, &op, error);
    if (status == PAWL_OK && op.number != number)
        status = error_set(error, PAWL_ECORRUPT, "the entry says that it is operation %" PRIu64, op.number);
    if (status == PAWL_OK)
        status = advance(r->cursor, &op, error);
    if (status == PAWL_OK)
        status = find_schema(r, op.schema, error);
    if (status == PAWL_OK)
        status = redo_rows(r, &op, error);
    if (status != PAWL_OK)
        return status;
    r->cursor->applied = number;
    r->cursor->place = place;
    r->cursor->checksum = hash_checksum(0, body);
    return PAWL_OK;
}

int redo_put(struct redo *r, pawl_error *error)
{
    int status = gathered_put(r->gathered, r->store, error);
    if (status != PAWL_OK)
        return status;
    gathered_reset(r->gathered);
    status = cursor_write(r->cursor, r->store);
    return status == PAWL_OK ? status : error_set(error, status, "%s", r->store->error.text);
}

int redo_commit(struct redo *r, pawl_error *error)
{
    int status = redo_put(r, error);
    if (status != PAWL_OK)
        return status;
    status = pawl_store_commit(r->store);
    return status == PAWL_OK ? status : error_set(error, status, "%s", r->store->error.text);
}

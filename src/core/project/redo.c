#include "core/project/redo.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/hash.h"
#include "core/state/key.h"

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

int redo_operation(struct redo *r, uint64_t number, pawl_place place, pawl_bytes body,
                   struct operation *ret_operation, pawl_error *error)
{
    struct operation op;
    struct changes changes;
    struct state state = {
        .overlay = &r->gathered->overlay, .reader = pawl_store_writer(r->store), .scratch = r->scratch};
    int status = operation_decode(body, &op, error);
    if (status == PAWL_OK && op.number != number)
        status = error_set(error, PAWL_ECORRUPT, "it says that it is operation %" PRIu64, op.number);
    if (status == PAWL_OK)
        status = advance(r->cursor, &op, error);
    const struct schema *schema = status == PAWL_OK ? r->schema_at(r->ctx, op.schema) : NULL;
    if (status == PAWL_OK && !schema)
        status = error_set(error, PAWL_ECORRUPT,
                           "it was made under the schema at %" PRIu64 ", which is not known", op.schema);
    if (status == PAWL_OK)
        status = operation_derive(&op, schema, r->cursor->generation, &state, r->memory, &changes, error);
    if (status != PAWL_OK)
        return status;
    status = digests_add(&r->cursor->digests, &changes);
    if (status == PAWL_OK)
        status = gathered_take(r->gathered, &changes);
    if (status != PAWL_OK)
        return error_set(error, status, "no memory for what operations write");
    r->rows += changes.count;
    r->cursor->applied = number;
    r->cursor->place = place;
    r->cursor->checksum = hash_checksum(0, body);
    if (ret_operation)
        *ret_operation = op;
    return PAWL_OK;
}

int redo_commit(struct redo *r)
{
    int status = gathered_put(r->gathered, r->store);
    if (status == PAWL_OK)
        status = cursor_write(r->cursor, r->store);
    if (status == PAWL_OK)
        status = pawl_store_commit(r->store);
    gathered_clear(r->gathered);
    return status;
}

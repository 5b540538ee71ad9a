/* core/project/operation_derive.c: what a logged operation does to the state, as changes of it. */
#include <assert.h>

#include "base/error.h"
#include "core/project/explode.h"
#include "core/project/operation_rows.h"

static int derive_row(const struct operation_rows *rows, const struct state *state, struct changes *changes)
{
    pawl_bytes was = {0}, value;
    int status = operation_change_check(&rows->change, rows->error);
    if (status != PAWL_OK)
        return status;
    status = state_get(state, rows->key, &was);
    if (status == PAWL_OK)
        status = operation_change_fits(&rows->change, was, rows->error);
    if (status == PAWL_OK || status == PAWL_ENOTFOUND)
        status = operation_change_becomes(&rows->change, was, rows->memory, &value, rows->error);
    return status == PAWL_OK ? state_change(state, rows->memory, changes, rows->key, was, value) : status;
}

int operation_derive(const struct operation *operation, const struct schema *schema, uint32_t generation,
                     const struct state *state, struct arena *memory, struct changes *ret_changes,
                     pawl_error *error)
{
    assert(state->overlay); /* each write sees the earlier ones */
    struct changes changes = {0};
    struct operation_rows rows;
    int status;
    operation_rows_begin(&rows, operation, schema, generation, memory, error);
    while ((status = operation_rows_next(&rows)) == PAWL_OK)
        if ((status = derive_row(&rows, state, &changes)) != PAWL_OK)
            break;
    if (status == PAWL_ENOTFOUND) {
        *ret_changes = changes;
        return PAWL_OK;
    }
    overlay_remove(state->overlay, &changes);
    if (status == PAWL_ENOMEM)
        return error_set(error, status, "no memory to derive what an operation writes");
    return status;
}

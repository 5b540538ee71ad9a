/* engine/read/operation.h: an operation as its reader sees it. Its JSON is made only if it is asked for. */
#ifndef ENGINE_READ_OPERATION_H
#define ENGINE_READ_OPERATION_H

#include "core/project/operation.h"
#include "engine/json/json.h"
#include "engine/read/row.h"

struct pawl_operation_source {
    pawl_engine *engine;
    const struct schema *schema; /* that it was made under */
    struct operation operation;
    struct json_out *out; /* where its JSON goes; empty: not made yet */
    uint16_t partition;
};

/* Source and operation borrow the body, and out, whose text is forgotten. Makes no JSON. Errors: PAWL_ECORRUPT,
 * PAWL_EVERSION. */
int operation_show(pawl_engine *engine, uint16_t partition, pawl_bytes body, struct json_out *out,
                   struct pawl_operation_source *ret_source, pawl_operation *ret_operation, pawl_error *error);

#endif

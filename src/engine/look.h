/* engine/look.h: one read of an entity: its rows as JSON, one by its key, or those of a workspace in order.
 *
 *     begin ──┬── key, show ──┬── end
 *             └── list ───────┘
 *
 * Where the rows come from is the caller's: a shard's store, or what a lane makes of it. */
#ifndef ENGINE_LOOK_H
#define ENGINE_LOOK_H

#include "base/arena.h"
#include "core/schema/schema.h"
#include "engine/text.h"
#include "port/store.h"

struct look {
    const struct schema *schema;
    const struct schema_type *entity;
    uint32_t table;
    uint64_t wsid;
    pawl_error *error;
    struct arena memory;
    struct json_out out;
};

/* What is set above memory is the caller's to set before; allocates nothing. */
void look_begin(struct look *look, const pawl_allocator *alloc);

/* The row that a key in JSON names: its key, in the memory; and what it says. */
int look_key(struct look *look, pawl_bytes json, pawl_bytes *ret_key);
int look_show(struct look *look, pawl_bytes row);

/* Visits the rows of a range in order, in one snapshot, which must not live long. Says itself why it cannot. */
typedef int (*look_scan)(void *ctx, pawl_bytes from, pawl_bytes to, pawl_visit_row visit, void *arg);

/* Up to limit rows behind a key in JSON (data NULL: from the first), a line each. */
int look_list(struct look *look, pawl_bytes after, size_t limit, look_scan scan, void *ctx);

/* As text_take. */
int look_end(struct look *look, int status, pawl_text *ret_text);

#endif

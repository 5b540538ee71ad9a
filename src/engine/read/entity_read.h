/* engine/read/entity_read.h: one read of an entity: one row by its key, or those of a workspace in order.
 *
 *     begin ──┬── key, show ──┬── end
 *             └── list ───────┘
 *
 * Rows go to a visitor, or become lines of JSON. Where they come from is the caller's: a shard's store, or what
 * a lane makes of it. */
#ifndef ENGINE_READ_ENTITY_READ_H
#define ENGINE_READ_ENTITY_READ_H

#include "base/arena.h"
#include "core/schema/schema.h"
#include "engine/read/row.h"
#include "engine/read/text.h"
#include "port/store.h"

/* What is asked for, and where it goes. */
struct entity_query {
    pawl_bytes json;      /* the key, or the one before the first, as JSON; data NULL: values say it */
    pawl_key key;         /* no values: there is none */
    pawl_row_visit visit; /* NULL: as JSON */
    void *arg;
    size_t limit;        /* these two: of a list */
    pawl_cursor *cursor; /* NULL: nobody goes on */
};

struct entity_read {
    pawl_engine *engine;
    const struct schema *schema;
    const struct schema_type *entity;
    uint32_t table;
    uint64_t wsid;
    struct entity_query at;
    pawl_error *error;
    struct arena memory;
    struct json_out out;
    bool stopped; /* the visitor wants no more */
};

/* What is set above memory is the caller's to set before; allocates nothing. */
void entity_read_begin(struct entity_read *read, const pawl_allocator *alloc);

/* The row that is asked for: its key, in the memory; and what it says. */
int entity_read_key(struct entity_read *read, pawl_bytes *ret_key);
int entity_read_show(struct entity_read *read, pawl_bytes row);

/* Visits the rows of a range in order, in one snapshot, which must not live long. Says itself why it cannot. */
typedef int (*entity_read_scan)(void *ctx, pawl_bytes from, pawl_bytes to, pawl_visit_row visit, void *arg);

/* Up to limit rows, from behind the cursor or the key on. Moves the cursor if all is well. */
int entity_read_list(struct entity_read *read, entity_read_scan scan, void *ctx);

/* As text_take, if it was JSON. */
int entity_read_end(struct entity_read *read, int status, pawl_text *ret_text);

#endif

/* engine/read/entity_read.h: one read of an entity: one row by its key, or a workspace's rows in their order.
 *
 *     begin ──┬── key, show ──┬── end
 *             └── list ───────┘
 *
 * Rows go to a visitor, or become lines of JSON. The caller decides where they come from: a shard's store, or
 * the state that a run sees. */
#ifndef ENGINE_READ_ENTITY_READ_H
#define ENGINE_READ_ENTITY_READ_H

#include "base/arena.h"
#include "core/schema/schema.h"
#include "engine/read/row.h"
#include "engine/read/text.h"
#include "port/store.h"

/* Which rows are read, and where they go. */
struct entity_query {
    pawl_bytes json;      /* the key as JSON; of a list: the key before the first row. data NULL: see key */
    pawl_key key;         /* the same as values; none: there is no key */
    pawl_row_visit visit; /* NULL: rows become JSON */
    void *arg;
    size_t limit;        /* of a list */
    pawl_cursor *cursor; /* of a list; NULL: nobody will go on from its end */
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

/* The caller has set all members above memory. Allocates nothing. */
void entity_read_begin(struct entity_read *read, const pawl_allocator *alloc);

/* key: the key of the row to read, in read->memory. show: give the row to the visitor, or add it to the
 * JSON. */
int entity_read_key(struct entity_read *read, pawl_bytes *ret_key);
int entity_read_show(struct entity_read *read, pawl_bytes row);

/* Visits the rows of a range in order, in one snapshot, which must not live long. It sets read->error
 * itself. */
typedef int (*entity_read_scan)(void *ctx, pawl_bytes from, pawl_bytes to, pawl_visit_row visit, void *arg);

/* Show up to limit rows, from behind the cursor or the key on. Moves the cursor, unless it fails. */
int entity_read_list(struct entity_read *read, entity_read_scan scan, void *ctx);

/* End a read: frees its memory. JSON goes to *ret_text, as by text_take. */
int entity_read_end(struct entity_read *read, int status, pawl_text *ret_text);

#endif

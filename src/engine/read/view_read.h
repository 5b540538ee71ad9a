/* engine/read/view_read.h: a view as one read of it sees it: which table its rows are in, what it covers, its
 * rows.
 *
 *     find ── wait ── snapshot ── show, show, ... ── release ── snapshot ...
 *
 * Only a state in the same snapshot as the rows says what they cover. If it is gone, the view was dropped, or
 * another incarnation or generation of it serves now: it is looked up again, and the read goes on there. */
#ifndef ENGINE_READ_VIEW_READ_H
#define ENGINE_READ_VIEW_READ_H

#include "base/arena.h"
#include "core/view/view.h"
#include "engine/read/row.h"
#include "engine/read/text.h"
#include "port/store.h"

#define VIEW_READ_FEW 4 /* values of a key */

struct view_read {
    pawl_engine *engine;
    const char *name;
    uint64_t wsid;        /* 0: all workspaces */
    pawl_row_visit visit; /* NULL: rows become JSON */
    void *arg;
    pawl_error *error;

    struct arena memory;
    struct value few[VIEW_READ_FEW];
    struct json_out out;
    bool stopped; /* the visitor wants no more */

    /* As find has found it. */
    const struct view *view;
    const struct schema *schema;
    uint32_t table;      /* of its rows */
    uint32_t base;       /* the base's */
    uint32_t generation; /* of the base that serves */
    uint16_t lane;       /* that fills the base; 0: none */

    /* While there is a snapshot. */
    uint16_t partition;
    pawl_store *store;
    pawl_reader *snapshot; /* NULL: none */
    double covered;        /* how much of what is read in this partition: 1 is all */
    struct pawl_row row;
};

/* The caller has set all members above memory. Allocates nothing. */
void view_read_begin(struct view_read *read);

/* Look the view up. If it was found before, its key must be the same. PAWL_ENOTFOUND. */
int view_read_find(struct view_read *read);

/* Wait until the view's rows are as of min_offset; the view is looked up again. PAWL_ETIMEOUT,
 * PAWL_ENOTFOUND. */
int view_read_wait(struct view_read *read, const pawl_read_options *options);

/* Take a snapshot of a partition, and judge what is covered in it. Release it, if there is one: without a state
 * there is none, and nothing is covered. PAWL_ENOTFOUND: the view is gone; PAWL_EBUSY, PAWL_ECORRUPT,
 * PAWL_EVERSION, PAWL_EIO, PAWL_ENOMEM. */
int view_read_snapshot(struct view_read *read, uint16_t partition);
void view_read_release(struct view_read *read);

/* The offset of the partition that the rows of the snapshot include. */
int view_read_offset(struct view_read *read, uint64_t *ret_offset);

/* The values of a key's first fields, as JSON if its data is set. exact: all fields are needed. count 0: none
 * were given. They stay until the next call. */
int view_read_values(struct view_read *read, pawl_bytes json, pawl_key key, bool exact,
                     struct value **ret_values, size_t *ret_count);

/* Give a stored row to the visitor, or add it to the JSON. */
int view_read_show(struct view_read *read, pawl_bytes key, pawl_bytes value);

/* PAWL_ENOTBUILT, with words. */
int view_read_not_built(const struct view_read *read);

/* End a read: frees its memory. JSON goes to *ret_text, as by text_take. */
int view_read_end(struct view_read *read, int status, pawl_text *ret_text);

#endif

/* read.h: the state that events have made: records, entities, workspaces, numbers.
 *
 * Reads are made on a snapshot, on the calling thread, and wait for nobody; with min_offset they wait until the
 * state has come that far.
 *
 *                 one     many
 *     as rows     read    scan     visit the stored rows, field by field (pawl/row.h): nothing is copied
 *     as JSON     get     list     make a text */
#ifndef PAWL_READ_H
#define PAWL_READ_H

#include <pawl/engine.h>
#include <pawl/row.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any read may also end with PAWL_EBUSY (all 126 snapshots of the shard's store are in use: try again),
 * PAWL_ENOMEM, PAWL_EIO or PAWL_ECORRUPT.
 *
 * A read sees the state at min_offset of the partition or later (0: the present one). It waits up to timeout
 * for this (0: 10 s). NULL instead of the options means zeros. */
typedef struct pawl_read_options {
    uint64_t min_offset;
    pawl_duration timeout;
} pawl_read_options;

/* One record, as JSON. type: its qualified name, or NULL: any. O documents are found in their events.
 * Errors: PAWL_ENOTFOUND, PAWL_ETIMEOUT. */
PAWL_API int pawl_record_get(pawl_engine *engine, uint64_t wsid, const char *type, uint64_t id,
                             const pawl_read_options *options, pawl_text *ret_text, pawl_error *error);

/* One record, as a row. type is the record's type, and must have a table. Errors: as pawl_record_get. */
PAWL_API int pawl_record_read(pawl_engine *engine, uint64_t wsid, const char *type, uint64_t id,
                              const pawl_read_options *options, pawl_row_visit visit, void *arg,
                              pawl_error *error);

/* Records of a type with IDs above after, ascending, at most limit. ret_after may be NULL; *ret_after is the
 * after of the next call; 0: there are no more. Errors: PAWL_ENOTFOUND (the type, the workspace), PAWL_EINVAL
 * (the type has no table), PAWL_ETIMEOUT. */
PAWL_API int pawl_record_scan(pawl_engine *engine, uint64_t wsid, const char *type, uint64_t after,
                              size_t limit, const pawl_read_options *options, pawl_row_visit visit, void *arg,
                              uint64_t *ret_after, pawl_error *error);

/* The same, one JSON line each. */
PAWL_API int pawl_record_list(pawl_engine *engine, uint64_t wsid, const char *type, uint64_t after,
                              size_t limit, const pawl_read_options *options, pawl_text *ret_text,
                              pawl_error *error);

/* One row of an entity, as JSON. key is JSON too: an object with the fields of its key, or an array of their
 * values in the key's order. min_offset is that of the entity's own tables: tables that a lane fills may be
 * behind the partition. Errors: PAWL_ENOTFOUND, PAWL_EINVAL (the key), PAWL_ETIMEOUT. */
PAWL_API int pawl_entity_get(pawl_engine *engine, uint64_t wsid, const char *entity, pawl_bytes key,
                             const pawl_read_options *options, pawl_text *ret_text, pawl_error *error);

/* Rows in the order of their keys, from behind the key after (NULL data: from the first), one JSON line each,
 * at most limit. Keys of more than 491 bytes are sorted by their first 474 bytes; keys with the same first 474
 * bytes come in an arbitrary order that never changes. */
PAWL_API int pawl_entity_list(pawl_engine *engine, uint64_t wsid, const char *entity, pawl_bytes after,
                              size_t limit, const pawl_read_options *options, pawl_text *ret_text,
                              pawl_error *error);

/* The same, page by page: goes on where the cursor has stopped, and moves it. With a cursor of zeros it begins behind
 * the key after. pawl_cursor_format (pawl/view.h) makes text of a cursor. Errors: PAWL_EINVAL also: the cursor is not
 * of an entity. */
PAWL_API int pawl_entity_page(pawl_engine *engine, uint64_t wsid, const char *entity, pawl_bytes after,
                              pawl_cursor *cursor, size_t limit, const pawl_read_options *options,
                              pawl_text *ret_text, pawl_error *error);

/* The same two, as rows, with a key of values. min_offset and errors as of get and list; PAWL_EINVAL also: a
 * value is of another type than its field, or there are more or fewer than the key has fields.
 *
 * scan goes on where the cursor has stopped; with a cursor of zeros, or NULL, it begins behind the key after
 * (no values: with the first row). Rows are visited in snapshots of up to 1000. */
PAWL_API int pawl_entity_read(pawl_engine *engine, uint64_t wsid, const char *entity, pawl_key key,
                              const pawl_read_options *options, pawl_row_visit visit, void *arg,
                              pawl_error *error);
PAWL_API int pawl_entity_scan(pawl_engine *engine, uint64_t wsid, const char *entity, pawl_key after,
                              pawl_cursor *cursor, size_t limit, const pawl_read_options *options,
                              pawl_row_visit visit, void *arg, pawl_error *error);

/* A workspace, as its last event left it. */
typedef struct pawl_workspace {
    uint64_t wsid;
    pawl_bytes kind; /* its qualified name; stays until the engine is closed */
    uint16_t partition;
    uint64_t offset;           /* of its last event, in its partition */
    uint64_t workspace_offset; /* and in the workspace: it has as many events */
    bool frozen;               /* it takes no commands: pawl_workspace_freeze */
} pawl_workspace;

/* Errors: PAWL_ENOTFOUND, PAWL_ETIMEOUT. */
PAWL_API int pawl_workspace_get(pawl_engine *engine, uint64_t wsid, const pawl_read_options *options,
                                pawl_workspace *ret_workspace, pawl_error *error);

/* Workspaces behind after (0: from the first), at most limit, in an arbitrary order that never changes. Return
 * false to stop. */
typedef bool (*pawl_workspace_visit)(void *arg, const pawl_workspace *workspace);
PAWL_API int pawl_workspaces_read(pawl_engine *engine, uint64_t after, size_t limit, pawl_workspace_visit visit,
                                  void *arg, pawl_error *error);

/* The same as JSON, as `pawl ws show` and `pawl ws list` print it with --json: one workspace, with the last numbers of
 * its sequences; many, a line each. ret_after may be NULL; *ret_after is the after of the next call; 0: there are no
 * more. */
PAWL_API int pawl_workspace_show(pawl_engine *engine, uint64_t wsid, const pawl_read_options *options,
                                 pawl_text *ret_text, pawl_error *error);
PAWL_API int pawl_workspaces_list(pawl_engine *engine, uint64_t after, size_t limit, pawl_text *ret_text,
                                  uint64_t *ret_after, pawl_error *error);

/* The offset of a partition that every read includes which begins after this call: as min_offset it would not wait.
 * The second one is for reads of an entity in a workspace's partition, whose tables may be behind. Errors:
 * PAWL_EINVAL (no such partition), PAWL_ENOTFOUND (no such entity), those of a read. */
PAWL_API int pawl_offset_get(pawl_engine *engine, uint16_t partition, uint64_t *ret_offset, pawl_error *error);
PAWL_API int pawl_entity_offset_get(pawl_engine *engine, uint64_t wsid, const char *entity,
                                    uint64_t *ret_offset, pawl_error *error);

/* The last number that a sequence has given. */
typedef struct pawl_last_number {
    uint64_t wsid;       /* 0: the partition's own */
    pawl_bytes sequence; /* its qualified name; stays until the engine is closed */
    uint64_t number;
} pawl_last_number;

/* The last numbers of a partition's sequences: its own first, then by ascending workspace; or those of one
 * workspace (wsid 0: all). They count all durable events, also those that the sequence storage lacks. Errors:
 * PAWL_ENOTFOUND (the workspace). Return false to stop. */
typedef bool (*pawl_last_number_visit)(void *arg, const pawl_last_number *last);
PAWL_API int pawl_last_numbers_read(pawl_engine *engine, uint16_t partition, uint64_t wsid,
                                    pawl_last_number_visit visit, void *arg, pawl_error *error);

/* The same as JSON, of all partitions, or of one workspace (wsid 0: all), as `pawl seq list --json` prints it: a line
 * for each, at most limit. place, zeros at first, is where to go on, and where it has stopped. */
typedef struct pawl_number_place {
    uint32_t partition;
    uint64_t rows; /* of this partition, that were listed */
    bool done;     /* there are no more */
} pawl_number_place;

PAWL_API int pawl_last_numbers_list(pawl_engine *engine, uint64_t wsid, pawl_number_place *place, size_t limit,
                                    pawl_text *ret_text, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif

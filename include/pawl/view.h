/* view.h: materialised views over records and entities. docs/VIEWS.md is their manual.
 *
 *     base rows ── filter ──► key and included fields ──► view rows, ordered by the key within a workspace
 *
 * A view row changes in the same transaction as its base row. A view that is made over existing rows is built
 * in the background, tablet by tablet on all shards, while writes go on; pawl_view_wait waits for it. A view
 * with unique set is a constraint too: a command that would make two rows with equal keys in a workspace is
 * refused with PAWL_EEXISTS.
 *
 * Views are declared in a package's "views" (pawl_schema_apply), or made here at run time. What a package
 * declares, only a later version of the package drops; what was made at run time, only pawl_view_drop.
 *
 *                 one     many
 *     as rows     read    scan     visit the stored rows, field by field (pawl/row.h): nothing is copied
 *     as JSON     get     list     make a text
 *
 * The fields of a view's row are those of its key, then the included ones; pawl_row_wsid is its workspace, and
 * pawl_row_id the record's ID if the base is a record type. */
#ifndef PAWL_VIEW_H
#define PAWL_VIEW_H

#include <pawl/engine.h>
#include <pawl/read.h>
#include <pawl/row.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- making and dropping --- */

/* Besides the fields of its base, a view over records may name id, parent and active, unless the type has a
 * field of that name. */
typedef struct pawl_view_definition {
    const char *name;       /* qualified: "shop.invoices_by_customer" */
    const char *base;       /* a record type that has a table, or an entity: "shop.Invoice" */
    const char *const *key; /* at least one */
    size_t key_count;
    const char *const *include;
    size_t include_count;
    const char *filter; /* an expression over the base's fields; NULL or "": all rows */
    bool unique;        /* over record types only */
} pawl_view_definition;

/* When this returns, the view is durable and every shard knows it; building it has begun. Errors: PAWL_EINVAL
 * (the definition; the words begin with the member's path), PAWL_EEXISTS (the name is taken), PAWL_EREADONLY,
 * those of the log. */
PAWL_API int pawl_view_create(pawl_engine *engine, const pawl_view_definition *definition, pawl_error *error);

/* The view is gone when this returns; its rows are removed in the background. PAWL_ENOTFOUND; PAWL_EINVAL: a
 * package declares it. */
PAWL_API int pawl_view_drop(pawl_engine *engine, const char *name, pawl_error *error);

/* Build the view anew, beside the present one, which serves until the new one is built. PAWL_ENOTFOUND;
 * PAWL_EBUSY: it is being rebuilt already. */
PAWL_API int pawl_view_rebuild(pawl_engine *engine, const char *name, pawl_error *error);

/* Stop building a view (NULL: all views), or go on. Rows that are covered stay current meanwhile. It lasts
 * until it is taken back. PAWL_ENOTFOUND. */
PAWL_API int pawl_view_pause(pawl_engine *engine, const char *name, bool paused, pawl_error *error);

/* Scan at most so many base rows a second, on all shards together; 0: as fast as possible. It lasts until it is
 * changed. */
PAWL_API int pawl_view_throttle(pawl_engine *engine, uint64_t rows_per_second, pawl_error *error);

/* Wait until a view is built, at most for timeout (0: as long as it takes). PAWL_ENOTFOUND; PAWL_ETIMEOUT;
 * PAWL_EEXISTS: building it has failed, because it is unique and two rows are not: error names them. */
PAWL_API int pawl_view_wait(pawl_engine *engine, const char *name, pawl_duration timeout, pawl_error *error);

/* --- how views are doing --- */

typedef enum pawl_view_state {
    PAWL_VIEW_BUILDING = 1,
    PAWL_VIEW_BUILT = 2,
    PAWL_VIEW_FAILED = 3, /* a unique view, and two rows have equal keys: words names them */
} pawl_view_state;

/* Strings are borrowed until visit returns. */
typedef struct pawl_view_status {
    const char *name;
    const char *base;
    pawl_view_state state;
    bool declared; /* in a package */
    bool unique;
    bool rebuilding; /* it serves, and a new incarnation of it is being built: the progress is that one's */
    bool paused;
    uint32_t table;           /* of its rows: a new one for each incarnation */
    uint64_t tasks;           /* tasks of its build in group0 */
    uint64_t tasks_left;      /* of these, not finished */
    uint64_t rows;            /* view rows in the live state, of what is read: not of a new incarnation */
    uint64_t rows_done;       /* base rows that were scanned for it */
    uint64_t rows_total;      /* base rows that there are */
    double rate;              /* base rows a second, lately */
    double percent;           /* 0 to 100 */
    pawl_duration eta;        /* until it is built, at this rate; UINT64_MAX: not known */
    uint64_t rows_failed;     /* base rows that are left out because an expression fails on them */
    const char *first_failed; /* one of them, and why; "" if there is none */
    const char *words;        /* why it is failed, or why it does not go on; "" otherwise */
} pawl_view_status;

/* Return false to stop. */
typedef bool (*pawl_view_status_visit)(void *arg, const pawl_view_status *status);

/* All views, by name; or one. PAWL_ENOTFOUND: there is none of that name. */
PAWL_API int pawl_view_status_read(pawl_engine *engine, const char *name, pawl_view_status_visit visit,
                                   void *arg, pawl_error *error);

/* The same as JSON, a line for each, as `pawl view status --json` prints it. */
PAWL_API int pawl_view_status_list(pawl_engine *engine, const char *name, pawl_text *ret_text,
                                   pawl_error *error);

/* --- reading --- */

/* Which rows, and in which order. Zeros mean: all rows of all workspaces, ascending, whatever is covered.
 *
 *     pawl_value ada = pawl_value_string("Ada");
 *     pawl_cursor cursor = {0};
 *     pawl_view_query query = {.wsid = 7, .prefix = {&ada, 1}, .cursor = &cursor, .limit = 100};
 *     do
 *         status = pawl_view_scan(engine, "shop.by_customer", &query, visit, arg, NULL, &error);
 *     while (status == PAWL_OK && !cursor.done);
 *     pawl_cursor_free(&cursor);
 *
 * prefix, from and to are the first fields of a key, whole, and as many as are given: from {"Ada"} begins with
 * the first row of Ada, and from {"Ada"} exclusive with the first behind all of Ada's. They all hold together.
 * A value may be null (pawl_value_null), which comes before all others.
 *
 * A cursor may be used with other bounds, and in the other direction; with another view, or another workspace,
 * it is refused. */
typedef struct pawl_view_query {
    uint64_t wsid;   /* 0: all workspaces, one behind the other in an order that never changes */
    pawl_key prefix; /* rows whose key begins with these values; none: all */
    pawl_key from;   /* and that are not before this */
    pawl_key to;     /* and not behind this */
    bool from_exclusive;
    bool to_exclusive;
    bool descending;
    bool complete;       /* PAWL_ENOTBUILT, before any row, unless the view covers all that is asked for */
    pawl_cursor *cursor; /* where to go on, and where it has stopped; NULL: nobody will go on */
    size_t limit;        /* 0: there is none */
    uint64_t min_offset; /* as in pawl_read_options: of the workspace's partition; needs a workspace */
    pawl_duration timeout;
} pawl_view_query;

/* What an answer includes. Only a view that is being built has an answer that is not built: it has the rows of
 * what is covered, which are right and current. */
typedef struct pawl_view_answer {
    bool built;      /* all rows that were asked for are there */
    double covered;  /* the share of what was asked for that is covered, 0 to 1; of a workspace 0, 1, or 0.5 if
                      * it is covered in part. 1 only if it is built */
    uint64_t rows;   /* how many were visited */
    uint64_t offset; /* of the workspace's partition, that the answer includes; 0: it is of all workspaces */
} pawl_view_answer;

/* The row with this key, of which all fields are given: of a unique view the only one, of others the first.
 * Errors: PAWL_ENOTFOUND (the view, the workspace, or the row); PAWL_ENOTBUILT (no such row was found, and the
 * view does not cover the workspace yet); PAWL_EINVAL (the key); PAWL_ETIMEOUT (min_offset). */
PAWL_API int pawl_view_read(pawl_engine *engine, const char *view, uint64_t wsid, pawl_key key,
                            const pawl_read_options *options, pawl_row_visit visit, void *arg,
                            pawl_error *error);

/* Rows in the order of their keys, in snapshots of up to 1000. A row that changes its key meanwhile may be
 * visited twice, or not at all. If the view is rebuilt, or its lane is, the scan goes on in the new one.
 * ret_answer may be NULL. Errors: PAWL_ENOTFOUND (the view, also if it is dropped meanwhile; the workspace),
 * PAWL_ENOTBUILT (complete), PAWL_EINVAL (a key, the cursor, min_offset without a workspace), PAWL_ETOOBIG (the
 * first fields of a key have more bytes than are sorted by: 384), PAWL_ETIMEOUT. */
PAWL_API int pawl_view_scan(pawl_engine *engine, const char *view, const pawl_view_query *query,
                            pawl_row_visit visit, void *arg, pawl_view_answer *ret_answer, pawl_error *error);

/* The same as JSON (docs/API.md). key, prefix, from and to are JSON, too: an array of values, or an object with
 * the first fields of the key (data NULL: none); those of the query are not used. list makes a line for each
 * row. */
PAWL_API int pawl_view_get(pawl_engine *engine, const char *view, uint64_t wsid, pawl_bytes key,
                           const pawl_read_options *options, pawl_text *ret_text, pawl_error *error);
PAWL_API int pawl_view_list(pawl_engine *engine, const char *view, const pawl_view_query *query,
                            pawl_bytes prefix, pawl_bytes from, pawl_bytes to, pawl_text *ret_text,
                            pawl_view_answer *ret_answer, pawl_error *error);

/* A cursor as text that a client can keep, also over a restart, and back. The text has only letters, digits, -
 * and _. PAWL_EINVAL: it is no such text; PAWL_ENOMEM. */
PAWL_API int pawl_cursor_format(const pawl_cursor *cursor, pawl_text *ret_text, pawl_error *error);
PAWL_API int pawl_cursor_parse(pawl_engine *engine, const char *text, pawl_cursor *ret_cursor,
                               pawl_error *error);

/* --- tablets --- */

/* A tablet: a slice of a partition's tokens, over all tables. */
typedef struct pawl_tablet {
    uint32_t id;
    uint16_t partition;
    uint32_t node;
    uint32_t shard;
    uint64_t first_token;
    uint64_t last_token;
    uint32_t tasks;    /* unfinished tasks of view building */
    const char *stage; /* of a running operation: "", "split", "merge" */
} pawl_tablet;

typedef bool (*pawl_tablet_visit)(void *arg, const pawl_tablet *tablet);
PAWL_API int pawl_tablets_read(pawl_engine *engine, pawl_tablet_visit visit, void *arg, pawl_error *error);

/* The same as JSON, a line for each, as `pawl tablet list --json` prints it. */
PAWL_API int pawl_tablets_list(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);

/* Cut every tablet in two, or join pairs; builds go on. PAWL_EINVAL: there would be more than 64 in a
 * partition, or less than one; PAWL_EBUSY: another such operation is running. */
PAWL_API int pawl_tablets_split(pawl_engine *engine, pawl_error *error);
PAWL_API int pawl_tablets_merge(pawl_engine *engine, pawl_error *error);

/* A system table as JSON lines: nodes, tablets, views, view_building_tasks, view_build_status, built_views,
 * view_building_processing_base. PAWL_ENOTFOUND: there is no such table; error lists them. */
PAWL_API int pawl_system_read(pawl_engine *engine, const char *table, pawl_text *ret_text, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif

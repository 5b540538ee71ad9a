/* core/view/tables.h: the views of one store, kept current by every row that is put.
 *
 *     a base row is put ── covered? ──► old and new row of the view ──► removed, put        in one transaction
 *     refresh: views that group0 has ──► states read, made, dropped
 *     slice (core/view/slice.h): rows that were there before ──► covered
 *
 * A shard's live store has one, and so has its checkpoint; whoever writes the store owns it, on its thread. It
 * watches rows where they are put (core/state/overlay.h), so it does not matter what was known about a view when
 * the rows were derived.
 *
 * Invariants
 *   T1  At every commit, in each partition: the rows of a view = view(base rows of the covered keys); and the
 *       state has their digest, and counts what expressions fail on, and equal neighbours of unique views.
 *   T2  States and rows change in one transaction: flush puts the states before each commit. After an abort the
 *       states are read again before they are used.
 *   T3  A view's table without a state is nobody's: its rows are removed piece by piece. Dropping removes the
 *       states first, all in one transaction.
 *   T4  Nothing that is in a row stops it from being put: evaluation is total.
 *   T5  While a refresh has failed, or its transaction was aborted, no row is put: the next put, or slice,
 *       refreshes again first. */
#ifndef CORE_VIEW_TABLES_H
#define CORE_VIEW_TABLES_H

#include "base/partition_set.h"
#include "core/group0/building.h"
#include "core/state/digests.h"
#include "core/state/overlay.h"
#include "core/stream/applier.h"
#include "core/view/view_state.h"

/* A view over one generation of its base, in this store. */
struct view_table {
    struct view *view; /* held */
    uint32_t table;
    uint32_t base;
    bool failed;               /* group0 says FAILED */
    bool built;                /* group0 says SUCCESS */
    struct kept_state *states; /* by the partition's place in the set */
};

struct kept_state {
    struct view_state state;
    bool stale; /* a transaction was aborted: the store must be asked again (T2) */
    bool dirty; /* differs from the store's */
    struct kept_state *next_dirty;
};

struct view_tables {
    struct put_watch watch;
    struct apply_hook hook; /* for a shard's applier: flush, committed and aborted */
    pawl_store *store;
    struct partition_set set;
    uint32_t partitions;       /* of the node */
    struct view_table *tables; /* by base, then by table */
    size_t count;
    size_t room;
    const struct view_list *list; /* that it was last refreshed with; both stay valid */
    const struct schema *schema;
    bool refreshed;   /* it knows the views of that list */
    bool swept;       /* and the store has no states of others */
    bool fresh;       /* since the last commit (T5) */
    uint64_t version; /* another one when a view has come or gone, or may have begun to cover a partition */
    bool removing;    /* there may be rows of tables that are nobody's */
    struct kept_state *dirty;
    struct view_room was, is;
    struct arena memory; /* of a slice */
    const pawl_allocator *alloc;
};

void view_tables_init(struct view_tables *tables, pawl_store *store, struct partition_set set,
                      uint32_t partitions, const pawl_allocator *alloc);
void view_tables_release(struct view_tables *tables);

/* The views of this list are those that there are, over the generations of this schema. What this writes is in
 * the store's transaction. A view whose base has no rows in a partition is complete there at once. PAWL_ENOMEM,
 * PAWL_ECORRUPT, PAWL_EVERSION, those of the store: abort; the next put, or refresh, tries again (T5). */
int view_tables_refresh(struct view_tables *tables, const struct view_list *list, const struct schema *schema,
                        pawl_error *error);

/* NULL: no view is kept here, so that nobody need watch. */
struct put_watch *view_tables_watch(struct view_tables *tables);

/* How many rows a base row may bring with it: the most views that one base has. */
size_t view_tables_width(const struct view_tables *tables);

/* Before a commit: put changed states. Behind it: committed or aborted. */
int view_tables_flush(struct view_tables *tables);
void view_tables_committed(struct view_tables *tables);
void view_tables_aborted(struct view_tables *tables);

/* The state of a view's table in a partition of the set. NULL: there is no such table; or it cannot be read
 * now. Borrowed until the next refresh. */
struct kept_state *view_tables_state(struct view_tables *tables, uint32_t table, uint16_t partition);
const struct view_table *view_tables_find(const struct view_tables *tables, uint32_t table);

/* The digests of views that are complete in a partition, over records and what synchronous projectors fill, added
 * to a list of room for more. Returns how many there are. For the audit: only a table that is complete on both
 * sides can be compared. */
size_t view_tables_digests(struct view_tables *tables, uint16_t partition, struct table_digest *list,
                           size_t room);

/* A state is about to change. */
void view_tables_touch(struct view_tables *tables, struct kept_state *state);

/* Make sure that a state is as the store has it (T2). */
int view_tables_settle(struct view_tables *tables, struct kept_state *state);

/* Whether another row of the view has the same key fields: the first key_fields bytes. */
int view_has_equal(pawl_reader *reader, pawl_bytes key, size_t key_fields, bool *ret_has);

/* Remove a piece of rows that are nobody's, in the store's transaction, which must be empty. ret_more: there may
 * be more. Errors of the store, PAWL_ENOMEM. */
int view_tables_remove_piece(struct view_tables *tables, size_t rows_max, bool *ret_more);

#endif

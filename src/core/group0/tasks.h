/* core/group0/tasks.h: the unfinished tasks of view building, as group0 has them.
 *
 * A task says: build this view from the rows of this base in this tablet. Tasks that are made together, one a
 * tablet, form a group, and the ID of each is the group's first ID plus its tablet. So a million tasks take a
 * few bits each, and all of them can be made, aborted or deleted at once. IDs are never given twice, and
 * everyone who applies the same commands gives the same ones.
 *
 *     alive ──┬── finished ───────────────────────► gone        (the coordinator has the worker's word)
 *             ├── the view or base is dropped ────► gone
 *             └── aborted, for good ──┬─ adjusted ► gone, and new tasks for the tablets as they are now
 *                                     └─ rolled back ► gone, and a copy with a new ID
 *
 * Views and bases are named by the IDs of their tables (core/view/view.h, core/schema/schema.h), which tell the
 * generation too.
 *
 * Invariants
 *   K1  Groups are sorted by their first ID, and their ranges of IDs do not overlap.
 *   K2  At most one task of a view and a tablet is alive and not aborted.
 *   K3  The aborted flag is never cleared.
 *   K4  A group has at least one task: it is removed with its last one.
 *   K5  All groups are for the same number of tablets. */
#ifndef CORE_GROUP0_TASKS_H
#define CORE_GROUP0_TASKS_H

#include "base/bytes.h"
#include "base/hash.h"

#define TASKS_MAX ((uint64_t)1 << 32) /* tasks of all groups */

enum task_type { TASK_BUILD_RANGE = 1, TASK_PROCESS_STAGING = 2 };

/* One task, as it is handed out. */
struct task {
    uint64_t id;
    enum task_type type;
    bool aborted;
    uint32_t base; /* table */
    uint32_t view; /* table; 0: of process_staging */
    uint32_t tablet;
    uint32_t tablets; /* so many there are: the map may have others by the time that the task is looked at */
};

struct task_group {
    uint64_t first;
    enum task_type type;
    uint32_t base;
    uint32_t view;
    uint32_t tablets; /* how many the map had: bits of the two below */
    uint32_t made;    /* tasks when it was made */
    uint32_t left;    /* tasks that are there, the aborted ones included */
    uint32_t aborted_count;
    uint64_t *there;   /* by tablet */
    uint64_t *aborted; /* by tablet; NULL: none is */
};

struct tasks {
    struct task_group *groups;
    size_t count;
    size_t room;
    uint64_t next; /* the ID of the next group's tablet 0; begins with 1 */
    uint64_t left; /* of all groups */
    const pawl_allocator *alloc;
};

void tasks_init(struct tasks *tasks, const pawl_allocator *alloc);
void tasks_release(struct tasks *tasks);

/* Make build_range tasks of a view for each of these tablets (NULL: all of them) that has none which is not
 * aborted (K2). tablets: as many as the groups that are there have. ret_made: how many. PAWL_EINVAL: a tablet
 * beyond them, or another base than the view has. PAWL_ETOOBIG: more than TASKS_MAX. PAWL_ENOMEM. In all of
 * these nothing changes if they fail. */
int tasks_make(struct tasks *tasks, uint32_t base, uint32_t view, uint32_t tablets, const uint32_t *which,
               size_t count, uint32_t *ret_made);

/* Undo: remove all groups that were made since next was this. */
void tasks_unmake(struct tasks *tasks, uint64_t next);

/* PAWL_ENOTFOUND: it is gone, or never was. Logarithmic. */
int tasks_find(const struct tasks *tasks, uint64_t id, struct task *ret_task);

/* Remove these; those that are aborted or gone are left alone. ret_finished: how many were removed. */
void tasks_finish(struct tasks *tasks, const uint64_t *ids, size_t count, uint64_t *ret_finished);

/* Delete the tasks of a view, or of a base, flagged or not. */
void tasks_delete_view(struct tasks *tasks, uint32_t view);
void tasks_delete_base(struct tasks *tasks, uint32_t base);

/* The three steps of a tablet operation that concerns the whole map. abort: flag all. resize: replace all
 * tasks, flagged or not, by those for the tablets as they will be (2n and 2n + 1; or n / 2, once). rollback:
 * replace the flagged ones by copies with new IDs, but not where the tablet got a new task meanwhile.
 * PAWL_ETOOBIG: more than TASKS_MAX; PAWL_ENOMEM. */
int tasks_abort_all(struct tasks *tasks);
int tasks_resize(struct tasks *tasks, uint32_t to);
int tasks_rollback(struct tasks *tasks);

/* How many a base has; how many a view has; how many were made for the view's groups that are still there
 * (NULL is allowed). */
uint64_t tasks_of_base(const struct tasks *tasks, uint32_t base);
uint64_t tasks_of_view(const struct tasks *tasks, uint32_t view, uint64_t *ret_made);

/* Visit all tasks, by ID. Begin with a zeroed cursor; the tasks must not change meanwhile. */
struct tasks_cursor {
    size_t group;
    uint32_t tablet;
};
bool tasks_next(const struct tasks *tasks, struct tasks_cursor *cursor, struct task *ret_task);

/* The first tablet from this one on, in a group, that has a task which is there and not aborted; UINT32_MAX:
 * none. Whole words of bits are skipped. */
uint32_t task_group_next(const struct task_group *group, uint32_t tablet);

/* For snapshots: as bytes, appended by the encoder; and back, into tasks that are empty. PAWL_ECORRUPT: they
 * are not bytes of tasks, or break an invariant; PAWL_ENOMEM. Bytes behind them are left to the decoder. */
size_t tasks_encoded_size(const struct tasks *tasks);
void tasks_encode(const struct tasks *tasks, struct encoder *encoder);
int tasks_decode(struct tasks *tasks, struct decoder *decoder);

/* Chain all that they say into a digest. */
void tasks_digest(const struct tasks *tasks, struct hash128 *digest);

#endif

/* core/view/coordinator_choose.c: which batch a replica gets.
 *
 * A replica's cursor goes through the tablets. From where it stands, each group of tasks tells the next tablet
 * that has one, skipping whole words of bits; a tablet that is another replica's leads to the next partition.
 * So what a step costs depends on the groups and the replicas, not on the tasks (O5). */
#include "base/alloc.h"
#include "core/view/coordinator_impl.h"

#define WORDS_A_LOOK 64 /* of bits that are skipped */

bool view_is_open(const struct building *b, uint32_t view)
{
    if (view == 0)
        return true;
    const struct view_entry *entry = b->views ? view_list_by_table(b->views, view) : NULL;
    return entry && !entry->paused;
}

int choose_groups(struct coordinator *c, const struct building *b)
{
    size_t room = b->tasks.count;
    if (room > c->open_room) {
        size_t *more =
            mem_resize(c->options.allocator, c->open, c->open_room * sizeof *more, room * sizeof *more);
        if (!more)
            return PAWL_ENOMEM;
        c->open = more;
        c->open_room = room;
    }
    c->open_count = 0;
    if (b->processing == 0 || b->paused || b->map.resize_to != 0) /* O2 */
        return PAWL_OK;
    for (size_t i = 0; i < b->tasks.count; i++) {
        const struct task_group *g = &b->tasks.groups[i];
        if (g->base == b->processing && g->left > g->aborted_count && view_is_open(b, g->view))
            c->open[c->open_count++] = i;
    }
    return PAWL_OK;
}

static const struct task_group *open_group(const struct coordinator *c, const struct building *b, size_t i)
{
    return &b->tasks.groups[c->open[i]];
}

static void spend(uint32_t *looks, uint64_t count)
{
    *looks -= count < *looks ? (uint32_t)count : *looks;
}

/* The first tablet from this one on that has a task of the type; UINT32_MAX: none. */
static uint32_t next_tablet(const struct coordinator *c, const struct building *b, uint32_t type, uint32_t from,
                            uint32_t *looks)
{
    uint32_t next = UINT32_MAX;
    for (size_t i = 0; i < c->open_count; i++) {
        const struct task_group *g = open_group(c, b, i);
        if (g->type != (enum task_type)type)
            continue;
        uint32_t tablet = task_group_next(g, from);
        uint32_t end = tablet == UINT32_MAX ? g->tablets : tablet;
        spend(looks, 1 + (end > from ? (end - from) / (64 * WORDS_A_LOOK) : 0));
        if (tablet < next)
            next = tablet;
    }
    return next < b->map.tablets ? next : UINT32_MAX;
}

static bool is_failing(const struct coordinator *c, uint32_t view)
{
    for (size_t i = 0; i < c->failure_count; i++)
        if (c->failures[i].view == view)
            return true;
    return false;
}

static bool is_wanted(const struct coordinator *c, uint64_t id, uint32_t view)
{
    return !map_get_u64(&c->finished_set, id) && !is_failing(c, view);
}

static void take_tasks(const struct coordinator *c, const struct building *b, struct contact *contact,
                       uint32_t tablet, uint32_t *looks)
{
    struct batch *batch = &contact->batch;
    batch->base = b->processing;
    batch->tablet = tablet;
    batch->count = 0;
    spend(looks, c->open_count);
    for (size_t i = 0; i < c->open_count && batch->count < WORK_TASKS_MAX; i++) {
        const struct task_group *g = open_group(c, b, i);
        uint64_t id = g->first + tablet;
        if (g->type != (enum task_type)contact->type || task_group_next(g, tablet) != tablet
            || !is_wanted(c, id, g->view))
            continue;
        batch->ids[batch->count] = id;
        batch->views[batch->count++] = g->view;
    }
}

/* The batch that was called and not answered, without the tasks that are not to be built any more. */
static bool keep_batch(const struct coordinator *c, const struct building *b, struct batch *batch,
                       uint32_t *looks)
{
    size_t kept = 0;
    struct task task;
    spend(looks, batch->count);
    for (size_t i = 0; i < batch->count && batch->base == b->processing; i++) {
        uint64_t id = batch->ids[i];
        uint32_t view = batch->views[i];
        if (tasks_find(&b->tasks, id, &task) != PAWL_OK || task.aborted || !view_is_open(b, view)
            || !is_wanted(c, id, view))
            continue;
        batch->ids[kept] = id;
        batch->views[kept++] = view;
    }
    batch->count = kept;
    return kept > 0;
}

bool choose_batch(struct coordinator *c, const struct building *b, struct contact *contact, uint32_t *looks)
{
    if (c->open_count == 0)
        contact->batch.count = 0;
    if (keep_batch(c, b, &contact->batch, looks))
        return true;
    contact->error.code = PAWL_OK;
    uint32_t wide = b->map.tablets / b->map.partitions;
    while (contact->type != SWEEP_OVER && c->open_count > 0) {
        if (*looks == 0) {
            c->more = true;
            return false;
        }
        uint32_t tablet = next_tablet(c, b, contact->type, contact->tablet, looks);
        if (tablet == UINT32_MAX) {
            contact->type++;
            contact->tablet = 0;
            continue;
        }
        uint16_t partition = tablet_partition(&b->map, tablet);
        contact->tablet = tablet;
        if (!replica_equal(tablet_map_home(&b->map, partition), contact->place)) {
            contact->tablet = (partition + 1u) * wide;
            continue;
        }
        take_tasks(c, b, contact, tablet, looks);
        if (contact->batch.count > 0)
            return true;
        contact->tablet = tablet + 1;
    }
    return false;
}

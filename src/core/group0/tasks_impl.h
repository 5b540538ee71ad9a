/* core/group0/tasks_impl.h: what the files of the tasks share. */
#ifndef CORE_GROUP0_TASKS_IMPL_H
#define CORE_GROUP0_TASKS_IMPL_H

#include "core/group0/tasks.h"

/* All IDs are below it, so that adding a number of tablets to one never overflows. */
#define TASK_ID_MAX (UINT64_C(1) << 62)

static inline size_t task_words(uint32_t tablets)
{
    return ((size_t)tablets + 63) / 64;
}

/* The tasks of a word that are there and not aborted. */
static inline uint64_t task_group_alive(const struct task_group *group, size_t word)
{
    return group->there[word] & ~(group->aborted ? group->aborted[word] : 0);
}

static inline uint64_t task_bits_count(const uint64_t *bits, size_t words)
{
    uint64_t count = 0;
    for (size_t i = 0; i < words; i++)
        count += (uint64_t)__builtin_popcountll(bits[i]);
    return count;
}

/* A new group behind the others, with the type, base, view, tablets and there of this one. Takes there, also
 * on failure. Adds no group if there has no bit. PAWL_ETOOBIG: too many tasks, or the IDs are used up;
 * PAWL_ENOMEM. */
int tasks_add(struct tasks *tasks, struct task_group like);

/* Room for so many groups in all. PAWL_ENOMEM. */
int tasks_reserve(struct tasks *tasks, size_t count);

/* Remove the groups that have no task left (K4). */
void tasks_compact(struct tasks *tasks);

/* A new list of all groups, those of a view or a base's staging side by side: by view, base and first ID. There
 * is at least one group. NULL: no memory. */
struct task_group **tasks_by_view(const struct tasks *tasks);
void tasks_by_view_free(const struct tasks *tasks, struct task_group **list);

/* The end of the run, from this place of the list on, of groups of one view and base. */
size_t tasks_run_end(struct task_group *const *list, size_t count, size_t from);

#endif

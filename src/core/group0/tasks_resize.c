/* core/group0/tasks_resize.c: what a tablet operation that concerns the whole map does to the tasks.
 *
 *     begin: abort ──┬── finish: resize      all tasks ──► one new group a view, for the new tablets
 *                    └── roll back           the aborted ones ──► one new group a view, for the same tablets
 *
 * New groups are made in the order of views and bases, so that everyone gives the same IDs. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "core/group0/tasks.h"
#include "core/group0/tasks_impl.h"

/* All memory is taken first. */
int tasks_abort_all(struct tasks *t)
{
    for (size_t i = 0; i < t->count; i++) {
        struct task_group *g = &t->groups[i];
        if (!g->aborted)
            g->aborted = mem_new(t->alloc, task_words(g->tablets), sizeof *g->aborted);
        if (!g->aborted)
            goto no_memory;
    }
    for (size_t i = 0; i < t->count; i++) {
        struct task_group *g = &t->groups[i];
        memcpy(g->aborted, g->there, task_words(g->tablets) * sizeof *g->aborted);
        g->aborted_count = g->left;
    }
    return PAWL_OK;

no_memory:
    for (size_t i = 0; i < t->count; i++) {
        struct task_group *g = &t->groups[i];
        if (g->aborted_count > 0)
            continue;
        mem_free(t->alloc, g->aborted, task_words(g->tablets) * sizeof *g->aborted);
        g->aborted = NULL;
    }
    return PAWL_ENOMEM;
}

/* Each of 32 bits becomes two bits side by side: 0b101 gives 0b110011. */
static uint64_t double_bits(uint64_t half)
{
    uint64_t v = half & UINT32_MAX;
    v = (v | v << 16) & UINT64_C(0x0000ffff0000ffff);
    v = (v | v << 8) & UINT64_C(0x00ff00ff00ff00ff);
    v = (v | v << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    v = (v | v << 2) & UINT64_C(0x3333333333333333);
    v = (v | v << 1) & UINT64_C(0x5555555555555555);
    return v | v << 1;
}

/* Each two bits side by side become one of 32, which is set if one of them is. */
static uint64_t halve_bits(uint64_t v)
{
    v = (v | v >> 1) & UINT64_C(0x5555555555555555);
    v = (v | v >> 1) & UINT64_C(0x3333333333333333);
    v = (v | v >> 2) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    v = (v | v >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    v = (v | v >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (v | v >> 16) & UINT32_MAX;
}

/* Add the tablets that a group's become: 2n and 2n + 1, or n / 2. */
static void add_resized(const struct task_group *g, uint32_t to, uint64_t *bits)
{
    size_t from_words = task_words(g->tablets), to_words = task_words(to);
    if (to > g->tablets) {
        for (size_t i = 0; i < to_words; i++)
            bits[i] |= double_bits(g->there[i / 2] >> (i % 2 * 32));
        return;
    }
    for (size_t i = 0; i < from_words; i++)
        bits[i / 2] |= halve_bits(g->there[i]) << (i % 2 * 32);
}

/* What a run of groups becomes. */
typedef void merge_fn(struct task_group *const *run, size_t count, uint32_t tablets, uint64_t *bits);

static void merge_resized(struct task_group *const *run, size_t count, uint32_t tablets, uint64_t *bits)
{
    for (size_t i = 0; i < count; i++)
        add_resized(run[i], tablets, bits);
}

/* A task that was made since stands for an aborted one of the same tablet (K2). */
static void merge_aborted(struct task_group *const *run, size_t count, uint32_t tablets, uint64_t *bits)
{
    for (size_t word = 0; word < task_words(tablets); word++) {
        uint64_t alive = 0;
        for (size_t i = 0; i < count; i++) {
            alive |= task_group_alive(run[i], word);
            bits[word] |= run[i]->aborted ? run[i]->aborted[word] : 0;
        }
        bits[word] &= ~alive;
    }
}

/* Merge each run of groups of a view into a new group, added to these. PAWL_ENOMEM; PAWL_ETOOBIG. */
static int merge_all(const struct tasks *t, merge_fn *merge, uint32_t tablets, struct tasks *added)
{
    struct task_group **list = tasks_by_view(t);
    if (!list)
        return PAWL_ENOMEM;
    int status = PAWL_OK;
    for (size_t from = 0, end; from < t->count && status == PAWL_OK; from = end) {
        end = tasks_run_end(list, t->count, from);
        struct task_group like = *list[from];
        like.tablets = tablets;
        like.there = mem_new(t->alloc, task_words(tablets), sizeof *like.there);
        if (!like.there) {
            status = PAWL_ENOMEM;
            break;
        }
        merge(list + from, end - from, tablets, like.there);
        status = tasks_add(added, like);
    }
    tasks_by_view_free(t, list);
    return status;
}

int tasks_resize(struct tasks *t, uint32_t to)
{
    if (t->count == 0)
        return PAWL_OK;
    uint64_t tablets = t->groups[0].tablets;
    assert(to == tablets * 2 || (uint64_t)to * 2 == tablets);
    struct tasks resized;
    tasks_init(&resized, t->alloc);
    resized.next = t->next;
    int status = merge_all(t, merge_resized, to, &resized);
    if (status) {
        tasks_release(&resized);
        return status;
    }
    tasks_release(t);
    *t = resized;
    return PAWL_OK;
}

static void remove_aborted(struct tasks *t)
{
    for (size_t i = 0; i < t->count; i++) {
        struct task_group *g = &t->groups[i];
        if (!g->aborted)
            continue;
        for (size_t word = 0; word < task_words(g->tablets); word++)
            g->there[word] = task_group_alive(g, word);
        mem_free(t->alloc, g->aborted, task_words(g->tablets) * sizeof *g->aborted);
        g->aborted = NULL;
        g->left -= g->aborted_count;
        t->left -= g->aborted_count;
        g->aborted_count = 0;
    }
    tasks_compact(t);
}

int tasks_rollback(struct tasks *t)
{
    if (t->count == 0)
        return PAWL_OK;
    struct tasks copies;
    tasks_init(&copies, t->alloc);
    copies.next = t->next;
    int status = merge_all(t, merge_aborted, t->groups[0].tablets, &copies);
    if (status == PAWL_OK)
        status = tasks_reserve(t, t->count + copies.count);
    if (status) {
        tasks_release(&copies);
        return status;
    }
    remove_aborted(t);
    if (copies.count > 0)
        memcpy(t->groups + t->count, copies.groups, copies.count * sizeof *copies.groups);
    t->count += copies.count;
    t->left += copies.left;
    t->next = copies.next;
    copies.count = 0; /* its groups are t's now */
    tasks_release(&copies);
    return PAWL_OK;
}

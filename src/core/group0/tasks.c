#include "core/group0/tasks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/group0/tasks_impl.h"

void tasks_init(struct tasks *t, const pawl_allocator *alloc)
{
    *t = (struct tasks){.next = 1, .alloc = alloc};
}

static void group_release(const struct tasks *t, struct task_group *g)
{
    size_t size = task_words(g->tablets) * sizeof *g->there;
    mem_free(t->alloc, g->there, size);
    mem_free(t->alloc, g->aborted, size);
}

void tasks_release(struct tasks *t)
{
    for (size_t i = 0; i < t->count; i++)
        group_release(t, &t->groups[i]);
    mem_free(t->alloc, t->groups, t->room * sizeof *t->groups);
    tasks_init(t, t->alloc);
}

int tasks_reserve(struct tasks *t, size_t count)
{
    if (count <= t->room)
        return PAWL_OK;
    size_t room = t->room ? t->room : 4;
    while (room < count)
        room *= 2;
    struct task_group *groups =
        mem_resize(t->alloc, t->groups, t->room * sizeof *groups, room * sizeof *groups);
    if (!groups)
        return PAWL_ENOMEM;
    t->groups = groups;
    t->room = room;
    return PAWL_OK;
}

int tasks_add(struct tasks *t, struct task_group like)
{
    uint64_t made = task_bits_count(like.there, task_words(like.tablets));
    int status = PAWL_OK;
    if (made == 0)
        goto not_added;
    status = PAWL_ETOOBIG;
    if (made > TASKS_MAX - t->left || like.tablets > TASK_ID_MAX - t->next)
        goto not_added;
    status = tasks_reserve(t, t->count + 1);
    if (status)
        goto not_added;
    t->groups[t->count++] = (struct task_group){.first = t->next,
                                                .type = like.type,
                                                .base = like.base,
                                                .view = like.view,
                                                .tablets = like.tablets,
                                                .made = (uint32_t)made,
                                                .left = (uint32_t)made,
                                                .there = like.there};
    t->next += like.tablets;
    t->left += made;
    return PAWL_OK;

not_added:
    mem_free(t->alloc, like.there, task_words(like.tablets) * sizeof *like.there);
    return status;
}

static bool bit(const uint64_t *bits, uint32_t at)
{
    return (bits[at / 64] >> at % 64 & 1) != 0;
}

/* The tablets that are asked for. */
static int fill(uint64_t *bits, uint32_t tablets, const uint32_t *which, size_t count)
{
    if (!which) {
        size_t words = task_words(tablets);
        memset(bits, 0xff, words * sizeof *bits);
        bits[words - 1] = UINT64_MAX >> (63 - (tablets - 1) % 64);
        return PAWL_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (which[i] >= tablets)
            return PAWL_EINVAL;
        bits[which[i] / 64] |= UINT64_C(1) << which[i] % 64;
    }
    return PAWL_OK;
}

/* Without those that have a task which is not aborted (K2). */
static int leave_out(const struct tasks *t, uint32_t base, uint32_t view, uint64_t *bits)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct task_group *g = &t->groups[i];
        if (g->view != view)
            continue;
        if (g->base != base)
            return PAWL_EINVAL;
        for (size_t word = 0; word < task_words(g->tablets); word++)
            bits[word] &= ~task_group_alive(g, word);
    }
    return PAWL_OK;
}

int tasks_make(struct tasks *t, uint32_t base, uint32_t view, uint32_t tablets, const uint32_t *which,
               size_t count, uint32_t *ret_made)
{
    assert(base != 0 && view != 0 && tablets != 0);
    assert(t->count == 0 || t->groups[0].tablets == tablets); /* K5 */
    size_t words = task_words(tablets);
    uint64_t *bits = mem_new(t->alloc, words, sizeof *bits);
    if (!bits)
        return PAWL_ENOMEM;
    int status = fill(bits, tablets, which, count);
    if (status == PAWL_OK)
        status = leave_out(t, base, view, bits);
    if (status) {
        mem_free(t->alloc, bits, words * sizeof *bits);
        return status;
    }
    uint64_t before = t->left;
    status = tasks_add(
        t, (struct task_group){
               .type = TASK_BUILD_RANGE, .base = base, .view = view, .tablets = tablets, .there = bits});
    if (status == PAWL_OK)
        *ret_made = (uint32_t)(t->left - before);
    return status;
}

/* The group whose range of IDs has this one; NULL: none. */
static struct task_group *group_of(const struct tasks *t, uint64_t id)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->groups[middle].first <= id)
            low = middle + 1;
        else
            high = middle;
    }
    struct task_group *g = low > 0 ? &t->groups[low - 1] : NULL;
    return g && id - g->first < g->tablets ? g : NULL;
}

static struct task task_of(const struct task_group *g, uint32_t tablet)
{
    return (struct task){.id = g->first + tablet,
                         .type = g->type,
                         .aborted = g->aborted && bit(g->aborted, tablet),
                         .base = g->base,
                         .view = g->view,
                         .tablet = tablet,
                         .tablets = g->tablets};
}

void tasks_unmake(struct tasks *t, uint64_t next)
{
    while (t->count > 0 && t->groups[t->count - 1].first >= next) {
        struct task_group *last = &t->groups[--t->count];
        t->left -= last->left;
        group_release(t, last);
    }
    t->next = next;
}

int tasks_find(const struct tasks *t, uint64_t id, struct task *ret_task)
{
    const struct task_group *g = group_of(t, id);
    uint32_t tablet = g ? (uint32_t)(id - g->first) : 0;
    if (!g || !bit(g->there, tablet))
        return PAWL_ENOTFOUND;
    *ret_task = task_of(g, tablet);
    return PAWL_OK;
}

void tasks_compact(struct tasks *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->groups[i].left == 0)
            group_release(t, &t->groups[i]);
        else
            t->groups[kept++] = t->groups[i];
    }
    t->count = kept;
}

/* Groups that became empty stay until the end: removing each at once would move the others each time. */
void tasks_finish(struct tasks *t, const uint64_t *ids, size_t count, uint64_t *ret_finished)
{
    uint64_t finished = 0;
    bool emptied = false;
    for (size_t i = 0; i < count; i++) {
        struct task_group *g = group_of(t, ids[i]);
        uint32_t tablet = g ? (uint32_t)(ids[i] - g->first) : 0;
        uint64_t mask = UINT64_C(1) << tablet % 64;
        if (!g || (task_group_alive(g, tablet / 64) & mask) == 0)
            continue;
        g->there[tablet / 64] &= ~mask;
        emptied |= --g->left == 0;
        finished++;
    }
    t->left -= finished;
    if (emptied)
        tasks_compact(t);
    *ret_finished = finished;
}

static void group_empty(struct tasks *t, struct task_group *g)
{
    t->left -= g->left;
    g->left = 0;
}

void tasks_delete_view(struct tasks *t, uint32_t view)
{
    assert(view != 0);
    for (size_t i = 0; i < t->count; i++) {
        if (t->groups[i].view == view)
            group_empty(t, &t->groups[i]);
    }
    tasks_compact(t);
}

void tasks_delete_base(struct tasks *t, uint32_t base)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->groups[i].base == base)
            group_empty(t, &t->groups[i]);
    }
    tasks_compact(t);
}

uint64_t tasks_of_base(const struct tasks *t, uint32_t base)
{
    uint64_t left = 0;
    for (size_t i = 0; i < t->count; i++)
        left += t->groups[i].base == base ? t->groups[i].left : 0;
    return left;
}

uint64_t tasks_of_view(const struct tasks *t, uint32_t view, uint64_t *ret_made)
{
    uint64_t left = 0, made = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->groups[i].view != view)
            continue;
        left += t->groups[i].left;
        made += t->groups[i].made;
    }
    if (ret_made)
        *ret_made = made;
    return left;
}

/* The first tablet from this one on that has a task; alive: one that is not aborted. */
static uint32_t next_tablet(const struct task_group *g, uint32_t tablet, bool alive)
{
    if (tablet >= g->tablets)
        return UINT32_MAX;
    uint64_t mask = UINT64_MAX << tablet % 64;
    for (size_t word = tablet / 64; word < task_words(g->tablets); word++) {
        uint64_t bits = (alive ? task_group_alive(g, word) : g->there[word]) & mask;
        if (bits)
            return (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
        mask = UINT64_MAX;
    }
    return UINT32_MAX;
}

uint32_t task_group_next(const struct task_group *g, uint32_t tablet)
{
    return next_tablet(g, tablet, true);
}

bool tasks_next(const struct tasks *t, struct tasks_cursor *cursor, struct task *ret_task)
{
    for (; cursor->group < t->count; cursor->group++, cursor->tablet = 0) {
        const struct task_group *g = &t->groups[cursor->group];
        uint32_t tablet = next_tablet(g, cursor->tablet, false);
        if (tablet == UINT32_MAX)
            continue;
        *ret_task = task_of(g, tablet);
        cursor->tablet = tablet + 1;
        return true;
    }
    return false;
}

static int by_view(const void *a, const void *b)
{
    const struct task_group *x = *(struct task_group *const *)a, *y = *(struct task_group *const *)b;
    if (x->view != y->view)
        return x->view < y->view ? -1 : 1;
    if (x->base != y->base)
        return x->base < y->base ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

struct task_group **tasks_by_view(const struct tasks *t)
{
    assert(t->count > 0);
    struct task_group **list = mem_new(t->alloc, t->count, sizeof *list);
    if (!list)
        return NULL;
    for (size_t i = 0; i < t->count; i++)
        list[i] = &t->groups[i];
    qsort(list, t->count, sizeof *list, by_view);
    return list;
}

void tasks_by_view_free(const struct tasks *t, struct task_group **list)
{
    mem_free(t->alloc, list, t->count * sizeof *list);
}

size_t tasks_run_end(struct task_group *const *list, size_t count, size_t from)
{
    size_t end = from + 1;
    while (end < count && list[end]->view == list[from]->view && list[end]->base == list[from]->base)
        end++;
    return end;
}

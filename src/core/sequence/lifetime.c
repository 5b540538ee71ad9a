/* core/sequence/lifetime.c: how a sequencer begins, who is told that it is ready, and how it ends.
 *
 * It ends when nothing is under way that would come back to it: not the task that begins it, not a write, not a
 * scan. A timer is cancelled; a storage call cannot be, and is waited for. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "core/sequence/sequencer.h"

#define LIMIT_MAX ((uint32_t)1 << 28)

static void *counting_resize(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    pawl_sequencer *s = ctx;
    void *moved = mem_resize(s->options.allocator, memory, old_size, new_size);
    if (moved || new_size == 0)
        figure_add(&s->figures.memory_bytes, new_size - old_size);
    return moved;
}

static void fill_u32(uint32_t *option, uint32_t fallback)
{
    *option = *option ? *option : fallback;
}

static void fill_duration(pawl_duration *option, pawl_duration fallback)
{
    *option = *option ? *option : fallback;
}

static void fill_limits(pawl_sequencer_limits *l)
{
    fill_u32(&l->flush_events, 100);
    fill_duration(&l->flush_interval, 500 * PAWL_MILLISECOND);
    fill_u32(&l->unflushed_max, 65536);
    fill_u32(&l->staged_max, 4096);
    fill_u32(&l->workspaces_max, 100000);
    fill_u32(&l->recovery_batch, 65536);
    fill_duration(&l->retry_min, 10 * PAWL_MILLISECOND);
    fill_duration(&l->retry_max, PAWL_SECOND);
    fill_duration(&l->close_timeout, 5 * PAWL_SECOND);
}

int sequencer_limits_fill(pawl_sequencer_limits *l, pawl_error *error)
{
    fill_limits(l);
    const struct {
        const char *name;
        uint32_t count;
    } counts[] = {{"unflushed_max", l->unflushed_max},
                  {"staged_max", l->staged_max},
                  {"workspaces_max", l->workspaces_max},
                  {"recovery_batch", l->recovery_batch}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].count > LIMIT_MAX)
            return error_set(error, PAWL_EINVAL, "%s is %u; at most %u", counts[i].name, counts[i].count,
                             LIMIT_MAX);
    if (l->staged_max & (l->staged_max - 1))
        return error_set(error, PAWL_EINVAL, "staged_max is %u; it must be a power of two, at most %u",
                         l->staged_max, LIMIT_MAX);
    if (l->retry_min > l->retry_max)
        return error_set(error, PAWL_EINVAL,
                         "retry_min is %" PRIu64 " ns; at most retry_max, which is %" PRIu64 " ns",
                         l->retry_min, l->retry_max);
    return PAWL_OK;
}

static int check_options(pawl_sequencer_options *o, pawl_error *error)
{
    if (!o->env || o->shard >= pawl_env_shards(o->env))
        return error_set(error, PAWL_EINVAL, "there is no shard %u", o->shard);
    const pawl_sequence_storage *storage = &o->storage;
    if (!storage->read_numbers || !storage->read_last_offset || !storage->write_values_and_offset
        || !storage->scan_log)
        return error_set(error, PAWL_EINVAL, "the storage lacks a function");
    return sequencer_limits_fill(&o->limits, error);
}

/* The changes of as many events as may be staged with a few numbers each, and at least of two with many. */
static size_t changes_room(const pawl_sequencer *s)
{
    size_t room = (size_t)s->options.limits.staged_max * 4;
    while (room < (size_t)s->kinds.sequences_max * 2)
        room *= 2;
    return room;
}

/* A workspace's numbers, and its kind. */
static size_t numbers_room(const pawl_sequencer *s)
{
    return s->kinds.sequences_max + (size_t)1;
}

static int allocate(pawl_sequencer *s)
{
    const pawl_allocator *alloc = &s->counting;
    struct flusher *f = &s->flusher;
    const pawl_sequencer_limits *l = &s->options.limits;
    uint32_t values = l->unflushed_max > l->recovery_batch ? l->unflushed_max : l->recovery_batch;
    f->room = values + s->kinds.sequences_max + l->staged_max + 1; /* a kind for each event, too */
    f->gathered = mem_take(alloc, f->room, sizeof f->gathered[0]);
    f->rows = mem_take(alloc, f->room, sizeof f->rows[0]);
    s->open.before = mem_new(alloc, s->kinds.sequences_max, sizeof s->open.before[0]);
    s->actualizer.numbers = mem_new(alloc, numbers_room(s), sizeof s->actualizer.numbers[0]);
    if (!f->gathered || !f->rows || !s->open.before || !s->actualizer.numbers
        || table_init(&s->table, alloc, &s->kinds, l->workspaces_max)
        || ring_init(&s->staged, alloc, l->staged_max, sizeof(struct staged_event))
        || ring_init(&s->changes, alloc, changes_room(s), sizeof(struct change)))
        return PAWL_ENOMEM;
    return PAWL_OK;
}

void sequencer_release(pawl_sequencer *s)
{
    const pawl_allocator *alloc = &s->counting;
    struct flusher *f = &s->flusher;
    map_release(&s->actualizer.asides);
    ring_release(&s->changes);
    ring_release(&s->staged);
    table_release(&s->table);
    mem_free(alloc, s->actualizer.numbers, numbers_room(s) * sizeof s->actualizer.numbers[0]);
    mem_free(alloc, s->open.before, s->kinds.sequences_max * sizeof s->open.before[0]);
    mem_free(alloc, f->rows, f->room * sizeof f->rows[0]);
    mem_free(alloc, f->gathered, f->room * sizeof f->gathered[0]);
    kinds_release(&s->kinds);
    mem_free(s->options.allocator, s, sizeof *s);
}

static void begin(pawl_task *task)
{
    pawl_sequencer *s = heap_entry(task, pawl_sequencer, begin);
    s->begun = true;
    if (s->closed) {
        sequencer_close_step(s);
        return;
    }
    sequencer_move(s, PAWL_SEQUENCER_RECOVERING);
    s->actualizer.began = pawl_env_now(s->env);
    actualizer_run(s);
}

static void close_late(pawl_timer *timer)
{
    pawl_sequencer *s = heap_entry(timer, pawl_sequencer, close_timer);
    s->late = true;
    sequencer_close_step(s);
}

int pawl_sequencer_new(const pawl_sequencer_options *options, pawl_sequencer **ret_sequencer, pawl_error *error)
{
    pawl_sequencer_options filled = *options;
    int status = check_options(&filled, error);
    if (status)
        return status;
    pawl_sequencer *s = mem_new(filled.allocator, 1, sizeof *s);
    if (!s)
        return error_set(error, PAWL_ENOMEM, "no memory for a sequencer");
    s->options = filled;
    s->env = filled.env;
    s->counting = (pawl_allocator){.resize = counting_resize, .ctx = s};
    s->unflushed_near = filled.limits.unflushed_max - filled.limits.unflushed_max / 4;
    s->begin.fn = begin;
    s->close_timer.fn = close_late;
    flusher_init(s);
    actualizer_init(s);
    ready_init(s);
    figure_set(&s->figures.memory_bytes, sizeof *s);
    status = kinds_init(&s->kinds, &s->counting, filled.kinds, filled.kind_count, error);
    if (status == PAWL_OK && allocate(s))
        status = error_set(error, PAWL_ENOMEM, "no memory for a sequencer");
    s->options.kinds = NULL;
    if (status == PAWL_OK && pawl_env_post(s->env, filled.shard, &s->begin))
        status = error_set(error, PAWL_ECLOSED, "the env is closed");
    if (status) {
        sequencer_release(s);
        return status;
    }
    *ret_sequencer = s;
    return PAWL_OK;
}

pawl_sequencer_state pawl_sequencer_state_get(const pawl_sequencer *s)
{
    return (pawl_sequencer_state)atomic_load_explicit(&s->status, memory_order_acquire);
}

void pawl_sequencer_figures_get(const pawl_sequencer *s, pawl_sequencer_figures *ret_figures)
{
    ret_figures->state = pawl_sequencer_state_get(s);
#define X(name) ret_figures->name = figure_get(&s->figures.name);
    SEQUENCER_FIGURES(X)
#undef X
}

void sequencer_figures_keep(pawl_sequencer_figures *sum, const pawl_sequencer_figures *ended)
{
#define X(name) sum->name += ended->name;
    SEQUENCER_COUNTERS(X)
#undef X
#define X(name) sum->name = ended->name > sum->name ? ended->name : sum->name;
    SEQUENCER_TIMES(X)
#undef X
}

void pawl_sequencer_figures_add(pawl_sequencer_figures *to, const pawl_sequencer_figures *more)
{
    sequencer_figures_keep(to, more);
#define X(name) to->name += more->name;
    SEQUENCER_GAUGES(X)
#undef X
}

const pawl_error *pawl_sequencer_error(const pawl_sequencer *s)
{
    return &s->error;
}

void sequencer_tell(pawl_sequencer *s, int status)
{
    while (s->waiters) {
        struct sequencer_waiter *waiter = s->waiters;
        s->waiters = waiter->next;
        waiter->fn(waiter, status);
    }
    ready_look(s);
}

void sequencer_wait(pawl_sequencer *s, struct sequencer_waiter *waiter)
{
    waiter->next = s->waiters;
    s->waiters = waiter;
    if (s->closed)
        sequencer_tell(s, PAWL_ECLOSED);
    else if (s->refused)
        sequencer_tell(s, s->refused);
    else if (sequencer_state(s) == PAWL_SEQUENCER_READY || sequencer_state(s) == PAWL_SEQUENCER_EVENTING)
        sequencer_tell(s, PAWL_OK);
}

void sequencer_unwait(pawl_sequencer *s, struct sequencer_waiter *waiter)
{
    for (struct sequencer_waiter **at = &s->waiters; *at; at = &(*at)->next)
        if (*at == waiter) {
            *at = waiter->next;
            return;
        }
}

void sequencer_close(pawl_sequencer *s, void (*closed)(pawl_sequencer *s, void *arg, int status), void *arg)
{
    assert(!s->closed);
    s->closed = closed;
    s->closed_arg = arg;
    atomic_store_explicit(&s->closing, true, memory_order_relaxed);
    s->last_flush = sequencer_state(s) == PAWL_SEQUENCER_READY || sequencer_state(s) == PAWL_SEQUENCER_EVENTING;
    if (s->last_flush) /* else there are none, and the pool may be at work on the table */
        sequencer_forget_events(s);
    if (sequencer_state(s) != PAWL_SEQUENCER_FINISHED)
        sequencer_move(s, PAWL_SEQUENCER_FINISHED);
    pawl_env_cancel(s->env, &s->ready.timer);
    sequencer_tell(s, PAWL_ECLOSED);
    ready_tell_all(s, PAWL_ECLOSED);
    if (s->begun)
        pawl_env_cancel(s->env, &s->actualizer.timer);
    if (s->last_flush) {
        s->flusher.retrying = false; /* the time is short: try at once */
        pawl_env_after(s->env, &s->close_timer, s->options.limits.close_timeout);
        flusher_kick(s);
    }
    sequencer_close_step(s);
}

void sequencer_close_step(pawl_sequencer *s)
{
    if (!s->closed || !s->begun || s->flusher.busy || s->actualizer.busy)
        return;
    bool left = s->last_flush && flusher_has_work(s);
    if (left && !s->late) {
        flusher_kick(s);
        if (!s->late)
            return;
    }
    pawl_env_cancel(s->env, &s->close_timer);
    pawl_env_cancel(s->env, &s->flusher.timer);
    s->closed(s, s->closed_arg, left ? PAWL_ETIMEOUT : PAWL_OK);
}

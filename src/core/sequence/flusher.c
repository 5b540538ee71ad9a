/* core/sequence/flusher.c: changed values to the storage, in the background.
 *
 *                 flush_events, the interval,              write
 *      gathering ──── or nearly too many ────► rows ── work in the pool ──► written: gathering again
 *                                               ▲                    │
 *                                               └─ delay, doubling ──┘ failed
 *
 * A number of a durable event goes into a row at once: a new one at the end of the batch, or the one that its
 * sequence has there already. Collecting exchanges the two arrays of rows, however many there are; a value that
 * changes during the write gets a row in the next batch. Rows that failed are tried again as they are: they are
 * old, not wrong, and the offset that goes with them is as old. */
#include "core/sequence/sequencer.h"

#include "base/error.h"
#include "base/heap.h"

void flusher_collect(pawl_sequencer *s, uint64_t upto)
{
    struct flusher *f = &s->flusher;
    assert(!f->loaded);
    pawl_sequence_row *written = f->rows;
    f->rows = f->gathered;
    f->gathered = written;
    f->row_count = f->gathered_count;
    f->gathered_count = 0;
    table_write_begin(&s->table);
    f->upto = upto;
    f->loaded = true;
    f->events = 0;
}

void flusher_put_kind(pawl_sequencer *s, struct record *record)
{
    struct flusher *f = &s->flusher;
    assert(f->gathered_count < f->room);
    f->gathered[f->gathered_count++] =
        (pawl_sequence_row){record->wsid, kind_number(s->kinds.list[record->kind].name), PAWL_SEQUENCE_KIND};
    figure_add(&s->figures.unflushed, 1);
    record->known = true;
}

void flusher_written(pawl_sequencer *s)
{
    struct flusher *f = &s->flusher;
    table_write_end(&s->table);
    figure_set(&s->figures.unflushed, figure_get(&s->figures.unflushed) - f->row_count);
    figure_add(&s->figures.rows_written, f->row_count);
    figure_add(&s->figures.flushes, 1);
    figure_set(&s->figures.offset_stored, f->upto);
    f->row_count = 0;
    f->loaded = false;
    table_trim(&s->table);
    figure_set(&s->figures.workspaces, s->table.count);
    figure_set(&s->figures.evictions, s->table.evictions);
}

bool flusher_has_work(const pawl_sequencer *s)
{
    return s->flusher.loaded || s->flusher.events > 0;
}

/* In the pool. */
static void run_write(pawl_work *work)
{
    pawl_sequencer *s = heap_entry(work, pawl_sequencer, flusher.work);
    struct flusher *f = &s->flusher;
    error_clear(&f->error);
    f->status = s->options.storage.write_values_and_offset(s->options.storage.ctx, f->rows, f->row_count,
                                                           f->upto, &f->error);
}

void flusher_count_time(pawl_sequencer *s, pawl_instant began)
{
    uint64_t took = pawl_env_now(s->env).ns - began.ns;
    figure_add(&s->figures.flush_ns_total, took);
    figure_set(&s->figures.flush_ns_last, took);
    if (took > figure_get(&s->figures.flush_ns_max))
        figure_set(&s->figures.flush_ns_max, took);
}

static void write_failed(pawl_sequencer *s)
{
    struct flusher *f = &s->flusher;
    figure_add(&s->figures.flush_failures, 1);
    s->error = f->error;
    error_wrap(&s->error, f->status, "cannot write %zu values", f->row_count);
    f->retrying = true;
    f->delay = delay_doubled(f->delay, &s->options.limits);
    pawl_env_after(s->env, &f->timer, f->delay);
}

static bool is_time(const pawl_sequencer *s)
{
    return s->flusher.events >= s->options.limits.flush_events
           || figure_get(&s->figures.unflushed) >= s->unflushed_near;
}

static void write_succeeded(pawl_sequencer *s)
{
    struct flusher *f = &s->flusher;
    flusher_count_time(s, f->began);
    f->delay = 0;
    flusher_written(s);
    ready_look(s);
    if (is_time(s))
        flusher_kick(s);
    else if (f->events)
        pawl_env_after(s->env, &f->timer, s->options.limits.flush_interval);
}

static void write_done(pawl_work *work)
{
    pawl_sequencer *s = heap_entry(work, pawl_sequencer, flusher.work);
    s->flusher.busy = false;
    if (sequencer_state(s) == PAWL_SEQUENCER_RECOVERING) {
        flusher_drop(s);
        actualizer_run(s);
        return;
    }
    if (s->closed && !s->last_flush) {
        sequencer_close_step(s);
        return;
    }
    if (s->flusher.status)
        write_failed(s);
    else
        write_succeeded(s);
    if (s->closed)
        sequencer_close_step(s);
}

static void timer_fired(pawl_timer *timer)
{
    pawl_sequencer *s = heap_entry(timer, pawl_sequencer, flusher.timer);
    s->flusher.retrying = false;
    flusher_kick(s);
}

void flusher_init(pawl_sequencer *s)
{
    s->flusher.timer.fn = timer_fired;
    s->flusher.work.fn = run_write;
    s->flusher.work.done = write_done;
}

static void submit(pawl_sequencer *s)
{
    struct flusher *f = &s->flusher;
    pawl_env_cancel(s->env, &f->timer);
    f->began = pawl_env_now(s->env);
    f->busy = true;
    if (pawl_env_work(s->env, &f->work)) { /* the env is closing: no write will be made any more */
        f->busy = false;
        f->retrying = true;
        s->late = true;
    }
}

void flusher_kick(pawl_sequencer *s)
{
    struct flusher *f = &s->flusher;
    if (f->busy || f->retrying)
        return;
    if (!flusher_has_work(s))
        return;
    if (!f->loaded)
        flusher_collect(s, figure_get(&s->figures.offset_flushed));
    submit(s);
}

void flusher_due(pawl_sequencer *s)
{
    struct flusher *f = &s->flusher;
    if (f->busy || f->retrying)
        return;
    if (is_time(s))
        flusher_kick(s);
    else if (f->events == 1)
        pawl_env_after(s->env, &f->timer, s->options.limits.flush_interval);
}

void flusher_drop(pawl_sequencer *s)
{
    struct flusher *f = &s->flusher;
    pawl_env_cancel(s->env, &f->timer);
    f->gathered_count = 0;
    f->events = 0;
    f->retrying = false;
    f->delay = 0;
    if (f->busy)
        return;
    f->row_count = 0;
    f->loaded = false;
}

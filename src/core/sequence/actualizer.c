/* core/sequence/actualizer.c: recovery: it reads the events of the log that the storage lacks.
 *
 *      flusher's write over ──► [pool: read last offset ─► scan the log ─► write] ──► READY
 *                                     ▲                              │
 *                                     └──── delay, doubling ─────────┘ failed; but corrupt is final
 *
 * The scan fills the table itself: the workspaces of the tail are the ones that will be asked for next. When
 * recovery_batch values have gathered they are written, and their workspaces may be evicted, so that a tail of
 * any length needs no more memory than the cache. The offset is written last, when the whole tail was judged: a
 * recovery that refuses the log leaves the offset before the event that shows the fault, and the next recovery
 * finds that event again.
 *
 * While recovering, a record's given is the greatest of what the storage had and what the log has shown; a
 * place without a row (record_rows) is one of which the log has shown nothing yet.
 *
 * Two sorts of numbers are kept beside the records, in one map.
 *
 * Suspects: a storage may be ahead of its own offset, because values are written before the offset. It must not
 * be ahead of the log: at the end of the scan the log must have shown a number as great as each such value.
 *
 * Strangers: numbers of the log, and kinds, whose kind or sequence is not known (any more) have no place in a
 * record, but the storage must have them before its offset passes their event; else they would be given again
 * when the kind comes back. */
#include "core/sequence/sequencer.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

struct aside_key {
    uint64_t wsid;
    uint64_t seq;
};

struct aside {
    uint64_t shown;   /* the greatest number that the log has shown */
    uint64_t durable; /* the greatest of that and what the storage had */
    bool dirty;       /* a stranger that the storage is to get; never a suspect, which has a record for that */
};

static const struct pawl_sequence_storage *storage_of(const pawl_sequencer *s)
{
    return &s->options.storage;
}

static void add_stranger_rows(pawl_sequencer *s)
{
    struct flusher *f = &s->flusher;
    size_t cursor = 0;
    const void *key;
    void *value;
    while (map_next(&s->actualizer.asides, &cursor, &key, &value)) {
        const struct aside_key *who = key;
        struct aside *aside = value;
        if (aside->dirty)
            f->rows[f->row_count++] = (pawl_sequence_row){who->wsid, aside->durable, (uint16_t)who->seq};
        aside->dirty = false;
    }
}

/* One that the storage is ahead of keeps them all: there is at most one torn write of them. */
static void forget_asides(pawl_sequencer *s)
{
    size_t cursor = 0;
    const void *key;
    void *value;
    while (map_next(&s->actualizer.asides, &cursor, &key, &value)) {
        const struct aside *aside = value;
        if (aside->durable > aside->shown)
            return;
    }
    map_clear(&s->actualizer.asides);
}

/* Write what has gathered, with this offset. */
static int write_out(pawl_sequencer *s, uint64_t upto)
{
    struct flusher *f = &s->flusher;
    pawl_error *error = &s->actualizer.error;
    flusher_collect(s, upto);
    add_stranger_rows(s);
    pawl_instant began = pawl_env_now(s->env);
    int status =
        storage_of(s)->write_values_and_offset(storage_of(s)->ctx, f->rows, f->row_count, f->upto, error);
    if (status) {
        figure_add(&s->figures.flush_failures, 1);
        return error_wrap(error, status, "cannot write %zu values", f->row_count);
    }
    flusher_count_time(s, began);
    flusher_written(s);
    forget_asides(s);
    return PAWL_OK;
}

/* In the middle of the scan: the offset stays where it was, because the events after it are not judged yet. */
static int write_some(pawl_sequencer *s)
{
    return write_out(s, s->actualizer.stored);
}

/* There is room for two rows more: a number's, and that of its workspace's kind. */
static int make_room(pawl_sequencer *s)
{
    return figure_get(&s->figures.unflushed) + 1 < s->flusher.room ? PAWL_OK : write_some(s);
}

static uint64_t aside_hash(uint64_t wsid, uint16_t seq)
{
    return hash_mix(wsid ^ hash_mix(seq));
}

static int aside_put(pawl_sequencer *s, uint64_t wsid, uint16_t seq, uint64_t durable, struct aside **ret_aside)
{
    struct aside_key key = {wsid, seq};
    void *value;
    bool fresh;
    if (map_put(&s->actualizer.asides, aside_hash(wsid, seq), &key, &value, &fresh))
        return error_set(&s->actualizer.error, PAWL_ENOMEM, "no memory for numbers beside the workspaces");
    *ret_aside = value;
    if (fresh)
        (*ret_aside)->durable = durable;
    return PAWL_OK;
}

static struct aside *aside_get(const pawl_sequencer *s, uint64_t wsid, uint16_t seq)
{
    struct aside_key key = {wsid, seq};
    return map_get(&s->actualizer.asides, aside_hash(wsid, seq), &key);
}

static void aside_show(struct aside *aside, uint64_t number)
{
    aside->shown = number > aside->shown ? number : aside->shown;
    aside->durable = aside->shown > aside->durable ? aside->shown : aside->durable;
}

static int read_one(pawl_sequencer *s, uint64_t wsid, uint16_t seq, uint64_t *ret_number)
{
    pawl_error *error = &s->actualizer.error;
    int status = storage_of(s)->read_numbers(storage_of(s)->ctx, wsid, &seq, 1, ret_number, error);
    if (status)
        return error_wrap(error, status, "cannot read the numbers of workspace %llu", (unsigned long long)wsid);
    return PAWL_OK;
}

static void aside_soil(pawl_sequencer *s, struct aside *aside)
{
    if (!aside->dirty)
        figure_add(&s->figures.unflushed, 1);
    aside->dirty = true;
}

static int take_stranger(pawl_sequencer *s, uint64_t wsid, const pawl_sequence_number *number)
{
    if (number->seq == PAWL_SEQUENCE_KIND)
        return error_set(&s->actualizer.error, PAWL_ECORRUPT,
                         "the log has a number of sequence %u, which is none, for workspace %llu",
                         PAWL_SEQUENCE_KIND, (unsigned long long)wsid);
    int status = make_room(s);
    if (status)
        return status;
    struct aside *aside = aside_get(s, wsid, number->seq);
    if (!aside) {
        uint64_t stored = 0;
        status = read_one(s, wsid, number->seq, &stored);
        if (status == PAWL_OK)
            status = aside_put(s, wsid, number->seq, stored, &aside);
        if (status)
            return status;
    }
    aside_show(aside, number->number);
    aside_soil(s, aside);
    return PAWL_OK;
}

static int refuse_kind(pawl_sequencer *s, const pawl_sequence_event *event, uint64_t before)
{
    return error_set(&s->actualizer.error, PAWL_ECORRUPT,
                     "the log has workspace %llu with kind %u at offset %llu, and with kind %llu before",
                     (unsigned long long)event->wsid, event->kind, (unsigned long long)event->offset,
                     (unsigned long long)before);
}

/* The workspace of an event whose kind no record can have. Its kind is kept as its numbers are. */
static int take_unknown_kind(pawl_sequencer *s, const pawl_sequence_event *event)
{
    const struct record *record = table_find(&s->table, event->wsid);
    if (record) {
        assert(s->kinds.list); /* a record is of a known kind */
        return refuse_kind(s, event, s->kinds.list[record->kind].name);
    }
    struct aside *aside = aside_get(s, event->wsid, PAWL_SEQUENCE_KIND);
    uint64_t kind = kind_number(event->kind);
    if (aside)
        return aside->shown == kind ? PAWL_OK : refuse_kind(s, event, aside->shown - 1);
    int status = make_room(s);
    uint64_t stored = 0;
    if (status == PAWL_OK && !s->options.kinds_elsewhere)
        status = read_one(s, event->wsid, PAWL_SEQUENCE_KIND, &stored);
    if (status == PAWL_OK && stored && stored != kind)
        return refuse_kind(s, event, stored - 1);
    if (status == PAWL_OK)
        status = aside_put(s, event->wsid, PAWL_SEQUENCE_KIND, kind, &aside);
    if (status)
        return status;
    aside_show(aside, kind);
    if (stored == 0 && !s->options.kinds_elsewhere)
        aside_soil(s, aside);
    return PAWL_OK;
}

/* The storage had more than the first number that the log shows, or may have: it is a suspect. */
static int take_suspect(pawl_sequencer *s, uint64_t wsid, const pawl_sequence_number *number, uint64_t stored,
                        bool first)
{
    struct aside *aside = aside_get(s, wsid, number->seq);
    if (!aside && first && stored > number->number) {
        int status = aside_put(s, wsid, number->seq, stored, &aside);
        if (status)
            return status;
    }
    if (aside)
        aside_show(aside, number->number);
    return PAWL_OK;
}

static int take_number(pawl_sequencer *s, struct record *record, const struct kind *kind,
                       const pawl_sequence_number *number)
{
    uint16_t place = places_find(&kind->places, number->seq);
    if (place == NO_PLACE)
        return take_stranger(s, record->wsid, number);
    if (number->number == 0) /* it says nothing */
        return PAWL_OK;
    int status = make_room(s);
    uint64_t *given = &record->given[place];
    bool first = record_rows(record, kind)[place] == 0;
    if (status == PAWL_OK && ((first && number->number < *given) || s->actualizer.asides.count))
        status = take_suspect(s, record->wsid, number, *given, first);
    if (status)
        return status;
    *given = number->number > *given ? number->number : *given;
    struct putter putter = flusher_begin(s, record, kind);
    flusher_put(&putter, place, *given);
    flusher_end(s, &putter);
    return PAWL_OK;
}

static int load_known(pawl_sequencer *s, const pawl_sequence_event *event, const struct kind *kind,
                      struct record **ret_record)
{
    const struct aside *aside = aside_get(s, event->wsid, PAWL_SEQUENCE_KIND);
    if (aside) /* of a kind that is not known */
        return refuse_kind(s, event, aside->shown - 1);
    int status = sequencer_load(s, event->wsid, kind, PAWL_ECORRUPT, ret_record, &s->actualizer.error);
    return status ? error_wrap(&s->actualizer.error, status, "offset %llu", (unsigned long long)event->offset)
                  : PAWL_OK;
}

/* The record is held meanwhile: writing out in the middle must not evict it. */
static int take_known(pawl_sequencer *s, const pawl_sequence_event *event, const struct kind *kind)
{
    struct record *record = table_find(&s->table, event->wsid);
    int status = PAWL_OK;
    if (!record)
        status = load_known(s, event, kind, &record);
    if (status)
        return status;
    if (&s->kinds.list[record->kind] != kind)
        return refuse_kind(s, event, s->kinds.list[record->kind].name);
    s->table.held = record;
    record->used = true;
    for (size_t i = 0; i < event->count && status == PAWL_OK; i++)
        status = take_number(s, record, kind, &event->numbers[i]);
    s->table.held = NULL;
    return status;
}

static int take_event(pawl_sequencer *s, const pawl_sequence_event *event)
{
    struct actualizer *a = &s->actualizer;
    int status = PAWL_OK;
    if (event->offset <= a->last)
        return error_set(&a->error, PAWL_ECORRUPT, "the log has offset %llu after %llu",
                         (unsigned long long)event->offset, (unsigned long long)a->last);
    if (event->wsid && event->count) {
        const struct kind *kind = kinds_find(&s->kinds, event->kind);
        status = kind ? take_known(s, event, kind) : take_unknown_kind(s, event);
        for (size_t i = 0; !kind && i < event->count && status == PAWL_OK; i++)
            status = take_stranger(s, event->wsid, &event->numbers[i]);
    }
    if (status)
        return status;
    a->last = event->offset;
    figure_add(&s->figures.events_replayed, 1);
    return figure_get(&s->figures.unflushed) < s->options.limits.recovery_batch ? PAWL_OK : write_some(s);
}

/* A failure stays: an event was not taken, so whatever the scan goes on to say, nothing after it counts. */
static int take(pawl_sequence_batcher *batcher, const pawl_sequence_event *events, size_t count)
{
    pawl_sequencer *s = heap_entry(batcher, pawl_sequencer, actualizer.batcher);
    struct actualizer *a = &s->actualizer;
    for (size_t i = 0; i < count && a->refusal == PAWL_OK; i++) {
        a->refusal =
            atomic_load_explicit(&s->closing, memory_order_relaxed) ? PAWL_ECLOSED : take_event(s, &events[i]);
        if (a->refusal)
            a->refusal_words = a->error;
    }
    return a->refusal;
}

/* Show all events after the stored offset to take. */
static int scan(pawl_sequencer *s, uint64_t *ret_last)
{
    struct actualizer *a = &s->actualizer;
    a->refusal = PAWL_OK;
    int status = storage_of(s)->scan_log(storage_of(s)->ctx, a->stored, &a->batcher, ret_last, &a->error);
    if (a->refusal) { /* whatever the scan returned */
        status = a->refusal;
        a->error = a->refusal_words;
    }
    return status ? error_wrap(&a->error, status, "cannot read the log after offset %llu",
                               (unsigned long long)a->stored)
                  : PAWL_OK;
}

/* The table's next record, from *cursor on; NULL: there is none. */
static struct record *next_record(const pawl_sequencer *s, uint64_t *cursor)
{
    while (*cursor <= s->table.mask) {
        uint64_t entry = s->table.index[(*cursor)++];
        if (entry)
            return table_at(&s->table, (uint32_t)entry - 1);
    }
    return NULL;
}

/* Whether the log reaches what the storage has, and, when actualizing, what flush was told is durable. */
static int judge_end(pawl_sequencer *s, uint64_t last)
{
    struct actualizer *a = &s->actualizer;
    uint64_t flushed = figure_get(&s->figures.offset_flushed);
    if (last < a->stored)
        return error_set(&a->error, PAWL_ECORRUPT,
                         "the storage has offset %llu, ahead of the log, whose last is %llu",
                         (unsigned long long)a->stored, (unsigned long long)last);
    a->last = last > a->last ? last : a->last;
    if (a->last < flushed)
        return error_set(&a->error, PAWL_ECORRUPT, "offset %llu was flushed, but the log's last is %llu",
                         (unsigned long long)flushed, (unsigned long long)a->last);
    return PAWL_OK;
}

/* Whether the storage is nowhere ahead of the log, now that all of it was shown. */
static int judge_all(pawl_sequencer *s)
{
    size_t cursor = 0;
    const void *key;
    void *value;
    while (map_next(&s->actualizer.asides, &cursor, &key, &value)) {
        const struct aside_key *who = key;
        const struct aside *aside = value;
        if (aside->durable > aside->shown)
            return error_set(
                &s->actualizer.error, PAWL_ECORRUPT,
                "workspace %llu, sequence %llu: the storage has %llu, ahead of the log, which has %llu",
                (unsigned long long)who->wsid, (unsigned long long)who->seq, (unsigned long long)aside->durable,
                (unsigned long long)aside->shown);
    }
    return PAWL_OK;
}

static void settle_all(pawl_sequencer *s)
{
    struct record *record;
    uint64_t at = 0;
    while ((record = next_record(s, &at)))
        record_settle(record, &s->kinds.list[record->kind]);
}

static int recover(pawl_sequencer *s)
{
    struct actualizer *a = &s->actualizer;
    uint64_t last = 0;
    a->stored = 0;
    table_clear(&s->table);
    map_clear(&a->asides);
    figure_set(&s->figures.unflushed, 0);
    figure_set(&s->figures.workspaces, 0);
    int status = storage_of(s)->read_last_offset(storage_of(s)->ctx, &a->stored, &a->error);
    if (status)
        return error_wrap(&a->error, status, "cannot read the last offset");
    a->last = a->stored;
    figure_set(&s->figures.offset_stored, a->stored);
    status = scan(s, &last);
    if (status)
        return status;
    status = judge_end(s, last);
    if (status == PAWL_OK)
        status = judge_all(s);
    if (status == PAWL_OK && a->last > a->stored)
        status = write_out(s, a->last);
    if (status == PAWL_OK)
        settle_all(s);
    return status;
}

/* In the pool. */
static void run_recover(pawl_work *work)
{
    pawl_sequencer *s = heap_entry(work, pawl_sequencer, actualizer.work);
    error_clear(&s->actualizer.error);
    s->actualizer.status = recover(s);
}

static void recovered(pawl_sequencer *s)
{
    struct actualizer *a = &s->actualizer;
    figure_set(&s->figures.offset_given, a->last);
    figure_set(&s->figures.offset_flushed, a->last);
    figure_add(&s->figures.recoveries, 1);
    figure_set(&s->figures.recovery_ns_last, pawl_env_now(s->env).ns - a->began.ns);
    map_clear(&a->asides);
    sequencer_move(s, PAWL_SEQUENCER_READY);
    sequencer_tell(s, PAWL_OK);
}

static void recovery_failed(pawl_sequencer *s)
{
    struct actualizer *a = &s->actualizer;
    s->error = a->error;
    s->error.code = a->status;
    flusher_drop(s);
    if (a->status == PAWL_ECORRUPT) {
        s->refused = a->status;
        sequencer_move(s, PAWL_SEQUENCER_FINISHED);
        sequencer_tell(s, a->status);
        return;
    }
    figure_add(&s->figures.recovery_retries, 1);
    a->delay = delay_doubled(a->delay, &s->options.limits);
    pawl_env_after(s->env, &a->timer, a->delay);
}

static void recover_done(pawl_work *work)
{
    pawl_sequencer *s = heap_entry(work, pawl_sequencer, actualizer.work);
    s->actualizer.busy = false;
    if (s->closed)
        sequencer_close_step(s);
    else if (s->actualizer.status == PAWL_OK)
        recovered(s);
    else
        recovery_failed(s);
}

static void timer_fired(pawl_timer *timer)
{
    actualizer_run(heap_entry(timer, pawl_sequencer, actualizer.timer));
}

void actualizer_init(pawl_sequencer *s)
{
    struct actualizer *a = &s->actualizer;
    a->batcher.take = take;
    a->timer.fn = timer_fired;
    a->work.fn = run_recover;
    a->work.done = recover_done;
    map_init(&a->asides, &s->counting, sizeof(struct aside_key), sizeof(struct aside), UINT32_MAX);
}

void actualizer_run(pawl_sequencer *s)
{
    struct actualizer *a = &s->actualizer;
    assert(!a->busy);
    if (s->flusher.busy)
        return;
    a->busy = pawl_env_work(s->env, &a->work) == PAWL_OK; /* else the env is closing */
}

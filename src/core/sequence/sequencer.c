/* core/sequence/sequencer.c: the calls, and the state machine that says which of them is allowed when.
 *
 *                                  ┌──────────── start ─────────────┐
 *      NONE ──► RECOVERING ──► READY                                ▼
 *                   ▲              ▲ ◄── stage, flush, cancel ── EVENTING
 *                   └─ actualize ──┴────────────────────────────────┘          FINISHED: from all of them
 *
 * A cycle finds its workspace's record once, in start. next is then an increment in place; the first of a
 * sequence keeps what was there before, so that cancel can give it back. flush puts what was given into rows
 * for the storage, for the touched places only, 64 of them a word.
 *
 * Refusals check first what the caller did wrong, then what the world is not ready for: misuse must not hide
 * behind busy. */
#include "core/sequence/sequencer.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

/* Not inlined, so that a call that succeeds does not save registers for the failing path. */
#define COLD __attribute__((cold, noinline))

#define PREFETCH_MAX 32 /* more would push out the first before they are used, in the cache next to a core */

#define SUCCESSOR(status) (1u << PAWL_SEQUENCER_##status)

static const struct {
    const char *name;
    uint32_t successors;
} states[] = {
    [PAWL_SEQUENCER_NONE] = {"none", SUCCESSOR(RECOVERING) | SUCCESSOR(FINISHED)},
    [PAWL_SEQUENCER_RECOVERING] = {"recovering", SUCCESSOR(READY) | SUCCESSOR(FINISHED)},
    [PAWL_SEQUENCER_READY] = {"ready", SUCCESSOR(EVENTING) | SUCCESSOR(RECOVERING) | SUCCESSOR(FINISHED)},
    [PAWL_SEQUENCER_EVENTING] = {"eventing", SUCCESSOR(READY) | SUCCESSOR(RECOVERING) | SUCCESSOR(FINISHED)},
    [PAWL_SEQUENCER_FINISHED] = {"finished", 0},
};

static inline void move(pawl_sequencer *s, enum pawl_sequencer_state from, enum pawl_sequencer_state to)
{
    assert(states[from].successors & 1u << to);
    assert(figure_get(&s->figures.offset_given) /* S1 */
           == figure_get(&s->figures.offset_flushed) + s->staged.count + (to == PAWL_SEQUENCER_EVENTING));
    atomic_store_explicit(&s->status, to, memory_order_release);
}

void sequencer_move(pawl_sequencer *s, enum pawl_sequencer_state to)
{
    move(s, sequencer_state(s), to);
}

COLD static int misuse(pawl_sequencer *s, const char *call, const char *why)
{
    return error_set(&s->error, PAWL_EMISUSE, "%s while %s: %s", call, states[sequencer_state(s)].name, why);
}

COLD static int busy(pawl_sequencer *s, const char *why)
{
    figure_add(&s->figures.busy, 1);
    flusher_kick(s);
    return error_set(&s->error, PAWL_EBUSY, "%s", why);
}

COLD static int refuse_start(pawl_sequencer *s)
{
    if (sequencer_state(s) == PAWL_SEQUENCER_EVENTING)
        return misuse(s, "start", "the last event is still open");
    if (s->refused && !s->closed)
        return s->refused;
    if (sequencer_state(s) == PAWL_SEQUENCER_FINISHED)
        return misuse(s, "start", "it was freed");
    figure_add(&s->figures.busy, 1);
    return error_set(&s->error, PAWL_EBUSY, "the log is being read");
}

static inline bool is_unflushed_full(const pawl_sequencer *s)
{
    return figure_get(&s->figures.unflushed) + s->changes.count >= s->options.limits.unflushed_max;
}

/* The kind is NULL for workspace 0. With nothing staged there is room for any event's changes. */
static inline bool is_staged_full(const pawl_sequencer *s, const struct kind *kind)
{
    return s->staged.count
           && (s->staged.count == s->staged.capacity
               || (kind && s->changes.capacity - s->changes.count < kind->count));
}

COLD static int refuse_full(pawl_sequencer *s, const struct kind *kind)
{
    if (is_unflushed_full(s))
        return busy(s, "too many values are unflushed");
    if (is_staged_full(s, kind))
        return busy(s, "too many events are staged");
    return error_set(&s->error, PAWL_EEXHAUSTED, "the log has had its last offset");
}

/* A workspace whose first event was cancelled is of no kind yet. */
COLD static bool forget_blank(pawl_sequencer *s, struct record *record)
{
    const struct kind *kind = &s->kinds.list[record->kind];
    for (uint16_t i = 0; i < kind->count; i++)
        if (record->given[i] >= kind->limits[i].first)
            return false;
    return table_forget(&s->table, record);
}

int pawl_sequencer_start(pawl_sequencer *s, uint16_t ws_kind, uint64_t wsid, uint64_t *ret_offset)
{
    const struct kind *kind = NULL;
    struct record *record = NULL;
    if (wsid != 0) {
        kind = kinds_find(&s->kinds, ws_kind);
        if (!kind)
            return misuse(s, "start", "there is no such workspace kind");
    }
    if (sequencer_state(s) != PAWL_SEQUENCER_READY)
        return refuse_start(s);
    if (is_unflushed_full(s) || is_staged_full(s, kind) || figure_get(&s->figures.offset_given) == UINT64_MAX)
        return refuse_full(s, kind);
    if (kind)
        record = table_find(&s->table, wsid);
    if (record && &s->kinds.list[record->kind] != kind) {
        if (!forget_blank(s, record))
            return misuse(s, "start", "the workspace is of another kind");
        record = NULL;
    }
    if (record) {
        __builtin_prefetch(record_rows(record, kind), 1); /* flush will want them */
        record->used = true;
        figure_add(&s->figures.cache_hits, 1);
    }
    s->table.held = record;
    s->open.record = record;
    s->open.kind = kind;
    s->open.wsid = wsid;
    uint64_t offset = figure_get(&s->figures.offset_given) + 1;
    figure_set(&s->figures.offset_given, offset);
    move(s, PAWL_SEQUENCER_READY, PAWL_SEQUENCER_EVENTING);
    *ret_offset = offset;
    return PAWL_OK;
}

void pawl_sequencer_prefetch(const pawl_sequencer *s, const uint64_t *wsids, size_t count)
{
    if (sequencer_state(s) == PAWL_SEQUENCER_READY || sequencer_state(s) == PAWL_SEQUENCER_EVENTING)
        table_prefetch(&s->table, wsids, count < PREFETCH_MAX ? count : PREFETCH_MAX);
}

/* The storage's numbers of a workspace, and of its kind; the latter 0 if the storage does not keep kinds. */
static int read_storage(pawl_sequencer *s, uint64_t wsid, const struct kind *kind, pawl_error *error)
{
    uint64_t *numbers = s->actualizer.numbers;
    size_t count = kind->count + (s->options.kinds_elsewhere ? 0 : (size_t)1);
    memset(numbers, 0, (kind->count + (size_t)1) * sizeof *numbers);
    if (count == 0)
        return PAWL_OK;
    int status =
        s->options.storage.read_numbers(s->options.storage.ctx, wsid, kind->seqs, count, numbers, error);
    if (status)
        return error_wrap(error, status, "cannot read the numbers of workspace %llu", (unsigned long long)wsid);
    return PAWL_OK;
}

int sequencer_load(pawl_sequencer *s, uint64_t wsid, const struct kind *kind, int other_kind,
                   struct record **ret_record, pawl_error *error)
{
    const uint64_t *numbers = s->actualizer.numbers;
    const uint64_t *kept = &numbers[kind->count];
    struct record *record;
    int status = read_storage(s, wsid, kind, error);
    if (status)
        return status;
    if (*kept && *kept != kind_number(kind->name))
        return error_set(error, other_kind, "workspace %llu is of kind %llu, not %u", (unsigned long long)wsid,
                         (unsigned long long)*kept - 1, kind->name);
    if (table_insert(&s->table, wsid, (uint16_t)(kind - s->kinds.list), &record))
        return error_set(error, PAWL_ENOMEM, "no memory for a workspace");
    if (kind->count)
        memcpy(record->given, numbers, kind->count * sizeof *numbers);
    record->known = *kept || s->options.kinds_elsewhere;
    figure_set(&s->figures.workspaces, s->table.count);
    figure_set(&s->figures.evictions, s->table.evictions);
    *ret_record = record;
    return PAWL_OK;
}

void record_settle(struct record *record, const struct kind *kind)
{
    for (uint16_t i = 0; i < kind->count; i++)
        if (record->given[i] < kind->limits[i].first)
            record->given[i] = kind->limits[i].first - 1;
}

/* next found no record: either there is nothing to find, or it has to be read. */
COLD static int load_open(pawl_sequencer *s)
{
    if (sequencer_state(s) != PAWL_SEQUENCER_EVENTING)
        return misuse(s, "next", "no event is open");
    if (!s->open.kind)
        return misuse(s, "next", "an event of workspace 0 takes its offset only");
    int status = sequencer_load(s, s->open.wsid, s->open.kind, PAWL_EMISUSE, &s->open.record, &s->error);
    if (status)
        return status;
    figure_add(&s->figures.cache_misses, 1);
    s->table.held = s->open.record;
    record_settle(s->open.record, s->open.kind);
    return PAWL_OK;
}

COLD static int refuse_next(pawl_sequencer *s, uint16_t seq, int status)
{
    return error_set(&s->error, status, "workspace %llu of kind %u, sequence %u: %s",
                     (unsigned long long)s->open.wsid, s->open.kind->name, seq, pawl_status_text(status));
}

COLD static int load_and_next(pawl_sequencer *s, uint16_t seq, uint64_t *ret_number)
{
    int status = load_open(s);
    return status ? status : pawl_sequencer_next(s, seq, ret_number);
}

int pawl_sequencer_next(pawl_sequencer *s, uint16_t seq, uint64_t *ret_number)
{
    struct open_event *open = &s->open;
    struct record *record = open->record;
    if (!record)
        return load_and_next(s, seq, ret_number);
    uint32_t place = places_find(&open->kind->places, seq);
    if (place == NO_PLACE)
        return refuse_next(s, seq, PAWL_EUNKNOWN_SEQ);
    uint64_t given = record->given[place];
    if (given >= open->kind->limits[place].end)
        return refuse_next(s, seq, PAWL_EEXHAUSTED);
    uint64_t *touched = &open->touched[place >> 6];
    uint64_t bit = UINT64_C(1) << (place & 63);
    if (!(*touched & bit)) {
        *touched |= bit;
        open->before[place] = given;
    }
    record->given[place] = given + 1;
    *ret_number = given + 1;
    return PAWL_OK;
}

/* An event has ended, and there may be room for another. */
static inline void look_who_waits(pawl_sequencer *s)
{
    if (__builtin_expect(s->ready.first != NULL, 0))
        ready_look(s);
}

/* The open event has ended. Its record stays pinned if it was staged, or has rows to be written. */
static inline void close_event(pawl_sequencer *s)
{
    s->table.held = NULL;
    s->open.record = NULL;
    s->open.kind = NULL;
}

int pawl_sequencer_stage(pawl_sequencer *s)
{
    struct open_event *open = &s->open;
    if (sequencer_state(s) != PAWL_SEQUENCER_EVENTING)
        return misuse(s, "stage", "no event is open");
    struct staged_event *event = ring_push(&s->staged);
    assert(event); /* start left room for it and its changes */
    *event = (struct staged_event){.slot = NO_SLOT};
    for (uint32_t w = 0; open->record && w < open->kind->words; w++) {
        for (uint64_t bits = open->touched[w]; bits; bits &= bits - 1) {
            uint32_t place = w * 64 + (uint32_t)__builtin_ctzll(bits);
            struct change *change = ring_push(&s->changes);
            *change = (struct change){open->record->given[place], place};
            event->changes++;
        }
        open->touched[w] = 0;
    }
    if (open->record && event->changes) {
        event->slot = open->record->slot;
        open->record->staged++;
    }
    figure_set(&s->figures.staged, s->staged.count);
    close_event(s);
    move(s, PAWL_SEQUENCER_EVENTING, PAWL_SEQUENCER_READY);
    look_who_waits(s);
    return PAWL_OK;
}

/* The simple cycle: the open event is durable, and nothing was staged before it. */
static inline void finish_open(pawl_sequencer *s)
{
    struct open_event *open = &s->open;
    if (open->record) {
        struct putter putter = flusher_begin(s, open->record, open->kind);
        for (uint32_t w = 0; w < open->kind->words; w++) {
            for (uint64_t bits = open->touched[w]; bits; bits &= bits - 1) {
                uint32_t place = w * 64 + (uint32_t)__builtin_ctzll(bits);
                flusher_put(&putter, place, open->record->given[place]);
            }
            open->touched[w] = 0;
        }
        flusher_end(s, &putter);
    }
    close_event(s);
    figure_set(&s->figures.offset_flushed, figure_get(&s->figures.offset_given));
    move(s, PAWL_SEQUENCER_EVENTING, PAWL_SEQUENCER_READY);
    flusher_gather(s);
}

/* The first staged event is durable. */
static void finish_staged(pawl_sequencer *s)
{
    const struct staged_event *event = ring_at(&s->staged, 0);
    if (event->slot != NO_SLOT) {
        struct record *record = table_at(&s->table, event->slot);
        struct putter putter = flusher_begin(s, record, &s->kinds.list[record->kind]);
        for (uint32_t i = 0; i < event->changes; i++) {
            const struct change *change = ring_at(&s->changes, i);
            flusher_put(&putter, change->place, change->number);
        }
        flusher_end(s, &putter);
        record->staged--;
        ring_pop(&s->changes, event->changes);
    }
    ring_pop(&s->staged, 1);
    figure_add(&s->figures.offset_flushed, 1);
    flusher_gather(s);
}

__attribute__((noinline)) static int flush_staged(pawl_sequencer *s, uint64_t upto)
{
    uint64_t flushed = figure_get(&s->figures.offset_flushed);
    if (sequencer_state(s) != PAWL_SEQUENCER_EVENTING && s->staged.count == 0)
        return misuse(s, "flush", "nothing is open or staged");
    if (upto < flushed || upto - flushed > s->staged.count)
        return misuse(s, "flush",
                      upto < flushed ? "that offset is flushed already" : "that offset is not staged");
    for (; flushed < upto; flushed++)
        finish_staged(s);
    figure_set(&s->figures.staged, s->staged.count);
    look_who_waits(s);
    return PAWL_OK;
}

int pawl_sequencer_flush(pawl_sequencer *s, uint64_t upto)
{
    if (sequencer_state(s) != PAWL_SEQUENCER_EVENTING || s->staged.count
        || upto != figure_get(&s->figures.offset_given))
        return flush_staged(s, upto);
    finish_open(s);
    look_who_waits(s);
    return PAWL_OK;
}

int pawl_sequencer_cancel(pawl_sequencer *s)
{
    struct open_event *open = &s->open;
    if (sequencer_state(s) != PAWL_SEQUENCER_EVENTING)
        return misuse(s, "cancel", "no event is open");
    for (uint32_t w = 0; open->record && w < open->kind->words; w++) {
        for (uint64_t bits = open->touched[w]; bits; bits &= bits - 1) {
            uint32_t place = w * 64 + (uint32_t)__builtin_ctzll(bits);
            open->record->given[place] = open->before[place];
        }
        open->touched[w] = 0;
    }
    close_event(s);
    figure_set(&s->figures.offset_given, figure_get(&s->figures.offset_given) - 1);
    move(s, PAWL_SEQUENCER_EVENTING, PAWL_SEQUENCER_READY);
    look_who_waits(s);
    return PAWL_OK;
}

void sequencer_forget_events(pawl_sequencer *s)
{
    struct open_event *open = &s->open;
    memset(open->touched, 0, sizeof open->touched);
    close_event(s);
    ring_clear(&s->staged);
    ring_clear(&s->changes);
    figure_set(&s->figures.staged, 0);
    figure_set(&s->figures.offset_given, figure_get(&s->figures.offset_flushed));
}

int pawl_sequencer_actualize(pawl_sequencer *s)
{
    if (sequencer_state(s) != PAWL_SEQUENCER_EVENTING && s->staged.count == 0)
        return misuse(s, "actualize", "nothing is open or staged");
    sequencer_forget_events(s);
    flusher_drop(s);
    sequencer_move(s, PAWL_SEQUENCER_RECOVERING);
    s->actualizer.began = pawl_env_now(s->env);
    s->actualizer.delay = 0;
    actualizer_run(s);
    return PAWL_OK;
}

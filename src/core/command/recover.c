/* core/command/recover.c: from whatever state to running.
 *
 *   DRAINING      wait until nothing is on its way to the log and everything durable is applied.
 *   CLAIMING      become the stream's one writer. From then on nothing that was sent before can appear any
 *                 more.
 *   CATCHING_UP   check that the state is a prefix of this log, then read what it lacks, derive it and apply
 *                 it. An event that was lost from sight and is found here was written; its callers are
 *                 answered. Those that are not found by the claim's end never will be, and are refused.
 *   NUMBERING     the sequencer reads the log's tail for itself.
 *
 * Entries are copied while they are read, and derived and committed in one go at the end of each read: between
 * two turns of the loop the store belongs to others too, and a half-applied event must never be committed with
 * theirs. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/id.h"
#include "core/command/processor_impl.h"
#include "core/schema/definition.h"
#include "core/sequence/storage.h"
#include "core/state/replay.h"

#define REPLAY_EVENTS ((uint64_t)1024)
#define REPLAY_BYTES  ((size_t)4 << 20)
#define RETRY_MIN     (10 * PAWL_MILLISECOND)
#define RETRY_MAX     PAWL_SECOND

/* It will not be found out any more what became of lost events. */
static void refuse(struct processor *p, int status)
{
    p->error.code = status;
    processor_move(p, PROCESSOR_REFUSED);
    while (p->first) {
        struct batch *b = p->first;
        assert(b->state == BATCH_LOST);
        for (size_t i = 0; i < b->count; i++)
            calls_refuse(&b->events[i].calls, PAWL_EUNKNOWN, p->error.text);
        batch_free(b);
    }
    calls_refuse(&p->queue, status, p->error.text);
}

static void retry_over(pawl_timer *timer)
{
    struct processor *p = heap_entry(timer, struct processor, retry);
    p->retrying = false;
    recover_step(p);
}

/* It will be found out what became of them, but nobody waits for it for ever. */
static void tell_lost(struct processor *p)
{
    if (p->cause == PAWL_OK || pawl_env_now(p->options.env).ns - p->lost.ns < p->options.wait)
        return;
    char words[sizeof p->error.text];
    snprintf(words, sizeof words, "it is not known whether the event was written: %.400s", p->error.text);
    for (struct batch *b = p->first; b; b = b->next)
        for (size_t i = 0; b->state == BATCH_LOST && i < b->count; i++)
            calls_refuse(&b->events[i].calls, PAWL_EUNKNOWN, words);
}

static void try_later(struct processor *p)
{
    p->retry_delay = p->retry_delay == 0 ? RETRY_MIN : p->retry_delay * 2;
    p->retry_delay = p->retry_delay > RETRY_MAX ? RETRY_MAX : p->retry_delay;
    p->retrying = true;
    p->retry.fn = retry_over;
    pawl_env_after(p->options.env, &p->retry, p->retry_delay);
    tell_lost(p);
    if (p->changed)
        p->changed(p->changed_arg);
}

static bool batches_are_under_way(const struct processor *p)
{
    for (const struct batch *b = p->first; b; b = b->next)
        if (b->state == BATCH_SENT || b->state == BATCH_DURABLE)
            return true;
    return false;
}

/* A batch that was filled and never sent is lost too, for certain: its commands are processed again, and what
 * was remembered of them is forgotten. */
static void drop_unsent(struct processor *p)
{
    for (struct batch *b = p->first, *next; b; b = next) {
        next = b->next;
        if (b->state != BATCH_FILLING)
            continue;
        for (size_t i = 0; i < b->count; i++) {
            overlay_remove(&p->overlay, &b->events[i].changes);
            calls_return(&p->queue, &b->events[i].calls);
        }
        calls_return(&p->queue, &b->waiting);
        batch_free(b);
        workspaces_clear(&p->workspaces);
        windows_clear(&p->windows);
    }
}

/* --- claiming --- */

static void claimed(pawl_claim *claim)
{
    struct processor *p = claim->arg;
    p->claiming = false;
    if (p->state == PROCESSOR_CLOSED) {
        close_step(p);
        return;
    }
    if (claim->status != PAWL_OK) {
        try_later(p);
        return;
    }
    p->retry_delay = 0;
    p->epoch = claim->epoch;
    p->next = claim->next;
    if (p->position.offset >= p->next) {
        error_set(&p->error, PAWL_ECORRUPT,
                  "partition %u: the state is at offset %" PRIu64 ", the log ends at %" PRIu64,
                  p->options.partition, p->position.offset, p->next - 1);
        refuse(p, PAWL_ECORRUPT);
        return;
    }
    processor_move(p, PROCESSOR_CATCHING_UP);
    recover_step(p);
}

static void claim(struct processor *p)
{
    p->claim = (pawl_claim){.stream = {.kind = PAWL_STREAM_PLOG, .partition = p->options.partition},
                            .done = claimed,
                            .arg = p,
                            .error = &p->error};
    p->claiming = pawl_log_claim(p->options.log, &p->claim) == PAWL_OK;
    if (!p->claiming)
        try_later(p);
}

/* --- catching up --- */

static bool take_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct processor *p = read->arg;
    struct replayed *replayed = arena_take(&p->replay, sizeof *replayed);
    if (replayed)
        *replayed = (struct replayed){
            .offset = entry->offset, .place = place, .body = arena_copy(&p->replay, entry->body)};
    if (!replayed || !replayed->body.data) {
        p->replay_status = PAWL_ENOMEM;
        return false;
    }
    *p->replayed_last = replayed;
    p->replayed_last = &replayed->next;
    p->replayed_bytes += entry->body.size;
    return p->replayed_bytes < REPLAY_BYTES;
}

/* The first event of the first read is the last one that the state has. */
static int verify_first(struct processor *p)
{
    struct replayed *first = p->replayed;
    if (p->verified || p->position.offset == 0)
        return PAWL_OK;
    if (!first || first->offset != p->position.offset || hash_checksum(0, first->body) != p->position.checksum)
        return error_set(&p->error, PAWL_ECORRUPT,
                         "partition %u: the log's event at offset %" PRIu64
                         " is not the one that the state was made from",
                         p->options.partition, p->position.offset);
    p->replayed = first->next;
    return PAWL_OK;
}

/* All of a read, in one transaction; after a failure the position is to be read again. */
static int replay_all(struct processor *p)
{
    struct replay replay = {.store = p->options.store,
                            .position = &p->position,
                            .overlay = &p->overlay,
                            .memory = &p->replay,
                            .scratch = p->scratch,
                            .schema_at = p->options.schema_at,
                            .ctx = p->options.ctx};
    if (!p->replayed)
        return error_set(&p->error, PAWL_ECORRUPT,
                         "plog/%u ends at offset %" PRIu64 ", and was claimed at %" PRIu64,
                         p->options.partition, p->read.from - 1, p->next);
    int status = verify_first(p);
    uint64_t count = 0;
    p->unread = true;
    for (const struct replayed *r = p->replayed; status == PAWL_OK && r; r = r->next) {
        status = replay_event(&replay, r->offset, r->place, r->body, &p->error);
        if (status != PAWL_OK)
            error_wrap(&p->error, status, "plog/%u, offset %" PRIu64, p->options.partition, r->offset);
        else
            processor_audit(p, r->offset);
        count++;
    }
    if (status == PAWL_OK && count > 0) {
        status = replay_commit(&replay);
        if (status != PAWL_OK)
            error_set(&p->error, status, "cannot write the state: %s", pawl_status_text(status));
    }
    if (status != PAWL_OK) {
        pawl_store_abort(p->options.store);
        return status;
    }
    p->unread = false;
    p->verified = true;
    p->figures.puts += replay.rows;
    p->figures.replayed += count;
    p->figures.events += count;
    processor_tell_applied(p);
    return PAWL_OK;
}

/* The events whose fate was not known, up to an offset of the log that is known now. */
static void resolve(struct processor *p, uint64_t upto, const struct replayed *written)
{
    for (struct batch *b = p->first, *next; b; b = next) {
        next = b->next;
        assert(b->state == BATCH_LOST);
        for (size_t i = 0; i < b->count; i++) {
            struct staged *staged = &b->events[i];
            if (staged->offset > upto)
                return;
            while (written && written->offset < staged->offset)
                written = written->next;
            if (written && written->offset == staged->offset && bytes_equal(written->body, staged->body))
                staged_answer(staged);
            else
                calls_refuse(&staged->calls, PAWL_EIO, "the event was not written");
        }
        batch_free(b);
    }
}

static void caught_up(struct processor *p)
{
    resolve(p, UINT64_MAX, NULL);
    if (p->state == PROCESSOR_CLOSED) { /* by one of those who were told */
        close_step(p);
        return;
    }
    assert(!p->first && p->overlay.count == 0);
    p->cause = PAWL_OK;
    workspaces_clear(&p->workspaces);
    windows_clear(&p->windows);
    arena_release(&p->replay);
    processor_move(p, PROCESSOR_NUMBERING);
    recover_step(p);
}

static void entries_read(pawl_read *read)
{
    struct processor *p = read->arg;
    p->reading = false;
    if (p->state == PROCESSOR_CLOSED) {
        close_step(p);
        return;
    }
    int status = read->status == PAWL_OK ? p->replay_status : read->status;
    if (status == PAWL_OK)
        status = replay_all(p);
    if (status == PAWL_ECORRUPT || status == PAWL_EVERSION || status == PAWL_EINVAL || status == PAWL_ETOOBIG) {
        refuse(p, status == PAWL_EVERSION ? status : PAWL_ECORRUPT);
        return;
    }
    if (status != PAWL_OK) {
        try_later(p);
        return;
    }
    p->retry_delay = 0;
    resolve(p, p->position.offset, p->replayed);
    recover_step(p);
}

static void catch_up(struct processor *p)
{
    if (p->unread) {
        int status = position_read(&p->position, pawl_store_writer(p->options.store), &p->error);
        if (status != PAWL_OK) {
            try_later(p);
            return;
        }
        p->unread = false;
    }
    bool whole = p->verified || p->position.offset == 0;
    uint64_t from = whole ? p->position.offset + 1 : p->position.offset;
    if (from >= p->next) {
        caught_up(p);
        return;
    }
    uint64_t left = p->next - from;
    arena_reset(&p->replay);
    p->replayed = NULL;
    p->replayed_last = &p->replayed;
    p->replayed_bytes = 0;
    p->replay_status = PAWL_OK;
    p->read = (pawl_read){.stream = {.kind = PAWL_STREAM_PLOG, .partition = p->options.partition},
                          .from = from,
                          .limit = left < REPLAY_EVENTS ? left : REPLAY_EVENTS,
                          .visit = take_entry,
                          .done = entries_read,
                          .arg = p,
                          .error = &p->error};
    if (!whole)
        p->read.at = p->position.place;
    p->reading = pawl_log_read(p->options.log, &p->read) == PAWL_OK;
    if (!p->reading)
        try_later(p);
}

/* --- numbering --- */

static void sequencer_ready(struct sequencer_waiter *waiter, int status)
{
    struct processor *p = heap_entry(waiter, struct processor, ready);
    p->sequencer_waits = false;
    if (p->state != PROCESSOR_NUMBERING)
        return;
    if (status != PAWL_OK) {
        p->error = *pawl_sequencer_error(p->sequencer);
        refuse(p, status);
        return;
    }
    p->error = (pawl_error){0};
    processor_move(p, PROCESSOR_RUNNING);
    processor_run(p, false);
}

static size_t sequence_count(const struct schema *schema)
{
    size_t count = 0;
    for (size_t i = 0; i < schema->workspace_count; i++)
        count += 3 + schema->workspaces[i].sequence_count;
    return count;
}

_Static_assert(3 + DEFINITION_SEQUENCES_MAX <= PAWL_SEQUENCES_MAX, "a sequencer has all sequences of a kind");

/* Every kind has the system's sequences, and then its own. */
static void fill_kinds(const struct schema *schema, pawl_workspace_kind *kinds, pawl_sequence *sequences)
{
    for (size_t i = 0; i < schema->workspace_count; i++) {
        const struct schema_workspace *w = &schema->workspaces[i];
        kinds[i] = (pawl_workspace_kind){.kind = w->id, .sequences = sequences, .count = 3 + w->sequence_count};
        *sequences++ = (pawl_sequence){.seq = SEQ_WLOG_OFFSET, .first = 1};
        *sequences++ = (pawl_sequence){.seq = SEQ_REC_ID, .first = RECORD_FIRST, .end = RECORD_BASE_MASK};
        *sequences++ = (pawl_sequence){.seq = SEQ_CREC_ID, .first = RECORD_FIRST, .end = RECORD_BASE_MASK};
        for (size_t k = 0; k < w->sequence_count; k++)
            *sequences++ = (pawl_sequence){
                .seq = w->sequences[k].id, .first = w->sequences[k].first, .end = w->sequences[k].end};
    }
}

static int new_sequencer(struct processor *p)
{
    const struct processor_options *o = &p->options;
    size_t kinds = p->schema->workspace_count, sequences = sequence_count(p->schema);
    pawl_workspace_kind *kind = mem_new(o->allocator, kinds, sizeof *kind);
    pawl_sequence *sequence = mem_new(o->allocator, sequences, sizeof *sequence);
    int status = PAWL_ENOMEM;
    if ((kind && sequence) || kinds == 0) {
        fill_kinds(p->schema, kind, sequence);
        pawl_sequencer_options options = {.env = o->env,
                                          .shard = o->shard,
                                          .storage = o->sequences,
                                          .kinds = kind,
                                          .kind_count = kinds,
                                          .kinds_elsewhere = true, /* group0 has them */
                                          .limits = o->limits,
                                          .allocator = o->allocator};
        status = pawl_sequencer_new(&options, &p->sequencer, &p->error);
    }
    mem_free(o->allocator, sequence, sequences * sizeof *sequence);
    mem_free(o->allocator, kind, kinds * sizeof *kind);
    return status;
}

static void sequencer_closed(pawl_sequencer *sequencer, void *arg, int status)
{
    struct processor *p = arg;
    pawl_sequencer_figures figures;
    pawl_sequencer_figures_get(sequencer, &figures);
    sequencer_figures_keep(&p->ended, &figures);
    sequencer_release(sequencer);
    p->sequencer = NULL;
    p->sequencer_closing = false;
    recover_step(p);
}

void recover_close_sequencer(struct processor *p)
{
    if (p->sequencer_waits)
        sequencer_unwait(p->sequencer, &p->ready);
    p->sequencer_waits = false;
    p->sequencer_closing = true;
    sequencer_close(p->sequencer, sequencer_closed, p);
}

static void number(struct processor *p)
{
    if (p->sequencer && p->resequence) {
        recover_close_sequencer(p);
        return;
    }
    if (!p->sequencer) {
        p->resequence = false;
        if (new_sequencer(p) != PAWL_OK) {
            try_later(p);
            return;
        }
    } else /* after a failure there are staged events, and after a new schema there is a new sequencer */
        (void)pawl_sequencer_actualize(p->sequencer);
    p->sequencer_waits = true;
    p->ready.fn = sequencer_ready;
    sequencer_wait(p->sequencer, &p->ready);
}

void recover_step(struct processor *p)
{
    if (p->state == PROCESSOR_DRAINING && !batches_are_under_way(p)) {
        drop_unsent(p);
        processor_move(p, p->cause == PAWL_OK ? PROCESSOR_NUMBERING : PROCESSOR_CLAIMING);
    }
    if (p->state == PROCESSOR_CLOSED)
        close_step(p);
    else if (p->retrying)
        return;
    else if (p->state == PROCESSOR_CLAIMING && !p->claiming)
        claim(p);
    else if (p->state == PROCESSOR_CATCHING_UP && !p->reading)
        catch_up(p);
    else if (p->state == PROCESSOR_NUMBERING && !p->sequencer_waits && !p->sequencer_closing)
        number(p);
}

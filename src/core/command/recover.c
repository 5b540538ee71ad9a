/* core/command/recover.c: the state catches up with its log, and the sequencer with both.
 *
 * Catching up derives the events that the state lacks, and applies them. Then the sequencer reads the log's
 * tail for itself: that happens in PREPARING. */
#include <assert.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/id.h"
#include "core/command/processor_impl.h"
#include "core/schema/definition.h"
#include "core/sequence/storage.h"
#include "core/state/replay.h"

void recover_will_retry(void *ctx)
{
    struct processor *p = ctx;
    if (p->changed)
        p->changed(p->changed_arg);
}

/* --- catching up --- */

int recover_position(void *ctx, bool again, struct writer_position *ret_position, pawl_error *error)
{
    struct processor *p = ctx;
    int status = again ? position_read(&p->position, pawl_store_writer(p->options.store), error) : PAWL_OK;
    *ret_position = (struct writer_position){
        .offset = p->position.offset, .place = p->position.place, .checksum = p->position.checksum};
    return status;
}

struct replaying {
    struct processor *processor;
    struct replay replay;
    const struct copied_entry *entries;
    uint64_t count;
};

static int put_events(void *ctx, pawl_store *store, pawl_error *error)
{
    struct replaying *r = ctx;
    r->replay.store = store;
    for (const struct copied_entry *e = r->entries; e; e = e->next, r->count++) {
        int status = replay_event(&r->replay, e->offset, e->place, e->body, error);
        if (status != PAWL_OK)
            return error_wrap(error, status, "offset %" PRIu64, e->offset);
        processor_audit(r->processor, e->offset);
    }
    int status = replay_put(&r->replay);
    return status == PAWL_OK ? status
                             : error_set(error, status, "cannot write the state: %s", pawl_status_text(status));
}

int recover_replay(void *ctx, const struct copied_entry *entries, struct arena *memory, pawl_error *error)
{
    struct processor *p = ctx;
    struct replaying r = {.processor = p,
                          .replay = {.position = &p->position,
                                     .watch = p->options.views ? view_tables_watch(p->options.views) : NULL,
                                     .overlay = &p->overlay,
                                     .memory = memory,
                                     .scratch = p->scratch,
                                     .schema_at = p->options.schema_at,
                                     .ctx = p->options.ctx},
                          .entries = entries};
    int status = applier_write(p->options.applier, put_events, &r, error);
    if (status != PAWL_OK)
        return status;
    p->figures.puts += r.replay.rows;
    p->figures.replayed += r.count;
    p->figures.events += r.count;
    processor_tell_applied(p);
    return PAWL_OK;
}

/* --- numbering --- */

static void sequencer_ready(struct sequencer_waiter *waiter, int status)
{
    struct processor *p = heap_entry(waiter, struct processor, ready);
    p->sequencer_waits = false;
    if (p->writer.state != WRITER_PREPARING)
        return;
    if (status == PAWL_OK) {
        writer_ready(&p->writer);
        return;
    }
    p->writer.error = *pawl_sequencer_error(p->sequencer);
    writer_refuse(&p->writer, status);
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
        status = pawl_sequencer_new(&options, &p->sequencer, &p->writer.error);
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
    writer_step(&p->writer);
}

void recover_close_sequencer(struct processor *p)
{
    if (p->sequencer_waits)
        sequencer_unwait(p->sequencer, &p->ready);
    p->sequencer_waits = false;
    p->sequencer_closing = true;
    sequencer_close(p->sequencer, sequencer_closed, p);
}

/* Nothing is staged now. The caches may still know of staged events that were lost, so clear them. */
void recover_prepare(void *ctx)
{
    struct processor *p = ctx;
    if (p->sequencer_waits || p->sequencer_closing)
        return;
    assert(p->overlay.count == 0 && p->unique.staged.count == 0);
    p->bound_behind = 0; /* the state has all of the log */
    workspaces_clear(&p->workspaces);
    windows_clear(&p->windows);
    if (p->sequencer && p->resequence) {
        recover_close_sequencer(p);
        return;
    }
    if (!p->sequencer) {
        p->resequence = false;
        if (new_sequencer(p) != PAWL_OK) {
            writer_retry(&p->writer);
            return;
        }
    } else /* its staged events were lost: it reads the log again */
        (void)pawl_sequencer_actualize(p->sequencer);
    p->sequencer_waits = true;
    p->ready.fn = sequencer_ready;
    sequencer_wait(p->sequencer, &p->ready);
}

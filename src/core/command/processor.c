#include "core/command/processor.h"

#include <assert.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "core/command/processor_impl.h"
#include "core/schema/schema.h"
#include "core/state/derive.h"
#include "core/state/key.h"

#define PAUSE       PAWL_MILLISECOND
#define FETCH_AHEAD 16

enum writer_state processor_state(const struct processor *p)
{
    return p->writer.state;
}

const struct processor_figures *processor_figures(const struct processor *p)
{
    return &p->figures;
}

void processor_numbering(const struct processor *p, pawl_sequencer_figures *ret_figures, pawl_error *ret_error)
{
    pawl_sequencer_figures figures = {.state = PAWL_SEQUENCER_NONE};
    if (p->sequencer)
        pawl_sequencer_figures_get(p->sequencer, &figures);
    sequencer_figures_keep(&figures, &p->ended);
    *ret_figures = figures;
    const pawl_error *error = &p->writer.error;
    *ret_error = error->code == PAWL_OK && p->sequencer ? *pawl_sequencer_error(p->sequencer) : *error;
}

bool processor_log_end(const struct processor *p, uint64_t *ret_offset)
{
    if (p->writer.next == 0)
        return false;
    *ret_offset = p->writer.next - 1;
    return true;
}

const struct position *processor_position(const struct processor *p)
{
    return &p->position;
}

const pawl_error *processor_error(const struct processor *p)
{
    return &p->writer.error;
}

void processor_watch(struct processor *p, void (*changed)(void *arg), void *arg)
{
    p->changed = changed;
    p->changed_arg = arg;
}

/* The newest batch that is numbered and not yet durable: an answer computed now rests on it (P2). */
static struct writer_batch *newest_undurable(struct processor *p)
{
    struct writer_batch *newest = NULL;
    for (struct writer_batch *b = p->writer.first; b; b = b->next)
        if ((b->state == BATCH_FILLING && b->count > 0) || b->state == BATCH_SENT)
            newest = b;
    return newest;
}

void processor_answer(struct processor *p, struct call *call, int status)
{
    struct writer_batch *rests_on = newest_undurable(p);
    call->status = status;
    if (rests_on)
        call_list_add(&p->waiting[rests_on->index], call);
    else
        call_finish(call, status);
}

/* The facts by which the event is numbered. If the command creates the workspace, they are those of an empty
 * one. */
static int find_workspace(struct processor *p, const struct request *r, const struct state *state,
                          struct workspace_facts *ret_facts, pawl_error *error)
{
    struct workspace_facts *facts;
    int status = workspaces_get(&p->workspaces, state, r->wsid, &facts, error);
    if (status == PAWL_OK)
        *ret_facts = *facts;
    if (status != PAWL_ENOTFOUND || r->command != NAME_WS_CREATE)
        return status;
    if (r->wsid == 0)
        return error_set(error, PAWL_EINVAL, "workspace 0 is the partition itself");
    if (!schema_workspace_by_id(p->schema, r->kind))
        return error_set(error, PAWL_ENOTFOUND, "there is no workspace kind %u", r->kind);
    *ret_facts = (struct workspace_facts){.kind = r->kind};
    return PAWL_OK;
}

/* Look for the command's key in the window. *ret_offset is the offset of the event that seems to have it,
 * or 0. */
static int find_key(struct processor *p, const struct call *call, const struct state *state,
                    const struct workspace_facts *facts, uint64_t *ret_offset)
{
    const struct request *r = call->request;
    *ret_offset = 0;
    if (r->key.size == 0 || call->not_repeated || facts->last == 0)
        return PAWL_OK;
    int status = windows_find(&p->windows, state, r->wsid, facts->last, idempotency_hash(r->key), ret_offset);
    if (status != PAWL_OK)
        return error_set(call->error, status, "cannot read the log of workspace %" PRIu64, r->wsid);
    return PAWL_OK;
}

/* A frozen workspace takes no command but the one that thaws it. Freezing and thawing come in the order of the
 * commands, so what is sent after the answer to a freeze is refused. */
static int check_frozen(const struct call *call, const struct workspace_facts *facts)
{
    const struct request *r = call->request;
    if (r->command == NAME_WS_FREEZE && facts->frozen)
        return error_set(call->error, PAWL_EEXISTS, "workspace %" PRIu64 " is frozen already", r->wsid);
    if (r->command == NAME_WS_THAW && !facts->frozen)
        return error_set(call->error, PAWL_EEXISTS, "workspace %" PRIu64 " is not frozen", r->wsid);
    if (facts->frozen && r->command != NAME_WS_THAW)
        return error_set(call->error, PAWL_EREADONLY, "workspace %" PRIu64 " is frozen: it takes no commands",
                         r->wsid);
    return PAWL_OK;
}

static int check_expectation(const struct call *call, const struct workspace_facts *facts)
{
    const struct request *r = call->request;
    if (r->command == NAME_WS_CREATE && facts->last > 0)
        return error_set(call->error, PAWL_EEXISTS, "workspace %" PRIu64 " exists already", r->wsid);
    int status = check_frozen(call, facts);
    if (status != PAWL_OK)
        return status;
    if (r->expects && r->expected != facts->last)
        return error_set(call->error, PAWL_ECONFLICT,
                         "$.expected_offset: workspace %" PRIu64 " is at offset %" PRIu64 ", not %" PRIu64,
                         r->wsid, facts->last, r->expected);
    return PAWL_OK;
}

/* The event is built and open in the sequencer. Find out what it writes, then stage the event or cancel it. */
static int stage(struct processor *p, struct writer_batch *batch, const struct state *state, struct call *call,
                 const struct built *built)
{
    struct staged *staged = &batch_staged(batch)[batch->count];
    struct derivation derivation = {.offset = built->offset, .event = &built->event, .schema = p->schema};
    int status = derive(&derivation, state, &batch->memory, &staged->changes, call->error);
    staged->keys = (struct changes){0};
    if (status == PAWL_OK && p->unique.count > 0) {
        status = unique_check(&p->unique, state, &staged->changes, &batch->memory, &staged->keys, call->error);
        if (status != PAWL_OK)
            overlay_remove(&p->overlay, &staged->changes);
    }
    if (status != PAWL_OK) {
        pawl_sequencer_cancel(p->sequencer);
        return status;
    }
    status = pawl_sequencer_stage(p->sequencer);
    assert(status == PAWL_OK);
    call->workspace_offset = built->workspace_offset;
    call_list_init(&staged->calls);
    call_list_add(&staged->calls, call);
    writer_add(batch, built->offset, built->body);
    return PAWL_OK;
}

/* Remember, for the workspace's next command, what this one has done. */
static void note_staged(struct processor *p, const struct request *r, struct workspace_facts facts,
                        const struct built *built)
{
    facts.last = built->workspace_offset;
    facts.record = built->record;
    if (r->command == NAME_WS_FREEZE || r->command == NAME_WS_THAW)
        facts.frozen = r->command == NAME_WS_FREEZE;
    workspaces_put(&p->workspaces, r->wsid, facts);
    windows_note(&p->windows, r->wsid, built->workspace_offset, r->key.size ? idempotency_hash(r->key) : 0);
}

/* PAWL_OK: the call was staged or answered, or the event that may have its key is being read. PAWL_EBUSY: the
 * sequencer has no room now; try again later. */
static int process(struct processor *p, struct writer_batch *batch, struct call *call)
{
    const struct request *r = call->request;
    struct state state = processor_staged_state(p);
    struct workspace_facts facts;
    struct built built;
    uint64_t repeated = 0;
    error_clear(call->error); /* it may be processed again, because what it rested on was lost */
    call->repeated = false;
    int status = bind_current(p, call->error);
    struct arena_point start = arena_point(&batch->memory); /* behind what binding took */
    if (status == PAWL_OK)
        status = find_workspace(p, r, &state, &facts, call->error);
    if (status == PAWL_OK)
        status = find_key(p, call, &state, &facts, &repeated);
    if (status == PAWL_OK && repeated != 0) {
        repeat_check(p, call, repeated);
        return PAWL_OK;
    }
    if (status == PAWL_OK)
        status = check_expectation(call, &facts);
    struct build build = {.schema = p->schema,
                          .request = r,
                          .workspace = &facts,
                          .state = &state,
                          .sequencer = p->sequencer,
                          .now = pawl_env_wall_now(p->options.env),
                          .event_bytes_max = p->options.event_bytes_max,
                          .memory = &batch->memory};
    if (status == PAWL_OK)
        status = build_event(&build, &built, call->error);
    if (status == PAWL_OK)
        status = stage(p, batch, &state, call, &built);
    if (status == PAWL_OK) {
        note_staged(p, r, facts, &built);
        return PAWL_OK;
    }
    arena_rewind(&batch->memory, start);
    if (status == PAWL_EBUSY)
        return status;
    if (call->error && call->error->code != status) /* an error of the store, which does not know the request */
        error_set(call->error, status, "the state cannot be read: %s", pawl_status_text(status));
    processor_answer(p, call, status);
    return PAWL_OK;
}

/* Prefetch what the sequencer will need for the next commands into the CPU's cache, all at once. */
static void fetch_ahead(struct processor *p)
{
    uint64_t wsids[FETCH_AHEAD];
    size_t count = 0;
    for (const struct call *call = p->queue.first; call && count < FETCH_AHEAD; call = call->next)
        wsids[count++] = call->request->wsid;
    if (count > 1)
        pawl_sequencer_prefetch(p->sequencer, wsids, count);
}

/* The sequencer has no room for a command now. Try it again later; late.c refuses it if it has waited long
 * enough. */
static void wait_for_room(struct processor *p, struct call *call)
{
    struct call_list back;
    call_list_init(&back);
    call_list_add(&back, call);
    call_list_return(&p->queue, &back);
    writer_pause(&p->writer, PAUSE);
}

static void fill(struct processor *p, struct writer_batch *batch)
{
    size_t taken = 0;
    while (p->queue.first && batch->count < p->options.batch_events_max
           && batch->bytes < p->options.batch_bytes_max) {
        if (taken++ % FETCH_AHEAD == 0)
            fetch_ahead(p);
        struct call *call = call_list_take(&p->queue);
        if (process(p, batch, call) == PAWL_EBUSY) {
            wait_for_room(p, call);
            return;
        }
    }
}

void processor_run(struct processor *p)
{
    while (p->writer.state == WRITER_RUNNING && !p->writer.pausing) {
        if (p->options.applier->stuck != PAWL_OK)
            call_list_refuse(&p->queue, p->options.applier->stuck, "the state cannot be written");
        struct writer_batch *batch = p->writer.state == WRITER_RUNNING ? writer_fill(&p->writer) : NULL;
        if (!batch) /* all batches are under way; or a caller that was refused has closed it */
            return;
        fill(p, batch);
        if (batch->count == 0) {
            assert(!p->waiting[batch->index].first);
            writer_unfill(batch);
            return;
        }
        if (p->writer.state != WRITER_RUNNING) /* a caller that was answered may have closed it */
            return;
        if (!writer_send(&p->writer, batch))
            return;
        p->figures.batches++;
    }
}

int processor_submit(struct processor *p, struct call *call)
{
    if (p->writer.state == WRITER_CLOSED)
        return error_set(call->error, PAWL_ECLOSED, "the partition is closed");
    if (p->writer.state == WRITER_REFUSED)
        return error_set(call->error, p->writer.error.code, "%s", p->writer.error.text);
    if (p->queue.count >= p->options.queue_max)
        return error_set(call->error, PAWL_EBUSY, "partition %u has %zu commands waiting", p->options.partition,
                         p->queue.count);
    if (p->writer.state == WRITER_CLAIMING && p->writer.retrying && p->writer.claim.status == PAWL_EFULL)
        return error_set(call->error, PAWL_EFULL, "%s", p->writer.error.text);
    call->processor = p;
    call->not_repeated = call->repeated = false;
    call->found = NULL;
    call->order = p->submitted++;
    call->deadline = (pawl_instant){pawl_env_now(p->options.env).ns + p->options.wait};
    call_list_add(&p->queue, call);
    late_watch(p);
    return PAWL_OK;
}

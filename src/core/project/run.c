#include "core/project/run.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/project/cursor.h"

#define ARENA_CHUNK  ((size_t)4096)
#define BUFFER_CHUNK ((size_t)64 * 1024)
#define BUFFER_KEPT  ((size_t)1 << 20) /* kept for the next snapshot */

struct lane_event *lane_event_new(const pawl_allocator *alloc, uint64_t offset, pawl_bytes body)
{
    struct lane_event *event = mem_resize(alloc, NULL, 0, sizeof *event + body.size);
    if (!event)
        return NULL;
    atomic_init(&event->references, 1);
    event->alloc = alloc;
    event->offset = offset;
    event->size = body.size;
    memcpy(event->bytes, body.data, body.size);
    return event;
}

struct lane_event *lane_event_hold(struct lane_event *event)
{
    atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
    return event;
}

void lane_event_drop(struct lane_event *event)
{
    if (event && atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) == 1)
        mem_free(event->alloc, event, sizeof *event + event->size);
}

void run_init(struct run *run, const pawl_allocator *alloc)
{
    *run = (struct run){.alloc = alloc};
    arena_init(&run->memory, alloc, ARENA_CHUNK);
    operation_maker_init(&run->writes, alloc);
    reads_init(&run->seen, alloc);
    reads_init(&run->used, alloc);
}

size_t run_held(const struct run *run)
{
    return run->memory.held + run->writes.room + reads_held(&run->seen) + reads_held(&run->used);
}

void run_promise(struct run *run, struct promise promise)
{
    run->promise = run->seen.promise = run->used.promise = promise;
    run->seen.promised = run->used.promised = 0;
}

void run_unpromise(struct run *run)
{
    run->promise = run->used.promise = (struct promise){0};
    run->used.promised = 0;
}

void run_reset(struct run *run)
{
    lane_event_drop(run->event);
    run->event = NULL;
    run->staged_rows = NULL;
    run->base = 0;
    run->may_ask_again = false;
    run->promises = false;
    run_promise(run, (struct promise){0});
    run->made = (struct promise){0};
    run->intents = NULL;
    run->intent_count = 0;
    run->status = PAWL_OK;
    run->failed = run->permanent = false;
    error_clear(&run->error);
    arena_reset(&run->memory);
    operation_maker_reset(&run->writes);
    reads_reset(&run->seen, UINT64_MAX);
    reads_reset(&run->used, UINT64_MAX);
}

void run_release(struct run *run)
{
    lane_event_drop(run->event);
    run->event = NULL;
    arena_release(&run->memory);
    operation_maker_release(&run->writes);
    reads_release(&run->seen);
    reads_release(&run->used);
}

int run_buffers_init(struct run_buffers *buffers, const pawl_allocator *alloc)
{
    *buffers = (struct run_buffers){.alloc = alloc};
    overlay_init(&buffers->overlay, alloc);
    arena_init(&buffers->memory, alloc, BUFFER_CHUNK);
    buffers->scratch = mem_new(alloc, 1, STATE_SCRATCH_BYTES);
    return buffers->scratch ? PAWL_OK : PAWL_ENOMEM;
}

void run_buffers_release(struct run_buffers *buffers)
{
    overlay_release(&buffers->overlay);
    arena_release(&buffers->memory);
    mem_free(buffers->alloc, buffers->scratch, buffers->scratch ? STATE_SCRATCH_BYTES : 0);
}

/* A row that is gone is pushed, too, also if the snapshot does not have it: the next snapshot may. */
static int push_row(struct run_buffers *buffers, const struct state *state, pawl_bytes key, pawl_bytes value)
{
    return state_change(state, &buffers->memory, &buffers->staged, key, (pawl_bytes){0}, value);
}

/* Put the rows that were staged before the run over those of the store, which has not come as far. If the store has a
 * row already, the two agree, or the staged one is newer. */
static int push_staged_rows(struct run_buffers *buffers, const struct staged_row *row,
                            const struct state *state)
{
    int status = PAWL_OK;
    for (; row && status == PAWL_OK; row = row->next)
        status = push_row(buffers, state, row->key, row->value);
    return status;
}

static int push_promise(struct run_buffers *buffers, const struct promise *promise, const struct state *state)
{
    int status = PAWL_OK;
    for (size_t i = 0; i < promise->count && status == PAWL_OK; i++)
        status = push_row(buffers, state, promise->rows[i].key, promise->rows[i].value);
    return status;
}

int run_open_snapshot(struct run *run, pawl_store *store, struct run_buffers *buffers, struct reads *reads,
                      struct state *ret_state)
{
    uint64_t applied = 0, scanned;
    int status = pawl_store_snapshot(store, &buffers->snapshot);
    if (status != PAWL_OK)
        return status;
    buffers->store = store;
    buffers->staged = (struct changes){0};
    buffers->slices = 0;
    arena_reset(&buffers->memory);
    struct state state = {
        .overlay = &buffers->overlay, .reader = buffers->snapshot, .scratch = buffers->scratch};
    status = cursor_peek(buffers->snapshot, run->partition, run->lane, run->generation, &applied, &scanned);
    /* A snapshot that has come as far has all of the staged rows, and may have newer ones. */
    if (status == PAWL_OK && applied < run->base) {
        applied = run->base;
        status = push_staged_rows(buffers, run->staged_rows, &state);
    }
    if (status == PAWL_OK) /* P2 */
        status = push_promise(buffers, &run->promise, &state);
    if (status != PAWL_OK) {
        run_close_snapshot(buffers);
        return status;
    }
    if (applied < reads->at)
        reads->at = applied;
    *ret_state = state;
    return PAWL_OK;
}

void run_close_snapshot(struct run_buffers *buffers)
{
    overlay_remove(&buffers->overlay, &buffers->staged);
    pawl_store_release(buffers->store, buffers->snapshot);
    buffers->snapshot = NULL;
    if (buffers->memory.held > BUFFER_KEPT)
        arena_release(&buffers->memory);
}

/* A clause over many rows goes on in a fresh snapshot. reads->at stays that of the first one. */
static int exchange(void *ctx, pawl_reader **reader)
{
    struct run_buffers *buffers = ctx;
    pawl_reader *fresh;
    int status = pawl_store_snapshot(buffers->store, &fresh);
    if (status != PAWL_OK)
        return status;
    pawl_store_release(buffers->store, buffers->snapshot);
    buffers->snapshot = *reader = fresh;
    buffers->slices++;
    return PAWL_OK;
}

static bool is_its_own_fault(int status)
{
    return status == PAWL_EINVAL || status == PAWL_ETOOBIG;
}

int run_explode(struct run *run, pawl_store *store, struct run_buffers *buffers, pawl_error *error)
{
    struct state state;
    struct event event;
    struct changes changes;
    reads_reset(&run->used, UINT64_MAX);
    run->status = PAWL_OK;
    int status = event_decode((pawl_bytes){run->event->bytes, run->event->size}, &event, error);
    if (status == PAWL_OK && !run->intents && !run->projector->handler)
        status = intents_of(run->projector, &run->memory, &run->intents, &run->intent_count);
    if (status == PAWL_OK)
        status = run_open_snapshot(run, store, buffers, &run->used, &state);
    if (status != PAWL_OK)
        return status;
    struct derivation derivation = {.offset = run->event->offset, .event = &event, .schema = run->schema};
    struct explosion explosion = {.derivation = &derivation,
                                  .generation = run->generation,
                                  .intents = run->intents,
                                  .intent_count = run->intent_count,
                                  .writes = &run->writes,
                                  .reads = &run->used,
                                  .pause = exchange,
                                  .pause_ctx = buffers};
    error_clear(&run->error);
    status = explode(&explosion, &state, &buffers->memory, &changes, &run->error);
    if (status == PAWL_OK && (!run->promises || promise_make(&run->made, &run->memory, &changes) != PAWL_OK))
        run->made = (struct promise){0};
    if (status == PAWL_OK)
        overlay_remove(&buffers->overlay, &changes);
    run_close_snapshot(buffers);
    run->rows = buffers->slices * ACTING_SLICE;
    if (is_its_own_fault(status)) {
        run->status = status;
        return PAWL_OK;
    }
    if (status != PAWL_OK)
        return error_set(error, status, "%s", run->error.text);
    return PAWL_OK;
}

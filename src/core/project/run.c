#include "core/project/run.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/project/cursor.h"

#define ARENA_CHUNK ((size_t)4096)
#define ROOM_CHUNK  ((size_t)64 * 1024)
#define ROOM_KEPT   ((size_t)1 << 20) /* for the next look */

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

void run_reset(struct run *run)
{
    lane_event_drop(run->event);
    run->event = NULL;
    run->front = NULL;
    run->at_turn = false;
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

int run_room_init(struct run_room *room, const pawl_allocator *alloc)
{
    *room = (struct run_room){.alloc = alloc};
    overlay_init(&room->overlay, alloc);
    arena_init(&room->memory, alloc, ROOM_CHUNK);
    room->scratch = mem_new(alloc, 1, STATE_SCRATCH_BYTES);
    return room->scratch ? PAWL_OK : PAWL_ENOMEM;
}

void run_room_release(struct run_room *room)
{
    overlay_release(&room->overlay);
    arena_release(&room->memory);
    mem_free(room->alloc, room->scratch, room->scratch ? STATE_SCRATCH_BYTES : 0);
}

/* What lies in front of a repeated run, over what the store has: for a row that both have they agree, or the
 * overlay is the later one. */
static int push_front(struct run_room *room, const struct front_row *front, const struct state *state)
{
    int status = PAWL_OK;
    for (; front && status == PAWL_OK; front = front->next) {
        pawl_bytes old = {0};
        status = state_get(state, front->key, &old);
        if (status == PAWL_ENOTFOUND)
            status = PAWL_OK;
        if (status == PAWL_OK && (front->value.data || old.data))
            status = state_change(state, &room->memory, &room->front, front->key, old, front->value);
    }
    return status;
}

int run_look(struct run *run, pawl_store *store, struct run_room *room, struct reads *reads,
             struct state *ret_state)
{
    uint64_t applied = 0, scanned;
    int status = pawl_store_snapshot(store, &room->snapshot);
    if (status != PAWL_OK)
        return status;
    room->store = store;
    room->front = (struct changes){0};
    room->slices = 0;
    arena_reset(&room->memory);
    struct state state = {.overlay = &room->overlay, .reader = room->snapshot, .scratch = room->scratch};
    if (run->at_turn) {
        applied = run->number - 1;
        status = push_front(room, run->front, &state);
    } else
        status = cursor_peek(room->snapshot, run->partition, run->lane, run->generation, &applied, &scanned);
    if (status != PAWL_OK) {
        run_look_away(room);
        return status;
    }
    if (applied < reads->at)
        reads->at = applied;
    *ret_state = state;
    return PAWL_OK;
}

void run_look_away(struct run_room *room)
{
    overlay_remove(&room->overlay, &room->front);
    pawl_store_release(room->store, room->snapshot);
    room->snapshot = NULL;
    if (room->memory.held > ROOM_KEPT)
        arena_release(&room->memory);
}

/* A clause over many rows goes on in a fresh snapshot; the one it began with is the one that is noted. */
static int exchange(void *ctx, pawl_reader **reader)
{
    struct run_room *room = ctx;
    pawl_reader *fresh;
    int status = pawl_store_snapshot(room->store, &fresh);
    if (status != PAWL_OK)
        return status;
    pawl_store_release(room->store, room->snapshot);
    room->snapshot = *reader = fresh;
    room->slices++;
    return PAWL_OK;
}

static bool is_its_own_fault(int status)
{
    return status == PAWL_EINVAL || status == PAWL_ETOOBIG;
}

int run_explode(struct run *run, pawl_store *store, struct run_room *room, pawl_error *error)
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
        status = run_look(run, store, room, &run->used, &state);
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
                                  .pause_ctx = room};
    error_clear(&run->error);
    status = explode(&explosion, &state, &room->memory, &changes, &run->error);
    if (status == PAWL_OK)
        overlay_remove(&room->overlay, &changes);
    run_look_away(room);
    run->rows = room->slices * ACTING_SLICE;
    if (is_its_own_fault(status)) {
        run->status = status;
        return PAWL_OK;
    }
    if (status != PAWL_OK)
        return error_set(error, status, "%s", run->error.text);
    return PAWL_OK;
}

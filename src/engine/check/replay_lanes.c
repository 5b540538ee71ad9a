#include "engine/check/replay_lanes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapter/journal/journal.h"
#include "base/alloc.h"
#include "base/error.h"
#include "engine/json/json.h"
#include "engine/log/log.h"
#include "engine/read/read.h"

#define OPERATIONS_AT_ONCE 4096 /* in one transaction */
#define ARENA_CHUNK        ((size_t)256 * 1024)
#define SIDES_MAX          2
#define KEY_SHOWN_MAX      120 /* bytes of a row's key, as JSON */

/* One generation of a lane. */
struct replaying {
    struct replay_lanes *lanes;
    const struct schema_lane *lane;
    uint32_t generation;
    struct cursor derived;
    struct cursor stored[SIDES_MAX];
    bool known[SIDES_MAX]; /* whether the stored cursor could be read */
    struct log_entries operations;
    struct reproject reproject;
    struct gathered gathered;
    struct arena memory;
    uint64_t uncommitted;
    int status; /* of the last visit */

    struct rerun *rerun; /* runs handlers again */
};

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    const struct replaying *r = ctx;
    return engine_schema_at(r->lanes->source, position);
}

static const struct schema *schema_for(void *ctx, uint16_t lane, uint32_t generation, uint64_t event_schema)
{
    const struct replaying *r = ctx;
    return engine_schema_for(r->lanes->source, lane, generation, event_schema);
}

static int commit(struct replaying *r, pawl_error *error)
{
    struct view_tables *views = r->lanes->views;
    r->uncommitted = 0;
    arena_reset(&r->memory);
    if (!views)
        return redo_commit(&r->reproject.redo, error);
    int status = redo_put(&r->reproject.redo, error);
    if (status != PAWL_OK)
        return status;
    status = view_tables_flush(views);
    if (status == PAWL_OK)
        status = pawl_store_commit(r->lanes->store);
    if (status != PAWL_OK)
        return error_set(error, status, "%s", r->lanes->store->error.text);
    view_tables_committed(views);
    return PAWL_OK;
}

/* Compare with each side whose tables are at the same operation. */
static int compare_sides(struct replaying *r, pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < r->lanes->side_count; i++) {
        struct compare_side *side = &r->lanes->sides[i];
        if (!side->store || !r->known[i] || r->stored[i].applied != r->derived.applied)
            continue;
        status = gathered_put(&r->gathered, r->lanes->store, error);
        if (status != PAWL_OK)
            return status;
        status = compare_lane(side, r->lane, &r->derived, &r->stored[i], pawl_store_writer(r->lanes->store));
        if (status != PAWL_OK)
            return error_set(error, status, "cannot compare the tables of lane %.*s", (int)r->lane->name.size,
                             (const char *)r->lane->name.data);
    }
    return status;
}

/* After an operation was applied: compare, and commit now and then. */
static int step(struct replaying *r, pawl_error *error)
{
    int status = compare_sides(r, error);
    if (status != PAWL_OK)
        return status;
    return ++r->uncommitted == OPERATIONS_AT_ONCE ? commit(r, error) : PAWL_OK;
}

/* The next operation of the log. The one before it is done: step. */
static int next_operation(void *ctx, struct logged *ret_logged, pawl_error *error)
{
    struct replaying *r = ctx;
    const struct copied_entry *entry;
    int status = r->derived.applied > 0 ? step(r, error) : PAWL_OK;
    if (status == PAWL_OK)
        status = log_entries_next(&r->operations, &entry, error);
    if (status != PAWL_OK)
        return status;
    *ret_logged = (struct logged){.number = entry->offset, .place = entry->place, .body = entry->body};
    return PAWL_OK;
}

/* Note that an operation cannot be worked out again, because its handler is not registered. */
static void note_unchecked(pawl_lane_verdict *report, const struct schema_projector *projector)
{
    size_t i = 0;
    report->unchecked++;
    while (i < report->unchecked_count
           && !bytes_equal(
               (pawl_bytes){report->unchecked_by[i].projector, strlen(report->unchecked_by[i].projector)},
               projector->name))
        i++;
    if (i == PAWL_UNCHECKED_MAX)
        return;
    struct pawl_unchecked *one = &report->unchecked_by[i];
    if (i == report->unchecked_count) {
        report->unchecked_count++;
        snprintf(one->projector, sizeof one->projector, "%.*s", (int)projector->name.size,
                 (const char *)projector->name.data);
    }
    one->operations++;
}

/* A handler reads through a snapshot, which has only what is committed. So commit everything before it runs.
 * Its intents last until the next handler runs. */
static int handle(void *ctx, const struct derivation *derivation, const struct schema_projector *projector,
                  uint32_t attempt, const struct state *state, struct arena *memory,
                  const struct intent **ret_intents, size_t *ret_count, pawl_error *error)
{
    struct replaying *r = ctx;
    (void)state;
    (void)memory;
    if (!rerun_can(r->rerun, projector)) {
        note_unchecked(r->lanes->report, projector);
        return PAWL_ENOTFOUND;
    }
    int status = r->uncommitted > 0 ? commit(r, error) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    struct rerun_of of = {
        .event = lane_event_new(r->lanes->alloc, derivation->offset, r->reproject.body),
        .number = r->derived.applied + 1,
        .attempt = attempt,
        .partition = r->lanes->partition,
        .lane = r->lane->id,
        .generation = r->generation,
        .schema = derivation->schema,
        .projector = projector,
    };
    return of.event ? rerun_handle(r->rerun, &of, ret_intents, ret_count, error) : PAWL_ENOMEM;
}

/* Apply an operation as it was logged. Operations of events behind until are left out. */
static bool apply_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct replaying *r = read->arg;
    struct operation op;
    r->status = r->lanes->until ? operation_decode(entry->body, &op, read->error) : PAWL_OK;
    if (r->lanes->until && r->status == PAWL_OK && op.event > r->lanes->until)
        return false;
    if (r->status == PAWL_OK)
        r->status = redo_operation(&r->reproject.redo, entry->offset, place, entry->body, read->error);
    if (r->status != PAWL_OK) {
        error_wrap(read->error, r->status, "operation %" PRIu64, entry->offset);
        return false;
    }
    r->reproject.operations++;
    r->status = step(r, read->error);
    return r->status == PAWL_OK;
}

static int apply(struct replaying *r, pawl_error *error)
{
    int status =
        engine_read_log(r->lanes->source, r->operations.stream, 1, UINT64_MAX, apply_entry, r, NULL, error);
    return status == PAWL_OK ? r->status : status;
}

/* The events have ended. If there is one more operation, there must be a new event for it, because an event is
 * in the log before its operations: both have grown meanwhile. */
static int end_together(struct replaying *r, struct log_entries *events, pawl_error *error)
{
    struct logged logged;
    const struct copied_entry *entry;
    int status = next_operation(r, &logged, error);
    if (status != PAWL_OK)
        return status;
    uint64_t number = logged.number;
    status = log_entries_next(events, &entry, error);
    return status == PAWL_ENOTFOUND
               ? error_set(error, PAWL_ECORRUPT, "operation %" PRIu64 " belongs to no event", number)
               : status;
}

/* Work out the operations of each event, and compare them with those that the log has. */
static int work_out_again(struct replaying *r, pawl_error *error)
{
    struct log_entries events;
    const struct copied_entry *entry;
    bool ended = false;
    int status = PAWL_OK;
    pawl_stream plog = {.kind = PAWL_STREAM_PLOG, .partition = r->lanes->partition};
    log_entries_init(&events, r->lanes->source->log, plog, 1, r->lanes->alloc);
    while (!ended && (status = log_entries_next(&events, &entry, error)) == PAWL_OK) {
        if (r->lanes->until && entry->offset > r->lanes->until)
            break;
        status = reproject_event(&r->reproject, entry->offset, entry->body, &ended, error);
        if (status != PAWL_OK)
            break;
    }
    bool over = !ended && (status == PAWL_OK || status == PAWL_ENOTFOUND);
    if (over && !r->lanes->until)
        status = end_together(r, &events, error);
    else if (over && r->derived.applied > 0)
        status = step(r, error); /* of the last operation; next_operation does it for all others */
    log_entries_release(&events);
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

/* A longer text is cut, but not inside a UTF-8 character. */
static int shown_length(const struct json_out *out)
{
    size_t length = out->size < KEY_SHOWN_MAX ? out->size : KEY_SHOWN_MAX;
    while (length < out->size && length > 0 && ((unsigned char)out->data[length] & 0xc0) == 0x80)
        length--;
    return (int)length;
}

static void describe_row(const struct replaying *r, const struct reproject_difference *d, char *text,
                         size_t size)
{
    struct json_out key;
    json_out_init(&key, r->lanes->alloc);
    int used = snprintf(text, size, ", row of %.*s in workspace %" PRIu64, (int)d->entity->name.size,
                        (const char *)d->entity->name.data, d->wsid);
    if (used > 0 && (size_t)used < size && json_show_key(&key, d->schema, d->entity, d->key, NULL) == PAWL_OK)
        snprintf(text + used, size - (size_t)used, ", key %.*s%s", shown_length(&key), key.data,
                 key.size > KEY_SHOWN_MAX ? "..." : "");
    json_out_release(&key);
}

static void tell_difference(struct replaying *r)
{
    const struct reproject_difference *d = &r->reproject.first;
    pawl_lane_verdict *report = r->lanes->report;
    char row[SCHEMA_QNAME_BYTES_MAX + KEY_SHOWN_MAX + 64] = "";
    if (r->reproject.differences == 0)
        return;
    if (d->entity)
        describe_row(r, d, row, sizeof row);
    if (report->differences == 0)
        error_set(&report->first, PAWL_ECORRUPT,
                  "partition %u, lane %.*s, operation %" PRIu64 " (event %" PRIu64 ", projector %.*s)%s: %s",
                  r->lanes->partition, (int)r->lane->name.size, (const char *)r->lane->name.data, d->number,
                  d->event, (int)d->projector->name.size, (const char *)d->projector->name.data, row, d->words);
    report->differences += r->reproject.differences;
}

static int replay(struct replaying *r, pawl_error *error)
{
    int status = r->lanes->reproject ? work_out_again(r, error) : apply(r, error);
    if (status == PAWL_OK && r->uncommitted > 0)
        status = commit(r, error);
    if (status == PAWL_OK && r->derived.applied == 0) /* else step has compared after each operation */
        status = compare_sides(r, error);
    if (status != PAWL_OK)
        return error_wrap(error, status, "lane %.*s, generation %" PRIu32 ", partition %u",
                          (int)r->lane->name.size, (const char *)r->lane->name.data, r->generation,
                          r->lanes->partition);
    for (size_t i = 0; i < r->lanes->side_count && !r->lanes->until; i++)
        if (r->known[i])
            compare_lane_ended(&r->lanes->sides[i], r->lane, &r->stored[i], r->derived.applied);
    r->lanes->report->operations += r->reproject.operations;
    r->lanes->report->compared += r->reproject.compared;
    tell_difference(r);
    return PAWL_OK;
}

static int read_cursors(struct replaying *r, pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; i < r->lanes->side_count; i++) {
        struct compare_side *side = &r->lanes->sides[i];
        cursor_init(&r->stored[i], r->lanes->alloc, r->lanes->partition, r->lane->id, r->generation);
        if (side->store && status == PAWL_OK)
            status = compare_read_cursor(side, &r->stored[i], &r->known[i], error);
        if (r->known[i] && !node_is_on_kafka(&r->lanes->source->file))
            journal_witness(r->lanes->source->log, r->stored[i].place); /* for the same reason as in replay.c */
    }
    return status;
}

static int replay_generation(struct replay_lanes *lanes, const struct schema_lane *lane, uint32_t generation,
                             pawl_error *error)
{
    struct replaying r = {.lanes = lanes, .lane = lane, .generation = generation};
    pawl_stream oplog = {
        .kind = PAWL_STREAM_OPLOG, .partition = lanes->partition, .lane = lane->id, .generation = generation};
    uint8_t *scratch = mem_new(lanes->alloc, 1, STATE_SCRATCH_BYTES);
    if (!scratch)
        return error_set(error, PAWL_ENOMEM, "no memory to replay");
    cursor_init(&r.derived, lanes->alloc, lanes->partition, lane->id, generation);
    gathered_init(&r.gathered, lanes->alloc);
    r.gathered.watch = lanes->views ? view_tables_watch(lanes->views) : NULL;
    arena_init(&r.memory, lanes->alloc, ARENA_CHUNK);
    log_entries_init(&r.operations, lanes->source->log, oplog, 1, lanes->alloc);
    reproject_init(&r.reproject, lanes->alloc);
    r.reproject.redo = (struct redo){.store = lanes->store,
                                     .cursor = &r.derived,
                                     .gathered = &r.gathered,
                                     .memory = &r.memory,
                                     .scratch = scratch,
                                     .schema_at = schema_at,
                                     .ctx = &r,
                                     .at_once = lanes->reproject};
    r.reproject.lane = lane->id;
    r.reproject.generation = generation;
    r.reproject.schema_for = schema_for;
    r.reproject.next = next_operation;
    r.reproject.handle = handle;
    r.reproject.ctx = &r;
    int status = rerun_new(lanes->source, lanes->store, lanes->alloc, &r.rerun);
    if (status != PAWL_OK)
        error_set(error, status, "no memory to replay");
    if (status == PAWL_OK)
        status = read_cursors(&r, error);
    if (status == PAWL_OK)
        status = replay(&r, error);
    for (size_t i = 0; i < lanes->side_count; i++)
        cursor_release(&r.stored[i]);
    rerun_free(r.rerun);
    reproject_release(&r.reproject);
    log_entries_release(&r.operations);
    arena_release(&r.memory);
    gathered_release(&r.gathered);
    cursor_release(&r.derived);
    mem_free(lanes->alloc, scratch, STATE_SCRATCH_BYTES);
    return status;
}

int replay_lanes(struct replay_lanes *lanes, pawl_error *error)
{
    const struct schema *schema = engine_schema(lanes->source);
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < schema->lane_count; i++) {
        const struct schema_lane *lane = &schema->lanes[i];
        if (lanes->only && lanes->only->id != lane->id)
            continue;
        status = replay_generation(lanes, lane, lane->generation, error);
        if (status == PAWL_OK && lane->serving && lane->serving != lane->generation)
            status = replay_generation(lanes, lane, lane->serving, error);
    }
    return status;
}

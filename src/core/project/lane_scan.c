/* core/project/lane_scan.c: from the PLog to matches.
 *
 * Events are read in slices, as long as there is room for the numbers they may need. Binding depends only on
 * the log and the generation's projectors: the n-th match is number n, whenever and wherever it is found
 * (N1). */
#include <inttypes.h>

#include "base/error.h"
#include "core/project/lane_impl.h"
#include "core/project/projector_match.h"

#define EVENTS_AT_ONCE 512

static const struct schema *schema_for(struct lane *lane, uint64_t event_schema)
{
    const struct lane_options *o = &lane->options;
    if (!lane->schema_known || lane->schema_of != event_schema) {
        lane->schema = o->schema_for(o->ctx, o->lane, o->generation, event_schema);
        lane->schema_of = event_schema;
        lane->schema_known = true;
    }
    return lane->schema;
}

/* How many of the lane's projectors match an event. */
static size_t count_matches(const struct lane *lane, const struct schema *schema, const struct event *event)
{
    size_t count = 0;
    for (size_t i = 0; i < schema->projector_count; i++)
        count += schema->projectors[i].lane == lane->options.lane
                 && projector_matches(&schema->projectors[i], event->head.command);
    return count;
}

static int bind(struct lane *lane, uint32_t projection, const struct lane_binding *binding)
{
    uint64_t number;
    int status = pawl_leases_bind(lane->leases, projection, NULL, binding->event->size, &number);
    if (status != PAWL_OK)
        return status;
    lane->bound = number;
    *lane_binding(lane, number) = *binding;
    lane_event_hold(binding->event);
    schedule_bind(&lane->schedule, number);
    return PAWL_OK;
}

static int bind_matches(struct lane *lane, const struct schema *schema, const struct event *event,
                        struct lane_event *held, size_t matches)
{
    uint32_t projection = 0, index = 0;
    int status = PAWL_OK;
    for (size_t i = 0; i < schema->projector_count && status == PAWL_OK; i++) {
        const struct schema_projector *projector = &schema->projectors[i];
        if (projector->lane != lane->options.lane)
            continue;
        if (projector_matches(projector, event->head.command) && ++index > lane->skip) {
            struct lane_binding binding = {.event = held,
                                           .schema = schema,
                                           .projector = projector,
                                           .wsid = event->envelope.wsid,
                                           .projection = projection,
                                           .index = index,
                                           .last = index == matches};
            status = bind(lane, projection, &binding);
        }
        projection++;
    }
    return status;
}

static int take_event(struct lane *lane, const pawl_entry *entry)
{
    struct event event;
    int status = event_decode(entry->body, &event, &lane->writer.error);
    if (status != PAWL_OK)
        return error_wrap(&lane->writer.error, PAWL_ECORRUPT, "plog/%u, offset %" PRIu64,
                          lane->options.partition, entry->offset);
    const struct schema *schema = schema_for(lane, event.head.schema);
    size_t matches = schema ? count_matches(lane, schema, &event) : 0;
    if (lane->skip > matches)
        return error_set(&lane->writer.error, PAWL_ECORRUPT,
                         "plog/%u, offset %" PRIu64 ": the log of operations has %" PRIu64
                         " for an event that has %zu",
                         lane->options.partition, entry->offset, lane->skip, matches);
    if (matches > lane->skip) {
        struct lane_event *held = lane_event_new(lane->options.allocator, entry->offset, entry->body);
        if (!held)
            return PAWL_ENOMEM;
        status = bind_matches(lane, schema, &event, held, matches);
        lane->bytes += held->size;
        lane_event_drop(held);
    }
    if (status == PAWL_OK)
        lane->skip = 0;
    return status;
}

static bool has_room(const struct lane *lane)
{
    return lane->bytes < lane->options.window_bytes
           && lane->bound - lane->cursor.applied + lane->projections <= lane->options.window;
}

static bool scan_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct lane *lane = read->arg;
    if (lane->writer.state != WRITER_RUNNING || !has_room(lane))
        return false;
    if (entry->offset == lane->seen) /* the last one of the read before: it only says where to begin */
        return true;
    lane->scan_status = take_event(lane, entry);
    if (lane->scan_status != PAWL_OK)
        return false;
    lane->seen = entry->offset;
    lane->place = place;
    return true;
}

static void scanned(pawl_read *read)
{
    struct lane *lane = read->arg;
    lane->scanning = false;
    if (lane->writer.state != WRITER_RUNNING) {
        writer_step(&lane->writer);
        return;
    }
    int status = read->status == PAWL_OK ? lane->scan_status : read->status;
    if (status == PAWL_ECORRUPT || status == PAWL_EVERSION) {
        writer_refuse(&lane->writer, status);
        return;
    }
    if (status != PAWL_OK)
        writer_pause(&lane->writer, 10 * PAWL_MILLISECOND);
    if (lane->cursor.applied == lane->bound) {
        lane_move_cursor(lane);
        lane_tell_applied(lane);
    }
    lane_pump(lane);
}

void lane_scan(struct lane *lane)
{
    if (lane->writer.state != WRITER_RUNNING || lane->scanning || lane->writer.pausing
        || lane->seen >= lane->known || !has_room(lane))
        return;
    lane->scan_status = PAWL_OK;
    lane->scan = (pawl_read){.stream = {.kind = PAWL_STREAM_PLOG, .partition = lane->options.partition},
                             .from = lane->place.position ? lane->seen : lane->seen + 1,
                             .at = lane->place,
                             .limit = EVENTS_AT_ONCE,
                             .visit = scan_entry,
                             .done = scanned,
                             .arg = lane,
                             .error = &lane->writer.error};
    lane->scanning = pawl_log_read(lane->options.log, &lane->scan) == PAWL_OK;
    if (!lane->scanning)
        writer_pause(&lane->writer, 10 * PAWL_MILLISECOND);
}

/* engine/read/operations.c: operations as they are read: from a lane's log, decoded under the schema they name. */
#include <inttypes.h>

#include "base/error.h"
#include "core/project/operation.h"
#include "engine/node/node.h"
#include "engine/read/operation.h"
#include "engine/read/read.h"

struct showing {
    pawl_engine *engine;
    pawl_operation_visit visit;
    void *arg;
    struct json_out out;
    int status;
    pawl_error *error;
};

static bool show(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct showing *s = read->arg;
    struct pawl_operation_source source;
    pawl_operation operation;
    (void)place;
    s->status =
        operation_show(s->engine, entry->stream.partition, entry->body, &s->out, &source, &operation, s->error);
    if (s->status != PAWL_OK) {
        error_wrap(s->error, s->status, "operation %" PRIu64, entry->offset);
        return false;
    }
    return s->visit(s->arg, &operation);
}

static void never_called(pawl_read *read)
{
    (void)read;
}

/* The log of a generation that the lane has, or once had. */
static int find_log(pawl_engine *e, uint16_t partition, const char *name, uint32_t generation,
                    pawl_stream *ret_stream, pawl_error *error)
{
    const struct schema_lane *lane;
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    const struct schema *schema = engine_schema_refresh(e);
    status = lanes_find(e, name, &lane, error);
    if (status != PAWL_OK)
        return status;
    if (partition >= e->file.partitions)
        return error_set(error, PAWL_EINVAL, "there is no partition %u", partition);
    if (generation == 0)
        generation = lane->serving ? lane->serving : lane->generation;
    else if (!engine_schema_for(e, lane->id, generation, schema->position))
        return error_set(error, PAWL_ENOTFOUND, "lane %s has no generation %" PRIu32, name, generation);
    *ret_stream = (pawl_stream){
        .kind = PAWL_STREAM_OPLOG, .partition = partition, .lane = lane->id, .generation = generation};
    return PAWL_OK;
}

/* --- the operations of an event --- */

struct probing {
    uint64_t event;
    int status;
};

static bool probe(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct probing *p = read->arg;
    struct operation op;
    (void)place;
    p->status = operation_decode(entry->body, &op, read->error);
    if (p->status == PAWL_OK)
        p->event = op.event;
    else
        error_wrap(read->error, p->status, "operation %" PRIu64, entry->offset);
    return false;
}

/* Whether an operation is there, and of an event before this one. */
static int is_before(pawl_engine *e, pawl_stream log, uint64_t number, uint64_t event, bool *ret_before,
                     pawl_error *error)
{
    struct probing p = {.event = UINT64_MAX};
    int status = engine_read_log(e, log, number, 1, probe, &p, NULL, error);
    if (status == PAWL_OK)
        status = p.status;
    if (status == PAWL_OK)
        *ret_before = p.event < event;
    return status;
}

/* Operations are in the order of their events. Where the log ends is not known, so the number is doubled until
 * it is far enough, and what is between it and the one before is halved. */
int pawl_operations_find(pawl_engine *e, uint16_t partition, const char *name, uint32_t generation,
                         uint64_t event, uint64_t *ret_number, pawl_error *error)
{
    uint64_t before = 0, number = 1;
    bool is = false;
    pawl_stream log;
    int status = find_log(e, partition, name, generation, &log, error);
    while (status == PAWL_OK && (status = is_before(e, log, number, event, &is, error)) == PAWL_OK && is) {
        before = number;
        number *= 2;
    }
    while (status == PAWL_OK && number - before > 1) {
        uint64_t middle = before + (number - before) / 2;
        status = is_before(e, log, middle, event, &is, error);
        *(is ? &before : &number) = middle;
    }
    if (status == PAWL_OK)
        *ret_number = number;
    return status;
}

int pawl_operations_read(pawl_engine *e, uint16_t partition, const char *name, uint32_t generation,
                         uint64_t from, size_t limit, pawl_operation_visit visit, void *arg, uint64_t *ret_next,
                         pawl_error *error)
{
    pawl_stream log;
    int status = find_log(e, partition, name, generation, &log, error);
    if (status == PAWL_OK && from == 0)
        status = error_set(error, PAWL_EINVAL, "operations begin at 1");
    if (status != PAWL_OK)
        return status;
    struct showing s = {.engine = e, .visit = visit, .arg = arg, .error = error};
    pawl_read read = {.stream = log,
                      .from = from,
                      .limit = limit,
                      .alone = true,
                      .visit = show,
                      .done = never_called,
                      .arg = &s,
                      .error = error};
    json_out_init(&s.out, e->options.allocator);
    status = limit > 0 ? pawl_log_read(e->log, &read) : PAWL_READ_DONE;
    json_out_release(&s.out);
    if (status != PAWL_READ_DONE)
        return error_set(error, status, "cannot read the operations of %s", name);
    if (read.status == PAWL_OK && s.status == PAWL_OK && ret_next)
        *ret_next = limit > 0 ? read.next : from;
    return s.status != PAWL_OK ? s.status : read.status;
}

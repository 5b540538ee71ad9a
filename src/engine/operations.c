/* engine/operations.c: operations as they are read: from a lane's log, decoded under the schema they name. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "core/project/operation.h"
#include "engine/json/show.h"
#include "engine/node.h"

static int show_operation(pawl_engine *e, uint16_t partition, const struct operation *op, struct json_out *out,
                          pawl_error *error)
{
    const struct schema *schema = engine_schema_at(e, op->schema);
    if (!schema)
        return error_set(error, PAWL_ECORRUPT,
                         "it was made under the schema at %" PRIu64 ", which is not known", op->schema);
    return json_operation(out, partition, schema, op, error);
}

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
    struct operation op;
    (void)place;
    json_out_rewind(&s->out, 0);
    s->status = operation_decode(entry->body, &op, s->error);
    if (s->status == PAWL_OK)
        s->status = show_operation(s->engine, entry->stream.partition, &op, &s->out, s->error);
    out_raw(&s->out, (pawl_bytes){"", 1}); /* an end for those who print it */
    if (s->status == PAWL_OK)
        s->status = s->out.status;
    if (s->status != PAWL_OK) {
        error_wrap(s->error, s->status, "operation %" PRIu64, entry->offset);
        return false;
    }
    pawl_operation shown = {.number = op.number,
                            .event = op.event,
                            .wsid = op.wsid,
                            .json = s->out.data,
                            .json_size = s->out.size - 1};
    return s->visit(s->arg, &shown);
}

static void never_called(pawl_read *read)
{
    (void)read;
}

int pawl_operations_read(pawl_engine *e, uint16_t partition, const char *name, uint32_t generation,
                         uint64_t from, size_t limit, pawl_operation_visit visit, void *arg, uint64_t *ret_next,
                         pawl_error *error)
{
    const struct schema_lane *lane;
    int status = engine_enter(e, error);
    if (status == PAWL_OK) {
        (void)engine_schema_refresh(e);
        status = lanes_find(e, name, &lane, error);
    }
    if (status == PAWL_OK && partition >= e->file.partitions)
        status = error_set(error, PAWL_EINVAL, "there is no partition %u", partition);
    if (status == PAWL_OK && from == 0)
        status = error_set(error, PAWL_EINVAL, "operations begin at 1");
    if (status != PAWL_OK)
        return status;
    uint32_t serving = lane->serving ? lane->serving : lane->generation;
    struct showing s = {.engine = e, .visit = visit, .arg = arg, .error = error};
    pawl_read read = {.stream = {.kind = PAWL_STREAM_OPLOG,
                                 .partition = partition,
                                 .lane = lane->id,
                                 .generation = generation ? generation : serving},
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

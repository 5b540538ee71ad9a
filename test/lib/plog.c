#include "test/lib/plog.h"

#include "core/event/event.h"
#include "core/schema/row.h"
#include "core/sequence/storage.h"
#include "test/lib/test.h"

enum { PLOG_STEPS_MAX = 1000000, PLOG_ENTRIES_MAX = 64 };

pawl_bytes plog_body(const struct schema *schema, uint64_t offset, const struct plog_event *event)
{
    const struct schema_type *argument = schema_type_by_name(schema, text_bytes(event->argument));
    struct value values[] = {{.type = VALUE_INT64, .integer = event->k},
                             {.type = VALUE_INT64, .integer = event->by}};
    struct event_numbers numbers = {.seq = SEQ_WLOG_OFFSET, .count = 1, .first = offset};
    struct event_head head = {.command = schema_name_id(schema, text_bytes(event->command)),
                              .object_count = 1,
                              .argument_count = 1,
                              .schema = schema->position,
                              .time = {.ns = (int64_t)offset * 1000},
                              .actor = text_bytes(offset % 3 ? "a" : "someone")};
    size_t row_bytes;
    assert_ok(row_size(values, 2, &row_bytes));
    size_t size = envelope_size(1) + event_head_size(&head) + event_object_size(0, row_bytes);
    uint8_t *body = malloc(size);
    if (!body)
        abort();
    struct event_object object = {.op = EVENT_CREATE,
                                  .active = true,
                                  .type = argument->id,
                                  .raw = 1,
                                  .id = 200000 + offset,
                                  .row = {.size = row_bytes}};
    envelope_encode(schema->workspaces[0].id, event->wsid, &numbers, 1, body);
    uint8_t *at = event_head_write(&head, body + envelope_size(1));
    row_write(values, 2, event_object_write(&object, at));
    return (pawl_bytes){body, size};
}

static void claimed(pawl_claim *claim)
{
    struct plog *plog = claim->arg;
    assert_ok(claim->status);
    plog->epoch = claim->epoch;
}

static bool has_epoch(void *arg)
{
    const struct plog *plog = arg;
    return plog->epoch != 0;
}

static pawl_stream stream_of(const struct plog *plog)
{
    return (pawl_stream){.kind = PAWL_STREAM_PLOG, .partition = plog->partition};
}

void plog_open(struct plog *plog, struct mem_world *world, pawl_log *log, uint16_t partition)
{
    *plog = (struct plog){.world = world, .log = log, .partition = partition};
    pawl_claim claim = {.stream = stream_of(plog), .done = claimed, .arg = plog};
    assert_ok(pawl_log_claim(log, &claim));
    assert_true(mem_world_run_until(world, has_epoch, plog, PLOG_STEPS_MAX));
}

static void appended(pawl_append *append)
{
    bool *is_done = append->arg;
    assert_ok(append->status);
    *is_done = true;
}

static bool is_set(void *arg)
{
    const bool *set = arg;
    return *set;
}

void plog_append(struct plog *plog, const pawl_bytes *bodies, size_t count)
{
    pawl_append_entry entries[PLOG_ENTRIES_MAX];
    bool is_done = false;
    assert_true(count > 0 && count <= PLOG_ENTRIES_MAX);
    for (size_t i = 0; i < count; i++)
        entries[i] = (pawl_append_entry){.entry = {.stream = stream_of(plog),
                                                   .epoch = plog->epoch,
                                                   .offset = plog->last + 1 + i,
                                                   .body = bodies[i]}};
    pawl_append append = {.entries = entries, .count = count, .done = appended, .arg = &is_done};
    assert_ok(pawl_log_append(plog->log, &append));
    assert_true(mem_world_run_until(plog->world, is_set, &is_done, PLOG_STEPS_MAX));
    plog->last += count;
}

struct reading {
    bool (*visit)(void *arg, const pawl_entry *entry, pawl_place place);
    void *arg;
};

static bool read_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    const struct reading *reading = read->arg;
    return reading->visit(reading->arg, entry, place);
}

static void not_called(pawl_read *read)
{
    (void)read;
    abort();
}

void plog_read(pawl_log *log, pawl_stream stream, uint64_t from,
               bool (*visit)(void *arg, const pawl_entry *entry, pawl_place place), void *arg)
{
    struct reading reading = {.visit = visit, .arg = arg};
    pawl_read read = {.stream = stream,
                      .from = from,
                      .limit = UINT64_MAX,
                      .alone = true,
                      .visit = read_entry,
                      .done = not_called,
                      .arg = &reading};
    assert_int_equal(pawl_log_read(log, &read), PAWL_READ_DONE);
    assert_ok(read.status);
}

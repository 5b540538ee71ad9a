/* Attempts that a test makes by hand, and what an operator does. */
#include "core/schema/row.h"
#include "core/state/key.h"
#include "test/lib/lane.h"
#include "test/lib/test.h"

static void finished(struct run *run, int status)
{
    struct attempt *a = run->arg;
    assert_false(a->is_told);
    a->is_told = true;
    a->told = status;
}

struct acquiring {
    struct attempt *attempt;
    uint32_t projection;
    pawl_duration duration;
    bool kept;
    int status;
};

static void acquire(void *arg)
{
    struct acquiring *q = arg;
    struct run *run = &q->attempt->run;
    q->status = q->kept ? lane_acquire_kept(q->attempt->lane, q->projection, q->duration, run)
                        : lane_acquire(q->attempt->lane, q->projection, q->duration, run);
    run->may_ask_again = q->kept;
}

struct resuming {
    struct attempt *attempt;
    uint64_t number;
    pawl_operation_id id;
    bool *again;
    int status;
};

static void resume(void *arg)
{
    struct resuming *r = arg;
    r->status = lane_resume(r->attempt->lane, r->number, r->id, &r->attempt->run, r->again);
}

static void attempt_init(struct attempt *a, struct lane_bed *b, struct lane *lane)
{
    *a = (struct attempt){.bed = b, .lane = lane};
    run_init(&a->run, &b->memory.allocator);
    a->run.finished = finished;
    a->run.arg = a;
}

bool attempt_acquire(struct attempt *a, struct lane_bed *b, size_t lane, uint32_t projection,
                     pawl_duration duration)
{
    struct acquiring q = {.attempt = a, .projection = projection, .duration = duration};
    attempt_init(a, b, b->lanes[lane]);
    lane_bed_call(b, acquire, &q);
    return q.status == PAWL_OK;
}

bool attempt_acquire_kept(struct attempt *a, struct lane_bed *b, size_t lane, uint32_t projection,
                          pawl_duration duration)
{
    struct acquiring q = {.attempt = a, .projection = projection, .duration = duration, .kept = true};
    attempt_init(a, b, b->lanes[lane]);
    lane_bed_call(b, acquire, &q);
    return q.status == PAWL_OK;
}

int attempt_resume(struct attempt *a, struct lane_bed *b, size_t lane, uint64_t number, pawl_operation_id id,
                   bool *ret_again)
{
    struct resuming r = {.attempt = a, .number = number, .id = id, .again = ret_again};
    attempt_init(a, b, b->lanes[lane]);
    lane_bed_call(b, resume, &r);
    return r.status;
}

void attempt_release(struct attempt *a)
{
    run_release(&a->run);
}

pawl_bytes lane_bed_key(const struct lane_bed *b, const char *entity, uint64_t wsid, int64_t k,
                        uint8_t key[LANE_BED_KEY])
{
    const struct schema_type *type = schema_type_by_name(b->schema, text_bytes(entity));
    struct value value = {.type = VALUE_INT64, .integer = k};
    pawl_bytes bytes = key_of_workspace(schema_serving_table(b->schema, type), wsid, key);
    bytes.size += row_key_write(&value, 1, key + bytes.size, LANE_BED_KEY - bytes.size);
    return bytes;
}

static int64_t row_field(const struct lane_bed *b, const char *entity, pawl_bytes bytes, const char *field)
{
    const struct schema_type *type = schema_type_by_name(b->schema, text_bytes(entity));
    struct row row;
    assert_ok(row_open(type->fields, type->field_count, bytes, &row, NULL));
    struct value value = row_get(row, (size_t)schema_field_place(type, text_bytes(field)), VALUE_INT64);
    return value.type == VALUE_NULL ? -1 : value.integer;
}

static uint64_t wsid_of(const struct run *run)
{
    struct event event;
    assert_ok(event_decode((pawl_bytes){run->event->bytes, run->event->size}, &event, NULL));
    return event.envelope.wsid;
}

int64_t attempt_read(struct attempt *a, int64_t k)
{
    struct lane_bed *b = a->bed;
    struct state state;
    uint8_t room[LANE_BED_KEY];
    pawl_bytes key = lane_bed_key(b, "t.Sum", wsid_of(&a->run), k, room), value;
    assert_ok(run_open_snapshot(&a->run, b->store, &b->buffers, &a->run.seen, &state));
    assert_ok(reads_add_row(&a->run.seen, key));
    int64_t x = state_get(&state, key, &value) == PAWL_OK ? row_field(b, "t.Sum", value, "x") : -1;
    run_close_snapshot(&b->buffers);
    return x;
}

static void *take(struct attempt *a, size_t size)
{
    void *memory = arena_take(&a->run.memory, size);
    assert_non_null(memory);
    return memory;
}

void attempt_put_many(struct attempt *a, int64_t first, size_t count, int64_t x)
{
    const struct schema_type *type = schema_type_by_name(a->bed->schema, text_bytes("t.Sum"));
    struct intent *intents = take(a, count * sizeof *intents);
    struct schema_set *set = take(a, sizeof *set);
    struct value *values = take(a, (count + 1) * sizeof *values);
    *set = (struct schema_set){.field = (uint16_t)schema_field_place(type, text_bytes("x"))};
    values[count] = (struct value){.type = VALUE_INT64, .integer = x};
    for (size_t i = 0; i < count; i++) {
        values[i] = (struct value){.type = VALUE_INT64, .integer = first + (int64_t)i};
        intents[i] = (struct intent){.kind = ACTION_UPSERT,
                                     .entity = type,
                                     .key = &values[i],
                                     .sets = set,
                                     .values = &values[count],
                                     .set_count = 1};
    }
    a->run.intents = intents;
    a->run.intent_count = count;
}

void attempt_put(struct attempt *a, int64_t k, int64_t x)
{
    attempt_put_many(a, k, 1, x);
}

void attempt_explode(struct attempt *a)
{
    pawl_error error = {0};
    assert_ok(run_explode(&a->run, a->bed->store, &a->bed->buffers, &error));
}

struct acting_on {
    struct lane *lane;
    struct run *run;
    uint64_t number;
    pawl_operation_id id;
    bool flag;
    const char *words;
    int status;
};

static void hand_in(void *arg)
{
    struct acting_on *q = arg;
    q->status = lane_hand_in(q->lane, q->run);
}

int attempt_hand_in(struct attempt *a)
{
    struct acting_on q = {.lane = a->lane, .run = &a->run};
    lane_bed_call(a->bed, hand_in, &q);
    return q.status;
}

int attempt_hand_in_as(struct attempt *a, const struct attempt *whose)
{
    attempt_init(a, whose->bed, whose->lane);
    a->run.number = whose->run.number;
    a->run.id = whose->run.id;
    return attempt_hand_in(a);
}

static void fail_it(void *arg)
{
    struct acting_on *q = arg;
    q->status = lane_fail(q->lane, q->number, q->id, q->flag, q->words);
}

int attempt_fail(struct attempt *a, bool permanent, const char *words)
{
    struct acting_on q = {
        .lane = a->lane, .number = a->run.number, .id = a->run.id, .flag = permanent, .words = words};
    lane_bed_call(a->bed, fail_it, &q);
    return q.status;
}

static void fail_run(void *arg)
{
    struct acting_on *q = arg;
    q->flag = lane_fail_run(q->lane, q->run, q->flag, q->words);
}

bool attempt_fail_run(struct attempt *a, bool permanent, const char *words)
{
    struct acting_on q = {.lane = a->lane, .run = &a->run, .flag = permanent, .words = words};
    lane_bed_call(a->bed, fail_run, &q);
    return q.flag;
}

void lane_bed_work(struct lane_bed *b, size_t lane, uint32_t projection, int64_t k, int64_t x)
{
    struct attempt a;
    assert_true(attempt_acquire(&a, b, lane, projection, 0));
    attempt_put(&a, k, x);
    attempt_explode(&a);
    assert_ok(attempt_hand_in(&a));
    lane_bed_pass(b, PAWL_SECOND / 10);
    assert_true(a.is_told);
    assert_ok(a.told);
    attempt_release(&a);
}

void lane_bed_explode(void *ctx, struct lane *lane, struct run *run)
{
    struct lane_bed *b = ctx;
    (void)lane;
    assert_null(b->exploding);
    b->exploding = run;
}

static void exploded(void *arg)
{
    struct acting_on *q = arg;
    lane_exploded(q->lane, q->run, q->status);
}

void lane_bed_exploded(struct lane_bed *b, size_t lane, int status)
{
    struct acting_on q = {.lane = b->lanes[lane], .run = b->exploding, .status = status};
    pawl_error error = {0};
    if (status == PAWL_OK)
        assert_ok(run_explode(q.run, b->store, &b->buffers, &error));
    b->exploding = NULL;
    lane_bed_call(b, exploded, &q);
}

/* --- an operator --- */

static void void_it(void *arg)
{
    struct acting_on *q = arg;
    q->status = lane_void(q->lane, q->number, q->words);
}

int lane_bed_void(struct lane_bed *b, size_t lane, uint64_t number, const char *words)
{
    struct acting_on q = {.lane = b->lanes[lane], .number = number, .words = words};
    lane_bed_call(b, void_it, &q);
    return q.status;
}

static void retry_it(void *arg)
{
    struct acting_on *q = arg;
    q->status = lane_retry(q->lane, q->number);
}

int lane_bed_retry(struct lane_bed *b, size_t lane, uint64_t number)
{
    struct acting_on q = {.lane = b->lanes[lane], .number = number};
    lane_bed_call(b, retry_it, &q);
    return q.status;
}

static void pause_it(void *arg)
{
    struct acting_on *q = arg;
    lane_pause(q->lane, q->flag);
}

void lane_bed_pause(struct lane_bed *b, size_t lane, bool paused)
{
    struct acting_on q = {.lane = b->lanes[lane], .flag = paused};
    lane_bed_call(b, pause_it, &q);
}

int64_t lane_bed_field(struct lane_bed *b, const char *entity, uint64_t wsid, int64_t k, const char *field)
{
    uint8_t room[LANE_BED_KEY];
    pawl_bytes value;
    pawl_reader *snapshot;
    int64_t x = -2;
    assert_ok(pawl_store_snapshot(b->store, &snapshot));
    if (pawl_store_get(snapshot, STATE_SPACE, lane_bed_key(b, entity, wsid, k, room), &value) == PAWL_OK)
        x = row_field(b, entity, value, field);
    pawl_store_release(b->store, snapshot);
    return x;
}

#include "test/lib/sequence.h"

#include "test/lib/test.h"

#define STEPS_MAX 10000000

static const pawl_sequence shop[] = {{SEQ_WLOG, 0, 0}, {SEQ_REC, 200001, 0}, {SEQ_CREC, 200001, 200020}};
static const pawl_sequence bank[] = {{SEQ_INVOICE, 1000, 0}, {SEQ_WLOG, 1, 0}};
const pawl_workspace_kind test_kinds[2] = {{KIND_SHOP, shop, 3}, {KIND_BANK, bank, 2}};

struct sequence_key {
    uint64_t wsid;
    uint64_t seq;
};

static uint64_t *stored_at(const struct mock *mock, uint64_t wsid, uint16_t seq)
{
    struct sequence_key key = {wsid, seq};
    return map_get(&mock->stored, hash_mix(wsid * 65536 + seq), &key);
}

uint64_t mock_stored(const struct mock *mock, uint64_t wsid, uint16_t seq)
{
    const uint64_t *number = stored_at(mock, wsid, seq);
    return number ? *number : 0;
}

void mock_put(struct mock *mock, uint64_t wsid, uint16_t seq, uint64_t number)
{
    struct sequence_key key = {wsid, seq};
    void *value;
    bool fresh;
    assert_ok(map_put(&mock->stored, hash_mix(wsid * 65536 + seq), &key, &value, &fresh));
    *(uint64_t *)value = number;
}

void mock_init(struct mock *mock)
{
    *mock = (struct mock){0};
    map_init(&mock->stored, NULL, sizeof(struct sequence_key), sizeof(uint64_t), SIZE_MAX);
}

void mock_release(struct mock *mock)
{
    free(mock->log);
    map_release(&mock->stored);
}

void mock_append(struct mock *mock, const struct mock_event *event)
{
    if (mock->log_count == mock->log_room) {
        mock->log_room = mock->log_room ? 2 * mock->log_room : 64;
        mock->log = realloc(mock->log, mock->log_room * sizeof *mock->log);
        assert_non_null(mock->log);
    }
    mock->log[mock->log_count++] = *event;
}

void mock_append_one(struct mock *mock, uint64_t offset, uint16_t kind, uint64_t wsid, uint16_t seq,
                     uint64_t number)
{
    struct mock_event event = {.offset = offset, .wsid = wsid, .kind = kind, .count = number != 0};
    event.numbers[0] = (pawl_sequence_number){seq, number};
    event.first[0] = number;
    mock_append(mock, &event);
}

uint64_t mock_replay(const struct mock *mock, uint64_t wsid, uint16_t seq)
{
    uint64_t greatest = 0;
    for (size_t i = 0; i < mock->log_count; i++)
        for (uint16_t k = 0; mock->log[i].wsid == wsid && k < mock->log[i].count; k++)
            if (mock->log[i].numbers[k].seq == seq && mock->log[i].numbers[k].number > greatest)
                greatest = mock->log[i].numbers[k].number;
    return greatest;
}

/* The storage's functions. */

static int called(struct mock *mock, enum mock_call call, pawl_error *error)
{
    mock->calls[call]++;
    if (mock->during)
        mock->during(mock->during_arg, call);
    if (mock->fail[call] == 0)
        return PAWL_OK;
    if (mock->fail[call] != MOCK_FOR_EVER)
        mock->fail[call]--;
    error->code = mock->fail_with ? mock->fail_with : PAWL_EIO;
    snprintf(error->text, sizeof error->text, "ordered failure of call %d", call);
    return error->code;
}

static int mock_read_numbers(void *ctx, uint64_t wsid, const uint16_t *seqs, size_t count,
                             uint64_t *ret_numbers, pawl_error *error)
{
    struct mock *mock = ctx;
    int status = called(mock, MOCK_READ, error);
    for (size_t i = 0; i < count && status == PAWL_OK; i++)
        ret_numbers[i] = mock_stored(mock, wsid, seqs[i]);
    return status;
}

static int mock_read_last_offset(void *ctx, uint64_t *ret_last, pawl_error *error)
{
    struct mock *mock = ctx;
    int status = called(mock, MOCK_LAST, error);
    if (status == PAWL_OK)
        *ret_last = mock->stored_last;
    return status;
}

static int mock_write(void *ctx, const pawl_sequence_row *rows, size_t count, uint64_t last, pawl_error *error)
{
    struct mock *mock = ctx;
    int status = called(mock, MOCK_WRITE, error);
    size_t written = status == PAWL_OK || mock->tear == MOCK_NO_OFFSET ? count
                     : mock->tear == MOCK_HALF                         ? count / 2
                                                                       : 0;
    for (size_t i = 0; i < written; i++)
        mock_put(mock, rows[i].wsid, rows[i].seq, rows[i].number);
    if (status == PAWL_OK) {
        assert_true(last >= mock->stored_last);
        mock->stored_last = last;
        mock->rows_last = count;
    }
    return status;
}

static int mock_scan_log(void *ctx, uint64_t after, pawl_sequence_batcher *batcher, uint64_t *ret_last,
                         pawl_error *error)
{
    struct mock *mock = ctx;
    int failure = called(mock, MOCK_SCAN, error);
    uint32_t until_failure = mock->scan_fails_after;
    pawl_sequence_event batch[64];
    size_t size = mock->batch ? mock->batch : 7;
    size_t n = 0;
    *ret_last = mock->log_last;
    for (size_t i = 0; i < mock->log_count; i++) {
        const struct mock_event *event = &mock->log[i];
        if (event->offset > *ret_last)
            *ret_last = event->offset;
        if (event->offset <= after)
            continue;
        if (failure && until_failure-- == 0)
            return failure;
        batch[n++] =
            (pawl_sequence_event){event->offset, event->wsid, event->kind, event->numbers, event->count};
        if (n < size && i + 1 < mock->log_count)
            continue;
        int status = batcher->take(batcher, batch, n);
        if (status && !mock->scan_is_deaf)
            return status;
        n = 0;
    }
    return failure;
}

pawl_sequence_storage mock_storage(struct mock *mock)
{
    return (pawl_sequence_storage){mock, mock_read_numbers, mock_read_last_offset, mock_write, mock_scan_log};
}

/* The bed. */

static void open_node(struct bed *bed)
{
    struct mem_env_options options = {.shards = 1};
    assert_ok(mem_env_open(bed->world, &options, &bed->env, NULL));
}

void bed_open(struct bed *bed, uint64_t seed)
{
    struct mem_world_options options = {.seed = seed};
    *bed = (struct bed){.options = {.kinds = test_kinds, .kind_count = 2}};
    mock_init(&bed->mock);
    assert_ok(mem_world_open(&options, &bed->world, NULL));
    open_node(bed);
}

void bed_release(struct bed *bed)
{
    if (bed->s)
        bed_close(bed);
    mem_world_close(bed->world);
    mock_release(&bed->mock);
}

struct on_shard {
    pawl_task task;
    struct bed *bed;
    int (*fn)(struct on_shard *on);
    uint16_t name;
    uint64_t number;
    uint64_t *ret;
    int status;
    bool done;
};

static void run_on_shard(pawl_task *task)
{
    struct on_shard *on = (struct on_shard *)task;
    on->status = on->fn(on);
    on->done = true;
}

static bool is_done(void *arg)
{
    return ((struct on_shard *)arg)->done;
}

static int on_shard(struct bed *bed, int (*fn)(struct on_shard *on), uint16_t name, uint64_t number,
                    uint64_t *ret)
{
    struct on_shard on = {
        .task.fn = run_on_shard, .bed = bed, .fn = fn, .name = name, .number = number, .ret = ret};
    assert_ok(pawl_env_post(mem_env_port(bed->env), 0, &on.task));
    assert_true(mem_world_run_until(bed->world, is_done, &on, STEPS_MAX));
    return on.status;
}

static int do_new(struct on_shard *on)
{
    return pawl_sequencer_new(&on->bed->options, &on->bed->s, NULL);
}

int bed_new(struct bed *bed)
{
    bed->options.env = mem_env_port(bed->env);
    bed->options.storage = mock_storage(&bed->mock);
    return on_shard(bed, do_new, 0, 0, NULL);
}

static bool is_ready(void *arg)
{
    return pawl_sequencer_state_get(((struct bed *)arg)->s) == PAWL_SEQUENCER_READY;
}

void bed_ready(struct bed *bed)
{
    assert_true(mem_world_run_until(bed->world, is_ready, bed, STEPS_MAX));
}

void bed_new_ready(struct bed *bed)
{
    assert_ok(bed_new(bed));
    bed_ready(bed);
}

static void closed(pawl_sequencer *s, void *arg, int status)
{
    struct bed *bed = arg;
    bed->close_status = status;
    bed->closed = true;
}

static int do_close(struct on_shard *on)
{
    sequencer_close(on->bed->s, closed, on->bed);
    return PAWL_OK;
}

static bool is_closed(void *arg)
{
    return ((struct bed *)arg)->closed;
}

void bed_close_begin(struct bed *bed)
{
    bed->closed = false;
    on_shard(bed, do_close, 0, 0, NULL);
}

int bed_close(struct bed *bed)
{
    if (!bed->s->closed)
        bed_close_begin(bed);
    assert_true(mem_world_run_until(bed->world, is_closed, bed, STEPS_MAX));
    sequencer_release(bed->s);
    bed->s = NULL;
    return bed->close_status;
}

void bed_crash(struct bed *bed)
{
    mem_env_kill(bed->env);
    if (bed->s)
        sequencer_release(bed->s);
    bed->s = NULL;
    mem_env_close(bed->env);
    open_node(bed);
}

struct call_on_shard {
    pawl_task task;
    struct bed *bed;
    int (*fn)(struct bed *bed, void *arg);
    void *arg;
    int status;
    bool done;
};

static void run_call(pawl_task *task)
{
    struct call_on_shard *call = (struct call_on_shard *)task;
    call->status = call->fn(call->bed, call->arg);
    call->done = true;
}

static bool is_called(void *arg)
{
    return ((struct call_on_shard *)arg)->done;
}

int bed_call(struct bed *bed, int (*fn)(struct bed *bed, void *arg), void *arg)
{
    struct call_on_shard call = {.task.fn = run_call, .bed = bed, .fn = fn, .arg = arg};
    assert_ok(pawl_env_post(mem_env_port(bed->env), 0, &call.task));
    assert_true(mem_world_run_until(bed->world, is_called, &call, STEPS_MAX));
    return call.status;
}

static int do_start(struct on_shard *on)
{
    return pawl_sequencer_start(on->bed->s, on->name, on->number, on->ret);
}

static int do_next(struct on_shard *on)
{
    return pawl_sequencer_next(on->bed->s, on->name, on->ret);
}

static int do_stage(struct on_shard *on)
{
    return pawl_sequencer_stage(on->bed->s);
}

static int do_flush(struct on_shard *on)
{
    return pawl_sequencer_flush(on->bed->s, on->number);
}

static int do_cancel(struct on_shard *on)
{
    return pawl_sequencer_cancel(on->bed->s);
}

static int do_actualize(struct on_shard *on)
{
    return pawl_sequencer_actualize(on->bed->s);
}

int bed_start(struct bed *bed, uint16_t kind, uint64_t wsid, uint64_t *ret_offset)
{
    return on_shard(bed, do_start, kind, wsid, ret_offset);
}

int bed_next(struct bed *bed, uint16_t seq, uint64_t *ret_number)
{
    return on_shard(bed, do_next, seq, 0, ret_number);
}

int bed_stage(struct bed *bed)
{
    return on_shard(bed, do_stage, 0, 0, NULL);
}

int bed_flush(struct bed *bed, uint64_t upto)
{
    return on_shard(bed, do_flush, 0, upto, NULL);
}

int bed_cancel(struct bed *bed)
{
    return on_shard(bed, do_cancel, 0, 0, NULL);
}

int bed_actualize(struct bed *bed)
{
    return on_shard(bed, do_actualize, 0, 0, NULL);
}

pawl_sequencer_figures bed_figures(struct bed *bed)
{
    pawl_sequencer_figures figures;
    pawl_sequencer_figures_get(bed->s, &figures);
    return figures;
}

void bed_expect_start(struct bed *bed, uint16_t kind, uint64_t wsid, uint64_t offset)
{
    uint64_t got = 0;
    assert_ok(bed_start(bed, kind, wsid, &got));
    assert_int_equal(got, offset);
}

void bed_expect_next(struct bed *bed, uint16_t seq, uint64_t number)
{
    uint64_t got = 0;
    assert_ok(bed_next(bed, seq, &got));
    assert_int_equal(got, number);
}

void bed_cycle(struct bed *bed, uint16_t kind, uint64_t wsid, uint16_t seq)
{
    uint64_t offset;
    uint64_t number;
    assert_ok(bed_start(bed, kind, wsid, &offset));
    assert_ok(bed_next(bed, seq, &number));
    mock_append_one(&bed->mock, offset, kind, wsid, seq, number);
    assert_ok(bed_flush(bed, offset));
}

struct stored {
    struct bed *bed;
    uint64_t offset;
};

static bool is_stored(void *arg)
{
    const struct stored *stored = arg;
    return bed_figures(stored->bed).offset_stored >= stored->offset;
}

void bed_stored(struct bed *bed, uint64_t offset)
{
    struct stored stored = {bed, offset};
    assert_true(mem_world_run_until(bed->world, is_stored, &stored, STEPS_MAX));
}

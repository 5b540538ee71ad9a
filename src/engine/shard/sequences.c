#include "engine/shard/sequences.h"

#include <inttypes.h>

#include "base/error.h"
#include "core/event/envelope.h"
#include "core/sequence/storage.h"

static int read_row(pawl_reader *snapshot, const struct sequences *s, uint64_t wsid, uint16_t name,
                    uint64_t *ret_number, pawl_error *error)
{
    uint8_t key[SEQUENCE_KEY_BYTES];
    pawl_bytes value;
    int status = pawl_store_get(snapshot, SEQUENCE_SPACE, sequence_key(s->partition, wsid, name, key), &value);
    if (status == PAWL_ENOTFOUND) {
        *ret_number = 0;
        return PAWL_OK;
    }
    if (status != PAWL_OK)
        return error_set(error, status, "cannot read the sequence storage: %s", pawl_status_text(status));
    if (value.size != SEQUENCE_VALUE_BYTES)
        return error_set(error, PAWL_ECORRUPT,
                         "the sequence storage, partition %u, workspace %" PRIu64
                         ", sequence %u: a value of %zu bytes",
                         s->partition, wsid, name, value.size);
    *ret_number = get_u64(value.data);
    return PAWL_OK;
}

static int read_rows(const struct sequences *s, uint64_t wsid, const uint16_t *seqs, size_t count,
                     uint64_t *ret_numbers, pawl_error *error)
{
    pawl_reader *snapshot;
    int status = pawl_store_snapshot(s->store, &snapshot);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot read the sequence storage: %s", pawl_status_text(status));
    for (size_t i = 0; i < count && status == PAWL_OK; i++)
        status = read_row(snapshot, s, wsid, seqs[i], &ret_numbers[i], error);
    pawl_store_release(s->store, snapshot);
    return status;
}

static int read_numbers(void *ctx, uint64_t wsid, const uint16_t *seqs, size_t count, uint64_t *ret_numbers,
                        pawl_error *error)
{
    return read_rows(ctx, wsid, seqs, count, ret_numbers, error);
}

static int read_last_offset(void *ctx, uint64_t *ret_last, pawl_error *error)
{
    static const uint16_t name = SEQ_PLOG_OFFSET;
    return read_rows(ctx, 0, &name, 1, ret_last, error);
}

struct writing {
    struct sequences *sequences;
    const pawl_sequence_row *rows;
    size_t count;
    uint64_t last;
    int status;
};

static int put_row(const struct sequences *s, pawl_store *store, uint64_t wsid, uint16_t name, uint64_t number)
{
    uint8_t key[SEQUENCE_KEY_BYTES], value[SEQUENCE_VALUE_BYTES];
    put_u64(value, number);
    return pawl_store_put(store, SEQUENCE_SPACE, sequence_key(s->partition, wsid, name, key),
                          (pawl_bytes){value, sizeof value});
}

static int put_rows(void *ctx, pawl_store *store, pawl_error *error)
{
    const struct writing *w = ctx;
    int status = PAWL_OK;
    for (size_t i = 0; i < w->count && status == PAWL_OK; i++)
        status = put_row(w->sequences, store, w->rows[i].wsid, w->rows[i].seq, w->rows[i].number);
    if (status == PAWL_OK)
        status = put_row(w->sequences, store, 0, SEQ_PLOG_OFFSET, w->last);
    return status;
}

/* On the shard. */
static void write_rows(void *arg)
{
    struct writing *w = arg;
    w->status = applier_write(w->sequences->applier, put_rows, w, NULL);
}

static int write_values_and_offset(void *ctx, const pawl_sequence_row *rows, size_t count, uint64_t last,
                                   pawl_error *error)
{
    struct sequences *s = ctx;
    struct writing w = {.sequences = s, .rows = rows, .count = count, .last = last};
    int status = pawl_env_call(s->env, s->shard, write_rows, &w);
    if (status == PAWL_OK)
        status = w.status;
    if (status != PAWL_OK)
        return error_set(error, status, "cannot write the sequence storage: %s", pawl_status_text(status));
    return PAWL_OK;
}

struct scanning {
    pawl_sequence_batcher *batcher;
    uint16_t partition;
    pawl_sequence_number numbers[ENVELOPE_NUMBERS_MAX];
    int status;
    pawl_error *error;
};

static int take_numbers(void *arg, uint64_t offset, pawl_bytes body)
{
    struct scanning *scan = arg;
    struct envelope envelope;
    int status = envelope_decode(body, &envelope, scan->error);
    if (status != PAWL_OK)
        return error_wrap(scan->error, status, "plog/%u, offset %" PRIu64, scan->partition, offset);
    for (size_t i = 0; i < envelope.count; i++) {
        struct event_numbers taken = envelope_numbers(&envelope, i);
        scan->numbers[i] = (pawl_sequence_number){.seq = taken.seq, .number = taken.first + taken.count - 1};
    }
    pawl_sequence_event event = {.offset = offset,
                                 .wsid = envelope.wsid,
                                 .kind = envelope.kind,
                                 .numbers = scan->numbers,
                                 .count = envelope.count};
    return scan->batcher->take(scan->batcher, &event, 1);
}

static bool take_event(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct scanning *scan = read->arg;
    scan->status = take_numbers(scan, entry->offset, entry->body);
    return scan->status == PAWL_OK;
}

static bool stop_at_once(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    return false;
}

static void never_called(pawl_read *read)
{
}

/* Reads on this thread, which may block. */
static int read_from(const struct sequences *s, uint64_t from,
                     bool (*visit)(pawl_read *, const pawl_entry *, pawl_place), void *arg, uint64_t *ret_next,
                     pawl_error *error)
{
    pawl_read read = {.stream = {.kind = PAWL_STREAM_PLOG, .partition = s->partition},
                      .from = from,
                      .limit = UINT64_MAX,
                      .alone = true,
                      .visit = visit,
                      .done = never_called,
                      .arg = arg,
                      .error = error};
    int status = pawl_log_read(s->log, &read);
    if (status != PAWL_READ_DONE)
        return status;
    *ret_next = read.next;
    return read.status;
}

/* The log's last offset, which is below high. A binary search over reads is good enough: this is called only
 * when something is wrong. */
static int find_last(const struct sequences *s, uint64_t high, uint64_t *ret_last, pawl_error *error)
{
    uint64_t low = 0; /* the log has an entry at low, or low is 0; it has none at high */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2, next = middle;
        int status = read_from(s, middle, stop_at_once, NULL, &next, error);
        if (status != PAWL_OK)
            return status;
        *(next > middle ? &low : &high) = middle;
    }
    *ret_last = low;
    return PAWL_OK;
}

static int scan_log(void *ctx, uint64_t after, pawl_sequence_batcher *batcher, uint64_t *ret_last,
                    pawl_error *error)
{
    const struct sequences *s = ctx;
    struct scanning scan = {.batcher = batcher, .partition = s->partition, .error = error};
    uint64_t from = 0, next = 0;
    int status =
        s->tails ? sequence_tails_take(s->tails, s->partition, after, take_numbers, &scan, &from) : PAWL_OK;
    if (status == PAWL_OK && from == 0 && after > 0) {
        status = read_from(s, after, stop_at_once, NULL, &next, error);
        if (status == PAWL_OK
            && next == after) /* the storage is ahead of the log: the sequencer judges by how much */
            return find_last(s, after, ret_last, error);
    }
    if (status != PAWL_OK)
        return status;
    if (after == UINT64_MAX) {
        *ret_last = after;
        return PAWL_OK;
    }
    status = read_from(s, from ? from : after + 1, take_event, &scan, &next, error);
    if (status == PAWL_OK)
        status = scan.status;
    if (status == PAWL_OK)
        *ret_last = next - 1;
    return status;
}

pawl_sequence_storage sequences_storage(struct sequences *s)
{
    return (pawl_sequence_storage){
        .ctx = s,
        .read_numbers = read_numbers,
        .read_last_offset = read_last_offset,
        .write_values_and_offset = write_values_and_offset,
        .scan_log = scan_log,
    };
}

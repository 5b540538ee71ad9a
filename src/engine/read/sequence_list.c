/* engine/read/sequence_list.c: lists the last numbers of sequences, from the sequence storage and from the
 * events that it lacks.
 *
 *     storage, complete up to an offset ──┐
 *     PLog from that offset on: tail ─────┴── merged by workspace and sequence, the larger number counts
 *
 * The storage may change while it is read, a page at a time. This does no harm, because numbers only grow. */
#include <pawl/pawl.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/event/envelope.h"
#include "core/sequence/storage.h"
#include "engine/node/node.h"
#include "engine/read/read.h"

#define ROWS_AT_ONCE 1000 /* in one snapshot, which must not live long */

struct last {
    uint64_t wsid;
    uint16_t seq;
    uint64_t number;
};

struct listing {
    pawl_engine *engine;
    uint16_t partition;
    uint64_t wsid; /* only this workspace; 0: all */
    pawl_last_number_visit visit;
    void *arg;
    bool stopped;

    struct last *tail; /* of the events that the storage lacks; once sorted: ascending, one a sequence */
    size_t tail_count;
    size_t tail_room;
    size_t tail_at; /* how many of the tail were shown */
    uint64_t tail_end;

    struct last page[ROWS_AT_ONCE];
    size_t count;
    int status;
    pawl_error *error;
};

static int compare(const struct last *a, const struct last *b)
{
    if (a->wsid != b->wsid)
        return a->wsid < b->wsid ? -1 : 1;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

static int by_sequence(const void *a, const void *b)
{
    const struct last *x = a, *y = b;
    int order = compare(x, y);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* Sort, and keep only the largest number of each sequence. */
static void sort_tail(struct listing *l)
{
    size_t kept = 0;
    if (l->tail_count < 2)
        return;
    qsort(l->tail, l->tail_count, sizeof l->tail[0], by_sequence);
    for (size_t i = 0; i < l->tail_count; i++) {
        if (kept > 0 && compare(&l->tail[kept - 1], &l->tail[i]) == 0)
            kept--;
        l->tail[kept++] = l->tail[i];
    }
    l->tail_count = kept;
}

/* If there is no room, sort first: this frees much, because most events take numbers of the same few
 * sequences. */
static int add(struct listing *l, struct last last)
{
    if (l->tail_count == l->tail_room)
        sort_tail(l);
    if (l->tail_count == l->tail_room) {
        size_t room = l->tail_room ? l->tail_room * 2 : ROWS_AT_ONCE;
        struct last *tail =
            mem_resize(l->engine->options.allocator, l->tail, l->tail_room * sizeof *tail, room * sizeof *tail);
        if (!tail)
            return error_set(l->error, PAWL_ENOMEM, "no memory for a list of sequences");
        l->tail = tail;
        l->tail_room = room;
    }
    l->tail[l->tail_count++] = last;
    return PAWL_OK;
}

static bool take_event(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct listing *l = read->arg;
    struct envelope envelope;
    l->status = envelope_decode(entry->body, &envelope, l->error);
    if (l->status != PAWL_OK)
        error_wrap(l->error, l->status, "plog/%u, offset %" PRIu64, l->partition, entry->offset);
    if (l->status == PAWL_OK && (l->wsid == 0 || l->wsid == envelope.wsid))
        for (size_t i = 0; l->status == PAWL_OK && i < envelope.count; i++) {
            struct event_numbers n = envelope_numbers(&envelope, i);
            l->status = add(l, (struct last){envelope.wsid, n.seq, n.first + n.count - 1});
        }
    l->tail_end = entry->offset;
    return l->status == PAWL_OK;
}

static int read_sequences_offset(struct listing *l, uint64_t *ret_offset)
{
    pawl_store *store = shard_of(l->engine, l->partition)->store;
    pawl_reader *snapshot;
    int status = pawl_store_snapshot(store, &snapshot);
    if (status != PAWL_OK)
        return status;
    status = sequence_read_offset(snapshot, l->partition, ret_offset);
    pawl_store_release(store, snapshot);
    return status;
}

static int read_tail(struct listing *l)
{
    uint64_t offset = 0;
    int status = read_sequences_offset(l, &offset);
    if (status != PAWL_OK)
        return error_set(l->error, status, "cannot read the sequence storage of partition %u", l->partition);
    l->tail_end = offset;
    status = engine_read_plog(l->engine, l->partition, offset + 1, UINT64_MAX, take_event, l, NULL, l->error);
    if (status == PAWL_OK)
        status = l->status;
    if (status == PAWL_OK && l->wsid == 0 && l->tail_end > offset)
        status = add(l, (struct last){0, SEQ_PLOG_OFFSET, l->tail_end});
    if (status == PAWL_OK)
        sort_tail(l);
    return status;
}

static bool take_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct listing *l = arg;
    const uint8_t *at = key.data;
    if (key.size != SEQUENCE_KEY_BYTES || value.size != SEQUENCE_VALUE_BYTES) {
        l->status = error_set(l->error, PAWL_ECORRUPT,
                              "the sequence storage of partition %u: a row is not valid", l->partition);
        return false;
    }
    l->page[l->count++] = (struct last){get_u64_sorted(at + 8), get_u16_sorted(at + 16), get_u64(value.data)};
    return l->count < ROWS_AT_ONCE;
}

/* Read a page of rows, from this workspace and sequence on. */
static int read_page(struct listing *l, uint64_t wsid, uint16_t seq)
{
    pawl_store *store = shard_of(l->engine, l->partition)->store;
    uint8_t from[SEQUENCE_KEY_BYTES], to[SEQUENCE_KEY_BYTES];
    pawl_reader *snapshot;
    bool last = l->wsid == 0 || l->wsid == UINT64_MAX;
    pawl_range range = {.space = SEQUENCE_SPACE,
                        .from = sequence_key(l->partition, wsid, seq, from),
                        .to = last ? sequence_key((uint64_t)l->partition + 1, 0, 0, to)
                                   : sequence_key(l->partition, l->wsid + 1, 0, to)};
    l->count = 0;
    int status = pawl_store_snapshot(store, &snapshot);
    if (status == PAWL_OK) {
        status = pawl_store_scan(snapshot, range, false, take_row, l);
        pawl_store_release(store, snapshot);
    }
    if (status != PAWL_OK)
        return error_set(l->error, status, "cannot read the sequence storage of partition %u", l->partition);
    return l->status;
}

static pawl_bytes name_of(const struct listing *l, uint16_t seq)
{
    static const pawl_bytes systems[] = {[SEQ_PLOG_OFFSET] = {"sys.PLogOffsetSeq", 17},
                                         [SEQ_WLOG_OFFSET] = {"sys.WLogOffsetSeq", 17},
                                         [SEQ_REC_ID] = {"sys.RecIDSeq", 12},
                                         [SEQ_CREC_ID] = {"sys.CRecIDSeq", 13}};
    return seq <= SEQ_CREC_ID ? systems[seq] : schema_name_text(engine_schema(l->engine), seq);
}

static void show(struct listing *l, struct last last)
{
    pawl_last_number shown = {.wsid = last.wsid, .sequence = name_of(l, last.seq), .number = last.number};
    l->stopped = !l->visit(l->arg, &shown);
}

/* Show all of the tail that comes before the row; then the row, with the larger number if both have it. */
static void merge(struct listing *l, struct last row)
{
    int order = 1;
    while (!l->stopped && l->tail_at < l->tail_count && (order = compare(&l->tail[l->tail_at], &row)) < 0)
        show(l, l->tail[l->tail_at++]);
    if (l->stopped)
        return;
    if (order == 0 && l->tail_at < l->tail_count) {
        const struct last *newer = &l->tail[l->tail_at++];
        row.number = newer->number > row.number ? newer->number : row.number;
    }
    show(l, row);
}

static int show_all(struct listing *l)
{
    uint64_t wsid = l->wsid;
    uint16_t seq = 0;
    do {
        int status = read_page(l, wsid, seq);
        if (status != PAWL_OK)
            return status;
        (void)engine_schema_refresh(l->engine); /* after the numbers were read: then it has their names */
        for (size_t i = 0; i < l->count && !l->stopped; i++)
            merge(l, l->page[i]);
        if (l->count > 0) {
            wsid = l->page[l->count - 1].wsid;
            seq = (uint16_t)(l->page[l->count - 1].seq + 1);
        }
    } while (l->count == ROWS_AT_ONCE && !l->stopped);
    while (!l->stopped && l->tail_at < l->tail_count)
        show(l, l->tail[l->tail_at++]);
    return PAWL_OK;
}

int pawl_last_numbers_read(pawl_engine *e, uint16_t partition, uint64_t wsid, pawl_last_number_visit visit,
                           void *arg, pawl_error *error)
{
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    if (wsid > 0)
        status = engine_workspace(e, wsid, error);
    if (status == PAWL_OK && wsid == 0 && partition >= e->file.partitions)
        status = error_set(error, PAWL_EINVAL, "there is no partition %u", partition);
    if (status != PAWL_OK)
        return status;
    struct listing *l = mem_new(e->options.allocator, 1, sizeof *l);
    if (!l)
        return error_set(error, PAWL_ENOMEM, "no memory for a list of sequences");
    l->engine = e;
    l->partition = wsid > 0 ? pawl_partition_of(e, wsid) : partition;
    l->wsid = wsid;
    l->visit = visit;
    l->arg = arg;
    l->error = error;
    status = read_tail(l);
    if (status == PAWL_OK)
        status = show_all(l);
    mem_free(e->options.allocator, l->tail, l->tail_room * sizeof l->tail[0]);
    mem_free(e->options.allocator, l, sizeof *l);
    return status;
}

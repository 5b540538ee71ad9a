/* append: entries of any streams become records on their wires, or are refused; and come back together.
 *
 *      check ──► plan: every entry's fate, streams unchanged ──► make all records ──► send them
 *                                                                                       (cannot fail)
 *
 * Invariant
 *   L2  An append is delivered when all its entries have their outcome, and no earlier append that shares a
 *       stream with it is still to be delivered. */
#include <assert.h>
#include <string.h>

#include "adapter/mem/log_stream.h"
#include "base/error.h"

/* An entry's status while it has none. */
#define PENDING 1

static void append_run(struct op *op)
{
    pawl_append *a = op->request;
    a->status = PAWL_OK;
    for (size_t i = 0; i < a->count && a->status == PAWL_OK; i++)
        a->status = a->entries[i].status;
    if (a->status != PAWL_OK)
        error_set(a->error, a->status, "%s", pawl_status_text(a->status));
    op_give(op);
    a->done(a);
}

void log_deliver(struct mem_log *log)
{
    uint64_t held = 0; /* streams of the appends that stay */
    for (struct op **at = &log->appends; *at;) {
        struct op *op = *at;
        if (op->ready && (op->streams & held) == 0) { /* L2 */
            *at = op->link;
            op_come_back(op);
        } else {
            held |= op->streams;
            at = &op->link;
        }
    }
}

static uint32_t records_of(const struct mem_log *log, const pawl_entry *e)
{
    size_t limit = log->options.message_bytes;
    size_t records = (e->body.size + limit - 1) / limit;
    return records > UINT32_MAX ? UINT32_MAX : records ? (uint32_t)records : 1;
}

/* Decide about every entry, and change nothing but the streams' plans. PAWL_OK: entries that are PENDING can be
 * sent, the others are refused. */
static int append_plan(struct mem_log *log, pawl_append *a, struct op *op)
{
    for (size_t i = 0; i < a->count; i++) {
        struct stream *s = stream_of(log, a->entries[i].entry.stream);
        if (!s)
            return PAWL_ENOMEM;
        s->plan_offset = s->owner.offset;
        s->plan_room = s->owner.window - s->owner.count;
        s->plan_refused = s->owner.state != OWNER_OWNING || s->claims || s->corrupt;
        op->streams |= UINT64_C(1) << s->number % 64;
    }
    for (size_t i = 0; i < a->count; i++)
        if (a->entries[i].entry.body.size > PAWL_ENTRY_BYTES_MAX)
            return PAWL_ETOOBIG;
    for (size_t i = 0; i < a->count; i++) {
        pawl_append_entry *e = &a->entries[i];
        struct stream *s = stream_of(log, e->entry.stream);
        if (e->entry.epoch != s->owner.judge.epoch || e->entry.offset != s->plan_offset)
            s->plan_refused = true;
        e->place = (pawl_place){0};
        e->status = s->plan_refused ? PAWL_EFENCED : PENDING;
        if (s->plan_refused)
            continue;
        uint32_t records = records_of(log, &e->entry);
        if (records > s->owner.window)
            return PAWL_ETOOBIG;
        if (records > s->plan_room)
            return PAWL_EBUSY;
        s->plan_room -= records;
        s->plan_offset++;
        op->left++;
    }
    return PAWL_OK;
}

static void free_list(struct mem_log *log, struct disk_record *list)
{
    for (struct disk_record *next; list; list = next) {
        next = list->next;
        disk_record_free(log->disk, list);
    }
}

/* All records that will be sent, so that nothing can fail half-way. */
static int append_records(struct mem_log *log, const pawl_append *a, struct disk_record **ret_list)
{
    struct disk_record *list = NULL, **end = &list;
    size_t limit = log->options.message_bytes;
    for (size_t i = 0; i < a->count; i++) {
        const pawl_entry *e = &a->entries[i].entry;
        uint32_t records = a->entries[i].status == PENDING ? records_of(log, e) : 0;
        for (uint32_t n = 0; n < records; n++) {
            size_t from = n * limit, size = e->body.size - from < limit ? e->body.size - from : limit;
            struct disk_record *r = disk_record_new(log->disk, size);
            if (!r) {
                free_list(log, list);
                return PAWL_ENOMEM;
            }
            if (size > 0)
                memcpy(r->body, (const uint8_t *)e->body.data + from, size);
            r->kind = e->kind;
            *end = r;
            end = &r->next;
        }
    }
    *ret_list = list;
    return PAWL_OK;
}

/* What becomes of an append's number-th record. */
static void set_fate(struct disk_record *r, const struct mem_log_fault *fault, uint32_t number)
{
    r->fate = fault->kind == MEM_LOG_RIVAL ? 0 : fault->kind; /* which is of claims */
    if (fault->kind == MEM_LOG_TORN)
        r->fate = number < fault->n ? MEM_LOG_LANDED : MEM_LOG_LOST;
    r->hold = fault->kind == MEM_LOG_DELAY && number == 0 ? fault->n : 0;
}

static void append_send(struct mem_log *log, pawl_append *a, struct op *op, struct disk_record *list)
{
    uint32_t number = 0;
    for (size_t i = 0; i < a->count; i++) {
        pawl_append_entry *e = &a->entries[i];
        if (e->status != PENDING)
            continue;
        struct stream *s = stream_of(log, e->entry.stream);
        uint32_t records = records_of(log, &e->entry);
        for (uint32_t n = 0; n < records; n++) {
            struct disk_record *r = list;
            list = list->next;
            int status = owner_draft(&s->owner, records, &r->head);
            assert(status == PAWL_OK);
            (void)status;
            r->head.checksum = disk_record_checksum(r);
            r->ticket = owner_sent(&s->owner, &r->head);
            set_fate(r, &op->fault, number++);
            stream_transmit(s, r);
        }
        s->flights[(s->flight_first + s->flight_count++) % s->owner.window] = (struct flight){op, e};
    }
}

static void refuse_all(pawl_append *a, struct op *op, int status)
{
    for (size_t i = 0; i < a->count; i++)
        a->entries[i].status = status;
    op->left = 0;
}

static int append_start(struct mem_log *log, pawl_append *a, struct op *op)
{
    struct disk_record *list = NULL;
    int status = append_plan(log, a, op);
    bool too_big = status == PAWL_ETOOBIG;
    if (too_big)
        refuse_all(a, op, PAWL_ETOOBIG);
    if (status == PAWL_OK)
        status = append_records(log, a, &list);
    if (status != PAWL_OK && !too_big)
        return status;
    for (size_t i = 0; i < a->count; i++) {
        status = stream_pump(stream_of(log, a->entries[i].entry.stream));
        if (status != PAWL_OK) {
            free_list(log, list);
            return status;
        }
    }
    op_take_order(op);
    if (op->fault.kind == MEM_LOG_FULL) {
        refuse_all(a, op, PAWL_EFULL);
        free_list(log, list);
        return PAWL_OK;
    }
    append_send(log, a, op, list);
    return PAWL_OK;
}

int log_append(pawl_log *port, pawl_append *a)
{
    struct mem_log *log = (struct mem_log *)port;
    if (!pawl_append_valid(a))
        return error_set(a->error, PAWL_EINVAL,
                         "an append needs done, entries, valid streams, and offsets above 0");
    struct op *op = op_take(log, a, append_run);
    if (!op)
        return error_set(a->error, PAWL_EBUSY, "too many requests");
    int status = append_start(log, a, op);
    if (status != PAWL_OK) {
        op_give(op);
        return error_wrap(a->error, status, "append");
    }
    op->ready = op->left == 0; /* the pump delivers it then, never this call */
    struct op **at = &log->appends;
    while (*at)
        at = &(*at)->link;
    *at = op;
    return PAWL_OK;
}

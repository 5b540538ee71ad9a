#include "adapter/mem/log_stream.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

static void pump_round(pawl_work *work);
static void wake(struct disk_watcher *watcher);

struct stream *stream_of(struct mem_log *log, pawl_stream id)
{
    for (struct stream *s = log->streams; s; s = s->next)
        if (pawl_stream_equal(s->on_disk->id, id))
            return s;
    const pawl_allocator *alloc = log->options.allocator;
    uint32_t window = log->options.window;
    struct stream *s = mem_new(alloc, 1, sizeof *s);
    if (!s)
        return NULL;
    s->log = log;
    judge_init(&s->reader, 0);
    s->flights = mem_new(alloc, window, sizeof *s->flights);
    s->landed = mem_new(alloc, (size_t)window + 1, sizeof *s->landed);
    s->on_disk = disk_stream_of(log->disk, id);
    if (!s->flights || !s->landed || !s->on_disk
        || owner_init(&s->owner, alloc, window, &s->reader) != PAWL_OK) {
        mem_free(alloc, s->flights, window * sizeof *s->flights);
        mem_free(alloc, s->landed, (window + (size_t)1) * sizeof *s->landed);
        mem_free(alloc, s, sizeof *s);
        return NULL;
    }
    s->number = log->stream_count++;
    s->wire_end = &s->wire;
    s->pump.fn = pump_round;
    s->watcher.fn = wake;
    disk_watch(s->on_disk, &s->watcher);
    s->next = log->streams;
    log->streams = s;
    return s;
}

void stream_free(struct stream *s)
{
    const pawl_allocator *alloc = s->log->options.allocator;
    uint32_t window = s->log->options.window;
    disk_unwatch(s->on_disk, &s->watcher);
    for (struct disk_record *r = s->wire, *next; r; r = next) {
        next = r->next;
        disk_record_free(s->log->disk, r);
    }
    owner_release(&s->owner);
    mem_free(alloc, s->index, s->index_capacity * sizeof *s->index);
    mem_free(alloc, s->flights, window * sizeof *s->flights);
    mem_free(alloc, s->landed, (window + (size_t)1) * sizeof *s->landed);
    mem_free(alloc, s, sizeof *s);
}

static void wake(struct disk_watcher *watcher)
{
    struct stream *s = heap_entry(watcher, struct stream, watcher);
    for (struct op *op = s->follows; op; op = op->next_follow)
        op_come_back(op);
}

/* The reader. */

static bool index_room(struct stream *s)
{
    if (s->indexed < s->index_capacity)
        return true;
    uint64_t capacity = s->index_capacity ? s->index_capacity * 2 : 64;
    void *index = mem_resize(s->log->options.allocator, s->index, s->index_capacity * sizeof *s->index,
                             capacity * sizeof *s->index);
    if (!index)
        return false;
    s->index = index;
    s->index_capacity = capacity;
    return true;
}

int stream_catch_up(struct stream *s)
{
    while (s->reader.at < s->on_disk->final) {
        const struct disk_record *r = s->on_disk->records[s->reader.at];
        if (!index_room(s))
            return PAWL_ENOMEM;
        bool first = s->reader.fragments == 0;
        enum claim_verdict verdict = judge_next(&s->reader, &r->head);
        if (claim_verdict_fatal(verdict)) {
            s->corrupt = true;
            return PAWL_ECORRUPT;
        }
        if (r->head.kind != CLAIM_KIND_EVENT || (verdict != CLAIM_COUNTS && verdict != CLAIM_PART))
            continue;
        if (first)
            s->partial = (struct seen){.first = r->head.position, .epoch = r->head.epoch};
        s->partial.bytes += r->size;
        s->partial.last = r->head.position;
        if (verdict == CLAIM_COUNTS)
            s->index[s->indexed++] = s->partial;
    }
    return PAWL_OK;
}

int stream_entry(const struct stream *s, uint64_t offset, pawl_entry *ret_entry, pawl_place *ret_place,
                 void **ret_memory)
{
    assert(offset >= 1 && offset <= s->indexed);
    const struct seen *seen = &s->index[offset - 1];
    const struct disk_record *last = s->on_disk->records[seen->last];
    const void *body = last->body;
    void *memory = NULL;
    if (last->head.fragment > 0) {
        memory = mem_resize(s->log->options.allocator, NULL, 0, seen->bytes);
        if (!memory)
            return PAWL_ENOMEM;
        size_t size = 0;
        uint32_t fragment = 0;
        for (uint64_t at = seen->first; at <= seen->last; at++) {
            const struct disk_record *r = s->on_disk->records[at];
            if (r->head.kind != CLAIM_KIND_EVENT || r->head.epoch != seen->epoch || r->head.offset != offset
                || r->head.fragment != fragment)
                continue;
            memcpy((uint8_t *)memory + size, r->body, r->size);
            size += r->size;
            fragment++;
        }
        assert(size == seen->bytes);
        body = memory;
    }
    *ret_entry = (pawl_entry){.stream = s->on_disk->id,
                              .epoch = seen->epoch,
                              .offset = offset,
                              .kind = last->kind,
                              .body = {body, seen->bytes}};
    *ret_place = (pawl_place){.position = seen->first + 1, .hint = seen->epoch};
    *ret_memory = memory;
    return PAWL_OK;
}

/* The owner. */

static void end_first_flight(struct stream *s, int status)
{
    struct flight *f = &s->flights[s->flight_first++ % s->log->options.window];
    s->flight_count--;
    f->entry->status = status;
    if (--f->op->left == 0)
        f->op->ready = true;
}

static void end_flights(struct stream *s, int status)
{
    while (s->flight_count > 0) {
        struct op *op = s->flights[s->flight_first % s->log->options.window].op;
        bool failed = op->fault.kind == MEM_LOG_FAIL && status == PAWL_EUNKNOWN;
        end_first_flight(s, failed ? PAWL_EIO : status);
    }
}

static void acknowledge(struct stream *s, uint64_t upto)
{
    int status = stream_catch_up(s);
    while (s->flight_count > 0) {
        pawl_append_entry *e = s->flights[s->flight_first % s->log->options.window].entry;
        if (e->entry.offset > upto)
            break;
        if (status == PAWL_OK) {
            const struct seen *seen = &s->index[e->entry.offset - 1];
            e->place = (pawl_place){.position = seen->first + 1, .hint = seen->epoch};
        }
        end_first_flight(s, status == PAWL_OK ? PAWL_OK : PAWL_EUNKNOWN);
    }
}

static void act(struct stream *s, int status, const struct owner_actions *a)
{
    if (a->ack_upto)
        acknowledge(s, a->ack_upto);
    if (status != PAWL_OK) {
        s->corrupt = true;
        end_flights(s, PAWL_ECORRUPT);
    }
    if (a->must_reclaim)
        end_flights(s, PAWL_EUNKNOWN);
    if (a->resolved)
        end_flights(s, PAWL_EFENCED);
    if (a->read_to > a->read_from)
        s->read_to = a->read_to;
}

static void read_up_to(struct stream *s, uint64_t position)
{
    assert(position <= s->on_disk->final);
    while (s->owner.judge.at < position && !s->corrupt) {
        struct owner_actions actions;
        int status = owner_read(&s->owner, &s->on_disk->records[s->owner.judge.at]->head, &actions);
        act(s, status, &actions);
    }
}

/* Claims, one after the other. */

static void end_claim(struct stream *s, int status, const char *words)
{
    struct op *op = s->claims;
    s->claims = op->link;
    s->claim_phase = CLAIM_PHASE_NONE;
    if (s->owner.state == OWNER_CLAIMING)
        end_flights(s, PAWL_EUNKNOWN); /* the claim that would have resolved them was given up */
    op->epoch = s->owner.judge.epoch;
    op->next = s->owner.judge.next;
    op->rival = s->owner.judge.group0;
    op_end(op, status, words);
}

static void start_claim(struct stream *s)
{
    struct op *op = s->claims;
    pawl_claim *claim = op->request;
    read_up_to(s, s->on_disk->final);
    if (s->corrupt) {
        end_claim(s, PAWL_ECORRUPT, "the log does not continue its own chain");
        return;
    }
    if (op->fault.kind == MEM_LOG_FAIL) {
        end_claim(s, PAWL_EIO, "an ordered failure");
        return;
    }
    struct disk_record *r = op->record;
    uint64_t node = s->log->options.node, nonce = node << 32 | (uint32_t)pawl_env_random(s->log->env);
    if (owner_is_taken(&s->owner, node, nonce, claim->group0)) {
        end_claim(s, PAWL_EFENCED, "another writer has claimed it");
        return;
    }
    int status = owner_claim(&s->owner, node, nonce, claim->group0, &r->head);
    if (status != PAWL_OK) {
        end_claim(s, status, "the owner's assignment is a newer one");
        return;
    }
    op->record = NULL;
    r->head.checksum = disk_record_checksum(r);
    r->fate = op->fault.kind;
    r->hold = op->fault.kind == MEM_LOG_DELAY ? op->fault.n : 0;
    s->claim_phase = CLAIM_PHASE_SENT;
    stream_transmit(s, r);
}

static void finish_claim(struct stream *s)
{
    read_up_to(s, s->claim_at + 1);
    if (s->corrupt)
        end_claim(s, PAWL_ECORRUPT, "the log does not continue its own chain");
    else if (s->owner.state == OWNER_OWNING)
        end_claim(s, PAWL_OK, "");
    else
        end_claim(s, PAWL_EFENCED, "a rival's claim was faster");
}

static void claim_reported(struct stream *s, uint64_t position)
{
    assert(s->claim_phase == CLAIM_PHASE_SENT);
    if (position == CLAIM_NOWHERE) {
        end_claim(s, PAWL_EIO, "nobody knows whether the claim was written");
        return;
    }
    s->claim_at = position;
    s->claim_phase = CLAIM_PHASE_READ;
}

/* The pump. */

void stream_transmit(struct stream *s, struct disk_record *r)
{
    r->next = NULL;
    *s->wire_end = r;
    s->wire_end = &r->next;
}

static void report_landed(struct stream *s)
{
    bool lost = s->landed_crashes != s->log->disk->crashes;
    uint32_t count = s->landed_count;
    s->landed_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct landed l = s->landed[i];
        if (lost)
            l.position = CLAIM_NOWHERE;
        if (l.position != CLAIM_NOWHERE)
            disk_finalise(s->on_disk, l.position + 1);
        if (l.ticket == 0) {
            claim_reported(s, l.position);
            continue;
        }
        struct owner_actions actions;
        int status = owner_report(&s->owner, l.ticket, l.position, &actions);
        act(s, status, &actions);
    }
}

static void land(struct stream *s)
{
    s->landed_crashes = s->log->disk->crashes;
    while (s->wire) {
        struct disk_record *r = s->wire;
        if (r->hold > 0) {
            r->hold--;
            return;
        }
        s->wire = r->next;
        if (!s->wire)
            s->wire_end = &s->wire;
        struct landed l = {.ticket = r->ticket};
        l.position = disk_land(s->log->disk, s->on_disk, r);
        s->landed[s->landed_count++] = l;
    }
}

static bool busy(const struct stream *s)
{
    return s->wire || s->landed_count > 0 || s->claims
           || (!s->corrupt && s->owner.judge.at < s->read_to && s->owner.state == OWNER_OWNING);
}

int stream_pump(struct stream *s)
{
    if (s->pumping)
        return PAWL_OK;
    int status = pawl_env_work(s->log->env, &s->pump);
    s->pumping = status == PAWL_OK;
    return status;
}

static void pump_round(pawl_work *work)
{
    struct stream *s = heap_entry(work, struct stream, pump);
    struct mem_log *log = s->log;
    s->pumping = false;
    if (s->owner.state == OWNER_OWNING && s->read_to > s->owner.judge.at)
        read_up_to(s, s->read_to);
    if (s->claim_phase == CLAIM_PHASE_READ)
        finish_claim(s);
    report_landed(s);
    if (s->claims && s->claim_phase == CLAIM_PHASE_NONE)
        start_claim(s);
    land(s);
    log_deliver(log);
    if (busy(s))
        stream_pump(s);
    if (!log->closed)
        return;
    for (struct stream *other = log->streams; other; other = other->next)
        if (other->pumping)
            return;
    log_free(log);
}

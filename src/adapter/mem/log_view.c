#include "adapter/mem/log_view.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

static void pump_round(pawl_work *work);
static void wake(struct disk_watcher *watcher);

struct view *view_of(struct mem_log *log, pawl_stream stream)
{
    for (struct view *v = log->views; v; v = v->next)
        if (pawl_stream_equal(v->stream->id, stream))
            return v;
    const pawl_allocator *alloc = log->options.allocator;
    uint32_t window = log->options.window;
    struct view *v = mem_new(alloc, 1, sizeof *v);
    if (!v)
        return NULL;
    v->log = log;
    judge_init(&v->reader, 0);
    v->flights = mem_new(alloc, window, sizeof *v->flights);
    v->landed = mem_new(alloc, (size_t)window + 1, sizeof *v->landed);
    v->stream = disk_stream_of(log->disk, stream);
    if (!v->flights || !v->landed || !v->stream
        || owner_init(&v->owner, alloc, window, &v->reader) != PAWL_OK) {
        mem_free(alloc, v->flights, window * sizeof *v->flights);
        mem_free(alloc, v->landed, (window + (size_t)1) * sizeof *v->landed);
        mem_free(alloc, v, sizeof *v);
        return NULL;
    }
    v->number = log->view_count++;
    v->wire_end = &v->wire;
    v->pump.fn = pump_round;
    v->watcher.fn = wake;
    disk_watch(v->stream, &v->watcher);
    v->next = log->views;
    log->views = v;
    return v;
}

void view_free(struct view *v)
{
    const pawl_allocator *alloc = v->log->options.allocator;
    uint32_t window = v->log->options.window;
    disk_unwatch(v->stream, &v->watcher);
    for (struct disk_record *r = v->wire, *next; r; r = next) {
        next = r->next;
        disk_record_free(v->log->disk, r);
    }
    owner_release(&v->owner);
    mem_free(alloc, v->index, v->index_capacity * sizeof *v->index);
    mem_free(alloc, v->flights, window * sizeof *v->flights);
    mem_free(alloc, v->landed, (window + (size_t)1) * sizeof *v->landed);
    mem_free(alloc, v, sizeof *v);
}

static void wake(struct disk_watcher *watcher)
{
    struct view *v = heap_entry(watcher, struct view, watcher);
    for (struct op *op = v->follows; op; op = op->next_follow)
        op_come_back(op);
}

/* The reader. */

static bool index_room(struct view *v)
{
    if (v->indexed < v->index_capacity)
        return true;
    uint64_t capacity = v->index_capacity ? v->index_capacity * 2 : 64;
    void *index = mem_resize(v->log->options.allocator, v->index, v->index_capacity * sizeof *v->index,
                             capacity * sizeof *v->index);
    if (!index)
        return false;
    v->index = index;
    v->index_capacity = capacity;
    return true;
}

int view_catch_up(struct view *v)
{
    while (v->reader.at < v->stream->final) {
        const struct disk_record *r = v->stream->records[v->reader.at];
        if (!index_room(v))
            return PAWL_ENOMEM;
        bool first = v->reader.fragments == 0;
        enum claim_verdict verdict = judge_next(&v->reader, &r->head);
        if (claim_verdict_fatal(verdict)) {
            v->corrupt = true;
            return PAWL_ECORRUPT;
        }
        if (r->head.kind != CLAIM_KIND_EVENT || (verdict != CLAIM_COUNTS && verdict != CLAIM_PART))
            continue;
        if (first)
            v->partial = (struct seen){.first = r->head.position, .epoch = r->head.epoch};
        v->partial.bytes += r->size;
        v->partial.last = r->head.position;
        if (verdict == CLAIM_COUNTS)
            v->index[v->indexed++] = v->partial;
    }
    return PAWL_OK;
}

int view_entry(const struct view *v, uint64_t offset, pawl_entry *ret_entry, pawl_place *ret_place,
               void **ret_memory)
{
    assert(offset >= 1 && offset <= v->indexed);
    const struct seen *seen = &v->index[offset - 1];
    const struct disk_record *last = v->stream->records[seen->last];
    const void *body = last->body;
    void *memory = NULL;
    if (last->head.fragment > 0) {
        memory = mem_resize(v->log->options.allocator, NULL, 0, seen->bytes);
        if (!memory)
            return PAWL_ENOMEM;
        size_t size = 0;
        uint32_t fragment = 0;
        for (uint64_t at = seen->first; at <= seen->last; at++) {
            const struct disk_record *r = v->stream->records[at];
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
    *ret_entry = (pawl_entry){.stream = v->stream->id,
                              .epoch = seen->epoch,
                              .offset = offset,
                              .kind = last->kind,
                              .body = {body, seen->bytes}};
    *ret_place = (pawl_place){.position = seen->first + 1, .hint = seen->epoch};
    *ret_memory = memory;
    return PAWL_OK;
}

/* The owner. */

static void end_first_flight(struct view *v, int status)
{
    struct flight *f = &v->flights[v->flight_first++ % v->log->options.window];
    v->flight_count--;
    f->entry->status = status;
    if (--f->op->left == 0)
        f->op->ready = true;
}

static void end_flights(struct view *v, int status)
{
    while (v->flight_count > 0) {
        struct op *op = v->flights[v->flight_first % v->log->options.window].op;
        bool failed = op->fault.kind == MEM_LOG_FAIL && status == PAWL_EUNKNOWN;
        end_first_flight(v, failed ? PAWL_EIO : status);
    }
}

static void acknowledge(struct view *v, uint64_t upto)
{
    int status = view_catch_up(v);
    while (v->flight_count > 0) {
        pawl_append_entry *e = v->flights[v->flight_first % v->log->options.window].entry;
        if (e->entry.offset > upto)
            break;
        if (status == PAWL_OK) {
            const struct seen *seen = &v->index[e->entry.offset - 1];
            e->place = (pawl_place){.position = seen->first + 1, .hint = seen->epoch};
        }
        end_first_flight(v, status == PAWL_OK ? PAWL_OK : PAWL_EUNKNOWN);
    }
}

static void act(struct view *v, int status, const struct owner_actions *a)
{
    if (a->ack_upto)
        acknowledge(v, a->ack_upto);
    if (status != PAWL_OK) {
        v->corrupt = true;
        end_flights(v, PAWL_ECORRUPT);
    }
    if (a->must_reclaim)
        end_flights(v, PAWL_EUNKNOWN);
    if (a->resolved)
        end_flights(v, PAWL_EFENCED);
    if (a->read_to > a->read_from)
        v->read_to = a->read_to;
}

static void read_up_to(struct view *v, uint64_t position)
{
    assert(position <= v->stream->final);
    while (v->owner.judge.at < position && !v->corrupt) {
        struct owner_actions actions;
        int status = owner_read(&v->owner, &v->stream->records[v->owner.judge.at]->head, &actions);
        act(v, status, &actions);
    }
}

/* Claims, one after the other. */

static void end_claim(struct view *v, int status, const char *words)
{
    struct op *op = v->claims;
    v->claims = op->link;
    v->claim_phase = CLAIM_PHASE_NONE;
    if (v->owner.state == OWNER_CLAIMING)
        end_flights(v, PAWL_EUNKNOWN); /* it was given up, and with it what would have resolved them */
    op->epoch = v->owner.judge.epoch;
    op->next = v->owner.judge.next;
    op_end(op, status, words);
}

static void start_claim(struct view *v)
{
    struct op *op = v->claims;
    pawl_claim *claim = op->request;
    read_up_to(v, v->stream->final);
    if (v->corrupt) {
        end_claim(v, PAWL_ECORRUPT, "the log does not continue its own chain");
        return;
    }
    if (op->fault.kind == MEM_LOG_FAIL) {
        end_claim(v, PAWL_EIO, "an ordered failure");
        return;
    }
    struct disk_record *r = op->record;
    int status =
        owner_claim(&v->owner, v->log->options.node, pawl_env_random(v->log->env), claim->group0, &r->head);
    if (status != PAWL_OK) {
        end_claim(v, status, "the owner's assignment is a newer one");
        return;
    }
    op->record = NULL;
    r->head.checksum = disk_record_checksum(r);
    r->fate = op->fault.kind;
    r->hold = op->fault.kind == MEM_LOG_DELAY ? op->fault.n : 0;
    v->claim_phase = CLAIM_PHASE_SENT;
    view_transmit(v, r);
}

static void finish_claim(struct view *v)
{
    read_up_to(v, v->claim_at + 1);
    if (v->corrupt)
        end_claim(v, PAWL_ECORRUPT, "the log does not continue its own chain");
    else if (v->owner.state == OWNER_OWNING)
        end_claim(v, PAWL_OK, "");
    else
        end_claim(v, PAWL_EFENCED, "a rival's claim was faster");
}

static void claim_reported(struct view *v, uint64_t position)
{
    assert(v->claim_phase == CLAIM_PHASE_SENT);
    if (position == CLAIM_NOWHERE) {
        end_claim(v, PAWL_EIO, "nobody knows whether the claim was written");
        return;
    }
    v->claim_at = position;
    v->claim_phase = CLAIM_PHASE_READ;
}

/* The pump. */

void view_transmit(struct view *v, struct disk_record *r)
{
    r->next = NULL;
    *v->wire_end = r;
    v->wire_end = &r->next;
}

static void report_landed(struct view *v)
{
    bool lost = v->landed_crashes != v->log->disk->crashes;
    uint32_t count = v->landed_count;
    v->landed_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct landed l = v->landed[i];
        if (lost)
            l.position = CLAIM_NOWHERE;
        if (l.position != CLAIM_NOWHERE)
            disk_finalise(v->stream, l.position + 1);
        if (l.ticket == 0) {
            claim_reported(v, l.position);
            continue;
        }
        struct owner_actions actions;
        int status = owner_report(&v->owner, l.ticket, l.position, &actions);
        act(v, status, &actions);
    }
}

static void land(struct view *v)
{
    v->landed_crashes = v->log->disk->crashes;
    while (v->wire) {
        struct disk_record *r = v->wire;
        if (r->hold > 0) {
            r->hold--;
            return;
        }
        v->wire = r->next;
        if (!v->wire)
            v->wire_end = &v->wire;
        struct landed l = {.ticket = r->ticket};
        l.position = disk_land(v->log->disk, v->stream, r);
        v->landed[v->landed_count++] = l;
    }
}

static bool busy(const struct view *v)
{
    return v->wire || v->landed_count > 0 || v->claims
           || (!v->corrupt && v->owner.judge.at < v->read_to && v->owner.state == OWNER_OWNING);
}

int view_pump(struct view *v)
{
    if (v->pumping)
        return PAWL_OK;
    int status = pawl_env_work(v->log->env, &v->pump);
    v->pumping = status == PAWL_OK;
    return status;
}

static void pump_round(pawl_work *work)
{
    struct view *v = heap_entry(work, struct view, pump);
    struct mem_log *log = v->log;
    v->pumping = false;
    if (v->owner.state == OWNER_OWNING && v->read_to > v->owner.judge.at)
        read_up_to(v, v->read_to);
    if (v->claim_phase == CLAIM_PHASE_READ)
        finish_claim(v);
    report_landed(v);
    if (v->claims && v->claim_phase == CLAIM_PHASE_NONE)
        start_claim(v);
    land(v);
    log_deliver(log);
    if (busy(v))
        view_pump(v);
    if (!log->closed)
        return;
    for (struct view *other = log->views; other; other = other->next)
        if (other->pumping)
            return;
    log_free(log);
}

/* adapter/kafka/append.c: entries of any streams become flights, and come back together (K1). */
#include <assert.h>

#include "adapter/kafka/impl.h"
#include "base/alloc.h"
#include "base/error.h"

static const char *words_for(const pawl_append *a, struct kafka_log *log, size_t i, int status)
{
    struct view *v;
    if (view_find(log, a->entries[i].entry.stream, &v) == PAWL_OK) {
        if (status == PAWL_ECORRUPT)
            return v->fault.text;
        if (status == PAWL_EUNKNOWN && v->trouble.code != PAWL_OK)
            return v->trouble.text;
    }
    return pawl_status_text(status);
}

static void append_run(struct op *op)
{
    pawl_append *a = op->request;
    struct kafka_log *log = op->log;
    size_t i = 0;
    while (i < a->count && a->entries[i].status == PAWL_OK)
        i++;
    a->status = i < a->count ? a->entries[i].status : PAWL_OK;
    if (a->status != PAWL_OK && a->error) {
        char stream[PAWL_STREAM_TEXT_MAX];
        pawl_stream_format(a->entries[i].entry.stream, stream);
        pthread_mutex_lock(&log->lock);
        error_set(a->error, a->status, "%s: %s", stream, words_for(a, log, i, a->status));
        pthread_mutex_unlock(&log->lock);
    }
    atomic_fetch_sub(&log->outstanding, 1);
    a->done(a);
}

void kafka_collect(struct kafka_log *log)
{
    uint64_t held = 0; /* streams of those that stay */
    struct op **at = &log->appends.first;
    while (*at && held != UINT64_MAX) {
        struct op *op = *at;
        if (op->ready && (op->streams & held) == 0) {
            *at = op->link;
            if (!*at)
                log->appends.last = at;
            op_list_push(&log->ready, op);
        } else {
            held |= op->streams;
            at = &op->link;
        }
    }
}

static int make_room(struct view *v, size_t more)
{
    size_t need = v->flight_count + more;
    if (need <= v->flight_room)
        return PAWL_OK;
    if (need > FLIGHTS_MAX && v->flight_count > 0)
        return PAWL_EBUSY;
    size_t room = v->flight_room ? v->flight_room : 64;
    while (room < need)
        room *= 2;
    struct flight *flights = mem_new(v->log->alloc, room, sizeof *flights);
    if (!flights)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < v->flight_count; i++)
        flights[i] = v->flights[(v->flight_first + i) & (v->flight_room - 1)];
    mem_free(v->log->alloc, v->flights, v->flight_room * sizeof *v->flights);
    v->flights = flights;
    v->flight_room = room;
    v->flight_first = 0;
    return PAWL_OK;
}

/* Room for all, so that nothing can fail half-way. */
static int append_prepare(struct kafka_log *log, pawl_append *a, struct op *op)
{
    for (size_t i = 0; i < a->count; i++) {
        struct view *v;
        int status = view_find(log, a->entries[i].entry.stream, &v);
        if (status == PAWL_OK)
            status = make_room(v, a->count);
        if (status != PAWL_OK)
            return status;
        op->streams |= UINT64_C(1) << v->number % 64;
    }
    return PAWL_OK;
}

void view_wait(struct view *v)
{
    if (v->waiting)
        return;
    v->waiting = true;
    v->next_waiting = v->log->waiting;
    v->log->waiting = v;
}

static void append_start(struct kafka_log *log, pawl_append *a, struct op *op)
{
    bool too_big = false, waits = kafka_in_round(log);
    for (size_t i = 0; i < a->count; i++)
        too_big = too_big || a->entries[i].entry.body.size > PAWL_ENTRY_BYTES_MAX;
    op->left = a->count;
    for (size_t i = 0; i < a->count; i++) {
        struct view *v = NULL;
        int status = view_find(log, a->entries[i].entry.stream, &v);
        assert(status == PAWL_OK);
        (void)status;
        a->entries[i].place = (pawl_place){0};
        size_t at = (v->flight_first + v->flight_count++) & (v->flight_room - 1);
        v->flights[at] = (struct flight){
            .op = op, .entry = &a->entries[i], .status = too_big ? PAWL_ETOOBIG : FLIGHT_PENDING};
        if (i + 1 < a->count && pawl_stream_equal(a->entries[i + 1].entry.stream, v->stream))
            continue;
        if (waits)
            view_wait(v);
        else
            view_send(v);
    }
}

void kafka_send_all(struct kafka_log *log)
{
    for (struct view *v; (v = log->waiting);) {
        size_t before = v->flight_count;
        log->waiting = v->next_waiting;
        v->waiting = false;
        view_send(v);
        if (v->flight_count < before) /* refused */
            kafka_ring(log);
    }
}

int kafka_append(pawl_log *port, pawl_append *a)
{
    struct kafka_log *log = (struct kafka_log *)port;
    struct op *op = (struct op *)a->impl;
    if (!pawl_append_valid(a))
        return error_set(a->error, PAWL_EINVAL,
                         "an append needs done, entries, valid streams, and offsets above 0");
    op_begin(log, op, a, append_run);
    pthread_mutex_lock(&log->lock);
    op->serial = ++log->serial;
    int status = append_prepare(log, a, op);
    if (status == PAWL_OK) {
        atomic_fetch_add(&log->outstanding, 1);
        op_list_push(&log->appends, op);
        append_start(log, a, op);
        if (op->ready) /* refused: it is the log's thread that says so, never this call */
            kafka_ring(log);
    }
    pthread_mutex_unlock(&log->lock);
    return status == PAWL_OK ? PAWL_OK : error_wrap(a->error, status, "append");
}

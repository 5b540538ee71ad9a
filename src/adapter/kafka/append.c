/* adapter/kafka/append.c: entries of any streams become flights, and come back together (K1). */
#include <assert.h>

#include "adapter/kafka/impl.h"
#include "base/alloc.h"
#include "base/error.h"

static void say_why(const pawl_append *a, struct kafka_log *log, size_t i, int status)
{
    struct stream *s;
    const pawl_entry *e = &a->entries[i].entry;
    const char *words = pawl_status_text(status);
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_stream_format(e->stream, name);
    bool found = stream_find(log, e->stream, &s) == PAWL_OK;
    if (found && status == PAWL_EUNKNOWN && e->epoch == s->refusal.epoch && e->offset == s->refusal.offset) {
        error_set(a->error, status,
                  "%s: topic %s, partition %u: the brokers refused it, so it is not there: %s", name, s->topic,
                  s->id.partition, s->refusal.why);
        return;
    }
    if (found && status == PAWL_ECORRUPT)
        words = s->fault.text;
    else if (found && status == PAWL_EUNKNOWN && s->trouble.code != PAWL_OK)
        words = s->trouble.text;
    error_set(a->error, status, "%s: %s", name, words);
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
        pthread_mutex_lock(&log->lock);
        say_why(a, log, i, a->status);
        pthread_mutex_unlock(&log->lock);
    }
    atomic_fetch_sub(&log->outstanding, 1);
    a->done(a);
}

void kafka_collect(struct kafka_log *log)
{
    uint64_t held = 0; /* streams of the appends that stay */
    struct op **at = &log->appends.first;
    while (*at && log->ripe > 0 && held != UINT64_MAX) {
        struct op *op = *at;
        if (op->ready && (op->streams & held) == 0) {
            *at = op->link;
            if (!*at)
                log->appends.last = at;
            op_list_push(&log->ready, op);
            log->ripe--;
            kafka_append_ends(log, op->shard);
        } else {
            held |= op->streams;
            at = &op->link;
        }
    }
}

static int make_room(struct stream *s, size_t more)
{
    size_t need = s->flight_count + more;
    if (need <= s->flight_room)
        return PAWL_OK;
    if (need > FLIGHTS_MAX && s->flight_count > 0)
        return PAWL_EBUSY;
    size_t room = s->flight_room ? s->flight_room : 64;
    while (room < need)
        room *= 2;
    struct flight *flights = mem_new(s->log->alloc, room, sizeof *flights);
    if (!flights)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < s->flight_count; i++)
        flights[i] = s->flights[(s->flight_first + i) & (s->flight_room - 1)];
    mem_free(s->log->alloc, s->flights, s->flight_room * sizeof *s->flights);
    s->flights = flights;
    s->flight_room = room;
    s->flight_first = 0;
    return PAWL_OK;
}

/* Make room for all entries first, so that nothing can fail half-way. */
static int append_prepare(struct kafka_log *log, pawl_append *a, struct op *op)
{
    for (size_t i = 0; i < a->count; i++) {
        struct stream *s;
        int status = stream_find(log, a->entries[i].entry.stream, &s);
        if (status == PAWL_OK)
            status = make_room(s, a->count);
        if (status != PAWL_OK)
            return status;
        op->streams |= UINT64_C(1) << s->number % 64;
    }
    return PAWL_OK;
}

void stream_wait(struct stream *s)
{
    if (s->waiting)
        return;
    s->waiting = true;
    s->next_waiting = s->log->waiting;
    s->log->waiting = s;
}

static void append_start(struct kafka_log *log, pawl_append *a, struct op *op)
{
    bool too_big = false, waits = kafka_in_round(log);
    for (size_t i = 0; i < a->count; i++)
        too_big = too_big || a->entries[i].entry.body.size > PAWL_ENTRY_BYTES_MAX;
    op->left = a->count;
    for (size_t i = 0; i < a->count; i++) {
        struct stream *s = NULL;
        int status = stream_find(log, a->entries[i].entry.stream, &s);
        assert(status == PAWL_OK);
        (void)status;
        a->entries[i].place = (pawl_place){0};
        size_t at = (s->flight_first + s->flight_count++) & (s->flight_room - 1);
        s->flights[at] = (struct flight){
            .op = op, .entry = &a->entries[i], .status = too_big ? PAWL_ETOOBIG : FLIGHT_PENDING};
        if (i + 1 < a->count && pawl_stream_equal(a->entries[i + 1].entry.stream, s->id))
            continue;
        if (waits)
            stream_wait(s);
        else
            stream_send(s);
    }
}

void kafka_send_all(struct kafka_log *log)
{
    for (struct stream *s; (s = log->waiting);) {
        size_t before = s->flight_count;
        log->waiting = s->next_waiting;
        s->waiting = false;
        stream_send(s);
        if (s->flight_count < before) /* refused */
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
        kafka_append_begins(log, op->shard);
        op_list_push(&log->appends, op);
        append_start(log, a, op);
        if (op->ready) /* refused: the log's thread reports it, never this call */
            kafka_ring(log);
    }
    pthread_mutex_unlock(&log->lock);
    return status == PAWL_OK ? PAWL_OK : error_wrap(a->error, status, "append");
}

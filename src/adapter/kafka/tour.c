/* adapter/kafka/tour.c: read, follow and tail.
 *
 *      call ──► look for the topic ──► open an eye ──► batch ──► visits, where it was called
 *               (pool, once a topic)                    ▲          │
 *                                                       └── back ──┴── over ──► done
 *
 * A batch is judged on the log's thread; bodies stay in librdkafka's messages until they were visited. A read
 * that is alone does all of it on its own thread. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapter/kafka/impl.h"
#include "adapter/kafka/topics.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

static uint64_t deadline_of(const struct kafka_log *log)
{
    return clock_boot_ns() + (uint64_t)log->url.timeout_ms * 1000000;
}

static int no_answer(const struct kafka_log *log, pawl_error *error)
{
    return error_set(error, PAWL_EIO, "no broker has answered for %" PRIu32 " ms", log->url.timeout_ms);
}

/* The caller's side. */

static bool visit(struct tour *t, const struct item *item)
{
    if (t->kind == TOUR_READ) {
        pawl_read *read = t->op.request;
        return read->visit(read, &item->entry, item->place);
    }
    pawl_follow *follow = t->op.request;
    return follow->visit(follow, &item->entry, item->place);
}

static void drop_item(struct kafka_log *log, struct item *item)
{
    if (item->message)
        rd_kafka_message_destroy(item->message);
    mem_free(log->alloc, item->memory, item->room);
}

static void finish(struct tour *t)
{
    struct kafka_log *log = t->op.log;
    struct tour done = {.op = t->op, .kind = t->kind, .status = t->status, .next_offset = t->next_offset};
    uint64_t last = t->eye.mark.judge.next - 1;
    pawl_error error = t->error;
    mem_free(log->alloc, t, sizeof *t);
    atomic_fetch_sub(&log->outstanding, 1);
    if (done.kind == TOUR_READ) {
        pawl_read *read = done.op.request;
        read->status = done.status;
        read->next = done.next_offset;
        if (done.status != PAWL_OK)
            error_set(read->error, done.status, "%s", error.text);
        read->done(read);
    } else if (done.kind == TOUR_FOLLOW) {
        pawl_follow *follow = done.op.request;
        follow->status = done.status;
        follow->next = done.next_offset;
        if (done.status != PAWL_OK)
            error_set(follow->error, done.status, "%s", error.text);
        follow->done(follow);
    } else {
        pawl_tail *tail = done.op.request;
        tail->status = done.status;
        if (done.status == PAWL_OK)
            tail->last = last;
        else
            error_set(tail->error, done.status, "%s", error.text);
        tail->done(tail);
    }
}

/* Put what was seen into the batch. The message goes with it if the body lies in it. */
static bool add_item(struct tour *t, const pawl_entry *entry, pawl_place place, rd_kafka_message_t *message)
{
    struct eye *eye = &t->eye;
    struct item *item = &t->items[t->count];
    *item = (struct item){.entry = *entry, .place = place};
    t->left--;
    t->count++;
    if (entry->body.size > 0 && entry->body.data == eye->part) {
        item->memory = eye->part;
        item->room = eye->part_room;
        eye->part = NULL;
        eye->part_room = 0;
        return false;
    }
    item->message = message;
    return true;
}

static void fill(struct tour *t, size_t *bytes, int *ret_status)
{
    while (t->used < t->taken && t->left > 0 && *bytes < BATCH_BYTES && *ret_status == PAWL_OK && !t->over) {
        rd_kafka_message_t *m = t->messages[t->used++];
        enum sight sight;
        pawl_entry entry;
        pawl_place place;
        bool kept = false;
        *ret_status = eye_see(&t->eye, m, &sight, &entry, &place, &t->error);
        bool good = *ret_status == PAWL_OK && m->err == RD_KAFKA_RESP_ERR_NO_ERROR;
        if (sight == SIGHT_ENTRY && t->kind != TOUR_TAIL && entry.offset >= t->from) {
            *bytes += entry.body.size;
            kept = add_item(t, &entry, place, m);
        }
        if (t->kind != TOUR_FOLLOW && (sight == SIGHT_END || (good && eye_at_end(&t->eye))))
            t->over = true;
        if (!kept)
            rd_kafka_message_destroy(m);
    }
    if (*ret_status == PAWL_OK)
        view_mark(t->view, &t->eye.mark);
}

/* More, if it is there already, without a change of thread. Whether anything is to be visited. */
static bool refill(struct tour *t)
{
    struct kafka_log *log = t->op.log;
    size_t bytes = 0;
    int status = PAWL_OK;
    pthread_mutex_lock(&log->lock);
    if (t->used == t->taken) {
        t->used = 0;
        t->taken = cursor_take(&t->eye.cursor, 0, t->messages);
    }
    fill(t, &bytes, &status);
    if (status != PAWL_OK || t->left == 0) {
        t->over = true;
        t->status = status;
    }
    pthread_mutex_unlock(&log->lock);
    return t->count > 0;
}

static bool visit_batch(struct tour *t)
{
    bool more = true;
    for (size_t i = 0; i < t->count; i++) {
        if (more && !atomic_load(&t->stop)) {
            more = visit(t, &t->items[i]);
            t->next_offset = t->items[i].entry.offset + 1;
        }
        drop_item(t->op.log, &t->items[i]);
    }
    t->count = 0;
    return more;
}

void tour_run(struct op *op)
{
    struct tour *t = (struct tour *)op;
    struct kafka_log *log = op->log;
    bool more = visit_batch(t);
    for (int i = 1; i < BATCHES_MAX && more && t->open && !t->over && !atomic_load(&t->stop) && refill(t); i++)
        more = visit_batch(t);
    pthread_mutex_lock(&log->lock);
    if (!more || (atomic_load(&t->stop) && !t->over)) {
        t->over = true;
        t->status = more ? PAWL_ECLOSED : PAWL_OK;
        error_set(&t->error, t->status, "%s", pawl_status_text(t->status));
    }
    bool over = t->over && !t->open;
    if (over && t->kind == TOUR_FOLLOW)
        ((pawl_follow *)op->request)->impl[0] = NULL;
    if (!over) {
        op_list_push(&log->back, op);
        kafka_ring(log);
    }
    pthread_mutex_unlock(&log->lock);
    if (over)
        finish(t);
}

/* The log's side, with the lock. */

static void hand_over(struct tour *t)
{
    t->held = true;
    op_list_push(&t->op.log->ready, &t->op);
}

static void leave(struct tour *t)
{
    struct kafka_log *log = t->op.log;
    struct tour **at = &log->tours;
    while (*at && *at != t)
        at = &(*at)->next;
    if (*at)
        *at = t->next;
    for (; t->used < t->taken; t->used++)
        rd_kafka_message_destroy(t->messages[t->used]);
    if (t->open) {
        log->figures.ignored += t->eye.ignored;
        eye_close(&t->eye);
    }
    t->open = false;
}

static void end_tour(struct tour *t, int status)
{
    t->over = true;
    t->status = status;
    leave(t);
    hand_over(t);
}

static void begin(struct tour *t)
{
    struct kafka_log *log = t->op.log;
    uint64_t from = t->kind == TOUR_TAIL ? UINT64_MAX : t->from;
    int status = eye_open(t->view, from, true, &t->eye, &t->error);
    if (status != PAWL_OK) {
        end_tour(t, status);
        return;
    }
    t->open = true;
    t->deadline = deadline_of(log);
    t->next = log->tours;
    log->tours = t;
}

static void look_work(pawl_work *work)
{
    struct tour *t = heap_entry(work, struct tour, work);
    struct kafka_log *log = t->op.log;
    uint32_t partitions = 0;
    t->status = topic_partitions(log->front, &log->url, t->view->topic, &partitions, &t->error);
    pthread_mutex_lock(&log->lock);
    if (partitions > 0)
        t->view->partitions = partitions;
    op_list_push(&log->back, &t->op);
    kafka_ring(log);
    pthread_mutex_unlock(&log->lock);
}

static int look(struct tour *t)
{
    t->work = (pawl_work){.fn = look_work};
    t->looking = true;
    int status = pawl_env_work(t->op.log->env, &t->work);
    if (status != PAWL_OK)
        t->looking = false;
    return status;
}

/* The topic was looked for. A stream without one is empty; who follows it looks again. */
static void looked(struct tour *t)
{
    struct kafka_log *log = t->op.log;
    t->looking = false;
    if (atomic_load(&t->stop)) {
        end_tour(t, PAWL_ECLOSED);
    } else if (t->status != PAWL_OK) {
        end_tour(t, t->status);
    } else if (t->view->stream.partition < t->view->partitions) {
        begin(t);
    } else if (t->kind == TOUR_FOLLOW) {
        t->deadline = clock_boot_ns() + LOOK_AGAIN_NS;
        t->next = log->tours;
        log->tours = t;
    } else {
        judge_init(&t->eye.mark.judge, 0);
        end_tour(t, PAWL_OK);
    }
}

void tour_back(struct tour *t)
{
    if (t->looking) {
        looked(t);
        return;
    }
    t->held = false;
    if (t->over)
        end_tour(t, t->status); /* stopped by its caller: nothing is left but to close */
}

static bool step_waiting(struct tour *t, uint64_t now)
{
    if (now < t->deadline && !atomic_load(&t->stop))
        return false;
    leave(t);
    if (atomic_load(&t->stop) || look(t) != PAWL_OK)
        end_tour(t, PAWL_ECLOSED);
    return false;
}

bool tour_step(struct tour *t, uint64_t now)
{
    struct kafka_log *log = t->op.log;
    if (t->held)
        return false;
    if (!t->open)
        return step_waiting(t, now);
    if (atomic_load(&t->stop)) {
        error_set(&t->error, PAWL_ECLOSED, "%s", pawl_status_text(PAWL_ECLOSED));
        end_tour(t, PAWL_ECLOSED);
        return false;
    }
    int status = PAWL_OK;
    size_t bytes = 0;
    if (t->used == t->taken) {
        t->used = 0;
        t->taken = cursor_take(&t->eye.cursor, 0, t->messages);
    }
    if (t->taken > 0)
        t->deadline = deadline_of(log);
    fill(t, &bytes, &status);
    bool more = t->taken == TAKE_MAX || t->used < t->taken;
    if (status == PAWL_OK && t->kind != TOUR_FOLLOW && now > t->deadline)
        status = no_answer(log, &t->error);
    if (status != PAWL_OK || t->over || t->left == 0) {
        end_tour(t, status);
        return false;
    }
    if (t->count > 0) {
        hand_over(t);
        return false;
    }
    return more;
}

/* Calls. */

static int tour_start(struct kafka_log *log, enum tour_kind kind, void *request, pawl_stream stream,
                      uint64_t from, uint64_t limit, pawl_error *error)
{
    struct tour *t = mem_new(log->alloc, 1, sizeof *t);
    if (!t)
        return error_set(error, PAWL_ENOMEM, "no memory to read");
    op_begin(log, &t->op, request, tour_run);
    t->kind = kind;
    t->from = t->next_offset = from;
    t->left = limit;
    atomic_fetch_add(&log->outstanding, 1);
    pthread_mutex_lock(&log->lock);
    int status = view_find(log, stream, &t->view);
    if (status == PAWL_OK && stream.partition < t->view->partitions) {
        t->looking = true;
        op_list_push(&log->back, &t->op);
        kafka_ring(log);
    } else if (status == PAWL_OK) {
        status = look(t);
    }
    if (status == PAWL_OK && kind == TOUR_FOLLOW)
        ((pawl_follow *)request)->impl[0] = t;
    pthread_mutex_unlock(&log->lock);
    if (status == PAWL_OK)
        return PAWL_OK;
    atomic_fetch_sub(&log->outstanding, 1);
    mem_free(log->alloc, t, sizeof *t);
    return error_wrap(error, status, "read");
}

/* On this thread. */
static int read_stream(struct kafka_log *log, pawl_read *read, struct view *v, struct eye *eye,
                       uint64_t *ret_next)
{
    rd_kafka_message_t *messages[TAKE_MAX];
    uint64_t left = read->limit, deadline = deadline_of(log);
    bool over = left == 0;
    int status = PAWL_OK;
    while (!over && status == PAWL_OK) {
        size_t taken = cursor_take(&eye->cursor, 100, messages);
        if (taken > 0)
            deadline = deadline_of(log);
        for (size_t i = 0; i < taken; i++) {
            enum sight sight = SIGHT_NOTHING;
            pawl_entry entry;
            pawl_place place;
            if (!over && status == PAWL_OK)
                status = eye_see(eye, messages[i], &sight, &entry, &place, read->error);
            if (sight == SIGHT_ENTRY && entry.offset >= read->from) {
                over = !read->visit(read, &entry, place) || --left == 0;
                *ret_next = entry.offset + 1;
            }
            over = over || sight == SIGHT_END
                   || (status == PAWL_OK && messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR && eye_at_end(eye));
            rd_kafka_message_destroy(messages[i]);
        }
        if (!over && status == PAWL_OK && clock_boot_ns() > deadline)
            status = no_answer(log, read->error);
        pthread_mutex_lock(&log->lock);
        if (status == PAWL_OK)
            view_mark(v, &eye->mark);
        pthread_mutex_unlock(&log->lock);
    }
    return status;
}

static int read_alone(struct kafka_log *log, pawl_read *read)
{
    struct eye eye = {0};
    struct view *v;
    uint32_t partitions = 0;
    pthread_mutex_lock(&log->lock);
    int status = view_find(log, read->stream, &v);
    if (status == PAWL_OK)
        partitions = v->partitions;
    pthread_mutex_unlock(&log->lock);
    if (status != PAWL_OK)
        return error_wrap(read->error, status, "read");
    atomic_fetch_add(&log->outstanding, 1);
    if (partitions == 0)
        status = topic_partitions(log->front, &log->url, v->topic, &partitions, read->error);
    read->next = read->from;
    if (status == PAWL_OK && read->stream.partition < partitions) {
        pthread_mutex_lock(&log->lock);
        v->partitions = partitions;
        status = eye_open(v, read->from, false, &eye, read->error);
        pthread_mutex_unlock(&log->lock);
        if (status == PAWL_OK)
            status = read_stream(log, read, v, &eye, &read->next);
        eye_close(&eye);
    }
    read->status = status;
    atomic_fetch_sub(&log->outstanding, 1);
    return PAWL_READ_DONE;
}

int kafka_read(pawl_log *port, pawl_read *read)
{
    struct kafka_log *log = (struct kafka_log *)port;
    if (!read->done || !read->visit || read->from == 0 || !pawl_stream_valid(read->stream))
        return error_set(read->error, PAWL_EINVAL, "a read needs a valid stream, from above 0, visit and done");
    if (read->alone)
        return read_alone(log, read);
    return tour_start(log, TOUR_READ, read, read->stream, read->from, read->limit, read->error);
}

int kafka_follow(pawl_log *port, pawl_follow *follow)
{
    if (!follow->done || !follow->visit || follow->from == 0 || !pawl_stream_valid(follow->stream))
        return error_set(follow->error, PAWL_EINVAL,
                         "a follow needs a valid stream, from above 0, visit and done");
    return tour_start((struct kafka_log *)port, TOUR_FOLLOW, follow, follow->stream, follow->from, UINT64_MAX,
                      follow->error);
}

int kafka_unfollow(pawl_log *port, pawl_follow *follow)
{
    struct kafka_log *log = (struct kafka_log *)port;
    pthread_mutex_lock(&log->lock);
    struct tour *t = follow->impl[0];
    bool ending = !t || t->over || atomic_load(&t->stop);
    if (!ending) {
        atomic_store(&t->stop, true);
        kafka_ring(log);
    }
    pthread_mutex_unlock(&log->lock);
    return ending ? error_set(follow->error, PAWL_EMISUSE, "it does not follow, or ends by itself") : PAWL_OK;
}

int kafka_tail(pawl_log *port, pawl_tail *tail)
{
    if (!tail->done || !pawl_stream_valid(tail->stream))
        return error_set(tail->error, PAWL_EINVAL, "a tail needs a valid stream and done");
    return tour_start((struct kafka_log *)port, TOUR_TAIL, tail, tail->stream, 0, UINT64_MAX, tail->error);
}

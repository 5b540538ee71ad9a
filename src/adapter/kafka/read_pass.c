/* adapter/kafka/read_pass.c: read, follow and tail.
 *
 *      call ──► look for the topic ──► open a reader ──► batch ──► visits, where it was called
 *               (pool, once a topic)                    ▲          │
 *                                                       └── back ──┴── over ──► done
 *
 * A batch is judged on the log's thread; bodies stay in librdkafka's messages until they were visited. A read
 * whose caller waits for it alone is read_alone.c's. A pass that begins in the middle of what is known may begin at a
 * place that was found on the pool (find.c); when it cannot go on from there, it begins anew where it is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapter/kafka/impl.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

uint64_t kafka_deadline(const struct kafka_log *log)
{
    return clock_boot_ns() + (uint64_t)log->url.timeout_ms * 1000000;
}

int kafka_no_answer(const struct kafka_log *log, pawl_error *error)
{
    return error_set(error, PAWL_EIO, "no broker has answered for %" PRIu32 " ms", log->url.timeout_ms);
}

/* The caller's side. */

static bool visit(struct read_pass *p, const struct item *item)
{
    if (p->kind == PASS_READ) {
        pawl_read *read = p->op.request;
        return read->visit(read, &item->entry, item->place);
    }
    pawl_follow *follow = p->op.request;
    return follow->visit(follow, &item->entry, item->place);
}

static void drop_item(struct kafka_log *log, struct item *item)
{
    if (item->message)
        rd_kafka_message_destroy(item->message);
    mem_free(log->alloc, item->memory, item->room);
}

static void finish(struct read_pass *p)
{
    struct kafka_log *log = p->op.log;
    struct read_pass done = {.op = p->op, .kind = p->kind, .status = p->status, .next_offset = p->next_offset};
    uint64_t last = p->reader.judged.judge.next - 1;
    pawl_error error = p->error;
    mem_free(log->alloc, p, sizeof *p);
    atomic_fetch_sub(&log->outstanding, 1);
    if (done.kind == PASS_READ) {
        pawl_read *read = done.op.request;
        read->status = done.status;
        read->next = done.next_offset;
        if (done.status != PAWL_OK)
            error_set(read->error, done.status, "%s", error.text);
        read->done(read);
    } else if (done.kind == PASS_FOLLOW) {
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
static bool add_item(struct read_pass *p, const pawl_entry *entry, pawl_place place,
                     rd_kafka_message_t *message)
{
    struct stream_reader *reader = &p->reader;
    struct item *item = &p->items[p->count];
    *item = (struct item){.entry = *entry, .place = place};
    p->left--;
    p->count++;
    if (entry->body.size > 0 && entry->body.data == reader->part) {
        item->memory = reader->part;
        item->room = reader->part_room;
        reader->part = NULL;
        reader->part_room = 0;
        return false;
    }
    item->message = message;
    return true;
}

static void fill(struct read_pass *p, size_t *bytes, int *ret_status)
{
    while (p->used < p->taken && p->left > 0 && *bytes < BATCH_BYTES && *ret_status == PAWL_OK && !p->over
           && !p->doubted && !p->lost) {
        rd_kafka_message_t *m = p->messages[p->used++];
        enum found found;
        pawl_entry entry;
        pawl_place place;
        bool kept = false;
        *ret_status = stream_reader_take(&p->reader, m, &found, &entry, &place, &p->error);
        bool good = *ret_status == PAWL_OK && m->err == RD_KAFKA_RESP_ERR_NO_ERROR;
        p->doubted = found == FOUND_DOUBT;
        p->lost = found == FOUND_LOST;
        if (found == FOUND_ENTRY && p->kind != PASS_TAIL && entry.offset >= p->from) {
            *bytes += entry.body.size;
            kept = add_item(p, &entry, place, m);
        }
        if (found == FOUND_END)
            p->reopened = false;
        if (p->kind != PASS_FOLLOW && (found == FOUND_END || (good && stream_reader_at_end(&p->reader))))
            p->over = true;
        if (!kept)
            rd_kafka_message_destroy(m);
    }
    if (*ret_status == PAWL_OK && p->reader.upto == 0)
        stream_keep_resume_point(p->stream, &p->reader.judged);
}

/* Take more messages if they have come already, so that the batch goes on without a change of thread. True if
 * there is something to visit. */
static bool refill(struct read_pass *p)
{
    struct kafka_log *log = p->op.log;
    size_t bytes = 0;
    int status = PAWL_OK;
    pthread_mutex_lock(&log->lock);
    if (p->used == p->taken && !p->doubted && !p->lost) {
        p->used = 0;
        p->taken = cursor_take(&p->reader.cursor, 0, p->messages);
    }
    fill(p, &bytes, &status);
    if (status != PAWL_OK || p->left == 0) {
        p->over = true;
        p->status = status;
    }
    pthread_mutex_unlock(&log->lock);
    return p->count > 0;
}

static bool visit_batch(struct read_pass *p)
{
    bool more = true;
    for (size_t i = 0; i < p->count; i++) {
        if (more && !atomic_load(&p->stop)) {
            more = visit(p, &p->items[i]);
            p->next_offset = p->items[i].entry.offset + 1;
        }
        drop_item(p->op.log, &p->items[i]);
    }
    p->count = 0;
    return more;
}

void read_pass_run(struct op *op)
{
    struct read_pass *p = (struct read_pass *)op;
    struct kafka_log *log = op->log;
    bool more = visit_batch(p);
    for (int i = 1; i < BATCHES_MAX && more && p->open && !p->over && !atomic_load(&p->stop) && refill(p); i++)
        more = visit_batch(p);
    pthread_mutex_lock(&log->lock);
    if (!more || (atomic_load(&p->stop) && !p->over)) {
        p->over = true;
        p->status = more ? PAWL_ECLOSED : PAWL_OK;
        error_set(&p->error, p->status, "%s", pawl_status_text(p->status));
    }
    bool over = p->over && !p->open;
    if (over && p->kind == PASS_FOLLOW)
        ((pawl_follow *)op->request)->impl[0] = NULL;
    if (!over) {
        op_list_push(&log->back, op);
        kafka_ring(log);
    }
    pthread_mutex_unlock(&log->lock);
    if (over)
        finish(p);
}

/* The log's side, with the lock. */

static void hand_over(struct read_pass *p)
{
    p->held = true;
    op_list_push(&p->op.log->ready, &p->op);
}

static void enlist(struct read_pass *p)
{
    p->next = p->op.log->passes;
    p->op.log->passes = p;
}

static void unlist(struct read_pass *p)
{
    struct read_pass **at = &p->op.log->passes;
    while (*at && *at != p)
        at = &(*at)->next;
    if (*at)
        *at = p->next;
}

static void drop_messages(struct read_pass *p)
{
    for (; p->used < p->taken; p->used++)
        rd_kafka_message_destroy(p->messages[p->used]);
}

static void leave(struct read_pass *p)
{
    unlist(p);
    drop_messages(p);
    if (p->began) {
        p->op.log->figures.ignored += p->reader.ignored;
        stream_reader_close(&p->reader);
    }
    p->began = p->open = false;
}

static void end_pass(struct read_pass *p, int status)
{
    p->over = true;
    p->status = status;
    leave(p);
    hand_over(p);
}

static void begin(struct read_pass *p)
{
    struct kafka_log *log = p->op.log;
    uint64_t from = p->kind == PASS_TAIL ? UINT64_MAX : p->from;
    int status;
    if (p->began)
        status = stream_reader_resume(&p->reader, p->bounds.high, &p->error);
    else if (p->seek.found)
        status = stream_reader_open_at(p->stream, &p->seek, true, &p->reader, &p->error);
    else
        status = stream_reader_open(p->stream, from, true, &p->reader, &p->error);
    p->began = true;
    if (status != PAWL_OK) {
        end_pass(p, status);
        return;
    }
    if (p->reader.known < p->bounds.high)
        p->reader.known = p->bounds.high;
    p->open = true;
    p->doubted = false;
    p->deadline = p->reopened ? p->until : kafka_deadline(log);
    p->heard = p->asked = clock_boot_ns();
    p->misses = false;
    enlist(p);
}

static void look_work(pawl_work *work)
{
    struct read_pass *p = heap_entry(work, struct read_pass, work);
    struct kafka_log *log = p->op.log;
    uint32_t partitions = p->partitions;
    p->status = PAWL_OK;
    p->absent = false;
    if (p->stream->id.partition >= partitions)
        p->status = log_find_topic(log, p->stream->topic, p->stream->id, &p->absent, &partitions, &p->error);
    if (p->status == PAWL_OK && (p->bounded || p->doubted || p->peeking) && partitions > 0)
        p->status = stream_bounds(p->stream, &p->bounds, &p->error);
    if (p->status == PAWL_OK && p->seeking && !p->doubted && partitions > 0)
        stream_seek(p->stream, p->bounds.high, &p->seek);
    pthread_mutex_lock(&log->lock);
    if (partitions > 0)
        p->stream->partitions = partitions;
    op_list_push(&log->back, &p->op);
    kafka_ring(log);
    pthread_mutex_unlock(&log->lock);
}

static int look(struct read_pass *p)
{
    p->work = (pawl_work){.fn = look_work};
    p->partitions = p->stream->partitions;
    p->looking = true;
    int status = pawl_env_work(p->op.log->env, &p->work);
    if (status != PAWL_OK)
        p->looking = false;
    return status;
}

static void look_later(struct read_pass *p)
{
    p->deadline = clock_boot_ns() + LOOK_AGAIN_NS;
    enlist(p);
}

static void reopen(struct read_pass *p)
{
    p->reopened = true;
    if (p->kind == PASS_FOLLOW) /* it waits for as long as it takes */
        p->until = kafka_deadline(p->op.log);
    begin(p);
}

/* The present leader was asked, because another said that the position is out of range, or the stream too short. */
static void judge_doubt(struct read_pass *p)
{
    uint64_t at = p->reader.judged.judge.at;
    enum doubt doubt = bounds_judge(&p->bounds, at, p->reader.known);
    bool over = clock_boot_ns() >= p->until;
    bool gives_up = over && p->reopened && p->kind != PASS_FOLLOW;
    if (doubt != DOUBT_DELETED && gives_up)
        end_pass(p, stream_stale(p->stream, &p->error));
    else if (doubt == DOUBT_NONE)
        reopen(p);
    else if (doubt == DOUBT_BEYOND && !over)
        look_later(p);
    else
        end_pass(p, stream_lost(p->stream, doubt, at, p->reader.known, &p->error));
}

/* A follow that hears nothing has asked where the stream ends. If nobody answers, it asks again. */
static void peeked(struct read_pass *p)
{
    uint64_t now = clock_boot_ns(), at = p->reader.judged.judge.at;
    bool answered = p->status == PAWL_OK;
    p->peeking = false;
    if (answered) {
        p->misses = p->bounds.high > at;
        p->doubted = bounds_judge(&p->bounds, at, p->reader.known) != DOUBT_NONE;
    }
    if (answered && !p->misses)
        p->heard = p->asked = now;
    else
        p->asked = now - SILENCE_NS + LOOK_AGAIN_NS;
    enlist(p);
}

/* The topic was looked for, and the stream's end. An operation log without a topic is empty; a follow looks for
 * it again later. */
static void looked(struct read_pass *p)
{
    bool found = p->stream->id.partition < p->stream->partitions;
    bool waits = p->doubted && p->kind == PASS_FOLLOW; /* for as long as nobody answers */
    bool unanswered = p->status == PAWL_EIO && (waits || p->absent || clock_boot_ns() < p->until);
    bool awaited = p->status == PAWL_OK && !p->doubted && !found && p->kind == PASS_FOLLOW;
    bool absent = p->status == PAWL_OK && !p->doubted && found && p->bounded && !p->bounds.there;
    p->looking = false;
    if (atomic_load(&p->stop)) {
        end_pass(p, PAWL_ECLOSED);
    } else if (p->peeking) {
        peeked(p);
    } else if (unanswered || awaited || (absent && clock_boot_ns() < p->until)) {
        look_later(p);
    } else if (absent) {
        end_pass(p, stream_absent(p->stream, p->stream->latest.judge.at, &p->error));
    } else if (p->status != PAWL_OK) {
        end_pass(p, p->status);
    } else if (p->doubted) {
        judge_doubt(p);
    } else if (found) {
        begin(p);
    } else {
        judge_init(&p->reader.judged.judge, 0);
        end_pass(p, PAWL_OK);
    }
}

/* Records have come. */
static void got_on(struct read_pass *p, uint64_t now)
{
    p->heard = p->asked = now;
    p->misses = false;
    p->deadline = kafka_deadline(p->op.log);
    p->reopened = false;
}

void read_pass_back(struct read_pass *p)
{
    if (p->looking) {
        looked(p);
        return;
    }
    p->held = false;
    got_on(p, clock_boot_ns());
    if (p->over)
        end_pass(p, p->status); /* stopped by its caller: nothing is left but to close */
}

static bool step_waiting(struct read_pass *p, uint64_t now)
{
    if (now < p->deadline && !atomic_load(&p->stop))
        return false;
    unlist(p);
    if (atomic_load(&p->stop) || look(p) != PAWL_OK)
        end_pass(p, PAWL_ECLOSED);
    return false;
}

/* librdkafka may stop fetching when leaders change, and not say so. So a follow that hears nothing asks where the stream
 * ends, however long it has been idle. Its cursor stays open meanwhile: a leader that hangs is given up by librdkafka itself,
 * and a cursor that is opened anew would only come to it again. If something is there and does not come, it is in doubt, and
 * begins again where it is. */
static bool is_silent(const struct read_pass *p, uint64_t now)
{
    return p->kind == PASS_FOLLOW && now >= p->asked + SILENCE_NS;
}

static void peek(struct read_pass *p)
{
    unlist(p);
    p->peeking = true;
    if (look(p) != PAWL_OK)
        end_pass(p, PAWL_ECLOSED);
}

/* It is in doubt; again, if it has not got on since the last doubt. */
static void suspend(struct read_pass *p)
{
    unlist(p);
    drop_messages(p);
    stream_reader_suspend(&p->reader);
    p->open = false;
    if (p->reopened) {
        look_later(p);
        return;
    }
    p->until = kafka_deadline(p->op.log);
    if (look(p) != PAWL_OK)
        end_pass(p, PAWL_ECLOSED);
}

/* It cannot go on from where it began: what was proven there ends, or it was a copy that came late. In the first
 * case the next place is worth another search, if it has found anything. */
static void begin_anew(struct read_pass *p)
{
    uint64_t next = p->reader.judged.judge.next, from = p->from;
    bool ended = next > p->reader.upto;
    leave(p);
    p->lost = false;
    p->from = next > from ? next : from;
    p->seeking = ended && stream_seek_begin(p->stream, p->from, p->left, (pawl_place){0}, &p->seek);
    p->seek.found = false;
    if (look(p) != PAWL_OK)
        end_pass(p, PAWL_ECLOSED);
}

bool read_pass_step(struct read_pass *p, uint64_t now)
{
    struct kafka_log *log = p->op.log;
    if (p->held)
        return false;
    if (!p->open)
        return step_waiting(p, now);
    if (atomic_load(&p->stop)) {
        error_set(&p->error, PAWL_ECLOSED, "%s", pawl_status_text(PAWL_ECLOSED));
        end_pass(p, PAWL_ECLOSED);
        return false;
    }
    int status = PAWL_OK;
    size_t bytes = 0;
    if (p->used == p->taken && !p->doubted && !p->lost) {
        p->used = 0;
        p->taken = cursor_take(&p->reader.cursor, 0, p->messages);
    }
    uint64_t at = p->reader.judged.judge.at;
    fill(p, &bytes, &status);
    if (p->reader.judged.judge.at
        > at) /* an error is a message, too, and does not count; nor does what is known */
        got_on(p, now);
    bool more = p->taken == TAKE_MAX || p->used < p->taken;
    if (status == PAWL_OK && p->kind != PASS_FOLLOW && now > p->deadline)
        status = kafka_no_answer(log, &p->error);
    if (status != PAWL_OK || p->over || p->left == 0) {
        end_pass(p, status);
        return false;
    }
    if (p->count > 0) {
        hand_over(p);
        return false;
    }
    if (p->lost) {
        begin_anew(p);
        return false;
    }
    if (p->misses && now >= p->heard + STALL_NS)
        p->doubted = true;
    if (p->doubted) {
        suspend(p);
        return false;
    }
    if (is_silent(p, now)) {
        peek(p);
        return false;
    }
    return more;
}

/* Calls. */

static int start_pass(struct kafka_log *log, enum pass_kind kind, void *request, pawl_stream stream,
                      uint64_t from, uint64_t limit, pawl_place at, pawl_error *error)
{
    struct read_pass *p = mem_new(log->alloc, 1, sizeof *p);
    if (!p)
        return error_set(error, PAWL_ENOMEM, "no memory to read");
    op_begin(log, &p->op, request, read_pass_run);
    p->kind = kind;
    p->from = p->next_offset = from;
    p->left = limit;
    p->until = kafka_deadline(log);
    atomic_fetch_add(&log->outstanding, 1);
    pthread_mutex_lock(&log->lock);
    int status = stream_find(log, stream, &p->stream);
    if (status == PAWL_OK)
        p->bounded = kind != PASS_FOLLOW && kafka_must_ask(p->stream, from, limit);
    if (status == PAWL_OK && kind != PASS_TAIL)
        p->seeking = stream_seek_begin(p->stream, from, limit, at, &p->seek);
    if (status == PAWL_OK && stream.partition < p->stream->partitions && !p->bounded && !p->seeking) {
        p->looking = true;
        op_list_push(&log->back, &p->op);
        kafka_ring(log);
    } else if (status == PAWL_OK) {
        status = look(p);
    }
    if (status == PAWL_OK && kind == PASS_FOLLOW)
        ((pawl_follow *)request)->impl[0] = p;
    pthread_mutex_unlock(&log->lock);
    if (status == PAWL_OK)
        return PAWL_OK;
    atomic_fetch_sub(&log->outstanding, 1);
    mem_free(log->alloc, p, sizeof *p);
    return error_wrap(error, status, "read");
}

int kafka_read(pawl_log *port, pawl_read *read)
{
    struct kafka_log *log = (struct kafka_log *)port;
    if ((!read->done && !read->alone) || !read->visit || read->from == 0 || !pawl_stream_valid(read->stream))
        return error_set(read->error, PAWL_EINVAL, "a read needs a valid stream, from above 0, visit and done");
    if (read->alone)
        return kafka_read_alone(log, read);
    return start_pass(log, PASS_READ, read, read->stream, read->from, read->limit, read->at, read->error);
}

int kafka_follow(pawl_log *port, pawl_follow *follow)
{
    if (!follow->done || !follow->visit || follow->from == 0 || !pawl_stream_valid(follow->stream))
        return error_set(follow->error, PAWL_EINVAL,
                         "a follow needs a valid stream, from above 0, visit and done");
    return start_pass((struct kafka_log *)port, PASS_FOLLOW, follow, follow->stream, follow->from, UINT64_MAX,
                      follow->at, follow->error);
}

int kafka_unfollow(pawl_log *port, pawl_follow *follow)
{
    struct kafka_log *log = (struct kafka_log *)port;
    pthread_mutex_lock(&log->lock);
    struct read_pass *p = follow->impl[0];
    bool ending = !p || p->over || atomic_load(&p->stop);
    if (!ending) {
        atomic_store(&p->stop, true);
        kafka_ring(log);
    }
    pthread_mutex_unlock(&log->lock);
    return ending ? error_set(follow->error, PAWL_EMISUSE, "it does not follow, or ends by itself") : PAWL_OK;
}

int kafka_tail(pawl_log *port, pawl_tail *tail)
{
    if (!tail->done || !pawl_stream_valid(tail->stream))
        return error_set(tail->error, PAWL_EINVAL, "a tail needs a valid stream and done");
    return start_pass((struct kafka_log *)port, PASS_TAIL, tail, tail->stream, 0, UINT64_MAX, (pawl_place){0},
                      tail->error);
}

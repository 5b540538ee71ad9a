/* adapter/kafka/owner.c: what this log writes to a stream, and how each entry ends.
 *
 *      append ──► flights: [ sent, in flight │ waiting for room in the window ]
 *                            └ report, or read ──► owner ──► acknowledged, unknown or fenced; in order (K1)
 *
 * The owner (port/claim_owner.h) says what to send, what may be acknowledged and what must be read before;
 * this file decides nothing of that (K2). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "adapter/kafka/impl.h"
#include "base/error.h"
#include "base/heap.h"

static struct flight *flight_at(const struct stream *s, size_t i)
{
    return &s->flights[(s->flight_first + i) & (s->flight_room - 1)];
}

void stream_settle(struct stream *s)
{
    while (s->flight_sent > 0 && flight_at(s, 0)->status != FLIGHT_PENDING) {
        struct flight *f = flight_at(s, 0);
        f->entry->status = f->status;
        if (f->status == PAWL_OK)
            f->entry->place = (pawl_place){.position = f->position + 1, .hint = f->entry->entry.epoch};
        if (--f->op->left == 0) {
            f->op->ready = true;
            s->log->ripe++;
        }
        s->flight_first++;
        s->flight_count--;
        s->flight_sent--;
    }
}

void stream_end_sent(struct stream *s, int status)
{
    for (size_t i = 0; i < s->flight_sent; i++) {
        struct flight *f = flight_at(s, i);
        if (f->status != FLIGHT_PENDING)
            continue;
        f->status = status;
        if (status == PAWL_EUNKNOWN) {
            s->unknown++;
            s->log->figures.unknown++;
        }
    }
}

static void acknowledge(struct stream *s, uint64_t upto)
{
    for (size_t i = 0; i < s->flight_sent; i++) {
        struct flight *f = flight_at(s, i);
        if (f->status != FLIGHT_PENDING)
            continue;
        if (f->entry->entry.offset > upto)
            return;
        f->status = PAWL_OK;
        s->log->figures.acknowledged++;
        s->moved = s->log->watch.heard;
    }
}

/* Only the first reason counts: all in flight are unknown with it. */
void stream_trouble(struct stream *s, const char *why)
{
    if (s->owner.state == OWNER_UNSURE)
        return;
    error_set(&s->trouble, PAWL_EUNKNOWN,
              "topic %s, partition %u: it may be there or not, which the next claim settles: %s", s->topic,
              s->id.partition, why);
}

/* Sending. */

static bool is_refused(const struct stream *s, const struct flight *f)
{
    const pawl_entry *e = &f->entry->entry;
    return s->corrupt || s->doubt || s->claims.first || s->owner.state != OWNER_OWNING
           || f->op->serial == s->refused || e->epoch != s->owner.judge.epoch || e->offset != s->owner.offset;
}

/* librdkafka has no room for these messages: the entries wait as if they had not been sent. Not if a part of the first one
 * was, nor if one behind it found room after all. */
static bool take_back(struct stream *s, size_t from)
{
    const struct outgoing *out = &s->log->outgoing;
    uint64_t ticket = producer_ticket(&out->messages[from]);
    for (size_t i = from; i < out->count; i++)
        if (out->messages[i].err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            return false;
    size_t sent = s->flight_sent;
    while (sent > 0 && flight_at(s, sent - 1)->ticket > ticket)
        sent--;
    if (sent == 0 || flight_at(s, sent - 1)->ticket != ticket)
        return false;
    owner_unsend(&s->owner, ticket);
    s->flight_sent = sent - 1;
    return true;
}

/* PAWL_EBUSY: librdkafka has no room for all of them. Otherwise they are in flight, and what was refused was reported. */
static int send_out(struct stream *s)
{
    struct outgoing *out = &s->log->outgoing;
    struct owner_actions actions;
    int status = PAWL_OK;
    size_t i = 0;
    if (out->count > 0)
        producer_send(s);
    while (i < out->count && out->messages[i].err == RD_KAFKA_RESP_ERR_NO_ERROR)
        i++;
    if (i < out->count && take_back(s, i)) {
        status = PAWL_EBUSY;
        i = out->count;
    }
    for (; i < out->count; i++) {
        const rd_kafka_message_t *m = &out->messages[i];
        if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
            continue;
        stream_trouble(s, rd_kafka_err2str(m->err));
        stream_act(s, owner_report(&s->owner, producer_ticket(m), CLAIM_NOWHERE, &actions), &actions);
    }
    producer_clear(s->log);
    return status;
}

/* PAWL_EBUSY: try again later. Otherwise the entry is in flight, or among those that will be. */
static int put_entry(struct stream *s, struct flight *f)
{
    const pawl_entry *e = &f->entry->entry;
    struct kafka_record r = {.kind = e->kind};
    r.fragments = e->body.size > 0 ? (uint32_t)((e->body.size - 1) / KAFKA_BODY_BYTES_MAX) + 1 : 1;
    for (uint32_t n = 0; n < r.fragments; n++) {
        size_t from = n * KAFKA_BODY_BYTES_MAX, left = e->body.size - from;
        r.body.size = left < KAFKA_BODY_BYTES_MAX ? left : KAFKA_BODY_BYTES_MAX;
        r.body.data = r.body.size > 0 ? (const uint8_t *)e->body.data + from : NULL;
        if (!producer_has_room(s->log, r.body.size) && send_out(s) != PAWL_OK)
            return PAWL_EBUSY;
        int status = owner_draft(&s->owner, r.fragments, &r.head);
        if (status
            == PAWL_EFENCED) /* unsure, by what was sent before: stream_send refuses it, or it is lost already */
            return PAWL_OK;
        if (status != PAWL_OK)
            return PAWL_EBUSY;
        producer_add(s, &r, s->owner.first + s->owner.count);
        uint64_t sent = owner_sent(&s->owner, &r.head);
        error_clear(
            &s->trouble); /* of what was sent under an earlier claim: it was delivered, or its writer does not wait */
        if (n == 0) {
            f->ticket = sent;
            s->flight_sent++;
        }
    }
    return PAWL_OK;
}

/* If entries are in flight, a few new ones wait until those are reported: sent at once, they would only make
 * the brokers sync more often, and be durable no earlier. */
void stream_send(struct stream *s)
{
    bool together = s->owner.count > 0 && s->flight_count - s->flight_sent < TOGETHER_MAX;
    while (s->flight_sent < s->flight_count) {
        struct flight *f = flight_at(s, s->flight_sent);
        if (f->status != FLIGHT_PENDING) { /* too big, and its whole append with it */
            f->ticket = s->owner.first + s->owner.count;
            s->flight_sent++;
        } else if (is_refused(s, f)) {
            f->status = s->corrupt ? PAWL_ECORRUPT : PAWL_EFENCED;
            f->ticket = s->owner.first + s->owner.count;
            s->refused = f->op->serial;
            s->flight_sent++;
        } else if (together || put_entry(s, f) == PAWL_EBUSY) {
            break;
        }
    }
    (void)send_out(s); /* what it has no room for is sent later */
    stream_settle(s);
}

/* What the owner says. */

static void begin_gap(struct stream *s, uint64_t read_to)
{
    s->log->figures.gaps++;
    s->read_to = read_to;
    pawl_error error = {0};
    if (!s->reading && stream_read_from_owner(s, &error) != PAWL_OK) {
        stream_trouble(s, error.text);
        s->doubt = true;
        stream_end_sent(s, PAWL_EUNKNOWN);
    }
}

void stream_act(struct stream *s, int status, const struct owner_actions *a)
{
    if (a->ack_upto)
        acknowledge(s, a->ack_upto);
    if (status != PAWL_OK) {
        s->corrupt = true;
        if (s->fault.code == PAWL_OK)
            stream_fault(s, status, s->owner.judge.at, &s->fault, "it is not what this writer wrote");
        stream_end_sent(s, PAWL_ECORRUPT);
    }
    if (a->must_reclaim)
        stream_end_sent(s, PAWL_EUNKNOWN);
    if (a->resolved) {
        stream_end_sent(s, PAWL_EFENCED);
        s->log->figures.resolved += s->unknown;
        s->unknown = 0;
    }
    if (a->read_to > a->read_from)
        begin_gap(s, a->read_to);
}

/* The flight that the record with this ticket belongs to; tickets grow with the flights, mostly by one. */
static struct flight *flight_with(const struct stream *s, uint64_t ticket)
{
    size_t low = 0, high = s->flight_sent;
    uint64_t guess = high > 0 ? ticket - flight_at(s, 0)->ticket : 0;
    if (guess < high && flight_at(s, guess)->ticket == ticket && flight_at(s, guess)->status == FLIGHT_PENDING)
        return flight_at(s, guess);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (flight_at(s, middle)->ticket <= ticket)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    struct flight *f = flight_at(s, low - 1);
    return f->status == FLIGHT_PENDING ? f : NULL;
}

/* The brokers have not taken a record. All in flight are unknown with it; but its own entry is not there. */
static void note_failure(struct stream *s, const struct flight *f, const rd_kafka_message_t *m)
{
    char words[160];
    const char *why = client_reason(m);
    bool refused = client_refused(m);
    if (refused && f)
        s->refusal = (struct refusal){f->entry->entry.epoch, f->entry->entry.offset, why};
    snprintf(words, sizeof words, "%s%s", refused ? "the brokers refused an entry: " : "", why);
    stream_trouble(s, words);
}

void stream_reported(struct stream *s, uint64_t ticket, const rd_kafka_message_t *m)
{
    struct owner_actions actions;
    bool good = m->err == RD_KAFKA_RESP_ERR_NO_ERROR && m->offset >= 0;
    uint64_t at = s->owner.judge.at;
    struct flight *f = flight_with(s, ticket);
    if (f && good && f->ticket == ticket)
        f->position = (uint64_t)m->offset;
    if (!good)
        note_failure(s, f, m);
    int status = owner_report(&s->owner, ticket, good ? (uint64_t)m->offset : CLAIM_NOWHERE, &actions);
    if (s->owner.judge.at > at) {
        struct judged judged = {.judge = s->owner.judge, .sum = judge_chain(&s->owner.judge)};
        s->owner_sum = judged.sum;
        stream_keep_resume_point(s, &judged);
    }
    if (actions.must_reclaim && good)
        stream_fault(s, PAWL_EUNKNOWN, (uint64_t)m->offset, &s->trouble,
                     "the brokers say it was written here, where another record was: was the topic deleted?");
    stream_act(s, status, &actions);
    stream_settle(s);
    stream_wait(s);
}

/* Reading for the owner. */

int stream_read_from_owner(struct stream *s, pawl_error *error)
{
    uint64_t at = s->owner.judge.at;
    int status = cursor_open(s, at > 0 ? at - 1 : 0, true, &s->cursor, error);
    if (status != PAWL_OK)
        return status;
    s->reading = true;
    s->known = s->latest.judge.at;
    s->deadline = clock_boot_ns() + (uint64_t)s->log->url.timeout_ms * 1000000;
    s->next_reading = s->log->reading;
    s->log->reading = s;
    return PAWL_OK;
}

/* What the owner must know cannot be read. */
static void give_up_reading(struct stream *s, const char *words)
{
    stream_trouble(s, words);
    if (s->phase != PHASE_NONE) {
        claim_end(s, PAWL_EIO, words);
    } else {
        s->doubt = true;
        stream_end_sent(s, PAWL_EUNKNOWN);
    }
    if (s->reading)
        stream_stop_reading(s);
}

/* A look that is under way was begun for this doubt, and tells nothing of the next. */
static void forget_doubt(struct stream *s)
{
    s->doubted = s->beyond = false;
    s->look.ignored = s->look.under_way;
}

void stream_stop_reading(struct stream *s)
{
    struct stream **at = &s->log->reading;
    while (*at != s)
        at = &(*at)->next_reading;
    *at = s->next_reading;
    s->reading = s->reopened = false;
    forget_doubt(s);
    cursor_close(&s->cursor);
}

static bool must_read(const struct stream *s)
{
    if (s->corrupt)
        return false;
    return s->phase >= PHASE_LOOK
           || (s->owner.state == OWNER_OWNING && !s->doubt && s->owner.judge.at < s->read_to);
}

/* A record in flight was read, perhaps before its report. The place where it was read is the one that
 * counts. */
static void note_place(struct stream *s, const struct claim_record *r)
{
    for (size_t i = 0; i < s->flight_sent; i++) {
        struct flight *f = flight_at(s, i);
        if (f->status == FLIGHT_PENDING && f->entry->entry.offset == r->offset)
            f->position = r->position;
    }
}

/* A broker says that the owner's position is out of range, that there is no such topic, or that the stream is shorter than
 * is known: look where it ends (bounds.c). */

void stream_look_run(struct op *op)
{
}

static void look_work(pawl_work *work)
{
    struct stream_look *look = heap_entry(work, struct stream_look, work);
    struct kafka_log *log = look->stream->log;
    look->status = stream_bounds(look->stream, &look->bounds, &look->error);
    pthread_mutex_lock(&log->lock);
    log->looks--;
    op_list_push(&log->back, &look->op);
    kafka_ring(log);
    pthread_cond_signal(&log->round_ended);
    pthread_mutex_unlock(&log->lock);
}

static void start_look(struct stream *s)
{
    struct stream_look *look = &s->look;
    if (look->under_way)
        return;
    op_begin(s->log, &look->op, NULL, stream_look_run);
    look->stream = s;
    look->work = (pawl_work){.fn = look_work};
    look->ignored = false;
    look->under_way = pawl_env_work(s->log->env, &look->work) == PAWL_OK;
    s->log->looks += look->under_way;
}

static void lose(struct stream *s, enum doubt doubt)
{
    int status = stream_lost(s, doubt, s->owner.judge.at, s->known, &s->fault);
    stream_act(s, status, &(struct owner_actions){0});
    if (s->phase >= PHASE_LOOK)
        claim_end(s, s->fault.code, s->fault.text);
    stream_stop_reading(s);
    stream_send(s);
}

/* The doubt is gone. This does not give it more time: the cursor may come to the same broker again. */
static void reopen(struct stream *s)
{
    pawl_error error;
    uint64_t deadline = s->deadline;
    stream_stop_reading(s);
    if (stream_read_from_owner(s, &error) != PAWL_OK) {
        give_up_reading(s, error.text);
        return;
    }
    s->deadline = deadline;
    s->reopened = true;
}

void stream_looked(struct stream *s)
{
    s->look.under_way = false;
    if (!s->doubted || !s->reading)
        return;
    if (s->look.ignored) {
        start_look(s);
        return;
    }
    enum doubt doubt =
        s->look.status == PAWL_OK ? bounds_judge(&s->look.bounds, s->owner.judge.at, s->known) : DOUBT_BEYOND;
    s->beyond = doubt == DOUBT_BEYOND && s->look.status == PAWL_OK;
    s->look_at = clock_boot_ns() + LOOK_AGAIN_NS;
    if (doubt == DOUBT_DELETED)
        lose(s, doubt);
    else if (doubt == DOUBT_NONE)
        reopen(s);
}

static int feed_record(struct stream *s, const struct kafka_record *r, const struct judge *before)
{
    struct owner_actions actions;
    s->log->figures.owner_read++;
    if (r->head.kind == CLAIM_KIND_EVENT && r->head.fragment == 0 && r->head.epoch == before->epoch
        && !judge_has(before, r->head.offset, 0))
        note_place(s, &r->head);
    int status = owner_read(&s->owner, &r->head, &actions);
    if (status == PAWL_OK) {
        /* If reports that waited for this record moved the owner on, its last record is one of its own. */
        bool here = s->owner.judge.at == r->head.position + 1;
        s->owner_sum = here ? r->head.checksum : judge_chain(&s->owner.judge);
        s->log->figures.ignored += actions.verdict != CLAIM_COUNTS && actions.verdict != CLAIM_PART;
        stream_keep_resume_point(s, &(struct judged){.judge = s->owner.judge, .sum = s->owner_sum});
    } else {
        stream_fault(s, status, before->at, &s->fault, claim_verdict_text(actions.verdict));
    }
    stream_act(s, status, &actions);
    return status;
}

/* The next record has come. */
static void got_on(struct stream *s)
{
    s->deadline = kafka_deadline(s->log);
    s->reopened = false;
}

static void feed(struct stream *s, const rd_kafka_message_t *m)
{
    struct judged before = {.judge = s->owner.judge, .sum = s->owner_sum};
    struct kafka_record r;
    enum found found;
    int status = message_read(s, m, &before, &found, &r, &s->fault);
    if (status != PAWL_OK)
        stream_act(s, status, &(struct owner_actions){0});
    else if (found == FOUND_ENTRY && r.head.position >= before.judge.at)
        status = feed_record(s, &r, &before.judge);
    if (found == FOUND_END && r.head.position < s->known)
        found = FOUND_DOUBT;
    if (found == FOUND_DOUBT) {
        s->doubted = true;
        if (!s->reopened) /* otherwise a tick does it, at look_at */
            start_look(s);
    }
    if (status != PAWL_OK || found == FOUND_DOUBT)
        return;
    uint64_t at = s->owner.judge.at;
    bool at_end = found == FOUND_END && r.head.position >= at && at >= s->known;
    if (at > before.judge.at)
        got_on(s);
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR && (uint64_t)m->offset + 1 >= s->known)
        forget_doubt(s); /* the cursor has gone on by itself, and the last record that is known is there */
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        at_end = s->phase == PHASE_LOOK && at >= s->known && cursor_end(&s->cursor) <= at;
    claim_step(s, at_end);
}

void stream_read_on(struct stream *s)
{
    rd_kafka_message_t *messages[TAKE_MAX];
    size_t taken = cursor_take(&s->cursor, 0, messages);
    for (size_t i = 0; i < taken; i++) {
        if (!s->corrupt)
            feed(s, messages[i]);
        rd_kafka_message_destroy(messages[i]);
    }
    if (s->corrupt && s->phase >= PHASE_LOOK)
        claim_end(s, s->fault.code, s->fault.text);
    if (!must_read(s))
        stream_stop_reading(s);
    else if (taken == TAKE_MAX)
        kafka_ring(s->log);
    stream_send(s);
}

/* The time is over. Of a position that is said to be out of range, the present leader's word counts; but if it has shown
 * while this waited that all is there, it is not lost because the last answer was another one. */
static void end_waiting(struct stream *s)
{
    char words[128];
    const char *why =
        s->reopened  ? "brokers say that it ends earlier, or is not there, though its leader has it, for"
        : s->doubted ? "a broker says that it ends earlier, or is not there, and its leader is silent for"
                     : "no broker has answered for";
    snprintf(words, sizeof words, "%s %" PRIu32 " ms", why, s->log->url.timeout_ms);
    if (s->doubted && s->beyond && !s->reopened)
        lose(s, DOUBT_BEYOND);
    else
        give_up_reading(s, words);
}

void stream_tick(struct stream *s, uint64_t now)
{
    bool over = now > s->deadline && (s->phase != PHASE_SENT || s->claim_at != CLAIM_NOWHERE);
    bool asked = s->doubted && s->look.under_way; /* the answer comes, and is waited for, however late it is */
    if (s->reading && !must_read(s))
        stream_stop_reading(s);
    else if (s->reading && over && !asked)
        end_waiting(s);
    else if (s->reading && s->doubted && now > s->look_at)
        start_look(s);
    stream_send(s);
}

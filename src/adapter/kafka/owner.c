/* adapter/kafka/owner.c: what this log writes to a stream, and how each entry ends.
 *
 *      append ──► flights: [ sent, in flight │ waiting for room in the window ]
 *                            └ report, or read ──► owner ──► acknowledged, unknown or fenced; in order (K1)
 *
 * The owner says what to send, what may be acknowledged and what must be read before; nothing of that is
 * decided here (K2). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "adapter/kafka/impl.h"
#include "base/error.h"

static struct flight *flight_at(const struct view *v, size_t i)
{
    return &v->flights[(v->flight_first + i) & (v->flight_room - 1)];
}

void view_settle(struct view *v)
{
    while (v->flight_sent > 0 && flight_at(v, 0)->status != FLIGHT_PENDING) {
        struct flight *f = flight_at(v, 0);
        f->entry->status = f->status;
        if (f->status == PAWL_OK)
            f->entry->place = (pawl_place){.position = f->position + 1, .hint = f->entry->entry.epoch};
        if (--f->op->left == 0)
            f->op->ready = true;
        v->flight_first++;
        v->flight_count--;
        v->flight_sent--;
    }
}

void view_end_sent(struct view *v, int status)
{
    for (size_t i = 0; i < v->flight_sent; i++) {
        struct flight *f = flight_at(v, i);
        if (f->status != FLIGHT_PENDING)
            continue;
        f->status = status;
        if (status == PAWL_EUNKNOWN) {
            v->unknown++;
            v->log->figures.unknown++;
        }
    }
}

static void acknowledge(struct view *v, uint64_t upto)
{
    for (size_t i = 0; i < v->flight_sent; i++) {
        struct flight *f = flight_at(v, i);
        if (f->status != FLIGHT_PENDING)
            continue;
        if (f->entry->entry.offset > upto)
            return;
        f->status = PAWL_OK;
        v->log->figures.acknowledged++;
    }
}

static void note_trouble(struct view *v, const char *why)
{
    error_set(&v->trouble, PAWL_EUNKNOWN, "topic %s, partition %u: %s", v->topic, v->stream.partition, why);
}

/* Sending. */

static bool is_refused(const struct view *v, const struct flight *f)
{
    const pawl_entry *e = &f->entry->entry;
    return v->corrupt || v->doubt || v->claims.first || v->owner.state != OWNER_OWNING
           || f->op->serial == v->refused || e->epoch != v->owner.judge.epoch || e->offset != v->owner.offset;
}

/* PAWL_EBUSY: not now. Otherwise it is in flight, and what went wrong will be, or was, reported. */
static int send_entry(struct view *v, struct flight *f)
{
    const pawl_entry *e = &f->entry->entry;
    struct kafka_record r = {.kind = e->kind};
    struct owner_actions actions;
    r.fragments = e->body.size > 0 ? (uint32_t)((e->body.size - 1) / KAFKA_BODY_BYTES_MAX) + 1 : 1;
    for (uint32_t n = 0; n < r.fragments; n++) {
        size_t from = n * KAFKA_BODY_BYTES_MAX, left = e->body.size - from;
        int status = owner_draft(&v->owner, r.fragments, &r.head);
        if (status != PAWL_OK)
            return n == 0 ? PAWL_EBUSY : PAWL_OK; /* later fragments: the owner has become unsure */
        r.body.size = left < KAFKA_BODY_BYTES_MAX ? left : KAFKA_BODY_BYTES_MAX;
        r.body.data = r.body.size > 0 ? (const uint8_t *)e->body.data + from : NULL;
        uint64_t ticket = v->owner.first + v->owner.count;
        rd_kafka_resp_err_t err = producer_send(v, &r, ticket);
        if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL && n == 0)
            return PAWL_EBUSY;
        uint64_t sent = owner_sent(&v->owner, &r.head);
        assert(sent == ticket);
        if (n == 0) {
            f->ticket = sent;
            v->flight_sent++;
        }
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
            continue;
        note_trouble(v, rd_kafka_err2str(err));
        status = owner_report(&v->owner, sent, CLAIM_NOWHERE, &actions);
        view_act(v, status, &actions);
        return PAWL_OK;
    }
    return PAWL_OK;
}

/* A few that come while others are under way wait for those: they would only make the brokers sync more often,
 * and be there no earlier. */
void view_send(struct view *v)
{
    bool together = v->owner.count > 0 && v->flight_count - v->flight_sent < TOGETHER_MAX;
    while (v->flight_sent < v->flight_count) {
        struct flight *f = flight_at(v, v->flight_sent);
        if (f->status != FLIGHT_PENDING) { /* too big, and its whole append with it */
            f->ticket = v->owner.first + v->owner.count;
            v->flight_sent++;
        } else if (is_refused(v, f)) {
            f->status = v->corrupt ? PAWL_ECORRUPT : PAWL_EFENCED;
            f->ticket = v->owner.first + v->owner.count;
            v->refused = f->op->serial;
            v->flight_sent++;
        } else if (together || send_entry(v, f) == PAWL_EBUSY) {
            break;
        }
    }
    view_settle(v);
}

/* What the owner says. */

static void begin_gap(struct view *v, uint64_t read_to)
{
    v->log->figures.gaps++;
    v->read_to = read_to;
    if (!v->reading && view_read_from_owner(v, &v->fault) != PAWL_OK) {
        v->doubt = true;
        view_end_sent(v, PAWL_EUNKNOWN);
    }
}

void view_act(struct view *v, int status, const struct owner_actions *a)
{
    if (a->ack_upto)
        acknowledge(v, a->ack_upto);
    if (status != PAWL_OK) {
        v->corrupt = true;
        if (v->fault.code == PAWL_OK)
            view_fault(v, status, v->owner.judge.at, &v->fault, "it is not what this writer wrote");
        view_end_sent(v, PAWL_ECORRUPT);
    }
    if (a->must_reclaim)
        view_end_sent(v, PAWL_EUNKNOWN);
    if (a->resolved) {
        view_end_sent(v, PAWL_EFENCED);
        v->log->figures.resolved += v->unknown;
        v->unknown = 0;
    }
    if (a->read_to > a->read_from)
        begin_gap(v, a->read_to);
}

/* The flight whose first record has this ticket; tickets grow with the flights. */
static struct flight *flight_of(const struct view *v, uint64_t ticket)
{
    size_t low = 0, high = v->flight_sent;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (flight_at(v, middle)->ticket <= ticket)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    struct flight *f = flight_at(v, low - 1);
    return f->ticket == ticket && f->status == FLIGHT_PENDING ? f : NULL;
}

void view_reported(struct view *v, uint64_t ticket, const rd_kafka_message_t *m)
{
    struct owner_actions actions;
    bool good = m->err == RD_KAFKA_RESP_ERR_NO_ERROR && m->offset >= 0;
    uint64_t at = v->owner.judge.at;
    struct flight *f = flight_of(v, ticket);
    if (f && good)
        f->position = (uint64_t)m->offset;
    if (!good)
        note_trouble(v, rd_kafka_err2str(m->err));
    int status = owner_report(&v->owner, ticket, good ? (uint64_t)m->offset : CLAIM_NOWHERE, &actions);
    if (v->owner.judge.at > at) {
        struct mark mark = {.judge = v->owner.judge, .sum = judge_chain(&v->owner.judge)};
        v->owner_sum = mark.sum;
        view_mark(v, &mark);
    }
    if (actions.must_reclaim && good)
        view_fault(v, PAWL_EUNKNOWN, (uint64_t)m->offset, &v->trouble,
                   "the brokers say it was written here, where another record was: was the topic deleted?");
    view_act(v, status, &actions);
    view_settle(v);
    view_wait(v);
}

/* Reading for the owner. */

int view_read_from_owner(struct view *v, pawl_error *error)
{
    uint64_t at = v->owner.judge.at;
    int status = cursor_open(v, at > 0 ? at - 1 : 0, true, &v->cursor, error);
    if (status != PAWL_OK)
        return status;
    v->reading = true;
    v->known = v->latest.judge.at;
    v->deadline = clock_boot_ns() + (uint64_t)v->log->url.timeout_ms * 1000000;
    v->next_reading = v->log->reading;
    v->log->reading = v;
    return PAWL_OK;
}

void view_stop_reading(struct view *v)
{
    struct view **at = &v->log->reading;
    while (*at != v)
        at = &(*at)->next_reading;
    *at = v->next_reading;
    v->reading = false;
    cursor_close(&v->cursor);
}

static bool must_read(const struct view *v)
{
    if (v->corrupt)
        return false;
    return v->phase >= PHASE_LOOK
           || (v->owner.state == OWNER_OWNING && !v->doubt && v->owner.judge.at < v->read_to);
}

/* A copy of what is in flight was read, perhaps before its report: its place is where it counts. */
static void note_place(struct view *v, const struct claim_record *r)
{
    for (size_t i = 0; i < v->flight_sent; i++) {
        struct flight *f = flight_at(v, i);
        if (f->status == FLIGHT_PENDING && f->entry->entry.offset == r->offset)
            f->position = r->position;
    }
}

static int feed_record(struct view *v, const struct kafka_record *r, const struct judge *before)
{
    struct owner_actions actions;
    if (r->head.kind == CLAIM_KIND_EVENT && r->head.fragment == 0 && r->head.epoch == before->epoch
        && !judge_has(before, r->head.offset, 0))
        note_place(v, &r->head);
    int status = owner_read(&v->owner, &r->head, &actions);
    if (status == PAWL_OK) {
        /* If it went on by reports that were waiting for this record, the last is one of its own. */
        bool here = v->owner.judge.at == r->head.position + 1;
        v->owner_sum = here ? r->head.checksum : judge_chain(&v->owner.judge);
        v->log->figures.ignored += actions.verdict != CLAIM_COUNTS && actions.verdict != CLAIM_PART;
        view_mark(v, &(struct mark){.judge = v->owner.judge, .sum = v->owner_sum});
    } else {
        view_fault(v, status, before->at, &v->fault, claim_verdict_text(actions.verdict));
    }
    view_act(v, status, &actions);
    return status;
}

static void feed(struct view *v, const rd_kafka_message_t *m)
{
    struct mark before = {.judge = v->owner.judge, .sum = v->owner_sum};
    struct kafka_record r;
    enum sight sight;
    int status = message_read(v, m, &before, &sight, &r, &v->fault);
    if (status != PAWL_OK)
        view_act(v, status, &(struct owner_actions){0});
    else if (sight == SIGHT_ENTRY && r.head.position >= before.judge.at)
        status = feed_record(v, &r, &before.judge);
    if (status != PAWL_OK)
        return;
    uint64_t at = v->owner.judge.at;
    bool at_end = sight == SIGHT_END && r.head.position >= at && at >= v->known;
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        v->deadline = clock_boot_ns() + (uint64_t)v->log->url.timeout_ms * 1000000;
        at_end = v->phase == PHASE_LOOK && at >= v->known && cursor_end(&v->cursor) <= at;
    }
    claim_step(v, at_end);
}

void view_read_on(struct view *v)
{
    rd_kafka_message_t *messages[TAKE_MAX];
    size_t taken = cursor_take(&v->cursor, 0, messages);
    for (size_t i = 0; i < taken; i++) {
        if (!v->corrupt)
            feed(v, messages[i]);
        rd_kafka_message_destroy(messages[i]);
    }
    if (v->corrupt && v->phase >= PHASE_LOOK)
        claim_end(v, v->fault.code, v->fault.text);
    if (!must_read(v))
        view_stop_reading(v);
    else if (taken == TAKE_MAX)
        kafka_ring(v->log);
    view_send(v);
}

void view_tick(struct view *v, uint64_t now)
{
    if (v->reading && !must_read(v)) {
        view_stop_reading(v);
    } else if (v->reading && now > v->deadline && (v->phase != PHASE_SENT || v->claim_at != CLAIM_NOWHERE)) {
        char words[128];
        snprintf(words, sizeof words, "no broker has answered for %" PRIu32 " ms", v->log->url.timeout_ms);
        note_trouble(v, words);
        if (v->phase != PHASE_NONE) {
            claim_end(v, PAWL_EIO, words);
        } else {
            v->doubt = true;
            view_end_sent(v, PAWL_EUNKNOWN);
        }
        view_stop_reading(v);
    }
    view_send(v);
}

/* adapter/kafka/producer.c: records go out, and reports come back.
 *
 * Each message carries a number, which its report brings back: the stream, whether it is a claim, and its
 * ticket or the claim's number. A producer that has failed for good takes no more messages; those in flight on
 * it are reported as lost, and the next claim makes a new producer. */
#include <assert.h>
#include <stdio.h>

#include "adapter/kafka/impl.h"
#include "base/error.h"

#define CLAIM_BIT   (UINT64_C(1) << 47)
#define NUMBER_MASK (CLAIM_BIT - 1)

_Static_assert(sizeof(void *) == sizeof(uint64_t), "a message carries 64 bits of ours");

int producer_open(struct kafka_log *log, pawl_error *error)
{
    int status = client_open(&log->url, CLIENT_PRODUCER, &log->producer, error);
    if (status != PAWL_OK)
        return status;
    log->reports = rd_kafka_queue_get_main(log->producer);
    rd_kafka_queue_cb_event_enable(log->reports, kafka_reports_came, log);
    log->producer_failed = false;
    return PAWL_OK;
}

/* librdkafka knows when it was given the message. The records of one answer were sent together: the first one, which has
 * waited longest, speaks for all. */
static void measure(struct kafka_log *log, int64_t first_us, uint32_t good, uint64_t now)
{
    if (good > 0 && first_us >= 0)
        histogram_add_many(&log->acks, (pawl_instant){now}, (uint64_t)first_us * 1000, good);
}

static void report(struct kafka_log *log, const rd_kafka_message_t *m)
{
    uint64_t label = (uint64_t)(uintptr_t)m->_private;
    struct stream *s = log->streams[label >> 48];
    if (label & CLAIM_BIT)
        claim_reported(s, label & NUMBER_MASK, m);
    else
        stream_reported(s, label & NUMBER_MASK, m);
}

static void take_reports(struct kafka_log *log, rd_kafka_event_t *event, uint64_t now)
{
    int64_t first_us = -1;
    uint32_t good = 0;
    for (const rd_kafka_message_t *m; (m = rd_kafka_event_message_next(event));) {
        if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR && good++ == 0) {
            first_us = rd_kafka_message_latency(m);
            watch_heard(log, now);
        }
        report(log, m);
    }
    measure(log, first_us, good, now);
}

static void take_event(struct kafka_log *log, rd_kafka_event_t *event)
{
    switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_DR: take_reports(log, event, clock_boot_ns()); break;
    case RD_KAFKA_EVENT_ERROR:
        watch_event(log, event);
        if (rd_kafka_event_error_is_fatal(event)) {
            log->producer_failed = true;
            /* With the lock: it must not wait for librdkafka's threads, which may be connecting. */
            rd_kafka_purge(log->producer,
                           RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
        }
        break;
    default: break;
    }
    rd_kafka_event_destroy(event);
}

void producer_serve(struct kafka_log *log)
{
    if (!log->producer)
        return;
    for (rd_kafka_event_t *event; (event = rd_kafka_queue_poll(log->reports, 0));)
        take_event(log, event);
}

/* A report that has not come by now will never come: its record may be written or not. */
static void give_up_reports(struct kafka_log *log)
{
    for (size_t i = 0; i < log->stream_count; i++) {
        struct stream *s = log->streams[i];
        if (s->owner.count > 0) {
            stream_trouble(s, "its producer has failed");
            s->doubt = true;
            stream_end_sent(s, PAWL_EUNKNOWN);
            stream_settle(s);
        }
        if (s->phase == PHASE_SENT && s->claim_at == CLAIM_NOWHERE)
            claim_end(s, PAWL_EUNKNOWN,
                      "it is not known whether the claim was written: its producer has failed");
    }
}

/* Give up all messages that are on it; each is reported as failed. */
void producer_close(struct kafka_log *log)
{
    if (!log->producer)
        return;
    rd_kafka_purge(log->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    for (int tries = 0; rd_kafka_outq_len(log->producer) > 0 && tries < 100; tries++) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(log->reports, 50);
        if (event)
            take_event(log, event);
    }
    if (rd_kafka_outq_len(log->producer) > 0)
        give_up_reports(log);
    for (size_t i = 0; i < log->stream_count; i++) {
        if (log->streams[i]->producing)
            rd_kafka_topic_destroy(log->streams[i]->producing);
        log->streams[i]->producing = NULL;
    }
    rd_kafka_queue_destroy(log->reports);
    client_close(log->producer);
    log->producer = NULL;
}

bool producer_has_room(const struct kafka_log *log, size_t body_bytes)
{
    const struct outgoing *out = &log->outgoing;
    return out->count < OUTGOING_MAX && KAFKA_RECORD_HEADER + body_bytes <= OUTGOING_BYTES - out->used;
}

static void add_labelled(struct stream *s, struct kafka_record *r, uint64_t label)
{
    struct outgoing *out = &s->log->outgoing;
    uint8_t *to = out->bytes + out->used;
    size_t size = KAFKA_RECORD_HEADER + r->body.size;
    assert(producer_has_room(s->log, r->body.size));
    kafka_record_encode(r, s->seed, to);
    label |= (uint64_t)s->number << 48;
    out->messages[out->count++] =
        (rd_kafka_message_t){.payload = to, .len = size, ._private = (void *)(uintptr_t)label};
    out->used += size;
}

void producer_add(struct stream *s, struct kafka_record *record, uint64_t ticket)
{
    assert(ticket <= NUMBER_MASK);
    add_labelled(s, record, ticket);
}

uint64_t producer_ticket(const rd_kafka_message_t *message)
{
    return (uint64_t)(uintptr_t)message->_private & NUMBER_MASK;
}

static rd_kafka_resp_err_t be_ready(struct stream *s)
{
    struct kafka_log *log = s->log;
    if (!log->producer || log->producer_failed)
        return RD_KAFKA_RESP_ERR__FATAL;
    if (!s->producing)
        s->producing = rd_kafka_topic_new(log->producer, s->topic, NULL);
    return s->producing ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_last_error();
}

void producer_send(struct stream *s)
{
    struct outgoing *out = &s->log->outgoing;
    rd_kafka_resp_err_t err = be_ready(s);
    for (size_t i = 0; err && i < out->count; i++)
        out->messages[i].err = err;
    if (!err)
        rd_kafka_produce_batch(s->producing, s->id.partition, RD_KAFKA_MSG_F_COPY, out->messages,
                               (int)out->count);
}

void producer_clear(struct kafka_log *log)
{
    log->outgoing.count = log->outgoing.used = 0;
}

rd_kafka_resp_err_t producer_send_claim(struct stream *s, struct kafka_record *record, uint64_t number)
{
    assert(number <= NUMBER_MASK && s->log->outgoing.count == 0);
    add_labelled(s, record, number | CLAIM_BIT);
    producer_send(s);
    rd_kafka_resp_err_t err = s->log->outgoing.messages[0].err;
    producer_clear(s->log);
    return err;
}

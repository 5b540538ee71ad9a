/* adapter/kafka/claim.c: becoming the owner of a stream.
 *
 *      CHECK   a thread of the pool looks at the topic, and refuses one that is too weak; that of an operation log is
 *              made for its first claim (oplogs.h)
 *      LOOK    read up to the end, to know the epoch
 *      SENT    the claim is sent; read on, until this claim or a rival's was read
 *
 * Claims of one stream are done one after the other. While there is one, nothing is sent. */
#include <assert.h>
#include <stdio.h>

#include "adapter/kafka/impl.h"
#include "adapter/kafka/topics.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

static void claim_run(struct op *op)
{
    struct claiming *c = (struct claiming *)op;
    struct kafka_log *log = op->log;
    pawl_claim *claim = op->request;
    claim->status = c->status;
    if (c->status == PAWL_OK) {
        claim->epoch = c->epoch;
        claim->next = c->next;
    } else {
        claim->rival = c->rival;
        error_set(claim->error, c->status, "%s", c->error.text);
    }
    mem_free(log->alloc, c, sizeof *c);
    atomic_fetch_sub(&log->outstanding, 1);
    claim->done(claim);
}

static int check_topic(const struct stream *s, bool seen, uint32_t *ret_partitions, pawl_error *error)
{
    struct kafka_log *log = s->log;
    uint32_t partitions = 0;
    bool oplog = s->id.kind == PAWL_STREAM_OPLOG && !log->trust_topics;
    int status = oplog ? oplog_prepare(s, seen, error) : PAWL_OK;
    if (status == PAWL_OK && log->trust_topics)
        status = topic_partitions(log->front, &log->url, s->topic, &partitions, error);
    else if (status == PAWL_OK)
        status = topic_check(log->front, &log->url, s->topic, &partitions, error);
    if (status != PAWL_OK)
        return status;
    if (s->id.partition >= partitions)
        return error_set(error, PAWL_EINVAL, "topic %s has no partition %u, only %u", s->topic, s->id.partition,
                         partitions);
    *ret_partitions = partitions;
    return PAWL_OK;
}

static void check_work(pawl_work *work)
{
    struct claiming *c = heap_entry(work, struct claiming, work);
    struct kafka_log *log = c->op.log;
    uint32_t partitions = 0;
    c->status = check_topic(c->stream, c->seen, &partitions, &c->error);
    pthread_mutex_lock(&log->lock);
    if (partitions > 0)
        c->stream->partitions = partitions;
    c->next_checked = log->checked; /* its op is in the list of the stream's claims */
    log->checked = c;
    kafka_ring(log);
    pthread_mutex_unlock(&log->lock);
}

static int begin_check(struct claiming *c)
{
    c->work = (pawl_work){.fn = check_work};
    c->seen = c->stream->partitions > 0;
    c->stream->phase = PHASE_CHECK;
    return pawl_env_work(c->op.log->env, &c->work);
}

void claim_end(struct stream *s, int status, const char *words)
{
    struct claiming *c = (struct claiming *)s->claims.first;
    struct kafka_log *log = s->log;
    s->phase = PHASE_NONE;
    if (s->owner.state == OWNER_CLAIMING) { /* the claim that would have resolved them was given up */
        if (s->trouble.code == PAWL_OK)
            stream_trouble(s, words);
        stream_end_sent(s, PAWL_EUNKNOWN);
    }
    c->status = status;
    c->epoch = s->owner.judge.epoch;
    c->next = s->owner.judge.next;
    c->rival = s->owner.judge.group0;
    if (status != PAWL_OK && words == s->fault.text)
        c->error = s->fault;
    else if (status != PAWL_OK && words != c->error.text)
        error_set(&c->error, status, "topic %s, partition %u: %s", s->topic, s->id.partition, words);
    log->figures.claims_won += status == PAWL_OK;
    log->figures.claims_lost += status == PAWL_EFENCED;
    op_list_pop(&s->claims);
    op_list_push(&log->ready, &c->op);
    stream_settle(s);
    struct claiming *next = (struct claiming *)s->claims.first;
    if (next && begin_check(next) != PAWL_OK)
        claim_end(s, PAWL_ECLOSED, "closed");
}

/* An owner that has nothing to remember begins where the stream was last judged, and gets its window. */
static int prepare_owner(struct stream *s)
{
    if (s->owner.state != OWNER_OUT || s->owner.count > 0)
        return PAWL_OK;
    if (s->wide && s->owner.judge.at >= s->latest.judge.at)
        return PAWL_OK;
    struct owner owner;
    const struct judge *judge = s->owner.judge.at < s->latest.judge.at ? &s->latest.judge : &s->owner.judge;
    int status = owner_init(&owner, s->log->alloc, s->log->window, judge);
    if (status != PAWL_OK)
        return status;
    owner.first = s->owner.first; /* so that an old report is not taken for a new one */
    owner.claim = s->owner.claim;
    if (judge == &s->latest.judge)
        s->owner_sum = s->latest.sum;
    owner_release(&s->owner);
    s->owner = owner;
    s->wide = true;
    return PAWL_OK;
}

void claim_back(struct claiming *c)
{
    struct stream *s = c->stream;
    struct kafka_log *log = s->log;
    pawl_error error = {0};
    if (c->status != PAWL_OK) {
        claim_end(s, c->status, c->error.text);
        return;
    }
    if (s->corrupt) {
        claim_end(s, s->fault.code, s->fault.text);
        return;
    }
    int status = PAWL_OK;
    if (log->producer_failed)
        producer_close(log);
    if (!log->producer)
        status = producer_open(log, &error);
    if (status == PAWL_OK)
        status = prepare_owner(s);
    s->claim_at = CLAIM_NOWHERE;
    s->phase = PHASE_LOOK;
    if (s->reading) /* the cursor may be past the end already, and would not be told of the end again */
        stream_stop_reading(s);
    if (status == PAWL_OK)
        status = stream_read_from_owner(s, &error);
    if (status != PAWL_OK)
        claim_end(s, status, error.text[0] ? error.text : pawl_status_text(status));
}

static void write_claim(struct stream *s)
{
    struct claiming *c = (struct claiming *)s->claims.first;
    pawl_claim *claim = c->op.request;
    struct kafka_record r = {0};
    struct kafka_log *log = s->log;
    uint64_t nonce = log->session << 32 | (uint32_t)++log->nonces;
    if (owner_is_taken(&s->owner, log->node, nonce, claim->group0)) {
        claim_end(s, PAWL_EFENCED, "another writer has claimed it");
        return;
    }
    int status = owner_claim(&s->owner, log->node, nonce, claim->group0, &r.head);
    if (status != PAWL_OK) {
        claim_end(s, status, "the owner's assignment is a newer one");
        return;
    }
    rd_kafka_resp_err_t err = producer_send_claim(s, &r, ++s->claim_number);
    s->phase = PHASE_SENT;
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        claim_end(s, PAWL_EIO, rd_kafka_err2str(err));
}

/* Another claim counts than the one that was sent. If it is an earlier one of this log, which was given up because nobody
 * knew what became of it, nobody has taken anything: it is the next claim's turn. */
static void claim_missed(struct stream *s, const char *words)
{
    const struct judge *j = &s->owner.judge;
    bool own = j->node == s->log->node && j->nonce >> 32 == (uint32_t)s->log->session;
    if (own)
        claim_end(s, PAWL_EUNKNOWN, "an earlier claim of this writer counts instead; claim again");
    else
        claim_end(s, PAWL_EFENCED, words);
}

void claim_step(struct stream *s, bool at_end)
{
    if (s->phase == PHASE_LOOK && at_end) {
        write_claim(s);
    } else if (s->phase == PHASE_SENT) {
        if (s->owner.state == OWNER_OWNING) {
            s->doubt = false;
            s->read_to = 0;
            claim_end(s, PAWL_OK, "");
        } else if (s->owner.state != OWNER_CLAIMING) {
            claim_missed(s, "a rival's claim was faster");
        } else if (s->claim_at != CLAIM_NOWHERE && s->owner.judge.at > s->claim_at) {
            claim_missed(s, "the claim does not count");
        }
    }
}

void claim_reported(struct stream *s, uint64_t number, const rd_kafka_message_t *m)
{
    if (s->phase != PHASE_SENT || number != s->claim_number)
        return;
    if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR || m->offset < 0) {
        char words[256];
        bool refused = client_refused(m);
        snprintf(words, sizeof words, "%s: %s",
                 refused ? "the brokers refused the claim" : "it is not known whether the claim was written",
                 client_reason(m));
        claim_end(s, refused ? client_status(m->err) : PAWL_EUNKNOWN, words);
        return;
    }
    s->claim_at = (uint64_t)m->offset;
    s->deadline = clock_boot_ns() + (uint64_t)s->log->url.timeout_ms * 1000000;
    claim_step(s, false);
}

static int claim_start(struct kafka_log *log, pawl_claim *claim, struct claiming *c)
{
    int status = stream_find(log, claim->stream, &c->stream);
    if (status != PAWL_OK)
        return status;
    struct stream *s = c->stream;
    if (!s->claims.first)
        status = begin_check(c);
    if (status != PAWL_OK) {
        s->phase = PHASE_NONE;
        return status;
    }
    op_list_push(&s->claims, &c->op);
    stream_send(s); /* entries that were not sent by now are refused */
    kafka_collect(log);
    kafka_ring(log);
    return PAWL_OK;
}

int kafka_claim(pawl_log *port, pawl_claim *claim)
{
    struct kafka_log *log = (struct kafka_log *)port;
    if (!claim->done || !pawl_stream_valid(claim->stream))
        return error_set(claim->error, PAWL_EINVAL, "a claim needs a valid stream and done");
    struct claiming *c = mem_new(log->alloc, 1, sizeof *c);
    if (!c)
        return error_set(claim->error, PAWL_ENOMEM, "no memory for a claim");
    op_begin(log, &c->op, claim, claim_run);
    atomic_fetch_add(&log->outstanding, 1);
    pthread_mutex_lock(&log->lock);
    int status = claim_start(log, claim, c);
    pthread_mutex_unlock(&log->lock);
    if (status == PAWL_OK)
        return PAWL_OK;
    atomic_fetch_sub(&log->outstanding, 1);
    mem_free(log->alloc, c, sizeof *c);
    return error_wrap(claim->error, status, "claim");
}

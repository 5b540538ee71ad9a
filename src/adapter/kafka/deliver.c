/* adapter/kafka/deliver.c: the way back: who takes librdkafka's reports, and how a request returns to who asked.
 *
 *      librdkafka's thread ──┬──► the log's thread ── outbox ──► the shards that asked
 *                            └──► the shard that asked: its taker
 *
 * To wake a thread takes longer than all that is done with a report, so a report should wake one thread, as in a program
 * that polls librdkafka by itself. If everything that waits for reports is one shard's, that shard takes them.
 *
 * Invariants
 *   D1  A shard is told to take reports only while no append of anybody else is outstanding: however busy it is, nobody
 *       else waits for it. If it takes reports of others after all, because they have come since, they go on at once.
 *   D2  A taker that is rung has its task in its shard's mailbox. Closing waits until that task has run; so no shard may
 *       close, whose thread would have to run it, perhaps for another shard.
 *   D3  What was put into a shard's outbox runs before what its taker has found: appends return in their order (K1).
 *   D4  An outbox whose task is in its shard's mailbox is not empty. So what comes into an empty one is a round of its own. */
#include <assert.h>

#include "adapter/kafka/impl.h"
#include "base/alloc.h"

/* Rounds. */

static _Thread_local struct round *round_here;

bool kafka_in_round(const struct kafka_log *log)
{
    return round_here && round_here->log == log;
}

static void run_round(struct kafka_log *log, struct op *op, bool on_shard)
{
    struct round round = {.log = log}, *outer = round_here;
    round_here = &round;
    while (op) {
        struct op *next = op->link;
        op->run(op);
        op = next;
    }
    round_here = outer;
    pthread_mutex_lock(&log->lock);
    kafka_send_all(log);
    log->rounds -= on_shard;
    pthread_cond_signal(&log->round_ended);
    pthread_mutex_unlock(&log->lock);
}

static void outbox_run(pawl_task *task)
{
    struct outbox *box = (struct outbox *)task;
    struct kafka_log *log = box->log;
    pthread_mutex_lock(&log->lock);
    struct op *op = box->ops.first;
    op_list_init(&box->ops);
    pthread_mutex_unlock(&log->lock);
    run_round(log, op, true);
}

/* An env that is closing takes no posts. Its shards are idle then, so the dones may run on the log's thread. */
static void post_outbox(struct kafka_log *log, uint32_t shard, struct op_list *others)
{
    struct outbox *box = &log->outboxes[shard];
    log->rounds++;
    if (pawl_env_post(log->env, shard, &box->task) == PAWL_OK)
        return;
    log->rounds--;
    for (struct op *left; (left = op_list_pop(&box->ops));)
        op_list_push(others, left);
}

/* With the lock. What is ready goes to the outboxes of the shards that asked; what this thread has to run is put behind
 * what is here. A batch of many requests makes one post to each shard. A shard leaves to the log's thread what no shard
 * has asked for. */
static void sort_out(struct kafka_log *log, uint32_t self, struct op_list *here)
{
    struct op_list others;
    op_list_init(&others);
    for (struct op *op; (op = op_list_pop(&log->ready));) {
        if (op->shard == self) {
            op_list_push(here, op);
        } else if (op->shard == PAWL_NO_SHARD) {
            op_list_push(&others, op);
        } else {
            bool first = !log->outboxes[op->shard].ops.first;
            op_list_push(&log->outboxes[op->shard].ops, op);
            if (first)
                post_outbox(log, op->shard, self == PAWL_NO_SHARD ? here : &others);
        }
    }
    for (struct op *op; (op = op_list_pop(&others));)
        op_list_push(&log->ready, op);
    if (log->ready.first)
        kafka_ring(log);
}

void kafka_deliver(struct kafka_log *log)
{
    struct op_list here;
    op_list_init(&here);
    pthread_mutex_lock(&log->lock);
    sort_out(log, PAWL_NO_SHARD, &here);
    bool elsewhere = log->rounds > 0;
    pthread_mutex_unlock(&log->lock);
    if (here.first || !elsewhere)
        run_round(log, here.first, false);
}

/* Takers. */

static void taker_run(pawl_task *task)
{
    struct taker *t = (struct taker *)task;
    struct kafka_log *log = t->log;
    struct op_list here;
    uint32_t self = pawl_env_self(log->env);
    struct op_list *outbox = &log->outboxes[self].ops;
    op_list_init(&here);
    pthread_mutex_lock(&log->lock);
    atomic_store(&t->rung, false);
    log->rounds++;
    producer_serve(log);
    kafka_collect(log);
    sort_out(log, self, &here);
    /* D3, D4: if it has something, its task is coming, and runs these, too. */
    for (struct op *op; outbox->first && (op = op_list_pop(&here));)
        op_list_push(outbox, op);
    pthread_mutex_unlock(&log->lock);
    run_round(log, here.first, true);
}

void kafka_reports_came(rd_kafka_t *client, void *arg)
{
    struct kafka_log *log = arg;
    uint32_t shard = atomic_load(&log->taking);
    if (shard == PAWL_NO_SHARD) {
        kafka_ring(log);
        return;
    }
    struct taker *t = &log->outboxes[shard].taker;
    if (!atomic_exchange(&t->rung, true) && pawl_env_post(log->env, shard, &t->task) != PAWL_OK) {
        atomic_store(&t->rung, false);
        kafka_ring(log);
    } else if (atomic_load(&log->taking) != shard) {
        kafka_ring(log); /* D1: others wait by now, and choose may not have seen that the shard is rung */
    }
}

/* The shard whose appends are all that are outstanding (D1). If there is none, it stays as it was. */
static void choose(struct kafka_log *log)
{
    uint32_t taking = PAWL_NO_SHARD;
    for (uint32_t i = 0; i < log->shards && log->askers == 1 && log->outside == 0; i++)
        taking = log->outboxes[i].appends > 0 ? i : taking;
    if (log->askers == 0)
        return;
    uint32_t before = atomic_exchange(&log->taking, taking);
    /* It may be busy, and librdkafka calls only when the first report comes: others do not wait for it. */
    if (before != taking && before != PAWL_NO_SHARD && atomic_load(&log->outboxes[before].taker.rung))
        kafka_ring(log);
}

void kafka_append_begins(struct kafka_log *log, uint32_t shard)
{
    size_t *count = shard == PAWL_NO_SHARD ? &log->outside : &log->outboxes[shard].appends;
    if ((*count)++ > 0)
        return;
    log->askers++;
    choose(log);
}

void kafka_append_ends(struct kafka_log *log, uint32_t shard)
{
    size_t *count = shard == PAWL_NO_SHARD ? &log->outside : &log->outboxes[shard].appends;
    assert(*count > 0);
    if (--*count > 0)
        return;
    log->askers--;
    choose(log);
}

/* Opening and closing. */

int deliver_open(struct kafka_log *log)
{
    atomic_init(&log->taking, PAWL_NO_SHARD);
    log->outboxes = mem_new(log->alloc, log->shards, sizeof *log->outboxes);
    for (uint32_t i = 0; log->outboxes && i < log->shards; i++) {
        log->outboxes[i] =
            (struct outbox){.task.fn = outbox_run, .log = log, .taker = {.task.fn = taker_run, .log = log}};
        op_list_init(&log->outboxes[i].ops);
    }
    return log->outboxes ? PAWL_OK : PAWL_ENOMEM;
}

static bool is_under_way(struct kafka_log *log)
{
    if (log->rounds > 0 || log->looks > 0)
        return true;
    for (uint32_t i = 0; i < log->shards; i++)
        if (atomic_load(&log->outboxes[i].taker.rung))
            return true;
    return false;
}

void deliver_end(struct kafka_log *log)
{
    pthread_mutex_lock(&log->lock);
    if (log->producer)
        rd_kafka_queue_cb_event_enable(log->reports, NULL, NULL);
    while (is_under_way(log))
        pthread_cond_wait(&log->round_ended, &log->lock);
    pthread_mutex_unlock(&log->lock);
}

void deliver_free(struct kafka_log *log)
{
    mem_free(log->alloc, log->outboxes, log->shards * sizeof *log->outboxes);
}

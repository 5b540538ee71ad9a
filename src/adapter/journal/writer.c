/* adapter/journal/writer.c: who writes, and when.
 *
 *            ┌──────────── queue empty: watermark ◄───────────┐
 *            ▼                                                │
 *     idle ──┴─► take all that is queued ──► group ──► deliver┤
 *                     ▲                                       │
 *                     └──────────── queue not empty ◄─────────┘
 *
 * One thread at a time goes round this: it has the writer's role. A caller that finds the journal idle, and has
 * nothing else to do, goes round once by itself, which spares two changes of thread. One that does not find it
 * idle waits for its group. */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adapter/journal/impl.h"
#include "base/error.h"

static struct op *take_queue(struct journal *j)
{
    struct op *ops = j->queue.ops.first;
    queue_init(&j->queue);
    j->groups++;
    return ops;
}

/* Callers that wait for a group sleep in its turnstile, and one call lets all of them through: waking each by
 * itself, one processor after the other out of its sleep, takes longer than a sync. There are two turnstiles,
 * because while one group is written the next gathers. */
static void turnstile_open(struct turnstile *t, uint32_t group)
{
    uint32_t waiters = atomic_exchange_explicit(&t->waiters, 0, memory_order_relaxed);
    atomic_store_explicit(&t->group, group, memory_order_release);
    if (waiters)
        syscall(SYS_futex, &t->group, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* The group's number may have wrapped, but is never more than two ahead of its turnstile's. */
static void turnstile_pass(struct turnstile *t, uint32_t group)
{
    uint32_t last = atomic_load_explicit(&t->group, memory_order_acquire);
    while ((int32_t)(last - group) < 0) {
        syscall(SYS_futex, &t->group, FUTEX_WAIT_PRIVATE, last, NULL, NULL, 0);
        last = atomic_load_explicit(&t->group, memory_order_acquire);
    }
}

/* Go round until the queue is empty. With the lock, which is let go meanwhile, and with the role. */
static void work_off(struct journal *j)
{
    while (j->queue.ops.first) {
        struct op *ops = take_queue(j);
        uint32_t group = j->groups;
        pthread_mutex_unlock(&j->lock);
        struct op_list wake;
        op_list_init(&wake);
        group_run(j, ops, &wake);
        journal_deliver(j, ops);
        /* Those who waited take their ops with them: nothing touches the list behind this. */
        turnstile_open(&j->turnstiles[group % 2], group);
        journal_deliver(j, wake.first);
        pthread_mutex_lock(&j->lock);
        if (!j->queue.ops.first) {
            pthread_mutex_unlock(&j->lock);
            group_rest(j);
            pthread_mutex_lock(&j->lock);
        }
    }
}

static void *writer_main(void *arg)
{
    struct journal *j = arg;
    pthread_mutex_lock(&j->lock);
    for (;;) {
        while (!j->stopping && (j->busy || !j->queue.ops.first))
            pthread_cond_wait(&j->wake, &j->lock);
        if (!j->queue.ops.first && j->stopping)
            break;
        j->busy = true;
        work_off(j);
        j->busy = false;
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

int writer_start(struct journal *j)
{
    pthread_cond_init(&j->wake, NULL);
    if (j->threads && pthread_create(&j->writer, NULL, writer_main, j) != 0) {
        pthread_cond_destroy(&j->wake);
        return PAWL_ENOMEM;
    }
    return PAWL_OK;
}

void writer_stop(struct journal *j)
{
    if (j->threads) {
        pthread_mutex_lock(&j->lock);
        pthread_cond_signal(&j->wake);
        pthread_mutex_unlock(&j->lock);
        pthread_join(j->writer, NULL);
    }
    pthread_cond_destroy(&j->wake);
}

void journal_pump(pawl_log *log)
{
    struct journal *j = (struct journal *)log;
    pthread_mutex_lock(&j->lock);
    j->busy = true;
    work_off(j);
    j->busy = false;
    pthread_mutex_unlock(&j->lock);
}

/* Its caller is in the turnstile. */
static void append_waited(struct op *op)
{
}

static void append_done(struct op *op)
{
    pawl_append *append = op->request;
    atomic_fetch_sub(&op->journal->outstanding, 1);
    append->done(append);
}

static void claim_done(struct op *op)
{
    pawl_claim *claim = op->request;
    atomic_fetch_sub(&op->journal->outstanding, 1);
    claim->done(claim);
}

/* Where a request goes: a shard that is running dones has its appends held back (deliver.c). With the lock. */
static struct queue *queue_of(struct journal *j, const struct op *op)
{
    struct outbox *box = op->shard == PAWL_NO_SHARD ? NULL : &j->outboxes[op->shard];
    return box && box->holding ? &box->held : &j->queue;
}

/* With the lock. */
static void enqueue(struct journal *j, struct op *op)
{
    struct queue *queue = queue_of(j, op);
    op_list_push(&queue->ops, op);
    queue->count++;
    queue->bytes += op->bytes == OP_TOO_BIG ? 0 : op->bytes;
    atomic_fetch_add(&j->outstanding, 1);
    if (queue == &j->queue && !j->busy)
        pthread_cond_signal(&j->wake);
}

void writer_release(struct journal *j, struct outbox *box)
{
    pthread_mutex_lock(&j->lock);
    *j->queue.ops.last = box->held.ops.first;
    j->queue.ops.last = box->held.ops.last;
    j->queue.count += box->held.count;
    j->queue.bytes += box->held.bytes;
    queue_init(&box->held);
    box->holding = false;
    if (!j->busy)
        pthread_cond_signal(&j->wake);
    pthread_mutex_unlock(&j->lock);
}

/* What the entries will take; OP_TOO_BIG if that is more than may be. */
static int measure(pawl_append *append, size_t *ret_bytes)
{
    size_t total = 0;
    if (append->count == 0 || !append->entries || !append->done)
        return error_set(append->error, PAWL_EINVAL, "an append needs entries and a done");
    for (size_t i = 0; i < append->count; i++) {
        const pawl_entry *e = &append->entries[i].entry;
        if (!pawl_stream_valid(e->stream) || e->offset == 0 || (e->body.size && !e->body.data))
            return error_set(append->error, PAWL_EINVAL,
                             "entry %zu of the append has no valid stream, offset or body", i);
        if (e->body.size > PAWL_ENTRY_BYTES_MAX || total > APPEND_BYTES_MAX)
            total = OP_TOO_BIG;
        else
            total += record_size(e->body.size);
    }
    *ret_bytes = total > APPEND_BYTES_MAX ? OP_TOO_BIG : total;
    return PAWL_OK;
}

/* The caller's own turn: it has the role, and its op is the whole group. */
static void append_here(struct journal *j, struct op *op)
{
    struct op_list wake;
    op_list_init(&wake);
    op->next = NULL;
    group_run(j, op, &wake);
    pthread_mutex_lock(&j->lock);
    bool idle = !j->queue.ops.first;
    pthread_mutex_unlock(&j->lock);
    if (idle)
        group_rest(j);
    pthread_mutex_lock(&j->lock);
    j->busy = false;
    if (j->queue.ops.first)
        pthread_cond_signal(&j->wake);
    pthread_mutex_unlock(&j->lock);
    journal_deliver(j, wake.first);
}

/* A shard has others to serve, and the writer would wait for itself. */
static bool may_wait(const struct journal *j, const pawl_append *append, const struct op *op)
{
    return append->alone && j->threads && op->shard == PAWL_NO_SHARD
           && !pthread_equal(pthread_self(), j->writer);
}

/* It is queued: wait until its group is through. With the lock, which is let go. */
static void append_waiting(struct journal *j, struct op *op)
{
    uint32_t group = j->groups + 1;
    struct turnstile *turnstile = &j->turnstiles[group % 2];
    op->run = append_waited;
    atomic_fetch_add_explicit(&turnstile->waiters, 1, memory_order_relaxed);
    pthread_mutex_unlock(&j->lock);
    turnstile_pass(turnstile, group);
    atomic_fetch_sub(&j->outstanding, 1);
}

int journal_append(pawl_log *log, pawl_append *append)
{
    struct journal *j = (struct journal *)log;
    if (j->read_only)
        return error_set(append->error, PAWL_EREADONLY, "%s was opened read-only", j->path);
    size_t bytes = 0;
    int status = measure(append, &bytes);
    if (status != PAWL_OK)
        return status;
    struct op *op = (struct op *)append->impl;
    op_init(j, op, OP_APPEND, append, append_done);
    op->bytes = bytes;
    pthread_mutex_lock(&j->lock);
    const struct queue *queue = queue_of(j, op);
    if (append->alone && !j->busy && !j->queue.ops.first && !queue->ops.first) {
        j->busy = true;
        pthread_mutex_unlock(&j->lock);
        append_here(j, op);
        return PAWL_APPEND_DONE;
    }
    if (queue->count >= QUEUE_COUNT_MAX
        || (queue->count > 0 && bytes != OP_TOO_BIG && queue->bytes + bytes > QUEUE_BYTES_MAX)) {
        pthread_mutex_unlock(&j->lock);
        return error_set(append->error, PAWL_EBUSY, "the journal's queue is full");
    }
    enqueue(j, op);
    if (may_wait(j, append, op)) {
        append_waiting(j, op);
        return PAWL_APPEND_DONE;
    }
    pthread_mutex_unlock(&j->lock);
    return PAWL_OK;
}

int journal_claim(pawl_log *log, pawl_claim *claim)
{
    struct journal *j = (struct journal *)log;
    if (!pawl_stream_valid(claim->stream) || !claim->done)
        return error_set(claim->error, PAWL_EINVAL, "a claim needs a valid stream and a done");
    if (j->read_only)
        return error_set(claim->error, PAWL_EREADONLY, "%s was opened read-only", j->path);
    struct op *op = (struct op *)claim->impl;
    op_init(j, op, OP_CLAIM, claim, claim_done);
    pthread_mutex_lock(&j->lock);
    enqueue(j, op);
    pthread_mutex_unlock(&j->lock);
    return PAWL_OK;
}

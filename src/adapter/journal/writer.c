/* adapter/journal/writer.c: who writes, and when.
 *
 *            ┌──────────── queue empty: watermark ◄───────────┐
 *            ▼                                                │
 *     idle ──┴─► take all that is queued ──► group ──► deliver┤
 *                     ▲                                       │
 *                     └──────────── queue not empty ◄─────────┘
 *
 * One thread at a time goes round this: it has the writer's role. A caller that finds the journal idle, and has
 * nothing else to do, goes round once by itself, which saves two changes of thread. So does a shard whose dones
 * have appended again, if no other request is under way. A caller that finds the journal busy waits for its
 * group.
 */
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

static void futex_wait(_Atomic uint32_t *word, uint32_t while_it_is)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* Callers that wait for a group sleep on one futex, and one call wakes all of them: to wake each by a call of
 * its own, one processor after the other out of its sleep, takes longer than a sync. There are two futexes,
 * because the next group gathers while one is written. */
static void group_wait_wake(struct group_wait *t, uint32_t group)
{
    uint32_t waiters = atomic_exchange_explicit(&t->waiters, 0, memory_order_relaxed);
    atomic_store_explicit(&t->group, group, memory_order_release);
    if (waiters)
        futex_wake(&t->group, INT_MAX);
}

/* Numbers of groups may wrap, but a group is never more than two ahead of the one that was woken last. */
static void group_wait_sleep(struct group_wait *t, uint32_t group)
{
    uint32_t last = atomic_load_explicit(&t->group, memory_order_acquire);
    while ((int32_t)(last - group) < 0) {
        futex_wait(&t->group, last);
        last = atomic_load_explicit(&t->group, memory_order_acquire);
    }
}

/* Go round once. With the lock, which is released meanwhile, and with the role. */
static void work_once(struct journal *j)
{
    struct op *ops = take_queue(j);
    uint32_t group = j->groups;
    pthread_mutex_unlock(&j->lock);
    struct op_list wake;
    op_list_init(&wake);
    group_run(j, ops, &wake);
    journal_deliver(j, ops);
    /* Callers that are woken free their ops: the list is not touched after this. */
    group_wait_wake(&j->group_waits[group % 2], group);
    journal_deliver(j, wake.first);
    pthread_mutex_lock(&j->lock);
    if (!j->queue.ops.first) {
        pthread_mutex_unlock(&j->lock);
        group_rest(j);
        pthread_mutex_lock(&j->lock);
    }
}

static void work_off(struct journal *j)
{
    while (j->queue.ops.first)
        work_once(j);
}

/* The writer sleeps on a futex of its own. A thread wakes it after it has released the lock: a writer woken
 * earlier on the same processor would run at once, and only find the lock held. Once the lock is released the
 * journal may be gone, because another thread woke the writer and everything was finished; so nothing of the
 * journal is touched there. To the kernel the futex is only an address: if the journal is gone, nobody sleeps
 * on it. */
static void writer_sleep(struct journal *j)
{
    atomic_store_explicit(&j->asleep, 1, memory_order_relaxed);
    pthread_mutex_unlock(&j->lock);
    futex_wait(&j->asleep, 1);
    pthread_mutex_lock(&j->lock);
}

/* Release the lock, and wake the writer if it sleeps and there is something for it. */
static void unlock_and_wake(struct journal *j)
{
    bool wake = (j->stopping || (j->queue.ops.first && !j->busy))
                && atomic_load_explicit(&j->asleep, memory_order_relaxed);
    _Atomic uint32_t *word = &j->asleep;
    if (wake)
        atomic_store_explicit(word, 0, memory_order_relaxed);
    pthread_mutex_unlock(&j->lock);
    if (wake)
        futex_wake(word, 1);
}

static void *writer_main(void *arg)
{
    struct journal *j = arg;
    pthread_mutex_lock(&j->lock);
    for (;;) {
        while (!j->stopping && (j->busy || !j->queue.ops.first))
            writer_sleep(j);
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
    return j->threads && pthread_create(&j->writer, NULL, writer_main, j) != 0 ? PAWL_ENOMEM : PAWL_OK;
}

void writer_stop(struct journal *j)
{
    if (!j->threads)
        return;
    pthread_mutex_lock(&j->lock);
    unlock_and_wake(j);
    pthread_join(j->writer, NULL);
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

/* Its caller sleeps until the group is written. */
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
}

/* A shard whose dones have appended again, while no other request is in the journal, goes round by itself: two
 * changes of thread would take longer than all the rest. Its dones are posted, and run after it has returned.
 * With the lock. */
static bool shard_goes_round(const struct journal *j, size_t held)
{
    return held > 0 && j->threads && !j->busy && !j->queue.ops.first && atomic_load(&j->outstanding) == held;
}

void writer_release(struct journal *j, struct outbox *box)
{
    pthread_mutex_lock(&j->lock);
    bool here = shard_goes_round(j, box->held.count);
    *j->queue.ops.last = box->held.ops.first;
    j->queue.ops.last = box->held.ops.last;
    j->queue.count += box->held.count;
    j->queue.bytes += box->held.bytes;
    queue_init(&box->held);
    box->holding = false;
    if (here) {
        j->busy = true;
        work_once(j);
        j->busy = false;
    }
    unlock_and_wake(j);
}

/* How many bytes the records of the entries take; OP_TOO_BIG if that is more than allowed. */
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
    unlock_and_wake(j);
    journal_deliver(j, wake.first);
}

/* A shard must not block, because it serves others; the writer must not, because it would wait for itself. */
static bool may_wait(const struct journal *j, const pawl_append *append, const struct op *op)
{
    return append->alone && j->threads && op->shard == PAWL_NO_SHARD
           && !pthread_equal(pthread_self(), j->writer);
}

/* It is queued: wait until its group is written. With the lock, which is released. */
static void append_waiting(struct journal *j, struct op *op)
{
    uint32_t group = j->groups + 1;
    struct group_wait *wait = &j->group_waits[group % 2];
    op->run = append_waited;
    atomic_fetch_add_explicit(&wait->waiters, 1, memory_order_relaxed);
    unlock_and_wake(j);
    group_wait_sleep(wait, group);
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
    unlock_and_wake(j);
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
    unlock_and_wake(j);
    return PAWL_OK;
}

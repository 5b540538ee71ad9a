/* The log port's calls: they check a request, take an op for it, and bring it back, with its outcome, to the
 * thread that made it. What happens in between is log_stream.c's.
 *
 * Invariant
 *   L1  done() is the last thing that is done with an op, after it was given back: it may make any call, and
 *       close the log. */
#include "adapter/mem/log.h"

#include "adapter/mem/log_stream.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

static struct mem_log *log_of(pawl_log *port)
{
    return (struct mem_log *)port;
}

/* Ops. */

static void run_task(pawl_task *task)
{
    struct op *op = heap_entry(task, struct op, task);
    op->run(op);
}

static void run_done(pawl_work *work)
{
    struct op *op = heap_entry(work, struct op, work);
    if (op->fault.kind == MEM_LOG_DELAY && op->fault.n > 0) {
        op->fault.n--;
        if (pawl_env_work(op->log->env, &op->work) == PAWL_OK)
            return;
    }
    op->run(op);
}

static void run_nothing(pawl_work *work)
{
}

void op_take_order(struct op *op)
{
    struct mem_log *log = op->log;
    log->requests++;
    for (int i = 0; i < LOG_ORDERS_MAX; i++) {
        if (log->orders[i].kind == 0 || log->orders[i].request != log->requests)
            continue;
        op->fault = log->orders[i];
        log->orders[i].kind = 0;
        return;
    }
}

struct op *op_take(struct mem_log *log, void *request, void (*run)(struct op *op))
{
    struct op *op = log->free_ops;
    if (!op)
        return NULL;
    log->free_ops = op->link;
    *op = (struct op){.log = log, .request = request, .run = run, .shard = pawl_env_self(log->env)};
    op->task.fn = run_task;
    op->work.fn = run_nothing;
    op->work.done = run_done;
    log->outstanding++;
    return op;
}

void op_give(struct op *op)
{
    struct mem_log *log = op->log;
    disk_record_free(log->disk, op->record);
    op->record = NULL;
    op->link = log->free_ops;
    log->free_ops = op;
    log->outstanding--;
}

/* A request that concerns one stream and needs only time. */
static int op_start(struct mem_log *log, pawl_stream stream, struct op *op)
{
    op->stream = stream_of(log, stream);
    int status = op->stream ? pawl_env_work(log->env, &op->work) : PAWL_ENOMEM;
    if (status == PAWL_OK)
        op_take_order(op);
    else
        op_give(op);
    return status;
}

/* Runs on a thread of the pool, which is no shard. The next is set going before this one runs (L1). */
static void run_elsewhere(pawl_work *work)
{
    struct mem_log *log = heap_entry(work, struct mem_log, elsewhere);
    struct op *op = log->nowhere;
    log->nowhere = op->link;
    log->elsewhere_set = log->nowhere && pawl_env_work(log->env, &log->elsewhere) == PAWL_OK;
    op->run(op);
}

void op_come_back(struct op *op)
{
    struct mem_log *log = op->log;
    if (op->coming)
        return;
    op->coming = true;
    if (op->shard != PAWL_NO_SHARD) {
        pawl_env_post(log->env, op->shard, &op->task);
        return;
    }
    struct op **at = &log->nowhere;
    while (*at)
        at = &(*at)->link;
    op->link = NULL;
    *at = op;
    if (!log->elsewhere_set)
        log->elsewhere_set = pawl_env_work(log->env, &log->elsewhere) == PAWL_OK;
}

/* Claim. */

static void claim_run(struct op *op)
{
    pawl_claim *claim = op->request;
    claim->status = op->status;
    if (op->status == PAWL_OK) {
        claim->epoch = op->epoch;
        claim->next = op->next;
    }
    claim->rival = op->rival;
    op_give(op);
    claim->done(claim);
}

void op_end(struct op *op, int status, const char *words)
{
    const pawl_claim *claim = op->request;
    op->status = status;
    if (status != PAWL_OK)
        error_set(claim->error, status, "%s", words);
    op_come_back(op);
}

static int log_claim(pawl_log *port, pawl_claim *claim)
{
    struct mem_log *log = log_of(port);
    if (!claim->done || !pawl_stream_valid(claim->stream))
        return error_set(claim->error, PAWL_EINVAL, "a claim needs a valid stream and done");
    struct op *op = op_take(log, claim, claim_run);
    if (!op)
        return error_set(claim->error, PAWL_EBUSY, "too many requests");
    int status = PAWL_ENOMEM;
    op->stream = stream_of(log, claim->stream);
    op->record = disk_record_new(log->disk, 0);
    if (op->stream && op->record)
        status = stream_pump(op->stream);
    if (status != PAWL_OK) {
        op_give(op);
        return error_wrap(claim->error, status, "claim");
    }
    op_take_order(op);
    op->record->head.kind = CLAIM_KIND_CLAIM;
    struct op **at = &op->stream->claims;
    while (*at)
        at = &(*at)->link;
    *at = op;
    return PAWL_OK;
}

/* Read, follow, tail. */

static int visit_one(struct op *op, uint64_t offset,
                     bool (*visit)(void *request, const pawl_entry *, pawl_place), bool *ret_more)
{
    struct mem_log *log = op->log;
    pawl_entry entry;
    pawl_place place;
    void *memory;
    int status = stream_entry(op->stream, offset, &entry, &place, &memory);
    if (status != PAWL_OK)
        return status;
    *ret_more = visit(op->request, &entry, place);
    mem_free(log->options.allocator, memory, entry.body.size);
    return PAWL_OK;
}

static bool visit_read(void *request, const pawl_entry *entry, pawl_place place)
{
    pawl_read *read = request;
    return read->visit(read, entry, place);
}

static bool visit_follow(void *request, const pawl_entry *entry, pawl_place place)
{
    pawl_follow *follow = request;
    return follow->visit(follow, entry, place);
}

static void read_now(struct op *op)
{
    pawl_read *read = op->request;
    uint64_t next = read->from;
    bool more = true;
    int status = op->fault.kind == MEM_LOG_FAIL ? PAWL_EIO : stream_catch_up(op->stream);
    for (uint64_t n = 0; status == PAWL_OK && more && n < read->limit && next <= op->stream->indexed; n++) {
        status = visit_one(op, next, visit_read, &more);
        next += status == PAWL_OK;
    }
    if (status != PAWL_OK)
        error_set(read->error, status, "read: %s", pawl_status_text(status));
    read->status = status;
    read->next = next;
    op_give(op);
}

static void read_run(struct op *op)
{
    pawl_read *read = op->request;
    read_now(op);
    read->done(read);
}

static int log_read(pawl_log *port, pawl_read *read)
{
    struct mem_log *log = log_of(port);
    if ((!read->done && !read->alone) || !read->visit || read->from == 0 || !pawl_stream_valid(read->stream))
        return error_set(read->error, PAWL_EINVAL, "a read needs a valid stream, from above 0, visit and done");
    struct op *op = op_take(log, read, read_run);
    if (!op)
        return error_set(read->error, PAWL_EBUSY, "too many requests");
    if (read->alone) {
        op->stream = stream_of(log, read->stream);
        if (!op->stream) {
            op_give(op);
            return error_set(read->error, PAWL_ENOMEM, "no memory for another stream");
        }
        read_now(op);
        return PAWL_READ_DONE;
    }
    return op_start(log, read->stream, op);
}

static void follow_run(struct op *op)
{
    pawl_follow *follow = op->request;
    bool more = true;
    int status = op->fault.kind == MEM_LOG_FAIL ? PAWL_EIO : stream_catch_up(op->stream);
    while (status == PAWL_OK && more && !op->stop && op->next <= op->stream->indexed) {
        status = visit_one(op, op->next, visit_follow, &more);
        op->next += status == PAWL_OK;
    }
    if (status == PAWL_OK && more && !op->stop) {
        op->coming = false; /* until the disk wakes it */
        return;
    }
    if (status == PAWL_OK && more)
        status = PAWL_ECLOSED;
    if (status != PAWL_OK)
        error_set(follow->error, status, "follow: %s", pawl_status_text(status));
    struct op **at = &op->stream->follows;
    while (*at != op)
        at = &(*at)->next_follow;
    *at = op->next_follow;
    follow->status = status;
    follow->next = op->next;
    op_give(op);
    follow->done(follow);
}

static int log_follow(pawl_log *port, pawl_follow *follow)
{
    struct mem_log *log = log_of(port);
    if (!follow->done || !follow->visit || follow->from == 0 || !pawl_stream_valid(follow->stream))
        return error_set(follow->error, PAWL_EINVAL,
                         "a follow needs a valid stream, from above 0, visit and done");
    struct op *op = op_take(log, follow, follow_run);
    if (!op)
        return error_set(follow->error, PAWL_EBUSY, "too many requests");
    op->next = follow->from;
    op->coming = true;
    int status = op_start(log, follow->stream, op);
    if (status != PAWL_OK)
        return status;
    op->next_follow = op->stream->follows;
    op->stream->follows = op;
    return PAWL_OK;
}

static int log_unfollow(pawl_log *port, pawl_follow *follow)
{
    struct mem_log *log = log_of(port);
    for (struct stream *s = log->streams; s; s = s->next)
        for (struct op *op = s->follows; op; op = op->next_follow)
            if (op->request == follow) {
                op->stop = true;
                op_come_back(op);
                return PAWL_OK;
            }
    return error_set(follow->error, PAWL_EMISUSE, "it does not follow");
}

static void tail_run(struct op *op)
{
    pawl_tail *tail = op->request;
    tail->status = op->fault.kind == MEM_LOG_FAIL ? PAWL_EIO : stream_catch_up(op->stream);
    if (tail->status == PAWL_OK)
        tail->last = op->stream->indexed;
    else
        error_set(tail->error, tail->status, "tail: %s", pawl_status_text(tail->status));
    op_give(op);
    tail->done(tail);
}

static int log_tail(pawl_log *port, pawl_tail *tail)
{
    struct mem_log *log = log_of(port);
    if (!tail->done || !pawl_stream_valid(tail->stream))
        return error_set(tail->error, PAWL_EINVAL, "a tail needs a valid stream and done");
    struct op *op = op_take(log, tail, tail_run);
    if (!op)
        return error_set(tail->error, PAWL_EBUSY, "too many requests");
    return op_start(log, tail->stream, op);
}

/* Open and close. */

void log_free(struct mem_log *log)
{
    struct mem_log **at = &log->disk->logs;
    while (*at != log)
        at = &(*at)->next;
    *at = log->next;
    for (struct stream *s = log->streams, *next; s; s = next) {
        next = s->next;
        stream_free(s);
    }
    const pawl_allocator *alloc = log->options.allocator;
    mem_free(alloc, log->ops, log->options.requests * sizeof *log->ops);
    mem_free(alloc, log, sizeof *log);
}

static int log_close(pawl_log *port)
{
    struct mem_log *log = log_of(port);
    if (log->outstanding > 0)
        return PAWL_EMISUSE;
    log->closed = true;
    for (struct stream *s = log->streams; s; s = s->next)
        if (s->pumping)
            return PAWL_OK;
    log_free(log);
    return PAWL_OK;
}

void mem_log_kill(pawl_log *port)
{
    struct mem_log *log = log_of(port);
    for (struct stream *s = log->streams; s; s = s->next)
        while (s->wire && disk_random(log->disk) % 2) {
            struct disk_record *r = s->wire;
            s->wire = r->next;
            disk_land(log->disk, s->on_disk, r);
        }
    for (uint32_t i = 0; i < log->options.requests; i++)
        disk_record_free(log->disk, log->ops[i].record);
    log_free(log);
}

static const struct pawl_log_ops log_ops = {
    .claim = log_claim,
    .append = log_append,
    .read = log_read,
    .follow = log_follow,
    .unfollow = log_unfollow,
    .tail = log_tail,
    .close = log_close,
};

int mem_log_open(struct mem_log_disk *disk, pawl_env *env, const struct mem_log_options *options,
                 pawl_log **ret_log)
{
    const pawl_allocator *alloc = options->allocator;
    struct mem_log *log = mem_new(alloc, 1, sizeof *log);
    if (!log)
        return PAWL_ENOMEM;
    log->port.ops = &log_ops;
    log->disk = disk;
    log->env = env;
    log->options = *options;
    if (log->options.message_bytes == 0)
        log->options.message_bytes = (size_t)1 << 20;
    if (log->options.window == 0)
        log->options.window = 256;
    if (log->options.requests == 0)
        log->options.requests = 256;
    log->ops = mem_new(alloc, log->options.requests, sizeof *log->ops);
    if (!log->ops) {
        mem_free(alloc, log, sizeof *log);
        return PAWL_ENOMEM;
    }
    for (uint32_t i = 0; i < log->options.requests; i++) {
        log->ops[i].link = log->free_ops;
        log->free_ops = &log->ops[i];
    }
    log->elsewhere.fn = run_elsewhere;
    log->next = disk->logs;
    disk->logs = log;
    *ret_log = &log->port;
    return PAWL_OK;
}

int mem_log_order(pawl_log *port, const struct mem_log_fault *fault)
{
    struct mem_log *log = log_of(port);
    for (int i = 0; i < LOG_ORDERS_MAX; i++)
        if (log->orders[i].kind == 0) {
            log->orders[i] = *fault;
            return PAWL_OK;
        }
    return PAWL_EBUSY;
}

uint64_t mem_log_requests(const pawl_log *port)
{
    return ((const struct mem_log *)port)->requests;
}

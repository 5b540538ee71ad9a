/* engine/lanes/worker_reads.c: reads of outside workers, which name their lease.
 *
 *     pawl_worker_get ── resume, on the shard ──► a run ── read, on this thread, as a handler does ──► rows
 *                                                           │
 *     the lane's shard keeps what was read ◄── record ──────┘   then the worker is answered
 *     pawl_worker_commit: the run of the result gets it, and it is validated at the operation's turn
 *
 * Invariants
 *   WR1  A read is recorded before its caller is answered, under number and operation ID.
 *   WR2  A record is forgotten when its number is applied, when another attempt at the number reads, or with the
 *        lane. So there are at most as many as the lane has numbers under way, and an ID that no longer counts
 *        finds nothing.
 *   WR3  All records of a lane in a partition have at most RECORDS_BYTES_MAX. Beyond it a record says only that
 *        something was read: it stands if nothing at all was written since.
 *   WR4  A lease under which something was read is not kept over a restart, or over a new start of its lane: the record
 *        would be lost, and its result would pass without being validated. So before its first read is answered,
 *        the lease is gone from the disk (pawl_leases_unkeep). */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/lanes/handler.h"
#include "engine/lanes/impl.h"

#define BUCKETS           64
#define RECORDS_BYTES_MAX ((size_t)16 << 20)

struct read_record {
    struct read_record *next;
    uint64_t number;
    pawl_operation_id id;
    struct reads reads;
};

struct worker_reads {
    const pawl_allocator *alloc;
    size_t count;
    size_t bytes; /* of all records' reads */
    struct read_record *buckets[BUCKETS];
};

/* --- records, on the shard --- */

static void unlink_record(struct worker_reads *all, struct read_record **at)
{
    struct read_record *record = *at;
    *at = record->next;
    all->count--;
    all->bytes -= reads_held(&record->reads);
    reads_release(&record->reads);
    mem_free(all->alloc, record, sizeof *record);
}

static struct read_record *find(const struct partition_lane *pl, uint64_t number, pawl_operation_id id)
{
    if (!pl->worker_reads)
        return NULL;
    struct read_record *record = pl->worker_reads->buckets[number % BUCKETS];
    while (record && (record->number != number || record->id.high != id.high || record->id.low != id.low))
        record = record->next;
    return record;
}

bool worker_reads_has(const struct partition_lane *pl, uint64_t number, pawl_operation_id id)
{
    return find(pl, number, id) != NULL;
}

int worker_reads_copy(struct partition_lane *pl, struct run *run)
{
    const struct read_record *record = find(pl, run->number, run->id);
    return record ? reads_add(&run->seen, &record->reads) : PAWL_OK;
}

static void forget_in(struct worker_reads *all, struct read_record **bucket, uint64_t applied, uint64_t number)
{
    while (*bucket)
        if ((*bucket)->number <= applied || (*bucket)->number == number)
            unlink_record(all, bucket);
        else
            bucket = &(*bucket)->next;
}

void worker_reads_forget(struct partition_lane *pl, uint64_t applied)
{
    struct worker_reads *all = pl->worker_reads;
    for (size_t i = 0; i < BUCKETS && all->count > 0; i++)
        forget_in(all, &all->buckets[i], applied, 0);
}

void worker_reads_free(struct partition_lane *pl)
{
    struct worker_reads *all = pl->worker_reads;
    if (!all)
        return;
    worker_reads_forget(pl, UINT64_MAX);
    mem_free(all->alloc, all, sizeof *all);
    pl->worker_reads = NULL;
}

/* The record of a lease; a new one takes the place of that of an earlier attempt. NULL: no memory. */
static struct read_record *record_of(struct partition_lane *pl, const struct run *run)
{
    struct read_record *record = find(pl, run->number, run->id);
    if (record)
        return record;
    if (!pl->worker_reads) {
        pl->worker_reads = mem_new(run->alloc, 1, sizeof *pl->worker_reads);
        if (!pl->worker_reads)
            return NULL;
        pl->worker_reads->alloc = run->alloc;
    }
    struct worker_reads *all = pl->worker_reads;
    struct read_record **bucket = &all->buckets[run->number % BUCKETS];
    forget_in(all, bucket, lane_cursor(pl->lane)->applied, run->number);
    record = mem_new(run->alloc, 1, sizeof *record);
    if (!record)
        return NULL;
    record->number = run->number;
    record->id = run->id;
    reads_init(&record->reads, run->alloc);
    reads_reset(&record->reads, UINT64_MAX);
    record->next = *bucket;
    *bucket = record;
    all->count++;
    return record;
}

/* --- one read --- */

struct reading {
    struct job *job;
    uint64_t number;
    pawl_operation_id id;
    bool unkept; /* this was the first read: the lease was kept until now */
    int status;
};

static void resume_here(void *arg)
{
    struct reading *r = arg;
    struct partition_lane *pl = r->job->pl;
    bool again = false;
    r->status = PAWL_EFENCED;
    if (pl->lane && !pl->closing)
        r->status = lane_resume(pl->lane, r->number, r->id, &r->job->run, &again);
    if (r->status == PAWL_OK && again)
        r->status = PAWL_EFENCED; /* its result was handed in: what it reads now would not count */
}

static void record_here(void *arg)
{
    struct reading *r = arg;
    struct partition_lane *pl = r->job->pl;
    r->status = PAWL_EFENCED;
    if (!pl->lane || pl->closing)
        return;
    struct read_record *record = record_of(pl, &r->job->run);
    r->status = record ? PAWL_OK : PAWL_ENOMEM;
    if (!record)
        return;
    struct worker_reads *all = pl->worker_reads;
    r->unkept = lane_unkeep(pl->lane, r->number, r->id);
    all->bytes -= reads_held(&record->reads);
    r->status = reads_add(&record->reads, &r->job->run.seen);
    if (all->bytes + reads_held(&record->reads) > RECORDS_BYTES_MAX)
        reads_coarsen(&record->reads); /* WR3 */
    all->bytes += reads_held(&record->reads);
}

/* What is asked; text is made, or rows are visited. */
struct asked {
    const char *entity;
    bool many;
    pawl_bytes json;
    pawl_key key;
    pawl_cursor *cursor;
    size_t limit;
    pawl_row_visit visit;
    void *arg;
    pawl_text *text; /* NULL: visit */
};

static int ask(pawl_handler_ctx *ctx, const struct asked *a, pawl_error *error)
{
    if (a->text)
        return a->many ? pawl_handler_list(ctx, a->entity, a->json, a->limit, a->text, error)
                       : pawl_handler_get(ctx, a->entity, a->json, a->text, error);
    return a->many ? pawl_handler_scan(ctx, a->entity, a->key, a->cursor, a->limit, a->visit, a->arg, error)
                   : pawl_handler_read(ctx, a->entity, a->key, a->visit, a->arg, error);
}

/* Read as a handler does. Then job->run.seen has what was read. */
static int read_here(pawl_engine *e, struct job *job, const struct asked *a, pawl_error *error)
{
    struct run_buffers buffers;
    struct event event;
    int status = event_decode((pawl_bytes){job->run.event->bytes, job->run.event->size}, &event, error);
    if (status != PAWL_OK)
        return status;
    status = run_buffers_init(&buffers, e->options.allocator);
    pawl_handler_ctx ctx = {.job = job,
                            .engine = e,
                            .store = shard_of(e, job->run.partition)->store,
                            .buffers = &buffers,
                            .wsid = event.envelope.wsid};
    status = status == PAWL_OK ? ask(&ctx, a, error) : error_set(error, status, "no memory for a read");
    run_buffers_release(&buffers);
    return status;
}

static int read_and_record(pawl_engine *e, struct reading *r, const struct asked *a, pawl_error *error)
{
    struct job *job = r->job;
    int answer = read_here(e, job, a, error);
    if ((answer != PAWL_OK && answer != PAWL_ENOTFOUND) || reads_is_blind(&job->run.seen))
        return answer;
    int status = partition_call(e, job->run.partition, record_here, r);
    status = status == PAWL_OK ? r->status : status;
    if (status == PAWL_OK && r->unkept)
        status = kept_leases_settle(job->pl, error);
    if (status == PAWL_OK)
        return answer;
    if (answer == PAWL_OK && a->text)
        pawl_text_free(a->text);
    return error_set(error, status, "cannot record what operation %" PRIu64 " has read: %s", r->number,
                     pawl_status_text(status));
}

static int read_in(struct generation *g, const pawl_worker_lease *lease, const struct asked *a, bool *ret_found,
                   pawl_error *error)
{
    pawl_engine *e = g->engine;
    struct job *job = job_new(&g->lanes[lease->partition]);
    if (!job)
        return error_set(error, PAWL_ENOMEM, "no memory for a read");
    struct reading r = {.job = job, .number = lease->number, .id = lease->operation};
    int status = partition_call(e, lease->partition, resume_here, &r);
    status = status == PAWL_OK ? r.status : status;
    *ret_found = status == PAWL_OK;
    if (status == PAWL_OK)
        status = read_and_record(e, &r, a, error);
    else if (status == PAWL_EFENCED)
        error_set(error, status, "operation %" PRIu64 " of %s is not leased to this worker", lease->number,
                  lease->lane);
    else
        error_set(error, status, "operation %" PRIu64 " of %s: %s", lease->number, lease->lane,
                  pawl_status_text(status));
    job_free(job);
    return status;
}

/* Both generations of a lane may have leased this number: the operation's ID tells which one is meant. */
static int read_for(pawl_engine *e, const pawl_worker_lease *lease, const struct asked *a, pawl_error *error)
{
    const struct schema_lane *lane;
    struct generation *g = NULL;
    bool found = false;
    int status = worker_lease_find(e, lease, &lane, error);
    if (status != PAWL_OK)
        return status;
    status = error_set(error, PAWL_EFENCED, "no generation of lane %s is open", lease->lane);
    while (!found && (status == PAWL_EFENCED || status == PAWL_EBUSY) && (g = generation_hold_next(e, g))) {
        pawl_error why = {0};
        if (g->id != lane->id)
            continue;
        int one = read_in(g, lease, a, &found, &why);
        if (!found && one == PAWL_EFENCED && status == PAWL_EBUSY)
            continue; /* the generation that was busy may have the lease */
        status = one == PAWL_OK ? one : error_set(error, one, "%s", why.text);
    }
    if (g)
        generation_release(g);
    return status;
}

int pawl_worker_get(pawl_engine *e, const pawl_worker_lease *lease, const char *entity, pawl_bytes key,
                    pawl_text *ret_text, pawl_error *error)
{
    struct asked a = {.entity = entity, .json = key, .text = ret_text};
    return read_for(e, lease, &a, error);
}

int pawl_worker_list(pawl_engine *e, const pawl_worker_lease *lease, const char *entity, pawl_bytes after,
                     size_t limit, pawl_text *ret_text, pawl_error *error)
{
    struct asked a = {.entity = entity, .many = true, .json = after, .limit = limit, .text = ret_text};
    return read_for(e, lease, &a, error);
}

int pawl_worker_read(pawl_engine *e, const pawl_worker_lease *lease, const char *entity, pawl_key key,
                     pawl_row_visit visit, void *arg, pawl_error *error)
{
    struct asked a = {.entity = entity, .key = key, .visit = visit, .arg = arg};
    return read_for(e, lease, &a, error);
}

int pawl_worker_scan(pawl_engine *e, const pawl_worker_lease *lease, const char *entity, pawl_key after,
                     pawl_cursor *cursor, size_t limit, pawl_row_visit visit, void *arg, pawl_error *error)
{
    struct asked a = {.entity = entity,
                      .many = true,
                      .key = after,
                      .cursor = cursor,
                      .limit = limit,
                      .visit = visit,
                      .arg = arg};
    return read_for(e, lease, &a, error);
}

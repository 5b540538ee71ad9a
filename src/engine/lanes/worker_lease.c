/* engine/lanes/worker_lease.c: leases for outside workers: acquire, extend, release. worker_commit.c has
 * commit.
 *
 * A worker calls on a thread of its own; the call reaches the lane on the lane's shard. There the lease is queued
 * to be kept, and the worker's own thread waits until it is durable (E4). */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/lanes/impl.h"
#include "engine/lanes/worker_pool.h"
#include "engine/read/read.h"

/* --- waiting for something to lease: under lanes.lock --- */

static void leave(struct lanes *lanes, struct lease_wait *wait)
{
    *wait->link = wait->next;
    if (wait->next)
        wait->next->link = wait->link;
    if (atomic_fetch_sub(&lanes->waiting, 1) == 1)
        pthread_cond_broadcast(&lanes->waits_gone);
}

static void join(struct lanes *lanes, struct lease_wait *wait, uint16_t projector)
{
    *wait = (struct lease_wait){.projector = projector};
    latch_init(&wait->latch);
    pthread_mutex_lock(&lanes->lock);
    struct lease_wait **at = &lanes->waits; /* first come, first served */
    while (*at)
        at = &(*at)->next;
    *at = wait;
    wait->link = at;
    atomic_fetch_add(&lanes->waiting, 1);
    pthread_mutex_unlock(&lanes->lock);
}

/* Wakes one worker. If there is more than it takes, that worker wakes the next one: see try_acquire. */
void leases_offer(pawl_engine *e, uint16_t projector)
{
    struct lanes *lanes = e->lanes;
    if (atomic_load(&lanes->armed) > 0)
        watches_tell(e, projector);
    if (atomic_load(&lanes->waiting) == 0)
        return;
    pthread_mutex_lock(&lanes->lock);
    for (struct lease_wait *w = lanes->waits; w; w = w->next)
        if (w->projector == projector && !w->told) {
            w->told = true;
            latch_set(&w->latch);
            break;
        }
    pthread_mutex_unlock(&lanes->lock);
}

/* Whether a worker waits for an operation of this projector, or is served by somebody who watches for one. */
static bool is_awaited(struct lanes *lanes, uint16_t projector)
{
    pthread_mutex_lock(&lanes->lock);
    bool awaited = watches_has(lanes, projector);
    for (const struct lease_wait *w = lanes->waits; w && !awaited; w = w->next)
        awaited = w->projector == projector;
    pthread_mutex_unlock(&lanes->lock);
    return awaited;
}

bool leases_is_starving(const struct partition_lane *pl)
{
    const struct generation *g = pl->generation;
    if (!pl->lane || pl->closing)
        return false;
    for (uint32_t i = 0; i < g->projections; i++)
        if (lane_offers_next(pl->lane, i))
            return !worker_pool_is_staffed(&g->pools[i])
                   && !is_awaited(g->engine->lanes, g->pools[i].projector->id);
    return false;
}

void leases_close(pawl_engine *e)
{
    struct lanes *lanes = e->lanes;
    pthread_mutex_lock(&lanes->lock);
    for (struct lease_wait *w = lanes->waits; w; w = w->next)
        if (!w->told) {
            w->told = true;
            latch_set(&w->latch);
        }
    while (lanes->waits)
        pthread_cond_wait(&lanes->waits_gone, &lanes->lock);
    pthread_mutex_unlock(&lanes->lock);
}

/* --- acquire --- */

struct acquiring {
    struct generation *generation;
    uint32_t projection;
    uint32_t first; /* the partition to begin with */
    uint32_t shard;
    pawl_duration duration;
    struct job *job;
    struct partition_lane *pl; /* that gave the lease; NULL: none did */
    bool more;                 /* pl has more to lease */
    int status;                /* why pl did not give it though it has one */
};

static void acquire_here(void *arg)
{
    struct acquiring *a = arg;
    pawl_engine *e = a->generation->engine;
    uint32_t partitions = e->file.partitions;
    for (uint32_t i = 0; i < partitions && !a->pl; i++) {
        struct partition_lane *pl = &a->generation->lanes[(a->first + i) % partitions];
        if (shard_of(e, pl->partition)->index != a->shard || !pl->lane || pl->closing)
            continue;
        int status = lane_acquire_kept(pl->lane, a->projection, a->duration, &a->job->run);
        if (status != PAWL_OK && status != PAWL_ENOTFOUND)
            a->status = status;
        if (status != PAWL_OK)
            continue;
        a->pl = pl;
        a->more = lane_offer(pl->lane, a->projection) != 0;
    }
}

/* From any partition. A random one is tried first, so that each gets its share. PAWL_ENOTFOUND: there is none. */
static int acquire_from(struct generation *g, uint32_t projection, pawl_duration duration, struct job *job,
                        bool *ret_more)
{
    pawl_engine *e = g->engine;
    struct acquiring a = {.generation = g, .projection = projection, .duration = duration, .job = job};
    a.first = (uint32_t)(pawl_env_random(e->env) % e->file.partitions);
    for (uint32_t i = 0; i < e->file.shards && !a.pl; i++) {
        a.shard = (a.first + i) % e->file.shards;
        if (pawl_env_call(e->env, a.shard, acquire_here, &a) != PAWL_OK)
            return PAWL_ENOTFOUND;
    }
    if (!a.pl)
        return a.status != PAWL_OK ? a.status : PAWL_ENOTFOUND;
    job->pl = a.pl;
    *ret_more = a.more;
    return PAWL_OK;
}

/* What a lease points to. The texts are the names, each with a 0 behind it, and the event's bytes. */
struct lease_memory {
    const pawl_allocator *alloc;
    size_t size;
    struct json_out out; /* for the event's JSON */
    struct pawl_event_source source;
    pawl_event event;
    char text[];
};

static struct lease_memory *lease_memory_new(const pawl_allocator *alloc, size_t text)
{
    size_t size = sizeof(struct lease_memory) + text;
    struct lease_memory *memory = mem_new(alloc, 1, size);
    if (!memory)
        return NULL;
    memory->alloc = alloc;
    memory->size = size;
    json_out_init(&memory->out, alloc);
    return memory;
}

static void lease_memory_free(struct lease_memory *memory)
{
    json_out_release(&memory->out);
    mem_free(memory->alloc, memory, memory->size);
}

static char *put_bytes(char *at, pawl_bytes bytes)
{
    memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

/* The lane's copy of the event ends with the run; the lease has one of its own. */
static int fill_lease(struct job *job, pawl_worker_lease *ret_lease, pawl_error *error)
{
    const struct run *run = &job->run;
    const struct generation *g = job->pl->generation;
    pawl_bytes projector = run->projector->name, event = {run->event->bytes, run->event->size};
    struct lease_memory *memory =
        lease_memory_new(run->alloc, g->name.size + 1 + projector.size + 1 + event.size);
    if (!memory)
        return error_set(error, PAWL_ENOMEM, "no memory for a lease");
    char *lane = memory->text;
    char *name = put_bytes(lane, g->name) + 1;
    char *body = put_bytes(name, projector) + 1;
    (void)put_bytes(body, event);
    int status = event_show(g->engine, run->partition, run->event->offset, (pawl_bytes){body, event.size},
                            &memory->out, &memory->source, &memory->event, error);
    if (status != PAWL_OK) {
        lease_memory_free(memory);
        return status;
    }
    *ret_lease = (pawl_worker_lease){.partition = run->partition,
                                     .lane = lane,
                                     .projector = name,
                                     .number = run->number,
                                     .operation = run->id,
                                     .attempt = run->attempt,
                                     .expires_in = run->duration,
                                     .event = &memory->event,
                                     .memory = memory};
    return PAWL_OK;
}

void pawl_worker_lease_free(pawl_worker_lease *lease)
{
    if (lease->memory)
        lease_memory_free(lease->memory);
    *lease = (pawl_worker_lease){0};
}

static void release_here(void *arg);

/* The job has a lease: when it is durable, it is the worker's. If anything fails, it is given back. */
static int answer(struct job *job, pawl_worker_lease *ret_lease, pawl_error *error)
{
    pawl_worker_lease lease;
    int status = fill_lease(job, &lease, error);
    if (status == PAWL_OK) {
        status = kept_leases_settle(job->pl, error); /* E4 */
        if (status == PAWL_OK) {
            *ret_lease = lease;
            return status;
        }
        pawl_worker_lease_free(&lease);
        error_wrap(error, status, "the lease cannot be kept");
    }
    (void)partition_call(job->pl->generation->engine, job->run.partition, release_here, job);
    return status;
}

/* Lease an operation of one projection. PAWL_ENOTFOUND: there is none. */
static int acquire_one(struct generation *g, uint32_t projection, pawl_duration duration,
                       pawl_worker_lease *ret_lease, pawl_error *error)
{
    bool more;
    struct job *job = job_new(&g->lanes[0]);
    if (!job)
        return error_set(error, PAWL_ENOMEM, "no memory for a lease");
    int status = acquire_from(g, projection, duration, job, &more);
    if (status == PAWL_OK) {
        if (more) /* before waiting: then the next one waits for the same sync */
            leases_offer(g->engine, g->pools[projection].projector->id);
        status = answer(job, ret_lease, error);
    } else if (status != PAWL_ENOTFOUND)
        error_set(error, status, "the lease cannot be kept: %s", pawl_status_text(status));
    job_free(job);
    return status;
}

/* Lease an operation of any of the lane's generations, the oldest first. *ret_found: whether there was one. */
static int try_acquire(pawl_engine *e, uint16_t projector, pawl_duration duration, bool *ret_found,
                       pawl_worker_lease *ret_lease, pawl_error *error)
{
    struct generation *g = NULL;
    int status = PAWL_ENOTFOUND;
    while (status == PAWL_ENOTFOUND && (g = generation_hold_next(e, g)))
        for (uint32_t i = 0; i < g->projections && status == PAWL_ENOTFOUND; i++)
            if (g->pools[i].projector->id == projector && !worker_pool_is_staffed(&g->pools[i]))
                status = acquire_one(g, i, duration, ret_lease, error);
    if (g)
        generation_release(g);
    *ret_found = status == PAWL_OK;
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

int worker_projector_find(pawl_engine *e, const char *name, uint16_t *ret_id, pawl_error *error)
{
    const struct schema_projector *p =
        schema_projector_by_name(engine_schema(e), (pawl_bytes){name, strlen(name)});
    if (!p)
        return error_set(error, PAWL_ENOTFOUND, "there is no projector %s", name);
    if (!p->handler)
        return error_set(error, PAWL_EINVAL, "%s has actions in the schema, so it takes no workers", name);
    pthread_mutex_lock(&e->lanes->lock);
    const struct handler *h = e->lanes->handlers;
    while (h && h->projector != p->id)
        h = h->next;
    pthread_mutex_unlock(&e->lanes->lock);
    if (h)
        return error_set(error, PAWL_EEXISTS, "%s has a handler in the engine's own process", name);
    *ret_id = p->id;
    return PAWL_OK;
}

int pawl_worker_acquire(pawl_engine *e, const char *name, pawl_duration duration, pawl_duration wait,
                        pawl_worker_lease *ret_lease, pawl_error *error)
{
    uint16_t projector;
    bool found = false;
    int status = engine_enter_writing(e, error);
    if (status == PAWL_OK)
        status = worker_projector_find(e, name, &projector, error);
    if (status == PAWL_OK)
        status = local_start(e->local, error);
    if (status == PAWL_OK)
        status = try_acquire(e, projector, duration, &found, ret_lease, error);
    if (status != PAWL_OK || found)
        return status;
    pawl_instant deadline = engine_deadline(e, wait);
    bool late = wait == 0;
    while (!found && !late && status == PAWL_OK) {
        struct lease_wait waiting;
        join(e->lanes, &waiting, projector);
        status = try_acquire(e, projector, duration, &found, ret_lease, error); /* it may have been offered */
        if (!found && status == PAWL_OK)
            late = latch_wait_until(&waiting.latch, deadline) != PAWL_OK;
        pthread_mutex_lock(&e->lanes->lock);
        bool told = waiting.told, closing = atomic_load(&e->closing);
        leave(e->lanes, &waiting);
        pthread_mutex_unlock(&e->lanes->lock);
        /* Do not touch a closing engine after this: closing it waits only until the last worker has left. */
        if (closing && !found && status == PAWL_OK)
            return error_set(error, PAWL_ECLOSED, "the engine is being closed");
        if (told && !closing && (found || late || status != PAWL_OK))
            leases_offer(e, projector); /* this worker does not need the offer: pass it on */
    }
    if (status != PAWL_OK || found)
        return status;
    return error_set(error, PAWL_ENOTFOUND, "%s has nothing to lease now", name);
}

/* --- extend and release --- */

struct saying {
    uint64_t number;
    pawl_operation_id id;
    pawl_duration duration;
    bool failed, permanent;
    const char *words;
    struct partition_lane *pl;
    int status;
};

/* NULL: it is closed, and s->status says what this means. */
static struct lane *lane_of(struct saying *s)
{
    s->status = partition_lane_refusal(s->pl);
    return s->pl->closing ? NULL : s->pl->lane;
}

static void release_here(void *arg)
{
    struct job *job = arg;
    if (job->pl->lane && !job->pl->closing)
        (void)lane_release(job->pl->lane, job->run.number, job->run.id, "it could not be answered");
}

static void extend_here(void *arg)
{
    struct saying *s = arg;
    struct lane *lane = lane_of(s);
    if (lane)
        s->status = lane_extend(lane, s->number, s->id, s->duration);
}

static void end_here(void *arg)
{
    struct saying *s = arg;
    struct lane *lane = lane_of(s);
    if (lane && s->failed && worker_reads_has(s->pl, s->number, s->id))
        s->status = worker_fail(s->pl, s->number, s->id, s->permanent, s->words);
    else if (lane)
        s->status = s->failed ? lane_fail(lane, s->number, s->id, s->permanent, s->words)
                              : lane_release(lane, s->number, s->id, s->words);
}

int worker_lease_find(pawl_engine *e, const pawl_worker_lease *lease, const struct schema_lane **ret_lane,
                      pawl_error *error)
{
    if (!lease->lane)
        return error_set(error, PAWL_EINVAL, "the lease names no lane");
    return lanes_find_in_partition(e, lease->partition, lease->lane, ret_lane, error);
}

/* Both generations of a lane may have leased this number: the operation's ID tells which one is meant. What was
 * said is durable when this returns: a longer time, or that the lease is over. */
static int say(pawl_engine *e, const pawl_worker_lease *lease, struct saying *s, void (*fn)(void *arg),
               pawl_error *error)
{
    const struct schema_lane *lane;
    int status = worker_lease_find(e, lease, &lane, error);
    if (status != PAWL_OK)
        return status;
    struct generation *g = NULL;
    bool busy = false; /* a generation that may have the lease cannot tell now */
    s->status = PAWL_EFENCED;
    while (status == PAWL_OK && (s->status == PAWL_EFENCED || s->status == PAWL_EBUSY)
           && (g = generation_hold_next(e, g))) {
        if (g->id != lane->id)
            continue;
        s->pl = &g->lanes[lease->partition];
        status = partition_call(e, lease->partition, fn, s);
        busy = busy || s->status == PAWL_EBUSY;
    }
    if (status == PAWL_OK)
        status = s->status == PAWL_EFENCED && busy ? PAWL_EBUSY : s->status;
    if (status == PAWL_OK)
        status = kept_leases_settle(s->pl, error);
    else if (status == PAWL_EFENCED)
        error_set(error, status, "operation %" PRIu64 " of %s is not leased to this worker", s->number,
                  lease->lane);
    else if (status == PAWL_EBUSY)
        error_set(error, status, "the lane is recovering");
    else
        error_set(error, status, "%s", pawl_status_text(status));
    if (g)
        generation_release(g);
    return status;
}

int pawl_worker_extend(pawl_engine *e, const pawl_worker_lease *lease, pawl_duration duration,
                       pawl_error *error)
{
    struct saying s = {.number = lease->number, .id = lease->operation, .duration = duration};
    return say(e, lease, &s, extend_here, error);
}

int pawl_worker_release(pawl_engine *e, const pawl_worker_lease *lease, bool failed, bool permanent,
                        const char *words, pawl_error *error)
{
    struct saying s = {.number = lease->number,
                       .id = lease->operation,
                       .failed = failed,
                       .permanent = permanent,
                       .words = words ? words : ""};
    return say(e, lease, &s, end_here, error);
}

/* --- a worker that waits, and is needed elsewhere --- */

static void starving_here(void *arg)
{
    struct saying *s = arg;
    s->status = leases_is_starving(s->pl) ? PAWL_OK : PAWL_ENOTFOUND;
}

bool pawl_worker_is_needed(pawl_engine *e, const pawl_worker_lease *lease)
{
    const struct schema_lane *lane;
    struct generation *g = NULL;
    struct saying s = {.status = PAWL_ENOTFOUND};
    if (worker_lease_find(e, lease, &lane, NULL) != PAWL_OK)
        return false;
    while (s.status != PAWL_OK && (g = generation_hold_next(e, g))) {
        if (g->id != lane->id)
            continue;
        s.pl = &g->lanes[lease->partition];
        if (partition_call(e, lease->partition, starving_here, &s) != PAWL_OK)
            break;
    }
    if (g)
        generation_release(g);
    return s.status == PAWL_OK;
}

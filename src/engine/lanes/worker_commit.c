/* engine/lanes/worker_commit.c: commits of outside workers.
 *
 * The result is exploded on the worker's own thread, and handed in to the lane. The worker waits there for the
 * operation's turn. If its time is over before that, it leaves, and the run goes on without it. It also leaves if the
 * operation that its own waits for can be leased and nobody waits for it: if all workers waited here, none would
 * do what they wait for. */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "engine/lanes/impl.h"
#include "engine/lanes/results.h"
#include "engine/lanes/worker_pool.h"

#define LOOK_EVERY (100 * PAWL_MILLISECOND) /* whether the worker is needed elsewhere */

/* What the waiting worker and the run share. Whoever ends last frees it. */
struct worker_commit {
    struct job job;
    struct generation *generation; /* held */
    bool left;                     /* the worker no longer waits; only its shard touches this and the next */
    bool finished;                 /* the run has ended */
    int status;
    struct latch latch;
};

static void commit_free(struct worker_commit *commit)
{
    const pawl_allocator *alloc = commit->job.run.alloc;
    struct generation *g = commit->generation;
    results_forget(&commit->job);
    run_release(&commit->job.run);
    mem_free(alloc, commit, sizeof *commit);
    generation_release(g);
}

void worker_commit_finished(struct job *job, int status)
{
    struct worker_commit *commit = job->commit;
    commit->finished = true;
    commit->status = status;
    if (commit->left)
        commit_free(commit);
    else
        latch_set(&commit->latch);
}

static void commit_finished(struct run *run, int status)
{
    worker_commit_finished(heap_entry(run, struct job, run), status);
}

static void hand_in_here(void *arg)
{
    struct worker_commit *commit = arg;
    struct partition_lane *pl = commit->job.pl;
    commit->job.run.finished = commit_finished;
    int status =
        pl->lane && !pl->closing ? lane_hand_in(pl->lane, &commit->job.run) : partition_lane_refusal(pl);
    if (status != PAWL_OK)
        worker_commit_finished(&commit->job, status);
}

struct resuming {
    struct worker_commit *commit;
    pawl_operation_id id;
    uint64_t number;
    bool again; /* a result was committed under this ID before: this one is not used */
    int status;
};

static void resume_here(void *arg)
{
    struct resuming *r = arg;
    struct partition_lane *pl = r->commit->job.pl;
    r->status = pl->lane && !pl->closing
                    ? lane_resume(pl->lane, r->number, r->id, &r->commit->job.run, &r->again)
                    : partition_lane_refusal(pl);
    if (r->status == PAWL_OK && !r->again)
        r->status = worker_reads_copy(pl, &r->commit->job.run);
}

struct leaving {
    struct worker_commit *commit;
    bool late; /* its time is over: it leaves in any case */
    bool left;
    bool idle; /* the run only waited to be told how its operation ended: the worker frees it */
    bool soon; /* the lane reads the log for the run, and finishes it when it has */
};

static void leave_here(void *arg)
{
    struct leaving *l = arg;
    struct worker_commit *commit = l->commit;
    struct lane *lane = commit->job.pl->lane;
    if (commit->finished || !(l->late || leases_is_starving(commit->job.pl)))
        return;
    l->soon = commit->job.run.lookup_lane;
    l->idle = !l->soon && lane && lane_leave(lane, &commit->job.run);
    l->left = commit->left = !l->soon && !l->idle;
}

/* Turn the result into writes. PAWL_EINVAL, PAWL_ETOOBIG: the result is not valid. Others: the rows that it
 * changes cannot be read now. In all cases the worker keeps its lease. */
static int explode_result(struct job *job, pawl_results_fill fill, void *arg, pawl_error *error)
{
    struct generation *g = job->pl->generation;
    pawl_engine *e = g->engine;
    struct pawl_results results;
    struct run_buffers buffers;
    struct event event;
    int status = event_decode((pawl_bytes){job->run.event->bytes, job->run.event->size}, &event, error);
    if (status != PAWL_OK)
        return status;
    results_init(&results, job, g->pools[job->run.projection].cache, &event);
    status = fill(arg, &results);
    if (status != PAWL_OK && results.error.code == PAWL_OK)
        error_set(&results.error, status, "the worker's function says: %s", pawl_status_text(status));
    if (status == PAWL_OK)
        status = results_finish(&results);
    results_release(&results);
    if (status != PAWL_OK)
        return error_set(error, status, "%s", results.error.text);
    status = run_buffers_init(&buffers, e->options.allocator);
    if (status == PAWL_OK)
        status = run_explode(&job->run, shard_of(e, job->run.partition)->store, &buffers, error);
    run_buffers_release(&buffers);
    return status == PAWL_OK ? status
                             : error_set(error, status, "cannot read the rows that the result changes: %s",
                                         pawl_status_text(status));
}

static int outcome(const struct worker_commit *commit, pawl_error *error)
{
    const struct run *run = &commit->job.run;
    switch (commit->status) {
    case PAWL_OK: return PAWL_OK;
    case PAWL_EINVAL:
    case PAWL_ETOOBIG: return error_set(error, commit->status, "at its turn: %s", run->error.text);
    case PAWL_ECONFLICT:
        return error_set(error, PAWL_ECONFLICT,
                         "operation %" PRIu64
                         " is given out again, because rows that it rests on have changed, or the store failed",
                         run->number);
    case PAWL_EBUSY: return error_set(error, PAWL_EBUSY, "the lane is recovering");
    default:
        if (atomic_load(&commit->generation->engine->closing))
            return error_set(error, PAWL_ECLOSED, "the engine is being closed");
        return error_set(error, PAWL_EFENCED, "operation %" PRIu64 " is no longer leased to this worker",
                         run->number);
    }
}

static int wait_for_turn(pawl_engine *e, struct worker_commit *commit, pawl_duration wait, pawl_error *error)
{
    uint32_t shard = shard_of(e, commit->job.run.partition)->index;
    uint64_t number = commit->job.run.number;
    pawl_instant deadline = engine_deadline(e, wait);
    int status = pawl_env_call(e->env, shard, hand_in_here, commit);
    if (status != PAWL_OK) {
        commit_free(commit);
        return error_set(error, status, "the engine is being closed");
    }
    struct leaving leaving = {.commit = commit};
    bool over = false;
    while (!over && status == PAWL_OK) {
        pawl_instant look = engine_deadline(e, LOOK_EVERY);
        leaving.late = deadline.ns <= look.ns;
        over = latch_wait_until(&commit->latch, leaving.late ? deadline : look) == PAWL_OK;
        if (!over)
            status = pawl_env_call(e->env, shard, leave_here, &leaving);
        over = over || leaving.late || leaving.left || leaving.idle || leaving.soon;
    }
    if (leaving.soon || status != PAWL_OK) /* an engine that is being closed tells everybody */
        latch_wait(&commit->latch);
    if (leaving.idle)
        commit_free(commit);
    if (leaving.left || leaving.idle)
        return error_set(error, PAWL_ETIMEOUT,
                         "operation %" PRIu64 " is handed in, and waits for the operations before it", number);
    status = outcome(commit, error);
    commit_free(commit);
    return status;
}

static struct worker_commit *commit_new(struct generation *g, uint16_t partition)
{
    const pawl_allocator *alloc = g->engine->options.allocator;
    struct worker_commit *commit = mem_new(alloc, 1, sizeof *commit);
    if (!commit)
        return NULL;
    latch_init(&commit->latch);
    run_init(&commit->job.run, alloc);
    commit->job.commit = commit;
    commit->job.pl = &g->lanes[partition];
    commit->generation = g;
    generation_hold_more(g); /* its caller may let go of it before the run ends */
    return commit;
}

int worker_fail(struct partition_lane *pl, uint64_t number, pawl_operation_id id, bool permanent,
                const char *words)
{
    bool again = false;
    struct worker_commit *commit = commit_new(pl->generation, pl->partition);
    if (!commit)
        return PAWL_ENOMEM;
    commit->left = true; /* nobody waits for it */
    commit->job.run.finished = commit_finished;
    int status = lane_resume(pl->lane, number, id, &commit->job.run, &again);
    if (status == PAWL_OK && again)
        status = PAWL_EFENCED; /* its result was handed in */
    if (status == PAWL_OK)
        status = worker_reads_copy(pl, &commit->job.run);
    if (status != PAWL_OK || !lane_fail_run(pl->lane, &commit->job.run, permanent, words))
        commit_free(commit);
    return status;
}

/* Commit to one generation. PAWL_EFENCED: it has no such lease, or no longer. */
static int commit_to(struct generation *g, uint16_t partition, struct resuming *r, pawl_results_fill fill,
                     void *arg, pawl_duration wait, pawl_error *error)
{
    pawl_engine *e = g->engine;
    r->commit = commit_new(g, partition);
    if (!r->commit)
        return error_set(error, PAWL_ENOMEM, "no memory for a commit");
    int status = partition_call(e, partition, resume_here, r);
    if (status == PAWL_OK)
        status = r->status;
    if (status == PAWL_EBUSY)
        error_set(error, status, "the lane is recovering");
    else if (status == PAWL_EFENCED)
        error_set(error, status, "operation %" PRIu64 " is not leased to this worker", r->number);
    else if (status != PAWL_OK)
        error_set(error, status, "%s", pawl_status_text(status));
    else if (!r->again)
        status = explode_result(&r->commit->job, fill, arg, error);
    if (status == PAWL_OK)
        return wait_for_turn(e, r->commit, wait, error);
    commit_free(r->commit);
    return status;
}

int pawl_worker_commit(pawl_engine *e, const pawl_worker_lease *lease, pawl_results_fill fill, void *arg,
                       pawl_duration wait, pawl_error *error)
{
    const struct schema_lane *lane;
    struct resuming r = {.id = lease->operation, .number = lease->number};
    struct generation *g = NULL;
    int status = worker_lease_find(e, lease, &lane, error);
    if (status != PAWL_OK)
        return status;
    status = error_set(error, PAWL_EFENCED, "no generation of lane %s is open", lease->lane);
    while ((status == PAWL_EFENCED || status == PAWL_EBUSY) && (g = generation_hold_next(e, g))) {
        pawl_error why = {0};
        if (g->id != lane->id)
            continue;
        int one = commit_to(g, lease->partition, &r, fill, arg, wait, &why);
        if (one == PAWL_EFENCED && status == PAWL_EBUSY)
            continue; /* the generation that was busy may have the lease */
        status = one == PAWL_OK ? one : error_set(error, one, "%s", why.text);
    }
    if (g)
        generation_release(g);
    return status;
}

static int fill_from_json(void *arg, pawl_results *results)
{
    return pawl_results_json(results, *(const pawl_bytes *)arg, NULL);
}

int pawl_worker_commit_json(pawl_engine *e, const pawl_worker_lease *lease, pawl_bytes json, pawl_duration wait,
                            pawl_error *error)
{
    return pawl_worker_commit(e, lease, fill_from_json, &json, wait, error);
}

/* crowd.c: commands under way. Whoever is told the outcome of one sends the next, on the engine's own thread.
 */
#include "bench/lib/crowd.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/latch.h"
#include "bench/lib/bench.h"

struct flight {
    struct running *running;
    pawl_request *request;
    uint64_t n;
};

struct running {
    const struct crowd *crowd;
    _Atomic uint64_t sent, answered;
    _Atomic unsigned flying;
    atomic_bool failed;
    struct latch over;
    struct flight *flights;
};

static void fail(struct running *r, const pawl_error *error)
{
    bench_failed("command", error);
    atomic_store(&r->failed, true);
}

static void land(struct running *r)
{
    if (atomic_fetch_sub(&r->flying, 1) == 1)
        latch_set(&r->over);
}

static bool is_over(const struct running *r, uint64_t n)
{
    const struct crowd *c = r->crowd;
    return atomic_load(&r->failed) || (c->most && n >= c->most) || (c->deadline && bench_now() >= c->deadline);
}

static void flown(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                  const pawl_error *error);

static void fly(struct flight *f)
{
    struct running *r = f->running;
    const struct crowd *c = r->crowd;
    pawl_error error = {0};
    if (is_over(r, f->n)) {
        land(r);
        return;
    }
    c->make(c->arg, f->request, f->n);
    if (pawl_command_async(c->engine, f->request, flown, f, &error) != PAWL_OK) {
        fail(r, &error);
        land(r);
    }
}

static void fly_next(struct flight *f)
{
    f->n = atomic_fetch_add_explicit(&f->running->sent, 1, memory_order_relaxed);
    fly(f);
}

static void flown(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                  const pawl_error *error)
{
    struct flight *f = arg;
    struct running *r = f->running;
    if (status == PAWL_EBUSY) {
        fly(f);
        return;
    }
    if (status == PAWL_OK)
        atomic_fetch_add_explicit(&r->answered, 1, memory_order_relaxed);
    else
        fail(r, error);
    fly_next(f);
}

uint64_t crowd_run(const struct crowd *crowd)
{
    size_t count = crowd->under_way ? crowd->under_way : CROWD;
    struct running r = {
        .crowd = crowd, .flying = (unsigned)count, .flights = calloc(count, sizeof r.flights[0])};
    int status = r.flights ? PAWL_OK : PAWL_ENOMEM;
    latch_init(&r.over);
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        r.flights[i].running = &r;
        status = pawl_request_new(crowd->engine, &r.flights[i].request);
    }
    for (size_t i = 0; i < count && status == PAWL_OK; i++)
        fly_next(&r.flights[i]);
    if (status == PAWL_OK)
        latch_wait(&r.over);
    for (size_t i = 0; r.flights && i < count; i++)
        pawl_request_free(r.flights[i].request);
    free(r.flights);
    return status == PAWL_OK && !atomic_load(&r.failed) ? atomic_load(&r.answered) : 0;
}

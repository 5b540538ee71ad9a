/* crowd.c: commands under way. Whoever is told the outcome of one sends the next: on the engine's own thread, or on
 * one that has waited for it. */
#include "bench/lib/crowd.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/latch.h"
#include "bench/lib/bench.h"

struct flight {
    struct running *running;
    pawl_request *request;
    uint64_t n;
    pthread_t thread; /* of crowd_block */
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

static void *block(void *arg)
{
    struct flight *f = arg;
    struct running *r = f->running;
    const struct crowd *c = r->crowd;
    pawl_error error = {0};
    uint64_t n;
    while (!is_over(r, n = atomic_fetch_add_explicit(&r->sent, 1, memory_order_relaxed))) {
        int status;
        do {
            c->make(c->arg, f->request, n);
            status = pawl_command(c->engine, f->request, NULL, &error);
        } while (status == PAWL_EBUSY);
        if (status == PAWL_OK)
            atomic_fetch_add_explicit(&r->answered, 1, memory_order_relaxed);
        else
            fail(r, &error);
    }
    return NULL;
}

static bool fly_all(struct running *r, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fly_next(&r->flights[i]);
    latch_wait(&r->over);
    return true;
}

static bool block_all(struct running *r, size_t count)
{
    size_t started = 0;
    while (started < count
           && pthread_create(&r->flights[started].thread, NULL, block, &r->flights[started]) == 0)
        started++;
    if (started < count)
        fail(r, NULL);
    for (size_t i = 0; i < started; i++)
        pthread_join(r->flights[i].thread, NULL);
    return started == count;
}

static uint64_t run(const struct crowd *crowd, bool (*all)(struct running *r, size_t count))
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
    bool ok = status == PAWL_OK && all(&r, count) && !atomic_load(&r.failed);
    for (size_t i = 0; r.flights && i < count; i++)
        pawl_request_free(r.flights[i].request);
    free(r.flights);
    return ok ? atomic_load(&r.answered) : 0;
}

uint64_t crowd_run(const struct crowd *crowd)
{
    return run(crowd, fly_all);
}

uint64_t crowd_block(const struct crowd *crowd)
{
    return run(crowd, block_all);
}

/* pace.c: one thread sends every command that is due, and then sleeps until the next is. A command's time begins when
 * it is due. So a command that must wait because all requests are under way is as late as a user would see it,
 * and an engine that stands still is not asked less. */
#include "bench/lib/pace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/lib/bench.h"

#define FLIGHTS 2048
#define SAMPLES ((size_t)4 << 20)
#define TICK    200000   /* ns: the sender does not wake up more often */
#define ASK     50000000 /* ns between two questions whether it is over */

struct flight {
    struct running *running;
    pawl_request *request;
    uint64_t due;
};

struct running {
    const struct pace *pace;
    pthread_mutex_t lock;
    pthread_cond_t landed;
    struct flight flights[FLIGHTS];
    struct flight *free[FLIGHTS];
    size_t free_count;
    float *us;
    _Atomic size_t answered;
    atomic_bool failed;
};

static void land(struct flight *f)
{
    struct running *r = f->running;
    pthread_mutex_lock(&r->lock);
    r->free[r->free_count++] = f;
    pthread_cond_signal(&r->landed);
    pthread_mutex_unlock(&r->lock);
}

static void fail(struct running *r, const pawl_error *error)
{
    if (!atomic_exchange(&r->failed, true))
        bench_failed("command", error);
}

static void flown(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                  const pawl_error *error)
{
    struct flight *f = arg;
    struct running *r = f->running;
    size_t at = atomic_fetch_add_explicit(&r->answered, 1, memory_order_relaxed);
    if (at < SAMPLES)
        r->us[at] = (float)(bench_now() - f->due) / 1000;
    if (status != PAWL_OK)
        fail(r, error);
    land(f);
}

static struct flight *take(struct running *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->free_count == 0)
        pthread_cond_wait(&r->landed, &r->lock);
    struct flight *f = r->free[--r->free_count];
    pthread_mutex_unlock(&r->lock);
    return f;
}

static void send_one(struct running *r, uint64_t n, uint64_t due)
{
    pawl_error error = {0};
    struct flight *f = take(r);
    f->due = due;
    r->pace->make(r->pace->make_arg, f->request, n);
    if (pawl_command_async(r->pace->engine, f->request, flown, f, &error) != PAWL_OK) {
        fail(r, &error);
        land(f);
    }
}

static void send_all(struct running *r)
{
    const struct pace *p = r->pace;
    uint64_t began = bench_now(), asked = began, sent = 0;
    while (!atomic_load(&r->failed)) {
        uint64_t now = bench_now(), due = began + (uint64_t)((double)sent * 1e9 / p->rate);
        if (now - asked > ASK) {
            asked = now;
            if (p->over(p->arg, (double)(now - began) / 1e9))
                break;
        }
        if (due <= now) {
            send_one(r, sent, due);
            sent++;
        } else {
            uint64_t pause = due - now > TICK ? due - now : TICK;
            nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
        }
    }
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static bool find_percentiles(struct running *r, struct paced *ret)
{
    size_t count = atomic_load(&r->answered);
    count = count < SAMPLES ? count : SAMPLES;
    if (atomic_load(&r->failed))
        return false;
    if (count < 100) {
        fprintf(stderr, "only %zu commands were answered\n", count);
        return false;
    }
    qsort(r->us, count, sizeof *r->us, compare);
    *ret = (struct paced){(double)r->us[count / 2], (double)r->us[count * 99 / 100]};
    return true;
}

bool pace_over_after(void *arg, double seconds)
{
    return seconds >= *(const double *)arg;
}

bool pace_run(const struct pace *pace, struct paced *ret_paced)
{
    int status = PAWL_OK;
    bool ok = false;
    struct running *r = calloc(1, sizeof *r);
    float *samples = malloc(SAMPLES * sizeof *samples);
    if (!r || !samples) {
        free(samples);
        free(r);
        return bench_failed("pace", NULL) > 0;
    }
    r->pace = pace;
    r->us = samples;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->landed, NULL);
    for (size_t i = 0; i < FLIGHTS && status == PAWL_OK; i++) {
        r->flights[i].running = r;
        status = pawl_request_new(pace->engine, &r->flights[i].request);
        if (status == PAWL_OK)
            r->free[r->free_count++] = &r->flights[i];
    }
    if (status == PAWL_OK) {
        send_all(r);
        for (size_t i = 0; i < FLIGHTS; i++) /* all are answered when all were free once */
            (void)take(r);
        ok = find_percentiles(r, ret_paced);
    }
    for (size_t i = 0; i < FLIGHTS; i++)
        pawl_request_free(r->flights[i].request);
    free(samples);
    free(r);
    return ok;
}

#include "bench/peers/puts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define THREADS_MAX 64

struct putting {
    bool (*put)(void *store, const struct put_row *row);
    void *store;
    uint64_t deadline;
    _Atomic uint64_t next, count;
    atomic_bool failed;
};

static void *put_rows(void *arg)
{
    struct putting *p = arg;
    struct put_row row = {.body = "an event"};
    while (bench_now() < p->deadline && !atomic_load(&p->failed)) {
        row.id = atomic_fetch_add(&p->next, 1);
        row.wsid = row.id % PUT_TENANTS;
        row.number = row.id / PUT_TENANTS;
        if (p->put(p->store, &row))
            atomic_fetch_add(&p->count, 1);
        else
            atomic_store(&p->failed, true);
    }
    return NULL;
}

double puts_run(unsigned threads, uint64_t duration, bool (*put)(void *store, const struct put_row *row),
                void *store)
{
    pthread_t all[THREADS_MAX];
    unsigned started = 0;
    uint64_t began = bench_begin();
    struct putting p = {.put = put, .store = store, .deadline = began + duration};
    while (started < threads && started < THREADS_MAX && pthread_create(&all[started], NULL, put_rows, &p) == 0)
        started++;
    for (unsigned i = 0; i < started; i++)
        pthread_join(all[i], NULL);
    double rate = bench_per_second(atomic_load(&p.count), began);
    return started == threads && !atomic_load(&p.failed) ? rate : 0;
}

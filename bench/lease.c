/* bench/lease.c: what it costs to let two workers work at once and keep the order of their results.
 *
 * An operation goes all the way: it is bound, leased, worked on (a multiplication), handed in, taken when its turn
 * has come, appended to a log in memory that checks number and result, and committed. Two threads share the table; whoever
 * has the lock does what can be done for a batch of numbers, so that the lock and the clock are paid once for
 * all of them. "Active" is how many numbers are leased at a time: each worker holds half, and hands in its
 * oldest. Whoever waits for the lock waits awake, so the processor time of two says little; that of one worker,
 * alone, says what the table itself takes, even on a busy machine.
 *
 * The peers have the same two threads, the same work and the same log:
 *
 *   ring       as an LMAX Disruptor: numbers claimed by an atomic addition, a flag a slot for "done"; ordered
 *              consumer is whoever finds that role free. No IDs, no deadlines, no failures.
 *   turnstile  a mutex and a condition variable: the threads take turns, each waits until its number is next.
 *   scan       leases in an array; a commit looks at all of them for a lower number that is not done. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <pawl/lease.h>

#include "adapter/uv/env.h"
#include "bench/lib/bench.h"

enum { WORKERS = 2, BATCH_MAX = 64, LOG_SLOTS = 4096, RING_SLOTS = 4096, SPINS = 200 };

struct load {
    uint64_t active;
    size_t batch;
    bool is_alone; /* one worker, and its processor time in place of the time that passes */
};

/* The log: the last results, and whether all came in order. */
struct book {
    uint64_t next;
    uint64_t results[LOG_SLOTS];
    bool is_wrong;
};

static inline uint64_t work(uint64_t number)
{
    return number * UINT64_C(0x9e3779b97f4a7c15);
}

static inline void append(struct book *book, uint64_t number, uint64_t result)
{
    book->is_wrong |= number != book->next || result != work(number);
    book->results[number % LOG_SLOTS] = result;
    book->next = number + 1;
}

static uint64_t cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Spins a little, then lets others run: there are two cores, and perhaps somebody else. */
static inline void relax(unsigned *spins)
{
    if (++*spins % SPINS == 0)
        sched_yield();
    else
        __builtin_ia32_pause();
}

struct lock {
    _Alignas(64) _Atomic bool is_held;
};

static inline void lock_take(struct lock *lock)
{
    unsigned spins = 0;
    while (atomic_exchange_explicit(&lock->is_held, true, memory_order_acquire))
        while (atomic_load_explicit(&lock->is_held, memory_order_relaxed))
            relax(&spins);
}

static inline void lock_give(struct lock *lock)
{
    atomic_store_explicit(&lock->is_held, false, memory_order_release);
}

/* --- All threads run main(worker); the time of an operation, or 0. */

struct worker {
    pthread_t thread;
    void *bench;
};

static double measure(void *bench, void *(*entry)(void *arg), uint64_t count, const struct load *load)
{
    struct worker workers[WORKERS];
    int threads = load->is_alone ? 1 : WORKERS;
    uint64_t began = load->is_alone ? cpu_now() : bench_now();
    for (int i = 0; i < threads; i++) {
        workers[i].bench = bench;
        if (pthread_create(&workers[i].thread, NULL, entry, &workers[i]))
            abort();
    }
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    uint64_t ended = load->is_alone ? cpu_now() : bench_now();
    return (double)(ended - began) / (double)count;
}

static double judged(double ns, const struct book *book, uint64_t count)
{
    if (!book->is_wrong && book->next == count + 1)
        return ns;
    printf("the results did not come in order\n");
    return 0;
}

static uint64_t operations(const struct bench_round *round, uint64_t count)
{
    return round->quick ? count / 10 : count;
}

/* --- Ours. */

struct leasing {
    struct lock lock;
    struct uv_env *env;
    pawl_leases *leases;
    struct book book;
    uint64_t count;
    uint64_t bound;
    size_t batch;
    size_t hold;
};

/* What a worker holds, the oldest first, as it will be handed in. */
struct holding {
    pawl_handed *handed;
    size_t room;
    size_t first;
    size_t count;
};

static void commit_what_is_ready(struct leasing *l)
{
    pawl_turn turns[BATCH_MAX];
    for (size_t n; (n = pawl_leases_take(l->leases, BATCH_MAX, turns)) > 0;) {
        for (size_t i = 0; i < n; i++)
            append(&l->book, turns[i].number, (uint64_t)(uintptr_t)turns[i].result);
        if (pawl_leases_commit(l->leases, turns[n - 1].number))
            abort();
    }
}

static void hand_in(struct leasing *l, struct holding *h)
{
    size_t n = h->count < l->batch ? h->count : l->batch;
    n = n < h->room - h->first ? n : h->room - h->first;
    pawl_leases_ready_many(l->leases, h->handed + h->first, n);
    h->first = (h->first + n) % h->room;
    h->count -= n;
    commit_what_is_ready(l);
}

static size_t lease_more(struct leasing *l, pawl_lease *got)
{
    size_t count = 0;
    for (size_t i = 0; i < l->batch && l->bound < l->count; i++)
        if (pawl_leases_bind(l->leases, 0, NULL, 100, &l->bound))
            break; /* the other worker holds up everything */
    int status = pawl_leases_acquire(l->leases, 0, 0, l->batch, got, &count);
    return status ? 0 : count;
}

static void *lease_main(void *arg)
{
    struct leasing *l = ((struct worker *)arg)->bench;
    struct holding h = {.room = l->hold + l->batch};
    pawl_lease got[BATCH_MAX];
    unsigned spins = 0;
    size_t count = l->batch;
    bool is_over = false;
    h.handed = calloc(h.room, sizeof h.handed[0]);
    if (!h.handed)
        abort();
    while (!is_over) {
        lock_take(&l->lock);
        if (h.count >= l->hold || count < l->batch) /* the window is full, or all is bound */
            hand_in(l, &h);
        count = lease_more(l, got);
        is_over = l->bound == l->count && count == 0 && h.count == 0;
        lock_give(&l->lock);
        for (size_t i = 0; i < count; i++)
            h.handed[(h.first + h.count++) % h.room] =
                (pawl_handed){.number = got[i].number,
                              .operation = got[i].operation,
                              .result = (void *)(uintptr_t)work(got[i].number)};
        if (count == 0)
            relax(&spins);
    }
    free(h.handed);
    return NULL;
}

static double measure_leases(const struct bench_round *round)
{
    const struct load *load = round->arg;
    struct leasing *l = aligned_alloc(64, (sizeof *l + 63) / 64 * 64);
    struct uv_env_options threads = {.shards = 1, .pool_threads = 1};
    if (!l)
        return 0;
    *l = (struct leasing){.batch = load->batch, .book.next = 1};
    l->count = operations(round, 4000000) / load->batch * load->batch;
    l->hold = load->active / (load->is_alone ? 1 : WORKERS) / load->batch * load->batch;
    if (uv_env_open(&threads, &l->env, NULL))
        return 0;
    pawl_leases_options options = {
        .env = uv_env_port(l->env),
        .window = load->active > 2048 ? 1 << 17 : 4096,
        .untimed = true,
    };
    if (pawl_leases_new(&options, &l->leases, NULL))
        return 0;
    double ns = measure(l, lease_main, l->count, load);
    ns = judged(ns, &l->book, l->count);
    pawl_leases_free(l->leases);
    uv_env_close(l->env);
    free(l);
    return ns;
}

/* --- The ring. */

struct ring_slot {
    _Atomic uint64_t done; /* the number that is */
    uint64_t result;
};

struct disruptor {
    _Alignas(64) _Atomic uint64_t claimed;
    _Alignas(64) _Atomic uint64_t consumed;
    struct lock consumer;
    _Alignas(64) uint64_t count;
    size_t batch;
    struct book book;
    struct ring_slot slots[RING_SLOTS];
};

static void consume(struct disruptor *d)
{
    if (atomic_exchange_explicit(&d->consumer.is_held, true, memory_order_acquire))
        return;
    uint64_t at = atomic_load_explicit(&d->consumed, memory_order_relaxed);
    for (;; at++) {
        struct ring_slot *slot = &d->slots[(at + 1) % RING_SLOTS];
        if (atomic_load_explicit(&slot->done, memory_order_acquire) != at + 1)
            break;
        append(&d->book, at + 1, slot->result);
    }
    atomic_store_explicit(&d->consumed, at, memory_order_release);
    lock_give(&d->consumer);
}

static void *disruptor_main(void *arg)
{
    struct disruptor *d = ((struct worker *)arg)->bench;
    unsigned spins = 0;
    for (;;) {
        uint64_t first = atomic_fetch_add_explicit(&d->claimed, d->batch, memory_order_relaxed) + 1;
        if (first > d->count)
            break;
        uint64_t last = first + d->batch - 1;
        while (last - atomic_load_explicit(&d->consumed, memory_order_acquire) > RING_SLOTS) {
            consume(d);
            relax(&spins);
        }
        for (uint64_t n = first; n <= last; n++) {
            struct ring_slot *slot = &d->slots[n % RING_SLOTS];
            slot->result = work(n);
            atomic_store_explicit(&slot->done, n, memory_order_release);
        }
        consume(d);
    }
    while (atomic_load_explicit(&d->consumed, memory_order_acquire) < d->count) {
        consume(d);
        relax(&spins);
    }
    return NULL;
}

static double run_ring(const struct bench_round *round, size_t batch)
{
    const struct load *load = round->arg;
    struct disruptor *d = aligned_alloc(64, sizeof *d);
    if (!d)
        return 0;
    *d = (struct disruptor){.batch = batch, .book.next = 1};
    d->count = operations(round, 6400000) / batch * batch;
    double ns = judged(measure(d, disruptor_main, d->count, load), &d->book, d->count);
    free(d);
    return ns;
}

static double measure_ring(const struct bench_round *round)
{
    return run_ring(round, BATCH_MAX);
}

/* As LMAX's own pool of workers claims them. */
static double measure_ring_of_ones(const struct bench_round *round)
{
    return run_ring(round, 1);
}

/* --- The turnstile. */

struct turnstile {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    _Atomic uint64_t begun; /* so many workers */
    uint64_t count;
    struct book book;
};

/* Numbers are dealt in turn: else, with work as short as this, one thread does all of it and nobody ever waits.
 */
static void *turnstile_main(void *arg)
{
    struct turnstile *t = ((struct worker *)arg)->bench;
    uint64_t number = atomic_fetch_add(&t->begun, 1) + 1;
    for (; number <= t->count; number += WORKERS) {
        uint64_t result = work(number);
        pthread_mutex_lock(&t->lock);
        while (t->book.next != number)
            pthread_cond_wait(&t->moved, &t->lock);
        append(&t->book, number, result);
        pthread_cond_broadcast(&t->moved);
        pthread_mutex_unlock(&t->lock);
    }
    return NULL;
}

static double measure_turnstile(const struct bench_round *round)
{
    struct turnstile t = {.count = operations(round, 40000), .book.next = 1};
    pthread_mutex_init(&t.lock, NULL);
    pthread_cond_init(&t.moved, NULL);
    double ns = judged(measure(&t, turnstile_main, t.count, round->arg), &t.book, t.count);
    pthread_cond_destroy(&t.moved);
    pthread_mutex_destroy(&t.lock);
    return ns;
}

/* --- The scan. */

enum { SCANNED = 10000 };

struct scanned {
    uint64_t number;
    uint64_t id[2];
    uint64_t expires;
    bool is_done;
};

struct scan {
    struct lock lock;
    uint64_t given;
    uint64_t count;
    struct book book;
    struct scanned leases[SCANNED]; /* number n in place n modulo as many */
};

static bool is_blocked(const struct scan *s, uint64_t number)
{
    bool is_lower = false;
    for (size_t i = 0; i < SCANNED; i++)
        is_lower |= s->leases[i].number < number && !s->leases[i].is_done;
    return is_lower;
}

/* The table is kept full; the oldest is committed, and its place given to a new number. */
static void *scan_main(void *arg)
{
    struct scan *s = ((struct worker *)arg)->bench;
    for (;;) {
        lock_take(&s->lock);
        uint64_t number = s->book.next;
        if (number > s->count) {
            lock_give(&s->lock);
            return NULL;
        }
        if (is_blocked(s, number))
            abort();
        append(&s->book, number, work(number));
        s->leases[number % SCANNED] = (struct scanned){.number = ++s->given};
        lock_give(&s->lock);
    }
}

static double measure_scan(const struct bench_round *round)
{
    struct scan *s = aligned_alloc(64, (sizeof *s + 63) / 64 * 64);
    if (!s)
        return 0;
    *s = (struct scan){.count = operations(round, 20000), .given = SCANNED, .book.next = 1};
    for (uint64_t n = 1; n <= SCANNED; n++)
        s->leases[n % SCANNED].number = n;
    double ns = judged(measure(s, scan_main, s->count, round->arg), &s->book, s->count);
    free(s);
    return ns;
}

static struct load few = {128, 64, false};
static struct load many = {100000, 64, false};
static struct load ten = {10, 5, false};
static struct load many_by_five = {100000, 5, false};
static struct load ten_thousand = {10000, 64, false};
static struct load few_alone = {128, 64, true};
static struct load many_alone = {100000, 64, true};
static struct load ten_alone = {10, 5, true};
static struct load many_by_five_alone = {100000, 5, true};

static double measure_ten(const struct bench_round *round)
{
    struct bench_round other = *round;
    other.arg = ((const struct load *)round->arg)->is_alone ? &ten_alone : &ten;
    return measure_leases(&other);
}

#define ALONE(what, load_)                                                                                     \
    {                                                                                                          \
        .question = what, .unit = "ns", .better = BENCH_LESS, .goal = 120, .ours = measure_leases,             \
        .arg = (load_)                                                                                         \
    }
#define BESIDE(what, load_, peer_, most)                                                                       \
    {                                                                                                          \
        .question = what, .unit = "ns", .better = BENCH_LESS, .goal = (most), .ours = measure_leases,          \
        .peer = (peer_), .arg = (load_)                                                                        \
    }

static const struct bench_question questions[] = {
    ALONE("an operation; 128 active, batches of 64", &few),
    ALONE("an operation; 100,000 active, batches of 64", &many),
    ALONE("an operation; 10 active, batches of 5", &ten),
    BESIDE("100,000 active against 10, batches of 5", &many_by_five, measure_ten, 1.2),
    ALONE("one worker's processor time; 128 active, batches of 64", &few_alone),
    ALONE("one worker's processor time; 100,000 active, batches of 64", &many_alone),
    ALONE("one worker's processor time; 10 active, batches of 5", &ten_alone),
    BESIDE("one worker's processor time; 100,000 active against 10, batches of 5", &many_by_five_alone,
           measure_ten, 1.2),
    BESIDE("against a ring as LMAX Disruptor's, numbers claimed one by one", &few, measure_ring_of_ones, 3),
    BESIDE("against such a ring, claimed by 64", &few, measure_ring, 10),
    BESIDE("against a mutex and a condition variable", &few, measure_turnstile, 0.3),
    BESIDE("against a scan of 10,000 leases at each commit", &ten_thousand, measure_scan, 0.02),
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, questions, sizeof questions / sizeof questions[0]);
}

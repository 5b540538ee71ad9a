/* lease: work that takes long, done by four threads at once, whose results leave in order.
 *
 * A hundred pieces of work are bound to the numbers 1 to 100. Three workers do what they are given; the fourth
 * takes a number and sleeps until others are done with it. Its lease expires, the number is given to another,
 * the results still leave as 1, 2, 3, ..., and what the sleeper hands in when it wakes up is refused.
 *
 * Run: lease. Prints the results in the order in which they left, and fails if that is not the order of the
 * numbers, or if the sleeper was believed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <pawl/lease.h>

enum { PIECES = 100, WORKERS = 4, LEASE_MS = 100 };

struct shop {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* something was handed in */
    pawl_leases *leases;
    uint64_t done;
    int refused;
    bool is_wrong;
};

/* Squares, slowly; some take longer than others. */
static int *do_piece(const int *piece)
{
    struct timespec t = {0, (1 + *piece * 7 % 5) * 1000000};
    int *result = malloc(sizeof *result);
    nanosleep(&t, NULL);
    if (result)
        *result = *piece * *piece;
    return result;
}

/* Under the lock: commit every result whose turn has come. */
static void commit_what_is_ready(struct shop *shop)
{
    pawl_turn turn;
    while (pawl_leases_take(shop->leases, 1, &turn) > 0) {
        int *result = turn.result;
        shop->is_wrong |= turn.number != ++shop->done || *result != (int)(turn.number * turn.number);
        printf("%llu: %d%s", (unsigned long long)turn.number, *result, turn.number % 10 ? "  " : "\n");
        pawl_leases_commit(shop->leases, turn.number);
        free(result);
    }
    pthread_cond_broadcast(&shop->moved);
}

/* Under the lock: wait until a result is handed in, or a lease may have expired. */
static void wait_for_numbers(struct shop *shop)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    pawl_duration quiet = pawl_leases_tick(shop->leases);
    quiet = quiet < 10 * PAWL_MILLISECOND ? quiet : 10 * PAWL_MILLISECOND;
    uint64_t ns = (uint64_t)until.tv_nsec + quiet;
    until.tv_sec += (time_t)(ns / PAWL_SECOND);
    until.tv_nsec = (long)(ns % PAWL_SECOND);
    pthread_cond_timedwait(&shop->moved, &shop->lock, &until);
}

static void work(struct shop *shop, bool is_sleepy)
{
    pthread_mutex_lock(&shop->lock);
    while (shop->done < PIECES) {
        pawl_lease lease;
        size_t count;
        if (pawl_leases_acquire(shop->leases, 0, LEASE_MS * PAWL_MILLISECOND, 1, &lease, &count)) {
            wait_for_numbers(shop);
            continue;
        }
        pthread_mutex_unlock(&shop->lock);
        int *result = do_piece(lease.work);
        pthread_mutex_lock(&shop->lock);
        while (is_sleepy && shop->done < lease.number)
            pthread_cond_wait(&shop->moved, &shop->lock);
        if (!result) {
            pawl_leases_release(shop->leases, lease.number, lease.operation, "no memory");
        } else if (pawl_leases_ready(shop->leases, lease.number, lease.operation, result, NULL)) {
            shop->refused++;
            free(result);
        }
        commit_what_is_ready(shop);
    }
    pthread_mutex_unlock(&shop->lock);
}

static void *work_well(void *arg)
{
    work(arg, false);
    return NULL;
}

static void *work_badly(void *arg)
{
    work(arg, true);
    return NULL;
}

int main(void)
{
    static struct shop shop = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    static int pieces[PIECES];
    pthread_t threads[WORKERS];
    pawl_leases_options options = {.untimed = true}; /* the lock is ours, so the timer is ours too */
    pawl_error error;
    if (pawl_env_open(NULL, &options.env, &error) || pawl_leases_new(&options, &shop.leases, &error)) {
        fprintf(stderr, "cannot begin: %s\n", error.text);
        return 1;
    }
    for (int i = 0; i < PIECES; i++) {
        uint64_t number;
        pieces[i] = i + 1;
        pawl_leases_bind(shop.leases, 0, &pieces[i], sizeof pieces[i], &number);
    }
    pthread_create(&threads[0], NULL, work_badly, &shop);
    pthread_mutex_lock(&shop.lock);
    while (pawl_leases_peek(shop.leases, 0) == 1) /* the sleeper must have a number before the others begin */
        wait_for_numbers(&shop);
    pthread_mutex_unlock(&shop.lock);
    for (int i = 1; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work_well, &shop);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    pawl_lease_figures figures;
    pawl_leases_figures_get(shop.leases, &figures);
    printf("%llu in order; %llu leases expired, %d late results refused\n",
           (unsigned long long)figures.committed, (unsigned long long)figures.expired, shop.refused);
    pawl_leases_free(shop.leases);
    pawl_env_close(options.env);
    return shop.is_wrong || shop.done != PIECES || shop.refused == 0 ? 1 : 0;
}

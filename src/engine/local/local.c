/* engine/local/local.c: the queue of writes to DIR/local, and the thread that writes them. */
#include "engine/local/local.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "adapter/lmdb/store.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/wait.h"

#define MAP_BYTES ((uint64_t)1 << 30)
#define QUEUE_MAX 65536
#define LINGER    (100 * PAWL_MILLISECOND) /* for writes that nobody waits for, and between tries that fail */

struct writes {
    struct local_write *first;
    struct local_write **last;
};

struct local {
    char *dir;
    const char *boot_id;
    const pawl_allocator *alloc;

    pthread_mutex_t lock;
    pthread_cond_t wake;    /* for the thread */
    pthread_cond_t settled; /* for those who wait: a transaction has ended */
    pthread_t thread;
    bool started, stop;
    struct writes queue;
    size_t count;
    uint64_t added;     /* the number of the last write */
    uint64_t durable;   /* all up to this one are on the disk, or over */
    uint64_t wanted;    /* somebody waits for all up to this one */
    uint64_t failures;  /* transactions that failed */
    uint64_t failed_to; /* the last write in the last of them */
    pawl_error error;   /* of that one */

    pthread_mutex_t store_lock; /* opening, closing, and reading it: O3 */
    pawl_store *store;          /* NULL: the thread has not opened it */
};

static void writes_init(struct writes *writes)
{
    writes->first = NULL;
    writes->last = &writes->first;
}

static void writes_add(struct writes *writes, struct local_write *write)
{
    write->next = NULL;
    *writes->last = write;
    writes->last = &write->next;
}

static struct local_write *writes_take(struct writes *writes)
{
    struct local_write *write = writes->first;
    if (!write)
        return NULL;
    writes->first = write->next;
    if (!writes->first)
        writes->last = &writes->first;
    return write;
}

/* --- the store --- */

static int open_store(struct local *l, bool read_only, pawl_store **ret_store, pawl_error *error)
{
    struct lmdb_options options = {.dir = l->dir,
                                   .mode = PAWL_STORE_DURABLE,
                                   .read_only = read_only,
                                   .map_bytes = MAP_BYTES,
                                   .alloc = l->alloc,
                                   .boot_id = l->boot_id};
    struct stat there;
    if (read_only && stat(l->dir, &there) != 0)
        return PAWL_ENOTFOUND;
    return lmdb_store_open(&options, NULL, ret_store, error);
}

static int need_store(struct local *l, pawl_error *error)
{
    if (l->store)
        return PAWL_OK;
    pthread_mutex_lock(&l->store_lock);
    int status = open_store(l, false, &l->store, error);
    pthread_mutex_unlock(&l->store_lock);
    return status;
}

static void close_store(struct local *l)
{
    pthread_mutex_lock(&l->store_lock);
    if (l->store)
        (void)pawl_store_close(l->store);
    l->store = NULL;
    pthread_mutex_unlock(&l->store_lock);
}

static int write_all(struct local *l, const struct writes *writes, pawl_error *error)
{
    int status = need_store(l, error);
    if (status != PAWL_OK)
        return status;
    for (const struct local_write *w = writes->first; w && status == PAWL_OK; w = w->next) {
        status = w->value.data ? pawl_store_put(l->store, 0, w->key, w->value)
                               : pawl_store_remove(l->store, 0, w->key);
        if (status == PAWL_ENOTFOUND) /* it was not there */
            status = PAWL_OK;
    }
    if (status == PAWL_OK)
        status = pawl_store_commit(l->store);
    else
        pawl_store_abort(l->store);
    return status == PAWL_OK ? status : error_set(error, status, "%s", l->store->error.text);
}

struct scanning {
    pawl_bytes prefix;
    pawl_visit_row visit;
    void *arg;
};

static bool scan_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    const struct scanning *s = arg;
    if (key.size < s->prefix.size || memcmp(key.data, s->prefix.data, s->prefix.size) != 0)
        return false;
    return s->visit(s->arg, key, value);
}

int local_scan(struct local *l, pawl_bytes prefix, pawl_visit_row visit, void *arg, pawl_error *error)
{
    struct scanning scanning = {.prefix = prefix, .visit = visit, .arg = arg};
    pawl_store *store, *opened = NULL;
    pawl_reader *snapshot;
    int status = PAWL_OK;
    pthread_mutex_lock(&l->store_lock);
    if (!l->store)
        status = open_store(l, true, &opened, error);
    store = opened ? opened : l->store;
    assert(store || status != PAWL_OK);
    if (status == PAWL_OK)
        status = pawl_store_snapshot(store, &snapshot);
    if (status == PAWL_OK) {
        status = pawl_store_scan(snapshot, (pawl_range){.from = prefix}, false, scan_row, &scanning);
        pawl_store_release(store, snapshot);
    }
    if (opened)
        (void)pawl_store_close(opened);
    pthread_mutex_unlock(&l->store_lock);
    if (status != PAWL_ENOTFOUND)
        return status;
    error_clear(error); /* nothing was ever written, or its making was interrupted */
    return PAWL_OK;
}

/* --- the thread: under the lock, if nothing else is said --- */

/* Until there is something to write: at once if somebody waits for it, else in a while. */
static void wait_for_writes(struct local *l)
{
    uint64_t end = WAIT_FOREVER;
    bool in_time = true;
    while (!l->stop && in_time && !(l->queue.first && l->wanted > l->durable)) {
        if (l->queue.first && end == WAIT_FOREVER)
            end = wait_deadline(LINGER);
        in_time = cond_wait_until(&l->wake, &l->lock, end);
    }
}

/* A transaction has ended: tell those who wait. *ret_over gets the writes that are over and not told yet. */
static void end_transaction(struct local *l, struct writes *batch, uint64_t last, int status,
                            const pawl_error *error, struct writes *ret_over)
{
    struct writes again;
    struct local_write *w;
    writes_init(&again);
    while ((w = writes_take(batch))) {
        if (w->once) { /* its caller sees this when it gets the lock, and not before */
            w->status = status;
            w->is_over = true;
            l->count--;
        } else if (status == PAWL_OK || l->stop) {
            writes_add(ret_over, w);
            l->count--;
        } else
            writes_add(&again, w);
    }
    if (again.first) {
        *again.last = l->queue.first;
        if (!l->queue.first)
            l->queue.last = again.last;
        l->queue.first = again.first;
    }
    if (status == PAWL_OK) {
        l->durable = last;
    } else {
        l->failures++;
        l->failed_to = last;
        l->error = *error;
        l->error.code = status;
        if (l->wanted <= last) /* whoever waited is told now, and nobody waits for the next try */
            l->wanted = l->durable;
    }
    pthread_cond_broadcast(&l->settled);
}

static void *local_main(void *arg)
{
    struct local *l = arg;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        wait_for_writes(l);
        if (!l->queue.first)
            break; /* it was asked to stop, and all is written */
        struct writes batch = l->queue, over;
        struct local_write *w;
        uint64_t last = l->added;
        pawl_error error = {0};
        writes_init(&l->queue);
        writes_init(&over);
        pthread_mutex_unlock(&l->lock);
        int status = write_all(l, &batch, &error);
        pthread_mutex_lock(&l->lock);
        end_transaction(l, &batch, last, status, &error, &over);
        pthread_mutex_unlock(&l->lock);
        while ((w = writes_take(&over)))
            w->done(w);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    close_store(l);
    return NULL;
}

/* --- for its users --- */

int local_new(const struct local_options *options, struct local **ret_local)
{
    size_t size = strlen(options->dir) + 1;
    struct local *l = mem_new(options->alloc, 1, sizeof *l);
    if (!l)
        return PAWL_ENOMEM;
    l->dir = mem_new(options->alloc, 1, size);
    if (!l->dir) {
        mem_free(options->alloc, l, sizeof *l);
        return PAWL_ENOMEM;
    }
    memcpy(l->dir, options->dir, size);
    l->alloc = options->alloc;
    l->boot_id = options->boot_id;
    writes_init(&l->queue);
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->store_lock, NULL);
    cond_init(&l->wake);
    cond_init(&l->settled);
    *ret_local = l;
    return PAWL_OK;
}

void local_free(struct local *l)
{
    if (!l)
        return;
    if (l->started) {
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_signal(&l->wake);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
    }
    pthread_cond_destroy(&l->settled);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->store_lock);
    pthread_mutex_destroy(&l->lock);
    mem_free(l->alloc, l->dir, strlen(l->dir) + 1);
    mem_free(l->alloc, l, sizeof *l);
}

int local_start(struct local *l, pawl_error *error)
{
    sigset_t all, before;
    int failed = 0;
    pthread_mutex_lock(&l->lock);
    if (!l->started) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        failed = pthread_create(&l->thread, NULL, local_main, l);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        l->started = failed == 0;
    }
    pthread_mutex_unlock(&l->lock);
    return failed ? error_errno(error, failed, "cannot start a thread for %s", l->dir) : PAWL_OK;
}

/* Under the lock. */
static void enqueue(struct local *l, struct local_write *w)
{
    w->number = ++l->added;
    if (!l->queue.first)
        pthread_cond_signal(&l->wake);
    writes_add(&l->queue, w);
    l->count++;
}

int local_add(struct local *l, struct local_write *w, bool must, uint64_t *ret_number)
{
    int status = PAWL_EBUSY;
    pthread_mutex_lock(&l->lock);
    if (must || l->count < QUEUE_MAX) { /* O2 */
        enqueue(l, w);
        *ret_number = w->number;
        status = PAWL_OK;
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* Under the lock: the thread need not wait for more. */
static void want(struct local *l, uint64_t number)
{
    if (l->wanted >= number)
        return;
    l->wanted = number;
    pthread_cond_signal(&l->wake);
}

int local_sync(struct local *l, uint64_t number, pawl_error *error)
{
    int status = PAWL_OK;
    pthread_mutex_lock(&l->lock);
    uint64_t failures = l->failures;
    while (l->durable < number && status == PAWL_OK) {
        want(l, number);
        pthread_cond_wait(&l->settled, &l->lock);
        if (l->durable < number && l->failures != failures && l->failed_to >= number)
            status = error_set(error, l->error.code, "cannot write to %s: %s", l->dir, l->error.text);
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

int local_put(struct local *l, pawl_bytes key, pawl_bytes value, pawl_error *error)
{
    struct local_write write = {.key = key, .value = value, .once = true};
    int status = local_start(l, error);
    if (status != PAWL_OK)
        return status;
    pthread_mutex_lock(&l->lock);
    enqueue(l, &write);
    want(l, write.number);
    while (!write.is_over)
        pthread_cond_wait(&l->settled, &l->lock);
    if (write.status != PAWL_OK)
        error_set(error, write.status, "cannot write to %s: %s", l->dir, l->error.text);
    pthread_mutex_unlock(&l->lock);
    return write.status;
}

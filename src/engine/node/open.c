/* engine/node/open.c: opening and closing.
 *
 *     node file ─► env ─► stores ─► log (with the stores' positions and cursors as witnesses) ─► group0
 *     ─► partitions ─► lanes ─► open
 *
 * A log on Kafka needs no witnesses, and group0 says whether this node may open it (owner.h).
 *
 * Closing goes the other way round. A store is opened, written and closed on its shard's thread. */
#include <pawl/pawl.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "adapter/journal/journal.h"
#include "adapter/lmdb/store.h"
#include "base/alloc.h"
#include "base/error.h"
#include "engine/log/log.h"
#include "engine/node/node.h"

#define SHARDS_MAX      64
#define MAILBOX_DEFAULT 8192
#define MAILBOX_MAX     ((uint32_t)1 << 20)
#define POOL_DEFAULT    2
#define LAG_DEFAULT     UINT64_C(1000000)
#define MIRROR_DEFAULT  ((uint64_t)256 << 20)
#define MIRROR_LEAST    ((uint64_t)1 << 20)
#define LEASE_MAX       (600 * PAWL_SECOND)
#define BACKOFF_MAX     (60 * PAWL_SECOND)
#define PROGRESS_EVERY  (100 * PAWL_MILLISECOND)
#define FEW_PROCESSORS  2

static int check_options(pawl_options *o, pawl_error *error)
{
    o->pool_threads = o->pool_threads ? o->pool_threads : POOL_DEFAULT;
    o->checkpoint_lag_max = o->checkpoint_lag_max ? o->checkpoint_lag_max : LAG_DEFAULT;
    o->mirror_bytes_max = o->mirror_bytes_max ? o->mirror_bytes_max : MIRROR_DEFAULT;
    o->mailbox = o->mailbox ? o->mailbox : MAILBOX_DEFAULT;
    if (o->partitions > PARTITIONS_MAX || (o->partitions & (o->partitions - 1)))
        return error_set(error, PAWL_EINVAL, "%u partitions: it must be a power of two, at most %u",
                         o->partitions, PARTITIONS_MAX);
    if (o->log && !cluster_is(o->log))
        return error_set(error, PAWL_EINVAL,
                         "the log %.300s is not on Kafka: expected kafka://HOST:PORT/CLUSTER, or none for the "
                         "directory's own",
                         o->log);
    if (o->log && strlen(o->log) >= NODE_PATH_MAX)
        return error_set(error, PAWL_EINVAL, "the URL of the log is too long");
    if (o->take_over && o->read_only)
        return error_set(error, PAWL_EINVAL, "who only reads takes nothing over");
    if (o->must_be_new && (o->must_exist || o->read_only))
        return error_set(error, PAWL_EINVAL, "a directory that must be new is not there to be %s",
                         o->read_only ? "read" : "found");
    if (o->shards > SHARDS_MAX)
        return error_set(error, PAWL_EINVAL, "%u shards; at most %d", o->shards, SHARDS_MAX);
    if (o->mailbox < 2 || o->mailbox > MAILBOX_MAX || (o->mailbox & (o->mailbox - 1)))
        return error_set(error, PAWL_EINVAL, "a mailbox of %u: it must be a power of two, at most %u",
                         o->mailbox, MAILBOX_MAX);
    if (o->event_bytes_max > PAWL_ENTRY_BYTES_MAX)
        return error_set(error, PAWL_EINVAL, "events of %zu bytes; at most %zu", o->event_bytes_max,
                         PAWL_ENTRY_BYTES_MAX);
    if (o->lease_first > LEASE_MAX || o->lease_min > LEASE_MAX)
        return error_set(error, PAWL_EINVAL, "a lease may last at most ten minutes");
    if (o->backoff_min > BACKOFF_MAX)
        return error_set(error, PAWL_EINVAL,
                         "the pause before an operation is run again may be at most a minute");
    pawl_sequencer_limits limits = o->sequences; /* zeros stay: a processor has defaults of its own */
    int status = sequencer_limits_fill(&limits, error);
    return status == PAWL_OK ? PAWL_OK : error_wrap(error, status, "sequences");
}

struct storing {
    struct shard *shard;
    pawl_error *error;
    int status;
};

static struct stores_options stores_of(const struct shard *shard)
{
    const pawl_engine *e = shard->engine;
    return (struct stores_options){.dir = e->dir,
                                   .shard = shard->index,
                                   .partitions = shard->partitions,
                                   .lag_max = e->options.checkpoint_lag_max,
                                   .knobs = &e->knobs,
                                   .alloc = e->options.allocator};
}

static int open_reading(struct shard *shard, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    const pawl_engine *e = shard->engine;
    struct lmdb_options options = {.dir = path,
                                   .mode = PAWL_STORE_FAST,
                                   .read_only = true,
                                   .alloc = e->options.allocator,
                                   .boot_id = e->knobs.boot_id};
    int status = node_path(e->dir, path, error, "state/%u", shard->index);
    if (status == PAWL_OK)
        status = lmdb_store_open(&options, NULL, &shard->store, error);
    if (status != PAWL_ENOTFOUND && status != PAWL_ECORRUPT)
        return status;
    if (e->knobs.backup) {
        options.mode = PAWL_STORE_DURABLE;
        status = node_path(e->dir, path, error, "checkpoint/%u", shard->index);
        if (status == PAWL_OK)
            status = lmdb_store_open(&options, NULL, &shard->store, error);
        shard->taken_over = status == PAWL_OK;
    }
    return status != PAWL_ENOTFOUND && status != PAWL_ECORRUPT
               ? status
               : error_wrap(error, status,
                            "its state must be derived again, which opening it for writing does");
}

static int open_writing(struct shard *shard, pawl_error *error)
{
    const pawl_engine *e = shard->engine;
    struct stores_options options = stores_of(shard);
    struct stores_opened opened;
    int status = stores_open(&options, &opened, error);
    if (status != PAWL_OK)
        return status;
    shard->store = opened.live;
    shard->taken_over = opened.taken_over;
    if (e->knobs.no_checkpoint)
        return PAWL_OK;
    status = checkpointer_new(shard, &options, &opened, &shard->checkpointer);
    return status == PAWL_OK ? PAWL_OK : error_set(error, status, "no memory for a checkpoint");
}

static void open_store(void *arg)
{
    struct storing *s = arg;
    s->status = s->shard->engine->options.read_only ? open_reading(s->shard, s->error)
                                                    : open_writing(s->shard, s->error);
}

static void close_store(void *arg)
{
    struct storing *s = arg;
    if (s->shard->applier.env) { /* the store was opened for writing */
        applier_close(&s->shard->applier);
        views_close_shard(s->shard);
    }
    s->status = pawl_store_close(s->shard->store);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static int open_stores(pawl_engine *e, pawl_error *error)
{
    for (uint32_t i = 0; i < e->file.shards; i++) {
        struct shard *shard = &e->shards[i];
        shard->engine = e;
        shard->index = i;
        shard->thread = &e->threads[i % e->thread_count];
        shard->sibling = i + e->thread_count < e->file.shards ? &shard[e->thread_count] : NULL;
        if (i < e->thread_count)
            shard->thread->first = shard;
        shard->partitions = partition_set_of(i, e->file.partitions, e->file.shards);
        shard->drain.fn = shard_drain;
        shard->gather_max =
            least(e->options.mailbox / 2, e->knobs.gather_max ? e->knobs.gather_max : SHARD_GATHER_MAX);
        shard->latency.scale = HISTOGRAM_NS;
        shard->notify.fn = shard_notify_lanes;
        shard->wake_callers.fn = shard_wake_callers;
        shard->give_up.fn = shard_give_up;
        wake_group_init(&shard->callers);
        int status =
            mpsc_init(&shard->mailbox, e->options.allocator, e->options.mailbox, sizeof(pawl_request *));
        if (status != PAWL_OK)
            return error_set(error, status, "no memory for a mailbox");
        struct storing storing = {.shard = shard, .error = error};
        status = pawl_env_call(e->env, i, open_store, &storing);
        status = status == PAWL_OK ? storing.status : status;
        if (status != PAWL_OK)
            return status;
    }
    return PAWL_OK;
}

static int close_stores(pawl_engine *e)
{
    int status = PAWL_OK;
    for (uint32_t i = 0; i < e->file.shards; i++) {
        struct storing storing = {.shard = &e->shards[i]};
        if (e->shards[i].store && pawl_env_call(e->env, i, close_store, &storing) == PAWL_OK
            && status == PAWL_OK)
            status = storing.status;
        mpsc_release(&e->shards[i].mailbox);
        sequence_tails_release(&e->shards[i].tails);
    }
    for (uint32_t i = 0; i < e->thread_count; i++)
        turn_appends_release(&e->threads[i].appends);
    return status;
}

/* The highest place that any state has come to. It was durable: a log that ends before it has lost something.
 * A read-only engine ignores a position that is not valid: it need not judge the state. */
static int gather_witness(pawl_engine *e, pawl_place *highest, pawl_error *error)
{
    int status = PAWL_OK;
    for (uint32_t i = 0; i < e->file.shards && status == PAWL_OK; i++) {
        status = witness_of_store(e->shards[i].store, &e->file, i, e->options.allocator, highest, error);
        if (status == PAWL_ECORRUPT && e->options.read_only)
            status = PAWL_OK;
    }
    return status;
}

/* A log on Kafka, with what is known of it, and its mirror if this process writes. */
static int open_cluster(pawl_engine *e, pawl_error *error)
{
    char path[NODE_PATH_MAX], id[64];
    int status = cluster_open(e->file.log, e->env, e->file.node, &e->log, error);
    if (status != PAWL_OK)
        return status;
    e->kafka = e->log;
    known_load(e);
    if (e->options.read_only)
        return PAWL_OK;
    known_start(e);
    if (e->options.mirror_bytes_max < MIRROR_LEAST)
        return PAWL_OK;
    snprintf(id, sizeof id, "%016" PRIx64 " %016" PRIx64, e->file.node,
             hash_checksum(0, (pawl_bytes){e->file.log, strlen(e->file.log)}));
    const struct cluster_mirror mirror = {
        .dir = path, .id = id, .boot_id = e->knobs.boot_id, .bytes_max = e->options.mirror_bytes_max};
    status = node_path(e->dir, path, error, "mirror");
    return status == PAWL_OK
               ? cluster_mirror_open(e->kafka, e->env, e->options.allocator, &mirror, &e->log, error)
               : status;
}

static int open_log(pawl_engine *e, pawl_error *error)
{
    if (node_is_on_kafka(&e->file))
        return open_cluster(e, error);
    char path[NODE_PATH_MAX];
    pawl_place witness = {0};
    struct journal_options options = {.dir = path,
                                      .env = e->env,
                                      .alloc = e->options.allocator,
                                      .read_only = e->options.read_only,
                                      .witnesses = &witness,
                                      .witness_count = 1};
    int status = PAWL_OK;
    if (e->file.log[0])
        snprintf(path, sizeof path, "%s", e->file.log);
    else
        status = node_path(e->dir, path, error, "log");
    if (status == PAWL_OK && !e->file.log[0])
        status = gather_witness(e, &witness, error);
    return status == PAWL_OK ? journal_open(&options, &e->log, error) : status;
}

struct catching_up {
    struct shard *shard;
    uint64_t done;
    uint64_t total;
    bool known; /* all of it */
};

static void look_at_shard(void *arg)
{
    struct catching_up *c = arg;
    for (size_t i = 0; i < c->shard->partitions.count; i++) {
        const struct processor *processor = shard_partition(c->shard, i)->processor;
        uint64_t end;
        c->known = processor_log_end(processor, &end) && c->known;
        c->done += processor_figures(processor)->offset;
        c->total += c->known ? end : 0;
    }
}

/* Tell the caller how far the state has come. False: the caller wants no more. */
static bool tell_progress(pawl_engine *e)
{
    struct catching_up all = {.known = true};
    for (uint32_t i = 0; i < e->file.shards; i++) {
        all.shard = &e->shards[i];
        (void)pawl_env_call(e->env, i, look_at_shard, &all);
    }
    return e->options.progress(e->options.progress_arg, all.done, all.known ? all.total : 0);
}

static int wait_for_partitions(pawl_engine *e, pawl_error *error)
{
    if (!e->options.progress) {
        latch_wait(&e->opened);
        return PAWL_OK;
    }
    while (latch_wait_until(&e->opened, engine_deadline(e, PROGRESS_EVERY)) != PAWL_OK)
        if (!tell_progress(e))
            return error_set(error, PAWL_ECANCELED,
                             "it was cancelled; the next opening goes on where this one was");
    return PAWL_OK;
}

static int open_partitions(pawl_engine *e, pawl_error *error)
{
    latch_init(&e->opened);
    atomic_store(&e->opening, e->file.partitions);
    for (uint32_t i = 0; i < e->file.shards; i++) {
        int status = shard_open(&e->shards[i], error);
        if (status != PAWL_OK)
            return status;
    }
    int status = wait_for_partitions(e, error);
    if (status != PAWL_OK || !atomic_load(&e->refused))
        return status;
    status = e->error.code;
    return error_set(error, status, "%s", e->error.text);
}

static void close_partitions(pawl_engine *e)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < e->file.partitions; i++)
        open += e->partitions[i].processor != NULL;
    if (open == 0)
        return;
    latch_init(&e->closed);
    atomic_store(&e->open, open);
    for (uint32_t i = 0; i < e->file.shards; i++)
        shard_close(&e->shards[i]);
    latch_wait(&e->closed);
    for (uint32_t i = 0; i < e->file.partitions; i++)
        if (e->partitions[i].processor)
            processor_free(e->partitions[i].processor);
}

/* Only when the partitions run. What they apply until then is in the live store when a checkpoint is copied
 * from it, and need not be read from the log again. */
static int start_checkpoints(pawl_engine *e, pawl_error *error)
{
    int status = PAWL_OK;
    for (uint32_t i = 0; status == PAWL_OK && i < e->file.shards; i++)
        if (e->shards[i].checkpointer)
            status = checkpointer_start(e->shards[i].checkpointer, error);
    return status;
}

/* Checkpointers read the log and copy the live stores, so they end before these are closed. Their memory stays
 * until the shards have ended, which still read it. */
static void stop_checkpoints(pawl_engine *e)
{
    for (uint32_t i = 0; i < e->file.shards; i++)
        if (e->shards[i].checkpointer)
            checkpointer_stop(e->shards[i].checkpointer);
}

/* Close and free all that was opened, also after opening failed halfway. */
static int put_away(pawl_engine *e)
{
    const pawl_allocator *alloc = e->options.allocator;
    int status = PAWL_OK, log = PAWL_OK;
    if (e->env)
        views_close(e);
    if (e->env)
        lanes_close(e);
    if (e->shards)
        stop_checkpoints(e);
    if (e->partitions)
        close_partitions(e);
    owner_close(e);
    known_close(e);
    if (e->log)
        log = pawl_log_close(e->log);
    if (e->shards && e->env)
        status = close_stores(e);
    if (e->group0)
        group0_snapshot_save(e);
    local_free(e->local);
    group0_free(e->group0);
    if (e->uv)
        uv_env_close(e->uv);
    for (uint32_t i = 0; e->shards && i < e->file.shards; i++)
        checkpointer_free(e->shards[i].checkpointer);
    if (e->lock_fd >= 0)
        close(e->lock_fd);
    for (uint32_t i = 0; e->partitions && i < e->file.partitions; i++)
        audit_release(&e->partitions[i].audit);
    mem_free(alloc, e->partitions, e->partitions ? e->file.partitions * sizeof e->partitions[0] : 0);
    mem_free(alloc, e->threads, e->threads ? e->thread_count * sizeof e->threads[0] : 0);
    mem_free(alloc, e->shards, e->shards ? e->file.shards * sizeof e->shards[0] : 0);
    lanes_free_all(e);
    views_free(e);
    tokens_free(e);
    pthread_mutex_destroy(&e->audit_lock);
    pthread_mutex_destroy(&e->group0_lock);
    pthread_mutex_destroy(&e->schema_lock);
    pthread_mutex_destroy(&e->owner.lock);
    mem_free(alloc, e, sizeof *e);
    return log != PAWL_OK ? log : status;
}

static int new_local(pawl_engine *e)
{
    char path[NODE_PATH_MAX];
    struct local_options options = {.dir = path, .boot_id = e->knobs.boot_id, .alloc = e->options.allocator};
    int status = node_path(e->dir, path, NULL, "local");
    return status == PAWL_OK ? local_new(&options, &e->local) : status;
}

static int open_lanes(pawl_engine *e, pawl_error *error)
{
    int status = lanes_load_kept(e, error);
    if (status != PAWL_OK)
        return status;
    pthread_mutex_lock(&e->schema_lock);
    status = lanes_reconcile(e, error);
    pthread_mutex_unlock(&e->schema_lock);
    if (status == PAWL_OK)
        lanes_drop_unclaimed(e);
    return status;
}

/* Commands are bound by the log's syncs: with two processors, a second thread would only split what could be synced
 * together, and compete with the log's own and the checkpoint's. */
static uint32_t threads_for(const pawl_engine *e)
{
    if (e->knobs.threads > 0)
        return least(e->knobs.threads, e->file.shards);
    cpu_set_t usable;
    int count = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : INT_MAX;
    return count <= FEW_PROCESSORS ? 1 : e->file.shards;
}

static int open_all(pawl_engine *e, pawl_error *error)
{
    const pawl_allocator *alloc = e->options.allocator;
    int status = engine_find(e, error);
    if (status != PAWL_OK)
        return status;
    e->thread_count = threads_for(e);
    e->threads = mem_new(alloc, e->thread_count, sizeof e->threads[0]);
    e->shards = mem_new(alloc, e->file.shards, sizeof e->shards[0]);
    e->partitions = mem_new(alloc, e->file.partitions, sizeof e->partitions[0]);
    if (!e->threads || !e->shards || !e->partitions || group0_new(alloc, &e->group0))
        return error_set(error, PAWL_ENOMEM, "no memory to open %s", e->dir);
    group0_configure(e->group0, e->file.partitions, 1, e->file.shards);
    for (uint32_t i = 0; i < e->file.partitions; i++)
        audit_init(&e->partitions[i].audit, alloc);
    struct uv_env_options threads = {.shards = e->file.shards,
                                     .threads = e->thread_count,
                                     .pool_threads = e->options.pool_threads,
                                     .allocator = alloc};
    status = uv_env_open(&threads, &e->uv, error);
    if (status != PAWL_OK)
        return status;
    e->env = uv_env_port(e->uv);
    status = open_stores(e, error);
    if (status == PAWL_OK)
        status = open_log(e, error);
    if (status == PAWL_OK)
        status = engine_group0_open(e, error);
    if (status == PAWL_OK && !e->options.read_only)
        status = open_partitions(e, error);
    if (status == PAWL_OK)
        status = engine_keep_file(e, error);
    if (status == PAWL_OK && !e->options.read_only)
        known_start(e);
    if (status == PAWL_OK && !e->options.read_only)
        status = start_checkpoints(e, error);
    if (status == PAWL_OK)
        status = lanes_load_paused(e, error);
    if (status == PAWL_OK)
        status = tokens_load(e, error);
    if (status == PAWL_OK && !e->options.read_only)
        status = open_lanes(e, error);
    return status == PAWL_OK && !e->options.read_only ? views_start(e, error) : status;
}

int pawl_open(const char *dir, const pawl_options *options, pawl_engine **ret_engine, pawl_error *error)
{
    return engine_open(dir, options, NULL, ret_engine, error);
}

/* Looks at nothing but the words. */
static int check_words(const char *dir, const pawl_options *options, const char **ret_dir,
                       pawl_options *ret_filled, pawl_error *error)
{
    static const pawl_options defaults = {0};
    *ret_filled = options ? *options : defaults;
    int status = check_options(ret_filled, error);
    if (status == PAWL_OK && ret_filled->log)
        status = cluster_url_check(ret_filled->log, error);
    if (status != PAWL_OK)
        return status;
    if (!dir || strlen(dir) >= NODE_PATH_MAX)
        return error_set(error, PAWL_EINVAL, "the name of a directory is missing or too long");
    return engine_directory(dir, ret_dir, error);
}

int pawl_open_check(const char *dir, const pawl_options *options, pawl_error *error)
{
    pawl_options filled;
    return check_words(dir, options, &dir, &filled, error);
}

int engine_open(const char *dir, const pawl_options *options, const struct engine_knobs *knobs,
                pawl_engine **ret_engine, pawl_error *error)
{
    pawl_options filled;
    int status = check_words(dir, options, &dir, &filled, error);
    if (status != PAWL_OK)
        return status;
    pawl_engine *e = mem_new(filled.allocator, 1, sizeof *e);
    if (!e)
        return error_set(error, PAWL_ENOMEM, "no memory to open %s", dir);
    e->options = filled;
    e->knobs = knobs ? *knobs : (struct engine_knobs){0};
    e->lock_fd = -1;
    snprintf(e->dir, sizeof e->dir, "%s", dir);
    pthread_mutex_init(&e->schema_lock, NULL);
    pthread_mutex_init(&e->group0_lock, NULL);
    pthread_mutex_init(&e->audit_lock, NULL);
    pthread_mutex_init(&e->owner.lock, NULL);
    status = new_local(e);
    status = status == PAWL_OK ? lanes_new(e) : status;
    status = status == PAWL_OK ? views_new(e) : status;
    status = status == PAWL_OK ? tokens_new(e) : status;
    status = status == PAWL_OK ? open_all(e, error) : error_set(error, status, "no memory to open %s", dir);
    if (status != PAWL_OK) {
        (void)put_away(e);
        return error_wrap(error, status, "cannot open %s", dir);
    }
    e->options.log = NULL; /* the caller's */
    e->options.progress = NULL;
    *ret_engine = e;
    return PAWL_OK;
}

/* The engine whose follower's callback this thread runs. Followers run on the pool, and the env cannot tell
 * which engine a thread of the pool works for. */
static _Thread_local const pawl_engine *visited;

void engine_visiting(const pawl_engine *e)
{
    visited = e;
}

bool engine_is_self(const pawl_engine *e)
{
    return visited == e || pawl_env_self(e->env) != PAWL_NO_SHARD;
}

int engine_enter(const pawl_engine *e, pawl_error *error)
{
    if (engine_is_self(e))
        return error_set(error, PAWL_EMISUSE, "called from inside a callback");
    if (atomic_load(&e->closing))
        return error_set(error, PAWL_ECLOSED, "the engine is being closed");
    return PAWL_OK;
}

int engine_enter_writing(const pawl_engine *e, pawl_error *error)
{
    if (e->options.read_only)
        return error_set(error, PAWL_EREADONLY, "the engine was opened read-only");
    int status = engine_enter(e, error);
    return status == PAWL_OK ? owner_check(e, error) : status;
}

int pawl_close(pawl_engine *e)
{
    if (!e)
        return PAWL_OK;
    if (engine_is_self(e) || lanes_is_self(e))
        return PAWL_EMISUSE;
    atomic_store(&e->closing, true);
    return put_away(e);
}

uint32_t pawl_partitions(const pawl_engine *e)
{
    return e->file.partitions;
}

const char *pawl_engine_dir(const pawl_engine *e)
{
    return e->dir;
}

bool pawl_engine_writes(const pawl_engine *e)
{
    return !e->options.read_only;
}

uint16_t pawl_partition_of(const pawl_engine *e, uint64_t wsid)
{
    return partition_of(hash_token(wsid), e->file.partitions);
}

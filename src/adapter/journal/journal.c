/* adapter/journal/journal.c: opening and closing. */
#include "adapter/journal/journal.h"

#include <string.h>

#include "adapter/journal/impl.h"
#include "base/alloc.h"
#include "base/error.h"

static int journal_close(pawl_log *log);

static const struct pawl_log_ops ops = {
    .claim = journal_claim,
    .append = journal_append,
    .read = journal_read,
    .sweep = journal_sweep,
    .follow = journal_follow,
    .unfollow = journal_unfollow,
    .tail = journal_tail,
    .unwitnessed = journal_left_out,
    .close = journal_close,
};

static int set_up(struct journal *j, const struct journal_options *o, pawl_error *error)
{
    j->path_size = strlen(o->dir) + 1;
    j->log.ops = &ops;
    j->disk = o->disk ? o->disk : &disk_real;
    j->alloc = o->alloc;
    j->env = o->env;
    j->read_only = o->read_only;
    j->threads = !o->no_threads && !o->read_only;
    j->segment_bytes = o->segment_bytes ? o->segment_bytes : JOURNAL_SEGMENT_BYTES;
    j->active.file = -1;
    j->tail.file = -1;
    j->segments.alloc = o->alloc;
    j->shards = pawl_env_shards(o->env);
    j->home = (struct home){.disk = j->disk, .dir = -1, .lock = -1};
    /* It is held for short times only: to sleep on it would cost more. */
    pthread_mutexattr_t spinning;
    pthread_mutexattr_init(&spinning);
    pthread_mutexattr_settype(&spinning, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&j->lock, &spinning);
    pthread_mutexattr_destroy(&spinning);
    pthread_mutex_init(&j->refresh, NULL);
    queue_init(&j->queue);
    streams_init(&j->streams, o->alloc);
    index_init(&j->index, o->alloc);
    j->path = mem_new(o->alloc, 1, j->path_size);
    j->outboxes = mem_new(o->alloc, j->shards ? j->shards : 1, sizeof *j->outboxes);
    j->buffer = mem_resize(o->alloc, NULL, 0, BUFFER_BYTES);
    j->buffer_room = j->buffer ? BUFFER_BYTES : 0;
    if (!j->path || !j->outboxes || !j->buffer)
        return error_set(error, PAWL_ENOMEM, "no memory for a journal");
    memcpy(j->path, o->dir, j->path_size);
    for (uint32_t i = 0; i < j->shards; i++) {
        j->outboxes[i] = (struct outbox){.task.fn = outbox_run, .journal = j};
        op_list_init(&j->outboxes[i].ops);
        queue_init(&j->outboxes[i].held);
    }
    return PAWL_OK;
}

static void tear_down(struct journal *j)
{
    const pawl_allocator *alloc = j->alloc;
    if (j->active.file >= 0)
        j->disk->close(j->disk->ctx, j->active.file);
    if (j->tail.file >= 0)
        tail_close(&j->tail);
    home_close(&j->home);
    index_release(&j->index);
    streams_release(&j->streams);
    segment_list_release(&j->segments);
    mem_free(alloc, j->path, j->path_size);
    mem_free(alloc, j->outboxes, (j->shards ? j->shards : 1) * sizeof *j->outboxes);
    mem_free(alloc, j->buffer, j->buffer_room);
    pthread_mutex_destroy(&j->lock);
    pthread_mutex_destroy(&j->refresh);
    mem_free(alloc, j, sizeof *j);
}

static uint64_t highest_witness(const struct journal_options *o)
{
    uint64_t witness = 0;
    for (size_t i = 0; i < o->witness_count; i++)
        if (o->witnesses[i].position > witness)
            witness = o->witnesses[i].position;
    return witness;
}

static int open_home(struct journal *j, const struct journal_options *o, pawl_error *error)
{
    struct id128 new_id = {.high = pawl_env_random(o->env), .low = pawl_env_random(o->env)};
    int status = home_open(&j->home, j->disk, o->dir, o->read_only, new_id, error);
    j->seed = journal_seed(j->home.id);
    return status;
}

/* Start what a writer needs: first the maker, because recovery takes a draft from it. */
static int begin_writing(struct journal *j, uint64_t witness, pawl_error *error)
{
    int status = maker_start(j);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot start the journal's threads");
    home_sweep(&j->home);
    status = journal_recover(j, witness, error);
    /* The copied records are durable: write that down, or later damage to them would pass for a torn tail. */
    if (status == PAWL_OK && j->report.records_recovered)
        group_rest(j);
    if (status == PAWL_OK) {
        status = writer_start(j);
        if (status != PAWL_OK)
            error_set(error, status, "cannot start the journal's threads");
    }
    if (status == PAWL_OK)
        return PAWL_OK;
    pthread_mutex_lock(&j->lock);
    j->stopping = true;
    pthread_mutex_unlock(&j->lock);
    maker_stop(j);
    return status;
}

int journal_open(const struct journal_options *options, pawl_log **ret_log, pawl_error *error)
{
    if (!options->dir || !options->env)
        return error_set(error, PAWL_EINVAL, "a journal needs a directory and an env");
    struct journal *j = mem_new(options->alloc, 1, sizeof *j);
    if (!j)
        return error_set(error, PAWL_ENOMEM, "no memory for a journal");
    j->syncs.scale = HISTOGRAM_NS;
    j->batches.scale = HISTOGRAM_COUNT;
    int status = set_up(j, options, error);
    if (status == PAWL_OK)
        status = open_home(j, options, error);
    j->witness = highest_witness(options);
    if (status == PAWL_OK)
        status = j->read_only ? journal_refresh(j, error) : begin_writing(j, j->witness, error);
    if (status != PAWL_OK) {
        tear_down(j);
        return error_wrap(error, status, "cannot open the journal in %s", options->dir);
    }
    *ret_log = &j->log;
    return PAWL_OK;
}

/* A journal that cannot be sealed is closed all the same: acknowledged entries are durable, only the seal is
 * missing. */
static int journal_close(pawl_log *log)
{
    struct journal *j = (struct journal *)log;
    if (atomic_load(&j->outstanding) != 0 || (j->threads && pthread_equal(pthread_self(), j->writer)))
        return PAWL_EMISUSE;
    int status = PAWL_OK;
    if (!j->read_only) {
        pthread_mutex_lock(&j->lock);
        j->stopping = true;
        pthread_mutex_unlock(&j->lock);
        writer_stop(j);
        maker_stop(j);
        status = group_seal(j, NULL);
    }
    tear_down(j);
    return status;
}

void journal_report(pawl_log *log, struct journal_report *ret_report)
{
    struct journal *j = (struct journal *)log;
    pthread_mutex_lock(&j->lock);
    *ret_report = j->report;
    pthread_mutex_unlock(&j->lock);
}

void journal_syncs(pawl_log *log, uint32_t seconds, pawl_histogram *to)
{
    struct journal *j = (struct journal *)log;
    histogram_sum(&j->syncs, pawl_env_now(j->env), seconds, to);
}

void journal_batches(pawl_log *log, uint32_t seconds, pawl_histogram *to)
{
    struct journal *j = (struct journal *)log;
    histogram_sum(&j->batches, pawl_env_now(j->env), seconds, to);
}

void journal_stats(pawl_log *log, struct journal_stats *ret_stats)
{
    struct journal *j = (struct journal *)log;
    pthread_mutex_lock(&j->lock);
    *ret_stats = j->stats;
    pthread_mutex_unlock(&j->lock);
}

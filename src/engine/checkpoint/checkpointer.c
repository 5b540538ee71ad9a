#include "engine/checkpoint/checkpointer.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "adapter/lmdb/store.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "core/state/scrub.h"
#include "engine/node/node.h"

#define EVENTS_DEFAULT UINT64_C(256000)
#define BYTES_DEFAULT  ((size_t)12 << 20)
#define ROWS_DEFAULT   UINT64_C(8192)
#define AGE_DEFAULT    (5 * PAWL_SECOND)
#define READ_ENTRIES   UINT64_C(131072) /* in one sweep; then it checks whether a commit is due */
#define WAKE_EVENTS    UINT64_C(4096)   /* so many new events are worth waking up for */
#define REMOVE_PIECES  16               /* of unneeded rows are removed before the log is read again */
#define FINISH_SETS    64               /* at most so many commits when the engine is closed */
#define DELAY_MIN      (100 * PAWL_MILLISECOND)
#define DELAY_MAX      (30 * PAWL_SECOND)
#define NEVER          UINT64_MAX
#define NICER          5 /* it can wait, until the lag comes near its limit; other threads cannot */
#define SCRUB_PAUSE    PAWL_SECOND
#define SCRUB_SHARE    50 /* the pause after a scrub is so many times as long as the scrub */
#define SCRUB_BYTES    ((size_t)64 << 20)

static pawl_engine *engine_of(const struct checkpointer *c)
{
    return c->shard->engine;
}

int checkpointer_new(struct shard *shard, const struct stores_options *stores,
                     const struct stores_opened *opened, struct checkpointer **ret_checkpointer)
{
    struct checkpointer *c = mem_new(stores->alloc, 1, sizeof *c);
    if (!c)
        return PAWL_ENOMEM;
    c->shard = shard;
    c->stores = *stores;
    atomic_store(&c->guards, !opened->durable);
    atomic_store(&c->committed, opened->checkpoint_offsets);
    atomic_store(&c->wake_at, NEVER);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->store_lock, NULL);
    cond_init(&c->wake);
    *ret_checkpointer = c;
    return PAWL_OK;
}

/* --- sleeping and waking --- */

/* Sleep until the shard has seen wake_at events, or the timeout is over. heed: do not sleep while commands are
 * held back; the shard sets hurry before it takes the lock to wake this thread, so this is never missed. */
static void sleep_until(struct checkpointer *c, uint64_t wake_at, pawl_duration timeout, bool heed)
{
    uint64_t end = wait_deadline(timeout);
    pthread_mutex_lock(&c->lock);
    /* Set wake_at first, then read seen. The shard raises seen first, then reads wake_at: one sees the
     * other. */
    atomic_store(&c->wake_at, wake_at);
    bool awake =
        c->stop || c->views_new || atomic_load(&c->shard->seen) >= wake_at || (heed && atomic_load(&c->hurry));
    if (!awake)
        (void)cond_wait_until(&c->wake, &c->lock, end);
    atomic_store(&c->wake_at, NEVER);
    pthread_mutex_unlock(&c->lock);
}

static void wake(struct checkpointer *c)
{
    pthread_mutex_lock(&c->lock);
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

void checkpointer_seen(struct checkpointer *c, uint64_t events)
{
    if (events >= atomic_load(&c->wake_at))
        wake(c);
}

/* How many of these events are not committed. More may be committed than the shard has counted: then 0. The
 * limit may be any number, so it is compared with this difference: adding to it could overflow. */
static uint64_t lag_of(const struct checkpointer *c, uint64_t events)
{
    uint64_t committed = atomic_load(&c->committed);
    return events > committed ? events - committed : 0;
}

bool checkpointer_has_room(const struct checkpointer *c, uint64_t events, uint64_t under_way)
{
    return !atomic_load(&c->guards) || lag_of(c, events + under_way) < c->stores.lag_max;
}

void checkpointer_hurry(struct checkpointer *c, bool hurry)
{
    atomic_store(&c->hurry, hurry);
    if (hurry)
        wake(c);
}

bool checkpointer_error(struct checkpointer *c, pawl_error *ret_error)
{
    pthread_mutex_lock(&c->lock);
    *ret_error = c->error;
    pthread_mutex_unlock(&c->lock);
    return ret_error->code != PAWL_OK;
}

void checkpointer_views_changed(struct checkpointer *c)
{
    pthread_mutex_lock(&c->lock);
    c->views_new = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

static bool is_stopped(struct checkpointer *c)
{
    pthread_mutex_lock(&c->lock);
    bool stop = c->stop;
    pthread_mutex_unlock(&c->lock);
    return stop;
}

static void tell(struct checkpointer *c, int status)
{
    pthread_mutex_lock(&c->lock);
    c->error = c->words;
    c->error.code = status;
    pthread_mutex_unlock(&c->lock);
}

/* --- the store --- */

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    const struct checkpointer *c = ctx;
    return engine_schema_at(engine_of(c), position);
}

static void audit(void *ctx, const struct position *position, uint64_t offset)
{
    const struct checkpointer *c = ctx;
    engine_audit(engine_of(c), AUDIT_CHECKPOINT, position, (struct view_tables *)(uintptr_t)&c->views, offset);
}

static uint64_t taken(const struct checkpointer *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < c->stores.partitions.count; i++)
        sum += checkpoint_position(c->checkpoint, i)->offset;
    return sum;
}

static int put_cursors(void *ctx, uint16_t partition)
{
    struct checkpointer *c = ctx;
    knobs_step(c->stores.knobs, "a partition's checkpoint is put");
    return lane_tables_write(&c->lanes, partition);
}

static void close_store(struct checkpointer *c)
{
    if (c->lanes.engine)
        lane_tables_release(&c->lanes);
    c->lanes = (struct lane_tables){0};
    if (c->checkpoint)
        view_tables_release(&c->views);
    checkpoint_free(c->checkpoint);
    c->checkpoint = NULL;
    mem_free(c->stores.alloc, c->streams, c->stream_room * sizeof *c->streams);
    c->streams = NULL;
    c->stream_room = 0;
    pthread_mutex_lock(&c->store_lock);
    if (c->store)
        (void)pawl_store_close(c->store);
    c->store = NULL;
    pthread_mutex_unlock(&c->store_lock);
}

/* The set must be committed before it holds as many events as the lag allows. */
static uint64_t events_max(const struct checkpointer *c)
{
    uint64_t most = c->stores.knobs->checkpoint_events, half = c->stores.lag_max / 2 + 1;
    most = most ? most : EVENTS_DEFAULT;
    return most < half ? most : half;
}

static int open_store(struct checkpointer *c, bool make)
{
    pawl_store *store;
    int status = stores_open_checkpoint(&c->stores, &store, &c->words);
    if (status == PAWL_ENOTFOUND && make) {
        status = stores_make_checkpoint(&c->stores, c->shard->store, &c->words);
        if (status == PAWL_OK)
            status = stores_open_checkpoint(&c->stores, &store, &c->words);
        if (status == PAWL_OK)
            atomic_fetch_add(&c->made, 1);
    }
    if (status != PAWL_OK)
        return status;
    pthread_mutex_lock(&c->store_lock);
    c->store = store;
    pthread_mutex_unlock(&c->store_lock);
    size_t bytes = c->stores.knobs->checkpoint_bytes;
    uint64_t rows = c->stores.knobs->checkpoint_rows;
    struct checkpoint_options options = {.store = c->store,
                                         .partitions = c->stores.partitions,
                                         .events_max = events_max(c),
                                         .bytes_max = bytes ? bytes : BYTES_DEFAULT,
                                         .rows_max = rows ? rows : ROWS_DEFAULT,
                                         .schema_at = schema_at,
                                         .audit = audit,
                                         .audit_every = engine_audit_every(engine_of(c)),
                                         .views = &c->views,
                                         .commit = put_cursors,
                                         .ctx = c,
                                         .alloc = c->stores.alloc};
    status = lane_tables_init(&c->lanes, engine_of(c), c->stores.shard, c->store);
    if (status == PAWL_OK)
        status = checkpoint_new(&options, &c->checkpoint, &c->words);
    if (status != PAWL_OK)
        return status;
    c->lanes.checkpoint = c->checkpoint;
    view_tables_init(&c->views, c->store, c->stores.partitions, engine_of(c)->file.partitions, c->stores.alloc);
    atomic_store(&c->committed, taken(c));
    return PAWL_OK;
}

/* --- following --- */

/* Read from the last event that the checkpoint has: if the log's event differs, the checkpoint is of another
 * log. */
static pawl_sweep_stream begin_at(const struct checkpointer *c, size_t index)
{
    const struct position *position = checkpoint_position(c->checkpoint, index);
    uint64_t next = checkpoint_next(c->checkpoint, index);
    bool at_position = position->offset > 0 && next == position->offset + 1;
    return (pawl_sweep_stream){.stream = {.kind = PAWL_STREAM_PLOG, .partition = position->partition},
                               .from = at_position ? position->offset : next,
                               .at = at_position ? position->place : (pawl_place){0}};
}

static int take_event(struct checkpointer *c, size_t index, const pawl_entry *entry, pawl_place place)
{
    const struct position *position = checkpoint_position(c->checkpoint, index);
    if (entry->offset == position->offset && hash_checksum(0, entry->body) != position->checksum)
        return error_set(&c->words, PAWL_ECORRUPT,
                         "plog/%u: the event at offset %" PRIu64
                         " is not the one that the checkpoint was made from",
                         position->partition, entry->offset);
    if (entry->offset < checkpoint_next(c->checkpoint, index))
        return PAWL_OK;
    int status = checkpoint_take(c->checkpoint, index, entry->offset, place, entry->body, &c->words);
    if (status != PAWL_OK)
        error_wrap(&c->words, status, "plog/%u, offset %" PRIu64, position->partition, entry->offset);
    return status;
}

static bool take_entry(pawl_sweep *sweep, size_t index, const pawl_entry *entry, pawl_place place)
{
    struct checkpointer *c = sweep->arg;
    size_t partitions = c->stores.partitions.count;
    if (checkpoint_events(c->checkpoint) == 0)
        c->oldest = pawl_env_now(engine_of(c)->env);
    c->status = index < partitions ? take_event(c, index, entry, place)
                                   : lane_tables_take(&c->lanes, index - partitions, entry, place, &c->words);
    return c->status == PAWL_OK && !checkpoint_is_full(c->checkpoint);
}

/* If the log ends before the last event that the checkpoint has, the checkpoint is of another log. */
static int end_at(struct checkpointer *c, size_t index)
{
    const struct position *position = checkpoint_position(c->checkpoint, index);
    const pawl_sweep_stream *stream = &c->streams[index];
    if (!stream->ended || stream->next > position->offset)
        return PAWL_OK;
    return error_set(&c->words, PAWL_ECORRUPT,
                     "plog/%u ends before offset %" PRIu64 ", which the checkpoint has", position->partition,
                     position->offset);
}

/* A stream for each partition, and behind them one for each operation log. */
static int reserve_streams(struct checkpointer *c, size_t count)
{
    if (count <= c->stream_room)
        return PAWL_OK;
    pawl_sweep_stream *streams =
        mem_resize(c->stores.alloc, c->streams, c->stream_room * sizeof *streams, count * sizeof *streams);
    if (!streams)
        return error_set(&c->words, PAWL_ENOMEM, "no memory to read the log");
    c->streams = streams;
    c->stream_room = count;
    return PAWL_OK;
}

/* One operation log that is damaged or was deleted does not keep the checkpoint from all others. */
static void leave_out(struct checkpointer *c, const pawl_sweep_stream *stream)
{
    pawl_alert alert = {.kind = PAWL_ALERT_LOG, .partition = stream->stream.partition, .offset = stream->next};
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_stream_format(stream->stream, name);
    snprintf(alert.text, sizeof alert.text,
             "%s, operation %" PRIu64 ": %.150s; the checkpoint goes on without it", name, stream->next,
             c->words.text);
    engine_alert(engine_of(c), &alert);
}

/* Read all logs of the shard in one sweep, until the set is full. The limit has room for two entries of each
 * log, because the checkpoint may have the first one already. *ret_left_out: a log that is damaged is read no more, and
 * the others must be read again. */
static int sweep_all(struct checkpointer *c, bool *ret_left_out)
{
    size_t partitions = c->stores.partitions.count, count = partitions + c->lanes.read;
    int status = reserve_streams(c, count);
    if (status != PAWL_OK)
        return status;
    for (size_t i = 0; i < partitions; i++)
        c->streams[i] = begin_at(c, i);
    lane_tables_begin(&c->lanes, c->streams + partitions);
    pawl_sweep sweep = {.streams = c->streams,
                        .count = count,
                        .limit = READ_ENTRIES > 2 * count ? READ_ENTRIES : 2 * count,
                        .visit = take_entry,
                        .arg = c,
                        .error = &c->words};
    c->status = PAWL_OK;
    status = pawl_log_sweep(engine_of(c)->log, &sweep);
    const pawl_sweep_stream *damaged =
        status != PAWL_OK ? lane_tables_leave(&c->lanes, c->streams + partitions) : NULL;
    *ret_left_out = damaged != NULL;
    if (damaged)
        leave_out(c, damaged);
    c->log_failed = status != PAWL_OK && !damaged;
    return c->log_failed ? status : c->status;
}

static int read_all(struct checkpointer *c, bool *ret_more)
{
    uint64_t before = checkpoint_events(c->checkpoint);
    size_t partitions = c->stores.partitions.count;
    int status = checkpointer_refresh_views(c); /* before any row of a new generation is put */
    if (status == PAWL_OK)
        status = lane_tables_refresh(&c->lanes, &c->words);
    for (bool again = true; status == PAWL_OK && again;)
        status = sweep_all(c, &again);
    for (size_t i = 0; status == PAWL_OK && i < partitions; i++)
        status = end_at(c, i);
    if (status == PAWL_OK)
        status = lane_tables_end(&c->lanes, c->streams + partitions, &c->words);
    *ret_more = checkpoint_events(c->checkpoint) > before;
    return status;
}

/* On the shard: from now on the checkpoint cannot replace the live store. */
static void cease_to_guard(void *arg)
{
    struct checkpointer *c = arg;
    applier_retreat(&c->shard->applier);
    if (lmdb_store_tighten(c->shard->store) == PAWL_OK)
        atomic_store(&c->guards, false);
}

/* On the shard: from now on the checkpoint can replace the live store. */
static void begin_to_guard(void *arg)
{
    struct checkpointer *c = arg;
    uint64_t ahead = atomic_load(&c->shard->seen) + c->shard->outstanding;
    if (lag_of(c, ahead) > c->stores.lag_max)
        return;
    applier_retreat(&c->shard->applier);
    if (lmdb_store_relax(c->shard->store) == PAWL_OK)
        atomic_store(&c->guards, true);
}

static int commit(struct checkpointer *c)
{
    uint64_t rows, events = checkpoint_events(c->checkpoint);
    if (events == 0)
        return PAWL_OK;
    knobs_step(c->stores.knobs, "a checkpoint is committed");
    int status = checkpoint_commit(c->checkpoint, &rows, &c->words);
    if (status != PAWL_OK)
        return status;
    knobs_step(c->stores.knobs, "a checkpoint was committed");
    lane_tables_committed(&c->lanes);
    atomic_fetch_add(&c->events, events);
    atomic_fetch_add(&c->rows, rows);
    atomic_fetch_add(&c->commits, 1);
    /* Set committed first, then read hurry. The shard sets hurry first, then checks for room: see hold. */
    atomic_store(&c->committed, taken(c));
    if (atomic_load(&c->hurry))
        (void)pawl_env_post(engine_of(c)->env, c->shard->index, &c->shard->drain);
    return PAWL_OK;
}

/* Whether to commit the set now: it is full or old, or commands wait for it. *ret_left: time until it is
 * old. */
static bool is_due(const struct checkpointer *c, bool more, pawl_duration *ret_left)
{
    pawl_duration age = c->stores.knobs->checkpoint_age;
    age = age ? age : AGE_DEFAULT;
    uint64_t events = checkpoint_events(c->checkpoint);
    uint64_t old = events ? pawl_env_now(engine_of(c)->env).ns - c->oldest.ns : 0;
    bool hurry = atomic_load(&c->hurry) || (!atomic_load(&c->guards) && !more);
    *ret_left = age - old;
    return events > 0 && (checkpoint_is_full(c->checkpoint) || old >= age || hurry);
}

/* --- scrubbing --- */

static void scrub_side(struct checkpointer *c, enum pawl_alert_kind kind, pawl_store *store, uint32_t *next)
{
    struct scrub scrub = {.partition = checkpoint_position(c->checkpoint, c->scrub_index)->partition,
                          .partitions = engine_of(c)->file.partitions,
                          .table = c->scrub_table,
                          .bytes_max =
                              c->stores.knobs->scrub_bytes ? c->stores.knobs->scrub_bytes : SCRUB_BYTES,
                          .alloc = c->stores.alloc};
    struct scrubbed found;
    if (scrub_table(&scrub, store, &found) != PAWL_OK || found.verdict == SCRUB_NOTHING)
        return;
    *next = found.table < *next ? found.table : *next;
    atomic_fetch_add(found.verdict == SCRUB_TOO_LARGE ? &c->scrubs_missed : &c->scrubs, 1);
    if (found.verdict != SCRUB_WRONG)
        return;
    pawl_alert alert = {
        .kind = kind, .partition = scrub.partition, .table = found.table, .offset = found.offset};
    char table[SCHEMA_QNAME_BYTES_MAX + 40];
    engine_describe_table(engine_of(c), found.table, table, sizeof table);
    snprintf(alert.text, sizeof alert.text,
             "partition %u, %.150s: rows of the %s state are not those that it has written; seen at "
             "offset %" PRIu64,
             scrub.partition, table, kind == PAWL_ALERT_LIVE ? "live" : "checkpoint", found.offset);
    engine_alert(engine_of(c), &alert);
}

/* Scrub the next table of a partition, on both sides. A table that only one side has is not skipped: the lower
 * number comes next. */
static void scrub(struct checkpointer *c)
{
    pawl_instant began = pawl_env_now(engine_of(c)->env);
    uint32_t next = UINT32_MAX;
    scrub_side(c, PAWL_ALERT_LIVE, c->shard->store, &next);
    scrub_side(c, PAWL_ALERT_CHECKPOINT, c->store, &next);
    c->scrub_table = next;
    if (next == UINT32_MAX) {
        c->scrub_table = 0;
        c->scrub_index = (c->scrub_index + 1) % c->stores.partitions.count;
    }
    pawl_instant now = pawl_env_now(engine_of(c)->env);
    pawl_duration pause = (now.ns - began.ns) * SCRUB_SHARE;
    pause = pause > SCRUB_PAUSE ? pause : SCRUB_PAUSE;
    c->scrubbed.ns = now.ns + (c->stores.knobs->scrub_pause ? c->stores.knobs->scrub_pause : pause);
}

/* Scrub a table if it is time, but not while commands wait. Returns the time until the next one. */
static pawl_duration scrub_if_due(struct checkpointer *c)
{
    if (pawl_env_now(engine_of(c)->env).ns >= c->scrubbed.ns && !atomic_load(&c->hurry))
        scrub(c);
    uint64_t now = pawl_env_now(engine_of(c)->env).ns;
    return c->scrubbed.ns > now ? c->scrubbed.ns - now : SCRUB_PAUSE;
}

/* Only between commits, because then the transaction is empty. */
static int remove_rows(struct checkpointer *c, bool *ret_more)
{
    int status = PAWL_OK;
    bool more = checkpoint_events(c->checkpoint) == 0;
    for (unsigned i = 0; status == PAWL_OK && more && i < REMOVE_PIECES; i++)
        status = lane_tables_remove_rows(&c->lanes, &more);
    if (status != PAWL_OK)
        error_set(&c->words, status, "rows of lanes cannot be removed: %s", c->store->error.text);
    bool views = checkpoint_events(c->checkpoint) == 0;
    for (unsigned i = 0; status == PAWL_OK && views && i < REMOVE_PIECES; i++)
        status = checkpointer_remove_views(c, &views);
    *ret_more = more || views;
    return status;
}

/* Events come first: views are built only while there is room for many more. */
static bool may_build(const struct checkpointer *c)
{
    return lag_of(c, atomic_load(&c->shard->seen)) <= c->stores.lag_max / 2;
}

static int follow(struct checkpointer *c)
{
    bool more, removing;
    pawl_duration left, resting = 0;
    int status = read_all(c, &more);
    bool full = checkpoint_is_full(c->checkpoint); /* if so, there may be more to read */
    bool building = status == PAWL_OK && may_build(c) && checkpointer_builds(c, &resting);
    if (status == PAWL_OK && (is_due(c, more, &left) || (building && resting == 0)))
        status = commit(c);
    if (status == PAWL_OK && building && resting == 0)
        status = checkpointer_build_views(c);
    if (status == PAWL_OK)
        status = remove_rows(c, &removing);
    if (status != PAWL_OK)
        return status;
    uint64_t events = checkpoint_events(c->checkpoint), room = events_max(c) - events;
    if (events == 0 && !atomic_load(&c->guards))
        (void)pawl_env_call(engine_of(c)->env, c->shard->index, begin_to_guard, c);
    uint64_t worth = WAKE_EVENTS < room ? WAKE_EVENTS : room;
    pawl_duration pause = scrub_if_due(c);
    if (building)
        pause = resting < pause ? resting : pause;
    pause = removing || full ? 0 : pause;
    sleep_until(c, taken(c) + (events ? worth : 1), events && left < pause ? left : pause, events > 0);
    return PAWL_OK;
}

/* The log could not be read. All partitions share it; the alert names the first one that was not read to its
 * end. */
static void tell_of_log(struct checkpointer *c)
{
    size_t index = 0;
    while (index + 1 < c->stores.partitions.count && c->streams[index].ended)
        index++;
    pawl_alert alert = {.kind = PAWL_ALERT_LOG,
                        .partition = checkpoint_position(c->checkpoint, index)->partition,
                        .offset = checkpoint_next(c->checkpoint, index)};
    snprintf(alert.text, sizeof alert.text, "plog/%u, offset %" PRIu64 ": %.200s", alert.partition,
             alert.offset, c->words.text);
    engine_alert(engine_of(c), &alert);
}

/* A store that contradicts the log, or itself, is discarded and made again. After any other error it is tried
 * again later. If the log itself is damaged, the store is kept: it may be the only copy of what was in the
 * log. */
static void fail(struct checkpointer *c, int status)
{
    atomic_fetch_add(&c->failures, 1);
    tell(c, status);
    c->delay = c->delay ? c->delay * 2 : DELAY_MIN;
    c->delay = c->delay > DELAY_MAX ? DELAY_MAX : c->delay;
    bool wrong = status == PAWL_ECORRUPT || status == PAWL_EFORMAT || status == PAWL_EVERSION
                 || status == PAWL_EINVAL || status == PAWL_ETOOBIG;
    if (wrong && c->checkpoint && c->log_failed) {
        tell_of_log(c);
        wrong = false;
    }
    c->log_failed = false;
    if (wrong || !c->checkpoint || checkpoint_forget(c->checkpoint, &c->words) != PAWL_OK
        || lane_tables_forget(&c->lanes, &c->words) != PAWL_OK)
        close_store(c);
    if (wrong && atomic_load(&c->guards))
        (void)pawl_env_call(engine_of(c)->env, c->shard->index, cease_to_guard, c);
    if (wrong && !atomic_load(&c->guards))
        (void)stores_discard_checkpoint(&c->stores, &c->words);
    sleep_until(c, NEVER, c->delay, false);
}

/* At the end, commit what the logs have, up to FINISH_SETS times. Otherwise processes that live only shortly
 * would leave more and more to be done. What fails here is done when the engine is opened again. */
static void finish(struct checkpointer *c)
{
    bool more = c->checkpoint || open_store(c, false) == PAWL_OK;
    for (unsigned i = 0; more && i < FINISH_SETS; i++) {
        bool any, read = read_all(c, &any) == PAWL_OK;
        more = read && checkpoint_is_full(c->checkpoint);
        more = read && commit(c) == PAWL_OK && more;
    }
    close_store(c);
}

static void *run(void *arg)
{
    struct checkpointer *c = arg;
    (void)!nice(NICER);
    while (!is_stopped(c)) {
        c->words = (pawl_error){0};
        int status = c->checkpoint ? follow(c) : open_store(c, true);
        if (status != PAWL_OK)
            fail(c, status);
        else if (c->delay) {
            c->delay = 0;
            tell(c, PAWL_OK);
        }
    }
    finish(c);
    return NULL;
}

int checkpointer_start(struct checkpointer *c, pawl_error *error)
{
    int failed = pthread_create(&c->thread, NULL, run, c);
    if (failed)
        return error_errno(error, failed, "cannot start a thread for a checkpoint");
    char name[16];
    snprintf(name, sizeof name, "pawl/check/%u", c->stores.shard % 100);
    (void)pthread_setname_np(c->thread, name);
    c->started = true;
    return PAWL_OK;
}

void checkpointer_stop(struct checkpointer *c)
{
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (c->started)
        pthread_join(c->thread, NULL);
    c->started = false;
}

void checkpointer_free(struct checkpointer *c)
{
    if (!c)
        return;
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->store_lock);
    pthread_mutex_destroy(&c->lock);
    mem_free(c->stores.alloc, c, sizeof *c);
}

void checkpointer_add_figures(const struct checkpointer *c, uint64_t seen, pawl_figures *figures)
{
    uint64_t committed = atomic_load(&c->committed);
    uint64_t lag = seen > committed ? seen - committed : 0;
    figures->checkpoint_lag = lag > figures->checkpoint_lag ? lag : figures->checkpoint_lag;
    figures->checkpoint_events += atomic_load(&c->events);
    figures->checkpoint_rows += atomic_load(&c->rows);
    figures->checkpoint_commits += atomic_load(&c->commits);
    figures->checkpoint_failures += atomic_load(&c->failures);
    figures->checkpoint_made += atomic_load(&c->made);
    figures->checkpoints_ready += atomic_load(&c->guards);
    figures->scrubs += atomic_load(&c->scrubs);
    figures->scrubs_missed += atomic_load(&c->scrubs_missed);
}

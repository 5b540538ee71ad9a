/* engine/check/replay.c: derives the state again from the log, into a directory or to compare it (replay,
 * audit). */
#include <pawl/admin.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter/journal/journal.h"
#include "adapter/lmdb/store.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/partition_set.h"
#include "core/sequence/storage.h"
#include "core/state/replay.h"
#include "engine/check/compare.h"
#include "engine/check/replay.h"
#include "engine/check/replay_lanes.h"
#include "engine/directory/directory.h"
#include "engine/log/log.h"
#include "engine/node/node.h"
#include "engine/read/read.h"

#define SIDES          2
#define EVENTS_AT_ONCE 4096 /* in one transaction */
#define ARENA_CHUNK    ((size_t)256 * 1024)

struct replaying {
    const pawl_replay_options *options;
    const char *log; /* that is read in place of the directory's own; NULL: that one */
    pawl_state_report *report;
    pawl_engine *source;
    pawl_store **stores;       /* of the derived state, one a shard */
    struct view_tables *views; /* theirs */
    const struct view_list *list;
    const struct schema *schema;
    char to[NODE_PATH_MAX];

    struct compare_side sides[SIDES]; /* the live store and the checkpoint; .store is NULL if there is none */
    pawl_store **checkpoints;         /* one a shard; NULL: they are not compared */

    /* The partition that is replayed now. */
    uint16_t partition;
    struct position position;
    struct replay replay;
    struct overlay overlay;
    struct arena memory;
    struct view_tables *kept; /* of the partition's store */
    uint64_t uncommitted;
    int status;
    pawl_error *error;
};

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    return engine_schema_at(ctx, position);
}

/* Write the last numbers that the event took, as the sequence storage has them. */
static int note_numbers(struct replaying *r, pawl_bytes body)
{
    struct envelope envelope;
    int status = envelope_decode(body, &envelope, r->error);
    for (size_t i = 0; status == PAWL_OK && i < envelope.count; i++) {
        struct event_numbers n = envelope_numbers(&envelope, i);
        uint8_t key[SEQUENCE_KEY_BYTES], value[SEQUENCE_VALUE_BYTES];
        put_u64(value, n.first + n.count - 1);
        status = pawl_store_put(r->replay.store, SEQUENCE_SPACE,
                                sequence_key(r->partition, envelope.wsid, n.seq, key),
                                (pawl_bytes){value, sizeof value});
    }
    return status;
}

static int tell(struct replaying *r, pawl_error *error)
{
    const pawl_replay_options *o = r->options;
    if (!o->progress || o->progress(o->arg, r->report->events, 0))
        return PAWL_OK;
    return error_set(error, PAWL_ECANCELED, "the replay of %s was cancelled", o->dir);
}

static int commit(struct replaying *r)
{
    int status = replay_put(&r->replay);
    if (status == PAWL_OK)
        status = view_tables_flush(r->kept);
    if (status == PAWL_OK)
        status = pawl_store_commit(r->replay.store);
    r->uncommitted = 0;
    arena_reset(&r->memory);
    if (status != PAWL_OK)
        return error_set(r->error, status, "cannot write to %s", r->to);
    view_tables_committed(r->kept);
    return tell(r, r->error);
}

static bool derive_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct replaying *r = read->arg;
    /* Numbers that neither state has stored are left out: no side has them to compare. */
    uint64_t sequences_offset = 0;
    for (size_t i = 0; i < SIDES; i++)
        sequences_offset =
            r->sides[i].sequences_offset > sequences_offset ? r->sides[i].sequences_offset : sequences_offset;
    r->status = replay_event(&r->replay, entry->offset, place, entry->body, r->error);
    if (r->status == PAWL_OK && entry->offset <= sequences_offset)
        r->status = note_numbers(r, entry->body);
    if (r->status != PAWL_OK) {
        error_wrap(r->error, r->status, "plog/%u, offset %" PRIu64, r->partition, entry->offset);
        return false;
    }
    r->report->events++;
    if (++r->uncommitted == EVENTS_AT_ONCE)
        r->status = commit(r);
    for (size_t i = 0; r->status == PAWL_OK && i < SIDES; i++)
        if (r->sides[i].store)
            r->status = compare_at(&r->sides[i], &r->position, pawl_store_writer(r->replay.store));
    return r->status == PAWL_OK;
}

static int derive_partition(struct replaying *r)
{
    uint64_t limit = r->options->until ? r->options->until : UINT64_MAX, next;
    int status = engine_read_plog(r->source, r->partition, 1, limit, derive_entry, r, &next, r->error);
    if (status == PAWL_OK)
        status = r->status;
    if (status == PAWL_OK && r->uncommitted > 0)
        status = commit(r);
    if (status != PAWL_OK)
        return status;
    for (size_t i = 0; i < SIDES; i++) {
        if (!r->sides[i].store)
            continue;
        r->sides[i].report->behind += next - 1 > r->sides[i].stored.offset;
        if (!r->options->until)
            compare_log_ended(&r->sides[i], next - 1);
    }
    for (size_t i = 0; i < r->position.digests.count; i++)
        r->report->rows += r->position.digests.tables[i].digest.rows;
    return PAWL_OK;
}

static int derive_lanes(struct replaying *r)
{
    struct replay_lanes lanes = {.source = r->source,
                                 .store = r->replay.store,
                                 .views = r->kept,
                                 .partition = r->partition,
                                 .until = r->options->until,
                                 .sides = r->sides,
                                 .side_count = SIDES,
                                 .reproject = r->options->reproject,
                                 .report = &r->report->lanes,
                                 .alloc = r->options->allocator};
    return replay_lanes(&lanes, r->error);
}

static int compare_partition(struct replaying *r, uint32_t shard)
{
    size_t begun = 0;
    int status = PAWL_OK;
    const struct shard *source = &r->source->shards[shard];
    pawl_store *checkpoint = r->checkpoints ? r->checkpoints[shard] : NULL;
    r->sides[0].store = source->taken_over ? NULL : source->store;
    r->sides[1].store = source->taken_over ? source->store : checkpoint;
    for (; begun < SIDES && status == PAWL_OK; begun++) {
        r->sides[begun].sequences_offset = 0;
        r->sides[begun].views = r->kept;
        if (!r->sides[begun].store)
            continue;
        status = compare_begin(&r->sides[begun], r->partition, r->error);
        if (status == PAWL_OK && !node_is_on_kafka(&r->source->file))
            /* another process may write: the log must show all that this state has */
            journal_witness(r->source->log, r->sides[begun].stored.place);
    }
    if (status == PAWL_OK) {
        status = derive_partition(r);
        if (status == PAWL_OK)
            status = derive_lanes(r);
    } else
        begun--;
    while (begun-- > 0)
        if (r->sides[begun].store)
            compare_end(&r->sides[begun]);
    return status;
}

static int replay_partition(struct replaying *r, uint32_t partition)
{
    uint32_t shard = partition_shard((uint16_t)partition, r->source->file.shards);
    r->partition = (uint16_t)partition;
    r->status = PAWL_OK;
    r->uncommitted = 0;
    position_init(&r->position, r->options->allocator, r->partition);
    r->replay.store = r->stores[shard];
    r->replay.position = &r->position;
    r->kept = &r->views[shard];
    r->replay.watch = view_tables_watch(r->kept);
    int status = compare_partition(r, shard);
    if (status == PAWL_OK)
        status = tell(r, r->error);
    pawl_store_abort(r->replay.store);
    position_release(&r->position);
    return status;
}

/* --- the directory of the derived state --- */

static int open_target(struct replaying *r, pawl_error *error)
{
    const pawl_replay_options *o = r->options;
    struct node_file file = r->source->file;
    if (o->to) {
        char source[NODE_PATH_MAX], absolute[NODE_PATH_MAX];
        snprintf(r->to, sizeof r->to, "%s", o->to);
        if (access(r->to, F_OK) == 0)
            return error_set(error, PAWL_EEXISTS, "%s exists already", r->to);
        int status = node_path(o->dir, source, error, "log");
        if (status != PAWL_OK)
            return status;
        if (node_is_on_kafka(&file))
            file.node = node_id_new(); /* it may become a node of its own */
        if (!file.log[0] && !realpath(source, absolute))
            return error_errno(error, errno, "cannot find %s", source);
        if (!file.log[0])
            snprintf(file.log, sizeof file.log, "%s", absolute);
    } else {
        int status = tree_make_temporary("replay", r->to, error);
        if (status != PAWL_OK)
            return status;
    }
    return node_file_make(r->to, &file, error);
}

/* Now, before the first row is put, every view is complete. */
static int open_views(struct replaying *r, uint32_t shard, pawl_error *error)
{
    struct view_tables *views = &r->views[shard];
    view_tables_init(views, r->stores[shard], r->source->shards[shard].partitions, r->source->file.partitions,
                     r->options->allocator);
    int status = view_tables_refresh(views, r->list, r->schema, error);
    if (status != PAWL_OK)
        return status;
    status = view_tables_flush(views);
    if (status == PAWL_OK)
        status = pawl_store_commit(r->stores[shard]);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot write to %s", r->to);
    view_tables_committed(views);
    return PAWL_OK;
}

static int open_stores(struct replaying *r, pawl_error *error)
{
    r->stores = mem_new(r->options->allocator, r->source->file.shards, sizeof r->stores[0]);
    r->views = mem_new(r->options->allocator, r->source->file.shards, sizeof r->views[0]);
    if (!r->stores || !r->views)
        return error_set(error, PAWL_ENOMEM, "no memory to replay");
    r->list = engine_views(r->source);
    r->schema = engine_schema(r->source);
    for (uint32_t i = 0; i < r->source->file.shards; i++) {
        char path[NODE_PATH_MAX];
        struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_FAST, .alloc = r->options->allocator};
        int status = node_path(r->to, path, error, "state/%u", i);
        if (status == PAWL_OK)
            status = lmdb_store_open(&options, NULL, &r->stores[i], error);
        if (status == PAWL_OK)
            status = open_views(r, i, error);
        if (status != PAWL_OK)
            return status;
    }
    return PAWL_OK;
}

static int close_stores(struct replaying *r, pawl_error *error)
{
    int status = PAWL_OK;
    for (uint32_t i = 0; r->stores && i < r->source->file.shards; i++) {
        if (r->views && r->views[i].store)
            view_tables_release(&r->views[i]);
        int closed = r->stores[i] ? pawl_store_close(r->stores[i]) : PAWL_OK;
        if (status == PAWL_OK && closed != PAWL_OK)
            status = error_set(error, closed, "cannot close %s", r->to);
    }
    mem_free(r->options->allocator, r->views, r->views ? r->source->file.shards * sizeof r->views[0] : 0);
    mem_free(r->options->allocator, r->stores, r->stores ? r->source->file.shards * sizeof r->stores[0] : 0);
    return status;
}

/* Open the checkpoints that exist. One that cannot be trusted is not compared, but reported. */
static int open_checkpoints(struct replaying *r, pawl_error *error)
{
    if (!r->options->audit)
        return PAWL_OK;
    r->checkpoints = mem_new(r->options->allocator, r->source->file.shards, sizeof r->checkpoints[0]);
    if (!r->checkpoints)
        return error_set(error, PAWL_ENOMEM, "no memory to replay");
    for (uint32_t i = 0; i < r->source->file.shards; i++) {
        char path[NODE_PATH_MAX];
        pawl_error words = {0};
        struct lmdb_options options = {
            .dir = path, .mode = PAWL_STORE_DURABLE, .read_only = true, .alloc = r->options->allocator};
        if (r->source->shards[i].taken_over)
            continue; /* the checkpoint is open already, in place of the live store */
        int status = node_path(r->options->dir, path, error, "checkpoint/%u", i);
        if (status == PAWL_OK)
            status = lmdb_store_open(&options, NULL, &r->checkpoints[i], &words);
        if (status != PAWL_OK && status != PAWL_ENOTFOUND && r->report->checkpoint.differences++ == 0)
            r->report->checkpoint.first = words;
    }
    return PAWL_OK;
}

static void close_checkpoints(struct replaying *r)
{
    for (uint32_t i = 0; r->checkpoints && i < r->source->file.shards; i++)
        if (r->checkpoints[i])
            (void)pawl_store_close(r->checkpoints[i]);
    mem_free(r->options->allocator, r->checkpoints,
             r->checkpoints ? r->source->file.shards * sizeof r->checkpoints[0] : 0);
}

static void init_side(struct replaying *r, size_t which, const char *name, pawl_state_side *report)
{
    r->sides[which] = (struct compare_side){.name = name,
                                            .report = report,
                                            .partitions = r->source->file.partitions,
                                            .schema = engine_schema(r->source),
                                            .elsewhere = r->log != NULL,
                                            .alloc = r->options->allocator};
}

static int replay_all(struct replaying *r, pawl_error *error)
{
    init_side(r, 0, "the live store", &r->report->live);
    init_side(r, 1, "the checkpoint store", &r->report->checkpoint);
    int status = open_stores(r, error);
    if (status == PAWL_OK)
        status = open_checkpoints(r, error);
    r->error = error;
    for (uint32_t i = 0; status == PAWL_OK && i < r->source->file.partitions; i++)
        status = replay_partition(r, i);
    close_checkpoints(r);
    int closed = close_stores(r, error);
    return status != PAWL_OK ? status : closed;
}

int replay_with_log(const pawl_replay_options *options, const char *log, pawl_state_report *ret_report,
                    pawl_error *error)
{
    pawl_state_report report = {0};
    struct replaying r = {.options = options, .log = log, .report = &report};
    pawl_options reading = {.read_only = true, .allocator = options->allocator};
    struct engine_knobs knobs = {.backup = options->backup, .log = log};
    int status = engine_open(options->dir, &reading, &knobs, &r.source, error);
    if (status != PAWL_OK)
        return status;
    status = open_target(&r, error);
    if (status == PAWL_OK) {
        arena_init(&r.memory, options->allocator, ARENA_CHUNK);
        overlay_init(&r.overlay, options->allocator);
        uint8_t *scratch = mem_new(options->allocator, 1, STATE_SCRATCH_BYTES);
        r.replay = (struct replay){.overlay = &r.overlay,
                                   .memory = &r.memory,
                                   .scratch = scratch,
                                   .schema_at = schema_at,
                                   .ctx = r.source};
        status = scratch ? replay_all(&r, error) : error_set(error, PAWL_ENOMEM, "no memory to replay");
        mem_free(options->allocator, scratch, STATE_SCRATCH_BYTES);
        arena_release(&r.memory);
        overlay_release(&r.overlay);
        if (!options->to || status != PAWL_OK)
            tree_remove(r.to);
    }
    if (status == PAWL_OK && options->left_out)
        status = pawl_unwitnessed(r.source, options->left_out, options->left_out_arg, error);
    pawl_close(r.source);
    if (status == PAWL_OK)
        *ret_report = report;
    return status;
}

int pawl_replay(const pawl_replay_options *options, pawl_state_report *ret_report, pawl_error *error)
{
    pawl_replay_options plain = *options;
    int status = engine_directory(options->dir, &plain.dir, error);
    if (status == PAWL_OK && options->to)
        status = engine_directory(options->to, &plain.to, error);
    return status == PAWL_OK ? replay_with_log(&plain, NULL, ret_report, error) : status;
}

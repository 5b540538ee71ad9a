#include "engine/checkpoint/lane_tables.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "core/project/remove.h"
#include "core/state/key.h"
#include "engine/node/node.h"

#define REMOVE_ROWS ((size_t)512) /* in a piece: they lie side by side, in few pages */
#define CHUNK       ((size_t)64 * 1024)

int lane_tables_init(struct lane_tables *l, pawl_engine *engine, uint32_t shard, pawl_store *store)
{
    const pawl_allocator *alloc = engine->options.allocator;
    *l = (struct lane_tables){.engine = engine, .shard = shard, .store = store, .alloc = alloc};
    arena_init(&l->memory, alloc, CHUNK);
    l->scratch = mem_new(alloc, 1, STATE_SCRATCH_BYTES);
    return l->scratch ? PAWL_OK : PAWL_ENOMEM;
}

static void free_followed(struct lane_tables *l, struct followed *f)
{
    cursor_release(&f->cursor);
    mem_free(l->alloc, f, sizeof *f);
}

void lane_tables_release(struct lane_tables *l)
{
    for (size_t i = 0; i < l->count; i++)
        free_followed(l, l->followed[i]);
    mem_free(l->alloc, l->followed, l->room * sizeof *l->followed);
    arena_release(&l->memory);
    mem_free(l->alloc, l->scratch, l->scratch ? STATE_SCRATCH_BYTES : 0);
    l->scratch = NULL;
}

/* The place of a partition among those of the shard. */
static size_t index_of(const struct lane_tables *l, uint16_t partition)
{
    return partition_set_index(&l->engine->shards[l->shard].partitions, partition);
}

/* --- what is followed --- */

static struct followed *find(struct lane_tables *l, uint16_t partition, uint16_t lane, uint32_t generation)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct cursor *cursor = &l->followed[i]->cursor;
        if (cursor->partition == partition && cursor->lane == lane && cursor->generation == generation)
            return l->followed[i];
    }
    return NULL;
}

/* Room for one more. */
static bool reserve(struct lane_tables *l)
{
    if (l->count < l->room)
        return true;
    size_t room = l->room ? 2 * l->room : 16;
    struct followed **followed =
        mem_resize(l->alloc, l->followed, l->room * sizeof *followed, room * sizeof *followed);
    if (!followed)
        return false;
    l->followed = followed;
    l->room = room;
    return true;
}

static int follow(struct lane_tables *l, uint16_t partition, uint16_t lane, uint32_t generation,
                  pawl_error *error)
{
    struct followed *f = find(l, partition, lane, generation);
    if (f) {
        f->ended = false;
        return PAWL_OK;
    }
    f = reserve(l) ? mem_new(l->alloc, 1, sizeof *f) : NULL;
    if (!f)
        return error_set(error, PAWL_ENOMEM, "no memory for a checkpoint of lanes");
    cursor_init(&f->cursor, l->alloc, partition, lane, generation);
    int status = cursor_read(&f->cursor, pawl_store_writer(l->store), error);
    if (status != PAWL_OK) {
        free_followed(l, f);
        return status;
    }
    l->followed[l->count++] = l->followed[l->read];
    l->followed[l->read++] = f;
    return PAWL_OK;
}

/* Follow also every generation that the store has a cursor of: it may have ended while the engine was
 * closed. */
struct finding {
    struct lane_tables *lanes;
    pawl_error *error;
    int status;
};

static bool found_cursor(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct finding *finding = arg;
    uint16_t partition, lane;
    uint32_t generation;
    (void)value;
    if (cursor_key_read(key, &partition, &lane, &generation))
        finding->status = follow(finding->lanes, partition, lane, generation, finding->error);
    return finding->status == PAWL_OK;
}

static int follow_stored(struct lane_tables *l, pawl_error *error)
{
    struct finding finding = {.lanes = l, .error = error};
    uint8_t from[KEY_TABLE], to[KEY_TABLE];
    put_u32_sorted(from, TABLE_LANE);
    put_u32_sorted(to, TABLE_LANE + 1);
    pawl_range range = {.space = STATE_SPACE, .from = {from, sizeof from}, .to = {to, sizeof to}};
    int status = pawl_store_scan(pawl_store_writer(l->store), range, false, found_cursor, &finding);
    return status != PAWL_OK ? status : finding.status;
}

int lane_tables_refresh(struct lane_tables *l, pawl_error *error)
{
    const struct partition_set *partitions = &l->engine->shards[l->shard].partitions;
    const struct schema *schema = engine_schema(l->engine);
    if (l->schema == schema)
        return PAWL_OK;
    int status = l->schema ? PAWL_OK : follow_stored(l, error);
    for (size_t i = 0; i < l->count; i++)
        l->followed[i]->ended = true;
    for (size_t i = 0; status == PAWL_OK && i < schema->lane_count; i++) {
        const struct schema_lane *lane = &schema->lanes[i];
        for (size_t j = 0; status == PAWL_OK && j < partitions->count; j++) {
            uint16_t partition = partition_set_at(partitions, j);
            status = follow(l, partition, lane->id, lane->generation, error);
            if (status == PAWL_OK && lane->serving && lane->serving != lane->generation)
                status = follow(l, partition, lane->id, lane->serving, error);
        }
    }
    if (status == PAWL_OK)
        l->schema = schema;
    return status;
}

/* --- reading --- */

static bool is_gone(const struct lane_tables *l, const struct followed *f)
{
    const struct cursor *cursor = &f->cursor;
    return f->over && !lanes_need(l->schema, cursor->lane, cursor->generation, &cursor->digests);
}

/* Read from the last operation that the checkpoint has: if the log's differs, the checkpoint is of another
 * log. */
void lane_tables_begin(struct lane_tables *l, pawl_sweep_stream *streams)
{
    for (size_t i = 0; i < l->count; i++) {
        struct followed *f = l->followed[i];
        const struct cursor *cursor = &f->cursor;
        f->over = f->ended && !lanes_has_generation(l->engine, cursor->lane, cursor->generation);
        if (i >= l->read) {
            f->gone = is_gone(l, f); /* no more of its operations will be read */
            continue;
        }
        streams[i] = (pawl_sweep_stream){.stream = {.kind = PAWL_STREAM_OPLOG,
                                                    .partition = cursor->partition,
                                                    .lane = cursor->lane,
                                                    .generation = cursor->generation},
                                         .from = cursor->applied ? cursor->applied : 1,
                                         .at = cursor->place};
    }
}

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    return engine_schema_at(ctx, position);
}

static int wrap_stream(pawl_stream stream, int status, pawl_error *error)
{
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_stream_format(stream, name);
    return error_wrap(error, status, "%s", name);
}

int lane_tables_take(struct lane_tables *l, size_t index, const pawl_entry *entry, pawl_place place,
                     pawl_error *error)
{
    struct followed *f = l->followed[index];
    size_t partition = index_of(l, f->cursor.partition);
    struct redo redo = {.store = l->store,
                        .cursor = &f->cursor,
                        .gathered = checkpoint_gathered(l->checkpoint, partition),
                        .memory = &l->memory,
                        .scratch = l->scratch,
                        .schema_at = schema_at,
                        .ctx = l->engine};
    int status = PAWL_OK;
    if (entry->offset > f->cursor.applied) {
        arena_reset(&l->memory);
        f->ahead = true;
        status = redo_operation(&redo, entry->offset, place, entry->body, error);
        checkpoint_count(l->checkpoint, partition);
    } else if (hash_checksum(0, entry->body) != f->cursor.checksum)
        status =
            error_set(error, PAWL_ECORRUPT,
                      "operation %" PRIu64 " is not the one that the checkpoint was made from", entry->offset);
    return status == PAWL_OK ? status : wrap_stream(entry->stream, status, error);
}

/* Only at the end of its log, when nobody adds to it any more, is it known which tables a generation has rows
 * in. */
int lane_tables_end(struct lane_tables *l, const pawl_sweep_stream *streams, pawl_error *error)
{
    for (size_t i = 0; i < l->read; i++) {
        struct followed *f = l->followed[i];
        const struct cursor *cursor = &f->cursor;
        if (!streams[i].ended)
            continue;
        if (cursor->applied > 0 && streams[i].next <= cursor->applied) {
            int status =
                error_set(error, PAWL_ECORRUPT,
                          "it ends before operation %" PRIu64 ", which the checkpoint has", cursor->applied);
            return wrap_stream(streams[i].stream, status, error);
        }
        f->gone = is_gone(l, f);
    }
    return PAWL_OK;
}

const pawl_sweep_stream *lane_tables_leave(struct lane_tables *l, const pawl_sweep_stream *streams)
{
    size_t i = 0;
    while (i < l->read && !streams[i].damaged)
        i++;
    if (i == l->read)
        return NULL;
    struct followed *f = l->followed[i];
    l->followed[i] = l->followed[--l->read];
    l->followed[l->read] = f;
    return &streams[i];
}

/* --- committing --- */

int lane_tables_write(struct lane_tables *l, uint16_t partition)
{
    int status = PAWL_OK;
    for (size_t i = 0; i < l->count && status == PAWL_OK; i++) {
        struct followed *f = l->followed[i];
        if (f->ahead && f->cursor.partition == partition)
            status = cursor_write(&f->cursor, l->store);
    }
    return status;
}

void lane_tables_committed(struct lane_tables *l)
{
    for (size_t i = 0; i < l->count; i++)
        l->followed[i]->ahead = false;
}

int lane_tables_remove_rows(struct lane_tables *l, bool *ret_more)
{
    size_t i = 0;
    while (i < l->count && !l->followed[i]->gone)
        i++;
    *ret_more = i < l->count;
    if (i == l->count)
        return PAWL_OK;
    struct followed *f = l->followed[i];
    struct removal removal = {.store = l->store,
                              .cursor = &f->cursor,
                              .partitions = l->engine->file.partitions,
                              .rows_max = REMOVE_ROWS,
                              .alloc = l->alloc};
    knobs_step(&l->engine->knobs, "rows of a checkpoint are removed");
    bool last;
    int status = remove_piece(&removal, &last);
    if (status == PAWL_OK)
        status = pawl_store_commit(l->store);
    else
        pawl_store_abort(l->store);
    if (status == PAWL_OK && last) {
        free_followed(l, f);
        if (i < l->read) {
            l->followed[i] = l->followed[--l->read];
            i = l->read;
        }
        l->followed[i] = l->followed[--l->count];
    }
    return status;
}

int lane_tables_forget(struct lane_tables *l, pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; i < l->count && status == PAWL_OK; i++) {
        struct followed *f = l->followed[i];
        status = cursor_read(&f->cursor, pawl_store_writer(l->store), error);
        f->ahead = false;
    }
    return status;
}

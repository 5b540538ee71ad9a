#include "engine/checkpoint_lanes.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "core/state/key.h"
#include "engine/node.h"

#define READ_OPERATIONS UINT64_C(16384) /* of one log, before the next one's turn */
#define CHUNK           ((size_t)64 * 1024)

int checkpoint_lanes_init(struct checkpoint_lanes *l, pawl_engine *engine, uint32_t shard, pawl_store *store)
{
    const pawl_allocator *alloc = engine->options.allocator;
    *l = (struct checkpoint_lanes){.engine = engine, .shard = shard, .store = store, .alloc = alloc};
    arena_init(&l->memory, alloc, CHUNK);
    l->scratch = mem_new(alloc, 1, STATE_SCRATCH_BYTES);
    return l->scratch ? PAWL_OK : PAWL_ENOMEM;
}

static void free_followed(struct checkpoint_lanes *l, struct followed *f)
{
    cursor_release(&f->cursor);
    mem_free(l->alloc, f, sizeof *f);
}

void checkpoint_lanes_release(struct checkpoint_lanes *l)
{
    while (l->first) {
        struct followed *f = l->first;
        l->first = f->next;
        free_followed(l, f);
    }
    arena_release(&l->memory);
    mem_free(l->alloc, l->scratch, l->scratch ? STATE_SCRATCH_BYTES : 0);
    l->scratch = NULL;
}

/* --- what is followed --- */

static struct followed *find(struct checkpoint_lanes *l, uint16_t partition, uint16_t lane, uint32_t generation)
{
    for (struct followed *f = l->first; f; f = f->next)
        if (f->cursor.partition == partition && f->cursor.lane == lane && f->cursor.generation == generation)
            return f;
    return NULL;
}

static int follow(struct checkpoint_lanes *l, uint16_t partition, uint16_t lane, uint32_t generation,
                  pawl_error *error)
{
    struct followed *f = find(l, partition, lane, generation);
    if (f) {
        f->ended = false;
        return PAWL_OK;
    }
    f = mem_new(l->alloc, 1, sizeof *f);
    if (!f)
        return error_set(error, PAWL_ENOMEM, "no memory for a checkpoint of lanes");
    cursor_init(&f->cursor, l->alloc, partition, lane, generation);
    int status = cursor_read(&f->cursor, pawl_store_writer(l->store), error);
    if (status != PAWL_OK) {
        free_followed(l, f);
        return status;
    }
    f->next = l->first;
    l->first = f;
    return PAWL_OK;
}

/* What the store has a cursor of is there, too: it may be of a generation that went while nobody looked. */
struct finding {
    struct checkpoint_lanes *lanes;
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

static int follow_stored(struct checkpoint_lanes *l, pawl_error *error)
{
    struct finding finding = {.lanes = l, .error = error};
    uint8_t from[KEY_TABLE], to[KEY_TABLE];
    put_u32_sorted(from, TABLE_LANE);
    put_u32_sorted(to, TABLE_LANE + 1);
    pawl_range range = {.space = STATE_SPACE, .from = {from, sizeof from}, .to = {to, sizeof to}};
    int status = pawl_store_scan(pawl_store_writer(l->store), range, false, found_cursor, &finding);
    return status != PAWL_OK ? status : finding.status;
}

static int look_at_schema(struct checkpoint_lanes *l, pawl_error *error)
{
    const struct schema *schema = engine_schema(l->engine);
    if (l->schema == schema)
        return PAWL_OK;
    int status = l->schema ? PAWL_OK : follow_stored(l, error);
    for (struct followed *f = l->first; f; f = f->next)
        f->ended = true;
    for (size_t i = 0; status == PAWL_OK && i < schema->lane_count; i++) {
        const struct schema_lane *lane = &schema->lanes[i];
        for (uint32_t p = l->shard; status == PAWL_OK && p < l->engine->file.partitions;
             p += l->engine->file.shards) {
            status = follow(l, (uint16_t)p, lane->id, lane->generation, error);
            if (status == PAWL_OK && lane->serving && lane->serving != lane->generation)
                status = follow(l, (uint16_t)p, lane->id, lane->serving, error);
        }
    }
    if (status == PAWL_OK)
        l->schema = schema;
    return status;
}

/* --- reading --- */

struct reading {
    struct checkpoint_lanes *lanes;
    struct followed *followed;
    struct redo redo;
    pawl_error *error;
    int status;
};

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    return engine_schema_at(ctx, position);
}

/* The first entry of a read is the last one that the checkpoint has: the same, or it is of another log. */
static bool take(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct reading *r = read->arg;
    struct cursor *cursor = &r->followed->cursor;
    if (entry->offset == cursor->applied) {
        if (hash_checksum(0, entry->body) != cursor->checksum)
            r->status = error_set(r->error, PAWL_ECORRUPT,
                                  "operation %" PRIu64 " is not the one that the checkpoint was made from",
                                  entry->offset);
        return r->status == PAWL_OK;
    }
    arena_reset(&r->lanes->memory);
    r->status = redo_operation(&r->redo, entry->offset, place, entry->body, r->error);
    r->followed->ahead = true;
    checkpoint_count(r->lanes->checkpoint);
    return r->status == PAWL_OK && !checkpoint_is_full(r->lanes->checkpoint);
}

static void never_called(pawl_read *read)
{
    (void)read;
}

static int read_log(struct checkpoint_lanes *l, struct followed *f, pawl_error *error)
{
    struct cursor *cursor = &f->cursor;
    struct reading r = {.lanes = l,
                        .followed = f,
                        .error = error,
                        .redo = {.store = l->store,
                                 .cursor = cursor,
                                 .gathered = checkpoint_gathered(l->checkpoint),
                                 .memory = &l->memory,
                                 .scratch = l->scratch,
                                 .schema_at = schema_at,
                                 .ctx = l->engine}};
    pawl_read read = {.stream = {.kind = PAWL_STREAM_OPLOG,
                                 .partition = cursor->partition,
                                 .lane = cursor->lane,
                                 .generation = cursor->generation},
                      .from = cursor->applied ? cursor->applied : 1,
                      .at = cursor->place,
                      .limit = READ_OPERATIONS,
                      .alone = true,
                      .visit = take,
                      .done = never_called,
                      .arg = &r,
                      .error = error};
    uint64_t applied = cursor->applied;
    char name[PAWL_STREAM_TEXT_MAX];
    int status = pawl_log_read(l->engine->log, &read);
    status = status == PAWL_READ_DONE ? read.status : status;
    l->log_failed = status != PAWL_OK;
    if (status == PAWL_OK)
        status = r.status;
    if (status == PAWL_OK && applied > 0 && read.next == applied)
        status = error_set(error, PAWL_ECORRUPT,
                           "it ends before operation %" PRIu64 ", which the checkpoint has", applied);
    pawl_stream_format(read.stream, name);
    return status == PAWL_OK ? status : error_wrap(error, status, "%s", name);
}

/* Which tables it has rows of is known at the end of its log, once nobody adds to that. */
static int read_ended(struct checkpoint_lanes *l, struct followed *f, pawl_error *error)
{
    const struct cursor *cursor = &f->cursor;
    bool over = !generation_is_there(l->engine, cursor->lane, cursor->generation);
    uint64_t before = cursor->applied;
    int status = read_log(l, f, error);
    f->gone = status == PAWL_OK && over && cursor->applied == before
              && !lanes_need(l->schema, cursor->lane, cursor->generation, &cursor->digests);
    return status;
}

int checkpoint_lanes_read(struct checkpoint_lanes *l, pawl_error *error)
{
    int status = look_at_schema(l, error);
    for (struct followed *f = l->first; f && status == PAWL_OK; f = f->next)
        if (!f->gone && !checkpoint_is_full(l->checkpoint))
            status = f->ended ? read_ended(l, f, error) : read_log(l, f, error);
    return status;
}

/* --- committing --- */

static int remove_rows(struct checkpoint_lanes *l, const struct cursor *cursor)
{
    struct position position = {.partition = cursor->partition};
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < cursor->digests.count; i++) {
        uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
        pawl_range range =
            position_range(&position, l->engine->file.partitions, cursor->digests.tables[i].table, from, to);
        status = pawl_store_remove_range(l->store, range);
    }
    uint8_t key[CURSOR_KEY];
    if (status == PAWL_OK)
        status = pawl_store_remove(l->store, STATE_SPACE,
                                   cursor_key(cursor->partition, cursor->lane, cursor->generation, key));
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

int checkpoint_lanes_write(struct checkpoint_lanes *l)
{
    int status = PAWL_OK;
    for (struct followed *f = l->first; f && status == PAWL_OK; f = f->next) {
        if (f->gone)
            status = remove_rows(l, &f->cursor);
        else if (f->ahead)
            status = cursor_write(&f->cursor, l->store);
    }
    return status;
}

void checkpoint_lanes_committed(struct checkpoint_lanes *l)
{
    for (struct followed **link = &l->first; *link;) {
        struct followed *f = *link;
        f->ahead = false;
        if (!f->gone) {
            link = &f->next;
            continue;
        }
        *link = f->next;
        free_followed(l, f);
    }
}

int checkpoint_lanes_forget(struct checkpoint_lanes *l, pawl_error *error)
{
    int status = PAWL_OK;
    for (struct followed *f = l->first; f && status == PAWL_OK; f = f->next) {
        status = cursor_read(&f->cursor, pawl_store_writer(l->store), error);
        f->ahead = false;
    }
    return status;
}

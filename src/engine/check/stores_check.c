#include "engine/check/stores_check.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/hash.h"
#include "core/project/cursor.h"
#include "core/sequence/storage.h"
#include "core/state/position.h"
#include "engine/log/log.h"
#include "engine/node/node.h"

struct checking {
    const struct stores_check *check;
    pawl_engine *engine;
    pawl_reader *snapshot;
    struct position position; /* of the partition that is checked now */
    pawl_error *error;
};

/* An entry that a store says it was made from. */
struct witness {
    uint64_t offset; /* 0: none */
    pawl_place place;
    const uint64_t *checksum; /* NULL: any entry will do */
};

struct looking {
    const struct witness *wanted;
    bool found, same;
};

static bool look(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct looking *l = read->arg;
    const struct witness *w = l->wanted;
    l->found = true;
    l->same = (!w->checksum || hash_checksum(0, entry->body) == *w->checksum)
              && (w->place.position == 0 || w->place.position == place.position);
    return false;
}

static int check_entry(const struct checking *c, pawl_stream stream, const struct witness *wanted)
{
    char name[PAWL_STREAM_TEXT_MAX];
    struct looking looking = {.wanted = wanted};
    pawl_read read = {.stream = stream,
                      .from = wanted->offset,
                      .limit = 1,
                      .at = wanted->place,
                      .alone = true,
                      .visit = look,
                      .arg = &looking,
                      .error = c->error};
    pawl_stream_format(stream, name);
    if (wanted->offset == 0)
        return PAWL_OK;
    int status = pawl_log_read(c->engine->log, &read);
    if (status != PAWL_READ_DONE)
        return error_set(c->error, status, "cannot read %s", name);
    if (read.status == PAWL_ECORRUPT && stream.kind == PAWL_STREAM_OPLOG) {
        error_clear(
            c->error); /* whoever opens the stores finds this, and refuses the lane, but not the others */
        return PAWL_OK;
    }
    if (read.status != PAWL_OK)
        return read.status;
    if (!looking.found)
        return error_set(c->error, PAWL_ECORRUPT, "the state has offset %" PRIu64 " of %s, and the log has not",
                         wanted->offset, name);
    return looking.same
               ? PAWL_OK
               : error_set(c->error, PAWL_ECORRUPT,
                           "the state was made from another entry at offset %" PRIu64 " of %s than the log has",
                           wanted->offset, name);
}

/* Numbers may be stored that are ahead of the state. */
static int check_events(const struct checking *c)
{
    const struct position *p = &c->position;
    pawl_stream plog = {.kind = PAWL_STREAM_PLOG, .partition = p->partition};
    struct witness last = {.offset = p->offset, .place = p->place, .checksum = &p->checksum};
    struct witness numbered = {0};
    int status = sequence_read_offset(c->snapshot, p->partition, &numbered.offset);
    if (status != PAWL_OK)
        return error_set(c->error, status, "partition %u: the sequence storage cannot be read", p->partition);
    status = check_entry(c, plog, &last);
    return status == PAWL_OK && numbered.offset > last.offset ? check_entry(c, plog, &numbered) : status;
}

static int check_generation(const struct checking *c, uint16_t lane, uint32_t generation)
{
    struct cursor cursor;
    pawl_stream oplog = {
        .kind = PAWL_STREAM_OPLOG, .partition = c->position.partition, .lane = lane, .generation = generation};
    cursor_init(&cursor, c->check->alloc, c->position.partition, lane, generation);
    int status = cursor_read(&cursor, c->snapshot, c->error);
    struct witness last = {.offset = cursor.applied, .place = cursor.place, .checksum = &cursor.checksum};
    if (status == PAWL_OK)
        status = check_entry(c, oplog, &last);
    cursor_release(&cursor);
    return status;
}

/* Generations that the schema has left behind are of no use to anybody, and may be removed by half. */
static int check_lanes(const struct checking *c)
{
    const struct schema *schema = engine_schema(c->engine);
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < schema->lane_count; i++) {
        const struct schema_lane *lane = &schema->lanes[i];
        status = check_generation(c, lane->id, lane->generation);
        if (status == PAWL_OK && lane->serving && lane->serving != lane->generation)
            status = check_generation(c, lane->id, lane->serving);
    }
    return status;
}

static int check_partition(struct checking *c, uint16_t partition)
{
    position_init(&c->position, c->check->alloc, partition);
    int status = position_read(&c->position, c->snapshot, c->error);
    if (status == PAWL_OK)
        status = check_events(c);
    if (status == PAWL_OK)
        status = check_lanes(c);
    position_release(&c->position);
    return status;
}

static int check_shard(struct checking *c, const struct shard *shard)
{
    int status = pawl_store_snapshot(shard->store, &c->snapshot);
    if (status != PAWL_OK)
        return error_set(c->error, status, "cannot read the state of shard %u", shard->index);
    for (size_t i = 0; status == PAWL_OK && i < shard->partitions.count; i++) {
        status = check_partition(c, partition_set_at(&shard->partitions, i));
        if (status == PAWL_OK && !c->check->progress(c->check->arg, 0, 0))
            status = error_set(c->error, PAWL_ECANCELED, "checking %s was cancelled", c->check->dir);
    }
    pawl_store_release(shard->store, c->snapshot);
    return status;
}

int stores_check(const struct stores_check *check, uint64_t *ret_records, pawl_error *error)
{
    struct checking c = {.check = check, .error = error};
    const pawl_options reading = {.read_only = true, .allocator = check->alloc};
    const struct engine_knobs knobs = {.backup = true};
    int status = engine_open(check->dir, &reading, &knobs, &c.engine, error);
    if (status != PAWL_OK)
        return status;
    for (uint32_t i = 0; status == PAWL_OK && i < c.engine->file.shards; i++)
        status = check_shard(&c, &c.engine->shards[i]);
    if (status == PAWL_OK)
        *ret_records = cluster_records_read(c.engine->kafka);
    (void)pawl_close(c.engine);
    return status;
}

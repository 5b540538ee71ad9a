#include "engine/log/witness.h"

#include "adapter/journal/journal.h"
#include "adapter/lmdb/store.h"
#include "base/error.h"
#include "base/partition_set.h"
#include "core/project/cursor.h"
#include "core/state/position.h"

static void take(pawl_place *highest, pawl_place place)
{
    if (place.position > highest->position)
        *highest = place;
}

struct looking {
    pawl_reader *snapshot;
    const pawl_allocator *alloc;
    pawl_place *highest;
    int status; /* of a cursor */
};

static bool look_at_cursor(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct looking *l = arg;
    struct cursor cursor;
    uint16_t partition, lane;
    uint32_t generation;
    if (!cursor_key_read(key, &partition, &lane, &generation))
        return true;
    cursor_init(&cursor, l->alloc, partition, lane, generation);
    int status = cursor_read(&cursor, l->snapshot, NULL);
    if (status == PAWL_OK)
        take(l->highest, cursor.place);
    cursor_release(&cursor);
    l->status = status == PAWL_ENOMEM ? status : PAWL_OK;
    return l->status == PAWL_OK;
}

static int look_at_cursors(struct looking *l, uint16_t partition, pawl_error *error)
{
    uint8_t key[CURSOR_KEY], end[CURSOR_KEY];
    pawl_bytes prefix = cursor_key(partition, 0, 0, key);
    prefix.size = CURSOR_PREFIX;
    pawl_range range = {.space = STATE_SPACE, .from = prefix, .to = key_after_prefix(prefix, end)};
    int status = pawl_store_scan(l->snapshot, range, false, look_at_cursor, l);
    if (status == PAWL_OK)
        status = l->status;
    return status == PAWL_OK ? PAWL_OK
                             : error_set(error, status, "cannot read the lanes of partition %u", partition);
}

static int look_at_position(struct looking *l, uint16_t partition, pawl_error *error)
{
    struct position position;
    position_init(&position, l->alloc, partition);
    int status = position_read(&position, l->snapshot, error);
    if (status == PAWL_OK)
        take(l->highest, position.place);
    position_release(&position);
    return status;
}

int witness_of_store(pawl_store *store, const struct node_file *file, uint32_t shard,
                     const pawl_allocator *alloc, pawl_place *highest, pawl_error *error)
{
    struct looking l = {.alloc = alloc, .highest = highest};
    struct partition_set set = partition_set_of(shard, file->partitions, file->shards);
    int worst = PAWL_OK;
    int status = pawl_store_snapshot(store, &l.snapshot);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot read the state of shard %u", shard);
    for (size_t i = 0; status == PAWL_OK && i < set.count; i++) {
        uint16_t partition = partition_set_at(&set, i);
        status = look_at_position(&l, partition, error);
        if (status == PAWL_ECORRUPT) {
            worst = status;
            status = PAWL_OK;
        }
        if (status == PAWL_OK)
            status = look_at_cursors(&l, partition, error);
    }
    pawl_store_release(store, l.snapshot);
    return status != PAWL_OK ? status : worst;
}

static void look_into(const char *path, enum pawl_store_mode mode, const struct node_file *file, uint32_t shard,
                      pawl_place *highest)
{
    pawl_store *store;
    struct lmdb_options options = {.dir = path, .mode = mode, .read_only = true};
    if (lmdb_store_open(&options, NULL, &store, NULL) != PAWL_OK)
        return;
    (void)witness_of_store(store, file, shard, NULL, highest, NULL);
    (void)pawl_store_close(store);
}

void witness_of_directory(const char *dir, const struct node_file *file, pawl_place *highest)
{
    char path[NODE_PATH_MAX];
    for (uint32_t i = 0; i < file->shards; i++) {
        if (node_path(dir, path, NULL, "state/%u", i) == PAWL_OK)
            look_into(path, PAWL_STORE_FAST, file, i, highest);
        if (node_path(dir, path, NULL, "checkpoint/%u", i) == PAWL_OK)
            look_into(path, PAWL_STORE_DURABLE, file, i, highest);
    }
}

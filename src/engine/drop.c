/* engine/drop.c: rows of generations that nobody reads any more.
 *
 * A cursor's row says that there is something, and which tables have rows; it is the last to be removed, so
 * whatever ends this in between, it is found again. Rows go in slices, each a transaction of its own, between
 * other work of the shard.
 *
 * A generation is opened on a shard after its schema was published. So whoever looks on the shard, and by the
 * schema that is published there and then, takes none that is newer for one that is done with. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/state/key.h"
#include "engine/node.h"

#define ROWS_AT_ONCE 512
#define GRACE        (10 * PAWL_SECOND) /* for readers in other processes, that look at the schema now and then */

bool lanes_need(const struct schema *schema, uint16_t id, uint32_t number, const struct digests *tables)
{
    const struct schema_lane *lane = schema_lane_by_id(schema, id);
    if (lane && (lane->generation == number || lane->serving == number))
        return true;
    for (size_t i = 0; i < schema->type_count; i++)
        for (size_t k = 0; k < tables->count; k++)
            if (schema->types[i].kind == TYPE_ENTITY
                && schema_serving_table(schema, &schema->types[i]) == tables->tables[k].table)
                return true;
    return false;
}

/* One piece of work on a shard. */
struct dropping {
    pawl_engine *engine;
    uint32_t shard;
    const struct schema *schema;
    uint16_t partition;
    struct cursor cursor; /* of what is to go, if found */
    bool found;
    size_t rows; /* removed */
    int status;
};

struct first_unneeded {
    struct dropping *dropping;
    int status;
};

static bool look_at_cursor(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct first_unneeded *first = arg;
    struct dropping *d = first->dropping;
    uint16_t partition, lane;
    uint32_t generation;
    (void)value;
    if (!cursor_key_read(key, &partition, &lane, &generation))
        return true;
    cursor_release(&d->cursor);
    cursor_init(&d->cursor, d->engine->options.allocator, partition, lane, generation);
    first->status = cursor_read(&d->cursor, pawl_store_writer(d->engine->shards[d->shard].store), NULL);
    d->found = first->status == PAWL_OK && !lanes_need(d->schema, lane, generation, &d->cursor.digests);
    return first->status == PAWL_OK && !d->found;
}

static int find_unneeded(struct dropping *d)
{
    uint8_t key[CURSOR_KEY], end[CURSOR_KEY];
    struct first_unneeded first = {.dropping = d};
    pawl_bytes prefix = cursor_key(d->partition, 0, 0, key);
    prefix.size = CURSOR_PREFIX;
    pawl_range range = {.space = STATE_SPACE, .from = prefix, .to = key_after_prefix(prefix, end)};
    d->found = false;
    int status = pawl_store_scan(pawl_store_writer(d->engine->shards[d->shard].store), range, false,
                                 look_at_cursor, &first);
    return status == PAWL_OK ? first.status : status;
}

struct slice {
    size_t left;
    uint8_t *last; /* PAWL_KEY_BYTES_MAX: the key behind the last one of the slice */
    size_t last_size;
};

static bool count_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct slice *slice = arg;
    (void)value;
    if (slice->left-- > 0)
        return true;
    memcpy(slice->last, key.data, key.size);
    slice->last_size = key.size;
    return false;
}

/* The keys of a table in a partition: a partition is the top bits of the token. */
static pawl_range table_range(const pawl_engine *e, uint32_t table, uint16_t partition, uint8_t from[12],
                              uint8_t to[12])
{
    uint64_t width = e->file.partitions == 1 ? 0 : UINT64_MAX / e->file.partitions + 1;
    bool last = (uint32_t)partition + 1 == e->file.partitions;
    put_u32_sorted(from, table);
    put_u64_sorted(from + 4, width * partition);
    put_u32_sorted(to, last ? table + 1 : table);
    put_u64_sorted(to + 4, last ? 0 : width * ((uint64_t)partition + 1));
    return (pawl_range){.space = STATE_SPACE, .from = {from, 12}, .to = {to, 12}};
}

static int drop_slice(struct dropping *d, uint32_t table, uint8_t *key)
{
    pawl_store *store = d->engine->shards[d->shard].store;
    uint8_t from[12], to[12];
    pawl_range range = table_range(d->engine, table, d->partition, from, to);
    struct slice slice = {.left = ROWS_AT_ONCE - d->rows, .last = key};
    size_t before = slice.left;
    int status = pawl_store_scan(pawl_store_writer(store), range, false, count_row, &slice);
    bool all = slice.last_size == 0;
    if (!all)
        range.to = (pawl_bytes){slice.last, slice.last_size};
    d->rows += all ? before - slice.left : before;
    return status == PAWL_OK ? pawl_store_remove_range(store, range) : status;
}

static int drop_some(struct dropping *d)
{
    pawl_store *store = d->engine->shards[d->shard].store;
    const struct digests *tables = &d->cursor.digests;
    uint8_t *key = mem_new(d->engine->options.allocator, 1, PAWL_KEY_BYTES_MAX);
    uint8_t row[CURSOR_KEY];
    int status = key ? PAWL_OK : PAWL_ENOMEM;
    for (size_t i = 0; i < tables->count && status == PAWL_OK && d->rows < ROWS_AT_ONCE; i++)
        status = drop_slice(d, tables->tables[i].table, key);
    if (status == PAWL_OK && d->rows < ROWS_AT_ONCE)
        status = pawl_store_remove(store, STATE_SPACE,
                                   cursor_key(d->partition, d->cursor.lane, d->cursor.generation, row));
    mem_free(d->engine->options.allocator, key, key ? PAWL_KEY_BYTES_MAX : 0);
    return status;
}

static void drop_here(void *arg)
{
    struct dropping *d = arg;
    pawl_store *store = d->engine->shards[d->shard].store;
    d->rows = 0;
    d->found = false;
    d->status = PAWL_EBUSY;
    if (engine_schema(d->engine) != d->schema) /* which may have a generation that this one knows nothing of */
        return;
    cursor_init(&d->cursor, d->engine->options.allocator, 0, 0, 0);
    d->status = find_unneeded(d);
    if (d->status == PAWL_OK && d->found) {
        d->status = drop_some(d);
        if (d->status == PAWL_OK)
            d->status = pawl_store_commit(store);
        else
            pawl_store_abort(store);
    }
    cursor_release(&d->cursor);
}

static bool drop_partition(pawl_engine *e, const struct schema *schema, uint16_t partition)
{
    struct dropping d = {
        .engine = e, .shard = partition % e->file.shards, .schema = schema, .partition = partition};
    do {
        int status = pawl_env_call(e->env, d.shard, drop_here, &d);
        if (status != PAWL_OK || d.status != PAWL_OK)
            return true; /* the store is full, or there is another schema */
    } while (d.found && !atomic_load(&e->closing));
    return false;
}

/* Whether a generation that is on its way out might still write. */
static bool has_retired(pawl_engine *e)
{
    bool retired = false;
    pthread_mutex_lock(&e->lanes.lock);
    for (const struct generation *g = e->lanes.first; g; g = g->next)
        retired = retired || g->retired;
    pthread_mutex_unlock(&e->lanes.lock);
    return retired;
}

bool lanes_drop(pawl_engine *e)
{
    struct lanes *lanes = &e->lanes;
    const struct schema *schema = engine_schema(e);
    pawl_instant now = pawl_env_now(e->env);
    if (lanes->drop_seen != schema) { /* after the schema: whoever reads from now on reads by this one */
        if (atomic_load(&lanes->readers[(atomic_load(&lanes->epoch) + 1) & 1]) > 0)
            return true; /* readers of two epochs ago would be counted among those of the next */
        bool first = !lanes->drop_seen;
        lanes->drop_seen = schema;
        lanes->drop_due = true;
        lanes->drop_at = (pawl_instant){first ? now.ns : now.ns + GRACE};
        lanes->drop_parity = (unsigned)(atomic_fetch_add(&lanes->epoch, 1) & 1);
    }
    if (!lanes->drop_due)
        return false;
    if (now.ns < lanes->drop_at.ns || atomic_load(&lanes->readers[lanes->drop_parity]) > 0 || has_retired(e))
        return true;
    bool left = false;
    trial_step(&e->trial, "rows of lanes are looked for");
    for (uint32_t i = 0; i < e->file.partitions && !atomic_load(&e->closing); i++)
        left = drop_partition(e, schema, (uint16_t)i) || left;
    lanes->drop_due = left;
    if (!left)
        trial_step(&e->trial, "rows of lanes are removed");
    return left;
}

/* engine/lanes/row_removal.c: rows of generations that nobody reads any more.
 *
 * Rows go in pieces, each a transaction of its own, between other work of the shard (core/project/remove.h).
 *
 * A generation is opened on a shard after its schema was published. So whoever looks on the shard, and by the
 * schema that is published there and then, takes none that is newer for one that is done with. */
#include "core/project/remove.h"
#include "core/state/key.h"
#include "engine/lanes/impl.h"

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

static int drop_some(struct dropping *d)
{
    pawl_store *store = d->engine->shards[d->shard].store;
    struct removal removal = {.store = store,
                              .cursor = &d->cursor,
                              .partitions = d->engine->file.partitions,
                              .rows_max = ROWS_AT_ONCE,
                              .alloc = d->engine->options.allocator};
    bool last;
    int status = remove_piece(&removal, &last);
    if (status == PAWL_OK)
        return pawl_store_commit(store);
    pawl_store_abort(store);
    return status;
}

static void drop_here(void *arg)
{
    struct dropping *d = arg;
    d->found = false;
    d->status = PAWL_EBUSY;
    if (engine_schema(d->engine) != d->schema) /* which may have a generation that this one knows nothing of */
        return;
    cursor_init(&d->cursor, d->engine->options.allocator, 0, 0, 0);
    d->status = find_unneeded(d);
    if (d->status == PAWL_OK && d->found)
        d->status = drop_some(d);
    cursor_release(&d->cursor);
}

static bool drop_partition(pawl_engine *e, const struct schema *schema, uint16_t partition)
{
    struct dropping d = {
        .engine = e, .shard = shard_of(e, partition)->index, .schema = schema, .partition = partition};
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
    pthread_mutex_lock(&e->lanes->lock);
    for (const struct generation *g = e->lanes->first; g; g = g->next)
        retired = retired || g->retired;
    pthread_mutex_unlock(&e->lanes->lock);
    return retired;
}

bool lanes_remove_rows(pawl_engine *e)
{
    struct lanes *lanes = e->lanes;
    const struct schema *schema = engine_schema(e);
    pawl_instant now = pawl_env_now(e->env);
    if (lanes->removal_seen != schema) { /* after the schema: whoever reads from now on reads by this one */
        if (atomic_load(&lanes->readers[(atomic_load(&lanes->epoch) + 1) & 1]) > 0)
            return true; /* readers of two epochs ago would be counted among those of the next */
        bool first = !lanes->removal_seen;
        lanes->removal_seen = schema;
        lanes->removal_due = true;
        lanes->removal_at = (pawl_instant){first ? now.ns : now.ns + GRACE};
        lanes->removal_parity = (unsigned)(atomic_fetch_add(&lanes->epoch, 1) & 1);
    }
    if (!lanes->removal_due)
        return false;
    if (now.ns < lanes->removal_at.ns || atomic_load(&lanes->readers[lanes->removal_parity]) > 0
        || has_retired(e))
        return true;
    bool left = false;
    knobs_step(&e->knobs, "rows of lanes are looked for");
    for (uint32_t i = 0; i < e->file.partitions && !atomic_load(&e->closing); i++)
        left = drop_partition(e, schema, (uint16_t)i) || left;
    lanes->removal_due = left;
    if (!left)
        knobs_step(&e->knobs, "rows of lanes are removed");
    return left;
}

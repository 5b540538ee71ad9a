/* engine/lanes/row_removal.c: removes rows of generations that nobody reads any more.
 *
 * Rows are removed in pieces, each a transaction of its own, between other work of the shard
 * (core/project/remove.h).
 *
 * A new generation must not be taken for an unneeded one. A generation is opened on a shard only after its
 * schema was published. So the search runs on the shard, and by the schema that is published at that moment: it
 * knows every generation that has rows there. */
#include "core/project/remove.h"
#include "core/state/key.h"
#include "engine/lanes/impl.h"

#define ROWS_AT_ONCE 512
#define GRACE        (10 * PAWL_SECOND) /* for readers in other processes, which read the schema now and then */

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

/* One piece of the removal, on one shard. */
struct row_removal {
    pawl_engine *engine;
    uint32_t shard;
    const struct schema *schema;
    uint16_t partition;
    struct cursor cursor; /* of the generation to remove, if one was found */
    bool found;
    int status;
};

struct first_unneeded {
    struct row_removal *removal;
    int status;
};

static bool check_cursor(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct first_unneeded *first = arg;
    struct row_removal *r = first->removal;
    uint16_t partition, lane;
    uint32_t generation;
    (void)value;
    if (!cursor_key_read(key, &partition, &lane, &generation))
        return true;
    cursor_release(&r->cursor);
    cursor_init(&r->cursor, r->engine->options.allocator, partition, lane, generation);
    first->status = cursor_read(&r->cursor, pawl_store_writer(r->engine->shards[r->shard].store), NULL);
    r->found = first->status == PAWL_OK && !lanes_need(r->schema, lane, generation, &r->cursor.digests);
    return first->status == PAWL_OK && !r->found;
}

static int find_unneeded(struct row_removal *r)
{
    uint8_t key[CURSOR_KEY], end[CURSOR_KEY];
    struct first_unneeded first = {.removal = r};
    pawl_bytes prefix = cursor_key(r->partition, 0, 0, key);
    prefix.size = CURSOR_PREFIX;
    pawl_range range = {.space = STATE_SPACE, .from = prefix, .to = key_after_prefix(prefix, end)};
    r->found = false;
    int status = pawl_store_scan(pawl_store_writer(r->engine->shards[r->shard].store), range, false,
                                 check_cursor, &first);
    return status == PAWL_OK ? first.status : status;
}

static int put_removal(void *ctx, pawl_store *store, pawl_error *error)
{
    struct row_removal *r = ctx;
    struct removal removal = {.store = store,
                              .cursor = &r->cursor,
                              .partitions = r->engine->file.partitions,
                              .rows_max = ROWS_AT_ONCE,
                              .alloc = r->engine->options.allocator};
    bool last;
    return remove_piece(&removal, &last);
}

static void remove_here(void *arg)
{
    struct row_removal *r = arg;
    r->found = false;
    r->status = PAWL_EBUSY;
    if (engine_schema(r->engine) != r->schema) /* the new one may have a generation that the old one lacks */
        return;
    cursor_init(&r->cursor, r->engine->options.allocator, 0, 0, 0);
    r->status = find_unneeded(r);
    if (r->status == PAWL_OK && r->found)
        r->status = applier_write(&r->engine->shards[r->shard].applier, put_removal, r, NULL);
    cursor_release(&r->cursor);
}

static bool remove_from_partition(pawl_engine *e, const struct schema *schema, uint16_t partition)
{
    struct row_removal r = {
        .engine = e, .shard = shard_of(e, partition)->index, .schema = schema, .partition = partition};
    do {
        int status = pawl_env_call(e->env, r.shard, remove_here, &r);
        if (status != PAWL_OK || r.status != PAWL_OK)
            return true; /* the store is full, or there is a new schema: try again later */
    } while (r.found && !atomic_load(&e->closing));
    return false;
}

/* Whether there is a retired generation: it might still write. */
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
    if (lanes->removal_seen != schema) { /* published already: readers of the next epoch read by it */
        if (atomic_load(&lanes->readers[(atomic_load(&lanes->epoch) + 1) & 1]) > 0)
            return true; /* readers of the epoch before would be counted with those of the next one */
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
        left = remove_from_partition(e, schema, (uint16_t)i) || left;
    lanes->removal_due = left;
    if (!left)
        knobs_step(&e->knobs, "rows of lanes are removed");
    return left;
}

/* engine/shard/wait.c: wait until a partition's state, or the tables of a lane in it, have come to an offset.
 *
 * The waiter's struct lies on the waiter's stack, and in a list that only the shard touches. A waiter whose
 * time is over has the shard take the struct out of the list before it returns. So the shard never touches a
 * struct that is gone. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "engine/node/node.h"

#define TIMEOUT_DEFAULT (10 * PAWL_SECOND)
#define POLL_EVERY      (10 * PAWL_MILLISECOND)

struct request_wait {
    struct shard *shard;
    struct applied_wait *wait;
    bool over; /* it is not in the list: the waiter need not wait, or was woken */
};

static void add_wait(void *arg)
{
    struct request_wait *r = arg;
    const struct partition *partition = &r->shard->engine->partitions[r->wait->partition];
    const struct partition_lane *pl = r->wait->pl;
    uint64_t offset = pl ? lanes_offset(pl) : processor_figures(partition->processor)->offset;
    r->wait->gone = offset < r->wait->offset && pl && !lanes_is_open(pl);
    r->over = offset >= r->wait->offset || r->wait->gone;
    if (r->over)
        return;
    r->wait->next = r->shard->waits;
    r->shard->waits = r->wait;
}

static void remove_wait(void *arg)
{
    struct request_wait *r = arg;
    struct applied_wait **at = &r->shard->waits;
    while (*at && *at != r->wait)
        at = &(*at)->next;
    r->over = !*at;
    if (*at)
        *at = r->wait->next;
}

static void tell(struct shard *shard, const struct partition_lane *pl, uint16_t partition, uint64_t offset,
                 bool gone)
{
    for (struct applied_wait **at = &shard->waits; *at;) {
        struct applied_wait *wait = *at;
        if (wait->pl != pl || wait->partition != partition || wait->offset > offset) {
            at = &wait->next;
            continue;
        }
        *at = wait->next;
        wait->gone = gone;
        latch_set(&wait->latch); /* the waiter may free wait now */
    }
}

void shard_tell_applied(struct shard *shard, const struct partition_lane *pl, uint16_t partition,
                        uint64_t offset)
{
    tell(shard, pl, partition, offset, false);
}

void shard_tell_gone(struct shard *shard, const struct partition_lane *pl, uint16_t partition)
{
    tell(shard, pl, partition, UINT64_MAX, true);
}

static int too_late(uint16_t partition, uint64_t offset, pawl_error *error)
{
    return error_set(error, PAWL_ETIMEOUT, "partition %u has not come to offset %" PRIu64 " in time", partition,
                     offset);
}

static int stored_offset(pawl_engine *e, uint16_t partition, uint64_t *ret_offset, pawl_error *error)
{
    pawl_store *store = shard_of(e, partition)->store;
    struct position position;
    pawl_reader *snapshot;
    int status = pawl_store_snapshot(store, &snapshot);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot read the state of partition %u", partition);
    position_init(&position, e->options.allocator, partition);
    status = position_read(&position, snapshot, error);
    *ret_offset = position.offset;
    position_release(&position);
    pawl_store_release(store, snapshot);
    return status;
}

static pawl_instant deadline_of(pawl_engine *e, const pawl_read_options *options)
{
    return engine_deadline(e, options->timeout ? options->timeout : TIMEOUT_DEFAULT);
}

/* The offset that the tables of an entity have come to, those that readers see. */
static int stored_entity_offset(pawl_engine *e, uint16_t partition, const char *name, uint64_t *ret_offset,
                                pawl_error *error)
{
    pawl_store *store = shard_of(e, partition)->store;
    const struct schema *schema = engine_schema_refresh(e);
    const struct schema_type *entity = schema_type_by_name(schema, (pawl_bytes){name, strlen(name)});
    uint64_t applied;
    pawl_reader *snapshot;
    if (!entity || entity->lane == 0)
        return stored_offset(e, partition, ret_offset, error);
    int status = pawl_store_snapshot(store, &snapshot);
    if (status == PAWL_OK) {
        status = cursor_peek(snapshot, partition, entity->lane,
                             schema_serving_table(schema, entity) >> SCHEMA_TABLE_BITS, &applied, ret_offset);
        pawl_store_release(store, snapshot);
    }
    return status == PAWL_OK ? status
                             : error_set(error, status, "cannot read the state of partition %u", partition);
}

int pawl_offset_get(pawl_engine *e, uint16_t partition, uint64_t *ret_offset, pawl_error *error)
{
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    if (partition >= e->file.partitions)
        return error_set(error, PAWL_EINVAL, "there is no partition %u", partition);
    if (e->options.read_only)
        return stored_offset(e, partition, ret_offset, error);
    *ret_offset = atomic_load_explicit(&e->partitions[partition].offset, memory_order_acquire);
    return PAWL_OK;
}

int pawl_entity_offset_get(pawl_engine *e, uint64_t wsid, const char *name, uint64_t *ret_offset,
                           pawl_error *error)
{
    uint16_t partition = pawl_partition_of(e, wsid);
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    const struct schema_type *entity =
        schema_type_by_name(engine_schema_refresh(e), (pawl_bytes){name, strlen(name)});
    if (!entity || entity->kind != TYPE_ENTITY)
        return error_set(error, PAWL_ENOTFOUND, "there is no entity %s", name);
    return entity->lane ? stored_entity_offset(e, partition, name, ret_offset, error)
                        : pawl_offset_get(e, partition, ret_offset, error);
}

/* Another process writes, and cannot wake this one, so read the offset again and again. entity NULL: the offset
 * of the state. */
static int wait_read_only(pawl_engine *e, uint16_t partition, const char *entity,
                          const pawl_read_options *options, pawl_error *error)
{
    pawl_instant deadline = deadline_of(e, options);
    for (;;) {
        uint64_t offset;
        int status = entity ? stored_entity_offset(e, partition, entity, &offset, error)
                            : stored_offset(e, partition, &offset, error);
        if (status != PAWL_OK || offset >= options->min_offset)
            return status;
        if (pawl_env_now(e->env).ns >= deadline.ns)
            return too_late(partition, options->min_offset, error);
        wait_pause(POLL_EVERY);
    }
}

/* PAWL_ETIMEOUT; it sets no error text. */
static int wait_until(pawl_engine *e, struct applied_wait *wait, pawl_instant deadline)
{
    struct request_wait request = {.shard = shard_of(e, wait->partition), .wait = wait};
    latch_init(&wait->latch);
    int status = pawl_env_call(e->env, request.shard->index, add_wait, &request);
    if (status != PAWL_OK || request.over || latch_wait_until(&wait->latch, deadline) == PAWL_OK)
        return status;
    status = pawl_env_call(e->env, request.shard->index, remove_wait, &request);
    return status != PAWL_OK || request.over ? status : PAWL_ETIMEOUT;
}

int engine_wait_applied(pawl_engine *e, uint16_t partition, const pawl_read_options *options, pawl_error *error)
{
    if (!options || options->min_offset == 0
        || atomic_load_explicit(&e->partitions[partition].offset, memory_order_acquire) >= options->min_offset)
        return PAWL_OK;
    if (e->options.read_only)
        return wait_read_only(e, partition, NULL, options, error);
    struct applied_wait wait = {.partition = partition, .offset = options->min_offset};
    int status = wait_until(e, &wait, deadline_of(e, options));
    return status == PAWL_ETIMEOUT ? too_late(partition, options->min_offset, error) : status;
}

/* --- of a lane --- */

int engine_wait_entity(pawl_engine *e, uint16_t partition, const char *entity, const pawl_read_options *options,
                       pawl_error *error)
{
    if (!options || options->min_offset == 0)
        return PAWL_OK;
    if (e->options.read_only)
        return wait_read_only(e, partition, entity, options, error);
    pawl_instant deadline = deadline_of(e, options);
    for (;;) {
        struct partition_lane *pl = lanes_hold_serving(e, entity, partition);
        struct applied_wait wait = {.partition = partition, .pl = pl, .offset = options->min_offset};
        bool there = pl && lanes_offset(pl) >= wait.offset;
        int status = pl && !there ? wait_until(e, &wait, deadline) : PAWL_OK;
        if (pl)
            lanes_release(pl);
        if (there || (pl && !wait.gone && status != PAWL_ETIMEOUT))
            return status;
        /* The lane is closed. Soon another generation serves, or this one is opened again. */
        if (pawl_env_now(e->env).ns >= deadline.ns)
            return too_late(partition, options->min_offset, error);
        wait_pause(POLL_EVERY);
    }
}

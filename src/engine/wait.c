/* engine/wait.c: wait until a partition's state has come to an offset.
 *
 * The waiter's struct lies on its own stack and in a list of the shard's, which alone touches it. A waiter
 * whose time is over has itself taken out of the list by the shard, and so never leaves while it could still be
 * told. */
#include <inttypes.h>

#include "base/error.h"
#include "engine/node.h"

#define TIMEOUT_DEFAULT (10 * PAWL_SECOND)
#define LOOK_AGAIN      (10 * PAWL_MILLISECOND)

struct request_wait {
    struct shard *shard;
    struct applied_wait *wait;
};

static void add_wait(void *arg)
{
    struct request_wait *r = arg;
    const struct partition *partition = &r->shard->engine->partitions[r->wait->partition];
    if (processor_figures(partition->processor)->offset >= r->wait->offset) {
        r->wait->over = true;
        return;
    }
    r->wait->next = r->shard->waits;
    r->shard->waits = r->wait;
}

static void remove_wait(void *arg)
{
    struct request_wait *r = arg;
    for (struct applied_wait **at = &r->shard->waits; *at; at = &(*at)->next)
        if (*at == r->wait) {
            *at = r->wait->next;
            return;
        }
}

void shard_tell_applied(struct shard *shard, uint16_t partition, uint64_t offset)
{
    for (struct applied_wait **at = &shard->waits; *at;) {
        struct applied_wait *wait = *at;
        if (wait->partition != partition || wait->offset > offset) {
            at = &wait->next;
            continue;
        }
        *at = wait->next;
        wait->over = true;
        latch_set(&wait->latch); /* it is gone from here on */
    }
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

/* Another process writes: there is nobody to be told by, so it is looked at again and again. */
static int wait_read_only(pawl_engine *e, uint16_t partition, const pawl_read_options *options,
                          pawl_error *error)
{
    pawl_instant deadline = {pawl_env_now(e->env).ns + (options->timeout ? options->timeout : TIMEOUT_DEFAULT)};
    for (;;) {
        uint64_t offset;
        int status = stored_offset(e, partition, &offset, error);
        if (status != PAWL_OK || offset >= options->min_offset)
            return status;
        pawl_instant now = pawl_env_now(e->env);
        if (now.ns >= deadline.ns)
            return too_late(partition, options->min_offset, error);
        struct latch never;
        latch_init(&never);
        (void)latch_wait_until(&never, (pawl_instant){now.ns + LOOK_AGAIN});
    }
}

int engine_wait_applied(pawl_engine *e, uint16_t partition, const pawl_read_options *options, pawl_error *error)
{
    if (!options || options->min_offset == 0
        || atomic_load_explicit(&e->partitions[partition].offset, memory_order_acquire) >= options->min_offset)
        return PAWL_OK;
    if (e->options.read_only)
        return wait_read_only(e, partition, options, error);
    pawl_duration timeout = options->timeout ? options->timeout : TIMEOUT_DEFAULT;
    struct applied_wait wait = {.partition = partition, .offset = options->min_offset};
    struct request_wait request = {.shard = shard_of(e, partition), .wait = &wait};
    pawl_instant deadline = {pawl_env_now(e->env).ns + timeout};
    latch_init(&wait.latch);
    int status = pawl_env_call(e->env, request.shard->index, add_wait, &request);
    if (status != PAWL_OK || wait.over)
        return status;
    if (latch_wait_until(&wait.latch, deadline) == PAWL_OK)
        return PAWL_OK;
    status = pawl_env_call(e->env, request.shard->index, remove_wait, &request);
    if (status != PAWL_OK || wait.over)
        return status;
    return too_late(partition, options->min_offset, error);
}

/* engine/lane_admin.c: what an operator does with lanes and leases. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/node.h"

#define ARENA_CHUNK ((size_t)256)

/* --- one number of a lane in a partition --- */

struct deciding {
    struct lane_part *part;
    uint64_t number;
    const char *words;
    int (*decide)(struct deciding *d, struct lane *lane);
    int status;
};

static void decide_here(void *arg)
{
    struct deciding *d = arg;
    d->status = d->part->lane && !d->part->closing ? d->decide(d, d->part->lane) : PAWL_ENOTFOUND;
    if (d->status == PAWL_OK)
        part_give_up(d->part, d->number);
}

/* In whichever of the lane's generations the number is under way, the newest first: what is built waits for it,
 * and so does what serves. */
static int decide(pawl_engine *e, uint16_t partition, const char *name, struct deciding *d, pawl_error *error)
{
    const struct schema_lane *lane;
    int status = lanes_find_part(e, partition, name, &lane, error);
    if (status != PAWL_OK)
        return status;
    struct generation *g = NULL;
    bool done = false;
    while (status == PAWL_OK && (g = generation_hold_next(e, g))) {
        if (g->id != lane->id)
            continue;
        d->part = &g->parts[partition];
        status = pawl_env_call(e->env, partition % e->file.shards, decide_here, d);
        if (status == PAWL_OK && d->status != PAWL_ENOTFOUND) {
            status = d->status;
            done = status == PAWL_OK || done;
        }
    }
    if (g)
        generation_drop(g);
    if (status == PAWL_OK && !done)
        status = PAWL_ENOTFOUND;
    return status == PAWL_OK ? status
                             : error_set(error, status, "lane %s, partition %u: operation %" PRIu64 ": %s",
                                         name, partition, d->number, pawl_status_text(status));
}

static int reclaim(struct deciding *d, struct lane *lane)
{
    return lane_reclaim(lane, d->number);
}

static int retry(struct deciding *d, struct lane *lane)
{
    return lane_retry(lane, d->number);
}

static int make_void(struct deciding *d, struct lane *lane)
{
    return lane_void(lane, d->number, d->words);
}

int pawl_lease_reclaim(pawl_engine *e, uint16_t partition, const char *lane, uint64_t number, pawl_error *error)
{
    struct deciding d = {.number = number, .decide = reclaim};
    return decide(e, partition, lane, &d, error);
}

int pawl_lease_retry(pawl_engine *e, uint16_t partition, const char *lane, uint64_t number, pawl_error *error)
{
    struct deciding d = {.number = number, .decide = retry};
    return decide(e, partition, lane, &d, error);
}

int pawl_lease_void(pawl_engine *e, uint16_t partition, const char *lane, uint64_t number, const char *words,
                    pawl_error *error)
{
    struct deciding d = {.number = number, .words = words ? words : "", .decide = make_void};
    return decide(e, partition, lane, &d, error);
}

/* --- a whole lane --- */

static void pause_part(struct lane_part *part)
{
    if (part->lane && !part->closing)
        lane_pause(part->lane, lanes_is_paused(part->generation->engine, part->generation->name));
}

int pawl_lane_pause(pawl_engine *e, const char *name, bool paused, pawl_error *error)
{
    const struct schema_lane *lane;
    int status = engine_enter_writing(e, error);
    if (status != PAWL_OK)
        return status;
    pthread_mutex_lock(&e->schema_lock);
    status = lanes_find(e, name, &lane, error);
    if (status == PAWL_OK)
        status = local_pause(e, name, paused, error);
    struct generation *g = NULL;
    while (status == PAWL_OK && (g = generation_hold_next(e, g)))
        if (g->id == lane->id)
            generation_visit(g, pause_part);
    pthread_mutex_unlock(&e->schema_lock);
    return status;
}

int pawl_lane_rebuild(pawl_engine *e, const char *name, pawl_error *error)
{
    const struct schema_lane *lane;
    struct arena arena;
    pawl_bytes command;
    int status = engine_enter_writing(e, error);
    if (status != PAWL_OK)
        return status;
    arena_init(&arena, e->options.allocator, ARENA_CHUNK);
    pthread_mutex_lock(&e->schema_lock);
    status = lanes_find(e, name, &lane, error);
    if (status == PAWL_OK && lane->serving != lane->generation)
        status = error_set(error, PAWL_EBUSY, "lane %s is being rebuilt already", name);
    if (status == PAWL_OK)
        status = group0_rebuild_encode(lane->id, &arena, &command);
    if (status == PAWL_OK)
        status = engine_group0_propose_held(e, command, error);
    pthread_mutex_unlock(&e->schema_lock);
    arena_release(&arena);
    return status;
}

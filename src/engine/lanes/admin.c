/* engine/lanes/admin.c: an operator's calls: reclaim, retry and void an operation; pause and rebuild a lane. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/lanes/impl.h"

#define ARENA_CHUNK ((size_t)256)

/* --- one number of a lane in a partition --- */

struct deciding {
    struct partition_lane *pl;
    uint64_t number;
    const char *words;
    int (*decide)(const struct deciding *d, struct lane *lane);
    int status;
};

static bool take_state(void *arg, const pawl_lease *lease)
{
    pawl_lease *first = arg;
    *first = *lease;
    return false;
}

/* PAWL_ENOTFOUND: this generation does not have the number under way. */
static void find_here(void *arg)
{
    struct deciding *d = arg;
    pawl_lease first = {.state = PAWL_LEASE_COMMITTED};
    if (d->pl->lane && !d->pl->closing)
        pawl_leases_list(lane_leases(d->pl->lane), d->number, take_state, &first);
    d->status = first.number == d->number && first.state != PAWL_LEASE_COMMITTED ? PAWL_OK : PAWL_ENOTFOUND;
}

static void decide_here(void *arg)
{
    struct deciding *d = arg;
    struct job *out = d->pl->out; /* a job that gets the number because of this goes in front of these */
    d->status = d->pl->lane && !d->pl->closing ? d->decide(d, d->pl->lane) : PAWL_ENOTFOUND;
    if (d->status == PAWL_OK)
        jobs_give_up(out, d->number);
}

/* The generation of the lane that has the number under way. */
static int find_generation(pawl_engine *e, uint16_t partition, uint16_t lane, struct deciding *d,
                           uint32_t *ret_generation, pawl_error *error)
{
    struct generation *g = NULL;
    uint32_t found = 0;
    int status = PAWL_OK;
    while (status == PAWL_OK && (g = generation_hold_next(e, g))) {
        if (g->id != lane)
            continue;
        d->pl = &g->lanes[partition];
        status = partition_call(e, partition, find_here, d);
        if (status != PAWL_OK || d->status != PAWL_OK)
            continue;
        if (found != 0)
            status = error_set(error, PAWL_EINVAL,
                               "generations %" PRIu32 " and %" PRIu32 " both have it under way: name one",
                               found, g->number);
        found = g->number;
    }
    if (g)
        generation_release(g);
    *ret_generation = found;
    return status != PAWL_OK ? status : found == 0 ? PAWL_ENOTFOUND : PAWL_OK;
}

static int decide(pawl_engine *e, uint16_t partition, const char *name, uint32_t generation, struct deciding *d,
                  pawl_error *error)
{
    const struct schema_lane *lane;
    pawl_error why = {0};
    int status = lanes_find_in_partition(e, partition, name, &lane, error);
    if (status != PAWL_OK)
        return status;
    if (generation == 0)
        status = find_generation(e, partition, lane->id, d, &generation, &why);
    struct generation *g = status == PAWL_OK ? generation_hold(e, lane->id, generation) : NULL;
    if (g) {
        d->pl = &g->lanes[partition];
        status = partition_call(e, partition, decide_here, d);
        if (status == PAWL_OK && d->status == PAWL_OK)
            (void)kept_leases_settle(d->pl, NULL); /* it is decided; without a disk, until the next restart */
        generation_release(g);
    }
    if (status == PAWL_OK)
        status = g ? d->status : PAWL_ENOTFOUND;
    return status == PAWL_OK
               ? status
               : error_set(error, status, "lane %s, partition %u: operation %" PRIu64 ": %s", name, partition,
                           d->number, why.text[0] ? why.text : pawl_status_text(status));
}

static int reclaim(const struct deciding *d, struct lane *lane)
{
    return lane_reclaim(lane, d->number);
}

static int retry(const struct deciding *d, struct lane *lane)
{
    return lane_retry(lane, d->number);
}

static int make_void(const struct deciding *d, struct lane *lane)
{
    return lane_void(lane, d->number, d->words);
}

int pawl_lane_reclaim(pawl_engine *e, uint16_t partition, const char *lane, uint32_t generation,
                      uint64_t number, pawl_error *error)
{
    struct deciding d = {.number = number, .decide = reclaim};
    return decide(e, partition, lane, generation, &d, error);
}

int pawl_lane_retry(pawl_engine *e, uint16_t partition, const char *lane, uint32_t generation, uint64_t number,
                    pawl_error *error)
{
    struct deciding d = {.number = number, .decide = retry};
    return decide(e, partition, lane, generation, &d, error);
}

int pawl_lane_void(pawl_engine *e, uint16_t partition, const char *lane, uint32_t generation, uint64_t number,
                   const char *words, pawl_error *error)
{
    struct deciding d = {.number = number, .words = words ? words : "", .decide = make_void};
    return decide(e, partition, lane, generation, &d, error);
}

/* --- a whole lane --- */

static void apply_pause(struct partition_lane *pl)
{
    if (pl->lane && !pl->closing)
        lane_pause(pl->lane, lanes_is_paused(pl->generation->engine, pl->generation->name));
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
        status = paused_pause(e, name, paused, error);
    struct generation *g = NULL;
    while (status == PAWL_OK && (g = generation_hold_next(e, g)))
        if (g->id == lane->id)
            generation_visit(g, apply_pause);
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

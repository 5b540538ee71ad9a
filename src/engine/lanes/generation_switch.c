/* engine/lanes/generation_switch.c: from the generation that serves to the new one that was built beside it.
 *
 *     the new one has come, in every partition, to the offset that the old one had a moment ago
 *       ─► the old one's lanes are closed: its tables no longer change, but are still read
 *       ─► the new one comes to the offsets of the old one, or beyond
 *       ─► group0: SWITCH, which names those offsets ─► published: readers use the new one
 *     the new one does not come so far in time
 *       ─► the old one's lanes are opened again; the next try waits twice as long
 *
 * So no reader ever sees less than an earlier reader saw; and while a new generation stalls, the old one goes
 * on. Only the SWITCH is durable: after a crash before it, both generations go on as before. */
#include "base/alloc.h"
#include "base/error.h"
#include "engine/lanes/impl.h"
#include "engine/lanes/worker_pool.h"

#define PATIENCE   (2 * PAWL_SECOND)
#define DELAY_MIN  PAWL_SECOND
#define DELAY_MAX  (60 * PAWL_SECOND)
#define POLL_EVERY (2 * PAWL_MILLISECOND)

static uint64_t offset_of(const struct generation *g, uint32_t partition)
{
    return atomic_load_explicit(&g->lanes[partition].offset, memory_order_acquire);
}

/* The offset that the new generation must reach: that of the old one. If there is no old one, or it could not
 * be opened so that its offset is unknown: the present end of the partition's log. */
static uint64_t target_of(const struct generation *old, const struct generation *new, uint32_t partition)
{
    return old && old->lanes[partition].status == PAWL_OK
               ? offset_of(old, partition)
               : atomic_load(&new->engine->partitions[partition].offset);
}

static void aim(const struct generation *old, struct generation *new)
{
    for (uint32_t i = 0; i < new->engine->file.partitions; i++)
        new->lanes[i].goal = target_of(old, new, i);
    new->aiming = true;
}

static bool has_reached(const struct generation *new)
{
    for (uint32_t i = 0; i < new->engine->file.partitions; i++)
        if (offset_of(new, i) < new->lanes[i].goal)
            return false;
    return true;
}

struct open_lanes {
    struct generation *generation;
    struct shard *shard;
    bool open;
};

static void check_open(void *arg)
{
    struct open_lanes *s = arg;
    for (size_t i = 0; i < s->shard->partitions.count; i++)
        s->open = s->open || s->generation->lanes[partition_set_at(&s->shard->partitions, i)].lane;
}

/* Whether none of its lanes can write any more. */
static bool has_no_open_lane(struct generation *g)
{
    struct open_lanes s = {.generation = g};
    for (uint32_t i = 0; i < g->engine->file.shards; i++) {
        s.shard = &g->engine->shards[i];
        (void)pawl_env_call(g->engine->env, i, check_open, &s);
    }
    return !s.open;
}

static void wait_a_moment(pawl_engine *e)
{
    maintenance_sleep(e->lanes, POLL_EVERY);
    (void)maintenance_look_after(e);
}

static bool reach(struct generation *old, struct generation *new)
{
    pawl_engine *e = new->engine;
    pawl_instant deadline = {pawl_env_now(e->env).ns + PATIENCE};
    bool still = !old, reached = false;
    if (old)
        generation_visit(old, partition_lane_close);
    while (!reached && pawl_env_now(e->env).ns < deadline.ns && !atomic_load(&e->closing)) {
        if (!still && has_no_open_lane(old)) {
            still = true;
            aim(old, new);
        }
        reached = still && has_reached(new);
        if (!reached)
            wait_a_moment(e);
    }
    return reached;
}

static int propose(const struct generation *new)
{
    pawl_engine *e = new->engine;
    uint32_t count = e->file.partitions;
    uint64_t *offsets = mem_new(e->options.allocator, count, sizeof *offsets);
    struct arena arena;
    pawl_bytes command;
    if (!offsets)
        return PAWL_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        offsets[i] = new->lanes[i].goal;
    arena_init(&arena, e->options.allocator, count * sizeof *offsets + 64);
    int status = group0_switch_encode(new->id, new->number, offsets, count, &arena, &command);
    if (status == PAWL_OK)
        status = engine_group0_propose_held(e, command, NULL);
    arena_release(&arena);
    mem_free(e->options.allocator, offsets, count * sizeof *offsets);
    return status;
}

static void open_again(struct partition_lane *pl)
{
    if (!pl->lane)
        partition_lane_open(pl);
}

/* A lane that is still closing cannot be opened: wait for it first. */
static void undo(struct generation *old)
{
    while (!has_no_open_lane(old) && !atomic_load(&old->engine->closing))
        wait_a_moment(old->engine);
    if (!atomic_load(&old->engine->closing))
        generation_visit(old, open_again);
}

static bool serves(const struct generation *g)
{
    const struct schema_lane *lane = schema_lane_by_id(engine_schema(g->engine), g->id);
    return lane && lane->serving == g->number;
}

static bool take_over(struct generation *old, struct generation *new)
{
    pawl_engine *e = new->engine;
    pawl_instant now = pawl_env_now(e->env);
    if (now.ns < new->again_at.ns)
        return false;
    if (!new->aiming)
        aim(old, new);
    if (!has_reached(new) || !views_allow_switch(e, new->id, new->number))
        return false;
    bool reached = reach(old, new);
    if (reached)
        (void)propose(new);
    if (serves(new)) /* the command may be in group0 even if proposing it failed */
        return true;
    if (old)
        undo(old);
    new->aiming = false;
    new->delay = new->delay == 0 ? DELAY_MIN : new->delay * 2 < DELAY_MAX ? new->delay * 2 : DELAY_MAX;
    new->again_at = (pawl_instant){pawl_env_now(e->env).ns + new->delay};
    return false;
}

/* Under schema_lock: nobody else changes which generation serves. True: the new one serves. */
static bool try_switch(pawl_engine *e, const struct schema_lane *lane)
{
    struct generation *new = generation_hold(e, lane->id, lane->generation);
    struct generation *old = lane->serving ? generation_hold(e, lane->id, lane->serving) : NULL;
    bool done = new &&take_over(old, new);
    if (old)
        generation_release(old);
    if (new)
        generation_release(new);
    return done;
}

bool lanes_switch_generations(pawl_engine *e)
{
    bool left = false;
    pthread_mutex_lock(&e->schema_lock);
    const struct schema *schema = engine_schema(e);
    for (size_t i = 0; i < schema->lane_count && !atomic_load(&e->closing); i++) {
        const struct schema_lane *lane = &schema->lanes[i];
        if (lane->serving == lane->generation)
            continue;
        if (!try_switch(e, lane))
            left = true;
        else if (engine_schema(e) != schema) {
            left = true; /* another schema: look at its lanes */
            break;
        }
    }
    pthread_mutex_unlock(&e->schema_lock);
    return left;
}

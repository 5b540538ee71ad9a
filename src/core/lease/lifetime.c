/* core/lease/lifetime.c: a table begins, forgets, and ends. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/lease/queue.h"

#define WINDOW_DEFAULT     4096
#define REMEMBERED_DEFAULT 1000
#define REMEMBERED_MAX     ((uint32_t)1 << 20)
#define PROJECTIONS_MAX    65536

static void set_duration(pawl_duration *value, pawl_duration fallback)
{
    *value = *value ? *value : fallback;
}

static void set_count(uint32_t *value, uint32_t fallback)
{
    *value = *value ? *value : fallback;
}

pawl_lease_thresholds thresholds_with_defaults(const pawl_lease_thresholds *given)
{
    pawl_lease_thresholds limit = *given;
    limit.expired_rate = limit.expired_rate != 0 ? limit.expired_rate : 0.05;
    set_duration(&limit.average_wait, 5 * PAWL_SECOND);
    limit.active = limit.active ? limit.active : 1000;
    limit.voids = limit.voids ? limit.voids : 100;
    return limit;
}

static pawl_leases_options with_defaults(const pawl_leases_options *given)
{
    pawl_leases_options o = *given;
    o.next = o.next ? o.next : 1;
    set_count(&o.window, WINDOW_DEFAULT);
    set_count(&o.projections, 1);
    set_count(&o.attempts_max, 5);
    set_count(&o.remembered, REMEMBERED_DEFAULT);
    set_duration(&o.duration_min, PAWL_SECOND);
    set_duration(&o.duration_max, 600 * PAWL_SECOND);
    set_duration(&o.duration_first, 30 * PAWL_SECOND);
    set_duration(&o.backoff_min, 100 * PAWL_MILLISECOND);
    set_duration(&o.backoff_max, 60 * PAWL_SECOND);
    o.thresholds = thresholds_with_defaults(&o.thresholds);
    return o;
}

static int check(const pawl_leases_options *o, pawl_error *error)
{
    if (!o->env)
        return error_set(error, PAWL_EINVAL, "leases need an env");
    if (o->window > PAWL_LEASE_WINDOW_MAX || (o->window & (o->window - 1)) != 0)
        return error_set(error, PAWL_EINVAL, "a window is a power of two, at most %u, not %u",
                         PAWL_LEASE_WINDOW_MAX, o->window);
    if (o->projections > PROJECTIONS_MAX)
        return error_set(error, PAWL_EINVAL, "there are at most %d projections, not %u", PROJECTIONS_MAX,
                         o->projections);
    if (o->remembered > REMEMBERED_MAX)
        return error_set(error, PAWL_EINVAL, "at most %u numbers can be remembered, not %u", REMEMBERED_MAX,
                         o->remembered);
    if (o->duration_max > LEASE_DURATION_MAX || o->duration_min > o->duration_max
        || o->duration_first > o->duration_max)
        return error_set(error, PAWL_EINVAL, "the greatest duration is below another, or above 2^60 ns");
    if (o->backoff_max > LEASE_DURATION_MAX || o->backoff_min > o->backoff_max)
        return error_set(error, PAWL_EINVAL, "the greatest back-off is below the least, or above 2^60 ns");
    return PAWL_OK;
}

static uint64_t memory_count(const pawl_leases *leases)
{
    uint64_t count = 1;
    while (count < leases->options.remembered)
        count *= 2;
    return count;
}

/* One more than there are, so that they can begin where a pair of cache lines does. */
static int allocate_slots(pawl_leases *leases)
{
    leases->slots_memory = mem_new(leases->options.allocator, leases->mask + 2, LEASE_SLOT_BYTES);
    if (!leases->slots_memory)
        return PAWL_ENOMEM;
    uintptr_t at = (uintptr_t)leases->slots_memory;
    size_t skipped = (LEASE_SLOT_BYTES - at % LEASE_SLOT_BYTES) % LEASE_SLOT_BYTES;
    leases->slots = (struct slot *)(void *)((char *)leases->slots_memory + skipped);
    return PAWL_OK;
}

static int allocate(pawl_leases *leases)
{
    const pawl_leases_options *o = &leases->options;
    leases->projections = mem_new(o->allocator, o->projections, sizeof leases->projections[0]);
    if (!leases->projections)
        return PAWL_ENOMEM;
    leases->memories = mem_new(o->allocator, leases->memory_mask + 1, sizeof leases->memories[0]);
    if (!leases->memories)
        goto no_memories;
    if (words_init(&leases->words, o->allocator, o->window))
        goto no_words;
    if (allocate_slots(leases))
        goto no_slots;
    return PAWL_OK;
no_slots:
    words_release(&leases->words);
no_words:
    mem_free(o->allocator, leases->memories, (leases->memory_mask + 1) * sizeof leases->memories[0]);
no_memories:
    mem_free(o->allocator, leases->projections, o->projections * sizeof leases->projections[0]);
    return PAWL_ENOMEM;
}

static void begin(pawl_leases *leases)
{
    const pawl_leases_options *o = &leases->options;
    leases->bound = leases->taken = leases->committed = o->next - 1;
    for (size_t i = 0; i < sizeof leases->keys / sizeof leases->keys[0]; i++)
        leases->keys[i] = pawl_env_random(o->env);
    for (uint32_t i = 0; i < o->projections; i++) {
        queue_init(&leases->projections[i]);
        leases->projections[i].attempts_max = o->attempts_max;
        leases->projections[i].policy = PAWL_LEASE_STALL;
    }
    minute_init(&leases->minute);
    due_init(leases);
    kept_begin(leases, o->next);
}

int pawl_leases_new(const pawl_leases_options *options, pawl_leases **ret_leases, pawl_error *error)
{
    pawl_leases_options o = with_defaults(options);
    int status = check(&o, error);
    if (status)
        return status;
    pawl_leases *leases = mem_new(o.allocator, 1, sizeof *leases);
    if (!leases)
        return error_set(error, PAWL_ENOMEM, "no memory for leases");
    leases->options = o;
    leases->mask = o.window - 1;
    leases->memory_mask = memory_count(leases) - 1;
    leases->limits = (struct estimate_limits){o.duration_first, o.duration_min, o.duration_max};
    if (allocate(leases)) {
        mem_free(o.allocator, leases, sizeof *leases);
        return error_set(error, PAWL_ENOMEM, "no memory for %u leases", o.window);
    }
    begin(leases);
    *ret_leases = leases;
    return PAWL_OK;
}

void pawl_leases_free(pawl_leases *leases)
{
    if (!leases)
        return;
    const pawl_leases_options o = leases->options;
    if (!o.untimed)
        pawl_env_cancel(o.env, &leases->timer);
    mem_free(o.allocator, leases->slots_memory, (leases->mask + 2) * LEASE_SLOT_BYTES);
    words_release(&leases->words);
    mem_free(o.allocator, leases->memories, (leases->memory_mask + 1) * sizeof leases->memories[0]);
    mem_free(o.allocator, leases->projections, o.projections * sizeof leases->projections[0]);
    mem_free(o.allocator, leases, sizeof *leases);
}

int pawl_leases_policy(pawl_leases *leases, uint32_t projection, pawl_lease_policy policy,
                       uint32_t attempts_max)
{
    if (projection >= leases->options.projections || (policy != PAWL_LEASE_STALL && policy != PAWL_LEASE_VOID))
        return PAWL_EINVAL;
    leases->projections[projection].policy = policy;
    if (attempts_max)
        leases->projections[projection].attempts_max = attempts_max;
    return PAWL_OK;
}

int pawl_leases_uncounted(pawl_leases *leases, uint32_t projection)
{
    if (projection >= leases->options.projections)
        return PAWL_EINVAL;
    leases->projections[projection].is_uncounted = true;
    return PAWL_OK;
}

int pawl_leases_reset(pawl_leases *leases, uint64_t next,
                      void (*visit)(void *arg, uint64_t number, void *work, void *result), void *arg)
{
    if (next <= leases->committed)
        return PAWL_EMISUSE;
    for (uint64_t number = leases->committed + 1; number <= leases->bound; number++) {
        struct slot *slot = slot_find(leases, number);
        if (slot->state == PAWL_LEASE_LEASED || slot->state == PAWL_LEASE_BACKING_OFF)
            due_unset(leases, slot);
        words_fix(&leases->words, &slot->words, WORDS_NONE);
        if (visit)
            visit(arg, number, slot->work, slot->result);
    }
    for (uint32_t i = 0; i < leases->options.projections; i++)
        queue_init(&leases->projections[i]);
    leases->counts.active = leases->counts.waiting = leases->counts.stalled = 0;
    leases->bound = leases->taken = leases->committed = next - 1;
    kept_begin(leases, next);
    return PAWL_OK;
}

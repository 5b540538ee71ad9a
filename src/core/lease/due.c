/* core/lease/due.c: deadlines, and what happens when they pass.
 *
 * Every deadline is a node of one wheel; one timer is set for the earliest. An expired number only
 * becomes available again. Nobody is woken for each number, so a thousand that expire together cause a few
 * calls of changed. */
#include "core/lease/queue.h"

static uint64_t tick_at(pawl_instant now)
{
    return now.ns >> LEASE_TICK_BITS;
}

/* The first tick that is not before the deadline: a lease never ends early. */
static uint64_t tick_after(pawl_instant now, pawl_duration delay)
{
    uint64_t deadline = now.ns < UINT64_MAX - delay ? now.ns + delay : UINT64_MAX;
    return (deadline >> LEASE_TICK_BITS) + ((deadline & ((UINT64_C(1) << LEASE_TICK_BITS) - 1)) != 0);
}

static void fire(pawl_timer *timer)
{
    pawl_leases_tick(heap_entry(timer, pawl_leases, timer));
}

void due_init(pawl_leases *leases)
{
    leases->armed = UINT64_MAX;
    leases->timer = (pawl_timer){.fn = fire};
    wheel_init(&leases->wheel, tick_at(pawl_env_now(leases->options.env)));
}

void due_set(pawl_leases *leases, struct slot *slot, pawl_instant now, pawl_duration delay)
{
    slot->in.timer = (struct wheel_node){0};
    wheel_add(&leases->wheel, &slot->in.timer, tick_after(now, delay));
}

void due_unset(pawl_leases *leases, struct slot *slot)
{
    wheel_remove(&leases->wheel, &slot->in.timer);
}

void due_arm(pawl_leases *leases, pawl_instant now)
{
    uint64_t tick;
    if (!wheel_next(&leases->wheel, &tick) || tick >= leases->armed)
        return;
    leases->armed = tick;
    if (leases->options.untimed)
        return;
    uint64_t at = tick << LEASE_TICK_BITS;
    pawl_env_after(leases->options.env, &leases->timer, at > now.ns ? at - now.ns : 0);
}

static void expire(pawl_leases *leases, struct slot *slot, pawl_lease_minute *sums)
{
    pawl_duration max = leases->limits.max;
    leases->counts.expired++;
    sums->expired++;
    sums->ended++;
    sums->used += slot->duration;
    sums->granted += slot->duration;
    slot->duration = slot->duration < max / 2 ? 2 * slot->duration : max;
    slot->has_expired = true;
    words_fix(&leases->words, &slot->words, WORDS_EXPIRED);
}

struct firing {
    pawl_leases *leases;
    pawl_lease_minute *sums;
};

static void pass(struct wheel_node *node, void *arg)
{
    struct firing *firing = arg;
    struct slot *slot = heap_entry(node, struct slot, in.timer);
    if (slot->state == PAWL_LEASE_LEASED)
        expire(firing->leases, slot, firing->sums);
    slot_move(firing->leases, slot, PAWL_LEASE_BOUND);
    firing->leases->has_news = true;
}

static void run(pawl_leases *leases, pawl_instant now)
{
    struct firing firing = {leases, minute_now(&leases->minute, now)};
    leases->armed = UINT64_MAX;
    wheel_advance_some(&leases->wheel, tick_at(now), LEASE_DUE_MAX, pass, &firing);
}

void due_catch_up(pawl_leases *leases, pawl_instant now)
{
    if (!leases->options.untimed || tick_at(now) < leases->armed)
        return;
    run(leases, now);
    due_arm(leases, now);
}

pawl_duration pawl_leases_tick(pawl_leases *leases)
{
    pawl_instant now = pawl_env_now(leases->options.env);
    run(leases, now);
    due_arm(leases, now);
    bool has_news = leases->has_news;
    leases->has_news = false;
    if (has_news && leases->options.changed)
        leases->options.changed(leases->options.ctx);
    uint64_t tick;
    if (!wheel_next(&leases->wheel, &tick))
        return UINT64_MAX;
    uint64_t at = tick << LEASE_TICK_BITS;
    return at > now.ns ? at - now.ns : 0;
}

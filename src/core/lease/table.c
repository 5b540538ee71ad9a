/* core/lease/table.c: what workers do with numbers: acquire, extend, release, fail, hand in. */
#include "base/hash.h"
#include "core/lease/queue.h"

void slot_void(pawl_leases *leases, struct slot *slot, const char *words, pawl_instant now)
{
    leases->counts.voids++;
    minute_now(&leases->minute, now)->voids++;
    words_set(&leases->words, &slot->words, words);
    slot->is_void = true;
    slot->is_current = false;
    slot->handed_at = now;
    slot_move(leases, slot, PAWL_LEASE_READY);
}

/* Fields are set one by one, here and in slot_show: to clear the whole struct first takes longer than all the
 * rest. */
static void slot_begin(struct slot *slot, uint64_t number, uint32_t projection, void *work)
{
    slot->number = number;
    slot->operation = (pawl_operation_id){0, 0};
    slot->work = work;
    slot->result = NULL;
    slot->leased_at = (pawl_instant){0};
    slot->duration = 0;
    slot->projection = projection;
    slot->attempt = 0;
    slot->failures = 0;
    slot->postponed = 0;
    slot->words = WORDS_NONE;
    slot->state = PAWL_LEASE_BOUND;
    slot->is_fresh = true;
    slot->is_current = false;
    slot->has_expired = false;
    slot->is_void = false;
}

int pawl_leases_bind(pawl_leases *leases, uint32_t projection, void *work, size_t bytes, uint64_t *ret_number)
{
    if (projection >= leases->options.projections)
        return PAWL_EINVAL;
    if (leases->bound - leases->committed > leases->mask) /* L4 */
        return PAWL_EBUSY;
    uint64_t number = ++leases->bound;
    struct slot *slot = &leases->slots[number & leases->mask];
    slot_begin(slot, number, projection, work);
    slot->size_class = estimate_class(bytes);
    slot->flags = leases->projections[projection].is_uncounted ? SLOT_UNCOUNTED : 0;
    queue_put(leases, slot);
    if (number == leases->awaited)
        kept_restore(leases, slot); /* L6 */
    *ret_number = number;
    return PAWL_OK;
}

uint64_t pawl_leases_peek(const pawl_leases *leases, uint32_t projection)
{
    if (projection >= leases->options.projections)
        return 0;
    const struct slot *slot = queue_first(leases, &leases->projections[projection]);
    return slot ? slot->number : 0;
}

/* A count goes through a bijection that scatters bits, between two keys that nobody knows: no ID comes twice,
 * and from those that a worker has seen it cannot tell the next. It costs less than asking for random bits. */
static pawl_operation_id next_operation(pawl_leases *leases)
{
    pawl_operation_id id;
    do {
        uint64_t n = ++leases->attempts;
        id.high = hash_mix(n ^ leases->keys[0]) ^ leases->keys[1];
        id.low = hash_mix(n ^ leases->keys[2]) ^ leases->keys[3];
    } while (id.high == 0 && id.low == 0);
    return id;
}

static pawl_duration grant(const pawl_leases *leases, const struct slot *slot, pawl_duration asked)
{
    const struct estimate *estimate = &leases->projections[slot->projection].estimate;
    pawl_duration granted = asked ? asked : estimate_get(estimate, slot->size_class, &leases->limits);
    if (slot->has_expired && granted < slot->duration)
        granted = slot->duration;
    return granted < leases->limits.max ? granted : leases->limits.max;
}

static void lease(pawl_leases *leases, struct slot *slot, pawl_duration asked, pawl_instant now)
{
    slot_move(leases, slot, PAWL_LEASE_LEASED);
    slot->operation = next_operation(leases);
    slot->is_current = true;
    slot->flags &= SLOT_UNCOUNTED;
    slot->attempt++;
    slot->leased_at = now;
    slot->duration = grant(leases, slot, asked);
    due_set(leases, slot, now, slot->duration);
}

/* Lease it, and keep it. If the store refuses, it is as before: whoever had it, and was late, may still have
 * it. */
static int lease_kept(pawl_leases *leases, struct slot *slot, pawl_duration asked, pawl_instant now)
{
    const struct slot before = *slot;
    lease(leases, slot, asked, now);
    slot->flags |= SLOT_KEPT;
    int status = kept_put(leases, slot, slot->duration);
    if (status == PAWL_OK)
        return status;
    slot_move(leases, slot, PAWL_LEASE_BOUND);
    slot->operation = before.operation;
    slot->attempt = before.attempt;
    slot->leased_at = before.leased_at;
    slot->duration = before.duration;
    slot->is_current = before.is_current;
    slot->flags = before.flags;
    return status;
}

static int acquire(pawl_leases *leases, uint32_t projection, pawl_duration duration, size_t max, bool kept,
                   pawl_lease *ret_leases, size_t *ret_count)
{
    if (projection >= leases->options.projections || max == 0)
        return PAWL_EINVAL;
    struct projection *from = &leases->projections[projection];
    pawl_instant now = pawl_env_now(leases->options.env);
    due_catch_up(leases, now);
    size_t count = 0;
    int status = PAWL_ENOTFOUND;
    for (; count < max; count++) {
        struct slot *slot = queue_first(leases, from);
        if (!slot)
            break;
        if (!kept)
            lease(leases, slot, duration, now);
        else if ((status = lease_kept(leases, slot, duration, now)) != PAWL_OK)
            break;
        slot_show(leases, slot, &ret_leases[count]);
    }
    if (count == 0)
        return status;
    leases->counts.acquired += count;
    due_arm(leases, now);
    *ret_count = count;
    return PAWL_OK;
}

int pawl_leases_acquire(pawl_leases *leases, uint32_t projection, pawl_duration duration, size_t max,
                        pawl_lease *ret_leases, size_t *ret_count)
{
    return acquire(leases, projection, duration, max, false, ret_leases, ret_count);
}

int pawl_leases_acquire_kept(pawl_leases *leases, uint32_t projection, pawl_duration duration, size_t max,
                             pawl_lease *ret_leases, size_t *ret_count)
{
    if (!leases->options.store)
        return PAWL_EMISUSE;
    return acquire(leases, projection, duration, max, true, ret_leases, ret_count);
}

/* Why a report about a number is refused. */
static int refuse(pawl_leases *leases, uint64_t number, pawl_operation_id operation)
{
    if (pawl_leases_is_awaited(leases, number, operation))
        return PAWL_EBUSY;
    if (number == 0 || number > leases->bound)
        return PAWL_ENOTFOUND;
    leases->counts.fenced++;
    return PAWL_EFENCED;
}

/* The slot in which this ID counts, or NULL. */
static struct slot *slot_of(pawl_leases *leases, uint64_t number, pawl_operation_id operation)
{
    struct slot *slot = slot_find(leases, number);
    return slot && slot->is_current && operation_is(slot->operation, operation) ? slot : NULL;
}

/* The same, but only of a number that is not handed in: it is leased, or its lease has expired and nobody else
 * has got it yet. */
static struct slot *slot_under_work(pawl_leases *leases, uint64_t number, pawl_operation_id operation)
{
    struct slot *slot = slot_of(leases, number, operation);
    return slot && (slot->state == PAWL_LEASE_LEASED || slot->state == PAWL_LEASE_BOUND) ? slot : NULL;
}

int pawl_leases_extend(pawl_leases *leases, uint64_t number, pawl_operation_id operation,
                       pawl_duration duration)
{
    struct slot *slot = slot_under_work(leases, number, operation);
    if (!slot)
        return refuse(leases, number, operation);
    pawl_instant now = pawl_env_now(leases->options.env);
    pawl_duration more = duration ? duration
                                  : estimate_get(&leases->projections[slot->projection].estimate,
                                                 slot->size_class, &leases->limits);
    more = more < leases->limits.max ? more : leases->limits.max;
    int status = (slot->flags & SLOT_KEPT) ? kept_put(leases, slot, more) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    if (slot->state == PAWL_LEASE_BOUND)
        slot_move(leases, slot, PAWL_LEASE_LEASED);
    else
        due_unset(leases, slot);
    slot->duration = now.ns - slot->leased_at.ns + more;
    due_set(leases, slot, now, more);
    due_arm(leases, now);
    return PAWL_OK;
}

/* An attempt that expired has been counted as ended already. */
static void count_end(pawl_leases *leases, const struct slot *slot, pawl_instant now)
{
    if (slot->state == PAWL_LEASE_LEASED)
        minute_now(&leases->minute, now)->ended++;
}

/* Given back: the attempt does not count. */
static void give_back(pawl_leases *leases, struct slot *slot, const char *words, pawl_instant now)
{
    leases->counts.released++;
    count_end(leases, slot, now);
    words_set(&leases->words, &slot->words, words);
    slot->is_current = false;
    slot->attempt--;
}

int pawl_leases_release(pawl_leases *leases, uint64_t number, pawl_operation_id operation, const char *words)
{
    struct slot *slot = slot_under_work(leases, number, operation);
    if (!slot)
        return refuse(leases, number, operation);
    give_back(leases, slot, words, pawl_env_now(leases->options.env));
    if (slot->state == PAWL_LEASE_LEASED)
        slot_move(leases, slot, PAWL_LEASE_BOUND);
    return PAWL_OK;
}

/* The delay doubles each time. It is drawn between half of it and all of it, so that attempts that failed
 * together are not repeated together. */
static void back_off(pawl_leases *leases, struct slot *slot, uint32_t times, pawl_instant now)
{
    pawl_duration delay = leases->options.backoff_min;
    for (uint32_t i = 1; i < times && delay < leases->options.backoff_max; i++)
        delay *= 2;
    if (delay > leases->options.backoff_max)
        delay = leases->options.backoff_max;
    slot_move(leases, slot, PAWL_LEASE_BACKING_OFF);
    due_set(leases, slot, now, delay - pawl_env_random(leases->options.env) % (delay / 2 + 1));
    due_arm(leases, now);
}

int pawl_leases_postpone(pawl_leases *leases, uint64_t number, pawl_operation_id operation, const char *words)
{
    struct slot *slot = slot_under_work(leases, number, operation);
    if (!slot)
        return refuse(leases, number, operation);
    pawl_instant now = pawl_env_now(leases->options.env);
    give_back(leases, slot, words, now);
    if (slot->postponed < UINT8_MAX)
        slot->postponed++;
    back_off(leases, slot, slot->postponed, now);
    return PAWL_OK;
}

/* Whether the next failure of this number is the one after which the policy decides. */
static bool is_last_failure(const pawl_leases *leases, const struct slot *slot)
{
    return slot->failures + 1 >= leases->projections[slot->projection].attempts_max;
}

bool pawl_leases_is_last(const pawl_leases *leases, uint64_t number)
{
    const struct slot *slot = slot_find(leases, number);
    return slot && is_last_failure(leases, slot);
}

int pawl_leases_fail(pawl_leases *leases, uint64_t number, pawl_operation_id operation, bool permanent,
                     const char *words)
{
    struct slot *slot = slot_under_work(leases, number, operation);
    if (!slot)
        return refuse(leases, number, operation);
    const struct projection *projection = &leases->projections[slot->projection];
    pawl_instant now = pawl_env_now(leases->options.env);
    leases->counts.failed++;
    count_end(leases, slot, now);
    bool too_often = is_last_failure(leases, slot);
    slot->failures++;
    if (permanent || (too_often && projection->policy == PAWL_LEASE_VOID)) {
        slot_void(leases, slot, words, now);
        return PAWL_OK;
    }
    words_set(&leases->words, &slot->words, words);
    slot->is_current = false;
    if (too_often) {
        slot_move(leases, slot, PAWL_LEASE_STALLED);
        return PAWL_OK;
    }
    back_off(leases, slot, slot->failures, now);
    return PAWL_OK;
}

/* The estimate learns from every attempt, also from one that took longer than its lease; but not from one whose
 * beginning this table has not seen. A late result is kept again, if the store takes it: until it is committed,
 * its worker may have to hand it in once more. */
static void hand_in(pawl_leases *leases, struct slot *slot, void *result, pawl_instant now)
{
    pawl_duration took = now.ns - slot->leased_at.ns;
    pawl_duration max = leases->limits.max;
    if (!(slot->flags & SLOT_RESTORED))
        estimate_observe(&leases->projections[slot->projection].estimate, slot->size_class,
                         took < max ? took : max);
    if ((slot->flags & (SLOT_KEPT | SLOT_STORED)) == SLOT_KEPT)
        (void)kept_put(leases, slot, slot->duration);
    if (slot->state == PAWL_LEASE_LEASED && !(slot->flags & SLOT_UNCOUNTED)) {
        pawl_lease_minute *sums = minute_now(&leases->minute, now);
        sums->ended++;
        sums->used += took < slot->duration ? took : slot->duration;
        sums->granted += slot->duration;
    }
    words_fix(&leases->words, &slot->words, WORDS_NONE);
    slot->result = result;
    slot->handed_at = now;
    slot_move(leases, slot, PAWL_LEASE_READY);
}

static int ready(pawl_leases *leases, uint64_t number, pawl_operation_id operation, void *result,
                 pawl_instant now, bool *ret_again)
{
    struct slot *slot = slot_of(leases, number, operation);
    if (slot && (slot->state == PAWL_LEASE_LEASED || slot->state == PAWL_LEASE_BOUND)) {
        hand_in(leases, slot, result, now);
        *ret_again = false;
        return PAWL_OK;
    }
    const struct memory *memory = slot ? NULL : memory_find(leases, number);
    if (!slot && !(memory && !memory->is_void && operation_is(memory->operation, operation)))
        return refuse(leases, number, operation);
    *ret_again = true;
    return PAWL_OK;
}

int pawl_leases_ready(pawl_leases *leases, uint64_t number, pawl_operation_id operation, void *result,
                      bool *ret_again)
{
    bool again;
    int status = ready(leases, number, operation, result, pawl_env_now(leases->options.env), &again);
    if (status == PAWL_OK && ret_again)
        *ret_again = again;
    return status;
}

void pawl_leases_ready_many(pawl_leases *leases, pawl_handed *handed, size_t count)
{
    pawl_instant now = pawl_env_now(leases->options.env);
    for (size_t i = 0; i < count; i++) {
        struct pawl_handed *h = &handed[i];
        h->again = false;
        h->status = ready(leases, h->number, h->operation, h->result, now, &h->again);
    }
}

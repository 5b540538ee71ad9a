/* A lease table against a model that looks at every number each time: thousands of random steps, from a seed.
 *
 * The model knows all but two things, which it takes from the table and only checks: how long an adaptive lease
 * is, and when within its bounds a back-off ends. */
#include "test/lib/test.h"

#include "test/lib/lease.h"

enum { WINDOW = 32, PROJECTIONS = 3, NUMBERS = 20000, CLAIMS = 256, TICK_BITS = 20, REMEMBERED = 7 };

#define DURATION_MAX (600 * PAWL_SECOND)

struct piece {
    pawl_lease_state state;
    uint32_t projection;
    uint32_t attempt;
    uint32_t failures;
    uint32_t postponed;
    bool is_held;
    bool is_current;
    bool has_expired;
    bool is_void;
    pawl_operation_id operation;
    void *result;
    pawl_duration duration;
    uint64_t leased_at;
    uint64_t due;      /* a lease's tick */
    uint64_t from, to; /* when its back-off may, and when it must, have ended */
};

/* What somebody was once given, and may come back with at any time. */
struct claim {
    uint64_t number;
    pawl_operation_id operation;
};

struct model {
    struct desk desk;
    uint64_t state;
    uint64_t bound;
    uint64_t taken;
    uint64_t committed;
    struct piece pieces[NUMBERS];
    struct claim claims[CLAIMS];
    size_t claim_count;
    pawl_lease_policy policies[PROJECTIONS];
    uint32_t attempts_max[PROJECTIONS];
    pawl_lease_figures f; /* the counts that the model keeps */
    uint64_t seen;        /* by list */
};

static uint64_t now_of(struct model *m)
{
    return pawl_env_now(m->desk.options.env).ns;
}

static bool is_here(const struct model *m, uint64_t number)
{
    return number > m->committed && number <= m->bound;
}

static bool same_id(pawl_operation_id a, pawl_operation_id b)
{
    return a.high == b.high && a.low == b.low;
}

/* What acquire should give next; 0: nothing. */
static uint64_t model_next(const struct model *m, uint32_t projection)
{
    for (uint64_t n = m->committed + 1; n <= m->bound; n++) {
        const struct piece *p = &m->pieces[n];
        if (p->state == PAWL_LEASE_BOUND && p->projection == projection && !p->is_held)
            return n;
    }
    return 0;
}

static void step_bind(struct model *m)
{
    uint32_t projection = (uint32_t)test_below(&m->state, PROJECTIONS);
    uint64_t number;
    int status = pawl_leases_bind(m->desk.leases, projection, NULL, test_below(&m->state, 5000), &number);
    if (m->bound - m->committed == WINDOW) {
        assert_status(status, PAWL_EBUSY);
        return;
    }
    assert_ok(status);
    assert_int_equal(number, ++m->bound);
    m->pieces[number] = (struct piece){.state = PAWL_LEASE_BOUND, .projection = projection};
}

static void model_lease(struct model *m, const pawl_lease *lease, pawl_duration asked)
{
    struct piece *p = &m->pieces[lease->number];
    pawl_duration least = asked ? asked : PAWL_SECOND;
    if (p->has_expired && p->duration > least)
        least = p->duration;
    least = least < DURATION_MAX ? least : DURATION_MAX;
    assert_true(asked ? lease->duration == least : lease->duration >= least);
    assert_true(lease->duration <= DURATION_MAX);
    assert_true(lease->operation.high || lease->operation.low);
    for (size_t i = 0; i < CLAIMS; i++)
        assert_false(same_id(lease->operation, m->claims[i].operation));
    p->state = PAWL_LEASE_LEASED;
    p->attempt++;
    p->is_current = true;
    p->operation = lease->operation;
    p->duration = lease->duration;
    p->leased_at = now_of(m);
    uint64_t deadline = p->leased_at + p->duration;
    p->due = (deadline + (1 << TICK_BITS) - 1) >> TICK_BITS;
    assert_int_equal(lease->attempt, p->attempt);
    m->claims[m->claim_count++ % CLAIMS] = (struct claim){lease->number, lease->operation};
    m->f.acquired++;
}

static void step_acquire(struct model *m)
{
    uint32_t projection = (uint32_t)test_below(&m->state, PROJECTIONS);
    pawl_duration asked = test_below(&m->state, 2) ? 0 : 1 + test_below(&m->state, 700 * PAWL_SECOND);
    pawl_lease leases[4];
    size_t count = 0;
    size_t max = 1 + test_below(&m->state, 4);
    int status = pawl_leases_acquire(m->desk.leases, projection, asked, max, leases, &count);
    if (model_next(m, projection) == 0) {
        assert_status(status, PAWL_ENOTFOUND);
        return;
    }
    assert_ok(status);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(leases[i].number, model_next(m, projection));
        model_lease(m, &leases[i], asked);
    }
    assert_true(count == max || model_next(m, projection) == 0);
}

/* Mostly somebody who was given it, often of what all wait for; now and then a liar. */
static struct claim pick_claim(struct model *m)
{
    size_t known = m->claim_count < CLAIMS ? m->claim_count : CLAIMS;
    size_t recent = known < 24 ? known : 24;
    struct claim claim = {test_below(&m->state, m->bound + 3), {test_random(&m->state), 1}};
    uint64_t low = m->taken + 1 + test_below(&m->state, 4);
    if (is_here(m, low) && test_below(&m->state, 2))
        claim = (struct claim){low, m->pieces[low].operation};
    else if (recent && test_below(&m->state, 4))
        claim = m->claims[(m->claim_count - 1 - test_below(&m->state, recent)) % CLAIMS];
    else if (known && test_below(&m->state, 4))
        claim = m->claims[test_below(&m->state, known)];
    if (test_below(&m->state, 20) == 0)
        claim.number++;
    return claim;
}

static int refusal(struct model *m, uint64_t number)
{
    if (number == 0 || number > m->bound)
        return PAWL_ENOTFOUND;
    m->f.fenced++;
    return PAWL_EFENCED;
}

/* The piece whose present ID this is, or NULL. */
static struct piece *believed(struct model *m, struct claim claim)
{
    if (!is_here(m, claim.number))
        return NULL;
    struct piece *p = &m->pieces[claim.number];
    return p->is_current && same_id(p->operation, claim.operation) ? p : NULL;
}

static bool is_under_work(const struct piece *p)
{
    return p && (p->state == PAWL_LEASE_LEASED || p->state == PAWL_LEASE_BOUND);
}

static void step_ready(struct model *m)
{
    struct claim claim = pick_claim(m);
    struct piece *p = believed(m, claim);
    bool again = false;
    void *result = &m->claims[test_below(&m->state, CLAIMS)];
    int status = pawl_leases_ready(m->desk.leases, claim.number, claim.operation, result, &again);
    if (is_under_work(p)) {
        assert_ok(status);
        assert_false(again);
        p->state = PAWL_LEASE_READY;
        p->result = result;
        return;
    }
    const struct piece *gone = claim.number && claim.number <= m->committed ? &m->pieces[claim.number] : NULL;
    bool is_known = p
                    || (gone && m->committed - claim.number < REMEMBERED && !gone->is_void
                        && gone->state == PAWL_LEASE_COMMITTED && same_id(gone->operation, claim.operation));
    assert_status(status, is_known ? PAWL_OK : refusal(m, claim.number));
    assert_int_equal(again, is_known);
}

static void step_extend(struct model *m)
{
    struct claim claim = pick_claim(m);
    struct piece *p = believed(m, claim);
    pawl_duration more = 1 + test_below(&m->state, 700 * PAWL_SECOND);
    int status = pawl_leases_extend(m->desk.leases, claim.number, claim.operation, more);
    assert_status(status, is_under_work(p) ? PAWL_OK : refusal(m, claim.number));
    if (status)
        return;
    more = more < DURATION_MAX ? more : DURATION_MAX;
    p->state = PAWL_LEASE_LEASED;
    p->duration = now_of(m) - p->leased_at + more;
    p->due = (now_of(m) + more + (1 << TICK_BITS) - 1) >> TICK_BITS;
}

static void step_release(struct model *m)
{
    struct claim claim = pick_claim(m);
    struct piece *p = believed(m, claim);
    int status = pawl_leases_release(m->desk.leases, claim.number, claim.operation, "released");
    assert_status(status, is_under_work(p) ? PAWL_OK : refusal(m, claim.number));
    if (status)
        return;
    m->f.released++;
    p->state = PAWL_LEASE_BOUND;
    p->is_current = false;
    p->attempt--;
}

static void model_back_off(struct model *m, struct piece *p, uint32_t times)
{
    pawl_duration delay = 100 * PAWL_MILLISECOND << (times - 1 < 20 ? times - 1 : 20);
    delay = delay < 60 * PAWL_SECOND ? delay : 60 * PAWL_SECOND;
    p->state = PAWL_LEASE_BACKING_OFF;
    p->from = now_of(m) + delay / 2;
    p->to = now_of(m) + delay + (1 << TICK_BITS);
}

static void step_postpone(struct model *m)
{
    struct claim claim = pick_claim(m);
    struct piece *p = believed(m, claim);
    int status = pawl_leases_postpone(m->desk.leases, claim.number, claim.operation, "postponed");
    assert_status(status, is_under_work(p) ? PAWL_OK : refusal(m, claim.number));
    if (status)
        return;
    m->f.released++;
    p->is_current = false;
    p->attempt--;
    model_back_off(m, p, ++p->postponed);
}

static void model_void(struct model *m, struct piece *p)
{
    m->f.voids++;
    p->state = PAWL_LEASE_READY;
    p->is_void = true;
    p->is_current = false;
}

static void step_fail(struct model *m)
{
    struct claim claim = pick_claim(m);
    struct piece *p = believed(m, claim);
    bool permanent = test_below(&m->state, 10) == 0;
    bool is_last = pawl_leases_is_last(m->desk.leases, claim.number);
    int status = pawl_leases_fail(m->desk.leases, claim.number, claim.operation, permanent, "failed");
    assert_status(status, is_under_work(p) ? PAWL_OK : refusal(m, claim.number));
    if (status)
        return;
    m->f.failed++;
    p->is_current = false;
    p->failures++;
    bool too_often = p->failures >= m->attempts_max[p->projection];
    assert_int_equal(is_last, too_often);
    if (permanent || (too_often && m->policies[p->projection] == PAWL_LEASE_VOID)) {
        model_void(m, p);
    } else if (too_often) {
        p->state = PAWL_LEASE_STALLED;
    } else {
        model_back_off(m, p, p->failures);
    }
}

static void step_take(struct model *m)
{
    pawl_turn turns[8];
    size_t max = test_below(&m->state, 9);
    size_t count = pawl_leases_take(m->desk.leases, max, turns);
    for (size_t i = 0; i < count; i++) {
        struct piece *p = &m->pieces[++m->taken];
        assert_int_equal(turns[i].number, m->taken);
        assert_int_equal(p->state, PAWL_LEASE_READY);
        assert_int_equal(turns[i].is_void, p->is_void);
        assert_ptr_equal(turns[i].result, p->is_void ? NULL : p->result);
        assert_true(same_id(turns[i].operation, p->operation));
        assert_int_equal(turns[i].attempt, p->attempt);
        assert_int_equal(turns[i].projection, p->projection);
        p->state = PAWL_LEASE_TAKEN;
    }
    if (count > 0 && m->taken < m->bound)
        m->pieces[m->taken + 1].is_held = false;
    bool is_more = m->taken < m->bound && m->pieces[m->taken + 1].state == PAWL_LEASE_READY;
    assert_true(count == max || !is_more);
}

static void step_commit(struct model *m)
{
    uint64_t number =
        m->committed + test_below(&m->state, test_below(&m->state, 4) ? m->taken - m->committed + 1 : 10);
    number -= number > 0 && test_below(&m->state, 10) == 0;
    bool is_fine = number >= m->committed && number <= m->taken;
    assert_status(pawl_leases_commit(m->desk.leases, number), is_fine ? PAWL_OK : PAWL_EMISUSE);
    while (is_fine && m->committed < number) {
        m->pieces[++m->committed].state = PAWL_LEASE_COMMITTED;
        m->f.committed++;
    }
}

static void step_repeat(struct model *m)
{
    uint64_t number = test_below(&m->state, 4) ? m->taken : test_below(&m->state, m->bound + 2);
    bool is_fine = number == m->taken && m->taken > m->committed;
    assert_status(pawl_leases_repeat(m->desk.leases, number), is_fine ? PAWL_OK : PAWL_EMISUSE);
    if (!is_fine)
        return;
    struct piece *p = &m->pieces[m->taken--];
    p->state = p->is_void ? PAWL_LEASE_READY : PAWL_LEASE_BOUND;
    if (p->is_void)
        return;
    p->is_current = false;
    p->attempt--;
    m->f.repeated++;
}

static void step_repeat_early(struct model *m)
{
    uint64_t number = m->committed + test_below(&m->state, WINDOW + 2);
    struct piece *p = is_here(m, number) ? &m->pieces[number] : NULL;
    bool is_work = p && !p->is_void && (p->state == PAWL_LEASE_LEASED || p->state == PAWL_LEASE_READY);
    bool is_fine = is_work && number != m->taken + 1;
    assert_status(pawl_leases_repeat_early(m->desk.leases, number), is_fine   ? PAWL_OK
                                                                    : is_work ? PAWL_EMISUSE
                                                                              : PAWL_ENOTFOUND);
    if (!is_fine)
        return;
    p->state = PAWL_LEASE_BOUND;
    p->is_current = false;
    p->result = NULL;
    p->attempt--;
    m->f.repeated++;
}

static void step_hold(struct model *m)
{
    uint64_t number = m->committed + test_below(&m->state, WINDOW + 2);
    struct piece *p = is_here(m, number) ? &m->pieces[number] : NULL;
    bool held = test_below(&m->state, 3) > 0;
    bool is_bound = p && p->state == PAWL_LEASE_BOUND, is_fine = is_bound && !(held && number == m->taken + 1);
    assert_status(pawl_leases_hold(m->desk.leases, number, held), is_fine    ? PAWL_OK
                                                                  : is_bound ? PAWL_EMISUSE
                                                                             : PAWL_ENOTFOUND);
    if (is_fine)
        p->is_held = held;
}

static void step_refuse(struct model *m)
{
    uint64_t number = test_below(&m->state, 4) ? m->taken : test_below(&m->state, m->bound + 2);
    bool is_fine = number == m->taken && m->taken > m->committed && !m->pieces[number].is_void;
    assert_status(pawl_leases_refuse(m->desk.leases, number, "refused"), is_fine ? PAWL_OK : PAWL_EMISUSE);
    if (!is_fine)
        return;
    struct piece *p = &m->pieces[m->taken--];
    m->f.failed++;
    p->failures = m->attempts_max[p->projection];
    p->is_current = false;
    if (m->policies[p->projection] == PAWL_LEASE_VOID)
        model_void(m, p);
    else
        p->state = PAWL_LEASE_STALLED;
}

static void step_operator(struct model *m)
{
    uint64_t number = m->committed + test_below(&m->state, WINDOW + 2);
    struct piece *p = is_here(m, number) ? &m->pieces[number] : NULL;
    pawl_lease_state state = p ? p->state : PAWL_LEASE_COMMITTED;
    switch (test_below(&m->state, 4)) {
    case 0: {
        bool is_fine = state == PAWL_LEASE_LEASED;
        assert_status(pawl_leases_reclaim(m->desk.leases, number), is_fine ? PAWL_OK : PAWL_ENOTFOUND);
        if (is_fine) {
            p->state = PAWL_LEASE_BOUND;
            p->is_current = false;
        }
        break;
    }
    case 1: {
        bool is_fine = state < PAWL_LEASE_READY && test_below(&m->state, 3) == 0;
        if (is_fine || state >= PAWL_LEASE_READY)
            assert_status(pawl_leases_void(m->desk.leases, number, "void"), is_fine ? PAWL_OK : PAWL_ENOTFOUND);
        if (is_fine)
            model_void(m, p);
        break;
    }
    default: {
        bool is_fine = state == PAWL_LEASE_STALLED || state == PAWL_LEASE_BACKING_OFF;
        assert_status(pawl_leases_retry(m->desk.leases, number), is_fine ? PAWL_OK : PAWL_ENOTFOUND);
        if (is_fine) {
            p->state = PAWL_LEASE_BOUND;
            p->failures = p->postponed = 0;
        }
        break;
    }
    }
}

static void step_policy(struct model *m)
{
    uint32_t projection = (uint32_t)test_below(&m->state, PROJECTIONS);
    m->policies[projection] = test_below(&m->state, 2) ? PAWL_LEASE_VOID : PAWL_LEASE_STALL;
    m->attempts_max[projection] = 1 + (uint32_t)test_below(&m->state, 4);
    assert_ok(
        pawl_leases_policy(m->desk.leases, projection, m->policies[projection], m->attempts_max[projection]));
}

static void check_dropped(void *arg, uint64_t number, void *work, void *result)
{
    struct model *m = arg;
    const struct piece *p = &m->pieces[number];
    bool is_handed_in = (p->state == PAWL_LEASE_READY || p->state == PAWL_LEASE_TAKEN) && !p->is_void;
    assert_int_equal(number, ++m->seen);
    assert_ptr_equal(result, is_handed_in ? p->result : NULL);
}

static void step_reset(struct model *m)
{
    uint64_t next = m->committed + test_below(&m->state, 3);
    m->seen = m->committed;
    int status = pawl_leases_reset(m->desk.leases, next, check_dropped, m);
    assert_status(status, next > m->committed ? PAWL_OK : PAWL_EMISUSE);
    if (status)
        return;
    assert_int_equal(m->seen, m->bound);
    while (m->committed < next - 1) /* by somebody else */
        m->pieces[++m->committed] = (struct piece){0};
    m->bound = m->taken = m->committed;
}

/* Everything that list says; back-offs may have ended since. */
static bool check_listed(void *arg, const pawl_lease *lease)
{
    struct model *m = arg;
    struct piece *p = &m->pieces[lease->number];
    uint64_t now = now_of(m);
    assert_int_equal(lease->number, ++m->seen);
    if (p->state == PAWL_LEASE_BACKING_OFF && lease->state == PAWL_LEASE_BOUND) {
        assert_true(now >= p->from);
        p->state = PAWL_LEASE_BOUND;
    }
    assert_true(p->state != PAWL_LEASE_BACKING_OFF || now < p->to);
    assert_int_equal(lease->state, p->state);
    assert_int_equal(lease->attempt, p->attempt);
    assert_int_equal(lease->is_void, p->is_void);
    assert_int_equal(lease->projection, p->projection);
    assert_int_equal(lease->duration, p->duration);
    assert_true(same_id(lease->operation, p->operation));
    return true;
}

static void expire(struct model *m)
{
    for (uint64_t n = m->committed + 1; n <= m->bound; n++) {
        struct piece *p = &m->pieces[n];
        if (p->state != PAWL_LEASE_LEASED || p->due > now_of(m) >> TICK_BITS)
            continue;
        p->state = PAWL_LEASE_BOUND;
        p->has_expired = true;
        p->duration = p->duration < DURATION_MAX / 2 ? 2 * p->duration : DURATION_MAX;
        m->f.expired++;
    }
}

static uint64_t count_state(const struct model *m, pawl_lease_state state)
{
    uint64_t count = 0;
    for (uint64_t n = m->committed + 1; n <= m->bound; n++)
        count += m->pieces[n].state == state;
    return count;
}

static void check(void *arg)
{
    struct model *m = arg;
    pawl_lease_figures f;
    expire(m);
    for (uint64_t n = m->committed + 1; n <= m->bound; n++) /* a number that comes back is not held */
        m->pieces[n].is_held = m->pieces[n].is_held && m->pieces[n].state == PAWL_LEASE_BOUND;
    m->seen = m->committed;
    pawl_leases_list(m->desk.leases, 0, check_listed, m);
    assert_int_equal(m->seen, m->bound);
    for (uint32_t i = 0; i < PROJECTIONS; i++)
        assert_int_equal(pawl_leases_peek(m->desk.leases, i), model_next(m, i));
    pawl_leases_figures_get(m->desk.leases, &f);
    assert_int_equal(f.bound, m->bound);
    assert_int_equal(f.taken, m->taken);
    assert_int_equal(f.watermark, m->committed);
    assert_int_equal(f.active, count_state(m, PAWL_LEASE_LEASED));
    assert_int_equal(f.waiting, count_state(m, PAWL_LEASE_READY));
    assert_int_equal(f.stalled, count_state(m, PAWL_LEASE_STALLED));
    assert_int_equal(f.acquired, m->f.acquired);
    assert_int_equal(f.committed, m->f.committed);
    assert_int_equal(f.expired, m->f.expired);
    assert_int_equal(f.released, m->f.released);
    assert_int_equal(f.failed, m->f.failed);
    assert_int_equal(f.voids, m->f.voids);
    assert_int_equal(f.fenced, m->f.fenced);
    assert_int_equal(f.repeated, m->f.repeated);
}

static const struct {
    void (*fn)(struct model *m);
    unsigned weight;
} steps[] = {
    {step_bind, 20},   {step_acquire, 30}, {step_ready, 50},       {step_take, 12},
    {step_commit, 10}, {step_extend, 4},   {step_release, 3},      {step_postpone, 2},
    {step_fail, 5},    {step_operator, 6}, {step_repeat, 2},       {step_refuse, 1},
    {step_policy, 1},  {step_reset, 0},    {step_repeat_early, 3}, {step_hold, 8},
};

static void random_step(void *arg)
{
    struct model *m = arg;
    unsigned total = 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        total += steps[i].weight;
    if (test_below(&m->state, 500) == 0) {
        step_reset(m);
    } else {
        uint64_t at = test_below(&m->state, total);
        size_t i = 0;
        while (at >= steps[i].weight)
            at -= steps[i++].weight;
        steps[i].fn(m);
    }
    check(m);
}

static void tick(void *arg)
{
    const struct model *m = arg;
    while (pawl_leases_tick(m->desk.leases) == 0)
        ;
}

static void pass_time(struct model *m)
{
    static const pawl_duration scales[] = {PAWL_MILLISECOND,       PAWL_MILLISECOND, 100 * PAWL_MILLISECOND,
                                           100 * PAWL_MILLISECOND, PAWL_SECOND,      PAWL_SECOND,
                                           10 * PAWL_SECOND,       700 * PAWL_SECOND};
    pawl_duration scale = scales[test_below(&m->state, 8)];
    if (test_below(&m->state, 10) == 0) {
        mem_env_jump(m->desk.env, test_below(&m->state, scale));
        mem_world_advance(m->desk.world, 0);
    } else {
        mem_world_advance(m->desk.world, test_below(&m->state, scale));
    }
    if (m->desk.options.untimed)
        desk_run(&m->desk, tick, m);
}

/* Returns how many numbers were committed. */
static uint64_t random_history(uint64_t seed, int count, bool untimed)
{
    struct model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    pawl_leases_options options = {
        .window = WINDOW, .projections = PROJECTIONS, .remembered = REMEMBERED, .untimed = untimed};
    desk_open(&m->desk, &options);
    m->state = seed;
    for (uint32_t i = 0; i < PROJECTIONS; i++)
        m->attempts_max[i] = 5;
    for (int i = 0; i < count; i++) {
        desk_run(&m->desk, random_step, m);
        if (test_below(&m->state, 8) == 0) {
            pass_time(m);
            desk_run(&m->desk, check, m);
        }
    }
    uint64_t committed = m->f.committed;
    assert_true(m->f.expired && m->f.voids && m->f.fenced && m->f.repeated);
    desk_close(&m->desk);
    free(m);
    return committed;
}

TEST(random_histories_agree_with_looking_at_every_number)
{
    uint64_t seed = test_seed(2026);
    uint64_t committed = 0;
    for (int i = 0; i < 10; i++)
        committed += random_history(test_random(&seed), 5000, i % 3 == 2);
    assert_true(committed > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(random_histories_agree_with_looking_at_every_number)};
    return TEST_MAIN(tests);
}

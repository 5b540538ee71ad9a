#include "core/project/schedule.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/hash.h"

#define GROWTH      (1.0 / 36) /* with these two, ahead stays when one run in ten is repeated */
#define SHRINKAGE   0.75
#define TRUST_FIRST 0.75
#define TRUST_LOST  0.5
#define TRUST_WON   0.6
#define TRUST_STEP  (1.0 / 16)
#define KINDS       8
#define PAIRS_MAX   64 /* then all counts are halved: what was learned long ago fades */
#define PAIRS_BLIND                                                                                            \
    8 /* so many conflicts in which no value tells anything: all events of a workspace are one chain */
#define SEEN_MAX 1024

/* What is known of a number that is bound; of one that is staged, until another takes its place. */
struct chained {
    uint64_t number;
    uint64_t token;  /* equal: the events agree in what matters; 0: no prediction */
    uint64_t older;  /* the number before it in its bucket */
    uint64_t before; /* in its chain; 0: none */
    uint64_t after;
    bool held;
    bool promised;
};

/* A projector and a command: what their events have in common with those that they conflict with. */
struct kind {
    uint32_t id;
    bool used;
    uint32_t pairs;                    /* conflicts */
    uint32_t agree[EVENT_VALUES_MAX];  /* in how many of them the other event had this value */
    uint32_t seen;                     /* events */
    uint32_t varied[EVENT_VALUES_MAX]; /* in how many of them this value was not that of the event before */
    uint64_t previous[EVENT_VALUES_MAX];
    uint32_t chosen; /* a bit for each value that makes the token */
    bool predicts;   /* its events have tokens */
};

struct schedule_chains {
    struct kind kinds[KINDS];
    uint64_t chosen_at;      /* the number that was staged when values were last chosen */
    struct chained *numbers; /* by number modulo the window */
    uint64_t *buckets;       /* by token: the newest number */
};

void schedule_init(struct schedule *s, const struct schedule_ops *ops, void *ctx, uint32_t window,
                   const pawl_allocator *alloc)
{
    *s = (struct schedule){
        .ops = ops, .ctx = ctx, .alloc = alloc, .window = window, .ahead = window, .trust = TRUST_FIRST};
}

static void free_chains(struct schedule *s)
{
    struct schedule_chains *c = s->chains;
    if (!c)
        return;
    mem_free(s->alloc, c->numbers, c->numbers ? s->window * sizeof c->numbers[0] : 0);
    mem_free(s->alloc, c->buckets, c->buckets ? s->window * sizeof c->buckets[0] : 0);
    mem_free(s->alloc, c, sizeof *c);
    s->chains = NULL;
}

void schedule_release(struct schedule *s)
{
    free_chains(s);
}

static bool make_chains(struct schedule *s)
{
    struct schedule_chains *c = s->chains = mem_new(s->alloc, 1, sizeof *c);
    if (!c)
        return false;
    c->numbers = mem_new(s->alloc, s->window, sizeof c->numbers[0]);
    c->buckets = mem_new(s->alloc, s->window, sizeof c->buckets[0]);
    if (c->numbers && c->buckets)
        return true;
    free_chains(s);
    return false;
}

/* --- chains --- */

static struct chained *chained(const struct schedule *s, uint64_t number)
{
    if (!s->chains)
        return NULL;
    struct chained *c = &s->chains->numbers[number & (s->window - 1)];
    return c->number == number ? c : NULL;
}

uint64_t schedule_before(const struct schedule *s, uint64_t number)
{
    const struct chained *c = chained(s, number);
    return c ? c->before : 0;
}

/* Whether the number before it is neither staged nor promised to it. */
static bool must_wait(const struct schedule *s, const struct chained *c)
{
    const struct chained *before = c->before > s->staged ? chained(s, c->before) : NULL;
    return before && !(before->promised && s->ops->takes_promises(s->ctx, c->number));
}

static void set_held(struct schedule *s, struct chained *c, bool held)
{
    if (c->held == held)
        return;
    assert(!held || (c->before < c->number && must_wait(s, c))); /* S1, S2 */
    if (!s->ops->hold(s->ctx, c->number, held) && held)
        return;
    c->held = held;
    s->held = held ? s->held + 1 : s->held - 1;
}

/* Hold whatever waits for another number; or nothing. */
static void hold_all(struct schedule *s)
{
    for (uint64_t n = s->staged + 1; n <= s->bound; n++) {
        struct chained *c = chained(s, n);
        if (c)
            set_held(s, c, s->trusted && must_wait(s, c));
    }
}

/* Put a number behind the newest one that has the same token and is not staged. */
static void chain(struct schedule *s, uint64_t number, uint64_t token)
{
    struct schedule_chains *all = s->chains;
    struct chained *c = &all->numbers[number & (s->window - 1)];
    uint64_t *bucket = &all->buckets[hash_mix(token) & (s->window - 1)];
    *c = (struct chained){.number = number, .token = token, .promised = c->number == number && c->promised};
    if (!token)
        return;
    for (uint64_t n = *bucket; n > s->staged && !c->before;) {
        struct chained *other = chained(s, n);
        if (!other)
            break;
        if (other->token == token) {
            c->before = n;
            other->after = number;
        }
        n = other->older;
    }
    c->older = *bucket;
    *bucket = number;
}

/* --- what makes events conflict --- */

static struct kind *kind_of(struct schedule_chains *c, uint32_t id)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct kind *kind = &c->kinds[i];
        if (!kind->used)
            *kind = (struct kind){.id = id, .used = true};
        if (kind->id == id)
            return kind;
    }
    return NULL;
}

/* A value that all events have tells nothing. Count how often each one changes. */
static void note_variety(struct schedule_chains *c, const struct event_values *values)
{
    struct kind *kind = kind_of(c, values->kind);
    if (!kind)
        return;
    if (kind->seen == SEEN_MAX) {
        kind->seen /= 2;
        for (size_t i = 0; i < EVENT_VALUES_MAX; i++)
            kind->varied[i] /= 2;
    }
    for (size_t i = 0; i < EVENT_VALUES_MAX; i++) {
        kind->varied[i] += kind->seen > 0 && values->hashes[i] != kind->previous[i];
        kind->previous[i] = values->hashes[i];
    }
    kind->seen++;
}

/* The sum does not depend on which field has which value, so events of two kinds can agree. */
static uint64_t token_of(struct schedule_chains *c, const struct event_values *values)
{
    const struct kind *kind = kind_of(c, values->kind);
    if (!kind || !kind->predicts)
        return 0;
    uint64_t token = hash_mix(values->wsid + 1);
    for (size_t i = 0; i < EVENT_VALUES_MAX; i++)
        if (kind->chosen >> i & 1)
            token += hash_mix(values->hashes[i]);
    return token ? token : 1;
}

static bool has_value(const struct event_values *values, uint64_t hash)
{
    for (size_t i = 0; i < EVENT_VALUES_MAX; i++)
        if (values->hashes[i] == hash)
            return true;
    return false;
}

/* Events of the same kind must agree field by field; of two kinds, each value of the one is looked for in the other. */
static void note_pair(struct schedule_chains *c, const struct event_values *one,
                      const struct event_values *other)
{
    struct kind *kind = kind_of(c, one->kind);
    if (!kind)
        return;
    if (kind->pairs == PAIRS_MAX) {
        kind->pairs /= 2;
        for (size_t i = 0; i < EVENT_VALUES_MAX; i++)
            kind->agree[i] /= 2;
    }
    kind->pairs++;
    for (size_t i = 0; i < EVENT_VALUES_MAX; i++) {
        uint64_t hash = one->hashes[i];
        bool agrees = one->kind == other->kind ? hash == other->hashes[i] : has_value(other, hash);
        kind->agree[i] += hash && agrees;
    }
}

/* Values that agree in seven of eight conflicts, and change. Returns whether tokens are others than before. */
static bool choose_values(struct kind *kind)
{
    uint32_t chosen = 0;
    for (size_t i = 0; i < EVENT_VALUES_MAX; i++)
        if (kind->pairs > 0 && 8 * kind->agree[i] >= 7 * kind->pairs && 16 * kind->varied[i] >= kind->seen)
            chosen |= UINT32_C(1) << i;
    bool predicts = chosen != 0 || kind->pairs >= PAIRS_BLIND;
    bool changed = chosen != kind->chosen || predicts != kind->predicts;
    kind->chosen = chosen;
    kind->predicts = predicts;
    return changed;
}

static void rebuild(struct schedule *s)
{
    struct schedule_chains *c = s->chains;
    struct event_values values;
    for (uint64_t n = s->staged + 1; n <= s->bound; n++) {
        struct chained *old = chained(s, n);
        if (old)
            set_held(s, old, false);
    }
    for (uint32_t i = 0; i < s->window; i++)
        c->buckets[i] = 0;
    for (uint64_t n = s->staged + 1; n <= s->bound; n++)
        chain(s, n, s->ops->values(s->ctx, n, &values) ? token_of(c, &values) : 0);
    hold_all(s);
}

/* The first conflict: what was bound before it tells how values change. */
static bool begin_to_learn(struct schedule *s)
{
    struct event_values values;
    if (!make_chains(s))
        return false;
    for (uint64_t n = s->staged + 1; n <= s->bound; n++)
        if (s->ops->values(s->ctx, n, &values))
            note_variety(s->chains, &values);
    s->trusted = true;
    return true;
}

/* Returns whether this conflict would be foreseen from now on. */
static bool learn(struct schedule *s, uint64_t number, uint64_t writer)
{
    struct event_values one, other;
    bool first = !s->chains;
    if (!s->ops->values(s->ctx, number, &one) || !s->ops->values(s->ctx, writer, &other)
        || (first && !begin_to_learn(s)))
        return false;
    struct schedule_chains *c = s->chains;
    bool changed = false, rested = s->staged >= c->chosen_at + s->window / 8;
    note_pair(c, &one, &other);
    note_pair(c, &other, &one);
    const struct kind *kind = kind_of(c, one.kind);
    bool enough = kind && kind->pairs > 16; /* to choose anew costs a look at all events of the window */
    for (size_t i = 0; (rested || !enough) && i < KINDS && c->kinds[i].used; i++)
        changed = choose_values(&c->kinds[i]) || changed;
    if (changed) {
        c->chosen_at = s->staged;
        rebuild(s);
    }
    uint64_t token = token_of(c, &one);
    return s->trusted && token && token == token_of(c, &other);
}

/* --- what happens to numbers --- */

void schedule_reset(struct schedule *s, uint64_t next)
{
    s->bound = s->staged = next - 1;
    s->held = 0;
    if (!s->chains)
        return;
    for (uint32_t i = 0; i < s->window; i++) {
        s->chains->numbers[i] = (struct chained){0};
        s->chains->buckets[i] = 0;
    }
    s->chains->chosen_at = s->staged;
}

void schedule_bind(struct schedule *s, uint64_t number)
{
    struct event_values values;
    assert(number == s->bound + 1);
    s->bound = number;
    if (!s->chains)
        return;
    uint64_t token = 0;
    if (s->ops->values(s->ctx, number, &values)) {
        note_variety(s->chains, &values);
        token = token_of(s->chains, &values);
    }
    chain(s, number, token);
    struct chained *c = chained(s, number);
    if (s->trusted && must_wait(s, c))
        set_held(s, c, true);
}

/* The next number of its chain waits no more, if this was all that it waited for. */
static void free_after(struct schedule *s, const struct chained *c)
{
    struct chained *after = c->after ? chained(s, c->after) : NULL;
    if (after && after->before == c->number && !must_wait(s, after))
        set_held(s, after, false);
}

void schedule_promise(struct schedule *s, uint64_t number)
{
    struct chained *c = chained(s, number);
    if (!c)
        return;
    c->promised = true;
    free_after(s, c);
}

void schedule_stage(struct schedule *s, uint64_t number)
{
    assert(number == s->staged + 1 && number <= s->bound);
    const struct chained *c = chained(s, number);
    s->staged = number;
    if (c)
        free_after(s, c);
}

void schedule_stood(struct schedule *s, uint64_t number, uint64_t writer)
{
    uint64_t before = schedule_before(s, number);
    if (before && s->trusted && writer >= before) /* a conflict that was foreseen */
        s->wary_until = s->staged + s->window;
    s->ahead += s->ahead * GROWTH;
    if (s->ahead > (double)s->window) /* S4 */
        s->ahead = (double)s->window;
    if (!before)
        return;
    s->trust += ((writer >= before ? 1.0 : 0.0) - s->trust) * TRUST_STEP;
    bool trusted = s->trusted ? s->trust >= TRUST_LOST : s->trust >= TRUST_WON;
    if (trusted == s->trusted)
        return;
    s->trusted = trusted;
    hold_all(s);
}

/* The lane forgets that a number is held when it is given out, or becomes the next in turn. */
static void hold_again(struct schedule *s, uint64_t number)
{
    struct chained *c = chained(s, number);
    if (!c || number > s->bound || !s->trusted || !must_wait(s, c))
        return;
    set_held(s, c, false);
    set_held(s, c, true);
}

void schedule_withdraw(struct schedule *s, uint64_t number)
{
    struct chained *c = chained(s, number);
    if (!c)
        return;
    c->promised = false;
    hold_again(s, c->after);
}

void schedule_repeated(struct schedule *s, uint64_t number, uint64_t writer)
{
    bool is_foreseen = writer && learn(s, number, writer);
    if (!is_foreseen)
        s->ahead = s->ahead * SHRINKAGE > 1 ? s->ahead * SHRINKAGE : 1; /* S4 */
    s->wary_until = s->staged + s->window;
    schedule_withdraw(s, number);
    hold_again(s, number);
    hold_again(s, number + 1); /* it was the next in turn while this one was taken */
}

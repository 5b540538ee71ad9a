#include "port/claim_find.h"

#include <assert.h>

#define RUNS_MAX 64 /* halving a log of any length takes fewer */
#define FAR_MAX  4
#define LINKED   4 /* windows of records that a chain is followed through, or searched for another record */

void finder_init(struct finder *f, const struct finder_options *options)
{
    assert(options->wanted >= options->low_next && options->run > 0 && options->window > 0);
    *f = (struct finder){
        .options = *options, .low = options->low, .low_next = options->low_next, .high = options->high};
}

static enum find_step ask(struct finder *f, uint64_t at, uint64_t count, uint64_t *ret_position,
                          uint32_t *ret_count)
{
    f->at = at;
    f->count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    f->taken = 0;
    f->first = f->last = f->epoch = 0;
    f->runs++;
    *ret_position = at;
    *ret_count = f->count;
    return FIND_READ;
}

static enum find_step end(struct finder *f, enum find_step step)
{
    f->phase = FIND_OVER;
    return step;
}

/* What the run has shown. */
static void narrow(struct finder *f)
{
    uint64_t wanted = f->options.wanted;
    if (f->first == 0 || f->first >= wanted) {
        f->high = f->at;
    } else {
        f->low = f->at + f->taken;
        f->low_next = f->last < wanted ? f->last + 1 : f->low_next;
        f->low_epoch = f->epoch;
    }
}

/* Every entry has a record at least. So if low_next is true, the entry lies no earlier than this, and mostly just
 * there; by turns, the rest is halved. */
static uint64_t guess(const struct finder *f)
{
    uint64_t ahead = f->options.wanted - f->low_next, left = f->high - f->low;
    return f->runs % 2 == 0 && ahead < left ? f->low + ahead : f->low + left / 2;
}

static enum find_step scan(struct finder *f, uint64_t from, uint64_t count, uint64_t *ret_position,
                           uint32_t *ret_count)
{
    if (from >= f->options.high)
        return end(f, FIND_LOST);
    f->phase = FIND_SCAN;
    return ask(f, from, count, ret_position, ret_count);
}

static enum find_step seek(struct finder *f, uint64_t *ret_position, uint32_t *ret_count)
{
    const struct finder_options *o = &f->options;
    if (f->runs == 0 && o->guess < o->high && o->guess >= o->low)
        return ask(f, o->guess, o->run, ret_position, ret_count);
    if (f->runs > 0 && f->first == 0 && f->taken == f->count && f->count < LINKED * o->window) {
        f->count += o->run; /* claims, and what does not count: nothing is known of this place yet */
        f->runs++;
        *ret_position = f->at + f->taken;
        *ret_count = o->run;
        return FIND_READ;
    }
    if (f->runs > 0)
        narrow(f);
    if (f->high <= f->low || f->high - f->low <= o->run || f->runs >= RUNS_MAX) {
        uint64_t back = 2 * (uint64_t)o->run, low = f->low < f->high ? f->low : f->high;
        low = low - o->low > back ? low - back : o->low;
        return scan(f, low, LINKED * (uint64_t)o->window + back, ret_position, ret_count);
    }
    return ask(f, guess(f), o->run, ret_position, ret_count);
}

static bool prove(struct finder *f, uint64_t upto)
{
    if (upto < f->options.wanted)
        return false;
    f->upto = upto > f->upto ? upto : f->upto;
    return true;
}

static bool is_fact(struct finder *f)
{
    bool proven = false;
    for (size_t i = 0; i < f->options.fact_count; i++)
        if (f->options.facts[i].epoch == f->record.epoch)
            proven = prove(f, f->options.facts[i].upto) || proven;
    return proven;
}

/* P2, at about the right distance: first for all that is wanted, then for the one entry, then a little farther. */
static enum find_step look_far(struct finder *f, uint64_t *ret_position, uint32_t *ret_count)
{
    const struct finder_options *o = &f->options;
    uint64_t distance = o->window + o->run / 2, from = f->record.position;
    if (f->far == 0 && o->ahead > 0 && o->ahead < o->high && from + distance + o->ahead < o->high) {
        distance += o->ahead;
    } else if (f->far > 1) {
        if (f->last == 0)
            return FIND_LOST; /* another epoch's records */
        from = f->at;
        distance = o->wanted + o->window - f->last + o->run / 2;
    } else {
        f->far = 1;
    }
    if (f->far++ >= FAR_MAX || from + distance >= o->high)
        return FIND_LOST;
    f->phase = FIND_FAR;
    return ask(f, from + distance, o->run, ret_position, ret_count);
}

static enum find_step follow_chain(struct finder *f, uint64_t *ret_position, uint32_t *ret_count)
{
    f->phase = FIND_LINK;
    finder_judge_start(f, &f->link);
    return ask(f, f->record.position, LINKED * (uint64_t)f->options.window, ret_position, ret_count);
}

/* A record of a later epoch may have the same offset, and be the one that counts. */
static enum find_step refuse(struct finder *f, uint64_t *ret_position, uint32_t *ret_count)
{
    f->refused = f->record.epoch;
    f->has_record = false;
    f->far = 0;
    if (f->runs >= RUNS_MAX)
        return end(f, FIND_LOST);
    return scan(f, f->record.position + 1, LINKED * (uint64_t)f->options.window, ret_position, ret_count);
}

enum find_step finder_next(struct finder *f, uint64_t *ret_position, uint32_t *ret_count)
{
    switch (f->phase) {
    case FIND_SEEK:
    case FIND_SCAN:
        if (f->has_record) {
            if (is_fact(f))
                return end(f, FIND_FOUND);
            if (look_far(f, ret_position, ret_count) == FIND_READ)
                return FIND_READ;
            return follow_chain(f, ret_position, ret_count);
        }
        return f->phase == FIND_SEEK ? seek(f, ret_position, ret_count) : end(f, FIND_LOST);
    case FIND_FAR:
        if (f->upto > 0)
            return end(f, FIND_FOUND);
        if (look_far(f, ret_position, ret_count) == FIND_READ)
            return FIND_READ;
        return follow_chain(f, ret_position, ret_count);
    case FIND_LINK: return f->upto > 0 ? end(f, FIND_FOUND) : refuse(f, ret_position, ret_count);
    case FIND_OVER: break;
    }
    return f->upto > 0 ? FIND_FOUND : FIND_LOST;
}

/* P2. */
static bool is_far_enough(struct finder *f, const struct claim_record *r)
{
    return r->kind == CLAIM_KIND_EVENT && r->epoch == f->record.epoch && r->offset > f->options.window
           && prove(f, r->offset - f->options.window);
}

static bool take_link(struct finder *f, const struct claim_record *r)
{
    if (is_far_enough(f, r))
        return false;
    enum claim_verdict verdict = judge_next(&f->link, r);
    if (claim_verdict_fatal(verdict))
        return false;
    bool led = r->kind == CLAIM_KIND_EVENT && (verdict == CLAIM_COUNTS || verdict == CLAIM_PART)
               && r->epoch > f->record.epoch;
    if (led)
        (void)prove(f, r->offset - 1);
    return !led;
}

/* An event proves that its epoch was claimed before it (A1). So those of earlier epochs that lie behind it do not
 * count, and say nothing about where the stream was. */
static bool is_stale(const struct finder *f, const struct claim_record *r)
{
    return r->epoch < f->epoch || (f->at >= f->low && r->epoch < f->low_epoch);
}

static void note_event(struct finder *f, const struct claim_record *r)
{
    if (r->epoch > f->epoch)
        f->first = 0;
    f->epoch = r->epoch;
    f->first = f->first ? f->first : r->offset;
    f->last = r->offset;
}

bool finder_take(struct finder *f, const struct claim_record *r)
{
    bool event = r->kind == CLAIM_KIND_EVENT;
    f->taken++;
    switch (f->phase) {
    case FIND_SEEK:
    case FIND_SCAN:
        if (!event || is_stale(f, r))
            break;
        if (r->offset == f->options.wanted && r->fragment == 0 && r->epoch > f->refused) {
            f->record = *r;
            f->has_record = true;
            return false;
        }
        note_event(f, r);
        break;
    case FIND_FAR:
        if (is_far_enough(f, r))
            return false;
        if (event && r->epoch == f->record.epoch && r->offset > f->options.wanted)
            f->last = r->offset;
        break;
    case FIND_LINK:
        if (!take_link(f, r))
            return false;
        break;
    case FIND_OVER: return false;
    }
    return f->taken < f->count;
}

void finder_judge_start(const struct finder *f, struct judge *ret_judge)
{
    judge_init(ret_judge, f->record.position);
    ret_judge->epoch = f->record.epoch;
    ret_judge->next = f->record.offset;
    ret_judge->chain = f->record.chain;
}

enum claim_verdict finder_judge_next(struct judge *j, const struct claim_record *r)
{
    if (r->position != j->at)
        return CLAIM_HOLE;
    if (r->kind == CLAIM_KIND_EVENT && r->epoch == j->epoch && !judge_has(j, r->offset, r->fragment))
        return judge_next(j, r);
    if (r->kind == CLAIM_KIND_EVENT && r->epoch > j->epoch)
        return CLAIM_EARLY;
    j->at++;
    return CLAIM_STALE;
}

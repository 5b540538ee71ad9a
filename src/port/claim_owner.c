#include "port/claim_owner.h"

#include <assert.h>

#include "base/alloc.h"

struct owner_slot {
    struct claim_record record; /* its position is the reported one */
    bool reported;
};

int owner_init(struct owner *o, const pawl_allocator *alloc, uint32_t window, const struct judge *judge)
{
    if (window == 0 || window > OWNER_WINDOW_MAX)
        return PAWL_EINVAL;
    uint32_t room = 1;
    while (room < window)
        room *= 2;
    struct owner_slot *slots = mem_take(alloc, room, sizeof *slots);
    if (!slots)
        return PAWL_ENOMEM;
    *o = (struct owner){.judge = *judge,
                        .state = OWNER_OUT,
                        .slots = slots,
                        .window = window,
                        .mask = room - 1,
                        .first = 1,
                        .alloc = alloc};
    return PAWL_OK;
}

void owner_release(struct owner *o)
{
    mem_free(o->alloc, o->slots, o->slots ? ((size_t)o->mask + 1) * sizeof *o->slots : 0);
    o->slots = NULL;
}

/* Row: from; column: to. */
static const bool may_move[4][4] = {
    [OWNER_OUT] = {[OWNER_CLAIMING] = true},
    [OWNER_CLAIMING] = {[OWNER_OUT] = true, [OWNER_CLAIMING] = true, [OWNER_OWNING] = true},
    [OWNER_OWNING] = {[OWNER_OUT] = true, [OWNER_CLAIMING] = true, [OWNER_UNSURE] = true},
    [OWNER_UNSURE] = {[OWNER_OUT] = true, [OWNER_CLAIMING] = true},
};

static void move(struct owner *o, enum owner_state to)
{
    assert(may_move[o->state][to]);
    assert(to != OWNER_OWNING || o->count == 0); /* O3 */
    o->state = to;
}

static struct owner_slot *slot_of(const struct owner *o, uint64_t ticket)
{
    return &o->slots[ticket & o->mask];
}

static void drop_first(struct owner *o)
{
    assert(o->count > 0);
    o->first++;
    o->count--;
}

int owner_claim(struct owner *o, uint64_t node, uint64_t nonce, uint64_t group0, struct claim_record *ret_claim)
{
    if (group0 < o->judge.group0)
        return PAWL_EFENCED;
    o->claim = (struct claim_record){
        .kind = CLAIM_KIND_CLAIM, .epoch = o->judge.epoch + 1, .node = node, .nonce = nonce, .group0 = group0};
    move(o, OWNER_CLAIMING);
    *ret_claim = o->claim;
    return PAWL_OK;
}

bool owner_is_taken(const struct owner *o, uint64_t node, uint64_t nonce, uint64_t group0)
{
    const struct judge *j = &o->judge;
    bool own = j->node == node && j->nonce >> 32 == nonce >> 32;
    bool since = o->claim.epoch > 0 && j->epoch >= o->claim.epoch; /* or the claim was never written */
    return group0 > 0 && since && !own && j->group0 >= group0;
}

int owner_draft(const struct owner *o, uint32_t records, struct claim_record *ret_record)
{
    if (o->state != OWNER_OWNING)
        return PAWL_EFENCED;
    assert(records > o->fragment);
    if (records > o->window)
        return PAWL_ETOOBIG;
    if (records - o->fragment > o->window - o->count)
        return PAWL_EBUSY;
    *ret_record = (struct claim_record){.kind = CLAIM_KIND_EVENT,
                                        .last = o->fragment + 1 == records,
                                        .fragment = o->fragment,
                                        .epoch = o->judge.epoch,
                                        .offset = o->offset,
                                        .chain = o->chain};
    return PAWL_OK;
}

uint64_t owner_sent(struct owner *o, const struct claim_record *record)
{
    assert(o->state == OWNER_OWNING && o->count < o->window); /* O4 */
    assert(record->epoch == o->judge.epoch && record->offset == o->offset && record->fragment == o->fragment);
    uint64_t ticket = o->first + o->count++;
    *slot_of(o, ticket) = (struct owner_slot){.record = *record};
    o->chain = record->checksum;
    o->fragment = record->last ? 0 : o->fragment + 1;
    o->offset += record->last;
    return ticket;
}

void owner_unsend(struct owner *o, uint64_t ticket)
{
    assert(o->state == OWNER_OWNING && ticket >= o->first && ticket < o->first + o->count);
    const struct claim_record *record = &slot_of(o, ticket)->record;
    assert(record->fragment == 0);
    o->count = (uint32_t)(ticket - o->first);
    o->offset = record->offset;
    o->fragment = 0;
    o->chain = record->chain;
}

static void become_unsure(struct owner *o, struct owner_actions *actions)
{
    if (o->state != OWNER_OWNING)
        return; /* the caller was told already, and may have acted on it */
    move(o, OWNER_UNSURE);
    actions->must_reclaim = true;
}

/* Feed the judge the own records that are known to lie at the next positions. Only the first record in flight
 * is looked at: records that were sent after it lie behind it, or do not count. */
static int advance(struct owner *o, struct owner_actions *actions)
{
    while (o->count > 0) {
        struct owner_slot *slot = slot_of(o, o->first);
        const struct claim_record *r = &slot->record;
        if (judge_has(&o->judge, r->offset, r->fragment)) {
            drop_first(o); /* also if it was not reported yet: a copy of it was read */
            continue;
        }
        if (!slot->reported)
            break;
        if (r->position == CLAIM_NOWHERE || r->position < o->judge.at) {
            become_unsure(o, actions);
            break;
        }
        if (r->position > o->judge.at) {
            if (o->state == OWNER_OWNING && r->position > o->reading_to) {
                actions->read_from = o->judge.at;
                actions->read_to = o->reading_to = r->position;
            }
            break;
        }
        if (claim_verdict_fatal(judge_next(&o->judge, r)))
            return PAWL_ECORRUPT;
    }
    return PAWL_OK;
}

/* Tell which own events count now and did not when the judge's next was before (O2). */
static void acknowledge(const struct owner *o, uint64_t before, struct owner_actions *actions)
{
    if (o->judge.next > before)
        actions->ack_upto = o->judge.next - 1;
}

int owner_report(struct owner *o, uint64_t ticket, uint64_t position, struct owner_actions *ret_actions)
{
    *ret_actions = (struct owner_actions){0};
    assert(ticket < o->first + o->count);
    if (ticket < o->first)
        return PAWL_OK;
    struct owner_slot *slot = slot_of(o, ticket);
    assert(!slot->reported);
    slot->reported = true;
    slot->record.position = position;
    uint64_t before = o->judge.next;
    int status = advance(o, ret_actions);
    acknowledge(o, before, ret_actions);
    /* If one record is nowhere, all records that were sent after it cannot count either, because their offsets
     * come
 * after its offset. This holds even while reports of earlier records are still to come. */
    if (status == PAWL_OK && position == CLAIM_NOWHERE && ticket >= o->first)
        become_unsure(o, ret_actions);
    return status;
}

static bool is_our_claim(const struct owner *o, const struct claim_record *r)
{
    return o->state == OWNER_CLAIMING && r->epoch == o->claim.epoch && r->node == o->claim.node
           && r->nonce == o->claim.nonce;
}

/* A claim counts: every record in flight has its outcome (O3). */
static void resolve(struct owner *o, bool ours, struct owner_actions *actions)
{
    o->first += o->count;
    o->count = 0;
    actions->resolved = true;
    if (ours) {
        move(o, OWNER_OWNING);
        actions->owning = true;
        o->offset = o->judge.next;
        o->fragment = 0;
        o->chain = o->judge.chain;
    } else if (o->state != OWNER_OUT) {
        move(o, OWNER_OUT);
        actions->fenced = true;
    }
}

int owner_read(struct owner *o, const struct claim_record *r, struct owner_actions *ret_actions)
{
    *ret_actions = (struct owner_actions){0};
    if (r->position < o->judge.at)
        return PAWL_OK;
    bool in_flight = o->count > 0;
    uint64_t before = o->judge.next;
    bool ours = is_our_claim(o, r);
    ret_actions->verdict = judge_next(&o->judge, r);
    if (claim_verdict_fatal(ret_actions->verdict))
        return PAWL_ECORRUPT;
    int status = PAWL_OK;
    if (r->kind == CLAIM_KIND_CLAIM && ret_actions->verdict == CLAIM_COUNTS)
        resolve(o, ours, ret_actions);
    else
        status = advance(o, ret_actions);
    if (in_flight)
        acknowledge(o, before, ret_actions);
    return status;
}

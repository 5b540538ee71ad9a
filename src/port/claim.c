#include "port/claim.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/hash.h"

void judge_init(struct judge *j, uint64_t position)
{
    *j = (struct judge){.at = position, .next = 1};
}

bool judge_has(const struct judge *j, uint64_t offset, uint32_t fragment)
{
    return offset < j->next || (offset == j->next && fragment < j->fragments);
}

uint64_t judge_chain(const struct judge *j)
{
    return j->fragments ? j->part : j->chain;
}

static enum claim_verdict judge_claim(struct judge *j, const struct claim_record *r)
{
    if (r->epoch <= j->epoch)
        return CLAIM_STALE;
    if (r->epoch > j->epoch + 1)
        return CLAIM_EARLY;
    if (r->group0 < j->group0)
        return CLAIM_OUTRANKED;
    uint8_t sum[8];
    put_u64(sum, r->checksum);
    j->chain = hash_checksum(j->chain, (pawl_bytes){sum, sizeof sum});
    j->epoch = r->epoch;
    j->node = r->node;
    j->nonce = r->nonce;
    j->group0 = r->group0;
    j->fragments = 0;
    return CLAIM_COUNTS;
}

static enum claim_verdict judge_event(struct judge *j, const struct claim_record *r)
{
    if (r->epoch < j->epoch || r->epoch == 0) /* epoch 0 is nobody's: nothing is written under it */
        return CLAIM_STALE;
    if (r->epoch > j->epoch)
        return CLAIM_EARLY;
    if (judge_has(j, r->offset, r->fragment))
        return CLAIM_REPEATED;
    if (r->offset != j->next || r->fragment != j->fragments)
        return CLAIM_AHEAD;
    if (r->chain != judge_chain(j))
        return CLAIM_BROKEN;
    if (!r->last) {
        j->part = r->checksum;
        j->fragments++;
        return CLAIM_PART;
    }
    j->chain = r->checksum;
    j->fragments = 0;
    j->next++;
    return CLAIM_COUNTS;
}

enum claim_verdict judge_next(struct judge *j, const struct claim_record *r)
{
    assert(r->kind == CLAIM_KIND_CLAIM || r->kind == CLAIM_KIND_EVENT);
    if (r->position != j->at)
        return CLAIM_HOLE;
    enum claim_verdict verdict = r->kind == CLAIM_KIND_CLAIM ? judge_claim(j, r) : judge_event(j, r);
    if (!claim_verdict_fatal(verdict))
        j->at++;
    return verdict;
}

const char *claim_verdict_text(enum claim_verdict verdict)
{
    switch (verdict) {
#define X(name, text)                                                                                          \
    case CLAIM_##name: return text;
        CLAIM_VERDICT_TABLE(X)
#undef X
    }
    return "?";
}

/* port/claim.h: which records of a shared log count. The judge.
 *
 * Several writers may put records into one physical log: the owner of a stream, a rival that is about to become
 * it, a zombie that was it and does not know better, and a client library that sends things twice. The physical
 * log keeps all records in one order, and does not judge them. The rules below decide which of the records are
 * the stream. They look at nothing but the records and their order, so every reader comes to the same answer,
 * with no clock, no session and no vote.
 *
 *      physical log   0       1       2       3       4       5       6       7
 *                     claim   event   event   claim   event   claim   event   event
 *                     e1 A    e1 o1   e1 o2   e2 B    e1 o3   e2 C    e2 o3   e2 o3
 *      counts         yes     yes     yes     yes     no      no      yes     no
 *                                                     stale   stale           not the next
 *
 * A judge is fed every record of one stream in physical order and says of each whether it counts. It is a small
 * value: a reader that stores its fields, together with what it derived from the records, goes on from there.
 *
 * The rules
 *   R1  A claim counts exactly if its epoch is one above the current and the group0 position of the assignment
 *       it rests on is not older than the current claim's.
 *   R2  An event counts exactly if its epoch is the current one and its offset is the next.
 *   R3  An event may come in fragments 0, 1, ..., last. A fragment extends the event exactly if R2 holds for
 *       it and its index is the next one; the event counts with its last fragment. What lies in between does
 *       not matter, except a claim that counts: it ends what is unfinished.
 *   R4  A record that does not count changes nothing.
 *
 * What follows from them
 *   I1  Offsets of what counts are 1, 2, 3, ...: dense, whatever a zombie, a retry or a rival wrote.
 *   I2  Of several claims of one epoch the first counts and no other ever does.
 *   I3  Once a claim counts, nothing of an earlier epoch counts behind it. So a writer that has read up to
 *       such a claim knows the outcome of everything it ever sent before.
 *   I4  Copies of one record are equal, and at most one of them counts. A repeated, reordered or abandoned
 *       fragment is skipped like any other record that is not the next.
 *
 * The chain. An event or fragment carries the checksum of the record that counted (or extended) before it, and
 * its own checksum covers that. A record that counts by the rules and does not continue the chain proves that
 * something that counted has been lost or replaced: the log is corrupt there, and the judge stops at it. A
 * claim cannot carry such a link, since its writer does not know what the present owner is still writing;
 * instead a claim that counts is folded into the chain, and the new owner's first event carries the result.
 *
 * Positions in the physical log are dense. A record that is not at the next position means that records are
 * missing: the judge stops there too. */
#ifndef PORT_CLAIM_H
#define PORT_CLAIM_H

#include <pawl/types.h>

enum claim_kind {
    CLAIM_KIND_CLAIM = 1,
    CLAIM_KIND_EVENT = 2, /* a whole event, or one of its fragments */
};

/* What the rules look at in a record. Zero what a kind does not have. */
struct claim_record {
    uint64_t position; /* in the physical log */
    uint8_t kind;
    bool last; /* event: its last fragment, or the only one */
    uint32_t fragment;
    uint64_t epoch;
    uint64_t offset; /* event: its offset in the stream */
    uint64_t chain;
    uint64_t node; /* claim: who, which attempt of his, and on what assignment */
    uint64_t nonce;
    uint64_t group0;
    uint64_t checksum; /* of all of the record, chain included */
};

/* Each with a word for a metric or a message: it counts, or why not. */
#define CLAIM_VERDICT_TABLE(X)                                                                                 \
    X(COUNTS, "counts")                                                                                        \
    X(PART, "part of an event that is not complete yet")                                                       \
    X(STALE, "of an earlier epoch")                                                                            \
    X(EARLY, "of an epoch that nobody has claimed")                                                            \
    X(REPEATED, "of an offset or fragment that is there already")                                              \
    X(AHEAD, "of an offset or fragment whose predecessor is missing")                                          \
    X(OUTRANKED, "a claim on an assignment older than the current owner's")                                    \
    X(BROKEN, "does not continue the chain")                                                                   \
    X(HOLE, "not at the next position")

enum claim_verdict {
#define X(name, text) CLAIM_##name,
    CLAIM_VERDICT_TABLE(X)
#undef X
};

struct judge {
    uint64_t at;    /* the position of the next record; everything before it is judged */
    uint64_t epoch; /* 0: never claimed */
    uint64_t node;  /* whose claim it is */
    uint64_t nonce;
    uint64_t group0;
    uint64_t next;      /* the offset of the next event */
    uint64_t chain;     /* of what counted last */
    uint64_t part;      /* the chain within an unfinished event */
    uint32_t fragments; /* of it that are there; 0: none is unfinished */
};

/* A stream of which nothing is known, whose first record is at the given position. */
void judge_init(struct judge *judge, uint64_t position);

/* Judge the next record. BROKEN and HOLE leave the judge where it is, for good: the log is corrupt there, and
 * the caller reports it with the position. Every other verdict moves it on by one record. */
enum claim_verdict judge_next(struct judge *judge, const struct claim_record *record);

/* Whether a copy of this event or fragment, of the current epoch, has counted or extended already. */
bool judge_has(const struct judge *judge, uint64_t offset, uint32_t fragment);

/* What the next event's or fragment's chain must be. */
uint64_t judge_chain(const struct judge *judge);

static inline bool claim_verdict_fatal(enum claim_verdict verdict)
{
    return verdict == CLAIM_BROKEN || verdict == CLAIM_HOLE;
}

/* The words of the table. Never NULL. */
const char *claim_verdict_text(enum claim_verdict verdict);

#endif

/* port/claim_find.h: where an entry lies in the physical log, without reading all that lies before it. The finder.
 *
 * A judge (port/claim.h) must begin at the first record, or where another judge has been. So the entry with some
 * offset can be found at once only near a place that is known. The finder looks elsewhere, too. It halves the
 * records between two positions by the offsets that events carry, finds a record that has the offset, and proves
 * that this record counts.
 *
 *      known place                                        ┌ read from here
 *      │                                                  ▼
 *      ├────────────────●───────────────────●──────●──●─●─█────────────────────────●──┤
 *      low            guess               guess           the record    the proof ─┘  high
 *
 * An offset that a record carries is only a hint: zombies, retries and rivals leave records that do not count,
 * anywhere. So nothing is concluded from where a record lies. What is concluded rests on what every writer
 * (port/claim_owner.h) keeps to, and holds wherever records lie, however often and in whatever order:
 *
 *   A1  Only the owner of an epoch writes events of that epoch: it sends none before its claim counts.
 *   A2  Under one epoch it drafts each offset and fragment once. So all records of an epoch, an offset and a
 *       fragment are equal, and if an event of that epoch counts at that offset, it is this one.
 *   A3  It drafts an event only when no more than window records are neither counted nor resolved. So an event of
 *       epoch e at offset s proves that, under e, all events of e up to offset s - window count.
 *   A4  Its first event carries the chain as it was when its claim counted.
 *
 * A record of epoch e at offset o counts, therefore, if
 *   P1  somebody who has judged the stream knows that e was the epoch when an offset above o was the next; or
 *   P2  there is an event of e at offset o + window or behind it, anywhere (A3); or
 *   P3  records that continue its chain lead to an event of a later epoch: whoever wrote that had judged the
 *       stream, and found all of them to count (A4; the chain is a checksum over everything before it).
 * Each proves it for all offsets of e from o up to some offset, upto.
 *
 * What is left without proof is the end of a stream of which nothing is known: the last events of the last
 * epoch. Nothing but reading all of it proves where a stream ends. And a finder may be misled, by many records
 * that do not count. Then it says that it is lost, and the caller reads from a known place: a finder costs time
 * at worst, never a wrong answer.
 *
 * Whoever reads on from there uses finder_judge: up to upto it takes exactly the events of that epoch, in the
 * order of their offsets.
 *
 * Pure: no I/O, no memory. */
#ifndef PORT_CLAIM_FIND_H
#define PORT_CLAIM_FIND_H

#include "port/claim.h"

#define FIND_NO_GUESS UINT64_MAX

/* P1: all events that the owner of this epoch wrote, up to this offset, count. */
struct find_fact {
    uint64_t epoch;
    uint64_t upto;
};

struct finder_options {
    uint64_t wanted;   /* offset */
    uint64_t low;      /* a known place: position, */
    uint64_t low_next; /* and the offset of the next event there */
    uint64_t high;     /* positions from here on are not looked at */
    uint64_t guess;    /* where it was said to begin, or FIND_NO_GUESS */
    uint64_t ahead;    /* how many entries behind it are wanted, too: upto should be as far, if it can */
    uint32_t window;   /* the largest that any writer of this log has */
    uint32_t run;      /* how many records are looked at in one place */
    const struct find_fact *facts; /* borrowed */
    size_t fact_count;
};

enum find_phase { FIND_SEEK, FIND_SCAN, FIND_FAR, FIND_LINK, FIND_OVER };

struct finder {
    struct finder_options options;
    enum find_phase phase;
    uint64_t low, low_next, high;
    uint64_t at;    /* of the run that is read */
    uint32_t count; /* of records that were asked for, */
    uint32_t taken; /* and came */
    uint64_t first; /* offsets of those of the run's events that have its highest epoch; 0: none */
    uint64_t last;
    uint64_t epoch;     /* that one */
    uint64_t low_epoch; /* records behind low, of an earlier epoch than this, do not count */
    uint32_t runs;
    uint32_t far;               /* runs that looked for P2 */
    uint64_t refused;           /* records of this epoch and before cannot be proven */
    struct claim_record record; /* that has the offset; position, epoch and chain are set if it is found */
    bool has_record;
    struct judge link;
    uint64_t upto;
};

enum find_step { FIND_READ, FIND_FOUND, FIND_LOST };

void finder_init(struct finder *finder, const struct finder_options *options);

/* FIND_READ: read so many records from this position on, and give them to finder_take until it returns false, or
 * the log ends. Then ask again. FIND_FOUND: finder->record and upto. */
enum find_step finder_next(struct finder *finder, uint64_t *ret_position, uint32_t *ret_count);
bool finder_take(struct finder *finder, const struct claim_record *record);

/* A judge for what lies from the record on: start makes it, next judges. COUNTS and PART are as true as the
 * proof. STALE: not part of it. Every other verdict: it was begun at a copy that came late; go back to a known
 * place. What counts behind upto is not proven. */
void finder_judge_start(const struct finder *finder, struct judge *ret_judge);
enum claim_verdict finder_judge_next(struct judge *judge, const struct claim_record *record);

#endif

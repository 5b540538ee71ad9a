/* port/claim_owner.h: what one writer may acknowledge. The owner.
 *
 * A writer sends records and is told, later and in any order, where each of them lies in the physical log, or
 * that nobody knows. When may it say "written"? When a reader could not disagree: when every record up to that
 * one is known, and the judge (port/claim.h) says that it counts. The owner keeps that judge, and moves it on
 * by two kinds of knowledge: a report that names exactly the next position tells what lies there without
 * reading it (the fast path: no round trip besides the write's own), and what others wrote in between is read.
 *
 *                   claim ┌────────── claim ─────────┐
 *                         ▼                          │
 *      OUT ── claim ──► CLAIMING ── own claim ──► OWNING ── a report is an error, ──► UNSURE
 *       ▲                 │  ▲      counts           │      or a record missed           │ │
 *       │                 │  └──────── claim ────────┼──────────────────────────────────┘ │
 *       └─────────────────┴──── a rival's claim counts ──────────────────────────────────┘
 *
 *      OWNING     draft, sent, sent, ...; report, report, ... ──► ack_upto
 *                 a report behind a gap ──► read_from, read_to: read those records, and acknowledge nothing
 *                 behind them until they are read. If no claim among them counts, it goes on.
 *      UNSURE     something sent may be there or not, and may yet arrive. Nothing more can be sent: claim.
 *      CLAIMING   the claim is written, and everything from judge.at up to it is read.
 *      OUT        never was the owner, or was fenced. Before it claims again, the caller must look up who
 *                 should own the stream; otherwise two writers that both believe to be assigned fence each
 *                 other for ever.
 *
 * Invariants
 *   O1  judge.at is the first position not known. Nothing at or behind it has influenced an acknowledgement.
 *   O2  ack_upto covers exactly events that the judge has counted.
 *   O3  All records in flight have the current epoch, and are in the order of their offsets. When a claim
 *       counts, whoever made it, all of them have their outcome: those that the judge has counted by then are
 *       written, the others never will be.
 *   O4  At most window records are in flight.
 *
 * All this relies on two facts: a reported position is final, and a record that can be read is final (on Kafka:
 * acks=all, min.insync.replicas above 1, no unclean election, readers behind the high watermark). A record that
 * was neither reported nor read may vanish from the end of the log, and its position may be used again.
 *
 * Pure: no I/O, no clock; memory only at init. Not thread-safe. */
#ifndef PORT_CLAIM_OWNER_H
#define PORT_CLAIM_OWNER_H

#include "port/claim.h"

/* In place of a position: an error, or a success that does not say where. */
#define CLAIM_NOWHERE UINT64_MAX

enum owner_state { OWNER_OUT, OWNER_CLAIMING, OWNER_OWNING, OWNER_UNSURE };

struct owner_slot;

struct owner {
    struct judge judge;
    enum owner_state state;

    struct claim_record claim; /* the latest that was drafted */
    uint64_t offset;           /* of the next event to send, and of its next fragment */
    uint32_t fragment;
    uint64_t chain;
    uint64_t reading_to; /* records before this position were asked for already */

    struct owner_slot *slots; /* a ring: tickets first .. first + count - 1 are in flight */
    uint32_t window;
    uint32_t mask; /* the ring has room for a power of two */
    uint32_t count;
    uint64_t first;
    const pawl_allocator *alloc;
};

/* What a step asks of the caller, and tells it. Zero means nothing. */
struct owner_actions {
    uint64_t ack_upto;  /* all events up to this offset are written, for every reader and for ever */
    uint64_t read_from; /* read the records in [read_from, read_to) and feed them, unless they are equal */
    uint64_t read_to;
    bool resolved;     /* nothing is in flight: events that are not acknowledged by now were never written */
    bool owning;       /* its claim counts: OWNING, from offset judge.next on */
    bool fenced;       /* a rival's claim counts: OUT */
    bool must_reclaim; /* UNSURE */
    enum claim_verdict verdict; /* of owner_read's record, if it was not known before */
};

#define OWNER_WINDOW_MAX ((uint32_t)1 << 24)

/* window: how many records may be in flight, 1 to OWNER_WINDOW_MAX. judge: where to start, as stored or as judge_init
 * makes it; copied. Errors: PAWL_EINVAL, PAWL_ENOMEM. */
int owner_init(struct owner *owner, const pawl_allocator *alloc, uint32_t window, const struct judge *judge);
void owner_release(struct owner *owner);

/* Draft a claim: all but its checksum. The caller writes it, and then reads from judge.at on, until the state
 * is no longer CLAIMING; if it learns that the claim is not there, or not yet, it may draft another. nonce must
 * be new for each. Allowed in every state; from OWNING, too, nothing more is sent under the old epoch. While
 * CLAIMING, an error is not reported by must_reclaim, since the claim will resolve it; a caller that gives the
 * claim up has only unknown outcomes for what is in flight.
 * PAWL_EFENCED: the present owner is known to rest on a newer assignment than group0. */
int owner_claim(struct owner *owner, uint64_t node, uint64_t nonce, uint64_t group0,
                struct claim_record *ret_claim);

/* Whether the stream was taken from this owner: since its first claim another one's counts, and the assignment
 * which that one rests on is not older than group0. Claiming again would take the stream back, and the other
 * would do the same. node and nonce are those of the claim that would be drafted; claims with the same node and
 * the same upper half of the nonce are its own. Without an assignment (group0 0) nothing is ever taken. */
bool owner_is_taken(const struct owner *owner, uint64_t node, uint64_t nonce, uint64_t group0);

/* Draft the next event, or the next fragment of one, that has so many records in all: everything but its
 * checksum, which the caller computes and gives to owner_sent. Nothing changes until then.
 * Errors: PAWL_EFENCED (not OWNING), PAWL_EBUSY (the window has no room for the whole event),
 * PAWL_ETOOBIG (it never will have). */
int owner_draft(const struct owner *owner, uint32_t records, struct claim_record *ret_record);

/* The draft, with its checksum, is being written. Returns the ticket for its report. */
uint64_t owner_sent(struct owner *owner, const struct claim_record *record);

/* Take back the records from this ticket on, which is that of an event's first record: none of them is being written. */
void owner_unsend(struct owner *owner, uint64_t ticket);

/* The record of a ticket lies at a position, or CLAIM_NOWHERE. Exactly one report a ticket, in any order; those
 * of what is resolved already are ignored. PAWL_ECORRUPT: the log is not what this writer wrote. */
int owner_report(struct owner *owner, uint64_t ticket, uint64_t position, struct owner_actions *ret_actions);

/* A record that was read, whoever wrote it. Feed them in physical order; one that is known already is skipped.
 * PAWL_ECORRUPT: it is BROKEN, or there is a HOLE before it; ret_actions has the verdict. */
int owner_read(struct owner *owner, const struct claim_record *record, struct owner_actions *ret_actions);

#endif

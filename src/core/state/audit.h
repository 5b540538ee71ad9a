/* core/state/audit.h: a state that is derived twice, compared at equal offsets.
 *
 *     live ───── at every n-th offset ──► its tables' digests ──┐
 *                                                               ├──► equal, or which table is not
 *     checkpoint ── at the same ones ───► its tables' digests ──┘
 *
 * Whichever side comes first leaves its digests in a short ring; the other finds them there. A side that is so
 * far behind that they are gone misses an audit, which is counted. */
#ifndef CORE_STATE_AUDIT_H
#define CORE_STATE_AUDIT_H

#include "core/state/digests.h"

#define AUDIT_RING 64 /* offsets of a partition that one side may be ahead by */

enum audit_side { AUDIT_LIVE, AUDIT_CHECKPOINT };

/* What one side's tables summed up to at an offset, until the other side comes there. */
struct audit_digests {
    enum audit_side side;
    uint64_t offset; /* 0: the slot is empty */
    struct table_digest *tables;
    size_t count;
};

/* Of one partition. */
struct audit {
    struct audit_digests ring[AUDIT_RING];
    size_t next; /* the slot that is filled next */
    uint64_t compared;
    uint64_t differed;
    uint64_t missed;
    const pawl_allocator *alloc;
};

void audit_init(struct audit *audit, const pawl_allocator *alloc);
void audit_release(struct audit *audit);

/* A side has come to an offset: these are its tables. A view's table is there only if the view is complete, and
 * is compared if both sides have it. Returns a table that the two sides do not agree on; 0:
 * they agree, or the other side is not there yet. Without memory an audit is missed. */
uint32_t audit_note(struct audit *audit, enum audit_side side, uint64_t offset,
                    const struct table_digest *tables, size_t count);

#endif

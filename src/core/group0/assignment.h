/* core/group0/assignment.h: which node all partitions are assigned to, if the log is one that nodes share.
 *
 * Only the log says who may write (port/claim.h); the assignment says who should. It is a command of group0, and
 * its position there is what claims rest on: a claim on an older one does not count any more.
 *
 *     opening ── reads group0 to its end ──► nobody's     claim group0, write an assignment, claim the rest
 *                                       ├──► this node's  claim everything on it
 *                                       └──► another's    refused, or with take_over as if it were nobody's
 *
 * A node on a journal of its own ignores assignments: nobody else can write there. */
#ifndef CORE_GROUP0_ASSIGNMENT_H
#define CORE_GROUP0_ASSIGNMENT_H

#include "base/arena.h"

#define ASSIGNMENT_NAME_MAX ((size_t)255)

struct assignment {
    uint64_t position; /* in group0; 0: nobody was ever assigned */
    uint64_t node;     /* its ID, not 0 */
    int64_t time;      /* when, by that node's clock, in nanoseconds since 1970; for people */
    uint16_t name_size;
    char name[ASSIGNMENT_NAME_MAX
              + 1]; /* for people: UTF-8 or not, as the node said it; with a zero behind it */
};

enum assignment_step {
    ASSIGNMENT_CLAIM,  /* it is this node's */
    ASSIGNMENT_WRITE,  /* write one for this node */
    ASSIGNMENT_REFUSE, /* it is another node's */
};

/* What a node does that is about to open. */
enum assignment_step assignment_decide(const struct assignment *present, uint64_t node, bool take_over);

/* The command, as core/group0/command.h says. PAWL_ENOMEM; PAWL_EINVAL: no node, or a name that is too long. */
int group0_assign_encode(const struct assignment *assignment, struct arena *arena, pawl_bytes *ret_command);

/* "node NAME (ID 0123456789abcdef, since 2026-11-17T10:00:00Z)". Bytes of the name that are not printable ASCII
 * are shown as '?'. */
#define ASSIGNMENT_TEXT_MAX ((size_t)384)
void assignment_describe(const struct assignment *assignment, char text[ASSIGNMENT_TEXT_MAX]);

#endif

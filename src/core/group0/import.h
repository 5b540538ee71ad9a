/* core/group0/import.h: a directory's log that was copied into a cluster.
 *
 * All streams are copied with their offsets unchanged, group0 first. So nothing of the cluster's own can stand in group0
 * before the copy is complete, and who looks at group0 must be able to tell a copy that was not ended from a log that
 * is in use. Two things tell:
 *
 *     claims           an import claims streams under a node ID that no node has: the upper half is reserved, the lower
 *                      half is new for each run
 *     import_done      the last command that it writes. It names the ID of that run; so an import_done that was itself
 *                      copied, from a log that had been imported before, stands under a claim that it does not name,
 *                      and ends nothing.
 *
 *     group0 ── a claim of an import, and no import_done behind it that names its claim ──► nodes refuse to open
 *
 * Only an empty group0 can be imported into: an import whose first claim comes behind an entry of a node has not begun. It
 * finds that entry and ends, and the log is the node's. So of a node and an import that come at the same moment, at most
 * one goes on, whichever of the claim and the assignment is the first in group0:
 *
 *     claim of an import, assignment of a node      the import: a node looks behind its claim, and refuses
 *     assignment of a node, claim of an import      the node
 *     claim of an import, claim of a node           neither, if the import has not written anything yet: it is fenced, and
 *                                                   the node refuses. The import goes on when it is started again
 *
 * What was assigned before import_done was assigned in another place, and counts for nothing. A node on a journal of its
 * own ignores all of this. */
#ifndef CORE_GROUP0_IMPORT_H
#define CORE_GROUP0_IMPORT_H

#include "base/arena.h"
#include "base/id.h"
#include "core/group0/assignment.h"

/* Node IDs with this upper half belong to imports. */
#define IMPORT_NODES ((uint64_t)UINT32_MAX << 32)

struct import_done {
    uint64_t node;       /* the run's: it stands under a claim of this ID */
    int64_t time;        /* when, in nanoseconds since 1970; for people */
    uint64_t entries;    /* that the directory's log had, of all streams */
    struct id128 source; /* the directory's journal */
    uint16_t name_size;
    char name[ASSIGNMENT_NAME_MAX + 1]; /* for people: HOST:/path/of/the/directory; with a zero behind it */
};

/* Whether an import claims under this ID. */
static inline bool import_is_node(uint64_t node)
{
    return (node & IMPORT_NODES) == IMPORT_NODES;
}

/* How far an import into a cluster has come, as group0 tells. */
enum import_state {
    IMPORT_NONE,      /* there was none, or it came too late */
    IMPORT_UNDER_WAY, /* or it was not ended */
    IMPORT_ENDED,
};

/* What is seen of group0 from its first record on. Zero it before. */
struct import_watch {
    enum import_state state;
    uint64_t entries;        /* of group0 */
    struct import_done done; /* IMPORT_ENDED: what ended it */
};

/* A claim of group0 counts. */
void import_claimed(struct import_watch *watch, uint64_t node);

/* An entry of group0, under the claim of this node. Bytes that are no command are not its concern. */
void import_entry(struct import_watch *watch, uint64_t node, pawl_bytes command);

/* The command, as core/group0/command.h says. PAWL_ENOMEM; PAWL_EINVAL: the ID is not an import's, or the name is too
 * long. */
int group0_import_done_encode(const struct import_done *done, struct arena *arena, pawl_bytes *ret_command);

/* What is behind the head of such a command; for group0_command_decode. */
struct decoder;
int group0_import_done_decode(struct decoder *decoder, struct import_done *done, pawl_error *error);

#endif

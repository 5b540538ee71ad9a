/* core/group0/command.h: an entry of the group0 stream, as bytes. docs/FORMAT.md shows the same for users.
 *
 *      0  version     u8    1
 *      1  kind        u8    1: a package's schema, 2: rebuild a lane, 3: switch a lane, those about views,
 *                           16: all partitions are assigned to a node, and 17: an import has ended
 *      2  zero        u16
 *      4  body              of a schema, the definition (core/schema/definition.h); of the others
 *      4  lane        u16   its ID
 *      6  zero        u16
 *                           and of a switch
 *      8  generation  u32
 *     12  partitions  u32   n, at least 1
 *     16  offsets     u64 each: by partition, how far in the PLog the generation had come
 *
 * An assignment (assignment.h):
 *
 *      4  node        u64   its ID, not 0
 *     12  time        i64   nanoseconds since 1970, by the node's clock
 *     20  name        u16 and as many bytes, at most 255
 *
 * The end of an import (import.h):
 *
 *      4  node        u64   under whose claim it stands: 0xffffffff in the upper half
 *     12  time        i64   nanoseconds since 1970
 *     20  entries     u64   of all streams of the directory
 *     28  source      u64, u64   the ID of the directory's journal
 *     44  name        u16 and as many bytes, at most 255
 *
 * Those about views and tablets begin with a guard: what they were decided on.
 *
 *      4  term          u64   of the leader that decided; 0: anybody may say it
 *     12  map version   u64   0: it does not depend on the map
 *     20  views version u64   0: it does not depend on the views
 *     28  body
 *         VIEW_CREATE       a definition: a package with one view
 *         VIEW_DROP         name: u16 and as many bytes
 *         VIEW_REBUILD      name
 *         VIEW_PAUSE        paused u8, name; an empty one: all
 *         VIEW_THROTTLE     rows a second u64
 *         BASE              table u32: the base that is processed from now on
 *         FINISHED          count u32, task IDs u64 each
 *         FAILED            view's table u32, words: u16 and as many bytes
 *         TASKS             count u32, for each: base u32, view u32, tablet u32
 *         RESIZE_BEGIN      tablets u32: how many there will be
 *         RESIZE_FINISH     -
 *         RESIZE_ROLLBACK   - */
#ifndef CORE_GROUP0_COMMAND_H
#define CORE_GROUP0_COMMAND_H

#include "base/bytes.h"
#include "core/group0/assignment.h"
#include "core/group0/import.h"
#include "core/schema/definition.h"

#define GROUP0_COMMAND_VERSION 1
#define GROUP0_COMMAND_FIXED   ((size_t)4)

enum group0_command_kind {
    GROUP0_SCHEMA = 1,
    GROUP0_REBUILD = 2, /* the lane gets a new generation, as if its projectors had changed */
    GROUP0_SWITCH = 3,  /* the lane's newest generation is complete: reads go over to it */
    GROUP0_VIEW_CREATE = 4,
    GROUP0_VIEW_DROP = 5,
    GROUP0_VIEW_REBUILD = 6,
    GROUP0_VIEW_PAUSE = 7,
    GROUP0_VIEW_THROTTLE = 8,
    GROUP0_BASE = 9,      /* these four: the coordinator's */
    GROUP0_FINISHED = 10, /* those that are aborted or gone are left alone */
    GROUP0_FAILED = 11,
    GROUP0_TASKS = 12, /* a replica does not cover these: tasks for those that have none */
    GROUP0_RESIZE_BEGIN = 13,
    GROUP0_RESIZE_FINISH = 14,
    GROUP0_RESIZE_ROLLBACK = 15,
    GROUP0_ASSIGN = 16,
    GROUP0_IMPORT_DONE = 17, /* what was assigned before it counts for nothing */
};

/* What a command was decided on. Versions of sections: core/group0/building.h. */
struct group0_guard {
    uint64_t term;
    uint64_t map_version;
    uint64_t views_version;
};

/* What a replica does not cover. */
struct uncovered {
    uint32_t base;
    uint32_t view;
    uint32_t tablet;
};

struct group0_command {
    enum group0_command_kind kind;
    struct definition schema; /* SCHEMA */
    uint16_t lane;            /* REBUILD, SWITCH */
    uint32_t generation;      /* SWITCH */
    const uint64_t *offsets;  /* SWITCH: by partition */
    size_t offset_count;

    struct group0_guard guard; /* from here on: about views */
    pawl_bytes name;           /* DROP, REBUILD, PAUSE */
    bool paused;
    uint64_t throttle;
    uint32_t table;      /* BASE, FAILED */
    pawl_bytes words;    /* FAILED */
    const uint64_t *ids; /* FINISHED */
    size_t id_count;
    const struct uncovered *uncovered; /* TASKS */
    size_t uncovered_count;
    uint32_t tablets; /* RESIZE_BEGIN */

    struct assignment assignment; /* ASSIGN: all but its position */
    struct import_done imported;  /* IMPORT_DONE */
};

/* Whether it is about views or tablets. */
static inline bool group0_is_about_views(enum group0_command_kind kind)
{
    return kind > GROUP0_SWITCH && kind < GROUP0_ASSIGN;
}

/* The command that applies a package, in the arena. Errors as definition_encode. */
int group0_schema_encode(const struct definition *definition, struct arena *arena, pawl_bytes *ret_command);

/* PAWL_ENOMEM; PAWL_EINVAL: there are no offsets, or more than there can be partitions. */
int group0_rebuild_encode(uint16_t lane, struct arena *arena, pawl_bytes *ret_command);
int group0_switch_encode(uint16_t lane, uint32_t generation, const uint64_t *offsets, size_t count,
                         struct arena *arena, pawl_bytes *ret_command);

#define GROUP0_IDS_MAX       ((size_t)1 << 20)
#define GROUP0_UNCOVERED_MAX ((size_t)1 << 20)

/* Any command about views or tablets: kind, guard and the members that the kind has; a VIEW_CREATE has its
 * package in schema. In the arena. PAWL_ENOMEM; PAWL_ETOOBIG: a list or a text is too long. */
int group0_view_encode(const struct group0_command *command, struct arena *arena, pawl_bytes *ret_command);

/* What is behind the head of such a command; for group0_command_decode. */
int group0_view_decode(struct decoder *decoder, struct arena *arena, struct group0_command *command,
                       pawl_error *error);

/* Lists are taken from the arena, texts borrowed from bytes. PAWL_EVERSION (a newer version, or a kind that
 * this program does not know), PAWL_ECORRUPT, PAWL_ENOMEM. */
int group0_command_decode(pawl_bytes bytes, struct arena *arena, struct group0_command *ret_command,
                          pawl_error *error);

#endif

/* core/group0/command.h: an entry of the group0 stream, as bytes. docs/FORMAT.md shows the same for users.
 *
 *      0  version     u8    1
 *      1  kind        u8    1: a package's schema, 2: rebuild a lane, 3: switch a lane
 *      2  zero        u16
 *      4  body              of a schema, the definition (core/schema/definition.h); of the others
 *      4  lane        u16   its ID
 *      6  zero        u16
 *                           and of a switch
 *      8  generation  u32
 *     12  partitions  u32   n, at least 1
 *     16  offsets     u64 each: by partition, how far in the PLog the generation had come */
#ifndef CORE_GROUP0_COMMAND_H
#define CORE_GROUP0_COMMAND_H

#include "core/schema/definition.h"

#define GROUP0_COMMAND_VERSION 1
#define GROUP0_COMMAND_FIXED   ((size_t)4)

enum group0_command_kind {
    GROUP0_SCHEMA = 1,
    GROUP0_REBUILD = 2, /* the lane gets a new generation, as if its projectors had changed */
    GROUP0_SWITCH = 3,  /* the lane's newest generation is complete: reads go over to it */
};

struct group0_command {
    enum group0_command_kind kind;
    struct definition schema; /* SCHEMA */
    uint16_t lane;            /* REBUILD, SWITCH */
    uint32_t generation;      /* SWITCH */
    const uint64_t *offsets;  /* SWITCH: by partition */
    size_t offset_count;
};

/* The command that applies a package, in the arena. Errors as definition_encode. */
int group0_schema_encode(const struct definition *definition, struct arena *arena, pawl_bytes *ret_command);

/* PAWL_ENOMEM; PAWL_EINVAL: there are no offsets, or more than there can be partitions. */
int group0_rebuild_encode(uint16_t lane, struct arena *arena, pawl_bytes *ret_command);
int group0_switch_encode(uint16_t lane, uint32_t generation, const uint64_t *offsets, size_t count,
                         struct arena *arena, pawl_bytes *ret_command);

/* Lists are taken from the arena, texts borrowed from bytes. PAWL_EVERSION (a newer version, or a kind that
 * this program does not know), PAWL_ECORRUPT, PAWL_ENOMEM. */
int group0_command_decode(pawl_bytes bytes, struct arena *arena, struct group0_command *ret_command,
                          pawl_error *error);

#endif

/* core/group0/command.h: an entry of the group0 stream, as bytes. docs/FORMAT.md shows the same for users.
 *
 *      0  version  u8    1
 *      1  kind     u8    1: a package's schema
 *      2  zero     u16
 *      4  body           of a schema, the definition (core/schema/definition.h) */
#ifndef CORE_GROUP0_COMMAND_H
#define CORE_GROUP0_COMMAND_H

#include "core/schema/definition.h"

#define GROUP0_COMMAND_VERSION 1
#define GROUP0_COMMAND_FIXED   ((size_t)4)

enum group0_command_kind { GROUP0_SCHEMA = 1 };

struct group0_command {
    enum group0_command_kind kind;
    struct definition schema; /* SCHEMA */
};

/* The command that applies a package, in the arena. Errors as definition_encode. */
int group0_schema_encode(const struct definition *definition, struct arena *arena, pawl_bytes *ret_command);

/* Lists are taken from the arena, texts borrowed from bytes. PAWL_EVERSION (a newer version, or a kind that
 * this program does not know), PAWL_ECORRUPT, PAWL_ENOMEM. */
int group0_command_decode(pawl_bytes bytes, struct arena *arena, struct group0_command *ret_command,
                          pawl_error *error);

#endif

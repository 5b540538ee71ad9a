/* test/lib/schema.h: schemas from JSON, as the CLI and the server apply them; single quotes stand for double
 * ones. */
#ifndef TEST_LIB_SCHEMA_H
#define TEST_LIB_SCHEMA_H

#include "core/group0/group0.h"
#include "engine/json/schema.h"

/* The shop of docs/SCHEMA.md. */
extern const char schema_shop[];

/* A second package, which uses the first one's names, and most of what there is. */
extern const char schema_crm[];

/* JSON -> definition -> command, in the arena. */
int schema_command(const pawl_allocator *alloc, const char *text, struct arena *arena, pawl_bytes *ret_command,
                   pawl_error *error);

/* And then check, or apply behind the last position. */
int schema_check(struct group0 *group0, const char *text, enum group0_outcome *ret_outcome, pawl_error *error);
int schema_apply(struct group0 *group0, const char *text, enum group0_outcome *ret_outcome, pawl_error *error);

/* A lane's rebuild, and its switch to a generation in one partition, applied behind the last position. */
int lane_rebuild(struct group0 *group0, uint16_t lane, enum group0_outcome *ret_outcome, pawl_error *error);
int lane_switch(struct group0 *group0, uint16_t lane, uint32_t generation, uint64_t offset,
                enum group0_outcome *ret_outcome, pawl_error *error);

#endif

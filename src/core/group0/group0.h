/* core/group0/group0.h: the small state that all nodes have in common, as a pure state machine over the group0
 * stream's commands: schemas, the generations of lanes, what views need (building.h), and which node the
 * partitions are assigned to (assignment.h).
 *
 *     bytes ── check (would it apply?) ──► the log ──► apply(position, bytes) ──► schema at that position
 *
 * Every schema that ever was stays, because events name the position that they were made under. A schema is
 * immutable and counted: it can be handed to other threads, which hold it.
 *
 *   G1  Applying the same commands at the same positions gives the same state: group0_digest is equal.
 *   G2  A command that cannot be applied changes nothing; check and apply judge alike.
 *   G3  A command that says nothing new makes no version: the one before it goes on. Any other one does, so
 *       that a schema's position tells its lanes' generations too. Commands about views, assignments and the end of
 *       an import make no version.
 *   G4  A command about views that was decided on another version of a section than the present one changes
 *       nothing: check says PAWL_ECONFLICT. In the stream it is REFUSED by everyone who applies it.
 *
 * Threads. A group0 is used on one thread at a time; schemas that are held, on any. */
#ifndef CORE_GROUP0_GROUP0_H
#define CORE_GROUP0_GROUP0_H

#include "base/hash.h"
#include "core/group0/building.h"
#include "core/group0/command.h"

struct group0;

enum group0_outcome {
    GROUP0_CHANGED,
    GROUP0_UNCHANGED, /* it changes nothing */
    GROUP0_REFUSED,   /* a command about views that no longer fits what is there (G4) */
};

/* PAWL_ENOMEM. The allocator is used until the last schema is dropped. */
int group0_new(const pawl_allocator *alloc, struct group0 **ret_group0);

/* How many partitions the node has, and on how many nodes and shards they lie: before anything is applied.
 * Without this it is one of each. */
void group0_configure(struct group0 *group0, uint32_t partitions, uint32_t nodes, uint32_t shards);

/* The leader's term: check refuses a command that was decided in another one. 0: none is known. */
void group0_set_term(struct group0 *group0, uint64_t term);

/* What is known of views, tablets and tasks. Borrowed; the list in it stays until group0_free. */
const struct building *group0_building(const struct group0 *group0);

/* The last assignment; position 0: there was none, or none since an import has ended. Borrowed; it changes with the next. */
const struct assignment *group0_assignment(const struct group0 *group0);

/* Schemas that are held stay. NULL is allowed. */
void group0_free(struct group0 *group0);

/* What apply would say of this command now. PAWL_EINVAL, with the path ("$.types.Order.fields.qty: ..."); a
 * lane that is not there, or a switch to a generation that is not its newest; PAWL_EEXISTS, PAWL_ENOTFOUND,
 * PAWL_EBUSY, PAWL_ECONFLICT (about views); PAWL_EVERSION, PAWL_ECORRUPT, PAWL_ETOOBIG (not a command that this
 * program knows); PAWL_ENOMEM. */
int group0_check(const struct group0 *group0, pawl_bytes command, enum group0_outcome *ret_outcome,
                 pawl_error *error);

/* Positions ascend, not necessarily by one. The errors are check's, with the position in front; PAWL_EMISUSE:
 * the position is not above the last. */
int group0_apply(struct group0 *group0, uint64_t position, pawl_bytes command, enum group0_outcome *ret_outcome,
                 pawl_error *error);

/* The last position that was applied; 0: none. */
uint64_t group0_position(const struct group0 *group0);

/* The newest schema, and the one that was in force at a position: that of the last schema command up to it.
 * Borrowed until group0_free. Never NULL: at position 0 stands the empty schema. */
const struct schema *group0_schema(const struct group0 *group0);
const struct schema *group0_schema_at(const struct group0 *group0, uint64_t position);

/* The schema under which a generation of a lane projects an event that was made under event_schema: the newest
 * up to that one that has this generation as the lane's newest; for earlier events, the one that it was born
 * with. So a generation that was replaced and still serves goes on with the last schema that had it.
 * Logarithmic in the number of schemas. NULL: there is no such generation. */
const struct schema *group0_schema_for(const struct group0 *group0, uint16_t lane, uint32_t generation,
                                       uint64_t event_schema);

/* Keep a schema beyond group0_free, or on another thread. Whoever holds it may hold it again. */
const struct schema *schema_hold(const struct schema *schema);
void schema_drop(const struct schema *schema);

/* A schema's packages as they were settled, in the order in which they first came; NULL beyond the last.
 * Borrowed from the schema. Encoding one and applying it changes nothing. */
const struct definition *schema_package(const struct schema *schema, size_t i);

/* Over all that was ever decided. */
struct hash128 group0_digest(const struct group0 *group0);

/* A snapshot: the state as bytes, in the arena, so that opening need not read all commands again. It has every
 * schema, because events name them. restore: into a group0 that has applied nothing; it is then at the
 * snapshot's position. PAWL_ECORRUPT, PAWL_EVERSION, PAWL_EINVAL: it is not a snapshot that can be used, and the
 * group0 must be freed; PAWL_ENOMEM. */
int group0_snapshot(const struct group0 *group0, struct arena *arena, pawl_bytes *ret_bytes);
int group0_restore(struct group0 *group0, pawl_bytes bytes, pawl_error *error);

#endif

/* core/group0/version.h: group0's state behind one command that changed it: packages, numbers, lanes, and the
 * schema that they make.
 *
 * A version is made whole or not at all, in an arena of its own, from the one before it and a command; it never
 * changes, and needs no other to live. So a failure leaves nothing behind, and any thread may read it while it
 * holds a reference.
 *
 *   V1  A name that has a number keeps it, and keeps what it was given to, in every later version.
 *   V2  New numbers are given in the order in which the package says the names: workspaces, each followed
 *       by its sequences, types, entities, commands, projectors, views. IDs from SCHEMA_NAME_FIRST, tables
 *       from SCHEMA_TABLE_FIRST, singletons from RECORD_SINGLETON_FIRST, lanes from 1; each is the one behind
 *       the highest that was ever given.
 *   V3  Equal versions have equal digests, and a version's digest covers all before it. */
#ifndef CORE_GROUP0_VERSION_H
#define CORE_GROUP0_VERSION_H

#include <stdatomic.h>

#include "core/group0/command.h"
#include "core/schema/resolve.h"

/* Bytes that are allocated at a time. A test makes it 1, so that whatever is taken can fail by itself. */
#ifndef VERSION_CHUNK
#define VERSION_CHUNK ((size_t)16 * 1024)
#endif

struct version {
    atomic_size_t references;
    const pawl_allocator *alloc;
    struct arena arena;
    struct resolved resolved;
    struct definition *packages; /* settled, in the order in which they first came */
    pawl_bytes *package_bytes;   /* the same, encoded */
    size_t package_count;
    struct hash128 digest;
};

/* The empty one, at position 0. PAWL_ENOMEM. */
int version_first(const pawl_allocator *alloc, struct version **ret_version);

/* The one behind before that this command makes. ret_version is NULL if nothing would change.
 * PAWL_EINVAL, with the path, or the lane that is not there; PAWL_ENOMEM. */
int version_next(const struct version *before, uint64_t position, const struct group0_command *command,
                 struct version **ret_version, pawl_error *error);

void version_hold(struct version *version);

/* Give a reference back; the last one frees. Any thread. */
void version_drop(struct version *version);

#endif

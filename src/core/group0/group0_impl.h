/* core/group0/group0_impl.h: the state of group0, for group0.c and snapshot.c. */
#ifndef CORE_GROUP0_GROUP0_IMPL_H
#define CORE_GROUP0_GROUP0_IMPL_H

#include "core/group0/group0.h"
#include "core/group0/version.h"

/* A version, and the command that made it, as it was written: a snapshot carries it. */
struct kept_version {
    struct version *version;
    pawl_bytes command; /* group0's memory; empty: of the first one */
};

struct group0 {
    const pawl_allocator *alloc;
    struct kept_version *versions; /* by position; the first is the empty one */
    size_t count;
    size_t room;
    uint64_t position;
    uint64_t term;
    struct building building;
    struct assignment assignment; /* the last one */
};

/* Make room for one more version, and a copy of its command, so that nothing can fail after the decision.
 * PAWL_ENOMEM. unkeep: the copy is not needed. */
int group0_keep(struct group0 *group0, pawl_bytes command, pawl_bytes *ret_copy);
void group0_unkeep(struct group0 *group0, pawl_bytes copy);

#endif

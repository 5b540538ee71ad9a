/* test/lib/lease.h: a lease table under virtual time, and scripts that are played on it.
 *
 * A script is lines of "what is done -> what comes of it". What is done begins with a verb of pawl/lease.h;
 * what has been acquired goes by a letter, which also stands for its result:
 *
 *     bind 3           -> 1 2 3
 *     acquire ab       -> a=1 b=2
 *     ready b          -> ok
 *     take             -> none
 *     ready a          -> ok
 *     take             -> 1=a 2=b
 *     commit 2         -> ok
 *
 * Arguments: "p1" is a projection, "x500" a size in bytes, "for 5s" a duration. Further verbs:
 *     look N           -> leased try 1 for 30s "words"          what list says of a number
 *     list N           -> 1:committed 2:leased 3:bound          and of all from one on
 *     wait 30s         -> quiet, or how often changed was called
 *     jump 30s         the node's clock jumps, and what is due happens at once
 *     forge z 5        z is number 5 with an ID that nobody was given
 *     steal z a        z is a's number and ID, under another letter; what it hands in is told apart from a's
 *     figures WORDS    of pawl_lease_figures, by name
 * With a store (lease_store.h):
 *     keep ab          -> a=1 b=2                                acquire_kept
 *     settle           -> ok
 *     rows             -> 1=a 2=b                                what the store has, durable or not; ?: of no letter
 *     restart 3        the table ends, and another begins with this number; the store has all it was told
 *     power 3          the same, and the store has what was settled
 *     awaits a         -> yes                                    is_awaited */
#ifndef TEST_LIB_LEASE_H
#define TEST_LIB_LEASE_H

#include <pawl/lease.h>

#include "adapter/mem/env.h"
#include "test/lib/lease_store.h"

struct desk {
    struct mem_world *world;
    struct mem_env *env;
    pawl_leases *leases;
    pawl_leases_options options;
    struct {
        uint64_t number;
        pawl_operation_id operation;
    } held[26];
    uint64_t changed;        /* so many calls */
    struct lease_twin *twin; /* NULL: there is no store */
};

/* options: may be NULL; env, changed and ctx are filled in. If there is a store, it is lease_twin_store. */
void desk_open(struct desk *desk, const pawl_leases_options *options);
void desk_open_seeded(struct desk *desk, const pawl_leases_options *options, uint64_t seed);
void desk_close(struct desk *desk);

/* Run fn on the shard. */
void desk_run(struct desk *desk, void (*fn)(void *arg), void *arg);

/* Fails the test at the first line that comes out differently. */
void desk_play(struct desk *desk, const char *script);

/* The same on a desk of its own. */
void play(const pawl_leases_options *options, const char *script);

#endif

/* test/lib/lease_store.h: a store for kept leases in memory: it fails when it is told to, and forgets at a loss of
 * power what was not settled. The twin of engine/lanes/kept_leases.c. */
#ifndef TEST_LIB_LEASE_STORE_H
#define TEST_LIB_LEASE_STORE_H

#include <pawl/lease.h>

#define LEASE_TWIN_MAX 2048

/* What was told and is not durable. */
struct lease_twin_op {
    pawl_lease_row row;
    bool is_drop;
};

struct lease_twin {
    pawl_lease_row rows[LEASE_TWIN_MAX]; /* durable */
    size_t count;
    struct lease_twin_op ops[LEASE_TWIN_MAX];
    size_t op_count;

    int keep_status;   /* what keep says; PAWL_OK: it keeps */
    int settle_status; /* likewise */
    uint64_t kept, dropped, settled;
};

/* Its ctx is a struct lease_twin that is zero at first. */
extern const pawl_lease_store lease_twin_store;

/* The process ends: of what was told and not settled, the first so many are durable all the same. 0 after a loss
 * of power. */
void lease_twin_crash(struct lease_twin *twin, size_t survive);

/* The row of a number, as find has it. False: none. */
bool lease_twin_get(const struct lease_twin *twin, uint64_t number, pawl_lease_row *ret_row);

#endif

/* adapter/mem/store.h: the store port in memory, deterministic, with faults to order.
 *
 * What a store keeps when its process dies lies on a disk, an object that the test owns and that outlives the
 * stores. A node has one disk; its stores have names on it.
 *
 *     disk ── open(name) ── changes, commits ──┬── close ───────────────────────────── open(name): as it was
 *                                              ├── crash ───────────────────────────── the last commit
 *                                              └── power cut ── durable: the last commit
 *                                                               fast: discarded, unless closed before
 *
 * Snapshots may be read on other threads; the disk's own functions belong to the test's thread. */
#ifndef ADAPTER_MEM_STORE_H
#define ADAPTER_MEM_STORE_H

#include "port/store.h"

typedef struct mem_store_disk mem_store_disk;

int mem_store_disk_new(const pawl_allocator *alloc, mem_store_disk **ret_disk);

/* Stores that are still open go as in a crash. */
void mem_store_disk_free(mem_store_disk *disk);

/* Every store that is open is gone, with its uncommitted changes and its snapshots: forget the pointers. */
void mem_store_disk_crash(mem_store_disk *disk);
void mem_store_disk_power_cut(mem_store_disk *disk);

enum mem_store_op {
    MEM_STORE_ANY,
    MEM_STORE_OPEN,
    MEM_STORE_SNAPSHOT,
    MEM_STORE_GET,
    MEM_STORE_SCAN,
    MEM_STORE_PUT,
    MEM_STORE_REMOVE, /* or remove_range */
    MEM_STORE_COMMIT,
    MEM_STORE_COPY,
};

/* The countdown-th operation of this kind from now on (1: the next) fails, on whichever of the disk's stores,
 * and so do those after it, until as many as times have. */
struct mem_store_fault {
    enum mem_store_op op;
    uint64_t countdown;
    uint64_t times;
    int status;
};

/* Replaces the fault that was ordered before; a zeroed one is none. */
void mem_store_disk_fail(mem_store_disk *disk, struct mem_store_fault fault);

struct mem_store_options {
    const char *name;
    enum pawl_store_mode mode;
    uint32_t max_snapshots; /* 0: 126 */
};

/* PAWL_ELOCKED: a store of this name is open. ret_discarded may be NULL. copy's dir is a name on the same disk.
 */
int mem_store_open(mem_store_disk *disk, const struct mem_store_options *options, bool *ret_discarded,
                   pawl_store **ret_store, pawl_error *error);

#endif

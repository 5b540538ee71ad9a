/* adapter/lmdb/store.h: the store port on LMDB.
 *
 * A store is a directory: data.mdb and lock.mdb are LMDB's, pawl.lock keeps it to one writer, pawl.mark says
 * whether its bytes may be trusted (mark.h). The four spaces are LMDB's named databases "0" to "3".
 *
 * Caveats
 *   - A put costs a copy of each page on its way that this transaction has not yet copied, so what is cheap is
 *     many puts a commit, in key order: coalesce by key and sort before a large durable transaction.
 *   - One process opens a directory once, for writing or for reading: LMDB's locks are the process's, and
 *     closing one handle would drop those of the other. A second opening is PAWL_ELOCKED. Do not fork with a
 *     store open and go on using it in the child.
 *   - The map is address space, not memory or disk; the file grows as needed, and its pages are never given
 *     back.
 *   - A fast store writes through the map where it can reserve the disk's blocks for it (reserve.h). It needs
 *     more free disk than it will use, for the worst that a transaction can do: about 2 % of the file, 9 pages
 *     for a put into a tree of depth 4, and 16 MiB if they are there; up to 29 pages for a removal, of which 4
 *     stay charged, so remove large ranges in several commits.
 *   - A wild pointer of the host's could write into that map.
 *   - A process that is killed between the last two stores of a fast commit leaves a store that is discarded
 *     (torn.h); killed at any other moment it leaves the last commit.
 *   - close comes on the writer's thread, because LMDB's writer lock is a thread's. An error from it other than
 *     PAWL_EMISUSE means that the store is closed but, if it was a fast one, not marked clean. */
#ifndef ADAPTER_LMDB_STORE_H
#define ADAPTER_LMDB_STORE_H

#include "port/store.h"

struct lmdb_options {
    const char *dir; /* made if it is not there; its parent must be */
    enum pawl_store_mode mode;
    bool read_only;         /* PAWL_EREADONLY for every change; nothing is made, discarded or marked */
    uint32_t max_snapshots; /* 0: 126 */
    uint64_t map_bytes;     /* the most that the store can hold. 0: 1 TiB, or less where that does not fit */
    const pawl_allocator *alloc;
    const char
        *boot_id; /* NULL: the kernel's; tests pretend another, and copy files to say what is left of them */
};

/* What opening found. */
struct lmdb_opened {
    bool discarded; /* what was there could not be trusted: the store is empty */
    char why[64];   /* in words, if so */
    uint64_t map_bytes;
    char unmapped[64]; /* in words, why a fast store does not write through the map; "" if it does */
};

/* Errors: PAWL_ELOCKED (open elsewhere), PAWL_ECORRUPT (a durable store, or one opened read-only, whose bytes
 * cannot be trusted), PAWL_EFORMAT (data.mdb is not LMDB's), PAWL_EVERSION, PAWL_ENOTFOUND (read_only, and
 * there is none, or one whose making was interrupted), PAWL_EFULL, PAWL_EACCES, PAWL_EIO, PAWL_ENOMEM. Each
 * names the directory. ret_opened may be NULL. */
int lmdb_store_open(const struct lmdb_options *options, struct lmdb_opened *ret_opened, pawl_store **ret_store,
                    pawl_error *error);

/* A durable store becomes a fast one: what is committed from now on is not synced. It does not write through
 * the map until it is opened again. On the writer's thread. PAWL_EMISUSE: within a transaction. */
int lmdb_store_relax(pawl_store *store);

/* The other way round: what it holds is synced, and so is every commit from now on. On the writer's thread.
 * PAWL_EMISUSE: within a transaction; PAWL_EIO, PAWL_EFULL: it is as fast as it was. */
int lmdb_store_tighten(pawl_store *store);

#endif

/* adapter/lmdb/reserve.h: disk blocks for the pages that a transaction may take, before it takes them.
 *
 * A fast store writes through LMDB's map. A page without a block under it would then be a SIGBUS on a full
 * disk, so the blocks are there first: the file is reserved from its beginning up to a frontier, and before
 * each change the most that the transaction can reach is held against it.
 *
 *     0           base                         need                frontier = the file's length        map
 *     ├─ committed ┼─ taken (at most) ─┼─ commit ┤ ····· a step ahead ······ ┤                            │
 *
 *   R1. Every byte below the frontier has a block of its own, and the file is as long as the frontier.
 *   R2. Before LMDB is asked for a change: base + taken + what its commit can take <= frontier, or the frontier
 *       is the map's end, where LMDB itself says that it is full.
 *   R3. taken is at least the number of pages that LMDB has taken in this transaction, wherever from, and after
 *       this change.
 *
 * R1 can hold only where a block once given stays: ext4, XFS, tmpfs. A file system that copies on write may
 * need a new one for an old page. There, and where the file may not have the map's length, a store does
 * without.
 *
 * The bound (R3), over LMDB 0.9. A tree of depth D is changed by one put or one removal, all pages from the end
 * of the file:
 *
 *   B1. A page of the last commit is copied when it is first changed, and then never again: what is copied of a
 *       tree in one transaction is at most what it had at its begin. A page that was spilled is still ours.
 *   B2. A put copies its path, D. It splits at most one page a level, and then grows a root: D + 1 new ones. It
 *       removes no page of the tree, so the tree's growth afterwards says how many there were.
 *   B3. A removal copies its path and at most one neighbour a level: 2 D. It merges at most one page a level
 *       and drops at most one root, and ends with moving at most one node, for which at most three
 *       separators are replaced; each may split as in B2, in a tree that the one before made deeper: 3 D + 9.
 *       So afterwards there were at most D more new ones than the tree has grown.
 *   B4. A value that does not fit into half a page gets pages of its own, whether or not there was one before.
 *
 * and what the commit takes then, when the file has N pages:
 *
 *   B5. The main tree holds a record for each space, of a size that never changes: it is copied, and never
 *       split.
 *   B6. The tree of the free list is copied at most once. No separator in it ever grows.
 *   B7. No page is listed twice, so all lists are at most N numbers of 8 bytes, in records that fill whole
 *       pages but for two: W = N / 504 + 2 pages, and at most as many new ones in the tree.
 *   B8. A record is written again when the list grows while it is written. This comes only from reading older
 *       records, and from then on a record that is given up goes to the list that is taken from first; of two
 *       given up in a row the space is enough for the next. Charged: three more times for the transaction's
 *       own list, three for what was read. Together 8 W. */
#ifndef ADAPTER_LMDB_RESERVE_H
#define ADAPTER_LMDB_RESERVE_H

#include <lmdb.h>

#include "port/store.h"

/* Reserved at a time beyond what is needed; and how much too much may stay reserved when a large transaction is
 * over. */
#define RESERVE_STEP_BYTES  ((uint64_t)16 << 20)
#define RESERVE_SLACK_BYTES ((uint64_t)256 << 20)

/* What the transaction has done to a space's tree. */
struct reserve_tree {
    bool known;      /* the rest is valid in this transaction */
    uint64_t clean;  /* pages of the last commit that are not yet charged as copied (B1) */
    uint64_t pages;  /* before the last change */
    uint64_t fresh;  /* charged for that change (B2, B3) */
    uint64_t merged; /* pages that it may have removed */
};

struct reserve {
    int fd; /* the data file, or -1: the store does not write through the map, and nothing is reserved */
    uint64_t step;
    uint64_t page_bytes;
    uint64_t map_bytes;
    uint64_t frontier; /* 0: what lies in the file is not known to be without holes */
    uint64_t wanted;   /* bytes, when the last change was refused */

    /* The open transaction, in pages. */
    uint64_t base;
    uint64_t taken;
    uint64_t fixed; /* of a commit: B5, B6 */
    struct reserve_tree trees[PAWL_STORE_SPACES];
};

/* Whether a file in the directory, which is made if it is not there, can be reserved up to the map's size:
 * NULL, or why not, in words; r is then off. */
const char *reserve_init(struct reserve *r, int dir_fd, const char *file, uint64_t map_bytes);

/* LMDB writes its table of readers through a map, too, whatever kind of store it is: blocks for so many. Before
 * LMDB opens it, because to close any handle of a file drops the process's locks on it. 0, or an errno: there
 * is no room. */
int reserve_readers(int dir_fd, const char *file, uint32_t readers);

/* Off from now on. */
void reserve_close(struct reserve *r);

/* All of these return 0, an errno or LMDB's error, and do nothing where r is off.
 *
 * start: once LMDB has opened the file and made it as long as the map. begin: right after LMDB's. put, of a
 * value of so many bytes, and remove: before each of LMDB's; ENOSPC, EDQUOT or EFBIG: there is no room, and
 * r->wanted says for how much. create: before a space is made. release: give back what lies behind the last
 * commit, when no transaction is open and none follows. */
int reserve_start(struct reserve *r, MDB_env *env);
int reserve_begin(struct reserve *r, MDB_env *env, MDB_txn *txn);
int reserve_put(struct reserve *r, MDB_txn *txn, MDB_dbi dbi, uint8_t space, size_t bytes);
int reserve_remove(struct reserve *r, MDB_txn *txn, MDB_dbi dbi, uint8_t space);
int reserve_create(struct reserve *r);
int reserve_release(struct reserve *r, MDB_env *env);

/* The end of what the open transaction can reach, in pages. */
uint64_t reserve_need(const struct reserve *r);

#endif

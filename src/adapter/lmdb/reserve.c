#include "adapter/lmdb/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FREE_LIST   ((MDB_dbi)0) /* LMDB's own handle */
#define PAGE_HEADER 16
#define CREATE_PAGES                                                                                           \
    32 /* the records of all spaces, into a main tree of one page: 4 puts (B2) and to spare                    \
        */

/* LMDB's table of readers: no more than so much before the first, and a cache line each. */
#define READERS_HEAD ((uint64_t)4096)
#define READER_BYTES 64

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* Where a block that was given stays the file's, also when its page is written again (R1). */
static bool blocks_stay(int fd)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0)
        return false;
    return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC || fs.f_type == TMPFS_MAGIC;
}

/* Checked beforehand: a write beyond the limit is not only an error but raises a signal. */
static uint64_t length_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                                   : UINT64_MAX;
}

static int allocate(int fd, int mode, uint64_t from, uint64_t to)
{
    if (to > length_limit())
        return EFBIG;
    while (fallocate(fd, mode, (off_t)from, (off_t)(to - from)) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

static int set_length(int fd, uint64_t bytes)
{
    while (ftruncate(fd, (off_t)bytes) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

static bool no_room(int number)
{
    return number == ENOSPC || number == EDQUOT || number == EFBIG;
}

static const char *why_not(int fd, uint64_t map_bytes)
{
    if (fd < 0)
        return "the data file cannot be opened";
    if (!blocks_stay(fd))
        return "the file system is not known to keep reserved blocks";
    if (map_bytes > length_limit())
        return "no file may be as long as the map";
    int number = allocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1);
    return number == 0 || no_room(number) ? NULL : "the file system does not reserve blocks";
}

const char *reserve_init(struct reserve *r, int dir_fd, const char *file, uint64_t map_bytes)
{
    int fd = openat(dir_fd, file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    *r = (struct reserve){.fd = fd, .step = RESERVE_STEP_BYTES};
    const char *why = why_not(fd, map_bytes);
    if (why)
        reserve_close(r);
    return why;
}

void reserve_close(struct reserve *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

/* The file keeps its length: other processes that have it open tell from it how many readers it has room for.
 * If the file cannot be made or reserved, LMDB will report that. */
int reserve_readers(int dir_fd, const char *file, uint32_t readers)
{
    int fd = openat(dir_fd, file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return 0;
    int number = allocate(fd, FALLOC_FL_KEEP_SIZE, 0, READERS_HEAD + (uint64_t)readers * READER_BYTES);
    close(fd);
    return no_room(number) ? number : 0;
}

static int committed_pages(MDB_env *env, uint64_t *ret_pages)
{
    MDB_envinfo info;
    int rc = mdb_env_info(env, &info);
    if (rc == MDB_SUCCESS)
        *ret_pages = info.me_last_pgno + 1;
    return rc;
}

int reserve_start(struct reserve *r, MDB_env *env)
{
    MDB_envinfo info;
    MDB_stat stat;
    if (r->fd < 0)
        return 0;
    int rc = mdb_env_info(env, &info);
    if (rc == MDB_SUCCESS)
        rc = mdb_env_stat(env, &stat);
    if (rc != MDB_SUCCESS)
        return rc;
    r->page_bytes = stat.ms_psize;
    r->map_bytes = info.me_mapsize;
    return reserve_release(r, env);
}

int reserve_release(struct reserve *r, MDB_env *env)
{
    uint64_t pages;
    if (r->fd < 0)
        return 0;
    int rc = committed_pages(env, &pages);
    r->frontier = 0;
    return rc ? rc : set_length(r->fd, pages * r->page_bytes);
}

/* B5 to B8. */
uint64_t reserve_need(const struct reserve *r)
{
    uint64_t pages = r->base + r->taken;
    return pages + r->fixed + 8 * (pages / 504 + 2);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Move the frontier to need, and if possible a step further. */
static int extend(struct reserve *r, uint64_t need)
{
    uint64_t ahead = least(need + r->step, r->map_bytes);
    int number = allocate(r->fd, 0, r->frontier, ahead);
    if (no_room(number) && ahead > need) {
        ahead = need;
        number = allocate(r->fd, 0, r->frontier, ahead);
    }
    if (number == 0) {
        r->frontier = ahead;
        return 0;
    }
    r->wanted = need - (r->frontier ? r->frontier : r->base * r->page_bytes);
    /* Some file systems keep the blocks that they gave before they failed: give them back to others. */
    set_length(r->fd, r->frontier ? r->frontier : r->base * r->page_bytes);
    return number;
}

/* R2. */
static int keep_ahead(struct reserve *r)
{
    uint64_t need = least(reserve_need(r) * r->page_bytes, r->map_bytes);
    return need <= r->frontier ? 0 : extend(r, need);
}

int reserve_begin(struct reserve *r, MDB_env *env, MDB_txn *txn)
{
    MDB_stat main_tree, free_list;
    if (r->fd < 0)
        return 0;
    int rc = committed_pages(env, &r->base);
    if (rc == MDB_SUCCESS)
        rc = mdb_env_stat(env, &main_tree);
    if (rc == MDB_SUCCESS)
        rc = mdb_stat(txn, FREE_LIST, &free_list);
    if (rc != MDB_SUCCESS)
        return rc;
    r->taken = 0;
    r->fixed = main_tree.ms_branch_pages + main_tree.ms_leaf_pages + free_list.ms_branch_pages
               + free_list.ms_leaf_pages + free_list.ms_depth + 1;
    memset(r->trees, 0, sizeof r->trees);
    uint64_t enough = reserve_need(r) * r->page_bytes + r->step;
    if (r->frontier > enough + RESERVE_SLACK_BYTES && set_length(r->fd, enough) == 0)
        r->frontier = enough;
    return 0;
}

/* Charge a change that copies at most so many pages, makes at most so many new ones and removes at most so
 * many, beside the pages of its own that a value takes. The tree says by now how many the change before really
 * made. */
static int charge(struct reserve *r, uint8_t space, const MDB_stat *tree, uint64_t copied, uint64_t fresh,
                  uint64_t merged, uint64_t own)
{
    struct reserve_tree *t = &r->trees[space];
    uint64_t pages = tree->ms_branch_pages + tree->ms_leaf_pages;
    if (!t->known)
        *t = (struct reserve_tree){.known = true, .clean = pages, .pages = pages};
    copied = least(copied, t->clean);
    t->clean -= copied;
    r->taken -= t->fresh - least(t->fresh, pages + t->merged - t->pages);
    r->taken += copied + fresh + own;
    t->pages = pages;
    t->fresh = fresh;
    t->merged = merged;
    return keep_ahead(r);
}

int reserve_put(struct reserve *r, MDB_txn *txn, MDB_dbi dbi, uint8_t space, size_t bytes)
{
    MDB_stat tree;
    if (r->fd < 0)
        return 0;
    int rc = mdb_stat(txn, dbi, &tree);
    if (rc != MDB_SUCCESS)
        return rc;
    uint64_t own = bytes > r->page_bytes / 4 ? (PAGE_HEADER + bytes) / r->page_bytes + 1 : 0;
    return charge(r, space, &tree, tree.ms_depth, tree.ms_depth + 1, 0, own);
}

int reserve_remove(struct reserve *r, MDB_txn *txn, MDB_dbi dbi, uint8_t space)
{
    MDB_stat tree;
    if (r->fd < 0)
        return 0;
    int rc = mdb_stat(txn, dbi, &tree);
    if (rc != MDB_SUCCESS)
        return rc;
    uint64_t depth = tree.ms_depth;
    return charge(r, space, &tree, 2 * depth, 3 * depth + 9, depth, 0);
}

int reserve_create(struct reserve *r)
{
    if (r->fd < 0)
        return 0;
    r->taken += CREATE_PAGES;
    return keep_ahead(r);
}

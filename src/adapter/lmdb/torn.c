#include "adapter/lmdb/torn.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* LMDB's data format 1: a page's header, the meta record behind it, in the machine's byte order. */
#define META_AT       16
#define META_BYTES    136
#define META_MAGIC_AT 0
#define META_ROOT_AT  112
#define META_TXN_AT   128
#define MAGIC         0xbeefc0de
#define NO_ROOT       UINT64_MAX
#define FREE_LIST     ((MDB_dbi)0)

static int read_root(int fd, uint64_t number, unsigned page_bytes, uint64_t *ret_root)
{
    uint8_t meta[META_BYTES];
    uint32_t magic;
    uint64_t written;
    ssize_t n = pread(fd, meta, sizeof meta, (off_t)((number & 1) * page_bytes + META_AT));
    if (n != (ssize_t)sizeof meta)
        return n < 0 ? errno : MDB_CORRUPTED;
    memcpy(&magic, meta + META_MAGIC_AT, sizeof magic);
    memcpy(&written, meta + META_TXN_AT, sizeof written);
    if (magic != MAGIC || written != number)
        return MDB_CORRUPTED;
    memcpy(ret_root, meta + META_ROOT_AT, sizeof *ret_root);
    return 0;
}

/* Whether a page is in the list of those that a commit freed: a count, and so many numbers. */
static int freed_by(MDB_txn *txn, uint64_t number, uint64_t page, bool *ret_freed)
{
    MDB_cursor *cursor;
    MDB_val k = {sizeof number, &number}, v;
    bool freed = false;
    int rc = mdb_cursor_open(txn, FREE_LIST, &cursor);
    if (rc != MDB_SUCCESS)
        return rc;
    rc = mdb_cursor_get(cursor, &k, &v, MDB_SET_KEY);
    for (size_t at = sizeof page; rc == MDB_SUCCESS && !freed && at + sizeof page <= v.mv_size;
         at += sizeof page)
        freed = memcmp((const uint8_t *)v.mv_data + at, &page, sizeof page) == 0;
    mdb_cursor_close(cursor);
    *ret_freed = freed;
    return rc == MDB_NOTFOUND ? MDB_SUCCESS : rc;
}

static int root_of(MDB_env *env, uint64_t *ret_number, uint64_t *ret_root)
{
    MDB_envinfo info;
    MDB_stat stat;
    int fd = -1;
    int rc = mdb_env_info(env, &info);
    if (rc == MDB_SUCCESS)
        rc = mdb_env_stat(env, &stat);
    if (rc == MDB_SUCCESS)
        rc = mdb_env_get_fd(env, &fd);
    if (rc == MDB_SUCCESS)
        rc = read_root(fd, info.me_last_txnid, stat.ms_psize, ret_root);
    *ret_number = info.me_last_txnid;
    return rc;
}

int torn_check(MDB_env *env, bool *ret_torn)
{
    MDB_txn *txn;
    uint64_t number = 0, root = NO_ROOT;
    int rc = root_of(env, &number, &root);
    if (rc != MDB_SUCCESS)
        return rc;
    if (root == NO_ROOT) {
        *ret_torn = true;
        return MDB_SUCCESS;
    }
    /* If other processes have kept LMDB's lock file alive this may still be N - 1; the list is there as well.
     */
    rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
    if (rc != MDB_SUCCESS)
        return rc;
    rc = freed_by(txn, number - 1, root, ret_torn);
    mdb_txn_abort(txn);
    return rc;
}

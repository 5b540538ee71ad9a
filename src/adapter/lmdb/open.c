/* adapter/lmdb/open.c: opening, closing and copying a store's directory.
 *
 *     lock ─► read the mark ─► judge ─┬─► use ───────────────► (durable: sync, mark CLEAN) ─► open
 *                                     └─► mark VOID, remove, make, sync, mark CLEAN ────────► open
 *
 * pawl.lock is locked with locks that belong to the open file, not to the process (F_OFD_SETLK), so that they
 * also hold within one process: byte 0 for the writer, and the byte at the process's ID for any opening,
 * because LMDB must not see one directory opened twice by one process. */
#include "adapter/lmdb/impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapter/lmdb/torn.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"

#define LOCK_FILE         "pawl.lock"
#define LOCK_PROCESS_AT   ((off_t)1 << 32)
#define MAP_BYTES_DEFAULT ((uint64_t)1 << 40)
#define MAP_BYTES_LEAST   ((uint64_t)64 << 20)
#define SNAPSHOTS_DEFAULT 126
#define READERS_SPARE     66 /* the writer's own reads, copies, and readers in other processes */
#define DATA_BYTES_LEAST  8192

static int lock_byte(int fd, off_t at)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

/* The writer's process ID goes into the lock file, for the message of those who find it locked. If it cannot
 * be written, the writer opens the store all the same. */
static void write_owner(int fd)
{
    char text[16];
    int size = snprintf(text, sizeof text, "%-10d\n", (int)getpid()); /* as long as any before it */
    (void)!pwrite(fd, text, (size_t)size, 0);
}

static int locked(int fd, pawl_error *error)
{
    char text[16] = {0};
    ssize_t size = pread(fd, text, sizeof text - 1, 0);
    text[size > 0 ? strspn(text, "0123456789") : 0] = '\0';
    return error_set(error, PAWL_ELOCKED, "another process has it open for writing%s%s%s",
                     text[0] ? " (process " : "", text, text[0] ? ")" : "");
}

static int take_lock(struct lmdb_store *s, pawl_error *error)
{
    s->lock_fd = openat(s->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock_fd < 0 && errno == EROFS && s->read_only)
        return PAWL_OK; /* where nobody can write, nobody is in the way */
    if (s->lock_fd < 0)
        return error_errno(error, errno, "cannot open %s", LOCK_FILE);
    int number = lock_byte(s->lock_fd, LOCK_PROCESS_AT + getpid());
    if (number == EAGAIN || number == EACCES)
        return error_set(error, PAWL_ELOCKED, "this process has it open already");
    if (number == 0 && !s->read_only)
        number = lock_byte(s->lock_fd, 0);
    if (number == EAGAIN || number == EACCES)
        return locked(s->lock_fd, error);
    if (number == 0 && !s->read_only)
        write_owner(s->lock_fd);
    return number ? error_errno(error, number, "cannot lock %s", LOCK_FILE) : PAWL_OK;
}

static int sync_parent(const char *dir)
{
    char parent[4096];
    int n = snprintf(parent, sizeof parent, "%s/..", dir);
    if (n < 0 || (size_t)n >= sizeof parent)
        return ENAMETOOLONG;
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int number = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return number;
}

static int open_dir(const char *dir, bool make, int *ret_fd, pawl_error *error)
{
    if (make && mkdir(dir, 0700) == 0) {
        int number = sync_parent(dir);
        if (number)
            return error_errno(error, number, "cannot sync the directory around it");
    } else if (make && errno != EEXIST) {
        return error_errno(error, errno, "cannot make the directory");
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(error, errno, "cannot open the directory");
    *ret_fd = fd;
    return PAWL_OK;
}

static int remove_file(int dir_fd, const char *name, pawl_error *error)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return PAWL_OK;
    return error_errno(error, errno, "cannot remove %s", name);
}

static const char *boot_of(const struct lmdb_store *s)
{
    return s->boot[0] ? s->boot : NULL;
}

static int judge(struct lmdb_store *s, struct mark *ret_mark, enum mark_verdict *ret_verdict,
                 const char **ret_why, pawl_error *error)
{
    struct mark mark = {0};
    struct mark_identity now = {0};
    int read = mark_read(s->dir_fd, &mark, error);
    if (read != PAWL_OK && read != PAWL_ENOTFOUND && read != PAWL_ECORRUPT)
        return read;
    error_clear(error); /* the verdict says why in its own words */
    struct stat data;
    bool there = fstatat(s->dir_fd, DATA_FILE, &data, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && errno != ENOENT)
        return error_errno(error, errno, "cannot stat %s", DATA_FILE);
    if (there) {
        int status = mark.state == MARK_OPEN ? mark_identify_file(s->dir_fd, DATA_FILE, &now, error)
                                             : mark_identify(s->dir_fd, DATA_FILE, boot_of(s), &now, error);
        if (status != PAWL_OK)
            return status;
    }
    if (mark.state == MARK_OPEN && boot_of(s))
        now = mark.identity; /* a copy stands for what a loss of power has left */
    /* A file without LMDB's two meta pages would be taken for a new one; only a marked one can be cut short. */
    bool whole = there && (read == PAWL_ENOTFOUND || data.st_size >= DATA_BYTES_LEAST);
    *ret_verdict = mark_judge(read, &mark, whole, &now, s->mode, ret_why);
    *ret_mark = mark;
    return PAWL_OK;
}

static int try_env(struct lmdb_store *s, uint64_t map_bytes)
{
    MDB_env *env;
    unsigned flags = MDB_NOTLS | (s->mode == PAWL_STORE_FAST ? MDB_NOSYNC : 0) | (s->read_only ? MDB_RDONLY : 0)
                     | (s->reserve.fd >= 0 ? MDB_WRITEMAP : 0);
    uint32_t readers = s->max_snapshots + READERS_SPARE;
    int rc = reserve_readers(s->dir_fd, "lock.mdb", readers);
    if (rc == 0)
        rc = mdb_env_create(&env);
    if (rc != MDB_SUCCESS)
        return rc;
    rc = mdb_env_set_mapsize(env, (size_t)map_bytes);
    if (rc == MDB_SUCCESS)
        rc = mdb_env_set_maxreaders(env, readers);
    if (rc == MDB_SUCCESS)
        rc = mdb_env_set_maxdbs(env, PAWL_STORE_SPACES);
    if (rc == MDB_SUCCESS)
        rc = mdb_env_open(env, s->dir, flags, 0600);
    int dead;
    if (rc == MDB_SUCCESS)
        (void)mdb_reader_check(env, &dead); /* S5; and new readers need the entries of dead ones */
    if (rc == MDB_SUCCESS)
        rc = reserve_start(&s->reserve, env);
    if (rc == MDB_SUCCESS)
        s->env = env;
    else
        mdb_env_close(env);
    return rc;
}

/* A fast writer goes through the map if blocks can be reserved for it, and if the file may be as long as the
 * map, which LMDB insists on for a moment. */
static int try_map(struct lmdb_store *s, uint64_t map_bytes, const char **ret_unmapped)
{
    const char *why = "";
    if (s->mode == PAWL_STORE_FAST && !s->read_only)
        why = reserve_init(&s->reserve, s->dir_fd, DATA_FILE, map_bytes);
    int rc = try_env(s, map_bytes);
    if (rc == EFBIG && s->reserve.fd >= 0) {
        why = "the file system has no files as long as the map";
        reserve_close(&s->reserve);
        rc = try_env(s, map_bytes);
    }
    if (rc != MDB_SUCCESS)
        reserve_close(&s->reserve);
    *ret_unmapped = why ? why : "";
    return rc;
}

static int open_env(struct lmdb_store *s, uint64_t map_bytes, struct lmdb_opened *opened, pawl_error *error)
{
    const char *unmapped;
    uint64_t bytes = map_bytes ? map_bytes : MAP_BYTES_DEFAULT;
    int rc = try_map(s, bytes, &unmapped);
    /* Limited address space (ulimit -v, a sanitizer) is no reason to fail, unless a size was asked for. */
    while (rc == ENOMEM && !map_bytes && bytes > MAP_BYTES_LEAST) {
        bytes /= 2;
        rc = try_map(s, bytes, &unmapped);
    }
    if (rc != MDB_SUCCESS)
        return lmdb_fail(s, error, rc, "cannot open LMDB");
    opened->map_bytes = bytes;
    snprintf(opened->unmapped, sizeof opened->unmapped, "%s", unmapped);
    return PAWL_OK;
}

/* The order of memcmp, a prefix before its extensions. LMDB's own order is the same, so the file does not
 * depend on this function. It takes a third of memcmp's time, because most keys differ in their first words. */
static int compare_keys(const MDB_val *a, const MDB_val *b)
{
    const uint8_t *x = a->mv_data, *y = b->mv_data;
    size_t left = a->mv_size < b->mv_size ? a->mv_size : b->mv_size;
    for (; left >= 8; left -= 8, x += 8, y += 8) {
        uint64_t p = get_u64_sorted(x), q = get_u64_sorted(y);
        if (p != q)
            return p < q ? -1 : 1;
    }
    for (; left > 0; left--, x++, y++)
        if (*x != *y)
            return *x < *y ? -1 : 1;
    return a->mv_size == b->mv_size ? 0 : a->mv_size < b->mv_size ? -1 : 1;
}

static int create_space(struct lmdb_store *s, MDB_txn *txn, const char *name, MDB_dbi *ret_dbi)
{
    int rc = reserve_begin(&s->reserve, s->env, txn);
    if (rc == MDB_SUCCESS)
        rc = reserve_create(&s->reserve);
    return rc ? rc : mdb_dbi_open(txn, name, MDB_CREATE, ret_dbi);
}

static int open_spaces(struct lmdb_store *s, pawl_error *error)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(s->env, NULL, s->read_only ? MDB_RDONLY : 0, &txn);
    if (rc != MDB_SUCCESS)
        return lmdb_fail(s, error, rc, "cannot begin");
    for (unsigned i = 0; i < PAWL_STORE_SPACES && rc == MDB_SUCCESS; i++) {
        char name[2] = {(char)('0' + i), '\0'};
        rc = mdb_dbi_open(txn, name, 0, &s->dbi[i]);
        /* First without MDB_CREATE, so that opening a store that has its spaces writes nothing. */
        if (rc == MDB_NOTFOUND && !s->read_only)
            rc = create_space(s, txn, name, &s->dbi[i]);
        if (rc == MDB_SUCCESS)
            rc = mdb_set_compare(txn, s->dbi[i], compare_keys);
    }
    if (rc == MDB_SUCCESS)
        rc = mdb_txn_commit(txn);
    else
        mdb_txn_abort(txn);
    if (rc == MDB_NOTFOUND)
        return error_set(error, PAWL_EFORMAT, "its spaces are missing");
    return rc ? lmdb_fail(s, error, rc, "cannot open the spaces") : PAWL_OK;
}

static int mark_clean(struct lmdb_store *s, pawl_error *error)
{
    int status = mark_write(s->dir_fd, &(struct mark){.state = MARK_CLEAN}, error);
    if (status == PAWL_OK)
        s->dirty = false;
    return status;
}

static int sync_and_mark_clean(struct lmdb_store *s, pawl_error *error)
{
    int rc = mdb_env_sync(s->env, 1);
    return rc == MDB_SUCCESS ? mark_clean(s, error) : lmdb_fail(s, error, rc, "cannot sync");
}

/* The names of the new files are synced before the mark says that they are there. So is the name of the
 * directory: the process that made it may have been killed before it could sync that. */
static int sync_names(const struct lmdb_store *s, pawl_error *error)
{
    if (fsync(s->dir_fd) != 0)
        return error_errno(error, errno, "cannot sync the directory");
    int number = sync_parent(s->dir);
    return number ? error_errno(error, number, "cannot sync the directory around it") : PAWL_OK;
}

/* Make an empty store, where there is none or where the old one cannot be trusted. A crash on the way leaves it
 * VOID. */
static int make(struct lmdb_store *s, uint64_t map_bytes, struct lmdb_opened *opened, pawl_error *error)
{
    int status = mark_write(s->dir_fd, &(struct mark){.state = MARK_VOID}, error);
    if (status == PAWL_OK)
        status = remove_file(s->dir_fd, DATA_FILE, error);
    if (status == PAWL_OK)
        status = remove_file(s->dir_fd, "lock.mdb", error);
    if (status == PAWL_OK)
        status = open_env(s, map_bytes, opened, error);
    if (status == PAWL_OK)
        status = open_spaces(s, error);
    if (status == PAWL_OK)
        status = sync_names(s, error);
    return status == PAWL_OK ? sync_and_mark_clean(s, error) : status;
}

static int use(struct lmdb_store *s, uint64_t map_bytes, struct lmdb_opened *opened, pawl_error *error)
{
    int status = open_env(s, map_bytes, opened, error);
    return status == PAWL_OK ? open_spaces(s, error) : status;
}

/* Use the store of a process that died with the mark DIRTY or OPEN. *ret_torn: it died within the last step of
 * a commit; the store is not open then. */
static int use_left(struct lmdb_store *s, uint64_t map_bytes, struct lmdb_opened *opened, bool *ret_torn,
                    pawl_error *error)
{
    int status = open_env(s, map_bytes, opened, error);
    if (status != PAWL_OK)
        return status;
    int rc = torn_check(s->env, ret_torn);
    if (rc != MDB_SUCCESS)
        return lmdb_fail(s, error, rc, "cannot read the last commit");
    if (!*ret_torn)
        return open_spaces(s, error);
    mdb_env_close(s->env);
    s->env = NULL;
    reserve_close(&s->reserve);
    return PAWL_OK;
}

/* A VOID store holds nothing, and nobody was told that it exists: a reader finds no store. */
static int open_read_only(struct lmdb_store *s, const struct mark *mark, enum mark_verdict verdict,
                          const char *why, uint64_t map_bytes, struct lmdb_opened *opened, pawl_error *error)
{
    if (mark->state == MARK_VOID)
        return error_set(error, PAWL_ENOTFOUND, "there is no store: %s", why);
    switch (verdict) {
    case MARK_MAKE: return error_set(error, PAWL_ENOTFOUND, "there is no store");
    case MARK_DISCARD:
    case MARK_DAMAGED: return error_set(error, PAWL_ECORRUPT, "%s", why);
    case MARK_USE:
    case MARK_SYNC: break;
    }
    return use(s, map_bytes, opened, error);
}

static int open_judged(struct lmdb_store *s, uint64_t map_bytes, struct lmdb_opened *ret_opened,
                       pawl_error *error)
{
    struct mark mark = {0};
    enum mark_verdict verdict = MARK_DAMAGED;
    const char *why = "";
    int status = judge(s, &mark, &verdict, &why, error);
    if (status != PAWL_OK)
        return status;
    struct lmdb_opened opened = {.discarded = verdict == MARK_DISCARD};
    if (s->read_only) {
        opened.discarded = false;
        status = open_read_only(s, &mark, verdict, why, map_bytes, &opened, error);
    } else if (verdict == MARK_DAMAGED) {
        status = error_set(error, PAWL_ECORRUPT, "%s", why);
    } else if (verdict == MARK_MAKE || verdict == MARK_DISCARD) {
        status = make(s, map_bytes, &opened, error);
    } else if (mark.state == MARK_CLEAN) {
        status = use(s, map_bytes, &opened, error);
    } else {
        s->dirty = true;
        status = use_left(s, map_bytes, &opened, &opened.discarded, error);
        why = "its last commit was cut short";
        if (status == PAWL_OK && opened.discarded)
            status = make(s, map_bytes, &opened, error);
        else if (status == PAWL_OK && (verdict == MARK_SYNC || mark.state == MARK_OPEN))
            status = sync_and_mark_clean(s, error);
    }
    snprintf(opened.why, sizeof opened.why, "%s", opened.discarded ? why : "");
    if (status == PAWL_OK && ret_opened)
        *ret_opened = opened;
    return status;
}

static void end_readers(struct lmdb_store *s)
{
    if (s->writer.txn)
        mdb_txn_abort(s->writer.txn);
    for (uint32_t i = 0; i < s->max_snapshots; i++)
        if (s->snapshots[i].txn)
            mdb_txn_abort(s->snapshots[i].txn);
}

/* The store may be built in part only. */
static void store_free(struct lmdb_store *s)
{
    if (s->env) {
        end_readers(s);
        mdb_env_close(s->env);
    }
    reserve_close(&s->reserve);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    if (s->dir_fd >= 0)
        close(s->dir_fd);
    const pawl_allocator *alloc = s->alloc;
    mem_free(alloc, s->snapshots, s->max_snapshots * sizeof *s->snapshots);
    mem_free(alloc, s->dir, s->dir_size);
    pthread_mutex_destroy(&s->lock);
    mem_free(alloc, s, sizeof *s);
}

static struct lmdb_store *store_new(const struct lmdb_options *o)
{
    struct lmdb_store *s = mem_new(o->alloc, 1, sizeof *s);
    if (!s)
        return NULL;
    s->store.ops = &lmdb_store_ops;
    s->mode = o->mode;
    s->read_only = o->read_only;
    s->dir_fd = s->lock_fd = s->reserve.fd = -1;
    s->alloc = o->alloc;
    s->writer.reader.store = &s->store;
    s->max_snapshots = o->max_snapshots ? o->max_snapshots : SNAPSHOTS_DEFAULT;
    s->dir_size = strlen(o->dir) + 1;
    pthread_mutex_init(&s->lock, NULL);
    if (o->boot_id)
        snprintf(s->boot, sizeof s->boot, "%s", o->boot_id);
    s->dir = mem_new(o->alloc, s->dir_size, 1);
    s->snapshots = mem_new(o->alloc, s->max_snapshots, sizeof *s->snapshots);
    if (!s->dir || !s->snapshots) {
        store_free(s);
        return NULL;
    }
    memcpy(s->dir, o->dir, s->dir_size);
    for (uint32_t i = s->max_snapshots; i-- > 0;) {
        s->snapshots[i].reader.store = &s->store;
        s->snapshots[i].next = s->free;
        s->free = &s->snapshots[i];
    }
    return s;
}

int lmdb_store_open(const struct lmdb_options *options, struct lmdb_opened *ret_opened, pawl_store **ret_store,
                    pawl_error *error)
{
    error_clear(error);
    struct lmdb_store *s = store_new(options);
    if (!s)
        return error_set(error, PAWL_ENOMEM, "cannot open the store %s: out of memory", options->dir);
    int status = open_dir(s->dir, !s->read_only, &s->dir_fd, error);
    if (status == PAWL_OK)
        status = take_lock(s, error);
    if (status == PAWL_OK)
        status = open_judged(s, options->map_bytes, ret_opened, error);
    if (status != PAWL_OK) {
        store_free(s);
        return error_wrap(error, status, "cannot open the store %s", options->dir);
    }
    *ret_store = &s->store;
    return PAWL_OK;
}

int lmdb_store_relax(pawl_store *store)
{
    struct lmdb_store *s = (struct lmdb_store *)store;
    if (s->write)
        return error_set(&store->error, PAWL_EMISUSE, "the store %s is being written to", s->dir);
    int rc = mdb_env_set_flags(s->env, MDB_NOSYNC, 1);
    if (rc != MDB_SUCCESS)
        return lmdb_fail(s, &store->error, rc, "cannot stop syncing");
    s->mode = PAWL_STORE_FAST;
    s->dirty = false; /* M1: the mark becomes DIRTY before the next write */
    return PAWL_OK;
}

int lmdb_store_tighten(pawl_store *store)
{
    struct lmdb_store *s = (struct lmdb_store *)store;
    if (s->write)
        return error_set(&store->error, PAWL_EMISUSE, "the store %s is being written to", s->dir);
    int rc = mdb_env_set_flags(s->env, MDB_NOSYNC, 0);
    if (rc != MDB_SUCCESS)
        return lmdb_fail(s, &store->error, rc, "cannot begin to sync");
    int status = s->dirty ? sync_and_mark_clean(s, &store->error) : PAWL_OK;
    if (status == PAWL_OK)
        s->mode = PAWL_STORE_DURABLE;
    else
        (void)mdb_env_set_flags(s->env, MDB_NOSYNC, 1);
    return status;
}

int lmdb_store_close(pawl_store *store)
{
    struct lmdb_store *s = (struct lmdb_store *)store;
    uint32_t used = lmdb_snapshots_used(s);
    if (used)
        return error_set(&store->error, PAWL_EMISUSE, "%u snapshots of the store %s are not released", used,
                         s->dir);
    lmdb_store_abort(store);
    reserve_release(&s->reserve, s->env); /* if it cannot, the file is only longer than it need be */
    int status = PAWL_OK;
    if (s->dirty && !s->read_only) /* M2: of a durable store each commit has synced all */
        status = s->mode == PAWL_STORE_DURABLE ? mark_clean(s, NULL) : sync_and_mark_clean(s, NULL);
    store_free(s);
    return status;
}

static int check_empty(const char *dir, pawl_error *error)
{
    DIR *d = opendir(dir);
    if (!d)
        return error_errno(error, errno, "cannot list the directory");
    bool empty = true;
    for (struct dirent *e; empty && (e = readdir(d));)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    closedir(d);
    return empty ? PAWL_OK : error_set(error, PAWL_EEXISTS, "the directory is not empty");
}

static int copy_data(struct lmdb_store *s, int dir_fd, pawl_error *error)
{
    int fd = openat(dir_fd, DATA_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(error, errno, "cannot create %s", DATA_FILE);
    int rc = mdb_env_copyfd2(s->env, fd, MDB_CP_COMPACT);
    if (rc == MDB_SUCCESS && fsync(fd) != 0)
        rc = errno;
    close(fd);
    return rc ? lmdb_fail(s, error, rc, "cannot copy the data") : PAWL_OK;
}

int lmdb_store_copy(pawl_store *store, const char *dir, pawl_error *error)
{
    struct lmdb_store *s = (struct lmdb_store *)store;
    int dir_fd = -1;
    error_clear(error);
    int status = open_dir(dir, true, &dir_fd, error);
    if (status != PAWL_OK)
        return error_wrap(error, status, "cannot copy to %s", dir);
    status = check_empty(dir, error);
    if (status != PAWL_OK)
        goto not_ours;
    status = mark_write(dir_fd, &(struct mark){.state = MARK_VOID}, error);
    if (status == PAWL_OK)
        status = copy_data(s, dir_fd, error);
    if (status == PAWL_OK && fsync(dir_fd) != 0)
        status = error_errno(error, errno, "cannot sync the directory");
    if (status == PAWL_OK)
        status = mark_write(dir_fd, &(struct mark){.state = MARK_CLEAN}, error);
    if (status != PAWL_OK) {
        remove_file(dir_fd, DATA_FILE, NULL);
        remove_file(dir_fd, MARK_FILE ".tmp", NULL);
        remove_file(dir_fd, MARK_FILE, NULL);
    }
not_ours:
    close(dir_fd);
    return status == PAWL_OK ? PAWL_OK : error_wrap(error, status, "cannot copy to %s", dir);
}

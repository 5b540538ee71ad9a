/* adapter/lmdb/store.c: reading and writing.
 *
 *   S1. A write transaction is open exactly from the first change to commit or abort.
 *   S2. The writer's read transaction, which sees the last commit, is never live while a write transaction is
 *       open, so that it keeps no page from being reused.
 *   S3. Once a change has failed inside a transaction, every later one and the commit fail alike.
 *   S4. A released snapshot keeps no page from being reused for longer than the write transaction during which
 *       it was released: each write transaction begins by resetting the snapshots in the slots.
 *   S5. A snapshot of a process that ended without releasing it keeps pages for no longer than a few
 *       transactions. LMDB's table of readers still has it, until LMDB is asked to check which readers are
 *       alive: the writer asks every few transactions, and each opening of the store asks too. */
#include "adapter/lmdb/impl.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapter/lmdb/packed_rows.h"
#include "base/alloc.h"
#include "base/error.h"
#include "port/longkey.h"

#define READERS_CHECKED 16 /* every so many transactions: a check takes a microsecond */

int lmdb_status(int rc)
{
    switch (rc) {
    case MDB_SUCCESS: return PAWL_OK;
    case MDB_NOTFOUND: return PAWL_ENOTFOUND;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PANIC: return PAWL_ECORRUPT;
    case MDB_VERSION_MISMATCH: return PAWL_EVERSION;
    case MDB_INVALID: return PAWL_EFORMAT;
    case MDB_MAP_FULL:
    case EFBIG: return PAWL_EFULL;
    case MDB_READERS_FULL: return PAWL_EBUSY;
    case MDB_TXN_FULL: return PAWL_ETOOBIG;
    case MDB_BAD_TXN: return PAWL_EMISUSE;
    default: return rc > 0 ? error_from_errno(rc) : PAWL_EIO;
    }
}

int lmdb_fail(const struct lmdb_store *s, pawl_error *error, int rc, const char *doing)
{
    return error_set(error, lmdb_status(rc), "%s in %s: %s", doing, s->dir, mdb_strerror(rc));
}

static struct lmdb_store *of(pawl_store *store)
{
    return (struct lmdb_store *)store;
}

static MDB_val val(pawl_bytes b)
{
    return (MDB_val){.mv_size = b.size, .mv_data = (void *)(uintptr_t)b.data};
}

static pawl_bytes bytes_of(MDB_val v)
{
    return (pawl_bytes){.data = v.mv_data, .size = v.mv_size};
}

/* LMDB reports EIO for every write that was cut short, for a full disk too. To find out, write behind the last
 * committed page, where the bytes belong to nobody, and look at the error. */
static int full_or_broken(struct lmdb_store *s, int rc)
{
    static const uint8_t zeros[64 << 10];
    MDB_envinfo info;
    MDB_stat stat;
    if (rc != EIO || s->reserve.fd >= 0 || mdb_env_info(s->env, &info) != MDB_SUCCESS
        || mdb_env_stat(s->env, &stat) != MDB_SUCCESS)
        return rc;
    int fd = openat(s->dir_fd, DATA_FILE, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return rc;
    off_t at = (off_t)(info.me_last_pgno + 1) * stat.ms_psize;
    off_t end = at + (1 << 20);
    while (at < end) {
        ssize_t n = pwrite(fd, zeros, sizeof zeros, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
            rc = errno;
        if (n <= 0)
            break;
        at += n;
    }
    close(fd);
    return rc;
}

/* Snapshots and reads. */

/* Whether the writer, another process, has committed more than once since the reader's commit. */
static int overtaken(struct lmdb_store *s, const struct lmdb_reader *r, bool *ret_overtaken)
{
    MDB_envinfo info;
    int rc = mdb_env_info(s->env, &info);
    if (rc == MDB_SUCCESS)
        *ret_overtaken = info.me_last_txnid > mdb_txn_id(r->txn) + 1;
    return rc;
}

/* No commit of ours has begun or ended since it was taken. */
static bool is_latest(struct lmdb_store *s, const struct lmdb_reader *r)
{
    return r->commits == atomic_load(&s->commits);
}

/* LMDB 0.9 reads the number of the last commit, and then the meta page of that number, which the commit after
 * the next overwrites. A reader that is held up in between would see that one before it is done, and later ones
 * not. So take it again if a commit began meanwhile, or, from another process, if one has got so far. */
static int begin_or_renew(struct lmdb_store *s, struct lmdb_reader *r)
{
    assert(!r->live);
    for (;;) {
        bool again = false;
        r->commits = atomic_load(&s->commits);
        int rc = r->txn ? mdb_txn_renew(r->txn) : mdb_txn_begin(s->env, NULL, MDB_RDONLY, &r->txn);
        if (rc == MDB_SUCCESS && s->read_only)
            rc = overtaken(s, r, &again);
        if (rc != MDB_SUCCESS)
            return rc;
        if (!again && is_latest(s, r)) {
            r->live = true;
            return rc;
        }
        mdb_txn_reset(r->txn);
    }
}

static void reset(struct lmdb_reader *r)
{
    if (r->live)
        mdb_txn_reset(r->txn);
    r->live = false;
}

/* A number for this thread: no other thread's thread-local data lies at the same address. */
static size_t slot_of_thread(void)
{
    static _Thread_local char here;
    return ((uintptr_t)&here >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 61;
}
_Static_assert(READER_SLOTS == 8, "three bits of a hash");

static struct lmdb_reader *take_from(struct lmdb_store *s, size_t i)
{
    return atomic_exchange_explicit(&s->slots[i].reader, NULL, memory_order_acquire);
}

static struct lmdb_reader *take_reader(struct lmdb_store *s)
{
    struct lmdb_reader *r = take_from(s, slot_of_thread());
    if (r)
        return r;
    pthread_mutex_lock(&s->lock);
    r = s->free;
    if (r)
        s->free = r->next;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; !r && i < READER_SLOTS; i++)
        r = take_from(s, i);
    return r;
}

static void give_back_to(struct lmdb_store *s, size_t slot, struct lmdb_reader *r)
{
    struct lmdb_reader *none = NULL;
    if (atomic_compare_exchange_strong_explicit(&s->slots[slot].reader, &none, r, memory_order_release,
                                                memory_order_relaxed))
        return;
    reset(r);
    pthread_mutex_lock(&s->lock);
    r->next = s->free;
    s->free = r;
    pthread_mutex_unlock(&s->lock);
}

static void give_back(struct lmdb_store *s, struct lmdb_reader *r)
{
    if (s->read_only || !is_latest(s, r))
        reset(r);
    give_back_to(s, slot_of_thread(), r);
}

/* S4. A reader that looks into its slot meanwhile finds it empty, and takes another snapshot. */
static void reset_waiting(struct lmdb_store *s)
{
    for (size_t i = 0; i < READER_SLOTS; i++) {
        if (!atomic_load_explicit(&s->slots[i].reader, memory_order_relaxed))
            continue;
        struct lmdb_reader *r = take_from(s, i);
        if (r) {
            reset(r);
            give_back_to(s, i, r);
        }
    }
}

uint32_t lmdb_snapshots_used(struct lmdb_store *s)
{
    uint32_t used = s->max_snapshots;
    pthread_mutex_lock(&s->lock);
    for (const struct lmdb_reader *r = s->free; r; r = r->next)
        used--;
    for (size_t i = 0; i < READER_SLOTS; i++)
        used -= atomic_load_explicit(&s->slots[i].reader, memory_order_acquire) != NULL;
    pthread_mutex_unlock(&s->lock);
    return used;
}

static int store_snapshot(pawl_store *store, pawl_reader **ret_reader)
{
    struct lmdb_store *s = of(store);
    struct lmdb_reader *r = take_reader(s);
    if (!r)
        return PAWL_EBUSY;
    if (!r->live || !is_latest(s, r)) {
        reset(r);
        int rc = begin_or_renew(s, r);
        if (rc != MDB_SUCCESS) {
            give_back(s, r);
            return lmdb_status(rc);
        }
    }
    *ret_reader = &r->reader;
    return PAWL_OK;
}

static void store_release(pawl_store *store, pawl_reader *snapshot)
{
    give_back(of(store), (struct lmdb_reader *)snapshot);
}

static pawl_reader *store_writer(pawl_store *store)
{
    return &of(store)->writer.reader;
}

/* Words go to the store's error only from the writer's thread. */
static int read_failed(pawl_reader *reader, int rc, const char *doing)
{
    struct lmdb_store *s = of(reader->store);
    return lmdb_fail(s, reader == &s->writer.reader ? &s->store.error : NULL, rc, doing);
}

static int txn_of(pawl_reader *reader, MDB_txn **ret_txn)
{
    struct lmdb_store *s = of(reader->store);
    struct lmdb_reader *r = (struct lmdb_reader *)reader;
    if (r == &s->writer && s->write) {
        *ret_txn = s->write;
        return s->broken;
    }
    if (r == &s->writer && !r->live) {
        int rc = begin_or_renew(s, r);
        if (rc != MDB_SUCCESS)
            return read_failed(reader, rc, "cannot read");
    }
    *ret_txn = r->txn;
    return PAWL_OK;
}

static int store_get(pawl_reader *reader, uint8_t space, pawl_bytes key, pawl_bytes *ret_value)
{
    MDB_txn *txn = NULL;
    int status = longkey_check_key(space, key);
    if (status == PAWL_OK)
        status = txn_of(reader, &txn);
    if (status != PAWL_OK)
        return status;
    uint8_t room[PAWL_KEY_BYTES_SORTED];
    struct longkey place = longkey_place(key, room);
    MDB_val k = val(place.stored), v;
    struct lmdb_store *s = of(reader->store);
    bool writing = reader == &s->writer.reader && s->write;
    int rc = writing ? write_cursor_get(&s->cursors[space], txn, s->dbi[space], &k, &v)
                     : mdb_get(txn, s->dbi[space], &k, &v);
    if (rc == MDB_NOTFOUND)
        return PAWL_ENOTFOUND;
    if (rc != MDB_SUCCESS)
        return read_failed(reader, rc, "cannot read");
    if (!longkey_ambiguous(place.stored.size)) {
        *ret_value = bytes_of(v);
        return PAWL_OK;
    }
    status = packed_rows_find(bytes_of(v), key, ret_value);
    return status == PAWL_ECORRUPT ? read_failed(reader, MDB_CORRUPTED, "cannot read a long key") : status;
}

/* A scan under way. Its steps say whether to go on. */
struct scan {
    struct longkey_range range;
    bool reverse;
    pawl_visit_row visit;
    void *arg;
    bool damaged;
};

static bool scan_show(struct scan *scan, struct longkey key, pawl_bytes value)
{
    int side = longkey_range_side(&scan->range, key);
    if (side == 0)
        return scan->visit(scan->arg, key.whole, value);
    return scan->reverse ? side > 0 : side < 0; /* still on the way into the range */
}

static bool scan_packed(struct scan *scan, pawl_bytes stored, pawl_bytes packed)
{
    size_t count = 0;
    struct packed_row row;
    struct decoder d = decoder_over(packed);
    while (packed_rows_next(&d, &row))
        count++;
    scan->damaged = d.bad;
    bool go_on = !d.bad;
    for (size_t i = 0; i < count && go_on; i++) {
        d = decoder_over(packed);
        for (size_t skip = scan->reverse ? count - i : i + 1; skip > 0; skip--)
            packed_rows_next(&d, &row);
        go_on = scan_show(scan, (struct longkey){.stored = stored, .whole = row.key}, row.value);
    }
    return go_on;
}

static bool scan_row(struct scan *scan, pawl_bytes stored, pawl_bytes value)
{
    if (longkey_ambiguous(stored.size))
        return scan_packed(scan, stored, value);
    return scan_show(scan, (struct longkey){.stored = stored, .whole = stored}, value);
}

/* The first row to look at: it may still lie outside of the range, by less than a step of the cursor's. */
static int scan_start(MDB_cursor *cursor, const struct scan *scan, MDB_val *k, MDB_val *v)
{
    pawl_bytes edge = scan->reverse ? scan->range.to.stored : scan->range.from.stored;
    if (edge.size == 0)
        return mdb_cursor_get(cursor, k, v, scan->reverse ? MDB_LAST : MDB_FIRST);
    *k = val(edge);
    int rc = mdb_cursor_get(cursor, k, v, MDB_SET_RANGE);
    return rc == MDB_NOTFOUND && scan->reverse ? mdb_cursor_get(cursor, k, v, MDB_LAST) : rc;
}

static int store_scan(pawl_reader *reader, pawl_range range, bool reverse, pawl_visit_row visit, void *arg)
{
    MDB_txn *txn = NULL;
    MDB_cursor *cursor;
    MDB_val k, v;
    int status = longkey_check_range(range);
    if (status == PAWL_OK)
        status = txn_of(reader, &txn);
    if (status != PAWL_OK)
        return status;
    struct scan scan; /* its room for long keys need not be zero */
    scan.reverse = reverse;
    scan.visit = visit;
    scan.arg = arg;
    scan.damaged = false;
    longkey_range_init(&scan.range, range);
    int rc = mdb_cursor_open(txn, of(reader->store)->dbi[range.space], &cursor);
    if (rc != MDB_SUCCESS)
        return read_failed(reader, rc, "cannot scan");
    for (rc = scan_start(cursor, &scan, &k, &v); rc == MDB_SUCCESS;
         rc = mdb_cursor_get(cursor, &k, &v, reverse ? MDB_PREV : MDB_NEXT))
        if (!scan_row(&scan, bytes_of(k), bytes_of(v)))
            break;
    mdb_cursor_close(cursor);
    if (scan.damaged)
        rc = MDB_CORRUPTED;
    return rc == MDB_SUCCESS || rc == MDB_NOTFOUND ? PAWL_OK : read_failed(reader, rc, "cannot scan");
}

/* Changes. */

/* Before the first write: what the files are worth if the machine stops now, or if they are copied. */
static int mark_written(struct lmdb_store *s)
{
    struct mark mark = {.state = s->mode == PAWL_STORE_FAST ? MARK_DIRTY : MARK_OPEN};
    int status =
        s->mode == PAWL_STORE_FAST
            ? mark_identify(s->dir_fd, DATA_FILE, s->boot[0] ? s->boot : NULL, &mark.identity, &s->store.error)
            : mark_identify_file(s->dir_fd, DATA_FILE, &mark.identity, &s->store.error);
    if (status == PAWL_OK)
        status = mark_write(s->dir_fd, &mark, &s->store.error);
    if (status != PAWL_OK)
        return error_wrap(&s->store.error, status, "cannot begin to write %s", s->dir);
    s->dirty = true;
    return PAWL_OK;
}

/* S5. */
static void forget_dead_readers(struct lmdb_store *s)
{
    int dead;
    if (s->begun++ % READERS_CHECKED == 0)
        (void)mdb_reader_check(s->env, &dead);
}

static int begin_change(struct lmdb_store *s, int checked)
{
    if (checked != PAWL_OK)
        return error_set(&s->store.error, checked, "a space, key, value or range: %s",
                         pawl_status_text(checked));
    if (s->read_only)
        return error_set(&s->store.error, PAWL_EREADONLY, "the store %s is open for reading only", s->dir);
    if (s->broken || s->write)
        return s->broken;
    if (!s->dirty) {
        int status = mark_written(s);
        if (status != PAWL_OK)
            return status;
    }
    reset(&s->writer);
    reset_waiting(s);
    forget_dead_readers(s);
    int rc = mdb_txn_begin(s->env, NULL, 0, &s->write);
    if (rc == MDB_SUCCESS && (rc = reserve_begin(&s->reserve, s->env, s->write)) != 0) {
        mdb_txn_abort(s->write);
        s->write = NULL;
    }
    return rc ? lmdb_fail(s, &s->store.error, rc, "cannot begin to write") : PAWL_OK;
}

static int change_failed(struct lmdb_store *s, int rc, const char *doing)
{
    uint64_t wanted = s->reserve.wanted;
    s->reserve.wanted = 0;
    if (wanted)
        s->broken =
            error_set(&s->store.error, lmdb_status(rc), "%s in %s: %s cannot grow by %" PRIu64 " bytes: %s",
                      doing, s->dir, DATA_FILE, wanted, mdb_strerror(rc));
    else
        s->broken = lmdb_fail(s, &s->store.error, full_or_broken(s, rc), doing);
    return s->broken;
}

/* LMDB's changes, each with its blocks reserved before. */

static int lmdb_put(struct lmdb_store *s, uint8_t space, MDB_cursor *cursor, MDB_val *k, MDB_val *v)
{
    int rc = reserve_put(&s->reserve, s->write, s->dbi[space], space, v->mv_size);
    if (rc)
        return rc;
    if (!cursor)
        return write_cursor_put(&s->cursors[space], s->write, s->dbi[space], k, v);
    write_cursor_close(&s->cursors[space]); /* F1 */
    return mdb_cursor_put(cursor, k, v, MDB_CURRENT);
}

static int lmdb_remove(struct lmdb_store *s, uint8_t space, MDB_cursor *cursor, MDB_val *k)
{
    int rc = reserve_remove(&s->reserve, s->write, s->dbi[space], space);
    if (rc)
        return rc;
    write_cursor_close(&s->cursors[space]); /* F1 */
    return cursor ? mdb_cursor_del(cursor, 0) : mdb_del(s->write, s->dbi[space], k, NULL);
}

static bool drop_key(void *arg, pawl_bytes key)
{
    return bytes_equal(*(pawl_bytes *)arg, key);
}

static bool drop_in_range(void *arg, pawl_bytes key)
{
    uint8_t room[PAWL_KEY_BYTES_SORTED];
    return longkey_range_side(arg, longkey_place(key, room)) == 0;
}

/* Change the rows that are packed under a stored key; without its last row the key is removed. The cursor, if
 * there is one, stands on the key. */
static int edit_packed(struct lmdb_store *s, uint8_t space, MDB_val k, pawl_bytes old, packed_rows_drop drop,
                       void *arg, const struct packed_row *add, MDB_cursor *cursor)
{
    size_t size = old.size + (add ? PACKED_ROW_HEADER + add->key.size + add->value.size : 0);
    if (size > UINT32_MAX)
        return EFBIG;
    uint8_t *memory = mem_new(s->alloc, size, 1);
    if (!memory)
        return ENOMEM;
    struct encoder out = encoder_over(memory, size);
    int rc = packed_rows_edit(old, drop, arg, add, &out) == PAWL_OK ? MDB_SUCCESS : MDB_CORRUPTED;
    MDB_val v = {.mv_size = encoder_size(&out), .mv_data = memory};
    if (rc == MDB_SUCCESS)
        rc = v.mv_size ? lmdb_put(s, space, cursor, &k, &v) : lmdb_remove(s, space, cursor, &k);
    mem_free(s->alloc, memory, size);
    return rc;
}

static int store_put(pawl_store *store, uint8_t space, pawl_bytes key, pawl_bytes value)
{
    struct lmdb_store *s = of(store);
    int status = begin_change(s, longkey_check_row(space, key, value));
    if (status != PAWL_OK)
        return status;
    uint8_t room[PAWL_KEY_BYTES_SORTED];
    struct longkey place = longkey_place(key, room);
    MDB_val k = val(place.stored), v = val(value);
    int rc;
    if (!longkey_ambiguous(place.stored.size)) {
        rc = lmdb_put(s, space, NULL, &k, &v);
    } else {
        MDB_val old = {0};
        rc = mdb_get(s->write, s->dbi[space], &k, &old);
        if (rc == MDB_SUCCESS || rc == MDB_NOTFOUND)
            rc = edit_packed(s, space, k, bytes_of(old), drop_key, &key,
                             &(struct packed_row){.key = key, .value = value}, NULL);
    }
    return rc ? change_failed(s, rc, "cannot put") : PAWL_OK;
}

static int store_remove(pawl_store *store, uint8_t space, pawl_bytes key)
{
    struct lmdb_store *s = of(store);
    int status = begin_change(s, longkey_check_key(space, key));
    if (status != PAWL_OK)
        return status;
    uint8_t room[PAWL_KEY_BYTES_SORTED];
    struct longkey place = longkey_place(key, room);
    MDB_val k = val(place.stored);
    int rc;
    if (!longkey_ambiguous(place.stored.size)) {
        rc = lmdb_remove(s, space, NULL, &k);
    } else {
        pawl_bytes found;
        MDB_val old = {0};
        rc = mdb_get(s->write, s->dbi[space], &k, &old);
        if (rc == MDB_SUCCESS && packed_rows_find(bytes_of(old), key, &found) == PAWL_ENOTFOUND)
            rc = MDB_NOTFOUND;
        if (rc == MDB_SUCCESS)
            rc = edit_packed(s, space, k, bytes_of(old), drop_key, &key, NULL, NULL);
    }
    if (rc == MDB_NOTFOUND)
        return PAWL_ENOTFOUND;
    return rc ? change_failed(s, rc, "cannot remove") : PAWL_OK;
}

/* Removes what of the cursor's row lies in the range. *ret_past: the row and all behind it lie behind the
 * range. */
static int remove_row(struct lmdb_store *s, MDB_cursor *cursor, uint8_t space, struct longkey_range *range,
                      MDB_val k, MDB_val v, bool *ret_past)
{
    pawl_bytes stored = bytes_of(k);
    if (!longkey_ambiguous(stored.size)) {
        int side = longkey_range_side(range, (struct longkey){.stored = stored, .whole = stored});
        *ret_past = side > 0;
        return side == 0 ? lmdb_remove(s, space, cursor, &k) : MDB_SUCCESS;
    }
    *ret_past = range->to.stored.size && bytes_compare(stored, range->to.stored) > 0;
    if (*ret_past)
        return MDB_SUCCESS;
    /* LMDB reads the key again after it has moved the page's bytes, where this one lies. */
    uint8_t key[PAWL_KEY_BYTES_SORTED];
    memcpy(key, k.mv_data, sizeof key);
    return edit_packed(s, space, (MDB_val){sizeof key, key}, bytes_of(v), drop_in_range, range, NULL, cursor);
}

static int store_remove_range(pawl_store *store, pawl_range range)
{
    struct lmdb_store *s = of(store);
    MDB_cursor *cursor;
    MDB_val k, v;
    int status = begin_change(s, longkey_check_range(range));
    if (status != PAWL_OK)
        return status;
    struct scan scan = {0};
    longkey_range_init(&scan.range, range);
    int rc = mdb_cursor_open(s->write, s->dbi[range.space], &cursor);
    if (rc != MDB_SUCCESS)
        return change_failed(s, rc, "cannot remove a range");
    bool past = false;
    rc = scan_start(cursor, &scan, &k, &v);
    while (rc == MDB_SUCCESS && !past) {
        rc = remove_row(s, cursor, range.space, &scan.range, k, v, &past);
        if (rc == MDB_SUCCESS && !past)
            rc = mdb_cursor_get(cursor, &k, &v, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    return rc == MDB_SUCCESS || rc == MDB_NOTFOUND ? PAWL_OK : change_failed(s, rc, "cannot remove a range");
}

static void forget_cursors(struct lmdb_store *s)
{
    for (size_t i = 0; i < PAWL_STORE_SPACES; i++)
        write_cursor_forget(&s->cursors[i]);
}

void lmdb_store_abort(pawl_store *store)
{
    struct lmdb_store *s = of(store);
    if (s->write)
        mdb_txn_abort(s->write);
    s->write = NULL;
    forget_cursors(s);
    s->broken = PAWL_OK;
    reset(&s->writer);
}

static int store_commit(pawl_store *store)
{
    struct lmdb_store *s = of(store);
    if (!s->write)
        return PAWL_OK;
    assert(!s->writer.live); /* S2 */
    if (s->broken) {
        int status = s->broken;
        lmdb_store_abort(store);
        return status;
    }
    atomic_fetch_add(&s->commits, 1);
    int rc = mdb_txn_commit(s->write);
    atomic_fetch_add(&s->commits, 1); /* a snapshot taken meanwhile may be of the commit before */
    s->write = NULL;
    forget_cursors(s);
    return rc ? lmdb_fail(s, &store->error, full_or_broken(s, rc), "cannot commit") : PAWL_OK;
}

const struct pawl_store_ops lmdb_store_ops = {
    .snapshot = store_snapshot,
    .writer = store_writer,
    .release = store_release,
    .get = store_get,
    .scan = store_scan,
    .put = store_put,
    .remove = store_remove,
    .remove_range = store_remove_range,
    .commit = store_commit,
    .abort = lmdb_store_abort,
    .copy = lmdb_store_copy,
    .close = lmdb_store_close,
};

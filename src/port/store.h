/* port/store.h: derived state, an ordered map from bytes to bytes.
 *
 * Everything in a store can be derived from the log again, so a store may be thrown away; it says so when that
 * has happened. It has one writer, the one who opened it, on one thread; and any number of readers on any
 * threads, each with a snapshot that does not change.
 *
 *     put, remove, remove_range ... commit      the writer's transaction begins by itself at the first change
 *     snapshot ── get, scan, digest ── release
 *
 * Reads are synchronous by contract: memory, mapped or not.
 *
 * Spaces. A store has PAWL_STORE_SPACES separate key spaces; one commit covers all of them.
 *
 * Keys. 1 to PAWL_KEY_BYTES_MAX bytes. Keys of up to PAWL_KEY_BYTES_SORTED bytes sort by memcmp, a key before
 * its own extensions. A longer key sorts by its first PAWL_KEY_BYTES_PREFIX bytes; among longer keys that agree
 * in those, the order is fixed but is not memcmp. Bounds of a range obey the same order, so that a scan can be
 * continued from the last key that it showed.
 *
 * Modes. fast: commits are not synced. After a crash of the process the last commit is there; after a loss of
 * power, or if the crash cut the last commit itself short, the store is found unusable at opening, discarded,
 * and opened empty, and says so. durable: commit returns after its data is on the disk; after any crash the
 * last commit is there.
 *
 * Caveats
 *   - Bytes handed out by get and scan are borrowed: from a snapshot until its release, from the writer until
 *     its next change, commit or abort.
 *   - A snapshot that lives long keeps old pages from being reused: release it within tens of milliseconds, and
 *     go on in a fresh one from the last key.
 *   - Do not change the store from inside a scan through the writer. */
#ifndef PAWL_PORT_STORE_H
#define PAWL_PORT_STORE_H

#include <pawl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_STORE_SPACES     4
#define PAWL_KEY_BYTES_MAX    ((size_t)65535)
#define PAWL_KEY_BYTES_SORTED ((size_t)511)
#define PAWL_KEY_BYTES_PREFIX ((size_t)494)
#define PAWL_VALUE_BYTES_MAX  ((size_t)64 << 20)

enum pawl_store_mode { PAWL_STORE_FAST, PAWL_STORE_DURABLE };

typedef struct pawl_store pawl_store;

/* Something to read from: a snapshot, or the writer with its uncommitted changes. One thread at a time. */
typedef struct pawl_reader pawl_reader;

/* Keys from (from) up to, but not including, (to). An empty from is the beginning, an empty to the end. */
typedef struct pawl_range {
    uint8_t space;
    pawl_bytes from;
    pawl_bytes to;
} pawl_range;

/* An order-free sum over the rows of a range: equal rows give equal digests, however they came to be there, and
 * adding or removing a row adds or subtracts its hash. */
typedef struct pawl_digest {
    uint64_t low;
    uint64_t high;
    uint64_t rows;
} pawl_digest;

/* Return false to stop the scan. */
typedef bool (*pawl_visit_row)(void *arg, pawl_bytes key, pawl_bytes value);

struct pawl_store_ops {
    int (*snapshot)(pawl_store *store, pawl_reader **ret_reader);
    pawl_reader *(*writer)(pawl_store *store);
    void (*release)(pawl_store *store, pawl_reader *snapshot);
    int (*get)(pawl_reader *reader, uint8_t space, pawl_bytes key, pawl_bytes *ret_value);
    int (*scan)(pawl_reader *reader, pawl_range range, bool reverse, pawl_visit_row visit, void *arg);
    int (*put)(pawl_store *store, uint8_t space, pawl_bytes key, pawl_bytes value);
    int (*remove)(pawl_store *store, uint8_t space, pawl_bytes key);
    int (*remove_range)(pawl_store *store, pawl_range range);
    int (*commit)(pawl_store *store);
    void (*abort)(pawl_store *store);
    int (*copy)(pawl_store *store, const char *dir, pawl_error *error);
    int (*close)(pawl_store *store);
};

/* An implementation puts these first into its own structs. */
struct pawl_store {
    const struct pawl_store_ops *ops;
    pawl_error error; /* the words of the last failure on the writer's thread */
};

struct pawl_reader {
    pawl_store *store;
};

/* Any thread. PAWL_EBUSY: too many snapshots are open. */
static inline int pawl_store_snapshot(pawl_store *store, pawl_reader **ret_reader)
{
    return store->ops->snapshot(store, ret_reader);
}

/* The writer's own reader, which sees its changes. It belongs to the store: do not release it. */
static inline pawl_reader *pawl_store_writer(pawl_store *store)
{
    return store->ops->writer(store);
}

static inline void pawl_store_release(pawl_store *store, pawl_reader *snapshot)
{
    store->ops->release(store, snapshot);
}

/* PAWL_ENOTFOUND if there is no such key. */
static inline int pawl_store_get(pawl_reader *reader, uint8_t space, pawl_bytes key, pawl_bytes *ret_value)
{
    return reader->store->ops->get(reader, space, key, ret_value);
}

/* Visits the range's rows in order, or in reverse order, until visit says stop. */
static inline int pawl_store_scan(pawl_reader *reader, pawl_range range, bool reverse, pawl_visit_row visit,
                                  void *arg)
{
    return reader->store->ops->scan(reader, range, reverse, visit, arg);
}

/* Insert or replace. PAWL_EFULL: the disk or the map is full; then the transaction can only be aborted. */
static inline int pawl_store_put(pawl_store *store, uint8_t space, pawl_bytes key, pawl_bytes value)
{
    return store->ops->put(store, space, key, value);
}

/* PAWL_ENOTFOUND if there was no such key. */
static inline int pawl_store_remove(pawl_store *store, uint8_t space, pawl_bytes key)
{
    return store->ops->remove(store, space, key);
}

static inline int pawl_store_remove_range(pawl_store *store, pawl_range range)
{
    return store->ops->remove_range(store, range);
}

/* All or nothing. After an error everything since the last commit is gone, as after abort. */
static inline int pawl_store_commit(pawl_store *store)
{
    return store->ops->commit(store);
}

static inline void pawl_store_abort(pawl_store *store)
{
    store->ops->abort(store);
}

/* Write the last commit, synced, into a directory that is empty or not there yet. Any thread; the writer goes
 * on meanwhile. The copy opens as a store of either mode. */
static inline int pawl_store_copy(pawl_store *store, const char *dir, pawl_error *error)
{
    return store->ops->copy(store, dir, error);
}

/* Aborts what is not committed. PAWL_EMISUSE, and still open, while a snapshot is not released. */
static inline int pawl_store_close(pawl_store *store)
{
    return store->ops->close(store);
}

/* The digest of a range, by reading it; and a row's own share, to keep a digest incrementally. */
int pawl_store_digest(pawl_reader *reader, pawl_range range, pawl_digest *ret_digest);
void pawl_digest_add(pawl_digest *digest, pawl_bytes key, pawl_bytes value);
void pawl_digest_subtract(pawl_digest *digest, pawl_bytes key, pawl_bytes value);
bool pawl_digest_equal(const pawl_digest *a, const pawl_digest *b);

#ifdef __cplusplus
}
#endif
#endif

/* core/state/overlay.h: rows that events will write, before the store has them.
 *
 * An event's changes are known before it is durable, and later events must see them: the overlay lies over the
 * store and holds the changes of all events that are staged or not yet applied. They leave it in the order they
 * came, once the store has them, or from the other end when an event is refused.
 *
 *     push ──►  newest ... oldest  ──► remove: applied
 *   remove ◄──                          refused
 *
 * A change carries its part of its table's digest, because its maker has the old row at hand.
 *
 * Invariants
 *   O1  Changes of one hash form a chain, newest first; the map has the newest.
 *   O2  A key's newest change in the chain is its value; if there is none, the store's is. */
#ifndef CORE_STATE_OVERLAY_H
#define CORE_STATE_OVERLAY_H

#include "base/arena.h"
#include "base/map.h"
#include "port/store.h"

/* Its maker owns it, and the bytes it points to, until it has left the overlay. */
struct row_change {
    struct row_change *next; /* of the same event; or NULL */
    pawl_bytes key;
    pawl_bytes value;   /* data is NULL: removed */
    bool waits;         /* there is no value yet: core/state/gathered.h */
    bool marked;        /* core/view/unique.c's own */
    pawl_digest digest; /* to add to the table's; rows is 1, 0 or -1 as a two's complement */

    struct row_change *newer; /* of the same hash */
    struct row_change *older;
    uint64_t hash;
};

/* The changes of one event, in the order they were made. */
struct changes {
    struct row_change *first;
    struct row_change *last;
    size_t count;
};

struct overlay {
    struct map newest; /* hash of the key -> struct row_change * */
    size_t count;
    const pawl_allocator *alloc;
};

void overlay_init(struct overlay *overlay, const pawl_allocator *alloc);
void overlay_release(struct overlay *overlay);

/* Take all off, and keep the memory. */
void overlay_clear(struct overlay *overlay);

/* Put a change on top. PAWL_ENOMEM, and nothing happened. hashed: the change has its key's hash already. */
int overlay_push(struct overlay *overlay, struct row_change *change);
int overlay_push_hashed(struct overlay *overlay, struct row_change *change);

/* A key's newest change, by the key's hash; NULL: there is none. */
uint64_t overlay_hash(pawl_bytes key);
struct row_change *overlay_find(const struct overlay *overlay, pawl_bytes key, uint64_t hash);

/* Take these off: the store has them, or their event was refused. */
void overlay_remove(struct overlay *overlay, const struct changes *changes);

/* Is told of each row before it is put into a store's transaction, so that it can keep rows of its own that
 * follow from it: views do (core/view/tables.h). */
struct put_watch {
    /* was: the row that the store has; data NULL: none. was NULL: nobody has looked. value.data NULL: the row is
     * removed. It may change the store; key and value are not the store's memory, was->data may be. Errors: those
     * of the store, PAWL_ENOMEM: the transaction can only be aborted. */
    int (*put)(struct put_watch *watch, pawl_store *store, pawl_bytes key, const pawl_bytes *was,
               pawl_bytes value);
};

/* Put what they write into the store's transaction. watch: NULL: nobody watches. */
int changes_put(const struct changes *changes, pawl_store *store, struct put_watch *watch);

/* The next older change of the same key, which this one hides; NULL: there is none. */
struct row_change *overlay_hidden(const struct row_change *change);

/* Take a change off; or replace it by another of the same key, which is not on the overlay. */
void overlay_take_off(struct overlay *overlay, struct row_change *change);
void overlay_replace(struct overlay *overlay, struct row_change *change, struct row_change *by);

#define STATE_SCRATCH_BYTES ((size_t)64 * 1024)

/* State as an event sees it: the overlay, if there is one, over a store. */
struct state {
    struct overlay *overlay; /* may be NULL */
    pawl_reader *reader;
    uint8_t *scratch; /* STATE_SCRATCH_BYTES, for the strings that one action of a projector makes */

    /* Called before a scan, which looks at everything on the overlay: an owner that keeps much there may put it
     * into the store's transaction first. May be NULL. */
    int (*before_scan)(void *ctx);
    void *ctx;
};

/* PAWL_ENOTFOUND. The value is borrowed until the store or the overlay changes. */
int state_get(const struct state *state, pawl_bytes key, pawl_bytes *ret_value);

/* Visit rows of a range in order, as pawl_store_scan does. Keys and values are borrowed for the visit. memory
 * is for the scan's own use. visit may not change the state. PAWL_ENOMEM. */
int state_scan(const struct state *state, pawl_bytes from, pawl_bytes to, struct arena *memory,
               pawl_visit_row visit, void *arg);

/* Make a change of event and push it: its digest from what the state has there. key and value are copied into
 * memory; value.data NULL removes the row, which must exist. old: as state_get found it, or data NULL: there
 * was none. */
int state_change(const struct state *state, struct arena *memory, struct changes *changes, pawl_bytes key,
                 pawl_bytes old, pawl_bytes value);

#endif

/* core/view/view_state.h: what a store knows of a view in one partition: what it covers, and what its rows sum
 * up to.
 *
 * A row of VIEW_SPACE, written in the same transaction as the view's rows:
 *
 *      0  version   u8    1
 *      1  flags     u8    1: complete
 *      2  zero      u16
 *      4  base      u32   the base's table
 *      8  digest    u64, u64, u64   of the view's rows: low, high, rows
 *     32  scanned   u64   base rows that its building has read
 *     40  failed    u64   base rows that are left out because an expression fails on them
 *     48  equal     u64   of a unique view: rows whose key equals that of the row before them
 *     56  example   u32 and as many bytes: the key of a base row on which an expression failed
 *     60  why       u32 and as many bytes: how
 *     64  twin      u32 and as many bytes: the key of a row of a unique view that was put beside an equal one
 *     68  coverage        core/view/coverage.h
 *
 * Its key is TABLE_VIEW u32 | partition u64 | view's table u32. */
#ifndef CORE_VIEW_VIEW_STATE_H
#define CORE_VIEW_VIEW_STATE_H

#include "core/state/key.h"
#include "core/view/coverage.h"

#define VIEW_STATE_VERSION 1
#define VIEW_STATE_KEY     ((size_t)16)
#define VIEW_STATE_PREFIX  ((size_t)12)
#define VIEW_WHY_MAX       ((size_t)200)

struct view_state {
    uint16_t partition;
    uint32_t table; /* the view's */
    uint32_t base;
    bool complete; /* the coverage is the whole partition */
    pawl_digest digest;
    uint64_t scanned;
    uint64_t failed;
    uint64_t equal;
    pawl_bytes example; /* its own memory; empty: none */
    char why[VIEW_WHY_MAX];
    pawl_bytes twin; /* likewise; it may have been changed since: whoever uses it looks again */
    struct coverage coverage;
};

void view_state_init(struct view_state *state, const pawl_allocator *alloc, uint16_t partition, uint32_t table,
                     uint32_t base);
void view_state_release(struct view_state *state);

/* From the store. PAWL_ENOTFOUND: there is none, and the state is empty. PAWL_ECORRUPT, PAWL_EVERSION;
 * PAWL_ENOMEM. After an error it is empty. */
int view_state_read(struct view_state *state, pawl_reader *reader, pawl_error *error);

/* Only whether it is complete, without allocating. PAWL_ENOTFOUND; PAWL_ECORRUPT, PAWL_EVERSION; those of the
 * store. */
int view_state_peek(pawl_reader *reader, uint16_t partition, uint32_t table, bool *ret_complete);

/* From the bytes of a row. Errors as above. */
int view_state_decode(struct view_state *state, pawl_bytes bytes, pawl_error *error);

/* Put the row into the store's transaction. PAWL_ENOMEM; those of the store. */
int view_state_write(const struct view_state *state, pawl_store *store);

/* Remember a row on which an expression failed, if none is remembered. PAWL_ENOMEM. */
int view_state_note(struct view_state *state, pawl_bytes base_key, const char *why);

/* No expression fails any more: the row that is remembered is forgotten. */
void view_state_forget(struct view_state *state);

/* A row was put beside an equal one: how many there are, and where one of them is. PAWL_ENOMEM. */
int view_state_note_equal(struct view_state *state, pawl_bytes key);

pawl_bytes view_state_key(uint16_t partition, uint32_t table, uint8_t key[VIEW_STATE_KEY]);

/* Take such a key apart. False: it is no such key. */
bool view_state_key_read(pawl_bytes key, uint16_t *ret_partition, uint32_t *ret_table);

/* The keys of a table that are a partition's. Borrows from and to. */
pawl_range view_partition_range(uint32_t partitions, uint16_t partition, uint8_t space, uint32_t table,
                                uint8_t from[KEY_TOKEN], uint8_t to[KEY_TOKEN]);

#endif

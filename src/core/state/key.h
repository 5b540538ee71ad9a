/* core/state/key.h: where a row of the state lies in its store, and what the system's own rows hold.
 *
 *     key     table u32 | token u64 | workspace u64 | the row's own      all big-endian
 *
 * So a tablet, which is a slice of a table's tokens, is one range, and so is a workspace in it.
 *
 *     table               own key             value
 *     TABLE_WORKSPACE     -                   kind u16, flags u16 (1: frozen), zero u32: the workspace exists
 *     TABLE_WLOG          WLog offset u64     PLog offset u64, last record number u64, hash of the key u64
 *     of CDocs, WDocs     record ID u64       a record, below
 *     of entities         the key's fields    the row (core/schema/row.h)
 *
 * and, with the partition in the token's place and no workspace,
 *
 *     TABLE_PARTITION     -                   how far the state has come: core/state/position.h
 *     TABLE_LANE          lane u16,           how far a generation of a lane has come: core/project/cursor.h
 *                         generation u32
 *     TABLE_VIEW          view's table u32    what a view covers, and what its rows sum up to:
 *                                             core/view/view_state.h
 *
 * A record: version u8 (1), flags u8 (1: active), type u16, container u16, zero u16, parent u64, then its row.
 */
#ifndef CORE_STATE_KEY_H
#define CORE_STATE_KEY_H

#include <assert.h>

#include "base/bytes.h"
#include "base/hash.h"

#define STATE_SPACE 0 /* of a store's key spaces; the sequence storage is 1 */
#define VIEW_SPACE  2 /* rows of views (core/view/view.h), which have keys like all rows, and TABLE_VIEW */

/* Those of a schema's types begin at SCHEMA_TABLE_FIRST. */
enum system_table {
    TABLE_PARTITION = 1,
    TABLE_WORKSPACE = 2,
    TABLE_WLOG = 3,
    TABLE_LANE = 4,
    TABLE_VIEW = 5, /* in VIEW_SPACE */
};

#define KEY_TABLE     ((size_t)4)
#define KEY_TOKEN     ((size_t)12)
#define KEY_WORKSPACE ((size_t)20) /* up to here all keys of a workspace in a table agree */
#define KEY_NUMBERED  ((size_t)28) /* with a number of its own: an ID or an offset */

#define WORKSPACE_BYTES  ((size_t)8)
#define WORKSPACE_FROZEN 1 /* of its flags */
#define WLOG_BYTES       ((size_t)24)
#define RECORD_BYTES     ((size_t)16)
#define RECORD_VERSION   1

static inline pawl_bytes key_of_workspace(uint32_t table, uint64_t wsid, uint8_t key[KEY_WORKSPACE])
{
    put_u32_sorted(key, table);
    put_u64_sorted(key + 4, hash_token(wsid));
    put_u64_sorted(key + 12, wsid);
    return (pawl_bytes){key, KEY_WORKSPACE};
}

/* token: hash_token(wsid), which the caller has. */
static inline pawl_bytes key_at_token(uint32_t table, uint64_t token, uint64_t wsid, uint64_t number,
                                      uint8_t key[KEY_NUMBERED])
{
    put_u32_sorted(key, table);
    put_u64_sorted(key + 4, token);
    put_u64_sorted(key + 12, wsid);
    put_u64_sorted(key + KEY_WORKSPACE, number);
    return (pawl_bytes){key, KEY_NUMBERED};
}

static inline pawl_bytes key_numbered(uint32_t table, uint64_t wsid, uint64_t number, uint8_t key[KEY_NUMBERED])
{
    return key_at_token(table, hash_token(wsid), wsid, number, key);
}

/* What the row of a workspace holds. */
struct workspace_row {
    uint16_t kind;
    bool frozen;
};

static inline pawl_bytes workspace_row_write(struct workspace_row row, uint8_t value[WORKSPACE_BYTES])
{
    put_u16(value, row.kind);
    put_u16(value + 2, row.frozen ? WORKSPACE_FROZEN : 0);
    put_u32(value + 4, 0);
    return (pawl_bytes){value, WORKSPACE_BYTES};
}

/* False: it is no such row. */
static inline bool workspace_row_read(pawl_bytes value, struct workspace_row *ret_row)
{
    if (value.size != WORKSPACE_BYTES)
        return false;
    const uint8_t *at = value.data;
    uint16_t flags = get_u16(at + 2);
    if ((flags & ~WORKSPACE_FROZEN) != 0 || get_u32(at + 4) != 0)
        return false;
    *ret_row = (struct workspace_row){.kind = get_u16(at), .frozen = flags & WORKSPACE_FROZEN};
    return true;
}

/* The end of the range of keys that begin with these bytes: the next bytes of the same length. Never all ones:
 * a table's number is not. */
static inline pawl_bytes key_after_prefix(pawl_bytes prefix, uint8_t *end)
{
    size_t size = prefix.size;
    memcpy(end, prefix.data, size);
    while (size > 0 && ++end[size - 1] == 0)
        size--;
    assert(size > 0);
    return (pawl_bytes){end, size};
}

static inline uint32_t key_table(pawl_bytes key)
{
    assert(key.size >= KEY_TABLE);
    return get_u32_sorted(key.data);
}

static inline uint64_t key_wsid(pawl_bytes key)
{
    assert(key.size >= KEY_WORKSPACE);
    return get_u64_sorted((const uint8_t *)key.data + 12);
}

struct wlog_row {
    uint64_t plog_offset;
    uint64_t record;   /* the last number of the O/W register, as in the event */
    uint64_t key_hash; /* of the idempotency key; 0: the event has none */
};

static inline pawl_bytes wlog_row_write(struct wlog_row row, uint8_t value[WLOG_BYTES])
{
    put_u64(value, row.plog_offset);
    put_u64(value + 8, row.record);
    put_u64(value + 16, row.key_hash);
    return (pawl_bytes){value, WLOG_BYTES};
}

/* False: it is none. */
static inline bool wlog_row_read(pawl_bytes value, struct wlog_row *ret_row)
{
    if (value.size != WLOG_BYTES)
        return false;
    const uint8_t *at = value.data;
    *ret_row =
        (struct wlog_row){.plog_offset = get_u64(at), .record = get_u64(at + 8), .key_hash = get_u64(at + 16)};
    return true;
}

/* Not 0, which means that there is none. */
static inline uint64_t idempotency_hash(pawl_bytes key)
{
    uint64_t hash = hash_checksum(0, key);
    return hash ? hash : 1;
}

struct record_row {
    bool active;
    uint16_t type;
    uint16_t container;
    uint64_t parent;
    pawl_bytes row; /* borrowed from the value */
};

static inline void record_head_write(const struct record_row *record, uint8_t at[RECORD_BYTES])
{
    put_u8(at, RECORD_VERSION);
    put_u8(at + 1, record->active ? 1 : 0);
    put_u16(at + 2, record->type);
    put_u16(at + 4, record->container);
    put_u16(at + 6, 0);
    put_u64(at + 8, record->parent);
}

static inline bool record_row_read(pawl_bytes value, struct record_row *ret_record)
{
    const uint8_t *at = value.data;
    if (value.size < RECORD_BYTES || at[0] != RECORD_VERSION || at[1] > 1 || get_u16(at + 6) != 0)
        return false;
    *ret_record = (struct record_row){.active = at[1] == 1,
                                      .type = get_u16(at + 2),
                                      .container = get_u16(at + 4),
                                      .parent = get_u64(at + 8),
                                      .row = {at + RECORD_BYTES, value.size - RECORD_BYTES}};
    return true;
}

#endif

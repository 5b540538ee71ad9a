/* core/project/operation.h: what one run of one projector wrote, as the entry of an operation log.
 *
 * Number n is offset n of its stream, so the log itself keeps operations dense and in order. Whatever could
 * differ between two runs was decided before it was written: a clause is a list of rows here, a computed set
 * one value for each of them. So applying it needs no expression and no event, only the schema that it names.
 *
 *      0  version    u8    1
 *      1  kind       u8    1: writes, 4: void
 *      2  projector  u16
 *      4  attempt    u32
 *      8  number     u64
 *     16  id         u64 high, u64 low   of the attempt that made it
 *     32  event      u64   offset in the PLog
 *     40  wsid       u64
 *     48  schema     u64   the position that it was made under, and is applied with
 *     56  time       i64   when it was staged
 *     64  writes     u32   how many; of a void, the bytes of its reason, which follow
 *     68  zero       u32
 *     72  writes, one after the other:
 *           kind u8 (1 upsert, 2 update, 3 delete), zero u8, entity u16, rows u32, then the rows:
 *             key u16, cleared u16, row u32: sizes; of cleared: how many
 *             the key's own fields as in the state's key, behind the workspace; the fields that are set, as a
 *             row in which what is not set is null; the places, u16 each, ascending, of the fields that become
 *             null. Of a delete, the key only. Fields of the key are not among those that are set
 *
 * docs/FORMAT.md shows the same for users. */
#ifndef CORE_PROJECT_OPERATION_H
#define CORE_PROJECT_OPERATION_H

#include "base/arena.h"
#include "base/id.h"
#include "core/schema/row.h"

#define OPERATION_VERSION   1
#define OPERATION_HEAD      ((size_t)72)
#define OPERATION_WRITE     ((size_t)8) /* of a write: kind, zero, entity, rows */
#define OPERATION_ROW       ((size_t)8) /* of a row: sizes */
#define OPERATION_BYTES_MAX ((size_t)64 << 20)
#define OPERATION_REASON    ((size_t)200)

enum operation_kind { OPERATION_WRITES = 1, OPERATION_VOID = 4 };

struct operation {
    enum operation_kind kind;
    uint16_t projector;
    uint32_t attempt;
    uint64_t number;
    struct id128 id;
    uint64_t event;
    uint64_t wsid;
    uint64_t schema;
    pawl_wall time;
    uint32_t count;    /* of writes */
    pawl_bytes writes; /* as above; borrowed */
    pawl_bytes reason; /* of a void */
};

/* One write, and one row of it. */
struct operation_write {
    enum action_kind kind;
    uint16_t entity;
    uint32_t rows;
    pawl_bytes bytes; /* of its rows */
};

struct operation_row {
    pawl_bytes key;
    pawl_bytes set; /* a row; empty for a delete */
    pawl_bytes cleared;
    size_t cleared_count;
};

/* Encode it in the arena: a head, then the writes of a maker (below), or the reason, of which OPERATION_REASON
 * bytes are kept. PAWL_ETOOBIG; PAWL_ENOMEM. */
int operation_encode(const struct operation *operation, struct arena *arena, pawl_bytes *ret_bytes);

/* Decode. The whole form is checked, so the next functions cannot fail; whether it fits a schema is not
 * checked. PAWL_EVERSION; PAWL_ECORRUPT, naming the byte. Borrows from bytes. */
int operation_decode(pawl_bytes bytes, struct operation *ret_operation, pawl_error *error);

/* *cursor begins as 0. False: there is none left. */
bool operation_next_write(const struct operation *operation, size_t *cursor, struct operation_write *ret_write);
bool operation_next_row(const struct operation_write *write, size_t *cursor, struct operation_row *ret_row);
uint16_t operation_cleared(const struct operation_row *row, size_t i);

/* Walk over the rows of all writes; begin with zeros. False: there is none left. */
struct operation_walk {
    size_t at;
    uint32_t rows; /* left of the present write, whose kind and entity are: */
    enum action_kind kind;
    uint16_t entity;
};
bool operation_walk(const struct operation *operation, struct operation_walk *walk,
                    struct operation_row *ret_row);

/* Puts writes together, in memory of its own, up to OPERATION_BYTES_MAX. If they grow larger, or there is no
 * memory, it remembers the failure, and operation_maker_writes returns it. */
struct operation_maker {
    const pawl_allocator *alloc;
    uint8_t *data;
    size_t size, room;
    uint32_t count;       /* of writes with rows */
    uint32_t rows;        /* of the open write */
    size_t write;         /* where it begins */
    struct value *values; /* for one row */
    size_t values_room;
    int status;
};

void operation_maker_init(struct operation_maker *maker, const pawl_allocator *alloc);
void operation_maker_release(struct operation_maker *maker);
void operation_maker_reset(struct operation_maker *maker);

/* Begin a write; rows that follow belong to it. A write without rows is left out. */
void operation_maker_write(struct operation_maker *maker, enum action_kind kind, uint16_t entity);

/* Add a row. values: by place, field_count of them. set: a bit for each field that the row sets; one that is
 * set to null is cleared. Of a delete both are NULL. */
void operation_maker_row(struct operation_maker *maker, pawl_bytes key, const struct value *values,
                         const uint64_t *set, size_t field_count);

/* The writes made so far, or the failure: PAWL_ETOOBIG, PAWL_ENOMEM. Borrowed until the maker is changed. */
int operation_maker_writes(const struct operation_maker *maker, pawl_bytes *ret_writes, uint32_t *ret_count);

#endif

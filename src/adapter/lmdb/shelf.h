/* adapter/lmdb/shelf.h: the rows that share one stored key.
 *
 * Where a stored key can stand for several keys (port/longkey.h), LMDB's value is a shelf: each row as
 *
 *     u16 key size │ u32 value size │ key │ value
 *
 * sorted by key. Nearly always there is one. Pure functions over bytes; a shelf that does not decode is
 * PAWL_ECORRUPT. */
#ifndef ADAPTER_LMDB_SHELF_H
#define ADAPTER_LMDB_SHELF_H

#include "base/bytes.h"

#define SHELF_ROW_HEADER ((size_t)6)

struct shelf_row {
    pawl_bytes key;
    pawl_bytes value;
};

/* The next row from a decoder over the shelf; false at the end, or if the shelf is damaged (then d->bad). */
bool shelf_next(struct decoder *d, struct shelf_row *ret_row);

/* PAWL_ENOTFOUND if there is no such key. The value is borrowed from the shelf. */
int shelf_find(pawl_bytes shelf, pawl_bytes key, pawl_bytes *ret_value);

/* Write the shelf anew: without the rows that drop says, and with the row to add, if there is one, in its
 * place. out needs room for the old shelf and the new row. */
typedef bool (*shelf_drop)(void *arg, pawl_bytes key);
int shelf_edit(pawl_bytes shelf, shelf_drop drop, void *arg, const struct shelf_row *add, struct encoder *out);

#endif

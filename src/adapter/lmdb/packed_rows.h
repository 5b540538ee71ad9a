/* adapter/lmdb/packed_rows.h: several rows in one value, because they share one stored key.
 *
 * Where a stored key can stand for several keys (port/longkey.h), LMDB's value holds all their rows, each as
 *
 *     u16 key size │ u32 value size │ key │ value
 *
 * sorted by key. Nearly always there is one row. Pure functions over bytes; bytes that do not decode are
 * PAWL_ECORRUPT. */
#ifndef ADAPTER_LMDB_PACKED_ROWS_H
#define ADAPTER_LMDB_PACKED_ROWS_H

#include "base/bytes.h"

#define PACKED_ROW_HEADER ((size_t)6)

struct packed_row {
    pawl_bytes key;
    pawl_bytes value;
};

/* The next row from a decoder over the packed rows; false at the end, or if they are damaged (then d->bad). */
bool packed_rows_next(struct decoder *d, struct packed_row *ret_row);

/* PAWL_ENOTFOUND if there is no such key. The value is borrowed from the packed rows. */
int packed_rows_find(pawl_bytes packed, pawl_bytes key, pawl_bytes *ret_value);

/* Write the rows anew: without those that drop returns true for, and with the row to add, if there is one, in
 * its place. out needs room for the old rows and the new one. */
typedef bool (*packed_rows_drop)(void *arg, pawl_bytes key);
int packed_rows_edit(pawl_bytes packed, packed_rows_drop drop, void *arg, const struct packed_row *add,
                     struct encoder *out);

#endif

/* adapter/lmdb/write_cursor.h: where the writer last looked in a space, while its transaction is open.
 *
 * Without it, to read a row and then write it would make LMDB search twice, and to go through rows in the order
 * of their keys would make it begin at the root each time. The write cursor keeps one of LMDB's cursors open:
 * the next search begins on its page, and a put of the row that was read last needs no search.
 *
 *   F1. All changes to the space go through the write cursor, or it is closed first: LMDB would otherwise have
 *       to move it when another change shifts the rows on its page.
 *   F2. It stands on a row only from a read to the next change.
 *
 * LMDB frees its cursor with the transaction; the write cursor forgets it then. */
#ifndef ADAPTER_LMDB_WRITE_CURSOR_H
#define ADAPTER_LMDB_WRITE_CURSOR_H

#include <lmdb.h>

#include "port/store.h"

struct write_cursor {
    MDB_cursor *cursor; /* NULL: closed */
    size_t key_size;    /* of the row that it stands on; 0: on none */
    uint8_t key[PAWL_KEY_BYTES_SORTED];
};

/* LMDB's errors. get: as mdb_get. put: as mdb_put. */
int write_cursor_get(struct write_cursor *cursor, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *ret_value);
int write_cursor_put(struct write_cursor *cursor, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value);

/* Before the space is changed in any other way. */
void write_cursor_close(struct write_cursor *cursor);

/* The transaction is over, and LMDB has freed the cursor. */
void write_cursor_forget(struct write_cursor *cursor);

#endif

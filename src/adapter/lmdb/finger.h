/* adapter/lmdb/finger.h: where the writer last looked in a space, while its transaction is open.
 *
 * Who reads a row and then writes it would have LMDB search twice, and who goes through rows in the order of
 * their keys would have it begin at the root each time. A finger keeps LMDB's cursor: the next search begins on
 * its page, and a put of the very row that was read last needs none.
 *
 *   F1. The finger is the only one to change its space, or is lifted first: LMDB would otherwise have to move a
 *       cursor that somebody else's change shifts.
 *   F2. It stands on a row only from a read to the next change.
 *
 * LMDB frees its cursor with the transaction, so the finger is dropped then. */
#ifndef ADAPTER_LMDB_FINGER_H
#define ADAPTER_LMDB_FINGER_H

#include <lmdb.h>

#include "port/store.h"

struct finger {
    MDB_cursor *cursor; /* NULL: lifted */
    size_t key_size;    /* of the row that it stands on; 0: on none */
    uint8_t key[PAWL_KEY_BYTES_SORTED];
};

/* LMDB's errors. get: as mdb_get. put: as mdb_put. */
int finger_get(struct finger *finger, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *ret_value);
int finger_put(struct finger *finger, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value);

/* Before another changes the space. */
void finger_lift(struct finger *finger);

/* The transaction is over. */
void finger_drop(struct finger *finger);

#endif

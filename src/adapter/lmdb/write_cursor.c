#include "adapter/lmdb/write_cursor.h"

#include <string.h>

static int open_cursor(struct write_cursor *w, MDB_txn *txn, MDB_dbi dbi)
{
    return w->cursor ? MDB_SUCCESS : mdb_cursor_open(txn, dbi, &w->cursor);
}

int write_cursor_get(struct write_cursor *w, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *ret_value)
{
    MDB_val k = *key;
    int rc = open_cursor(w, txn, dbi);
    w->key_size = 0;
    if (rc == MDB_SUCCESS)
        rc = mdb_cursor_get(w->cursor, &k, ret_value, MDB_SET);
    if (rc == MDB_SUCCESS) {
        memcpy(w->key, key->mv_data, key->mv_size);
        w->key_size = key->mv_size;
    }
    return rc;
}

int write_cursor_put(struct write_cursor *w, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value)
{
    bool here = w->key_size == key->mv_size && memcmp(w->key, key->mv_data, key->mv_size) == 0;
    int rc = open_cursor(w, txn, dbi);
    w->key_size = 0;
    return rc == MDB_SUCCESS ? mdb_cursor_put(w->cursor, key, value, here ? MDB_CURRENT : 0) : rc;
}

void write_cursor_close(struct write_cursor *w)
{
    if (w->cursor)
        mdb_cursor_close(w->cursor);
    write_cursor_forget(w);
}

void write_cursor_forget(struct write_cursor *w)
{
    w->cursor = NULL;
    w->key_size = 0;
}

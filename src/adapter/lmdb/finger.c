#include "adapter/lmdb/finger.h"

#include <string.h>

static int lay(struct finger *f, MDB_txn *txn, MDB_dbi dbi)
{
    return f->cursor ? MDB_SUCCESS : mdb_cursor_open(txn, dbi, &f->cursor);
}

int finger_get(struct finger *f, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *ret_value)
{
    MDB_val k = *key;
    int rc = lay(f, txn, dbi);
    f->key_size = 0;
    if (rc == MDB_SUCCESS)
        rc = mdb_cursor_get(f->cursor, &k, ret_value, MDB_SET);
    if (rc == MDB_SUCCESS) {
        memcpy(f->key, key->mv_data, key->mv_size);
        f->key_size = key->mv_size;
    }
    return rc;
}

int finger_put(struct finger *f, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value)
{
    bool here = f->key_size == key->mv_size && memcmp(f->key, key->mv_data, key->mv_size) == 0;
    int rc = lay(f, txn, dbi);
    f->key_size = 0;
    return rc == MDB_SUCCESS ? mdb_cursor_put(f->cursor, key, value, here ? MDB_CURRENT : 0) : rc;
}

void finger_lift(struct finger *f)
{
    if (f->cursor)
        mdb_cursor_close(f->cursor);
    finger_drop(f);
}

void finger_drop(struct finger *f)
{
    f->cursor = NULL;
    f->key_size = 0;
}

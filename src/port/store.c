#include "port/store.h"

#include "base/hash.h"

/* Arithmetic modulo 2^128. */
void pawl_digest_add(pawl_digest *digest, pawl_bytes key, pawl_bytes value)
{
    struct hash128 h = hash_row(key, value);
    digest->low += h.low;
    digest->high += h.high + (digest->low < h.low);
    digest->rows++;
}

void pawl_digest_subtract(pawl_digest *digest, pawl_bytes key, pawl_bytes value)
{
    struct hash128 h = hash_row(key, value);
    digest->high -= h.high + (digest->low < h.low);
    digest->low -= h.low;
    digest->rows--;
}

bool pawl_digest_equal(const pawl_digest *a, const pawl_digest *b)
{
    return a->low == b->low && a->high == b->high && a->rows == b->rows;
}

static bool add_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    pawl_digest_add(arg, key, value);
    return true;
}

int pawl_store_digest(pawl_reader *reader, pawl_range range, pawl_digest *ret_digest)
{
    pawl_digest digest = {0};
    int status = pawl_store_scan(reader, range, false, add_row, &digest);
    if (status == PAWL_OK)
        *ret_digest = digest;
    return status;
}

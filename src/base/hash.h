/* base/hash.h: the one hash of Pawl, XXH3, under the names of what it is used for. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <pawl/types.h>

struct hash128 {
    uint64_t low;
    uint64_t high;
};

/* A checksum: equal seeds and bytes give equal sums on every machine, for ever: they are in files. */
uint64_t hash_checksum(uint64_t seed, pawl_bytes bytes);

/* 128 bits of a key and a value, as one row. Not the hash of their concatenation: ("ab","c") != ("a","bc"). */
struct hash128 hash_row(pawl_bytes key, pawl_bytes value);

struct hash128 hash_wide(pawl_bytes bytes);

/* Let a digest cover these bytes too, behind what it covers already. */
void hash_chain(struct hash128 *digest, pawl_bytes bytes);

/* The token of a workspace: XXH3_64 of its eight little-endian bytes. Where it lives, in every cluster. */
uint64_t hash_token(uint64_t wsid);

/* For tables in memory only; not stored. */
static inline uint64_t hash_mix(uint64_t v)
{
    v ^= v >> 32;
    v *= UINT64_C(0xd6e8feb86659fd93);
    v ^= v >> 32;
    v *= UINT64_C(0xd6e8feb86659fd93);
    v ^= v >> 32;
    return v;
}

#endif

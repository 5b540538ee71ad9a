#include "base/hash.h"

#define XXH_INLINE_ALL /* short inputs are the rule here, and a call would be half their cost */
#include <xxhash.h>

#include "base/bytes.h"

uint64_t hash_checksum(uint64_t seed, pawl_bytes bytes)
{
    return XXH3_64bits_withSeed(bytes.data, bytes.size, seed);
}

static struct hash128 from_xxh(XXH128_hash_t h)
{
    return (struct hash128){.low = h.low64, .high = h.high64};
}

struct hash128 hash_wide(pawl_bytes bytes)
{
    return from_xxh(XXH3_128bits(bytes.data, bytes.size));
}

struct hash128 hash_row(pawl_bytes key, pawl_bytes value)
{
    /* The value is hashed under the key's hash and length: one pass each, no copy. */
    XXH64_hash_t seed = XXH3_64bits_withSeed(key.data, key.size, key.size);
    XXH128_hash_t k = XXH3_128bits(key.data, key.size);
    XXH128_hash_t v = XXH3_128bits_withSeed(value.data, value.size, seed);
    return (struct hash128){.low = k.low64 ^ v.low64, .high = k.high64 + v.high64};
}

uint64_t hash_token(uint64_t wsid)
{
    uint8_t bytes[8];
    put_u64(bytes, wsid);
    return XXH3_64bits(bytes, sizeof bytes);
}

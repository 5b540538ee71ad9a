#include "base/hash.h"

#define XXH_INLINE_ALL /* short inputs are the rule here, and a call would be half their cost */
#include <xxhash.h>

#include "base/bytes.h"

/* XXH3 makes a secret of the seed, and for more than 240 bytes does so in every call, a sixth of the time of a
 * record of a few hundred. A thread mostly sums with one seed, its journal's, so it keeps the last secret. The
 * sums are the same. */
uint64_t hash_checksum(uint64_t seed, pawl_bytes bytes)
{
    static _Thread_local struct {
        uint64_t seed; /* 0: none yet; and with seed 0 XXH3 needs none */
        uint8_t secret[XXH3_SECRET_DEFAULT_SIZE];
    } last;
    if (seed == 0 || bytes.size <= XXH3_MIDSIZE_MAX)
        return XXH3_64bits_withSeed(bytes.data, bytes.size, seed);
    if (seed != last.seed) {
        XXH3_generateSecret_fromSeed(last.secret, seed);
        last.seed = seed;
    }
    return XXH3_64bits_withSecretandSeed(bytes.data, bytes.size, last.secret, sizeof last.secret, seed);
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

/* core/project/reads_impl.h: how what is read and what is written meet: as hashes.
 *
 * A row is the hash of its key, as the overlay has it. A workspace's rows in a table have one too, from which
 * follow those of what may happen to them as a whole. */
#ifndef CORE_PROJECT_READS_IMPL_H
#define CORE_PROJECT_READS_IMPL_H

#include "base/hash.h"
#include "core/state/key.h"

static inline uint64_t hash_of_row(pawl_bytes key)
{
    return hash_checksum(0, key);
}

/* key: any that begins with table and workspace. */
static inline uint64_t hash_of_rows(pawl_bytes key)
{
    assert(key.size >= KEY_WORKSPACE);
    return hash_checksum(1, (pawl_bytes){key.data, KEY_WORKSPACE});
}

/* One was inserted or deleted; any field of one was set; this field of one was set. */
static inline uint64_t hash_of_membership(uint64_t rows)
{
    return hash_mix(rows + 1);
}

static inline uint64_t hash_of_any_field(uint64_t rows)
{
    return hash_mix(rows + 2);
}

static inline uint64_t hash_of_field(uint64_t rows, size_t place)
{
    return hash_mix(rows + 3 + place);
}

#endif

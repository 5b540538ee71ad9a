/* core/project/reads_impl.h: reads and writes are compared by hash; which hashes there are.
 *
 * A row has the hash of its key, as the overlay has it. The rows of a workspace in a table have one hash
 * together, from which the hashes of changes to any of them are made. */
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

/* membership: a row was inserted or deleted. any_field: some field of a row was set. field: this field of a row
 * was set. */
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

/* One of 64 bits for each hash. */
static inline uint64_t mark_of(uint64_t hash)
{
    return UINT64_C(1) << (hash & 63);
}

#endif

/* base/partition_set.h: which partitions live on which shard.
 *
 * Partitions are dealt out to the shards in turn: with 3 shards, shard 1 has 1, 4, 7, ... No other file knows
 * that; all others ask here. */
#ifndef BASE_PARTITION_SET_H
#define BASE_PARTITION_SET_H

#include <assert.h>

#include <pawl/types.h>

/* The partitions of one shard, in ascending order. */
struct partition_set {
    uint32_t first;
    uint32_t step;
    uint32_t count;
};

/* shards: at least 1. */
static inline uint32_t partition_shard(uint16_t partition, uint32_t shards)
{
    return partition % shards;
}

/* shard is below shards, and shards is at most partitions: each shard has at least one. */
static inline struct partition_set partition_set_of(uint32_t shard, uint32_t partitions, uint32_t shards)
{
    assert(shard < shards && shards <= partitions);
    return (struct partition_set){
        .first = shard, .step = shards, .count = (partitions - shard + shards - 1) / shards};
}

/* index is below the count. */
static inline uint16_t partition_set_at(const struct partition_set *set, size_t index)
{
    assert(index < set->count);
    return (uint16_t)(set->first + index * set->step);
}

/* The place of a partition that is in the set. */
static inline size_t partition_set_index(const struct partition_set *set, uint16_t partition)
{
    assert(partition >= set->first && (partition - set->first) % set->step == 0);
    return (partition - set->first) / set->step;
}

#endif

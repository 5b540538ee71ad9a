/* core/tablet/tablet.h: tablets, and where they lie.
 *
 * A tablet is a slice of a partition's tokens, over all tables: a contiguous range of keys in each of them
 * (core/state/key.h). Their number T is a power of two, from the number of partitions P to
 * TABLETS_PER_PARTITION_MAX times that. The top bits of a token are its tablet, and the top bits of that its
 * partition; so no row moves when tablets are split or merged.
 *
 *     split: n ──► 2n, 2n + 1        merge: n ──► n / 2        always the whole map
 *
 * The home of a partition is the replica that takes its commands: a shard of a node. tablet_map_home alone
 * knows where that is. */
#ifndef CORE_TABLET_TABLET_H
#define CORE_TABLET_TABLET_H

#include "base/partition_set.h"
#include "core/state/key.h"
#include "port/store.h"

#define TABLETS_PER_PARTITION_MAX ((uint32_t)64)

struct tablet_map {
    uint32_t partitions; /* P; fixed */
    uint32_t tablets;    /* T */
    uint32_t resize_to;  /* an operation is under way: T will be this; 0: none is */
    uint32_t nodes;      /* their IDs are 1, 2, 3, ... */
    uint32_t shards;     /* of each node */
};

/* A shard of a node. */
struct replica {
    uint32_t node;
    uint32_t shard;
};

static inline bool replica_equal(struct replica a, struct replica b)
{
    return a.node == b.node && a.shard == b.shard;
}

/* P tablets, one a partition. */
void tablet_map_init(struct tablet_map *map, uint32_t partitions, uint32_t nodes, uint32_t shards);

uint32_t tablet_of_token(uint32_t tablets, uint64_t token);
uint16_t tablet_partition(const struct tablet_map *map, uint32_t tablet);
struct replica tablet_map_home(const struct tablet_map *map, uint16_t partition);

/* The first and the last token of a tablet. */
uint64_t tablet_first_token(uint32_t tablets, uint32_t tablet);
uint64_t tablet_last_token(uint32_t tablets, uint32_t tablet);

/* A tablet's keys in a table. Borrows from and to. */
pawl_range tablet_range(uint32_t tablets, uint32_t tablet, uint32_t table, uint8_t from[KEY_TOKEN],
                        uint8_t to[KEY_TOKEN]);

/* Whether the map may get so many tablets: twice or half as many as now, within the bounds. PAWL_EINVAL, with
 * words; PAWL_EBUSY: an operation is under way. */
int tablet_map_check_resize(const struct tablet_map *map, uint32_t to, pawl_error *error);

#endif

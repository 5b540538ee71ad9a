#include "core/tablet/tablet.h"

#include <assert.h>

#include "base/error.h"
#include "base/id.h"

static unsigned bits_of(uint32_t power)
{
    assert(power != 0 && (power & (power - 1)) == 0);
    return (unsigned)__builtin_ctz(power);
}

void tablet_map_init(struct tablet_map *map, uint32_t partitions, uint32_t nodes, uint32_t shards)
{
    assert(partitions >= 1 && partitions <= PARTITIONS_MAX && (partitions & (partitions - 1)) == 0);
    assert(nodes >= 1 && shards >= 1);
    *map =
        (struct tablet_map){.partitions = partitions, .tablets = partitions, .nodes = nodes, .shards = shards};
}

uint32_t tablet_of_token(uint32_t tablets, uint64_t token)
{
    /* In two steps, because one tablet would be a shift by 64. */
    return (uint32_t)(token >> 1 >> (63 - bits_of(tablets)));
}

uint16_t tablet_partition(const struct tablet_map *map, uint32_t tablet)
{
    assert(tablet < map->tablets);
    return (uint16_t)(tablet >> (bits_of(map->tablets) - bits_of(map->partitions)));
}

/* With one node, the shard is the one that partition_shard says of the partition itself. */
struct replica tablet_map_home(const struct tablet_map *map, uint16_t partition)
{
    assert(partition < map->partitions);
    uint16_t place = (uint16_t)(partition / map->nodes); /* among those of the node */
    return (struct replica){.node = 1 + partition % map->nodes, .shard = partition_shard(place, map->shards)};
}

uint64_t tablet_first_token(uint32_t tablets, uint32_t tablet)
{
    assert(tablet < tablets);
    return (uint64_t)tablet << 1 << (63 - bits_of(tablets));
}

uint64_t tablet_last_token(uint32_t tablets, uint32_t tablet)
{
    return tablet_first_token(tablets, tablet) + (UINT64_MAX >> bits_of(tablets));
}

pawl_range tablet_range(uint32_t tablets, uint32_t tablet, uint32_t table, uint8_t from[KEY_TOKEN],
                        uint8_t to[KEY_TOKEN])
{
    /* Behind the last token there is no token: the range ends where the next table begins. */
    bool last = tablet + 1 == tablets;
    put_u32_sorted(from, table);
    put_u64_sorted(from + 4, tablet_first_token(tablets, tablet));
    put_u32_sorted(to, last ? table + 1 : table);
    put_u64_sorted(to + 4, last ? 0 : tablet_first_token(tablets, tablet + 1));
    return (pawl_range){.space = STATE_SPACE, .from = {from, KEY_TOKEN}, .to = {to, KEY_TOKEN}};
}

int tablet_map_check_resize(const struct tablet_map *map, uint32_t to, pawl_error *error)
{
    if (map->resize_to)
        return error_set(error, PAWL_EBUSY, "the tablets are being resized from %u to %u already", map->tablets,
                         map->resize_to);
    uint32_t max = map->partitions * TABLETS_PER_PARTITION_MAX;
    if (to < map->partitions || to > max)
        return error_set(error, PAWL_EINVAL, "%u partitions can have from %u to %u tablets, not %u",
                         map->partitions, map->partitions, max, to);
    if (to != map->tablets * 2 && to * 2 != map->tablets)
        return error_set(error, PAWL_EINVAL,
                         "%u tablets can become twice or half as many at a time, and not %u", map->tablets, to);
    return PAWL_OK;
}

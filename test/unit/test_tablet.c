#include "test/lib/test.h"

#include "base/id.h"
#include "core/state/position.h"
#include "core/tablet/tablet.h"

static const uint32_t powers[] = {1, 2, 4, 64, 1024, 65536};

#define POWERS (sizeof powers / sizeof powers[0])

TEST(a_new_map_has_one_tablet_a_partition)
{
    struct tablet_map map;
    tablet_map_init(&map, 16, 3, 2);
    assert_int_equal(map.partitions, 16);
    assert_int_equal(map.tablets, 16);
    assert_int_equal(map.resize_to, 0);
    for (uint32_t tablet = 0; tablet < 16; tablet++)
        assert_int_equal(tablet_partition(&map, tablet), tablet);
}

TEST(with_one_node_the_home_is_the_shard_of_the_partition)
{
    for (uint32_t shards = 1; shards <= 64; shards++) {
        struct tablet_map map;
        tablet_map_init(&map, 64, 1, shards);
        for (uint16_t partition = 0; partition < 64; partition++) {
            struct replica home = tablet_map_home(&map, partition);
            assert_true(replica_equal(home, (struct replica){1, partition_shard(partition, shards)}));
        }
    }
}

/* Nodes and shards that do not divide the partitions, too. */
TEST(partitions_are_dealt_out_evenly_to_nodes_and_on_each_to_its_shards)
{
    enum { NODES_MAX = 7, SHARDS_MAX = 5 };
    const uint16_t partitions = 64;
    for (uint32_t nodes = 1; nodes <= NODES_MAX; nodes++) {
        for (uint32_t shards = 1; shards <= SHARDS_MAX; shards++) {
            struct tablet_map map;
            uint32_t has[NODES_MAX][SHARDS_MAX] = {0}, least = partitions, most = 0;
            tablet_map_init(&map, partitions, nodes, shards);
            for (uint16_t partition = 0; partition < partitions; partition++) {
                struct replica home = tablet_map_home(&map, partition);
                assert_int_equal(home.node, 1 + partition % nodes);
                assert_true(home.shard < shards);
                has[home.node - 1][home.shard]++;
            }
            for (size_t i = 0; i < (size_t)nodes * shards; i++) {
                uint32_t n = has[i / shards][i % shards];
                least = n < least ? n : least;
                most = n > most ? n : most;
            }
            assert_true(most - least <= 2 && least > 0);
        }
    }
    struct tablet_map map;
    tablet_map_init(&map, 8, 2, 2);
    assert_true(replica_equal(tablet_map_home(&map, 0), (struct replica){1, 0}));
    assert_true(replica_equal(tablet_map_home(&map, 1), (struct replica){2, 0}));
    assert_true(replica_equal(tablet_map_home(&map, 2), (struct replica){1, 1}));
    assert_true(replica_equal(tablet_map_home(&map, 7), (struct replica){2, 1}));
}

TEST(the_tokens_of_the_tablets_follow_each_other_without_a_gap)
{
    for (size_t i = 0; i < POWERS; i++) {
        uint32_t tablets = powers[i];
        assert_int_equal(tablet_first_token(tablets, 0), 0);
        assert_true(tablet_last_token(tablets, tablets - 1) == UINT64_MAX);
        for (uint32_t tablet = 0; tablet < tablets; tablet++) {
            uint64_t first = tablet_first_token(tablets, tablet), last = tablet_last_token(tablets, tablet);
            assert_true(first < last);
            assert_int_equal(tablet_of_token(tablets, first), tablet);
            assert_int_equal(tablet_of_token(tablets, last), tablet);
            if (tablet + 1 < tablets)
                assert_true(last + 1 == tablet_first_token(tablets, tablet + 1));
        }
    }
}

TEST(a_tablet_lies_in_the_partition_of_its_tokens)
{
    uint64_t random = test_seed(1);
    for (uint32_t partitions = 1; partitions <= PARTITIONS_MAX; partitions *= 4) {
        struct tablet_map map;
        tablet_map_init(&map, partitions, 1, 1);
        for (map.tablets = partitions; map.tablets <= partitions * TABLETS_PER_PARTITION_MAX;
             map.tablets *= 2) {
            for (int i = 0; i < 200; i++) {
                uint64_t token = test_random(&random);
                uint32_t tablet = tablet_of_token(map.tablets, token);
                assert_int_equal(tablet_partition(&map, tablet), partition_of(token, partitions));
                assert_int_equal(tablet_of_token(map.tablets * 2, token) / 2, tablet);
            }
        }
    }
}

static void assert_same_range(pawl_range a, pawl_range b)
{
    assert_int_equal(a.space, b.space);
    assert_true(bytes_equal(a.from, b.from) && bytes_equal(a.to, b.to));
}

TEST(with_a_tablet_a_partition_their_ranges_are_the_same)
{
    for (size_t i = 0; i < POWERS; i++) {
        uint8_t from[2][KEY_TOKEN], to[2][KEY_TOKEN];
        for (uint32_t n = 0; n < powers[i]; n++) {
            struct position position = {.partition = (uint16_t)n};
            assert_same_range(tablet_range(powers[i], n, 300, from[0], to[0]),
                              position_range(&position, powers[i], 300, from[1], to[1]));
        }
        pawl_range last = tablet_range(powers[i], powers[i] - 1, 300, from[0], to[0]);
        assert_int_equal(get_u32_sorted(last.to.data), 301);
        assert_int_equal(get_u64_sorted((const uint8_t *)last.to.data + 4), 0);
    }
}

TEST(the_ranges_of_two_halves_are_the_range_of_the_whole)
{
    for (uint32_t tablet = 0; tablet < 64; tablet++) {
        uint8_t from[3][KEY_TOKEN], to[3][KEY_TOKEN];
        pawl_range whole = tablet_range(64, tablet, 300, from[0], to[0]);
        pawl_range low = tablet_range(128, tablet * 2, 300, from[1], to[1]);
        pawl_range high = tablet_range(128, tablet * 2 + 1, 300, from[2], to[2]);
        assert_true(bytes_equal(whole.from, low.from) && bytes_equal(low.to, high.from)
                    && bytes_equal(high.to, whole.to));
    }
}

TEST(a_row_lies_in_the_range_of_its_tablet)
{
    uint64_t random = test_seed(2);
    for (int i = 0; i < 1000; i++) {
        uint8_t key[KEY_NUMBERED], from[KEY_TOKEN], to[KEY_TOKEN];
        uint64_t wsid = test_random(&random);
        pawl_bytes row = key_numbered(300, wsid, test_random(&random), key);
        uint32_t tablets = powers[test_below(&random, POWERS)];
        pawl_range range = tablet_range(tablets, tablet_of_token(tablets, hash_token(wsid)), 300, from, to);
        assert_true(bytes_compare(range.from, row) <= 0 && bytes_compare(row, range.to) < 0);
    }
}

TEST(a_map_can_have_twice_or_half_as_many_tablets_within_the_bounds)
{
    struct tablet_map map;
    pawl_error error = {0};
    tablet_map_init(&map, 4, 1, 2);
    assert_ok(tablet_map_check_resize(&map, 8, &error));
    assert_status(tablet_map_check_resize(&map, 2, &error), PAWL_EINVAL);
    assert_contains(error.text, "4 partitions can have from 4 to 256 tablets, not 2");
    static const uint32_t wrong[] = {0, 1, 3, 4, 5, 7, 9, 16, 256, 512, UINT32_MAX, UINT32_C(1) << 31};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_status(tablet_map_check_resize(&map, wrong[i], &error), PAWL_EINVAL);
    map.tablets = 8;
    assert_ok(tablet_map_check_resize(&map, 4, &error));
    assert_ok(tablet_map_check_resize(&map, 16, &error));
    assert_status(tablet_map_check_resize(&map, 32, &error), PAWL_EINVAL);
    assert_contains(error.text, "8 tablets can become twice or half as many");
    map.tablets = 256;
    assert_ok(tablet_map_check_resize(&map, 128, &error));
    assert_status(tablet_map_check_resize(&map, 512, &error), PAWL_EINVAL);
}

TEST(a_map_that_is_being_resized_is_not_resized_again)
{
    struct tablet_map map;
    pawl_error error = {0};
    tablet_map_init(&map, 4, 1, 2);
    map.resize_to = 8;
    assert_status(tablet_map_check_resize(&map, 8, &error), PAWL_EBUSY);
    assert_contains(error.text, "from 4 to 8");
    assert_status(tablet_map_check_resize(&map, 3, NULL), PAWL_EBUSY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_new_map_has_one_tablet_a_partition),
        RUN(with_one_node_the_home_is_the_shard_of_the_partition),
        RUN(partitions_are_dealt_out_evenly_to_nodes_and_on_each_to_its_shards),
        RUN(the_tokens_of_the_tablets_follow_each_other_without_a_gap),
        RUN(a_tablet_lies_in_the_partition_of_its_tokens),
        RUN(with_a_tablet_a_partition_their_ranges_are_the_same),
        RUN(the_ranges_of_two_halves_are_the_range_of_the_whole),
        RUN(a_row_lies_in_the_range_of_its_tablet),
        RUN(a_map_can_have_twice_or_half_as_many_tablets_within_the_bounds),
        RUN(a_map_that_is_being_resized_is_not_resized_again),
    };
    return TEST_MAIN(tests);
}

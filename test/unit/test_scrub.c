#include "test/lib/test.h"

#include "core/state/scrub.h"
#include "test/lib/state.h"

#define PARTITIONS 4
#define WORKSPACE  7

struct bed {
    struct state_bed state;
    struct position position;
    struct scrub scrub;
};

static void put(struct bed *bed, uint32_t table, uint64_t wsid, uint64_t number, const char *value)
{
    uint8_t key[KEY_NUMBERED];
    assert_ok(pawl_store_put(bed->state.store, STATE_SPACE, key_numbered(table, wsid, number, key),
                             text_bytes(value)));
    assert_ok(pawl_store_commit(bed->state.store));
}

/* Two tables of ten rows each, in the partition of one workspace. */
static void bed_open(struct bed *bed)
{
    state_bed_open(&bed->state);
    uint16_t partition = (uint16_t)(hash_token(WORKSPACE) >> 62);
    position_init(&bed->position, &bed->state.alloc.allocator, partition);
    for (uint32_t table = 256; table < 258; table++)
        for (uint64_t i = 1; i <= 10; i++) {
            struct changes changes = {0};
            uint8_t key[KEY_NUMBERED];
            assert_ok(state_bed_change(&bed->state, &bed->state.memory, &changes,
                                       key_numbered(table, WORKSPACE, i, key), text_bytes("value")));
            assert_ok(digests_add(&bed->position.digests, &changes));
            put(bed, table, WORKSPACE, i, "value");
        }
    bed->position.offset = 20;
    assert_ok(position_write(&bed->position, bed->state.store));
    assert_ok(pawl_store_commit(bed->state.store));
    bed->scrub = (struct scrub){.partition = partition,
                                .partitions = PARTITIONS,
                                .bytes_max = SIZE_MAX,
                                .alloc = &bed->state.alloc.allocator};
}

static void bed_close(struct bed *bed)
{
    position_release(&bed->position);
    state_bed_close(&bed->state);
}

static void assert_scrubbed(struct bed *bed, uint32_t behind, enum scrub_verdict verdict, uint32_t table)
{
    struct scrubbed found;
    bed->scrub.table = behind;
    assert_ok(scrub_table(&bed->scrub, bed->state.store, &found));
    assert_int_equal(found.verdict, verdict);
    assert_int_equal(found.table, table);
    assert_int_equal(found.offset, verdict == SCRUB_NOTHING ? 0 : 20);
}

TEST(a_partition_is_walked_table_by_table)
{
    struct bed bed;
    bed_open(&bed);
    assert_scrubbed(&bed, 0, SCRUB_RIGHT, 256);
    assert_scrubbed(&bed, 256, SCRUB_RIGHT, 257);
    assert_scrubbed(&bed, 257, SCRUB_NOTHING, 0);
    bed.scrub.bytes_max = 10 * (KEY_NUMBERED + 5);
    assert_scrubbed(&bed, 0, SCRUB_RIGHT, 256);
    bed.scrub.bytes_max--;
    assert_scrubbed(&bed, 0, SCRUB_TOO_LARGE, 256);
    bed_close(&bed);
}

TEST(rows_that_are_not_those_that_were_written_are_found)
{
    for (int harm = 0; harm < 4; harm++) {
        struct bed bed;
        uint8_t key[KEY_NUMBERED];
        bed_open(&bed);
        uint64_t other = WORKSPACE;
        while (harm == 3 && hash_token(other) >> 62 == bed.scrub.partition)
            other++;
        if (harm == 0)
            put(&bed, 257, WORKSPACE, 5, "valuf");
        else if (harm == 1)
            put(&bed, 257, WORKSPACE, 11, "value");
        else if (harm == 2) {
            assert_ok(pawl_store_remove(bed.state.store, STATE_SPACE, key_numbered(257, WORKSPACE, 10, key)));
            assert_ok(pawl_store_commit(bed.state.store));
        } else
            put(&bed, 257, other, 1, "the partition is another, and so is the table's slice");
        assert_scrubbed(&bed, 0, SCRUB_RIGHT, 256);
        assert_scrubbed(&bed, 256, harm < 3 ? SCRUB_WRONG : SCRUB_RIGHT, 257);
        bed_close(&bed);
    }
}

TEST(a_position_that_is_none_is_found_once)
{
    struct bed bed;
    struct scrubbed found;
    uint8_t key[KEY_TOKEN];
    bed_open(&bed);
    put_u32_sorted(key, TABLE_PARTITION);
    put_u64_sorted(key + 4, bed.scrub.partition);
    assert_ok(pawl_store_put(bed.state.store, STATE_SPACE, (pawl_bytes){key, sizeof key}, text_bytes("?")));
    assert_ok(pawl_store_commit(bed.state.store));
    assert_ok(scrub_table(&bed.scrub, bed.state.store, &found));
    assert_true(found.verdict == SCRUB_WRONG && found.table == TABLE_PARTITION);
    assert_scrubbed(&bed, TABLE_PARTITION, SCRUB_NOTHING, 0);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_partition_is_walked_table_by_table),
        RUN(rows_that_are_not_those_that_were_written_are_found),
        RUN(a_position_that_is_none_is_found_once),
    };
    return TEST_MAIN(tests);
}

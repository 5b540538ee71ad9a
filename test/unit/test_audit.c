#include "test/lib/test.h"

#include "core/state/audit.h"
#include "test/lib/alloc.h"

struct bed {
    struct test_alloc alloc;
    struct audit audit;
    size_t count;
    struct table_digest tables[2];
};

static void bed_open(struct bed *bed)
{
    *bed = (struct bed){.tables = {{.table = 3, .digest = {1, 2, 3}}, {.table = 7, .digest = {4, 5, 6}}}};
    test_alloc_init(&bed->alloc);
    audit_init(&bed->audit, &bed->alloc.allocator);
    bed->count = 2;
}

static void bed_close(struct bed *bed)
{
    audit_release(&bed->audit);
    test_alloc_release(&bed->alloc);
}

TEST(sides_that_agree_are_silent_whichever_comes_first)
{
    struct bed bed;
    bed_open(&bed);
    for (int first = 0; first < 2; first++) {
        assert_int_equal(audit_note(&bed.audit, (enum audit_side)first, 10, bed.tables, bed.count), 0);
        assert_int_equal(audit_note(&bed.audit, (enum audit_side) !first, 10, bed.tables, bed.count), 0);
    }
    assert_int_equal(bed.audit.compared, 2);
    assert_int_equal(bed.audit.differed, 0);
    bed_close(&bed);
}

TEST(a_difference_names_its_table)
{
    static const struct {
        uint32_t table; /* to be changed; its digest's part */
        int part;
    } cases[] = {{3, 0}, {3, 1}, {3, 2}, {7, 0}, {7, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int first = 0; first < 2; first++) {
            struct bed bed;
            bed_open(&bed);
            assert_int_equal(audit_note(&bed.audit, (enum audit_side)first, 10, bed.tables, bed.count), 0);
            pawl_digest *digest = &bed.tables[cases[i].table == 7].digest;
            *(cases[i].part == 0 ? &digest->low : cases[i].part == 1 ? &digest->high : &digest->rows) += 1;
            assert_int_equal(audit_note(&bed.audit, (enum audit_side) !first, 10, bed.tables, bed.count),
                             cases[i].table);
            assert_int_equal(bed.audit.differed, 1);
            bed_close(&bed);
        }
}

TEST(a_table_that_one_side_does_not_have_is_a_difference_unless_it_is_empty)
{
    for (int empty = 0; empty < 2; empty++)
        for (int first = 0; first < 2; first++) {
            struct bed bed;
            bed_open(&bed);
            if (empty)
                bed.tables[1].digest = (pawl_digest){0};
            bed.count = first ? 1 : 2;
            assert_int_equal(audit_note(&bed.audit, AUDIT_LIVE, 10, bed.tables, bed.count), 0);
            bed.count = first ? 2 : 1;
            assert_int_equal(audit_note(&bed.audit, AUDIT_CHECKPOINT, 10, bed.tables, bed.count),
                             empty ? 0 : 7);
            bed_close(&bed);
        }
}

TEST(a_mark_that_is_made_again_replaces_the_one_before)
{
    struct bed bed;
    bed_open(&bed);
    (void)audit_note(&bed.audit, AUDIT_LIVE, 10, bed.tables, bed.count);
    bed.tables[0].digest.low++;
    (void)audit_note(&bed.audit, AUDIT_LIVE, 10, bed.tables, bed.count);
    assert_int_equal(audit_note(&bed.audit, AUDIT_CHECKPOINT, 10, bed.tables, bed.count), 0);
    assert_int_equal(bed.audit.compared, 1);
    assert_int_equal(bed.audit.missed, 0);
    bed_close(&bed);
}

TEST(a_side_may_be_ahead_by_the_ring_and_beyond_that_audits_are_missed)
{
    struct bed bed;
    bed_open(&bed);
    for (uint64_t offset = 1; offset <= AUDIT_RING + 5; offset++)
        (void)audit_note(&bed.audit, AUDIT_LIVE, offset, bed.tables, bed.count);
    assert_int_equal(bed.audit.missed, 5);
    for (uint64_t offset = 6; offset <= AUDIT_RING + 5; offset++)
        assert_int_equal(audit_note(&bed.audit, AUDIT_CHECKPOINT, offset, bed.tables, bed.count), 0);
    assert_int_equal(bed.audit.compared, AUDIT_RING);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(sides_that_agree_are_silent_whichever_comes_first),
        RUN(a_difference_names_its_table),
        RUN(a_table_that_one_side_does_not_have_is_a_difference_unless_it_is_empty),
        RUN(a_mark_that_is_made_again_replaces_the_one_before),
        RUN(a_side_may_be_ahead_by_the_ring_and_beyond_that_audits_are_missed),
    };
    return TEST_MAIN(tests);
}

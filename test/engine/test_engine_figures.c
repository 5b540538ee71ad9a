/* test_engine_figures.c: what an engine says of its lanes: figures, alerts, leases, operations. */
#include "test/lib/lanes.h"

#include "engine/node.h"

/* --- alerts --- */

struct raised {
    uint32_t alerts;
    int count;
    pawl_lease_figures sum;
    uint64_t active_most; /* of one partition */
};

static bool count_alerts(void *arg, const pawl_lane_status *status)
{
    struct raised *r = arg;
    r->alerts |= status->leases.alerts;
    r->count += __builtin_popcount(status->leases.alerts);
    r->active_most = status->leases.active > r->active_most ? status->leases.active : r->active_most;
    pawl_lease_figures_add(&r->sum, &status->leases);
    return true;
}

static struct raised raised_by(struct lanes_bed *bed, const char *lane)
{
    struct raised r = {0};
    assert_ok(pawl_lanes_read(bed->engine, lane, count_alerts, &r, &bed->error));
    return r;
}

static void lease_one(struct lanes_bed *bed, pawl_worker_lease *ret_lease)
{
    assert_ok(
        pawl_worker_acquire(bed->engine, "t.notes", 600 * PAWL_SECOND, BED_PATIENCE, ret_lease, &bed->error));
}

static void ask(struct lanes_bed *bed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bed_send(bed, 1 + i % TENANTS, "t.Ask", "ada", 1);
}

TEST(alerts_are_for_a_lane_and_not_for_each_of_its_partitions)
{
    struct lanes_bed bed = {0};
    static pawl_worker_lease leases[1101];
    size_t held = 0;
    bed_begin(&bed, LANES_SCHEMA(""));
    ask(&bed, 1101);
    while (held < 1000)
        lease_one(&bed, &leases[held++]);
    assert_int_equal(raised_by(&bed, "t.notes").alerts, 0);
    lease_one(&bed, &leases[held++]);
    struct raised r = raised_by(&bed, "t.notes");
    assert_true(r.sum.active == 1001 && r.active_most < 1000);
    assert_int_equal(r.alerts, PAWL_ALERT_ACTIVE);
    assert_int_equal(r.count, 1);
    for (size_t i = 0; i < 101; i++) {
        if (i == 100) {
            r = raised_by(&bed, "t.notes");
            assert_true(r.sum.voids == 100 && r.alerts == 0);
        }
        assert_ok(pawl_worker_release(bed.engine, leases[i].partition, leases[i].lane, leases[i].number,
                                      leases[i].operation, true, true, "no", &bed.error));
    }
    r = raised_by(&bed, "t.notes");
    assert_int_equal(r.sum.voids, 101);
    assert_int_equal(r.alerts, PAWL_ALERT_VOIDS);
    assert_int_equal(r.count, 1);
    for (size_t i = 0; i < held; i++)
        pawl_worker_lease_free(&leases[i]);
    bed_end(&bed);
}

TEST(what_the_lane_does_itself_is_not_in_the_figures_of_the_last_minute)
{
    enum { ASKED = 24 };
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(", \"reads\": [\"Mark\"]")); /* marks, which go by key, are in the same lane */
    ask(&bed, ASKED);
    for (int i = 0; i < ASKED; i++) {
        pawl_worker_lease lease;
        lease_one(&bed, &lease);
        assert_ok(pawl_worker_commit(bed.engine, lease.partition, lease.lane, lease.number, lease.operation,
                                     "{\"writes\": []}", 14, BED_PATIENCE, &bed.error));
        pawl_worker_lease_free(&lease);
    }
    bed_wait(&bed, "t.notes");
    struct raised r = raised_by(&bed, "t.notes");
    assert_int_equal(r.sum.committed, 2 * ASKED);
    assert_int_equal(r.sum.minute.committed, ASKED);
    assert_int_equal(r.sum.minute.ended, ASKED);
    assert_int_equal(r.sum.minute.turns, ASKED);
    assert_int_equal(r.sum.minute.granted, ASKED * 600 * PAWL_SECOND);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(alerts_are_for_a_lane_and_not_for_each_of_its_partitions),
        RUN(what_the_lane_does_itself_is_not_in_the_figures_of_the_last_minute),
    };
    return TEST_MAIN(tests);
}

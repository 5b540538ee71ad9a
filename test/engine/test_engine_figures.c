/* test_engine_figures.c: what an engine says of its lanes: figures, alerts, leases, operations. */
#include "test/lib/lanes.h"

#include "engine/node/node.h"

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
    assert_int_equal(r.alerts, PAWL_LEASE_ALERT_ACTIVE);
    assert_int_equal(r.count, 1);
    for (size_t i = 0; i < 101; i++) {
        if (i == 100) {
            r = raised_by(&bed, "t.notes");
            assert_true(r.sum.voids == 100 && r.alerts == 0);
        }
        assert_ok(pawl_worker_release(bed.engine, &leases[i], true, true, "no", &bed.error));
    }
    r = raised_by(&bed, "t.notes");
    assert_int_equal(r.sum.voids, 101);
    assert_int_equal(r.alerts, PAWL_LEASE_ALERT_VOIDS);
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
        assert_ok(pawl_worker_commit_json(bed.engine, &lease, text_bytes("{\"writes\": []}"), BED_PATIENCE,
                                          &bed.error));
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

/* --- leases --- */

struct listed {
    size_t count;
    pawl_lease leases[4];
    uint64_t events[4];
};

static bool list_lease(void *arg, const pawl_lease *lease, uint64_t event, const char *projector)
{
    struct listed *l = arg;
    assert_string_equal(projector, "t.notes");
    assert_true(l->count < 4);
    l->events[l->count] = event;
    l->leases[l->count++] = *lease;
    return true;
}

static struct listed leases_from(struct lanes_bed *bed, uint64_t from)
{
    struct listed l = {0};
    assert_ok(pawl_lane_leases(bed->engine, pawl_partition_of(bed->engine, 1), "t.notes", 0, from, 100,
                               list_lease, &l, &bed->error));
    return l;
}

static int64_t wall_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * (int64_t)PAWL_SECOND + now.tv_nsec;
}

TEST(leases_say_when_they_were_granted_when_they_end_and_when_they_were_committed)
{
    struct lanes_bed bed = {0};
    pawl_worker_lease lease;
    bed_begin(&bed, LANES_SCHEMA(""));
    uint64_t offset = bed_send(&bed, 1, "t.Ask", "ada", 1);
    int64_t before = wall_now() - (int64_t)PAWL_SECOND;
    lease_one(&bed, &lease);
    struct listed l = leases_from(&bed, 0);
    assert_int_equal(l.count, 1);
    assert_true(l.leases[0].state == PAWL_LEASE_LEASED && l.events[0] == offset);
    assert_int_equal(l.leases[0].duration, 600 * PAWL_SECOND);
    assert_int_equal(l.leases[0].committed_at.ns, 0);
    int64_t granted = pawl_engine_wall(bed.engine, l.leases[0].leased_at).ns;
    pawl_instant end = {l.leases[0].leased_at.ns + l.leases[0].duration};
    assert_true(before < granted && granted < wall_now() + (int64_t)PAWL_SECOND);
    assert_true(pawl_engine_wall(bed.engine, end).ns > granted + 599 * (int64_t)PAWL_SECOND);
    assert_int_equal(pawl_engine_wall(bed.engine, (pawl_instant){0}).ns, 0);
    assert_ok(
        pawl_worker_commit_json(bed.engine, &lease, text_bytes("{\"writes\": []}"), BED_PATIENCE, &bed.error));
    bed_send(&bed, 1, "t.Ask", "ada", 2);
    BED_UNTIL(leases_from(&bed, 0).count == 1);
    assert_int_equal(leases_from(&bed, 0).leases[0].number, 2);
    l = leases_from(&bed, 1);
    assert_int_equal(l.count, 2);
    assert_true(l.leases[0].state == PAWL_LEASE_COMMITTED && l.leases[0].number == 1 && l.events[0] == 0);
    assert_true(l.leases[0].operation.high == lease.operation.high && l.leases[0].attempt == 1);
    assert_true(l.leases[0].committed_at.ns >= l.leases[0].leased_at.ns);
    assert_true(pawl_engine_wall(bed.engine, l.leases[0].committed_at).ns < wall_now() + (int64_t)PAWL_SECOND);
    pawl_worker_lease_free(&lease);
    bed_end(&bed);
}

/* --- operations --- */

/* A log that counts what is read of it. */
struct counting {
    pawl_log log;
    pawl_log *inner;
    size_t entries;
    bool (*visit)(pawl_read *read, const pawl_entry *entry, pawl_place place);
    void *arg;
};

static bool count_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct counting *c = read->arg;
    c->entries++;
    read->arg = c->arg;
    bool more = c->visit(read, entry, place);
    read->arg = c;
    return more;
}

static int count_read(pawl_log *log, pawl_read *read)
{
    struct counting *c = (struct counting *)log;
    assert_true(read->alone);
    c->visit = read->visit;
    c->arg = read->arg;
    read->visit = count_entry;
    read->arg = c;
    int status = pawl_log_read(c->inner, read);
    read->visit = c->visit;
    read->arg = c->arg;
    return status;
}

static bool take_event(void *arg, const pawl_operation *operation)
{
    *(uint64_t *)arg = operation->event;
    return false;
}

TEST(the_operations_of_an_event_are_found_by_halving)
{
    enum { EVENTS = 200 };
    static const struct pawl_log_ops counted = {.read = count_read};
    struct lanes_bed bed = {.options = {.partitions = 1, .shards = 1}};
    struct counting log = {.log = {&counted}};
    uint64_t offsets[EVENTS], number, event;
    bed_begin(&bed, LANES_SCHEMA(""));
    for (size_t i = 0; i < EVENTS; i++) {
        offsets[i] = bed_send(&bed, 1, "t.Ask", "ada", 1);
        bed_send(&bed, 1, "t.Bill", "ada", 1); /* which is nothing to that lane */
    }
    bed_wait(&bed, "t.marks");
    bed_close(&bed);
    bed.options.read_only = true;
    bed_open(&bed); /* where nobody else reads the log */
    log.inner = bed.engine->log;
    for (size_t i = 0; i < EVENTS; i++) {
        bed.engine->log = &log.log;
        log.entries = 0;
        assert_ok(pawl_operations_find(bed.engine, 0, "t.marks", 0, offsets[i], &number, &bed.error));
        assert_int_equal(number, i + 1);
        assert_ok(
            pawl_operations_read(bed.engine, 0, "t.marks", 0, number, 1, take_event, &event, NULL, &bed.error));
        assert_int_equal(event, offsets[i]);
        assert_true(log.entries <= 20); /* twice the logarithm, and what was asked for */
        assert_ok(pawl_operations_find(bed.engine, 0, "t.marks", 0, offsets[i] + 1, &number, &bed.error));
        bed.engine->log = log.inner;
        assert_int_equal(number, i + 2);
    }
    bed_end(&bed);
}

TEST(a_generation_that_a_lane_never_had_is_said_not_to_be_there)
{
    struct lanes_bed bed = {0};
    uint64_t number, event = 0;
    bed_begin(&bed, LANES_SCHEMA(""));
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    uint64_t asked = bed_send(&bed, 1, "t.Ask", "ada", 1);
    assert_status(
        pawl_operations_read(bed.engine, partition, "t.marks", 9, 1, 1, take_event, &event, NULL, &bed.error),
        PAWL_ENOTFOUND);
    assert_string_equal(bed.error.text, "lane t.marks has no generation 9");
    assert_status(pawl_operations_find(bed.engine, partition, "t.marks", 9, 1, &number, &bed.error),
                  PAWL_ENOTFOUND);
    bed_wait(&bed, "t.marks");
    assert_ok(pawl_lane_rebuild(bed.engine, "t.marks", &bed.error));
    bed_wait(&bed, "t.marks");
    for (uint32_t generation = 1; generation <= 2;
         generation++) { /* the one that was replaced can still be read */
        event = 0;
        assert_ok(pawl_operations_read(bed.engine, partition, "t.marks", generation, 1, 1, take_event, &event,
                                       NULL, &bed.error));
        assert_int_equal(event, asked);
    }
    assert_status(
        pawl_operations_read(bed.engine, partition, "t.marks", 3, 1, 1, take_event, &event, NULL, &bed.error),
        PAWL_ENOTFOUND);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(alerts_are_for_a_lane_and_not_for_each_of_its_partitions),
        RUN(what_the_lane_does_itself_is_not_in_the_figures_of_the_last_minute),
        RUN(leases_say_when_they_were_granted_when_they_end_and_when_they_were_committed),
        RUN(the_operations_of_an_event_are_found_by_halving),
        RUN(a_generation_that_a_lane_never_had_is_said_not_to_be_there),
    };
    return TEST_MAIN(tests);
}

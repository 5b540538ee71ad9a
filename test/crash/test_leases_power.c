/* test_leases_power.c: leases of external workers when the power is cut, and when the disk is full.
 *
 * What acquire has answered is in every image of the disk that was taken afterwards, and its worker commits there
 * with the four members that it has. */
#include "engine/knobs.h"
#include "test/crash/power.h"
#include "test/lib/kept.h"

#define IMAGES 6
#define EACH   4

static struct lanes_bed bed;

static void open_as(struct lanes_bed *b, const char *boot)
{
    struct engine_knobs knobs = {.boot_id = boot};
    int status = engine_open(b->path, &b->options, &knobs, &b->engine, &b->error);
    if (status != PAWL_OK)
        print_error("%s\n", b->error.text);
    assert_ok(status);
    assert_ok(pawl_request_new(b->engine, &b->request));
}

static void begin(uint64_t seed)
{
    bed = (struct lanes_bed){0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_close(&bed);
    power_watch(bed.path, seed);
    open_as(&bed, "this boot");
}

static void end(void)
{
    power_watch(NULL, 0);
    bed_end(&bed);
}

/* The power is cut at once, and comes back. */
static struct lanes_bed cut(unsigned image)
{
    struct lanes_bed left = bed;
    snprintf(left.path, sizeof left.path, "%s/image-%u", bed.dir, image);
    power_cut(left.path);
    return left;
}

TEST(a_lease_that_was_answered_is_in_every_image_of_the_disk)
{
    struct lanes_bed images[IMAGES];
    struct ticket tickets[IMAGES * EACH];
    size_t counts[IMAGES];
    begin(test_seed(7));
    for (unsigned i = 0; i < IMAGES; i++) {
        for (unsigned k = 0; k < EACH; k++)
            bed_send(&bed, 1, "t.Ask", "ada", 1);
        for (unsigned k = 0; k < EACH; k++)
            tickets[i * EACH + k] = kept_acquire(&bed, 0);
        counts[i] = (i + 1) * EACH;
        images[i] = cut(i);
    }
    bed_close(&bed);
    power_watch(NULL, 0);
    for (unsigned i = 0; i < IMAGES; i++) {
        open_as(&images[i], "the next boot");
        for (size_t k = 0; k < counts[i]; k++)
            assert_ok(kept_extend(&images[i], &tickets[k], 0));
        assert_true(kept_is_nothing_left(&images[i]));
        for (size_t k = 0; k < counts[i]; k++)
            assert_ok(kept_commit(&images[i], &tickets[k], BED_PATIENCE));
        assert_int_equal(bed_count(&images[i], 1, "t.Note"), counts[i]);
        bed_close(&images[i]);
    }
    end();
}

TEST(a_number_that_was_committed_is_not_leased_in_any_image_though_its_row_may_be)
{
    struct lanes_bed images[IMAGES];
    struct ticket tickets[IMAGES];
    begin(test_seed(8));
    for (unsigned i = 0; i < IMAGES; i++) {
        bed_send(&bed, 1, "t.Ask", "ada", 1);
        tickets[i] = kept_acquire(&bed, 0);
        assert_ok(kept_commit(&bed, &tickets[i], BED_PATIENCE));
        images[i] = cut(i); /* nobody has waited for the removal of its row */
    }
    bed_close(&bed);
    power_watch(NULL, 0);
    for (unsigned i = 0; i < IMAGES; i++) {
        open_as(&images[i], "the next boot");
        for (unsigned k = 0; k <= i; k++) {
            assert_ok(kept_commit(&images[i], &tickets[k], BED_PATIENCE)); /* the log has it */
            assert_status(kept_extend(&images[i], &tickets[k], 0), PAWL_EFENCED);
        }
        assert_int_equal(bed_status(&images[i], "t.notes", tickets[i].partition, 0).leases.active, 0);
        assert_int_equal(bed_count(&images[i], 1, "t.Note"), i + 1);
        bed_close(&images[i]);
    }
    end();
}

TEST(without_room_for_it_a_lease_is_not_granted_and_work_inside_goes_on)
{
    pawl_worker_lease lease;
    begin(test_seed(9));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_send(&bed, 1, "t.Ask", "ada", 2);
    struct ticket first = kept_acquire(&bed, 0);
    power_fill("/local/");
    int status = pawl_worker_acquire(bed.engine, "t.notes", 0, 0, &lease, &bed.error);
    assert_status(status, PAWL_EFULL);
    assert_contains(bed.error.text, "cannot be kept");
    assert_ok(kept_commit(&bed, &first, BED_PATIENCE)); /* a commit needs no room there */
    bed_send(&bed, 1, "t.Bill", "ada", 5);
    bed_wait(&bed, "t.totals");
    power_fill(NULL);
    struct ticket second = kept_acquire(&bed, 0);
    assert_int_equal(second.number, 2);
    assert_int_equal(second.attempt, 1); /* the one that nobody got does not count */
    struct lanes_bed image = cut(0);
    bed_close(&bed);
    power_watch(NULL, 0);
    open_as(&image, "the next boot");
    assert_status(kept_extend(&image, &first, 0), PAWL_EFENCED);
    assert_ok(kept_commit(&image, &second, BED_PATIENCE));
    bed_close(&image);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_lease_that_was_answered_is_in_every_image_of_the_disk),
        RUN(a_number_that_was_committed_is_not_leased_in_any_image_though_its_row_may_be),
        RUN(without_room_for_it_a_lease_is_not_granted_and_work_inside_goes_on),
    };
    return TEST_MAIN(tests);
}

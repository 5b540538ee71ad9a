/* The journal on a disk that forgets: power is cut at every call that it makes, every write is torn at every
 * byte, every subset of the unsynced sectors is lost; then again during recovery, and again after new appends.
 */
#include "test/lib/bed.h"
#include "test/lib/test.h"

#define SUBSET_SECTORS_MAX 6 /* all subsets of so many; of more, as many at random */
#define NESTED_EVERY       97
#define IMAGES_EVERY       (TEST_SANITIZED ? 6 : 1)
#define NESTED_EVERY_SOAK  7

struct sweep {
    struct bed *bed;
    uint64_t random;
    uint64_t images;
    uint64_t nested;
    uint64_t nested_every;
    bool in_recovery; /* already the second crash */
};

static bool keep_by_mask(void *arg, size_t i)
{
    const uint64_t *mask = arg;
    return i < 64 && (*mask >> i & 1);
}

static void try_recovery(struct sweep *sweep, struct ramdisk *image, const struct model *model);

/* What must hold for every image of the disk that a crash can leave. Takes the image. */
static void check_image(struct sweep *sweep, struct ramdisk *image, const struct model *model)
{
    struct bed bed;
    sweep->images++;
    bool nested = !sweep->in_recovery && sweep->images % sweep->nested_every == 0;
    if (nested)
        try_recovery(sweep, ramdisk_clone(image), model);
    if (sweep->images % IMAGES_EVERY != 0) {
        ramdisk_free(image);
        return;
    }
    bed_init(&bed, image, sweep->images);
    bed.model = *model;
    bed_recover(&bed);
    /* The third crash, with all that was not synced lost: nothing that was given up may come back. */
    bed_abandon(&bed);
    uint64_t none = 0;
    ramdisk_crash(bed.disk, keep_by_mask, &none, false);
    bed_recover(&bed);
    bed_release(&bed);
}

static void crash_image(struct sweep *sweep, const struct ramdisk *disk, const struct model *model,
                        uint64_t mask, bool names)
{
    struct ramdisk *image = ramdisk_clone(disk);
    ramdisk_crash(image, keep_by_mask, &mask, names);
    check_image(sweep, image, model);
}

static void all_subsets(struct sweep *sweep, const struct ramdisk *disk, const struct model *model)
{
    size_t sectors = ramdisk_unsynced(disk);
    uint64_t subsets = (uint64_t)1 << (sectors < SUBSET_SECTORS_MAX ? sectors : SUBSET_SECTORS_MAX);
    for (uint64_t i = 0; i < subsets; i++) {
        uint64_t mask = sectors <= SUBSET_SECTORS_MAX ? i
                        : i == 0                      ? 0
                        : i == 1                      ? UINT64_MAX
                                                      : test_random(&sweep->random);
        crash_image(sweep, disk, model, mask, i & 1);
        if (sectors == 0)
            crash_image(sweep, disk, model, mask, true);
    }
}

/* Before every call of the journal's: what if the power failed here, or in the middle of it? */
static void on_call(void *arg, const struct ramdisk_write *write)
{
    struct sweep *sweep = arg;
    const struct ramdisk *disk = sweep->bed->disk;
    const struct model *model = &sweep->bed->model;
    if (!sweep->in_recovery) {
        all_subsets(sweep, disk, model);
    } else {
        crash_image(sweep, disk, model, 0, false);
        crash_image(sweep, disk, model, UINT64_MAX, true);
        crash_image(sweep, disk, model, test_random(&sweep->random), test_random(&sweep->random) & 1);
    }
    if (write->file < 0)
        return;
    /* Zero-filling is large, and where it tears is all the same: nothing of it is read before it was synced. */
    size_t step = write->size > 2048 || sweep->in_recovery ? write->size / 8 + 1 : 1;
    for (size_t n = 1; n <= write->size; n += step) {
        struct ramdisk *image = ramdisk_clone(disk);
        uint64_t all = UINT64_MAX;
        ramdisk_tear(image, write, n);
        ramdisk_crash(image, keep_by_mask, &all, true);
        check_image(sweep, image, model);
    }
}

/* A crash in the middle of recovering from a crash. Takes the image. */
static void try_recovery(struct sweep *sweep, struct ramdisk *image, const struct model *model)
{
    struct bed bed;
    struct bed *outer = sweep->bed;
    bed_init(&bed, image, sweep->images);
    bed.model = *model;
    sweep->bed = &bed;
    sweep->in_recovery = true;
    ramdisk_on_call(image, on_call, sweep);
    assert_ok(bed_open(&bed));
    ramdisk_on_call(image, NULL, NULL);
    sweep->in_recovery = false;
    sweep->bed = outer;
    sweep->nested++;
    bed_release(&bed);
}

/* Lives of a journal, with everything that it does to its files. */
static void live(struct bed *bed)
{
    assert_ok(bed_open(bed));
    assert_ok(bed_claim(bed, 0));
    assert_ok(bed_append(bed, 0, 1, 20));
    assert_ok(bed_append(bed, 0, 3, 90));
    assert_ok(bed_claim(bed, 1));
    assert_ok(bed_append(bed, 1, 2, 700));
    bed_close(bed);
    assert_ok(bed_open(bed)); /* and nothing is written */
    assert_ok(bed_claim(bed, 0));
    bed_close(bed);
    assert_ok(bed_open(bed)); /* the segment that was closed goes on */
    assert_ok(bed_claim(bed, 0));
    assert_ok(bed_append(bed, 0, 2, 1500));
    assert_ok(bed_append(bed, 0, 1, 8));
    assert_ok(bed_append(bed, 0, 4, 900)); /* into the next segment */
    assert_ok(bed_append(bed, 0, 1, 60));
    assert_ok(bed_claim(bed, 1));
    assert_ok(bed_append(bed, 1, 5, 200));
    bed_close(bed);
    assert_ok(bed_open(bed)); /* one goes on that was begun by another life */
    assert_ok(bed_claim(bed, 1));
    assert_ok(bed_claim(bed, 1));
    assert_ok(bed_append(bed, 1, 2, 30));
}

TEST(whatever_a_crash_leaves_the_acknowledged_is_there_and_the_lost_never_returns)
{
    struct bed bed;
    struct sweep sweep = {.bed = &bed,
                          .random = test_seed(20261115),
                          .nested_every = getenv("PAWL_SOAK") ? NESTED_EVERY_SOAK : NESTED_EVERY};
    bed_init(&bed, ramdisk_new(), 1);
    ramdisk_on_call(bed.disk, on_call, &sweep);
    live(&bed);
    ramdisk_on_call(bed.disk, NULL, NULL);
    all_subsets(&sweep, bed.disk, &bed.model);
    bed_release(&bed);
    print_message("# %" PRIu64 " images, %" PRIu64 " crashes during recovery\n", sweep.images, sweep.nested);
    assert_true(sweep.images > 5000 && sweep.nested > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(whatever_a_crash_leaves_the_acknowledged_is_there_and_the_lost_never_returns),
    };
    return TEST_MAIN(tests);
}

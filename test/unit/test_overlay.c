/* The overlay against a twin: a store that gets every change at once, and has it undone when its event is. */
#include "test/lib/test.h"

#include "base/hash.h"
#include "test/lib/state.h"

#define KEYS      64
#define KEY_MAX   700
#define IN_FLIGHT 9
#define CHANGES   6
#define VALUE_MAX 40
#define STEPS     4000

/* Keys of every sort: short ones and each other's prefixes, long ones that differ only behind what is sorted,
 * and some whose hash is the same. */
struct keys {
    size_t size[KEYS];
    uint8_t bytes[KEYS][KEY_MAX];
};

/* XXH3 multiplies halves of 16 bytes, each xored with its own part of a secret. With the first half equal to
 * that part, the product is 0 whatever the second half is. */
static const uint8_t xxh3_zero[8] = {0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe};

static size_t colliding_key(uint8_t *key, uint64_t which)
{
    memset(key, 'x', 32);
    memcpy(key, xxh3_zero, 8);
    put_u64_sorted(key + 8, which);
    return 32;
}

static void make_keys(struct keys *keys, uint64_t *random)
{
    for (size_t i = 0; i < KEYS; i++) {
        uint8_t *key = keys->bytes[i];
        memset(key, 'a', KEY_MAX);
        if (i < 16)
            keys->size[i] = colliding_key(key, i);
        else if (i < 32) { /* one is the other's beginning, across 494 and 511 */
            keys->size[i] = 490 + 2 * (i - 16);
        } else if (i < 44) {
            keys->size[i] = 600 + i % 3;
            key[550 + i] = (uint8_t)i;
        } else {
            keys->size[i] = 1 + i % 5;
            for (size_t k = 0; k < 4; k++)
                key[k] = (uint8_t)test_below(random, 256);
            key[keys->size[i] - 1] = (uint8_t)i;
        }
    }
}

static pawl_bytes key_at(const struct keys *keys, size_t i)
{
    return (pawl_bytes){keys->bytes[i], keys->size[i]};
}

static pawl_bytes value_of(uint64_t version, uint8_t room[VALUE_MAX])
{
    memset(room, (int)version, VALUE_MAX);
    put_u64(room, version);
    return version ? (pawl_bytes){room, 8 + version % (VALUE_MAX - 8)} : (pawl_bytes){0};
}

/* An event in flight: what it changes, and what was there before. */
struct flight {
    struct arena memory;
    struct changes changes;
    size_t count;
    size_t key[CHANGES];
    uint64_t before[CHANGES];
};

struct model {
    struct state_bed bed;
    struct keys keys;
    uint64_t version[KEYS]; /* as seen through the overlay; 0: no row */
    mem_store_disk *disk;
    pawl_store *twin;
    struct flight flights[IN_FLIGHT];
    size_t first;
    size_t count;
    uint64_t last_version;
    uint64_t random;
};

static struct flight *flight_at(struct model *m, size_t i)
{
    return &m->flights[(m->first + i) % IN_FLIGHT];
}

static void set_twin(struct model *m, size_t key, uint64_t version)
{
    uint8_t room[VALUE_MAX];
    if (version)
        assert_ok(pawl_store_put(m->twin, STATE_SPACE, key_at(&m->keys, key), value_of(version, room)));
    else if (m->version[key])
        assert_ok(pawl_store_remove(m->twin, STATE_SPACE, key_at(&m->keys, key)));
    m->version[key] = version;
}

static void begin_event(struct model *m)
{
    struct flight *f = flight_at(m, m->count++);
    f->changes = (struct changes){0};
    f->count = 1 + test_below(&m->random, CHANGES);
    for (size_t i = 0; i < f->count; i++) {
        uint8_t room[VALUE_MAX];
        size_t key = test_below(&m->random, 3) ? test_below(&m->random, KEYS) : test_below(&m->random, 18);
        bool removes = m->version[key] && test_below(&m->random, 3) == 0;
        uint64_t version = removes ? 0 : ++m->last_version;
        f->key[i] = key;
        f->before[i] = m->version[key];
        assert_ok(
            state_bed_change(&m->bed, &f->memory, &f->changes, key_at(&m->keys, key), value_of(version, room)));
        set_twin(m, key, version);
    }
    assert_int_equal(f->changes.count, f->count);
}

/* Scribble over what the event owned: it has left the overlay. */
static void end_event(struct flight *f)
{
    arena_release(&f->memory);
    arena_init(&f->memory, f->memory.alloc, 512);
}

static void apply_oldest(struct model *m)
{
    struct flight *f = flight_at(m, 0);
    assert_ok(state_bed_write(m->bed.store, &f->changes));
    assert_ok(pawl_store_commit(m->bed.store));
    overlay_remove(&m->bed.overlay, &f->changes);
    m->first = (m->first + 1) % IN_FLIGHT;
    m->count--;
    end_event(f);
}

static void undo_newest(struct model *m)
{
    struct flight *f = flight_at(m, --m->count);
    overlay_remove(&m->bed.overlay, &f->changes);
    for (size_t i = f->count; i-- > 0;)
        set_twin(m, f->key[i], f->before[i]);
    end_event(f);
}

static void check_gets(struct model *m)
{
    for (size_t i = 0; i < KEYS; i++) {
        uint8_t room[VALUE_MAX];
        pawl_bytes value, expected = value_of(m->version[i], room);
        int status = state_get(&m->bed.state, key_at(&m->keys, i), &value);
        assert_status(status, m->version[i] ? PAWL_OK : PAWL_ENOTFOUND);
        assert_true(status != PAWL_OK || bytes_equal(value, expected));
    }
}

struct seen {
    size_t count;
    size_t stop; /* after so many */
    pawl_bytes keys[KEYS];
    uint64_t versions[KEYS];
};

static bool see(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct seen *seen = arg;
    assert_true(seen->count < seen->stop);
    seen->keys[seen->count] = key;
    seen->versions[seen->count++] = get_u64(value.data);
    return seen->count < seen->stop;
}

static void check_scan(struct model *m)
{
    pawl_bytes from = key_at(&m->keys, test_below(&m->random, KEYS));
    pawl_bytes to = key_at(&m->keys, test_below(&m->random, KEYS));
    if (test_below(&m->random, 3) == 0)
        from = (pawl_bytes){0};
    if (test_below(&m->random, 3) == 0)
        to = (pawl_bytes){0};
    struct seen got = {.stop = test_below(&m->random, 2) ? KEYS : 1 + test_below(&m->random, 10)};
    struct seen expected = {.stop = got.stop};
    size_t used = m->bed.memory.used;
    assert_ok(state_scan(&m->bed.state, from, to, &m->bed.memory, see, &got));
    assert_ok(pawl_store_scan(pawl_store_writer(m->twin), (pawl_range){STATE_SPACE, from, to}, false, see,
                              &expected));
    assert_int_equal(m->bed.memory.used, used);
    assert_int_equal(got.count, expected.count);
    for (size_t i = 0; i < got.count; i++) {
        assert_true(bytes_equal(got.keys[i], expected.keys[i]));
        assert_true(got.versions[i] == expected.versions[i]);
    }
}

TEST(reads_and_scans_are_those_of_a_store_that_has_every_change_already)
{
    struct model *m = calloc(1, sizeof *m);
    m->random = test_seed(20260701);
    state_bed_open(&m->bed);
    assert_ok(mem_store_disk_new(NULL, &m->disk));
    assert_ok(mem_store_open(m->disk, &(struct mem_store_options){.name = "twin"}, NULL, &m->twin, NULL));
    make_keys(&m->keys, &m->random);
    for (size_t i = 0; i < IN_FLIGHT; i++)
        arena_init(&m->flights[i].memory, &m->bed.alloc.allocator, 512);
    for (int step = 0; step < STEPS; step++) {
        uint64_t what = test_below(&m->random, 8);
        if (what < 4 && m->count < IN_FLIGHT)
            begin_event(m);
        else if (what < 6 && m->count > 0)
            apply_oldest(m);
        else if (what == 6 && m->count > 0)
            undo_newest(m);
        check_gets(m);
        check_scan(m);
    }
    while (m->count > 0)
        apply_oldest(m);
    assert_int_equal(m->bed.overlay.count, 0);
    assert_int_equal(m->bed.overlay.newest.count, 0);
    check_gets(m);
    for (size_t i = 0; i < IN_FLIGHT; i++)
        arena_release(&m->flights[i].memory);
    mem_store_disk_free(m->disk);
    state_bed_close(&m->bed);
    free(m);
}

static void change(struct state_bed *bed, struct changes *changes, pawl_bytes key, const char *value)
{
    pawl_bytes bytes = value ? text_bytes(value) : (pawl_bytes){0};
    assert_ok(state_bed_change(bed, &bed->memory, changes, key, bytes));
}

static void assert_value(const struct state_bed *bed, pawl_bytes key, const char *expected)
{
    pawl_bytes value;
    assert_status(state_get(&bed->state, key, &value), expected ? PAWL_OK : PAWL_ENOTFOUND);
    assert_true(!expected || bytes_equal(value, text_bytes(expected)));
}

TEST(keys_of_one_hash_are_told_apart_whichever_leaves_first)
{
    uint8_t room[3][32];
    pawl_bytes keys[3];
    for (uint64_t i = 0; i < 3; i++) {
        size_t size = colliding_key(room[i], i);
        keys[i] = (pawl_bytes){room[i], size};
    }
    assert_true(hash_checksum(0, keys[0]) == hash_checksum(0, keys[1]));
    assert_true(hash_checksum(0, keys[0]) == hash_checksum(0, keys[2]));
    for (size_t leaves = 0; leaves < 3; leaves++) {
        struct state_bed bed;
        struct changes changes[3] = {0};
        state_bed_open(&bed);
        change(&bed, &changes[0], keys[0], "zero");
        change(&bed, &changes[1], keys[1], "one");
        assert_value(&bed, keys[2], NULL);
        change(&bed, &changes[2], keys[2], "two");
        assert_int_equal(bed.overlay.newest.count, 1);
        overlay_remove(&bed.overlay, &changes[leaves]);
        for (size_t i = 0; i < 3; i++)
            assert_value(&bed, keys[i], i == leaves ? NULL : i == 0 ? "zero" : i == 1 ? "one" : "two");
        for (size_t i = 0; i < 3; i++)
            if (i != leaves)
                overlay_remove(&bed.overlay, &changes[i]);
        assert_int_equal(bed.overlay.newest.count, 0);
        state_bed_close(&bed);
    }
}

TEST(an_event_from_the_middle_may_leave)
{
    struct state_bed bed;
    struct changes changes[3] = {0};
    pawl_bytes key = text_bytes("key");
    state_bed_open(&bed);
    change(&bed, &changes[0], key, "oldest");
    change(&bed, &changes[1], key, "middle");
    change(&bed, &changes[2], key, "newest");
    overlay_remove(&bed.overlay, &changes[1]);
    assert_value(&bed, key, "newest");
    overlay_remove(&bed.overlay, &changes[2]);
    assert_value(&bed, key, "oldest");
    overlay_remove(&bed.overlay, &changes[0]);
    assert_value(&bed, key, NULL);
    state_bed_close(&bed);
}

TEST(a_change_may_be_replaced_wherever_it_is_and_knows_what_it_hides)
{
    for (size_t place = 0; place < 3; place++) {
        static const char *const values[] = {"oldest", "middle", "newest"};
        struct state_bed bed;
        struct changes changes[3] = {0};
        pawl_bytes key = text_bytes("key");
        state_bed_open(&bed);
        for (size_t i = 0; i < 3; i++)
            change(&bed, &changes[i], key, values[i]);
        assert_null(overlay_hidden(changes[0].first));
        assert_ptr_equal(overlay_hidden(changes[2].first), changes[1].first);
        struct row_change by = {.key = key, .value = text_bytes("another")};
        overlay_replace(&bed.overlay, changes[place].first, &by);
        changes[place].first = &by;
        for (size_t i = 3; i-- > 0;) {
            assert_value(&bed, key, i == place ? "another" : values[i]);
            assert_true(overlay_hidden(changes[i].first) == (i > 0 ? changes[i - 1].first : NULL));
            overlay_take_off(&bed.overlay, changes[i].first);
        }
        assert_value(&bed, key, NULL);
        state_bed_close(&bed);
    }
}

static bool count_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    ++*(size_t *)arg;
    return true;
}

TEST(a_row_that_was_removed_is_in_neither_reads_nor_scans)
{
    struct state_bed bed;
    struct changes changes = {0};
    pawl_bytes key = text_bytes("there");
    size_t rows = 0;
    state_bed_open(&bed);
    assert_ok(pawl_store_put(bed.store, STATE_SPACE, key, text_bytes("stored")));
    change(&bed, &changes, key, NULL);
    assert_value(&bed, key, NULL);
    assert_ok(state_scan(&bed.state, (pawl_bytes){0}, (pawl_bytes){0}, &bed.memory, count_row, &rows));
    assert_int_equal(rows, 0);
    overlay_remove(&bed.overlay, &changes);
    assert_value(&bed, key, "stored");
    state_bed_close(&bed);
}

TEST(an_empty_value_is_a_row)
{
    struct state_bed bed;
    struct changes changes = {0};
    size_t rows = 0;
    state_bed_open(&bed);
    change(&bed, &changes, text_bytes("key"), "");
    assert_value(&bed, text_bytes("key"), "");
    assert_ok(state_scan(&bed.state, (pawl_bytes){0}, (pawl_bytes){0}, &bed.memory, count_row, &rows));
    assert_int_equal(rows, 1);
    state_bed_close(&bed);
}

TEST(without_an_overlay_the_state_is_the_store)
{
    struct state_bed bed;
    struct changes changes = {0};
    size_t rows = 0;
    state_bed_open(&bed);
    bed.state.overlay = NULL;
    change(&bed, &changes, text_bytes("key"), "value");
    assert_value(&bed, text_bytes("key"), NULL);
    assert_ok(state_bed_write(bed.store, &changes));
    assert_value(&bed, text_bytes("key"), "value");
    assert_ok(state_scan(&bed.state, (pawl_bytes){0}, (pawl_bytes){0}, &bed.memory, count_row, &rows));
    assert_int_equal(rows, 1);
    state_bed_close(&bed);
}

TEST(a_change_says_what_it_does_to_the_digest)
{
    static const struct {
        const char *old, *new;
        uint64_t rows;
    } cases[] = {{NULL, "new", 1}, {"old", "new", 0}, {"old", NULL, UINT64_MAX}, {"old", "old", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct state_bed bed;
        struct changes changes = {0};
        pawl_bytes key = text_bytes("key");
        pawl_digest expected = {0};
        state_bed_open(&bed);
        if (cases[i].old) {
            assert_ok(pawl_store_put(bed.store, STATE_SPACE, key, text_bytes(cases[i].old)));
            pawl_digest_subtract(&expected, key, text_bytes(cases[i].old));
        }
        if (cases[i].new)
            pawl_digest_add(&expected, key, text_bytes(cases[i].new));
        change(&bed, &changes, key, cases[i].new);
        assert_true(pawl_digest_equal(&changes.first->digest, &expected));
        assert_true(changes.first->digest.rows == cases[i].rows);
        state_bed_close(&bed);
    }
}

TEST(errors_of_the_store_are_handed_on_and_leave_the_arena_as_it_was)
{
    struct state_bed bed;
    struct changes changes = {0};
    pawl_bytes value;
    size_t rows = 0;
    state_bed_open(&bed);
    change(&bed, &changes, text_bytes("key"), "value");
    size_t used = bed.memory.used;
    mem_store_disk_fail(bed.disk, (struct mem_store_fault){
                                      .op = MEM_STORE_SCAN, .countdown = 1, .times = 1, .status = PAWL_EIO});
    assert_status(state_scan(&bed.state, (pawl_bytes){0}, (pawl_bytes){0}, &bed.memory, count_row, &rows),
                  PAWL_EIO);
    assert_int_equal(bed.memory.used, used);
    mem_store_disk_fail(bed.disk, (struct mem_store_fault){
                                      .op = MEM_STORE_GET, .countdown = 1, .times = 1, .status = PAWL_EIO});
    assert_ok(state_get(&bed.state, text_bytes("key"), &value));
    assert_status(state_get(&bed.state, text_bytes("other"), &value), PAWL_EIO);
    state_bed_close(&bed);
}

/* A change that found no memory has not happened: neither in the overlay nor in the event. */
TEST(every_allocation_may_fail)
{
    for (uint64_t k = 1;; k++) {
        struct state_bed bed;
        struct changes changes = {0};
        char large[3000];
        size_t done = 0, rows = 0;
        memset(large, 'l', sizeof large);
        state_bed_open(&bed);
        test_alloc_fail(&bed.alloc, k, TEST_ALLOC_ONCE);
        for (uint64_t i = 0; i < 40; i++) {
            uint8_t key[8];
            put_u64_sorted(key, i);
            int status = state_bed_change(&bed, &bed.memory, &changes, (pawl_bytes){key, 8},
                                          (pawl_bytes){large, sizeof large});
            assert_true(status == PAWL_OK || status == PAWL_ENOMEM);
            done += status == PAWL_OK;
        }
        int status = state_scan(&bed.state, (pawl_bytes){0}, (pawl_bytes){0}, &bed.memory, count_row, &rows);
        assert_true(status == PAWL_OK || status == PAWL_ENOMEM);
        bool failed = test_alloc_failed(&bed.alloc);
        assert_int_equal(done + (status == PAWL_OK), failed ? 40 : 41);
        assert_true(changes.count == done && bed.overlay.count == done);
        if (status == PAWL_OK)
            assert_int_equal(rows, done);
        overlay_remove(&bed.overlay, &changes);
        assert_int_equal(bed.overlay.newest.count, 0);
        state_bed_close(&bed);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(reads_and_scans_are_those_of_a_store_that_has_every_change_already),
        RUN(keys_of_one_hash_are_told_apart_whichever_leaves_first),
        RUN(an_event_from_the_middle_may_leave),
        RUN(a_change_may_be_replaced_wherever_it_is_and_knows_what_it_hides),
        RUN(a_row_that_was_removed_is_in_neither_reads_nor_scans),
        RUN(an_empty_value_is_a_row),
        RUN(without_an_overlay_the_state_is_the_store),
        RUN(a_change_says_what_it_does_to_the_digest),
        RUN(errors_of_the_store_are_handed_on_and_leave_the_arena_as_it_was),
        RUN(every_allocation_may_fail),
    };
    return TEST_MAIN(tests);
}

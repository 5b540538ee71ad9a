#include "test/lib/test.h"

#include "base/bytes.h"
#include "port/longkey.h"

#define KEYS 300

/* Many keys with much in common: sizes around the limits, few letters, differences at every place. */
static pawl_bytes random_key(uint64_t *seed, uint8_t *room)
{
    static const size_t sizes[] = {1, 2, 493, 494, 495, 496, 509, 510, 511, 512, 513, 600, 1100};
    size_t size = sizes[test_below(seed, sizeof sizes / sizeof sizes[0])];
    memset(room, 'm', size);
    for (uint64_t changes = test_below(seed, 3); changes > 0; changes--)
        room[test_below(seed, 2) ? test_below(seed, size) : size - 1] =
            (uint8_t)("\0am\xff"[test_below(seed, 4)]);
    return (pawl_bytes){room, size};
}

TEST(a_key_that_fits_is_its_own_stored_key)
{
    uint8_t key[PAWL_KEY_BYTES_SORTED] = {7}, room[PAWL_KEY_BYTES_SORTED];
    for (size_t size = 1; size <= sizeof key; size++) {
        struct longkey place = longkey_place((pawl_bytes){key, size}, room);
        assert_ptr_equal(place.stored.data, key);
        assert_int_equal(place.stored.size, size);
    }
}

TEST(a_longer_key_is_stored_in_as_many_bytes_as_sort)
{
    uint8_t key[2000] = {7}, room[PAWL_KEY_BYTES_SORTED];
    for (size_t size = PAWL_KEY_BYTES_SORTED + 1; size <= sizeof key; size++) {
        struct longkey place = longkey_place((pawl_bytes){key, size}, room);
        assert_true(longkey_ambiguous(place.stored.size));
        assert_memory_equal(place.stored.data, key, PAWL_KEY_BYTES_PREFIX);
        assert_int_equal(place.whole.size, size);
    }
}

TEST(the_stored_form_never_changes)
{
    uint8_t key[600], room[PAWL_KEY_BYTES_SORTED];
    static const uint8_t tail[17] = {0x00, 0xe6, 0x8c, 0x2c, 0xba, 0x3f, 0x97, 0x7e, 0x1c,
                                     0x2f, 0x16, 0x58, 0x9f, 0x5f, 0x72, 0x4c, 0x1a};
    memset(key, 'k', sizeof key);
    longkey_place((pawl_bytes){key, sizeof key}, room);
    assert_memory_equal(room + PAWL_KEY_BYTES_PREFIX, tail, sizeof tail);
}

TEST(the_order_is_total_and_is_memcmp_where_keys_fit)
{
    static uint8_t rooms[KEYS][1200], stored[KEYS][PAWL_KEY_BYTES_SORTED];
    static struct longkey keys[KEYS];
    uint64_t seed = test_seed(1);
    for (size_t i = 0; i < KEYS; i++)
        keys[i] = longkey_place(random_key(&seed, rooms[i]), stored[i]);
    /* A short key with the bytes of a long one's stored form is another key. */
    for (size_t i = 0; i + 1 < KEYS; i += 10)
        if (keys[i].whole.size > PAWL_KEY_BYTES_SORTED)
            keys[i + 1] = longkey_place(keys[i].stored, stored[i + 1]);
    for (size_t a = 0; a < KEYS; a++) {
        for (size_t b = 0; b < KEYS; b++) {
            int order = longkey_compare(keys[a], keys[b]);
            assert_int_equal(order == 0, bytes_equal(keys[a].whole, keys[b].whole));
            assert_int_equal(order<0, longkey_compare(keys[b], keys[a])> 0);
            if (keys[a].whole.size <= PAWL_KEY_BYTES_SORTED && keys[b].whole.size <= PAWL_KEY_BYTES_SORTED)
                assert_int_equal(order < 0, bytes_compare(keys[a].whole, keys[b].whole) < 0);
            for (size_t c = 0; c < KEYS; c += 7)
                if (order <= 0 && longkey_compare(keys[b], keys[c]) <= 0)
                    assert_true(longkey_compare(keys[a], keys[c]) <= 0);
        }
    }
}

TEST(a_range_knows_what_lies_before_inside_and_behind)
{
    static const struct {
        const char *from, *to, *key;
        int side;
    } cases[] = {
        {"", "", "k", 0},  {"k", "", "k", 0},  {"k", "l", "ka", 0},  {"k", "l", "l", 1}, {"k", "l", "j", -1},
        {"", "k", "k", 1}, {"", "k", "jz", 0}, {"l", "k", "kk", -1}, {"l", "k", "m", 1}, {"k", "k", "k", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t room[PAWL_KEY_BYTES_SORTED];
        struct longkey_range r;
        longkey_range_init(&r, (pawl_range){.from = text_bytes(cases[i].from), .to = text_bytes(cases[i].to)});
        int side = longkey_range_side(&r, longkey_place(text_bytes(cases[i].key), room));
        assert_int_equal((side > 0) - (side < 0), cases[i].side);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_key_that_fits_is_its_own_stored_key),
        RUN(a_longer_key_is_stored_in_as_many_bytes_as_sort),
        RUN(the_stored_form_never_changes),
        RUN(the_order_is_total_and_is_memcmp_where_keys_fit),
        RUN(a_range_knows_what_lies_before_inside_and_behind),
    };
    return TEST_MAIN(tests);
}

/* Order, ranges, keys and values: what a store holds. What becomes of it in time is in store_state.c. */
#include "test/contract/store_contract.h"

#include "base/bytes.h"
#include "port/longkey.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define KEY_LONG 1200

pawl_store *rig_open(struct store_rig *rig, const char *name, enum pawl_store_mode mode, bool *ret_discarded)
{
    pawl_store *store = NULL;
    pawl_error error = {0};
    int status = rig->kind->open(rig->site, name, mode, 4, ret_discarded, &store, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    return store;
}

void rig_put(pawl_store *store, uint8_t space, const char *key, const char *value)
{
    assert_ok(pawl_store_put(store, space, text_bytes(key), text_bytes(value)));
}

const char *rig_get(pawl_reader *reader, uint8_t space, const char *key)
{
    static char text[256];
    pawl_bytes value;
    int status = pawl_store_get(reader, space, text_bytes(key), &value);
    if (status == PAWL_ENOTFOUND)
        return "-";
    assert_ok(status);
    snprintf(text, sizeof text, "%.*s", (int)value.size, (const char *)value.data);
    return text;
}

struct key_list {
    char text[1024];
    size_t used;
};

static bool list_key(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct key_list *list = arg;
    int n = snprintf(list->text + list->used, sizeof list->text - list->used, "%.*s ", (int)key.size,
                     (const char *)key.data);
    list->used += (size_t)n;
    return list->used < sizeof list->text;
}

const char *rig_keys(pawl_reader *reader, uint8_t space, const char *from, const char *to, bool reverse)
{
    static struct key_list list;
    memset(&list, 0, sizeof list);
    pawl_range range = {.space = space, .from = text_bytes(from), .to = text_bytes(to)};
    assert_ok(pawl_store_scan(reader, range, reverse, list_key, &list));
    return list.text;
}

pawl_reader *rig_snapshot(pawl_store *store)
{
    pawl_reader *reader = NULL;
    assert_ok(pawl_store_snapshot(store, &reader));
    return reader;
}

pawl_digest rig_digest(pawl_reader *reader)
{
    pawl_digest all = {0};
    for (uint8_t space = 0; space < PAWL_STORE_SPACES; space++) {
        pawl_digest one;
        assert_ok(pawl_store_digest(reader, (pawl_range){.space = space}, &one));
        /* Rows of different spaces must not pass for each other. */
        all.low = all.low * 3 + one.low;
        all.high = all.high * 3 + one.high;
        all.rows += one.rows;
    }
    return all;
}

static void an_empty_store_has_nothing(struct store_rig *rig)
{
    pawl_reader *writer = pawl_store_writer(rig->store);
    pawl_bytes value = {.size = 99};
    for (uint8_t space = 0; space < PAWL_STORE_SPACES; space++) {
        assert_status(pawl_store_get(writer, space, text_bytes("k"), &value), PAWL_ENOTFOUND);
        assert_int_equal(value.size, 99);
        assert_string_equal(rig_keys(writer, space, "", "", false), "");
        assert_string_equal(rig_keys(writer, space, "a", "z", true), "");
    }
    assert_status(pawl_store_remove(rig->store, 0, text_bytes("k")), PAWL_ENOTFOUND);
    assert_ok(pawl_store_remove_range(rig->store, (pawl_range){.space = 3}));
    assert_ok(pawl_store_commit(rig->store));
    assert_ok(pawl_store_commit(rig->store));
}

static void values_of_every_size_come_back(struct store_rig *rig)
{
    static const size_t sizes[] = {0, 1, 100, 2000, 4096, 70000, 1 << 20};
    uint8_t *bytes = malloc(1 << 20);
    for (size_t i = 0; i < 1 << 20; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    for (int replacing = 0; replacing < 2; replacing++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            uint8_t key = (uint8_t)(replacing ? 7 - i : i + 1);
            assert_ok(pawl_store_put(rig->store, 1, (pawl_bytes){&key, 1}, (pawl_bytes){bytes, sizes[i]}));
        }
        assert_ok(pawl_store_commit(rig->store));
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            uint8_t key = (uint8_t)(replacing ? 7 - i : i + 1);
            pawl_bytes value;
            assert_ok(pawl_store_get(pawl_store_writer(rig->store), 1, (pawl_bytes){&key, 1}, &value));
            assert_true(bytes_equal(value, (pawl_bytes){bytes, sizes[i]}));
        }
    }
    free(bytes);
}

static void arguments_outside_their_limits_are_refused(struct store_rig *rig)
{
    pawl_store *s = rig->store;
    pawl_reader *writer = pawl_store_writer(s);
    uint8_t *big = calloc(1, PAWL_KEY_BYTES_MAX + 1);
    pawl_bytes key = text_bytes("k"), value, longest = {big, PAWL_KEY_BYTES_MAX},
               too_long = {big, PAWL_KEY_BYTES_MAX + 1}, empty = {0};
    assert_status(pawl_store_put(s, PAWL_STORE_SPACES, key, key), PAWL_EINVAL);
    assert_status(pawl_store_put(s, 0, empty, key), PAWL_EINVAL);
    assert_status(pawl_store_put(s, 0, too_long, key), PAWL_ETOOBIG);
    assert_status(pawl_store_put(s, 0, key, (pawl_bytes){big, PAWL_VALUE_BYTES_MAX + 1}), PAWL_ETOOBIG);
    assert_contains(s->error.text, "limit");
    assert_status(pawl_store_remove(s, PAWL_STORE_SPACES, key), PAWL_EINVAL);
    assert_status(pawl_store_remove(s, 0, empty), PAWL_EINVAL);
    assert_status(pawl_store_remove_range(s, (pawl_range){.space = PAWL_STORE_SPACES}), PAWL_EINVAL);
    assert_status(pawl_store_remove_range(s, (pawl_range){.to = too_long}), PAWL_ETOOBIG);
    assert_status(pawl_store_get(writer, PAWL_STORE_SPACES, key, &value), PAWL_EINVAL);
    assert_status(pawl_store_get(writer, 0, empty, &value), PAWL_EINVAL);
    assert_status(pawl_store_scan(writer, (pawl_range){.from = too_long}, false, list_key, NULL), PAWL_ETOOBIG);
    assert_ok(pawl_store_put(s, 0, longest, key));
    assert_ok(pawl_store_commit(s));
    assert_ok(pawl_store_get(writer, 0, longest, &value));
    assert_int_equal(rig_digest(writer).rows, 1);
    free(big);
}

static void ranges_have_their_from_and_not_their_to(struct store_rig *rig)
{
    static const struct {
        const char *from, *to, *forward, *reverse;
    } cases[] = {
        {"", "", "a ab b c ca d ", "d ca c b ab a "},
        {"b", "", "b c ca d ", "d ca c b "},
        {"", "c", "a ab b ", "b ab a "},
        {"ab", "ca", "ab b c ", "c b ab "},
        {"aa", "cb", "ab b c ca ", "ca c b ab "},
        {"a", "a", "", ""},
        {"b", "a", "", ""},
        {"d", "e", "d ", "d "},
        {"da", "z", "", ""},
        {"", "a", "", ""},
        {"Z", "zzz", "a ab b c ca d ", "d ca c b ab a "},
    };
    static const char *const keys[] = {"c", "a", "d", "ab", "ca", "b"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        rig_put(rig->store, 2, keys[i], keys[i]);
    for (int committed = 0; committed < 2; committed++) {
        pawl_reader *writer = pawl_store_writer(rig->store);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            assert_string_equal(rig_keys(writer, 2, cases[i].from, cases[i].to, false), cases[i].forward);
            assert_string_equal(rig_keys(writer, 2, cases[i].from, cases[i].to, true), cases[i].reverse);
        }
        assert_ok(pawl_store_commit(rig->store));
    }
}

static bool stop_at_third(void *arg, pawl_bytes key, pawl_bytes value)
{
    return ++*(int *)arg < 3;
}

static void a_scan_stops_when_it_is_told_to(struct store_rig *rig)
{
    for (int c = 'a'; c < 'k'; c++)
        rig_put(rig->store, 0, (char[]){(char)c, 0}, "v");
    for (int reverse = 0; reverse < 2; reverse++) {
        int seen = 0;
        assert_ok(
            pawl_store_scan(pawl_store_writer(rig->store), (pawl_range){0}, reverse, stop_at_third, &seen));
        assert_int_equal(seen, 3);
    }
}

static void remove_range_removes_just_its_range(struct store_rig *rig)
{
    for (int i = 0; i < 2000; i++) {
        char key[8];
        snprintf(key, sizeof key, "%04d", i);
        rig_put(rig->store, 0, key, key);
        rig_put(rig->store, 1, key, key);
    }
    assert_ok(pawl_store_commit(rig->store));
    pawl_range middle = {.from = text_bytes("0003"), .to = text_bytes("1995")};
    assert_ok(pawl_store_remove_range(rig->store, middle));
    pawl_reader *writer = pawl_store_writer(rig->store);
    assert_string_equal(rig_keys(writer, 0, "", "", false), "0000 0001 0002 1995 1996 1997 1998 1999 ");
    pawl_store_abort(rig->store);
    assert_string_equal(rig_get(writer, 0, "0003"), "0003");
    assert_ok(pawl_store_remove_range(rig->store, middle));
    assert_ok(pawl_store_commit(rig->store));
    assert_string_equal(rig_keys(writer, 0, "", "", true), "1999 1998 1997 1996 1995 0002 0001 0000 ");
    assert_ok(pawl_store_remove_range(rig->store, (pawl_range){.to = text_bytes("0002")}));
    assert_ok(pawl_store_remove_range(rig->store, (pawl_range){.from = text_bytes("1996")}));
    assert_ok(
        pawl_store_remove_range(rig->store, (pawl_range){.from = text_bytes("5"), .to = text_bytes("4")}));
    assert_string_equal(rig_keys(writer, 0, "", "", false), "0002 1995 ");
    assert_ok(pawl_store_remove_range(rig->store, (pawl_range){.space = 0}));
    assert_string_equal(rig_keys(writer, 0, "", "", false), "");
    pawl_digest other;
    assert_ok(pawl_store_digest(writer, (pawl_range){.space = 1}, &other));
    assert_int_equal(other.rows, 2000);
}

static void spaces_are_apart(struct store_rig *rig)
{
    for (uint8_t i = 0; i < PAWL_STORE_SPACES; i++)
        rig_put(rig->store, i, "k", (char[]){(char)('0' + i), 0});
    assert_ok(pawl_store_remove(rig->store, 2, text_bytes("k")));
    assert_ok(pawl_store_commit(rig->store));
    pawl_reader *writer = pawl_store_writer(rig->store);
    assert_string_equal(rig_get(writer, 0, "k"), "0");
    assert_string_equal(rig_get(writer, 1, "k"), "1");
    assert_string_equal(rig_get(writer, 2, "k"), "-");
    assert_string_equal(rig_get(writer, 3, "k"), "3");
}

/* Keys around the limits: their bytes are a letter each, then what differs. */

struct seen {
    pawl_bytes keys[64]; /* borrowed: fine while the store does not change */
    size_t count;
};

static bool see(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct seen *seen = arg;
    assert_true(bytes_equal(key, value)); /* these tests put each key as its own value */
    seen->keys[seen->count++] = key;
    return seen->count < 64;
}

static pawl_bytes long_key(uint8_t *room, size_t size, uint8_t fill, uint8_t last)
{
    memset(room, fill, size);
    room[size - 1] = last;
    return (pawl_bytes){room, size};
}

/* Rooms for many keys; each test fills them anew. */
static uint8_t rooms[64][2 * KEY_LONG];

static size_t put_keys_around_the_limits(pawl_store *store)
{
    static const size_t sizes[] = {1, 493, 494, 495, 510, 511, 512, 513, KEY_LONG};
    size_t n = 0;
    for (int fill = 'a'; fill < 'd'; fill++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (uint8_t last = 0; last < 2; last++) {
                pawl_bytes key = long_key(rooms[n++], sizes[i], (uint8_t)fill, last ? (uint8_t)fill : 0xff);
                assert_ok(pawl_store_put(store, 0, key, key));
            }
        }
    }
    return n - 3 + 1; /* the three single bytes 0xff are one key */
}

static void keys_sort_as_documented_around_their_limits(struct store_rig *rig)
{
    struct seen seen = {0};
    size_t count = put_keys_around_the_limits(rig->store);
    assert_ok(pawl_store_commit(rig->store));
    assert_ok(pawl_store_scan(pawl_store_writer(rig->store), (pawl_range){0}, false, see, &seen));
    assert_int_equal(seen.count, count);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            pawl_bytes a = seen.keys[i], b = seen.keys[j];
            if (a.size > PAWL_KEY_BYTES_SORTED || b.size > PAWL_KEY_BYTES_SORTED) {
                a.size = a.size < PAWL_KEY_BYTES_PREFIX ? a.size : PAWL_KEY_BYTES_PREFIX;
                b.size = b.size < PAWL_KEY_BYTES_PREFIX ? b.size : PAWL_KEY_BYTES_PREFIX;
                assert_true(bytes_compare(a, b) <= 0);
            } else {
                assert_true(bytes_compare(a, b) < 0);
            }
        }
    }
}

static void a_scan_continues_from_any_key_that_it_showed(struct store_rig *rig)
{
    struct seen all = {0};
    size_t count = put_keys_around_the_limits(rig->store);
    assert_ok(pawl_store_commit(rig->store));
    pawl_reader *writer = pawl_store_writer(rig->store);
    assert_ok(pawl_store_scan(writer, (pawl_range){0}, false, see, &all));
    for (size_t i = 0; i < count; i++) {
        struct seen rest = {0}, before = {0};
        assert_ok(pawl_store_scan(writer, (pawl_range){.from = all.keys[i]}, false, see, &rest));
        assert_ok(pawl_store_scan(writer, (pawl_range){.to = all.keys[i]}, true, see, &before));
        assert_int_equal(rest.count, count - i);
        assert_int_equal(before.count, i);
        for (size_t j = 0; j < rest.count; j++)
            assert_true(bytes_equal(rest.keys[j], all.keys[i + j]));
        for (size_t j = 0; j < i; j++)
            assert_true(bytes_equal(before.keys[j], all.keys[i - 1 - j]));
    }
}

static void remove_range_ends_at_any_key(struct store_rig *rig)
{
    struct seen all = {0};
    size_t count = put_keys_around_the_limits(rig->store);
    assert_ok(pawl_store_commit(rig->store));
    pawl_reader *snapshot = rig_snapshot(rig->store), *writer = pawl_store_writer(rig->store);
    assert_ok(pawl_store_scan(snapshot, (pawl_range){0}, false, see, &all));
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i; j < count; j++) {
            struct seen left = {0};
            assert_ok(
                pawl_store_remove_range(rig->store, (pawl_range){.from = all.keys[i], .to = all.keys[j]}));
            assert_ok(pawl_store_scan(writer, (pawl_range){0}, false, see, &left));
            assert_int_equal(left.count, count - (j - i));
            for (size_t k = 0; k < left.count; k++)
                assert_true(bytes_equal(left.keys[k], all.keys[k < i ? k : k + (j - i)]));
            pawl_store_abort(rig->store);
        }
    }
    pawl_store_release(rig->store, snapshot);
}

/* Two keys with one XXH3. Each 8-byte lane of a stripe adds itself to one accumulator, and the product of its
 * halves, mixed with the secret, to another. Make the low halves equal the secret's, so that the products are
 * zero, and move one unit from a lane's high half to that of the same lane a stripe later. */
static void make_colliding_keys(uint8_t *a, uint8_t *b)
{
    memset(a, 'x', KEY_LONG);
    for (size_t stripe = 8; stripe < 10; stripe++) {
        memcpy(a + 64 * stripe, XXH3_kSecret + 8 * stripe, 4);
        put_u32(a + 64 * stripe + 4, 1000);
    }
    memcpy(b, a, KEY_LONG);
    put_u32(b + 64 * 8 + 4, 1001);
    put_u32(b + 64 * 9 + 4, 999);
}

static void keys_that_share_a_stored_form_stay_apart(struct store_rig *rig)
{
    uint8_t *a = rooms[0], *b = rooms[1];
    make_colliding_keys(a, b);
    uint8_t form[PAWL_KEY_BYTES_SORTED], form_b[PAWL_KEY_BYTES_SORTED];
    pawl_bytes keys[3] = {{form, sizeof form}, {a, KEY_LONG}, {b, KEY_LONG}};
    longkey_place(keys[1], form);
    longkey_place(keys[2], form_b);
    assert_memory_equal(form, form_b, sizeof form);

    pawl_reader *writer = pawl_store_writer(rig->store);
    for (unsigned chosen = 0; chosen < 8;
         chosen++) { /* every subset of the three, put, seen, and removed again */
        struct seen forward = {0}, reverse = {0};
        for (unsigned i = 3; i-- > 0;)
            if (chosen & 1u << i)
                assert_ok(pawl_store_put(rig->store, 0, keys[i], keys[i]));
        assert_ok(pawl_store_commit(rig->store));
        assert_ok(pawl_store_scan(writer, (pawl_range){0}, false, see, &forward));
        assert_ok(pawl_store_scan(writer, (pawl_range){0}, true, see, &reverse));
        assert_int_equal(forward.count, __builtin_popcount(chosen));
        assert_int_equal(reverse.count, forward.count);
        for (size_t i = 0; i < forward.count; i++)
            assert_true(bytes_equal(forward.keys[i], reverse.keys[forward.count - 1 - i]));
        for (unsigned i = 0; i < 3; i++) {
            pawl_bytes value;
            int there = chosen & 1u << i ? PAWL_OK : PAWL_ENOTFOUND;
            struct seen rest = {0};
            assert_ok(pawl_store_scan(writer, (pawl_range){.from = keys[i]}, false, see, &rest));
            assert_int_equal(rest.count, __builtin_popcount(chosen >> i << i));
            assert_status(pawl_store_get(writer, 0, keys[i], &value), there);
        }
        /* The middle one by a range of its own, the others by name. */
        assert_ok(pawl_store_remove_range(rig->store, (pawl_range){.from = keys[1], .to = keys[2]}));
        assert_status(pawl_store_remove(rig->store, 0, keys[1]), PAWL_ENOTFOUND);
        for (unsigned i = 0; i < 3; i += 2)
            assert_status(pawl_store_remove(rig->store, 0, keys[i]),
                          chosen & 1u << i ? PAWL_OK : PAWL_ENOTFOUND);
        assert_int_equal(rig_digest(writer).rows, 0);
    }
}

static void digests_depend_on_the_rows_alone(struct store_rig *rig)
{
    pawl_reader *writer = pawl_store_writer(rig->store);
    pawl_digest kept = {0}, read;
    for (int i = 0; i < 50; i++) {
        char key[8];
        snprintf(key, sizeof key, "%d", (i * 7) % 50);
        rig_put(rig->store, 0, key, key);
        rig_put(rig->store, 1, (char[]){(char)('a' + i), 0}, "gone");
        pawl_digest_add(&kept, text_bytes(key), text_bytes(key));
    }
    assert_ok(pawl_store_digest(writer, (pawl_range){.space = 0}, &read));
    assert_true(pawl_digest_equal(&kept, &read));
    assert_int_equal(read.rows, 50);
    pawl_digest_subtract(&kept, text_bytes("7"), text_bytes("7"));
    assert_false(pawl_digest_equal(&kept, &read));
    pawl_digest_add(&kept, text_bytes("7"), text_bytes("8"));
    rig_put(rig->store, 0, "7", "8");
    assert_ok(pawl_store_commit(rig->store));
    assert_ok(pawl_store_digest(writer, (pawl_range){.space = 0}, &read));
    assert_true(pawl_digest_equal(&kept, &read));
    assert_ok(pawl_store_digest(writer, (pawl_range){.from = text_bytes("1"), .to = text_bytes("2")}, &read));
    assert_int_equal(read.rows, 11);
}

static const struct store_test content_tests[] = {
#define T(name)                                                                                                \
    {                                                                                                          \
#name, name                                                                                            \
    }
    T(an_empty_store_has_nothing),
    T(values_of_every_size_come_back),
    T(arguments_outside_their_limits_are_refused),
    T(ranges_have_their_from_and_not_their_to),
    T(a_scan_stops_when_it_is_told_to),
    T(remove_range_removes_just_its_range),
    T(spaces_are_apart),
    T(keys_sort_as_documented_around_their_limits),
    T(a_scan_continues_from_any_key_that_it_showed),
    T(remove_range_ends_at_any_key),
    T(keys_that_share_a_stored_form_stay_apart),
    T(digests_depend_on_the_rows_alone),
#undef T
};

/* One cmocka test for each kind and sentence. */
struct run {
    const struct store_kind *kind;
    const struct store_test *test;
    char name[160];
};

static void run_one(void **state)
{
    const struct run *run = *state;
    struct store_rig rig = {.kind = run->kind, .site = run->kind->make()};
    assert_non_null(rig.site);
    rig.store = rig_open(&rig, "a", run->kind->mode, NULL);
    run->test->fn(&rig);
    if (rig.store)
        assert_ok(pawl_store_close(rig.store));
    rig.kind->destroy(rig.site);
}

#define RUNS_MAX 128

int store_contract_run(const struct store_kind *kinds, size_t count)
{
    static struct run runs[RUNS_MAX];
    static struct CMUnitTest tests[RUNS_MAX];
    const struct {
        const struct store_test *tests;
        size_t count;
    } parts[] = {
        {content_tests, sizeof content_tests / sizeof content_tests[0]},
        {store_state_tests, store_state_tests_count},
        {store_random_tests, store_random_tests_count},
    };
    size_t n = 0;
    for (size_t k = 0; k < count; k++) {
        for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
            for (size_t t = 0; t < parts[p].count && n < RUNS_MAX; t++, n++) {
                runs[n] = (struct run){.kind = &kinds[k], .test = &parts[p].tests[t]};
                snprintf(runs[n].name, sizeof runs[n].name, "%s: %s", kinds[k].name, parts[p].tests[t].name);
                tests[n] =
                    (struct CMUnitTest){.name = runs[n].name, .test_func = run_one, .initial_state = &runs[n]};
            }
        }
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return _cmocka_run_group_tests("store contract", tests, n, NULL, NULL);
}

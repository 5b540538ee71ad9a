#include "test/lib/test.h"

#include "base/bytes.h"
#include "base/hash.h"

/* Values that are in files and decide where workspaces live. If one of these tests fails, the code is wrong:
 * never change the expected value. Bytes hashed: 0, 1, 2, ...; the sizes take every path of XXH3. */
#define SEED UINT64_C(0x9e3779b97f4a7c15)

static void fill(uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)i;
}

TEST(a_checksum_never_changes)
{
    static const struct {
        size_t size;
        uint64_t unseeded, seeded;
    } cases[] = {
        {0, UINT64_C(0x2d06800538d394c2), UINT64_C(0x602b0e2cd6662c8b)},
        {1, UINT64_C(0xc44bdff4074eecdb), UINT64_C(0x062b185e4e01441a)},
        {3, UINT64_C(0x5f4299fc161c9cbb), UINT64_C(0xbe1fd1f503b5d59e)},
        {8, UINT64_C(0x3a1c2d7c85af88f8), UINT64_C(0xb82d9ef5fd6b3172)},
        {16, UINT64_C(0x8355e3a6f61770db), UINT64_C(0x3d392960bfd9df8a)},
        {17, UINT64_C(0x9ef341a99de37328), UINT64_C(0x89e5f063c641de9f)},
        {128, UINT64_C(0x85c6174c7ff4c46b), UINT64_C(0x77bf966868f4b200)},
        {129, UINT64_C(0xec7642b431ba3e5a), UINT64_C(0x747f159fdd2d2177)},
        {240, UINT64_C(0x375a384d957fe865), UINT64_C(0xe6e766db0868c372)},
        {241, UINT64_C(0x02e8cd95421c6d02), UINT64_C(0x172114de208c5a80)},
        {300, UINT64_C(0xd44052f5a3485425), UINT64_C(0xad52c32b38775706)},
    };
    uint8_t bytes[300];
    fill(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pawl_bytes b = {bytes, cases[i].size};
        assert_true(hash_checksum(0, b) == cases[i].unseeded);
        assert_true(hash_checksum(SEED, b) == cases[i].seeded);
    }
}

TEST(a_token_never_changes)
{
    static const struct {
        uint64_t wsid, token;
    } cases[] = {
        {0, UINT64_C(0xc77b3abb6f87acd9)},          {1, UINT64_C(0x2fbc593564db792e)},
        {2, UINT64_C(0x2086c65c91eee243)},          {UINT64_C(0x800000020000), UINT64_C(0xcf631ccf4a048ede)},
        {UINT64_MAX, UINT64_C(0x5111c7e47d784413)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(hash_token(cases[i].wsid) == cases[i].token);
}

TEST(a_token_is_the_checksum_of_the_little_endian_bytes)
{
    uint8_t bytes[8];
    put_u64(bytes, UINT64_C(0x0123456789abcdef));
    assert_true(hash_token(UINT64_C(0x0123456789abcdef)) == hash_checksum(0, (pawl_bytes){bytes, 8}));
}

TEST(a_wide_hash_never_changes)
{
    static const struct {
        size_t size;
        struct hash128 hash;
    } cases[] = {
        {0, {UINT64_C(0x6001c324468d497f), UINT64_C(0x99aa06d3014798d8)}},
        {17, {UINT64_C(0xc06e233df7729217), UINT64_C(0x685bc458b37d057f)}},
        {300, {UINT64_C(0xd44052f5a3485425), UINT64_C(0xa699035354fc0beb)}},
    };
    uint8_t bytes[300];
    fill(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hash128 h = hash_wide((pawl_bytes){bytes, cases[i].size});
        assert_true(h.low == cases[i].hash.low);
        assert_true(h.high == cases[i].hash.high);
    }
}

TEST(a_row_is_its_key_and_its_value_and_not_their_concatenation)
{
    static const char *const rows[][2] = {{"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"},
                                          {"c", "ab"}, {"", ""},    {"a", "a"},  {"b", "b"}};
    size_t n = sizeof rows / sizeof rows[0];
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            struct hash128 a = hash_row(text_bytes(rows[i][0]), text_bytes(rows[i][1]));
            struct hash128 b = hash_row(text_bytes(rows[k][0]), text_bytes(rows[k][1]));
            assert_true(a.low != b.low);
            assert_true(a.high != b.high);
        }
}

TEST(the_hash_of_a_row_never_changes)
{
    struct hash128 h = hash_row(text_bytes("ab"), text_bytes("c"));
    assert_true(h.low == UINT64_C(0x6d636a3aeb5b7705));
    assert_true(h.high == UINT64_C(0x4c20d6c01818e674));
}

static struct hash128 chain_of(const char *first, const char *second)
{
    struct hash128 digest = {0};
    hash_chain(&digest, text_bytes(first));
    hash_chain(&digest, text_bytes(second));
    return digest;
}

TEST(a_chain_knows_its_pieces_and_their_order)
{
    struct hash128 digest = chain_of("ab", "c");
    assert_true(digest.low == chain_of("ab", "c").low && digest.high == chain_of("ab", "c").high);
    assert_true(digest.low != chain_of("a", "bc").low);
    assert_true(digest.low != chain_of("c", "ab").low);
    assert_true(chain_of("", "").low != chain_of("", "x").low);
}

TEST(the_mix_brings_high_bits_down_to_the_low_ones)
{
    assert_true(hash_mix(0) == 0);
    uint64_t low_bits = 0;
    for (uint64_t i = 0; i < 64; i++)
        low_bits |= UINT64_C(1) << (hash_mix(i << 58) & 63);
    assert_true(__builtin_popcountll(low_bits) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_checksum_never_changes),
        RUN(a_token_never_changes),
        RUN(a_token_is_the_checksum_of_the_little_endian_bytes),
        RUN(a_wide_hash_never_changes),
        RUN(a_row_is_its_key_and_its_value_and_not_their_concatenation),
        RUN(the_hash_of_a_row_never_changes),
        RUN(a_chain_knows_its_pieces_and_their_order),
        RUN(the_mix_brings_high_bits_down_to_the_low_ones),
    };
    return TEST_MAIN(tests);
}

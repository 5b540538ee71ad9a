/* test_sha256.c: SHA-256 is that of FIPS 180-4. Digests are in files: never change an expected value. */
#include "test/lib/test.h"

#include "base/sha256.h"

static void hex(pawl_bytes bytes, char text[2 * SHA256_BYTES + 1])
{
    uint8_t digest[SHA256_BYTES];
    sha256(bytes, digest);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

TEST(the_examples_of_the_standard_come_out)
{
    static const struct {
        const char *text, *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
         "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char text[2 * SHA256_BYTES + 1];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hex(text_bytes(cases[i].text), text);
        assert_string_equal(text, cases[i].digest);
    }
}

TEST(a_million_letters_have_the_digest_of_the_standard)
{
    char text[2 * SHA256_BYTES + 1];
    char *letters = malloc(1000000);
    assert_non_null(letters);
    memset(letters, 'a', 1000000);
    hex((pawl_bytes){letters, 1000000}, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(letters);
}

/* The bytes 0, 1, 2, ... of each size from 0 to 300, so with every rest of a block; and the digest of all these
 * digests, as another implementation has it. */
TEST(every_size_is_padded_right)
{
    static uint8_t bytes[300], all[301 * SHA256_BYTES];
    char text[2 * SHA256_BYTES + 1];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (size_t size = 0; size <= sizeof bytes; size++)
        sha256((pawl_bytes){bytes, size}, all + size * SHA256_BYTES);
    hex((pawl_bytes){all, sizeof all}, text);
    assert_string_equal(text, "ddbdb189f5834c274dbe603d6d2874adf7234fd8a075c3d1bfbadc2107a75676");
}

TEST(digests_that_differ_in_one_bit_are_not_equal)
{
    uint8_t a[SHA256_BYTES], b[SHA256_BYTES];
    sha256(text_bytes("abc"), a);
    memcpy(b, a, sizeof b);
    assert_true(sha256_equal(a, b));
    for (size_t bit = 0; bit < 8 * SHA256_BYTES; bit++) {
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(sha256_equal(a, b));
        assert_false(sha256_equal(b, a));
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(sha256_equal(a, b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(the_examples_of_the_standard_come_out),
        RUN(a_million_letters_have_the_digest_of_the_standard),
        RUN(every_size_is_padded_right),
        RUN(digests_that_differ_in_one_bit_are_not_equal),
    };
    return TEST_MAIN(tests);
}

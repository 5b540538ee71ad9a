/* test_token.c: an access token by its definition, as bytes, and what it allows. */
#include "test/lib/test.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "core/token/token.h"

#define NOW    INT64_C(1000)
#define SECRET "pawl_0123456789abcdefghijklmnopqrstuvwxyz-_ABCDE"

static struct token defined(const pawl_token_definition *definition)
{
    struct token token;
    uint8_t digest[SHA256_BYTES];
    pawl_error error = {0};
    assert_ok(token_define(definition, (pawl_wall){NOW}, &token, &error));
    sha256(text_bytes(SECRET), digest);
    token_identify(&token, digest);
    return token;
}

static struct token bound(size_t count)
{
    uint64_t wsids[PAWL_TOKEN_WSIDS_MAX];
    for (size_t i = 0; i < count; i++)
        wsids[i] = 3 * i + 7;
    return defined(&(pawl_token_definition){
        .name = "deploy-2", .scopes = PAWL_SCOPE_READ | PAWL_SCOPE_WRITE, .wsids = wsids, .wsid_count = count});
}

TEST(a_definition_becomes_a_token)
{
    uint64_t wsids[] = {9, 7, UINT64_MAX, 7, 8, 9};
    struct token token = defined(&(pawl_token_definition){
        .name = "a", .scopes = PAWL_SCOPE_ADMIN, .wsids = wsids, .wsid_count = 6, .expires = {NOW + 1}});
    const pawl_token *t = &token.shown;
    assert_string_equal(t->name, "a");
    assert_int_equal(t->scopes, PAWL_SCOPE_ADMIN);
    assert_int_equal(t->created.ns, NOW);
    assert_int_equal(t->expires.ns, NOW + 1);
    assert_int_equal(t->wsid_count, 4);
    assert_true(t->wsids[0] == 7 && t->wsids[1] == 8 && t->wsids[2] == 9 && t->wsids[3] == UINT64_MAX);
    assert_false(token_is_expired(t, (pawl_wall){NOW}));
    assert_true(token_is_expired(t, (pawl_wall){NOW + 1}));
    struct token lasting = bound(0);
    assert_false(token_is_expired(&lasting.shown, (pawl_wall){INT64_MAX}));
}

TEST(the_id_is_the_beginning_of_the_digest)
{
    struct token token = bound(0);
    assert_int_equal(strlen(token.shown.id), PAWL_TOKEN_ID_SIZE);
    for (size_t i = 0; i < PAWL_TOKEN_ID_SIZE / 2; i++) {
        char byte[3];
        snprintf(byte, sizeof byte, "%02x", token.digest[i]);
        assert_memory_equal(token.shown.id + 2 * i, byte, 2);
    }
}

TEST(a_definition_that_makes_no_sense_is_refused)
{
    static const uint64_t wsids[PAWL_TOKEN_WSIDS_MAX + 1] = {0};
    char long_name[PAWL_TOKEN_NAME_MAX + 2];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const struct {
        pawl_token_definition definition;
        const char *words;
    } cases[] = {
        {{.name = NULL, .scopes = 1}, "name of a token"},
        {{.name = "", .scopes = 1}, "name of a token"},
        {{.name = long_name, .scopes = 1}, "1 to 64 letters"},
        {{.name = "-a", .scopes = 1}, "begins with a letter or a digit"},
        {{.name = "a b", .scopes = 1}, "name of a token"},
        {{.name = "a/b", .scopes = 1}, "name of a token"},
        {{.name = "a\n", .scopes = 1}, "name of a token"},
        {{.name = "\xc3\xa4", .scopes = 1}, "name of a token"},
        {{.name = "a", .scopes = 0}, "at least one of the scopes"},
        {{.name = "a", .scopes = 16}, "at least one of the scopes"},
        {{.name = "a", .scopes = 1, .expires = {NOW}}, "in the future"},
        {{.name = "a", .scopes = 1, .expires = {-1}}, "in the future"},
        {{.name = "a", .scopes = 1, .wsid_count = 1}, "are missing"},
        {{.name = "a", .scopes = 1, .wsids = wsids, .wsid_count = 1}, "no workspace 0"},
        {{.name = "a", .scopes = 1, .wsids = wsids, .wsid_count = PAWL_TOKEN_WSIDS_MAX + 1}, "at most 64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct token token = {.shown.scopes = 77};
        pawl_error error = {0};
        print_message("# case %zu\n", i);
        assert_status(token_define(&cases[i].definition, (pawl_wall){NOW}, &token, &error), PAWL_EINVAL);
        assert_contains(error.text, cases[i].words);
        assert_int_equal(token.shown.scopes, 77);
    }
    long_name[PAWL_TOKEN_NAME_MAX] = '\0';
    (void)defined(&(pawl_token_definition){.name = long_name, .scopes = PAWL_SCOPE_ALL});
    (void)defined(&(pawl_token_definition){.name = "0.a_B-9", .scopes = PAWL_SCOPE_ALL});
}

TEST(scopes_have_names)
{
    unsigned scopes = 77;
    pawl_error error = {0};
    assert_ok(pawl_scopes_parse("read", &scopes, &error));
    assert_int_equal(scopes, PAWL_SCOPE_READ);
    assert_ok(pawl_scopes_parse("admin,write,admin,project,read", &scopes, &error));
    assert_int_equal(scopes, PAWL_SCOPE_ALL);
    const char *bad[] = {"", ",", "read,", ",read", "Read", "read write", "reads", "read,,write", "all"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        scopes = 77;
        assert_status(pawl_scopes_parse(bad[i], &scopes, &error), PAWL_EINVAL);
        assert_contains(error.text, "read, write, project or admin");
        assert_int_equal(scopes, 77);
    }
    assert_string_equal(pawl_scope_name(PAWL_SCOPE_PROJECT), "project");
    assert_null(pawl_scope_name(0));
    assert_null(pawl_scope_name(3));
    assert_null(pawl_scope_name(16));
}

TEST(a_token_allows_its_scopes_and_no_other)
{
    for (unsigned has = 0; has <= PAWL_SCOPE_ALL; has++)
        for (unsigned asked = 0; asked < 32; asked++) {
            pawl_token token = {.scopes = has};
            assert_int_equal(pawl_token_allows(&token, asked, 7), asked != 0 && (has & asked) == asked);
            assert_int_equal(pawl_token_allows(&token, asked, 0), asked != 0 && (has & asked) == asked);
        }
}

TEST(a_bound_token_is_good_for_its_workspaces_alone)
{
    struct token token = bound(3);
    const pawl_token *t = &token.shown;
    assert_true(pawl_token_allows(t, PAWL_SCOPE_READ, 7));
    assert_true(pawl_token_allows(t, PAWL_SCOPE_READ | PAWL_SCOPE_WRITE, 13));
    assert_false(pawl_token_allows(t, PAWL_SCOPE_READ, 8));
    assert_false(pawl_token_allows(t, PAWL_SCOPE_READ, 16));
    assert_false(pawl_token_allows(t, PAWL_SCOPE_READ, 0));
    assert_false(pawl_token_allows(t, PAWL_SCOPE_ADMIN, 7));
}

/* --- as bytes --- */

static pawl_bytes name_of(const struct token *token)
{
    return text_bytes(token->shown.name);
}

TEST(a_token_comes_back_from_its_bytes)
{
    size_t counts[] = {0, 1, 2, PAWL_TOKEN_WSIDS_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct token token = bound(counts[i]), back;
        uint8_t bytes[TOKEN_BYTES_MAX], again[TOKEN_BYTES_MAX];
        size_t size = token_encode(&token, bytes);
        assert_int_equal(size, 64 + 8 * counts[i]);
        assert_ok(token_decode(name_of(&token), (pawl_bytes){bytes, size}, &back, NULL));
        assert_string_equal(back.shown.name, token.shown.name);
        assert_string_equal(back.shown.id, token.shown.id);
        assert_int_equal(token_encode(&back, again), size);
        assert_memory_equal(again, bytes, size);
    }
}

/* docs/FORMAT.md; tokens that were made stay good. */
TEST(the_bytes_are_those_of_the_format)
{
    struct token token = bound(1);
    uint8_t bytes[TOKEN_BYTES_MAX];
    token.shown.expires.ns = 0x0102;
    assert_int_equal(token_encode(&token, bytes), 72);
    const uint8_t head[24] = {1, 0, 3, 0, 1, 0, 0, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0};
    const uint8_t wsid[8] = {7, 0, 0, 0, 0, 0, 0, 0};
    uint8_t digest[SHA256_BYTES];
    sha256(text_bytes(SECRET), digest);
    assert_memory_equal(bytes, head, sizeof head);
    assert_memory_equal(bytes + 24, digest, sizeof digest);
    assert_memory_equal(bytes + 56, wsid, sizeof wsid);
    assert_true(get_u64(bytes + 64)
                == hash_checksum(hash_checksum(0, text_bytes("deploy-2")), (pawl_bytes){bytes, 64}));
}

TEST(every_changed_bit_is_found)
{
    struct token token = bound(2), back;
    uint8_t bytes[TOKEN_BYTES_MAX];
    size_t size = token_encode(&token, bytes);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        pawl_error error = {0};
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int status = token_decode(name_of(&token), (pawl_bytes){bytes, size}, &back, &error);
        assert_status(status, bytes[0] > TOKEN_VERSION ? PAWL_EVERSION : PAWL_ECORRUPT);
        assert_contains(error.text, "token deploy-2");
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut++)
        assert_status(token_decode(name_of(&token), (pawl_bytes){bytes, cut}, &back, NULL), PAWL_ECORRUPT);
    assert_status(token_decode(text_bytes("deploy-3"), (pawl_bytes){bytes, size}, &back, NULL), PAWL_ECORRUPT);
    assert_status(token_decode(text_bytes(""), (pawl_bytes){bytes, size}, &back, NULL), PAWL_ECORRUPT);
    assert_ok(token_decode(name_of(&token), (pawl_bytes){bytes, size}, &back, NULL));
}

/* With a checksum that is right. */
TEST(bytes_that_say_what_cannot_be_are_refused)
{
    static const struct {
        size_t at;
        uint8_t byte;
    } cases[] = {
        {0, 0},     /* a version that never was */
        {1, 1},     /* not zero */
        {2, 0},     /* no scope */
        {2, 16},    /* a scope that there is not */
        {4, 1},     /* less workspaces than bytes */
        {4, 3},     /* more */
        {4, 65},    /* more than there may be */
        {23, 0x80}, /* it expired before 1970 */
        {56, 0},    /* workspace 0 */
        {56, 10},   /* one twice */
        {56, 11},   /* descending */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct token token = bound(2), back;
        uint8_t bytes[TOKEN_BYTES_MAX];
        size_t size = token_encode(&token, bytes);
        print_message("# case %zu\n", i);
        bytes[cases[i].at] = cases[i].byte;
        put_u64(bytes + size - 8,
                hash_checksum(hash_checksum(0, name_of(&token)), (pawl_bytes){bytes, size - 8}));
        assert_status(token_decode(name_of(&token), (pawl_bytes){bytes, size}, &back, NULL), PAWL_ECORRUPT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_definition_becomes_a_token),
        RUN(the_id_is_the_beginning_of_the_digest),
        RUN(a_definition_that_makes_no_sense_is_refused),
        RUN(scopes_have_names),
        RUN(a_token_allows_its_scopes_and_no_other),
        RUN(a_bound_token_is_good_for_its_workspaces_alone),
        RUN(a_token_comes_back_from_its_bytes),
        RUN(the_bytes_are_those_of_the_format),
        RUN(every_changed_bit_is_found),
        RUN(bytes_that_say_what_cannot_be_are_refused),
    };
    return TEST_MAIN(tests);
}

/* test_token_table.c: access tokens in memory: found by name and by digest, and by nothing less than the whole of
 * either. */
#include "test/lib/test.h"

#include "base/bytes.h"
#include "core/token/table.h"
#include "test/lib/alloc.h"

#define TOKENS 300

static struct token numbered(uint64_t number)
{
    struct token token = {.shown = {.scopes = PAWL_SCOPE_READ}};
    uint8_t digest[SHA256_BYTES];
    snprintf(token.shown.name, sizeof token.shown.name, "token-%" PRIu64, number);
    sha256(text_bytes(token.shown.name), digest);
    token_identify(&token, digest);
    return token;
}

static int put(struct token_table *table, const struct token *token)
{
    struct token *prepared;
    int status = token_table_prepare(table, token, &prepared);
    if (status == PAWL_OK)
        token_table_add(table, prepared);
    return status;
}

static void check(const struct token_table *table, uint64_t number, bool there)
{
    struct token token = numbered(number);
    const struct token *named = token_table_by_name(table, token.shown.name);
    const struct token *found = token_table_by_digest(table, token.digest);
    assert_true(named == found);
    assert_int_equal(named != NULL, there);
    if (named)
        assert_string_equal(named->shown.id, token.shown.id);
}

/* Against a row of bits, in an order by chance. */
TEST(tokens_come_and_go)
{
    struct test_alloc memory;
    struct token_table table;
    bool there[TOKENS] = {0};
    size_t count = 0;
    uint64_t seed = test_seed(1);
    test_alloc_init(&memory);
    token_table_init(&table, &memory.allocator);
    for (size_t i = 0; i < 5000; i++) {
        uint64_t number = test_below(&seed, TOKENS);
        struct token token = numbered(number);
        if (test_below(&seed, 2)) {
            assert_status(put(&table, &token), there[number] ? PAWL_EEXISTS : PAWL_OK);
            count += !there[number];
            there[number] = true;
        } else {
            assert_int_equal(token_table_remove(&table, token.shown.name), there[number]);
            count -= there[number];
            there[number] = false;
        }
        assert_int_equal(table.count, count);
        check(&table, number, there[number]);
    }
    for (uint64_t number = 0; number < TOKENS; number++)
        check(&table, number, there[number]);
    token_table_release(&table);
    test_alloc_release(&memory);
}

TEST(tokens_are_listed_by_name)
{
    struct token_table table;
    token_table_init(&table, NULL);
    assert_null(token_table_after(&table, ""));
    for (uint64_t number = TOKENS; number-- > 0;) {
        struct token token = numbered(number * 7 % TOKENS);
        assert_ok(put(&table, &token));
    }
    char last[PAWL_TOKEN_NAME_MAX + 1] = "";
    size_t count = 0;
    for (const struct token *t; (t = token_table_after(&table, last)) != NULL; count++) {
        assert_true(strcmp(last, t->shown.name) < 0);
        snprintf(last, sizeof last, "%s", t->shown.name);
    }
    assert_int_equal(count, TOKENS);
    assert_string_equal(token_table_after(&table, "token-1x")->shown.name, "token-2");
    token_table_release(&table);
}

/* Digests of which all but one byte are equal: each token is found by its own, and no other one finds any. */
TEST(a_digest_counts_as_a_whole)
{
    struct token_table table;
    token_table_init(&table, NULL);
    for (unsigned i = 0; i < SHA256_BYTES; i++) {
        struct token token = numbered(i);
        memset(token.digest, 0x5a, SHA256_BYTES);
        token.digest[i] = 0x5b;
        assert_ok(put(&table, &token));
    }
    uint8_t digest[SHA256_BYTES];
    memset(digest, 0x5a, sizeof digest);
    assert_null(token_table_by_digest(&table, digest));
    for (unsigned i = 0; i < SHA256_BYTES; i++) {
        struct token token = numbered(i);
        digest[i] = 0x5b;
        const struct token *found = token_table_by_digest(&table, digest);
        assert_non_null(found);
        assert_string_equal(found->shown.name, token.shown.name);
        digest[i] = 0x5c;
        assert_null(token_table_by_digest(&table, digest));
        digest[i] = 0x5a;
    }
    for (unsigned i = 0; i < SHA256_BYTES; i += 2) {
        struct token token = numbered(i);
        assert_true(token_table_remove(&table, token.shown.name));
        digest[i] = 0x5b;
        assert_null(token_table_by_digest(&table, digest));
        digest[i] = 0x5a;
    }
    token_table_release(&table);
}

TEST(there_is_a_limit)
{
    struct token_table table;
    token_table_init(&table, NULL);
    for (uint64_t number = 0; number < PAWL_TOKENS_MAX; number++) {
        struct token token = numbered(number);
        assert_ok(put(&table, &token));
    }
    struct token more = numbered(PAWL_TOKENS_MAX), one = numbered(5);
    assert_status(put(&table, &more), PAWL_ETOOBIG);
    assert_status(put(&table, &one), PAWL_EEXISTS);
    assert_true(token_table_remove(&table, one.shown.name));
    assert_ok(put(&table, &more));
    token_table_release(&table);
}

TEST(without_memory_nothing_changes)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct token_table table;
        uint64_t number = 0;
        test_alloc_init(&memory);
        token_table_init(&table, &memory.allocator);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        for (; number < 20; number++) {
            struct token token = numbered(number);
            bool before = test_alloc_failed(&memory);
            int status = put(&table, &token);
            if (status != PAWL_OK) {
                assert_status(status, PAWL_ENOMEM);
                assert_true(!before && test_alloc_failed(&memory));
                assert_int_equal(table.count, number);
                check(&table, number, false);
                assert_ok(put(&table, &token));
            }
            check(&table, number, true);
        }
        struct token *prepared, token = numbered(number);
        if (token_table_prepare(&table, &token, &prepared) == PAWL_OK)
            token_table_forget(&table, prepared);
        check(&table, number, false);
        bool failed = test_alloc_failed(&memory);
        token_table_release(&table);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(tokens_come_and_go), RUN(tokens_are_listed_by_name),      RUN(a_digest_counts_as_a_whole),
        RUN(there_is_a_limit),   RUN(without_memory_nothing_changes),
    };
    return TEST_MAIN(tests);
}

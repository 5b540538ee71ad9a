/* test_access.c: who may ask: Host, Origin, Content-Type, tokens; and which HTTP status a failure has. */
#include "test/lib/test.h"

#include "http/exchange/access.h"
#include "http/exchange/failure.h"

static const char *const names[] = {"shop.example", "Pawl.local"};

TEST(a_host_is_an_address_localhost_or_a_known_name)
{
    static const char *const good[] = {
        "localhost", "LOCALHOST:7295", "127.0.0.1:7295",   "10.0.0.7",        "[::1]:7295",
        "[fe80::1]", "shop.example",   "SHOP.example:443", "pawl.local:7295", "localhost:"};
    static const char *const bad[] = {"",
                                      "evil.example",
                                      "shop.example.evil",
                                      "xshop.example",
                                      "shop.example:80x",
                                      "shop.example:123456",
                                      "[::1",
                                      "[evil]",
                                      "[::1]x",
                                      "localhost.evil",
                                      ":80",
                                      "127.0.0.1.evil"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!access_host(good[i], names, 2))
            fail_msg("'%s' is refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (access_host(bad[i], names, 2))
            fail_msg("'%s' is not refused", bad[i]);
    assert_false(access_host(NULL, names, 2));
}

TEST(only_the_page_of_this_server_may_ask)
{
    assert_true(access_origin(NULL, "localhost:7295", false));
    assert_true(access_origin("http://localhost:7295", "localhost:7295", false));
    assert_true(access_origin("https://Shop.example", "shop.example", true));
    assert_false(access_origin("http://localhost:7296", "localhost:7295", false));
    assert_false(access_origin("http://localhost:7295", "localhost:7295", true));
    assert_false(access_origin("http://evil.example", "localhost:7295", false));
    assert_false(access_origin("http://localhost:7295.evil.example", "localhost:7295", false));
    assert_false(access_origin("null", "localhost:7295", false));
    assert_false(access_origin("", "localhost:7295", false));
    assert_false(access_origin("http://localhost", NULL, false));
}

TEST(what_is_written_says_that_it_is_json)
{
    assert_true(access_written_type("application/json"));
    assert_true(access_written_type("Application/JSON; charset=utf-8"));
    assert_true(access_written_type("application/x-ndjson ;a=b"));
    assert_false(access_written_type(NULL));
    assert_false(access_written_type(""));
    assert_false(access_written_type("text/plain"));
    assert_false(access_written_type("application/jsonx"));
    assert_false(access_written_type("application/x-www-form-urlencoded"));
    assert_false(access_written_type("multipart/form-data; boundary=application/json"));
}

TEST(a_bearer_has_one_secret)
{
    pawl_bytes secret;
    assert_true(access_bearer("Bearer abc", &secret));
    assert_int_equal(secret.size, 3);
    assert_true(access_bearer("bearer  abc", &secret));
    assert_memory_equal(secret.data, "abc", 3);
    assert_false(access_bearer("Basic abc", &secret));
    assert_false(access_bearer("Bearer", &secret));
    assert_false(access_bearer("Bearer ", &secret));
    assert_false(access_bearer("Bearer a b", &secret));
}

TEST(a_grant_has_scopes_and_may_be_bound_to_workspaces)
{
    struct grant grant = {.scopes = SCOPE_READ | SCOPE_WRITE};
    assert_true(access_allows(&grant, SCOPE_NONE));
    assert_true(access_allows(&grant, SCOPE_READ));
    assert_false(access_allows(&grant, SCOPE_ADMIN));
    assert_true(access_reaches(&grant, 7));
    assert_true(access_reaches(&grant, 0));
    grant.workspaces[0] = 7;
    grant.workspace_count = 1;
    assert_true(access_reaches(&grant, 7));
    assert_false(access_reaches(&grant, 8));
    assert_false(access_reaches(&grant, 0));
}

TEST(knows_the_addresses_of_this_machine_alone)
{
    assert_true(access_is_loopback("127.0.0.1"));
    assert_true(access_is_loopback("127.9.9.9"));
    assert_true(access_is_loopback("::1"));
    assert_false(access_is_loopback("0.0.0.0"));
    assert_false(access_is_loopback("::"));
    assert_false(access_is_loopback("10.0.0.1"));
    assert_false(access_is_loopback("128.0.0.1"));
    assert_false(access_is_loopback("localhost")); /* a name: resolve it first */
}

TEST(every_status_of_pawl_has_one_of_http)
{
    static const struct {
        int status;
        int http;
    } expected[] = {{PAWL_OK, 200},        {PAWL_EINVAL, 400},    {PAWL_ENOTFOUND, 404}, {PAWL_EEXISTS, 409},
                    {PAWL_ECONFLICT, 409}, {PAWL_EFENCED, 409},   {PAWL_ETOOBIG, 413},   {PAWL_EBUSY, 503},
                    {PAWL_ECLOSED, 503},   {PAWL_ETIMEOUT, 504},  {PAWL_EFULL, 507},     {PAWL_EUNKNOWN, 500},
                    {PAWL_EIO, 500},       {PAWL_EREADONLY, 403}, {PAWL_ENOTBUILT, 503}, {-999, 500}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(failure_status(expected[i].status), expected[i].http);
    /* An outcome that is not known must not be repeated by a client that knows nothing of keys. */
    assert_false(failure_retry(failure_status(PAWL_EUNKNOWN)));
    assert_true(failure_retry(failure_status(PAWL_EBUSY)));
}

TEST(the_body_of_a_failure_names_code_message_and_place)
{
    pawl_error error;
    char text[FAILURE_BODY_MAX];
    pawl_error_set(&error, PAWL_EINVAL, "$query.limit: not \"so\"");
    size_t size = failure_body(&error, text);
    assert_string_equal(
        text,
        "{\"error\":{\"code\":\"PAWL_EINVAL\",\"message\":\"not \\\"so\\\"\",\"where\":\"$query.limit\"}}\n");
    assert_int_equal(size, strlen(text));
    memset(error.text, 1, sizeof error.text - 1);
    assert_true(failure_body(&error, text) < FAILURE_BODY_MAX); /* each byte becomes six */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_host_is_an_address_localhost_or_a_known_name),
        RUN(only_the_page_of_this_server_may_ask),
        RUN(what_is_written_says_that_it_is_json),
        RUN(a_bearer_has_one_secret),
        RUN(a_grant_has_scopes_and_may_be_bound_to_workspaces),
        RUN(knows_the_addresses_of_this_machine_alone),
        RUN(every_status_of_pawl_has_one_of_http),
        RUN(the_body_of_a_failure_names_code_message_and_place),
    };
    return TEST_MAIN(tests);
}

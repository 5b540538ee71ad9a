/* test_routes.c: a request finds its route, and the table is as its readers expect it. */
#include "test/lib/test.h"

#include "http/routes/routes.h"

static const struct route *find(enum http_method method, const char *path, unsigned *allowed)
{
    static char text[256];
    struct target target;
    snprintf(text, sizeof text, "%s", path);
    assert_int_equal(target_parse(text, &target, NULL), PAWL_OK);
    return route_find(method, &target, allowed);
}

TEST(finds_a_route_by_method_and_path)
{
    unsigned allowed = 0;
    const struct route *route = find(METHOD_POST, "/v1/ws/7/commands", &allowed);
    assert_non_null(route);
    assert_string_equal(route->pattern, "/v1/ws/{wsid}/commands");
    assert_int_equal(route_place(route, "wsid"), 2);
    assert_true(route_place(route, "ws") == SIZE_MAX);
    assert_true(route_place(route, "commands") == SIZE_MAX);
}

TEST(says_which_methods_a_path_takes)
{
    unsigned allowed = 0;
    char text[METHODS_TEXT_MAX];
    assert_null(find(METHOD_DELETE, "/health/live", &allowed));
    assert_int_equal(allowed, METHOD_GET);
    methods_format(allowed, text);
    assert_string_equal(text, "GET, HEAD");
    methods_format(METHOD_GET | METHOD_POST | METHOD_PUT | METHOD_DELETE, text);
    assert_string_equal(text, "GET, HEAD, POST, PUT, DELETE");
}

TEST(a_path_that_is_not_there_takes_none)
{
    static const char *const paths[] = {"/v2", "/v1/ws/7/commands/x", "/V1/ws/7/commands", "/health",
                                        "/health/live/x"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        unsigned allowed = 99;
        assert_null(find(METHOD_POST, paths[i], &allowed));
        assert_int_equal(allowed, 0);
    }
}

TEST(knows_methods_by_their_exact_names)
{
    assert_int_equal(method_of("GET"), METHOD_GET);
    assert_int_equal(method_of("HEAD"), METHOD_GET);
    assert_int_equal(method_of("DELETE"), METHOD_DELETE);
    assert_int_equal(method_of("get"), 0);
    assert_int_equal(method_of("OPTIONS"), 0);
    assert_int_equal(method_of(""), 0);
}

TEST(a_list_has_whole_names)
{
    assert_true(route_lists("limit min_offset", "limit"));
    assert_true(route_lists("limit min_offset", "min_offset"));
    assert_false(route_lists("limit min_offset", "min"));
    assert_false(route_lists("limit min_offset", "offset"));
    assert_false(route_lists(NULL, "limit"));
    assert_false(route_lists("", ""));
}

/* Two rows with the same method and shape: the second would never be found. */
TEST(every_route_of_the_table_can_be_reached_and_is_described)
{
    for (size_t i = 0; i < route_count; i++) {
        char path[256] = "";
        for (const char *at = routes[i].pattern; *at; at++) { /* {name} becomes NAME */
            size_t size = strlen(path);
            assert_true(size + 1 < sizeof path);
            path[size] = *at == '{' || *at == '}' ? 'x' : *at;
        }
        unsigned allowed;
        if (find(routes[i].method, path, &allowed) != &routes[i])
            fail_msg("%s is hidden by another route", routes[i].pattern);
        assert_non_null(routes[i].handler);
        assert_true(strlen(routes[i].summary) > 5);
        if (routes[i].method != METHOD_GET && routes[i].scope == SCOPE_NONE)
            fail_msg("%s changes something, and anybody may", routes[i].pattern);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(finds_a_route_by_method_and_path),
        RUN(says_which_methods_a_path_takes),
        RUN(a_path_that_is_not_there_takes_none),
        RUN(knows_methods_by_their_exact_names),
        RUN(a_list_has_whole_names),
        RUN(every_route_of_the_table_can_be_reached_and_is_described),
    };
    return TEST_MAIN(tests);
}

/* test_openapi.c: docs/openapi.json says what the table of routes says: every route, method and parameter, in both
 * directions. test_openapi_answers.py compares it with real answers. */
#include "test/lib/test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "http/routes/routes.h"

static json_t *document(void)
{
    json_error_t place;
    json_t *tree = json_load_file(getenv("PAWL_OPENAPI"), JSON_REJECT_DUPLICATES, &place);
    if (!tree)
        print_error("line %d: %s\n", place.line, place.text);
    assert_non_null(tree);
    return tree;
}

static const char *method_name(enum http_method method)
{
    switch (method) {
    case METHOD_GET: return "get";
    case METHOD_POST: return "post";
    case METHOD_PUT: return "put";
    case METHOD_DELETE: return "delete";
    }
    return "";
}

static const char *scope_name(enum access_scope scope)
{
    switch (scope) {
    case SCOPE_NONE: return "none";
    case SCOPE_READ: return "read";
    case SCOPE_WRITE: return "write";
    case SCOPE_PROJECT: return "project";
    case SCOPE_ADMIN: return "admin";
    }
    return "";
}

static const struct route *find_route(const char *path, const char *method)
{
    for (size_t i = 0; i < route_count; i++)
        if (strcmp(routes[i].pattern, path) == 0 && strcmp(method_name(routes[i].method), method) == 0)
            return &routes[i];
    return NULL;
}

static bool has_parameter(const json_t *operation, const char *in, const char *name, size_t size)
{
    const json_t *parameter;
    size_t i;
    json_array_foreach(json_object_get(operation, "parameters"), i, parameter)
    {
        const char *said = json_string_value(json_object_get(parameter, "name"));
        if (strlen(said) == size && memcmp(said, name, size) == 0
            && strcmp(json_string_value(json_object_get(parameter, "in")), in) == 0)
            return true;
    }
    return false;
}

static size_t count_names(const char *list)
{
    size_t count = 0;
    for (const char *at = list; at && *at;) {
        count++;
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return count;
}

/* How many it has; each must be in the document. */
static size_t compare_path(const struct route *route, const json_t *operation)
{
    size_t count = 0;
    for (const char *at = strchr(route->pattern, '{'); at; at = strchr(at + 1, '{')) {
        assert_true(has_parameter(operation, "path", at + 1, strcspn(at + 1, "}")));
        count++;
    }
    return count;
}

static void compare(const struct route *route, const json_t *operation)
{
    if (!operation)
        print_error("%s %s is not in the document\n", method_name(route->method), route->pattern);
    assert_non_null(operation);
    assert_string_equal(json_string_value(json_object_get(operation, "summary")), route->summary);
    assert_string_equal(json_string_value(json_object_get(operation, "x-scope")), scope_name(route->scope));
    for (const char *at = route->params; at && *at;) {
        size_t size = strcspn(at, " ");
        if (!has_parameter(operation, "query", at, size))
            print_error("%s %s: %.*s\n", method_name(route->method), route->pattern, (int)size, at);
        assert_true(has_parameter(operation, "query", at, size));
        at += size;
        at += strspn(at, " ");
    }
    size_t count = compare_path(route, operation) + count_names(route->params);
    assert_int_equal(json_array_size(json_object_get(operation, "parameters")), count);
    bool writes = route->method == METHOD_POST || route->method == METHOD_PUT;
    assert_int_equal(json_object_get(operation, "requestBody") != NULL, writes);
    assert_non_null(json_object_get(json_object_get(operation, "responses"), "default"));
}

TEST(every_route_is_in_the_document_with_its_parameters)
{
    json_t *tree = document(), *paths = json_object_get(tree, "paths");
    for (size_t i = 0; i < route_count; i++)
        compare(&routes[i],
                json_object_get(json_object_get(paths, routes[i].pattern), method_name(routes[i].method)));
    json_decref(tree);
}

TEST(every_operation_of_the_document_is_a_route)
{
    json_t *tree = document(), *methods, *operation;
    const char *path, *method;
    size_t count = 0;
    json_object_foreach(json_object_get(tree, "paths"), path, methods)
        json_object_foreach(methods, method, operation)
    {
        if (!find_route(path, method))
            print_error("%s %s is no route\n", method, path);
        assert_non_null(find_route(path, method));
        count++;
    }
    assert_int_equal(count, route_count);
    json_decref(tree);
}

static void check_references(const json_t *root, const json_t *tree)
{
    static const char schemas[] = "#/components/schemas/", responses[] = "#/components/responses/";
    const json_t *components = json_object_get(root, "components"), *value;
    const char *name;
    size_t i;
    json_array_foreach(tree, i, value) check_references(root, value);
    json_object_foreach((json_t *)(uintptr_t)tree, name, value)
    {
        const char *to = strcmp(name, "$ref") == 0 ? json_string_value(value) : NULL;
        if (to && strncmp(to, schemas, sizeof schemas - 1) == 0)
            assert_non_null(json_object_get(json_object_get(components, "schemas"), to + sizeof schemas - 1));
        else if (to && strncmp(to, responses, sizeof responses - 1) == 0)
            assert_non_null(
                json_object_get(json_object_get(components, "responses"), to + sizeof responses - 1));
        else
            assert_null(to);
        check_references(root, value);
    }
}

TEST(every_reference_leads_somewhere)
{
    json_t *tree = document();
    assert_string_equal(json_string_value(json_object_get(tree, "openapi")), "3.1.0");
    check_references(tree, tree);
    json_decref(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(every_route_is_in_the_document_with_its_parameters),
        RUN(every_operation_of_the_document_is_a_route),
        RUN(every_reference_leads_somewhere),
    };
    return TEST_MAIN(tests);
}

/* docs/SCHEMA.md tells the truth where a test can see it. */
#include "test/lib/schema.h"
#include "test/lib/test.h"

/* The example of docs/SCHEMA.md is the shop that the other tests know. */
TEST(the_manuals_example_is_the_shop)
{
    static char manual[1 << 16];
    FILE *file = fopen(SOURCE_ROOT "/docs/SCHEMA.md", "rb");
    assert_non_null(file);
    size_t size = fread(manual, 1, sizeof manual - 1, file);
    fclose(file);
    manual[size] = '\0';
    char *from = strstr(manual, "```json\n");
    assert_non_null(from);
    char *to = strstr(from + 8, "```");
    assert_non_null(to);
    *to = '\0';

    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error = {0};
    assert_ok(group0_new(NULL, &group0));
    assert_ok(schema_apply(group0, schema_shop, &outcome, &error));
    assert_ok(schema_apply(group0, from + 8, &outcome, &error));
    assert_int_equal(outcome, GROUP0_UNCHANGED);
    group0_free(group0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(the_manuals_example_is_the_shop)};
    return TEST_MAIN(tests);
}

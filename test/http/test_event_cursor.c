/* test_event_cursor.c: a cursor of all partitions is what it was, and nothing else is one. */
#include "test/lib/test.h"

#include "http/hub/event_cursor.h"

#include <string.h>

TEST(comes_back_as_it_was)
{
    const uint32_t counts[] = {1, 2, 16, EVENT_CURSOR_PARTITIONS_MAX};
    uint64_t random = test_seed(1);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (unsigned round = 0; round < 200; round++) {
            uint64_t next[EVENT_CURSOR_PARTITIONS_MAX], read[EVENT_CURSOR_PARTITIONS_MAX];
            char text[8192];
            assert_true(event_cursor_room(counts[c]) <= sizeof text);
            for (uint32_t i = 0; i < counts[c]; i++) {
                next[i] = test_random(&random) >> test_below(&random, 64);
                next[i] = next[i] ? next[i] : 1;
            }
            size_t size = event_cursor_format(next, counts[c], text);
            assert_int_equal(size, strlen(text));
            assert_true(size < event_cursor_room(counts[c]));
            assert_int_equal(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                             size);
            assert_int_equal(event_cursor_parse(text, counts[c], "$", read, NULL), PAWL_OK);
            assert_memory_equal(next, read, counts[c] * sizeof next[0]);
        }
}

TEST(refuses_what_is_no_cursor_and_says_where)
{
    const uint64_t next[] = {1, 200, UINT64_MAX};
    uint64_t read[4];
    char text[128], longer[160];
    pawl_error error;
    event_cursor_format(next, 3, text);
    assert_int_equal(event_cursor_parse(text, 2, "$query.after", read, &error), PAWL_EINVAL);
    assert_non_null(strstr(error.text, "$query.after: "));
    assert_int_equal(event_cursor_parse(text, 4, "$", read, &error), PAWL_EINVAL);
    const char *const bad[] = {"", "A", "AQ", "!", "AQM", "AgMAAAA", "AQMAAAAA", "AQMAAA=", "AQMAAB"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(event_cursor_parse(bad[i], 3, "$", read, &error), PAWL_EINVAL);
    for (size_t i = 0; i < strlen(text); i++) { /* cut anywhere */
        memcpy(longer, text, i);
        longer[i] = '\0';
        assert_int_equal(event_cursor_parse(longer, 3, "$", read, &error), PAWL_EINVAL);
    }
    snprintf(longer, sizeof longer, "%sAAAA", text);
    assert_int_equal(event_cursor_parse(longer, 3, "$", read, &error), PAWL_EINVAL);
}

TEST(takes_any_text_without_harm)
{
    uint64_t random = test_seed(2), read[EVENT_CURSOR_PARTITIONS_MAX];
    for (unsigned round = 0; round < 20000; round++) {
        char text[64];
        size_t size = (size_t)test_below(&random, sizeof text);
        for (size_t i = 0; i < size; i++)
            text[i] = (char)(1 + test_below(&random, 255));
        text[size] = '\0';
        (void)event_cursor_parse(text, (uint32_t)(1 + test_below(&random, 16)), "$", read, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(comes_back_as_it_was),
        RUN(refuses_what_is_no_cursor_and_says_where),
        RUN(takes_any_text_without_harm),
    };
    return TEST_MAIN(tests);
}

#include "test/lib/test.h"

#include "port/log.h"

TEST(a_stream_reads_back_as_it_is_written)
{
    static const char *const texts[] = {
        "raw/0", "plog/5", "plog/65535", "oplog/5/7.2", "oplog/65535/65535.4294967295", "group0"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        pawl_stream s;
        char text[PAWL_STREAM_TEXT_MAX];
        assert_ok(pawl_stream_parse(texts[i], &s, NULL));
        assert_true(pawl_stream_valid(s));
        pawl_stream_format(s, text);
        assert_string_equal(text, texts[i]);
    }
}

TEST(what_is_no_stream_is_refused)
{
    static const char *const texts[] = {"",
                                        "raw",
                                        "raw/",
                                        "raw/65536",
                                        "raw/00",
                                        "raw/1/2",
                                        "plog/-1",
                                        "plog/1x",
                                        "oplog/1",
                                        "oplog/1/2",
                                        "oplog/1/2.",
                                        "oplog/1/2.4294967296",
                                        "group1",
                                        "group0/",
                                        "group0/0/0",
                                        " raw/0",
                                        "raw/18446744073709551617"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        pawl_stream s = {.kind = 99};
        pawl_error error;
        assert_status(pawl_stream_parse(texts[i], &s, &error), PAWL_EINVAL);
        assert_int_equal(s.kind, 99);
        assert_contains(error.text, "is not a stream");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_stream_reads_back_as_it_is_written),
        RUN(what_is_no_stream_is_refused),
    };
    return TEST_MAIN(tests);
}

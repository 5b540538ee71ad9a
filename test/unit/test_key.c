#include "test/lib/test.h"

#include "core/state/key.h"

TEST(keys_of_a_workspace_are_as_documented)
{
    static const uint8_t head[] = {0, 0, 1, 2};
    uint8_t key[KEY_NUMBERED], token[8];
    pawl_bytes bytes = key_numbered(0x102, 0x0304, 0x0506, key);
    put_u64_sorted(token, hash_token(0x0304));
    assert_int_equal(bytes.size, 28);
    assert_memory_equal(key, head, 4);
    assert_memory_equal(key + 4, token, 8);
    assert_memory_equal(key + 12, "\0\0\0\0\0\0\3\4\0\0\0\0\0\0\5\6", 16);
    assert_int_equal(key_table(bytes), 0x102);
}

TEST(numbers_sort_as_they_count)
{
    static const uint64_t numbers[] = {0, 1, 255, 256, 65535, 65536, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX};
    for (size_t i = 1; i < sizeof numbers / sizeof numbers[0]; i++) {
        uint8_t a[KEY_NUMBERED], b[KEY_NUMBERED];
        assert_true(bytes_compare(key_numbered(3, 9, numbers[i - 1], a), key_numbered(3, 9, numbers[i], b))
                    < 0);
    }
}

TEST(a_prefix_ends_before_the_next_one_of_its_size)
{
    static const struct {
        const char *prefix;
        size_t size;
        const char *end;
        size_t end_size;
    } cases[] = {
        {"a", 1, "b", 1},           {"ab", 2, "ac", 2},           {"a\xff", 2, "b", 1},
        {"\0\xff\xff", 3, "\1", 1}, {"a\xfe\xff", 3, "a\xff", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t end[8];
        pawl_bytes got = key_after_prefix((pawl_bytes){cases[i].prefix, cases[i].size}, end);
        assert_true(bytes_equal(got, (pawl_bytes){cases[i].end, cases[i].end_size}));
    }
}

TEST(a_row_of_a_workspaces_log_reads_back_and_nothing_else_does)
{
    uint8_t value[WLOG_BYTES + 1];
    struct wlog_row row = {.plog_offset = 1, .record = 200001, .key_hash = UINT64_MAX}, read = {0};
    wlog_row_write(row, value);
    assert_true(wlog_row_read((pawl_bytes){value, WLOG_BYTES}, &read));
    assert_true(read.plog_offset == 1 && read.record == 200001 && read.key_hash == UINT64_MAX);
    assert_false(wlog_row_read((pawl_bytes){value, WLOG_BYTES - 1}, &read));
    assert_false(wlog_row_read((pawl_bytes){value, WLOG_BYTES + 1}, &read));
}

TEST(a_record_reads_back_and_what_no_writer_writes_does_not)
{
    static const uint8_t expected[] = {1, 1, 0x2c, 1, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 'r', 'o', 'w'};
    uint8_t value[RECORD_BYTES + 3];
    struct record_row record = {.active = true, .type = 300, .container = 2, .parent = 9}, read = {0};
    record_head_write(&record, value);
    memcpy(value + RECORD_BYTES, "row", 3);
    assert_memory_equal(value, expected, sizeof expected);
    assert_true(record_row_read((pawl_bytes){value, sizeof value}, &read));
    assert_true(read.active && read.type == 300 && read.container == 2 && read.parent == 9);
    assert_true(bytes_equal(read.row, text_bytes("row")));
    for (size_t size = 0; size < RECORD_BYTES; size++)
        assert_false(record_row_read((pawl_bytes){value, size}, &read));
    static const struct {
        size_t at;
        uint8_t byte;
    } cases[] = {{0, 0}, {0, 2}, {1, 2}, {6, 1}, {7, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(value, expected, sizeof value);
        value[cases[i].at] = cases[i].byte;
        assert_false(record_row_read((pawl_bytes){value, sizeof value}, &read));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(keys_of_a_workspace_are_as_documented),
        RUN(numbers_sort_as_they_count),
        RUN(a_prefix_ends_before_the_next_one_of_its_size),
        RUN(a_row_of_a_workspaces_log_reads_back_and_nothing_else_does),
        RUN(a_record_reads_back_and_what_no_writer_writes_does_not),
    };
    return TEST_MAIN(tests);
}

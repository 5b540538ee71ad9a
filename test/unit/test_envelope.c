#include "test/lib/test.h"

#include "base/bytes.h"
#include "core/event/envelope.h"

static const struct event_numbers some[] = {{2, 1, 41}, {3, 5, 200001}, {700, 1, UINT64_MAX}};

static size_t make(uint8_t *body, size_t content)
{
    envelope_encode(9, 77, some, 3, body);
    memset(body + envelope_size(3), 'c', content);
    return envelope_size(3) + content;
}

TEST(an_envelope_reads_back_as_it_is_written)
{
    uint8_t body[256];
    struct envelope e;
    size_t size = make(body, 10);
    assert_ok(envelope_decode((pawl_bytes){body, size}, &e, NULL));
    assert_int_equal(e.kind, 9);
    assert_int_equal(e.wsid, 77);
    assert_int_equal(e.count, 3);
    for (size_t i = 0; i < 3; i++) {
        struct event_numbers n = envelope_numbers(&e, i);
        assert_true(n.seq == some[i].seq && n.count == some[i].count && n.first == some[i].first);
    }
    assert_int_equal(e.content.size, 10);
    assert_memory_equal(e.content.data, "cccccccccc", 10);
}

TEST(its_bytes_are_as_documented)
{
    static const uint8_t expected[] = {1, 0, 9, 0, 1, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0, /* head */
                                       2, 0, 0, 0, 3, 0, 0, 0, 41, 0, 0, 0, 0, 0, 0, 0};
    uint8_t body[sizeof expected];
    envelope_encode(9, 77, &(struct event_numbers){2, 3, 41}, 1, body);
    assert_memory_equal(body, expected, sizeof expected);
}

TEST(a_system_event_has_no_numbers)
{
    uint8_t body[ENVELOPE_FIXED];
    struct envelope e;
    envelope_encode(0, 0, NULL, 0, body);
    assert_ok(envelope_decode((pawl_bytes){body, sizeof body}, &e, NULL));
    assert_int_equal(e.wsid, 0);
    put_u16(body + 4, 1);
    assert_status(envelope_decode((pawl_bytes){body, sizeof body}, &e, NULL), PAWL_ECORRUPT);
}

TEST(one_that_ends_too_early_is_refused_at_every_length)
{
    uint8_t body[256];
    size_t size = make(body, 0);
    for (size_t n = 0; n < size; n++) {
        uint8_t *exact = malloc(n ? n : 1); /* so that a sanitizer sees a byte read too much */
        struct envelope e;
        memcpy(exact, body, n);
        assert_status(envelope_decode((pawl_bytes){exact, n}, &e, NULL), PAWL_ECORRUPT);
        free(exact);
    }
}

TEST(what_no_writer_writes_is_refused_with_its_byte)
{
    static const struct {
        size_t at;
        uint8_t value;
        int status;
        const char *words;
    } cases[] = {
        {0, 2, PAWL_EVERSION, "byte 0"},   {0, 0, PAWL_ECORRUPT, "byte 0"},
        {1, 1, PAWL_ECORRUPT, "byte 0"},   {5, 0x11, PAWL_ECORRUPT, "byte 0"},
        {6, 1, PAWL_ECORRUPT, "byte 0"},   {4, 9, PAWL_ECORRUPT, "ends inside"},
        {18, 1, PAWL_ECORRUPT, "byte 16"}, {20, 0, PAWL_ECORRUPT, "byte 16"},
        {24, 0, PAWL_ECORRUPT, "byte 16"}, {32, 1, PAWL_ECORRUPT, "byte 32"},
        {52, 2, PAWL_ECORRUPT, "byte 48"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t body[256];
        struct envelope e;
        pawl_error error = {0};
        size_t size = make(body, 0);
        body[cases[i].at] = cases[i].value;
        assert_status(envelope_decode((pawl_bytes){body, size}, &e, &error), cases[i].status);
        assert_contains(error.text, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_envelope_reads_back_as_it_is_written),
        RUN(its_bytes_are_as_documented),
        RUN(a_system_event_has_no_numbers),
        RUN(one_that_ends_too_early_is_refused_at_every_length),
        RUN(what_no_writer_writes_is_refused_with_its_byte),
    };
    return TEST_MAIN(tests);
}

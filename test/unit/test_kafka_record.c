/* A record on Kafka: what was encoded is decoded, and nothing else is. */
#include "adapter/kafka/record.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "test/lib/test.h"

#define SEED UINT64_C(77)

static struct kafka_record event(void)
{
    static const char body[] = "seven bytes and more";
    return (struct kafka_record){
        .head = {.kind = CLAIM_KIND_EVENT, .epoch = 3, .offset = 9, .chain = 5, .fragment = 3},
        .kind = 200,
        .fragments = 4,
        .body = {body, sizeof body}};
}

static struct kafka_record claim(void)
{
    return (struct kafka_record){
        .head = {.kind = CLAIM_KIND_CLAIM, .epoch = 1, .group0 = 2, .node = 3, .nonce = 4}};
}

static void mend(uint8_t *bytes, size_t size)
{
    put_u64(bytes, hash_checksum(SEED, (pawl_bytes){bytes + 8, size - 8}));
}

TEST(an_event_comes_back_as_it_was)
{
    uint8_t bytes[KAFKA_RECORD_HEADER + 64];
    struct kafka_record in = event(), out;
    kafka_record_encode(&in, SEED, bytes);
    size_t size = KAFKA_RECORD_HEADER + in.body.size;
    assert_int_equal(kafka_record_decode((pawl_bytes){bytes, size}, SEED, &out), KAFKA_RECORD_GOOD);
    assert_int_equal(out.head.kind, CLAIM_KIND_EVENT);
    assert_int_equal(out.head.epoch, 3);
    assert_int_equal(out.head.offset, 9);
    assert_int_equal(out.head.chain, 5);
    assert_int_equal(out.head.fragment, 3);
    assert_int_equal(out.head.checksum, in.head.checksum);
    assert_true(out.head.last);
    assert_int_equal(out.kind, 200);
    assert_int_equal(out.fragments, 4);
    assert_true(bytes_equal(out.body, in.body));
}

TEST(a_fragment_has_the_size_that_its_place_in_the_event_asks_for)
{
    static uint8_t bytes[KAFKA_RECORD_HEADER + KAFKA_BODY_BYTES_MAX + 1], body[KAFKA_BODY_BYTES_MAX];
    static const struct {
        uint32_t fragment, fragments;
        size_t size;
        enum kafka_record_fault fault;
    } cases[] = {
        {0, 1, 0, KAFKA_RECORD_GOOD},
        {0, 1, KAFKA_BODY_BYTES_MAX, KAFKA_RECORD_GOOD},
        {0, 2, KAFKA_BODY_BYTES_MAX, KAFKA_RECORD_GOOD},
        {0, 2, KAFKA_BODY_BYTES_MAX - 1, KAFKA_RECORD_NONSENSE},
        {1, 3, KAFKA_BODY_BYTES_MAX, KAFKA_RECORD_GOOD},
        {1, 3, 100, KAFKA_RECORD_NONSENSE},
        {1, 3, 0, KAFKA_RECORD_NONSENSE},
        {2, 3, 100, KAFKA_RECORD_GOOD},
        {2, 3, KAFKA_BODY_BYTES_MAX, KAFKA_RECORD_GOOD},
        {2, 3, 0, KAFKA_RECORD_NONSENSE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kafka_record in = event(), out;
        in.head.fragment = cases[i].fragment;
        in.fragments = cases[i].fragments;
        in.body = (pawl_bytes){body, cases[i].size};
        kafka_record_encode(&in, SEED, bytes);
        assert_int_equal(
            kafka_record_decode((pawl_bytes){bytes, KAFKA_RECORD_HEADER + cases[i].size}, SEED, &out),
            cases[i].fault);
        assert_true(cases[i].fault != KAFKA_RECORD_GOOD
                    || out.head.last == (cases[i].fragment + 1 == cases[i].fragments));
    }
}

TEST(a_claim_comes_back_as_it_was)
{
    uint8_t bytes[KAFKA_RECORD_HEADER];
    struct kafka_record in = claim(), out;
    kafka_record_encode(&in, SEED, bytes);
    assert_int_equal(kafka_record_decode((pawl_bytes){bytes, sizeof bytes}, SEED, &out), KAFKA_RECORD_GOOD);
    assert_int_equal(out.head.kind, CLAIM_KIND_CLAIM);
    assert_int_equal(out.head.epoch, 1);
    assert_int_equal(out.head.group0, 2);
    assert_int_equal(out.head.node, 3);
    assert_int_equal(out.head.nonce, 4);
    assert_int_equal(out.head.checksum, in.head.checksum);
}

TEST(a_change_of_any_bit_is_noticed)
{
    uint8_t bytes[KAFKA_RECORD_HEADER + 64];
    struct kafka_record in = event(), out;
    kafka_record_encode(&in, SEED, bytes);
    size_t size = KAFKA_RECORD_HEADER + in.body.size;
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_not_equal(kafka_record_decode((pawl_bytes){bytes, size}, SEED, &out), KAFKA_RECORD_GOOD);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut++)
        assert_int_not_equal(kafka_record_decode((pawl_bytes){bytes, cut}, SEED, &out), KAFKA_RECORD_GOOD);
}

TEST(a_record_is_none_in_another_place)
{
    uint8_t bytes[KAFKA_RECORD_HEADER];
    struct kafka_record in = claim(), out;
    static const struct {
        const char *topic;
        uint16_t partition;
        enum kafka_record_fault fault;
    } cases[] = {{"a.plog", 1, KAFKA_RECORD_GOOD},
                 {"a.plog", 2, KAFKA_RECORD_UNSOUND},
                 {"b.plog", 1, KAFKA_RECORD_UNSOUND},
                 {"a.raw", 1, KAFKA_RECORD_UNSOUND}};
    kafka_record_encode(&in, kafka_record_seed("a.plog", 1), bytes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(kafka_record_decode((pawl_bytes){bytes, sizeof bytes},
                                             kafka_record_seed(cases[i].topic, cases[i].partition), &out),
                         cases[i].fault);
}

TEST(what_is_wrong_with_a_record_is_told_apart)
{
    static const struct {
        size_t at;
        uint8_t value;
        enum kafka_record_fault fault;
    } cases[] = {
        {8, 'X', KAFKA_RECORD_FOREIGN}, {11, 2, KAFKA_RECORD_NEWER},     {11, 0, KAFKA_RECORD_NONSENSE},
        {12, 0, KAFKA_RECORD_NONSENSE}, {12, 3, KAFKA_RECORD_NONSENSE},  {14, 1, KAFKA_RECORD_NONSENSE},
        {16, 0, KAFKA_RECORD_NONSENSE}, {24, 0, KAFKA_RECORD_NONSENSE},  {40, 4, KAFKA_RECORD_NONSENSE},
        {44, 0, KAFKA_RECORD_NONSENSE}, {44, 65, KAFKA_RECORD_NONSENSE}, {13, 7, KAFKA_RECORD_GOOD},
    };
    uint8_t bytes[KAFKA_RECORD_HEADER + 64];
    struct kafka_record in = event(), out;
    size_t size = KAFKA_RECORD_HEADER + in.body.size;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kafka_record_encode(&in, SEED, bytes);
        bytes[cases[i].at] = cases[i].value;
        mend(bytes, size);
        assert_int_equal(kafka_record_decode((pawl_bytes){bytes, size}, SEED, &out), cases[i].fault);
    }
    assert_int_equal(kafka_record_decode((pawl_bytes){NULL, 0}, SEED, &out), KAFKA_RECORD_FOREIGN);
    assert_int_equal(kafka_record_decode(text_bytes("hello"), SEED, &out), KAFKA_RECORD_FOREIGN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_event_comes_back_as_it_was),
        RUN(a_fragment_has_the_size_that_its_place_in_the_event_asks_for),
        RUN(a_claim_comes_back_as_it_was),
        RUN(a_change_of_any_bit_is_noticed),
        RUN(a_record_is_none_in_another_place),
        RUN(what_is_wrong_with_a_record_is_told_apart),
    };
    return TEST_MAIN(tests);
}

#include "test/lib/test.h"

#include "base/bytes.h"
#include "core/event/event.h"

#define BODY_MAX ((size_t)1024)

static const struct event_numbers some_numbers[] = {{2, 1, 41}, {3, 2, 200001}};

static const struct event_head some_head = {.command = 300,
                                            .object_count = 3,
                                            .argument_count = 1,
                                            .schema = 12,
                                            .time = {-5},
                                            .record = 200002,
                                            .digest = UINT64_C(0x1122334455667788),
                                            .actor = {"ann", 3},
                                            .correlation = {"c", 1},
                                            .causation = {"because", 7},
                                            .key = {"k-17", 4}};

static const uint16_t some_cleared[] = {1, 4, 900};

static const struct event_object some_objects[] = {
    {.op = EVENT_CREATE, .active = true, .type = 400, .raw = 1, .id = 200001, .row = {"argument", 8}},
    {.op = EVENT_CREATE,
     .active = true,
     .says_active = true,
     .type = 401,
     .raw = 65535,
     .container = 2,
     .id = 200002,
     .parent = 200001,
     .row = {"", 0}},
    {.op = EVENT_UPDATE, .says_active = true, .type = 402, .id = 7, .cleared_count = 3, .row = {"rest", 4}},
};

static uint8_t *put_object(const struct event_object *object, const uint16_t *cleared, uint8_t *at)
{
    at = event_object_write(object, at);
    for (size_t i = 0; i < object->cleared_count; i++, at += 2)
        put_u16(at, cleared[i]);
    memcpy(at, object->row.data, object->row.size);
    return at + object->row.size;
}

static size_t make(uint8_t body[BODY_MAX])
{
    envelope_encode(9, 77, some_numbers, 2, body);
    uint8_t *at = event_head_write(&some_head, body + envelope_size(2));
    for (size_t i = 0; i < 3; i++)
        at = put_object(&some_objects[i], some_cleared, at);
    return (size_t)(at - body);
}

static int decode(const uint8_t *body, size_t size, struct event *ret_event, pawl_error *error)
{
    return event_decode((pawl_bytes){body, size}, ret_event, error);
}

static void assert_bytes(pawl_bytes got, pawl_bytes expected)
{
    assert_true(bytes_equal(got, expected));
}

static void assert_head(const struct event_head *got, const struct event_head *expected)
{
    assert_int_equal(got->command, expected->command);
    assert_int_equal(got->object_count, expected->object_count);
    assert_int_equal(got->argument_count, expected->argument_count);
    assert_true(got->schema == expected->schema && got->time.ns == expected->time.ns);
    assert_true(got->record == expected->record && got->digest == expected->digest);
    assert_bytes(got->actor, expected->actor);
    assert_bytes(got->correlation, expected->correlation);
    assert_bytes(got->causation, expected->causation);
    assert_bytes(got->key, expected->key);
}

static void assert_object(const struct event_object *got, const struct event_object *expected,
                          const uint16_t *cleared)
{
    assert_int_equal(got->op, expected->op);
    assert_true(got->active == expected->active && got->says_active == expected->says_active);
    assert_int_equal(got->type, expected->type);
    assert_int_equal(got->raw, expected->raw);
    assert_int_equal(got->container, expected->container);
    assert_true(got->id == expected->id && got->parent == expected->parent);
    assert_int_equal(got->cleared_count, expected->cleared_count);
    for (size_t i = 0; i < expected->cleared_count; i++)
        assert_int_equal(event_cleared(got, i), cleared[i]);
    assert_bytes(got->row, expected->row);
}

TEST(an_event_reads_back_as_it_is_written)
{
    uint8_t body[BODY_MAX];
    struct event event;
    struct event_object object;
    size_t size = make(body), cursor = 0;
    assert_ok(decode(body, size, &event, NULL));
    assert_int_equal(event.envelope.wsid, 77);
    assert_head(&event.head, &some_head);
    for (size_t i = 0; i < 3; i++) {
        assert_true(event_next(&event, &cursor, &object));
        assert_object(&object, &some_objects[i], some_cleared);
    }
    assert_false(event_next(&event, &cursor, &object));
    assert_false(event_next(&event, &cursor, &object));
}

TEST(its_sizes_are_known_beforehand)
{
    uint8_t body[BODY_MAX];
    size_t size = envelope_size(2) + event_head_size(&some_head);
    for (size_t i = 0; i < 3; i++)
        size += event_object_size(some_objects[i].cleared_count, some_objects[i].row.size);
    assert_int_equal(make(body), size);
}

TEST(its_bytes_are_as_documented)
{
    static const uint8_t head[] = {
        1,    0,    0x2c, 1,    1,    0,    0,    0,    1,    0,    0,    0,    0,    0,    0,    0, /* to 16 */
        12,   0,    0,    0,    0,    0,    0,    0,    0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0x42, 0x0d, 3,    0,    0,    0,    0,    0, /* schema, time, record: to 40 */
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 3,    1,    7,    4,    'a',  'n',  'n',  'c',
        'b',  'e',  'c',  'a',  'u',  's',  'e',  'k',  '-',  '1',  '7'};
    static const uint8_t object[] = {2, 2, 0x92, 1, 0,    0, 0,   0,   7,   0,  0, 0, 0, 0, 0, 0, /* to 16 */
                                     0, 0, 0,    0, 0,    0, 0,   0,   4,   0,  0, 0, 3, 0, 0, 0, /* to 32 */
                                     1, 0, 4,    0, 0x84, 3, 'r', 'e', 's', 't'};
    uint8_t bytes[BODY_MAX];
    struct event_head one = some_head;
    one.object_count = 1;
    assert_int_equal(event_head_write(&one, bytes) - bytes, sizeof head);
    assert_memory_equal(bytes, head, sizeof head);
    assert_int_equal(put_object(&some_objects[2], some_cleared, bytes) - bytes, sizeof object);
    assert_memory_equal(bytes, object, sizeof object);
}

TEST(texts_may_have_any_size_up_to_255)
{
    char text[256];
    memset(text, 't', sizeof text);
    for (size_t which = 0; which < 4; which++)
        for (size_t size = 0; size <= EVENT_TEXT_MAX; size += 51) {
            uint8_t body[BODY_MAX];
            struct event event;
            struct event_head head = {.command = 1};
            pawl_bytes *texts[] = {&head.actor, &head.correlation, &head.causation, &head.key};
            for (size_t i = 0; i < 4; i++)
                *texts[i] = (pawl_bytes){text, i == which ? size : i};
            envelope_encode(1, 5, NULL, 0, body);
            uint8_t *end = event_head_write(&head, body + envelope_size(0));
            assert_int_equal(end - body, envelope_size(0) + event_head_size(&head));
            assert_ok(decode(body, (size_t)(end - body), &event, NULL));
            assert_head(&event.head, &head);
            assert_int_equal(event.objects.size, 0);
        }
}

TEST(one_that_ends_too_early_is_refused_at_every_length)
{
    uint8_t body[BODY_MAX];
    size_t size = make(body);
    for (size_t n = 0; n < size; n++) {
        uint8_t *exact = malloc(n ? n : 1); /* so that a sanitizer sees a byte read too much */
        struct event event;
        memcpy(exact, body, n);
        assert_status(decode(exact, n, &event, NULL), PAWL_ECORRUPT);
        free(exact);
    }
}

TEST(one_byte_too_many_is_refused_with_its_place)
{
    uint8_t body[BODY_MAX];
    struct event event;
    pawl_error error = {0};
    char words[32];
    size_t size = make(body);
    body[size] = 0;
    assert_status(decode(body, size + 1, &event, &error), PAWL_ECORRUPT);
    snprintf(words, sizeof words, "byte %zu: 1 bytes behind", size);
    assert_contains(error.text, words);
}

/* Write a decoded event again: the format has one way to say a thing. */
static size_t encode_again(const struct event *event, uint8_t *body)
{
    struct event_numbers numbers[16];
    struct event_object object;
    assert_true(event->envelope.count <= 16);
    for (size_t i = 0; i < event->envelope.count; i++)
        numbers[i] = envelope_numbers(&event->envelope, i);
    envelope_encode(event->envelope.kind, event->envelope.wsid, numbers, event->envelope.count, body);
    uint8_t *at = event_head_write(&event->head, body + envelope_size(event->envelope.count));
    for (size_t cursor = 0; event_next(event, &cursor, &object);) {
        uint16_t cleared[16];
        assert_true(object.cleared_count <= 16);
        for (size_t i = 0; i < object.cleared_count; i++)
            cleared[i] = event_cleared(&object, i);
        at = put_object(&object, cleared, at);
    }
    return (size_t)(at - body);
}

TEST(every_byte_with_every_bit_flipped_is_refused_or_means_itself)
{
    uint8_t body[BODY_MAX], again[BODY_MAX];
    size_t size = make(body), refused = 0;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        struct event event;
        uint8_t *exact = malloc(size);
        memcpy(exact, body, size);
        exact[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (decode(exact, size, &event, NULL) != PAWL_OK)
            refused++;
        else {
            assert_int_equal(encode_again(&event, again), size);
            assert_memory_equal(again, exact, size);
        }
        free(exact);
    }
    assert_true(refused > size && refused < 8 * size);
}

TEST(an_output_is_untouched_when_the_event_is_refused)
{
    uint8_t body[BODY_MAX];
    struct event event, before;
    size_t size = make(body);
    memset(&event, 0x6b, sizeof event);
    memcpy(&before, &event, sizeof event);
    assert_status(decode(body, size - 1, &event, NULL), PAWL_ECORRUPT);
    assert_memory_equal(&event, &before, sizeof event);
}

TEST(what_no_writer_writes_is_refused_with_its_byte)
{
    /* The content begins at byte 48, its texts at 100, its objects at 115, 155 and 187. */
    static const struct {
        size_t at;
        uint8_t value;
        int status;
        const char *words;
    } cases[] = {
        {0, 2, PAWL_EVERSION, "byte 0"},   /* the envelope's */
        {48, 2, PAWL_EVERSION, "byte 48"}, /* the content's version */
        {48, 0, PAWL_ECORRUPT, "byte 48"},
        {49, 1, PAWL_ECORRUPT, "byte 48"},
        {54, 1, PAWL_ECORRUPT, "byte 48"},  /* 65539 objects */
        {56, 4, PAWL_ECORRUPT, "byte 48"},  /* more in the argument than there are */
        {63, 1, PAWL_ECORRUPT, "byte 48"},  /* zero */
        {52, 4, PAWL_ECORRUPT, "byte 229"}, /* one object more than follow */
        {52, 2, PAWL_ECORRUPT, "42 bytes"}, /* one less */
        {115, 0, PAWL_ECORRUPT, "byte 115"},
        {115, 3, PAWL_ECORRUPT, "byte 115"},
        {116, 4, PAWL_ECORRUPT, "byte 115"},      /* an unknown flag */
        {155, 2, PAWL_OK, NULL},                  /* an update that clears nothing is sound */
        {187 + 30, 1, PAWL_ECORRUPT, "byte 187"}, /* zero */
        {187 + 8, 0, PAWL_ECORRUPT, "byte 187"},  /* no ID */
        {187, 1, PAWL_ECORRUPT, "byte 187"},      /* a create that clears */
        {187 + 32, 4, PAWL_ECORRUPT, "byte 187"}, /* places twice */
        {187 + 32, 5, PAWL_ECORRUPT, "byte 187"}, /* places that descend */
        {187 + 24, 5, PAWL_ECORRUPT, "byte 187"}, /* a row that goes on behind the end */
        {187 + 27, 0xff, PAWL_ECORRUPT, "byte 187"},
        {187 + 29, 0xff, PAWL_ECORRUPT, "byte 187"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t body[BODY_MAX];
        struct event event;
        pawl_error error = {0};
        size_t size = make(body);
        assert_int_equal(size, 229);
        body[cases[i].at] = cases[i].value;
        assert_status(decode(body, size, &event, &error), cases[i].status);
        if (cases[i].words)
            assert_contains(error.text, cases[i].words);
    }
}

TEST(an_object_without_a_type_and_an_event_without_a_command_are_refused)
{
    uint8_t body[BODY_MAX];
    struct event event;
    size_t size = make(body);
    put_u16(body + 50, 0);
    assert_status(decode(body, size, &event, NULL), PAWL_ECORRUPT);
    make(body);
    put_u16(body + 115 + 2, 0);
    assert_status(decode(body, size, &event, NULL), PAWL_ECORRUPT);
}

TEST(as_many_objects_as_are_allowed_decode_and_one_more_does_not)
{
    for (uint32_t extra = 0; extra < 2; extra++) {
        uint32_t count = (uint32_t)EVENT_OBJECTS_MAX + extra;
        size_t head = envelope_size(0) + EVENT_FIXED, size = head + count * EVENT_OBJECT;
        uint8_t *body = malloc(size);
        struct event event;
        struct event_object object = {.op = EVENT_CREATE, .type = 1, .id = 1, .row = {"", 0}};
        envelope_encode(1, 5, NULL, 0, body);
        uint8_t *at =
            event_head_write(&(struct event_head){.command = 1, .object_count = 1}, body + envelope_size(0));
        put_u32(body + envelope_size(0) + 4, count);
        for (uint32_t i = 0; i < count; i++)
            at = put_object(&object, some_cleared, at);
        assert_int_equal(at - body, size);
        assert_status(decode(body, size, &event, NULL), extra ? PAWL_ECORRUPT : PAWL_OK);
        size_t seen = 0;
        for (size_t cursor = 0; !extra && event_next(&event, &cursor, &object);)
            seen++;
        assert_int_equal(seen, extra ? 0 : count);
        free(body);
    }
}

TEST(numbers_are_found_by_their_sequence)
{
    uint8_t body[BODY_MAX];
    struct event event;
    size_t size = make(body);
    assert_ok(decode(body, size, &event, NULL));
    assert_true(event_numbers_of(&event, 2).first == 41 && event_numbers_of(&event, 2).count == 1);
    assert_true(event_numbers_of(&event, 3).first == 200001 && event_numbers_of(&event, 3).count == 2);
    assert_int_equal(event_numbers_of(&event, 4).count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_event_reads_back_as_it_is_written),
        RUN(its_sizes_are_known_beforehand),
        RUN(its_bytes_are_as_documented),
        RUN(texts_may_have_any_size_up_to_255),
        RUN(one_that_ends_too_early_is_refused_at_every_length),
        RUN(one_byte_too_many_is_refused_with_its_place),
        RUN(every_byte_with_every_bit_flipped_is_refused_or_means_itself),
        RUN(an_output_is_untouched_when_the_event_is_refused),
        RUN(what_no_writer_writes_is_refused_with_its_byte),
        RUN(an_object_without_a_type_and_an_event_without_a_command_are_refused),
        RUN(as_many_objects_as_are_allowed_decode_and_one_more_does_not),
        RUN(numbers_are_found_by_their_sequence),
    };
    return TEST_MAIN(tests);
}

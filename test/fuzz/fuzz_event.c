/* fuzz_event.c: bytes that decode as an event are the same bytes that encoding it gives, and no pointer leads
 * outside them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "core/event/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static uint8_t *encode_object(const struct event_object *object, uint8_t *at)
{
    at = event_object_write(object, at);
    for (size_t i = 0; i < object->cleared_count; i++, at += 2)
        put_u16(at, event_cleared(object, i));
    if (object->row.size)
        memcpy(at, object->row.data, object->row.size);
    return at + object->row.size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event e;
    if (event_decode((pawl_bytes){data, size}, &e, NULL) != PAWL_OK)
        return 0;
    struct event_numbers *numbers = malloc((e.envelope.count + 1) * sizeof *numbers);
    uint8_t *again = malloc(size);
    check(numbers && again);
    for (size_t i = 0; i < e.envelope.count; i++) {
        numbers[i] = envelope_numbers(&e.envelope, i);
        check(event_numbers_of(&e, numbers[i].seq).first == numbers[i].first);
    }
    size_t head = envelope_size(e.envelope.count);
    check(head + event_head_size(&e.head) + e.objects.size == size);
    envelope_encode(e.envelope.kind, e.envelope.wsid, numbers, e.envelope.count, again);
    uint8_t *at = event_head_write(&e.head, again + head);
    struct event_object object;
    uint32_t count = 0;
    for (size_t cursor = 0; event_next(&e, &cursor, &object); count++) {
        check((size_t)(at - again) + event_object_size(object.cleared_count, object.row.size) <= size);
        at = encode_object(&object, at);
    }
    check(count == e.head.object_count && at == again + size && memcmp(again, data, size) == 0);
    free(numbers);
    free(again);
    return 0;
}

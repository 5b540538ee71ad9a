#include "core/event/envelope.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/error.h"

void envelope_encode(uint16_t kind, uint64_t wsid, const struct event_numbers *numbers, size_t count,
                     uint8_t *at)
{
    assert(count <= ENVELOPE_NUMBERS_MAX && (wsid != 0 || count == 0));
    put_u8(at, ENVELOPE_VERSION);
    put_u8(at + 1, 0);
    put_u16(at + 2, kind);
    put_u16(at + 4, (uint16_t)count);
    put_u16(at + 6, 0);
    put_u64(at + 8, wsid);
    for (size_t i = 0; i < count; i++) {
        assert(i == 0 || numbers[i - 1].seq < numbers[i].seq);
        uint8_t *slot = at + envelope_size(i);
        put_u16(slot, numbers[i].seq);
        put_u16(slot + 2, 0);
        put_u32(slot + 4, numbers[i].count);
        put_u64(slot + 8, numbers[i].first);
    }
}

struct event_numbers envelope_numbers(const struct envelope *envelope, size_t i)
{
    assert(i < envelope->count);
    const uint8_t *slot = envelope->numbers + i * ENVELOPE_NUMBER;
    return (struct event_numbers){.seq = get_u16(slot), .count = get_u32(slot + 4), .first = get_u64(slot + 8)};
}

static bool numbers_are_sound(const struct envelope *e, size_t i)
{
    struct event_numbers n = envelope_numbers(e, i);
    return get_u16(e->numbers + i * ENVELOPE_NUMBER + 2) == 0 && n.first != 0 && n.count != 0
           && n.count - 1 <= UINT64_MAX - n.first && (i == 0 || envelope_numbers(e, i - 1).seq < n.seq);
}

int envelope_decode(pawl_bytes body, struct envelope *ret_envelope, pawl_error *error)
{
    struct decoder d = decoder_over(body);
    uint8_t version = decode_u8(&d), zero = decode_u8(&d);
    struct envelope e = {.kind = decode_u16(&d)};
    e.count = decode_u16(&d);
    uint16_t zero16 = decode_u16(&d);
    e.wsid = decode_u64(&d);
    if (!d.bad && version > ENVELOPE_VERSION)
        return error_set(error, PAWL_EVERSION,
                         "byte 0: the event is of version %u; this program knows up to %d", version,
                         ENVELOPE_VERSION);
    if (d.bad || version == 0 || zero != 0 || zero16 != 0 || e.count > ENVELOPE_NUMBERS_MAX
        || (e.wsid == 0 && e.count != 0))
        return error_set(error, PAWL_ECORRUPT, "byte 0: this is not the head of an event");
    e.numbers = decode_raw(&d, e.count * ENVELOPE_NUMBER);
    if (d.bad)
        return error_set(error, PAWL_ECORRUPT, "byte %zu: the event ends inside its %zu numbers", body.size,
                         e.count);
    for (size_t i = 0; i < e.count; i++)
        if (!numbers_are_sound(&e, i))
            return error_set(error, PAWL_ECORRUPT, "byte %zu: these are not numbers of an event",
                             envelope_size(i));
    e.content = (pawl_bytes){d.at, d.left};
    *ret_envelope = e;
    return PAWL_OK;
}

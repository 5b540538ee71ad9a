/* core/schema/key.c: values as the fields of a key. docs/FORMAT.md shows the same for users.
 *
 * A field is one byte, 0 for null and 1 for a value, and then the value:
 *
 *     INT64, TIMESTAMP   8 bytes, big-endian, with the sign bit turned over
 *     FLOAT64            8 bytes, big-endian: of a negative number all bits turned over, else the sign bit
 *     BOOL               1 byte, 0 or 1
 *     QNAME              2 bytes, big-endian
 *     REF                8 bytes, big-endian
 *     STRING, BYTES      the bytes, 00 written as 00 FF, and 00 00 behind them
 *
 * Of two different strings the keys differ within the strings or at 00 00, which is below whatever could stand
 * there: so a prefix sorts first, whatever fields follow it. */
#include <math.h>

#include "base/bytes.h"
#include "core/schema/row.h"
#include "core/schema/text.h"

#define SIGN (UINT64_C(1) << 63)

/* Bytes that do not fit are only counted. */
struct key_writer {
    uint8_t *at;
    size_t room;
    size_t size;
};

static void write_u8(struct key_writer *w, uint8_t byte)
{
    if (w->size < w->room)
        w->at[w->size] = byte;
    w->size++;
}

static void write_sorted(struct key_writer *w, uint64_t number, size_t bytes)
{
    for (size_t i = bytes; i-- > 0;)
        write_u8(w, (uint8_t)(number >> 8 * i));
}

static void write_text(struct key_writer *w, pawl_bytes text)
{
    const uint8_t *at = text.data;
    for (size_t i = 0; i < text.size; i++) {
        write_u8(w, at[i]);
        if (at[i] == 0)
            write_u8(w, 0xff);
    }
    write_sorted(w, 0, 2);
}

static uint64_t real_sorted(double real)
{
    uint64_t bits;
    real = real == 0 ? 0 : real; /* -0 is 0 */
    memcpy(&bits, &real, sizeof bits);
    return bits & SIGN ? ~bits : bits | SIGN;
}

size_t row_key_write(const struct value *values, size_t count, uint8_t *at, size_t room)
{
    struct key_writer w = {.at = at, .room = room};
    for (size_t i = 0; i < count; i++) {
        const struct value *v = &values[i];
        write_u8(&w, v->type != VALUE_NULL);
        switch (v->type) {
        case VALUE_NULL: break;
        case VALUE_INT64:
        case VALUE_TIMESTAMP: write_sorted(&w, (uint64_t)v->integer ^ SIGN, 8); break;
        case VALUE_FLOAT64: write_sorted(&w, real_sorted(v->real), 8); break;
        case VALUE_BOOL: write_u8(&w, v->boolean); break;
        case VALUE_QNAME: write_sorted(&w, v->name, 2); break;
        case VALUE_REF: write_sorted(&w, v->id, 8); break;
        case VALUE_STRING:
        case VALUE_BYTES: write_text(&w, v->bytes); break;
        }
    }
    return w.size;
}

/* Unescapes into scratch, and moves it on. */
static bool read_text(struct decoder *d, uint8_t **scratch, pawl_bytes *ret_text)
{
    uint8_t *text = *scratch, *end = text;
    for (;;) {
        uint8_t byte = decode_u8(d);
        if (byte == 0) {
            uint8_t next = decode_u8(d);
            if (d->bad || (next != 0 && next != 0xff))
                return false;
            if (next == 0)
                break;
        }
        *end++ = byte;
    }
    *ret_text = (pawl_bytes){text, (size_t)(end - text)};
    *scratch = end;
    return true;
}

static bool read_real(struct decoder *d, double *ret_real)
{
    const uint8_t *at = decode_raw(d, 8);
    if (!at)
        return false;
    uint64_t sorted = get_u64_sorted(at), bits = sorted & SIGN ? sorted & ~SIGN : ~sorted;
    memcpy(ret_real, &bits, sizeof bits);
    return isfinite(*ret_real) && real_sorted(*ret_real) == sorted;
}

static bool read_number(struct decoder *d, uint64_t *ret_number)
{
    const uint8_t *at = decode_raw(d, 8);
    if (at)
        *ret_number = get_u64_sorted(at);
    return at != NULL;
}

static bool read_value(struct decoder *d, enum value_type type, uint8_t **scratch, struct value *ret_value)
{
    uint8_t there = decode_u8(d);
    if (d->bad || there > 1)
        return false;
    struct value v = {.type = there ? type : VALUE_NULL};
    const uint8_t *at;
    uint64_t number = 0;
    bool good = true;
    switch (v.type) {
    case VALUE_NULL: good = !there; break;
    case VALUE_INT64:
    case VALUE_TIMESTAMP:
        good = read_number(d, &number);
        v.integer = (int64_t)(number ^ SIGN);
        break;
    case VALUE_FLOAT64: good = read_real(d, &v.real); break;
    case VALUE_BOOL:
        at = decode_raw(d, 1);
        good = at && *at <= 1;
        v.boolean = good && *at;
        break;
    case VALUE_QNAME:
        at = decode_raw(d, 2);
        good = at != NULL;
        v.name = at ? get_u16_sorted(at) : 0;
        break;
    case VALUE_REF:
        good = read_number(d, &number);
        v.id = number;
        break;
    case VALUE_STRING: good = read_text(d, scratch, &v.bytes) && text_is_utf8(v.bytes); break;
    case VALUE_BYTES: good = read_text(d, scratch, &v.bytes); break;
    }
    if (good)
        *ret_value = v;
    return good;
}

int row_key_read(pawl_bytes bytes, const enum value_type *types, size_t count, uint8_t *scratch,
                 struct value *ret_values)
{
    /* Once to check and once to hand out, so that a failure leaves the values as they are. */
    for (int pass = 0; pass < 2; pass++) {
        struct decoder d = decoder_over(bytes);
        uint8_t *free_scratch = scratch;
        for (size_t i = 0; i < count; i++) {
            struct value v;
            if (!read_value(&d, types[i], &free_scratch, &v))
                return PAWL_ECORRUPT;
            if (pass == 1)
                ret_values[i] = v;
        }
        if (d.left != 0)
            return PAWL_ECORRUPT;
    }
    return PAWL_OK;
}

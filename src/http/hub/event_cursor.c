#include "http/hub/event_cursor.h"

#include <assert.h>
#include <string.h>

#define FORM 1

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t event_cursor_room(uint32_t partitions)
{
    return (4 + 10 * (size_t)partitions) * 4 / 3 + 3;
}

static size_t put_varint(uint8_t *at, uint64_t number)
{
    size_t size = 0;
    while (number >= 128) {
        at[size++] = (uint8_t)(number | 128);
        number >>= 7;
    }
    at[size++] = (uint8_t)number;
    return size;
}

static bool get_varint(const uint8_t *bytes, size_t size, size_t *at, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && *at < size; shift += 7) {
        uint8_t byte = bytes[(*at)++];
        if (shift == 63 && byte > 1)
            return false;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *ret_number = number;
            return true;
        }
    }
    return false;
}

static size_t to_text(const uint8_t *bytes, size_t size, char *text)
{
    size_t count = 0;
    uint32_t kept = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < size; i++) {
        kept = kept << 8 | bytes[i];
        for (bits += 8; bits >= 6; bits -= 6)
            text[count++] = letters[kept >> (bits - 6) & 63];
    }
    if (bits > 0)
        text[count++] = letters[kept << (6 - bits) & 63];
    text[count] = '\0';
    return count;
}

static bool to_bytes(const char *text, uint8_t *bytes, size_t room, size_t *ret_size)
{
    size_t size = 0;
    uint32_t kept = 0;
    unsigned bits = 0;
    for (; *text; text++) {
        const char *letter = strchr(letters, *text);
        if (!letter)
            return false;
        kept = kept << 6 | (uint32_t)(letter - letters);
        bits += 6;
        if (bits < 8)
            continue;
        if (size == room)
            return false;
        bits -= 8;
        bytes[size++] = (uint8_t)(kept >> bits);
    }
    *ret_size = size;
    return (kept & ((1U << bits) - 1)) == 0;
}

size_t event_cursor_format(const uint64_t *next, uint32_t partitions, char *text)
{
    uint8_t bytes[EVENT_CURSOR_BYTES_MAX] = {FORM};
    assert(partitions <= EVENT_CURSOR_PARTITIONS_MAX);
    size_t size = 1 + put_varint(bytes + 1, partitions);
    for (uint32_t i = 0; i < partitions; i++)
        size += put_varint(bytes + size, next[i] - 1);
    return to_text(bytes, size, text);
}

int event_cursor_parse(const char *text, uint32_t partitions, const char *where, uint64_t *ret_next,
                       pawl_error *error)
{
    uint8_t bytes[EVENT_CURSOR_BYTES_MAX];
    uint64_t count, offset;
    size_t size, at = 1;
    if (!to_bytes(text, bytes, sizeof bytes, &size) || size < 2 || bytes[0] != FORM
        || !get_varint(bytes, size, &at, &count))
        return pawl_error_set(error, PAWL_EINVAL, "%s: it is not a cursor of events", where);
    if (count != partitions)
        return pawl_error_set(error, PAWL_EINVAL, "%s: it is a cursor of a directory with other partitions",
                              where);
    for (uint32_t i = 0; i < partitions; i++) {
        if (!get_varint(bytes, size, &at, &offset) || offset == UINT64_MAX)
            return pawl_error_set(error, PAWL_EINVAL, "%s: it is not a cursor of events", where);
        ret_next[i] = offset + 1;
    }
    return at == size ? PAWL_OK : pawl_error_set(error, PAWL_EINVAL, "%s: it is not a cursor of events", where);
}

#include "core/schema/text.h"

#include <string.h>

#include "core/schema/schema.h"

/* How many bytes a character has that begins with lead, and the range of its second byte, which rules out
 * overlong forms, surrogates and characters that are too high. 0: no character begins so. */
static size_t character_size(uint8_t lead, uint8_t *ret_low, uint8_t *ret_high)
{
    *ret_low = 0x80;
    *ret_high = 0xbf;
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf)
        return 2;
    if (lead >= 0xe0 && lead <= 0xef) {
        if (lead == 0xe0)
            *ret_low = 0xa0;
        if (lead == 0xed)
            *ret_high = 0x9f;
        return 3;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        if (lead == 0xf0)
            *ret_low = 0x90;
        if (lead == 0xf4)
            *ret_high = 0x8f;
        return 4;
    }
    return 0;
}

bool text_is_utf8(pawl_bytes text)
{
    const uint8_t *at = text.data;
    for (size_t i = 0; i < text.size;) {
        uint8_t low, high;
        uint64_t word; /* most text is ASCII: eight bytes at a time */
        if (text.size - i >= sizeof word) {
            memcpy(&word, at + i, sizeof word);
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                i += sizeof word;
                continue;
            }
        }
        size_t size = character_size(at[i], &low, &high);
        if (size == 0 || size > text.size - i)
            return false;
        if (size > 1 && (at[i + 1] < low || at[i + 1] > high))
            return false;
        for (size_t k = 2; k < size; k++)
            if ((at[i + k] & 0xc0) != 0x80)
                return false;
        i += size;
    }
    return true;
}

bool text_is_name(pawl_bytes text)
{
    const char *at = text.data;
    if (text.size == 0 || text.size > SCHEMA_NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        bool letter = (at[i] >= 'a' && at[i] <= 'z') || (at[i] >= 'A' && at[i] <= 'Z') || at[i] == '_';
        if (!letter && (i == 0 || at[i] < '0' || at[i] > '9'))
            return false;
    }
    return true;
}

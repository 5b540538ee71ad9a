#include "base/id.h"

static const char digits[] = "0123456789abcdef";

void id128_format(struct id128 id, char *text)
{
    for (unsigned i = 0; i < 16; i++) {
        text[i] = digits[id.high >> (60 - 4 * i) & 15];
        text[16 + i] = digits[id.low >> (60 - 4 * i) & 15];
    }
    text[32] = '\0';
}

static bool parse_half(const char *text, uint64_t *ret_half)
{
    uint64_t half = 0;
    for (unsigned i = 0; i < 16; i++) {
        char c = text[i];
        unsigned digit;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (unsigned)(c - 'a') + 10;
        else
            return false;
        half = half << 4 | digit;
    }
    *ret_half = half;
    return true;
}

int id128_parse(pawl_bytes text, struct id128 *ret_id)
{
    struct id128 id;
    const char *at = text.data;
    if (text.size != ID128_TEXT_SIZE - 1 || !parse_half(at, &id.high) || !parse_half(at + 16, &id.low))
        return PAWL_EINVAL;
    *ret_id = id;
    return PAWL_OK;
}

/* engine/json/form.c: numbers and bytes. Timestamps are in base/timestamp.c. */
#include "engine/json/form.h"

#include <assert.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool form_integer_read(pawl_bytes text, int64_t *ret_integer)
{
    const char *at = text.data;
    bool negative = text.size > 0 && at[0] == '-';
    size_t first = negative ? 1 : 0;
    if (text.size == first || (at[first] == '0' && text.size > 1))
        return false;
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX, v = 0;
    for (size_t i = first; i < text.size; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(at[i] - '0');
        if (v > (limit - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *ret_integer = (int64_t)(negative ? -v : v);
    return true;
}

size_t form_unsigned_write(uint64_t integer, char text[FORM_INTEGER_CHARS])
{
    char digits[FORM_INTEGER_CHARS];
    size_t size = 0;
    do {
        digits[FORM_INTEGER_CHARS - ++size] = (char)('0' + integer % 10);
        integer /= 10;
    } while (integer);
    memcpy(text, digits + FORM_INTEGER_CHARS - size, size);
    return size;
}

size_t form_integer_write(int64_t integer, char text[FORM_INTEGER_CHARS])
{
    if (integer >= 0)
        return form_unsigned_write((uint64_t)integer, text);
    char digits[FORM_INTEGER_CHARS];
    size_t size = form_unsigned_write(-(uint64_t)integer, digits);
    text[0] = '-';
    memcpy(text + 1, digits, size);
    return size + 1;
}

/* The shortest text that reads back as the same number. A double keeps any 15 digits, and %g leaves out
 * trailing zeros: so 15 digits also give every shorter text that reads back. Below DBL_MIN a double keeps fewer
 * digits. */
static size_t shortest(double real, char text[FORM_REAL_CHARS])
{
    int size = 0;
    for (int digits = fabs(real) < DBL_MIN ? 1 : DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
        size = snprintf(text, FORM_REAL_CHARS, "%.*g", digits, real);
        if (strtod(text, NULL) == real)
            break;
    }
    assert(size > 0 && size + 2 < FORM_REAL_CHARS);
    return (size_t)size;
}

size_t form_real_write(double real, char text[FORM_REAL_CHARS])
{
    assert(isfinite(real));
    size_t size;
    if (fabs(real) < 1e15 && real != 0 && real == (double)(int64_t)real)
        size = form_integer_write((int64_t)real, text);
    else {
        /* The C locale always exists, and is not allocated. */
        locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), host = uselocale(plain);
        size = shortest(real, text);
        uselocale(host);
        freelocale(plain);
    }
    if (memchr(text, '.', size) || memchr(text, 'e', size))
        return size;
    memcpy(text + size, ".0", 2);
    return size + 2;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void form_base64_write(pawl_bytes bytes, char *text)
{
    const uint8_t *at = bytes.data;
    size_t left = bytes.size;
    for (; left >= 3; left -= 3, at += 3) {
        uint32_t v = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *text++ = alphabet[v >> shift & 63];
    }
    if (left == 0)
        return;
    uint32_t v = (uint32_t)at[0] << 16 | (left == 2 ? (uint32_t)at[1] << 8 : 0);
    text[0] = alphabet[v >> 18];
    text[1] = alphabet[v >> 12 & 63];
    text[2] = left == 2 ? alphabet[v >> 6 & 63] : '=';
    text[3] = '=';
}

size_t form_base64url_write(pawl_bytes bytes, char *text)
{
    size_t size = form_base64_size(bytes.size);
    form_base64_write(bytes, text);
    while (size > 0 && text[size - 1] == '=')
        size--;
    for (size_t i = 0; i < size; i++)
        text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
    return size;
}

/* The value of a base64 digit; -1: it is not one. */
static int digit_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool form_base64_read(pawl_bytes text, uint8_t *bytes, size_t *ret_size)
{
    const uint8_t *at = text.data;
    size_t padding = 0, used = 0;
    if (text.size % 4 != 0)
        return false;
    while (padding < 2 && padding < text.size && at[text.size - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < text.size; i += 4) {
        size_t digits = i + 4 == text.size ? 4 - padding : 4;
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            int digit = k < digits ? digit_of(at[i + k]) : 0;
            if (digit < 0)
                return false;
            v = v << 6 | (uint32_t)digit;
        }
        for (size_t k = 0; k < digits - 1; k++)
            bytes[used++] = (uint8_t)(v >> (16 - 8 * k));
        if (digits < 4 && (v & (digits == 2 ? 0xffff : 0xff)) != 0)
            return false;
    }
    *ret_size = used;
    return true;
}

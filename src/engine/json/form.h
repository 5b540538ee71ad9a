/* engine/json/form.h: numbers and bytes as text, each value in exactly one form. docs/API.md shows the same for
 * users.
 *
 *     integer      digits, a minus before them if need be; no plus, no leading zero
 *     real         the shortest digits that read back as the same number, with a point or an exponent
 *     bytes        base64 (RFC 4648, section 4): padded, no line ends, no stray bits
 *
 * Timestamps are base/timestamp.h's. None of it depends on the host's locale. */
#ifndef ENGINE_JSON_FORM_H
#define ENGINE_JSON_FORM_H

#include <pawl/types.h>

/* A double cannot hold every integer of this size or above, nor its negative: a reader of JSON may round
 * them. */
#define FORM_INTEGER_END (INT64_C(1) << 53)

#define FORM_INTEGER_CHARS 20
#define FORM_REAL_CHARS    32

/* False: not of this form, or beyond 64 bits. */
bool form_integer_read(pawl_bytes text, int64_t *ret_integer);

/* Each returns the size; no 0 follows the text. */
size_t form_integer_write(int64_t integer, char text[FORM_INTEGER_CHARS]);
size_t form_unsigned_write(uint64_t integer, char text[FORM_INTEGER_CHARS]);
size_t form_real_write(double real, char text[FORM_REAL_CHARS]); /* real is finite */

static inline size_t form_base64_size(size_t size)
{
    return (size + 2) / 3 * 4;
}

/* text has form_base64_size bytes. */
void form_base64_write(pawl_bytes bytes, char *text);

/* The same with - and _ instead of + and /, and without padding, as it can stand in an address. Returns the size, which
 * may be less than form_base64_size. */
size_t form_base64url_write(pawl_bytes bytes, char *text);

/* bytes has three quarters of the text's size. False: not of the form. */
bool form_base64_read(pawl_bytes text, uint8_t *bytes, size_t *ret_size);

#endif

#include "engine/json/out.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/timestamp.h"
#include "core/schema/text.h"
#include "engine/json/form.h"

void json_out_init(struct json_out *out, const pawl_allocator *alloc)
{
    *out = (struct json_out){.alloc = alloc};
}

void json_out_release(struct json_out *out)
{
    mem_free(out->alloc, out->data, out->room);
    json_out_init(out, out->alloc);
}

void json_out_rewind(struct json_out *out, size_t size)
{
    assert(size <= out->size);
    out->size = size;
    out->status = PAWL_OK;
}

static bool grow(struct json_out *out, size_t size)
{
    size_t more = out->room ? out->room : 256;
    while (more - out->size < size && more <= SIZE_MAX / 2)
        more *= 2;
    char *bigger = more - out->size < size ? NULL : mem_resize(out->alloc, out->data, out->room, more);
    if (!bigger) {
        out->status = PAWL_ENOMEM;
        return false;
    }
    out->data = bigger;
    out->room = more;
    return true;
}

/* NULL: no memory, now or earlier. */
static inline char *room_for(struct json_out *out, size_t size)
{
    if (out->status || (size > out->room - out->size && !grow(out, size)))
        return NULL;
    char *at = out->data + out->size;
    out->size += size;
    return at;
}

void out_raw(struct json_out *out, pawl_bytes bytes)
{
    char *at = room_for(out, bytes.size);
    if (at && bytes.size)
        memcpy(at, bytes.data, bytes.size);
}

static void put_char(struct json_out *out, char c)
{
    char *at = room_for(out, 1);
    if (at)
        *at = c;
}

/* Whether the text ends with a value, so that the next one needs a comma. In compact JSON no value ends in a
 * blank. */
static bool needs_comma(const struct json_out *out)
{
    char last = out->size ? out->data[out->size - 1] : ' ';
    return last != '{' && last != '[' && last != ':' && last != ' ' && last != '\n';
}

static void separate(struct json_out *out)
{
    if (needs_comma(out))
        put_char(out, ',');
}

/* Write a comma if it is needed, and a text in which nothing needs an escape. */
static void put_plain(struct json_out *out, const char *text, size_t size, bool quoted)
{
    bool comma = needs_comma(out);
    char *at = room_for(out, size + comma + 2 * (size_t)quoted);
    if (!at)
        return;
    if (comma)
        *at++ = ',';
    if (quoted)
        at[0] = at[size + 1] = '"';
    if (size)
        memcpy(at + quoted, text, size);
}

void out_open(struct json_out *out, char bracket)
{
    put_plain(out, &bracket, 1, false);
}

void out_close(struct json_out *out, char bracket)
{
    put_char(out, bracket);
}

static void put_escape(struct json_out *out, uint8_t c)
{
    static const char hex[] = "0123456789abcdef";
    const char *found = c ? strchr("\"\"\\\\\bb\ff\nn\rr\tt", c) : NULL;
    char *at = room_for(out, found ? 2 : 6);
    if (!at)
        return;
    at[0] = '\\';
    at[1] = found ? found[1] : 'u';
    if (!found) {
        memcpy(at + 2, "00", 2);
        at[4] = hex[c >> 4];
        at[5] = hex[c & 15];
    }
}

static bool needs_escape(uint8_t c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

static void put_utf8(struct json_out *out, pawl_bytes text)
{
    const uint8_t *at = text.data;
    for (size_t i = 0; i < text.size;) {
        size_t run = i;
        while (i < text.size && !needs_escape(at[i]))
            i++;
        out_raw(out, (pawl_bytes){at + run, i - run});
        if (i < text.size)
            put_escape(out, at[i++]);
    }
}

/* Write character by character; each byte that begins no valid character is replaced. */
static void put_mended(struct json_out *out, pawl_bytes text)
{
    const uint8_t *at = text.data;
    for (size_t left = text.size; left > 0;) {
        size_t size = 1;
        while (size <= 4 && size <= left && !text_is_utf8((pawl_bytes){at, size}))
            size++;
        bool good = size <= 4 && size <= left;
        put_utf8(out, good ? (pawl_bytes){at, size} : (pawl_bytes){"\xef\xbf\xbd", 3});
        at += good ? size : 1;
        left -= good ? size : 1;
    }
}

/* Checks every byte: a loop that could end early would be slower. */
static bool is_plain(pawl_bytes text)
{
    const uint8_t *at = text.data;
    unsigned special = 0;
    for (size_t i = 0; i < text.size; i++)
        special |= (unsigned)needs_escape(at[i]) | at[i] >> 7;
    return special == 0;
}

void out_text(struct json_out *out, pawl_bytes text)
{
    if (is_plain(text)) {
        put_plain(out, text.data, text.size, true);
        return;
    }
    separate(out);
    put_char(out, '"');
    if (text_is_utf8(text))
        put_utf8(out, text);
    else
        put_mended(out, text);
    put_char(out, '"');
}

void out_bytes(struct json_out *out, pawl_bytes bytes)
{
    separate(out);
    put_char(out, '"');
    char *at = room_for(out, form_base64_size(bytes.size));
    if (at)
        form_base64_write(bytes, at);
    put_char(out, '"');
}

void out_flag(struct json_out *out, bool flag)
{
    put_plain(out, flag ? "true" : "false", flag ? 4 : 5, false);
}

void out_null(struct json_out *out)
{
    put_plain(out, "null", 4, false);
}

void out_timestamp(struct json_out *out, int64_t ns)
{
    char text[TIMESTAMP_CHARS];
    size_t size = timestamp_write(ns, text);
    put_plain(out, text, size, true);
}

void out_real(struct json_out *out, double real)
{
    char text[FORM_REAL_CHARS];
    size_t size = form_real_write(real, text);
    put_plain(out, text, size, false);
}

void out_integer(struct json_out *out, int64_t integer)
{
    char text[FORM_INTEGER_CHARS];
    size_t size = form_integer_write(integer, text);
    put_plain(out, text, size, integer <= -FORM_INTEGER_END || integer >= FORM_INTEGER_END);
}

void out_unsigned(struct json_out *out, uint64_t integer)
{
    char text[FORM_INTEGER_CHARS];
    size_t size = form_unsigned_write(integer, text);
    put_plain(out, text, size, integer >= (uint64_t)FORM_INTEGER_END);
}

void out_name(struct json_out *out, pawl_bytes name)
{
    put_plain(out, name.data, name.size, true);
    put_char(out, ':');
}

void out_number_name(struct json_out *out, uint64_t number)
{
    char text[FORM_INTEGER_CHARS];
    size_t size = form_unsigned_write(number, text);
    out_name(out, (pawl_bytes){text, size});
}

/* engine/json/out.h: JSON text that grows, for answers and streams: compact, on one line, valid UTF-8.
 *
 * Values are written one after the other, without a tree in between, because answers must be fast. Commas are
 * added automatically. If there is no memory, this is kept in status, and nothing more is written: check it
 * once, at the end.
 *
 *     out_open(out, '{');
 *     out_key(out, "offset");
 *     out_unsigned(out, offset);
 *     out_close(out, '}'); */
#ifndef ENGINE_JSON_OUT_H
#define ENGINE_JSON_OUT_H

#include <string.h>

#include <pawl/types.h>

struct json_out {
    const pawl_allocator *alloc;
    char *data;
    size_t size;
    size_t room;
    int status; /* PAWL_OK or PAWL_ENOMEM */
};

/* Allocates nothing. */
void json_out_init(struct json_out *out, const pawl_allocator *alloc);
void json_out_release(struct json_out *out);

/* Cut the text to an earlier size, and clear status. Memory is kept. */
void json_out_rewind(struct json_out *out, size_t size);

static inline pawl_bytes json_out_text(const struct json_out *out)
{
    return (pawl_bytes){out->data, out->size};
}

/* Write bytes as they are: the end of a line, a frame of a stream. If a value follows, the bytes must end in a
 * blank, a newline or a colon. */
void out_raw(struct json_out *out, pawl_bytes bytes);

/* Each writes one value. open writes the beginning of one, '{' or '['; close writes its end. */
void out_open(struct json_out *out, char bracket);
void out_close(struct json_out *out, char bracket);
void out_text(struct json_out *out, pawl_bytes text); /* what is not UTF-8 becomes U+FFFD */
void out_bytes(struct json_out *out, pawl_bytes bytes);
void out_timestamp(struct json_out *out, int64_t ns);
void out_real(struct json_out *out, double real);
void out_flag(struct json_out *out, bool flag);
void out_null(struct json_out *out);

/* From FORM_INTEGER_END on the integer is written as a string. */
void out_integer(struct json_out *out, int64_t integer);
void out_unsigned(struct json_out *out, uint64_t integer);

/* The name of the next value. It comes from the schema or the program, so nothing in it needs an escape. */
void out_name(struct json_out *out, pawl_bytes name);
void out_number_name(struct json_out *out, uint64_t number);

static inline void out_key(struct json_out *out, const char *name)
{
    out_name(out, (pawl_bytes){name, strlen(name)});
}

#endif

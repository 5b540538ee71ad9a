/* engine/show/show.h: what operators look at, as JSON: projectors, lanes, leases, views, tablets and
 * sequences. The program prints it with --json, and the server answers with it. The functions are
 * those of the public headers that say "as `pawl ...` prints it"; each reads by public functions and writes one
 * object on a line.
 *
 * For this room only: members of an object. */
#ifndef ENGINE_SHOW_SHOW_H
#define ENGINE_SHOW_SHOW_H

#include <pawl/pawl.h>

#include "engine/json/json.h"

static inline void put_unsigned(struct json_out *out, const char *key, uint64_t value)
{
    out_key(out, key);
    out_unsigned(out, value);
}

static inline void put_bytes(struct json_out *out, const char *key, pawl_bytes text)
{
    out_key(out, key);
    out_text(out, text);
}

static inline void put_text(struct json_out *out, const char *key, const char *text)
{
    put_bytes(out, key, (pawl_bytes){text, strlen(text)});
}

static inline void put_flag(struct json_out *out, const char *key, bool flag)
{
    out_key(out, key);
    out_flag(out, flag);
}

static inline void put_real(struct json_out *out, const char *key, double real)
{
    out_key(out, key);
    out_real(out, real);
}

static inline void put_open(struct json_out *out, const char *key, char bracket)
{
    out_key(out, key);
    out_open(out, bracket);
}

static inline void end_line(struct json_out *out)
{
    out_close(out, '}');
    out_raw(out, (pawl_bytes){"\n", 1});
}

#endif

/* engine/node/put.h: a member of an object of JSON, in one line. */
#ifndef ENGINE_NODE_PUT_H
#define ENGINE_NODE_PUT_H

#include <string.h>

#include "engine/json/json.h"

static inline void put_number(struct json_out *out, const char *key, uint64_t number)
{
    out_key(out, key);
    out_unsigned(out, number);
}

static inline void put_real(struct json_out *out, const char *key, double real)
{
    out_key(out, key);
    out_real(out, real);
}

static inline void put_flag(struct json_out *out, const char *key, bool flag)
{
    out_key(out, key);
    out_flag(out, flag);
}

static inline void put_words(struct json_out *out, const char *key, const char *words)
{
    out_key(out, key);
    out_text(out, (pawl_bytes){words, strlen(words)});
}

static inline void put_seconds(struct json_out *out, const char *key, pawl_duration duration)
{
    put_real(out, key, (double)duration / 1e9);
}

#endif

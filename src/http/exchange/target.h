/* http/exchange/target.h: the target of a request, taken apart: the segments of its path, and its query parameters.
 *
 *     /v1/ws/7/entities/shop.Total?limit=10      {"v1","ws","7","entities","shop.Total"}, {limit: "10"}
 *
 * Everything is decoded once, here, and nowhere again. What could mean two things to two readers is refused: an
 * encoded slash, backslash, dot or control character in the path, a segment that is empty or consists of dots, a
 * parameter that is given twice, % without two digits. Pure: no I/O, no memory but the caller's. */
#ifndef HTTP_EXCHANGE_TARGET_H
#define HTTP_EXCHANGE_TARGET_H

#include <pawl/types.h>

#define TARGET_BYTES_MAX    ((size_t)12 << 10)
#define TARGET_SEGMENTS_MAX 16
#define TARGET_PARAMS_MAX   24

struct target_param {
    const char *name;
    const char *value; /* "" if there is no '=' */
};

/* Texts end in a 0, have none inside, and point into the text that was given. */
struct target {
    const char *segments[TARGET_SEGMENTS_MAX];
    size_t segment_count; /* 0: the path is / */
    struct target_param params[TARGET_PARAMS_MAX];
    size_t param_count;
};

/* text is changed. Errors: PAWL_EINVAL, with the place ("$path", "$query.limit"). */
int target_parse(char *text, struct target *ret_target, pawl_error *error);

/* NULL: it was not given. */
const char *target_param(const struct target *target, const char *name);

/* A number in decimal digits, nothing else, from least to most. where: "$query.limit". PAWL_EINVAL. */
int target_number(const char *text, uint64_t least, uint64_t most, const char *where, uint64_t *ret_number,
                  pawl_error *error);

/* A duration: 500ms, 30s, 5m, or a number of seconds. PAWL_EINVAL. */
int target_duration(const char *text, pawl_duration most, const char *where, pawl_duration *ret_duration,
                    pawl_error *error);

#endif

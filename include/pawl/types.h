/* types.h: the few types that every Pawl header speaks in. */
#ifndef PAWL_TYPES_H
#define PAWL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that belong to someone else. The function that hands them over says how long they stay. */
typedef struct pawl_bytes {
    const void *data;
    size_t size;
} pawl_bytes;

/* Two clocks, two types, so that no one compares one with the other.
 * An instant is nanoseconds of the boot-time clock: it never goes back, and it counts suspended time.
 * A wall time is nanoseconds since 1970 UTC: for stamping and showing, never for ordering or expiry. (Only access
 * tokens expire by it, because they must outlast the boot: pawl/token.h.) */
typedef struct pawl_instant {
    uint64_t ns;
} pawl_instant;

typedef struct pawl_wall {
    int64_t ns;
} pawl_wall;

typedef uint64_t pawl_duration; /* nanoseconds */

#define PAWL_MICROSECOND ((pawl_duration)1000)
#define PAWL_MILLISECOND ((pawl_duration)1000 * 1000)
#define PAWL_SECOND      ((pawl_duration)1000 * 1000 * 1000)

/* A wall time as text, RFC 3339 in UTC, as it is in JSON: "2026-11-15T10:00:00.123Z", with 0, 3, 6 or 9 digits
 * of a second. Every value has a text, and comes back from it as it was. text has PAWL_WALL_TEXT_MAX bytes, and
 * ends with a zero. parse takes up to nine digits of a second: PAWL_EINVAL unless the whole text is such a
 * time, of a day that exists, from 1677-09-21T00:12:43.145224192Z to 2262-04-11T23:47:16.854775807Z. Any
 * thread. */
#define PAWL_WALL_TEXT_MAX 32
PAWL_API void pawl_wall_format(pawl_wall wall, char *text);
PAWL_API int pawl_wall_parse(const char *text, pawl_wall *ret_wall, pawl_error *error);

/* How many partitions a directory or a cluster may have: a power of two, up to this. */
#define PAWL_PARTITIONS_MAX 65536

/* How far a long call has come, told again and again; done never goes back. total is 0 as long as it is not
 * known. Return false to cancel: the call then ends with PAWL_ECANCELED. What is counted, and on which thread
 * it is called, is said at each function that takes one. */
typedef bool (*pawl_progress)(void *arg, uint64_t done, uint64_t total);

/* Where memory comes from. NULL in place of a pawl_allocator means the C library's.
 * resize(ctx, NULL, 0, n) allocates; resize(ctx, p, old, 0) frees and returns NULL; it returns NULL when
 * there is no memory, and then p is untouched. It is called from every thread that uses the object it was
 * given to, and must outlive it. */
typedef struct pawl_allocator {
    void *(*resize)(void *ctx, void *memory, size_t old_size, size_t new_size);
    void *ctx;
} pawl_allocator;

#ifdef __cplusplus
}
#endif
#endif

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
 * A wall time is nanoseconds since 1970 UTC: for stamping and showing, never for ordering or expiry. */
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

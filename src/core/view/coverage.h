/* core/view/coverage.h: which keys of a base a view covers, in one partition.
 *
 * A set of intervals of keys of the base's table, each from its first key up to, but not including, its end.
 * Bounds compare as the store orders keys (port/longkey.h).
 *
 *   I1  Intervals ascend, and no two touch: neighbours are joined.
 *   I2  No interval is empty.
 *
 * As bytes: count u32, for each: size of from u32, size of to u32, their bytes. */
#ifndef CORE_VIEW_COVERAGE_H
#define CORE_VIEW_COVERAGE_H

#include "base/bytes.h"
#include "port/store.h"

#define COVERAGE_MAX ((size_t)4096) /* intervals */

struct interval {
    pawl_bytes from; /* both are the set's own memory */
    pawl_bytes to;
};

struct coverage {
    struct interval *intervals;
    size_t count;
    size_t room;
    const pawl_allocator *alloc;
};

void coverage_init(struct coverage *coverage, const pawl_allocator *alloc);
void coverage_release(struct coverage *coverage);

/* Add an interval. Copies. PAWL_ENOMEM, PAWL_ETOOBIG (there would be too many): nothing changed. */
int coverage_add(struct coverage *coverage, pawl_bytes from, pawl_bytes to);

bool coverage_has(const struct coverage *coverage, pawl_bytes key);

/* Whether all keys of an interval are covered. */
bool coverage_covers(const struct coverage *coverage, pawl_bytes from, pawl_bytes to);

/* The first key from this one on that is not covered: this one, or the end of its interval. Borrowed, until the
 * set changes. */
pawl_bytes coverage_gap(const struct coverage *coverage, pawl_bytes from);

/* copy: to becomes equal to from. PAWL_ENOMEM: to is as it was. */
int coverage_copy(struct coverage *to, const struct coverage *from);

size_t coverage_encoded_size(const struct coverage *coverage);
void coverage_encode(const struct coverage *coverage, struct encoder *encoder);

/* Into a set that is empty. PAWL_ECORRUPT, PAWL_ENOMEM: it is empty still. */
int coverage_decode(struct coverage *coverage, struct decoder *decoder);

#endif

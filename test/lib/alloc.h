/* test/lib/alloc.h: an allocator that counts, fails on order, and remembers what was done to it wrongly.
 *
 * A sweep makes every allocation of an operation fail once:
 *
 *     for (uint64_t k = 1;; k++) {
 *         struct test_alloc memory;
 *         test_alloc_init(&memory);
 *         test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
 *         ... use &memory.allocator; expect PAWL_ENOMEM exactly when test_alloc_failed(&memory) ...
 *         bool failed = test_alloc_failed(&memory);
 *         test_alloc_release(&memory);
 *         if (!failed)
 *             break;
 *     }
 *
 * New memory is filled with 0xa5, freed memory with 0x5a, and every resize moves, so that code which relies on
 * zeros or on a stale pointer shows it. Freeing takes no part in the counting of calls and never fails.
 * Any thread may allocate; release belongs to the test's own. */
#ifndef TEST_LIB_ALLOC_H
#define TEST_LIB_ALLOC_H

#include <pthread.h>

#include <pawl/types.h>

enum test_alloc_mode { TEST_ALLOC_ONCE, TEST_ALLOC_FROM_THEN_ON };

struct test_alloc {
    pawl_allocator allocator;
    pthread_mutex_t lock;
    uint64_t calls; /* allocations and resizes that were asked for */
    uint64_t fail_at;
    enum test_alloc_mode mode;
    uint64_t failures;
    size_t live_bytes;
    size_t live_bytes_max;
    size_t live_blocks;
    char problem[128]; /* the first misuse; empty while there is none */
};

void test_alloc_init(struct test_alloc *memory);

/* Fail the k-th call from now on, or that one and all after it. 0: none. */
void test_alloc_fail(struct test_alloc *memory, uint64_t k, enum test_alloc_mode mode);

/* Whether a failure that was ordered has happened. */
bool test_alloc_failed(struct test_alloc *memory);

/* Fails the test if a block is still live or a size was given back wrongly. */
void test_alloc_release(struct test_alloc *memory);

#endif

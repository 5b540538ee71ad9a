/* test/lib/mortal.h: the memory of a life: it is given back piece by piece, or dropped all at once when the
 * process dies. New memory is filled with 0xa5, freed memory with 0x5a, and every resize moves. */
#ifndef TEST_LIB_MORTAL_H
#define TEST_LIB_MORTAL_H

#include <pawl/types.h>

struct mortal_block;

struct mortal {
    pawl_allocator allocator;
    struct mortal_block *blocks; /* NULL: all was given back */
    uint64_t fails_in;           /* so many allocations; 0: never */
    uint64_t fails;              /* and then so many */
};

void mortal_init(struct mortal *memory);
void mortal_drop(struct mortal *memory);

#endif

/* Derives a partition's state a second time, by a checkpoint, from its log alone: in transactions of any size,
 * over a store that fails, in several lives, with power cuts between. It must end with the same bytes. */
#ifndef TEST_SIM_CHECKPOINT_TWIN_H
#define TEST_SIM_CHECKPOINT_TWIN_H

#include "test/lib/partition.h"

/* state: as partition_dump gave it. Fails the test unless the twin's is the same, and its sequence storage what
 * a reading of the whole log says. */
void twin_check(struct partition *p, uint64_t *random, pawl_bytes state);

#endif

/* engine/check/stores_sum.h: whether the stores of a backup are still, byte for byte, those that were saved.
 *
 *     BACKUP/stores.sum   text: "1 " and 32 hexadecimal digits: the sum of BACKUP/checkpoint/N/data.mdb, shard after shard
 *
 * Rows have digests, but numbers, positions and the cursors of lanes have not; the sum covers whatever is in the files. It
 * is of no more use once somebody has opened the backup for writing: then it is another one. */
#ifndef ENGINE_CHECK_STORES_SUM_H
#define ENGINE_CHECK_STORES_SUM_H

#include <pawl/types.h>

struct stores_sum {
    const char *dir;
    uint32_t shards;
    pawl_progress progress; /* asked whether to go on; nothing is counted */
    void *arg;
    const pawl_allocator *alloc;
};

/* Read the stores, and write the sum. Not synced beyond the file: whoever makes the directory syncs that.
 * PAWL_ECANCELED, PAWL_ENOMEM; errors of reading and writing. */
int stores_sum_write(const struct stores_sum *sum, pawl_error *error);

/* Read them again. *ret_same: they have the sum that was written; false also if there is none, or they cannot be read.
 * PAWL_ECANCELED, PAWL_ENOMEM. */
int stores_sum_check(const struct stores_sum *sum, bool *ret_same, pawl_error *error);

#endif

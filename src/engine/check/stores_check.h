/* engine/check/stores_check.h: whether the stores of a directory were made from its log, which may be too long to read.
 *
 *     each position, each cursor of a lane ──► the log has this very entry, at this offset and place?
 *
 * It reads one entry for each partition and lane. An entry is known by its checksum, and every entry of a log on Kafka
 * continues the chain of those before it, so a log that has it is the log that the store was made from. Of the rows this
 * says nothing: what was saved is known again by its sum (stores_sum.h), and deriving the state again (pawl_replay) finds
 * what was derived wrongly. */
#ifndef ENGINE_CHECK_STORES_CHECK_H
#define ENGINE_CHECK_STORES_CHECK_H

#include <pawl/admin.h>

struct stores_check {
    const char *dir; /* with its log on Kafka; it may be a backup */
    pawl_progress progress;
    void *arg;
    const pawl_allocator *alloc;
};

/* ret_records: how many records of the log were read. PAWL_ECORRUPT, naming partition and table or offset;
 * PAWL_ECANCELED; errors of opening, and of reading the log. */
int stores_check(const struct stores_check *check, uint64_t *ret_records, pawl_error *error);

#endif

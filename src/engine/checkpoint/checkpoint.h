/* engine/checkpoint/checkpoint.h: a shard's two stores and the thread that keeps the second of them, as the other
 * rooms see them. Which store is the live one is stores.h's matter; how the thread works is checkpointer.h's. */
#ifndef ENGINE_CHECKPOINT_CHECKPOINT_H
#define ENGINE_CHECKPOINT_CHECKPOINT_H

#include <pawl/figures.h>

#include "base/partition_set.h"
#include "engine/knobs.h"
#include "port/store.h"

struct shard;
struct checkpointer;

struct stores_options {
    const char *dir;
    uint32_t shard;
    struct partition_set partitions; /* of the shard */
    uint64_t lag_max;
    const struct engine_knobs *knobs;
    const pawl_allocator *alloc;
};

struct stores_opened {
    pawl_store *live;
    bool durable;                /* the live store is: there is no checkpoint that could stand in for it */
    bool taken_over;             /* the live store was the checkpoint until now */
    uint64_t live_offsets;       /* the sum of the partitions' */
    uint64_t checkpoint_offsets; /* the same of the checkpoint; 0 if there is none */
};

/* Open the live store, after taking over if that is called for. On the shard's thread. Errors: those of a
 * store. */
int stores_open(const struct stores_options *options, struct stores_opened *ret_opened, pawl_error *error);

/* opened is what stores_open found. PAWL_ENOMEM. The thread begins with start, which may fail (PAWL_EIO,
 * PAWL_ENOMEM). */
int checkpointer_new(struct shard *shard, const struct stores_options *stores,
                     const struct stores_opened *opened, struct checkpointer **ret_checkpointer);
int checkpointer_start(struct checkpointer *checkpointer, pawl_error *error);

/* Commits what it has, and ends the thread. Not from the shard, which may call what follows until free. */
void checkpointer_stop(struct checkpointer *checkpointer);
void checkpointer_free(struct checkpointer *checkpointer); /* NULL is allowed */

/* On the shard: it has seen so many events. */
void checkpointer_seen(struct checkpointer *checkpointer, uint64_t events);

/* On the shard: whether a command may be taken, with so many events seen and so many commands under way. */
bool checkpointer_has_room(const struct checkpointer *checkpointer, uint64_t events, uint64_t under_way);

/* On the shard: commands are held back from now on, or no more. While they are, each commit posts the shard's
 * drain.
 */
void checkpointer_hurry(struct checkpointer *checkpointer, bool hurry);

/* Why it does not come on; false: it does. Any thread. */
bool checkpointer_error(struct checkpointer *checkpointer, pawl_error *ret_error);

/* Add its figures, of a shard that has seen so many events. Any thread. */
void checkpointer_add_figures(const struct checkpointer *checkpointer, uint64_t seen, pawl_figures *figures);

#endif

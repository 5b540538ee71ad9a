/* engine/checkpoint/checkpoint.h: a shard's two stores and the thread that keeps the second of them, as the
 * other rooms see them. Which store is the live one is stores.h's matter; how the thread works is
 * checkpointer.h's. */
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
    bool durable;                /* the live store is durable: no checkpoint could replace it */
    bool taken_over;             /* the live store was the checkpoint until now */
    uint64_t live_offsets;       /* the sum of the partitions' offsets in it */
    uint64_t checkpoint_offsets; /* the same sum of the checkpoint; 0 if there is none */
};

/* Open the live store; if it is lost, the checkpoint takes its place first. On the shard's thread. Errors:
 * those of a store. */
int stores_open(const struct stores_options *options, struct stores_opened *ret_opened, pawl_error *error);

/* opened comes from stores_open. new: PAWL_ENOMEM. start begins the thread: PAWL_EIO, PAWL_ENOMEM. */
int checkpointer_new(struct shard *shard, const struct stores_options *stores,
                     const struct stores_opened *opened, struct checkpointer **ret_checkpointer);
int checkpointer_start(struct checkpointer *checkpointer, pawl_error *error);

/* Commit what it has, and end the thread. Not from the shard's thread. The shard may still call the functions
 * below until free. */
void checkpointer_stop(struct checkpointer *checkpointer);
void checkpointer_free(struct checkpointer *checkpointer); /* NULL is allowed */

/* On the shard: its logs have this many events now. */
void checkpointer_seen(struct checkpointer *checkpointer, uint64_t events);

/* On the shard, which has seen this many events and has this many commands under way: whether it may take
 * another command. */
bool checkpointer_has_room(const struct checkpointer *checkpointer, uint64_t events, uint64_t under_way);

/* On the shard: say whether commands are held back. While they are, each commit posts the shard's drain. */
void checkpointer_hurry(struct checkpointer *checkpointer, bool hurry);

/* There are other views. Any thread. */
void checkpointer_views_changed(struct checkpointer *checkpointer);

/* Whether the last commit of the checkpoint covers these keys of a view's base. False also if there is no
 * checkpoint now: it is being made. Any thread. */
bool checkpointer_covers(struct checkpointer *checkpointer, uint32_t view, uint32_t base, uint16_t partition,
                         pawl_range keys);

/* The error that keeps it from going on. False: there is none. Any thread. */
bool checkpointer_error(struct checkpointer *checkpointer, pawl_error *ret_error);

/* Add its figures. seen: how many events the shard has seen. Any thread. */
void checkpointer_add_figures(const struct checkpointer *checkpointer, uint64_t seen, pawl_figures *figures);

#endif

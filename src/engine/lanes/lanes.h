/* engine/lanes/lanes.h: the lanes of a node, as the other rooms see them.
 *
 *     schema published ──► lanes_reconcile: generations that it names are opened, all others are closed
 *     events applied   ──► lanes_applied: lanes take them up
 *     entity read      ──► lanes_read_begin ... lanes_read_end: its rows stay
 *
 * How they work is in impl.h. */
#ifndef ENGINE_LANES_LANES_H
#define ENGINE_LANES_LANES_H

#include <pawl/pawl.h>

#include "core/project/lane.h"
#include "core/state/digests.h"

struct partition;
struct partition_lane;

/* --- with the engine --- */

/* Sets engine->lanes. PAWL_ENOMEM. */
int lanes_new(pawl_engine *engine);
void lanes_free_all(pawl_engine *engine); /* also if there are none */

/* Load from the directory which lanes are paused. */
int lanes_load_paused(pawl_engine *engine, pawl_error *error);

/* Load the leases of external workers that the directory has, for the lanes that are opened next. drop_unclaimed:
 * all lanes are open, so nobody has the leases that are left; they are removed. */
int lanes_load_kept(pawl_engine *engine, pawl_error *error);
void lanes_drop_unclaimed(pawl_engine *engine);

/* Open the generations that the schema names, and close all others. Under schema_lock, from a thread that may
 * wait. */
int lanes_reconcile(pawl_engine *engine, pawl_error *error);

/* Close all lanes, and wait until they are closed and every running handler has returned. */
void lanes_close(pawl_engine *engine);

/* Whether the calling thread is a worker thread of this engine. */
bool lanes_is_self(pawl_engine *engine);

/* The lane of the present schema by its name. PAWL_ENOTFOUND. */
int lanes_find(pawl_engine *engine, const char *name, const struct schema_lane **ret_lane, pawl_error *error);

/* --- on a partition's shard --- */

/* Events up to this offset are applied: its lanes may take them up. */
void lanes_applied(struct partition *partition, uint64_t offset);

/* Another node has the log: the lanes of the partition write nothing more, and are refused. On its shard. */
void lanes_give_up(struct partition *partition, const char *words);

/* --- for readers of entities --- */

/* The rows of every generation that serves when a read begins stay until the read ends. begin returns the
 * parity that end must be given. */
unsigned lanes_read_begin(pawl_engine *engine);
void lanes_read_end(pawl_engine *engine, unsigned parity);

/* The lane whose rows readers of this entity see now, in this partition. It stays until it is released. NULL:
 * no open lane makes the entity's rows. */
struct partition_lane *lanes_hold_serving(pawl_engine *engine, const char *entity, uint16_t partition);
void lanes_release(struct partition_lane *lane);

/* All events up to this offset are in its tables. Any thread. */
uint64_t lanes_offset(const struct partition_lane *lane);

/* On its shard: whether it is open, so that its offset can still grow. */
bool lanes_is_open(const struct partition_lane *lane);

/* --- which generations are needed --- */

/* Whether the schema still needs a generation of a lane: the lane names it, or an entity is read from one of
 * its tables. */
bool lanes_need(const struct schema *schema, uint16_t id, uint32_t number, const struct digests *tables);

/* Whether the engine has a generation, open or retired. */
bool lanes_has_generation(pawl_engine *engine, uint16_t id, uint32_t number);

/* --- handlers, run again outside their lanes --- */

/* Runs on one thread, on a store of the caller's choice. A handler reads what is committed there. */
struct rerun;

struct rerun_of {
    struct lane_event *event; /* the rerun takes it, also when it fails */
    uint64_t number;
    uint32_t attempt; /* the number of this run among those of the operation */
    uint16_t partition;
    uint16_t lane;
    uint32_t generation;
    const struct schema *schema;
    const struct schema_projector *projector;
};

/* PAWL_ENOMEM. */
int rerun_new(pawl_engine *engine, pawl_store *store, const pawl_allocator *alloc, struct rerun **ret_rerun);
void rerun_free(struct rerun *rerun); /* NULL is allowed */

/* Whether a handler of the projector is registered. */
bool rerun_can(const struct rerun *rerun, const struct schema_projector *projector);

/* Run the handler. The intents that it returns last until the next call. PAWL_EINVAL: the handler failed, and
 * error says why; PAWL_ENOTFOUND: there is no handler; or the error of a read from the store. */
int rerun_handle(struct rerun *rerun, const struct rerun_of *of, const struct intent **ret_intents,
                 size_t *ret_count, pawl_error *error);

#endif

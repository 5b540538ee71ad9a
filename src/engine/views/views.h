/* engine/views/views.h: the views of a node, as the other rooms see them.
 *
 *     group0 ── list of views ──► every shard: core/view/tables.h keeps their rows current
 *                    └──────────► readers
 *     coordinator (shard 0) ── bus ──► workers (one a shard) ──► slices through the shard's applier
 *     checkpointers build by themselves; a task is finished when both sides cover it
 *
 * How it works is in impl.h. */
#ifndef ENGINE_VIEWS_VIEWS_H
#define ENGINE_VIEWS_VIEWS_H

#include <pawl/pawl.h>
#include <pawl/view.h>

#include "core/group0/building.h"
#include "core/view/tables.h"

struct shard;

/* --- with the engine --- */

/* Sets engine->views. PAWL_ENOMEM. */
int views_new(pawl_engine *engine);
void views_free(pawl_engine *engine); /* also if there are none */

/* On a shard, before its partitions are opened: its live store's views. refresh: the list is another one, or the
 * schema; what it writes is committed. */
int views_open_shard(struct shard *shard, pawl_error *error);
int views_refresh_shard(struct shard *shard, const struct view_list *list, const struct schema *schema,
                        pawl_error *error);
void views_close_shard(struct shard *shard);

/* When the partitions run: begin to build. close: stop, and wait until nothing is under way. */
int views_start(pawl_engine *engine, pawl_error *error);
void views_close(pawl_engine *engine);

/* group0 has changed: under schema_lock, from a thread that may wait. */
void views_changed(pawl_engine *engine);

/* Whether a view may be built now: it is not paused. How many base rows a second a shard may scan; 0: no bound. Any
 * thread. */
bool views_may_build(pawl_engine *engine, uint32_t table);
uint64_t views_throttle(pawl_engine *engine);

/* A checkpoint covers more than before. Any thread. */
void views_checkpointed(struct shard *shard);

/* Whether a lane may switch to this generation: every view that covers the one that serves, in all partitions,
 * covers this one, too. */
bool views_allow_switch(pawl_engine *engine, uint16_t lane, uint32_t generation);

/* --- for readers --- */

/* The present list. It stays until the engine is closed. If this engine only reads: as the writing process has
 * published it. Any thread. */
const struct view_list *engine_views(pawl_engine *engine);

/* What group0 has decided, and the schema that goes with it. Shards learn of a list one by one, and only then it is
 * published: in between, a store may lack the state of a view that the published list still has. Any thread. */
const struct view_list *engine_views_decided(pawl_engine *engine, const struct schema **ret_schema);

/* Which tablets have no unfinished task of building this view's table: 1 in covered, the others 0. Returns how many
 * tablets there are; covered has room for so many, and beyond it nothing is written. Any thread. */
size_t views_tablets(pawl_engine *engine, uint32_t table, uint8_t *covered, size_t room);

#endif

/* engine/views/impl.h: how the views of a node work. For this room only.
 *
 *     views.c    opening and closing; what each shard's store keeps
 *     work.c     a shard's part of building: what core/view/worker.h asks of it
 *     lead.c     the coordinator, and the thread that writes its commands to group0
 *     admin.c    what an operator does: create, drop, rebuild, pause, throttle, wait, split, merge
 *     status.c   how views are doing
 *     system.c   group0's tables, as JSON
 *
 * Who touches what
 *   a shard's view_tables and worker                 its shard
 *   the coordinator                                  shard 0
 *   the command that is proposed, and what waits     any thread, under views.lock
 *
 * Locks are taken in this order: schema_lock, group0_lock, views.lock. Nobody waits for a shard under the last
 * two. */
#ifndef ENGINE_VIEWS_IMPL_H
#define ENGINE_VIEWS_IMPL_H

#include <pthread.h>

#include "adapter/local/bus.h"
#include "base/wait.h"
#include "core/view/coordinator.h"
#include "core/view/slice.h"
#include "core/view/worker.h"
#include "engine/node/node.h"
#include "engine/views/views.h"

#define VIEW_NODE 1 /* the ID of the only node */

/* A shard's part. */
struct view_work {
    struct shard *shard;
    struct worker *worker; /* NULL: not begun, or closed */
    pawl_task changed;     /* group0 has changed */
    pawl_task remove;      /* rows that are nobody's: a piece a turn */
    pawl_timer again;      /* removes, after the store could not be written */
    bool more;             /* the last piece was not the last */
};

struct views {
    pawl_engine *engine;
    atomic_bool open; /* what is below was begun: others may tell it of changes */
    struct local_network *network;
    struct local_bus *bus;
    struct view_work *work;          /* by shard */
    struct coordinator *coordinator; /* NULL: not begun, or closed */
    pawl_task changed;
    pawl_task covered;

    pthread_mutex_t lock;
    pthread_cond_t wake;     /* of the thread */
    pthread_cond_t progress; /* of those who wait for a view */
    pthread_t thread;
    bool started;
    bool stop;
    bool pending;       /* there is a command to write */
    pawl_bytes command; /* borrowed from the coordinator until it is told */
    uint64_t changes;   /* how often group0 has changed */

    pawl_task proposed;
    _Atomic int proposed_status;
};

/* group0 does not change between the two. Any thread. */
const struct building *building_lock(pawl_engine *engine);
void building_unlock(pawl_engine *engine);

/* views.c: if the shard's last refresh has failed, try it again (core/view/tables.h, T5). On the shard. */
int views_refresh_again(struct shard *shard);

/* status.c. How many rows a base table has in a partition, by the digests that are kept of it. */
uint64_t views_count_base(const pawl_engine *engine, const struct schema *schema, const struct view *view,
                          uint32_t base, pawl_reader *reader, uint16_t partition);

/* work.c. On the shard. */
int work_open(struct view_work *work, pawl_bus *bus);
void work_close(struct view_work *work);
void work_changed(pawl_task *task);
void work_remove(pawl_task *task);

/* Rows that were in the base before the view, covered at once: for a unique view that is called built. */
int work_cover_unique(struct shard *shard, pawl_error *error);

/* lead.c */
int lead_open(pawl_engine *engine, pawl_error *error);
void lead_close(pawl_engine *engine);

/* admin.c: write a command about views. Errors as engine_group0_propose. */
int views_propose(pawl_engine *engine, const struct group0_command *command, pawl_error *error);

#endif

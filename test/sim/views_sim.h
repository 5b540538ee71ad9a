/* test/sim/views_sim.h: a simulated cluster that builds views.
 *
 *     the log of group0 ── each node, in its own time ──► group0 ──► views of each shard's store, workers
 *            ▲                                                            │
 *            └──── the leader's coordinator ◄──── bus with faults ────────┘
 *
 *     views_node.c    a node: its shards, their stores and workers, its coordinator; how it dies and comes back
 *     views_check.c   whether each view is what its base says
 *     test_views.c    what happens, by a seed
 *
 * The bases: Item, records that are written most and get a field more; Tiny, records, few; Sum, an entity whose lane
 * is rebuilt and switched. The base rows of a shard's store are the truth: a store that goes back to its checkpoint
 * takes them with it. */
#ifndef TEST_SIM_VIEWS_SIM_H
#define TEST_SIM_VIEWS_SIM_H

#include "adapter/local/bus.h"
#include "adapter/mem/env.h"
#include "adapter/mem/store.h"
#include "core/group0/group0.h"
#include "core/view/coordinator.h"
#include "core/view/slice.h"
#include "core/view/tables.h"
#include "core/view/worker.h"
#include "test/lib/links.h"
#include "test/lib/test.h"

enum { NODES_MAX = 3, SHARDS_MAX = 2, ENTRIES_MAX = 4096, WORKSPACES = 24, RECORDS = 24 };

struct sim;
struct node;

struct shard {
    struct node *node;
    uint32_t id;
    mem_store_disk *disk; /* outlives the node */
    char live_name[24], checkpoint_name[24];
    char old_name[24]; /* a checkpoint of long ago; empty: none */
    uint32_t names;
    pawl_store *store;      /* NULL: the node is down */
    pawl_store *checkpoint; /* a copy of an earlier commit; NULL: there is none */
    struct view_tables tables;
    struct worker *worker;
    pawl_task changed;
};

struct node {
    struct sim *sim;
    uint32_t id;
    bool up;
    bool behind; /* its stores were once exchanged for old ones: group0 may believe more than they cover */
    struct mem_env *env;
    struct local_bus *bus;
    struct group0 *group0;
    size_t applied; /* entries of the log */
    pawl_timer apply_timer;
    pawl_task apply_soon;
    struct coordinator *coordinator;
    uint64_t term; /* the coordinator's */
    pawl_timer propose_timer;
    pawl_bytes proposal;
    struct shard shards[SHARDS_MAX];
};

struct sim {
    uint64_t random;
    struct mem_world *world;
    struct local_network *network;
    struct links links;
    uint32_t nodes, shards, partitions;
    struct node node[NODES_MAX];
    uint64_t term;
    uint32_t leader; /* ID; 0: none */
    bool calm;       /* no faults any more */

    pawl_bytes log[ENTRIES_MAX]; /* entry i has position i + 1 */
    size_t entries;
    struct arena arena;

    bool appended;       /* the last command of a test was taken */
    struct node *called; /* for sim_on */
    void (*fn)(struct node *node, uint32_t shard, uint64_t argument);
    uint32_t called_shard;
    uint64_t argument;
    struct sim_counts { /* so that a test can see that much has happened */
        uint64_t slices, written, crashes, cuts, restored, unheard, fields, rebuilt, switched, turns;
    } counts;
};

static inline uint64_t sim_below(struct sim *sim, uint64_t bound)
{
    return test_below(&sim->random, bound);
}

/* views_node.c */

/* Run something on a shard of a node that is up. */
void sim_on(struct node *node, uint32_t shard, void (*fn)(struct node *node, uint32_t shard, uint64_t argument),
            uint64_t argument);

void node_open(struct node *node);

/* A process is killed; or the power is cut, and what was behind the last checkpoint is lost; or an operator puts back
 * checkpoints of long ago, which may lack what group0 calls built. */
enum node_loss { LOSS_NONE, LOSS_POWER, LOSS_RESTORED };
void node_crash(struct node *node, enum node_loss loss);

void node_free(struct node *node); /* with its disks */
void node_lead(struct node *node); /* in a new term */
void node_checkpoint(struct node *node, uint32_t shard);
void node_keep_checkpoint(struct node *node, uint32_t shard); /* the present one, to be put back one day */
void node_write_rows(struct node *node, uint32_t shard, uint64_t count);
void node_catch_up(struct node *node);

/* Append a command, on shard 0 of the node that leads. PAWL_EBUSY: nobody leads. Errors of group0_check. */
int sim_append(struct sim *sim, pawl_bytes command);

/* The partitions of a shard. */
struct partition_set sim_set(const struct sim *sim, uint32_t node, uint32_t shard);

const struct building *node_building(const struct node *node);

/* Whether every view that is built over the lane's entity covers this generation, everywhere. */
bool sim_may_switch(struct sim *sim, uint32_t generation);

/* views_check.c */

/* Fail the test unless, at each shard, each view that is built covers its base. all: and each other view. */
void check_coverage(struct sim *sim, struct node *node, bool all);

/* Fail the test unless each view is what its base says, row by row, and nothing else is there. */
void check_rows(struct sim *sim, struct node *node);

#endif

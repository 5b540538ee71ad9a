/* core/view/coordinator_impl.h: the coordinator's struct, and what its files share.
 *
 *     coordinator.c          how it begins and ends; a step: look, decide, then act
 *     coordinator_calls.c    calls of workers, and their answers
 *     coordinator_propose.c  which command is proposed next
 *     coordinator_choose.c   which batch a replica gets */
#ifndef CORE_VIEW_COORDINATOR_IMPL_H
#define CORE_VIEW_COORDINATOR_IMPL_H

#include "base/arena.h"
#include "base/map.h"
#include "core/view/coordinator.h"
#include "core/view/work.h"

#define STEP_LOOKS    16384 /* at tasks or groups of tasks, in one step (O5) */
#define PROPOSE_MAX   ((size_t)4096)
#define COLLECTED_MAX ((size_t)1 << 20)
#define FAILURES_MAX  16
#define SWEEP_OVER    ((uint32_t)TASK_PROCESS_STAGING + 1)

/* The tasks of one call. */
struct batch {
    uint32_t base;
    uint32_t tablet;
    size_t count;  /* 0: there is none */
    uint64_t *ids; /* ascending; these two have room for WORK_TASKS_MAX */
    uint32_t *views;
};

enum contact_state { CONTACT_IDLE, CONTACT_CALLED, CONTACT_WAITING };

/* What the coordinator knows about a replica. */
struct contact {
    struct coordinator *coordinator;
    struct replica place;
    enum contact_state state;
    uint64_t wait_until; /* WAITING */
    bool drop;           /* CALLED: the step has decided to cancel */
    bool chosen;         /* IDLE: the step has chosen the batch */

    /* It goes through the tablets again and again: build_range, then process_staging. */
    uint32_t type; /* SWEEP_OVER: nothing was left behind */
    uint32_t tablet;
    bool left; /* a task was passed over that must be asked about again */

    struct batch batch; /* CALLED; or the one to be tried again */
    pawl_bus_call call;
    pawl_error error; /* why it is to be tried again; code 0: it is not */

    bool ask; /* what it does not cover */
    uint64_t ask_from;
    pawl_bus_call asking;
    bool asked;                  /* asking is under way */
    struct uncovered *uncovered; /* its answer */
    size_t uncovered_count;
    size_t uncovered_at;     /* those before have a task, or are proposed */
    bool told;               /* it has answered since the views or the map have changed */
    struct base_rows *bases; /* of its last answer */
    size_t base_count;
};

struct failure {
    uint32_t view;
    pawl_error words;
};

struct coordinator {
    struct coordinator_options options;
    pawl_timer timer;
    bool more; /* another step is to be taken at once */

    struct contact *contacts; /* by node and shard */
    size_t contact_count;
    uint32_t nodes, shards;
    size_t first; /* the contact that is the first one to get a batch */

    /* The state that was looked at last. */
    bool looked;
    uint64_t map_version, views_version, list_version, next;
    uint32_t processing;

    size_t *open; /* the groups that tasks are taken from; of views_version */
    size_t open_count, open_room;

    uint64_t *finished; /* in the order in which they were answered */
    size_t finished_count, finished_room;
    size_t finished_proposed; /* the first ones */
    struct map finished_set;
    uint64_t finished_since;

    struct failure failures[FAILURES_MAX];
    size_t failure_count;

    bool base_decided; /* at base_version another base would not be chosen */
    uint64_t base_version;

    enum group0_command_kind proposing; /* 0: nothing is proposed */
    uint32_t proposed_base;
    uint64_t propose_from; /* not before, because the last one was not written */
    struct arena command;  /* of the proposal */
    struct arena scratch;

    struct coordinator_figures figures;
};

/* coordinator.c */
void coordinator_wake(struct coordinator *c);
uint64_t coordinator_now(const struct coordinator *c);

/* coordinator_calls.c */
void contact_call(struct contact *contact);
void contact_ask(struct contact *contact);
void contact_drop(struct contact *contact); /* cancels its call */
void contact_forget_uncovered(struct contact *contact);

/* Of how many rows of a base it has said that they are not covered. False: it has said nothing about the base. */
bool contact_rows(const struct contact *contact, uint32_t base, uint64_t *ret_rows);
void contact_release(struct contact *contact);

/* coordinator_propose.c. The command to be proposed lies in c->command; size 0: there is none. looks: how many
 * more may be taken in this step. PAWL_ENOMEM. */
int propose_next(struct coordinator *c, const struct building *b, uint32_t *looks, pawl_bytes *ret_command);

/* Tasks that were proposed for what is not covered were not made. */
void propose_tasks_again(struct coordinator *c);

/* Keep a task that was answered as finished. False: there is no room, and it will be asked about again. */
bool collect_finished(struct coordinator *c, uint64_t id);
void forget_finished(struct coordinator *c, size_t count); /* the first ones */
void forget_failure(struct coordinator *c);                /* the first one */

/* coordinator_choose.c */

/* Find the groups that tasks are taken from. PAWL_ENOMEM. */
int choose_groups(struct coordinator *c, const struct building *b);

/* A batch for a replica; false: there is none, or the step has looked enough (then c->more). */
bool choose_batch(struct coordinator *c, const struct building *b, struct contact *contact, uint32_t *looks);

/* Whether tasks of this view (0: of process_staging) may be given out. */
bool view_is_open(const struct building *b, uint32_t view);

#endif

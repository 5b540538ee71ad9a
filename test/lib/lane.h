/* test/lib/lane.h: the lanes of one partition under virtual time, on a log and a store in memory, and attempts
 * that a test makes by hand.
 *
 *     open ── boot ── event, pass, attempt ... ──┬── halt ──┬── boot ... ── close
 *                                                └── crash ─┘
 *
 * A test is on the shard only inside these calls. */
#ifndef TEST_LIB_LANE_H
#define TEST_LIB_LANE_H

#include "adapter/mem/env.h"
#include "adapter/mem/log.h"
#include "adapter/mem/store.h"
#include "core/group0/group0.h"
#include "core/project/lane.h"
#include "test/lib/mortal.h"
#include "test/lib/plog.h"

enum { LANE_BED_LANES = 2, LANE_BED_PARTITION = 3, LANE_BED_KEY = 64 };

struct lane_bed {
    struct mem_world *world;
    struct mem_log_disk *log_disk;
    mem_store_disk *store_disk;
    struct group0 *group0;
    const struct schema *schema;
    struct mem_env *feeder_env;
    pawl_log *feeder;
    struct plog plog;
    struct lane_options limits; /* and explode, applied: to be set before boot; their ctx is the bed */
    uint32_t log_requests;      /* that the log takes at a time; 0: its default */
    struct run *exploding;      /* given to lane_bed_explode */

    /* of a life */
    struct mortal memory;
    struct mem_env *env;
    pawl_log *log;
    pawl_store *store;
    struct applier applier;
    struct run_buffers buffers;
    struct lane *lanes[LANE_BED_LANES]; /* as the schema has them */
    size_t lane_count;
    size_t closed;
    uint64_t available; /* calls */
};

/* schema: JSON, one package, whose lanes are numbered as its projectors name them. */
void lane_bed_open(struct lane_bed *bed, const char *schema);
void lane_bed_close(struct lane_bed *bed);
void lane_bed_boot(struct lane_bed *bed);
void lane_bed_halt(struct lane_bed *bed);
void lane_bed_begin_halt(struct lane_bed *bed); /* and no more: halt goes on */
void lane_bed_crash(struct lane_bed *bed);

/* On the shard. */
void lane_bed_call(struct lane_bed *bed, void (*fn)(void *arg), void *arg);

/* Write an event of package t ("Add"), whose argument is a t.Arg, and tell the lanes; or many, for k, k + 1,
 * ... */
void lane_bed_event(struct lane_bed *bed, const char *command, uint64_t wsid, int64_t k, int64_t by);
void lane_bed_events(struct lane_bed *bed, const char *command, uint64_t wsid, int64_t k, size_t count);
void lane_bed_pass(struct lane_bed *bed, pawl_duration duration);

/* An attempt at a number. What is said of it is kept in told, once. */
struct attempt {
    struct lane_bed *bed;
    struct lane *lane;
    struct run run;
    bool is_told;
    int told;
};

/* False: there is none to be had. release in any case. */
bool attempt_acquire(struct attempt *attempt, struct lane_bed *bed, size_t lane, uint32_t projection,
                     pawl_duration duration);
void attempt_release(struct attempt *attempt);

/* By an external worker, whose lease is kept; and again by what the worker has of it, as lane_resume does. */
bool attempt_acquire_kept(struct attempt *attempt, struct lane_bed *bed, size_t lane, uint32_t projection,
                          pawl_duration duration);
int attempt_resume(struct attempt *attempt, struct lane_bed *bed, size_t lane, uint64_t number,
                   pawl_operation_id id, bool *ret_again);

/* A handler reads x of a row of t.Sum (-1: there is none), and wants to set x of one. */
int64_t attempt_read(struct attempt *attempt, int64_t k);
void attempt_put(struct attempt *attempt, int64_t k, int64_t x);
void attempt_put_many(struct attempt *attempt, int64_t first, size_t count, int64_t x);
void attempt_explode(struct attempt *attempt);
int attempt_hand_in(struct attempt *attempt);
int attempt_fail(struct attempt *attempt, bool permanent, const char *words);
bool attempt_fail_run(struct attempt *attempt, bool permanent, const char *words); /* true: it is kept */

/* Acquire, put x, explode and hand in, and wait until it is applied. */
void lane_bed_work(struct lane_bed *bed, size_t lane, uint32_t projection, int64_t k, int64_t x);

/* For limits.explode: the run is kept until the test sends it back. */
void lane_bed_explode(void *ctx, struct lane *lane, struct run *run);
void lane_bed_exploded(struct lane_bed *bed, size_t lane, int status);

/* Somebody else who knows its number and ID hands in. */
int attempt_hand_in_as(struct attempt *attempt, const struct attempt *whose);

/* --- looking, and what an operator does --- */

struct lane_figures lane_bed_figures(struct lane_bed *bed, size_t lane);
int lane_bed_void(struct lane_bed *bed, size_t lane, uint64_t number, const char *words);
int lane_bed_retry(struct lane_bed *bed, size_t lane, uint64_t number);
void lane_bed_pause(struct lane_bed *bed, size_t lane, bool paused);

/* A field of a row of an entity; -1: it is null; -2: there is no such row. */
int64_t lane_bed_field(struct lane_bed *bed, const char *entity, uint64_t wsid, int64_t k, const char *field);

/* The key of a row, in the state. */
pawl_bytes lane_bed_key(const struct lane_bed *bed, const char *entity, uint64_t wsid, int64_t k,
                        uint8_t key[LANE_BED_KEY]);

/* What the log has under a number: writes or void; 0: nothing. reason: of a void. */
enum operation_kind lane_bed_operation(struct lane_bed *bed, size_t lane, uint64_t number,
                                       struct operation *ret_operation, char reason[OPERATION_REASON + 1]);

/* What the store says that a lane has come to. */
void lane_bed_cursor(struct lane_bed *bed, size_t lane, uint64_t *ret_applied, uint64_t *ret_scanned);

#endif

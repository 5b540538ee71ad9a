/* lane.h: lanes of projectors, as an operator sees them: how they are doing, what can be decided about them,
 * and the operations that they have logged. docs/LEASES.md. */
#ifndef PAWL_LANE_H
#define PAWL_LANE_H

#include <pawl/engine.h>
#include <pawl/lease.h>
#include <pawl/row.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A projector, as the schema that is in force has it. Names are borrowed until visit returns. */
typedef struct pawl_projector {
    pawl_bytes name;
    pawl_bytes lane;      /* empty: it is synchronous, and what concerns lanes is 0 */
    uint32_t generation;  /* of the lane, the newest */
    uint32_t serving;     /* the one that reads come from */
    bool handler;         /* its work is that of a handler or of workers */
    const pawl_bytes *on; /* the commands whose events it sees */
    size_t on_count;
    const pawl_bytes *writes; /* entities */
    size_t write_count;
    const pawl_bytes *reads; /* entities that a handler reads, besides */
    size_t read_count;
    uint32_t workers; /* runs of it at once in a partition, at most */
    uint32_t attempts_max;
    bool voids; /* after attempts_max failures the operation is logged as having no effect, a void; false: the
                   lane stalls until somebody decides */
} pawl_projector;

/* All of them, in the order in which they run; return false to stop. */
typedef bool (*pawl_projector_visit)(void *arg, const pawl_projector *projector);
PAWL_API int pawl_projectors_read(pawl_engine *engine, pawl_projector_visit visit, void *arg,
                                  pawl_error *error);

/* The same as JSON, as `pawl project list --json` prints it: a line for each. */
PAWL_API int pawl_projectors_list(pawl_engine *engine, pawl_text *ret_text, pawl_error *error);

typedef enum pawl_lane_state {
    PAWL_LANE_RECOVERING = 1,
    PAWL_LANE_RUNNING = 2,
    PAWL_LANE_REFUSED = 3, /* its tables and logs contradict each other; error says how */
    PAWL_LANE_CLOSED = 4,  /* nobody works on it: this engine only reads */
} pawl_lane_state;

/* A generation of a lane in a partition. */
typedef struct pawl_lane_status {
    const char *lane;
    uint16_t id;
    uint32_t generation;
    bool serving;  /* reads come from it */
    bool building; /* it will replace the one that serves */
    uint16_t partition;
    pawl_lane_state state;
    bool paused;
    uint64_t end;        /* the PLog's last offset */
    uint64_t offset;     /* all operations of events up to here are applied */
    uint64_t operations; /* the last one applied */
    uint64_t repeated;   /* runs repeated because rows that they had read changed; since opening */
    uint64_t
        run_ahead; /* so many operations behind the last one in order are given out now, at most: docs/LEASES.md */
    uint64_t
        held; /* operations that are not given out, because an earlier one is likely to change what they read */
    const char *error; /* if it is refused */

    /* Add up those of all partitions with pawl_lease_figures_add. Alerts are judged for a generation of a lane,
     * over all its partitions together, by pawl_options.thresholds. Each alert is in the leases of one partition,
     * the one that contributes most to it: so it is there once, not once for each partition. If all actions of a
     * projector are by key, the lane runs it itself, without a lease: such operations count as committed, but not
     * in the figures of the last minute. */
    pawl_lease_figures leases;
} pawl_lane_status;

/* All of them, or of one lane (NULL: all); return false to stop. PAWL_ENOTFOUND: no such lane. */
typedef bool (*pawl_lane_visit)(void *arg, const pawl_lane_status *status);
PAWL_API int pawl_lanes_read(pawl_engine *engine, const char *lane, pawl_lane_visit visit, void *arg,
                             pawl_error *error);

/* As JSON, of all lanes or of one. lanes_list: a line for each generation, as `pawl project status --json` prints it.
 * lane_stats_list: figures of its leases in each partition, then their sum with alerts, as `pawl lease stats --json`
 * prints it. */
PAWL_API int pawl_lanes_list(pawl_engine *engine, const char *lane, pawl_text *ret_text, pawl_error *error);
PAWL_API int pawl_lane_stats_list(pawl_engine *engine, const char *lane, pawl_text *ret_text,
                                  pawl_error *error);

/* The operations of a generation of a lane (0: the newest) in a partition, from a number on, at most limit.
 * from 0: only those under way. from 1 or more: those from this number on, with the last 1,000 that this process
 * has committed. Of these the event is not remembered (it is 0); the operation log has it. PAWL_ENOTFOUND: that generation is not open. */
typedef bool (*pawl_lease_visit)(void *arg, const pawl_lease *lease, uint64_t event, const char *projector);
PAWL_API int pawl_lane_leases(pawl_engine *engine, uint16_t partition, const char *lane, uint32_t generation,
                              uint64_t from, size_t limit, pawl_lease_visit visit, void *arg,
                              pawl_error *error);

/* Which leases to list. */
typedef struct pawl_lease_query {
    const char *lane; /* NULL: of all lanes */
    bool one_partition;
    uint16_t partition;
    uint64_t
        from; /* 0: those under way, and then the last ones that are committed. Otherwise: from this number on,
                      in each partition */
    size_t limit;
} pawl_lease_query;

/* As JSON lines, as `pawl lease list --json` prints them, of every generation. PAWL_ENOTFOUND: the lane, or the
 * partition. */
PAWL_API int pawl_lane_leases_list(pawl_engine *engine, const pawl_lease_query *query, pawl_text *ret_text,
                                   pawl_error *error);

/* Convert an instant, past or future, to the wall clock as it is set now; 0 for 0. Only for people to read:
 * nothing is ordered by it, and if the wall clock is set, past instants are shown with other times. */
PAWL_API pawl_wall pawl_engine_wall(pawl_engine *engine, pawl_instant instant);

/* For an operator: take a lease back; run a stalled operation again; decide that an operation is void. They do
 * not wait for its turn; if an external worker has the lease, they wait until the lease is gone from the disk, so that
 * it does not come back with a restart. PAWL_ENOTFOUND: no operation with this number is under way. generation 0: the one that has it under
 * way; PAWL_EINVAL: both generations of a lane that is rebuilt have this number under way: name one, because it
 * may be of another event in each. */
PAWL_API int pawl_lane_reclaim(pawl_engine *engine, uint16_t partition, const char *lane, uint32_t generation,
                               uint64_t number, pawl_error *error);
PAWL_API int pawl_lane_retry(pawl_engine *engine, uint16_t partition, const char *lane, uint32_t generation,
                             uint64_t number, pawl_error *error);
PAWL_API int pawl_lane_void(pawl_engine *engine, uint16_t partition, const char *lane, uint32_t generation,
                            uint64_t number, const char *words, pawl_error *error);

/* Pause and resume a lane, in all partitions; it stays so when the directory is opened again. */
PAWL_API int pawl_lane_pause(pawl_engine *engine, const char *lane, bool paused, pawl_error *error);

/* Build a lane's tables again, in a new generation. Meanwhile the old one serves reads. When the new one has
 * caught up, it replaces the old one in one step. Returns when building has begun. PAWL_EBUSY: the lane is
 * being rebuilt already. */
PAWL_API int pawl_lane_rebuild(pawl_engine *engine, const char *lane, pawl_error *error);

/* Wait until every lane (or this one) has applied all events that were in the log before this call, also those
 * that the partition has not applied yet, and no generation is being built. PAWL_EBUSY: a lane is stalled,
 * paused or waits for outside workers, and no other goes on; error says which. PAWL_ETIMEOUT. */
PAWL_API int pawl_lanes_wait(pawl_engine *engine, const char *lane, pawl_duration timeout, pawl_error *error);

/* --- operations, worked out again --- */

#define PAWL_UNCHECKED_MAX 16

/* A projector whose handler is not registered here, and how many of its operations could not be run again. */
typedef struct pawl_unchecked {
    char projector[136];
    uint64_t operations;
} pawl_unchecked;

typedef struct pawl_lane_verdict {
    uint64_t operations;
    uint64_t compared;  /* run again: not those of handlers that are not here, and not voids */
    uint64_t unchecked; /* those of handlers that are not here */
    size_t unchecked_count;
    pawl_unchecked unchecked_by[PAWL_UNCHECKED_MAX]; /* whose they are; further projectors are not named */
    uint64_t differences;
    pawl_error first;
} pawl_lane_verdict;

/* Work the operations of a lane (NULL: of all) out again, one after the other, by the schema and by the handlers
 * that are registered here, and compare them with those that were logged. This finds a handler whose result
 * depends on anything but its event and what it reads through its ctx: first names the first operation that
 * differs, and the row by its key as JSON. Handlers are called on this thread. PAWL_OK even with differences. */
PAWL_API int pawl_lane_verify(pawl_engine *engine, const char *lane, pawl_lane_verdict *ret_verdict,
                              pawl_error *error);

/* --- operations --- */

/* What one run of one projector wrote for one event, as the log of its lane has it; or that the event has no
 * effect, and why. All of it is borrowed until the function returns that was called with it; texts do not end
 * in a 0. */
struct pawl_operation_source;
typedef struct pawl_operation {
    uint16_t partition;
    uint64_t number;      /* in the log of the lane, in the partition */
    pawl_operation_id id; /* of the attempt that made it */
    uint64_t event;       /* the offset of its event in the partition */
    uint64_t wsid;
    pawl_bytes projector; /* its qualified name */
    uint64_t schema;      /* the position of the schema that it was made under */
    uint32_t attempt;
    pawl_wall time; /* when it was committed */
    bool is_void;
    pawl_bytes reason;                          /* of a void */
    const struct pawl_operation_source *source; /* Pawl's own */
} pawl_operation;

typedef enum pawl_write_kind {
    PAWL_WRITE_UPSERT = 1, /* the row was made if it was not there */
    PAWL_WRITE_UPDATE = 2,
    PAWL_WRITE_DELETE = 3,
} pawl_write_kind;

/* One row that an operation wrote. pawl_row_type names its entity. The row has the fields of its key and those
 * that were set (pawl_row_has); a field that became null is there, too. Of a delete it has the key alone. What
 * the row was before is not in the log. Return false to stop. */
typedef bool (*pawl_write_visit)(void *arg, pawl_write_kind kind, const pawl_row *row);

/* The rows that it wrote, in their order; or only those of an entity (NULL: of all). A void has none. Errors:
 * PAWL_ENOTFOUND (no such entity), PAWL_ECORRUPT, PAWL_EVERSION, PAWL_ENOMEM. */
PAWL_API int pawl_operation_writes(const pawl_operation *operation, const char *entity, pawl_write_visit visit,
                                   void *arg, pawl_error *error);

/* All of it, as one JSON line (docs/API.md), which a 0 follows. It is made when it is first asked for. Errors:
 * PAWL_ENOMEM, PAWL_ECORRUPT, PAWL_EVERSION. */
PAWL_API int pawl_operation_json(const pawl_operation *operation, pawl_bytes *ret_json, pawl_error *error);

/* Operations of a lane in a partition, from a number on, at most limit; return false to stop. generation 0: the
 * one that serves. ret_next, which may be NULL, gets the number to go on from. PAWL_ENOTFOUND: there is no such
 * lane, or it has never had this generation. */
typedef bool (*pawl_operation_visit)(void *arg, const pawl_operation *operation);
PAWL_API int pawl_operations_read(pawl_engine *engine, uint16_t partition, const char *lane,
                                  uint32_t generation, uint64_t from, size_t limit, pawl_operation_visit visit,
                                  void *arg, uint64_t *ret_next, pawl_error *error);

/* The first operation that is of this event of the partition, or of a later one. If there is none, the number
 * after the last operation. Reads few operations, however many there are. Errors: as pawl_operations_read. */
PAWL_API int pawl_operations_find(pawl_engine *engine, uint16_t partition, const char *lane,
                                  uint32_t generation, uint64_t event, uint64_t *ret_number, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif

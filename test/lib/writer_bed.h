/* test/lib/writer_bed.h: a writer of a stream, by itself, over a log, a store and threads in memory.
 *
 * Its user here stages entries "entry 1", "entry 2", ...: each body is there once, so that the log tells what
 * became of it. The store gets a row for each entry, by its offset, and a row that says how far it has come. */
#ifndef TEST_LIB_WRITER_BED_H
#define TEST_LIB_WRITER_BED_H

#include "adapter/mem/env.h"
#include "adapter/mem/log.h"
#include "adapter/mem/store.h"
#include "core/stream/writer.h"
#include "test/lib/mortal.h"
#include "test/lib/test.h"

enum { IDS_MAX = 256, STEPS_MAX = 1000000, SPACE = 0, BATCHES = 3, PER_BATCH = 2 };

/* What became of an entry that was staged. */
enum end { NOT_STAGED, STAGED, APPLIED, NEVER_SENT, GIVEN_UP, LOST, WRITTEN, NOT_WRITTEN, UNKNOWN };

/* The callbacks, for whoever closes from inside one. */
enum call {
    ON_DURABLE,
    ON_LATE,
    ON_APPLIED,
    ON_UNDO,
    ON_FATE,
    ON_MOVED,
    ON_WILL_RETRY,
    ON_DRAINED,
    ON_PREPARE,
    ON_RUN,
    ON_REPLAY,
    CALLS
};

struct staged {
    uint64_t id;
    char body[24];
};

/* A log in front of the log: it says something else to the next append than the log would. */
struct front {
    pawl_log log;
    pawl_log *behind;
    pawl_env *env;
    int says;    /* PAWL_OK: what the log says */
    bool unsure; /* the next one is written, and its outcome is said to be unknown */
    void (*done)(pawl_append *append);
    uint32_t
        drops; /* the append with this number from now on is taken, and ends at once, not written; 0: none */
    pawl_append *dropped;
    pawl_task drop;
};

struct bed {
    struct mem_world *world;
    struct mem_log_disk *log_disk;
    mem_store_disk *store_disk;
    struct mem_env *rival_env;
    pawl_log *rival;
    uint64_t assignment, rival_assignment; /* that their claims rest on; 0: none */
    uint64_t ids;                          /* staged so far, and what became of each */
    enum end ends[IDS_MAX + 1];

    /* of a life */
    struct mem_env *env;
    pawl_log *log;
    struct front front;
    pawl_store *store;
    struct applier applier;
    struct writer writer;
    struct mortal memory;
    struct writer_position position;
    struct writer_position committed;
    uint64_t wanted;                          /* entries to stage */
    uint64_t next;                            /* the next one's offset */
    bool not_full;                            /* leave a batch of one entry unsent */
    uint64_t sent_to, durable_to, applied_to; /* offsets: W4 */
    bool works_ahead;                         /* rows are put while the log syncs */
    size_t replays, rereads, retries, prepares;
    unsigned seen; /* states */
    bool prepare_later;
    enum call close_in; /* close from inside this; CALLS: do not */
    bool closed;
    size_t closings;
    char trace[256];
};

extern const struct writer_ops bed_ops;

/* A world with the disks of a log and a store, and the log of a rival; the writer is not there yet. */
void bed_open(struct bed *bed, uint64_t seed);
void bed_close(struct bed *bed);

/* Start the writer; close it, and wait until it says so. */
void bed_boot(struct bed *bed);
void bed_halt(struct bed *bed);
bool bed_is_closed(void *arg);

/* Run the world until the writer is RUNNING without a batch, or REFUSED. Returns its state. */
enum writer_state bed_settle(struct bed *bed);

/* Have so many more entries staged and sent; drain, on the shard. */
void bed_want(struct bed *bed, uint64_t entries);
void bed_drain_now(void *arg);

/* Order a fault of the log; have another owner claim the stream and write. */
void bed_order(struct bed *bed, enum mem_log_fault_kind kind, uint64_t nth, uint32_t n);
void bed_rival_writes(struct bed *bed, uint64_t entries);

/* Put the position that the bed has into the transaction, unless status says that it failed. */
void bed_position_put(const struct bed *bed, pawl_store *store, int *status);

/* What the bed was told of each entry is what the log has. whole: the store has all of the log, too. */
void bed_check_truth(struct bed *bed, bool whole);

#endif

/* test/lib/partition.h: a command processor under virtual time, on a log and a store in memory.
 *
 *     open ── boot ── submit, run ... ──┬── halt ──┬── boot ... ── close
 *                                       └── crash ─┘
 *
 * What lies on the disks, and the schemas, outlive a life; what the processor allocated does not: a halt fails
 * the test if something of it is left, a crash drops it. The observer is a second log on the same disk, which
 * never claims and whose reads disturb nothing: what it sees is durable. */
#ifndef TEST_LIB_PARTITION_H
#define TEST_LIB_PARTITION_H

#include "adapter/mem/env.h"
#include "adapter/mem/log.h"
#include "adapter/mem/store.h"
#include "core/command/processor.h"
#include "core/command/request.h"
#include "core/group0/group0.h"
#include "core/view/slice.h"
#include "engine/shard/sequences.h"
#include "test/lib/mortal.h"

enum { PARTITION_NUMBER = 3, PARTITION_STEPS_MAX = 20000000 };
enum { PARTITION_OF = 4 }; /* so many partitions there are for views: use workspaces by partition_workspace */

struct partition {
    struct mem_world *world;
    struct mem_log_disk *log_disk;
    mem_store_disk *store_disk;
    struct group0 *group0;
    struct mem_env *observer_env;
    pawl_log *observer;
    struct processor_options options; /* limits: to be set before boot */
    struct mem_log_options log_options;
    pawl_log *front;  /* what the processor takes for its log; NULL: the log itself */
    bool waits;       /* rows are not put while the log syncs; to be set before boot */
    bool with_views;  /* the store keeps the views of group0; to be set before boot */
    bool untold;      /* the processor is not told that a slice was built */
    bool no_schemas;  /* what an event names is not found any more */
    bool no_flushes;  /* the sequence storage cannot be written */
    uint64_t answers; /* counted by test/lib/ask.h */

    /* of a life */
    struct mem_env *env;
    pawl_log *log;
    pawl_store *store;
    struct applier applier;
    struct sequences sequences;
    struct view_tables views;
    struct processor *processor;
    struct mortal memory;
    bool closed;
    pawl_error error;
};

/* schemas: JSON, one package each or one package's versions; applied in order. */
void partition_open(struct partition *p, uint64_t seed);
void partition_close(struct partition *p);
const struct schema *partition_apply(struct partition *p, const char *schema);

/* Begin a life; it recovers as the world runs. wait: until it runs, or is refused; then the state. */
void partition_boot(struct partition *p);
enum writer_state partition_wait(struct partition *p);

/* Close it in whatever state it is; and the same in two steps. */
void partition_halt(struct partition *p);
void partition_begin_halt(struct partition *p);
void partition_end_halt(struct partition *p);
void partition_close_inside(struct partition *p); /* the same as begin_halt, from inside a done; once */

/* The process dies, and with it the machine, or not. Calls that were outstanding are forgotten. */
void partition_crash(struct partition *p, bool power);

/* The state is thrown away, between two lives. */
void partition_forget_state(struct partition *p);

/* On the shard. */
void partition_call(struct partition *p, void (*fn)(void *arg), void *arg);
int partition_submit(struct partition *p, struct call *call);
void partition_run(struct partition *p);
void partition_schema(struct partition *p, const struct schema *schema);

/* --- views --- */

/* The first workspace above this one that is the partition's. */
uint64_t partition_workspace(uint64_t after);

/* The store takes over the views, and the schema, that group0 has now; or cannot. */
int partition_refresh(struct partition *p);

/* A slice of a view: so many rows. covered: nothing is left. */
int partition_slice(struct partition *p, uint32_t view, uint32_t rows_max, bool *ret_covered);

/* The table of a view; 0: it is not there. */
uint32_t partition_view(struct partition *p, const char *name);

/* unique_verdict and processor_settled, on the shard. */
int partition_verdict(struct partition *p, uint32_t view, pawl_error *error);
bool partition_settled(struct partition *p);

/* Visit the log's durable entries from an offset on; returns the offset after the last. */
uint64_t partition_read_log(struct partition *p, uint64_t from,
                            bool (*visit)(void *arg, const pawl_entry *entry), void *arg);

/* Every row of the state, as bytes, one after the other: to be freed with free. */
pawl_bytes partition_dump(struct partition *p);

/* The position's digests are those of the tables. */
void partition_check_digests(struct partition *p);

#endif

/* test/lib/sequence.h: a sequencer under virtual time, over a log and a storage in memory that fail on order.
 *
 * Every call is made on the shard, as a task. What the storage holds outlives a crash of the sequencer; what
 * the sequencer holds does not. */
#ifndef TEST_LIB_SEQUENCE_H
#define TEST_LIB_SEQUENCE_H

#include <pawl/sequencer.h>

#include "adapter/mem/env.h"
#include "base/map.h"
#include "core/sequence/sequencer.h"

enum { SEQ_WLOG = 10, SEQ_REC = 11, SEQ_CREC = 12, SEQ_INVOICE = 500, KIND_SHOP = 3, KIND_BANK = 7 };

/* SHOP: WLOG from 1, REC and CREC from 200001, the latter up to 200020. BANK: WLOG from 1 and INVOICE from
 * 1000.
 */
extern const pawl_workspace_kind test_kinds[2];

enum mock_call { MOCK_READ, MOCK_LAST, MOCK_WRITE, MOCK_SCAN, MOCK_CALLS };
enum mock_tear { MOCK_WHOLE, MOCK_NO_OFFSET, MOCK_HALF }; /* what a write that fails has done all the same */

#define MOCK_FOR_EVER       UINT32_MAX
#define MOCK_EVENT_NUMBERS  8
#define MOCK_NOTHING_BROKEN 0

/* An event of the log: of each sequence the first and the last number that it took. */
struct mock_event {
    uint64_t offset;
    uint64_t wsid;
    uint16_t kind;
    uint16_t count;
    pawl_sequence_number numbers[MOCK_EVENT_NUMBERS];
    uint64_t first[MOCK_EVENT_NUMBERS];
};

struct mock {
    struct mock_event *log;
    size_t log_count;
    size_t log_room;
    uint64_t log_last; /* where the log ends, if beyond its last event */
    struct map stored;
    uint64_t stored_last;
    uint32_t fail[MOCK_CALLS]; /* so many calls from now on fail */
    int fail_with;             /* 0: PAWL_EIO */
    enum mock_tear tear;
    uint32_t scan_fails_after; /* events; 0: at the beginning */
    bool scan_is_deaf;         /* it goes on when take fails, and says that all is well */
    uint64_t calls[MOCK_CALLS];
    size_t batch; /* events that scan_log gives at once; 0: 7 */
    size_t rows_last;
    void (*during)(void *arg, enum mock_call call); /* may be NULL */
    void *during_arg;
};

void mock_init(struct mock *mock);
void mock_release(struct mock *mock);
pawl_sequence_storage mock_storage(struct mock *mock);
void mock_append(struct mock *mock, const struct mock_event *event);

/* An event with one number. */
void mock_append_one(struct mock *mock, uint64_t offset, uint16_t kind, uint64_t wsid, uint16_t seq,
                     uint64_t number);
uint64_t mock_stored(const struct mock *mock, uint64_t wsid, uint16_t seq);
void mock_put(struct mock *mock, uint64_t wsid, uint16_t seq, uint64_t number);

/* The greatest number of the log; 0: none. */
uint64_t mock_replay(const struct mock *mock, uint64_t wsid, uint16_t seq);

struct bed {
    struct mem_world *world;
    struct mem_env *env;
    struct mock mock;
    pawl_sequencer_options options; /* env and storage are filled in by bed_new */
    pawl_sequencer *s;
    int close_status;
    bool closed;
};

void bed_open(struct bed *bed, uint64_t seed);
void bed_release(struct bed *bed); /* of what is left: closes the sequencer too */

int bed_new(struct bed *bed); /* status of pawl_sequencer_new */
void bed_ready(struct bed *bed);
void bed_new_ready(struct bed *bed);
void bed_close_begin(struct bed *bed);
int bed_close(struct bed *bed);
void bed_crash(struct bed *bed); /* and a new node */

/* Anything else on the shard. */
int bed_call(struct bed *bed, int (*fn)(struct bed *bed, void *arg), void *arg);

int bed_start(struct bed *bed, uint16_t kind, uint64_t wsid, uint64_t *ret_offset);
int bed_next(struct bed *bed, uint16_t seq, uint64_t *ret_number);
int bed_stage(struct bed *bed);
int bed_flush(struct bed *bed, uint64_t upto);
int bed_cancel(struct bed *bed);
int bed_actualize(struct bed *bed);
pawl_sequencer_figures bed_figures(struct bed *bed);

/* Must succeed and give these. */
void bed_expect_start(struct bed *bed, uint16_t kind, uint64_t wsid, uint64_t offset);
void bed_expect_next(struct bed *bed, uint16_t seq, uint64_t number);

/* start, one number, into the log, flush. */
void bed_cycle(struct bed *bed, uint16_t kind, uint64_t wsid, uint16_t seq);

/* Run until the storage has this offset. */
void bed_stored(struct bed *bed, uint64_t offset);

#endif

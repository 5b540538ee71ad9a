/* core/state/checkpoint.h: the state, derived a second time, in large transactions.
 *
 *     event, event, ... ──► derive ──► its partition's set: the newest value of each row ── one is full, or old
 *                            ▲  │                       │                                        │
 *                            └──┴──────── reads ────────┴── and the store below it               ▼
 *                                                                                   partition by partition,
 *                                                                                   sorted: some commits
 *
 * The checkpoint of a shard follows the logs of its partitions, behind the live store and apart from it: it
 * derives every event again, through its own rows. What many events write to one row is put once, and rows are
 * put in the order of their keys, so that a commit copies each page once. With the rows go the sequences' last
 * numbers and each partition's position.
 *
 * After any failure the sets are useless: forget them, and go on with the events behind the positions.
 *
 * Memory. All sets together hold at most bytes_max. A store may keep a copy of every page that a transaction
 * changes, and a row of a large table has a page of its own: so a transaction has at most rows_max rows, and a
 * shard's partitions, which share no row, are committed one after the other where one transaction would have
 * more. A transaction then copies at most so many leaves, as many again if each of them is split,
 * and the branches above. One event may exceed both bounds by what it adds.
 *
 * Invariants
 *   C1  After each commit the store has, for each partition, exactly what the events up to its position write;
 *       and the sequence storage is complete up to an offset of its own, which is the position's unless the
 *       store was copied from a live one, whose storage has an offset of its own. Then the two offsets
 *       become equal as events are taken.
 *   C2  A partition's events are taken in order, without a gap.
 *   C3  A set has at most one change of a key. A projector that scans has its partition's set put into the
 *       transaction first, because a scan looks at all of it.
 *   C4  Partitions that have rows in the open transaction are committed together, and before all others. Any
 *       partition may become one of them, so once there is one, the rows of all partitions count as rows of
 *       one transaction.
 *   C5  Rows of views are made when rows are put. So at an offset that is audited a partition's set is put
 *       first, if there are views; and states of views go with every commit. */
#ifndef CORE_STATE_CHECKPOINT_H
#define CORE_STATE_CHECKPOINT_H

#include "base/partition_set.h"
#include "core/state/derive.h"
#include "core/state/gathered.h"
#include "core/state/position.h"

struct checkpoint_options {
    pawl_store *store; /* whose writer this thread is */
    struct partition_set partitions;
    uint64_t events_max; /* when it is full */
    size_t bytes_max;    /* the same, by the memory that the sets have */
    uint64_t rows_max;   /* the same, by the rows that must go into one transaction */
    const struct schema *(*schema_at)(void *ctx, uint64_t position);

    /* A partition's tables have come to an offset that is a multiple of audit_every. May be NULL. */
    void (*audit)(void *ctx, const struct position *position, uint64_t offset);
    uint64_t audit_every;

    struct view_tables *views; /* of the store; NULL: there are none */

    /* Put what the caller keeps beside a partition's events into the transaction. May be NULL. */
    int (*commit)(void *ctx, uint16_t partition);
    void *ctx;
    const pawl_allocator *alloc;
};

struct checkpoint;

/* Reads the positions. PAWL_ENOMEM; PAWL_ECORRUPT, PAWL_EVERSION: a position. */
int checkpoint_new(const struct checkpoint_options *options, struct checkpoint **ret_checkpoint,
                   pawl_error *error);
void checkpoint_free(struct checkpoint *checkpoint);

/* The position of the index-th partition of the shard; ahead of the store by the events that are not
 * committed. */
const struct position *checkpoint_position(const struct checkpoint *checkpoint, size_t index);

/* The next event that it wants of a partition: the first that its state or its sequence storage lacks. */
uint64_t checkpoint_next(const struct checkpoint *checkpoint, size_t index);

/* That event. Errors: as replay_event; error says what, not where. */
int checkpoint_take(struct checkpoint *checkpoint, size_t index, uint64_t offset, pawl_place place,
                    pawl_bytes body, pawl_error *error);

/* What else is derived into a partition's set, between events; each counts as one. */
struct gathered *checkpoint_gathered(struct checkpoint *checkpoint, size_t index);
void checkpoint_count(struct checkpoint *checkpoint, size_t index);

uint64_t checkpoint_events(const struct checkpoint *checkpoint); /* taken since the last commit */
bool checkpoint_is_full(const struct checkpoint *checkpoint);

/* All since the last commit, in as many transactions as it takes. ret_rows: how many were put. After an error
 * some partitions may be committed, and others not. */
int checkpoint_commit(struct checkpoint *checkpoint, uint64_t *ret_rows, pawl_error *error);

/* Forget all since the last commit. If this fails, the positions are not known: do it again. */
int checkpoint_forget(struct checkpoint *checkpoint, pawl_error *error);

#endif

/* adapter/journal/impl.h: the journal's own struct, for the files that share it.
 *
 * Who touches what. At any time at most one thread has the *writer's role* (busy is set): the writer thread, or
 * a caller that found the journal idle. Only that thread touches a field with the comment (role); it needs no
 * lock. Any thread may touch a field with the comment (lock) while it holds the lock. The role has a stream's
 * epoch, next and claimed; the lock guards the table of streams, and the list of followers that wait on a
 * stream. The role changes the segment list under the lock, so it may read the list without.
 *
 * Invariants
 *   J1  A file has a segment's name only after its header was synced, and after every record of earlier
 *       segments was synced.
 *   J2  A record is acknowledged only after a sync of its segment that began when its write had returned, and
 *       after the directory was synced since its segment got its name.
 *   J3  durable_lsn never names a record that J2 would not let be acknowledged.
 *   J4  The bytes from active.at to active.size are zero, and have their blocks: since the segment was made, or
 *       since it was extended. Only a segment that was closed cleanly is extended. Any other that is found at
 *       opening is never written again.
 *   J5  There is always room for a watermark in the active segment, unless it is sealed still.
 *   J6  After a failed write or sync nothing is written before everything was read from the disk again
 *       (recover).
 *   J7  No epoch is given twice while the journal is open, and an entry stands behind the claim record of its
 *       epoch. */
#ifndef JOURNAL_IMPL_H
#define JOURNAL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "adapter/journal/home.h"
#include "adapter/journal/index.h"
#include "adapter/journal/journal.h"
#include "adapter/journal/tail.h"
#include "base/histogram.h"

#define WATERMARK_BYTES  RECORD_HEADER
#define QUEUE_COUNT_MAX  ((size_t)65536)
#define QUEUE_BYTES_MAX  ((size_t)64 << 20)
#define APPEND_BYTES_MAX ((size_t)1 << 30)
#define OP_TOO_BIG       SIZE_MAX
#define BUFFER_BYTES     ((size_t)64 << 10)
#define BUFFER_KEEP      ((size_t)1 << 20) /* a buffer that has grown beyond this shrinks again */

/* A request, as it waits in a queue: lives in the request's impl. */
enum op_kind { OP_APPEND, OP_CLAIM, OP_READ, OP_FOLLOW, OP_TAIL };

struct op {
    struct op *next;
    struct journal *journal;
    void (*run)(struct op *op); /* on the shard that asked, or on a thread of ours if none did */
    void *request;
    enum op_kind kind;
    uint32_t shard; /* or PAWL_NO_SHARD */
    size_t bytes;   /* of an append: what its records take, or OP_TOO_BIG */
};
_Static_assert(sizeof(struct op) <= sizeof(((pawl_append *)0)->impl), "an op lives in its request");

struct op_list {
    struct op *first;
    struct op **last;
};

struct queue {
    struct op_list ops;
    size_t count;
    size_t bytes;
};

/* Callers that wait for a group sleep here. */
struct group_wait {
    _Atomic uint32_t group; /* the last group whose callers were woken */
    _Atomic uint32_t waiters;
};

/* Requests whose done is to be called on one shard. */
struct outbox {
    pawl_task task;
    struct journal *journal;
    struct op_list ops; /* (lock) */
    bool holding;       /* (lock) the shard runs dones: the appends that they make wait in held */
    struct queue held;  /* (lock) */
};

/* A file of zeros that will be the next segment. */
struct draft {
    int file;
    uint64_t size;
    char name[SEGMENT_NAME_MAX];
};

struct maker {
    pthread_t thread;
    pthread_cond_t wake;
    pthread_cond_t made;
    uint64_t wanted; /* (lock) size of the draft to make; 0: none */
    uint64_t due;    /* (lock) how far it should be by now */
    bool urgent;     /* (lock) somebody waits for it */
    bool ready;      /* (lock) */
    struct draft draft;
    uint32_t drafts; /* how many were made, for their names */
};

struct active {
    struct segment_ref ref;
    int file;
    uint64_t at;
    uint64_t size;   /* it may be written up to here: .at, as long as it is sealed */
    uint64_t filled; /* up to here zeros were written; behind it the blocks are only reserved */
    uint64_t step;   /* so many zeros were written last; 0: none */
    uint64_t full;   /* the size that it has when it is extended; 0: it cannot be */
    bool sealed;     /* found closed cleanly, and nothing was written since */
};

struct journal {
    pawl_log log;
    const struct disk *disk;
    const pawl_allocator *alloc;
    pawl_env *env;
    char *path;
    size_t path_size;
    struct home home;
    uint64_t seed;
    uint64_t segment_bytes;
    bool read_only;
    bool threads;

    struct active active;   /* (role) */
    uint64_t next_lsn;      /* (role) */
    uint64_t chain;         /* (role) */
    uint8_t *buffer;        /* (role) records encoded and not yet written */
    size_t buffer_room;     /* (role) */
    size_t buffer_size;     /* (role) */
    uint64_t next_size;     /* (role) of the next segment */
    uint64_t appends;       /* (role) how many were taken */
    struct stream *touched; /* (role) streams with entries in the present group */
    size_t unwritten;       /* (role) streams that are claimed, and whose claim has no record yet */

    pthread_mutex_t lock;
    pthread_t writer;
    _Atomic uint32_t asleep;          /* (lock) 1: the writer is, or is about to */
    struct queue queue;               /* (lock) */
    uint32_t groups;                  /* (lock) taken from the queue so far */
    struct group_wait group_waits[2]; /* of even and of odd groups */
    bool busy;                        /* (lock) somebody has the writer's role */
    bool stopping;                    /* (lock) */
    bool failed;                      /* (lock) set by the role */
    pawl_error failure;               /* (lock) why */
    uint64_t durable_lsn;             /* (lock) set by the role */
    uint64_t durable_at;              /* (lock) set by the role: the byte behind it, in the last segment */
    struct streams streams;           /* (lock), but see above */
    struct segment_list segments;     /* (lock), but see above */
    struct index index;               /* (lock) of the active segment */
    struct journal_report report;
    struct journal_stats stats; /* (lock) */
    struct histogram syncs;     /* for any thread */
    struct histogram batches;
    _Atomic size_t outstanding; /* requests whose done has not been called */

    struct maker maker;
    struct outbox *outboxes;
    uint32_t shards;

    pthread_mutex_t refresh; /* read-only: one looks at the end of the files at a time */
    struct tail tail;        /* read-only (refresh) */
    uint64_t witness;        /* read-only (refresh): an LSN known durable from elsewhere */
};

static inline void op_list_init(struct op_list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

static inline void op_list_push(struct op_list *list, struct op *op)
{
    op->next = NULL;
    *list->last = op;
    list->last = &op->next;
}

static inline struct op *op_list_take(struct op_list *list)
{
    struct op *first = list->first;
    op_list_init(list);
    return first;
}

static inline void queue_init(struct queue *queue)
{
    *queue = (struct queue){0};
    op_list_init(&queue->ops);
}

/* recover.c: read the end of the journal from the disk, settle what it holds, and go on: in the newest segment
 * if it was closed cleanly, else in a new one. Called with the role, at opening and after a failure. witness:
 * the highest LSN known durable. */
int journal_recover(struct journal *j, uint64_t witness, pawl_error *error);

/* roll.c: drafts, and the step from one segment to the next. */
int maker_start(struct journal *j);
void maker_order(struct journal *j); /* have one made while the present segment fills */
void maker_pace(struct journal *j);  /* the active segment has grown; with the lock */
void maker_stop(struct journal *j);
int journal_publish(struct journal *j, struct draft *draft, struct segment_header *header,
                    const struct streams *streams, pawl_bytes records, pawl_error *error);
size_t journal_header_size(struct journal *j, const struct streams *streams);
int journal_take_draft(struct journal *j, uint64_t size, struct draft *ret_draft, pawl_error *error);
void journal_discard_draft(struct journal *j, struct draft *draft);
/* PAWL_EFULL: no room for it, and nothing changed. PAWL_EUNKNOWN: the journal has failed. */
int journal_roll(struct journal *j, uint64_t need, pawl_error *error);

/* extend.c, with the role.
 * extend: make room for so many bytes more in the sealed segment. False: it cannot; it stays sealed, and the
 * caller rolls to a new one. fill: the active segment is about to be written up to that byte. Returns a
 * negative errno. */
bool journal_extend(struct journal *j, uint64_t need);
int journal_fill(struct journal *j, uint64_t end);

/* claims.c, with the role: what becomes of a claim before anything is written under it. */
size_t claims_room(const struct journal *j, size_t entries);
int claims_take(struct journal *j, pawl_claim *claim, pawl_error *error);
void claims_write(struct journal *j, struct stream *s);

/* group.c, with the role.
 * make_room: for that many bytes of records, in the buffer and in a segment, before the first of them is
 * encoded. encode: one record, behind what is there.
 * run: afterwards every op of the list has its outcome; followers that can go on have joined wake.
 * rest: nothing waits; let the file itself say that what it holds is durable.
 * seal: the last watermark of a clean close, synced. */
int group_make_room(struct journal *j, size_t bytes, pawl_error *error);
pawl_place group_encode(struct journal *j, struct record *r);
void group_run(struct journal *j, struct op *ops, struct op_list *wake);
void group_rest(struct journal *j);
int group_seal(struct journal *j, pawl_error *error);

/* writer.c */
int writer_start(struct journal *j);
void writer_release(struct journal *j, struct outbox *box); /* queue what it held, and hold no more */
void writer_stop(struct journal *j);
int journal_append(pawl_log *log, pawl_append *append);
int journal_claim(pawl_log *log, pawl_claim *claim);

/* refresh.c, read-only journals: see what the writer, another process, has made durable by now. */
int journal_refresh(struct journal *j, pawl_error *error);

/* reader.c */
int journal_read(pawl_log *log, pawl_read *read);
int journal_follow(pawl_log *log, pawl_follow *follow);
int journal_unfollow(pawl_log *log, pawl_follow *follow);
int journal_tail(pawl_log *log, pawl_tail *tail);
int journal_left_out(pawl_log *log, pawl_unwitnessed_visit visit, void *arg, pawl_error *error);
/* The stream's visible offset has grown: its waiting followers join the ops to be delivered. With the lock. */
void followers_wake(struct stream *stream, struct op_list *ops);

/* sweep.c */
int journal_sweep(pawl_log *log, pawl_sweep *sweep);

/* deliver.c: run each op of the list where it belongs. Without the lock. */
void journal_deliver(struct journal *j, struct op *ops);
void op_init(struct journal *j, struct op *op, enum op_kind kind, void *request, void (*run)(struct op *op));
void outbox_run(pawl_task *task);

#endif

/* adapter/mem/log_stream.h: one stream as one log knows it.
 *
 * Two machines look at it. The owner (port/claim_owner.h) decides about what this log writes; reports move it
 * on, and it reads only where it must. The reader is a judge of its own that reads everything, and keeps an
 * index of the entries that counted, for read, follow and tail.
 *
 * The stream's pump does what takes time. It is a work of the env that does one round as long as there is
 * something to do: read what the owner asked for in the round before, report the records that landed then, move
 * the claim on, land the records that are on the wire. Between any two rounds other logs may do theirs. */
#ifndef ADAPTER_MEM_LOG_STREAM_H
#define ADAPTER_MEM_LOG_STREAM_H

#include "adapter/mem/log_disk.h"

enum { LOG_ORDERS_MAX = 16 };

/* A request under way. Taken from a pool that is made at open. */
struct op {
    struct mem_log *log;
    struct stream *stream; /* not of an append: it may have several */
    void *request;
    void (*run)(struct op *op); /* on the thread that made the request */
    uint32_t shard;
    int status;
    struct mem_log_fault fault; /* kind 0: none */

    struct disk_record *record; /* claim: made beforehand */
    uint64_t epoch, next;       /* claim: the outcome; follow: the next to visit */
    uint64_t rival;             /* claim */
    uint64_t streams;           /* append: a set of them, by number modulo 64 */
    size_t left;                /* append: entries without outcome */
    bool ready;
    bool stop;   /* follow: unfollow was called */
    bool coming; /* on its way to its thread, or running there: it must not be sent there a second time */

    struct op *link;        /* free, or in the one queue that it waits in */
    struct op *next_follow; /* of its stream */
    pawl_work work;
    pawl_task task;
};

/* An entry that waits for its outcome. */
struct flight {
    struct op *op;
    pawl_append_entry *entry;
};

struct landed {
    uint64_t ticket, position;
};

/* Where an entry that counted lies: its fragments are among [first, last]. */
struct seen {
    uint64_t first, last, epoch;
    size_t bytes;
};

enum claim_phase { CLAIM_PHASE_NONE, CLAIM_PHASE_SENT, CLAIM_PHASE_READ };

struct stream {
    struct mem_log *log;
    struct disk_stream *on_disk;
    struct stream *next;
    uint32_t number;
    bool corrupt;

    struct judge reader;
    struct seen *index; /* offset - 1 */
    uint64_t indexed, index_capacity;
    struct seen partial;
    struct disk_watcher watcher;
    struct op *follows;

    struct owner owner;
    struct flight *flights; /* a ring, of window */
    uint64_t flight_first, flight_count;
    struct disk_record *wire, **wire_end;
    struct landed *landed; /* in the round before; of window, and the claim */
    uint32_t landed_count;
    uint64_t landed_crashes; /* disk->crashes at that time */
    uint64_t read_to;
    struct op *claims; /* the first is under way */
    enum claim_phase claim_phase;
    uint64_t claim_at;

    /* While an append is being checked: what it would leave behind. */
    uint64_t plan_offset;
    uint32_t plan_room;
    bool plan_refused;

    pawl_work pump;
    bool pumping;
};

struct mem_log {
    pawl_log port;
    struct mem_log_disk *disk;
    pawl_env *env;
    struct mem_log_options options;
    struct mem_log *next; /* on the disk */
    bool closed;

    struct stream *streams;
    uint32_t stream_count;
    struct op *ops, *free_ops;
    uint32_t outstanding;
    uint64_t requests;
    struct mem_log_fault orders[LOG_ORDERS_MAX];
    struct op *appends;  /* in the order of the calls */
    struct op *nowhere;  /* to run on no shard */
    pawl_work elsewhere; /* which runs the first of them */
    bool elsewhere_set;
};

/* Found or made; NULL: no memory. */
struct stream *stream_of(struct mem_log *log, pawl_stream id);
void stream_free(struct stream *stream);

/* Start the pump, if it is not running. PAWL_ECLOSED: the env is closed. */
int stream_pump(struct stream *stream);
void stream_transmit(struct stream *stream, struct disk_record *record);

/* Read all that is final. PAWL_ECORRUPT, PAWL_ENOMEM. */
int stream_catch_up(struct stream *stream);

/* The entry at an offset that was indexed. Its body is borrowed from the disk, or, if it lies in fragments, put
 * together in *ret_memory (of its size), which the caller frees. PAWL_ENOMEM. */
int stream_entry(const struct stream *stream, uint64_t offset, pawl_entry *ret_entry, pawl_place *ret_place,
                 void **ret_memory);

/* Of log.c. NULL: too many. The order is taken when the request is sure to be started. */
struct op *op_take(struct mem_log *log, void *request, void (*run)(struct op *op));
void op_take_order(struct op *op);
void op_give(struct op *op);

/* Let it run on the thread that made the request. */
void op_come_back(struct op *op);

/* A claim has its outcome. */
void op_end(struct op *op, int status, const char *words);
void log_free(struct mem_log *log);

/* Of log_append.c. */
int log_append(pawl_log *port, pawl_append *append);
void log_deliver(struct mem_log *log);

#endif

/* adapter/mem/log_view.h: one stream as one log sees it.
 *
 * A view has two eyes. The owner (port/claim_owner.h) decides about what this log writes; it is moved by
 * reports, and by reading only where it must. The reader is a judge of its own that reads everything, and keeps
 * an index of what counted, for read, follow and tail.
 *
 * What takes time is done by the view's pump: a work of the env that, as long as there is something to do, does
 * one round of it: read what the owner asked for in the round before, report what landed then, move the claim
 * on, land what is on the wire. So between any two of these others may come. */
#ifndef ADAPTER_MEM_LOG_VIEW_H
#define ADAPTER_MEM_LOG_VIEW_H

#include "adapter/mem/log_disk.h"

enum { LOG_ORDERS_MAX = 16 };

/* A request under way. Taken from a pool that is made at open. */
struct op {
    struct mem_log *log;
    struct view *view; /* not of an append: it may have several */
    void *request;
    void (*run)(struct op *op); /* on the thread that made the request */
    uint32_t shard;
    int status;
    struct mem_log_fault fault; /* kind 0: none */

    struct disk_record *record; /* claim: made beforehand */
    uint64_t epoch, next;       /* claim: the outcome; follow: the next to visit */
    uint64_t streams;           /* append: a set of them, by number modulo 64 */
    size_t left;                /* append: entries without outcome */
    bool ready;
    bool stop;   /* follow: unfollow was called */
    bool coming; /* on its way to its thread, or running there; and then it comes once */

    struct op *link;        /* free, or in the one queue that it waits in */
    struct op *next_follow; /* of its view */
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

struct view {
    struct mem_log *log;
    struct disk_stream *stream;
    struct view *next;
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

    struct view *views;
    uint32_t view_count;
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
struct view *view_of(struct mem_log *log, pawl_stream stream);
void view_free(struct view *view);

/* See that the pump is running. PAWL_ECLOSED: the env is. */
int view_pump(struct view *view);
void view_transmit(struct view *view, struct disk_record *record);

/* Read all that is final. PAWL_ECORRUPT, PAWL_ENOMEM. */
int view_catch_up(struct view *view);

/* The entry at an offset that was indexed. Its body is borrowed from the disk, or, if it lies in fragments, put
 * together in *ret_memory (of its size), which the caller frees. PAWL_ENOMEM. */
int view_entry(const struct view *view, uint64_t offset, pawl_entry *ret_entry, pawl_place *ret_place,
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

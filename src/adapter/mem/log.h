/* adapter/mem/log.h: the log port in memory, with rivals and with faults to order.
 *
 * A disk is what all share: for each stream its physical records, in one order, whoever wrote them. A log is
 * what one process knows of it. Two logs on one disk are rivals, and only port/claim.h decides what becomes of
 * them, as on a real shared log.
 *
 *      request ──► log ── records ──► wire ──► disk [ final | not yet final ] ── report ──► log ──► done
 *                                                                └ a crash may cut this
 *
 * Time passes only in the works of the log's env, so under the env of adapter/mem one seed decides who comes
 * first: a record waits for its work to land, and for another to be reported; then it is final, and readers see
 * it.
 *
 * Caveats
 *   - One thread, as the env that it is made for. A whole process stands still by mem_env_pause.
 *   - append never returns PAWL_APPEND_DONE.
 *   - Close waits for nothing: what is still on the wire of a closed log may land later. The disk frees it. */
#ifndef ADAPTER_MEM_LOG_H
#define ADAPTER_MEM_LOG_H

#include "port/env.h"
#include "port/log.h"

struct mem_log_disk;

/* seed: of what a crash cuts, and of when a late record lands. Errors: PAWL_ENOMEM. */
int mem_log_disk_open(uint64_t seed, const pawl_allocator *allocator, struct mem_log_disk **ret_disk);

/* Every log on it has been closed or killed. */
void mem_log_disk_close(struct mem_log_disk *disk);

/* The power goes out: of each stream, what is not final may be gone, from some record on to the end. Logs that
 * live on learn of what was under way only that its outcome is unknown. */
void mem_log_disk_crash(struct mem_log_disk *disk);

struct mem_log_options {
    uint64_t node;        /* who claims */
    size_t message_bytes; /* a larger entry goes in fragments; 0: 1 MiB */
    uint32_t window;      /* records in flight, of a stream; 0: 256 */
    uint32_t requests;    /* outstanding at a time, follows included; 0: 256. More are PAWL_EBUSY */
    const pawl_allocator *allocator;
};

/* Borrows disk and env until the log is closed. Errors: PAWL_ENOMEM. */
int mem_log_open(struct mem_log_disk *disk, pawl_env *env, const struct mem_log_options *options,
                 pawl_log **ret_log);

/* The process dies, and so has its env (mem_env_kill): no done is called, requests are forgotten. Of what was
 * on the wire some may land. Frees the log. */
void mem_log_kill(pawl_log *log);

/* Faults to order, by the number of the request: claim, append, read, follow and tail count, from 1. */
enum mem_log_fault_kind {
    MEM_LOG_FAIL = 1, /* ends with PAWL_EIO; nothing was written                                           */
    MEM_LOG_FULL,     /* an append ends with PAWL_EFULL                                                    */
    MEM_LOG_DELAY,    /* it takes n works more                                                             */
    MEM_LOG_LANDED,   /* an append or claim lands, and its outcome is unknown                              */
    MEM_LOG_LOST,     /* it does not, likewise                                                             */
    MEM_LOG_LATE,     /* it is told to be unknown, and lands when nobody expects it any more               */
    MEM_LOG_TORN,     /* an append's first n records land, the rest does not; unknown                      */
    MEM_LOG_TWICE,    /* every record of it lands twice                                                    */
    MEM_LOG_RIVAL,    /* a claim is preceded by one of somebody else                                       */
};

struct mem_log_fault {
    enum mem_log_fault_kind kind;
    uint64_t request;
    uint32_t n;
};

/* At most 16 outstanding orders: PAWL_EBUSY. */
int mem_log_order(pawl_log *log, const struct mem_log_fault *fault);

/* How many requests the log has taken: the next is that plus 1. */
uint64_t mem_log_requests(const pawl_log *log);

#endif

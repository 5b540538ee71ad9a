/* test/lib/kept.h: what a worker in another process has of a lease, and what it does with it. */
#ifndef TEST_LIB_KEPT_H
#define TEST_LIB_KEPT_H

#include "test/lib/lanes.h"

/* The four members, and the attempt, which must be the same after a restart. */
struct ticket {
    uint16_t partition;
    uint64_t number;
    pawl_operation_id operation;
    uint32_t attempt;
};

static inline struct ticket ticket_of(const pawl_worker_lease *lease)
{
    return (struct ticket){lease->partition, lease->number, lease->operation, lease->attempt};
}

static inline pawl_worker_lease ticket_lease(const struct ticket *ticket)
{
    return (pawl_worker_lease){.partition = ticket->partition,
                               .lane = "t.notes",
                               .number = ticket->number,
                               .operation = ticket->operation};
}

static inline struct ticket kept_acquire(struct lanes_bed *bed, pawl_duration duration)
{
    pawl_worker_lease lease;
    int status = pawl_worker_acquire(bed->engine, "t.notes", duration, BED_PATIENCE, &lease, &bed->error);
    if (status != PAWL_OK)
        print_error("%s\n", bed->error.text);
    assert_ok(status);
    struct ticket ticket = ticket_of(&lease);
    pawl_worker_lease_free(&lease);
    return ticket;
}

static inline bool kept_is_nothing_left(struct lanes_bed *bed)
{
    pawl_worker_lease lease;
    return pawl_worker_acquire(bed->engine, "t.notes", 0, 0, &lease, &bed->error) == PAWL_ENOTFOUND;
}

/* One that waits is sent off early while the lane needs a worker for an operation before it: then it is handed in again. */
static inline int kept_commit(struct lanes_bed *bed, const struct ticket *ticket, pawl_duration wait)
{
    char json[200];
    int status;
    pawl_worker_lease lease = ticket_lease(ticket);
    snprintf(
        json, sizeof json,
        "{\"writes\": [{\"upsert\": \"t.Note\", \"key\": {\"event\": %u}, \"set\": {\"text\": \"by hand\"}}]}",
        ticket->partition * 1000 + (unsigned)ticket->number);
    BED_UNTIL((status = pawl_worker_commit_json(bed->engine, &lease, text_bytes(json), wait, &bed->error))
                  != PAWL_EBUSY
              && (status != PAWL_ETIMEOUT || wait == 0));
    return status;
}

static inline int kept_extend(struct lanes_bed *bed, const struct ticket *ticket, pawl_duration duration)
{
    int status;
    pawl_worker_lease lease = ticket_lease(ticket);
    BED_UNTIL((status = pawl_worker_extend(bed->engine, &lease, duration, &bed->error)) != PAWL_EBUSY);
    return status;
}

static inline int kept_release(struct lanes_bed *bed, const struct ticket *ticket, bool failed, bool permanent)
{
    int status;
    pawl_worker_lease lease = ticket_lease(ticket);
    BED_UNTIL((status = pawl_worker_release(bed->engine, &lease, failed, permanent, "no", &bed->error))
              != PAWL_EBUSY);
    return status;
}

/* Until the lane has come as far as this number. */
static inline void kept_wait_bound(struct lanes_bed *bed, uint16_t partition, uint64_t number)
{
    BED_UNTIL(bed_status(bed, "t.notes", partition, 0).leases.bound >= number);
}

#endif

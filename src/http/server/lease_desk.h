/* http/server/lease_desk.h: gives leases to clients that wait for one, and wakes exchanges after a while.
 *
 *     POST /v1/leases ──► a call in the line of its projector; the connection sleeps
 *                                       │
 *     engine: something to lease ──► the desk's thread: acquire ──► the first client that is still there ──► wake
 *
 * One thread does this for all clients and all projectors. There is one watch a projector (pawl_worker_watch_new),
 * however many clients wait for it.
 *
 * Invariants
 *   D1  A lease that was acquired is handed to one call, or given back.
 *   D2  A call is in a line, or its exchange was woken; whoever takes it out of the line lets go of the exchange.
 *   D3  The engine's callback takes no lock of the desk's: the desk calls the engine under its own. */
#ifndef HTTP_SERVER_LEASE_DESK_H
#define HTTP_SERVER_LEASE_DESK_H

#include "http/exchange/exchange.h"

#define LEASE_CALLS_MAX 4096 /* clients that wait; then 503 */

struct lease_desk;
struct lease_line;

/* Belongs to its exchange. */
struct lease_call {
    struct exchange *x;
    struct pawl_server *server;
    char *projector;
    pawl_duration duration;
    uint64_t began; /* instants, in ns */
    uint64_t deadline;

    /* What came of it, once the exchange was woken. */
    int status; /* PAWL_OK: lease; PAWL_ENOTFOUND: none came */
    pawl_error error;
    pawl_worker_lease lease;

    /* The desk's. */
    struct lease_line *line; /* NULL: it is in none */
    struct lease_call *next, **link;
};

/* An exchange that is to be woken at an instant; it must sleep until then. */
struct desk_timer {
    struct exchange *x;
    uint64_t at;
    struct desk_timer *next;
};

int lease_desk_new(pawl_engine *engine, struct lease_desk **ret_desk, pawl_error *error);

/* When there is no exchange any more. Gives back what is to be given back. NULL is allowed. */
void lease_desk_free(struct lease_desk *desk);

/* Wait for a lease: the exchange has been deferred, and is woken when there is one, when its deadline is over, or when
 * its client has gone. Errors: those of pawl_worker_watch_new; PAWL_EBUSY (too many wait). */
int lease_desk_join(struct lease_desk *desk, struct lease_call *call, pawl_error *error);

/* Take it out of its line, if it is still there: the server is stopping. */
void lease_desk_leave(struct lease_desk *desk, struct lease_call *call);

/* Give a lease back that its client never got; takes it. Does not wait. */
void lease_desk_give_back(struct lease_desk *desk, pawl_worker_lease *lease);

/* Wake timer->x, which has been deferred, at timer->at. The timer is its exchange's, and is not used any more when
 * that is woken. */
void lease_desk_wake_at(struct lease_desk *desk, struct desk_timer *timer);

#endif

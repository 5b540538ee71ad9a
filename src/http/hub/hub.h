/* http/hub/hub.h: events, and figures, to any number of clients that follow them.
 *
 *     engine ── one follower a partition ──► ring of the last events ──┐
 *                                                                      ├──► clients, each with its own cursor
 *     log ───── pages, read on the pool ───────────────────────────────┘
 *
 * The JSON of an event is made once, when it comes, however many clients there are. A partition keeps its last
 * events in a ring. A client whose cursor is in the ring takes them from there. One that is behind it, because
 * it has just come, or is slow, is given pages that are read from the log on the pool, a few clients at a time,
 * until it has caught up. So a slow client costs the others nothing, and no client has a thread.
 *
 * One thread, the hub's own, wakes clients for which there is something. It pauses between two rounds, the longer
 * the more clients it has woken, at most HUB_PAUSE_MAX: a crowd that follows many events gets several at a time,
 * which is much cheaper, and a single client waits for nothing.
 *
 * A client for which there is nothing is sent a comment line every HUB_BEAT, so that one that has gone is
 * found. One that has not taken anything for limits.stalled, though there is something for it, is cut off; so is
 * one whose machine does not acknowledge what was sent for so long.
 *
 * Invariants
 *   H1  A client gets each event that its cursor asks for once, in the order of its partition.
 *   H2  A ring holds all events of its partition from its from up to its next.
 *   H3  What belongs to a client changes under the hub's lock; while it is loading, only the loader changes it.
 *   H4  An idle client sleeps, and nothing that it could take was there when it fell asleep.
 *   H5  Locks are taken in this order: starting, hub, exchange. Nobody wakes an exchange under the hub's. */
#ifndef HTTP_HUB_HUB_H
#define HTTP_HUB_HUB_H

#include <pawl/pawl.h>

#include "http/hub/event_cursor.h"

struct exchange;
struct hub;
struct pawl_server;

#define HUB_BEAT      (15 * PAWL_SECOND) /* or half of limits.stalled, if that is less */
#define HUB_PAUSE_MAX (25 * PAWL_MILLISECOND)

int hub_new(struct pawl_server *server, struct hub **ret_hub, pawl_error *error);

/* stop: no job is handed to the pool any more. There is no exchange then. free: those that were are done. Stops
 * following. NULL is allowed. */
void hub_stop(struct hub *hub);
void hub_free(struct hub *hub);

enum hub_kind {
    HUB_WORKSPACE, /* the events of a workspace; id: is the workspace's offset */
    HUB_PARTITION, /* of a partition; its offset */
    HUB_EVERY,     /* of all partitions; a cursor (http/hub/event_cursor.h) */
    HUB_FIGURES,   /* what GET /v1/figures answers, once a second; no id: */
};

/* What a client wants to follow. */
struct hub_wish {
    enum hub_kind kind;
    uint64_t wsid;
    uint16_t partition;
    uint64_t from;        /* the first offset, at least 1; of a workspace, or of a partition */
    uint64_t *next;       /* EVERY: the same for each partition; taken, by free */
    const char *commands; /* EVERY: names with commas between them; NULL: all. Copied */
    uint64_t limit;       /* the stream ends after so many events; 0: it does not */
};

/* Answer the exchange with a stream of what it wishes. On the pool. If it cannot be followed, the exchange is
 * answered with the error. Takes what the wish says, in either case. */
void hub_follow(struct hub *hub, struct exchange *x, const struct hub_wish *wish);

/* Whether name is in a list with commas. */
bool hub_lists(const char *list, pawl_bytes name);

struct hub_figures {
    uint64_t clients;  /* now */
    uint64_t messages; /* events that were made into JSON, since the start, as all below */
    uint64_t sent;     /* events that were sent, to whichever client */
    uint64_t pages;    /* read from the log */
    uint64_t cut;      /* clients that were cut off because they were too slow */
};

void hub_figures_get(struct hub *hub, struct hub_figures *ret_figures);

#endif

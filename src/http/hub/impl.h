/* http/hub/impl.h: the hub's own structs.
 *
 *     hub.c      life, the thread that wakes clients, the loaders' queue
 *     channel.c  a partition: its follower in the engine, and its ring
 *     client.c   a client: what comes next for it, and how it is written
 *     page.c     what a client that is behind the ring reads from the log */
#ifndef HTTP_HUB_IMPL_H
#define HTTP_HUB_IMPL_H

#include "http/hub/hub.h"
#include "http/server/server.h"

#define RING_EVENTS 1024              /* a power of two */
#define RING_BYTES  ((size_t)1 << 20) /* of JSON; a larger event is read from the log by each client */
#define PAGE_EVENTS 512
#define PAGE_BYTES  ((size_t)32 << 10) /* and at least one event */

/* An event, or figures, as all clients get it. It never changes. */
struct message {
    _Atomic uint32_t holders;
    uint64_t offset;
    uint64_t wsid;
    uint64_t workspace_offset;
    size_t command_size;
    size_t size; /* of the JSON */
    char text[]; /* the command's name, then the JSON */
};

/* A partition. */
struct channel {
    struct hub *hub;
    uint16_t partition;
    uint32_t clients;      /* that follow it, or will in a moment */
    bool followed;         /* events come */
    pawl_events *events;   /* NULL: never followed. It may have ended. Under hub->starting */
    struct message **ring; /* of RING_EVENTS, by place modulo; NULL: never followed */
    uint64_t first;        /* places; the oldest one, and the one behind the newest */
    uint64_t end;
    size_t bytes;
    uint64_t from; /* H2 */
    uint64_t next;
    uint64_t broken; /* how often following has ended by an error */
};

struct client {
    struct hub *hub;
    struct exchange *x;
    struct client *next_client;
    struct client **link;
    enum hub_kind kind;
    uint64_t wsid;
    uint64_t workspace_next; /* WORKSPACE: the next offset of the workspace */
    uint32_t first_partition;
    uint32_t partitions;
    uint64_t *next;   /* for each of its partitions, from the first on: the next offset of the partition */
    uint64_t *broken; /* channel->broken when it came */
    uint32_t turn;    /* EVERY: whose turn it is */
    char *commands;
    uint64_t left;    /* of its limit; UINT64_MAX: there is none */
    uint64_t version; /* hub->version when nothing was left for it */

    bool idle;    /* H4 */
    bool wanting; /* in the queue of those that need a page */
    bool loading; /* a page is being read for it */
    bool beat;    /* it must be sent a comment line */
    bool ended;   /* there is nothing more but its page */
    bool cut;     /* it was too slow: its connection is being cut */
    struct client *next_wanting;
    uint64_t loaded_at;  /* when the last page was read that had nothing for it: then it waits a little */
    uint64_t said_at;    /* when something was last written for it */
    uint64_t awake_from; /* since when it could have taken something */

    /* What is being written; only the exchange's thread, or the loader, uses it. */
    char *head; /* of an event */
    size_t head_size;
    struct message *message; /* NULL: none */
    size_t at;               /* in head, JSON and end of the message; */
    char *page;              /* or in the page. NULL: none */
    size_t page_size;
    size_t page_room;
};

struct hub {
    struct pawl_server *server;
    uint32_t partitions;
    pawl_duration beat;
    pthread_mutex_t starting; /* follow and unfollow, which may wait for a shard */
    pthread_mutex_t lock;     /* all below */
    pthread_cond_t changed;
    bool fresh; /* there may be something for clients */
    bool stop;
    struct channel *channels;
    struct client *clients;
    uint64_t version; /* changes with every message */
    struct client *wanting;
    struct client **wanting_end;
    uint32_t loaders; /* on the pool */
    uint32_t loaders_max;
    struct message *board; /* the last figures; NULL: none */
    uint64_t board_number;
    bool board_loading;
    uint32_t board_clients;
    struct hub_figures figures;
    struct exchange **woken; /* of limits.streams: the thread's own */
    size_t woken_room;
    bool started;
    pthread_t thread;
};

/* channel.c */
void message_hold(struct message *message);
void message_let_go(struct message *message);                     /* NULL is allowed */
struct message *message_new(pawl_bytes command, pawl_bytes json); /* NULL: no memory */

/* Begin to follow, unless it is followed. Not under the lock; the channel has a client already. */
int channel_start(struct channel *channel, pawl_error *error);
void channel_release(struct channel *channel);

/* The first message from an offset on; NULL: there is none, or the ring begins behind it. Under the lock. */
struct message *channel_find(const struct channel *channel, uint64_t offset);

/* client.c. next: under the lock. */
enum client_next { NEXT_NOTHING, NEXT_MESSAGE, NEXT_PAGE, NEXT_BROKEN };
enum client_next client_next(struct client *client, struct message **ret_message, uint32_t *ret_index);
ptrdiff_t client_read(struct exchange *x, char *memory, size_t room);
void client_free(struct client *client);

/* Write an event to the end of the page, in the form of a stream. False: no memory. */
bool client_write_page(struct client *client, uint32_t index, uint64_t offset, uint64_t workspace_offset,
                       pawl_bytes json);
bool client_page_add(struct client *client, pawl_bytes bytes);

/* page.c: read a page for a client that is loading. On the pool, not under the lock. */
void client_load(struct client *client);

/* hub.c: under the lock: the client wants a page. */
void hub_want_page(struct hub *hub, struct client *client);

#endif

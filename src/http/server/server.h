/* http/server/server.h: the server's own structs, and what it has one of: the pool, requests, the desk of leases, jobs,
 * the hub. Handlers (http/routes/) use http/exchange/exchange.h, and this for what it has one of.
 *
 *     here            listen.c  sockets      server.c  daemons, life cycle; MHD's callbacks      watch.c  time limits
 *     http/exchange/  dispatch.c  from headers to a handler      exchange.c  what a handler reads
 *                     answer.c  what it answers
 *
 * Invariants
 *   S1  An exchange is counted in server->exchanges from its first byte until its last use. Stop waits for 0.
 *   S2  Once server->closed is set, there is no new exchange; then the daemons are stopped. So no connection is
 *       suspended when they are, which libmicrohttpd does not allow.
 *   S3  A connection is suspended if and only if its exchange is asleep. Both change under the exchange's lock.
 *   S4  Locks are taken in this order: server->lock, exchange->lock, those of libmicrohttpd. */
#ifndef HTTP_SERVER_SERVER_H
#define HTTP_SERVER_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include <pawl/serve.h>

#include "http/exchange/exchange.h"
#include "http/hub/hub.h"
#include "http/routes/routes.h"
#include "http/server/jobs.h"
#include "http/server/lease_desk.h"
#include "http/server/pool.h"
#include "http/server/requests.h"

#define SERVER_PATH_MAX 4096

/* One connection, from accept to close. */
struct peer {
    struct pawl_server *server;
    int fd;
    bool trusted;              /* it came by the Unix socket */
    _Atomic uint64_t deadline; /* a request must be whole by this instant, in ns; 0: there is no limit now */
    uint64_t ended;            /* the watcher's: the deadline at which it saw that the client has ended */
    struct peer *next;         /* under the server's lock */
    struct peer **link;
};

struct header {
    const char *name;
    char *value;
};

enum exchange_phase {
    PHASE_NEW,     /* the request line is there */
    PHASE_BODY,    /* the headers are there, and the body is kept or handed on */
    PHASE_DISCARD, /* it was answered, and the body is thrown away first */
    PHASE_RUN,     /* the handler was called */
    PHASE_SENT,    /* the answer is with libmicrohttpd */
};

struct exchange {
    struct pawl_server *server;
    struct MHD_Connection *connection;
    struct peer *peer;
    _Atomic uint32_t holders;
    enum exchange_phase phase;
    uint64_t began;   /* instants, in ns */
    uint64_t allowed; /* how long the request may take to come */
    uint64_t waited;  /* how long it has waited because its client asked for it */
    bool patient;     /* it has read min_offset: what it does on the pool is to wait for that */
    uint64_t slept;   /* since when the body waits for the handler, 0: it does not */

    /* What was asked. */
    struct target target;
    bool target_bad; /* refusal says why */
    pawl_error refusal;
    const char *method;
    const struct route *route;
    struct grant grant;
    char *body;
    size_t body_size;
    size_t body_room;
    size_t received;
    exchange_take take;
    char *keys[EXCHANGE_KEYS_MAX];
    size_t key_count;

    /* The answer. */
    bool answered;
    enum http_status status;
    const char *type;
    pawl_text text; /* data NULL: see bytes */
    char *copy;     /* freed with the exchange */
    pawl_bytes bytes;
    struct header headers[EXCHANGE_HEADERS_MAX];
    size_t header_count;
    exchange_read read;
    bool joined;  /* it is in server->streams; for its own thread */
    bool counted; /* and counts against limits.streams */

    /* Sleeping. */
    pthread_mutex_t lock;
    bool asleep;
    bool woken;
    bool gone;          /* the connection is over */
    bool sent;          /* the whole answer was sent */
    exchange_step step; /* to call when it is woken; NULL: it does not wait */
    exchange_step pool_step;
    exchange_step then; /* after that; NULL: it has answered */

    void *state;
    void (*release)(void *state);

    struct exchange *next_stream; /* under the server's lock */
    struct exchange **stream_link;
    size_t room; /* of raw */
    char raw[];  /* the target, taken apart in place */
};

struct pawl_server {
    pawl_engine *engine;
    pawl_serve_options options; /* with defaults; strings are those below */
    char url[320];
    uint16_t port;
    char socket[SERVER_PATH_MAX];
    char **hosts;
    size_t host_count;
    bool tls;
    bool need_token; /* on TCP */

    int tcp_fd;
    int unix_fd;
    int unix_dir; /* the folder of the socket */
    uint64_t unix_inode;
    struct MHD_Daemon *tcp;
    struct MHD_Daemon *local;
    char *cert;
    char *key;
    char words[256]; /* libmicrohttpd's last complaint, until it has started; under lock */
    atomic_bool started;

    struct pool *pool;
    struct requests *requests;
    struct hub *hub;
    struct lease_desk *leases;
    struct jobs *jobs;

    pthread_mutex_t lock;
    pthread_cond_t idle;    /* exchanges became 0. Not for the watcher: that may be after every request */
    pthread_cond_t changed; /* watching ends */
    size_t exchanges;
    struct exchange *spare; /* of exchanges that have ended, linked through next_stream */
    size_t spare_count;
    bool closed;
    struct exchange *streams;
    size_t stream_count;
    struct peer *peers;
    atomic_bool stopping;
    bool unwatch;
    bool watching;
    pthread_t watcher;
};

/* Nanoseconds of a clock that only goes forward. */
uint64_t server_now(void);

/* listen.c: make the sockets that the options name. close_all also removes the Unix socket's name. */
int listen_tcp(struct pawl_server *server, pawl_error *error);
int listen_unix(struct pawl_server *server, pawl_error *error);
void listen_close(struct pawl_server *server);

/* watch.c: cut connections whose request does not come in time. */
int watch_start(struct pawl_server *server, pawl_error *error);
void watch_stop(struct pawl_server *server);
void watch_cut_all(struct pawl_server *server);
void watch_receiving(struct exchange *x); /* the deadline, from what came so far */

/* exchange.c */
struct exchange *exchange_new(struct pawl_server *server, struct MHD_Connection *connection, struct peer *peer,
                              const char *target);
void exchange_gone(struct exchange *x); /* its connection is over */
void exchange_free_spare(struct pawl_server *server);
bool exchange_sleep(struct exchange *x); /* false: it was woken already */

/* dispatch.c: the headers are there: find the route, and check access. The exchange may be answered then. */
void dispatch_begin(struct exchange *x);
void dispatch_run(struct exchange *x); /* call the handler */

/* answer.c: hand the answer to libmicrohttpd, or sleep until there is one. */
enum MHD_Result answer_settle(struct exchange *x);
enum MHD_Result answer_woken(struct exchange *x); /* the same, after it has slept */

/* log.c: one line. more: further members, taken; may be NULL. */
void server_log(struct pawl_server *server, pawl_log_level level, const char *message, json_t *more);
bool server_logs(const struct pawl_server *server, pawl_log_level level);

#endif

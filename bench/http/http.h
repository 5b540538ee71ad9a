/* bench/http/http.h: what the parts of the server's bench share.
 *
 *     served.c      a process with an engine and a server
 *     followers.c   a thousand clients that follow the events of a workspace
 *
 * Clients and servers are processes of their own on the same machine, and speak over loopback (bench/peers/load.h). */
#ifndef BENCH_HTTP_HTTP_H
#define BENCH_HTTP_HTTP_H

#include <sys/types.h>

#include <pawl/pawl.h>

#include "bench/lib/bench.h"
#include "bench/peers/load.h"

#define CLIENTS    64
#define WORKSPACES 64
#define TEXT       "Consulting in the month of November, as agreed: 3 days on site and 2 days remote"

uint64_t duration_of(const struct bench_round *round);

/* --- served.c --- */

struct served {
    pid_t pid;
    int stop; /* closing it ends the process */
    uint16_t port;
    uint64_t id;     /* of the invoice, the same in all workspaces */
    double idle_mib; /* memory of the process before there is a client */
};

/* A new directory with WORKSPACES workspaces, each with one invoice. */
bool served_start(const char *dir, struct served *ret_served);
void served_stop(struct served *served);
double process_mib(pid_t pid);

extern const char schema[];
pawl_engine *engine_make(const char *dir, uint64_t *ret_id);

/* A request that posts a body: many commands with lines. Static memory of the caller's: text has room. */
size_t http_post(char *text, size_t room, uint64_t wsid, const char *type, const char *body);
extern const char command_body[];

/* --- followers.c --- */

/* The lag in ms that 99 of 100 events do not exceed, over all followers; 0, after saying why: an event was lost. */
double followers_lag(const struct served *served, unsigned followers, unsigned rate, unsigned seconds);

#endif

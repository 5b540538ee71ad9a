/* server.h: a server of the bench's own, that a peer needs: a process with a port on loopback and a directory that is
 * removed at the end.
 *
 *   1. It is started once, by the first who asks, and ended by its pid. The kernel ends it if the bench dies.
 *   2. Its output is in DIR.log, which stays if it could not be started. */
#ifndef BENCH_PEERS_SERVER_H
#define BENCH_PEERS_SERVER_H

#include <limits.h>
#include <pwd.h>
#include <sys/types.h>

#include "bench/lib/bench.h"

struct server {
    const char *name;
    pid_t pid;
    uint16_t port;
    char dir[PATH_MAX];
    bool failed;
};

/* A port that nobody listens on, and an empty directory beside the round's own, which is removed after the round. */
bool server_prepare(struct server *server, const char *name, const struct bench_round *round);

/* A process whose output is appended to DIR.log; user NULL: as this process. 0 or less: it could not be started. */
pid_t server_process(const struct server *server, const struct passwd *user, const char *const *words);

/* The process has ended with status 0. */
bool process_succeeded(pid_t pid);

/* Start the server, and wait for up to half a minute until it answers. False, after saying why. */
bool server_start(struct server *server, const struct passwd *user, const char *const *words,
                  bool (*answers)(const struct server *server));

/* Says that it could not be started, and where its words are. Returns false. */
bool server_give_up(struct server *server);

/* End it by this signal, and remove what it has left. */
void server_end(struct server *server, int signal);

/* Have the report name the version: the first word with a dot that PROGRAM --version says. */
void server_note_version(const char *name, const char *program);

#endif

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/http/http.h"

static const char redis[] = "/usr/bin/redis-server";
static const char postgres[] = "/usr/lib/postgresql/15/bin/postgres";
static const char ready[] = "/usr/lib/postgresql/15/bin/pg_isready";
static const char initdb[] = "/usr/lib/postgresql/15/bin/initdb";

struct peer {
    pid_t pid;
    uint16_t port;
    char dir[PATH_MAX];
    bool failed;
};

static struct peer redis_peer, postgres_peer;

/* --- processes --- */

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0
              && getsockname(fd, (struct sockaddr *)&at, &size) == 0;
    if (fd >= 0)
        close(fd);
    return ok ? ntohs(at.sin_port) : 0;
}

/* user NULL: as this process. Its output goes to DIR.log. */
static pid_t start(const char *dir, const struct passwd *user, const char *const *words)
{
    char log[PATH_MAX + 8];
    snprintf(log, sizeof log, "%s.log", dir);
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (out >= 0) {
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
    }
    if (user && (setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
        _exit(1);
    if (chdir("/") != 0)
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGQUIT); /* the kernel forgets it when the user changes: so it is set last */
    execv(words[0], (char *const *)(uintptr_t)words);
    _exit(1);
}

static bool is_open(const struct peer *peer)
{
    uint16_t port = peer->port;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool open = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
    if (fd >= 0)
        close(fd);
    return open;
}

/* It listens earlier than it answers. */
static bool is_ready(const struct peer *peer)
{
    char port[8];
    int status = 1;
    snprintf(port, sizeof port, "%u", peer->port);
    pid_t asking =
        start(peer->dir, NULL, (const char *const[]){ready, "-q", "-h", "127.0.0.1", "-p", port, NULL});
    return asking > 0 && waitpid(asking, &status, 0) == asking && status == 0;
}

/* Up to half a minute. */
static bool wait_for(const struct peer *peer, bool (*answers)(const struct peer *peer))
{
    const struct timespec moment = {.tv_nsec = 20000000};
    for (unsigned i = 0; i < 1500; i++) {
        if (answers(peer))
            return true;
        if (waitpid(peer->pid, NULL, WNOHANG) == peer->pid)
            return false;
        nanosleep(&moment, NULL);
    }
    return false;
}

/* A folder beside the round's own, which is removed after the round. */
static bool make_folder(struct peer *peer, const struct bench_round *round, const char *name)
{
    snprintf(peer->dir, sizeof peer->dir, "%s-%s-XXXXXX", round->dir, name);
    return mkdtemp(peer->dir) != NULL || bench_failed(peer->dir, NULL) > 0;
}

static uint16_t give_up(struct peer *peer, const char *name)
{
    fprintf(stderr, "%s could not be started; %s.log has its words\n", name, peer->dir);
    peer->failed = true;
    return 0;
}

/* --- Redis --- */

uint16_t redis_port(const struct bench_round *round, bool *ret_missing)
{
    struct peer *p = &redis_peer;
    char port[8];
    *ret_missing = access(redis, X_OK) != 0;
    if (*ret_missing)
        fprintf(stderr, "Redis is not installed (tools/install bench): it is left out\n");
    if (p->port || p->failed || *ret_missing)
        return p->port;
    p->port = free_port();
    snprintf(port, sizeof port, "%u", p->port);
    if (!make_folder(p, round, "redis"))
        return 0;
    p->pid = start(p->dir, NULL,
                   (const char *const[]){redis, "--port", port, "--bind", "127.0.0.1", "--dir", p->dir,
                                         "--appendonly", "yes", "--appendfsync", "always", "--save", "", NULL});
    return p->pid > 0 && wait_for(p, is_open) ? p->port : give_up(p, "Redis");
}

/* --- PostgreSQL --- */

/* The startup message; trust asks for nothing more. */
pawl_bytes postgres_hello(void)
{
    static const char words[] = "\0\0\0\0\0\3\0\0user\0bench\0database\0postgres\0";
    static char message[sizeof words];
    uint32_t size = htonl(sizeof words);
    memcpy(message, words, sizeof words);
    memcpy(message, &size, sizeof size);
    return (pawl_bytes){message, sizeof words};
}

size_t postgres_query(char *text, size_t room, const char *query)
{
    size_t size = strlen(query) + 1;
    uint32_t length = htonl((uint32_t)size + 4);
    if (room < size + 5)
        return 0;
    text[0] = 'Q';
    memcpy(text + 1, &length, 4);
    memcpy(text + 5, query, size);
    return size + 5;
}

static bool make_table(uint16_t port)
{
    static char text[512];
    struct loaded loaded;
    pawl_bytes ask = {text,
                      postgres_query(text, sizeof text,
                                     "CREATE TABLE IF NOT EXISTS invoice(id bigserial PRIMARY KEY, wsid bigint,"
                                     " cents bigint, body text)")};
    struct load load = {.speech = SPEAK_POSTGRES,
                        .port = port,
                        .clients = 1,
                        .hello = postgres_hello(),
                        .ask_count = 1,
                        .asks = &ask,
                        .duration = 50000000};
    return load_run(&load, &loaded);
}

uint16_t postgres_port(const struct bench_round *round, bool *ret_missing)
{
    struct peer *p = &postgres_peer;
    const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;
    char port[8];
    *ret_missing = access(postgres, X_OK) != 0 || (geteuid() == 0 && !user);
    if (*ret_missing)
        fprintf(stderr, "PostgreSQL 15 is not installed (tools/install bench): it is left out\n");
    if (p->port || p->failed || *ret_missing)
        return p->port;
    p->port = free_port();
    snprintf(port, sizeof port, "%u", p->port);
    int status = 1;
    if (!make_folder(p, round, "postgres") || (user && chown(p->dir, user->pw_uid, user->pw_gid) != 0))
        return give_up(p, "PostgreSQL");
    pid_t making = start(p->dir, user,
                         (const char *const[]){initdb, "-D", p->dir, "-A", "trust", "-U", "bench", "-N", NULL});
    if (making <= 0 || waitpid(making, &status, 0) != making || status != 0)
        return give_up(p, "PostgreSQL");
    p->pid = start(p->dir, user,
                   (const char *const[]){postgres, "-D", p->dir, "-p", port, "-c", "listen_addresses=127.0.0.1",
                                         "-c", "unix_socket_directories=", "-c", "max_connections=100", NULL});
    return p->pid > 0 && wait_for(p, is_ready) && make_table(p->port) ? p->port : give_up(p, "PostgreSQL");
}

/* --- the end --- */

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info, (void)type, (void)at;
    return remove(path);
}

static void end(struct peer *peer, int number)
{
    char log[PATH_MAX + 8];
    if (peer->pid > 0) {
        kill(peer->pid, number);
        waitpid(peer->pid, NULL, 0);
    }
    if (peer->dir[0] && !peer->failed) {
        snprintf(log, sizeof log, "%s.log", peer->dir);
        (void)unlink(log);
    }
    if (peer->dir[0])
        (void)nftw(peer->dir, remove_one, 32, FTW_DEPTH | FTW_PHYS);
    *peer = (struct peer){0};
}

void peers_remove(void)
{
    end(&redis_peer, SIGTERM);
    end(&postgres_peer, SIGINT);
}

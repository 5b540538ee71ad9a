/* bench/views/postgres.c: a PostgreSQL server of the bench's own: one cluster in a directory that is removed at
 * the end, a unix socket, no port. It syncs, as it does by default.
 *
 *   1. The server refuses to run as root. Then it runs as the user postgres.
 *   2. It is a child of the bench and is ended by its pid. The kernel ends it if the bench dies.
 *   3. All is done by psql, one process for all statements: so nothing needs to be linked, and no statement
 *      pays for a connection. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/views/views.h"

#define PROGRAMS "/usr/lib/postgresql/15/bin/"

static char initdb[] = PROGRAMS "initdb", postgres[] = PROGRAMS "postgres", psql[] = PROGRAMS "psql";

static struct {
    char dir[PATH_MAX];
    char socket[64]; /* a directory of its own: the path of a socket must be short */
    struct passwd user;
    pid_t server, client;
    FILE *ask, *answer; /* of the client */
    bool loaded;
    bool missing;
} pg;

static const char *const settings[] = {
    "listen_addresses=", "shared_buffers=512MB",  "maintenance_work_mem=512MB",
    "work_mem=512MB", /* the view is sorted by the query, not by the index */
    "max_wal_size=8GB",  "checkpoint_timeout=1h", "autovacuum=off",
};

/* --- processes --- */

/* In a child: become the server's user, and end with the bench. The kernel forgets the signal when the user
 * changes, so it is set last. */
static void become_user(bool change)
{
    if (change
        && (initgroups(pg.user.pw_name, pg.user.pw_gid) != 0 || setgid(pg.user.pw_gid) != 0
            || setuid(pg.user.pw_uid) != 0 || chdir("/") != 0))
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
}

static pid_t start(char *const words[], int in, int out)
{
    fflush(NULL);
    pid_t child = fork();
    if (child != 0)
        return child;
    become_user(geteuid() == 0);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(126);
    execv(words[0], words);
    _exit(127);
}

static int end(pid_t *child, int signal)
{
    int how = -1;
    if (*child <= 0)
        return how;
    if (signal)
        kill(*child, signal);
    waitpid(*child, &how, 0);
    *child = 0;
    return how;
}

/* --- the server --- */

static bool make_cluster(void)
{
    char data[PATH_MAX + 16];
    char *words[] = {initdb,     "-D", data,   "-A",         "trust",     "-U",
                     "postgres", "-E", "UTF8", "--locale=C", "--no-sync", NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    snprintf(data, sizeof data, "%s/data", pg.dir);
    pid_t child = start(words, null, null);
    close(null);
    return end(&child, 0) == 0;
}

static bool start_server(void)
{
    enum { FIXED = 5, COUNT = sizeof settings / sizeof *settings };
    char data[PATH_MAX + 16], log[PATH_MAX + 16];
    char *words[FIXED + 2 * COUNT + 1] = {postgres, "-D", data, "-k", pg.socket};
    for (size_t i = 0; i < COUNT; i++) {
        words[FIXED + 2 * i] = "-c";
        words[FIXED + 2 * i + 1] = (char *)settings[i];
    }
    snprintf(data, sizeof data, "%s/data", pg.dir);
    snprintf(log, sizeof log, "%s/log", pg.dir);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), file = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    int kept = dup(STDERR_FILENO);
    bool ok = null >= 0 && file >= 0 && kept >= 0 && dup2(file, STDERR_FILENO) >= 0;
    pg.server = ok ? start(words, null, file) : 0;
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(file);
    close(null);
    return pg.server > 0;
}

/* False: it has ended, or is not there after half a minute. */
static bool wait_for_server(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s/.s.PGSQL.5432", pg.socket);
    for (unsigned i = 0; i < 3000; i++) {
        if (access(path, F_OK) == 0)
            return true;
        if (waitpid(pg.server, NULL, WNOHANG) != 0) {
            pg.server = 0;
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

/* --- the client --- */

static bool start_client(void)
{
    char *words[] = {psql,    "-h", pg.socket,         "-U", "postgres", "-d", "postgres",
                     "-qAtX", "-v", "ON_ERROR_STOP=1", NULL};
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        return false;
    pg.client = start(words, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    pg.ask = fdopen(to[1], "w");
    pg.answer = fdopen(from[0], "r");
    return pg.client > 0 && pg.ask && pg.answer;
}

/* Everything that was asked before is done. False: a statement failed, and psql has said why and ended. */
static bool client_done(void)
{
    char line[256];
    fputs("\\echo done\n", pg.ask);
    fflush(pg.ask);
    while (fgets(line, sizeof line, pg.answer))
        if (strcmp(line, "done\n") == 0)
            return true;
    return false;
}

static bool client_do(const char *statements)
{
    fputs(statements, pg.ask);
    return client_done();
}

static bool load(uint64_t rows)
{
    fputs(
        "CREATE TABLE invoice(wsid bigint, id bigint, number bigint, customer bigint, cents bigint, body text,"
        " PRIMARY KEY (wsid, id));\nCOPY invoice FROM STDIN;\n",
        pg.ask);
    for (uint64_t n = 0; n < rows && !ferror(pg.ask); n++) {
        struct row r = row_at(n);
        fprintf(pg.ask, "%" PRIu64 "\t%" PRIu64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t" TEXT "\n", r.wsid,
                n, r.number, r.customer, r.cents);
    }
    return client_do("\\.\nVACUUM ANALYZE invoice;\nCHECKPOINT;\n");
}

/* --- all of it --- */

static bool find_user(void)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : getpwuid(geteuid());
    if (user)
        pg.user = *user; /* its strings stay until the next getpw */
    return user != NULL;
}

static bool prepare(const struct bench_round *round)
{
    snprintf(pg.socket, sizeof pg.socket, "/tmp/pawl-bench-XXXXXX");
    if (!folder_make(round, pg.dir) || !mkdtemp(pg.socket))
        return false;
    if (geteuid() == 0
        && (chown(pg.dir, pg.user.pw_uid, pg.user.pw_gid) != 0
            || chown(pg.socket, pg.user.pw_uid, pg.user.pw_gid) != 0))
        return false;
    signal(SIGPIPE, SIG_IGN); /* if psql ends early, it has said why */
    return make_cluster() && start_server() && wait_for_server() && start_client() && load(rows_of(round));
}

double postgres_build(const struct bench_round *round)
{
    if (pg.missing || access(postgres, X_OK) != 0 || !find_user()) {
        if (!pg.missing)
            fprintf(stderr, "PostgreSQL 15 is not installed (tools/install bench): it is left out\n");
        pg.missing = true;
        return BENCH_NO_PEER;
    }
    if (!pg.loaded && !prepare(round)) {
        fprintf(stderr, "PostgreSQL could not be started and loaded in %s\n", pg.dir);
        return 0;
    }
    pg.loaded = true;
    uint64_t began = bench_begin();
    bool ok = client_do("CREATE MATERIALIZED VIEW by_customer AS SELECT wsid, customer, id, cents FROM invoice"
                        " ORDER BY wsid, customer, id;\n"
                        "CREATE INDEX by_customer_key ON by_customer(wsid, customer, id);\n");
    double rate = bench_per_second(rows_of(round), began);
    ok = ok && client_do("DROP MATERIALIZED VIEW by_customer;\nCHECKPOINT;\n");
    return ok ? rate : bench_failed("PostgreSQL", NULL);
}

void postgres_remove(void)
{
    if (pg.ask)
        fclose(pg.ask);
    if (pg.answer)
        fclose(pg.answer);
    end(&pg.client, 0);
    end(&pg.server, SIGINT);
    if (pg.dir[0])
        folder_remove(pg.dir);
    if (pg.socket[0])
        folder_remove(pg.socket);
    pg.ask = pg.answer = NULL;
    pg.dir[0] = pg.socket[0] = 0;
}

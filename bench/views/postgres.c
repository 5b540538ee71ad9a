/* bench/views/postgres.c: the view that PostgreSQL builds, beside ours.
 *
 * All is done by psql, one process for all statements: so nothing needs to be linked, and no statement pays for a
 * connection. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/peers/postgres.h"
#include "bench/views/views.h"

static const char *const settings[] = {
    "shared_buffers=512MB", "maintenance_work_mem=512MB", "work_mem=512MB", /* the view is sorted by the query, not by the index */
    "max_wal_size=8GB",     "checkpoint_timeout=1h",      "autovacuum=off", NULL,
};

static struct {
    pid_t client;
    FILE *ask, *answer; /* of the client */
    bool loaded, missing;
} pg;

/* --- the client --- */

static bool start_client(uint16_t port)
{
    static char psql[] = POSTGRES_PROGRAMS "psql";
    char number[8];
    char *words[] = {psql,    "-h", "127.0.0.1",       "-p", number, "-U", "bench", "-d", "postgres",
                     "-qAtX", "-v", "ON_ERROR_STOP=1", NULL};
    int to[2], from[2];
    snprintf(number, sizeof number, "%u", port);
    signal(SIGPIPE, SIG_IGN); /* if psql ends early, it has said why */
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        return false;
    fflush(NULL);
    pg.client = fork();
    if (pg.client == 0) {
        prctl(PR_SET_PDEATHSIG, SIGQUIT);
        if (dup2(to[0], STDIN_FILENO) >= 0 && dup2(from[1], STDOUT_FILENO) >= 0)
            execv(words[0], words);
        _exit(127);
    }
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

double postgres_build(const struct bench_round *round)
{
    uint16_t port = pg.missing ? 0 : postgres_port(round, settings, &pg.missing);
    if (!port)
        return pg.missing ? BENCH_NO_PEER : 0;
    if (!pg.loaded && (!start_client(port) || !load(rows_of(round))))
        return bench_failed("PostgreSQL could not be loaded", NULL);
    pg.loaded = true;
    uint64_t began = bench_begin();
    bool ok = client_do("CREATE MATERIALIZED VIEW by_customer AS SELECT wsid, customer, id, cents FROM invoice"
                        " ORDER BY wsid, customer, id;\n"
                        "CREATE INDEX by_customer_key ON by_customer(wsid, customer, id);\n");
    double rate = bench_per_second(rows_of(round), began);
    ok = ok && client_do("DROP MATERIALIZED VIEW by_customer;\nCHECKPOINT;\n");
    return ok ? rate : bench_failed("PostgreSQL", NULL);
}

void postgres_leave(void)
{
    if (pg.ask)
        fclose(pg.ask);
    if (pg.answer)
        fclose(pg.answer);
    if (pg.client > 0)
        waitpid(pg.client, NULL, 0);
    pg.client = 0;
    pg.ask = pg.answer = NULL;
    postgres_remove();
}

#include "bench/peers/postgres.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/peers/server.h"

#define SETTINGS_MAX 16

static const char program[] = POSTGRES_PROGRAMS "postgres";
static const char ready[] = POSTGRES_PROGRAMS "pg_isready";
static const char initdb[] = POSTGRES_PROGRAMS "initdb";

static struct server postgres;

/* It listens earlier than it answers. */
static bool is_ready(const struct server *server)
{
    char port[8];
    snprintf(port, sizeof port, "%u", server->port);
    return process_succeeded(
        server_process(server, NULL, (const char *const[]){ready, "-q", "-h", "127.0.0.1", "-p", port, NULL}));
}

static bool start(const struct bench_round *round, const struct passwd *user, const char *const *settings)
{
    char port[8];
    enum { FIXED = 11 };
    if (!server_prepare(&postgres, "postgres", round)
        || (user && chown(postgres.dir, user->pw_uid, user->pw_gid) != 0))
        return server_give_up(&postgres);
    snprintf(port, sizeof port, "%u", postgres.port);
    server_note_version("PostgreSQL", program);
    if (!process_succeeded(
            server_process(&postgres, user,
                           (const char *const[]){initdb, "-D", postgres.dir, "-A", "trust", "-U", "bench", "-E",
                                                 "UTF8", "--locale=C", "-N", NULL})))
        return server_give_up(&postgres);
    const char *words[FIXED + 2 * SETTINGS_MAX + 1] = {program,
                                                       "-D",
                                                       postgres.dir,
                                                       "-p",
                                                       port,
                                                       "-c",
                                                       "listen_addresses=127.0.0.1",
                                                       "-c",
                                                       "unix_socket_directories=",
                                                       "-c",
                                                       "max_connections=100"};
    for (size_t i = 0; settings && settings[i] && i < SETTINGS_MAX; i++) {
        words[FIXED + 2 * i] = "-c";
        words[FIXED + 2 * i + 1] = settings[i];
    }
    return server_start(&postgres, user, words, is_ready);
}

uint16_t postgres_port(const struct bench_round *round, const char *const *settings, bool *ret_missing)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;
    *ret_missing = access(program, X_OK) != 0 || (geteuid() == 0 && !user);
    if (*ret_missing)
        fprintf(stderr, "PostgreSQL 15 is not installed (tools/install bench): it is left out\n");
    if (*ret_missing || postgres.failed || (postgres.pid == 0 && !start(round, user, settings)))
        return 0;
    return postgres.port;
}

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

/* The last statement tells that all before it have succeeded. */
bool postgres_do(uint16_t port, const char *statements)
{
    char text[2048], query[2000];
    struct loaded loaded;
    snprintf(query, sizeof query, "%s; SELECT 'all is done'", statements);
    pawl_bytes ask = {text, postgres_query(text, sizeof text, query)};
    return load_run(&(struct load){.speech = SPEAK_POSTGRES,
                                   .port = port,
                                   .clients = 1,
                                   .hellos = {postgres_hello()},
                                   .ask_count = 1,
                                   .asks = &ask,
                                   .expected = "all is done",
                                   .duration = UINT64_C(600000000000),
                                   .most = 1},
                    &loaded);
}

double postgres_insert(const struct bench_round *round, const struct load *how, const char *text,
                       struct loaded *ret_loaded)
{
    char prepare[512], insert[64], statement[400];
    bool missing;
    uint16_t port = postgres_port(round, NULL, &missing);
    struct load load = *how;
    if (!port)
        return missing ? BENCH_NO_PEER : 0;
    if (!postgres_do(port, "CREATE TABLE IF NOT EXISTS invoice(id bigserial PRIMARY KEY, wsid bigint,"
                           " cents bigint, body text)"))
        return 0;
    snprintf(statement, sizeof statement,
             "PREPARE bill AS INSERT INTO invoice(wsid, cents, body) VALUES (7, 12345, '%s')", text);
    pawl_bytes ask = {insert, postgres_query(insert, sizeof insert, "EXECUTE bill")};
    load.speech = SPEAK_POSTGRES;
    load.port = port;
    load.hellos[0] = postgres_hello();
    load.hellos[1] = (pawl_bytes){prepare, postgres_query(prepare, sizeof prepare, statement)};
    load.ask_count = 1;
    load.asks = &ask;
    load.expected = "INSERT 0 1";
    return load_rate(&load, ret_loaded);
}

void postgres_remove(void)
{
    server_end(&postgres, SIGINT);
}

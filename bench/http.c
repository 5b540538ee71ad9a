/* bench/http.c: what the server costs: commands, batches, reads, followers and idle connections over HTTP.
 *
 * Server and client are two processes on this machine, and speak over loopback. Redis and PostgreSQL are
 * asked by the same client, in their own words, and sync as Pawl does before they answer: appendfsync always, and
 * PostgreSQL's defaults. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/http/http.h"
#include "bench/lib/crowd.h"
#include "bench/peers/postgres.h"
#include "bench/peers/redis.h"

#define BATCH         64
#define BATCH_CLIENTS 8
#define FOLLOWERS     1000
#define RATE          100
#define IDLE          1000
#define RECORD        360 /* an event's bytes in the journal */

uint64_t duration_of(const struct bench_round *round)
{
    return (round->quick ? 1000 : 4000) * UINT64_C(1000000);
}

static double per_second(const struct loaded *loaded, double each)
{
    return (double)loaded->operations * each / loaded->seconds;
}

/* --- commands --- */

static char requests[WORKSPACES][BATCH * 512];
static pawl_bytes asks[WORKSPACES];

static void make_commands(size_t lines)
{
    static char body[BATCH * 400];
    size_t size = 0;
    for (size_t i = 0; i < lines; i++)
        size += (size_t)snprintf(body + size, sizeof body - size, "%s\n", command_body);
    for (uint64_t i = 0; i < WORKSPACES; i++)
        asks[i] =
            (pawl_bytes){requests[i], http_post(requests[i], sizeof requests[i], i + 1,
                                                lines > 1 ? "application/x-ndjson" : "application/json", body)};
}

static bool commands(const struct bench_round *round, unsigned clients, size_t lines, struct loaded *ret_loaded)
{
    struct served served;
    if (!served_start(round->dir, &served))
        return false;
    make_commands(lines);
    struct load load = {.speech = SPEAK_HTTP,
                        .port = served.port,
                        .clients = clients,
                        .ask_count = WORKSPACES,
                        .asks = asks,
                        .expected = "\"workspace_offset\"",
                        .duration = duration_of(round)};
    bool ok = load_run(&load, ret_loaded);
    served_stop(&served);
    return ok;
}

static double one_client(const struct bench_round *round)
{
    struct loaded loaded;
    return commands(round, 1, 1, &loaded) ? loaded.p50_us : 0;
}

static int by_time(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The p50 of a pwrite and an fdatasync, in a file of zeros. */
static double raw_sync(const struct bench_round *round)
{
    enum { FILE_BYTES = 8 << 20, MOST = 20000 };
    static double times[MOST];
    static char zeros[1 << 20];
    char path[PATH_MAX];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/raw", round->dir);
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    if (fd < 0)
        return bench_failed(path, NULL);
    for (off_t at = 0; at < FILE_BYTES; at += (off_t)sizeof zeros)
        if (pwrite(fd, zeros, sizeof zeros, at) < 0)
            return bench_failed(path, NULL);
    fsync(fd);
    uint64_t end = bench_begin() + duration_of(round);
    for (off_t at = 0; bench_now() < end && count < MOST; at = (at + RECORD) % (FILE_BYTES - RECORD)) {
        uint64_t began = bench_now();
        if (pwrite(fd, zeros, RECORD, at) != RECORD || fdatasync(fd) != 0)
            return bench_failed(path, NULL);
        times[count++] = (double)(bench_now() - began) / 1e3;
    }
    close(fd);
    qsort(times, count, sizeof times[0], by_time);
    return times[count / 2];
}

static double many_clients(const struct bench_round *round)
{
    struct loaded loaded;
    return commands(round, CLIENTS, 1, &loaded) ? per_second(&loaded, 1) : 0;
}

static double batches(const struct bench_round *round)
{
    struct loaded loaded;
    return commands(round, BATCH_CLIENTS, BATCH, &loaded) ? per_second(&loaded, BATCH) : 0;
}

static void bill(void *arg, pawl_request *request, uint64_t n)
{
    (void)arg;
    (void)pawl_request_json(request, n % WORKSPACES + 1, (pawl_bytes){command_body, strlen(command_body)});
}

/* The same commands, as JSON, in this process. */
static double embedded(const struct bench_round *round)
{
    uint64_t id;
    pawl_engine *engine = engine_make(round->dir, &id);
    if (!engine)
        return 0;
    uint64_t began = bench_begin();
    struct crowd crowd = {.engine = engine, .make = bill, .deadline = began + duration_of(round)};
    double rate = bench_per_second(crowd_run(&crowd), began);
    pawl_close(engine);
    return rate;
}

/* --- peers --- */

static struct load all_clients(const struct bench_round *round)
{
    return (struct load){.clients = CLIENTS, .duration = duration_of(round)};
}

static double redis_xadd(const struct bench_round *round)
{
    struct load load = all_clients(round);
    return redis_ask(round, &load, "", REDIS_XADD(TEXT), NULL);
}

static double redis_get(const struct bench_round *round)
{
    struct load load = all_clients(round);
    return redis_ask(round, &load, "*3\r\n$3\r\nSET\r\n$7\r\ninvoice\r\n$80\r\n" TEXT "\r\n",
                     "*2\r\n$3\r\nGET\r\n$7\r\ninvoice\r\n", NULL);
}

static double insert_row(const struct bench_round *round)
{
    struct load load = all_clients(round);
    return postgres_insert(round, &load, TEXT, NULL);
}

/* --- reads, followers, idle connections --- */

static double read_records(const struct bench_round *round)
{
    static char texts[WORKSPACES][160];
    struct served served;
    struct loaded loaded;
    if (!served_start(round->dir, &served))
        return 0;
    for (uint64_t i = 0; i < WORKSPACES; i++) {
        int size = snprintf(texts[i], sizeof texts[i],
                            "GET /v1/ws/%" PRIu64 "/records/%" PRIu64 " HTTP/1.1\r\nHost: localhost\r\n\r\n",
                            i + 1, served.id);
        asks[i] = (pawl_bytes){texts[i], (size_t)size};
    }
    struct load load = {.speech = SPEAK_HTTP,
                        .port = served.port,
                        .clients = CLIENTS,
                        .ask_count = WORKSPACES,
                        .asks = asks,
                        .expected = TEXT,
                        .duration = duration_of(round)};
    bool ok = load_run(&load, &loaded);
    served_stop(&served);
    return ok ? per_second(&loaded, 1) : 0;
}

static double lag_of_followers(const struct bench_round *round)
{
    struct served served;
    if (!served_start(round->dir, &served))
        return 0;
    double lag = followers_lag(&served, FOLLOWERS, RATE, round->quick ? 3 : 20);
    served_stop(&served);
    return lag;
}

/* Half of them have asked something and keep their connection, half follow events. */
static double idle_memory(const struct bench_round *round)
{
    static const char *const words[] = {
        "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/ws/1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream"
        "\r\n\r\n"};
    struct rlimit files = {.rlim_cur = IDLE + 256, .rlim_max = IDLE + 256};
    struct served served;
    static int fds[IDLE];
    char answer[4096];
    bool ok = true;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    if (!served_start(round->dir, &served))
        return 0;
    for (size_t i = 0; i < IDLE && ok; i++) {
        const char *ask = words[i % 2];
        fds[i] = connect_to(served.port);
        ok = fds[i] >= 0 && send(fds[i], ask, strlen(ask), MSG_NOSIGNAL) > 0
             && recv(fds[i], answer, sizeof answer, 0) > 12 && memcmp(answer, "HTTP/1.1 200", 12) == 0;
    }
    double mib = process_mib(served.pid) - served.idle_mib;
    for (size_t i = 0; i < IDLE; i++)
        if (fds[i] > 0)
            close(fds[i]);
    memset(fds, 0, sizeof fds);
    served_stop(&served);
    return ok ? mib : bench_failed("idle connections", NULL);
}

int main(int argc, char **argv)
{
    static const struct bench_question questions[] = {
        {"HTTP: p50 of a command, one client (peer: fdatasync)", "µs", BENCH_LESS, 3, one_client, raw_sync,
         NULL},
        {"HTTP: commands, 64 clients (peer: Redis XADD, appendfsync always)", "op/s", BENCH_MORE, 0.5,
         many_clients, redis_xadd, NULL},
        {"HTTP: commands, 64 clients (peer: PostgreSQL insert)", "op/s", BENCH_MORE, 1.5, many_clients,
         insert_row, NULL},
        {"HTTP: batches of 64, 8 clients (peer: embedded)", "op/s", BENCH_MORE, 0.6, batches, embedded, NULL},
        {"HTTP: read a record, 64 clients (peer: Redis GET)", "op/s", BENCH_MORE, 0.5, read_records, redis_get,
         NULL},
        {"HTTP: p99 lag of 1,000 followers, 100 events a second", "ms", BENCH_LESS, 100, lag_of_followers, NULL,
         NULL},
        {"HTTP: memory of 1,000 connections", "MiB", BENCH_LESS, 64, idle_memory, NULL, NULL},
    };
    int status = bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
    redis_remove();
    postgres_remove();
    return status;
}

#include "bench/peers/redis.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "bench/peers/server.h"

static const char program[] = "/usr/bin/redis-server";
static struct server redis;

static bool is_open(const struct server *server)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(server->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool open = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
    if (fd >= 0)
        close(fd);
    return open;
}

static bool start(const struct bench_round *round)
{
    char port[8];
    if (!server_prepare(&redis, "redis", round))
        return server_give_up(&redis);
    snprintf(port, sizeof port, "%u", redis.port);
    server_note_version("Redis", program);
    return server_start(&redis, NULL,
                        (const char *const[]){program, "--port", port, "--bind", "127.0.0.1", "--dir",
                                              redis.dir, "--appendonly", "yes", "--appendfsync", "always",
                                              "--save", "", NULL},
                        is_open);
}

uint16_t redis_port(const struct bench_round *round, bool *ret_missing)
{
    *ret_missing = access(program, X_OK) != 0;
    if (*ret_missing)
        fprintf(stderr, "Redis is not installed (tools/install bench): it is left out\n");
    if (*ret_missing || redis.failed || (redis.pid == 0 && !start(round)))
        return 0;
    return redis.port;
}

double redis_ask(const struct bench_round *round, const struct load *how, const char *hello, const char *words,
                 struct loaded *ret_loaded)
{
    bool missing;
    uint16_t port = redis_port(round, &missing);
    pawl_bytes ask = {words, strlen(words)};
    struct load load = *how;
    if (!port)
        return missing ? BENCH_NO_PEER : 0;
    load.speech = SPEAK_RESP;
    load.port = port;
    load.hellos[0] = (pawl_bytes){hello, strlen(hello)};
    load.ask_count = 1;
    load.asks = &ask;
    return load_rate(&load, ret_loaded);
}

void redis_remove(void)
{
    server_end(&redis, SIGTERM);
}

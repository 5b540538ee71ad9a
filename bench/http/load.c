#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/http/http.h"

#define BUFFER ((size_t)256 << 10)
#define TIMES  ((size_t)1 << 20)

struct connection {
    int fd;
    char *buffer;
    size_t size;
    size_t turn;
    uint64_t asked;
};

int connect_to(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    bench_failed("connect", NULL);
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool say(int fd, pawl_bytes words)
{
    const char *at = words.data;
    for (size_t left = words.size; left > 0;) {
        ssize_t sent = send(fd, at, left, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return bench_failed("send", NULL) > 0;
        at += sent;
        left -= (size_t)sent;
    }
    return true;
}

/* --- whole answers: the size of the first one in the buffer; 0: it is not whole yet --- */

static size_t whole_http(const char *text, size_t size)
{
    static const char end[] = "\r\n\r\n", last[] = "\r\n0\r\n\r\n";
    const char *body = memmem(text, size, end, 4), *length;
    if (!body)
        return 0;
    size_t head = (size_t)(body - text) + 4;
    length = memmem(text, head, "Content-Length: ", 16);
    if (length) {
        size_t whole = head + strtoul(length + 16, NULL, 10);
        return size >= whole ? whole : 0;
    }
    const char *over = memmem(text, size, last, 7);
    return over ? (size_t)(over - text) + 7 : 0;
}

static size_t whole_resp(const char *text, size_t size)
{
    const char *line = memmem(text, size, "\r\n", 2);
    if (!line)
        return 0;
    size_t whole = (size_t)(line - text) + 2;
    if (text[0] == '$' && text[1] != '-')
        whole += strtoul(text + 1, NULL, 10) + 2;
    return size >= whole ? whole : 0;
}

/* Messages: a letter, and a length that counts itself. Z: ready for the next query. */
static size_t whole_postgres(const char *text, size_t size)
{
    for (size_t at = 0; size - at >= 5;) {
        uint32_t length;
        memcpy(&length, text + at + 1, 4);
        size_t next = at + 1 + ntohl(length);
        if (next > size)
            return 0;
        if (text[at] == 'Z')
            return next;
        at = next;
    }
    return 0;
}

static size_t whole(enum speech speech, const char *text, size_t size)
{
    switch (speech) {
    case SPEAK_HTTP: return whole_http(text, size);
    case SPEAK_RESP: return whole_resp(text, size);
    case SPEAK_POSTGRES: return whole_postgres(text, size);
    }
    return 0;
}

/* --- asking --- */

static bool ask(const struct load *load, struct connection *c)
{
    c->asked = bench_now();
    return say(c->fd, load->asks[c->turn++ % load->ask_count]);
}

/* 1: an answer is whole; 0: not yet; -1: it failed. */
static int hear(const struct load *load, struct connection *c)
{
    ssize_t got = recv(c->fd, c->buffer + c->size, BUFFER - c->size, 0);
    if (got <= 0)
        return (int)bench_failed("the server has ended a connection", NULL) - 1;
    c->size += (size_t)got;
    size_t size = whole(load->speech, c->buffer, c->size);
    if (size == 0)
        return 0;
    if (load->expected && !memmem(c->buffer, size, load->expected, strlen(load->expected))) {
        fprintf(stderr, "an unexpected answer: %.*s\n", (int)(size < 400 ? size : 400), c->buffer);
        return -1;
    }
    c->size = 0; /* nobody asks before it has the answer */
    return 1;
}

static bool greet(const struct load *load, struct connection *c)
{
    if (load->hello.size == 0)
        return true;
    struct load hello = *load;
    int heard = 0;
    hello.expected = NULL;
    if (!say(c->fd, load->hello))
        return false;
    while (heard == 0)
        heard = hear(&hello, c);
    return heard > 0;
}

static bool open_all(const struct load *load, struct connection *all, int poll)
{
    for (unsigned i = 0; i < load->clients; i++) {
        struct connection *c = &all[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        *c = (struct connection){.fd = connect_to(load->port), .buffer = malloc(BUFFER), .turn = i};
        if (c->fd < 0 || !c->buffer || !greet(load, c) || epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &event) != 0)
            return false;
    }
    return true;
}

static int by_time(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool run(const struct load *load, struct connection *all, int poll, uint32_t *times, struct loaded *ret)
{
    uint64_t began = bench_begin(), answers = 0, end = began + load->duration;
    struct epoll_event events[CLIENTS];
    for (unsigned i = 0; i < load->clients; i++)
        if (!ask(load, &all[i]))
            return false;
    while (bench_now() < end) {
        int count = epoll_wait(poll, events, CLIENTS, 1000);
        if (count <= 0) {
            fprintf(stderr, "no answer comes\n");
            return false;
        }
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            int heard = hear(load, c);
            if (heard < 0
                || (heard > 0 && answers < TIMES && (times[answers] = (uint32_t)(bench_now() - c->asked)) == 0))
                return false;
            answers += heard > 0;
            if (heard > 0 && !ask(load, c))
                return false;
        }
    }
    ret->answers = answers;
    ret->seconds = (double)(bench_now() - began) / 1e9;
    (void)bench_per_second(answers ? answers : 1, began);
    size_t kept = answers < TIMES ? answers : TIMES;
    qsort(times, kept, sizeof *times, by_time);
    size_t middle = kept / 2;
    ret->p50_us = kept ? times[middle] / 1e3 : 0;
    return answers > 0;
}

bool load_run(const struct load *load, struct loaded *ret_loaded)
{
    struct connection *all = calloc(load->clients, sizeof *all);
    uint32_t *times = calloc(TIMES, sizeof *times);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    bool ok = all && times && poll >= 0 && open_all(load, all, poll) && run(load, all, poll, times, ret_loaded);
    for (unsigned i = 0; all && i < load->clients; i++) {
        if (all[i].fd > 0)
            close(all[i].fd);
        free(all[i].buffer);
    }
    if (poll >= 0)
        close(poll);
    free(all);
    free(times);
    return ok;
}

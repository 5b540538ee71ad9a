#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/peers/load.h"

#define BUFFER ((size_t)256 << 10)
#define TIMES  ((size_t)1 << 20)
#define TICK   200000 /* ns: who asks at a rate does not wake up more often, as in bench/lib/pace.c */

struct connection {
    int fd;
    char *buffer;
    size_t size;
    size_t turn;
    uint64_t began; /* the operation */
    struct talk talk;
};

/* Clients that wait for something to be due. */
struct idle {
    struct connection *all[LOAD_CLIENTS_MAX];
    unsigned count;
    uint64_t asked; /* so many operations are over, or under way */
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

enum heard { HEARD_PART, HEARD_ALL, HEARD_REFUSAL, HEARD_WRONG };

static bool has(const char *text, size_t size, const char *part)
{
    return memmem(text, size, part, strlen(part)) != NULL;
}

/* Redis begins the answer to what it refuses with a minus. */
static bool is_expected(const struct load *load, const char *text, size_t size)
{
    bool refused = load->speech == SPEAK_RESP && text[0] == '-';
    return !refused && (!load->expected || has(text, size, load->expected));
}

static enum heard hear(const struct load *load, struct connection *c)
{
    ssize_t got = recv(c->fd, c->buffer + c->size, BUFFER - c->size, 0);
    if (got <= 0) {
        bench_failed("the server has ended a connection", NULL);
        return HEARD_WRONG;
    }
    c->size += (size_t)got;
    size_t size = whole(load->speech, c->buffer, c->size);
    if (size == 0)
        return HEARD_PART;
    c->talk.answer = (pawl_bytes){c->buffer, size};
    c->size = 0; /* nobody asks before it has the answer */
    if (load->again && has(c->buffer, size, load->again))
        return HEARD_REFUSAL;
    if (is_expected(load, c->buffer, size))
        return HEARD_ALL;
    fprintf(stderr, "an unexpected answer: %.*s\n", (int)(size < 400 ? size : 400), c->buffer);
    return HEARD_WRONG;
}

static bool greet(const struct load *load, struct connection *c)
{
    struct load hello = *load;
    hello.expected = hello.again = NULL;
    for (size_t i = 0; i < sizeof load->hellos / sizeof *load->hellos; i++) {
        enum heard heard = HEARD_PART;
        if (load->hellos[i].size == 0)
            continue;
        if (!say(c->fd, load->hellos[i]))
            return false;
        while (heard == HEARD_PART)
            heard = hear(&hello, c);
        if (heard != HEARD_ALL)
            return false;
    }
    c->talk.answer = (pawl_bytes){0};
    return true;
}

/* What comes next. If that begins an operation, its time begins; 0: it does not. */
static bool ask(const struct load *load, struct connection *c, uint64_t begins)
{
    if (begins)
        c->began = begins;
    return say(c->fd, load->talk ? (pawl_bytes){c->talk.words, c->talk.size}
                                 : load->asks[c->turn++ % load->ask_count]);
}

/* Work out what is said next. *ret_ended: the answer ends an operation. */
static bool proceed(const struct load *load, struct connection *c, bool *ret_ended)
{
    c->talk.ended = !load->talk;
    bool ok = !load->talk || load->talk(load->arg, &c->talk);
    *ret_ended = c->talk.ended;
    return ok;
}

static bool open_all(const struct load *load, struct connection *all, int poll)
{
    for (unsigned i = 0; i < load->clients; i++) {
        struct connection *c = &all[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        *c = (struct connection){
            .fd = connect_to(load->port), .buffer = malloc(BUFFER), .turn = i, .talk.client = i};
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

/* An answer has come: count what it ends, and say what comes next. */
static bool answered(const struct load *load, struct connection *c, struct idle *idle, uint32_t *times,
                     struct loaded *counts)
{
    bool ended = false;
    enum heard heard = hear(load, c);
    if (heard == HEARD_PART)
        return true;
    if (heard == HEARD_REFUSAL) {
        counts->refused++;
        c->turn--;
        return ask(load, c, 0);
    }
    if (heard == HEARD_WRONG || !proceed(load, c, &ended))
        return false;
    if (ended && counts->operations < TIMES)
        times[counts->operations] = (uint32_t)(bench_now() - c->began);
    counts->operations += ended;
    if (load->most && counts->operations >= load->most)
        return true;
    if (load->rate == 0)
        return ask(load, c, ended ? bench_now() : 0);
    idle->all[idle->count++] = c;
    return true;
}

static bool is_over(const struct load *load, const struct loaded *counts, uint64_t end)
{
    return bench_now() >= end || (load->most && counts->operations >= load->most);
}

/* Ask all that is due, as far as there are clients. *ret_pause: ns until the next is. */
static bool ask_due(const struct load *load, struct idle *idle, uint64_t began, uint64_t *ret_pause)
{
    uint64_t now = bench_now(), due = began;
    while (idle->count > 0 && (due = began + (uint64_t)((double)idle->asked * 1e9 / load->rate)) <= now) {
        idle->asked++;
        if (!ask(load, idle->all[--idle->count], due))
            return false;
    }
    *ret_pause = idle->count == 0 ? UINT64_C(60000000000) : due - now > TICK ? due - now : TICK;
    return true;
}

static bool begin(const struct load *load, struct connection *all, struct idle *idle)
{
    bool ended, ok = true;
    for (unsigned i = 0; ok && i < load->clients; i++) {
        if (load->rate > 0)
            idle->all[idle->count++] = &all[i];
        else
            ok = proceed(load, &all[i], &ended) && ask(load, &all[i], bench_now());
    }
    return ok;
}

static void find_percentiles(uint32_t *times, struct loaded *counts)
{
    size_t kept = counts->operations < TIMES ? counts->operations : TIMES;
    qsort(times, kept, sizeof *times, by_time);
    size_t middle = kept / 2, high = kept * 99 / 100;
    if (kept > 0) {
        counts->p50_us = times[middle] / 1e3;
        counts->p99_us = times[high] / 1e3;
    }
}

static bool run(const struct load *load, struct connection *all, int poll, uint32_t *times, struct loaded *ret)
{
    uint64_t began = bench_begin(), end = began + load->duration, pause = UINT64_C(60000000000);
    struct epoll_event events[LOAD_CLIENTS_MAX];
    struct loaded counts = {0};
    struct idle idle = {0};
    if (!begin(load, all, &idle))
        return false;
    while (!is_over(load, &counts, end)) {
        if (load->rate > 0 && !ask_due(load, &idle, began, &pause))
            return false;
        struct timespec wait = {.tv_sec = (time_t)(pause / 1000000000), .tv_nsec = (long)(pause % 1000000000)};
        int count = epoll_pwait2(poll, events, LOAD_CLIENTS_MAX, &wait, NULL);
        if (count < 0 || (count == 0 && idle.count == 0)) {
            fprintf(stderr, "no answer comes\n");
            return false;
        }
        for (int i = 0; i < count; i++)
            if (!answered(load, events[i].data.ptr, &idle, times, &counts))
                return false;
    }
    counts.seconds = (double)(bench_now() - began) / 1e9;
    (void)bench_per_second(counts.operations ? counts.operations : 1, began);
    find_percentiles(times, &counts);
    *ret = counts;
    return counts.operations > 0;
}

bool load_run(const struct load *load, struct loaded *ret_loaded)
{
    struct connection *all = calloc(load->clients, sizeof *all);
    uint32_t *times = calloc(TIMES, sizeof *times);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    bool ok = all && times && poll >= 0 && load->clients <= LOAD_CLIENTS_MAX && open_all(load, all, poll)
              && run(load, all, poll, times, ret_loaded);
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

double load_rate(const struct load *load, struct loaded *ret_loaded)
{
    struct loaded loaded;
    if (!load_run(load, &loaded))
        return 0;
    if (ret_loaded)
        *ret_loaded = loaded;
    return (double)loaded.operations / loaded.seconds;
}

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/http/http.h"

#define ROOM     ((size_t)64 << 10)
#define PATIENCE UINT64_C(120000000000)

struct follower {
    int fd;
    unsigned seen;
    size_t kept; /* of an id that has come in part */
    char tail[64];
};

/* One thread sends commands, at a steady rate; sent[n] is when. */
struct sender {
    uint16_t port;
    unsigned rate;
    unsigned count;
    _Atomic uint64_t *sent;
    bool ok;
};

static void *send_steadily(void *arg)
{
    struct sender *s = arg;
    static char request[1024], answer[4096];
    size_t size = http_post(request, sizeof request, 1, "application/json", command_body);
    int fd = connect_to(s->port);
    uint64_t began = bench_now();
    s->ok = fd >= 0;
    for (unsigned i = 0; i < s->count && s->ok; i++) {
        uint64_t due = began + i * UINT64_C(1000000000) / s->rate;
        struct timespec until = {.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        s->sent[i] = bench_now();
        s->ok = send(fd, request, size, MSG_NOSIGNAL) == (ssize_t)size && recv(fd, answer, sizeof answer, 0) > 0
                && memcmp(answer, "HTTP/1.1 200", 12) == 0;
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static bool follow(struct follower *f, uint16_t port)
{
    static const char request[] = "GET /v1/ws/1/events?from=end HTTP/1.1\r\nHost: localhost\r\nAccept: "
                                  "text/event-stream\r\n\r\n";
    char answer[4096];
    size_t size = 0;
    f->fd = connect_to(port);
    if (f->fd < 0 || send(f->fd, request, sizeof request - 1, MSG_NOSIGNAL) != sizeof request - 1)
        return false;
    while (!memmem(answer, size, "retry: ", 7)) { /* from then on it follows */
        ssize_t got = recv(f->fd, answer + size, sizeof answer - size, 0);
        if (got <= 0 || memcmp(answer, "HTTP/1.1 200", 12) != 0)
            return bench_failed("a follower was refused", NULL) > 0;
        size += (size_t)got;
    }
    return true;
}

struct lags {
    uint32_t *us;
    size_t count;
    size_t room;
};

/* Ids ascend by one: the first event that is sent has the first id behind the two that are there. */
static bool take(struct follower *f, const char *text, size_t size, const _Atomic uint64_t *sent,
                 struct lags *lags)
{
    uint64_t now = bench_now();
    for (const char *at = text, *end = text + size; (at = memmem(at, (size_t)(end - at), "id: ", 4));) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        if (!line)
            break; /* it is kept as the tail */
        unsigned long id = strtoul(at + 4, NULL, 10);
        if (id != f->seen + 3 || lags->count == lags->room) {
            fprintf(stderr, "a follower got event %lu in place of %u\n", id, f->seen + 3);
            return false;
        }
        lags->us[lags->count++] = (uint32_t)((now - sent[f->seen]) / 1000);
        f->seen++;
        at = line;
    }
    return true;
}

static bool hear(struct follower *f, const _Atomic uint64_t *sent, struct lags *lags)
{
    static char buffer[ROOM + sizeof f->tail + 1];
    memcpy(buffer, f->tail, f->kept);
    ssize_t got = recv(f->fd, buffer + f->kept, ROOM, 0);
    if (got <= 0)
        return bench_failed("a follower was cut off", NULL) > 0;
    size_t size = f->kept + (size_t)got;
    buffer[size] = '\0';
    if (!take(f, buffer, size, sent, lags))
        return false;
    const char *last = size > 40 ? buffer + size - 40 : buffer, *id = NULL;
    for (const char *at = last; (at = memmem(at, (size_t)(buffer + size - at), "id: ", 4)); at++)
        id = at;
    bool part = id && !memchr(id, '\n', (size_t)(buffer + size - id));
    const char *from = part ? id : buffer + size - (size < 3 ? size : 3); /* "id:" may have come alone */
    f->kept = (size_t)(buffer + size - from);
    memcpy(f->tail, from, f->kept);
    return true;
}

static int by_size(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool hear_all(int poll, const _Atomic uint64_t *sent, struct lags *lags)
{
    struct epoll_event events[256];
    uint64_t end = bench_now() + PATIENCE;
    while (lags->count < lags->room) {
        int ready = epoll_wait(poll, events, 256, 1000);
        if (bench_now() > end) {
            fprintf(stderr, "events were lost: %zu of %zu came\n", lags->count, lags->room);
            return false;
        }
        for (int i = 0; i < ready; i++)
            if (!hear(events[i].data.ptr, sent, lags))
                return false;
    }
    return true;
}

static bool follow_all(const struct served *served, struct follower *all, unsigned followers, int poll)
{
    for (unsigned i = 0; i < followers; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        if (!follow(&all[i], served->port) || epoll_ctl(poll, EPOLL_CTL_ADD, all[i].fd, &event) != 0)
            return false;
    }
    return true;
}

double followers_lag(const struct served *served, unsigned followers, unsigned rate, unsigned seconds)
{
    struct rlimit files = {.rlim_cur = followers + 256, .rlim_max = followers + 256};
    (void)setrlimit(RLIMIT_NOFILE, &files);
    unsigned count = rate * seconds;
    struct follower *all = calloc(followers, sizeof *all);
    struct lags lags = {.room = (size_t)count * followers,
                        .us = calloc((size_t)count * followers, sizeof *lags.us)};
    _Atomic uint64_t *sent = calloc(count, sizeof *sent);
    struct sender sender = {.port = served->port, .rate = rate, .count = count, .sent = sent};
    int poll = epoll_create1(EPOLL_CLOEXEC);
    pthread_t thread;
    bool ok = all && lags.us && sent && poll >= 0 && follow_all(served, all, followers, poll);
    uint64_t began = bench_begin();
    if (ok && pthread_create(&thread, NULL, send_steadily, &sender) == 0) {
        ok = hear_all(poll, sent, &lags);
        pthread_join(thread, NULL);
        ok = ok && sender.ok && lags.count == lags.room;
    }
    (void)bench_per_second(lags.count ? lags.count : 1, began);
    if (ok)
        qsort(lags.us, lags.count, sizeof *lags.us, by_size);
    size_t rank = lags.count / 100 * 99;
    double p99 = ok ? lags.us[rank] / 1e3 : 0;
    for (unsigned i = 0; all && i < followers; i++)
        if (all[i].fd > 0)
            close(all[i].fd);
    close(poll);
    free(all);
    free(lags.us);
    free(sent);
    return p99;
}

#include "http/server/lease_desk.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "http/server/server.h"

#define LINES_MAX 1024

/* Those that wait for operations of one projector. It stays until the server ends. */
struct lease_line {
    struct lease_line *next;
    struct lease_desk *desk;
    char *projector;
    pawl_worker_watch *watch;
    atomic_bool ready; /* there may be something to lease */
    struct lease_call *first, **last;
};

struct given_back {
    struct given_back *next;
    pawl_worker_lease lease;
};

struct lease_desk {
    pawl_engine *engine;
    int wake; /* an eventfd */
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    struct lease_line *lines;
    size_t line_count;
    size_t calls;
    struct desk_timer *timers;
    struct lease_call *done; /* their exchanges are to be woken */
    struct desk_timer *due;  /* the same */
    struct given_back *back;
    uint64_t next; /* the earliest deadline, or before it; UINT64_MAX: none */
    bool stopping;
};

static void ring(struct lease_desk *desk)
{
    (void)eventfd_write(desk->wake, 1);
}

/* On any thread, under a lock of the engine's (D3). */
static void on_ready(void *arg)
{
    struct lease_line *line = arg;
    atomic_store(&line->ready, true);
    ring(line->desk);
}

/* --- under the lock --- */

static void take_out(struct lease_desk *desk, struct lease_call *call)
{
    struct lease_line *line = call->line;
    assert(line);
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    else
        line->last = call->link;
    call->line = NULL;
    desk->calls--;
}

/* The call is over: its exchange goes on, as soon as the lock is not held (wake_done). */
static void finish(struct lease_desk *desk, struct lease_call *call, int status)
{
    take_out(desk, call);
    call->status = status;
    call->next = desk->done;
    desk->done = call;
}

/* Without the lock: an exchange may end here, and then its lease is given back, which takes it. */
static void wake(struct lease_desk *desk, struct exchange *x)
{
    pthread_mutex_unlock(&desk->lock);
    exchange_wake(x);
    exchange_let_go(x); /* the last touch: it may be gone now */
    pthread_mutex_lock(&desk->lock);
}

static void wake_done(struct lease_desk *desk)
{
    while (desk->done) {
        struct exchange *x = desk->done->x;
        desk->done = desk->done->next;
        wake(desk, x);
    }
    while (desk->due) {
        struct exchange *x = desk->due->x;
        desk->due = desk->due->next;
        wake(desk, x);
    }
}

/* Whether the client has closed its connection. While its exchange sleeps, nobody else looks at the socket. */
static bool has_gone(const struct lease_call *call)
{
    struct pollfd fd = {.fd = call->x->peer->fd, .events = POLLRDHUP};
    return poll(&fd, 1, 0) == 1 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

/* The first client of a line that is still there. */
static struct lease_call *first_there(struct lease_desk *desk, struct lease_line *line)
{
    while (line->first && has_gone(line->first))
        finish(desk, line->first, PAWL_ENOTFOUND);
    return line->first;
}

static void end_late_calls(struct lease_desk *desk, uint64_t now)
{
    for (struct lease_line *line = desk->lines; line; line = line->next)
        for (struct lease_call *call = line->first, *next; call; call = next) {
            next = call->next;
            if (call->deadline <= now)
                finish(desk, call, PAWL_ENOTFOUND);
            else if (call->deadline < desk->next)
                desk->next = call->deadline;
        }
}

static void end_timers(struct lease_desk *desk, uint64_t now)
{
    struct desk_timer **at = &desk->timers;
    while (*at) {
        struct desk_timer *timer = *at;
        if (timer->at > now) {
            desk->next = timer->at < desk->next ? timer->at : desk->next;
            at = &timer->next;
            continue;
        }
        *at = timer->next;
        timer->next = desk->due;
        desk->due = timer;
    }
}

static void end_what_is_late(struct lease_desk *desk)
{
    uint64_t now = server_now();
    if (now < desk->next)
        return;
    desk->next = UINT64_MAX;
    end_late_calls(desk, now);
    end_timers(desk, now);
}

/* --- leasing: the lock is not held while the engine is asked --- */

static struct lease_line *ready_line(struct lease_desk *desk)
{
    for (struct lease_line *line = desk->lines; line; line = line->next)
        if (line->first && atomic_load(&line->ready))
            return line;
    return NULL;
}

/* Give the lease to the first client of the line. False: there is none any more. The lease was acquired for the time
 * that the one before has asked for. */
static bool hand_over(struct lease_desk *desk, struct lease_line *line, const pawl_worker_lease *lease,
                      pawl_duration duration)
{
    struct lease_call *call = first_there(desk, line);
    if (!call || call->duration != duration)
        return false;
    call->lease = *lease;
    finish(desk, call, PAWL_OK);
    return true;
}

static void serve(struct lease_desk *desk, struct lease_line *line)
{
    struct lease_call *call = first_there(desk, line);
    if (!call)
        return;
    pawl_duration duration = call->duration;
    pawl_worker_lease lease;
    pawl_error error = {0};
    pthread_mutex_unlock(&desk->lock);
    atomic_store(&line->ready, false);
    pawl_worker_watch_arm(line->watch);
    int status = pawl_worker_acquire(desk->engine, line->projector, duration, 0, &lease, &error);
    pthread_mutex_lock(&desk->lock);
    if (status == PAWL_ENOTFOUND)
        return; /* until the engine says that there is something */
    atomic_store(&line->ready, true);
    if (status == PAWL_OK && hand_over(desk, line, &lease, duration))
        return;
    if (status == PAWL_OK) {
        pthread_mutex_unlock(&desk->lock);
        (void)pawl_worker_release(desk->engine, &lease, false, false, "its client has gone", &error);
        pawl_worker_lease_free(&lease);
        pthread_mutex_lock(&desk->lock);
        return;
    }
    call = first_there(desk, line);
    if (call) {
        call->error = error;
        finish(desk, call, status);
    }
}

static void release_given_back(struct lease_desk *desk)
{
    while (desk->back) {
        struct given_back *one = desk->back;
        pawl_error error;
        desk->back = one->next;
        pthread_mutex_unlock(&desk->lock);
        (void)pawl_worker_release(desk->engine, &one->lease, false, false, "its client has gone", &error);
        pawl_worker_lease_free(&one->lease);
        free(one);
        pthread_mutex_lock(&desk->lock);
    }
}

static void sleep_until_rung(struct lease_desk *desk)
{
    struct pollfd fd = {.fd = desk->wake, .events = POLLIN};
    eventfd_t count;
    uint64_t now = server_now(), next = desk->next;
    int timeout = -1;
    if (next != UINT64_MAX)
        timeout = next > now ? (int)((next - now) / PAWL_MILLISECOND) + 1 : 0;
    pthread_mutex_unlock(&desk->lock);
    if (poll(&fd, 1, timeout) == 1)
        (void)eventfd_read(desk->wake, &count);
    pthread_mutex_lock(&desk->lock);
}

static void *work(void *arg)
{
    struct lease_desk *desk = arg;
    struct lease_line *line;
    pthread_mutex_lock(&desk->lock);
    while (!desk->stopping || desk->back) {
        release_given_back(desk);
        end_what_is_late(desk);
        line = ready_line(desk);
        if (line)
            serve(desk, line);
        if (desk->done || desk->due)
            wake_done(desk);
        else if (line)
            continue;
        else if (!desk->stopping)
            sleep_until_rung(desk);
    }
    pthread_mutex_unlock(&desk->lock);
    return NULL;
}

/* --- what handlers call --- */

int lease_desk_new(pawl_engine *engine, struct lease_desk **ret_desk, pawl_error *error)
{
    struct lease_desk *desk = calloc(1, sizeof *desk);
    if (!desk)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for leases");
    desk->engine = engine;
    desk->next = UINT64_MAX;
    pthread_mutex_init(&desk->lock, NULL);
    desk->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int number = desk->wake < 0 ? errno : pthread_create(&desk->thread, NULL, work, desk);
    if (number == 0) {
        *ret_desk = desk;
        return PAWL_OK;
    }
    if (desk->wake >= 0)
        close(desk->wake);
    pthread_mutex_destroy(&desk->lock);
    free(desk);
    return pawl_error_errno(error, number, "cannot start a thread");
}

void lease_desk_free(struct lease_desk *desk)
{
    if (!desk)
        return;
    pthread_mutex_lock(&desk->lock);
    desk->stopping = true;
    pthread_mutex_unlock(&desk->lock);
    ring(desk);
    pthread_join(desk->thread, NULL);
    while (desk->lines) {
        struct lease_line *line = desk->lines;
        desk->lines = line->next;
        pawl_worker_watch_free(line->watch);
        free(line->projector);
        free(line);
    }
    close(desk->wake);
    pthread_mutex_destroy(&desk->lock);
    free(desk);
}

static int add_line(struct lease_desk *desk, const char *projector, struct lease_line **ret_line,
                    pawl_error *error)
{
    struct lease_line *line = desk->line_count < LINES_MAX ? calloc(1, sizeof *line) : NULL;
    char *name = line ? strdup(projector) : NULL;
    if (!name) {
        free(line);
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for a line of workers");
    }
    line->desk = desk;
    line->projector = name;
    line->last = &line->first;
    int status = pawl_worker_watch_new(desk->engine, projector, on_ready, line, &line->watch, error);
    if (status != PAWL_OK) {
        free(name);
        free(line);
        return status;
    }
    line->next = desk->lines;
    desk->lines = line;
    desk->line_count++;
    *ret_line = line;
    return PAWL_OK;
}

static int find_line(struct lease_desk *desk, const char *projector, struct lease_line **ret_line,
                     pawl_error *error)
{
    for (struct lease_line *line = desk->lines; line; line = line->next)
        if (strcmp(line->projector, projector) == 0) {
            *ret_line = line;
            return PAWL_OK;
        }
    return add_line(desk, projector, ret_line, error);
}

int lease_desk_join(struct lease_desk *desk, struct lease_call *call, pawl_error *error)
{
    struct lease_line *line = NULL;
    pthread_mutex_lock(&desk->lock);
    int status =
        desk->calls < LEASE_CALLS_MAX
            ? find_line(desk, call->projector, &line, error)
            : pawl_error_set(error, PAWL_EBUSY, "%d clients wait for a lease already", LEASE_CALLS_MAX);
    if (status == PAWL_OK && line) {
        exchange_hold(call->x);
        call->line = line;
        call->next = NULL;
        call->link = line->last;
        *line->last = call;
        line->last = &call->next;
        desk->calls++;
        desk->next = call->deadline < desk->next ? call->deadline : desk->next;
        atomic_store(&line->ready, true); /* look once, whatever was said before */
    }
    pthread_mutex_unlock(&desk->lock);
    if (status == PAWL_OK)
        ring(desk);
    return status;
}

void lease_desk_leave(struct lease_desk *desk, struct lease_call *call)
{
    pthread_mutex_lock(&desk->lock);
    bool there = call->line != NULL;
    if (there) {
        take_out(desk, call);
        call->status = PAWL_ENOTFOUND;
    }
    pthread_mutex_unlock(&desk->lock);
    if (there)
        exchange_let_go(call->x);
}

void lease_desk_give_back(struct lease_desk *desk, pawl_worker_lease *lease)
{
    struct given_back *one = malloc(sizeof *one);
    if (!one) {
        pawl_worker_lease_free(lease); /* it expires */
        return;
    }
    one->lease = *lease;
    *lease = (pawl_worker_lease){0};
    pthread_mutex_lock(&desk->lock);
    one->next = desk->back;
    desk->back = one;
    pthread_mutex_unlock(&desk->lock);
    ring(desk);
}

void lease_desk_wake_at(struct lease_desk *desk, struct desk_timer *timer)
{
    exchange_hold(timer->x);
    pthread_mutex_lock(&desk->lock);
    timer->next = desk->timers;
    desk->timers = timer;
    desk->next = timer->at < desk->next ? timer->at : desk->next;
    pthread_mutex_unlock(&desk->lock);
    ring(desk);
}

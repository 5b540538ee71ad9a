#include "cli/talk/follow.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/talk/feed.h"
#include "cli/talk/remote.h"

#define AGAIN_MS  1000                /* between two attempts to reach the server */
#define EVENT_MAX ((size_t)256 << 20) /* bytes of a message */

struct follow {
    struct remote *remote;
    struct event_range range; /* from: behind the last event that was handed out */
    session_line line;
    void *arg;
    int bell;
    pthread_t thread;
    int stop; /* eventfd: end it */
    int status;
    pawl_error error;

    bool reached; /* the server has answered at least once */
    bool told;    /* that the connection was lost */
    bool ended;   /* line wants no more, or the server told a failure */

    /* of the message that is coming */
    struct buffer text; /* what has come and is not taken yet */
    struct buffer data;
    uint64_t id; /* 0: it has none */
    bool is_error;
};

/* --- messages --- */

static void take_failure(struct follow *f)
{
    json_t *tree = json_loadb(f->data.data, f->data.size, 0, NULL);
    f->status = remote_error(json_object_get(tree, "error"), &f->error);
    f->ended = true;
    json_decref(tree);
}

static void take_message(struct follow *f)
{
    if (f->is_error)
        take_failure(f);
    else if (f->data.size > 0 && f->id > 0) {
        f->ended = !f->line(f->arg, (pawl_bytes){f->data.data, f->data.size});
        f->range.from = f->id + 1;
    }
    f->data.size = 0;
    f->id = 0;
    f->is_error = false;
}

/* The value of a field, without the blank before it. NULL: it is another field. */
static const char *value_of(const char *line, size_t *size, const char *name)
{
    size_t length = strlen(name);
    if (*size <= length || memcmp(line, name, length) != 0 || line[length] != ':')
        return NULL;
    size_t skip = length + 1 + (*size > length + 1 && line[length + 1] == ' ');
    *size -= skip;
    return line + skip;
}

static bool take_field(struct follow *f, const char *line, size_t size)
{
    size_t length = size;
    const char *value = value_of(line, &length, "data");
    if (value) {
        if (f->data.size + length > EVENT_MAX || !buffer_reserve(&f->data, length + 1))
            return false;
        memcpy(f->data.data + f->data.size, value, length);
        f->data.size += length;
    }
    length = size;
    value = value_of(line, &length, "id");
    if (value)
        f->id = strtoull(value, NULL, 10); /* a newline is behind it */
    length = size;
    value = value_of(line, &length, "event");
    if (value)
        f->is_error = length == 5 && memcmp(value, "error", 5) == 0;
    return true;
}

static bool take(void *arg, const char *bytes, size_t size)
{
    struct follow *f = arg;
    f->reached = true;
    f->told = false;
    if (f->text.size + size > EVENT_MAX || !buffer_reserve(&f->text, size)) {
        f->status = pawl_error_set(&f->error, PAWL_ETOOBIG, "a message of the server is too long");
        f->ended = true;
        return false;
    }
    memcpy(f->text.data + f->text.size, bytes, size);
    f->text.size += size;
    size_t at = 0;
    const char *end;
    while (!f->ended && (end = memchr(f->text.data + at, '\n', f->text.size - at))) {
        const char *line = f->text.data + at;
        size_t length = (size_t)(end - line);
        if (length == 0)
            take_message(f);
        else if (!take_field(f, line, length)) {
            f->status = pawl_error_set(&f->error, PAWL_ETOOBIG, "an event is too long");
            f->ended = true;
        }
        at += length + 1;
    }
    memmove(f->text.data, f->text.data + at, f->text.size - at);
    f->text.size -= at;
    return !f->ended;
}

/* --- the thread --- */

/* Whether the same request may succeed later, because the server comes back. */
static bool may_come_back(const struct follow *f, int status)
{
    return f->reached
           && (status == PAWL_OK || status == PAWL_EIO || status == PAWL_EBUSY || status == PAWL_ECLOSED
               || status == PAWL_ECANCELED);
}

/* False: it was stopped. */
static bool pause_before_again(struct follow *f)
{
    struct pollfd fd = {.fd = f->stop, .events = POLLIN};
    if (!f->told) {
        fflush(stdout);
        fprintf(stderr, "pawl: lost the connection to %s; trying again\n", remote_name(f->remote));
    }
    f->told = true;
    return poll(&fd, 1, AGAIN_MS) == 0;
}

static bool was_stopped(const struct follow *f)
{
    struct pollfd fd = {.fd = f->stop, .events = POLLIN};
    return poll(&fd, 1, 0) != 0;
}

static void *work(void *arg)
{
    struct follow *f = arg;
    for (;;) {
        struct target target;
        pawl_error error = {0};
        f->text.size = f->data.size = 0;
        f->id = 0;
        f->is_error = false;
        events_target(&target, &f->range);
        target_add_number(&target, "from", f->range.from);
        const struct remote_call call = {
            .method = "GET", .target = &target, .accept = "text/event-stream", .take = take, .arg = f};
        int status = remote_ask(f->remote, &call, NULL, &error);
        if (f->ended || was_stopped(f))
            break;
        if (!may_come_back(f, status)) {
            f->status = events_failure(&f->range, status, &error);
            f->error = error;
            break;
        }
        if (!pause_before_again(f))
            break;
    }
    feed_ring(f->bell);
    return NULL;
}

/* --- from outside --- */

static void release(struct follow *f)
{
    if (f->stop >= 0)
        close(f->stop);
    free(f->text.data);
    free(f->data.data);
    free(f);
}

int follow_start(struct session *session, const struct event_range *range, session_line line, void *arg,
                 int bell, struct follow **ret_follow, pawl_error *error)
{
    struct follow *f = calloc(1, sizeof *f);
    if (!f)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory to follow events");
    *f = (struct follow){.remote = session->remote,
                         .range = *range,
                         .line = line,
                         .arg = arg,
                         .bell = bell,
                         .stop = eventfd(0, EFD_CLOEXEC)};
    int number = f->stop < 0 ? errno : pthread_create(&f->thread, NULL, work, f);
    if (number != 0) {
        release(f);
        return pawl_error_errno(error, number, "cannot follow events");
    }
    *ret_follow = f;
    return PAWL_OK;
}

int follow_stop(struct follow *f, pawl_error *error)
{
    feed_ring(f->stop);
    remote_cancel(f->remote);
    pthread_join(f->thread, NULL);
    int status = f->status;
    if (status != PAWL_OK)
        *error = f->error;
    release(f);
    return status;
}

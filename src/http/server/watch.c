/* http/server/watch.c: a thread that cuts connections whose request does not come in time, or will never come.
 *
 * libmicrohttpd closes a connection on which nothing happens. One on which a byte comes now and then would stay
 * for ever, and many of those would use up all connections. */
#include <errno.h>
#include <sys/socket.h>
#include <time.h>

#include "http/server/server.h"

#define LOOK_EVERY    PAWL_SECOND
#define RECEIVE_BYTES ((size_t)16 << 10) /* that a client sends in a second, at least */

void watch_receiving(struct exchange *x)
{
    pawl_duration more = (pawl_duration)(x->received / RECEIVE_BYTES) * PAWL_SECOND;
    x->peer->deadline = x->began + x->allowed + more;
}

/* Whether the client has ended its side, and all that it sent was read. libmicrohttpd does not always notice: it is
 * told of an end only if that comes after the last read. */
static bool has_ended(const struct peer *peer)
{
    char byte;
    return recv(peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* An end is believed at the second look, if nothing has happened in between: at the first, its request may just have
 * been read. The lock keeps the descriptor from being closed and given to another connection meanwhile. */
static void look_at(struct peer *peer, uint64_t now)
{
    uint64_t deadline = peer->deadline;
    bool ended = deadline && has_ended(peer);
    if (deadline && (now >= deadline || (ended && peer->ended == deadline))) {
        shutdown(peer->fd, SHUT_RDWR);
        peer->deadline = 0;
    }
    peer->ended = ended ? deadline : 0;
}

static void look_at_all(struct pawl_server *server, uint64_t now)
{
    for (struct peer *peer = server->peers; peer; peer = peer->next)
        look_at(peer, now);
}

static void *watch(void *arg)
{
    struct pawl_server *server = arg;
    pthread_mutex_lock(&server->lock);
    while (!server->unwatch) {
        uint64_t now = server_now();
        struct timespec until = {.tv_sec = (time_t)((now + LOOK_EVERY) / PAWL_SECOND),
                                 .tv_nsec = (long)((now + LOOK_EVERY) % PAWL_SECOND)};
        look_at_all(server, now);
        pthread_cond_timedwait(&server->changed, &server->lock, &until);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

int watch_start(struct pawl_server *server, pawl_error *error)
{
    int number = pthread_create(&server->watcher, NULL, watch, server);
    if (number != 0)
        return pawl_error_errno(error, number, "cannot start a thread");
    server->watching = true;
    return PAWL_OK;
}

void watch_stop(struct pawl_server *server)
{
    if (!server->watching)
        return;
    pthread_mutex_lock(&server->lock);
    server->unwatch = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->watcher, NULL);
    server->watching = false;
}

void watch_cut_all(struct pawl_server *server)
{
    pthread_mutex_lock(&server->lock);
    for (struct peer *peer = server->peers; peer; peer = peer->next)
        shutdown(peer->fd, SHUT_RDWR);
    pthread_mutex_unlock(&server->lock);
}

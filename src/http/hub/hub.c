#include "http/hub/hub.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "http/hub/event_cursor.h"
#include "http/hub/impl.h"

#define LOOK_EVERY  (250 * PAWL_MILLISECOND)
#define PAUSE_EACH  (25 * PAWL_MICROSECOND) /* between two rounds, for each client that was woken */
#define BOARD_EVERY PAWL_SECOND
#define SEND_BYTES  (128 << 10) /* that the kernel keeps for a client: a slow one is noticed earlier */
#define HEAD_ROOM   64

/* --- pages --- */

static void load_next(void *arg);

static void submit_loader(struct hub *hub)
{
    if (!hub->wanting || hub->loaders == hub->loaders_max)
        return;
    if (pool_submit(hub->server->pool, (struct pool_job){load_next, hub}) == PAWL_OK)
        hub->loaders++;
}

void hub_want_page(struct hub *hub, struct client *client)
{
    client->wanting = true;
    client->next_wanting = NULL;
    *hub->wanting_end = client;
    hub->wanting_end = &client->next_wanting;
    submit_loader(hub);
}

static void unwant(struct hub *hub, struct client *client)
{
    struct client **at = &hub->wanting;
    while (*at != client)
        at = &(*at)->next_wanting;
    *at = client->next_wanting;
    if (hub->wanting_end == &client->next_wanting)
        hub->wanting_end = at;
    client->wanting = false;
}

/* The first client of the queue that is still there, held. */
static struct client *take_wanting(struct hub *hub)
{
    while (hub->wanting) {
        struct client *client = hub->wanting;
        unwant(hub, client);
        if (!exchange_try_hold(client->x))
            continue;
        client->loading = true;
        return client;
    }
    return NULL;
}

/* On the pool: a page for one client; then others have their turn, before the next one is read. */
static void load_next(void *arg)
{
    struct hub *hub = arg;
    pthread_mutex_lock(&hub->lock);
    struct client *client = take_wanting(hub);
    pthread_mutex_unlock(&hub->lock);
    if (client)
        client_load(client);
    pthread_mutex_lock(&hub->lock);
    if (client) {
        client->loading = false;
        client->idle = false;
        client->awake_from = server_now();
    }
    hub->loaders--;
    submit_loader(hub);
    pthread_mutex_unlock(&hub->lock);
    if (client) {
        struct exchange *x = client->x;
        exchange_wake(x);
        exchange_let_go(x);
    }
}

/* --- figures, for all clients at once --- */

static void make_board(void *arg)
{
    struct hub *hub = arg;
    pawl_text text;
    struct message *message = NULL;
    if (pawl_figures_json(hub->server->engine, &text, NULL) == PAWL_OK) {
        message = message_new((pawl_bytes){NULL, 0}, (pawl_bytes){text.data, text.size});
        pawl_text_free(&text);
    }
    pthread_mutex_lock(&hub->lock);
    hub->board_loading = false;
    if (message) {
        message_let_go(hub->board);
        hub->board = message;
        hub->board_number++;
        hub->fresh = true;
        pthread_cond_signal(&hub->changed);
    }
    pthread_mutex_unlock(&hub->lock);
}

static void renew_board(struct hub *hub)
{
    if (hub->board_clients > 0 && !hub->board_loading)
        hub->board_loading = pool_submit(hub->server->pool, (struct pool_job){make_board, hub}) == PAWL_OK;
}

/* --- the thread that wakes clients --- */

static bool has_something(struct client *client)
{
    struct message *message;
    uint32_t index;
    if (client->wanting || client->loading)
        return false;
    return client->page || client->ended || client_next(client, &message, &index) != NEXT_NOTHING;
}

static void cut(struct hub *hub, struct client *client)
{
    client->cut = true;
    hub->figures.cut++;
    exchange_cut(client->x);
}

/* The exchanges to wake, held. Clients that are not idle find what there is by themselves. */
static size_t gather(struct hub *hub, uint64_t now)
{
    size_t count = 0;
    pawl_duration stalled = hub->server->options.limits.stalled;
    for (struct client *client = hub->clients; client; client = client->next_client) {
        if (!client->idle) {
            if (!client->loading && !client->wanting && !client->cut && now > client->awake_from + stalled)
                cut(hub, client);
            continue;
        }
        bool beat = now - client->said_at >= hub->beat;
        if ((!beat && !has_something(client)) || count == hub->woken_room || !exchange_try_hold(client->x))
            continue;
        client->beat |= beat;
        client->idle = false;
        client->awake_from = now;
        hub->woken[count++] = client->x;
    }
    return count;
}

static void wait_until(struct hub *hub, uint64_t until, bool for_fresh)
{
    struct timespec end = {.tv_sec = (time_t)(until / PAWL_SECOND), .tv_nsec = (long)(until % PAWL_SECOND)};
    int waited = 0;
    while (!hub->stop && waited == 0 && !(for_fresh && hub->fresh))
        waited = pthread_cond_timedwait(&hub->changed, &hub->lock, &end);
}

static void *wake_clients(void *arg)
{
    struct hub *hub = arg;
    uint64_t board_due = 0;
    pthread_mutex_lock(&hub->lock);
    while (!hub->stop) {
        uint64_t now = server_now();
        if (now >= board_due) {
            renew_board(hub);
            board_due = now + BOARD_EVERY;
        }
        hub->fresh = false;
        size_t count = gather(hub, now);
        submit_loader(hub);
        pthread_mutex_unlock(&hub->lock);
        for (size_t i = 0; i < count; i++) {
            exchange_wake(hub->woken[i]);
            exchange_let_go(hub->woken[i]);
        }
        pthread_mutex_lock(&hub->lock);
        pawl_duration pause = count * PAUSE_EACH;
        wait_until(hub, server_now() + (pause < HUB_PAUSE_MAX ? pause : HUB_PAUSE_MAX), false);
        wait_until(hub, now + LOOK_EVERY, true);
    }
    pthread_mutex_unlock(&hub->lock);
    return NULL;
}

/* --- clients --- */

static void leave(void *state)
{
    struct client *client = state;
    struct hub *hub = client->hub;
    pthread_mutex_lock(&hub->lock);
    if (client->wanting)
        unwant(hub, client);
    if (client->link) {
        *client->link = client->next_client;
        if (client->next_client)
            client->next_client->link = client->link;
        hub->figures.clients--;
        hub->board_clients -= client->kind == HUB_FIGURES;
        for (uint32_t i = 0; i < client->partitions; i++)
            hub->channels[client->first_partition + i].clients--;
    }
    pthread_mutex_unlock(&hub->lock);
    client_free(client);
}

static struct client *new_client(struct hub *hub, struct exchange *x, const struct hub_wish *wish)
{
    struct client *client = calloc(1, sizeof *client);
    if (!client) {
        free(wish->next);
        return NULL;
    }
    client->hub = hub;
    client->x = x;
    client->kind = wish->kind;
    client->wsid = wish->wsid;
    client->workspace_next = wish->from;
    client->first_partition = wish->kind == HUB_EVERY ? 0 : wish->partition;
    client->partitions = wish->kind == HUB_FIGURES ? 0 : wish->kind == HUB_EVERY ? hub->partitions : 1;
    client->left = wish->limit ? wish->limit : UINT64_MAX;
    client->version = UINT64_MAX;
    client->next = wish->next;
    client->broken = calloc(client->partitions + 1, sizeof *client->broken);
    client->head = malloc(HEAD_ROOM + (wish->kind == HUB_EVERY ? event_cursor_room(hub->partitions) : 0));
    client->commands = wish->commands ? strdup(wish->commands) : NULL;
    if (!client->next)
        client->next = calloc(client->partitions + 1, sizeof *client->next);
    if (client->next && wish->kind == HUB_PARTITION)
        client->next[0] = wish->from;
    if (!client->broken || !client->head || !client->next || (wish->commands && !client->commands)) {
        client_free(client);
        return NULL;
    }
    return client;
}

static void join(struct hub *hub, struct client *client)
{
    pthread_mutex_lock(&hub->lock);
    client->said_at = client->awake_from = server_now();
    client->next_client = hub->clients;
    client->link = &hub->clients;
    if (client->next_client)
        client->next_client->link = &client->next_client;
    hub->clients = client;
    hub->figures.clients++;
    for (uint32_t i = 0; i < client->partitions; i++) {
        hub->channels[client->first_partition + i].clients++;
        client->broken[i] = hub->channels[client->first_partition + i].broken;
    }
    bool first = client->kind == HUB_FIGURES && hub->board_clients++ == 0;
    if (first) {
        message_let_go(hub->board); /* it may be old */
        hub->board = NULL;
        renew_board(hub);
    }
    pthread_mutex_unlock(&hub->lock);
}

/* A client whose machine does not answer is found by the kernel; what it holds for a slow one is bounded. The kernel
 * would also end a client that takes nothing. It has four times as long for that, so that gather() finds such a
 * client first, and counts it. */
static void set_socket(const struct hub *hub, int fd)
{
    unsigned ms = (unsigned)(hub->server->options.limits.stalled / PAWL_MILLISECOND) * 4;
    int bytes = SEND_BYTES;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms); /* a Unix socket has none */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

void hub_follow(struct hub *hub, struct exchange *x, const struct hub_wish *wish)
{
    static const char hello[] = "retry: 1000\n\n";
    pawl_error error = {0};
    struct client *client = new_client(hub, x, wish);
    if (!client || !client_page_add(client, (pawl_bytes){hello, sizeof hello - 1})) {
        client_free(client);
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for a stream");
        return;
    }
    exchange_keep(x, client, leave);
    join(hub, client);
    for (uint32_t i = 0; i < client->partitions; i++)
        if (channel_start(&hub->channels[client->first_partition + i], &error) != PAWL_OK) {
            exchange_fail(x, &error);
            return;
        }
    set_socket(hub, x->peer->fd);
    exchange_stream(x, TYPE_SSE, client_read);
}

void hub_figures_get(struct hub *hub, struct hub_figures *ret_figures)
{
    pthread_mutex_lock(&hub->lock);
    *ret_figures = hub->figures;
    pthread_mutex_unlock(&hub->lock);
}

/* --- life --- */

static void init_locks(struct hub *hub)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&hub->starting, NULL);
    pthread_mutex_init(&hub->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&hub->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

int hub_new(struct pawl_server *server, struct hub **ret_hub, pawl_error *error)
{
    const pawl_serve_limits *limits = &server->options.limits;
    struct hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for a server");
    init_locks(hub);
    hub->server = server;
    hub->partitions = pawl_partitions(server->engine);
    hub->beat = limits->stalled / 2 < HUB_BEAT ? limits->stalled / 2 : HUB_BEAT;
    hub->wanting_end = &hub->wanting;
    hub->loaders_max = limits->waiting_threads > 1 ? limits->waiting_threads / 2 : 1;
    hub->woken_room = limits->streams;
    hub->channels = calloc(hub->partitions, sizeof *hub->channels);
    hub->woken = calloc(hub->woken_room, sizeof *hub->woken);
    if (!hub->channels || !hub->woken) {
        hub_free(hub);
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for a server");
    }
    for (uint32_t i = 0; i < hub->partitions; i++)
        hub->channels[i] = (struct channel){.hub = hub, .partition = (uint16_t)i, .from = 1, .next = 1};
    int number = pthread_create(&hub->thread, NULL, wake_clients, hub);
    if (number != 0) {
        hub_free(hub);
        return pawl_error_errno(error, number, "cannot start a thread");
    }
    hub->started = true;
    *ret_hub = hub;
    return PAWL_OK;
}

void hub_stop(struct hub *hub)
{
    if (!hub || !hub->started)
        return;
    pthread_mutex_lock(&hub->lock);
    hub->stop = true;
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
    pthread_join(hub->thread, NULL);
    hub->started = false;
}

void hub_free(struct hub *hub)
{
    if (!hub)
        return;
    hub_stop(hub);
    for (uint32_t i = 0; hub->channels && i < hub->partitions; i++)
        channel_release(&hub->channels[i]);
    message_let_go(hub->board);
    free(hub->channels);
    free(hub->woken);
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->lock);
    pthread_mutex_destroy(&hub->starting);
    free(hub);
}

/* http/server/server.c: the life of a server, and what libmicrohttpd calls. */
#include "http/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTEN_DEFAULT    "127.0.0.1:7295"
#define PEM_BYTES_MAX     ((size_t)1 << 20)
#define DISCARD_BYTES_MAX ((size_t)256 << 10)
#define SECONDS(duration) ((unsigned)(((duration) + PAWL_SECOND - 1) / PAWL_SECOND))

/* --- what libmicrohttpd calls --- */

PAWL_PRINTF(2, 0) static void on_log(void *arg, const char *format, va_list arguments)
{
    struct pawl_server *server = arg;
    char words[256];
    vsnprintf(words, sizeof words, format, arguments);
    words[strcspn(words, "\r\n")] = '\0';
    if (!server->started) {
        pthread_mutex_lock(&server->lock);
        snprintf(server->words, sizeof server->words, "%s", words);
        pthread_mutex_unlock(&server->lock);
    }
    server_log(server, PAWL_LOG_DEBUG, "http", json_pack("{s:s}", "words", words));
}

static void add_peer(struct pawl_server *server, struct peer *peer)
{
    pthread_mutex_lock(&server->lock);
    peer->next = server->peers;
    peer->link = &server->peers;
    if (peer->next)
        peer->next->link = &peer->next;
    server->peers = peer;
    pthread_mutex_unlock(&server->lock);
}

static void remove_peer(struct pawl_server *server, struct peer *peer)
{
    pthread_mutex_lock(&server->lock);
    *peer->link = peer->next;
    if (peer->next)
        peer->next->link = peer->link;
    pthread_mutex_unlock(&server->lock);
    free(peer);
}

static uint64_t idle_deadline(const struct pawl_server *server)
{
    return server_now() + server->options.limits.idle + server->options.limits.receive;
}

static void on_connection(struct pawl_server *server, struct MHD_Connection *connection, void **context,
                          bool began, bool trusted)
{
    if (!began) {
        if (*context)
            remove_peer(server, *context);
        *context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct peer *peer = info ? calloc(1, sizeof *peer) : NULL;
    *context = peer;
    if (!peer)
        return;
    peer->server = server;
    peer->fd = info->connect_fd;
    peer->trusted = trusted;
    peer->deadline = idle_deadline(server);
    add_peer(server, peer);
}

static void on_tcp_connection(void *arg, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode code)
{
    on_connection(arg, connection, context, code == MHD_CONNECTION_NOTIFY_STARTED, false);
}

static void on_unix_connection(void *arg, struct MHD_Connection *connection, void **context,
                               enum MHD_ConnectionNotificationCode code)
{
    on_connection(arg, connection, context, code == MHD_CONNECTION_NOTIFY_STARTED, true);
}

/* The request line is there. The target comes as it was sent, and is decoded here only (http/exchange/target.h). */
static void *on_target(void *arg, const char *target, struct MHD_Connection *connection)
{
    struct pawl_server *server = arg;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct peer *peer = info ? info->socket_context : NULL;
    if (!peer)
        return NULL;
    struct exchange *x = exchange_new(server, connection, peer, target);
    if (!x)
        return NULL;
    x->allowed = server->options.limits.receive;
    watch_receiving(x);
    return x;
}

static size_t leave_encoded(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg, (void)connection;
    return strlen(text);
}

/* An answer that is sent before the body was read ends the connection, and the kernel then resets it if there is
 * something to read: the client may never see the answer. So a small body is read first. */
static bool must_discard(const struct exchange *x)
{
    const char *length = exchange_header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t size = 0;
    if (exchange_header(x, MHD_HTTP_HEADER_EXPECT))
        return false;
    return !length || target_number(length, 0, DISCARD_BYTES_MAX, "", &size, NULL) == PAWL_OK;
}

static enum MHD_Result begin(struct exchange *x)
{
    dispatch_begin(x);
    if (!x->answered) {
        x->phase = PHASE_BODY;
        return MHD_YES;
    }
    if (!must_discard(x))
        return answer_settle(x);
    x->phase = PHASE_DISCARD;
    return MHD_YES;
}

static enum MHD_Result discard(struct exchange *x, size_t *size)
{
    x->received += *size;
    if (*size == 0) {
        x->peer->deadline = 0;
        return answer_settle(x);
    }
    *size = 0;
    return x->received <= DISCARD_BYTES_MAX ? MHD_YES : MHD_NO;
}

static void keep_body(struct exchange *x, const char *data, size_t size)
{
    size_t most = x->server->options.limits.body_bytes;
    if (size > most - x->body_size) {
        exchange_refuse(x, HTTP_TOO_LARGE, PAWL_ETOOBIG, "a body has at most %zu bytes", most);
        return;
    }
    if (x->body_room - x->body_size < size + 1) {
        size_t room = x->body_room ? x->body_room : 1024;
        while (room - x->body_size < size + 1)
            room *= 2;
        char *more = realloc(x->body, room);
        if (!more) {
            exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for the body");
            return;
        }
        x->body = more;
        x->body_room = room;
    }
    memcpy(x->body + x->body_size, data, size);
    x->body_size += size;
    x->body[x->body_size] = '\0';
}

/* True: the connection sleeps, and *size says how much is left. */
static bool hand_on(struct exchange *x, const char *data, size_t *size)
{
    size_t used = 0;
    for (;;) {
        used += x->take(x, data + used, *size - used);
        if (used == *size || x->answered)
            return false;
        x->slept = server_now();
        x->peer->deadline = 0;
        if (exchange_sleep(x)) {
            *size -= used;
            return true;
        }
    }
}

static enum MHD_Result receive(struct exchange *x, const char *data, size_t *size)
{
    if (*size == 0) {
        x->peer->deadline = 0;
        if (!x->answered)
            dispatch_run(x);
        return answer_settle(x);
    }
    if (x->slept)
        x->allowed += server_now() - x->slept;
    x->slept = 0;
    size_t before = *size;
    if (!x->take)
        keep_body(x, data, *size);
    else if (hand_on(x, data, size)) {
        x->received += before - *size;
        return MHD_YES;
    }
    x->received += *size;
    *size = 0;
    watch_receiving(x);
    if (x->answered) {
        x->phase = PHASE_DISCARD;
        x->received = 0;
    }
    return MHD_YES;
}

static enum MHD_Result on_access(void *arg, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data, size_t *size,
                                 void **context)
{
    struct exchange *x = *context;
    (void)arg, (void)connection, (void)url, (void)version;
    if (!x)
        return MHD_NO;
    x->method = method;
    switch (x->phase) {
    case PHASE_NEW: return begin(x);
    case PHASE_BODY: return receive(x, data, size);
    case PHASE_DISCARD: return discard(x, size);
    case PHASE_RUN: return answer_woken(x);
    default: return MHD_NO;
    }
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct exchange *x = *context;
    (void)arg, (void)connection;
    *context = NULL;
    if (!x)
        return;
    x->peer->deadline = idle_deadline(x->server);
    x->sent = code == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    exchange_gone(x);
}

/* --- starting --- */

/* While the server stops, nobody new comes in. MHD_quiesce_daemon is meant for that, but it was seen to abort the process
 * ("Failed to remove listen FD from epoll set"): probably the daemon's own thread had removed the socket already. */
static enum MHD_Result on_connect(void *arg, const struct sockaddr *address, socklen_t size)
{
    const struct pawl_server *server = arg;
    (void)address;
    (void)size;
    return atomic_load_explicit(&server->stopping, memory_order_acquire) ? MHD_NO : MHD_YES;
}

static struct MHD_Daemon *start_daemon(struct pawl_server *server, int fd, bool trusted)
{
    const pawl_serve_limits *limits = &server->options.limits;
    bool tls = server->tls && !trusted;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG
                     | (tls ? MHD_USE_TLS : 0);
    struct MHD_OptionItem more[4] = {{MHD_OPTION_END, 0, NULL}};
    size_t count = 0;
    if (!trusted && limits->threads > 1)
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)limits->threads, NULL};
    if (tls) {
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, server->cert};
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, server->key};
    }
    more[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    int listening = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the daemon closes it; the server's own one stays */
    if (listening < 0)
        return NULL;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        flags, 0, on_connect, server, on_access, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, server,
        MHD_OPTION_LISTEN_SOCKET, listening, MHD_OPTION_NOTIFY_CONNECTION,
        trusted ? on_unix_connection : on_tcp_connection, server, MHD_OPTION_URI_LOG_CALLBACK, on_target,
        server, MHD_OPTION_UNESCAPE_CALLBACK, leave_encoded, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)limits->connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        limits->header_bytes, MHD_OPTION_CONNECTION_TIMEOUT, SECONDS(limits->idle),
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
    if (!daemon && fcntl(listening, F_GETFD) >= 0)
        close(listening);
    return daemon;
}

/* Reads a small file whole, with a 0 behind it. */
static int read_pem(const char *path, char **ret_text, pawl_error *error)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return pawl_error_errno(error, errno, "cannot open %s", path);
    char *text = calloc(1, PEM_BYTES_MAX + 1);
    ssize_t size = text && fstat(fd, &info) == 0 ? read(fd, text, PEM_BYTES_MAX) : -1;
    close(fd);
    if (size <= 0) {
        free(text);
        return pawl_error_set(error, PAWL_EINVAL, "cannot read %s", path);
    }
    *ret_text = text;
    return PAWL_OK;
}

static int read_tls(struct pawl_server *server, pawl_error *error)
{
    const pawl_serve_options *options = &server->options;
    if (!options->tls_cert && !options->tls_key)
        return PAWL_OK;
    if (!options->tls_cert || !options->tls_key)
        return pawl_error_set(error, PAWL_EINVAL, "a certificate and its key are given together, or neither");
    server->tls = true;
    int status = read_pem(options->tls_cert, &server->cert, error);
    return status == PAWL_OK ? read_pem(options->tls_key, &server->key, error) : status;
}

static int bounded(const char *name, uint64_t value, uint64_t least, uint64_t most, pawl_error *error)
{
    if (value >= least && value <= most)
        return PAWL_OK;
    return pawl_error_set(error, PAWL_EINVAL, "limits.%s is %llu: it must be from %llu to %llu", name,
                          (unsigned long long)value, (unsigned long long)least, (unsigned long long)most);
}

static int set_limits(pawl_serve_limits *l, pawl_error *error)
{
#define DEFAULT(member, value) l->member = l->member ? l->member : (value)
    DEFAULT(threads, 2);
    DEFAULT(waiting_threads, 8);
    DEFAULT(waiting, 256);
    DEFAULT(connections, 4096);
    DEFAULT(streams, 2048);
    DEFAULT(commands, 4096);
    DEFAULT(batch_lines, 65536);
    DEFAULT(header_bytes, (size_t)16 << 10);
    DEFAULT(body_bytes, (size_t)16 << 20);
    DEFAULT(idle, 60 * PAWL_SECOND);
    DEFAULT(receive, 30 * PAWL_SECOND);
    DEFAULT(drain, 30 * PAWL_SECOND);
    DEFAULT(stalled, 30 * PAWL_SECOND);
#undef DEFAULT
    const struct {
        const char *name;
        uint64_t value, least, most;
    } bounds[] = {
        {"threads", l->threads, 1, 64},
        {"waiting_threads", l->waiting_threads, 1, 256},
        {"waiting", l->waiting, 1, 65536},
        {"connections", l->connections, l->threads, 1000000},
        {"commands", l->commands, 1, 65536},
        {"header_bytes", l->header_bytes, 4096, (size_t)1 << 20},
        {"body_bytes", l->body_bytes, 1024, PAWL_REQUEST_JSON_MAX},
        {"idle", l->idle, 1, 3600 * PAWL_SECOND},
        {"receive", l->receive, 1, 3600 * PAWL_SECOND},
        {"drain", l->drain, 1, 3600 * PAWL_SECOND},
        {"stalled", l->stalled, PAWL_SECOND, 3600 * PAWL_SECOND},
        {"streams", l->streams, 1, 1000000},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        int status = bounded(bounds[i].name, bounds[i].value, bounds[i].least, bounds[i].most, error);
        if (status != PAWL_OK)
            return status;
    }
    return PAWL_OK;
}

/* The names that clients may call it by: those of the options, and the one that it listens on. */
static int copy_hosts(struct pawl_server *server, pawl_error *error)
{
    const pawl_serve_options *options = &server->options;
    size_t size = strcspn(options->listen, ":");
    server->hosts = calloc(options->host_count + 1, sizeof server->hosts[0]);
    if (!server->hosts)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for a server");
    for (size_t i = 0; i <= options->host_count; i++) {
        char *name = i < options->host_count ? strdup(options->hosts[i]) : strndup(options->listen, size);
        if (!name)
            return pawl_error_set(error, PAWL_ENOMEM, "no memory for a server");
        server->hosts[server->host_count++] = name;
    }
    return PAWL_OK;
}

static int name_socket(struct pawl_server *server, pawl_error *error)
{
    const char *asked = server->options.socket;
    int size = 0;
    if (asked)
        size = snprintf(server->socket, sizeof server->socket, "%s", asked);
    else if (pawl_engine_writes(server->engine))
        size = snprintf(server->socket, sizeof server->socket, "%s/pawl.sock", pawl_engine_dir(server->engine));
    if (size < 0 || (size_t)size >= sizeof server->socket)
        return pawl_error_set(error, PAWL_ETOOBIG, "socket: its path is too long");
    return PAWL_OK;
}

static int set_options(struct pawl_server *server, const pawl_serve_options *options, pawl_error *error)
{
    if (options)
        server->options = *options;
    pawl_serve_options *o = &server->options;
    o->listen = o->listen ? o->listen : LISTEN_DEFAULT;
    o->slow = o->slow ? o->slow : PAWL_SECOND;
    o->level = o->level ? o->level : PAWL_LOG_INFO;
    int status = set_limits(&o->limits, error);
    if (status == PAWL_OK)
        status = copy_hosts(server, error);
    if (status == PAWL_OK)
        status = name_socket(server, error);
    return status == PAWL_OK ? read_tls(server, error) : status;
}

/* Why a daemon did not start, in libmicrohttpd's words. */
static int not_started(struct pawl_server *server, pawl_error *error)
{
    pthread_mutex_lock(&server->lock);
    int status = pawl_error_set(error, server->tls ? PAWL_EINVAL : PAWL_EIO, "cannot start the server: %s",
                                server->words[0] ? server->words : "no reason was given");
    pthread_mutex_unlock(&server->lock);
    return status;
}

static int start_daemons(struct pawl_server *server, pawl_error *error)
{
    if (server->tcp_fd >= 0) {
        server->tcp = start_daemon(server, server->tcp_fd, false);
        if (!server->tcp)
            return not_started(server, error);
    }
    if (server->unix_fd >= 0) {
        server->local = start_daemon(server, server->unix_fd, true);
        if (!server->local)
            return not_started(server, error);
    }
    return PAWL_OK;
}

static int start(struct pawl_server *server, const pawl_serve_options *options, pawl_error *error)
{
    const pawl_serve_limits *limits = &server->options.limits;
    int status = set_options(server, options, error);
    if (status == PAWL_OK && server->options.listen[0])
        status = listen_tcp(server, error);
    if (status == PAWL_OK && server->socket[0])
        status = listen_unix(server, error);
    if (status == PAWL_OK)
        status = pool_new(limits->waiting_threads, limits->waiting, &server->pool, error);
    if (status == PAWL_OK)
        status = requests_new(server->engine, limits->commands, &server->requests, error);
    if (status == PAWL_OK)
        status = hub_new(server, &server->hub, error);
    if (status == PAWL_OK)
        status = lease_desk_new(server->engine, &server->leases, error);
    if (status == PAWL_OK)
        status =
            jobs_new(server->engine, server->options.program, server->options.backups, &server->jobs, error);
    if (status == PAWL_OK)
        status = watch_start(server, error);
    return status == PAWL_OK ? start_daemons(server, error) : status;
}

/* What the options pointed to is the caller's, and is not needed any more. */
static void forget_strings(pawl_serve_options *o)
{
    o->listen = o->socket = o->tls_cert = o->tls_key = o->program = o->backups = NULL;
    o->hosts = NULL;
    o->host_count = 0;
}

int pawl_serve(pawl_engine *engine, const pawl_serve_options *options, pawl_server **ret_server,
               pawl_error *error)
{
    pthread_condattr_t attributes;
    struct pawl_server *server = calloc(1, sizeof *server);
    if (!server)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for a server");
    server->engine = engine;
    server->tcp_fd = server->unix_fd = server->unix_dir = -1;
    pthread_mutex_init(&server->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&server->idle, &attributes);
    pthread_cond_init(&server->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    int status = start(server, options, error);
    if (status != PAWL_OK) {
        pawl_server_stop(server);
        return status;
    }
    server->started = true;
    forget_strings(&server->options);
    server_log(server, PAWL_LOG_INFO, "listening",
               json_pack("{s:s,s:s}", "url", server->url, "socket", server->socket));
    *ret_server = server;
    return PAWL_OK;
}

/* --- stopping --- */

static void wake_streams(struct pawl_server *server)
{
    pthread_mutex_lock(&server->lock);
    for (struct exchange *x = server->streams; x; x = x->next_stream)
        exchange_wake(x);
    pthread_mutex_unlock(&server->lock);
}

/* Wait until there is no exchange, and let none begin (S2). A client that does not take its answer is cut off
 * after a while; what a handler does is waited for. */
static void drain(struct pawl_server *server)
{
    uint64_t end = server_now() + server->options.limits.drain;
    struct timespec until = {.tv_sec = (time_t)(end / PAWL_SECOND), .tv_nsec = (long)(end % PAWL_SECOND)};
    int waited = 0;
    pthread_mutex_lock(&server->lock);
    while (server->exchanges > 0 && waited == 0)
        waited = pthread_cond_timedwait(&server->idle, &server->lock, &until);
    if (server->exchanges > 0) {
        pthread_mutex_unlock(&server->lock);
        watch_cut_all(server);
        pthread_mutex_lock(&server->lock);
    }
    while (server->exchanges > 0)
        pthread_cond_wait(&server->idle, &server->lock);
    server->closed = true;
    pthread_mutex_unlock(&server->lock);
}

void pawl_server_stop(pawl_server *server)
{
    if (!server)
        return;
    atomic_store_explicit(&server->stopping, true, memory_order_release);
    wake_streams(server);
    drain(server);
    if (server->tcp)
        MHD_stop_daemon(server->tcp);
    if (server->local)
        MHD_stop_daemon(server->local);
    listen_close(server);
    watch_stop(server);
    hub_stop(server->hub);
    pool_free(server->pool);
    hub_free(server->hub);
    lease_desk_free(server->leases);
    jobs_free(server->jobs);
    requests_free(server->requests);
    exchange_free_spare(server);
    if (server->started)
        server_log(server, PAWL_LOG_INFO, "stopped", NULL);
    for (size_t i = 0; i < server->host_count; i++)
        free(server->hosts[i]);
    free(server->hosts);
    free(server->cert);
    free(server->key);
    pthread_cond_destroy(&server->idle);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

const char *pawl_server_url(const pawl_server *server)
{
    return server->url;
}

uint16_t pawl_server_port(const pawl_server *server)
{
    return server->port;
}

const char *pawl_server_socket(const pawl_server *server)
{
    return server->socket;
}

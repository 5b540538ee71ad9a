/* http/server/listen.c: the sockets that the server listens on.
 *
 * The Unix socket belongs to whoever has the directory open for writing. So what lies there under its name was
 * left by a process that is gone, and is replaced. A path may be longer than a socket's address can be: then
 * it is bound through /proc/self/fd, relative to its folder. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/server/server.h"

#define BACKLOG  1024
#define HOST_MAX 256

/* HOST:PORT or [ADDRESS]:PORT. */
static int split_address(const char *listen_at, char host[HOST_MAX], char port[8], pawl_error *error)
{
    const char *colon = strrchr(listen_at, ':'), *begin = listen_at;
    size_t size = colon ? (size_t)(colon - listen_at) : 0;
    if (listen_at[0] == '[' && size >= 2 && listen_at[size - 1] == ']') {
        begin++;
        size -= 2;
    } else if (colon && memchr(listen_at, ':', size)) {
        size = 0; /* an IPv6 address without brackets */
    }
    uint64_t number = 0;
    if (size == 0 || size >= HOST_MAX || target_number(colon + 1, 0, 65535, "", &number, NULL) != PAWL_OK)
        return pawl_error_set(error, PAWL_EINVAL, "listen: expected HOST:PORT or [ADDRESS]:PORT, not '%.128s'",
                              listen_at);
    memcpy(host, begin, size);
    host[size] = '\0';
    snprintf(port, 8, "%" PRIu64, number);
    return PAWL_OK;
}

/* Beyond loopback, TLS and a token are wanted. */
static int judge_address(struct pawl_server *server, const char *address, pawl_error *error)
{
    bool far = !access_is_loopback(address);
    if (far && !server->options.insecure && !server->tls)
        return pawl_error_set(
            error, PAWL_EACCES,
            "listen: %s is not on this machine alone, so it needs TLS (a certificate and its key) "
            "and a token; or say that it may be insecure",
            address);
    if (far && !server->options.insecure && !access_has_tokens(server->engine))
        return pawl_error_set(
            error, PAWL_EACCES,
            "listen: %s is not on this machine alone, so it needs a token; or say that it may be "
            "insecure",
            address);
    server->need_token = server->options.tokens || (far && !server->options.insecure);
    return PAWL_OK;
}

static int open_tcp(struct pawl_server *server, const struct addrinfo *info, pawl_error *error)
{
    const int yes = 1;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return pawl_error_errno(error, errno, "cannot make a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int number = errno;
        close(fd);
        if (number == EADDRINUSE)
            return pawl_error_set(error, PAWL_EEXISTS, "cannot listen on %s: something else does",
                                  server->options.listen);
        return pawl_error_errno(error, number, "cannot listen on %s", server->options.listen);
    }
    server->tcp_fd = fd;
    return PAWL_OK;
}

static void name_url(struct pawl_server *server, const char *host)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    char port[8] = "0";
    if (getsockname(server->tcp_fd, (struct sockaddr *)&bound, &size) == 0)
        getnameinfo((struct sockaddr *)&bound, size, NULL, 0, port, sizeof port, NI_NUMERICSERV);
    server->port = (uint16_t)strtoul(port, NULL, 10);
    bool six = strchr(host, ':') != NULL;
    snprintf(server->url, sizeof server->url, "%s://%s%s%s:%s", server->tls ? "https" : "http", six ? "[" : "",
             host, six ? "]" : "", port);
}

int listen_tcp(struct pawl_server *server, pawl_error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    char host[HOST_MAX], port[8], address[INET6_ADDRSTRLEN + 32];
    int status = split_address(server->options.listen, host, port, error);
    if (status != PAWL_OK)
        return status;
    int number = getaddrinfo(host, port, &hints, &found);
    if (number != 0)
        return pawl_error_set(error, PAWL_EINVAL, "listen: %s: %s", host, gai_strerror(number));
    getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, NULL, 0, NI_NUMERICHOST);
    status = judge_address(server, address, error);
    if (status == PAWL_OK)
        status = open_tcp(server, found, error);
    freeaddrinfo(found);
    if (status == PAWL_OK)
        name_url(server, host);
    return status;
}

/* --- the Unix socket --- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int open_folder(struct pawl_server *server, pawl_error *error)
{
    char folder[SERVER_PATH_MAX];
    size_t size = (size_t)(last_part(server->socket) - server->socket);
    snprintf(folder, sizeof folder, "%.*s", (int)size, size ? server->socket : ".");
    if (size == 0)
        snprintf(folder, sizeof folder, ".");
    server->unix_dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return server->unix_dir < 0 ? pawl_error_errno(error, errno, "socket: cannot open %s", folder) : PAWL_OK;
}

static int remove_stale(struct pawl_server *server, const char *name, pawl_error *error)
{
    struct stat there;
    if (fstatat(server->unix_dir, name, &there, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? PAWL_OK : pawl_error_errno(error, errno, "socket: %s", server->socket);
    if (!S_ISSOCK(there.st_mode))
        return pawl_error_set(error, PAWL_EEXISTS, "socket: %s is there, and is not a socket", server->socket);
    return unlinkat(server->unix_dir, name, 0) == 0
               ? PAWL_OK
               : pawl_error_errno(error, errno, "socket: cannot remove %s", server->socket);
}

static int bind_unix(struct pawl_server *server, int fd, const char *name, pawl_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat made;
    int size = snprintf(address.sun_path, sizeof address.sun_path, "%s", server->socket);
    if (size >= (int)sizeof address.sun_path)
        size =
            snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", server->unix_dir, name);
    if (size < 0 || (size_t)size >= sizeof address.sun_path)
        return pawl_error_set(error, PAWL_ETOOBIG, "socket: the name %s is too long", name);
    /* The mode of the descriptor becomes that of the name: at no time may others open it. */
    if (fchmod(fd, 0600) != 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0
        || listen(fd, BACKLOG) != 0 || fstatat(server->unix_dir, name, &made, AT_SYMLINK_NOFOLLOW) != 0)
        return pawl_error_errno(error, errno, "socket: cannot listen on %s", server->socket);
    server->unix_inode = (uint64_t)made.st_ino;
    if ((made.st_mode & 0777) != 0600)
        return pawl_error_set(error, PAWL_EIO, "socket: %s has mode %o, not 600", server->socket,
                              (unsigned)made.st_mode & 0777);
    return PAWL_OK;
}

int listen_unix(struct pawl_server *server, pawl_error *error)
{
    const char *name = last_part(server->socket);
    int status = open_folder(server, error);
    if (status == PAWL_OK)
        status = remove_stale(server, name, error);
    if (status != PAWL_OK)
        return status;
    server->unix_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->unix_fd < 0)
        return pawl_error_errno(error, errno, "cannot make a socket");
    return bind_unix(server, server->unix_fd, name, error);
}

/* Another process may have replaced the name meanwhile: then it is that one's. */
static void remove_name(struct pawl_server *server)
{
    const char *name = last_part(server->socket);
    struct stat there;
    if (server->unix_inode && fstatat(server->unix_dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0
        && (uint64_t)there.st_ino == server->unix_inode)
        unlinkat(server->unix_dir, name, 0);
}

void listen_close(struct pawl_server *server)
{
    if (server->tcp_fd >= 0)
        close(server->tcp_fd);
    if (server->unix_fd >= 0) {
        remove_name(server);
        close(server->unix_fd);
    }
    if (server->unix_dir >= 0)
        close(server->unix_dir);
    server->tcp_fd = server->unix_fd = server->unix_dir = -1;
}

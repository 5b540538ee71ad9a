/* cli/node/serve.c: serve a directory over HTTP until a signal comes. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/node/serve_settings.h"
#include "cli/talk/open.h"

static void print_line(void *arg, pawl_log_level level, pawl_bytes line)
{
    (void)arg, (void)level;
    fprintf(stderr, "%.*s\n", (int)line.size, (const char *)line.data);
}

/* Tell systemd, if it has started us. A name that begins with @ is an abstract one. */
static void notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t size = path ? strlen(path) : 0;
    if (size < 2 || size >= sizeof to.sun_path)
        return;
    memcpy(to.sun_path, path, size);
    if (path[0] == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size));
    close(fd);
}

static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, set, NULL);
}

static void say_ready(const pawl_server *server, const char *dir)
{
    const char *url = pawl_server_url(server), *local = pawl_server_socket(server);
    printf("%s is served at %s%s%s\n", dir, url, url[0] && local[0] ? " and " : "", local);
    fflush(stdout);
    notify("READY=1");
}

static int serve(const struct serve_settings *settings, pawl_engine *engine, const sigset_t *signals,
                 pawl_error *error)
{
    pawl_server *server;
    static const struct timespec every = {.tv_nsec = 200 * 1000 * 1000};
    int status = pawl_serve(engine, &settings->serve, &server, error);
    if (status != PAWL_OK)
        return status;
    say_ready(server, settings->dir);
    while (status == PAWL_OK && sigtimedwait(signals, NULL, &every) < 0)
        status = pawl_owner_check(engine, error);
    /* From now on, a second signal ends the process at once. */
    pthread_sigmask(SIG_UNBLOCK, signals, NULL);
    notify("STOPPING=1");
    pawl_server_stop(server);
    return status;
}

/* This program does the server's long work, too. NULL: its path is not known. */
static const char *own_path(char *path, size_t room)
{
    ssize_t size = readlink("/proc/self/exe", path, room - 1);
    if (size <= 0 || (size_t)size == room - 1)
        return NULL;
    path[size] = '\0';
    return path;
}

/* Whether --init asks for a directory that is not there. One that is must be opened; and one that has other files is no
 * place for a new one. */
static bool is_to_make(const struct options *options, const char *dir)
{
    pawl_directory directory;
    return options_get(options, "init") && pawl_directory_get(dir, &directory, NULL) == PAWL_ENOTFOUND;
}

static int run(const struct options *options)
{
    struct serve_settings settings;
    char path[4096];
    pawl_error error = {0};
    pawl_engine *engine;
    sigset_t signals;
    if (serve_settings_read(options, &settings, &error) != PAWL_OK)
        return say_usage(&error);
    settings.serve.log = print_line;
    settings.serve.program = own_path(path, sizeof path);
    block_signals(&signals); /* before there are other threads, so that all of them do */
    /* Only the option: a node that took over at every start would take back from others for ever. */
    const pawl_options how = {.log = settings.log,
                              .take_over = options_get(options, "take-over") != NULL,
                              .must_be_new = is_to_make(options, settings.dir),
                              .mirror_bytes_max = settings.mirror};
    int code = open_owner(options, settings.dir, &how, &signals, &engine);
    if (code == CLI_OK) {
        int status = serve(&settings, engine, &signals, &error);
        code = close_dir(options, engine, status, &error);
    }
    serve_settings_release(&settings);
    return code;
}

const struct command command_serve = {
    .name = "serve",
    .summary = "serve the directory over HTTP, until SIGINT or SIGTERM",
    .about =
        "Prints one line when it is ready, and writes its log as JSON lines to stderr. Clients on this "
        "machine\n"
        "also reach it by DIR/pawl.sock, if they may open that. An address beyond loopback needs a "
        "certificate\n"
        "and a token. Settings come from the file of --config, then from the environment (PAWL_LISTEN, ...),\n"
        "then from the options; docs/HTTP.md has all of them. With --log, or with --init, a directory that is "
        "not there is made;\n"
        "with --log its state is derived from the log. If another node takes the log over, this one ends with "
        "exit code 4.\n",
    .options = {OPTION_DIR,
                OPTION_OWNED_LOG,
                OPTION_TAKE_OVER,
                {"init", NULL, "make the directory if it is not there, or empty"},
                {"mirror-bytes-max", "N", "of a log on Kafka, keep the last N bytes here (268435456; 1: none)"},
                {"listen", "HOST:PORT", "where (127.0.0.1:7295; port 0: a free one; '': no TCP)"},
                {"socket", "PATH", "the Unix socket (DIR/pawl.sock; '': none)"},
                {"tls-cert", "FILE", "the certificate chain, PEM"},
                {"tls-key", "FILE", "its key"},
                {"host", "NAME", "a name by which clients call it; may be repeated", true},
                {"tokens", NULL, "demand a token on loopback, too"},
                {"insecure", NULL, "beyond loopback, do without TLS and tokens"},
                {"log-level", "LEVEL", "error, warning, info (default) or debug"},
                {"slow", "TIME", "from when on a request is a warning (1s)"},
                {"backups", "DIR", "where POST /v1/backup makes backups (none)"},
                {"config", "FILE", "lines of NAME = VALUE"},
                OPTION_JSON},
    .run = run,
};

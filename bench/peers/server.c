#include "bench/peers/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/lib/folder.h"

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0
              && getsockname(fd, (struct sockaddr *)&at, &size) == 0;
    if (fd >= 0)
        close(fd);
    return ok ? ntohs(at.sin_port) : 0;
}

bool server_prepare(struct server *server, const char *name, const struct bench_round *round)
{
    *server = (struct server){.name = name, .port = free_port()};
    return server->port != 0 && folder_make(round, name, server->dir);
}

pid_t server_process(const struct server *server, const struct passwd *user, const char *const *words)
{
    char log[PATH_MAX + 8];
    snprintf(log, sizeof log, "%s.log", server->dir);
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (out >= 0) {
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
    }
    if (user && (setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
        _exit(1);
    if (chdir("/") != 0)
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGQUIT); /* the kernel forgets it when the user changes: so it is set last */
    execv(words[0], (char *const *)(uintptr_t)words);
    _exit(1);
}

bool process_succeeded(pid_t pid)
{
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool server_give_up(struct server *server)
{
    fprintf(stderr, "%s could not be started; %s.log has its words\n", server->name, server->dir);
    server->failed = true;
    return false;
}

bool server_start(struct server *server, const struct passwd *user, const char *const *words,
                  bool (*answers)(const struct server *server))
{
    const struct timespec moment = {.tv_nsec = 20000000};
    server->pid = server_process(server, user, words);
    for (unsigned i = 0; server->pid > 0 && i < 1500; i++) {
        if (answers(server))
            return true;
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = 0;
            break;
        }
        nanosleep(&moment, NULL);
    }
    return server_give_up(server);
}

void server_end(struct server *server, int signal)
{
    char log[PATH_MAX + 8];
    if (server->pid > 0) {
        kill(server->pid, signal);
        waitpid(server->pid, NULL, 0);
    }
    if (server->dir[0] && !server->failed) {
        snprintf(log, sizeof log, "%s.log", server->dir);
        (void)unlink(log);
    }
    if (server->dir[0])
        folder_remove(server->dir);
    *server = (struct server){0};
}

/* The beginning of what PROGRAM --version says; empty, if it says nothing. */
static void ask_version(const char *program, char *text, size_t room)
{
    int said[2];
    text[0] = 0;
    if (pipe2(said, O_CLOEXEC) != 0)
        return;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(said[1], STDOUT_FILENO) >= 0)
            execl(program, program, "--version", (char *)NULL);
        _exit(1);
    }
    close(said[1]);
    ssize_t got = read(said[0], text, room - 1);
    text[got > 0 ? got : 0] = 0;
    close(said[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

void server_note_version(const char *name, const char *program)
{
    static const char apart[] = " =\n";
    char text[256];
    ask_version(program, text, sizeof text);
    for (char *word = text; *word; word += strspn(word, apart)) {
        size_t size = strcspn(word, apart);
        if (*word >= '0' && *word <= '9' && memchr(word, '.', size)) {
            word[size] = 0;
            bench_peer(name, word);
            return;
        }
        word += size;
    }
    bench_peer(name, "of unknown version");
}

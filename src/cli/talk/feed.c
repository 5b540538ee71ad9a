#include "cli/talk/feed.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIPE_BYTES ((size_t)4096) /* a pipe that can be written to takes a page without blocking */

bool buffer_reserve(struct buffer *b, size_t more)
{
    if (b->room - b->size >= more)
        return true;
    size_t room = b->room ? b->room : FEED_READ_BYTES;
    while (room - b->size < more)
        room *= 2;
    char *data = realloc(b->data, room);
    if (!data)
        return false;
    b->data = data;
    b->room = room;
    return true;
}

int feed_init(struct feed *f, int in, pawl_error *error)
{
    struct stat st;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    *f = (struct feed){.in = in,
                       .signals = signalfd(-1, &set, SFD_CLOEXEC),
                       .bell = eventfd(0, EFD_CLOEXEC),
                       .output_is_file = fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode)};
    if (f->signals < 0 || f->bell < 0)
        return pawl_error_errno(error, errno, "cannot prepare to wait");
    return PAWL_OK;
}

void feed_release(struct feed *f)
{
    free(f->input.data);
    free(f->output.data);
    close(f->bell);
    close(f->signals);
}

void feed_ring(int bell)
{
    uint64_t one = 1;
    (void)!write(bell, &one, sizeof one);
}

void feed_stop(struct feed *f, const pawl_error *why)
{
    f->eof = true;
    if (f->failure.code == PAWL_OK)
        f->failure = *why;
}

static void write_output(struct feed *f)
{
    size_t left = feed_unsaid(f);
    size_t size = f->output_is_file || left < PIPE_BYTES ? left : PIPE_BYTES;
    ssize_t n = write(STDOUT_FILENO, f->output.data + f->output_at, size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0) {
        pawl_error error;
        f->closed = true;
        f->eof = true;
        if (errno != EPIPE) {
            pawl_error_errno(&error, errno, "cannot write the output");
            feed_stop(f, &error);
        }
    }
    f->output_at = n < 0 ? f->output.size : f->output_at + (size_t)n;
    if (f->output_at == f->output.size)
        f->output_at = f->output.size = 0;
}

static void take_signal(struct feed *f)
{
    struct signalfd_siginfo info;
    if (read(f->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (f->signal) {
        f->closed = true;
        f->output.size = f->output_at = 0;
    }
    f->signal = (int)info.ssi_signo;
    f->eof = true;
}

unsigned feed_wait(struct feed *f, bool reading)
{
    enum { BELL, SIGNALS, IN, OUT, FDS };
    struct pollfd fds[FDS] = {
        [BELL] = {.fd = f->bell, .events = POLLIN},
        [SIGNALS] = {.fd = f->signals, .events = POLLIN},
        [IN] = {.fd = reading ? f->in : -1, .events = POLLIN},
        [OUT] = {.fd = feed_unsaid(f) ? STDOUT_FILENO : -1, .events = POLLOUT},
    };
    if (poll(fds, FDS, -1) < 0)
        return 0;
    uint64_t rung;
    unsigned found = 0;
    if (fds[BELL].revents && read(f->bell, &rung, sizeof rung) == (ssize_t)sizeof rung)
        found |= FEED_RANG;
    if (fds[SIGNALS].revents)
        take_signal(f);
    if (fds[OUT].revents && feed_unsaid(f))
        write_output(f);
    if (fds[IN].revents && !f->eof)
        found |= FEED_READABLE;
    return found;
}

ssize_t feed_read(struct feed *f, pawl_error *error)
{
    if (!buffer_reserve(&f->input, FEED_READ_BYTES))
        return pawl_error_set(error, PAWL_ENOMEM, "no memory");
    ssize_t n = read(f->in, f->input.data + f->input.size, FEED_READ_BYTES);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0)
        return pawl_error_errno(error, errno, "cannot read the input");
    f->eof = n == 0;
    f->input.size += (size_t)n;
    return n;
}

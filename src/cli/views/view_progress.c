#include "cli/views/view_progress.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/show/say.h"

#define SLICE    ((pawl_duration)200 * 1000 * 1000) /* between two reads of the status */
#define SECOND   ((double)1000 * 1000 * 1000)
#define LINE_GAP 10.0 /* seconds between lines, if stderr is no terminal */
#define LOOK_GAP 2.0  /* seconds between attempts to take the builder's place */
#define LINE_MAX 1024
#define COLUMNS  80 /* of a terminal that does not say how many it has */

void view_bar_format(double percent, char bar[VIEW_BAR + 1])
{
    double full = VIEW_BAR * percent / 100;
    memset(bar, ' ', VIEW_BAR);
    memset(bar, '=', full < 0 ? 0 : full > VIEW_BAR ? VIEW_BAR : (size_t)full);
    bar[VIEW_BAR] = '\0';
}

void view_eta_format(pawl_duration eta, char text[VIEW_ETA_MAX])
{
    double seconds = (double)eta / SECOND;
    if (eta == UINT64_MAX)
        snprintf(text, VIEW_ETA_MAX, "?");
    else if (seconds < 99.5)
        snprintf(text, VIEW_ETA_MAX, "%.0f s", seconds);
    else if (seconds < 99.5 * 60)
        snprintf(text, VIEW_ETA_MAX, "%.0f min", seconds / 60);
    else
        snprintf(text, VIEW_ETA_MAX, "%.1f h", seconds / 3600);
}

struct showing {
    bool terminal;
    bool drawn;
    double begun;
    double said;
    uint64_t first; /* base rows that were done when the waiting began; UINT64_MAX: not known yet */
    pawl_error stuck;
};

/* A process that only reads is told no rate: it takes what it has seen itself. */
static double rate_of(struct showing *s, const pawl_view_status *v, double now)
{
    if (s->first > v->rows_done)
        s->first = v->rows_done;
    double seconds = now - s->begun;
    return v->rate > 0 ? v->rate : seconds > 1 ? (double)(v->rows_done - s->first) / seconds : 0;
}

/* What does not fit would begin a new line, which is never overwritten. */
static void draw_line(char *line)
{
    struct winsize window;
    size_t columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col ? window.ws_col : COLUMNS;
    size_t size = strlen(line);
    if (size >= columns)
        for (size = columns - 1; size > 0 && ((unsigned char)line[size] & 0xc0) == 0x80;)
            size--; /* no half of a letter */
    fprintf(stderr, "\r%.*s\033[K", (int)size, line);
}

static bool show_status(void *arg, const pawl_view_status *v)
{
    struct showing *s = arg;
    double now = seconds_now(), rate = rate_of(s, v, now);
    char bar[VIEW_BAR + 1], eta[VIEW_ETA_MAX], line[LINE_MAX];
    if (v->paused)
        pawl_error_set(&s->stuck, PAWL_EBUSY,
                       "%s is paused: 'pawl view resume %s' lets it go on, or, if all views are, "
                       "'pawl view resume'",
                       v->name, v->name);
    if (s->stuck.code != PAWL_OK || now - s->said < (s->terminal ? 0 : LINE_GAP))
        return true;
    pawl_duration left = rate > 0 && v->rows_total >= v->rows_done
                             ? (pawl_duration)((double)(v->rows_total - v->rows_done) / rate * SECOND)
                             : UINT64_MAX;
    view_bar_format(v->percent, bar);
    view_eta_format(left, eta);
    snprintf(line, sizeof line, "%s%s%s%s %.1f %%, %s left, %.0f/s, %" PRIu64 " of %" PRIu64 " rows%s%s",
             v->name, s->terminal ? " [" : ":", s->terminal ? bar : "", s->terminal ? "]" : "", v->percent, eta,
             rate, v->rows_done, v->rows_total, v->words[0] ? ": " : "", v->words);
    if (s->terminal)
        draw_line(line);
    else
        fprintf(stderr, "%s\n", line);
    fflush(stderr);
    s->said = now;
    s->drawn = s->terminal;
    return true;
}

static bool was_signalled(struct view_waiting *w)
{
    struct pollfd fd = {.fd = w->feed.signals, .events = POLLIN};
    struct signalfd_siginfo info;
    if (poll(&fd, 1, 0) == 1 && read(w->feed.signals, &info, sizeof info) == (ssize_t)sizeof info)
        w->signal = (int)info.ssi_signo;
    return w->signal != 0;
}

/* When the process that builds has ended, nobody would. */
static int take_place(struct view_waiting *w, double *looked, pawl_error *error)
{
    double now = seconds_now();
    if (!w->reading || now - *looked < LOOK_GAP)
        return PAWL_OK;
    *looked = now;
    return w->look_again(w, error);
}

int view_progress_wait(struct view_waiting *w, pawl_error *error)
{
    double now = seconds_now();
    struct showing s = {.terminal = isatty(STDERR_FILENO), .begun = now, .said = now, .first = UINT64_MAX};
    double looked = now;
    int status;
    do {
        double left = (double)w->timeout / SECOND - (seconds_now() - s.begun);
        if (w->timeout && left <= 0) {
            status = pawl_error_set(error, PAWL_ETIMEOUT, "the time is over, and %s is not built yet", w->view);
            break;
        }
        pawl_duration slice =
            w->timeout && left * SECOND < (double)SLICE ? (pawl_duration)(left * SECOND) + 1 : SLICE;
        *error = (pawl_error){0};
        status = session_view_wait(&w->session, w->view, slice, error);
        if (status == PAWL_ETIMEOUT)
            (void)session_views(&w->session, w->view, show_status, &s, NULL);
        if (status == PAWL_ETIMEOUT && s.stuck.code == PAWL_OK && take_place(w, &looked, error) != PAWL_OK)
            status = error->code;
    } while (status == PAWL_ETIMEOUT && s.stuck.code == PAWL_OK && !was_signalled(w));
    if (s.drawn)
        fputs("\r\033[K", stderr);
    if (w->signal)
        return PAWL_OK;
    if (s.stuck.code != PAWL_OK) {
        *error = s.stuck;
        return s.stuck.code;
    }
    return status;
}

#include "cli/talk/job.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/talk/feed.h"
#include "cli/talk/session.h"

#define POLL_MS      200
#define PROGRESS_MAX 600

struct watching {
    struct session session;
    struct feed feed; /* for its signals */
    uint64_t id;
    unsigned looks; /* at a job that waits: most begin at once, and are not told to wait */
    int signal;
    bool terminal, drawn;
    char said[PROGRESS_MAX]; /* the last progress that was shown */
    json_t *result;
};

/* Pause between two looks at the job. False: a signal came. */
static bool pause_a_little(struct watching *w)
{
    struct pollfd fd = {.fd = w->feed.signals, .events = POLLIN};
    struct signalfd_siginfo info;
    if (poll(&fd, 1, POLL_MS) == 1 && read(w->feed.signals, &info, sizeof info) == (ssize_t)sizeof info)
        w->signal = (int)info.ssi_signo;
    return w->signal == 0;
}

static void show_progress(struct watching *w, const json_t *job)
{
    const char *words = json_text_in(job, "progress");
    if (strcmp(json_text_in(job, "state"), "waiting") == 0 && w->looks++ > 0)
        words = "waiting for another job of the server";
    if (words[0] == '\0' || strcmp(words, w->said) == 0)
        return;
    snprintf(w->said, sizeof w->said, "%s", words);
    fprintf(stderr, w->terminal ? "\r%s \033[K" : "%s\n", words);
    fflush(stderr);
    w->drawn = w->terminal;
}

/* Whether it has ended; how, is in *ret_status and error. */
static bool has_ended(struct watching *w, const json_t *job, int *ret_status, pawl_error *error)
{
    const char *state = json_text_in(job, "state");
    *ret_status = PAWL_OK;
    if (strcmp(state, "waiting") == 0 || strcmp(state, "running") == 0)
        return false;
    if (strcmp(state, "done") == 0)
        w->result = json_incref(json_object_get(job, "result"));
    else if (strcmp(state, "cancelled") == 0)
        *ret_status = pawl_error_set(error, PAWL_ECANCELED, "job %" PRIu64 " was cancelled", w->id);
    else
        *ret_status = session_error(json_object_get(job, "error"), error);
    return true;
}

/* PAWL_OK also if a signal came. */
static int watch(struct watching *w, pawl_error *error)
{
    int status;
    do {
        json_t *job;
        status = session_job_show(&w->session, w->id, &job, error);
        if (status == PAWL_ENOTFOUND)
            return pawl_error_wrap(error, status,
                                   "the server was started again, and the job has ended with it");
        if (status == PAWL_EBUSY)
            continue;
        if (status != PAWL_OK)
            return status;
        bool ended = has_ended(w, job, &status, error);
        if (!ended)
            show_progress(w, job);
        json_decref(job);
        if (ended)
            return status;
    } while (pause_a_little(w));
    return session_job_cancel(&w->session, w->id, error);
}

int job_run(const struct options *options, const char *kind, json_t *body, json_t **ret_result)
{
    struct watching w = {.terminal = isatty(STDERR_FILENO)};
    pawl_error error = {0};
    if (feed_init(&w.feed, -1, &error) != PAWL_OK) {
        json_decref(body);
        return say_failure(options, &error);
    }
    int code = session_open(options, OPEN_TO_READ, &w.session);
    if (code != CLI_OK) {
        json_decref(body);
        feed_release(&w.feed);
        return code;
    }
    int status = session_job_begin(&w.session, kind, body, &w.id, &error);
    if (status == PAWL_OK)
        status = watch(&w, &error);
    if (w.drawn)
        fputs("\r\033[K", stderr);
    code = session_close(options, &w.session, status, &error);
    feed_release(&w.feed);
    if (w.signal)
        code = 128 + w.signal;
    if (code == CLI_OK && !w.result) {
        pawl_error_set(&error, PAWL_EIO, "the server's job has no result");
        return say_failure(options, &error);
    }
    if (code == CLI_OK)
        *ret_result = w.result;
    else
        json_decref(w.result);
    return code;
}

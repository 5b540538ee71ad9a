/* cli/node/bench.c: a short measurement: durable commands with 1, 8 and 64 outstanding, beside what the disk can do.
 *
 * It never touches data that it did not make. Without --url it makes a directory, and removes it however it ends. At a
 * server it works in a workspace of its own package, which only it declares; that stays, because what is in a
 * log stays. */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/node/bench_load.h"
#include "cli/talk/feed.h"
#include "cli/talk/remote.h"
#include "cli/talk/session.h"

#define PACKAGE "pawl_bench"
#define KIND    PACKAGE ".bench"

#define SECONDS_DEFAULT 3
#define SECONDS_MAX     3600
#define DISK_PART       3 /* of that time the disk is measured */

static const char schema[] = "{\"schema\":1,\"package\":\"" PACKAGE "\",\"workspaces\":{\"bench\":{}},"
                             "\"types\":{\"Item\":{\"kind\":\"WDoc\",\"fields\":{\"text\":{\"type\":\"string\"}"
                             ",\"n\":{\"type\":\"int64\"}}}},"
                             "\"commands\":{\"Put\":{\"records\":[\"Item\"]}}}";

static const char command_json[] =
    "{\"command\":\"" PACKAGE ".Put\",\"records\":[{\"id\":1,\"type\":\"" PACKAGE
    ".Item\",\"fields\":{\"text\":\"thirty-two bytes of some text...\",\"n\":7}}]}";

static const size_t outstanding[] = {1, 8, 64};

struct benching {
    const struct options *options;
    const char *url; /* NULL: a directory of its own */
    uint64_t wsid;
    double seconds;
    char *dir;
    struct feed feed; /* for its signals */
    int signal;
    struct session
        sessions[BENCH_CLIENTS_MAX]; /* one for each client of a server; of an engine the first alone */
    size_t session_count;
    pawl_request *requests[BENCH_CLIENTS_MAX];
    struct bench_times raw; /* of the disk, right before the present step */
};

struct one {
    struct benching *bench;
    size_t place;
};

/* --- one command --- */

static int command_here(struct bench_client *client, pawl_error *error)
{
    const struct one *one = client->arg;
    struct benching *b = one->bench;
    pawl_request *request = b->requests[one->place];
    pawl_request_json(request, b->wsid, (pawl_bytes){command_json, sizeof command_json - 1});
    pawl_request_ack(request, PAWL_ACK_DURABLE);
    return pawl_command(b->sessions[0].engine, request, NULL, error);
}

static int command_there(struct bench_client *client, pawl_error *error)
{
    const struct one *one = client->arg;
    struct benching *b = one->bench;
    struct target target;
    target_begin(&target, "/v1/ws");
    target_number(&target, b->wsid);
    target_word(&target, "commands");
    target_add(&target, "ack", "durable");
    const struct remote_call call = {.method = "POST",
                                     .target = &target,
                                     .type = "application/json",
                                     .body = {command_json, sizeof command_json - 1}};
    return remote_ask(b->sessions[one->place].remote, &call, NULL, error);
}

/* --- a place for it --- */

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static int make_dir(struct benching *b, pawl_error *error)
{
    const char *in = options_get(b->options, "in");
    if (asprintf(&b->dir, "%s/pawl-bench-XXXXXX", in ? in : ".") < 0) {
        b->dir = NULL;
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for a name");
    }
    if (mkdtemp(b->dir))
        return PAWL_OK;
    int status = pawl_error_errno(error, errno, "cannot make a directory in %s", in ? in : ".");
    free(b->dir);
    b->dir = NULL;
    return status;
}

static int open_here(struct benching *b, pawl_error *error)
{
    char *data;
    if (asprintf(&data, "%s/data", b->dir) < 0)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for a name");
    int status = pawl_open(data, &(pawl_options){.must_be_new = true}, &b->sessions[0].engine, error);
    free(data);
    b->session_count = status == PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < BENCH_CLIENTS_MAX; i++)
        if (pawl_request_new(b->sessions[0].engine, &b->requests[i]) != PAWL_OK)
            status = pawl_error_set(error, PAWL_ENOMEM, "no memory for requests");
    return status;
}

/* Its own workspace: a new one, or one that an earlier run has made. */
static int find_workspace(struct benching *b, pawl_error *error)
{
    struct session *s = &b->sessions[0];
    pawl_text text;
    int status = session_workspace_show(s, b->wsid, &(pawl_read_options){0}, &text, error);
    if (status == PAWL_OK) {
        json_t *shown = json_loadb(text.data, text.size, 0, NULL);
        if (strcmp(json_text_in(shown, "kind"), KIND) != 0)
            status = pawl_error_set(error, PAWL_EEXISTS,
                                    "workspace %" PRIu64 " is of kind %s, and was not made by 'pawl bench': "
                                    "choose another number",
                                    b->wsid, json_text_in(shown, "kind"));
        json_decref(shown);
        pawl_text_free(&text);
        return status;
    }
    if (status != PAWL_ENOTFOUND)
        return status;
    uint64_t position;
    status = session_schema_apply(s, schema, &position, error);
    if (status == PAWL_OK)
        status = session_workspace_create(s, b->wsid, KIND, &text, error);
    if (status == PAWL_OK)
        pawl_text_free(&text);
    return status;
}

/* Returns an exit code; it has said why it failed. */
static int open_place(struct benching *b)
{
    pawl_error error = {0};
    int status = PAWL_OK;
    if (b->url)
        for (; b->session_count < BENCH_CLIENTS_MAX; b->session_count++) {
            int code = session_open_url(b->options, b->url, &b->sessions[b->session_count]);
            if (code != CLI_OK)
                return code;
        }
    else {
        status = make_dir(b, &error);
        if (status == PAWL_OK)
            status = open_here(b, &error);
    }
    if (status == PAWL_OK)
        status = find_workspace(b, &error);
    return status == PAWL_OK ? CLI_OK : say_failure(b->options, &error);
}

static void close_place(struct benching *b)
{
    for (size_t i = 0; i < BENCH_CLIENTS_MAX; i++)
        pawl_request_free(b->requests[i]);
    for (size_t i = 0; i < b->session_count; i++) {
        if (b->sessions[i].engine)
            (void)pawl_close(b->sessions[i].engine);
        else
            remote_close(b->sessions[i].remote);
    }
    if (b->dir)
        (void)nftw(b->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(b->dir);
}

/* --- measuring --- */

/* False: a signal came. */
static bool wait_a_little(void *arg, double seconds)
{
    struct benching *b = arg;
    struct pollfd fd = {.fd = b->feed.signals, .events = POLLIN};
    struct signalfd_siginfo info;
    if (poll(&fd, 1, (int)(seconds * 1000) + 1) == 1
        && read(b->feed.signals, &info, sizeof info) == (ssize_t)sizeof info)
        b->signal = (int)info.ssi_signo;
    return b->signal == 0;
}

static json_t *times_json(const struct bench_times *t)
{
    return json_pack("{s:o,s:f,s:f,s:f,s:f,s:f}", "count", json_u64(t->count), "seconds", t->seconds, "rate",
                     t->rate, "p50", t->p50, "p99", t->p99, "max", t->max);
}

static int say_step(const struct benching *b, size_t clients, const struct bench_times *t, pawl_error *error)
{
    if (options_get(b->options, "json")) {
        json_t *object = times_json(t);
        json_object_set_new(object, "outstanding", json_integer((json_int_t)clients));
        if (b->dir) {
            json_object_set_new(object, "raw_sync", times_json(&b->raw));
            json_object_set_new(object, "ratio", json_real(t->rate / b->raw.rate));
        }
        say_json(object);
    } else {
        printf("%11zu %12.0f %10.3f %10.3f", clients, t->rate, t->p50 * 1e3, t->p99 * 1e3);
        if (b->dir)
            printf(" %12.0f %10.3f %8.2f", b->raw.rate, b->raw.p50 * 1e3, t->rate / b->raw.rate);
        putchar('\n');
    }
    return say_finish(error);
}

/* The disk is measured right before the commands, because others may use it, too. */
static int measure_step(struct benching *b, struct bench_client *disk, struct bench_client *clients,
                        size_t count, pawl_error *error)
{
    struct bench_times times;
    int status = PAWL_OK;
    if (b->dir)
        status = bench_run(disk, 1, b->seconds / DISK_PART, wait_a_little, b, &b->raw, error);
    if (status == PAWL_OK && !b->signal)
        status = bench_run(clients, count, b->seconds, wait_a_little, b, &times, error);
    return status != PAWL_OK || b->signal ? status : say_step(b, count, &times, error);
}

static int measure(struct benching *b, pawl_error *error)
{
    struct one ones[BENCH_CLIENTS_MAX];
    struct bench_client clients[BENCH_CLIENTS_MAX], disk;
    for (size_t i = 0; i < BENCH_CLIENTS_MAX; i++) {
        ones[i] = (struct one){.bench = b, .place = i};
        clients[i] = (struct bench_client){.once = b->url ? command_there : command_here, .arg = &ones[i]};
    }
    int status = b->dir ? bench_sync_open(b->dir, &disk, error) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    if (!options_get(b->options, "json"))
        printf("%11s %12s %10s %10s%s\n", "outstanding", "commands/s", "p50 ms", "p99 ms",
               b->dir ? "      syncs/s     p50 ms    ratio" : "");
    for (size_t i = 0; i < sizeof outstanding / sizeof outstanding[0] && status == PAWL_OK && !b->signal; i++)
        status = measure_step(b, &disk, clients, outstanding[i], error);
    if (b->dir)
        bench_sync_close(&disk);
    return status;
}

static int prepare(struct benching *b, pawl_error *error)
{
    const char *url = options_get(b->options, "url"), *in = options_get(b->options, "in");
    uint64_t seconds;
    int status = options_number(b->options, "seconds", 1, SECONDS_DEFAULT, &seconds, error);
    if (status == PAWL_OK)
        status = options_number(b->options, "ws", 1, 0, &b->wsid, error);
    if (status != PAWL_OK)
        return status;
    if (seconds > SECONDS_MAX)
        return pawl_error_set(error, PAWL_EINVAL, "--seconds %" PRIu64 ": at most %d", seconds, SECONDS_MAX);
    if (url && in)
        return pawl_error_set(error, PAWL_EINVAL, "--url and --in are two places: give one of them");
    if (url && !b->wsid)
        return pawl_error_set(error, PAWL_EINVAL,
                              "in which workspace? Say --ws WSID, with a number that is not in use; it stays");
    if (!url && (b->wsid || options_get(b->options, "token-file")))
        return pawl_error_set(error, PAWL_EINVAL, "--ws and --token-file are for a server: say --url URL");
    b->url = url;
    b->wsid = url ? b->wsid : 1;
    b->seconds = (double)seconds;
    return PAWL_OK;
}

static int run(const struct options *options)
{
    struct benching *b = calloc(1, sizeof *b);
    pawl_error error = {0};
    if (!b) {
        pawl_error_set(&error, PAWL_ENOMEM, "no memory to measure");
        return say_failure(options, &error);
    }
    b->options = options;
    int code = CLI_OK;
    if (prepare(b, &error) != PAWL_OK)
        code = say_usage(&error);
    else if (feed_init(&b->feed, -1, &error) != PAWL_OK)
        code = say_failure(options, &error);
    if (code != CLI_OK) {
        free(b);
        return code;
    }
    code = open_place(b);
    int status = code == CLI_OK ? measure(b, &error) : PAWL_OK;
    close_place(b);
    feed_release(&b->feed);
    if (b->signal)
        code = 128 + b->signal;
    else if (code == CLI_OK && status != PAWL_OK
             && status != PAWL_ECLOSED) /* closed: nobody reads it any more */
        code = say_failure(options, &error);
    free(b);
    return code;
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure durable commands on this machine, or at a server",
    .about =
        "With 1, 8 and 64 commands outstanding, for so many seconds each, beside what the disk can do. "
        "Without --url\n"
        "it works in a directory that it makes, and removes in the end. At a server it works in a workspace "
        "of a\n"
        "package of its own, " PACKAGE ", both of which stay there; PAWL_DIR and PAWL_URL are not used.\n",
    .options = {{"in", "DIR", "where it makes its directory, so that the right disk is measured (.)"},
                {"url", "URL", "a server instead: http://HOST:PORT"},
                {"token-file", "FILE", "has the token for it; or the environment's PAWL_TOKEN is it"},
                {"ws", "WSID", "of a server: the workspace, which is made, or was made by this verb before"},
                {"seconds", "N", "for each step (3)"},
                OPTION_JSON},
    .run = run,
};

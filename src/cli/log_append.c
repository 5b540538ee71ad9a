/* cli/log_append.c: lines of stdin become entries; their offsets come back on stdout once they are durable.
 *
 *     stdin ──read──► lines ──append──► in flight ──done──► offsets ──write──► stdout
 *       ▲                                   │ (journal's thread: counts, and rings the bell)
 *       └── one thread, one poll() ─────────┘
 *
 * Whatever one read(2) brings is one append, and a few appends are in flight: fed at full speed they fill the
 * journal's groups, typed by hand each line goes out at once. Nothing waits for more to come.
 *
 * Invariants
 *   A1  Appends of one stream end in the order in which they began, so a count says which have ended.
 *   A2  An offset is written to stdout only after its entry is durable, and no offset waits for a later one.
 *   A3  Nothing is read while there is no room to append it, or while stdout does not take what is known. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/latch.h"
#include "cli/say.h"
#include "engine/log.h"

#define IN_FLIGHT_MAX 8
#define READ_BYTES    ((size_t)64 << 10)
#define OUT_BYTES_MAX ((size_t)1 << 20)
#define LINE_MAX_TEXT 40 /* what an offset takes on stdout, at most */

struct buffer {
    char *data;
    size_t size;
    size_t room;
};

/* Lines that are one append. */
struct batch {
    pawl_append request;
    pawl_append_entry *entries;
    size_t entries_room;
    struct buffer lines;
    uint64_t first_line;
    pawl_error error;
};

struct appending {
    struct engine_log *log;
    pawl_stream stream;
    uint64_t epoch;
    uint64_t next; /* offset of the next line */
    uint64_t line; /* number of the next line */
    bool json;

    struct buffer input; /* what was read of lines that are not appended yet */
    struct batch batches[IN_FLIGHT_MAX];
    uint64_t begun;        /* appends; the last one is in batches[(begun - 1) % IN_FLIGHT_MAX] */
    uint64_t ended;        /* of these, how many have been looked at */
    _Atomic uint64_t done; /* of these, how many have their outcome */
    bool held;             /* batches[begun % ...] is ready, but the journal was busy */
    int bell;              /* eventfd: done has grown */

    struct buffer output;
    size_t output_at; /* what of it is written */
    bool output_is_file;

    bool eof;     /* of stdin, or there is a reason to stop reading */
    bool closed;  /* nobody reads stdout */
    bool refused; /* an entry was: nothing behind it is durable */
    int signal;
    int signals;        /* signalfd */
    pawl_error failure; /* code PAWL_OK: none */
};

static bool buffer_reserve(struct buffer *b, size_t more)
{
    if (b->room - b->size >= more)
        return true;
    size_t room = b->room ? b->room : READ_BYTES;
    while (room - b->size < more)
        room *= 2;
    char *data = realloc(b->data, room);
    if (!data)
        return false;
    b->data = data;
    b->room = room;
    return true;
}

static void stop(struct appending *a, const pawl_error *why)
{
    a->eof = true;
    if (a->failure.code == PAWL_OK)
        a->failure = *why;
}

static void stop_for_memory(struct appending *a)
{
    pawl_error error;
    error_set(&error, PAWL_ENOMEM, "no memory at line %" PRIu64, a->line);
    stop(a, &error);
}

static void ring(pawl_append *append)
{
    struct appending *a = append->arg;
    uint64_t one = 1;
    int bell = a->bell;
    atomic_fetch_add(&a->done, 1);
    (void)!write(bell, &one, sizeof one);
}

static bool add_line(struct appending *a, struct batch *b, const char *line, size_t size)
{
    if (size > PAWL_ENTRY_BYTES_MAX) {
        pawl_error error;
        error_set(&error, PAWL_ETOOBIG,
                  "line %" PRIu64 " has more than %zu bytes, which is the limit of an entry", a->line,
                  PAWL_ENTRY_BYTES_MAX);
        stop(a, &error);
        return false;
    }
    if (b->request.count == b->entries_room) {
        size_t room = b->entries_room ? b->entries_room * 2 : 1024;
        pawl_append_entry *entries = realloc(b->entries, room * sizeof *entries);
        if (!entries) {
            stop_for_memory(a);
            return false;
        }
        b->entries = entries;
        b->entries_room = room;
    }
    b->entries[b->request.count++] = (pawl_append_entry){
        .entry = {.stream = a->stream, .epoch = a->epoch, .offset = a->next++, .body = {line, size}}};
    a->line++;
    return true;
}

/* Begin the batch that is ready. Busy: it is held until another has ended. */
static void begin(struct appending *a)
{
    struct batch *b = &a->batches[a->begun % IN_FLIGHT_MAX];
    int status = pawl_log_append(engine_log_port(a->log), &b->request);
    a->held = status == PAWL_EBUSY && a->begun > a->ended;
    if (status == PAWL_OK) {
        a->begun++;
    } else if (!a->held) {
        error_wrap(&b->error, status, "line %" PRIu64, b->first_line);
        stop(a, &b->error);
    }
}

/* The first bytes of the input, whole lines all, become a batch; the rest stays. */
static void append_lines(struct appending *a, size_t bytes)
{
    struct batch *b = &a->batches[a->begun % IN_FLIGHT_MAX];
    struct buffer lines = a->input;
    a->input = b->lines;
    b->lines = lines;
    a->input.size = 0;
    if (!buffer_reserve(&a->input, lines.size - bytes + 1)) {
        stop_for_memory(a);
        return;
    }
    memcpy(a->input.data, lines.data + bytes, lines.size - bytes);
    a->input.size = lines.size - bytes;

    b->request = (pawl_append){.done = ring, .arg = a, .error = &b->error};
    b->first_line = a->line;
    for (const char *at = lines.data, *end = at + bytes, *stop_at; at < end; at = stop_at + 1) {
        stop_at = memchr(at, '\n', (size_t)(end - at));
        if (!stop_at)
            stop_at = end;
        if (!add_line(a, b, at, (size_t)(stop_at - at)))
            break;
    }
    b->request.entries = b->entries;
    if (b->request.count)
        begin(a);
}

static void read_input(struct appending *a)
{
    struct buffer *in = &a->input;
    if (!buffer_reserve(in, READ_BYTES)) {
        stop_for_memory(a);
        return;
    }
    ssize_t n = read(STDIN_FILENO, in->data + in->size, READ_BYTES);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0) {
        pawl_error error;
        error_errno(&error, errno, "cannot read line %" PRIu64, a->line);
        stop(a, &error);
        return;
    }
    a->eof = n == 0;
    const char *fresh = in->data + in->size;
    in->size += (size_t)n;
    const char *last = n ? memrchr(fresh, '\n', (size_t)n) : NULL;
    size_t whole = last ? (size_t)(last + 1 - in->data) : a->eof ? in->size : 0;
    if (whole == 0 && in->size > PAWL_ENTRY_BYTES_MAX)
        whole = in->size; /* no end in sight: it is refused as it is */
    if (whole)
        append_lines(a, whole);
}

/* Offsets of what has ended go to the output, up to the first entry that failed. */
static void collect(struct appending *a)
{
    uint64_t done = atomic_load(&a->done);
    for (; a->ended < done; a->ended++) {
        struct batch *b = &a->batches[a->ended % IN_FLIGHT_MAX];
        size_t good = 0;
        while (good < b->request.count && b->entries[good].status == PAWL_OK)
            good++;
        if (a->refused)
            continue;
        if (!a->closed && !buffer_reserve(&a->output, good * LINE_MAX_TEXT)) {
            stop_for_memory(a);
            continue;
        }
        for (size_t i = 0; i < good && !a->closed; i++)
            a->output.size += (size_t)snprintf(a->output.data + a->output.size, LINE_MAX_TEXT,
                                               a->json ? "{\"offset\":%" PRIu64 "}\n" : "%" PRIu64 "\n",
                                               b->entries[i].entry.offset);
        if (good < b->request.count) {
            error_wrap(&b->error, b->entries[good].status, "line %" PRIu64 " is not acknowledged",
                       b->first_line + good);
            a->refused = true;
            a->eof = true;
            a->failure = b->error; /* what else there was to say concerns later lines */
        }
    }
    if (a->held && a->ended > 0)
        begin(a);
}

/* A pipe that can be written to takes a page without blocking. */
static void write_output(struct appending *a)
{
    size_t left = a->output.size - a->output_at;
    size_t size = a->output_is_file || left < 4096 ? left : 4096;
    ssize_t n = write(STDOUT_FILENO, a->output.data + a->output_at, size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0) {
        pawl_error error;
        a->closed = true;
        a->eof = true;
        if (errno != EPIPE) {
            error_errno(&error, errno, "cannot write the offsets");
            stop(a, &error);
        }
    }
    a->output_at = n < 0 ? a->output.size : a->output_at + (size_t)n;
    if (a->output_at == a->output.size)
        a->output_at = a->output.size = 0;
}

/* The first signal stops the reading, the second does not wait for the reader of the output either. */
static void take_signal(struct appending *a)
{
    struct signalfd_siginfo info;
    if (read(a->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (a->signal) {
        a->closed = true;
        a->output.size = a->output_at = 0;
    }
    a->signal = (int)info.ssi_signo;
    a->eof = true;
}

static void work(struct appending *a)
{
    enum { BELL, SIGNALS, IN, OUT, FDS };
    for (;;) {
        uint64_t in_flight = a->begun - a->ended;
        bool writing = a->output_at < a->output.size;
        if (a->eof && in_flight == 0 && !a->held && !writing)
            return;
        bool reading =
            !a->eof && !a->held && in_flight < IN_FLIGHT_MAX && a->output.size - a->output_at < OUT_BYTES_MAX;
        struct pollfd fds[FDS] = {
            [BELL] = {.fd = a->bell, .events = POLLIN},
            [SIGNALS] = {.fd = a->signals, .events = POLLIN},
            [IN] = {.fd = reading ? STDIN_FILENO : -1, .events = POLLIN},
            [OUT] = {.fd = writing ? STDOUT_FILENO : -1, .events = POLLOUT},
        };
        if (poll(fds, FDS, -1) < 0)
            continue;
        uint64_t rung;
        if (fds[BELL].revents && read(a->bell, &rung, sizeof rung) == (ssize_t)sizeof rung)
            collect(a);
        if (fds[SIGNALS].revents)
            take_signal(a);
        if (fds[OUT].revents)
            write_output(a);
        if (fds[IN].revents && !a->eof && !a->held)
            read_input(a);
    }
}

static void claimed(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static int claim(struct appending *a, pawl_error *error)
{
    struct latch latch;
    latch_init(&latch);
    pawl_claim request = {.stream = a->stream, .done = claimed, .arg = &latch, .error = error};
    int status = pawl_log_claim(engine_log_port(a->log), &request);
    if (status != PAWL_OK)
        return status;
    latch_wait(&latch);
    a->epoch = request.epoch;
    a->next = request.next;
    return request.status;
}

static int prepare(struct appending *a, const struct options *options, const char **ret_dir, pawl_error *error)
{
    const char *stream = options_get(options, "stream");
    int status = options_log(options, ret_dir, error);
    if (status == PAWL_OK && !stream)
        status = error_set(error, PAWL_EINVAL, "which stream? Say --stream raw/0");
    if (status == PAWL_OK)
        status = pawl_stream_parse(stream, &a->stream, error);
    if (status == PAWL_OK && a->stream.kind != PAWL_STREAM_RAW)
        status =
            error_set(error, PAWL_EINVAL, "lines are appended to raw/N only: %s has a form of its own", stream);
    return status;
}

/* Signals are blocked before the log starts its threads, so that they come to the signalfd alone. */
static int set_up(struct appending *a, pawl_error *error)
{
    struct stat st;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    a->signals = signalfd(-1, &set, SFD_CLOEXEC);
    a->bell = eventfd(0, EFD_CLOEXEC);
    a->output_is_file = fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
    a->line = 1;
    if (a->signals < 0 || a->bell < 0)
        return error_errno(error, errno, "cannot prepare to wait");
    return PAWL_OK;
}

static int run(const struct options *options)
{
    struct appending a = {.json = options_get(options, "json") != NULL};
    pawl_error error = {0};
    const char *dir;
    if (prepare(&a, options, &dir, &error) != PAWL_OK)
        return say_usage(&error);
    int status = set_up(&a, &error);
    if (status == PAWL_OK)
        status = engine_log_open(dir, false, &a.log, &error);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    status = claim(&a, &error);
    if (status == PAWL_OK)
        work(&a);
    else
        a.failure = error;
    int closing = engine_log_close(a.log);
    if (closing != PAWL_OK && a.failure.code == PAWL_OK)
        error_set(&a.failure, closing, "cannot close %s cleanly; what was acknowledged is durable", dir);
    for (size_t i = 0; i < IN_FLIGHT_MAX; i++) {
        free(a.batches[i].entries);
        free(a.batches[i].lines.data);
    }
    free(a.input.data);
    free(a.output.data);
    close(a.bell);
    close(a.signals);
    if (a.failure.code != PAWL_OK)
        return say_failure(options, &a.failure);
    return a.signal ? 128 + a.signal : CLI_OK;
}

const struct command command_log_append = {
    .name = "log append",
    .summary = "append each line of the input to a stream, and print its offset once it is on disk",
    .about =
        "Each line of stdin, without its end, becomes one entry. For each its offset is printed, alone on a\n"
        "line and in order, as soon as the entry is durable. The directory is made if it is not there. At the\n"
        "end of the input, or on SIGINT or SIGTERM, what is under way is finished, and the log is closed.\n",
    .options = {OPTION_DIR, OPTION_LOG, {"stream", "raw/N", "the stream to append to"}, OPTION_JSON},
    .run = run,
};

/* cli/care/log_append.c: lines of stdin become entries; their offsets come back on stdout once they are durable.
 *
 *     stdin ──read──► lines ──append──► in flight ──done──► offsets ──write──► stdout
 *       ▲                                   │ (the journal's thread counts, and rings the bell)
 *       └── one thread, one poll() ─────────┘
 *
 * The lines of one read(2) are one append, and a few appends are in flight. If lines come at full speed, they
 * fill the journal's groups; if somebody types them, each goes out at once. No line waits for the next.
 *
 * Invariants
 *   A1  Appends of one stream end in the order in which they began, so a count says which have ended.
 *   A2  An offset is written to stdout only after its entry is durable, and no offset waits for a later one.
 *   A3  Nothing is read while there is no room to append it, or while stdout does not take the offsets. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/talk/feed.h"
#include "cli/talk/open.h"

#define IN_FLIGHT_MAX 8
#define LINE_MAX_TEXT 40 /* most bytes that an offset takes on stdout */

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
    struct open_log log;
    pawl_stream stream;
    uint64_t epoch;
    uint64_t next; /* offset of the next line */
    uint64_t line; /* number of the next line */
    bool json;

    struct feed feed;
    struct batch batches[IN_FLIGHT_MAX];
    uint64_t begun;        /* appends; the last one is in batches[(begun - 1) % IN_FLIGHT_MAX] */
    uint64_t ended;        /* of these, how many were collected */
    _Atomic uint64_t done; /* of these, how many have their outcome */
    bool held;             /* batches[begun % ...] is ready, but the journal was busy */
    bool refused;          /* an entry was refused: nothing behind it is durable */
};

static void stop_for_memory(struct appending *a)
{
    pawl_error error;
    pawl_error_set(&error, PAWL_ENOMEM, "no memory at line %" PRIu64, a->line);
    feed_stop(&a->feed, &error);
}

static void ring(pawl_append *append)
{
    struct appending *a = append->arg;
    int bell = a->feed.bell;
    atomic_fetch_add(&a->done, 1);
    feed_ring(bell);
}

static bool add_line(struct appending *a, struct batch *b, const char *line, size_t size)
{
    if (size > PAWL_ENTRY_BYTES_MAX) {
        pawl_error error;
        pawl_error_set(&error, PAWL_ETOOBIG,
                       "line %" PRIu64 " has more than %zu bytes, which is the limit of an entry", a->line,
                       PAWL_ENTRY_BYTES_MAX);
        feed_stop(&a->feed, &error);
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

/* Append the batch that is ready. If the journal is busy, it is held until another one has ended. */
static void begin(struct appending *a)
{
    struct batch *b = &a->batches[a->begun % IN_FLIGHT_MAX];
    int status = pawl_log_append(a->log.log, &b->request);
    a->held = status == PAWL_EBUSY && a->begun > a->ended;
    if (status == PAWL_OK) {
        a->begun++;
    } else if (!a->held) {
        pawl_error_wrap(&b->error, status, "line %" PRIu64, b->first_line);
        feed_stop(&a->feed, &b->error);
    }
}

/* The first bytes of the input, which are whole lines, become a batch; the rest stays. */
static void append_lines(struct appending *a, size_t bytes)
{
    struct batch *b = &a->batches[a->begun % IN_FLIGHT_MAX];
    struct buffer lines = a->feed.input;
    a->feed.input = b->lines;
    b->lines = lines;
    a->feed.input.size = 0;
    if (!buffer_reserve(&a->feed.input, lines.size - bytes + 1)) {
        stop_for_memory(a);
        return;
    }
    memcpy(a->feed.input.data, lines.data + bytes, lines.size - bytes);
    a->feed.input.size = lines.size - bytes;

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
    struct buffer *in = &a->feed.input;
    pawl_error error;
    ssize_t n = feed_read(&a->feed, &error);
    if (n < 0) {
        pawl_error_wrap(&error, error.code, "line %" PRIu64, a->line);
        feed_stop(&a->feed, &error);
        return;
    }
    const char *last = n ? memrchr(in->data + in->size - (size_t)n, '\n', (size_t)n) : NULL;
    size_t whole = last ? (size_t)(last + 1 - in->data) : a->feed.eof ? in->size : 0;
    if (whole == 0 && in->size > PAWL_ENTRY_BYTES_MAX)
        whole = in->size; /* the line has no end: it is refused as it is */
    if (whole)
        append_lines(a, whole);
}

/* Put the offsets of appends that have ended into the output, up to the first entry that failed. */
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
        if (!a->feed.closed && !buffer_reserve(&a->feed.output, good * LINE_MAX_TEXT)) {
            stop_for_memory(a);
            continue;
        }
        for (size_t i = 0; i < good && !a->feed.closed; i++)
            a->feed.output.size += (size_t)snprintf(a->feed.output.data + a->feed.output.size, LINE_MAX_TEXT,
                                                    a->json ? "{\"offset\":%" PRIu64 "}\n" : "%" PRIu64 "\n",
                                                    b->entries[i].entry.offset);
        if (good < b->request.count) {
            pawl_error_wrap(&b->error, b->entries[good].status, "line %" PRIu64 " is not acknowledged",
                            b->first_line + good);
            a->refused = true;
            a->feed.eof = true;
            a->feed.failure = b->error; /* other errors are about later lines */
        }
    }
    if (a->held && a->ended > 0)
        begin(a);
}

static void work(struct appending *a)
{
    for (;;) {
        uint64_t in_flight = a->begun - a->ended;
        if (a->feed.eof && in_flight == 0 && !a->held && feed_unsaid(&a->feed) == 0)
            return;
        unsigned found = feed_wait(&a->feed, !a->feed.eof && !a->held && in_flight < IN_FLIGHT_MAX
                                                 && feed_unsaid(&a->feed) < FEED_OUTPUT_MAX);
        if (found & FEED_RANG)
            collect(a);
        if ((found & FEED_READABLE) && !a->feed.eof && !a->held)
            read_input(a);
    }
}

static void claimed(pawl_claim *claim)
{
    const struct appending *a = claim->arg;
    feed_ring(a->feed.bell);
}

static int claim(struct appending *a, pawl_error *error)
{
    uint64_t rung;
    pawl_claim request = {.stream = a->stream, .done = claimed, .arg = a, .error = error};
    int status = pawl_log_claim(a->log.log, &request);
    if (status != PAWL_OK)
        return status;
    while (read(a->feed.bell, &rung, sizeof rung) < 0 && errno == EINTR) {
    }
    a->epoch = request.epoch;
    a->next = request.next;
    return request.status;
}

static int prepare(struct appending *a, const struct options *options, const char **ret_dir, pawl_error *error)
{
    const char *stream = options_get(options, "stream");
    int status = options_log(options, ret_dir, error);
    if (status == PAWL_OK && !stream)
        status = pawl_error_set(error, PAWL_EINVAL, "which stream? Say --stream raw/0");
    if (status == PAWL_OK)
        status = pawl_stream_parse(stream, &a->stream, error);
    if (status == PAWL_OK && a->stream.kind != PAWL_STREAM_RAW)
        status = pawl_error_set(error, PAWL_EINVAL,
                                "lines are appended to raw/N only: %s has a form of its own", stream);
    return status;
}

static int run(const struct options *options)
{
    struct appending a = {.line = 1, .json = options_get(options, "json") != NULL};
    pawl_error error = {0};
    const char *dir;
    if (prepare(&a, options, &dir, &error) != PAWL_OK)
        return say_usage(&error);
    int status = feed_init(&a.feed, STDIN_FILENO, &error);
    if (status == PAWL_OK)
        status = open_log(dir, false, &a.log, &error);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    status = claim(&a, &error);
    if (status == PAWL_OK)
        work(&a);
    else
        a.feed.failure = error;
    int closing = close_log(&a.log);
    if (closing != PAWL_OK && a.feed.failure.code == PAWL_OK)
        pawl_error_set(&a.feed.failure, closing, "cannot close %s cleanly; what was acknowledged is durable",
                       dir);
    for (size_t i = 0; i < IN_FLIGHT_MAX; i++) {
        free(a.batches[i].entries);
        free(a.batches[i].lines.data);
    }
    feed_release(&a.feed);
    if (a.feed.failure.code != PAWL_OK)
        return say_failure(options, &a.feed.failure);
    return a.feed.signal ? 128 + a.feed.signal : CLI_OK;
}

const struct command command_log_append = {
    .name = "log append",
    .summary = "append each line of the input to a stream, and print its offset once it is on disk",
    .about =
        "Each line of stdin, without its end, becomes one entry. For each its offset is printed, alone on a\n"
        "line and in order, as soon as the entry is durable. The directory is made if it is not there. At the\n"
        "end of the input, or on SIGINT or SIGTERM, what is under way is finished, and the log is closed.\n",
    .options = {OPTION_DIR,
                OPTION_LOG,
                {"stream", "raw/N", "the stream to append to", .needed = true},
                OPTION_JSON},
    .run = run,
};

/* cli/data/command.c: commands from a file, from stdin or from the options; their answers, in the same order.
 *
 *     lines ──► commands, a window of them ──session_send──► answers ──► stdout
 *       ▲                                          │ (a shard's thread marks its slot and rings the bell)
 *       └────────── one thread, one poll() ────────┘
 *
 * Invariants
 *   C1  Slots are taken and given back in the order of the lines, so answers are in that order too.
 *   C2  An answer is written as soon as it is known, and waits for no later one.
 *   C3  With --stop-on-error the window is one command: no line behind a refused one was sent. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/talk/feed.h"
#include "cli/talk/session.h"

#define WINDOW       256
#define WINDOW_BYTES ((size_t)16 << 20) /* of commands under way; one may be longer */

struct slot {
    struct session_command command;
    uint64_t line;
    size_t bytes;
    int bell;
    int status;
    pawl_error error;
    atomic_bool done;
};

struct commanding {
    const struct options *options;
    struct session session;
    struct command_wish wish;

    struct feed feed;
    struct slot *slots;
    size_t window;
    uint64_t begun; /* commands; the last one is in slots[(begun - 1) % WINDOW] */
    uint64_t ended; /* of these, how many are answered */
    size_t bytes;   /* of those under way */
    uint64_t refused;
    uint64_t refused_line; /* of the first refusal */
    int refused_status;
    bool stopped; /* a refusal ended it */

    bool alone;    /* one command, made of options: its refusal is printed like that of any other verb */
    bool whole;    /* the input is one command, however many lines it has */
    bool decided;  /* whole is known */
    bool skipping; /* the rest of a line that is too long */
    uint64_t line; /* number of the next line */
};

/* --- a command --- */

/* On another thread. */
static void done(void *arg)
{
    struct slot *slot = arg;
    int bell = slot->bell;
    slot->status = slot->command.status;
    slot->error = slot->command.error;
    atomic_store_explicit(&slot->done, true, memory_order_release);
    feed_ring(bell);
}

/* The next slot; its request is made when it is first used. */
static struct slot *take_slot(struct commanding *c)
{
    struct slot *slot = &c->slots[c->begun++ % WINDOW];
    slot->line = c->line;
    slot->bytes = 0;
    slot->bell = c->feed.bell;
    slot->status = PAWL_OK;
    slot->error = (pawl_error){0};
    atomic_store_explicit(&slot->done, false, memory_order_relaxed);
    return slot;
}

static void refuse(struct slot *slot, int status)
{
    slot->status = status;
    slot->error.code = status;
    atomic_store_explicit(&slot->done, true, memory_order_relaxed);
}

static void send(struct commanding *c, pawl_bytes json)
{
    struct slot *slot = take_slot(c);
    slot->bytes = json.size;
    c->bytes += json.size;
    slot->command.done = done;
    slot->command.arg = slot;
    int status = session_send(&c->session, &c->wish, json, &slot->command, &slot->error);
    if (status != PAWL_OK)
        refuse(slot, status);
}

/* --- answers --- */

/* One line of the output. */
static int put_line(struct commanding *c, const struct slot *slot, const char *text, size_t size,
                    pawl_error *error)
{
    struct buffer *output = &c->feed.output;
    if (c->feed.closed)
        return PAWL_OK;
    if (!buffer_reserve(output, size + 1))
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for the answer to line %" PRIu64, slot->line);
    memcpy(output->data + output->size, text, size);
    output->data[output->size + size] = '\n';
    output->size += size + 1;
    return PAWL_OK;
}

static int put_refusal(struct commanding *c, const struct slot *slot, pawl_error *error)
{
    char why[PAWL_ERROR_JSON_MAX], text[PAWL_ERROR_JSON_MAX + 64];
    pawl_error_json(&slot->error, why);
    int size = snprintf(text, sizeof text, "{\"line\":%" PRIu64 ",\"error\":%s}", slot->line, why);
    return put_line(c, slot, text, (size_t)size, error);
}

static int say_answer(struct commanding *c, struct slot *slot, pawl_error *error)
{
    pawl_text text;
    if (slot->status != PAWL_OK)
        return put_refusal(c, slot, error);
    int status = session_answer(&c->session, &slot->command, &text, error);
    if (status != PAWL_OK)
        return status;
    status = put_line(c, slot, text.data, text.size, error);
    pawl_text_free(&text);
    return status;
}

static void note_refusal(struct commanding *c, const struct slot *slot)
{
    c->stopped = c->window == 1;
    if (c->refused++ > 0)
        return;
    c->refused_line = slot->line;
    c->refused_status = slot->status;
}

static void collect(struct commanding *c)
{
    while (c->ended < c->begun) {
        struct slot *slot = &c->slots[c->ended % WINDOW];
        pawl_error error = {0};
        if (!atomic_load_explicit(&slot->done, memory_order_acquire))
            return;
        c->ended++;
        c->bytes -= slot->bytes;
        if (slot->status != PAWL_OK)
            note_refusal(c, slot);
        if (slot->status != PAWL_OK && c->alone)
            feed_stop(&c->feed, &slot->error);
        else if (say_answer(c, slot, &error) != PAWL_OK)
            feed_stop(&c->feed, &error);
    }
}

/* --- lines --- */

static bool is_blank(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!strchr(" \t\r\n", text[i]) || text[i] == '\0')
            return false;
    return true;
}

/* Whether the first line is only the beginning of a command: no complete command ends with these characters. */
static bool goes_on(const char *line, size_t size)
{
    while (size > 0 && is_blank(line + size - 1, 1))
        size--;
    return size > 0 && line[size - 1] != '\0' && strchr("{[,:", line[size - 1]);
}

/* complete: the whole line is there; if not, it is longer than a command may be. */
static void take_line(struct commanding *c, const char *line, size_t size, bool complete)
{
    if (!c->skipping && !complete) {
        struct slot *slot = take_slot(c);
        refuse(slot, pawl_error_set(&slot->error, PAWL_ETOOBIG, "the command has more than %zu bytes",
                                    PAWL_REQUEST_JSON_MAX));
    } else if (!c->skipping && !is_blank(line, size))
        send(c, (pawl_bytes){line, size});
    c->skipping = !complete;
    c->line += complete;
}

static const char *find_end(struct commanding *c, const char *line, size_t size)
{
    const char *end = memchr(line, '\n', size);
    if (end && !c->decided && !is_blank(line, (size_t)(end - line))) {
        c->whole = goes_on(line, (size_t)(end - line));
        c->decided = true;
    }
    return c->whole ? NULL : end;
}

static bool has_room(const struct commanding *c)
{
    return c->begun == c->ended || (c->begun - c->ended < c->window && c->bytes < WINDOW_BYTES);
}

/* Take as many lines as the window has room for; the rest stays. True: there is another line, but no room for
 * it. */
static bool take_lines(struct commanding *c)
{
    struct buffer *in = &c->feed.input;
    size_t at = 0;
    bool waits = false;
    while (at < in->size && !c->stopped && !waits) {
        const char *line = in->data + at, *end = find_end(c, line, in->size - at);
        size_t size = end ? (size_t)(end - line) : in->size - at;
        if (!end && !c->feed.eof && size <= PAWL_REQUEST_JSON_MAX)
            break;
        waits = !has_room(c);
        if (waits)
            break;
        take_line(c, line, size, end || c->feed.eof);
        at += size + (end != NULL);
        collect(c);
    }
    if (at > 0)
        memmove(in->data, in->data + at, in->size - at);
    in->size -= at;
    return waits;
}

static void work(struct commanding *c)
{
    for (;;) {
        struct feed *f = &c->feed;
        if (c->stopped || f->signal || f->closed || f->failure.code != PAWL_OK) {
            f->eof = true;
            f->input.size = 0;
        }
        if (f->signal && f->closed)
            session_give_up(&c->session);
        bool waits = take_lines(c);
        collect(c);
        bool room = has_room(c);
        if (waits && room)
            continue;
        if (f->eof && f->input.size == 0 && c->begun == c->ended && feed_unsaid(f) == 0)
            return;
        pawl_error error;
        unsigned found = feed_wait(f, !f->eof && room && feed_unsaid(f) < FEED_OUTPUT_MAX);
        if ((found & FEED_READABLE) && feed_read(f, &error) < 0)
            feed_stop(f, &error);
    }
}

/* --- the options --- */

static json_t *load(const char *option, const char *text, pawl_error *error)
{
    json_error_t why;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (!json)
        pawl_error_set(error, PAWL_EINVAL, "--%s: line %d, column %d: %s", option, why.line, why.column,
                       why.text);
    return json;
}

/* Compose one command as JSON; free() it. */
static int compose(const struct options *options, char **ret_json, pawl_error *error)
{
    const char *argument = options_get(options, "argument"), *record;
    json_t *command = json_pack("{s:s}", "command", options_get(options, "command")), *records = json_array();
    int cursor = 0, status = command && records ? PAWL_OK : PAWL_EINVAL;
    if (status != PAWL_OK)
        pawl_error_set(error, status, "--command is not UTF-8");
    if (status == PAWL_OK && argument)
        status = json_object_set_new(command, "argument", load("argument", argument, error));
    while (status == PAWL_OK && (record = options_next(options, "record", &cursor)))
        status = json_array_append_new(records, load("record", record, error));
    if (status == PAWL_OK && json_array_size(records))
        status = json_object_set(command, "records", records);
    char *json = status == PAWL_OK ? json_dumps(command, JSON_COMPACT) : NULL;
    json_decref(command);
    json_decref(records);
    if (!json)
        return PAWL_EINVAL;
    *ret_json = json;
    return PAWL_OK;
}

static int parse_options(struct commanding *c, pawl_error *error)
{
    const struct options *o = c->options;
    const char *ack = options_get(o, "ack");
    c->alone = options_get(o, "command") != NULL;
    c->wish =
        (struct command_wish){.ack = ack && strcmp(ack, "durable") == 0 ? PAWL_ACK_DURABLE : PAWL_ACK_APPLIED,
                              .key = options_get(o, "key"),
                              .actor = options_get(o, "actor"),
                              .correlation = options_get(o, "correlation"),
                              .causation = options_get(o, "causation"),
                              .expects = options_get(o, "expected-offset") != NULL};
    c->whole = c->decided = c->wish.expects || c->wish.key;
    c->window = options_get(o, "stop-on-error") ? 1 : WINDOW;
    int status = options_argument(o, 0, "WSID", &c->wish.wsid, error);
    if (status == PAWL_OK)
        status = options_number(o, "expected-offset", 0, 0, &c->wish.expected, error);
    if (status == PAWL_OK && ack && c->wish.ack == PAWL_ACK_APPLIED && strcmp(ack, "applied") != 0)
        status = pawl_error_set(error, PAWL_EINVAL, "--ack %s: expected durable or applied", ack);
    if (status == PAWL_OK && c->alone && o->arguments[1])
        status =
            pawl_error_set(error, PAWL_EINVAL, "a command comes from a file or from --command, not from both");
    if (status == PAWL_OK && !c->alone && (options_get(o, "argument") || options_get(o, "record")))
        status = pawl_error_set(error, PAWL_EINVAL,
                                "--argument and --record are of the command that --command names");
    return status;
}

static int open_input(const struct commanding *c, int *ret_fd, pawl_error *error)
{
    const char *file = c->options->arguments[1];
    int fd = STDIN_FILENO;
    if (!c->alone && file && strcmp(file, "-") != 0)
        fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return pawl_error_errno(error, errno, "cannot open %s", file);
    *ret_fd = fd;
    return PAWL_OK;
}

/* The error to print in the end, if a command was refused or something failed. */
static int verdict(const struct commanding *c, pawl_error *error)
{
    if (c->feed.failure.code != PAWL_OK) {
        *error = c->feed.failure;
        return error->code;
    }
    if (c->refused == 0)
        return PAWL_OK;
    if (c->begun == 1)
        return pawl_error_set(error, c->refused_status, "the command in line %" PRIu64 " was refused",
                              c->refused_line);
    return pawl_error_set(error, c->refused_status,
                          "%" PRIu64 " of %" PRIu64 " commands were refused, the first in line %" PRIu64,
                          c->refused, c->begun, c->refused_line);
}

static int command_all(struct commanding *c, char *composed, pawl_error *error)
{
    c->slots = calloc(WINDOW, sizeof c->slots[0]);
    if (!c->slots)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for requests");
    if (composed) {
        c->feed.eof = true;
        send(c, (pawl_bytes){composed, strlen(composed)});
    }
    work(c);
    for (size_t i = 0; i < WINDOW; i++)
        session_command_release(&c->slots[i].command);
    free(c->slots);
    return verdict(c, error);
}

static int run(const struct options *options)
{
    struct commanding c = {.options = options, .line = 1};
    pawl_error error = {0};
    char *composed = NULL;
    int in = STDIN_FILENO;
    if (parse_options(&c, &error) != PAWL_OK || (c.alone && compose(options, &composed, &error) != PAWL_OK))
        return say_usage(&error);
    int status = open_input(&c, &in, &error);
    if (status == PAWL_OK)
        status = feed_init(&c.feed, in, &error);
    if (status != PAWL_OK) {
        free(composed);
        return say_failure(options, &error);
    }
    int code = session_open(options, OPEN_TO_WRITE, &c.session);
    if (code == CLI_OK) {
        status = command_all(&c, composed, &error);
        code = session_close(options, &c.session, status, &error);
    }
    feed_release(&c.feed);
    if (in != STDIN_FILENO)
        close(in);
    free(composed);
    return code == CLI_OK && c.feed.signal ? 128 + c.feed.signal : code;
}

const struct command command_command = {
    .name = "command",
    .summary = "send commands to a workspace",
    .about =
        "Commands come as JSON, one a line, from FILE or stdin (-, or nothing said); or as one that is spread\n"
        "over lines; or from the options. For each its answer is printed, one a line, in the same order, as "
        "soon\n"
        "as it is true; for one that is refused {\"line\":N,\"error\":{...}}, and the exit code is 1 in the "
        "end.\n"
        "Many are under way at once. At the end of the input, or on SIGINT or SIGTERM, what is under way is\n"
        "finished.\n",
    .arguments = {"WSID", "[FILE]"},
    .options = {OPTIONS_WHERE,
                {"command", "NAME", "send this command: shop.AddCustomer"},
                {"argument", "JSON", "with this argument"},
                {"record", "JSON", "and this record; may be said more than once", true},
                {"key", "KEY", "its idempotency key; the input is one command"},
                {"expected-offset", "N", "refuse it unless this is the workspace's last; the same"},
                {"actor", "TEXT", "who sends them, kept with the events"},
                {"correlation", "TEXT", "what they belong to, kept with the events"},
                {"causation", "TEXT", "what caused them, kept with the events"},
                {"ack", "WHEN", "answer when the event is durable, or applied (applied)"},
                {"stop-on-error", NULL, "send nothing behind a command that is refused: one at a time"},
                OPTION_JSON},
    .choices = {{"WHEN", "applied durable"}},
    .run = run,
};

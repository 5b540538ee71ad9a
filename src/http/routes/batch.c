/* http/routes/batch.c: POST /v1/ws/{wsid}/commands with NDJSON: many commands, their answers in the same order.
 *
 *     body ──► lines ──► slots, at most WINDOW ──pawl_command_async──► answers, one a line ──► client
 *                          ▲                             │ (a shard marks its slot, and wakes the connection if
 *                          └───────── HTTP thread ◄──────┘  that is the slot it waits for)
 *
 * Commands are sent while the body comes. If all slots are taken, the body is not read on, so the client waits.
 * libmicrohttpd sends nothing before it has read the whole body: until then answers are kept, which bounds how
 * many lines a request may have.
 *
 * Invariants
 *   B1  Slots are taken and given back in the order of the lines, so answers are in that order, too.
 *   B2  Each command under way holds the exchange. So the slots outlive a client that goes away.
 *   B3  With stop_on_error the window is one command: no line behind a refused one is sent. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/routes/commands.h"
#include "http/server/server.h"

#define WINDOW       256
#define WINDOW_BYTES ((size_t)16 << 20) /* of commands under way; one may be longer */
#define ANSWERS_MAX  ((size_t)64 << 20) /* bytes of answers that are kept */

struct slot {
    struct batch *batch;
    uint64_t number;
    uint64_t line;
    pawl_request *request;
    size_t bytes;
    int status;
    pawl_error error;
    atomic_bool done;
};

struct batch {
    struct exchange *x;
    uint64_t wsid;
    pawl_ack ack;
    size_t window;
    uint64_t begun;           /* commands; number n is in slots[n % WINDOW] */
    uint64_t ended;           /* of these, how many are answered */
    size_t bytes;             /* of those under way */
    _Atomic uint64_t awaited; /* the number that the connection sleeps for; UINT64_MAX: none */
    uint64_t lines;           /* that were taken */
    bool stopped;             /* no more lines are sent */
    bool skipping;            /* the rest of a line that is too long */

    char *kept; /* the beginning of a line, or a whole one that could not be sent yet */
    size_t kept_size;
    size_t kept_room;
    bool kept_whole;

    char *answers;
    size_t answers_size;
    size_t answers_room;
    size_t answers_sent;
    bool broken; /* no memory for answers */

    struct slot slots[WINDOW];
};

/* --- memory that grows --- */

static bool grow(char **memory, size_t *room, size_t size)
{
    size_t more = *room ? *room : 4096;
    if (size <= *room)
        return true;
    while (more < size)
        more *= 2;
    char *grown = realloc(*memory, more);
    if (!grown)
        return false;
    *memory = grown;
    *room = more;
    return true;
}

static void put_answer(struct batch *b, const char *text, size_t size)
{
    if (b->answers_sent == b->answers_size)
        b->answers_sent = b->answers_size = 0;
    if (!grow(&b->answers, &b->answers_room, b->answers_size + size + 1)) {
        b->broken = true;
        return;
    }
    memcpy(b->answers + b->answers_size, text, size);
    b->answers_size += size;
    b->answers[b->answers_size++] = '\n';
}

static void put_refusal(struct batch *b, uint64_t line, const pawl_error *error)
{
    char why[PAWL_ERROR_JSON_MAX], text[PAWL_ERROR_JSON_MAX + 64];
    pawl_error_json(error, why);
    int size = snprintf(text, sizeof text, "{\"line\":%" PRIu64 ",\"error\":%s}", line, why);
    put_answer(b, text, (size_t)size);
}

/* --- slots --- */

static void give_back(struct batch *b, struct slot *slot)
{
    if (slot->request)
        requests_give(b->x->server->requests, slot->request);
    slot->request = NULL;
}

static void answer_slot(struct batch *b, struct slot *slot)
{
    pawl_text text;
    if (slot->status == PAWL_OK)
        slot->status = pawl_request_answer_json(slot->request, &text, &slot->error);
    if (slot->status == PAWL_OK) {
        put_answer(b, text.data, text.size);
        pawl_text_free(&text);
    } else {
        slot->error.code = slot->status;
        put_refusal(b, slot->line, &slot->error);
        b->stopped = b->stopped || b->window == 1;
    }
    give_back(b, slot);
}

/* Answer what is done, up to the first that is not. */
static void collect(struct batch *b)
{
    while (b->ended < b->begun) {
        struct slot *slot = &b->slots[b->ended % WINDOW];
        if (!atomic_load_explicit(&slot->done, memory_order_acquire))
            return;
        b->ended++;
        b->bytes -= slot->bytes;
        answer_slot(b, slot);
    }
}

/* Whether the connection may sleep until the next answer: not if it has come meanwhile. Both sides write first and
 * then read, so one of them sees the other. */
static bool await(struct batch *b)
{
    atomic_store(&b->awaited, b->ended);
    return !atomic_load(&b->slots[b->ended % WINDOW].done);
}

/* On a shard. */
static void done(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                 const pawl_error *error)
{
    struct slot *slot = arg;
    struct batch *batch = slot->batch;
    struct exchange *x = batch->x;
    uint64_t number = slot->number;
    (void)request, (void)answer;
    slot->status = status;
    if (status != PAWL_OK)
        slot->error = *error;
    atomic_store(&slot->done, true); /* from here on the slot may be another command's */
    if (atomic_load(&batch->awaited) == number)
        exchange_wake(x);
    exchange_let_go(x);
}

/* A line that will not be sent is answered in its turn all the same. */
static void refuse(struct batch *b, struct slot *slot, int status)
{
    slot->status = status;
    atomic_store(&slot->done, true);
    b->begun++;
}

/* Send a line. False: there is no room for it now, but there will be: something is under way. */
static bool send_line(struct batch *b, pawl_bytes text)
{
    struct slot *slot = &b->slots[b->begun % WINDOW];
    bool under_way = b->begun > b->ended;
    if (b->begun - b->ended == b->window || (under_way && b->bytes + text.size > WINDOW_BYTES))
        return false;
    slot->batch = b;
    slot->number = b->begun;
    slot->line = b->lines + 1;
    slot->bytes = text.size;
    slot->error = (pawl_error){0};
    atomic_store(&slot->done, false);
    int status = requests_take(b->x->server->requests, &slot->request, &slot->error);
    if (status == PAWL_OK)
        status = command_fill(slot->request, b->wsid, b->ack, text, NULL, &slot->error);
    if (status == PAWL_OK) {
        exchange_hold(b->x); /* B2 */
        status = pawl_command_async(exchange_engine(b->x), slot->request, done, slot, &slot->error);
        if (status != PAWL_OK)
            exchange_let_go(b->x);
    }
    if (status == PAWL_EBUSY && under_way) {
        give_back(b, slot);
        return false;
    }
    b->bytes += text.size;
    if (status != PAWL_OK)
        refuse(b, slot, status);
    else
        b->begun++;
    return true;
}

/* Send no more lines, and say so in the place of the next answer. */
static void stop_with(struct batch *b, const char *words)
{
    struct slot *slot = &b->slots[b->begun % WINDOW];
    slot->batch = b;
    slot->number = b->begun;
    slot->line = b->lines + 1;
    slot->bytes = 0;
    pawl_error_set(&slot->error, PAWL_ETOOBIG, "%s; this line and those behind it were not sent", words);
    refuse(b, slot, PAWL_ETOOBIG);
    b->stopped = true;
}

static bool is_blank(pawl_bytes text)
{
    const char *at = text.data;
    for (size_t i = 0; i < text.size; i++)
        if (!strchr(" \t\r", at[i]) || at[i] == '\0')
            return false;
    return true;
}

/* A whole line. False: there is no room for it now. */
static bool take_line(struct batch *b, pawl_bytes text)
{
    const pawl_serve_limits *limits = &b->x->server->options.limits;
    collect(b);
    if (!b->stopped && !is_blank(text)) {
        if (b->begun - b->ended == b->window)
            return false;
        if (b->begun == limits->batch_lines)
            stop_with(b, "a request has too many commands");
        else if (b->answers_size > ANSWERS_MAX)
            stop_with(b, "the answers of a request have too many bytes");
        else if (!send_line(b, text))
            return false;
    }
    b->lines++;
    return true;
}

/* --- the body --- */

static bool keep(struct batch *b, const char *data, size_t size)
{
    if (b->kept_size + size > b->x->server->options.limits.body_bytes) {
        b->skipping = true;
        b->kept_size = 0;
    }
    if (b->skipping)
        return true;
    if (!grow(&b->kept, &b->kept_room, b->kept_size + size))
        return false;
    memcpy(b->kept + b->kept_size, data, size);
    b->kept_size += size;
    return true;
}

/* The line that was kept, and is whole. False: there is no room for it now. */
static bool take_kept(struct batch *b)
{
    collect(b);
    if (b->skipping && !b->stopped) {
        if (b->begun - b->ended == b->window)
            return false;
        stop_with(b, "the line is too long");
    }
    if (!take_line(b, (pawl_bytes){b->kept, b->kept_size}))
        return false;
    b->kept_size = 0;
    b->kept_whole = b->skipping = false;
    return true;
}

static size_t take(struct exchange *x, const char *data, size_t size)
{
    struct batch *b = exchange_state(x);
    size_t used = 0;
    while (b->kept_whole || used < size) {
        const char *at = data + used, *end = memchr(at, '\n', size - used);
        size_t part = end ? (size_t)(end - at) : size - used;
        bool fits = true;
        if (b->kept_whole) {
            fits = take_kept(b);
        } else if (!end || b->kept_size > 0 || b->skipping || part > x->server->options.limits.body_bytes) {
            if (!keep(b, at, part)) {
                exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for a line");
                return size;
            }
            b->kept_whole = end != NULL;
            used += part + (end != NULL);
        } else {
            fits = take_line(b, (pawl_bytes){at, part});
            used += fits ? part + 1 : 0;
        }
        if (!fits && await(b))
            break;
    }
    return used;
}

/* --- the answers --- */

static ptrdiff_t read_answers(struct exchange *x, char *memory, size_t room)
{
    struct batch *b = exchange_state(x);
    for (;;) {
        collect(b);
        if (b->kept_whole && take_kept(b))
            continue;
        size_t left = b->answers_size - b->answers_sent;
        if (b->broken)
            return STREAM_BROKEN;
        if (left > 0) {
            size_t size = left < room ? left : room;
            memcpy(memory, b->answers + b->answers_sent, size);
            b->answers_sent += size;
            return (ptrdiff_t)size;
        }
        if (b->ended == b->begun)
            return STREAM_END;
        if (await(b))
            return 0;
    }
}

static void release_batch(void *state)
{
    struct batch *b = state;
    for (uint64_t i = b->ended; i < b->begun; i++)
        give_back(b, &b->slots[i % WINDOW]);
    free(b->kept);
    free(b->answers);
    free(b);
}

void batch_begin(struct exchange *x)
{
    uint64_t wsid;
    pawl_ack ack;
    bool stop;
    if (!exchange_wsid(x, &wsid) || !command_ack(x, &ack) || !exchange_flag(x, "stop_on_error", &stop))
        return;
    if (exchange_header(x, "Idempotency-Key")) {
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL,
                        "$header.Idempotency-Key: of many commands, each has its own: idempotency_key");
        return;
    }
    struct batch *b = calloc(1, sizeof *b);
    if (!b) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for commands");
        return;
    }
    b->x = x;
    b->wsid = wsid;
    b->ack = ack;
    b->window = stop ? 1 : WINDOW;
    b->awaited = UINT64_MAX;
    exchange_keep(x, b, release_batch);
    exchange_take_body(x, take);
}

/* The body has ended, perhaps without a newline. */
void batch_answer(struct exchange *x)
{
    struct batch *b = exchange_state(x);
    b->kept_whole = b->kept_whole || b->kept_size > 0 || b->skipping;
    exchange_stream(x, TYPE_NDJSON, read_answers);
}

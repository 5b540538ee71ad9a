/* test/kafka/writer.c: a writer that shares a stream with rivals, and keeps a record of what it was told.
 *
 *     log_writer LOG STREAM NAME IN_FLIGHT RECORD
 *
 * It claims the stream, and appends with IN_FLIGHT entries under way until it is told off: when an entry was
 * refused it lets the rest end, waits a little, and claims again; when an outcome is unknown, the next claim
 * settles it. SIGTERM ends it, after everything has its outcome. To RECORD it writes, in the order in which it
 * learned it, and at the latest before it claims:
 *
 *     A OFFSET SERIAL    acknowledged
 *     R OFFSET SERIAL    was unknown, and found to be written
 *     L OFFSET SERIAL    was unknown, and found not to be written
 *     N OFFSET SERIAL    refused
 *     C EPOCH NEXT       claimed
 *
 * Entry SERIAL's body is "NAME SERIAL " and as many x as body_size says, so that whoever reads the log knows
 * what must be there. What the log may never do is an error here: outcomes out of order, a read that ends
 * before what a claim has promised, a status that the port does not name. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/latch.h"
#include "engine/log/log.h"

#define IN_FLIGHT_MAX  4096
#define HEAD_MAX       64
#define BIG_EVERY      20011
#define BIG_BYTES      ((size_t)2500000)
#define FINISH_SECONDS 350 /* then it says so itself, before test_rivals.py has waited long enough */
#define OPEN_TRIES_MAX 30

/* An entry, from its append until its outcome is in the record. */
struct slot {
    pawl_append request;
    pawl_append_entry entry;
    uint64_t serial;
    char *body; /* NULL: it has its outcome */
    pawl_error error;
};

/* Entries by number, each in its slot:  first <= looked_at <= ended <= begun.
 *   first ... looked_at    some of them unknown until the next claim
 *   looked_at ... ended    have ended, in order, on the log's thread
 *   ended ... begun        under way */
struct writer {
    struct engine_log *log;
    pawl_stream stream;
    const char *name;
    FILE *record;
    uint64_t chance;

    struct slot slots[IN_FLIGHT_MAX];
    uint64_t room;
    uint64_t first, looked_at, begun;
    uint64_t ended; /* under the mutex */
    pthread_mutex_t mutex;
    pthread_cond_t changed;

    bool owner;
    uint64_t epoch;
    uint64_t next;
    uint64_t serial;
    uint64_t acknowledged, found, lost, refused, claims;
};

static struct latch end; /* set by SIGTERM */
static volatile sig_atomic_t told_to_stop;

static void stop(int number)
{
    if (!told_to_stop)
        latch_set(&end);
    told_to_stop = 1;
}

static _Noreturn void die(const char *what, int status, const pawl_error *error)
{
    fprintf(stderr, "log_writer: %s: %s %s\n", what, pawl_status_name(status), error ? error->text : "");
    exit(1);
}

static void check_patience(struct writer *w)
{
    static uint64_t since;
    uint64_t now = pawl_env_now(engine_log_env(w->log)).ns;
    if (told_to_stop && !since)
        since = now;
    if (told_to_stop && now - since > FINISH_SECONDS * PAWL_SECOND)
        die("told to stop, and an outcome is still unknown", PAWL_ETIMEOUT, NULL);
}

static void wait_a_little(struct writer *w)
{
    static const uint64_t most_ms[] = {1, 20, 300};
    w->chance = w->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t ms = 1 + (w->chance >> 40) % most_ms[(w->chance >> 33) % 3];
    pawl_instant now = pawl_env_now(engine_log_env(w->log));
    latch_wait_until(&end, (pawl_instant){now.ns + ms * PAWL_MILLISECOND});
}

/* Mostly a few hundred bytes; at times more than a Kafka record may have. test_rivals.py knows the same rule.
 */
static size_t body_size(uint64_t serial)
{
    return serial % BIG_EVERY == 1 ? BIG_BYTES : (size_t)(serial * 7919 % 400);
}

static pawl_bytes make_body(struct writer *w, struct slot *slot)
{
    size_t rest = body_size(slot->serial);
    slot->body = malloc(HEAD_MAX + rest);
    if (!slot->body)
        die("append", PAWL_ENOMEM, NULL);
    int head = snprintf(slot->body, HEAD_MAX, "%s %" PRIu64 " ", w->name, slot->serial);
    memset(slot->body + head, 'x', rest);
    return (pawl_bytes){slot->body, (size_t)head + rest};
}

static struct slot *slot_of(struct writer *w, uint64_t number)
{
    return &w->slots[number % w->room];
}

static void settle(struct writer *w, char outcome, struct slot *slot)
{
    fprintf(w->record, "%c %" PRIu64 " %" PRIu64 "\n", outcome, slot->entry.entry.offset, slot->serial);
    w->acknowledged += outcome == 'A';
    w->found += outcome == 'R';
    w->lost += outcome == 'L';
    w->refused += outcome == 'N';
    free(slot->body);
    slot->body = NULL;
}

static void append_ended(pawl_append *append)
{
    struct writer *w = append->arg;
    pthread_mutex_lock(&w->mutex);
    if (append != &slot_of(w, w->ended)->request)
        die("an outcome came before an earlier one", PAWL_EMISUSE, NULL);
    w->ended++;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

/* Record what has ended; before that, wait until at most so many are under way. */
static void look(struct writer *w, uint64_t under_way_max)
{
    pthread_mutex_lock(&w->mutex);
    while (w->begun - w->ended > under_way_max)
        pthread_cond_wait(&w->changed, &w->mutex);
    uint64_t ended = w->ended;
    pthread_mutex_unlock(&w->mutex);

    for (; w->looked_at < ended; w->looked_at++) {
        struct slot *slot = slot_of(w, w->looked_at);
        switch (slot->entry.status) {
        case PAWL_OK: settle(w, 'A', slot); break;
        case PAWL_EFENCED:
        case PAWL_EFULL:
        case PAWL_EIO: settle(w, 'N', slot); break;
        case PAWL_EUNKNOWN: break;
        default: die("append", slot->entry.status, &slot->error);
        }
        w->owner = w->owner && slot->entry.status == PAWL_OK;
        if (w->first == w->looked_at && !slot->body)
            w->first++;
    }
}

static void append(struct writer *w)
{
    struct slot *slot = slot_of(w, w->begun);
    slot->serial = w->serial + 1;
    slot->entry = (pawl_append_entry){.entry = {.stream = w->stream, .epoch = w->epoch, .offset = w->next}};
    slot->entry.entry.body = make_body(w, slot);
    slot->error = (pawl_error){0};
    slot->request = (pawl_append){
        .entries = &slot->entry, .count = 1, .done = append_ended, .arg = w, .error = &slot->error};
    w->begun++;
    int status = pawl_log_append(engine_log_port(w->log), &slot->request);
    if (status == PAWL_OK) {
        w->serial++;
        w->next++;
        return;
    }
    w->begun--;
    free(slot->body);
    slot->body = NULL;
    if (status != PAWL_EBUSY)
        die("append", status, &slot->error);
    look(w, w->begun - w->looked_at ? w->begun - w->looked_at - 1 : 0);
}

static void claim_ended(pawl_claim *claim)
{
    latch_set(claim->arg);
}

/* One try. PAWL_EFENCED: a rival was faster. */
static int claim(struct writer *w)
{
    struct latch latch;
    pawl_error error = {0};
    latch_init(&latch);
    pawl_claim request = {.stream = w->stream, .done = claim_ended, .arg = &latch, .error = &error};
    int status = pawl_log_claim(engine_log_port(w->log), &request);
    if (status != PAWL_OK)
        die("claim", status, &error);
    latch_wait(&latch);
    if (request.status == PAWL_OK) {
        w->epoch = request.epoch;
        w->next = request.next;
        w->claims++;
        fprintf(w->record, "C %" PRIu64 " %" PRIu64 "\n", w->epoch, w->next);
    } else if (request.status != PAWL_EFENCED && request.status != PAWL_EUNKNOWN && request.status != PAWL_EIO
               && request.status != PAWL_EFULL
               && (request.status != PAWL_ENOTFOUND || w->claims > 0)) { /* a broker may not know it yet */
        die("claim", request.status, &error);
    }
    return request.status;
}

struct search {
    struct writer *writer;
    struct latch latch;
};

static bool find(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct writer *w = ((struct search *)read->arg)->writer;
    for (uint64_t number = w->first; number < w->looked_at; number++) {
        struct slot *slot = slot_of(w, number);
        if (!slot->body || slot->entry.entry.offset != entry->offset)
            continue;
        pawl_bytes body = slot->entry.entry.body;
        if (body.size == entry->body.size && memcmp(body.data, entry->body.data, body.size) == 0)
            settle(w, 'R', slot);
        break;
    }
    return true;
}

static void search_ended(pawl_read *read)
{
    latch_set(&((struct search *)read->arg)->latch);
}

/* Read what may hold the unknown entries, up to what the last claim has promised. */
static int search(struct writer *w, uint64_t from)
{
    uint64_t to = slot_of(w, w->looked_at - 1)->entry.entry.offset + 1;
    to = to < w->next ? to : w->next;
    if (from >= to)
        return PAWL_OK;
    struct search search = {.writer = w};
    pawl_error error = {0};
    latch_init(&search.latch);
    pawl_read request = {.stream = w->stream,
                         .from = from,
                         .limit = to - from,
                         .visit = find,
                         .done = search_ended,
                         .arg = &search,
                         .error = &error};
    int status = pawl_log_read(engine_log_port(w->log), &request);
    if (status != PAWL_OK)
        die("read", status, &error);
    latch_wait(&search.latch);
    if (request.status == PAWL_OK && request.next != to)
        die("a read ended before the offset that the claim had promised", PAWL_ECORRUPT, NULL);
    if (request.status != PAWL_OK && request.status != PAWL_EIO)
        die("read", request.status, &error);
    return request.status;
}

/* The claim that was won settles what is unknown: it is there by now, or never will be. */
static int resolve(struct writer *w)
{
    if (w->first < w->looked_at) {
        int status = search(w, slot_of(w, w->first)->entry.entry.offset);
        if (status != PAWL_OK)
            return status;
    }
    for (; w->first < w->looked_at; w->first++)
        if (slot_of(w, w->first)->body)
            settle(w, 'L', slot_of(w, w->first));
    return PAWL_OK;
}

static void work(struct writer *w)
{
    for (;;) {
        look(w, 0);
        fflush(w->record);
        if (told_to_stop && w->first == w->looked_at)
            return;
        check_patience(w);
        w->owner = claim(w) == PAWL_OK && resolve(w) == PAWL_OK;
        while (w->owner && !told_to_stop) {
            append(w);
            look(w, w->room - 1);
        }
        wait_a_little(w);
    }
}

/* Brokers may be away already: opening says so after its time-out, and is tried again. */
static void open_log(struct writer *w, const char *where, const char *stream)
{
    pawl_error error = {0};
    int status = pawl_stream_parse(stream, &w->stream, &error);
    if (status != PAWL_OK)
        die(where, status, &error);
    for (int tries = 0; tries < OPEN_TRIES_MAX; tries++) {
        status = engine_log_open(where, false, &w->log, &error);
        if (status != PAWL_EIO)
            break;
    }
    if (status != PAWL_OK)
        die(where, status, &error);
}

int main(int argc, char **argv)
{
    static struct writer w = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    w.room = argc == 6 ? strtoull(argv[4], NULL, 10) : 0;
    if (w.room < 1 || w.room > IN_FLIGHT_MAX) {
        fprintf(stderr, "usage: log_writer LOG STREAM NAME IN_FLIGHT RECORD\n");
        return 2;
    }
    w.name = argv[3];
    for (const char *letter = w.name; *letter; letter++)
        w.chance = w.chance * 31 + (unsigned char)*letter;
    w.record = fopen(argv[5], "w");
    if (!w.record)
        die(argv[5], PAWL_EIO, NULL);
    latch_init(&end);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop, .sa_flags = SA_RESTART}, NULL);

    open_log(&w, argv[1], argv[2]);
    work(&w);
    int status = engine_log_close(w.log);
    if (status != PAWL_OK)
        die("close", status, NULL);
    if (fclose(w.record) != 0)
        die(argv[5], PAWL_EIO, NULL);
    printf("%" PRIu64 " claims, %" PRIu64 " acknowledged, %" PRIu64 " refused, %" PRIu64
           " found written, %" PRIu64 " found not written\n",
           w.claims, w.acknowledged, w.refused, w.found, w.lost);
    return 0;
}

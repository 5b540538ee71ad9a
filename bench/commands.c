/* bench/commands.c: what a command costs, from request to durable, applied and answered.
 *
 * The peer of writing is the plainest program that is as durable: pwrite and fdatasync over a file of zeros, of
 * as many bytes a record as an event has in the journal, one record a sync or 64. Nothing that syncs can be
 * faster on this file system. Commands go to 10,000 workspaces in turn, each makes an event of about 300 bytes
 * and writes one record. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pawl/engine.h>

#include "base/latch.h"
#include "bench/lib/bench.h"

#define WORKSPACES  10000
#define OUTSTANDING 64
#define RECORD      ((size_t)360) /* an event's bytes in the journal */
#define RAW_BYTES   ((size_t)64 << 20)
#define CHUNK       ((size_t)1 << 20)

static const char schema[] =
    "{\"schema\": 1, \"package\": \"bench\", \"workspaces\": {\"tenant\": {\"sequences\": {\"invoice\": "
    "{\"first\": 1}}}},"
    " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {"
    "   \"number\": {\"type\": \"int64\", \"sequence\": \"invoice\"}, \"cents\": {\"type\": \"int64\"},"
    "   \"text\": {\"type\": \"string\"}}}},"
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}}}";

/* 84 bytes: with heads, numbers and the row an event has 300. */
static const char text[] = "Consulting in the month of November, as agreed: 3 days on site and 2 days remote";

static double failed(const char *what, const pawl_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error && error->text[0] ? error->text : strerror(errno));
    return 0;
}

static uint64_t deadline_of(const struct bench_round *round)
{
    return bench_now() + (round->quick ? 300 : 1500) * UINT64_C(1000000);
}

static int bill(pawl_request *r, uint64_t wsid, pawl_ack ack, pawl_error *error)
{
    int status = pawl_request_begin(r, wsid, "bench.Bill", error);
    if (status == PAWL_OK)
        status = pawl_request_record(r, 1, "bench.Invoice", error);
    if (status == PAWL_OK)
        status = pawl_request_set_int64(r, "cents", 12345, error);
    if (status == PAWL_OK)
        status = pawl_request_set_string(r, "text", text, error);
    pawl_request_ack(r, ack);
    return status;
}

/* Many commands under way at once. */
struct crowd;

struct flight {
    struct crowd *crowd;
    pawl_request *request;
    uint64_t wsid;
};

struct crowd {
    pawl_engine *engine;
    pawl_ack ack;
    uint64_t deadline;
    _Atomic uint64_t next; /* workspace */
    _Atomic uint64_t count;
    _Atomic unsigned flying;
    _Atomic bool failed;
    struct latch over;
    struct flight flights[OUTSTANDING];
};

static void land(struct crowd *crowd)
{
    if (atomic_fetch_sub(&crowd->flying, 1) == 1)
        latch_set(&crowd->over);
}

static void flown(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                  const pawl_error *error);

static void fly(struct flight *f)
{
    struct crowd *crowd = f->crowd;
    pawl_error error = {0};
    uint64_t wsid = atomic_fetch_add_explicit(&crowd->next, 1, memory_order_relaxed) % WORKSPACES + 1;
    int status = bill(f->request, wsid, crowd->ack, &error);
    if (status == PAWL_OK)
        status = pawl_command_async(crowd->engine, f->request, flown, f);
    if (status == PAWL_OK)
        return;
    failed("command", &error);
    atomic_store(&crowd->failed, true);
    land(crowd);
}

static void flown(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                  const pawl_error *error)
{
    struct flight *f = arg;
    struct crowd *crowd = f->crowd;
    if (status != PAWL_OK) {
        failed("command", error);
        atomic_store(&crowd->failed, true);
    }
    atomic_fetch_add_explicit(&crowd->count, 1, memory_order_relaxed);
    if (!atomic_load(&crowd->failed) && bench_now() < crowd->deadline)
        fly(f);
    else
        land(crowd);
}

static bool make_workspaces(pawl_engine *engine, uint64_t first, uint64_t step)
{
    pawl_request *request;
    pawl_error error = {0};
    if (pawl_request_new(engine, &request) != PAWL_OK)
        return false;
    bool ok = true;
    for (uint64_t wsid = first; ok && wsid <= WORKSPACES; wsid += step)
        ok = pawl_workspace_create(engine, request, wsid, "bench.tenant", NULL, &error) == PAWL_OK;
    pawl_request_free(request);
    if (!ok)
        failed("workspace", &error);
    return ok;
}

struct maker {
    pthread_t thread;
    pawl_engine *engine;
    uint64_t first;
    bool ok;
};

static void *maker_main(void *arg)
{
    struct maker *m = arg;
    m->ok = make_workspaces(m->engine, m->first, OUTSTANDING);
    return NULL;
}

static pawl_engine *open_engine(const char *dir)
{
    pawl_engine *engine;
    pawl_error error = {0};
    struct maker makers[OUTSTANDING];
    bool ok = true;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/pawl", dir);
    if (pawl_open(path, NULL, &engine, &error) != PAWL_OK) {
        failed(path, &error);
        return NULL;
    }
    if (pawl_schema_apply(engine, schema, NULL, &error) != PAWL_OK) {
        failed("schema", &error);
        pawl_close(engine);
        return NULL;
    }
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        makers[i] = (struct maker){.engine = engine, .first = i + 1};
        pthread_create(&makers[i].thread, NULL, maker_main, &makers[i]);
    }
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        pthread_join(makers[i].thread, NULL);
        ok = ok && makers[i].ok;
    }
    if (ok)
        return engine;
    pawl_close(engine);
    return NULL;
}

static uint64_t bill_blocking(pawl_engine *engine, uint64_t first, uint64_t deadline)
{
    pawl_request *request;
    pawl_error error = {0};
    uint64_t count = 0;
    if (pawl_request_new(engine, &request) != PAWL_OK)
        return 0;
    for (; bench_now() < deadline; count++) {
        int status = bill(request, (first + count * OUTSTANDING) % WORKSPACES + 1, PAWL_ACK_APPLIED, &error);
        if (status == PAWL_OK)
            status = pawl_command(engine, request, NULL, &error);
        if (status != PAWL_OK) {
            failed("command", &error);
            count = 0;
            break;
        }
    }
    pawl_request_free(request);
    return count;
}

static double alone(const struct bench_round *round)
{
    pawl_engine *engine = open_engine(round->dir);
    if (!engine)
        return 0;
    uint64_t began = bench_now();
    double rate = bench_per_second(bill_blocking(engine, 0, deadline_of(round)), began);
    pawl_close(engine);
    return rate;
}

static double outstanding(const struct bench_round *round)
{
    static struct crowd crowd;
    pawl_engine *engine = open_engine(round->dir);
    if (!engine)
        return 0;
    crowd = (struct crowd){.engine = engine, .ack = *(const pawl_ack *)round->arg, .flying = OUTSTANDING};
    latch_init(&crowd.over);
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        crowd.flights[i] = (struct flight){.crowd = &crowd};
        pawl_request_new(engine, &crowd.flights[i].request);
    }
    crowd.deadline = deadline_of(round);
    uint64_t began = bench_now();
    for (unsigned i = 0; i < OUTSTANDING; i++)
        fly(&crowd.flights[i]);
    latch_wait(&crowd.over);
    double rate = bench_per_second(crowd.count, began);
    for (unsigned i = 0; i < OUTSTANDING; i++)
        pawl_request_free(crowd.flights[i].request);
    pawl_close(engine);
    return crowd.failed ? 0 : rate;
}

struct blocking {
    pthread_t thread;
    pawl_engine *engine;
    uint64_t first;
    uint64_t deadline;
    uint64_t count;
};

static void *blocking_main(void *arg)
{
    struct blocking *b = arg;
    b->count = bill_blocking(b->engine, b->first, b->deadline);
    return NULL;
}

static double threads(const struct bench_round *round)
{
    static struct blocking all[OUTSTANDING];
    pawl_engine *engine = open_engine(round->dir);
    if (!engine)
        return 0;
    uint64_t began = bench_now(), deadline = deadline_of(round), count = 0;
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        all[i] = (struct blocking){.engine = engine, .first = i, .deadline = deadline};
        pthread_create(&all[i].thread, NULL, blocking_main, &all[i]);
    }
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        pthread_join(all[i].thread, NULL);
        count += all[i].count;
    }
    double rate = bench_per_second(count, began);
    pawl_close(engine);
    return rate;
}

/* The peer: so many records a sync, round and round in a file of zeros. */
static double raw(const struct bench_round *round, size_t records)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/raw", round->dir);
    size_t size = records * RECORD;
    uint8_t *bytes = calloc(1, CHUNK);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    bool ok = file >= 0 && bytes;
    for (size_t at = 0; ok && at < RAW_BYTES; at += CHUNK)
        ok = pwrite(file, bytes, CHUNK, (off_t)at) == (ssize_t)CHUNK;
    ok = ok && fsync(file) == 0;
    if (ok)
        memset(bytes, 'r', size);
    uint64_t count = 0, deadline = deadline_of(round), began = bench_now();
    for (size_t at = 0; ok && bench_now() < deadline; at = at + 2 * size > RAW_BYTES ? 0 : at + size) {
        ok = pwrite(file, bytes, size, (off_t)at) == (ssize_t)size && fdatasync(file) == 0;
        count += records;
    }
    double rate = bench_per_second(count, began);
    if (file >= 0)
        close(file);
    free(bytes);
    return ok ? rate : failed(path, NULL);
}

static double raw_alone(const struct bench_round *round)
{
    return raw(round, 1);
}

static double raw_crowd(const struct bench_round *round)
{
    return raw(round, OUTSTANDING);
}

int main(int argc, char **argv)
{
    static pawl_ack applied = PAWL_ACK_APPLIED, durable = PAWL_ACK_DURABLE;
    static const struct bench_question questions[] = {
        {"command: one at a time", "op/s", BENCH_MORE, 0.7, alone, raw_alone, NULL},
        {"command: 64 outstanding, applied", "op/s", BENCH_MORE, 0.4, outstanding, raw_crowd, &applied},
        {"command: 64 outstanding, durable", "op/s", BENCH_MORE, 0.7, outstanding, raw_crowd, &durable},
        {"command: 64 blocking threads", "op/s", BENCH_MORE, 0.3, threads, raw_crowd, NULL},
    };
    return bench_main(argc, argv, questions, sizeof questions / sizeof *questions);
}

/* bench/views/shop.c: an engine with invoices: the rows that all sides have, and views over them. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench/lib/crowd.h"
#include "bench/views/views.h"
#include "engine/knobs.h"

#define POLL_NS  10000000L
#define IDLE_US  UINT64_C(50000) /* of processor time in a second: nothing works */
#define LOOKS    120
#define PATIENCE (600 * PAWL_SECOND)

static struct {
    char dir[PATH_MAX];
    pawl_engine *engine;
    uint64_t loaded;
    _Atomic uint64_t added;
} shop;

/* Letters are there so that another table can have views. */
static const char schema[] =
    "{\"schema\": 1, \"package\": \"bench\", \"workspaces\": {\"tenant\": {}},"
    " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {"
    "   \"number\": {\"type\": \"int64\"}, \"customer\": {\"type\": \"int64\"}, \"cents\": {\"type\": "
    "\"int64\"},"
    "   \"text\": {\"type\": \"string\"}}},"
    "  \"Letter\": {\"kind\": \"WDoc\", \"fields\": {"
    "   \"number\": {\"type\": \"int64\"}, \"customer\": {\"type\": \"int64\"}, \"cents\": {\"type\": "
    "\"int64\"}}}},"
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}, \"Write\": {\"records\": [\"Letter\"]}}}";

const pawl_view_definition shop_view = {.name = "bench.by_customer",
                                        .base = "bench.Invoice",
                                        .key = (const char *const[]){"customer"},
                                        .key_count = 1,
                                        .include = (const char *const[]){"cents"},
                                        .include_count = 1};

/* --- rows --- */

static uint64_t mix(uint64_t n)
{
    n = (n ^ n >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return (n ^ n >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 20;
}

uint64_t rows_of(const struct bench_round *round)
{
    return round->quick ? ROWS_QUICK : ROWS;
}

/* PER_COMMAND rows of a workspace, then as many of the next. */
struct row row_at(uint64_t n)
{
    uint64_t turn = n / (PER_COMMAND * WORKSPACES), random = mix(n + 1);
    return (struct row){.wsid = n / PER_COMMAND % WORKSPACES + 1,
                        .number = (int64_t)(turn * PER_COMMAND + n % PER_COMMAND),
                        .customer = (int64_t)(random % (uint64_t)CUSTOMERS),
                        .cents = (int64_t)(random >> 16 & 0xffff) + 1};
}

uint64_t read_at(uint64_t n, uint64_t rows)
{
    return mix(n + rows) % rows;
}

struct row shop_new_row(void)
{
    uint64_t n = atomic_fetch_add_explicit(&shop.added, 1, memory_order_relaxed);
    struct row row = row_at(ROWS + n);
    row.wsid = n % WORKSPACES + 1;
    row.number = (int64_t)(ROWS + n);
    return row;
}

static void add_row(pawl_request *request, uint64_t raw, struct row row)
{
    pawl_request_record(request, raw, "bench.Invoice");
    pawl_request_set_int64(request, "number", row.number);
    pawl_request_set_int64(request, "customer", row.customer);
    pawl_request_set_int64(request, "cents", row.cents);
    pawl_request_set_string(request, "text", TEXT);
}

void shop_bill(pawl_request *request, struct row row)
{
    pawl_request_begin(request, row.wsid, "bench.Bill");
    add_row(request, 1, row);
}

void shop_bill_new(void *arg, pawl_request *request, uint64_t n)
{
    shop_bill(request, shop_new_row());
}

static void bill_many(void *arg, pawl_request *request, uint64_t n)
{
    for (uint64_t i = 0; i < PER_COMMAND; i++) {
        struct row row = row_at(n * PER_COMMAND + i);
        if (i == 0)
            pawl_request_begin(request, row.wsid, "bench.Bill");
        add_row(request, i + 1, row);
    }
}

/* --- folders --- */

/* --- the engine --- */

pawl_engine *shop_open(const char *dir)
{
    char path[PATH_MAX + 8];
    pawl_engine *engine;
    pawl_request *request = NULL;
    pawl_error error = {0};
    const pawl_options options = {.shards = SHARDS};
    const struct engine_knobs knobs = {.no_checkpoint = getenv("PAWL_BENCH_ALONE") != NULL};
    snprintf(path, sizeof path, "%s/pawl", dir);
    int status = engine_open(path, &options, &knobs, &engine, &error);
    if (status != PAWL_OK) {
        bench_failed(path, &error);
        return NULL;
    }
    status = pawl_schema_apply(engine, schema, NULL, &error);
    status = status ? status : pawl_request_new(engine, &request);
    for (uint64_t wsid = 1; status == PAWL_OK && wsid <= WORKSPACES; wsid++)
        status = pawl_workspace_create(engine, request, wsid, "bench.tenant", NULL, &error);
    pawl_request_free(request);
    if (status == PAWL_OK)
        return engine;
    bench_failed("workspaces", &error);
    pawl_close(engine);
    return NULL;
}

pawl_engine *shop_loaded(const struct bench_round *round)
{
    if (shop.engine)
        return shop.engine;
    if (!folder_make(round, "views", shop.dir))
        return NULL;
    shop.engine = shop_open(shop.dir);
    uint64_t commands = rows_of(round) / PER_COMMAND;
    struct crowd crowd = {.engine = shop.engine, .make = bill_many, .most = commands};
    if (!shop.engine || crowd_run(&crowd) != commands)
        return NULL;
    shop.loaded = rows_of(round);
    atomic_store(&shop.added, 0); /* other engines have used it */
    shop_settle();
    return shop.engine;
}

uint64_t shop_rows(void)
{
    return shop.loaded + atomic_load(&shop.added);
}

void shop_remove(void)
{
    pawl_close(shop.engine);
    shop.engine = NULL;
    if (shop.dir[0])
        folder_remove(shop.dir);
    shop.dir[0] = 0;
}

static uint64_t processor_us(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000
           + (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

void shop_settle(void)
{
    uint64_t before = processor_us(), now;
    for (unsigned i = 0; i < LOOKS; i++, before = now) {
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        now = processor_us();
        if (now - before < IDLE_US)
            break;
    }
    sync();
}

/* --- its views --- */

static bool see_status(void *arg, const pawl_view_status *status)
{
    *(uint64_t *)arg = status->rows;
    return true;
}

static bool see_row(void *arg, const pawl_row *row)
{
    return true;
}

/* That all rows are there is seen by their number; that the engine knows it, by an answer. */
bool shop_covered(pawl_engine *engine, const char *view, uint64_t rows)
{
    pawl_error error = {0};
    pawl_view_answer answer = {0};
    pawl_view_query one = {.limit = 1};
    uint64_t deadline = bench_now() + PATIENCE, seen = 0;
    while (seen < rows) {
        if (pawl_view_status_read(engine, view, see_status, &seen, &error) != PAWL_OK)
            return bench_failed("status", &error) > 0;
        if (bench_now() > deadline) {
            fprintf(stderr, "%s: %" PRIu64 " of %" PRIu64 " rows\n", view, seen, rows);
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    if (pawl_view_scan(engine, view, &one, see_row, NULL, &answer, &error) != PAWL_OK)
        return bench_failed("scan", &error) > 0;
    if (!answer.built)
        fprintf(stderr, "%s has all rows and is not covered\n", view);
    return answer.built;
}

bool shop_drop(pawl_engine *engine, const char *view)
{
    pawl_error error = {0};
    if (pawl_view_wait(engine, view, PATIENCE, &error) != PAWL_OK
        || pawl_view_drop(engine, view, &error) != PAWL_OK)
        return bench_failed(view, &error) > 0;
    shop_settle();
    return true;
}

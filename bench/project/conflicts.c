#include "bench/project/conflicts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <pawl/pawl.h>

#include "bench/lib/crowd.h"

#define HANDLER 20 /* ms */
#define KEYS    1000
#define SLEEPS  25 /* so many tell how long a step takes */
#define TENANTS 200
#define PAGES   8 /* of each tenant: TENANTS * PAGES keys */
#define ROWS    (TENANTS * PAGES)

static const char schema[] =
    "{\"schema\": 1, \"package\": \"bench\", \"workspaces\": {\"tenant\": {}},"
    " \"types\": {\"Visit\": {\"kind\": \"WDoc\", \"fields\": {\"page\": {\"type\": \"int64\"},"
    "   \"text\": {\"type\": \"string\"}}}},"
    " \"commands\": {\"Visit_page\": {\"records\": [\"Visit\"]}},"
    " \"entities\": {\"Page\": {\"key\": [\"page\"], \"fields\": {\"page\": {\"type\": \"int64\"},"
    "   \"visits\": {\"type\": \"int64\"}, \"chain\": {\"type\": \"int64\"}}}},"
    " \"projectors\": {\"pages\": {\"on\": [\"Visit_page\"], \"writes\": [\"Page\"], \"workers\": %u}}}";

/* --- the events --- */

static uint64_t scatter(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t key_zipf(uint64_t random)
{
    static double sums[KEYS];
    if (sums[0] == 0)
        for (size_t i = 0; i < KEYS; i++)
            sums[i] = (i ? sums[i - 1] : 0) + 1.0 / (double)(i + 1);
    double at = (double)(random >> 11) / (double)(UINT64_C(1) << 53) * sums[KEYS - 1];
    size_t k = 0;
    while (k + 1 < KEYS && sums[k] < at)
        k++;
    return k;
}

static uint64_t key_of(const struct conflicts *c, uint64_t n)
{
    uint64_t random = scatter(n + UINT64_C(0x9e3779b97f4a7c15));
    switch (c->keys) {
    case KEYS_ONE: return 0;
    case KEYS_BY_TURNS: return n % 8;
    case KEYS_EIGHT: return random % 8;
    case KEYS_RANDOM: return random % KEYS;
    case KEYS_ZIPF: return key_zipf(random);
    case KEYS_DEMO: return random % ROWS;
    }
    return 0;
}

/* A key's workspace. */
static uint64_t tenant_of(const struct conflicts *c, uint64_t key)
{
    return c->keys == KEYS_DEMO ? 1 + key / PAGES : 1;
}

static uint64_t count_of(const struct bench_round *round)
{
    const struct conflicts *c = round->arg;
    return round->quick ? c->count / 4 : c->count;
}

static void make_visit(void *arg, pawl_request *r, uint64_t n)
{
    uint64_t key = key_of(arg, n);
    pawl_request_begin(r, tenant_of(arg, key), "bench.Visit_page");
    pawl_request_record(r, 1, "bench.Visit");
    pawl_request_set_int64(r, "page", (int64_t)key);
    pawl_request_set_string(r, "text", "a reader came by");
}

/* --- ours --- */

static void sleep_a_step(void)
{
    struct timespec pause = {.tv_nsec = HANDLER * 1000 * 1000};
    nanosleep(&pause, NULL);
}

struct page {
    int64_t visits, chain;
};

static bool take_page(void *arg, const pawl_row *row)
{
    struct page *page = arg;
    (void)pawl_row_int64(row, "visits", &page->visits, NULL);
    (void)pawl_row_int64(row, "chain", &page->chain, NULL);
    return true;
}

static int64_t chain_on(int64_t chain, uint64_t offset)
{
    return (int64_t)(((uint64_t)chain * 31 + offset) % (UINT64_C(1) << 50));
}

static bool take_key(void *arg, const pawl_row *row)
{
    return pawl_row_int64(row, "page", arg, NULL) != PAWL_OK;
}

static int count_visit(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    struct page page = {0};
    int64_t key = -1;
    (void)arg;
    int status = pawl_event_records(event, "bench.Visit", take_key, &key, NULL);
    pawl_value value = pawl_value_int64(key);
    if (status == PAWL_OK)
        status = pawl_handler_read(ctx, "bench.Page", (pawl_key){&value, 1}, take_page, &page, NULL);
    if (status != PAWL_OK && status != PAWL_ENOTFOUND)
        return status;
    sleep_a_step();
    pawl_results_upsert(results, "bench.Page");
    pawl_results_set_int64(results, "page", key);
    pawl_results_set_int64(results, "visits", page.visits + 1);
    return pawl_results_set_int64(results, "chain", chain_on(page.chain, event->workspace_offset));
}

static bool open_pages(const struct bench_round *round, pawl_engine **ret_engine)
{
    const struct conflicts *c = round->arg;
    bool demo = c->keys == KEYS_DEMO;
    pawl_options options = {.partitions = demo ? 16 : 1, .shards = demo ? 2 : 1};
    char text[2048];
    pawl_error error = {0};
    pawl_answer answer;
    pawl_request *request;
    snprintf(text, sizeof text, schema, c->workers);
    if (pawl_open(round->dir, &options, ret_engine, &error) != PAWL_OK)
        return bench_failed("open", &error) > 0;
    int status = pawl_schema_apply(*ret_engine, text, NULL, &error);
    if (status == PAWL_OK)
        status = pawl_request_new(*ret_engine, &request);
    if (status != PAWL_OK)
        return bench_failed("schema", &error) > 0;
    for (uint64_t wsid = 1; status == PAWL_OK && wsid <= (demo ? TENANTS : 1); wsid++)
        status = pawl_workspace_create(*ret_engine, request, wsid, "bench.tenant", &answer, &error);
    pawl_request_free(request);
    if (status != PAWL_OK)
        return bench_failed("workspace", &error) > 0;
    uint64_t count = count_of(round);
    return crowd_run(
               &(struct crowd){.engine = *ret_engine, .make = make_visit, .arg = round->arg, .most = count})
           == count;
}

/* What a serial run leaves: the events in the order of the log. */
struct serial {
    struct page pages[ROWS];
    uint64_t different;
};

static bool add_event(void *arg, const pawl_event *event)
{
    struct serial *serial = arg;
    int64_t key = -1;
    if (pawl_event_records(event, "bench.Visit", take_key, &key, NULL) != PAWL_OK || key < 0 || key >= ROWS)
        return true;
    struct page *page = &serial->pages[key];
    page->visits++;
    page->chain = chain_on(page->chain, event->workspace_offset);
    return true;
}

static bool compare_page(void *arg, const pawl_row *row)
{
    struct serial *serial = arg;
    struct page page = {0};
    int64_t key = -1;
    (void)take_page(&page, row);
    if (pawl_row_int64(row, "page", &key, NULL) != PAWL_OK || key < 0 || key >= ROWS) {
        serial->different++;
        return true;
    }
    struct page *expected = &serial->pages[key];
    serial->different += page.visits != expected->visits || page.chain != expected->chain;
    *expected = (struct page){0};
    return true;
}

static bool is_serial(pawl_engine *engine, uint64_t count, bool demo, pawl_error *error)
{
    static struct serial serial;
    serial = (struct serial){0};
    int status = PAWL_OK;
    for (uint16_t p = 0; status == PAWL_OK && p < (demo ? 16 : 1); p++)
        status = pawl_events_read(engine, p, 1, (size_t)count + 1000, add_event, &serial, NULL, error);
    for (uint64_t wsid = 1; status == PAWL_OK && wsid <= (demo ? TENANTS : 1); wsid++) {
        pawl_cursor cursor = {0};
        status = pawl_entity_scan(engine, wsid, "bench.Page", (pawl_key){0}, &cursor, ROWS, NULL, compare_page,
                                  &serial, error);
        pawl_cursor_free(&cursor);
    }
    for (size_t i = 0; i < ROWS; i++)
        serial.different += serial.pages[i].visits != 0;
    if (status == PAWL_OK && serial.different > 0)
        fprintf(stderr, "%" PRIu64 " rows are not those of a serial run\n", serial.different);
    return status == PAWL_OK && serial.different == 0;
}

static bool show_repeats(void *arg, const pawl_lane_status *status)
{
    double *percent = arg;
    *percent = status->operations ? 100.0 * (double)status->repeated / (double)status->operations : 0;
    fprintf(stderr, "  %" PRIu64 " operations, %" PRIu64 " repeated\n", status->operations, status->repeated);
    return true;
}

static double handle(const struct bench_round *round, double *ret_percent)
{
    const struct conflicts *c = round->arg;
    pawl_engine *engine;
    pawl_error error = {0};
    uint64_t count = count_of(round);
    if (!open_pages(round, &engine))
        return 0;
    uint64_t began = bench_begin();
    int status = pawl_projector_register(engine, "bench.pages", count_visit, NULL, &error);
    if (status == PAWL_OK)
        status = pawl_lanes_wait(engine, NULL, 300 * PAWL_SECOND, &error);
    double rate = bench_per_second(count, began);
    bool right = status == PAWL_OK && is_serial(engine, count, c->keys == KEYS_DEMO, &error);
    (void)pawl_lanes_read(engine, NULL, show_repeats, ret_percent, NULL);
    pawl_close(engine);
    return right ? rate : bench_failed("handlers", &error);
}

double conflicts_handle(const struct bench_round *round)
{
    double percent;
    return handle(round, &percent);
}

double conflicts_repeated(const struct bench_round *round)
{
    double percent = 100;
    return handle(round, &percent) > 0 ? percent : bench_failed("handlers", NULL);
}

/* --- ideal --- */

double conflicts_ideal(const struct bench_round *round)
{
    const struct conflicts *c = round->arg;
    uint64_t lengths[ROWS] = {0}, count = count_of(round), longest = 0;
    for (uint64_t n = 0; n < count; n++) {
        uint64_t length = ++lengths[key_of(c, n)];
        longest = length > longest ? length : longest;
    }
    uint64_t shared = (count + c->workers - 1) / c->workers, steps = longest > shared ? longest : shared;
    uint64_t began = bench_now();
    for (int i = 0; i < SLEEPS; i++)
        sleep_a_step();
    double step = (double)(bench_now() - began) / SLEEPS;
    return (double)count * 1e9 / ((double)steps * step);
}

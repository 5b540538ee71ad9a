/* shop.c: a shop with many tenants on an embedded engine.
 *
 *     shop load    --dir DIR [--schema FILE] [--tenants N] [--threads N] [--seconds N] [--seed N]
 *                  [--slow MS] [--lease MS] [--log URL] [--take-over]
 *     shop view    --dir DIR [--tenants N] [--threads N]
 *     shop project --dir DIR [--slow MS] [--log URL] [--take-over]
 *     shop check   --dir DIR [--tenants N]
 *     shop serve   --dir DIR [--tenants N] [--threads N] [--rate N] [--slow MS] [--listen HOST:PORT]
 *
 * load opens the shops that are not there yet, and then sends commands from several threads as a day would
 * bring them: new customers, orders of a few lines with their invoice, payments, questions for a statement of
 * account. Every command has an idempotency key, so that one whose answer was lost can be sent again. Meanwhile
 * projectors keep accounts and write statements, in lanes of their own; a statement takes its time. How that
 * goes is shown once a second. SIGINT and SIGTERM end it; --lease makes leases shorter than anybody would want
 * them.
 *
 * Sometimes a payment comes twice. Its reference is unique by a view, so that the second one is refused.
 *
 * view makes a view of the invoices by customer while commands come in, shows how it is built, and asks it for
 * the last invoices of a customer.
 *
 * project lets the lanes work until they have caught up.
 *
 * With --log kafka://... the log is on Kafka; an empty directory, and --take-over, bring everything back from there.
 *
 * check looks for what an auditor would: invoices numbered 1, 2, 3, ... with no gap and none twice; accounts and
 * statements that are what the events, one after the other, make of them; views that are what their base says;
 * no payment taken twice. Kill load at any moment,
 * with -9: check finds nothing, and load goes on where it was.
 *
 * serve lets the clerks go on, at a rate for people to watch, and serves the shops over HTTP until a signal
 * comes: its first line of output says where. */
#include "shop.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int complain(const char *what, const pawl_error *error)
{
    fprintf(stderr, "shop: %s: %s\n", what, error->text[0] ? error->text : "failed");
    return 1;
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, (size_t)1 << 20);
    size_t size = file && text ? fread(text, 1, ((size_t)1 << 20) - 1, file) : 0;
    if (file)
        fclose(file);
    if (size > 0)
        return text;
    free(text);
    return NULL;
}

static int apply_schema(pawl_engine *engine, const char *path, pawl_error *error)
{
    char *schema = read_whole(path);
    int status = schema ? pawl_schema_apply(engine, schema, NULL, error) : PAWL_ENOTFOUND;
    free(schema);
    return status;
}

void wait_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Show the lanes until the time is over, or a clerk fails. */
static void watch(const struct options *o, pawl_engine *engine)
{
    uint64_t before = 0, rate = 0;
    for (uint64_t second = 0; second < o->seconds && !atomic_load(&stop); second++) {
        for (int tick = 0; tick < 10 && !atomic_load(&stop); tick++) {
            char head[96];
            wait_ms(100);
            uint64_t after = atomic_load(&answered);
            if (tick == 9) {
                rate = after - before;
                before = after;
            }
            snprintf(head, sizeof head, "%" PRIu64 " commands answered, %" PRIu64 " in the last second", after,
                     second == 0 ? after : rate);
            if (tick == 9 || (window_is_live() && tick % 2 == 0))
                window_show(engine, head);
        }
    }
}

static void end_soon(int number)
{
    (void)number;
    atomic_store(&stop, true);
}

static int load(const struct options *o)
{
    pawl_engine *engine;
    pawl_error error = {0};
    const pawl_duration lease = o->lease * 1000000;
    const pawl_options options = {.lease_first = lease,
                                  .lease_min = lease,
                                  .max_run = 5 * lease,
                                  .log = o->log,
                                  .take_over = o->take_over};
    if (pawl_open(o->dir, &options, &engine, &error) != PAWL_OK)
        return complain("open", &error);
    signal(SIGINT, end_soon);
    signal(SIGTERM, end_soon);
    int status = apply_schema(engine, o->schema, &error);
    if (status != PAWL_OK)
        complain(o->schema, &error);
    else if ((status = statements_register(engine, o, &error)) != PAWL_OK)
        complain("statements", &error);
    bool good = status == PAWL_OK;
    if (good) {
        uint64_t started = clerks_start(o, engine);
        watch(o, engine);
        atomic_store(&stop, true);
        good = clerks_join(started) && started == o->threads;
        window_sum(engine);
    }
    if (pawl_close(engine) != PAWL_OK)
        return complain("close", &error);
    return good ? 0 : 1;
}

static int project(const struct options *o)
{
    pawl_engine *engine;
    pawl_error error = {0};
    const pawl_options options = {.must_exist = !o->log,
                                  .log = o->log,
                                  .take_over = o->take_over,
                                  .progress = o->take_over ? window_progress : NULL};
    if (pawl_open(o->dir, &options, &engine, &error) != PAWL_OK)
        return complain("open", &error);
    if (o->take_over)
        window_progress_end(engine);
    int status = statements_register(engine, o, &error);
    if (status == PAWL_OK) {
        const pawl_duration slice = UINT64_C(200000000);
        unsigned slices = 0;
        while ((status = pawl_lanes_wait(engine, NULL, slice, &error)) == PAWL_ETIMEOUT)
            if (window_is_live() || ++slices % 5 == 0)
                window_show(engine, NULL);
        window_show(engine, NULL);
        window_sum(engine);
    }
    if (status != PAWL_OK)
        complain("the lanes", &error);
    if (pawl_close(engine) != PAWL_OK)
        return complain("close", &error);
    return status == PAWL_OK ? 0 : 1;
}

static bool parse_number(const char *text, uint64_t limit, uint64_t *ret_number)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number == 0 || number > limit)
        return false;
    *ret_number = number;
    return true;
}

static int usage(void)
{
    fputs("usage: shop load    --dir DIR [--schema FILE] [--tenants N] [--threads N] [--seconds N] [--seed N]\n"
          "                    [--slow MS] [--lease MS] [--log URL] [--take-over]\n"
          "       shop view    --dir DIR [--tenants N] [--threads N]\n"
          "       shop project --dir DIR [--slow MS] [--log URL] [--take-over]\n"
          "       shop check   --dir DIR [--tenants N]\n"
          "       shop serve   --dir DIR [--tenants N] [--threads N] [--rate N] [--slow MS]\n"
          "                    [--listen HOST:PORT]\n",
          stderr);
    return 2;
}

static bool take_option(struct options *o, const char *name, const char *value)
{
    if (strcmp(name, "--dir") == 0)
        o->dir = value;
    else if (strcmp(name, "--schema") == 0)
        o->schema = value;
    else if (strcmp(name, "--listen") == 0)
        o->listen = value;
    else if (strcmp(name, "--log") == 0)
        o->log = value;
    else if (strcmp(name, "--tenants") == 0)
        return parse_number(value, 10000000, &o->tenants);
    else if (strcmp(name, "--threads") == 0)
        return parse_number(value, THREADS_MAX, &o->threads);
    else if (strcmp(name, "--seconds") == 0)
        return parse_number(value, 1000000, &o->seconds);
    else if (strcmp(name, "--seed") == 0)
        return parse_number(value, UINT64_MAX, &o->seed);
    else if (strcmp(name, "--slow") == 0)
        return parse_number(value, 600000, &o->slow);
    else if (strcmp(name, "--rate") == 0)
        return parse_number(value, 1000000, &o->rate);
    else if (strcmp(name, "--lease") == 0)
        return parse_number(value, 600000, &o->lease);
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {.schema = "examples/shop/shop.json",
                        .tenants = 200,
                        .threads = 16,
                        .seconds = 5,
                        .seed = 1,
                        .slow = 20};
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--take-over") == 0)
            o.take_over = true;
        else if (i + 1 == argc || !take_option(&o, argv[i], argv[i + 1]))
            return usage();
        else
            i++;
    }
    if (argc < 2 || !o.dir)
        return usage();
    if (strcmp(argv[1], "load") == 0)
        return load(&o);
    if (strcmp(argv[1], "view") == 0)
        return view_invoices(&o);
    if (strcmp(argv[1], "project") == 0)
        return project(&o);
#ifdef SHOP_SERVES
    if (strcmp(argv[1], "serve") == 0)
        return serve_shops(&o);
#endif
    return strcmp(argv[1], "check") == 0 ? audit(&o) : usage();
}

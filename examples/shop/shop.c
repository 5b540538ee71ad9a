/* shop.c: a shop with many tenants on an embedded engine.
 *
 *     shop load  --dir DIR [--schema FILE] [--tenants N] [--threads N] [--seconds N] [--seed N]
 *     shop check --dir DIR [--tenants N]
 *
 * load opens the shops that are not there yet, and then sends commands from several threads as a day would
 * bring them: new customers, orders of a few lines with their invoice, payments. It prints the rate once a
 * second. Every command has an idempotency key, so that one whose answer was lost can be sent again.
 *
 * check reads every tenant's invoices and looks for what an auditor would: numbers 1, 2, 3, ... with no gap and
 * none twice. Kill load at any moment, with -9: check finds nothing, and load goes on where it was. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pawl/engine.h>

#define PRODUCTS    20
#define CUSTOMERS   50 /* that a thread remembers of a tenant */
#define THREADS_MAX 256

struct options {
    const char *dir;
    const char *schema;
    uint64_t tenants;
    uint64_t threads;
    uint64_t seconds;
    uint64_t seed;
};

/* What a thread knows of one of its tenants: enough to send commands that make sense. */
struct tenant {
    uint64_t wsid;
    uint64_t products[PRODUCTS];
    uint64_t customers[CUSTOMERS];
    size_t customer_count;
    uint64_t unpaid; /* the last invoice that nobody has paid; 0: none */
    int64_t unpaid_cents;
};

struct clerk {
    pthread_t thread;
    const struct options *options;
    pawl_engine *engine;
    uint64_t index;
    uint64_t random;
    uint64_t commands; /* sent so far: a part of every key */
    uint64_t run;
    bool failed;
};

static _Atomic uint64_t answered;
static atomic_bool stop;

static int complain(const char *what, const pawl_error *error)
{
    fprintf(stderr, "shop: %s: %s\n", what, error->text[0] ? error->text : "failed");
    return 1;
}

/* splitmix64: the same seed gives the same day. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t below(struct clerk *clerk, uint64_t limit)
{
    return next_random(&clerk->random) % limit;
}

/* The first failure of a row of calls; those after it do nothing. */
#define THEN(status, call)                                                                                     \
    do {                                                                                                       \
        if ((status) == PAWL_OK)                                                                               \
            (status) = (call);                                                                                 \
    } while (0)

static int send(struct clerk *clerk, pawl_request *r, pawl_error *error)
{
    char key[64];
    snprintf(key, sizeof key, "%" PRIx64 "-%" PRIu64 "-%" PRIu64, clerk->run, clerk->index, clerk->commands++);
    int status = pawl_request_key(r, key, error);
    THEN(status, pawl_request_actor(r, "till", error));
    THEN(status, pawl_command(clerk->engine, r, NULL, error));
    while (status == PAWL_EBUSY) /* the key makes it safe */
        status = pawl_command(clerk->engine, r, NULL, error);
    if (status == PAWL_OK)
        atomic_fetch_add_explicit(&answered, 1, memory_order_relaxed);
    return status;
}

static int open_shop(struct clerk *clerk, pawl_request *r, struct tenant *t, pawl_error *error)
{
    static const char *const titles[] = {"Tea", "Coffee", "Cups", "Honey", "Bread"};
    char text[64];
    int status = pawl_workspace_create(clerk->engine, r, t->wsid, "shop.tenant", NULL, error);
    if (status != PAWL_OK && status != PAWL_EEXISTS)
        return status;
    status = pawl_request_begin(r, t->wsid, "shop.Open", error);
    THEN(status, pawl_request_record(r, 1, "shop.Settings", error));
    snprintf(text, sizeof text, "Shop %" PRIu64, t->wsid);
    THEN(status, pawl_request_set_string(r, "name", text, error));
    THEN(status, pawl_request_set_string(r, "currency", "EUR", error));
    for (uint64_t i = 0; i < PRODUCTS; i++) {
        THEN(status, pawl_request_record(r, 2 + i, "shop.Product", error));
        snprintf(text, sizeof text, "SKU-%03" PRIu64, i);
        THEN(status, pawl_request_set_string(r, "sku", text, error));
        THEN(status, pawl_request_set_string(r, "title", titles[i % 5], error));
        THEN(status, pawl_request_set_int64(r, "cents", (int64_t)(100 + 50 * i), error));
    }
    THEN(status, send(clerk, r, error));
    if (status == PAWL_EEXISTS) /* the settings are a singleton: this shop was opened before */
        return PAWL_OK;
    for (uint64_t i = 0; status == PAWL_OK && i < PRODUCTS; i++)
        t->products[i] = pawl_request_id(r, 2 + i);
    return status;
}

static int add_customer(struct clerk *clerk, pawl_request *r, struct tenant *t, pawl_error *error)
{
    static const char *const names[] = {"Ada",    "Grace",  "Edsger", "Barbara",
                                        "Donald", "Leslie", "Tony",   "Frances"};
    static const char *const tiers[] = {"bronze", "silver", "gold"};
    int status = pawl_request_begin(r, t->wsid, "shop.AddCustomer", error);
    THEN(status, pawl_request_record(r, 1, "shop.Customer", error));
    THEN(status, pawl_request_set_string(r, "name", names[below(clerk, 8)], error));
    THEN(status, pawl_request_set_string(r, "tier", tiers[below(clerk, 3)], error));
    THEN(status, send(clerk, r, error));
    if (status == PAWL_OK) {
        size_t at = t->customer_count < CUSTOMERS ? t->customer_count++ : below(clerk, CUSTOMERS);
        t->customers[at] = pawl_request_id(r, 1);
    }
    return status;
}

static int place_order(struct clerk *clerk, pawl_request *r, struct tenant *t, pawl_error *error)
{
    uint64_t customer = t->customers[below(clerk, t->customer_count)];
    uint64_t lines = 1 + below(clerk, 4);
    int64_t cents[4], total = 0;
    uint64_t product[4];
    int64_t quantity[4];
    for (uint64_t i = 0; i < lines; i++) {
        product[i] = below(clerk, PRODUCTS);
        quantity[i] = 1 + (int64_t)below(clerk, 5);
        cents[i] = quantity[i] * (int64_t)(100 + 50 * product[i]);
        total += cents[i];
    }
    int status = pawl_request_begin(r, t->wsid, "shop.PlaceOrder", error);
    THEN(status, pawl_request_argument(r, 1, error));
    THEN(status, pawl_request_set_ref(r, "customer", customer, error));
    THEN(status, pawl_request_set_int64(r, "cents", total, error));
    for (uint64_t i = 0; i < lines; i++) {
        THEN(status, pawl_request_child(r, 1, "lines", 10 + i, error));
        if (t->products[product[i]])
            THEN(status, pawl_request_set_ref(r, "product", t->products[product[i]], error));
        THEN(status, pawl_request_set_int64(r, "qty", quantity[i], error));
        THEN(status, pawl_request_set_int64(r, "cents", cents[i], error));
    }
    THEN(status, pawl_request_record(r, 2, "shop.Invoice", error));
    THEN(status, pawl_request_set_ref(r, "order", 1, error));
    THEN(status, pawl_request_set_ref(r, "customer", customer, error));
    THEN(status, pawl_request_set_int64(r, "cents", total, error));
    THEN(status, send(clerk, r, error));
    if (status == PAWL_OK) {
        t->unpaid = pawl_request_id(r, 2);
        t->unpaid_cents = total;
    }
    return status;
}

static int pay(struct clerk *clerk, pawl_request *r, struct tenant *t, pawl_error *error)
{
    static const char *const methods[] = {"card", "cash", "transfer"};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pawl_wall time = {(int64_t)now.tv_sec * 1000000000 + now.tv_nsec};
    int status = pawl_request_begin(r, t->wsid, "shop.Pay", error);
    THEN(status, pawl_request_record(r, 1, "shop.Payment", error));
    THEN(status, pawl_request_set_ref(r, "invoice", t->unpaid, error));
    THEN(status, pawl_request_set_int64(r, "cents", t->unpaid_cents, error));
    THEN(status, pawl_request_set_string(r, "method", methods[below(clerk, 3)], error));
    THEN(status, pawl_request_record(r, t->unpaid, "shop.Invoice", error));
    THEN(status, pawl_request_set_bool(r, "paid", true, error));
    THEN(status, pawl_request_set_time(r, "paid_at", time, error));
    THEN(status, send(clerk, r, error));
    if (status == PAWL_OK)
        t->unpaid = 0;
    return status;
}

static int one_command(struct clerk *clerk, pawl_request *r, struct tenant *t, pawl_error *error)
{
    if (t->customer_count == 0 || below(clerk, 20) == 0)
        return add_customer(clerk, r, t, error);
    if (t->unpaid && below(clerk, 3) == 0)
        return pay(clerk, r, t, error);
    return place_order(clerk, r, t, error);
}

/* A clerk works for every threads-th tenant. */
static void *clerk_main(void *arg)
{
    struct clerk *clerk = arg;
    const struct options *o = clerk->options;
    uint64_t count = (o->tenants - clerk->index + o->threads - 1) / o->threads;
    struct tenant *tenants = calloc(count ? count : 1, sizeof *tenants);
    pawl_request *request = NULL;
    pawl_error error = {0};
    int status = tenants ? pawl_request_new(clerk->engine, &request) : PAWL_ENOMEM;
    for (uint64_t i = 0; status == PAWL_OK && i < count && !atomic_load(&stop); i++) {
        tenants[i].wsid = 1 + clerk->index + i * o->threads;
        status = open_shop(clerk, request, &tenants[i], &error);
    }
    while (status == PAWL_OK && count > 0 && !atomic_load(&stop))
        status = one_command(clerk, request, &tenants[below(clerk, count)], &error);
    if (status != PAWL_OK) {
        complain("command", &error);
        clerk->failed = true;
        atomic_store(&stop, true);
    }
    pawl_request_free(request);
    free(tenants);
    return NULL;
}

static void wait_second(void)
{
    struct timespec second = {.tv_sec = 1};
    while (nanosleep(&second, &second) != 0 && errno == EINTR)
        ;
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

static int load(const struct options *o)
{
    static struct clerk clerks[THREADS_MAX];
    pawl_engine *engine;
    pawl_error error = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (pawl_open(o->dir, NULL, &engine, &error) != PAWL_OK)
        return complain("open", &error);
    char *schema = read_whole(o->schema);
    if (!schema || pawl_schema_apply(engine, schema, NULL, &error) != PAWL_OK) {
        complain(o->schema, &error);
        free(schema);
        pawl_close(engine);
        return 1;
    }
    free(schema);
    uint64_t started = 0;
    for (; started < o->threads; started++) {
        clerks[started] = (struct clerk){.options = o,
                                         .engine = engine,
                                         .index = started,
                                         .random = o->seed * 1000003 + started,
                                         .run = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec};
        if (pthread_create(&clerks[started].thread, NULL, clerk_main, &clerks[started]) != 0)
            break;
    }
    uint64_t before = 0;
    for (uint64_t second = 0; second < o->seconds && !atomic_load(&stop); second++) {
        wait_second();
        uint64_t after = atomic_load(&answered);
        printf("%" PRIu64 " commands answered, %" PRIu64 " in the last second\n", after, after - before);
        fflush(stdout);
        before = after;
    }
    atomic_store(&stop, true);
    bool failed = started < o->threads;
    for (uint64_t i = 0; i < started; i++) {
        pthread_join(clerks[i].thread, NULL);
        failed = failed || clerks[i].failed;
    }
    if (pawl_close(engine) != PAWL_OK)
        return complain("close", &error);
    return failed ? 1 : 0;
}

/* The numbers of a page of invoices, one JSON line each. */
static bool check_page(const char *lines, uint64_t wsid, uint64_t *expected, uint64_t *last_id)
{
    for (const char *line = lines; *line; line = strchr(line, '\n') + 1) {
        const char *number = strstr(line, "\"number\":");
        unsigned long long id = 0, found = 0;
        if (sscanf(line, "{\"id\":%llu", &id) != 1 || !number || sscanf(number + 9, "%llu", &found) != 1) {
            fprintf(stderr, "shop: tenant %" PRIu64 ": not an invoice: %s\n", wsid, line);
            return false;
        }
        if (found != *expected) {
            fprintf(stderr, "shop: tenant %" PRIu64 ": invoice %llu has number %llu, expected %" PRIu64 "\n",
                    wsid, id, found, *expected);
            return false;
        }
        (*expected)++;
        *last_id = id;
    }
    return true;
}

static int check(const struct options *o)
{
    pawl_engine *engine;
    pawl_error error = {0};
    pawl_options reading = {.read_only = true};
    uint64_t invoices = 0, tenants = 0;
    if (pawl_open(o->dir, &reading, &engine, &error) != PAWL_OK)
        return complain("open", &error);
    bool good = true;
    for (uint64_t wsid = 1; good && wsid <= o->tenants; wsid++) {
        uint64_t expected = 1, last = 0, before;
        int status;
        do {
            pawl_text page;
            before = expected;
            status = pawl_record_list(engine, wsid, "shop.Invoice", last, 1000, NULL, &page, &error);
            if (status != PAWL_OK)
                break;
            good = check_page(page.data, wsid, &expected, &last);
            pawl_text_free(&page);
        } while (good && expected > before);
        if (status == PAWL_ENOTFOUND) /* not opened yet when it was killed */
            continue;
        good = good && status == PAWL_OK;
        if (status != PAWL_OK)
            complain("invoices", &error);
        invoices += expected - 1;
        tenants++;
    }
    pawl_close(engine);
    if (good)
        printf("%" PRIu64 " tenants, %" PRIu64 " invoices: numbered 1, 2, 3, ... in each, no gap, none twice\n",
               tenants, invoices);
    return good ? 0 : 1;
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
    fputs("usage: shop load  --dir DIR [--schema FILE] [--tenants N] [--threads N] [--seconds N] [--seed N]\n"
          "       shop check --dir DIR [--tenants N]\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct options o = {
        .schema = "examples/shop/shop.json", .tenants = 200, .threads = 16, .seconds = 5, .seed = 1};
    for (int i = 2; i + 1 < argc; i += 2) {
        bool good = true;
        if (strcmp(argv[i], "--dir") == 0)
            o.dir = argv[i + 1];
        else if (strcmp(argv[i], "--schema") == 0)
            o.schema = argv[i + 1];
        else if (strcmp(argv[i], "--tenants") == 0)
            good = parse_number(argv[i + 1], 10000000, &o.tenants);
        else if (strcmp(argv[i], "--threads") == 0)
            good = parse_number(argv[i + 1], THREADS_MAX, &o.threads);
        else if (strcmp(argv[i], "--seconds") == 0)
            good = parse_number(argv[i + 1], 1000000, &o.seconds);
        else if (strcmp(argv[i], "--seed") == 0)
            good = parse_number(argv[i + 1], UINT64_MAX, &o.seed);
        else
            good = false;
        if (!good)
            return usage();
    }
    if (argc < 2 || argc % 2 != 0 || !o.dir)
        return usage();
    if (strcmp(argv[1], "load") == 0)
        return load(&o);
    return strcmp(argv[1], "check") == 0 ? check(&o) : usage();
}

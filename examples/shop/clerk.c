/* clerk.c: threads that send commands. Each works for some of the tenants, and remembers what it needs about them. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shop.h"

#define PRODUCTS  20
#define CUSTOMERS 50 /* how many a thread remembers of a tenant */
#define TIDE      40 /* seconds */

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

_Atomic uint64_t answered;
_Atomic uint64_t turned_away;
atomic_bool stop;

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

static int send(struct clerk *clerk, pawl_request *r, pawl_error *error)
{
    char key[64];
    snprintf(key, sizeof key, "%" PRIx64 "-%" PRIu64 "-%" PRIu64, clerk->run, clerk->index, clerk->commands++);
    pawl_request_key(r, key);
    pawl_request_actor(r, "till");
    int status = pawl_command(clerk->engine, r, NULL, error);
    while ((status == PAWL_EBUSY || status == PAWL_EUNKNOWN) && !atomic_load(&stop)) /* safe, with its key */
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
    pawl_request_begin(r, t->wsid, "shop.Open");
    pawl_request_record(r, 1, "shop.Settings");
    snprintf(text, sizeof text, "Shop %" PRIu64, t->wsid);
    pawl_request_set_string(r, "name", text);
    pawl_request_set_string(r, "currency", "EUR");
    for (uint64_t i = 0; i < PRODUCTS; i++) {
        pawl_request_record(r, 2 + i, "shop.Product");
        snprintf(text, sizeof text, "SKU-%03" PRIu64, i);
        pawl_request_set_string(r, "sku", text);
        pawl_request_set_string(r, "title", titles[i % 5]);
        pawl_request_set_int64(r, "cents", (int64_t)(100 + 50 * i));
    }
    status = send(clerk, r, error);
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
    pawl_request_begin(r, t->wsid, "shop.AddCustomer");
    pawl_request_record(r, 1, "shop.Customer");
    pawl_request_set_string(r, "name", names[below(clerk, 8)]);
    pawl_request_set_string(r, "tier", tiers[below(clerk, 3)]);
    int status = send(clerk, r, error);
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
    pawl_request_begin(r, t->wsid, "shop.PlaceOrder");
    pawl_request_argument(r, 1);
    pawl_request_set_ref(r, "customer", customer);
    pawl_request_set_int64(r, "cents", total);
    for (uint64_t i = 0; i < lines; i++) {
        pawl_request_child(r, 1, "lines", 10 + i);
        if (t->products[product[i]])
            pawl_request_set_ref(r, "product", t->products[product[i]]);
        pawl_request_set_int64(r, "qty", quantity[i]);
        pawl_request_set_int64(r, "cents", cents[i]);
    }
    pawl_request_record(r, 2, "shop.Invoice");
    pawl_request_set_ref(r, "order", 1);
    pawl_request_set_ref(r, "customer", customer);
    pawl_request_set_int64(r, "cents", total);
    int status = send(clerk, r, error);
    if (status == PAWL_OK) {
        t->unpaid = pawl_request_id(r, 2);
        t->unpaid_cents = total;
    }
    return status;
}

static int pay_once(struct clerk *clerk, pawl_request *r, const struct tenant *t, const char *reference,
                    pawl_error *error)
{
    static const char *const methods[] = {"card", "cash", "transfer"};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pawl_wall time = {(int64_t)now.tv_sec * 1000000000 + now.tv_nsec};
    pawl_request_begin(r, t->wsid, "shop.Pay");
    pawl_request_record(r, 1, "shop.Payment");
    pawl_request_set_ref(r, "invoice", t->unpaid);
    pawl_request_set_int64(r, "cents", t->unpaid_cents);
    pawl_request_set_string(r, "method", methods[below(clerk, 3)]);
    pawl_request_set_string(r, "reference", reference);
    pawl_request_record(r, t->unpaid, "shop.Invoice");
    pawl_request_set_bool(r, "paid", true);
    pawl_request_set_time(r, "paid_at", time);
    return send(clerk, r, error);
}

/* The bank names each payment, and now and then tells of one twice. */
static int pay(struct clerk *clerk, pawl_request *r, struct tenant *t, pawl_error *error)
{
    char reference[64];
    snprintf(reference, sizeof reference, "BANK-%" PRIx64 "-%" PRIu64 "-%" PRIu64, clerk->run, clerk->index,
             clerk->commands);
    int status = pay_once(clerk, r, t, reference, error);
    if (status == PAWL_OK && below(clerk, 20) == 0) {
        int again = pay_once(clerk, r, t, reference, error);
        if (again == PAWL_EEXISTS)
            atomic_fetch_add_explicit(&turned_away, 1, memory_order_relaxed);
        else
            status = again == PAWL_OK ? pawl_error_set(error, PAWL_EINVAL, "a payment was taken twice") : again;
    }
    if (status == PAWL_OK)
        t->unpaid = 0;
    return status;
}

/* A customer who has spent that much is loyal from now on. */
static int reward(struct clerk *clerk, pawl_request *r, struct tenant *t, pawl_error *error)
{
    pawl_request_begin(r, t->wsid, "shop.RewardLoyal");
    pawl_request_argument(r, 1);
    pawl_request_set_int64(r, "cents", (int64_t)(1000 * (1 + below(clerk, 50))));
    return send(clerk, r, error);
}

static int ask_statement(struct clerk *clerk, pawl_request *r, struct tenant *t, pawl_error *error)
{
    pawl_request_begin(r, t->wsid, "shop.AskStatement");
    pawl_request_argument(r, 1);
    pawl_request_set_ref(r, "customer", t->customers[below(clerk, t->customer_count)]);
    return send(clerk, r, error);
}

static int one_command(struct clerk *clerk, pawl_request *r, struct tenant *t, pawl_error *error)
{
    if (t->customer_count == 0 || below(clerk, 20) == 0)
        return add_customer(clerk, r, t, error);
    if (t->unpaid && below(clerk, 3) == 0)
        return pay(clerk, r, t, error);
    if (below(clerk, 5) == 0)
        return ask_statement(clerk, r, t, error);
    if (below(clerk, 100) == 0)
        return reward(clerk, r, t, error);
    return place_order(clerk, r, t, error);
}

/* Wait as long as the rate asks for. There are busier and quieter times: within TIDE seconds the rate goes from
 * a half of what was asked for to one and a half of it, and back. */
static void rest(struct clerk *clerk)
{
    const struct options *o = clerk->options;
    struct timespec now;
    if (o->rate == 0)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t second = (uint64_t)now.tv_sec % TIDE;
    uint64_t tide = TIDE / 2 + (second < TIDE / 2 ? second : TIDE - second); /* of TIDE */
    uint64_t left = below(clerk, 1 + 2 * 1000 * o->threads * TIDE / (o->rate * tide));
    for (; left > 0 && !atomic_load(&stop); left -= left < 100 ? left : 100)
        wait_ms(left < 100 ? (long)left : 100);
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
    while (status == PAWL_OK && count > 0 && !atomic_load(&stop)) {
        status = one_command(clerk, request, &tenants[below(clerk, count)], &error);
        rest(clerk);
    }
    bool given_up = atomic_load(&stop) && (status == PAWL_EBUSY || status == PAWL_EUNKNOWN);
    if (status != PAWL_OK && !given_up) {
        complain("command", &error);
        clerk->failed = true;
        atomic_store(&stop, true);
    }
    pawl_request_free(request);
    free(tenants);
    return NULL;
}

static struct clerk clerks[THREADS_MAX];

uint64_t clerks_start(const struct options *o, pawl_engine *engine)
{
    struct timespec now;
    uint64_t started = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    for (; started < o->threads; started++) {
        clerks[started] = (struct clerk){.options = o,
                                         .engine = engine,
                                         .index = started,
                                         .random = o->seed * 1000003 + started,
                                         .run = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec};
        if (pthread_create(&clerks[started].thread, NULL, clerk_main, &clerks[started]) != 0)
            break;
    }
    return started;
}

bool clerks_join(uint64_t started)
{
    bool good = true;
    for (uint64_t i = 0; i < started; i++) {
        pthread_join(clerks[i].thread, NULL);
        good = good && !clerks[i].failed;
    }
    return good;
}

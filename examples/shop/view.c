/* view.c: a view that is made while the shops are open.
 *
 * Clerks go on sending commands. Meanwhile the view is built over the invoices that are there, at a bounded rate,
 * so that one can watch it; what comes in is entered by the commands themselves. When it is built it is asked for
 * the last invoices of a customer. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "shop.h"

#define SHOWN   3  /* invoices of a customer */
#define BAR     40 /* characters */
#define SECONDS 2  /* that the build is to take, about */

static bool note_status(void *arg, const pawl_view_status *status)
{
    *(pawl_view_status *)arg = *status; /* the texts in it are not used */
    return true;
}

static int read_status(pawl_engine *engine, const char *view, pawl_view_status *ret_status, pawl_error *error)
{
    return pawl_view_status_read(engine, view, note_status, ret_status, error);
}

/* A view of an earlier day is built anew, beside the one that is read. */
static int make(pawl_engine *engine, pawl_error *error)
{
    static const char *const key[] = {"customer", "number"}, *const include[] = {"id", "cents", "paid"};
    const pawl_view_definition invoices = {.name = INVOICES_VIEW,
                                           .base = "shop.Invoice",
                                           .key = key,
                                           .key_count = 2,
                                           .include = include,
                                           .include_count = 3};
    int status = pawl_view_create(engine, &invoices, error);
    return status == PAWL_EEXISTS ? pawl_view_rebuild(engine, INVOICES_VIEW, error) : status;
}

static void show(const pawl_view_status *s)
{
    char bar[BAR + 1];
    int full = (int)(s->percent * BAR / 100);
    bool over = s->state == PAWL_VIEW_BUILT && !s->rebuilding;
    for (int i = 0; i < BAR; i++)
        bar[i] = i < full ? '#' : ' ';
    bar[BAR] = '\0';
    printf("%s  %s [%s] %5.1f %%  ", window_is_live() ? "\r" : "", INVOICES_VIEW, bar, s->percent);
    if (over)
        printf("built: %" PRIu64 " rows", s->rows);
    else if (s->eta == UINT64_MAX)
        printf("%" PRIu64 " of %" PRIu64 " tasks left", s->tasks_left, s->tasks);
    else
        printf("%.0f rows/s, ETA %.1f s", s->rate, (double)s->eta / 1e9);
    fputs(window_is_live() ? "\033[K" : "\n", stdout);
    if (over && window_is_live())
        putchar('\n');
    fflush(stdout);
}

/* Until it is built, or a clerk fails. */
static int watch(pawl_engine *engine, pawl_error *error)
{
    const pawl_duration step = 400 * PAWL_MILLISECOND;
    pawl_view_status now = {0};
    int built = PAWL_ETIMEOUT, status = PAWL_OK;
    while (status == PAWL_OK && built == PAWL_ETIMEOUT && !atomic_load(&stop)) {
        built = pawl_view_wait(engine, INVOICES_VIEW, window_is_live() ? step / 4 : step, error);
        status = read_status(engine, INVOICES_VIEW, &now, error);
        if (status == PAWL_OK && built != PAWL_EEXISTS)
            show(&now);
    }
    return status == PAWL_OK ? built : status;
}

int view_throttle(pawl_engine *engine, uint64_t seconds, pawl_error *error)
{
    pawl_view_status other = {0}; /* of a view with the same base, which tells how many rows that has */
    int status = read_status(engine, "shop.invoices_by_number", &other, error);
    return status == PAWL_OK ? pawl_view_throttle(engine, other.rows_total / seconds + 1, error) : status;
}

static int build(pawl_engine *engine, pawl_error *error)
{
    int status = view_throttle(engine, SECONDS, error);
    if (status == PAWL_OK)
        status = make(engine, error);
    if (status == PAWL_OK)
        status = watch(engine, error);
    int released = pawl_view_throttle(engine, 0, status == PAWL_OK ? error : NULL);
    return status == PAWL_OK ? released : status;
}

/* --- a question --- */

static bool note_customer(void *arg, const pawl_row *row)
{
    return pawl_row_ref(row, "customer", arg, NULL) != PAWL_OK;
}

static bool print_invoice(void *arg, const pawl_row *row)
{
    int64_t number = 0, cents = 0;
    bool paid = false;
    (void)arg;
    (void)pawl_row_int64(row, "number", &number, NULL);
    (void)pawl_row_int64(row, "cents", &cents, NULL);
    (void)pawl_row_bool(row, "paid", &paid, NULL);
    printf("    invoice %6" PRId64 "  %6" PRId64 ".%02d EUR  %s\n", number, cents / 100, (int)(cents % 100),
           paid ? "paid" : "open");
    return true;
}

static int ask(pawl_engine *engine, uint64_t wsid, pawl_error *error)
{
    uint64_t customer = 0;
    pawl_view_query query = {.wsid = wsid, .descending = true, .complete = true, .limit = 1};
    int status = pawl_view_scan(engine, INVOICES_VIEW, &query, note_customer, &customer, NULL, error);
    if (status != PAWL_OK || customer == 0)
        return status;
    const pawl_value prefix = pawl_value_ref(customer);
    printf("  the last invoices of customer %" PRIu64 " of shop %" PRIu64 ":\n", customer, wsid);
    query.prefix = (pawl_key){&prefix, 1};
    query.limit = SHOWN;
    return pawl_view_scan(engine, INVOICES_VIEW, &query, print_invoice, NULL, NULL, error);
}

int view_invoices(const struct options *o)
{
    pawl_engine *engine;
    pawl_error error = {0};
    if (pawl_open(o->dir, &(pawl_options){.must_exist = true}, &engine, &error) != PAWL_OK)
        return complain("open", &error);
    int status = statements_register(engine, o, &error);
    if (status != PAWL_OK)
        complain("statements", &error);
    bool good = status == PAWL_OK;
    if (good) {
        uint64_t started = clerks_start(o, engine);
        status = build(engine, &error);
        if (status == PAWL_OK)
            status = ask(engine, 7, &error);
        if (status != PAWL_OK)
            complain("view", &error);
        atomic_store(&stop, true);
        good = clerks_join(started) && started == o->threads && status == PAWL_OK;
        printf("  %" PRIu64 " commands were answered meanwhile; %" PRIu64
               " payments came twice, and were refused\n",
               atomic_load(&answered), atomic_load(&turned_away));
    }
    if (pawl_close(engine) != PAWL_OK)
        return complain("close", &error);
    return good ? 0 : 1;
}

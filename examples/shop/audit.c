/* audit.c: whether invoices, accounts and statements are what the events say.
 *
 * The events of a tenant are gone through one after the other, and what they make of accounts and statements is
 * worked out here, in a dozen lines; then it is compared with what the lanes have made of them, in parallel. A
 * lane may lag behind the log: then it is compared with the events that it has come to. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shop.h"

struct customer {
    uint64_t id;
    int64_t orders;
    int64_t cents;
    bool loyal;
    int64_t statements;
    uint64_t chain;
};

enum { ACCOUNTS, STATEMENTS, LANES };

struct books {
    uint64_t reached[LANES][PAWL_PARTITIONS_MAX]; /* the offset that a lane has come to */
    uint64_t behind;                              /* events that a lane has not come to */
    struct customer *customers;                   /* of one tenant, by ascending ID */
    size_t count;
    size_t room;
    uint64_t accounts; /* compared, of all tenants */
    uint64_t statements;
    struct view_counts views;
    bool bad;
};

static bool note_lane(void *arg, const pawl_lane_status *status)
{
    struct books *books = arg;
    int lane = strcmp(status->lane, "shop.accounts") == 0 ? ACCOUNTS : STATEMENTS;
    if (status->serving)
        books->reached[lane][status->partition] = status->offset;
    return true;
}

static struct customer *find(struct books *books, uint64_t id)
{
    size_t low = 0, high = books->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (books->customers[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < books->count && books->customers[low].id == id ? &books->customers[low] : NULL;
}

/* IDs are given in ascending order. */
static bool add(struct books *books, uint64_t id)
{
    if (books->count == books->room) {
        size_t room = books->room ? 2 * books->room : 256;
        struct customer *customers = realloc(books->customers, room * sizeof *customers);
        if (!customers)
            return false;
        books->customers = customers;
        books->room = room;
    }
    books->customers[books->count++] = (struct customer){.id = id};
    return true;
}

static bool is(pawl_bytes text, const char *words)
{
    return text.size == strlen(words) && memcmp(text.data, words, text.size) == 0;
}

static bool add_customer(void *arg, const pawl_row *row)
{
    struct books *books = arg;
    books->bad |= !add(books, pawl_row_id(row));
    return true;
}

/* The number in a field that every event has. */
static int64_t number_of(struct books *books, const pawl_row *row, const char *field)
{
    int64_t number = 0;
    books->bad |= pawl_row_int64(row, field, &number, NULL) != PAWL_OK;
    return number;
}

static void reward(struct books *books, int64_t cents)
{
    for (size_t i = 0; i < books->count; i++)
        books->customers[i].loyal |= books->customers[i].orders > 0 && books->customers[i].cents >= cents;
}

static struct customer *customer_of(struct books *books, const pawl_row *argument)
{
    uint64_t id;
    struct customer *customer = NULL;
    if (pawl_row_ref(argument, "customer", &id, NULL) == PAWL_OK)
        customer = find(books, id);
    books->bad |= !customer;
    return customer;
}

/* Enter one event into the books. */
static bool enter(void *arg, const pawl_event *event)
{
    struct books *books = arg;
    bool to_accounts = event->offset <= books->reached[ACCOUNTS][event->partition];
    bool to_statements = event->offset <= books->reached[STATEMENTS][event->partition];
    const pawl_row *argument = pawl_event_argument(event);
    struct customer *customer;
    books->behind += !to_accounts || !to_statements;
    if (is(event->command, "shop.AddCustomer"))
        books->bad |= pawl_event_records(event, "shop.Customer", add_customer, books, NULL) != PAWL_OK;
    else if (is(event->command, "shop.RewardLoyal") && to_accounts)
        reward(books, number_of(books, argument, "cents"));
    else if (is(event->command, "shop.PlaceOrder") && (customer = customer_of(books, argument))
             && to_accounts) {
        customer->orders++;
        customer->cents += number_of(books, argument, "cents");
    } else if (is(event->command, "shop.AskStatement") && (customer = customer_of(books, argument))
               && to_statements) {
        customer->statements++;
        customer->chain = statement_chain(customer->chain, event->workspace_offset);
    }
    return !books->bad;
}

/* --- rows against customers --- */

struct comparing {
    struct books *books;
    int lane;
    uint64_t wsid;
    size_t at; /* index of the customer whose row comes next */
    uint64_t rows;
    bool same;
};

/* Whether the customer has a row at all. */
static bool has_row(const struct customer *c, int lane)
{
    return lane == ACCOUNTS ? c->orders > 0 : c->statements > 0;
}

static bool is_account(const pawl_row *row, const struct customer *c)
{
    int64_t orders, cents;
    bool loyal;
    return pawl_row_int64(row, "orders", &orders, NULL) == PAWL_OK && orders == c->orders
           && pawl_row_int64(row, "cents", &cents, NULL) == PAWL_OK && cents == c->cents
           && pawl_row_bool(row, "loyal", &loyal, NULL) == PAWL_OK && loyal == c->loyal;
}

static bool is_statement(const pawl_row *row, const struct customer *c)
{
    int64_t statements, chain;
    pawl_bytes text;
    char words[96];
    snprintf(words, sizeof words, "Statement %" PRId64 " for customer %" PRIu64, c->statements, c->id);
    return pawl_row_int64(row, "statements", &statements, NULL) == PAWL_OK && statements == c->statements
           && pawl_row_int64(row, "chain", &chain, NULL) == PAWL_OK && (uint64_t)chain == c->chain
           && pawl_row_string(row, "text", &text, NULL) == PAWL_OK && is(text, words);
}

static bool compare_row(void *arg, const pawl_row *row)
{
    struct comparing *c = arg;
    const struct books *books = c->books;
    uint64_t id = 0;
    while (c->at < books->count && !has_row(&books->customers[c->at], c->lane))
        c->at++;
    const struct customer *customer = c->at < books->count ? &books->customers[c->at] : NULL;
    c->same = customer && pawl_row_ref(row, "customer", &id, NULL) == PAWL_OK && id == customer->id
              && (c->lane == ACCOUNTS ? is_account(row, customer) : is_statement(row, customer));
    if (!c->same)
        fprintf(stderr,
                "shop: tenant %" PRIu64 ": the %s of customer %" PRIu64 " is not what the events make\n",
                c->wsid, c->lane == ACCOUNTS ? "account" : "statement", id);
    c->at++;
    c->rows++;
    return c->same;
}

static bool compare(pawl_engine *engine, struct books *books, int lane, uint64_t wsid, pawl_error *error)
{
    const char *entity = lane == ACCOUNTS ? "shop.Account" : "shop.Statement";
    struct comparing c = {.books = books, .lane = lane, .wsid = wsid, .same = true};
    int status =
        pawl_entity_scan(engine, wsid, entity, (pawl_key){0}, NULL, SIZE_MAX, NULL, compare_row, &c, error);
    if (status != PAWL_OK)
        return complain(entity, error) == 0;
    for (; c.same && c.at < books->count; c.at++)
        if (has_row(&books->customers[c.at], lane)) {
            fprintf(stderr, "shop: tenant %" PRIu64 ": there is no %s of customer %" PRIu64 "\n", wsid, entity,
                    books->customers[c.at].id);
            return false;
        }
    *(lane == ACCOUNTS ? &books->accounts : &books->statements) += c.rows;
    return c.same;
}

static bool audit_books(pawl_engine *engine, struct books *books, uint64_t wsid, pawl_error *error)
{
    books->count = 0;
    if (pawl_workspace_events_read(engine, wsid, 1, SIZE_MAX, enter, books, NULL, error) != PAWL_OK)
        return complain("events", error) == 0;
    if (books->bad) {
        fprintf(stderr, "shop: tenant %" PRIu64 ": an event that cannot be\n", wsid);
        return false;
    }
    return compare(engine, books, ACCOUNTS, wsid, error) && compare(engine, books, STATEMENTS, wsid, error);
}

struct numbering {
    uint64_t wsid;
    int64_t expected;
    bool good;
};

static bool check_invoice(void *arg, const pawl_row *row)
{
    struct numbering *n = arg;
    int64_t found = 0;
    n->good = pawl_row_int64(row, "number", &found, NULL) == PAWL_OK && found == n->expected;
    if (!n->good)
        fprintf(stderr,
                "shop: tenant %" PRIu64 ": invoice %" PRIu64 " has number %" PRId64 ", expected %" PRId64 "\n",
                n->wsid, pawl_row_id(row), found, n->expected);
    n->expected++;
    return n->good;
}

/* PAWL_ENOTFOUND: the shop was not opened yet when it was killed. */
static int audit_invoices(pawl_engine *engine, uint64_t wsid, uint64_t *invoices, bool *good, pawl_error *error)
{
    struct numbering n = {.wsid = wsid, .expected = 1, .good = true};
    int status =
        pawl_record_scan(engine, wsid, "shop.Invoice", 0, SIZE_MAX, NULL, check_invoice, &n, NULL, error);
    *invoices += (uint64_t)n.expected - 1;
    *good = n.good;
    return status;
}

int audit(const struct options *o)
{
    pawl_engine *engine;
    pawl_error error = {0};
    struct books *books = calloc(1, sizeof *books);
    uint64_t invoices = 0, tenants = 0;
    if (!books || pawl_open(o->dir, &(pawl_options){.read_only = true}, &engine, &error) != PAWL_OK) {
        free(books);
        return complain("open", &error);
    }
    bool good =
        pawl_lanes_read(engine, NULL, note_lane, books, &error) == PAWL_OK || complain("lanes", &error) == 0;
    for (uint64_t wsid = 1; good && wsid <= o->tenants; wsid++) {
        int status = audit_invoices(engine, wsid, &invoices, &good, &error);
        if (status == PAWL_ENOTFOUND)
            continue;
        if (status != PAWL_OK)
            good = complain("invoices", &error) == 0;
        good = good && audit_books(engine, books, wsid, &error)
               && audit_views(engine, wsid, &books->views, &error);
        tenants++;
    }
    pawl_close(engine);
    if (good) {
        printf("%" PRIu64 " tenants, %" PRIu64 " invoices: numbered 1, 2, 3, ... in each, no gap, none twice\n",
               tenants, invoices);
        printf("%" PRIu64 " accounts and %" PRIu64 " statements: as the events, one after the other, make them",
               books->accounts, books->statements);
        if (books->behind)
            printf("; %" PRIu64 " events are still to be projected", books->behind);
        putchar('\n');
        printf("%" PRIu64 " payments: none was taken twice\n", books->views.payments);
        if (books->views.rows)
            printf("%" PRIu64 " rows of the view of invoices by customer: each as its invoice says\n",
                   books->views.rows);
    }
    free(books->customers);
    free(books);
    return good ? 0 : 1;
}

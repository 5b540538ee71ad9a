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

#define PARTITIONS_MAX 65536
#define PAGE           1000

struct customer {
    uint64_t id;
    uint64_t orders;
    uint64_t cents;
    bool loyal;
    uint64_t statements;
    uint64_t chain;
};

enum { ACCOUNTS, STATEMENTS, LANES };

struct books {
    uint64_t reached[LANES][PARTITIONS_MAX]; /* the offset that a lane has come to */
    uint64_t behind;                         /* events that a lane has not come to */
    struct customer *customers;              /* of one tenant, by ascending ID */
    size_t count;
    size_t room;
    uint64_t accounts; /* compared, of all tenants */
    uint64_t statements;
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

static bool is_command(pawl_bytes event, const char *name)
{
    pawl_bytes command = behind(event, "command");
    size_t size = strlen(name);
    return command.size > size + 1 && memcmp((const char *)command.data + 1, name, size) == 0;
}

/* One event after the other. */
static bool enter(void *arg, const pawl_event *event)
{
    struct books *books = arg;
    bool to_accounts = event->offset <= books->reached[ACCOUNTS][event->partition];
    bool to_statements = event->offset <= books->reached[STATEMENTS][event->partition];
    pawl_bytes json = {event->json, event->json_size};
    pawl_bytes argument = behind(json, "argument"), records = behind(json, "records");
    uint64_t id = 0, cents = 0;
    books->behind += !to_accounts || !to_statements;
    if (is_command(json, "shop.AddCustomer")) {
        if (!number_of(records, "id", &id) || !add(books, id))
            books->bad = true;
    } else if (is_command(json, "shop.RewardLoyal")) {
        books->bad |= !number_of(argument, "cents", &cents);
        for (size_t i = 0; to_accounts && i < books->count; i++)
            books->customers[i].loyal |= books->customers[i].orders > 0 && books->customers[i].cents >= cents;
    } else if (number_of(argument, "customer", &id)) {
        struct customer *customer = find(books, id);
        if (!customer)
            books->bad = true;
        else if (is_command(json, "shop.PlaceOrder") && to_accounts && number_of(argument, "cents", &cents)) {
            customer->orders++;
            customer->cents += cents;
        } else if (is_command(json, "shop.AskStatement") && to_statements) {
            customer->statements++;
            customer->chain = statement_chain(customer->chain, event->workspace_offset);
        }
    }
    return !books->bad;
}

/* The row that the customer must have; false: the customer has none. */
static bool describe(const struct customer *c, int lane, char text[160])
{
    if (lane == ACCOUNTS)
        snprintf(text, 160, "{\"customer\":%" PRIu64 ",\"orders\":%" PRIu64 ",\"cents\":%" PRIu64 "%s}", c->id,
                 c->orders, c->cents, c->loyal ? ",\"loyal\":true" : "");
    else
        snprintf(text, 160,
                 "{\"customer\":%" PRIu64 ",\"statements\":%" PRIu64 ",\"chain\":%" PRIu64
                 ",\"text\":\"Statement %" PRIu64 " for customer %" PRIu64 "\"}",
                 c->id, c->statements, c->chain, c->statements, c->id);
    return (lane == ACCOUNTS ? c->orders : c->statements) > 0;
}

/* The rows of a page against the customers from *at on. */
static bool compare_page(struct books *books, int lane, const char *lines, size_t *at, uint64_t *rows,
                         uint64_t wsid)
{
    char expected[160];
    for (const char *line = lines; *line; line = strchr(line, '\n') + 1) {
        size_t size = strcspn(line, "\n");
        while (*at < books->count && !describe(&books->customers[*at], lane, expected))
            (*at)++;
        if (*at == books->count || strlen(expected) != size || memcmp(line, expected, size) != 0) {
            fprintf(stderr, "shop: tenant %" PRIu64 ": there is %.*s, expected %s\n", wsid, (int)size, line,
                    *at == books->count ? "no more" : expected);
            return false;
        }
        (*at)++;
        (*rows)++;
    }
    return true;
}

static bool compare(pawl_engine *engine, struct books *books, int lane, uint64_t wsid, pawl_error *error)
{
    const char *entity = lane == ACCOUNTS ? "shop.Account" : "shop.Statement";
    size_t at = 0;
    uint64_t rows = 0, before;
    char expected[160], key[32];
    do {
        pawl_text page;
        pawl_bytes after = {0};
        before = rows;
        if (at > 0)
            after = (pawl_bytes){
                key, (size_t)snprintf(key, sizeof key, "[%" PRIu64 "]", books->customers[at - 1].id)};
        if (pawl_entity_list(engine, wsid, entity, after, PAGE, NULL, &page, error) != PAWL_OK)
            return complain(entity, error) == 0;
        bool same = compare_page(books, lane, page.data, &at, &rows, wsid);
        pawl_text_free(&page);
        if (!same)
            return false;
    } while (rows > before);
    for (; at < books->count; at++)
        if (describe(&books->customers[at], lane, expected)) {
            fprintf(stderr, "shop: tenant %" PRIu64 ": there is no %s\n", wsid, expected);
            return false;
        }
    *(lane == ACCOUNTS ? &books->accounts : &books->statements) += rows;
    return true;
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

/* The numbers of a page of invoices, one JSON line each. */
static bool check_page(const char *lines, uint64_t wsid, uint64_t *expected, uint64_t *last_id)
{
    for (const char *line = lines; *line; line = strchr(line, '\n') + 1) {
        pawl_bytes invoice = {line, strcspn(line, "\n")};
        uint64_t id = 0, found = 0;
        if (!number_of(invoice, "id", &id) || !number_of(invoice, "number", &found)) {
            fprintf(stderr, "shop: tenant %" PRIu64 ": not an invoice: %.*s\n", wsid, (int)invoice.size, line);
            return false;
        }
        if (found != *expected) {
            fprintf(stderr,
                    "shop: tenant %" PRIu64 ": invoice %" PRIu64 " has number %" PRIu64 ", expected %" PRIu64
                    "\n",
                    wsid, id, found, *expected);
            return false;
        }
        (*expected)++;
        *last_id = id;
    }
    return true;
}

/* PAWL_ENOTFOUND: the shop was not opened yet when it was killed. */
static int audit_invoices(pawl_engine *engine, uint64_t wsid, uint64_t *invoices, bool *good, pawl_error *error)
{
    uint64_t expected = 1, last = 0, before;
    do {
        pawl_text page;
        before = expected;
        int status = pawl_record_list(engine, wsid, "shop.Invoice", last, PAGE, NULL, &page, error);
        if (status != PAWL_OK)
            return status;
        *good = check_page(page.data, wsid, &expected, &last);
        pawl_text_free(&page);
    } while (*good && expected > before);
    *invoices += expected - 1;
    return PAWL_OK;
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
        good = good && audit_books(engine, books, wsid, &error);
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
    }
    free(books->customers);
    free(books);
    return good ? 0 : 1;
}

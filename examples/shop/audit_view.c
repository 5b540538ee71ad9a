/* audit_view.c: whether the views are what their base says, row by row.
 *
 * The invoices of a tenant are read from their table, sorted as the view sorts them, and compared with the view's
 * rows one after the other. References of payments are sorted, too: no two may be equal. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shop.h"

#define REFERENCE_MAX 64

struct invoice {
    uint64_t customer;
    int64_t number;
    uint64_t id;
    int64_t cents;
    bool paid;
};

struct reference {
    char text[REFERENCE_MAX];
};

/* Rows of one tenant. */
struct rows {
    char *bytes;
    size_t each;
    size_t count;
    size_t room;
    size_t at; /* the one whose view row comes next */
    bool bad;
};

static void *add(struct rows *rows)
{
    if (rows->count == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 256;
        char *bytes = realloc(rows->bytes, room * rows->each);
        if (!bytes)
            return NULL;
        rows->bytes = bytes;
        rows->room = room;
    }
    return rows->bytes + rows->count++ * rows->each;
}

/* Fields that are null stay 0, as they are in both. */
static struct invoice read_invoice(const pawl_row *row)
{
    struct invoice invoice = {0};
    (void)pawl_row_ref(row, "customer", &invoice.customer, NULL);
    (void)pawl_row_int64(row, "number", &invoice.number, NULL);
    (void)pawl_row_int64(row, "cents", &invoice.cents, NULL);
    (void)pawl_row_bool(row, "paid", &invoice.paid, NULL);
    invoice.id = pawl_row_id(row);
    return invoice;
}

static bool note_invoice(void *arg, const pawl_row *row)
{
    struct rows *rows = arg;
    struct invoice *invoice = add(rows);
    rows->bad = !invoice;
    if (invoice)
        *invoice = read_invoice(row);
    return !rows->bad;
}

static int by_customer(const void *left, const void *right)
{
    const struct invoice *a = left, *b = right;
    if (a->customer != b->customer)
        return a->customer < b->customer ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static bool compare_invoice(void *arg, const pawl_row *row)
{
    struct rows *rows = arg;
    struct invoice found = read_invoice(row), *said = (struct invoice *)(void *)rows->bytes + rows->at;
    rows->bad = rows->at >= rows->count || found.customer != said->customer || found.number != said->number
                || found.id != said->id || found.cents != said->cents || found.paid != said->paid;
    rows->at++;
    return !rows->bad;
}

/* 1: it is equal; 0: there is no such view; -1: it differs. */
static int compare_view(pawl_engine *engine, uint64_t wsid, struct rows *invoices, pawl_error *error)
{
    const pawl_view_query all = {.wsid = wsid, .complete = true, .limit = SIZE_MAX};
    int status =
        pawl_record_scan(engine, wsid, "shop.Invoice", 0, SIZE_MAX, NULL, note_invoice, invoices, NULL, error);
    if (status == PAWL_OK && invoices->count > 0)
        qsort(invoices->bytes, invoices->count, invoices->each, by_customer);
    if (status == PAWL_OK && !invoices->bad)
        status = pawl_view_scan(engine, INVOICES_VIEW, &all, compare_invoice, invoices, NULL, error);
    if (status == PAWL_ENOTFOUND)
        return 0;
    if (status != PAWL_OK)
        return -complain(INVOICES_VIEW, error);
    if (!invoices->bad && invoices->at == invoices->count)
        return 1;
    fprintf(stderr, "shop: tenant %" PRIu64 ": row %zu of %s is not what the invoices say\n", wsid,
            invoices->at, INVOICES_VIEW);
    return -1;
}

static bool note_reference(void *arg, const pawl_row *row)
{
    struct rows *rows = arg;
    pawl_bytes text;
    if (pawl_row_string(row, "reference", &text, NULL) != PAWL_OK || text.size == 0)
        return true;
    struct reference *reference = add(rows);
    rows->bad = !reference || text.size >= REFERENCE_MAX;
    if (!rows->bad)
        snprintf(reference->text, sizeof reference->text, "%.*s", (int)text.size, (const char *)text.data);
    return !rows->bad;
}

static int by_text(const void *left, const void *right)
{
    return strcmp(left, right);
}

static bool are_different(pawl_engine *engine, uint64_t wsid, struct rows *references, pawl_error *error)
{
    if (pawl_record_scan(engine, wsid, "shop.Payment", 0, SIZE_MAX, NULL, note_reference, references, NULL,
                         error)
        != PAWL_OK)
        return complain("payments", error) == 0;
    const struct reference *list = (const struct reference *)(const void *)references->bytes;
    if (references->count > 0)
        qsort(references->bytes, references->count, references->each, by_text);
    for (size_t i = 1; i < references->count; i++)
        if (strcmp(list[i - 1].text, list[i].text) == 0) {
            fprintf(stderr, "shop: tenant %" PRIu64 ": payment %s was taken twice\n", wsid, list[i].text);
            return false;
        }
    return !references->bad;
}

bool audit_views(pawl_engine *engine, uint64_t wsid, struct view_counts *counts, pawl_error *error)
{
    struct rows invoices = {.each = sizeof(struct invoice)}, references = {.each = sizeof(struct reference)};
    int compared = compare_view(engine, wsid, &invoices, error);
    bool good = compared >= 0 && are_different(engine, wsid, &references, error);
    counts->rows += compared == 1 ? invoices.at : 0;
    counts->payments += references.count;
    free(invoices.bytes);
    free(references.bytes);
    return good;
}

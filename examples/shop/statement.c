/* statement.c: a projector that takes its time: statements of account.
 *
 * The schema says which events it sees and which entity it writes; this file says what it writes. Many
 * statements are written at once, and out of order. Yet each customer's statements are as if they had been
 * written one by one: Pawl remembers what a handler reads through its ctx, and if an earlier statement changes
 * that, it runs the handler again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shop.h"

#define CHAIN_END (UINT64_C(1) << 50)

uint64_t statement_chain(uint64_t chain, uint64_t workspace_offset)
{
    return (chain * 31 + workspace_offset) % CHAIN_END;
}

/* A real handler would ask a printer or a bank here, which take ms on average, one longer than another. */
static void take_time(const pawl_handler_ctx *ctx, const pawl_event *event, uint64_t average)
{
    const struct timespec step = {.tv_nsec = 5000000};
    uint64_t ms = average / 2 + event->offset * 2654435761 % (average + 1);
    for (uint64_t waited = 0; waited < ms && !pawl_handler_given_up(ctx); waited += 5)
        nanosleep(&step, NULL);
}

struct before {
    int64_t statements;
    int64_t chain;
};

static bool take_before(void *arg, const pawl_row *row)
{
    struct before *before = arg;
    (void)pawl_row_int64(row, "statements", &before->statements, NULL);
    (void)pawl_row_int64(row, "chain", &before->chain, NULL);
    return true;
}

static int write_statement(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    const struct options *options = arg;
    uint64_t customer;
    char words[96];
    struct before before = {0};
    pawl_error error = {0};
    if (pawl_row_ref(pawl_event_argument(event), "customer", &customer, NULL) != PAWL_OK)
        return pawl_results_fail(results, true, "nobody has asked");
    pawl_value key = pawl_value_ref(customer);
    int status = pawl_handler_read(ctx, "shop.Statement", (pawl_key){&key, 1}, take_before, &before, &error);
    if (status != PAWL_OK && status != PAWL_ENOTFOUND)
        return pawl_results_fail(results, false, error.text);
    take_time(ctx, event, options->slow);
    uint64_t chain = statement_chain((uint64_t)before.chain, event->workspace_offset);
    snprintf(words, sizeof words, "Statement %" PRId64 " for customer %" PRIu64, before.statements + 1, customer);
    pawl_results_upsert(results, "shop.Statement");
    pawl_results_set_ref(results, "customer", customer);
    pawl_results_set_int64(results, "statements", before.statements + 1);
    pawl_results_set_int64(results, "chain", (int64_t)chain);
    return pawl_results_set_string(results, "text", words); /* returns the first error of all calls */
}

int statements_register(pawl_engine *engine, const struct options *options, pawl_error *error)
{
    return pawl_projector_register(engine, "shop.statements", write_statement, (void *)options, error);
}

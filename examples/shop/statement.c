/* statement.c: a projector that takes its time: statements of account.
 *
 * The schema says which events it sees and which entity it writes; what it writes is said here. Many statements
 * are written at once, and out of order; yet each customer's come out as if they had been written one by one,
 * because what a handler reads through its ctx is remembered: if a statement before this one changes it, the
 * handler is run again. */
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

/* Where a real one would ask a printer, or a bank. */
static void take_time(const pawl_handler_ctx *ctx, uint64_t ms)
{
    const struct timespec step = {.tv_nsec = 5000000};
    for (uint64_t waited = 0; waited < ms && !pawl_handler_given_up(ctx); waited += 5)
        nanosleep(&step, NULL);
}

static int write_statement(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    const struct options *options = arg;
    uint64_t customer, statements = 0, chain = 0;
    char key[32], words[96];
    pawl_text before;
    pawl_error error = {0};
    if (!number_of((pawl_bytes){event->json, event->json_size}, "customer", &customer))
        return pawl_results_fail(results, true, "nobody has asked");
    snprintf(key, sizeof key, "[%" PRIu64 "]", customer);
    int status = pawl_handler_get(ctx, "shop.Statement", (pawl_bytes){key, strlen(key)}, &before, &error);
    if (status == PAWL_OK) {
        number_of((pawl_bytes){before.data, before.size}, "statements", &statements);
        number_of((pawl_bytes){before.data, before.size}, "chain", &chain);
        pawl_text_free(&before);
    } else if (status != PAWL_ENOTFOUND)
        return pawl_results_fail(results, false, error.text);
    take_time(ctx, options->slow);
    snprintf(words, sizeof words, "Statement %" PRIu64 " for customer %" PRIu64, statements + 1, customer);
    status = pawl_results_upsert(results, "shop.Statement");
    THEN(status, pawl_results_set_ref(results, "customer", customer));
    THEN(status, pawl_results_set_int64(results, "statements", (int64_t)statements + 1));
    THEN(status,
         pawl_results_set_int64(results, "chain", (int64_t)statement_chain(chain, event->workspace_offset)));
    THEN(status, pawl_results_set_string(results, "text", words, strlen(words)));
    return status;
}

int statements_register(pawl_engine *engine, const struct options *options, pawl_error *error)
{
    return pawl_projector_register(engine, "shop.statements", write_statement, (void *)options, error);
}

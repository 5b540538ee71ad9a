/* http/routes/health.c: whether the process lives, and whether it takes commands. */
#include <string.h>

#include "http/routes/routes.h"

static const char live[] = "{\"live\":true}\n";

void health_live(struct exchange *x)
{
    exchange_answer_constant(x, HTTP_OK, TYPE_JSON, (pawl_bytes){live, sizeof live - 1});
}

/* Ready: it is not being stopped, and every partition that gives numbers gives them. What is alarming is told,
 * but does not make it unready: an orchestrator that restarts it would cure nothing. */
void health_ready(struct exchange *x)
{
    pawl_figures figures;
    pawl_error error;
    size_t alerts = 0;
    if (exchange_stopping(x)) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ECLOSED, "the server is being stopped");
        return;
    }
    if (pawl_figures_get(exchange_engine(x), &figures, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    pawl_alerts(exchange_engine(x), NULL, 0, &alerts);
    uint32_t partitions = pawl_partitions(exchange_engine(x));
    uint32_t ready =
        figures.sequencer_states[PAWL_SEQUENCER_READY] + figures.sequencer_states[PAWL_SEQUENCER_EVENTING];
    if (!pawl_engine_writes(exchange_engine(x)))
        ready = partitions; /* it gives no numbers, and takes no commands */
    bool all = ready == partitions;
    if (!all)
        exchange_add_header(x, "Retry-After", "1");
    exchange_answer_json(x, all ? HTTP_OK : HTTP_UNAVAILABLE,
                         json_pack("{s:b,s:i,s:i,s:I,s:I,s:I}", "ready", (int)all, "partitions",
                                   (int)partitions, "partitions_ready", (int)ready, "checkpoint_lag",
                                   (json_int_t)figures.checkpoint_lag, "checkpoint_lag_max",
                                   (json_int_t)figures.checkpoint_lag_max, "alerts", (json_int_t)alerts));
}

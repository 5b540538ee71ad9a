/* http/routes/figures.c: what the dashboard shows, and what is alarming. */
#include "http/server/server.h"

/* As a stream: once a second, made once for all who follow it. */
void figures_get(struct exchange *x)
{
    pawl_text text;
    pawl_error error = {0};
    struct hub_wish wish = {.kind = HUB_FIGURES};
    if (exchange_accepts(x, TYPE_SSE)) {
        if (exchange_number(x, "limit", 1, UINT64_MAX - 1, 0, &wish.limit))
            hub_follow(exchange_server(x)->hub, x, &wish);
        return;
    }
    if (pawl_figures_json(exchange_engine(x), &text, &error) != PAWL_OK)
        exchange_fail(x, &error);
    else
        exchange_answer_text(x, HTTP_OK, TYPE_JSON, &text);
}

void alerts_get(struct exchange *x)
{
    pawl_text text;
    pawl_error error = {0};
    if (pawl_alerts_json(exchange_engine(x), &text, &error) != PAWL_OK)
        exchange_fail(x, &error);
    else
        exchange_answer_text(x, HTTP_OK, TYPE_NDJSON, &text);
}

/* http/routes/schema.c: the schema that is in force, and the system tables. */
#include <string.h>

#include "http/routes/routes.h"

static void answer_lines(struct exchange *x, int status, pawl_text *text, const pawl_error *error)
{
    if (status == PAWL_OK)
        exchange_answer_text(x, HTTP_OK, TYPE_NDJSON, text);
    else
        exchange_fail(x, error);
}

void schema_get(struct exchange *x)
{
    bool lanes;
    pawl_text text;
    pawl_error error;
    if (!exchange_flag(x, "lanes", &lanes))
        return;
    int status = lanes ? pawl_schema_lanes_list(exchange_engine(x), &text, &error)
                       : pawl_schema_list(exchange_engine(x), &text, &error);
    answer_lines(x, status, &text, &error);
}

void schema_put(struct exchange *x)
{
    pawl_bytes body = exchange_body(x);
    uint64_t position;
    pawl_error error;
    if (body.size > PAWL_SCHEMA_JSON_MAX) {
        exchange_refuse(x, HTTP_TOO_LARGE, PAWL_ETOOBIG, "a schema has at most %zu bytes",
                        PAWL_SCHEMA_JSON_MAX);
        return;
    }
    if (memchr(body.data, 0, body.size)) {
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "byte %zu of the schema is zero", strlen(body.data));
        return;
    }
    if (pawl_schema_apply(exchange_engine(x), body.data, &position, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    exchange_answer_json(x, HTTP_OK, json_pack("{s:I}", "schema", (json_int_t)position));
}

void system_get(struct exchange *x)
{
    pawl_text text;
    pawl_error error;
    int status = pawl_system_read(exchange_engine(x), exchange_path(x, "table"), &text, &error);
    answer_lines(x, status, &text, &error);
}

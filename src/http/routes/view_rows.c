/* http/routes/view_rows.c: rows of a view, of one workspace or of all. */
#include <string.h>

#include "http/routes/routes.h"

struct view_question {
    const char *view;
    pawl_view_query query;
    pawl_bytes prefix, from, to;
    pawl_cursor cursor;
};

/* exclusive leaves out what is equal to a bound: from, to, or both. */
static bool read_exclusive(struct exchange *x, pawl_view_query *query)
{
    const char *text = exchange_param(x, "exclusive");
    bool both = text && strcmp(text, "both") == 0;
    query->from_exclusive = both || (text && strcmp(text, "from") == 0);
    query->to_exclusive = both || (text && strcmp(text, "to") == 0);
    if (!text || query->from_exclusive || query->to_exclusive)
        return true;
    exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL,
                    "$query.exclusive: expected from, to or both, not '%.64s'", text);
    return false;
}

static bool read_question(struct exchange *x, uint64_t wsid, struct view_question *q)
{
    pawl_read_options options;
    *q = (struct view_question){.view = exchange_path(x, "view"), .query = {.wsid = wsid}};
    if (!exchange_limit(x, &q->query.limit) || !exchange_flag(x, "desc", &q->query.descending)
        || !exchange_flag(x, "complete", &q->query.complete) || !exchange_read_options(x, &options)
        || !exchange_key(x, exchange_param(x, "prefix"), &q->prefix)
        || !exchange_key(x, exchange_param(x, "from"), &q->from)
        || !exchange_key(x, exchange_param(x, "to"), &q->to) || !read_exclusive(x, &q->query)
        || !exchange_cursor(x, &q->cursor))
        return false;
    q->query.min_offset = options.min_offset;
    q->query.timeout = options.timeout;
    q->query.cursor = &q->cursor;
    return true;
}

static void answer(struct exchange *x, struct view_question *q)
{
    pawl_view_answer found;
    pawl_text text;
    pawl_error error;
    int status = pawl_view_list(exchange_engine(x), q->view, &q->query, q->prefix, q->from, q->to, &text,
                                &found, &error);
    bool told = status == PAWL_OK && exchange_add_cursor(x, &q->cursor);
    if (status != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    if (!told) {
        pawl_text_free(&text);
        return;
    }
    if (q->query.wsid)
        exchange_add_offset(x, found.offset);
    exchange_add_header(x, "Pawl-Built", "%s", found.built ? "true" : "false");
    exchange_add_header(x, "Pawl-Covered", "%.17g", found.covered);
    exchange_answer_text(x, HTTP_OK, TYPE_NDJSON, &text);
}

/* The row with a key, all of which is given. */
static void get_row(struct exchange *x, uint64_t wsid)
{
    pawl_read_options options;
    pawl_bytes key;
    pawl_text text;
    pawl_error error;
    if (!exchange_key(x, exchange_param(x, "key"), &key) || !exchange_read_options(x, &options))
        return;
    if (pawl_view_get(exchange_engine(x), exchange_path(x, "view"), wsid, key, &options, &text, &error)
        == PAWL_OK)
        exchange_answer_text(x, HTTP_OK, TYPE_JSON, &text);
    else
        exchange_fail(x, &error);
}

static void read_workspace(struct exchange *x)
{
    struct view_question q;
    uint64_t wsid;
    if (!exchange_wsid(x, &wsid))
        return;
    if (exchange_param(x, "key")) {
        get_row(x, wsid);
        return;
    }
    if (read_question(x, wsid, &q)) {
        answer(x, &q);
        pawl_cursor_free(&q.cursor);
    }
}

void view_rows_of_workspace(struct exchange *x)
{
    exchange_read_maybe_wait(x, read_workspace);
}

void view_rows_of_all(struct exchange *x)
{
    struct view_question q;
    if (read_question(x, 0, &q)) {
        answer(x, &q);
        pawl_cursor_free(&q.cursor);
    }
}

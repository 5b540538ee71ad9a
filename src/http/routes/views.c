/* http/routes/views.c: views made, dropped, built and watched; tablets; the last numbers of sequences. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/routes/body.h"
#include "http/server/server.h"

#define FIELDS_MAX 1000
#define RATE_MAX   ((uint64_t)1 << 53)

static void answer_views(struct exchange *x, const char *name)
{
    pawl_text text;
    pawl_error error;
    if (pawl_view_status_list(exchange_engine(x), name, &text, &error) == PAWL_OK)
        exchange_answer_text(x, HTTP_OK, name ? TYPE_JSON : TYPE_NDJSON, &text);
    else
        exchange_fail(x, &error);
}

void views_list(struct exchange *x)
{
    answer_views(x, NULL);
}

void views_show(struct exchange *x)
{
    answer_views(x, exchange_path(x, "view"));
}

/* The answer is what `pawl view create --no-wait --json` prints. */
static void answer_building(struct exchange *x, enum http_status status, const char *view)
{
    exchange_answer_json(x, status, json_pack("{s:s,s:b}", "view", view, "built", 0));
}

void views_create(struct exchange *x)
{
    const char *key[FIELDS_MAX], *include[FIELDS_MAX];
    struct body body;
    pawl_error error;
    if (!body_begin(x, &body))
        return;
    pawl_view_definition definition = {.name = body_string(&body, "view", BODY_NEEDED),
                                       .base = body_string(&body, "base", BODY_NEEDED),
                                       .key = key,
                                       .include = include,
                                       .filter = body_string(&body, "filter", BODY_OPTIONAL),
                                       .unique = body_flag(&body, "unique")};
    definition.key_count = body_strings(&body, "key", FIELDS_MAX, BODY_NEEDED, key);
    definition.include_count = body_strings(&body, "include", FIELDS_MAX, BODY_OPTIONAL, include);
    if (!body_end(&body))
        return;
    if (pawl_view_create(exchange_engine(x), &definition, &error) == PAWL_OK)
        answer_building(x, HTTP_CREATED, definition.name);
    else
        exchange_fail(x, &error);
    body_release(&body);
}

void views_drop(struct exchange *x)
{
    pawl_error error;
    const char *view = exchange_path(x, "view");
    if (pawl_view_drop(exchange_engine(x), view, &error) == PAWL_OK)
        exchange_answer_json(x, HTTP_OK, json_pack("{s:s,s:b}", "view", view, "dropped", 1));
    else
        exchange_fail(x, &error);
}

static bool no_members(struct exchange *x)
{
    struct body body;
    if (!body_begin(x, &body) || !body_end(&body))
        return false;
    body_release(&body);
    return true;
}

void views_rebuild(struct exchange *x)
{
    pawl_error error;
    const char *view = exchange_path(x, "view");
    if (!no_members(x))
        return;
    if (pawl_view_rebuild(exchange_engine(x), view, &error) == PAWL_OK)
        answer_building(x, HTTP_ACCEPTED, view);
    else
        exchange_fail(x, &error);
}

static void set_paused(struct exchange *x, bool paused)
{
    pawl_error error;
    const char *view = exchange_path(x, "view");
    if (!no_members(x))
        return;
    if (pawl_view_pause(exchange_engine(x), view, paused, &error) == PAWL_OK)
        exchange_answer_json(x, HTTP_OK, json_pack("{s:s,s:b}", "view", view, "paused", (int)paused));
    else
        exchange_fail(x, &error);
}

void views_pause(struct exchange *x)
{
    set_paused(x, true);
}

void views_resume(struct exchange *x)
{
    set_paused(x, false);
}

/* Of all views at once. */
static void set_all_paused(struct exchange *x, bool paused)
{
    pawl_error error;
    if (!no_members(x))
        return;
    if (pawl_view_pause(exchange_engine(x), NULL, paused, &error) == PAWL_OK)
        exchange_answer_json(x, HTTP_OK, json_pack("{s:b}", "paused", (int)paused));
    else
        exchange_fail(x, &error);
}

void views_pause_all(struct exchange *x)
{
    set_all_paused(x, true);
}

void views_resume_all(struct exchange *x)
{
    set_all_paused(x, false);
}

void views_throttle(struct exchange *x)
{
    struct body body;
    pawl_error error;
    if (!body_begin(x, &body))
        return;
    uint64_t rows = body_number(&body, "rows_per_second", 0, RATE_MAX, BODY_NEEDED);
    if (!body_end(&body))
        return;
    body_release(&body);
    if (pawl_view_throttle(exchange_engine(x), rows, &error) == PAWL_OK)
        exchange_answer_json(x, HTTP_OK, json_pack("{s:o}", "rows_per_second", json_number64(rows)));
    else
        exchange_fail(x, &error);
}

/* --- tablets --- */

void tablets_list(struct exchange *x)
{
    pawl_text text;
    pawl_error error;
    if (pawl_tablets_list(exchange_engine(x), &text, &error) == PAWL_OK)
        exchange_answer_text(x, HTTP_OK, TYPE_NDJSON, &text);
    else
        exchange_fail(x, &error);
}

static bool count_tablet(void *arg, const pawl_tablet *tablet)
{
    (void)tablet;
    ++*(uint64_t *)arg;
    return true;
}

static void resize(struct exchange *x, int (*verb)(pawl_engine *engine, pawl_error *error))
{
    pawl_error error;
    uint64_t tablets = 0;
    if (!no_members(x))
        return;
    int status = verb(exchange_engine(x), &error);
    if (status == PAWL_OK)
        status = pawl_tablets_read(exchange_engine(x), count_tablet, &tablets, &error);
    if (status == PAWL_OK)
        exchange_answer_json(x, HTTP_OK, json_pack("{s:o}", "tablets", json_number64(tablets)));
    else
        exchange_fail(x, &error);
}

void tablets_split(struct exchange *x)
{
    resize(x, pawl_tablets_split);
}

void tablets_merge(struct exchange *x)
{
    resize(x, pawl_tablets_merge);
}

/* --- sequences: the cursor is PARTITION-ROWS --- */

static bool read_place(struct exchange *x, pawl_number_place *ret_place)
{
    const char *cursor = exchange_param(x, "cursor");
    char *dash = NULL, *end = NULL;
    unsigned long long partition = 0, rows = 0;
    bool digits =
        cursor && cursor[0] != '-' && strlen(cursor) <= 26 && strspn(cursor, "0123456789-") == strlen(cursor);
    if (digits)
        partition = strtoull(cursor, &dash, 10);
    if (dash && dash[0] == '-' && dash[1] >= '0')
        rows = strtoull(dash + 1, &end, 10);
    if (cursor && (!end || *end != '\0' || partition > UINT16_MAX)) {
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "$query.cursor: it is none of this list");
        return false;
    }
    *ret_place = (pawl_number_place){.partition = (uint32_t)partition, .rows = rows};
    return true;
}

void sequences_list(struct exchange *x)
{
    pawl_number_place place;
    uint64_t wsid;
    size_t limit;
    pawl_text text;
    pawl_error error;
    char cursor[40];
    if (!read_place(x, &place) || !exchange_number(x, "ws", 1, UINT64_MAX, 0, &wsid)
        || !exchange_limit(x, &limit))
        return;
    if (pawl_last_numbers_list(exchange_engine(x), wsid, &place, limit, &text, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    snprintf(cursor, sizeof cursor, "%" PRIu32 "-%" PRIu64, place.partition, place.rows);
    if (!place.done)
        (void)exchange_add_next(x, cursor);
    exchange_answer_text(x, HTTP_OK, TYPE_NDJSON, &text);
}

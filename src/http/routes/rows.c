/* http/routes/rows.c: records, and rows of entities: one, or many of a type.
 *
 * Reading is quick and waits for nobody, so it is done on the HTTP thread, unless min_offset is given. The offset
 * that an answer includes is asked for before the read, so the answer may include more. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/routes/routes.h"

/* --- records --- */

static bool add_offset(struct exchange *x, uint64_t wsid)
{
    uint64_t offset;
    pawl_error error;
    pawl_engine *engine = exchange_engine(x);
    if (pawl_offset_get(engine, pawl_partition_of(engine, wsid), &offset, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return false;
    }
    exchange_add_offset(x, offset);
    return true;
}

/* With min_offset, the state is waited for first, so that the offset which is then asked for is at least that. */
static bool wait_for_state(struct exchange *x, uint64_t wsid, pawl_read_options *options)
{
    pawl_workspace workspace;
    pawl_error error;
    if (options->min_offset == 0)
        return true;
    if (pawl_workspace_get(exchange_engine(x), wsid, options, &workspace, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return false;
    }
    return true;
}

static void get_record(struct exchange *x)
{
    uint64_t wsid, id;
    pawl_read_options options;
    pawl_text text;
    pawl_error error;
    if (!exchange_wsid(x, &wsid) || !exchange_path_number(x, "id", 1, UINT64_MAX, &id)
        || !exchange_read_options(x, &options) || !wait_for_state(x, wsid, &options) || !add_offset(x, wsid))
        return;
    if (pawl_record_get(exchange_engine(x), wsid, exchange_param(x, "type"), id, NULL, &text, &error)
        == PAWL_OK)
        exchange_answer_text(x, HTTP_OK, TYPE_JSON, &text);
    else
        exchange_fail(x, &error);
}

void records_get(struct exchange *x)
{
    exchange_read_maybe_wait(x, get_record);
}

/* The ID of the last line, which is its first member: {"id":7, or {"id":"9007199254740993",. 0: there is no line. */
static uint64_t last_id(const pawl_text *text)
{
    size_t at = text->size ? text->size - 1 : 0;
    while (at > 0 && text->data[at - 1] != '\n')
        at--;
    const char *line = text->data + at, *digits = line + strcspn(line, "0123456789");
    return text->size ? strtoull(digits, NULL, 10) : 0;
}

static size_t count_lines(const pawl_text *text)
{
    size_t lines = 0;
    for (const char *at = text->data; (at = memchr(at, '\n', (size_t)(text->data + text->size - at))); at++)
        lines++;
    return lines;
}

static void list_records(struct exchange *x)
{
    uint64_t wsid, after;
    size_t limit;
    pawl_read_options options;
    pawl_text text;
    pawl_error error;
    char next[24];
    const char *type = exchange_needs(x, "type");
    if (!type || !exchange_wsid(x, &wsid) || !exchange_number(x, "cursor", 1, UINT64_MAX, 0, &after)
        || !exchange_limit(x, &limit) || !exchange_read_options(x, &options)
        || !wait_for_state(x, wsid, &options) || !add_offset(x, wsid))
        return;
    if (pawl_record_list(exchange_engine(x), wsid, type, after, limit, NULL, &text, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    snprintf(next, sizeof next, "%" PRIu64, last_id(&text));
    if (count_lines(&text) == limit)
        (void)exchange_add_next(x, next);
    exchange_answer_text(x, HTTP_OK, TYPE_NDJSON, &text);
}

void records_list(struct exchange *x)
{
    exchange_read_maybe_wait(x, list_records);
}

/* --- entities --- */

static bool add_entity_offset(struct exchange *x, uint64_t wsid, const char *entity)
{
    uint64_t offset;
    pawl_error error;
    if (pawl_entity_offset_get(exchange_engine(x), wsid, entity, &offset, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return false;
    }
    exchange_add_offset(x, offset);
    return true;
}

/* The offset is asked for behind a wait, and before the read. */
static bool wait_for_entity(struct exchange *x, uint64_t wsid, const char *entity,
                            const pawl_read_options *options)
{
    pawl_text text;
    pawl_error error;
    pawl_cursor cursor = {0};
    if (options->min_offset > 0) {
        int status = pawl_entity_page(exchange_engine(x), wsid, entity, (pawl_bytes){0}, &cursor, 0, options,
                                      &text, &error);
        pawl_cursor_free(&cursor);
        if (status != PAWL_OK) {
            exchange_fail(x, &error);
            return false;
        }
        pawl_text_free(&text);
    }
    return add_entity_offset(x, wsid, entity);
}

static void get_row(struct exchange *x, const char *key_text)
{
    uint64_t wsid;
    pawl_read_options options;
    pawl_bytes key;
    pawl_text text;
    pawl_error error;
    const char *entity = exchange_path(x, "entity");
    if (!exchange_wsid(x, &wsid) || !exchange_key(x, key_text, &key) || !exchange_read_options(x, &options)
        || !wait_for_entity(x, wsid, entity, &options))
        return;
    if (pawl_entity_get(exchange_engine(x), wsid, entity, key, NULL, &text, &error) == PAWL_OK)
        exchange_answer_text(x, HTTP_OK, TYPE_JSON, &text);
    else
        exchange_fail(x, &error);
}

static void get_entity(struct exchange *x)
{
    get_row(x, exchange_path(x, "key"));
}

void entities_get(struct exchange *x)
{
    exchange_read_maybe_wait(x, get_entity);
}

static void list_rows(struct exchange *x)
{
    uint64_t wsid;
    size_t limit;
    pawl_read_options options;
    pawl_bytes after;
    pawl_cursor cursor;
    pawl_text text;
    pawl_error error;
    const char *entity = exchange_path(x, "entity");
    if (!exchange_wsid(x, &wsid) || !exchange_limit(x, &limit) || !exchange_read_options(x, &options)
        || !exchange_key(x, exchange_param(x, "after"), &after) || !wait_for_entity(x, wsid, entity, &options)
        || !exchange_cursor(x, &cursor))
        return;
    int status = pawl_entity_page(exchange_engine(x), wsid, entity, after, &cursor, limit, NULL, &text, &error);
    bool told = status == PAWL_OK && exchange_add_cursor(x, &cursor);
    pawl_cursor_free(&cursor);
    if (told)
        exchange_answer_text(x, HTTP_OK, TYPE_NDJSON, &text);
    else if (status == PAWL_OK)
        pawl_text_free(&text);
    else
        exchange_fail(x, &error);
}

/* A key that cannot stand in a path, because it has a slash, is a parameter. */
static void list_or_get(struct exchange *x)
{
    if (exchange_param(x, "key"))
        get_row(x, exchange_param(x, "key"));
    else
        list_rows(x);
}

void entities_list(struct exchange *x)
{
    exchange_read_maybe_wait(x, list_or_get);
}

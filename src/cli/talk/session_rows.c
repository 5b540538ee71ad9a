/* cli/talk/session_rows.c: records, rows and events, of an engine or of a server. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk/remote.h"
#include "cli/talk/session.h"

static void begin_workspace(struct target *target, uint64_t wsid, const char *what)
{
    target_begin(target, "/v1/ws");
    target_number(target, wsid);
    target_word(target, what);
}

/* --- records and entities --- */

int session_record_get(struct session *s, uint64_t wsid, const char *type, uint64_t id,
                       const pawl_read_options *read, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_record_get(s->engine, wsid, type, id, read, ret_text, error);
    begin_workspace(&target, wsid, "records");
    target_number(&target, id);
    target_add(&target, "type", type);
    target_add_number(&target, "min_offset", read->min_offset);
    return remote_get(s->remote, &target, ret_text, error);
}

int session_record_list(struct session *s, uint64_t wsid, const char *type, uint64_t after, size_t limit,
                        const pawl_read_options *read, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_record_list(s->engine, wsid, type, after, limit, read, ret_text, error);
    begin_workspace(&target, wsid, "records");
    target_add(&target, "type", type);
    target_add_number(&target, "limit", limit);
    target_add_number(&target, "cursor", after);
    target_add_number(&target, "min_offset", read->min_offset);
    return remote_get_lines(s->remote, &target, ret_text, error);
}

int session_entity_get(struct session *s, uint64_t wsid, const char *entity, pawl_bytes key,
                       const pawl_read_options *read, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_entity_get(s->engine, wsid, entity, key, read, ret_text, error);
    begin_workspace(&target, wsid, "entities");
    target_word(&target, entity);
    target_add_bytes(&target, "key", key);
    target_add_number(&target, "min_offset", read->min_offset);
    return remote_get(s->remote, &target, ret_text, error);
}

static size_t count_lines(const pawl_text *text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text->size; i++)
        lines += text->data[i] == '\n';
    return lines;
}

static int append(struct buffer *all, const pawl_text *text, pawl_error *error)
{
    if (!buffer_reserve(all, text->size + 1))
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for rows");
    memcpy(all->data + all->size, text->data, text->size);
    all->size += text->size;
    all->data[all->size] = '\0';
    return PAWL_OK;
}

static int ask_page(struct session *s, struct target *target, struct buffer *all, char **cursor, uint64_t *left,
                    pawl_error *error)
{
    const struct remote_call call = {.method = "GET", .target = target};
    struct remote_answer answer;
    int status = remote_ask(s->remote, &call, &answer, error);
    if (status != PAWL_OK)
        return status;
    size_t lines = count_lines(&answer.text);
    *left -= lines < *left ? lines : *left;
    *cursor = answer.next;
    status = append(all, &answer.text, error);
    pawl_text_free(&answer.text);
    return status;
}

int session_entity_list(struct session *s, uint64_t wsid, const char *entity, pawl_bytes after, size_t limit,
                        const pawl_read_options *read, pawl_text *ret_text, pawl_error *error)
{
    struct buffer all = {0};
    char *cursor = NULL;
    uint64_t left = limit;
    int status = PAWL_OK;
    if (s->engine)
        return pawl_entity_list(s->engine, wsid, entity, after, limit, read, ret_text, error);
    do {
        struct target target;
        begin_workspace(&target, wsid, "entities");
        target_word(&target, entity);
        if (!cursor) {
            target_add_bytes(&target, "after", after);
            target_add_number(&target, "min_offset", read->min_offset);
        }
        target_add(&target, "cursor", cursor);
        target_add_number(&target, "limit", left < SESSION_PAGE ? left : SESSION_PAGE);
        free(cursor);
        cursor = NULL;
        status = ask_page(s, &target, &all, &cursor, &left, error);
    } while (status == PAWL_OK && cursor && left > 0);
    free(cursor);
    if (status == PAWL_OK)
        *ret_text = (pawl_text){.data = all.data, .size = all.size, .room = all.room};
    else
        free(all.data);
    return status;
}

/* --- views --- */

int session_view_get(struct session *s, const char *view, uint64_t wsid, pawl_bytes key,
                     const pawl_read_options *read, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_view_get(s->engine, view, wsid, key, read, ret_text, error);
    begin_workspace(&target, wsid, "views");
    target_word(&target, view);
    target_add_bytes(&target, "key", key);
    target_add_number(&target, "min_offset", read->min_offset);
    return remote_get(s->remote, &target, ret_text, error);
}

/* The cursor's text, or NULL at the end. */
static int keep_cursor(const pawl_cursor *moved, char **cursor, pawl_error *error)
{
    pawl_text text;
    *cursor = NULL;
    if (moved->done)
        return PAWL_OK;
    int status = pawl_cursor_format(moved, &text, error);
    if (status != PAWL_OK)
        return status;
    *cursor = strdup(text.data);
    pawl_text_free(&text);
    return *cursor ? PAWL_OK : pawl_error_set(error, PAWL_ENOMEM, "no memory for a cursor");
}

static int list_here(pawl_engine *engine, const char *view, const pawl_view_query *query, pawl_bytes prefix,
                     pawl_bytes from, pawl_bytes to, char **cursor, pawl_text *ret_text,
                     pawl_view_answer *ret_answer, pawl_error *error)
{
    pawl_view_query asked = *query;
    pawl_cursor moved = {0};
    int status = *cursor ? pawl_cursor_parse(engine, *cursor, &moved, error) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    asked.cursor = &moved;
    status = pawl_view_list(engine, view, &asked, prefix, from, to, ret_text, ret_answer, error);
    if (status == PAWL_OK) {
        free(*cursor);
        status = keep_cursor(&moved, cursor, error);
        if (status != PAWL_OK)
            pawl_text_free(ret_text);
    }
    pawl_cursor_free(&moved);
    return status;
}

static void ask_for_rows(struct target *target, const char *view, const pawl_view_query *query)
{
    if (query->wsid) {
        begin_workspace(target, query->wsid, "views");
        target_word(target, view);
    } else {
        target_begin(target, "/v1/views");
        target_word(target, view);
        target_word(target, "rows");
    }
    target_add(target, "exclusive",
               query->from_exclusive && query->to_exclusive ? "both"
               : query->from_exclusive                      ? "from"
               : query->to_exclusive                        ? "to"
                                                            : NULL);
    target_add_flag(target, "desc", query->descending);
    target_add_flag(target, "complete", query->complete);
    target_add_number(target, "limit", query->limit);
    target_add_number(target, "min_offset", query->min_offset);
}

int session_view_list(struct session *s, const char *view, const pawl_view_query *query, pawl_bytes prefix,
                      pawl_bytes from, pawl_bytes to, char **cursor, pawl_text *ret_text,
                      pawl_view_answer *ret_answer, pawl_error *error)
{
    struct target target;
    struct remote_answer answer;
    if (s->engine)
        return list_here(s->engine, view, query, prefix, from, to, cursor, ret_text, ret_answer, error);
    ask_for_rows(&target, view, query);
    target_add_bytes(&target, "prefix", prefix);
    target_add_bytes(&target, "from", from);
    target_add_bytes(&target, "to", to);
    target_add(&target, "cursor", *cursor);
    const struct remote_call call = {.method = "GET", .target = &target};
    int status = remote_ask(s->remote, &call, &answer, error);
    if (status != PAWL_OK)
        return status;
    free(*cursor);
    *cursor = answer.next;
    *ret_text = answer.text;
    *ret_answer =
        (pawl_view_answer){.rows = count_lines(&answer.text), .built = answer.built, .covered = answer.covered};
    return PAWL_OK;
}

/* --- events --- */

struct showing {
    session_line line;
    void *arg;
    int status;
    pawl_error error;
};

static bool show_event(void *arg, const pawl_event *event)
{
    struct showing *show = arg;
    pawl_bytes json;
    show->status = pawl_event_json(event, &json, &show->error);
    return show->status == PAWL_OK && show->line(show->arg, json);
}

static int events_here(pawl_engine *engine, const struct event_range *range, session_line line, void *arg,
                       pawl_error *error)
{
    struct showing show = {.line = line, .arg = arg};
    int status = range->wsid ? pawl_workspace_events_read(engine, range->wsid, range->from, range->limit,
                                                          show_event, &show, NULL, error)
                             : pawl_events_read(engine, range->partition, range->from, range->limit, show_event,
                                                &show, NULL, error);
    if (status == PAWL_OK && show.status != PAWL_OK) {
        *error = show.error;
        return show.status;
    }
    return status;
}

void events_target(struct target *target, const struct event_range *range)
{
    if (range->wsid)
        begin_workspace(target, range->wsid, "events");
    else {
        target_begin(target, "/v1/partitions");
        target_number(target, range->partition);
        target_word(target, "events");
    }
}

int events_failure(const struct event_range *range, int status, pawl_error *error)
{
    if (status == PAWL_ENOTFOUND && !range->wsid)
        return pawl_error_set(error, status, "there is no partition %u", range->partition);
    return status;
}

bool lines_visit(const pawl_text *text, session_line line, void *arg)
{
    bool more = true;
    for (size_t at = 0; at < text->size && more;) {
        const char *end = memchr(text->data + at, '\n', text->size - at);
        size_t size = end ? (size_t)(end - text->data) - at : text->size - at;
        more = line(arg, (pawl_bytes){text->data + at, size});
        at += size + 1;
    }
    return more;
}

static int events_there(struct remote *remote, const struct event_range *range, session_line line, void *arg,
                        pawl_error *error)
{
    uint64_t from = range->from, left = range->limit;
    bool more = true;
    while (more && left > 0) {
        struct target target;
        struct remote_answer answer;
        events_target(&target, range);
        target_add_number(&target, "from", from);
        target_add_number(&target, "limit", left < SESSION_PAGE ? left : SESSION_PAGE);
        const struct remote_call call = {.method = "GET", .target = &target};
        int status = remote_ask(remote, &call, &answer, error);
        if (status != PAWL_OK)
            return events_failure(range, status, error);
        uint64_t lines = count_lines(&answer.text);
        more = lines_visit(&answer.text, line, arg);
        left -= lines < left ? lines : left;
        from = answer.next ? strtoull(answer.next, NULL, 10) : 0;
        more = more && from > 0;
        remote_answer_release(&answer);
    }
    return PAWL_OK;
}

int session_events(struct session *s, const struct event_range *range, session_line line, void *arg,
                   pawl_error *error)
{
    return s->engine ? events_here(s->engine, range, line, arg, error)
                     : events_there(s->remote, range, line, arg, error);
}

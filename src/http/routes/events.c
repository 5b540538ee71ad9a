/* http/routes/events.c: events of a workspace, of a partition, and of all partitions: pages, and streams that follow.
 *
 * A page is JSON lines, at most limit of them and at most so many bytes, read on the pool. Pawl-Cursor says where
 * to go on, always; Pawl-Next says the same, if there is more now. A client that accepts text/event-stream gets a
 * stream (http/hub/hub.h), which goes on from Last-Event-ID, if it sends one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/server/server.h"

#define PAGE_TEXT_BYTES   ((size_t)8 << 20) /* and at least one event */
#define SCAN_EVENTS       ((size_t)100000)  /* of which a page of some commands may have few */
#define SCAN_SHARE        1024
#define COMMANDS_TEXT_MAX 4096

/* --- a page --- */

struct page {
    char *text;
    size_t size;
    size_t room;
    size_t left;          /* events */
    size_t scan;          /* the same, with those that are passed over */
    const char *commands; /* NULL: all */
    uint64_t last;        /* the offset of the last event that was looked at, in its partition; */
    uint64_t last_in_workspace;
    bool full;
    int status;
    pawl_error *error;
};

static bool add_line(struct page *page, pawl_bytes json)
{
    if (page->room - page->size < json.size + 1) {
        size_t room = page->room ? page->room : 16384;
        while (room - page->size < json.size + 1)
            room *= 2;
        char *larger = realloc(page->text, room);
        if (!larger) {
            page->status = pawl_error_set(page->error, PAWL_ENOMEM, "no memory for a page of events");
            return false;
        }
        page->text = larger;
        page->room = room;
    }
    memcpy(page->text + page->size, json.data, json.size);
    page->size += json.size;
    page->text[page->size++] = '\n';
    return true;
}

static bool add_event(void *arg, const pawl_event *event)
{
    struct page *page = arg;
    pawl_bytes json;
    if (!page->commands || hub_lists(page->commands, event->command)) {
        page->status = pawl_event_json(event, &json, page->error);
        if (page->status != PAWL_OK || !add_line(page, json))
            return false;
        page->left--;
    }
    page->scan--;
    page->last = event->offset;
    page->last_in_workspace = event->workspace_offset;
    page->full = page->left == 0 || page->scan == 0 || page->size >= PAGE_TEXT_BYTES;
    return !page->full;
}

static void answer_page(struct exchange *x, struct page *page, const char *cursor)
{
    exchange_add_header(x, "Pawl-Cursor", "%s", cursor);
    if (page->full)
        exchange_add_next(x, cursor);
    exchange_answer_copy(x, HTTP_OK, TYPE_NDJSON, (pawl_bytes){page->text ? page->text : "", page->size});
}

static void end_page(struct exchange *x, struct page *page, int status, uint64_t next)
{
    char cursor[24];
    if (status == PAWL_OK)
        status = page->status;
    if (status != PAWL_OK) {
        page->error->code = status;
        exchange_fail(x, page->error);
    } else {
        snprintf(cursor, sizeof cursor, "%" PRIu64, next);
        answer_page(x, page, cursor);
    }
    free(page->text);
}

/* --- where to begin --- */

/* from=N, from=end, or Last-Event-ID, which is the last event that the client has. *ret_end: only what is to
 * come. */
static bool read_from(struct exchange *x, bool stream, uint64_t *ret_from, bool *ret_end)
{
    const char *last = stream ? exchange_header(x, "Last-Event-ID") : NULL;
    const char *from = exchange_param(x, "from");
    pawl_error error;
    *ret_end = false;
    if (last && last[0]) {
        if (target_number(last, 0, UINT64_MAX - 1, "$header.Last-Event-ID", ret_from, &error) != PAWL_OK) {
            exchange_fail(x, &error);
            return false;
        }
        ++*ret_from;
        return true;
    }
    if (from && strcmp(from, "end") == 0) {
        *ret_end = true;
        return true;
    }
    return exchange_number(x, "from", 1, UINT64_MAX, 1, ret_from);
}

/* A stream has no end, unless a limit is given. */
static bool read_limit(struct exchange *x, bool stream, uint64_t *ret_limit)
{
    size_t limit;
    if (stream)
        return exchange_number(x, "limit", 1, UINT64_MAX - 1, 0, ret_limit);
    if (!exchange_limit(x, &limit))
        return false;
    *ret_limit = limit;
    return true;
}

/* --- of a workspace --- */

static void page_workspace(struct exchange *x, uint64_t wsid, uint64_t from, uint64_t limit)
{
    pawl_error error = {0};
    struct page page = {.left = limit, .scan = SIZE_MAX, .error = &error};
    int status = pawl_workspace_events_read(exchange_engine(x), wsid, from, (size_t)limit, add_event, &page,
                                            NULL, &error);
    end_page(x, &page, status, page.last ? page.last_in_workspace + 1 : from);
}

void events_workspace(struct exchange *x)
{
    bool stream = exchange_accepts(x, TYPE_SSE), end;
    struct hub_wish wish = {.kind = HUB_WORKSPACE};
    pawl_workspace workspace;
    pawl_error error;
    if (!exchange_wsid(x, &wish.wsid) || !read_from(x, stream, &wish.from, &end)
        || !read_limit(x, stream, &wish.limit))
        return;
    if (pawl_workspace_get(exchange_engine(x), wish.wsid, NULL, &workspace, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    if (end)
        wish.from = workspace.workspace_offset + 1;
    wish.partition = workspace.partition;
    if (stream)
        hub_follow(exchange_server(x)->hub, x, &wish);
    else
        page_workspace(x, wish.wsid, wish.from, wish.limit);
}

/* --- of a partition --- */

static bool read_end(struct exchange *x, uint16_t partition, uint64_t *ret_next)
{
    pawl_partition_figures figures;
    pawl_error error;
    if (pawl_partition_figures_get(exchange_engine(x), partition, &figures, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return false;
    }
    *ret_next = figures.offset + 1;
    return true;
}

static void page_partition(struct exchange *x, uint16_t partition, uint64_t from, uint64_t limit)
{
    pawl_error error = {0};
    struct page page = {.left = limit, .scan = SIZE_MAX, .error = &error};
    int status =
        pawl_events_read(exchange_engine(x), partition, from, (size_t)limit, add_event, &page, NULL, &error);
    end_page(x, &page, status, page.last ? page.last + 1 : from);
}

void events_partition(struct exchange *x)
{
    bool stream = exchange_accepts(x, TYPE_SSE), end;
    struct hub_wish wish = {.kind = HUB_PARTITION};
    uint64_t partition;
    if (!exchange_path_number(x, "partition", 0, UINT16_MAX, &partition)
        || !read_from(x, stream, &wish.from, &end) || !read_limit(x, stream, &wish.limit))
        return;
    if (partition >= pawl_partitions(exchange_engine(x))) {
        exchange_refuse(x, HTTP_NOT_FOUND, PAWL_ENOTFOUND,
                        "$path.partition: there are %u partitions, from 0 on",
                        pawl_partitions(exchange_engine(x)));
        return;
    }
    wish.partition = (uint16_t)partition;
    if (end && !read_end(x, wish.partition, &wish.from))
        return;
    if (stream)
        hub_follow(exchange_server(x)->hub, x, &wish);
    else
        page_partition(x, wish.partition, wish.from, wish.limit);
}

/* --- of all partitions --- */

/* Each partition has its share, round after round, until the page is full or none has more. */
static int read_rounds(struct exchange *x, struct page *page, uint64_t *next, uint32_t partitions)
{
    int status = PAWL_OK;
    bool more = true;
    while (status == PAWL_OK && page->status == PAWL_OK && more && !page->full) {
        more = false;
        for (uint32_t i = 0; i < partitions && status == PAWL_OK && page->status == PAWL_OK && !page->full;
             i++) {
            size_t share = page->left / (partitions - i);
            size_t least = page->commands ? SCAN_SHARE : 1;
            page->last = 0;
            status = pawl_events_read(exchange_engine(x), (uint16_t)i, next[i], share > least ? share : least,
                                      add_event, page, NULL, page->error);
            more |= page->last != 0;
            next[i] = page->last ? page->last + 1 : next[i];
        }
    }
    return status == PAWL_OK ? page->status : status;
}

static void page_every(struct exchange *x, struct hub_wish *wish, uint32_t partitions)
{
    pawl_error error = {0};
    struct page page = {.left = wish->limit, .scan = SCAN_EVENTS, .commands = wish->commands, .error = &error};
    int status = read_rounds(x, &page, wish->next, partitions);
    char *cursor = malloc(event_cursor_room(partitions));
    if (status == PAWL_OK && !cursor)
        status = pawl_error_set(&error, PAWL_ENOMEM, "no memory for a page of events");
    if (status == PAWL_OK) {
        event_cursor_format(wish->next, partitions, cursor);
        answer_page(x, &page, cursor);
    } else {
        error.code = status;
        exchange_fail(x, &error);
    }
    free(cursor);
    free(page.text);
    free(wish->next);
}

/* after=CURSOR, after=end, Last-Event-ID; or all events. */
static bool read_after(struct exchange *x, bool stream, uint64_t *next, uint32_t partitions)
{
    const char *last = stream ? exchange_header(x, "Last-Event-ID") : NULL;
    const char *after = exchange_param(x, "after");
    bool by_id = last && last[0];
    pawl_error error;
    for (uint32_t i = 0; i < partitions; i++)
        next[i] = 1;
    if (!by_id && after && strcmp(after, "end") == 0) {
        for (uint32_t i = 0; i < partitions; i++)
            if (!read_end(x, (uint16_t)i, &next[i]))
                return false;
        return true;
    }
    if (!by_id && !after)
        return true;
    if (event_cursor_parse(by_id ? last : after, partitions, by_id ? "$header.Last-Event-ID" : "$query.after",
                           next, &error)
        == PAWL_OK)
        return true;
    exchange_fail(x, &error);
    return false;
}

static bool read_commands(struct exchange *x, const char **ret_commands)
{
    const char *commands = exchange_param(x, "commands");
    size_t size = commands ? strlen(commands) : 0;
    if (commands
        && (size == 0 || size > COMMANDS_TEXT_MAX || commands[0] == ',' || commands[size - 1] == ','
            || strstr(commands, ",,"))) {
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL,
                        "$query.commands: expected names with commas between them, of at most %d bytes",
                        COMMANDS_TEXT_MAX);
        return false;
    }
    *ret_commands = commands;
    return true;
}

void events_every(struct exchange *x)
{
    bool stream = exchange_accepts(x, TYPE_SSE);
    uint32_t partitions = pawl_partitions(exchange_engine(x));
    struct hub_wish wish = {.kind = HUB_EVERY};
    if (!read_commands(x, &wish.commands) || !read_limit(x, stream, &wish.limit))
        return;
    if (partitions > EVENT_CURSOR_PARTITIONS_MAX) {
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_ETOOBIG,
                        "a cursor has at most %d partitions, and there are %u: follow each by itself",
                        EVENT_CURSOR_PARTITIONS_MAX, partitions);
        return;
    }
    wish.next = calloc(partitions, sizeof *wish.next);
    if (!wish.next) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for a cursor");
        return;
    }
    if (!read_after(x, stream, wish.next, partitions))
        free(wish.next);
    else if (stream)
        hub_follow(exchange_server(x)->hub, x, &wish);
    else
        page_every(x, &wish, partitions);
}

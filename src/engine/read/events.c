/* engine/read/events.c: events as they are read: from the log, decoded under the schema they name. */
#include <pawl/pawl.h>

#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/state/key.h"
#include "engine/log/log.h"
#include "engine/node/node.h"
#include "engine/read/event.h"
#include "engine/read/read.h"

/* Entries become events for a visitor, whichever way they come. */
struct showing {
    pawl_engine *engine;
    uint16_t partition;
    pawl_event_visit visit;
    void *arg;
    struct json_out out;
    int status;
    bool stopped;
    pawl_error *error;
};

static bool show(struct showing *s, const pawl_entry *entry)
{
    struct pawl_event_source source;
    pawl_event event;
    s->status =
        event_show(s->engine, s->partition, entry->offset, entry->body, &s->out, &source, &event, s->error);
    if (s->status != PAWL_OK) {
        error_wrap(s->error, s->status, "plog/%u, offset %" PRIu64, s->partition, entry->offset);
        return false;
    }
    s->stopped = !s->visit(s->arg, &event);
    return !s->stopped;
}

static bool show_read(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    return show(read->arg, entry);
}

static void never_called(pawl_read *read)
{
}

int engine_read_plog(pawl_engine *e, uint16_t partition, uint64_t from, uint64_t limit,
                     bool (*visit)(pawl_read *, const pawl_entry *, pawl_place), void *arg, uint64_t *ret_next,
                     pawl_error *error)
{
    pawl_stream stream = {.kind = PAWL_STREAM_PLOG, .partition = partition};
    return engine_read_log(e, stream, from, limit, visit, arg, ret_next, error);
}

int engine_read_log(pawl_engine *e, pawl_stream stream, uint64_t from, uint64_t limit,
                    bool (*visit)(pawl_read *, const pawl_entry *, pawl_place), void *arg, uint64_t *ret_next,
                    pawl_error *error)
{
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_read read = {.stream = stream,
                      .from = from,
                      .limit = limit,
                      .alone = true,
                      .visit = visit,
                      .done = never_called,
                      .arg = arg,
                      .error = error};
    int status = pawl_log_read(e->log, &read);
    if (status != PAWL_READ_DONE) {
        pawl_stream_format(stream, name);
        return error_set(error, status, "cannot read %s", name);
    }
    if (ret_next)
        *ret_next = read.next;
    return read.status;
}

static int check_range(const pawl_engine *e, uint16_t partition, uint64_t from, pawl_error *error)
{
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    if (partition >= e->file.partitions)
        return error_set(error, PAWL_EINVAL, "there is no partition %u", partition);
    return from > 0 ? PAWL_OK : error_set(error, PAWL_EINVAL, "offsets begin at 1");
}

int pawl_events_read(pawl_engine *e, uint16_t partition, uint64_t from, size_t limit, pawl_event_visit visit,
                     void *arg, uint64_t *ret_next, pawl_error *error)
{
    uint64_t next = from;
    int status = check_range(e, partition, from, error);
    if (status != PAWL_OK)
        return status;
    struct showing s = {.engine = e, .partition = partition, .visit = visit, .arg = arg, .error = error};
    json_out_init(&s.out, e->options.allocator);
    status = engine_read_plog(e, partition, from, limit, show_read, &s, &next, error);
    json_out_release(&s.out);
    if (status == PAWL_OK)
        status = s.status;
    if (status == PAWL_OK && ret_next)
        *ret_next = next;
    return status;
}

/* --- of a workspace: its log's rows say where its events are --- */

#define ROWS_AT_ONCE 256
#define NEAR         64 /* events of others that are read past, because to seek costs more */

struct wlog_page {
    uint64_t plog_offset[ROWS_AT_ONCE];
    size_t count;
    size_t limit;
    size_t shown;
    bool bad;
    struct showing *showing;
};

static bool take_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct wlog_page *page = arg;
    struct wlog_row row;
    page->bad = !wlog_row_read(value, &row);
    if (page->bad)
        return false;
    page->plog_offset[page->count++] = row.plog_offset;
    return page->count < page->limit;
}

static int read_page(pawl_engine *e, uint64_t wsid, uint64_t from, size_t limit, struct wlog_page *page,
                     pawl_error *error)
{
    pawl_store *store = shard_of(e, pawl_partition_of(e, wsid))->store;
    uint8_t first[KEY_NUMBERED], prefix[KEY_WORKSPACE], end[KEY_WORKSPACE];
    pawl_reader *snapshot;
    page->count = page->shown = 0;
    page->limit = limit < ROWS_AT_ONCE ? limit : ROWS_AT_ONCE;
    int status = pawl_store_snapshot(store, &snapshot);
    if (status == PAWL_OK) {
        pawl_range range = {.space = STATE_SPACE,
                            .from = key_numbered(TABLE_WLOG, wsid, from, first),
                            .to = key_after_prefix(key_of_workspace(TABLE_WLOG, wsid, prefix), end)};
        status = pawl_store_scan(snapshot, range, false, take_row, page);
        pawl_store_release(store, snapshot);
    }
    if (status == PAWL_OK && page->bad)
        return error_set(error, PAWL_ECORRUPT, "workspace %" PRIu64 ": a row of its log is not one", wsid);
    return status == PAWL_OK ? status : error_set(error, status, "cannot read workspace %" PRIu64, wsid);
}

static bool show_wanted(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct wlog_page *page = read->arg;
    if (entry->offset < page->plog_offset[page->shown])
        return true;
    if (!show(page->showing, entry))
        return false;
    page->shown++;
    return page->shown < page->count && page->plog_offset[page->shown] - entry->offset <= NEAR;
}

/* Those of the page that lie near each other are read at once. Beside another process the state may be a moment
 * ahead of what the files witness to be durable: then fewer are shown. */
static int read_events(struct showing *s, struct wlog_page *page, pawl_error *error)
{
    int status = PAWL_OK;
    page->showing = s;
    while (status == PAWL_OK && page->shown < page->count && !s->stopped) {
        size_t before = page->shown;
        status = engine_read_plog(s->engine, s->partition, page->plog_offset[before], UINT64_MAX, show_wanted,
                                  page, NULL, error);
        if (status == PAWL_OK)
            status = s->status;
        page->shown += s->stopped; /* it was, before visit said so */
        if (status != PAWL_OK || page->shown > before)
            continue;
        if (s->engine->options.read_only)
            break;
        status = error_set(error, PAWL_ECORRUPT, "plog/%u has no offset %" PRIu64 ", but the state does",
                           s->partition, page->plog_offset[before]);
    }
    return status;
}

int pawl_workspace_events_read(pawl_engine *e, uint64_t wsid, uint64_t from, size_t limit,
                               pawl_event_visit visit, void *arg, uint64_t *ret_next, pawl_error *error)
{
    uint16_t partition = pawl_partition_of(e, wsid);
    struct wlog_page page = {0};
    int status = check_range(e, partition, from, error);
    if (status == PAWL_OK)
        status = engine_workspace(e, wsid, error);
    struct showing s = {.engine = e, .partition = partition, .visit = visit, .arg = arg, .error = error};
    json_out_init(&s.out, e->options.allocator);
    while (status == PAWL_OK && limit > 0 && !s.stopped) {
        status = read_page(e, wsid, from, limit, &page, error);
        if (status != PAWL_OK || page.count == 0)
            break;
        status = read_events(&s, &page, error);
        from += page.shown;
        if (page.shown < page.count)
            break;
        limit -= page.count;
    }
    json_out_release(&s.out);
    if (status == PAWL_OK && ret_next)
        *ret_next = from;
    return status;
}

/* --- and those to come --- */

struct pawl_events {
    pawl_follow follow;
    struct showing showing;
    pawl_error error;
    struct latch ended;
};

static bool show_follow(pawl_follow *follow, const pawl_entry *entry, pawl_place place)
{
    pawl_events *events = follow->arg;
    engine_visiting(events->showing.engine);
    bool more = show(&events->showing, entry);
    engine_visiting(NULL);
    return more;
}

static void follow_ended(pawl_follow *follow)
{
    pawl_events *events = follow->arg;
    struct showing *s = &events->showing;
    if (s->status != PAWL_OK || (follow->status != PAWL_OK && follow->status != PAWL_ECLOSED)) {
        engine_visiting(s->engine);
        (void)s->visit(s->arg, NULL);
        engine_visiting(NULL);
    }
    latch_set(&events->ended);
}

/* Follow or unfollow, where the log wants it. */
struct asking {
    pawl_events *events;
    int (*ask)(pawl_log *log, pawl_follow *follow);
    int status;
};

static void ask_here(void *arg)
{
    struct asking *asking = arg;
    asking->status = asking->ask(asking->events->showing.engine->log, &asking->events->follow);
}

/* Beside another process a log is followed by a timer, and those are a shard's; shards have nothing else to do
 * then. */
static int ask(pawl_events *events, int (*ask_log)(pawl_log *log, pawl_follow *follow))
{
    pawl_engine *e = events->showing.engine;
    struct asking asking = {.events = events, .ask = ask_log};
    if (!e->options.read_only) {
        ask_here(&asking);
        return asking.status;
    }
    int status = pawl_env_call(e->env, shard_of(e, events->showing.partition)->index, ask_here, &asking);
    return status == PAWL_OK ? asking.status : status;
}

int pawl_events_follow(pawl_engine *e, uint16_t partition, uint64_t from, pawl_event_visit visit, void *arg,
                       pawl_events **ret_events, pawl_error *error)
{
    int status = check_range(e, partition, from, error);
    if (status != PAWL_OK)
        return status;
    pawl_events *events = mem_new(e->options.allocator, 1, sizeof *events);
    if (!events)
        return error_set(error, PAWL_ENOMEM, "no memory to follow events");
    events->showing = (struct showing){
        .engine = e, .partition = partition, .visit = visit, .arg = arg, .error = &events->error};
    json_out_init(&events->showing.out, e->options.allocator);
    latch_init(&events->ended);
    events->follow = (pawl_follow){.stream = {.kind = PAWL_STREAM_PLOG, .partition = partition},
                                   .from = from,
                                   .visit = show_follow,
                                   .done = follow_ended,
                                   .arg = events,
                                   .error = &events->error};
    status = ask(events, pawl_log_follow);
    if (status != PAWL_OK) {
        mem_free(e->options.allocator, events, sizeof *events);
        return error_set(error, status, "cannot follow plog/%u", partition);
    }
    *ret_events = events;
    return PAWL_OK;
}

int pawl_events_unfollow(pawl_events *events, pawl_error *error)
{
    pawl_engine *e = events->showing.engine;
    if (engine_is_self(e))
        return error_set(error, PAWL_EMISUSE, "called from inside a callback");
    (void)ask(events, pawl_log_unfollow); /* refused if it has ended by itself: then the latch is set */
    latch_wait(&events->ended);
    int status = events->showing.status;
    if (status == PAWL_OK && events->follow.status != PAWL_ECLOSED)
        status = events->follow.status;
    if (status != PAWL_OK)
        error_set(error, status, "%s", events->error.text);
    json_out_release(&events->showing.out);
    mem_free(e->options.allocator, events, sizeof *events);
    return status;
}

/* --- and those that are not shown --- */

int pawl_unwitnessed(pawl_engine *e, pawl_unwitnessed_visit visit, void *arg, pawl_error *error)
{
    int status = engine_enter(e, error);
    return status == PAWL_OK ? pawl_log_unwitnessed(e->log, visit, arg, error) : status;
}

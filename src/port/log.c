#include "port/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

int pawl_log_claim(pawl_log *log, pawl_claim *claim)
{
    return log->ops->claim(log, claim);
}

int pawl_log_append(pawl_log *log, pawl_append *append)
{
    return log->ops->append(log, append);
}

int pawl_log_read(pawl_log *log, pawl_read *read)
{
    return log->ops->read(log, read);
}

int pawl_log_follow(pawl_log *log, pawl_follow *follow)
{
    return log->ops->follow(log, follow);
}

int pawl_log_unfollow(pawl_log *log, pawl_follow *follow)
{
    return log->ops->unfollow(log, follow);
}

int pawl_log_tail(pawl_log *log, pawl_tail *tail)
{
    return log->ops->tail(log, tail);
}

int pawl_log_unwitnessed(pawl_log *log, pawl_unwitnessed_visit visit, void *arg, pawl_error *error)
{
    return log->ops->unwitnessed ? log->ops->unwitnessed(log, visit, arg, error) : PAWL_OK;
}

int pawl_log_close(pawl_log *log)
{
    return log ? log->ops->close(log) : PAWL_OK;
}

static const char *const kind_names[] = {
    [PAWL_STREAM_RAW] = "raw",
    [PAWL_STREAM_PLOG] = "plog",
    [PAWL_STREAM_OPLOG] = "oplog",
    [PAWL_STREAM_GROUP0] = "group0",
};

#define KINDS (sizeof kind_names / sizeof kind_names[0])

void pawl_stream_format(pawl_stream s, char *text)
{
    if (!pawl_stream_valid(s))
        snprintf(text, PAWL_STREAM_TEXT_MAX, "?%u/%u/%u.%" PRIu32, s.kind, s.partition, s.lane, s.generation);
    else if (s.kind == PAWL_STREAM_GROUP0)
        snprintf(text, PAWL_STREAM_TEXT_MAX, "group0");
    else if (s.kind == PAWL_STREAM_OPLOG)
        snprintf(text, PAWL_STREAM_TEXT_MAX, "oplog/%u/%u.%" PRIu32, s.partition, s.lane, s.generation);
    else
        snprintf(text, PAWL_STREAM_TEXT_MAX, "%s/%u", kind_names[s.kind], s.partition);
}

/* Decimal digits without a leading zero, no larger than max; moves *text behind them. */
static bool parse_number(const char **text, uint64_t max, uint64_t *ret)
{
    const char *p = *text;
    if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9'))
        return false;
    uint64_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        v = v * 10 + (uint64_t)(*p - '0');
        if (v > max)
            return false;
    }
    *text = p;
    *ret = v;
    return true;
}

static bool parse_char(const char **text, char c)
{
    if (**text != c)
        return false;
    (*text)++;
    return true;
}

int pawl_stream_parse(const char *text, pawl_stream *ret_stream, pawl_error *error)
{
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t)(slash - text) : strlen(text);
    pawl_stream s = {0};
    for (size_t k = 1; k < KINDS; k++)
        if (strlen(kind_names[k]) == length && memcmp(kind_names[k], text, length) == 0)
            s.kind = (uint8_t)k;
    const char *p = text + length;
    uint64_t partition = 0, lane = 0, generation = 0;
    bool ok = s.kind != 0;
    if (ok && s.kind != PAWL_STREAM_GROUP0)
        ok = parse_char(&p, '/') && parse_number(&p, UINT16_MAX, &partition);
    if (ok && s.kind == PAWL_STREAM_OPLOG)
        ok = parse_char(&p, '/') && parse_number(&p, UINT16_MAX, &lane) && parse_char(&p, '.')
             && parse_number(&p, UINT32_MAX, &generation);
    if (!ok || *p != '\0')
        return error_set(error, PAWL_EINVAL,
                         "'%s' is not a stream: expected raw/N, plog/N, oplog/N/LANE.GENERATION or group0",
                         text);
    s.partition = (uint16_t)partition;
    s.lane = (uint16_t)lane;
    s.generation = (uint32_t)generation;
    *ret_stream = s;
    return PAWL_OK;
}

/* --- a sweep made of reads --- */

struct one_by_one {
    pawl_sweep *sweep;
    size_t index;
    bool stopped;
};

static bool visit_one(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct one_by_one *o = read->arg;
    o->stopped = !o->sweep->visit(o->sweep, o->index, entry, place);
    return !o->stopped;
}

static void never_called(pawl_read *read)
{
    (void)read;
}

/* This looks at all streams for each read; a read costs far more. */
static bool are_different(const pawl_sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++)
        for (size_t k = 0; k < i; k++)
            if (pawl_stream_equal(sweep->streams[i].stream, sweep->streams[k].stream))
                return false;
    return true;
}

static int sweep_one_by_one(pawl_log *log, pawl_sweep *sweep)
{
    if (!are_different(sweep))
        return error_set(sweep->error, PAWL_EINVAL, "a sweep has a stream twice");
    struct one_by_one o = {.sweep = sweep};
    uint64_t left = sweep->limit;
    for (; o.index < sweep->count && !o.stopped && left > 0; o.index++) {
        pawl_sweep_stream *s = &sweep->streams[o.index];
        uint64_t still = sweep->count - o.index; /* to be read, with this one: each gets an equal share */
        pawl_read read = {.stream = s->stream,
                          .from = s->from,
                          .limit = left / still + (left % still > 0),
                          .at = s->at,
                          .alone = true,
                          .visit = visit_one,
                          .done = never_called,
                          .arg = &o,
                          .error = sweep->error};
        int status = pawl_log_read(log, &read);
        if (status != PAWL_READ_DONE)
            return status;
        s->next = read.next;
        left -= read.next - read.from;
        s->damaged = read.status == PAWL_ECORRUPT || read.status == PAWL_EVERSION;
        if (read.status != PAWL_OK)
            return read.status;
        s->ended = !o.stopped && read.next - read.from < read.limit;
    }
    return PAWL_OK;
}

static bool is_valid(const pawl_sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (!pawl_stream_valid(sweep->streams[i].stream) || sweep->streams[i].from == 0)
            return false;
    return sweep->visit != NULL;
}

int pawl_log_sweep(pawl_log *log, pawl_sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++) {
        sweep->streams[i].next = sweep->streams[i].from;
        sweep->streams[i].ended = false;
        sweep->streams[i].damaged = false;
    }
    if (!is_valid(sweep))
        return error_set(sweep->error, PAWL_EINVAL,
                         "a sweep needs a visit, and streams that are valid and have an offset");
    return log->ops->sweep ? log->ops->sweep(log, sweep) : sweep_one_by_one(log, sweep);
}

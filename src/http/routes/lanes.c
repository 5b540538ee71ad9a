/* http/routes/lanes.c: lanes, their leases and their operations, as an operator sees them, and what can be decided. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/routes/body.h"
#include "http/server/server.h"

static void answer_lines(struct exchange *x, int status, pawl_text *text, const pawl_error *error)
{
    if (status == PAWL_OK)
        exchange_answer_text(x, HTTP_OK, TYPE_NDJSON, text);
    else
        exchange_fail(x, error);
}

void projectors_list(struct exchange *x)
{
    pawl_text text;
    pawl_error error;
    answer_lines(x, pawl_projectors_list(exchange_engine(x), &text, &error), &text, &error);
}

void lanes_list(struct exchange *x)
{
    pawl_text text;
    pawl_error error;
    answer_lines(x, pawl_lanes_list(exchange_engine(x), NULL, &text, &error), &text, &error);
}

void lanes_show(struct exchange *x)
{
    pawl_text text;
    pawl_error error;
    answer_lines(x, pawl_lanes_list(exchange_engine(x), exchange_path(x, "lane"), &text, &error), &text,
                 &error);
}

void lanes_stats(struct exchange *x)
{
    pawl_text text;
    pawl_error error;
    answer_lines(x, pawl_lane_stats_list(exchange_engine(x), exchange_param(x, "lane"), &text, &error), &text,
                 &error);
}

/* partition, from, limit. */
static void list_leases(struct exchange *x, const char *lane)
{
    pawl_lease_query query = {.lane = lane, .one_partition = exchange_param(x, "partition") != NULL};
    uint64_t partition;
    pawl_text text;
    pawl_error error;
    if (!exchange_number(x, "partition", 0, UINT16_MAX, 0, &partition)
        || !exchange_number(x, "from", 1, UINT64_MAX, 0, &query.from) || !exchange_limit(x, &query.limit))
        return;
    query.partition = (uint16_t)partition;
    answer_lines(x, pawl_lane_leases_list(exchange_engine(x), &query, &text, &error), &text, &error);
}

void lanes_leases(struct exchange *x)
{
    list_leases(x, exchange_path(x, "lane"));
}

void lanes_all_leases(struct exchange *x)
{
    list_leases(x, exchange_param(x, "lane"));
}

/* --- decisions about a lane --- */

static bool no_members(struct exchange *x)
{
    struct body body;
    if (!body_begin(x, &body) || !body_end(&body))
        return false;
    body_release(&body);
    return true;
}

void lanes_rebuild(struct exchange *x)
{
    pawl_error error;
    const char *lane = exchange_path(x, "lane");
    if (!no_members(x))
        return;
    if (pawl_lane_rebuild(exchange_engine(x), lane, &error) == PAWL_OK)
        exchange_answer_json(x, HTTP_ACCEPTED, json_pack("{s:s,s:b}", "lane", lane, "building", 1));
    else
        exchange_fail(x, &error);
}

static void set_paused(struct exchange *x, bool paused)
{
    pawl_error error;
    const char *lane = exchange_path(x, "lane");
    if (!no_members(x))
        return;
    if (pawl_lane_pause(exchange_engine(x), lane, paused, &error) == PAWL_OK)
        exchange_answer_json(x, HTTP_OK, json_pack("{s:s,s:b}", "lane", lane, "paused", (int)paused));
    else
        exchange_fail(x, &error);
}

void lanes_pause(struct exchange *x)
{
    set_paused(x, true);
}

void lanes_resume(struct exchange *x)
{
    set_paused(x, false);
}

/* --- decisions about a number --- */

struct decision {
    uint16_t partition;
    uint32_t generation; /* 0: the one that has it under way */
    uint64_t number;
    const char *lane;
};

static bool read_decision(struct exchange *x, struct body *body, struct decision *ret_decision)
{
    uint64_t partition, number;
    if (!exchange_path_number(x, "partition", 0, UINT16_MAX, &partition)
        || !exchange_path_number(x, "n", 1, UINT64_MAX, &number) || !body_begin(x, body))
        return false;
    uint64_t generation = body_number(body, "generation", 1, UINT32_MAX, BODY_OPTIONAL);
    *ret_decision = (struct decision){.partition = (uint16_t)partition,
                                      .generation = (uint32_t)generation,
                                      .number = number,
                                      .lane = exchange_path(x, "lane")};
    return true;
}

static void answer_decision(struct exchange *x, struct body *body, int status, const struct decision *d,
                            const char *decided, const pawl_error *error)
{
    body_release(body);
    if (status != PAWL_OK) {
        exchange_fail(x, error);
        return;
    }
    exchange_answer_json(x, HTTP_OK,
                         json_pack("{s:s,s:i,s:o,s:s}", "lane", d->lane, "partition", (int)d->partition,
                                   "number", json_number64(d->number), "decided", decided));
}

void leases_retry(struct exchange *x)
{
    struct decision d;
    struct body body;
    pawl_error error;
    if (!read_decision(x, &body, &d) || !body_end(&body))
        return;
    int status = pawl_lane_retry(exchange_engine(x), d.partition, d.lane, d.generation, d.number, &error);
    answer_decision(x, &body, status, &d, "tried again", &error);
}

void leases_reclaim(struct exchange *x)
{
    struct decision d;
    struct body body;
    pawl_error error;
    if (!read_decision(x, &body, &d) || !body_end(&body))
        return;
    int status = pawl_lane_reclaim(exchange_engine(x), d.partition, d.lane, d.generation, d.number, &error);
    answer_decision(x, &body, status, &d, "reclaimed", &error);
}

void leases_void(struct exchange *x)
{
    struct decision d;
    struct body body;
    pawl_error error;
    if (!read_decision(x, &body, &d))
        return;
    const char *reason = body_string(&body, "reason", BODY_NEEDED);
    if (!body_end(&body))
        return;
    if (reason[0] == '\0' || strlen(reason) > PAWL_LEASE_WORDS_MAX) {
        body_release(&body);
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL, "$.reason: expected 1 to %d bytes",
                        PAWL_LEASE_WORDS_MAX);
        return;
    }
    int status =
        pawl_lane_void(exchange_engine(x), d.partition, d.lane, d.generation, d.number, reason, &error);
    answer_decision(x, &body, status, &d, "void", &error);
}

/* --- operations --- */

struct operations {
    FILE *lines;
    int status;
    pawl_error error;
};

static bool add_operation(void *arg, const pawl_operation *operation)
{
    struct operations *o = arg;
    pawl_bytes json;
    o->status = pawl_operation_json(operation, &json, &o->error);
    if (o->status != PAWL_OK)
        return false;
    fwrite(json.data, 1, json.size, o->lines);
    fputc('\n', o->lines);
    return !ferror(o->lines);
}

/* Of one partition; Pawl-Next is the from of the next page. */
void operations_list(struct exchange *x)
{
    struct operations o = {0};
    uint64_t partition, generation, from, next;
    size_t limit, size = 0;
    char *text = NULL, cursor[24];
    const char *lane = exchange_needs(x, "lane");
    if (!lane || !exchange_needs(x, "partition")
        || !exchange_number(x, "partition", 0, UINT16_MAX, 0, &partition)
        || !exchange_number(x, "generation", 1, UINT32_MAX, 0, &generation)
        || !exchange_number(x, "from", 1, UINT64_MAX, 1, &from) || !exchange_limit(x, &limit))
        return;
    if (partition >= pawl_partitions(exchange_engine(x))) {
        exchange_refuse(x, HTTP_NOT_FOUND, PAWL_ENOTFOUND, "$query.partition: there is no partition %" PRIu64,
                        partition);
        return;
    }
    o.lines = open_memstream(&text, &size);
    if (!o.lines) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for operations");
        return;
    }
    next = from;
    int status = pawl_operations_read(exchange_engine(x), (uint16_t)partition, lane, (uint32_t)generation, from,
                                      limit, add_operation, &o, &next, &o.error);
    status = status == PAWL_OK ? o.status : status;
    if (fclose(o.lines) != 0 && status == PAWL_OK)
        status = pawl_error_set(&o.error, PAWL_ENOMEM, "no memory for operations");
    snprintf(cursor, sizeof cursor, "%" PRIu64, next);
    if (status != PAWL_OK)
        exchange_fail(x, &o.error);
    else if (next - from < limit || exchange_add_next(x, cursor))
        exchange_answer_copy(x, HTTP_OK, TYPE_NDJSON, (pawl_bytes){text, size});
    free(text);
}

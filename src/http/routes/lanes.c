/* http/routes/lanes.c: lanes and their leases, as an operator sees them, and what can be decided. */
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

/* --- waiting --- */

#define WAIT_DEFAULT (10 * PAWL_SECOND)
#define WAIT_MAX     (60 * PAWL_SECOND)
#define WAIT_SLICE   (200 * PAWL_MILLISECOND) /* between two looks at whether the server is being stopped */

struct lane_totals {
    uint64_t lanes; /* generations of them */
    uint64_t operations, repeated, leased, waiting, lag;
};

static bool add_lane(void *arg, const pawl_lane_status *status)
{
    struct lane_totals *sum = arg;
    sum->lanes += status->partition == 0;
    sum->operations += status->operations;
    sum->repeated += status->repeated;
    sum->leased += status->leases.active;
    sum->waiting += status->leases.waiting;
    sum->lag += status->offset < status->end ? status->end - status->offset : 0;
    return true;
}

static void answer_totals(struct exchange *x, const char *lane, bool caught_up)
{
    struct lane_totals sum = {0};
    pawl_error error;
    if (pawl_lanes_read(exchange_engine(x), lane, add_lane, &sum, &error) != PAWL_OK) {
        exchange_fail(x, &error);
        return;
    }
    exchange_answer_json(x, HTTP_OK,
                         json_pack("{s:b,s:o,s:o,s:o,s:o,s:o,s:o}", "caught_up", (int)caught_up, "lanes",
                                   json_number64(sum.lanes), "operations", json_number64(sum.operations),
                                   "repeated", json_number64(sum.repeated), "leased", json_number64(sum.leased),
                                   "waiting", json_number64(sum.waiting), "lag", json_number64(sum.lag)));
}

/* That the time is over is an answer, not a failure. */
void lanes_wait(struct exchange *x)
{
    const char *lane = exchange_param(x, "lane");
    pawl_duration timeout;
    pawl_error error;
    int status;
    if (!exchange_duration(x, "timeout", WAIT_MAX, WAIT_DEFAULT, &timeout))
        return;
    do {
        pawl_duration slice = timeout < WAIT_SLICE ? timeout : WAIT_SLICE;
        status = pawl_lanes_wait(exchange_engine(x), lane, slice ? slice : 1, &error);
        timeout -= slice;
    } while (status == PAWL_ETIMEOUT && timeout > 0 && !exchange_stopping(x));
    if (status == PAWL_OK || status == PAWL_ETIMEOUT)
        answer_totals(x, lane, status == PAWL_OK);
    else
        exchange_fail(x, &error);
}

/* cli/talk/session_operations.c: operations of a lane's log, read from an engine or asked of a server. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk/remote.h"
#include "cli/talk/session.h"

struct reading {
    const struct operation_query *query;
    uint64_t left;
    session_line line;
    void *arg;
    bool ended; /* line wants no more */
    int status;
    pawl_error *error;
};

/* --- an engine --- */

struct search {
    const char *entity;
    bool found;
};

static bool look_at_write(void *arg, pawl_write_kind kind, const pawl_row *row)
{
    struct search *search = arg;
    pawl_bytes name = pawl_row_type(row);
    (void)kind;
    search->found = strlen(search->entity) == name.size && memcmp(search->entity, name.data, name.size) == 0;
    return !search->found;
}

/* Whether the operation was asked for. */
static int is_wanted(const struct reading *r, const pawl_operation *operation, bool *ret_wanted)
{
    const struct operation_query *q = r->query;
    struct search search = {.entity = q->entity};
    *ret_wanted = !q->wsid || operation->wsid == q->wsid;
    if (!*ret_wanted || !q->entity)
        return PAWL_OK;
    int status = pawl_operation_writes(operation, NULL, look_at_write, &search, r->error);
    *ret_wanted = search.found;
    return status;
}

static bool show(void *arg, const pawl_operation *operation)
{
    struct reading *r = arg;
    pawl_bytes json;
    bool wanted;
    /* Numbers are in the order of their events. */
    if (r->query->source && operation->event > r->query->source)
        return false;
    r->status = is_wanted(r, operation, &wanted);
    if (r->status != PAWL_OK || !wanted)
        return r->status == PAWL_OK;
    r->status = pawl_operation_json(operation, &json, r->error);
    if (r->status != PAWL_OK)
        return false;
    r->ended = !r->line(r->arg, json);
    return --r->left > 0 && !r->ended;
}

static int read_here(pawl_engine *engine, struct reading *r, uint16_t partition)
{
    const struct operation_query *q = r->query;
    uint64_t from = q->from, first;
    if (q->source) {
        int status =
            pawl_operations_find(engine, partition, q->lane, q->generation, q->source, &first, r->error);
        if (status != PAWL_OK)
            return status;
        from = from > first ? from : first;
    }
    int status = pawl_operations_read(engine, partition, q->lane, q->generation, from, SIZE_MAX, show, r, NULL,
                                      r->error);
    return status == PAWL_OK ? r->status : status;
}

/* --- a server --- */

static bool hand_on(void *arg, pawl_bytes json)
{
    struct reading *r = arg;
    r->ended = !r->line(r->arg, json);
    return --r->left > 0 && !r->ended;
}

/* The partition, or that of the workspace, in pages. */
static int read_there(struct remote *remote, struct reading *r, uint16_t partition)
{
    const struct operation_query *q = r->query;
    char number[8];
    uint64_t from = q->from;
    snprintf(number, sizeof number, "%u", partition);
    while (from > 0 && r->left > 0 && !r->ended) {
        struct target target;
        struct remote_answer answer;
        target_begin(&target, "/v1/operations");
        target_add(&target, "lane", q->lane);
        target_add(&target, "partition", q->wsid ? NULL : number);
        target_add_number(&target, "ws", q->wsid);
        target_add_number(&target, "generation", q->generation);
        target_add_number(&target, "source", q->source);
        target_add(&target, "entity", q->entity);
        target_add_number(&target, "from", from);
        target_add_number(&target, "limit", r->left < SESSION_PAGE ? r->left : SESSION_PAGE);
        const struct remote_call call = {.method = "GET", .target = &target};
        int status = remote_ask(remote, &call, &answer, r->error);
        if (status != PAWL_OK)
            return status;
        (void)lines_visit(&answer.text, hand_on, r);
        from = answer.next ? strtoull(answer.next, NULL, 10) : 0;
        remote_answer_release(&answer);
    }
    return PAWL_OK;
}

static int count_partitions(struct session *s, uint64_t *ret_count, pawl_error *error)
{
    pawl_text text;
    if (s->engine) {
        *ret_count = pawl_partitions(s->engine);
        return PAWL_OK;
    }
    int status = session_figures(s, &text, error);
    if (status != PAWL_OK)
        return status;
    json_t *figures = json_loadb(text.data, text.size, 0, NULL);
    *ret_count = json_u64_in(json_object_get(figures, "node"), "partitions");
    json_decref(figures);
    pawl_text_free(&text);
    return *ret_count ? PAWL_OK : pawl_error_set(error, PAWL_EIO, "the server does not say its partitions");
}

int session_operations(struct session *s, const struct operation_query *query, session_line line, void *arg,
                       pawl_error *error)
{
    struct reading r = {.query = query, .left = query->limit, .line = line, .arg = arg, .error = error};
    uint64_t count, first = 0, end;
    int status = count_partitions(s, &count, error);
    if (status != PAWL_OK)
        return status;
    end = count;
    if (query->wsid && s->engine)
        first = pawl_partition_of(s->engine, query->wsid);
    if (query->one)
        first = query->partition;
    if (first >= count)
        return pawl_error_set(error, PAWL_ENOTFOUND, "there is no partition %" PRIu64, first);
    if (query->one || query->wsid)
        end = first + 1;
    for (uint64_t p = first; status == PAWL_OK && p < end && r.left > 0 && !r.ended; p++)
        status = s->engine ? read_here(s->engine, &r, (uint16_t)p) : read_there(s->remote, &r, (uint16_t)p);
    return status;
}

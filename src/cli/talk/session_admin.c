/* cli/talk/session_admin.c: lanes, leases, views and tablets, of an engine or of a server. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/talk/lanes.h"
#include "cli/talk/remote.h"
#include "cli/talk/session.h"

#define LEASES_MAX 10000 /* that a server lists at once */

/* --- lanes --- */

int session_projectors(struct session *s, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_projectors_list(s->engine, ret_text, error);
    target_begin(&target, "/v1/projectors");
    return remote_get_lines(s->remote, &target, ret_text, error);
}

int session_lanes(struct session *s, const char *lane, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_lanes_list(s->engine, lane, ret_text, error);
    target_begin(&target, "/v1/lanes");
    if (lane)
        target_word(&target, lane);
    return remote_get_lines(s->remote, &target, ret_text, error);
}

int session_lane_stats(struct session *s, const char *lane, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_lane_stats_list(s->engine, lane, ret_text, error);
    target_begin(&target, "/v1/leases/stats");
    target_add(&target, "lane", lane);
    return remote_get_lines(s->remote, &target, ret_text, error);
}

int session_leases(struct session *s, const pawl_lease_query *query, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    char partition[8];
    if (s->engine)
        return pawl_lane_leases_list(s->engine, query, ret_text, error);
    snprintf(partition, sizeof partition, "%u", query->partition);
    target_begin(&target, "/v1/leases");
    target_add(&target, "lane", query->lane);
    target_add(&target, "partition", query->one_partition ? partition : NULL);
    target_add_number(&target, "limit", query->limit < LEASES_MAX ? query->limit : LEASES_MAX);
    return remote_get_lines(s->remote, &target, ret_text, error);
}

static void lane_target(struct target *target, const char *lane, const char *verb)
{
    target_begin(target, "/v1/lanes");
    target_word(target, lane);
    target_word(target, verb);
}

int session_lane_pause(struct session *s, const char *lane, bool paused, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_lane_pause(s->engine, lane, paused, error);
    lane_target(&target, lane, paused ? "pause" : "resume");
    return remote_send(s->remote, "POST", &target, NULL, NULL, error);
}

int session_lane_rebuild(struct session *s, const char *lane, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_lane_rebuild(s->engine, lane, error);
    lane_target(&target, lane, "rebuild");
    return remote_send(s->remote, "POST", &target, NULL, NULL, error);
}

static int wait_here(pawl_engine *engine, const char *lane, pawl_duration timeout,
                     struct lane_totals *ret_totals, pawl_error *error)
{
    struct lanes lanes;
    int waited = pawl_lanes_wait(engine, lane, timeout, error);
    if (waited != PAWL_OK && waited != PAWL_ETIMEOUT)
        return waited;
    int status = lanes_load(engine, lane, &lanes, error);
    if (status != PAWL_OK)
        return status;
    struct lane_sum sum = lanes_sum(lanes.rows, lanes.count);
    *ret_totals = (struct lane_totals){.operations = sum.operations,
                                       .repeated = sum.repeated,
                                       .leased = sum.leases.active,
                                       .waiting = sum.leases.waiting,
                                       .lag = sum.end - sum.offset};
    for (size_t i = 0; i < lanes.count; i += lanes_run(&lanes, i))
        ret_totals->lanes++;
    lanes_free(&lanes);
    return waited;
}

int session_lanes_wait(struct session *s, const char *lane, pawl_duration timeout,
                       struct lane_totals *ret_totals, pawl_error *error)
{
    struct target target;
    char wait[32];
    pawl_text text;
    if (s->engine)
        return wait_here(s->engine, lane, timeout, ret_totals, error);
    snprintf(wait, sizeof wait, "%" PRIu64 "ms", timeout / PAWL_MILLISECOND + 1);
    target_begin(&target, "/v1/lanes/wait");
    target_add(&target, "lane", lane);
    target_add(&target, "timeout", wait);
    int status = remote_get(s->remote, &target, &text, error);
    if (status != PAWL_OK)
        return status;
    json_t *sum = json_loadb(text.data, text.size, 0, NULL);
    pawl_text_free(&text);
    *ret_totals = (struct lane_totals){.lanes = json_u64_in(sum, "lanes"),
                                       .operations = json_u64_in(sum, "operations"),
                                       .repeated = json_u64_in(sum, "repeated"),
                                       .leased = json_u64_in(sum, "leased"),
                                       .waiting = json_u64_in(sum, "waiting"),
                                       .lag = json_u64_in(sum, "lag")};
    bool done = json_is_true(json_object_get(sum, "caught_up"));
    json_decref(sum);
    return done ? PAWL_OK : PAWL_ETIMEOUT;
}

static int decide_here(pawl_engine *engine, const struct lease_decision *d, pawl_error *error)
{
    switch (d->kind) {
    case DECIDE_RETRY: return pawl_lane_retry(engine, d->partition, d->lane, d->generation, d->number, error);
    case DECIDE_RECLAIM:
        return pawl_lane_reclaim(engine, d->partition, d->lane, d->generation, d->number, error);
    case DECIDE_VOID:
        return pawl_lane_void(engine, d->partition, d->lane, d->generation, d->number, d->reason, error);
    }
    return PAWL_EINVAL;
}

int session_decide(struct session *s, const struct lease_decision *d, pawl_error *error)
{
    static const char *const verbs[] = {
        [DECIDE_RETRY] = "retry", [DECIDE_RECLAIM] = "reclaim", [DECIDE_VOID] = "void"};
    struct target target;
    if (s->engine)
        return decide_here(s->engine, d, error);
    target_begin(&target, "/v1/leases");
    target_number(&target, d->partition);
    target_word(&target, d->lane);
    target_number(&target, d->number);
    target_word(&target, verbs[d->kind]);
    json_t *body = json_object();
    if (d->generation)
        json_object_set_new(body, "generation", json_integer(d->generation));
    if (d->reason)
        json_object_set_new(body, "reason", json_string(d->reason));
    return remote_send(s->remote, "POST", &target, body, NULL, error);
}

/* --- views --- */

static const char *text_in(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static bool flag_in(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

static uint64_t number_in(const json_t *object, const char *name)
{
    return json_to_u64(json_object_get(object, name));
}

static bool visit_view(const json_t *v, pawl_view_status_visit visit, void *arg)
{
    const json_t *eta = json_object_get(v, "eta_seconds");
    const pawl_view_status status = {
        .name = text_in(v, "view"),
        .base = text_in(v, "base"),
        .state = flag_in(v, "built")                          ? PAWL_VIEW_BUILT
                 : strcmp(text_in(v, "state"), "failed") == 0 ? PAWL_VIEW_FAILED
                                                              : PAWL_VIEW_BUILDING,
        .declared = flag_in(v, "declared"),
        .unique = flag_in(v, "unique"),
        .rebuilding = flag_in(v, "rebuilding"),
        .paused = flag_in(v, "paused"),
        .table = (uint32_t)number_in(v, "table"),
        .tasks = number_in(v, "tasks"),
        .tasks_left = number_in(v, "tasks_left"),
        .rows = number_in(v, "rows"),
        .rows_done = number_in(v, "rows_done"),
        .rows_total = number_in(v, "rows_total"),
        .rate = json_number_value(json_object_get(v, "rate")),
        .percent = json_number_value(json_object_get(v, "percent")),
        .eta = json_is_number(eta) ? (pawl_duration)(json_number_value(eta) * 1e9) : UINT64_MAX,
        .rows_failed = number_in(v, "rows_failed"),
        .first_failed = text_in(v, "first_failed"),
        .words = text_in(v, "words"),
    };
    return visit(arg, &status);
}

int session_view_lines(struct session *s, const char *name, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_view_status_list(s->engine, name, ret_text, error);
    target_begin(&target, "/v1/views");
    if (name)
        target_word(&target, name);
    return remote_get_lines(s->remote, &target, ret_text, error);
}

int session_views(struct session *s, const char *name, pawl_view_status_visit visit, void *arg,
                  pawl_error *error)
{
    pawl_text text;
    if (s->engine)
        return pawl_view_status_read(s->engine, name, visit, arg, error);
    int status = session_view_lines(s, name, &text, error);
    if (status != PAWL_OK)
        return status;
    bool more = true;
    for (size_t at = 0; more && at < text.size;) {
        json_error_t end;
        json_t *view = json_loadb(text.data + at, text.size - at, JSON_DISABLE_EOF_CHECK, &end);
        more = view && visit_view(view, visit, arg);
        json_decref(view);
        at += (size_t)end.position;
        at += strspn(text.data + at, "\n");
    }
    pawl_text_free(&text);
    return PAWL_OK;
}

struct judging {
    const char *view;
    int status;
    pawl_error *error;
};

/* As pawl_view_wait does. */
static bool judge(void *arg, const pawl_view_status *v)
{
    struct judging *j = arg;
    if (v->state == PAWL_VIEW_FAILED)
        j->status = pawl_error_set(j->error, PAWL_EEXISTS, "%s", v->words);
    else if (v->state == PAWL_VIEW_BUILT && !v->rebuilding)
        j->status = PAWL_OK;
    return true;
}

int session_view_wait(struct session *s, const char *view, pawl_duration timeout, pawl_error *error)
{
    struct judging j = {.view = view, .status = PAWL_EBUSY, .error = error};
    if (s->engine)
        return pawl_view_wait(s->engine, view, timeout, error);
    int status = session_views(s, view, judge, &j, error);
    if (status != PAWL_OK || j.status != PAWL_EBUSY)
        return status == PAWL_OK ? j.status : status;
    const struct timespec pause = {.tv_sec = (time_t)(timeout / PAWL_SECOND),
                                   .tv_nsec = (long)(timeout % PAWL_SECOND)};
    nanosleep(&pause, NULL);
    return pawl_error_set(error, PAWL_ETIMEOUT, "%s is not built yet", view);
}

static json_t *strings(const char *const *words, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_string(words[i]));
    return array;
}

int session_view_create(struct session *s, const pawl_view_definition *d, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_view_create(s->engine, d, error);
    json_t *body =
        json_pack("{s:s,s:s,s:o}", "view", d->name, "base", d->base, "key", strings(d->key, d->key_count));
    if (!body)
        return pawl_error_set(error, PAWL_EINVAL, "names are UTF-8");
    if (d->include_count)
        json_object_set_new(body, "include", strings(d->include, d->include_count));
    if (d->filter)
        json_object_set_new(body, "filter", json_string(d->filter));
    if (d->unique)
        json_object_set_new(body, "unique", json_true());
    target_begin(&target, "/v1/views");
    return remote_send(s->remote, "POST", &target, body, NULL, error);
}

int session_view_drop(struct session *s, const char *view, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_view_drop(s->engine, view, error);
    target_begin(&target, "/v1/views");
    target_word(&target, view);
    const struct remote_call call = {.method = "DELETE", .target = &target};
    return remote_ask(s->remote, &call, NULL, error);
}

/* view NULL: of all. */
static int view_verb(struct session *s, const char *view, const char *verb, pawl_error *error)
{
    struct target target;
    target_begin(&target, "/v1/views");
    if (view)
        target_word(&target, view);
    target_word(&target, verb);
    return remote_send(s->remote, "POST", &target, NULL, NULL, error);
}

int session_view_rebuild(struct session *s, const char *view, pawl_error *error)
{
    return s->engine ? pawl_view_rebuild(s->engine, view, error) : view_verb(s, view, "rebuild", error);
}

int session_view_pause(struct session *s, const char *view, bool paused, pawl_error *error)
{
    if (s->engine)
        return pawl_view_pause(s->engine, view, paused, error);
    return view_verb(s, view, paused ? "pause" : "resume", error);
}

int session_view_throttle(struct session *s, uint64_t rows_per_second, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_view_throttle(s->engine, rows_per_second, error);
    target_begin(&target, "/v1/views/throttle");
    return remote_send(s->remote, "PUT", &target,
                       json_pack("{s:o}", "rows_per_second", json_u64(rows_per_second)), NULL, error);
}

/* --- tablets --- */

int session_tablets(struct session *s, pawl_text *ret_text, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return pawl_tablets_list(s->engine, ret_text, error);
    target_begin(&target, "/v1/tablets");
    return remote_get_lines(s->remote, &target, ret_text, error);
}

int session_tablets_resize(struct session *s, bool split, pawl_error *error)
{
    struct target target;
    if (s->engine)
        return split ? pawl_tablets_split(s->engine, error) : pawl_tablets_merge(s->engine, error);
    target_begin(&target, split ? "/v1/tablets/split" : "/v1/tablets/merge");
    return remote_send(s->remote, "POST", &target, NULL, NULL, error);
}

/* --- sequences --- */

int session_numbers(struct session *s, uint64_t wsid, session_line line, void *arg, pawl_error *error)
{
    pawl_number_place place = {0};
    char *cursor = NULL;
    bool more = true;
    int status = PAWL_OK;
    while (more && status == PAWL_OK) {
        struct target target;
        struct remote_answer answer = {0};
        if (s->engine) {
            status = pawl_last_numbers_list(s->engine, wsid, &place, SESSION_PAGE, &answer.text, error);
            more = !place.done;
        } else {
            target_begin(&target, "/v1/sequences");
            target_add_number(&target, "ws", wsid);
            target_add_number(&target, "limit", SESSION_PAGE);
            target_add(&target, "cursor", cursor);
            const struct remote_call call = {.method = "GET", .target = &target};
            status = remote_ask(s->remote, &call, &answer, error);
            free(cursor);
            cursor = answer.next;
            more = cursor != NULL;
        }
        if (status == PAWL_OK) {
            more = lines_visit(&answer.text, line, arg) && more;
            pawl_text_free(&answer.text);
        }
    }
    free(cursor);
    return status;
}

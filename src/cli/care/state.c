#include "cli/care/state.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/show/say.h"

static void print_unchecked(const json_t *lanes)
{
    uint64_t named = 0, unchecked = json_u64_in(lanes, "unchecked");
    const json_t *by = json_object_get(lanes, "unchecked_by"), *one;
    size_t i;
    printf("note: %" PRIu64 " of them could not be worked out again, because their handlers are not here:",
           unchecked);
    json_array_foreach(by, i, one)
    {
        uint64_t operations = json_u64_in(one, "operations");
        printf("%s %s (%" PRIu64 ")", i > 0 ? "," : "", json_text_in(one, "projector"), operations);
        named += operations;
    }
    printf("%s\n", named < unchecked ? ", and others" : "");
}

static void print_lanes(const json_t *lanes)
{
    uint64_t operations = json_u64_in(lanes, "operations"), again = json_u64_in(lanes, "worked_out_again"),
             differences = json_u64_in(lanes, "differences");
    if (operations)
        printf("%" PRIu64 " operations of lanes applied again\n", operations);
    if (again)
        printf("%" PRIu64 " of them worked out again from their events\n", again);
    if (json_u64_in(lanes, "unchecked"))
        print_unchecked(lanes);
    if (differences == 0)
        return;
    printf("NOT THE SAME AGAIN: %s\n", json_text_in(lanes, "first_difference"));
    if (differences > 1)
        printf("and %" PRIu64 " more operations\n", differences - 1);
}

void print_state(const json_t *state, const json_t *audit, double seconds)
{
    uint64_t compared = json_u64_in(state, "compared"), behind = json_u64_in(state, "behind"),
             differences = json_u64_in(state, "differences");
    printf("%" PRIu64 " events derived again in %.3f s: %" PRIu64 " rows\n", json_u64_in(state, "events"),
           seconds, json_u64_in(state, "rows"));
    print_lanes(json_object_get(state, "lanes"));
    if (compared)
        printf("the state of %" PRIu64 " partitions compared\n", compared);
    else if (json_u64_in(json_object_get(audit, "checkpoint"), "compared"))
        printf("note: there is no live state that can be used; opening for writing takes the checkpoint's\n");
    else
        printf("no state was compared: it has come further than what was derived\n");
    if (behind)
        printf("note: the state of %" PRIu64
               " partitions lacks events of the log; opening for writing applies them\n",
               behind);
    if (differences == 0)
        return;
    printf("DIFFERENT: %s\n", json_text_in(state, "first_difference"));
    if (differences > 1)
        printf("and %" PRIu64 " more differences\n", differences - 1);
}

static json_t *side_json(const pawl_state_side *side)
{
    json_t *object = json_pack("{s:b,s:i,s:i,s:i,s:o}", "agrees", side->differences == 0, "compared",
                               (int)side->compared, "views", (int)side->views, "behind", (int)side->behind,
                               "differences", json_u64(side->differences));
    if (side->differences)
        json_object_set_new(object, "first_difference", json_string(side->first.text));
    return object;
}

json_t *audit_json(const pawl_state_report *r)
{
    return json_pack("{s:o,s:o}", "live", side_json(&r->live), "checkpoint", side_json(&r->checkpoint));
}

static void print_side(const char *name, const json_t *side)
{
    uint64_t differences = json_u64_in(side, "differences"), compared = json_u64_in(side, "compared"),
             views = json_u64_in(side, "views");
    if (differences)
        printf("audit: %s do not agree with the log: %" PRIu64 " differences, the first: %s\n", name,
               differences, json_text_in(side, "first_difference"));
    else if (views)
        printf("audit: %s agree with the log, in %" PRIu64 " partitions, with %" PRIu64 " tables of views\n",
               name, compared, views);
    else if (compared)
        printf("audit: %s agree with the log, in %" PRIu64 " partitions\n", name, compared);
    else
        printf("audit: there are no %s to compare\n", name + sizeof "the" - 1 + 1);
}

void print_audit(const json_t *audit)
{
    const json_t *live = json_object_get(audit, "live"), *checkpoint = json_object_get(audit, "checkpoint");
    print_side("the live stores", live);
    print_side("the checkpoint stores", checkpoint);
    if (json_u64_in(checkpoint, "differences"))
        printf("the checkpoint stores are made anew if DIR/checkpoint is removed while nothing has DIR open\n");
    if (json_u64_in(live, "differences"))
        printf("the live stores are derived anew%s if DIR/state is emptied while nothing has DIR open\n",
               json_u64_in(checkpoint, "differences") ? "" : ", from the checkpoint stores,");
}

static json_t *lanes_json(const pawl_lane_verdict *r)
{
    json_t *object = json_pack("{s:o,s:o,s:o}", "operations", json_u64(r->operations), "worked_out_again",
                               json_u64(r->compared), "differences", json_u64(r->differences));
    json_t *unchecked = json_array();
    for (size_t i = 0; i < r->unchecked_count; i++)
        json_array_append_new(unchecked, json_pack("{s:s,s:o}", "projector", r->unchecked_by[i].projector,
                                                   "operations", json_u64(r->unchecked_by[i].operations)));
    json_object_set_new(object, "unchecked", json_u64(r->unchecked));
    json_object_set_new(object, "unchecked_by", unchecked);
    if (r->differences)
        json_object_set_new(object, "first_difference", json_string(r->first.text));
    return object;
}

json_t *state_json(const pawl_state_report *r)
{
    json_t *object = json_pack("{s:o,s:o,s:i,s:i,s:o}", "events", json_u64(r->events), "rows",
                               json_u64(r->rows), "compared", (int)r->live.compared, "behind",
                               (int)r->live.behind, "differences", json_u64(r->live.differences));
    if (r->live.differences)
        json_object_set_new(object, "first_difference", json_string(r->live.first.text));
    json_object_set_new(object, "lanes", lanes_json(&r->lanes));
    return object;
}

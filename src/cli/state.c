#include "cli/state.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/say.h"

static void print_unchecked(const pawl_lane_verdict *r)
{
    uint64_t named = 0;
    printf("note: %" PRIu64 " of them could not be worked out again, because their handlers are not here:",
           r->unchecked);
    for (size_t i = 0; i < r->unchecked_count; i++) {
        printf("%s %s (%" PRIu64 ")", i > 0 ? "," : "", r->unchecked_by[i].projector,
               r->unchecked_by[i].operations);
        named += r->unchecked_by[i].operations;
    }
    printf("%s\n", named < r->unchecked ? ", and others" : "");
}

static void print_lanes(const pawl_lane_verdict *r)
{
    if (r->operations)
        printf("%" PRIu64 " operations of lanes applied again\n", r->operations);
    if (r->compared)
        printf("%" PRIu64 " of them worked out again from their events\n", r->compared);
    if (r->unchecked)
        print_unchecked(r);
    if (r->differences == 0)
        return;
    printf("NOT THE SAME AGAIN: %s\n", r->first.text);
    if (r->differences > 1)
        printf("and %" PRIu64 " more operations\n", r->differences - 1);
}

void print_state(const pawl_state_report *r, double seconds)
{
    printf("%" PRIu64 " events derived again in %.3f s: %" PRIu64 " rows\n", r->events, seconds, r->rows);
    print_lanes(&r->lanes);
    if (r->live.compared)
        printf("the state of %u partitions compared\n", r->live.compared);
    else if (r->checkpoint.compared)
        printf("note: there is no live state that can be used; opening for writing takes the checkpoint's\n");
    else
        printf("no state was compared: it has come further than what was derived\n");
    if (r->live.behind)
        printf("note: the state of %u partitions lacks events of the log; opening for writing applies them\n",
               r->live.behind);
    if (r->live.differences == 0)
        return;
    printf("DIFFERENT: %s\n", r->live.first.text);
    if (r->live.differences > 1)
        printf("and %" PRIu64 " more differences\n", r->live.differences - 1);
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

static void print_side(const char *name, const pawl_state_side *side)
{
    if (side->differences)
        printf("audit: %s do not agree with the log: %" PRIu64 " differences, the first: %s\n", name,
               side->differences, side->first.text);
    else if (side->views)
        printf("audit: %s agree with the log, in %u partitions, with %u tables of views\n", name,
               side->compared, side->views);
    else if (side->compared)
        printf("audit: %s agree with the log, in %u partitions\n", name, side->compared);
    else
        printf("audit: there are no %s to compare\n", name + sizeof "the" - 1 + 1);
}

void print_audit(const pawl_state_report *r)
{
    print_side("the live stores", &r->live);
    print_side("the checkpoint stores", &r->checkpoint);
    if (r->checkpoint.differences)
        printf("the checkpoint stores are made anew if DIR/checkpoint is removed while nothing has DIR open\n");
    if (r->live.differences)
        printf("the live stores are derived anew%s if DIR/state is emptied while nothing has DIR open\n",
               r->checkpoint.differences ? "" : ", from the checkpoint stores,");
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

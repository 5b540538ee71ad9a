#include "cli/state.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/say.h"

void print_state(const struct replay_report *r, double seconds)
{
    printf("%" PRIu64 " events derived again in %.3f s: %" PRIu64 " rows\n", r->events, seconds, r->rows);
    if (r->compared)
        printf("the state of %u partitions compared\n", r->compared);
    else
        printf("no state was compared: it has come further than what was derived\n");
    if (r->behind)
        printf("note: the state of %u partitions lacks events of the log; opening for writing applies them\n",
               r->behind);
    if (r->differences == 0)
        return;
    printf("DIFFERENT: %s\n", r->first.text);
    if (r->differences > 1)
        printf("and %" PRIu64 " more differences\n", r->differences - 1);
}

json_t *state_json(const struct replay_report *r)
{
    json_t *object =
        json_pack("{s:o,s:o,s:i,s:i,s:o}", "events", json_u64(r->events), "rows", json_u64(r->rows), "compared",
                  (int)r->compared, "behind", (int)r->behind, "differences", json_u64(r->differences));
    if (r->differences)
        json_object_set_new(object, "first_difference", json_string(r->first.text));
    return object;
}

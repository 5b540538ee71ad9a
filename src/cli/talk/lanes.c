#include "cli/talk/lanes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE ((pawl_duration)10 * 1000 * 1000 * 1000)

struct loading {
    struct lanes lanes;
    size_t room;
    bool failed;
};

static bool load_row(void *arg, const pawl_lane_status *status)
{
    struct loading *l = arg;
    if (l->lanes.count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        struct lane_row *rows = realloc(l->lanes.rows, room * sizeof *rows);
        if (!rows) {
            l->failed = true;
            return false;
        }
        l->lanes.rows = rows;
        l->room = room;
    }
    struct lane_row *row = &l->lanes.rows[l->lanes.count];
    *row = (struct lane_row){.status = *status, .name = strdup(status->lane)};
    if (status->error)
        row->error = strdup(status->error);
    if (!row->name || (status->error && !row->error)) {
        free(row->name);
        l->failed = true;
        return false;
    }
    row->status.lane = row->name;
    row->status.error = row->error;
    l->lanes.count++;
    return true;
}

/* Sort by lane, then generation, then partition. */
static int in_order(const void *a, const void *b)
{
    const pawl_lane_status *x = &((const struct lane_row *)a)->status,
                           *y = &((const struct lane_row *)b)->status;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (x->generation != y->generation)
        return x->generation < y->generation ? -1 : 1;
    return (x->partition > y->partition) - (x->partition < y->partition);
}

int lanes_load(pawl_engine *engine, const char *lane, struct lanes *ret_lanes, pawl_error *error)
{
    struct loading l = {0};
    int status = pawl_lanes_read(engine, lane, load_row, &l, error);
    if (status == PAWL_OK && l.failed)
        status = pawl_error_set(error, PAWL_ENOMEM, "no memory to list the lanes");
    if (status != PAWL_OK) {
        lanes_free(&l.lanes);
        return status;
    }
    if (l.lanes.count > 0)
        qsort(l.lanes.rows, l.lanes.count, sizeof *l.lanes.rows, in_order);
    *ret_lanes = l.lanes;
    return PAWL_OK;
}

void lanes_free(struct lanes *lanes)
{
    for (size_t i = 0; i < lanes->count; i++) {
        free(lanes->rows[i].name);
        free(lanes->rows[i].error);
    }
    free(lanes->rows);
    *lanes = (struct lanes){0};
}

size_t lanes_run(const struct lanes *lanes, size_t first)
{
    size_t i = first;
    while (i < lanes->count && lanes->rows[i].status.id == lanes->rows[first].status.id
           && lanes->rows[i].status.generation == lanes->rows[first].status.generation)
        i++;
    return i - first;
}

struct lane_sum lanes_sum(const struct lane_row *rows, size_t count)
{
    struct lane_sum sum = {0};
    for (size_t i = 0; i < count; i++) {
        const pawl_lane_status *s = &rows[i].status;
        sum.partitions++;
        sum.end += s->end;
        sum.offset += s->offset < s->end ? s->offset : s->end;
        sum.operations += s->operations;
        sum.repeated += s->repeated;
        pawl_lease_figures_add(&sum.leases, &s->leases);
    }
    return sum;
}

void duration_format(pawl_duration duration, char text[DURATION_TEXT_MAX])
{
    double us = (double)duration / 1e3;
    if (us < 1000)
        snprintf(text, DURATION_TEXT_MAX, "%.0f us", us);
    else if (us < 1e6)
        snprintf(text, DURATION_TEXT_MAX, "%.1f ms", us / 1e3);
    else
        snprintf(text, DURATION_TEXT_MAX, "%.1f s", us / 1e6);
}

void lanes_settle(pawl_engine *engine, const char *lane)
{
    pawl_error error = {0};
    /* If it fails, because a lane stalls for example, the status that is printed says so. */
    (void)pawl_lanes_wait(engine, lane, SETTLE, &error);
}

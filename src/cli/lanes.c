#include "cli/lanes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

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

/* By lane, then generation, then partition, in whichever order they came. */
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
        status = error_set(error, PAWL_ENOMEM, "no memory to list the lanes");
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

/* An average of averages, each with its weight. */
static double mean(double a, double a_weight, double b, double b_weight)
{
    return a_weight + b_weight > 0 ? (a * a_weight + b * b_weight) / (a_weight + b_weight) : a;
}

static void add_figures(pawl_lease_figures *to, const pawl_lease_figures *f)
{
    double before = (double)to->committed, more = (double)f->committed;
    to->utilisation = mean(to->utilisation, before, f->utilisation, more);
    to->average_wait = (pawl_duration)mean((double)to->average_wait, before, (double)f->average_wait, more);
    to->p99_wait = f->p99_wait > to->p99_wait ? f->p99_wait : to->p99_wait;
    to->bound += f->bound;
    to->taken += f->taken;
    to->watermark += f->watermark;
    to->active += f->active;
    to->waiting += f->waiting;
    to->stalled += f->stalled;
    to->acquired += f->acquired;
    to->committed += f->committed;
    to->expired += f->expired;
    to->released += f->released;
    to->failed += f->failed;
    to->voids += f->voids;
    to->fenced += f->fenced;
    to->repeated += f->repeated;
    to->alerts |= f->alerts;
    uint64_t ended = to->committed + to->expired;
    to->efficiency = ended ? (double)to->committed / (double)ended : 1;
    to->performing_well = to->performing_well && f->performing_well;
}

struct lane_sum lanes_sum(const struct lane_row *rows, size_t count)
{
    struct lane_sum sum = {.leases = {.efficiency = 1, .performing_well = true}};
    for (size_t i = 0; i < count; i++) {
        const pawl_lane_status *s = &rows[i].status;
        sum.partitions++;
        sum.end += s->end;
        sum.offset += s->offset < s->end ? s->offset : s->end;
        sum.operations += s->operations;
        sum.repeated += s->repeated;
        add_figures(&sum.leases, &s->leases);
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
    /* Whatever it says, that it stalls or waits, is what will be shown. */
    (void)pawl_lanes_wait(engine, lane, SETTLE, &error);
}

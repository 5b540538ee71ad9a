/* engine/show/lanes.c: projectors, how far their lanes have come, and what their leases come to. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/node/node.h"
#include "engine/read/read.h"
#include "engine/show/show.h"

/* --- projectors --- */

static void put_names(struct json_out *out, const char *key, const pawl_bytes *names, size_t count)
{
    put_open(out, key, '[');
    for (size_t i = 0; i < count; i++)
        out_text(out, names[i]);
    out_close(out, ']');
}

static bool put_projector(void *arg, const pawl_projector *p)
{
    struct json_out *out = arg;
    out_open(out, '{');
    put_bytes(out, "projector", p->name);
    put_text(out, "kind", p->handler ? "handler" : "declarative");
    put_names(out, "on", p->on, p->on_count);
    put_names(out, "writes", p->writes, p->write_count);
    if (p->read_count)
        put_names(out, "reads", p->reads, p->read_count);
    if (p->lane.size == 0) {
        put_flag(out, "sync", true);
    } else {
        put_bytes(out, "lane", p->lane);
        put_unsigned(out, "generation", p->generation);
        put_unsigned(out, "workers", p->workers);
        put_unsigned(out, "attempts", p->attempts_max);
        put_text(out, "on_failure", p->voids ? "void" : "stall");
    }
    end_line(out);
    return out->status == PAWL_OK;
}

int pawl_projectors_list(pawl_engine *e, pawl_text *ret_text, pawl_error *error)
{
    struct json_out out;
    json_out_init(&out, e->options.allocator);
    int status = pawl_projectors_read(e, put_projector, &out, error);
    return text_take(&out, status, ret_text, error);
}

/* --- lanes: one row for each generation in each partition --- */

struct lane_row {
    pawl_lane_status status;
    char name[256];
};

struct lane_rows {
    const pawl_allocator *alloc;
    struct lane_row *rows;
    size_t count, room;
    bool failed;
};

static bool keep_row(void *arg, const pawl_lane_status *status)
{
    struct lane_rows *r = arg;
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 64;
        struct lane_row *grown =
            mem_resize(r->alloc, r->rows, r->room * sizeof *r->rows, room * sizeof *r->rows);
        if (!grown) {
            r->failed = true;
            return false;
        }
        r->rows = grown;
        r->room = room;
    }
    struct lane_row *row = &r->rows[r->count++];
    row->status = *status;
    row->status.error = NULL;
    snprintf(row->name, sizeof row->name, "%s", status->lane);
    return true;
}

/* By lane, then generation, then partition. */
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

/* How many rows from this one on are of the same generation. */
static size_t run_of(const struct lane_rows *r, size_t first)
{
    size_t i = first;
    while (i < r->count && r->rows[i].status.id == r->rows[first].status.id
           && r->rows[i].status.generation == r->rows[first].status.generation)
        i++;
    return i - first;
}

typedef void (*put_rows)(struct json_out *out, const struct lane_row *rows, size_t count);

/* Call put for each generation. */
static int list_lanes(pawl_engine *e, const char *lane, put_rows put, pawl_text *ret_text, pawl_error *error)
{
    struct lane_rows r = {.alloc = e->options.allocator};
    struct json_out out;
    json_out_init(&out, e->options.allocator);
    int status = pawl_lanes_read(e, lane, keep_row, &r, error);
    if (status == PAWL_OK && r.failed)
        status = error_set(error, PAWL_ENOMEM, "no memory to list the lanes");
    if (status == PAWL_OK && r.count > 0)
        qsort(r.rows, r.count, sizeof *r.rows, in_order);
    for (size_t i = 0, count; status == PAWL_OK && i < r.count; i += count) {
        count = run_of(&r, i);
        put(&out, &r.rows[i], count);
    }
    mem_free(r.alloc, r.rows, r.room * sizeof *r.rows);
    return text_take(&out, status, ret_text, error);
}

/* How a lane works ahead. In sum: the partition that works ahead least. Nobody knows if the engine only reads. */
static void put_ahead(struct json_out *out, const struct lane_row *rows, size_t count)
{
    uint64_t ahead = UINT64_MAX, held = 0;
    for (size_t i = 0; i < count; i++) {
        const pawl_lane_status *s = &rows[i].status;
        ahead = s->state != PAWL_LANE_CLOSED && s->run_ahead < ahead ? s->run_ahead : ahead;
        held += s->held;
    }
    out_key(out, "run_ahead");
    if (ahead == UINT64_MAX)
        out_null(out);
    else
        out_unsigned(out, ahead);
    put_unsigned(out, "held", held);
}

static void put_status(struct json_out *out, const struct lane_row *rows, size_t count)
{
    const pawl_lane_status *first = &rows[0].status;
    uint64_t end = 0, offset = 0, operations = 0, repeated = 0;
    pawl_duration repeated_time = 0;
    for (size_t i = 0; i < count; i++) {
        const pawl_lane_status *s = &rows[i].status;
        repeated += s->repeated;
        repeated_time += s->leases.repeated_time;
        end += s->end;
        offset += s->offset < s->end ? s->offset : s->end;
        operations += s->operations;
    }
    out_open(out, '{');
    put_text(out, "lane", rows[0].name);
    put_unsigned(out, "generation", first->generation);
    put_flag(out, "serving", first->serving);
    put_flag(out, "building", first->building);
    put_text(out, "state",
             first->paused     ? "paused"
             : first->building ? "building"
             : offset >= end   ? "current"
                               : "behind");
    put_unsigned(out, "partitions", count);
    put_unsigned(out, "events", end);
    put_unsigned(out, "lag", end - offset);
    put_unsigned(out, "operations", operations);
    put_unsigned(out, "repeated", repeated);
    put_real(out, "repeated_time", (double)repeated_time / 1e9);
    put_ahead(out, rows, count);
    put_real(out, "progress", end ? (double)offset / (double)end : 1);
    end_line(out);
}

int pawl_lanes_list(pawl_engine *e, const char *lane, pawl_text *ret_text, pawl_error *error)
{
    return list_lanes(e, lane, put_status, ret_text, error);
}

/* --- figures of leases --- */

static const struct {
    pawl_lease_alert alert;
    const char *name;
} alerts[] = {
    {PAWL_LEASE_ALERT_EXPIRED, "expired"}, {PAWL_LEASE_ALERT_WAIT, "wait"},
    {PAWL_LEASE_ALERT_ACTIVE, "active"},   {PAWL_LEASE_ALERT_VOIDS, "voids"},
    {PAWL_LEASE_ALERT_STALLED, "stalled"},
};

/* Alerts belong to the lane: each is in the status of one partition, the one that has most of it. */
static void put_alerts(struct json_out *out, const struct lane_row *rows, size_t count)
{
    put_open(out, "alerts", '[');
    for (size_t i = 0; i < sizeof alerts / sizeof alerts[0]; i++)
        for (size_t k = 0; k < count; k++) {
            if (!(rows[k].status.leases.alerts & (uint32_t)alerts[i].alert))
                continue;
            out_open(out, '{');
            put_text(out, "alert", alerts[i].name);
            put_text(out, "text", pawl_lease_alert_text(alerts[i].alert));
            put_text(out, "advice", pawl_lease_alert_advice(alerts[i].alert));
            put_unsigned(out, "most_in_partition", rows[k].status.partition);
            out_close(out, '}');
        }
    out_close(out, ']');
}

/* Of one row, for its partition; or of several, in sum. */
static void put_figures(struct json_out *out, const struct lane_row *rows, size_t count, bool in_sum,
                        const pawl_lease_figures *f)
{
    put_text(out, "lane", rows[0].name);
    put_unsigned(out, "generation", rows[0].status.generation);
    out_key(out, "partition");
    if (in_sum)
        out_null(out);
    else
        out_unsigned(out, rows[0].status.partition);
    put_unsigned(out, "bound", f->bound);
    put_unsigned(out, "watermark", f->watermark);
    put_unsigned(out, "leased", f->active);
    put_unsigned(out, "waiting", f->waiting);
    put_unsigned(out, "stalled", f->stalled);
    put_unsigned(out, "acquired", f->acquired);
    put_unsigned(out, "committed", f->committed);
    put_unsigned(out, "expired", f->expired);
    put_unsigned(out, "released", f->released);
    put_unsigned(out, "failed", f->failed);
    put_unsigned(out, "voids", f->voids);
    put_unsigned(out, "fenced", f->fenced);
    put_unsigned(out, "repeated", f->repeated);
    put_real(out, "repeated_time", (double)f->repeated_time / 1e9);
    put_ahead(out, rows, count);
    put_real(out, "utilisation", f->utilisation);
    put_real(out, "average_wait", (double)f->average_wait / 1e9);
    put_real(out, "p99_wait", (double)f->p99_wait / 1e9);
    put_real(out, "efficiency", f->efficiency);
    put_flag(out, "performing_well", f->performing_well);
}

static void put_stats(struct json_out *out, const struct lane_row *rows, size_t count)
{
    pawl_lease_figures sum = {0};
    for (size_t i = 0; i < count; i++) {
        const pawl_lane_status *s = &rows[i].status;
        pawl_lease_figures_add(&sum, &s->leases);
        out_open(out, '{');
        put_figures(out, &rows[i], 1, false, &s->leases);
        end_line(out);
    }
    out_open(out, '{');
    put_figures(out, rows, count, true, &sum);
    put_alerts(out, rows, count);
    end_line(out);
}

int pawl_lane_stats_list(pawl_engine *e, const char *lane, pawl_text *ret_text, pawl_error *error)
{
    return list_lanes(e, lane, put_stats, ret_text, error);
}

/* engine/show/views.c: views, tablets and the last numbers of sequences. */
#include "base/error.h"
#include "engine/node/node.h"
#include "engine/read/read.h"
#include "engine/show/show.h"

static const char *state_of(const pawl_view_status *v)
{
    if (v->state == PAWL_VIEW_FAILED)
        return "failed";
    if (v->rebuilding)
        return v->paused ? "rebuild paused" : "rebuilding";
    if (v->state == PAWL_VIEW_BUILT)
        return "built";
    return v->paused ? "paused" : "building";
}

static bool put_view(void *arg, const pawl_view_status *v)
{
    struct json_out *out = arg;
    out_open(out, '{');
    put_text(out, "view", v->name);
    put_text(out, "base", v->base);
    put_text(out, "state", state_of(v));
    put_flag(out, "built", v->state == PAWL_VIEW_BUILT);
    put_flag(out, "declared", v->declared);
    put_flag(out, "unique", v->unique);
    put_flag(out, "rebuilding", v->rebuilding);
    put_flag(out, "paused", v->paused);
    put_unsigned(out, "table", v->table);
    put_unsigned(out, "tasks", v->tasks);
    put_unsigned(out, "tasks_left", v->tasks_left);
    put_unsigned(out, "rows", v->rows);
    put_unsigned(out, "rows_done", v->rows_done);
    put_unsigned(out, "rows_total", v->rows_total);
    put_real(out, "rate", v->rate);
    put_real(out, "percent", v->percent);
    out_key(out, "eta_seconds");
    if (v->eta == UINT64_MAX)
        out_null(out);
    else
        out_real(out, (double)v->eta / 1e9);
    put_unsigned(out, "rows_failed", v->rows_failed);
    if (v->first_failed[0])
        put_text(out, "first_failed", v->first_failed);
    if (v->words[0])
        put_text(out, "words", v->words);
    end_line(out);
    return out->status == PAWL_OK;
}

int pawl_view_status_list(pawl_engine *e, const char *name, pawl_text *ret_text, pawl_error *error)
{
    struct json_out out;
    json_out_init(&out, e->options.allocator);
    int status = pawl_view_status_read(e, name, put_view, &out, error);
    return text_take(&out, status, ret_text, error);
}

static bool put_tablet(void *arg, const pawl_tablet *t)
{
    struct json_out *out = arg;
    out_open(out, '{');
    put_unsigned(out, "tablet", t->id);
    put_unsigned(out, "partition", t->partition);
    put_unsigned(out, "node", t->node);
    put_unsigned(out, "shard", t->shard);
    put_unsigned(out, "first_token", t->first_token);
    put_unsigned(out, "last_token", t->last_token);
    put_unsigned(out, "tasks", t->tasks);
    put_text(out, "stage", t->stage);
    end_line(out);
    return out->status == PAWL_OK;
}

int pawl_tablets_list(pawl_engine *e, pawl_text *ret_text, pawl_error *error)
{
    struct json_out out;
    json_out_init(&out, e->options.allocator);
    int status = pawl_tablets_read(e, put_tablet, &out, error);
    return text_take(&out, status, ret_text, error);
}

/* --- sequences --- */

struct numbers {
    struct json_out out;
    uint32_t partition;
    uint64_t seen; /* in this partition */
    uint64_t skip;
    size_t left;
};

static bool put_number(void *arg, const pawl_last_number *n)
{
    struct numbers *l = arg;
    if (l->seen < l->skip) {
        l->seen++;
        return true;
    }
    if (l->left == 0)
        return false;
    out_open(&l->out, '{');
    put_unsigned(&l->out, "partition", l->partition);
    put_unsigned(&l->out, "wsid", n->wsid);
    put_bytes(&l->out, "sequence", n->sequence);
    put_unsigned(&l->out, "last", n->number);
    end_line(&l->out);
    l->seen++;
    l->left--;
    return l->out.status == PAWL_OK;
}

int pawl_last_numbers_list(pawl_engine *e, uint64_t wsid, pawl_number_place *place, size_t limit,
                           pawl_text *ret_text, pawl_error *error)
{
    struct numbers l = {.left = limit, .skip = place->rows};
    uint32_t end = pawl_partitions(e);
    l.partition = wsid ? pawl_partition_of(e, wsid) : place->partition;
    json_out_init(&l.out, e->options.allocator);
    int status = PAWL_OK;
    for (;;) {
        l.seen = 0;
        if (l.partition < end)
            status = pawl_last_numbers_read(e, (uint16_t)l.partition, wsid, put_number, &l, error);
        if (status != PAWL_OK || l.left == 0 || wsid || l.partition >= end)
            break;
        l.skip = 0;
        l.partition++;
    }
    status = text_take(&l.out, status, ret_text, error);
    if (status == PAWL_OK)
        *place = (pawl_number_place){
            .partition = l.partition, .rows = l.seen, .done = l.left > 0 || l.partition >= end};
    return status;
}

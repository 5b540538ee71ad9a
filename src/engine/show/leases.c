/* engine/show/leases.c: the numbers that lanes work on, and a lease as its worker is told of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/node/node.h"
#include "engine/read/read.h"
#include "engine/show/show.h"

static void put_operation(struct json_out *out, pawl_operation_id id)
{
    char text[PAWL_OPERATION_TEXT_MAX];
    pawl_operation_format(id, text);
    put_text(out, "operation", text);
}

void pawl_operation_format(pawl_operation_id id, char text[PAWL_OPERATION_TEXT_MAX])
{
    snprintf(text, PAWL_OPERATION_TEXT_MAX, "%016" PRIx64 "%016" PRIx64, id.high, id.low);
}

static bool parse_half(const char *text, uint64_t *ret_half)
{
    uint64_t half = 0;
    for (int i = 0; i < 16; i++) {
        char c = text[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        half = half << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *ret_half = half;
    return true;
}

int pawl_operation_parse(const char *text, pawl_operation_id *ret_id, pawl_error *error)
{
    pawl_operation_id id;
    if (strlen(text) != 32 || !parse_half(text, &id.high) || !parse_half(text + 16, &id.low))
        return error_set(error, PAWL_EINVAL, "expected the ID of an operation, 32 digits 0 to f, not '%.40s'",
                         text);
    *ret_id = id;
    return PAWL_OK;
}

int pawl_worker_lease_json(pawl_engine *e, const pawl_worker_lease *lease, pawl_text *ret_text,
                           pawl_error *error)
{
    struct json_out out;
    pawl_bytes event;
    int status = pawl_event_json(lease->event, &event, error);
    if (status != PAWL_OK)
        return status;
    json_out_init(&out, e->options.allocator);
    out_open(&out, '{');
    put_unsigned(&out, "partition", lease->partition);
    put_text(&out, "lane", lease->lane);
    put_text(&out, "projector", lease->projector);
    put_unsigned(&out, "number", lease->number);
    put_operation(&out, lease->operation);
    put_unsigned(&out, "attempt", lease->attempt);
    put_real(&out, "expires_in", (double)lease->expires_in / 1e9);
    out_key(&out, "event");
    out_raw(&out, event);
    out_close(&out, '}');
    return text_take(&out, PAWL_OK, ret_text, error);
}

/* --- what is under way --- */

static const char *state_text(pawl_lease_state state)
{
    switch (state) {
    case PAWL_LEASE_BOUND: return "bound";
    case PAWL_LEASE_LEASED: return "leased";
    case PAWL_LEASE_BACKING_OFF: return "backing off";
    case PAWL_LEASE_STALLED: return "stalled";
    case PAWL_LEASE_READY: return "ready";
    case PAWL_LEASE_TAKEN: return "taken";
    case PAWL_LEASE_COMMITTED: return "committed";
    }
    return "?";
}

/* A lane in a partition that is listed. */
struct listed {
    char lane[256];
    uint16_t id;
    uint32_t generation;
    uint16_t partition;
    uint64_t watermark;
};

struct listing {
    pawl_engine *engine;
    const pawl_lease_query *query;
    struct json_out out;
    size_t left;
    struct listed *lanes;
    size_t count, room;
    bool failed;

    const struct listed *at;
    bool committed; /* only numbers that are committed */
};

static bool keep_lane(void *arg, const pawl_lane_status *status)
{
    struct listing *l = arg;
    if (l->query->one_partition && status->partition != l->query->partition)
        return true;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        struct listed *grown =
            mem_resize(l->engine->options.allocator, l->lanes, l->room * sizeof *grown, room * sizeof *grown);
        if (!grown) {
            l->failed = true;
            return false;
        }
        l->lanes = grown;
        l->room = room;
    }
    struct listed *lane = &l->lanes[l->count++];
    *lane = (struct listed){.id = status->id,
                            .generation = status->generation,
                            .partition = status->partition,
                            .watermark = status->leases.watermark};
    snprintf(lane->lane, sizeof lane->lane, "%s", status->lane);
    return true;
}

static int in_order(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (x->generation != y->generation)
        return x->generation < y->generation ? -1 : 1;
    return (x->partition > y->partition) - (x->partition < y->partition);
}

/* A point in time, in whole milliseconds, if there is one. */
static void put_instant(struct listing *l, const char *key, pawl_instant instant)
{
    char text[PAWL_WALL_TEXT_MAX];
    int64_t ns = pawl_engine_wall(l->engine, instant).ns;
    if (!ns)
        return;
    pawl_wall_format((pawl_wall){ns - ns % (int64_t)PAWL_MILLISECOND}, text);
    put_text(&l->out, key, text);
}

static bool put_lease(void *arg, const pawl_lease *lease, uint64_t event, const char *projector)
{
    struct listing *l = arg;
    struct json_out *out = &l->out;
    /* It was committed meanwhile, and was shown as under way already. */
    if (l->committed && lease->number > l->at->watermark)
        return false;
    out_open(out, '{');
    put_text(out, "lane", l->at->lane);
    put_unsigned(out, "generation", l->at->generation);
    put_unsigned(out, "partition", l->at->partition);
    put_unsigned(out, "number", lease->number);
    put_text(out, "state", state_text(lease->state));
    put_text(out, "projector", projector);
    put_unsigned(out, "attempt", lease->attempt);
    if (event)
        put_unsigned(out, "event", event);
    if (lease->attempt > 0) {
        put_operation(out, lease->operation);
        put_real(out, "duration", (double)lease->duration / 1e9);
    }
    put_instant(l, "leased_at", lease->leased_at);
    if (lease->state == PAWL_LEASE_LEASED)
        put_instant(l, "ends_at", (pawl_instant){lease->leased_at.ns + lease->duration});
    put_instant(l, "committed_at", lease->committed_at);
    if (lease->is_void)
        put_flag(out, "void", true);
    if (lease->words[0])
        put_text(out, "words", lease->words);
    end_line(out);
    l->left--;
    return l->left > 0 && out->status == PAWL_OK;
}

/* Leave out those that have gone meanwhile. */
static int list_some(struct listing *l, pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < l->count && l->left > 0; i++) {
        l->at = &l->lanes[i];
        uint64_t committed = l->at->watermark, from = l->query->from;
        if (l->committed) /* the last ones */
            from = committed > l->left ? committed - l->left + 1 : 1;
        status = pawl_lane_leases(l->engine, l->at->partition, l->at->lane, l->at->generation, from, l->left,
                                  put_lease, l, error);
        status = status == PAWL_ENOTFOUND ? PAWL_OK : status;
    }
    return status;
}

int pawl_lane_leases_list(pawl_engine *e, const pawl_lease_query *query, pawl_text *ret_text, pawl_error *error)
{
    struct listing l = {.engine = e, .query = query, .left = query->limit};
    if (query->one_partition && query->partition >= pawl_partitions(e))
        return error_set(error, PAWL_ENOTFOUND, "there is no partition %u", query->partition);
    json_out_init(&l.out, e->options.allocator);
    int status = pawl_lanes_read(e, query->lane, keep_lane, &l, error);
    if (status == PAWL_OK && l.failed)
        status = error_set(error, PAWL_ENOMEM, "no memory to list the lanes");
    if (status == PAWL_OK && l.count > 0)
        qsort(l.lanes, l.count, sizeof *l.lanes, in_order);
    if (status == PAWL_OK)
        status = list_some(&l, error);
    l.committed = true;
    if (status == PAWL_OK && query->from == 0)
        status = list_some(&l, error);
    mem_free(e->options.allocator, l.lanes, l.room * sizeof *l.lanes);
    return text_take(&l.out, status, ret_text, error);
}

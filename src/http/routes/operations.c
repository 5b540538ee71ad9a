/* http/routes/operations.c: the operations of a lane's log, of one partition, in pages.
 *
 * A page ends after limit operations that were asked for, or after SCANNED_MAX that were looked at: so it may be
 * short, or empty, and there is more as long as it has Pawl-Next. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/server/server.h"

#define SCANNED_MAX 10000
#define BYTES_MAX   ((size_t)8 << 20) /* of a page; the last operation may go beyond */

struct operations {
    pawl_engine *engine;
    const char *lane, *entity;                          /* entity NULL: whatever it writes */
    uint64_t partition, wsid, generation, source, from; /* wsid, source 0: of any */
    size_t limit;

    FILE *lines;
    size_t bytes, found;
    bool over; /* all behind is of later events */
    int status;
    pawl_error error;
};

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

static int is_wanted(struct operations *o, const pawl_operation *operation, bool *ret_wanted)
{
    struct search search = {.entity = o->entity};
    *ret_wanted = !o->wsid || operation->wsid == o->wsid;
    if (!*ret_wanted || !o->entity)
        return PAWL_OK;
    int status = pawl_operation_writes(operation, NULL, look_at_write, &search, &o->error);
    *ret_wanted = search.found;
    return status;
}

static bool add_operation(void *arg, const pawl_operation *operation)
{
    struct operations *o = arg;
    pawl_bytes json;
    bool wanted;
    /* Numbers are in the order of their events. */
    o->over = o->source && operation->event > o->source;
    if (o->over)
        return false;
    o->status = is_wanted(o, operation, &wanted);
    if (o->status != PAWL_OK || !wanted)
        return o->status == PAWL_OK;
    o->status = pawl_operation_json(operation, &json, &o->error);
    if (o->status != PAWL_OK)
        return false;
    fwrite(json.data, 1, json.size, o->lines);
    fputc('\n', o->lines);
    o->bytes += json.size + 1;
    return ++o->found < o->limit && o->bytes < BYTES_MAX && !ferror(o->lines);
}

/* Read what was asked. False: it is wrong, and the request was answered. */
static bool read_wish(struct exchange *x, struct operations *o)
{
    o->engine = exchange_engine(x);
    o->lane = exchange_needs(x, "lane");
    o->entity = exchange_param(x, "entity");
    const char *partition = exchange_param(x, "partition");
    if (!o->lane || !exchange_number(x, "partition", 0, UINT16_MAX, 0, &o->partition)
        || !exchange_number(x, "ws", 1, UINT64_MAX, 0, &o->wsid)
        || !exchange_number(x, "generation", 1, UINT32_MAX, 0, &o->generation)
        || !exchange_number(x, "source", 1, UINT64_MAX, 0, &o->source)
        || !exchange_number(x, "from", 1, UINT64_MAX, 1, &o->from) || !exchange_limit(x, &o->limit))
        return false;
    if (!partition == !o->wsid) {
        exchange_refuse(x, HTTP_BAD_REQUEST, PAWL_EINVAL,
                        "$query.partition: say a partition or, as ws, a workspace, which lies in one");
        return false;
    }
    if (o->wsid)
        o->partition = pawl_partition_of(o->engine, o->wsid);
    if (o->partition < pawl_partitions(o->engine))
        return true;
    exchange_refuse(x, HTTP_NOT_FOUND, PAWL_ENOTFOUND, "$query.partition: there is no partition %" PRIu64,
                    o->partition);
    return false;
}

/* Writes the lines, and says where to go on; 0: there is no more. */
static int read_page(struct operations *o, uint64_t *ret_next)
{
    uint16_t partition = (uint16_t)o->partition;
    uint32_t generation = (uint32_t)o->generation;
    uint64_t first = o->from;
    int status = PAWL_OK;
    if (o->source)
        status = pawl_operations_find(o->engine, partition, o->lane, generation, o->source, &first, &o->error);
    if (status != PAWL_OK)
        return status;
    uint64_t from = o->from > first ? o->from : first, next = from;
    status = pawl_operations_read(o->engine, partition, o->lane, generation, from, SCANNED_MAX, add_operation,
                                  o, &next, &o->error);
    status = status == PAWL_OK ? o->status : status;
    bool stopped = o->found == o->limit || o->bytes >= BYTES_MAX || next - from >= SCANNED_MAX;
    *ret_next = stopped && !o->over ? next : 0;
    return status;
}

void operations_list(struct exchange *x)
{
    struct operations o = {0};
    char *text = NULL, cursor[24];
    size_t size = 0;
    uint64_t next = 0;
    if (!read_wish(x, &o))
        return;
    o.lines = open_memstream(&text, &size);
    if (!o.lines) {
        exchange_refuse(x, HTTP_UNAVAILABLE, PAWL_ENOMEM, "no memory for operations");
        return;
    }
    int status = read_page(&o, &next);
    if (fclose(o.lines) != 0 && status == PAWL_OK)
        status = pawl_error_set(&o.error, PAWL_ENOMEM, "no memory for operations");
    snprintf(cursor, sizeof cursor, "%" PRIu64, next);
    if (status != PAWL_OK)
        exchange_fail(x, &o.error);
    else if (!next || exchange_add_next(x, cursor))
        exchange_answer_copy(x, HTTP_OK, TYPE_NDJSON, (pawl_bytes){text, size});
    free(text);
}

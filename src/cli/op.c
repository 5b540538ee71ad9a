/* cli/op.c: prints the operations of a lane's log. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/lanes.h"

struct reading {
    pawl_engine *engine;
    const char *lane;
    const char *entity; /* NULL: any */
    uint32_t generation;
    uint64_t from;
    uint64_t left;
    uint64_t source; /* 0: of any event */
    uint64_t wsid;   /* 0: of any workspace */
    uint64_t partition;
    bool one; /* only that partition */
    int status;
    pawl_error *error;
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

/* Whether the operation was asked for. */
static int is_wanted(const struct reading *r, const pawl_operation *operation, bool *ret_wanted)
{
    struct search search = {.entity = r->entity};
    *ret_wanted = !r->wsid || operation->wsid == r->wsid;
    if (!*ret_wanted || !r->entity)
        return PAWL_OK;
    int status = pawl_operation_writes(operation, NULL, look_at_write, &search, r->error);
    *ret_wanted = search.found;
    return status;
}

static bool print(void *arg, const pawl_operation *operation)
{
    struct reading *r = arg;
    pawl_bytes json;
    bool wanted;
    /* Numbers are in the order of their events. */
    if (r->source && operation->event > r->source)
        return false;
    r->status = is_wanted(r, operation, &wanted);
    if (r->status != PAWL_OK || !wanted)
        return r->status == PAWL_OK;
    r->status = pawl_operation_json(operation, &json, r->error);
    if (r->status != PAWL_OK)
        return false;
    fwrite(json.data, 1, json.size, stdout);
    putchar('\n');
    return --r->left > 0 && !ferror(stdout);
}

static int prepare(struct reading *r, const struct options *options, pawl_error *error)
{
    uint64_t generation;
    r->lane = options->arguments[0];
    r->entity = options_get(options, "entity");
    r->one = options_get(options, "partition") != NULL;
    int status = options_number(options, "partition", 0, 0, &r->partition, error);
    if (status == PAWL_OK)
        status = options_number(options, "ws", 1, 0, &r->wsid, error);
    if (status == PAWL_OK)
        status = options_number(options, "from", 1, 1, &r->from, error);
    if (status == PAWL_OK)
        status = options_number(options, "limit", 1, UINT64_MAX, &r->left, error);
    if (status == PAWL_OK)
        status = options_number(options, "source", 1, 0, &r->source, error);
    if (status == PAWL_OK)
        status = options_number(options, "generation", 1, 0, &generation, error);
    if (status == PAWL_OK && generation > UINT32_MAX)
        status = pawl_error_set(error, PAWL_EINVAL, "there is no generation %" PRIu64, generation);
    if (status == PAWL_OK && r->one && r->wsid)
        status =
            pawl_error_set(error, PAWL_EINVAL, "a workspace lies in one partition: say --ws or --partition");
    if (status == PAWL_OK && r->source && !r->one && !r->wsid)
        status = pawl_error_set(error, PAWL_EINVAL,
                                "every partition has such an event: say --partition P, or --ws WSID");
    if (status == PAWL_OK)
        r->generation = (uint32_t)generation;
    return status;
}

static int read_partition(struct reading *r, uint16_t partition, pawl_error *error)
{
    uint64_t from = r->from, first;
    if (r->source) {
        int status =
            pawl_operations_find(r->engine, partition, r->lane, r->generation, r->source, &first, error);
        if (status != PAWL_OK)
            return status;
        from = from > first ? from : first;
    }
    r->error = error;
    int status = pawl_operations_read(r->engine, partition, r->lane, r->generation, from, SIZE_MAX, print, r,
                                      NULL, error);
    return status == PAWL_OK ? r->status : status;
}

static int read_all(struct reading *r, pawl_error *error)
{
    int status = PAWL_OK;
    if (r->wsid) {
        r->one = true;
        r->partition = pawl_partition_of(r->engine, r->wsid);
    }
    if (r->one && r->partition >= pawl_partitions(r->engine))
        return pawl_error_set(error, PAWL_ENOTFOUND, "there is no partition %" PRIu64, r->partition);
    uint64_t first = r->one ? r->partition : 0, end = r->one ? r->partition + 1 : pawl_partitions(r->engine);
    for (uint64_t p = first; status == PAWL_OK && p < end && r->left > 0 && !ferror(stdout); p++)
        status = read_partition(r, (uint16_t)p, error);
    return status;
}

static int run(const struct options *options)
{
    struct reading r = {0};
    pawl_error error = {0};
    if (prepare(&r, options, &error) != PAWL_OK)
        return say_usage(&error);
    int code = open_dir(options, OPEN_TO_READ, &r.engine);
    if (code != CLI_OK)
        return code;
    return close_dir(options, r.engine, read_all(&r, &error), &error);
}

const struct command command_op_read = {
    .name = "op read",
    .summary = "show the operations of a lane, as JSON lines",
    .about = "What a lane has made of each event: the rows it wrote, with their values, or why it is void. "
             "Works beside\n"
             "a process that writes, and shows what is durable.\n",
    .arguments = {"LANE"},
    .options = {OPTION_DIR,
                {"partition", "P", "of this partition; else of all, one after the other"},
                {"ws", "WSID", "of events of this workspace"},
                {"from", "N", "begin with this number (1)"},
                {"limit", "N", "end after so many"},
                {"entity", "E", "only those that write to this entity"},
                {"source", "OFFSET", "only those of this event"},
                {"generation", "G", "of the lane (the one that serves)"},
                OPTION_JSON},
    .run = run,
};

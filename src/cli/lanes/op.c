/* cli/lanes/op.c: prints the operations of a lane's log. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/talk/session.h"

static bool print(void *arg, pawl_bytes json)
{
    (void)arg;
    fwrite(json.data, 1, json.size, stdout);
    putchar('\n');
    return !ferror(stdout);
}

static int prepare(struct operation_query *q, const struct options *options, pawl_error *error)
{
    uint64_t generation;
    q->lane = options->arguments[0];
    q->entity = options_get(options, "entity");
    q->one = options_get(options, "partition") != NULL;
    int status = options_number(options, "partition", 0, 0, &q->partition, error);
    if (status == PAWL_OK)
        status = options_number(options, "ws", 1, 0, &q->wsid, error);
    if (status == PAWL_OK)
        status = options_number(options, "from", 1, 1, &q->from, error);
    if (status == PAWL_OK)
        status = options_number(options, "limit", 1, UINT64_MAX, &q->limit, error);
    if (status == PAWL_OK)
        status = options_number(options, "source", 1, 0, &q->source, error);
    if (status == PAWL_OK)
        status = options_number(options, "generation", 1, 0, &generation, error);
    if (status == PAWL_OK && generation > UINT32_MAX)
        status = pawl_error_set(error, PAWL_EINVAL, "there is no generation %" PRIu64, generation);
    if (status == PAWL_OK && q->one && q->wsid)
        status =
            pawl_error_set(error, PAWL_EINVAL, "a workspace lies in one partition: say --ws or --partition");
    if (status == PAWL_OK && q->source && !q->one && !q->wsid)
        status = pawl_error_set(error, PAWL_EINVAL,
                                "every partition has such an event: say --partition P, or --ws WSID");
    if (status == PAWL_OK)
        q->generation = (uint32_t)generation;
    return status;
}

static int run(const struct options *options)
{
    struct operation_query query = {0};
    struct session session;
    pawl_error error = {0};
    if (prepare(&query, options, &error) != PAWL_OK)
        return say_usage(&error);
    int code = session_open(options, OPEN_TO_READ, &session);
    if (code != CLI_OK)
        return code;
    int status = session_operations(&session, &query, print, NULL, &error);
    return session_close(options, &session, status, &error);
}

const struct command command_op_read = {
    .name = "op read",
    .summary = "show the operations of a lane, as JSON lines",
    .about = "What a lane has made of each event: the rows it wrote, with their values, or why it is void. "
             "Works beside\n"
             "a process that writes, and shows what is durable.\n",
    .arguments = {"LANE"},
    .options = {OPTIONS_WHERE,
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

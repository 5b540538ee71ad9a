/* cli/seq.c: the last numbers of sequences. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/open.h"

struct listing {
    bool json;
    uint16_t partition;
};

static bool print_row(void *arg, const pawl_last_number *n)
{
    const struct listing *list = arg;
    if (list->json)
        say_json(json_pack("{s:i,s:o,s:s%,s:o}", "partition", (int)list->partition, "wsid", json_u64(n->wsid),
                           "sequence", n->sequence.data, n->sequence.size, "last", json_u64(n->number)));
    else if (n->wsid == 0)
        printf("%9u %20s  %-32.*s %20" PRIu64 "\n", list->partition, "-", (int)n->sequence.size,
               (const char *)n->sequence.data, n->number);
    else
        printf("%9u %20" PRIu64 "  %-32.*s %20" PRIu64 "\n", list->partition, n->wsid, (int)n->sequence.size,
               (const char *)n->sequence.data, n->number);
    return !ferror(stdout);
}

static int list_all(pawl_engine *engine, struct listing *list, pawl_error *error)
{
    int status = PAWL_OK;
    for (uint32_t p = 0; status == PAWL_OK && p < pawl_partitions(engine); p++) {
        list->partition = (uint16_t)p;
        status = pawl_last_numbers_read(engine, list->partition, 0, print_row, list, error);
    }
    return status;
}

static int run(const struct options *options)
{
    struct listing list = {.json = options_get(options, "json") != NULL};
    pawl_error error = {0};
    pawl_engine *engine;
    uint64_t wsid;
    if (options_number(options, "ws", 1, 0, &wsid, &error) != PAWL_OK)
        return say_usage(&error);
    int code = open_dir(options, OPEN_TO_READ, &engine);
    if (code != CLI_OK)
        return code;
    if (!list.json)
        printf("%9s %20s  %-32s %20s\n", "partition", "workspace", "sequence", "last");
    list.partition = pawl_partition_of(engine, wsid);
    int status = wsid ? pawl_last_numbers_read(engine, list.partition, wsid, print_row, &list, &error)
                      : list_all(engine, &list, &error);
    return close_dir(options, engine, status, &error);
}

const struct command command_seq_list = {
    .name = "seq list",
    .summary = "show the last number of each sequence",
    .about =
        "Of all workspaces, or of one: the numbers of its events (sys.WLogOffsetSeq), of its records\n"
        "(sys.RecIDSeq, sys.CRecIDSeq), and those of its kind's own sequences. Only what was used is there.\n"
        "A partition's own, the number of its events (sys.PLogOffsetSeq), has no workspace.\n",
    .options = {OPTION_DIR, {"ws", "WSID", "only of this workspace"}, OPTION_JSON},
    .run = run,
};

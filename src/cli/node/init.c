/* cli/node/init.c: make a directory. */
#include <stdio.h>

#include "cli/talk/open.h"

static int look(const char *dir, pawl_engine *engine, pawl_directory *ret_made, pawl_error *error)
{
    int status = pawl_close(engine);
    return status == PAWL_OK ? pawl_directory_get(dir, ret_made, error)
                             : pawl_error_set(error, status, "cannot close %s", dir);
}

static int run(const struct options *options)
{
    pawl_error error = {0};
    pawl_directory made;
    pawl_engine *engine;
    const char *dir;
    uint64_t partitions, shards;
    if (options_dir(options, &dir, &error) != PAWL_OK
        || options_number(options, "partitions", 1, 0, &partitions, &error) != PAWL_OK
        || options_number(options, "shards", 1, 0, &shards, &error) != PAWL_OK)
        return say_usage(&error);
    pawl_options how = {.must_be_new = true,
                        .partitions = partitions < UINT32_MAX ? (uint32_t)partitions : UINT32_MAX,
                        .shards = shards < UINT32_MAX ? (uint32_t)shards : UINT32_MAX,
                        .log = options_get(options, "log"),
                        .take_over = options_get(options, "take-over") != NULL};
    int code = open_owner(options, dir, &how, NULL, &engine);
    if (code != CLI_OK)
        return code;
    if (look(dir, engine, &made, &error) != PAWL_OK)
        return say_failure(options, &error);
    if (options_get(options, "json"))
        say_json(json_pack("{s:s,s:i,s:i}", "dir", dir, "partitions", (int)made.partitions, "shards",
                           (int)made.shards));
    else
        printf("made %s: %u partitions on %u shards\n", dir, made.partitions, made.shards);
    return CLI_OK;
}

const struct command command_init = {
    .name = "init",
    .summary = "make a directory",
    .about =
        "The directory must not exist, or be empty. Both numbers are for ever: a workspace stays in its\n"
        "partition, and a partition on its shard, which is a thread with a store of its own. With --log the\n"
        "log is on Kafka, and the state of what it has already is derived.\n",
    .options = {OPTION_DIR,
                OPTION_OWNED_LOG,
                OPTION_TAKE_OVER,
                {"partitions", "N",
                 "how many partitions, a power of two (16; on Kafka as many as the cluster has)"},
                {"shards", "N", "how many shards (2)"},
                OPTION_JSON},
    .run = run,
};

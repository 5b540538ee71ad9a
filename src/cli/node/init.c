/* cli/node/init.c: make a directory. */
#include <stdio.h>

#include "cli/talk/open.h"

static int make(const char *dir, const pawl_options *how, pawl_directory *ret_made, pawl_error *error)
{
    pawl_engine *engine;
    int status = pawl_open(dir, how, &engine, error);
    if (status != PAWL_OK)
        return status;
    status = pawl_close(engine);
    return status == PAWL_OK ? pawl_directory_get(dir, ret_made, error)
                             : pawl_error_set(error, status, "cannot close %s", dir);
}

static int run(const struct options *options)
{
    pawl_error error = {0};
    pawl_directory made;
    const char *dir;
    uint64_t partitions, shards;
    if (options_dir(options, &dir, &error) != PAWL_OK
        || options_number(options, "partitions", 1, 0, &partitions, &error) != PAWL_OK
        || options_number(options, "shards", 1, 0, &shards, &error) != PAWL_OK)
        return say_usage(&error);
    pawl_options how = {.must_be_new = true,
                        .partitions = partitions < UINT32_MAX ? (uint32_t)partitions : UINT32_MAX,
                        .shards = shards < UINT32_MAX ? (uint32_t)shards : UINT32_MAX};
    int status = make(dir, &how, &made, &error);
    if (status == PAWL_EINVAL)
        return say_usage(&error);
    if (status != PAWL_OK)
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
    .about = "The directory must not exist, or be empty. Both numbers are for ever: a workspace stays in its\n"
             "partition, and a partition on its shard, which is a thread with a store of its own.\n",
    .options = {OPTION_DIR,
                {"partitions", "N", "how many partitions, a power of two (16)"},
                {"shards", "N", "how many shards (2)"},
                OPTION_JSON},
    .run = run,
};

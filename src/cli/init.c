/* cli/init.c: make a directory. */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/open.h"
#include "engine/log/log.h"

/* PAWL_EEXISTS if anything is there; an empty directory, such as a volume that was just mounted, is not. */
static int must_be_new(const char *dir, pawl_error *error)
{
    bool new;
    int failed = node_is_new(dir, &new);
    if (failed == ENOENT || (failed == 0 && new))
        return PAWL_OK;
    if (failed == ENOTDIR)
        return error_set(error, PAWL_EEXISTS, "%s is there already, and is not a directory", dir);
    return failed ? error_errno(error, failed, "cannot look into %s", dir)
                  : error_set(error, PAWL_EEXISTS, "%s is there already, and is not empty", dir);
}

static int make(const char *dir, const pawl_options *how, struct node_file *ret_file, pawl_error *error)
{
    pawl_engine *engine;
    int status = must_be_new(dir, error);
    if (status == PAWL_OK)
        status = pawl_open(dir, how, &engine, error);
    if (status != PAWL_OK)
        return status;
    status = pawl_close(engine);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot close %s", dir);
    status = node_file_read(dir, ret_file, error);
    bool other =
        status == PAWL_OK
        && ((how->partitions && ret_file->partitions != how->partitions)
            || (how->shards && ret_file->shards != how->shards && ret_file->shards < ret_file->partitions));
    return other ? error_set(error, PAWL_EEXISTS, "%s was made by another process meanwhile", dir) : status;
}

static int run(const struct options *options)
{
    pawl_error error = {0};
    struct node_file file;
    const char *where, *dir;
    uint64_t partitions, shards;
    if (options_dir(options, &where, &error) != PAWL_OK
        || options_number(options, "partitions", 1, 0, &partitions, &error) != PAWL_OK
        || options_number(options, "shards", 1, 0, &shards, &error) != PAWL_OK)
        return say_usage(&error);
    pawl_options how = {.partitions = partitions < UINT32_MAX ? (uint32_t)partitions : UINT32_MAX,
                        .shards = shards < UINT32_MAX ? (uint32_t)shards : UINT32_MAX};
    int status = engine_directory(where, &dir, &error);
    if (status == PAWL_OK)
        status = make(dir, &how, &file, &error);
    if (status == PAWL_EINVAL)
        return say_usage(&error);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    if (options_get(options, "json"))
        say_json(json_pack("{s:s,s:i,s:i}", "dir", dir, "partitions", (int)file.partitions, "shards",
                           (int)file.shards));
    else
        printf("made %s: %u partitions on %u shards\n", dir, file.partitions, file.shards);
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

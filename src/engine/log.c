#include "engine/log.h"

#include <string.h>

#include "adapter/journal/journal.h"
#include "adapter/uv/env.h"
#include "base/alloc.h"
#include "base/error.h"
#include "engine/cluster.h"

#define POOL_THREADS 2

struct engine_log {
    struct uv_env *env;
    pawl_log *log;
};

int engine_directory(const char *where, const char **ret_dir, pawl_error *error)
{
    static const char file[] = "file://", kafka[] = "kafka://";
    const char *dir = where;
    if (strncmp(where, kafka, sizeof kafka - 1) == 0)
        return error_set(error, PAWL_EINVAL, "%s is not a directory", where);
    if (strncmp(where, file, sizeof file - 1) == 0)
        dir = where + sizeof file - 1;
    else if (strstr(where, "://"))
        return error_set(error, PAWL_EINVAL, "%s is not the name of a log: expected a directory or file://DIR",
                         where);
    if (dir[0] == '\0')
        return error_set(error, PAWL_EINVAL, "the name of a log is empty");
    *ret_dir = dir;
    return PAWL_OK;
}

int engine_log_directory(const char *where, char *path, bool *ret_engine, pawl_error *error)
{
    const char *dir;
    struct node_file file;
    int status = engine_directory(where, &dir, error);
    if (status != PAWL_OK)
        return status;
    status = node_file_read(dir, &file, error);
    if (status != PAWL_OK && status != PAWL_ENOTFOUND)
        return status;
    bool engine = status == PAWL_OK;
    if (engine && file.log[0])
        memcpy(path, file.log, sizeof file.log);
    else if (engine)
        status = node_path(dir, path, error, "log");
    else if (strlen(dir) < NODE_PATH_MAX)
        memcpy(path, dir, strlen(dir) + 1);
    else
        return error_set(error, PAWL_ETOOBIG, "%.100s...: the path is too long", dir);
    if (engine && status != PAWL_OK)
        return status;
    if (ret_engine)
        *ret_engine = engine;
    return PAWL_OK;
}

static int open_on(pawl_env *env, const char *where, bool read_only, pawl_log **ret_log, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    if (cluster_is(where))
        return cluster_open(where, env, ret_log, error);
    struct journal_options journal = {.dir = path, .env = env, .read_only = read_only};
    int status = engine_log_directory(where, path, NULL, error);
    return status == PAWL_OK ? journal_open(&journal, ret_log, error) : status;
}

int engine_log_open(const char *where, bool read_only, struct engine_log **ret_log, pawl_error *error)
{
    int status;
    struct engine_log *log = mem_new(NULL, 1, sizeof *log);
    if (!log)
        return error_set(error, PAWL_ENOMEM, "no memory to open %s", where);
    struct uv_env_options env = {.shards = 1, .pool_threads = POOL_THREADS};
    status = uv_env_open(&env, &log->env, error);
    if (status != PAWL_OK)
        goto no_env;
    status = open_on(uv_env_port(log->env), where, read_only, &log->log, error);
    if (status != PAWL_OK)
        goto no_log;
    *ret_log = log;
    return PAWL_OK;

no_log:
    uv_env_close(log->env);
no_env:
    mem_free(NULL, log, sizeof *log);
    return status;
}

int engine_log_close(struct engine_log *log)
{
    int status = pawl_log_close(log->log);
    if (status == PAWL_EMISUSE)
        return status;
    uv_env_close(log->env);
    mem_free(NULL, log, sizeof *log);
    return status;
}

pawl_log *engine_log_port(struct engine_log *log)
{
    return log->log;
}

pawl_env *engine_log_env(struct engine_log *log)
{
    return uv_env_port(log->env);
}

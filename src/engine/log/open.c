#include "engine/log/log.h"

#include <string.h>
#include <unistd.h>

#include "adapter/journal/journal.h"
#include "adapter/uv/env.h"
#include "base/alloc.h"
#include "base/error.h"
#include "engine/log/cluster.h"
#include "engine/log/witness.h"

#define POOL_THREADS 2

struct engine_log {
    struct uv_env *env;
    pawl_log *log;
};

int engine_directory(const char *where, const char **ret_dir, pawl_error *error)
{
    static const char file[] = "file://";
    const char *dir = where;
    if (cluster_is(where))
        return error_set(error, PAWL_EINVAL, "%s is not a directory", where);
    if (strncmp(where, file, sizeof file - 1) == 0)
        dir = where + sizeof file - 1;
    else if (strstr(where, "://"))
        return error_set(error, PAWL_EINVAL, "%s is not the name of a log: expected a directory or file://DIR",
                         where);
    if (dir[0] == '\0')
        return error_set(error, PAWL_EINVAL, "the name of a directory is empty");
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

_Static_assert(NODE_PATH_MAX == PAWL_PATH_MAX, "every path of Pawl's fits into a caller's");

int pawl_directory_get(const char *where, pawl_directory *ret_directory, pawl_error *error)
{
    pawl_directory directory;
    struct node_file file;
    const char *dir;
    int status = engine_directory(where, &dir, error);
    if (status == PAWL_OK)
        status = node_file_read(dir, &file, error);
    if (status == PAWL_OK)
        status = engine_log_directory(where, directory.log, NULL, error);
    if (status != PAWL_OK)
        return status;
    directory.partitions = file.partitions;
    directory.shards = file.shards;
    directory.derived = node_is_derived(&file);
    *ret_directory = directory;
    return PAWL_OK;
}

pawl_place engine_log_witness(const char *where)
{
    const char *dir;
    struct node_file file;
    pawl_place highest = {0};
    if (engine_directory(where, &dir, NULL) == PAWL_OK && node_file_read(dir, &file, NULL) == PAWL_OK
        && !file.log[0])
        witness_of_directory(dir, &file, &highest);
    return highest;
}

static void count_streams(void *arg, pawl_stream stream, uint64_t first, uint64_t count)
{
    (void)stream, (void)first, (void)count;
    ++*(uint64_t *)arg;
}

/* Whether the files have entries that nothing in them proves durable, and no process is writing. */
static bool lacks_witness(pawl_log *log)
{
    uint64_t streams = 0;
    return !journal_has_writer(log) && journal_unwitnessed(log, count_streams, &streams, NULL) == PAWL_OK
           && streams > 0;
}

/* The stores are opened only if their witness is needed: opening one writes to LMDB's table of readers. */
static int open_to_read(pawl_env *env, const char *where, const char *path, pawl_log **ret_log,
                        pawl_error *error)
{
    struct journal_options journal = {.dir = path, .env = env, .read_only = true};
    int status = journal_open(&journal, ret_log, error);
    if (status == PAWL_OK && lacks_witness(*ret_log))
        journal_witness(*ret_log, engine_log_witness(where));
    return status;
}

static int open_to_write(pawl_env *env, const char *where, const char *path, pawl_log **ret_log,
                         pawl_error *error)
{
    pawl_place witness = engine_log_witness(where);
    struct journal_options journal = {.dir = path, .env = env, .witnesses = &witness, .witness_count = 1};
    return journal_open(&journal, ret_log, error);
}

int pawl_log_open(const char *where, const pawl_log_options *options, pawl_log **ret_log, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    if (!options || !options->env)
        return error_set(error, PAWL_EINVAL, "a log needs an env to run on");
    if (cluster_is(where))
        return cluster_open(where, options->env, 0, ret_log, error);
    int status = engine_log_directory(where, path, NULL, error);
    if (status != PAWL_OK)
        return status;
    if (cluster_is(path))
        return options->read_only
                   ? cluster_open(path, options->env, 0, ret_log, error)
                   : error_set(error, PAWL_EINVAL, "the log of %s is %s: name that", where, path);
    return options->read_only ? open_to_read(options->env, where, path, ret_log, error)
                              : open_to_write(options->env, where, path, ret_log, error);
}

/* node: 0: whoever opens it. */
static int open_with_env(const char *where, bool read_only, uint64_t node, struct engine_log **ret_log,
                         pawl_error *error)
{
    int status;
    struct engine_log *log = mem_new(NULL, 1, sizeof *log);
    if (!log)
        return error_set(error, PAWL_ENOMEM, "no memory to open %s", where);
    struct uv_env_options env = {.shards = 1, .pool_threads = POOL_THREADS};
    status = uv_env_open(&env, &log->env, error);
    if (status != PAWL_OK)
        goto no_env;
    pawl_log_options options = {.env = uv_env_port(log->env), .read_only = read_only};
    status = node ? cluster_open(where, options.env, node, &log->log, error)
                  : pawl_log_open(where, &options, &log->log, error);
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

int engine_log_open(const char *where, bool read_only, struct engine_log **ret_log, pawl_error *error)
{
    return open_with_env(where, read_only, 0, ret_log, error);
}

int engine_log_open_as(const char *url, uint64_t node, struct engine_log **ret_log, pawl_error *error)
{
    return open_with_env(url, false, node, ret_log, error);
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

/* Whether a writer that opens it now would find something to recover. */
static int find_unwitnessed(const char *where, bool *ret_found, pawl_error *error)
{
    struct engine_log *log;
    uint64_t streams = 0;
    int status = engine_log_open(where, true, &log, error);
    if (status != PAWL_OK)
        return status;
    status = journal_unwitnessed(log->log, count_streams, &streams, error);
    (void)engine_log_close(log);
    *ret_found = streams > 0;
    return status;
}

/* Take the lock of an engine's directory, if where names one. */
static int lock_directory(const char *where, int *ret_lock, pawl_error *error)
{
    const char *dir;
    struct node_file file;
    int status = engine_directory(where, &dir, error);
    if (status == PAWL_OK)
        status = node_file_read(dir, &file, error);
    if (status != PAWL_OK)
        return status == PAWL_ENOTFOUND ? PAWL_OK : status;
    if (file.log[0])
        return error_set(error, PAWL_EREADONLY,
                         "%s holds only state, derived from the log in %s: recover that one", dir, file.log);
    return node_lock(dir, NODE_LOCK, ret_lock, error);
}

int pawl_log_recover(const char *where, pawl_error *error)
{
    struct engine_log *log;
    int lock = -1;
    bool found = false;
    char path[NODE_PATH_MAX];
    int status = cluster_is(where) ? PAWL_OK : engine_log_directory(where, path, NULL, error);
    if (status != PAWL_OK)
        return status;
    if (cluster_is(where) || cluster_is(path))
        return error_set(error, PAWL_EINVAL, "a log on Kafka leaves nothing to recover");
    status = find_unwitnessed(where, &found, error);
    if (status != PAWL_OK || !found)
        return status;
    status = lock_directory(where, &lock, error);
    if (status == PAWL_OK)
        status = engine_log_open(where, false, &log, error);
    if (status == PAWL_OK)
        status = engine_log_close(log);
    if (lock >= 0)
        close(lock);
    return status;
}

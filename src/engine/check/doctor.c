/* engine/check/doctor.c: copies what is still readable of a damaged log. */
#include <pawl/admin.h>

#include "adapter/journal/salvage.h"
#include "adapter/uv/env.h"
#include "base/error.h"
#include "engine/log/log.h"

int pawl_doctor(const char *where, const char *to, pawl_progress progress, void *arg,
                pawl_doctor_report *ret_report, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    struct journal_salvage_options options = {.dir = path, .to = to, .progress = progress, .arg = arg};
    int status = engine_log_directory(where, path, NULL, error);
    if (status == PAWL_OK && cluster_is(path))
        status =
            error_set(error, PAWL_EINVAL,
                      "the log of %s is %.300s, of which the brokers have copies: 'pawl verify --log' names "
                      "what is damaged there",
                      where, path);
    if (status != PAWL_OK)
        return status;
    struct uv_env *env;
    status = uv_env_open(&(struct uv_env_options){.shards = 1, .pool_threads = 1}, &env, error);
    if (status != PAWL_OK)
        return status;
    options.env = uv_env_port(env);
    status = journal_salvage(&options, ret_report, error);
    uv_env_close(env);
    return status;
}

/* engine/check/verify.c: verifies the log of a directory, or of a journal. */
#include <pawl/admin.h>

#include "adapter/journal/verify.h"
#include "base/error.h"
#include "engine/log/log.h"

int pawl_verify_log(const char *where, pawl_progress progress, void *arg, pawl_log_report *ret_report,
                    pawl_error *error)
{
    char path[NODE_PATH_MAX];
    struct journal_verify_options options = {.dir = path, .progress = progress, .arg = arg};
    int status = engine_log_directory(where, path, NULL, error);
    if (status == PAWL_OK && cluster_is(path))
        status = error_set(
            error, PAWL_EINVAL,
            "the log of %s is %.300s: verify that one (pawl_cluster_verify, 'pawl verify --log')", where, path);
    if (status == PAWL_OK)
        options.witness = engine_log_witness(where);
    return status == PAWL_OK ? journal_verify(&options, ret_report, error) : status;
}

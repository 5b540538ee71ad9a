#include "engine/verify.h"

#include "engine/log.h"

int engine_verify(const char *where, void (*progress)(void *arg, uint64_t done, uint64_t of_bytes), void *arg,
                  struct journal_verify_report *ret_report, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    struct journal_verify_options options = {.dir = path, .progress = progress, .arg = arg};
    int status = engine_log_directory(where, path, NULL, error);
    if (status == PAWL_OK)
        options.witness = engine_log_witness(where);
    return status == PAWL_OK ? journal_verify(&options, ret_report, error) : status;
}

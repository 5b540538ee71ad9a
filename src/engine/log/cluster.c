#include "engine/log/cluster.h"

#include <string.h>

#include "base/error.h"
#include "engine/log/log.h"

bool cluster_is(const char *where)
{
    return strncmp(where, "kafka://", 8) == 0;
}

#if defined(PAWL_CLUSTER)

int cluster_open(const char *url, pawl_env *env, pawl_log **ret_log, pawl_error *error)
{
    const struct kafka_log_options options = {.url = url, .env = env};
    return kafka_log_open(&options, ret_log, error);
}

int engine_cluster_init(const char *url, uint32_t partitions, uint16_t replication, pawl_error *error)
{
    return kafka_cluster_init(url, partitions, replication, error);
}

int engine_cluster_check(const char *url, uint16_t replication, struct kafka_cluster_report *ret_report,
                         pawl_error *error)
{
    return kafka_cluster_check(url, replication, ret_report, error);
}

int engine_cluster_verify(const char *url, void (*progress)(void *arg, uint64_t done, uint64_t of_records),
                          void *arg, struct kafka_verify_report *ret_report, pawl_error *error)
{
    struct engine_log *log;
    *ret_report = (struct kafka_verify_report){0};
    int status = engine_log_open(url, true, &log, error);
    if (status != PAWL_OK)
        return status;
    status = kafka_verify(engine_log_port(log), progress, arg, ret_report, error);
    (void)engine_log_close(log);
    return status;
}

void engine_cluster_verify_release(struct kafka_verify_report *report)
{
    kafka_verify_release(report);
}

#else

static int refuse(const char *url, pawl_error *error)
{
    return error_set(error, PAWL_EINVAL, "%s: this build has no Kafka", url);
}

int cluster_open(const char *url, pawl_env *env, pawl_log **ret_log, pawl_error *error)
{
    return refuse(url, error);
}

int engine_cluster_init(const char *url, uint32_t partitions, uint16_t replication, pawl_error *error)
{
    return refuse(url, error);
}

int engine_cluster_check(const char *url, uint16_t replication, struct kafka_cluster_report *ret_report,
                         pawl_error *error)
{
    return refuse(url, error);
}

int engine_cluster_verify(const char *url, void (*progress)(void *arg, uint64_t done, uint64_t of_records),
                          void *arg, struct kafka_verify_report *ret_report, pawl_error *error)
{
    *ret_report = (struct kafka_verify_report){0};
    return refuse(url, error);
}

void engine_cluster_verify_release(struct kafka_verify_report *report)
{
}

#endif

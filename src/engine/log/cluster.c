#include "engine/log/cluster.h"

#include <string.h>

#include "base/error.h"

bool cluster_is(const char *where)
{
    return strncmp(where, "kafka://", 8) == 0;
}

#if defined(PAWL_CLUSTER)

#include "adapter/kafka/kafka.h"
#include "adapter/kafka/url.h"
#include "adapter/mirror/mirror.h"
#include "engine/log/log.h"

#define PARTITIONS_DEFAULT 16

int cluster_url_check(const char *url, pawl_error *error)
{
    struct kafka_url parsed;
    return kafka_url_parse(url, &parsed, error);
}

int cluster_open(const char *url, pawl_env *env, uint64_t node, pawl_log **ret_log, pawl_error *error)
{
    const struct kafka_log_options options = {.url = url, .env = env, .node = node};
    return kafka_log_open(&options, ret_log, error);
}

int cluster_scan(pawl_log *log, pawl_stream stream, cluster_scan_visit visit, void *arg, pawl_error *error)
{
    return kafka_scan(log, stream, visit, arg, error);
}

void cluster_known(pawl_log *log, uint64_t records,
                   void (*visit)(void *arg, pawl_stream stream, pawl_bytes known), void *arg)
{
    kafka_log_known(log, records, visit, arg);
}

int cluster_learn(pawl_log *log, pawl_stream stream, pawl_bytes known)
{
    return kafka_log_learn(log, stream, known);
}

int cluster_mirror_open(pawl_log *log, pawl_env *env, const pawl_allocator *alloc,
                        const struct cluster_mirror *mirror, pawl_log **ret_log, pawl_error *error)
{
    const struct mirror_options options = {.dir = mirror->dir,
                                           .id = mirror->id,
                                           .boot_id = mirror->boot_id,
                                           .bytes_max = mirror->bytes_max,
                                           .env = env,
                                           .alloc = alloc,
                                           .log = log};
    return mirror_open(&options, ret_log, error);
}

void cluster_mirror_look(pawl_log *log, pawl_mirror_figures *ret_figures)
{
    mirror_figures(log, ret_figures);
}

int cluster_identity_get(const char *url, struct cluster_identity *ret_identity, pawl_error *error)
{
    struct kafka_identity found;
    _Static_assert(sizeof found.kafka == sizeof ret_identity->kafka, "an ID that is found can be kept");
    int status = kafka_cluster_identity(url, &found, error);
    if (status != PAWL_OK)
        return status;
    ret_identity->partitions = found.partitions;
    memcpy(ret_identity->kafka, found.kafka, sizeof found.kafka);
    return PAWL_OK;
}

bool cluster_is_same(const char *url, const char *other)
{
    struct kafka_url a, b;
    return kafka_url_parse(url, &a, NULL) == PAWL_OK && kafka_url_parse(other, &b, NULL) == PAWL_OK
           && strcmp(a.cluster, b.cluster) == 0;
}

int pawl_cluster_init(const char *url, uint32_t partitions, uint16_t replication, pawl_error *error)
{
    return kafka_cluster_init(url, partitions ? partitions : PARTITIONS_DEFAULT, replication, error);
}

int pawl_cluster_check(const char *url, uint16_t replication, pawl_cluster_topics *ret_topics,
                       pawl_error *error)
{
    return kafka_cluster_check(url, replication, ret_topics, error);
}

void cluster_look(pawl_log *log, pawl_log_figures *ret_figures)
{
    kafka_log_look(log, ret_figures);
}

size_t cluster_claims(pawl_log *log, pawl_claim_figures *claims, size_t room)
{
    return kafka_log_claims(log, claims, room);
}

void cluster_acks(pawl_log *log, uint32_t seconds, pawl_histogram *sum)
{
    kafka_log_acks(log, seconds, sum);
}

uint64_t cluster_records_read(pawl_log *log)
{
    struct kafka_figures figures;
    kafka_log_figures(log, &figures);
    return figures.read;
}

int cluster_outage(pawl_log *log, pawl_error *ret_error)
{
    return kafka_log_outage(log, ret_error);
}

int cluster_weakness(pawl_log *log, pawl_error *ret_error)
{
    return kafka_log_weakness(log, ret_error);
}

int pawl_cluster_verify(const char *url, pawl_progress progress, void *arg, pawl_cluster_report *ret_report,
                        pawl_error *error)
{
    struct engine_log *log;
    if (!cluster_is(url))
        return error_set(error, PAWL_EINVAL, "%s: a log on Kafka is kafka://HOST:PORT/CLUSTER", url);
    int status = engine_log_open(url, true, &log, error);
    if (status != PAWL_OK)
        return status;
    status = kafka_verify(engine_log_port(log), progress, arg, ret_report, error);
    (void)engine_log_close(log);
    return status;
}

static int copy_text(char to[256], const char *text, const char *what, pawl_error *error)
{
    size_t size = text ? strlen(text) : 0;
    if (size == 0 || size > 255)
        return error_set(error, PAWL_EINVAL, "%s: at least 1 byte, at most 255", what);
    memcpy(to, text, size + 1);
    return PAWL_OK;
}

int pawl_cluster_skip(const char *url, pawl_stream stream, uint64_t at, const char *who, const char *reason,
                      pawl_cluster_skipped *ret_skipped, pawl_error *error)
{
    struct engine_log *log;
    pawl_cluster_skipped wanted = {.stream = stream, .at = at};
    if (!cluster_is(url))
        return error_set(error, PAWL_EINVAL, "%s: a log on Kafka is kafka://HOST:PORT/CLUSTER", url);
    int status = copy_text(wanted.who, who, "who skips it", error);
    if (status == PAWL_OK)
        status = copy_text(wanted.reason, reason, "why it is skipped", error);
    if (status == PAWL_OK)
        status = engine_log_open(url, true, &log, error);
    if (status != PAWL_OK)
        return status;
    wanted.time = pawl_env_wall_now(engine_log_env(log));
    status = kafka_skip(engine_log_port(log), &wanted, ret_skipped, error);
    (void)engine_log_close(log);
    return status;
}

void pawl_cluster_report_release(pawl_cluster_report *report)
{
    kafka_verify_release(report);
}

#else

static int refuse(const char *url, pawl_error *error)
{
    return error_set(error, PAWL_EINVAL, "%s: this build has no Kafka", url);
}

int cluster_url_check(const char *url, pawl_error *error)
{
    return refuse(url, error);
}

int cluster_open(const char *url, pawl_env *env, uint64_t node, pawl_log **ret_log, pawl_error *error)
{
    return refuse(url, error);
}

int cluster_scan(pawl_log *log, pawl_stream stream, cluster_scan_visit visit, void *arg, pawl_error *error)
{
    return refuse("kafka://", error);
}

void cluster_known(pawl_log *log, uint64_t records,
                   void (*visit)(void *arg, pawl_stream stream, pawl_bytes known), void *arg)
{
}

int cluster_learn(pawl_log *log, pawl_stream stream, pawl_bytes known)
{
    return PAWL_EINVAL;
}

int cluster_mirror_open(pawl_log *log, pawl_env *env, const pawl_allocator *alloc,
                        const struct cluster_mirror *mirror, pawl_log **ret_log, pawl_error *error)
{
    *ret_log = log;
    return PAWL_OK;
}

void cluster_mirror_look(pawl_log *log, pawl_mirror_figures *ret_figures)
{
}

int cluster_identity_get(const char *url, struct cluster_identity *ret_identity, pawl_error *error)
{
    return refuse(url, error);
}

bool cluster_is_same(const char *url, const char *other)
{
    return strcmp(url, other) == 0;
}

int pawl_cluster_init(const char *url, uint32_t partitions, uint16_t replication, pawl_error *error)
{
    return refuse(url, error);
}

int pawl_cluster_check(const char *url, uint16_t replication, pawl_cluster_topics *ret_topics,
                       pawl_error *error)
{
    return refuse(url, error);
}

int pawl_cluster_verify(const char *url, pawl_progress progress, void *arg, pawl_cluster_report *ret_report,
                        pawl_error *error)
{
    return refuse(url, error);
}

int pawl_cluster_skip(const char *url, pawl_stream stream, uint64_t at, const char *who, const char *reason,
                      pawl_cluster_skipped *ret_skipped, pawl_error *error)
{
    return refuse(url, error);
}

void pawl_cluster_report_release(pawl_cluster_report *report)
{
}

void cluster_look(pawl_log *log, pawl_log_figures *ret_figures)
{
}

size_t cluster_claims(pawl_log *log, pawl_claim_figures *claims, size_t room)
{
    return 0;
}

void cluster_acks(pawl_log *log, uint32_t seconds, pawl_histogram *sum)
{
}

uint64_t cluster_records_read(pawl_log *log)
{
    return 0;
}

int cluster_outage(pawl_log *log, pawl_error *ret_error)
{
    return PAWL_OK;
}

int cluster_weakness(pawl_log *log, pawl_error *ret_error)
{
    return PAWL_OK;
}

#endif

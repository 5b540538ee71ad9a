/* cli/care/cluster.c: makes and checks the topics of a cluster on Kafka. */
#include <pawl/cluster.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/care/verify_cluster.h"
#include "cli/show/say.h"

#define REPLICATION_MAX 100

static int prepare(const struct options *options, const char **ret_url, uint64_t *ret_replication,
                   pawl_error *error)
{
    const char *url = options_get(options, "log");
    *ret_replication = 0;
    if (!url)
        return pawl_error_set(error, PAWL_EINVAL, "which cluster? Say --log kafka://HOST:PORT/CLUSTER");
    if (!options_is_cluster(url))
        return pawl_error_set(error, PAWL_EINVAL, "--log %s: a cluster's log is kafka://HOST:PORT/CLUSTER",
                              url);
    int status = options_number(options, "replication", 1, 0, ret_replication, error);
    if (status == PAWL_OK && *ret_replication > REPLICATION_MAX)
        status = pawl_error_set(error, PAWL_EINVAL, "--replication: at most %d", REPLICATION_MAX);
    *ret_url = url;
    return status;
}

static int say_report(const struct options *options, const char *url, uint16_t replication)
{
    pawl_cluster_topics t;
    pawl_error error = {0};
    if (pawl_cluster_check(url, replication, &t, &error) != PAWL_OK)
        return say_failure(options, &error);
    if (options_get(options, "json"))
        say_json(json_pack("{s:i,s:i,s:i,s:b,s:i}", "topics", (int)t.topics, "partitions", (int)t.partitions,
                           "replication", (int)t.replication, "broker_sync", (int)t.broker_sync, "skipped",
                           (int)t.skipped));
    else
        printf("%u topics, %u partitions, at least %u replicas%s: good\n", t.topics, t.partitions,
               t.replication, t.broker_sync ? "" : ", not synced by the brokers");
    if (!options_get(options, "json") && t.skipped > 0)
        printf("%u %s skipped: 'pawl verify --log %s' shows them\n", t.skipped,
               t.skipped == 1 ? "record is" : "records are", url);
    int status = say_finish(&error);
    return status == PAWL_OK || status == PAWL_ECLOSED ? CLI_OK : say_failure(options, &error);
}

static int run_init(const struct options *options)
{
    pawl_error error = {0};
    const char *url = NULL;
    uint64_t replication = 0, partitions = 0;
    int status = prepare(options, &url, &replication, &error);
    if (status == PAWL_OK)
        status = options_number(options, "partitions", 1, 16, &partitions, &error);
    if (status == PAWL_OK && (partitions > PAWL_PARTITIONS_MAX || (partitions & (partitions - 1)) != 0))
        status = pawl_error_set(&error, PAWL_EINVAL, "--partitions: a power of two, at most %d",
                                PAWL_PARTITIONS_MAX);
    if (status != PAWL_OK)
        return say_usage(&error);
    if (pawl_cluster_init(url, (uint32_t)partitions, (uint16_t)replication, &error) != PAWL_OK)
        return say_failure(options, &error);
    return say_report(options, url, (uint16_t)replication);
}

static int run_check(const struct options *options)
{
    pawl_error error = {0};
    const char *url = NULL;
    uint64_t replication = 0;
    if (prepare(options, &url, &replication, &error) != PAWL_OK)
        return say_usage(&error);
    return say_report(options, url, (uint16_t)replication);
}

#define OPTION_REPLICATION                                                                                     \
    {                                                                                                          \
        "replication", "N", "topics have at least so many replicas (3, or as the URL says)"                    \
    }

/* USER@HOST, unless it was said. */
static void name_who(const struct options *options, char who[256])
{
    const char *said = options_get(options, "who"), *user = getenv("USER");
    char host[128] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    if (said)
        snprintf(who, 256, "%.255s", said);
    else
        snprintf(who, 256, "%.100s@%s", user && *user ? user : "somebody", host[0] ? host : "somewhere");
}

static int read_skip(const struct options *options, const char **ret_url, pawl_stream *ret_stream,
                     uint64_t *ret_at, pawl_error *error)
{
    const char *stream = options_get(options, "stream"), *reason = options_get(options, "reason");
    *ret_url = options_get(options, "log");
    if (!*ret_url || !options_is_cluster(*ret_url))
        return pawl_error_set(error, PAWL_EINVAL, "which cluster? Say --log kafka://HOST:PORT/CLUSTER");
    if (!stream || !options_get(options, "at") || !reason || !*reason)
        return pawl_error_set(error, PAWL_EINVAL,
                              "which record, and why? Say --stream STREAM --at OFFSET --reason TEXT");
    if (strlen(reason) > 255 || (options_get(options, "who") && strlen(options_get(options, "who")) > 255))
        return pawl_error_set(error, PAWL_EINVAL, "--reason and --who: at most 255 bytes");
    int status = pawl_stream_parse(stream, ret_stream, error);
    return status == PAWL_OK ? options_number(options, "at", 0, 0, ret_at, error) : status;
}

static int run_skip(const struct options *options)
{
    pawl_error error = {0};
    const char *url;
    pawl_stream stream;
    uint64_t at;
    char who[256], name[PAWL_STREAM_TEXT_MAX];
    pawl_cluster_skipped skipped;
    if (read_skip(options, &url, &stream, &at, &error) != PAWL_OK)
        return say_usage(&error);
    name_who(options, who);
    if (pawl_cluster_skip(url, stream, at, who, options_get(options, "reason"), &skipped, &error) != PAWL_OK)
        return say_failure(options, &error);
    pawl_stream_format(stream, name);
    if (options_get(options, "json"))
        say_json(skipped_json(&skipped));
    else
        printf("%s: the record at Kafka offset %" PRIu64
               " is skipped from now on%s. Open again what has stopped there\n",
               name, at, skipped.damaged ? "; it was damaged, and if it was an entry, that entry is lost" : "");
    int status = say_finish(&error);
    return status == PAWL_OK || status == PAWL_ECLOSED ? CLI_OK : say_failure(options, &error);
}

const struct command command_cluster_init = {
    .name = "cluster init",
    .summary = "create the topics of a log on Kafka",
    .about =
        "Creates the topics that are not there yet, with settings under which nothing acknowledged is lost,\n"
        "and checks all. Topics that are there are not changed.\n",
    .options = {{"log", "URL", "kafka://HOST:PORT[,HOST:PORT...]/CLUSTER", .needed = true},
                {"partitions", "P", "of plog and raw: a power of two (16)"},
                OPTION_REPLICATION,
                OPTION_JSON},
    .run = run_init,
};

const struct command command_cluster_check = {
    .name = "cluster check",
    .summary = "check the topics of a log on Kafka",
    .about = "Looks at every topic's replicas and settings. Ends with 1, naming the topic and the setting, if "
             "one is\n"
             "too weak for what Pawl promises. Changes nothing.\n",
    .options = {{"log", "URL", "kafka://HOST:PORT[,HOST:PORT...]/CLUSTER", .needed = true},
                OPTION_REPLICATION,
                OPTION_JSON},
    .run = run_check,
};

const struct command command_cluster_skip = {
    .name = "cluster skip",
    .summary = "skip a record that is not Pawl's, or is damaged, and stops its stream",
    .about = "Decides, for everybody and for ever, that one Kafka record of a stream is passed as if it were "
             "not there.\n"
             "'pawl verify --log URL' names such a record, and shows the decision afterwards, with who, when "
             "and why. A\n"
             "sound record of Pawl's is never skipped, and neither is one that entries behind it rest on. What "
             "was opened\n"
             "before stops at the record: open it again.\n",
    .options = {{"log", "URL", "kafka://HOST:PORT[,HOST:PORT...]/CLUSTER", .needed = true},
                {"stream", "STREAM", "raw/0, plog/5, oplog/5/7.2 or group0", .needed = true},
                {"at", "OFFSET", "Kafka's offset of the record", .needed = true},
                {"reason", "TEXT", "why, at most 255 bytes", .needed = true},
                {"who", "NAME", "who decides it (USER@HOST)"},
                OPTION_JSON},
    .run = run_skip,
};

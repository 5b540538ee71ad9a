/* cli/care/cluster.c: makes and checks the topics of a cluster on Kafka. */
#include <pawl/cluster.h>

#include <stdio.h>

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
        say_json(json_pack("{s:i,s:i,s:i,s:b}", "topics", (int)t.topics, "partitions", (int)t.partitions,
                           "replication", (int)t.replication, "broker_sync", (int)t.broker_sync));
    else
        printf("%u topics, %u partitions, at least %u replicas%s: good\n", t.topics, t.partitions,
               t.replication, t.broker_sync ? "" : ", not synced by the brokers");
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

/* adapter/kafka/cluster.c: the topics of a cluster, made and checked as a whole. */
#include <stdio.h>
#include <string.h>

#include "adapter/kafka/kafka.h"
#include "adapter/kafka/oplogs.h"
#include "adapter/kafka/skips.h"
#include "adapter/kafka/topics.h"
#include "base/error.h"
#include "base/id.h"

static int open_client(const char *text, uint16_t replication, struct kafka_url *url, rd_kafka_t **ret_client,
                       pawl_error *error)
{
    int status = kafka_url_parse(text, url, error);
    if (status == PAWL_OK && replication > 0)
        url->replication = replication;
    if (status == PAWL_OK)
        status = client_open(url, CLIENT_CONSUMER, ret_client, error);
    return status;
}

int kafka_cluster_init(const char *text, uint32_t partitions, uint16_t replication, pawl_error *error)
{
    struct kafka_url url;
    rd_kafka_t *client;
    if (partitions == 0 || partitions > PARTITIONS_MAX || (partitions & (partitions - 1)) != 0)
        return error_set(error, PAWL_EINVAL, "the number of partitions is a power of two, from 1 to %u",
                         PARTITIONS_MAX);
    int status = open_client(text, replication, &url, &client, error);
    if (status != PAWL_OK)
        return status;
    for (size_t i = 0; i < TOPIC_KINDS && status == PAWL_OK; i++) {
        char topic[KAFKA_TOPIC_MAX];
        uint32_t wanted = topic_kinds[i] == PAWL_STREAM_GROUP0 ? 1 : partitions, has = 0;
        kafka_topic_of(url.cluster, (pawl_stream){.kind = topic_kinds[i]}, topic);
        status = topic_create(client, &url, topic, wanted, error);
        if (status == PAWL_OK)
            status = topic_check(client, &url, topic, &has, error);
        if (status == PAWL_OK && has != wanted)
            status = error_set(error, PAWL_EEXISTS, "topic %s is there already, with %u partitions, not %u",
                               topic, has, wanted);
    }
    client_close(client);
    return status;
}

/* An ID is a word: a line of a file has it behind another. */
static int take_id(rd_kafka_t *client, char ret_id[KAFKA_ID_MAX], pawl_error *error)
{
    char *id = rd_kafka_clusterid(client, 0); /* it came with the answer about the topic */
    int status = PAWL_OK;
    ret_id[0] = '\0';
    if (id && (strlen(id) >= KAFKA_ID_MAX || strpbrk(id, " \t\r\n")))
        status =
            error_set(error, PAWL_EINVAL, "the brokers tell an ID of their cluster that is none: '%.64s'", id);
    else if (id)
        memcpy(ret_id, id, strlen(id) + 1);
    if (id)
        rd_kafka_mem_free(client, id);
    return status;
}

int kafka_cluster_identity(const char *text, struct kafka_identity *ret_identity, pawl_error *error)
{
    struct kafka_url url;
    struct kafka_identity identity = {0};
    rd_kafka_t *client;
    char topic[KAFKA_TOPIC_MAX];
    int status = open_client(text, 0, &url, &client, error);
    if (status != PAWL_OK)
        return status;
    kafka_topic_of(url.cluster, (pawl_stream){.kind = PAWL_STREAM_PLOG}, topic);
    status = topic_find(client, &url, topic, 0, false, &identity.partitions, error);
    if (status == PAWL_OK)
        status = take_id(client, identity.kafka, error);
    client_close(client);
    if (status == PAWL_OK)
        *ret_identity = identity;
    return status;
}

struct checking {
    rd_kafka_t *client;
    const struct kafka_url *url;
    uint32_t topics;
};

static int check_one(void *arg, const char *topic, uint32_t partitions, pawl_error *error)
{
    struct checking *c = arg;
    c->topics++;
    return topic_check(c->client, c->url, topic, NULL, error);
}

/* The topic of skipped records is there if there are any, and must be as good as the others. */
static int count_skips(rd_kafka_t *client, const struct kafka_url *url, uint32_t *ret_count, pawl_error *error)
{
    struct skip_list list = {0};
    char topic[KAFKA_TOPIC_MAX];
    int status = skips_load(client, url, &list, error);
    if (status == PAWL_OK && list.count > 0) {
        kafka_skips_topic(url->cluster, topic);
        status = topic_check(client, url, topic, NULL, error);
    }
    *ret_count = (uint32_t)list.count;
    skips_release(&list);
    return status;
}

static int stop_at_lost(void *arg, pawl_error *error)
{
    (void)arg;
    (void)error; /* it says which */
    return PAWL_ECORRUPT;
}

/* All operation logs that were made, and their list, which is there with the first of them. */
static int check_oplogs(rd_kafka_t *client, const struct kafka_url *url, pawl_error *error)
{
    const struct oplog_search search = {.lost = stop_at_lost};
    struct oplog_list list = {0};
    char topic[KAFKA_TOPIC_MAX];
    int status = oplogs_load(client, url, &list, error);
    kafka_oplogs_topic(url->cluster, topic);
    if (status == PAWL_OK && list.count > 0)
        status = topic_check(client, url, topic, NULL, error);
    if (status == PAWL_OK)
        status = oplogs_find_lost(client, url, &list, &search, error);
    oplogs_release(&list);
    return status;
}

int kafka_cluster_check(const char *text, uint16_t replication, pawl_cluster_topics *ret_topics,
                        pawl_error *error)
{
    struct kafka_url url;
    rd_kafka_t *client;
    int status = open_client(text, replication, &url, &client, error);
    if (status != PAWL_OK)
        return status;
    struct checking checking = {.client = client, .url = &url};
    pawl_cluster_topics found = {.replication = url.replication, .broker_sync = !url.no_broker_sync};
    for (size_t i = 0; i < TOPIC_KINDS && status == PAWL_OK; i++) {
        char topic[KAFKA_TOPIC_MAX];
        kafka_topic_of(url.cluster, (pawl_stream){.kind = topic_kinds[i]}, topic);
        status = topic_check(client, &url, topic, &found.partitions, error);
    }
    if (status == PAWL_OK)
        status = topics_each(client, &url, check_one, &checking, error);
    if (status == PAWL_OK)
        status = check_oplogs(client, &url, error);
    if (status == PAWL_OK)
        status = count_skips(client, &url, &found.skipped, error);
    client_close(client);
    found.topics = checking.topics;
    if (status == PAWL_OK)
        *ret_topics = found;
    return status;
}

#include "adapter/kafka/topics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define CALL_MS_MAX 10000
#define TRY_MS_MAX  3000 /* a broker that was asked may hang; the next time another is asked */
#define OFFSET_MS   3000

/* How often, and after how many ms again, a topic is looked for that a broker does not know: it may be new. */
#define LOOKS_MAX     20
#define LOOK_AGAIN_MS 100

static int call_ms(const struct kafka_url *url)
{
    return url->timeout_ms < CALL_MS_MAX ? (int)url->timeout_ms : CALL_MS_MAX;
}

static int metadata_of(rd_kafka_t *client, const struct kafka_url *url, const char *topic,
                       const rd_kafka_metadata_t **ret_metadata, pawl_error *error)
{
    char words[KAFKA_TOPIC_MAX + 32];
    rd_kafka_topic_t *handle = topic ? rd_kafka_topic_new(client, topic, NULL) : NULL;
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__TIMED_OUT;
    for (int left = call_ms(url); left > 0 && err == RD_KAFKA_RESP_ERR__TIMED_OUT; left -= TRY_MS_MAX)
        err = rd_kafka_metadata(client, !topic, handle, ret_metadata, left < TRY_MS_MAX ? left : TRY_MS_MAX);
    if (handle)
        rd_kafka_topic_destroy(handle);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
        return PAWL_OK;
    snprintf(words, sizeof words, "cannot look at %s", topic ? topic : "the topics");
    return client_complain(client, err, error, words);
}

static int topic_status(rd_kafka_t *client, const rd_kafka_metadata_topic_t *t, pawl_error *error)
{
    int status = client_status(t->err);
    if (status == PAWL_OK || status == PAWL_ENOTFOUND)
        return status;
    return client_complain(client, t->err, error, t->topic);
}

int topic_partitions(rd_kafka_t *client, const struct kafka_url *url, const char *topic,
                     uint32_t *ret_partitions, pawl_error *error)
{
    const rd_kafka_metadata_t *metadata;
    int status = metadata_of(client, url, topic, &metadata, error);
    if (status != PAWL_OK)
        return status;
    uint32_t partitions = 0;
    if (metadata->topic_cnt == 1) {
        status = topic_status(client, &metadata->topics[0], error);
        if (status == PAWL_OK)
            partitions = (uint32_t)metadata->topics[0].partition_cnt;
        if (status == PAWL_ENOTFOUND || status == PAWL_EIO) /* it may have no leader at this moment */
            status = PAWL_OK;
    }
    rd_kafka_metadata_destroy(metadata);
    if (status == PAWL_OK)
        *ret_partitions = partitions;
    return status;
}

static int no_topic(const char *topic, pawl_error *error)
{
    return error_set(error, PAWL_ENOTFOUND, "there is no topic %s; 'pawl cluster init' makes the topics",
                     topic);
}

int topic_find(rd_kafka_t *client, const struct kafka_url *url, const char *topic, uint16_t partition,
               bool may_be_missing, uint32_t *ret_partitions, pawl_error *error)
{
    uint32_t partitions = 0;
    int status = topic_partitions(client, url, topic, &partitions, error);
    for (int tries = 1; status == PAWL_OK && partitions == 0 && !may_be_missing && tries < LOOKS_MAX; tries++) {
        rd_kafka_poll(client, LOOK_AGAIN_MS);
        status = topic_partitions(client, url, topic, &partitions, error);
    }
    if (status == PAWL_OK && partitions == 0 && !may_be_missing)
        status = no_topic(topic, error);
    if (status == PAWL_OK && partitions > 0 && partition >= partitions)
        status = error_set(error, PAWL_EINVAL, "topic %s has no partition %u, only %u", topic, partition,
                           partitions);
    if (status == PAWL_OK)
        *ret_partitions = partitions;
    return status;
}

/* Asked for as if it were a time, as Kafka itself does: rd_kafka_query_watermark_offsets waits for ever for a leader that has
 * died. */
int topic_offset(rd_kafka_t *client, const char *topic, uint16_t partition, int64_t which, uint64_t *ret_offset,
                 pawl_error *error)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *asked = rd_kafka_topic_partition_list_add(list, topic, partition);
    asked->offset = which;
    rd_kafka_resp_err_t err = rd_kafka_offsets_for_times(client, list, OFFSET_MS);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
        err = asked->err;
    int64_t offset = asked->offset; /* as it was, if nobody has answered */
    rd_kafka_topic_partition_list_destroy(list);
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR && offset < 0)
        err = RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        *ret_offset = (uint64_t)offset;
        return PAWL_OK;
    }
    return error_set(error, client_status(err) == PAWL_EACCES ? PAWL_EACCES : PAWL_EIO,
                     "topic %s, partition %u: its leader does not say where it ends: %s", topic, partition,
                     rd_kafka_err2str(err));
}

/* Wait for the answer to an admin call, on a queue of its own. */
static int await(rd_kafka_t *client, rd_kafka_queue_t *queue, const char *words, rd_kafka_event_t **ret_event,
                 pawl_error *error)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, CALL_MS_MAX + 5000);
    rd_kafka_resp_err_t err = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        *ret_event = event;
        return PAWL_OK;
    }
    if (event)
        rd_kafka_event_destroy(event);
    return client_complain(client, err, error, words);
}

static int create_now(rd_kafka_t *client, const struct kafka_url *url, rd_kafka_NewTopic_t *topic,
                      const char *name, pawl_error *error)
{
    char words[KAFKA_TOPIC_MAX + 32];
    rd_kafka_event_t *event = NULL;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    snprintf(words, sizeof words, "cannot create topic %s", name);
    rd_kafka_AdminOptions_set_request_timeout(options, call_ms(url), NULL, 0);
    rd_kafka_AdminOptions_set_operation_timeout(options, call_ms(url), NULL, 0);
    rd_kafka_CreateTopics(client, &topic, 1, options, queue);
    rd_kafka_AdminOptions_destroy(options);
    int status = await(client, queue, words, &event, error);
    if (status == PAWL_OK) {
        size_t count;
        const rd_kafka_topic_result_t **results =
            rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
        status = count == 1 ? client_status(rd_kafka_topic_result_error(results[0])) : PAWL_EIO;
        if (status == PAWL_EEXISTS)
            status = PAWL_OK;
        if (status != PAWL_OK)
            error_set(error, status, "%s: %s", words,
                      count == 1 ? rd_kafka_topic_result_error_string(results[0]) : "no answer");
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    return status;
}

int topic_create(rd_kafka_t *client, const struct kafka_url *url, const char *name, uint32_t partitions,
                 pawl_error *error)
{
    struct kafka_setting settings[KAFKA_SETTINGS_MAX];
    char why[256];
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(name, (int)partitions, url->replication, why, sizeof why);
    if (!topic)
        return error_set(error, PAWL_EINVAL, "topic %s: %s", name, why);
    size_t count = kafka_settings(url, settings);
    for (size_t i = 0; i < count; i++)
        rd_kafka_NewTopic_set_config(topic, settings[i].name, settings[i].value);
    int status = create_now(client, url, topic, name, error);
    rd_kafka_NewTopic_destroy(topic);
    uint32_t seen = 0;
    for (int tries = 0; status == PAWL_OK && seen == 0; tries++) {
        if (tries == 500)
            return error_set(error, PAWL_ETIMEOUT, "topic %s was created, but cannot be seen", name);
        status = topic_partitions(client, url, name, &seen, error);
        if (seen == 0)
            rd_kafka_poll(client, 20);
    }
    return status;
}

static int check_replicas(const struct kafka_url *url, const rd_kafka_metadata_topic_t *t, pawl_error *error)
{
    for (int i = 0; i < t->partition_cnt; i++)
        if (t->partitions[i].replica_cnt < url->replication)
            return error_set(error, PAWL_EINVAL,
                             "topic %s, partition %" PRIi32 " has %d replicas, but needs at least %u", t->topic,
                             t->partitions[i].id, t->partitions[i].replica_cnt, url->replication);
    return PAWL_OK;
}

static int check_configs(const struct kafka_url *url, const char *topic,
                         const rd_kafka_ConfigResource_t *resource, pawl_error *error)
{
    struct kafka_setting settings[KAFKA_SETTINGS_MAX];
    size_t count = kafka_settings(url, settings), entries;
    const rd_kafka_ConfigEntry_t **entry = rd_kafka_ConfigResource_configs(resource, &entries);
    for (size_t i = 0; i < count; i++) {
        const char *value = NULL;
        for (size_t k = 0; k < entries; k++)
            if (strcmp(rd_kafka_ConfigEntry_name(entry[k]), settings[i].name) == 0)
                value = rd_kafka_ConfigEntry_value(entry[k]);
        int status = kafka_setting_check(&settings[i], topic, value, error);
        if (status != PAWL_OK)
            return status;
    }
    return PAWL_OK;
}

static int check_settings(rd_kafka_t *client, const struct kafka_url *url, const char *topic, pawl_error *error)
{
    char words[KAFKA_TOPIC_MAX + 48];
    rd_kafka_event_t *event = NULL;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    rd_kafka_ConfigResource_t *wanted = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    snprintf(words, sizeof words, "cannot see the settings of topic %s", topic);
    rd_kafka_AdminOptions_set_request_timeout(options, call_ms(url), NULL, 0);
    rd_kafka_DescribeConfigs(client, &wanted, 1, options, queue);
    rd_kafka_ConfigResource_destroy(wanted);
    rd_kafka_AdminOptions_destroy(options);
    int status = await(client, queue, words, &event, error);
    if (status == PAWL_OK) {
        size_t count;
        const rd_kafka_ConfigResource_t **found =
            rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &count);
        rd_kafka_resp_err_t err =
            count == 1 ? rd_kafka_ConfigResource_error(found[0]) : RD_KAFKA_RESP_ERR__FAIL;
        status = err == RD_KAFKA_RESP_ERR_NO_ERROR ? check_configs(url, topic, found[0], error)
                                                   : client_complain(client, err, error, words);
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    return status;
}

static int check_once(rd_kafka_t *client, const struct kafka_url *url, const char *topic,
                      uint32_t *ret_partitions, pawl_error *error)
{
    const rd_kafka_metadata_t *metadata;
    int status = metadata_of(client, url, topic, &metadata, error);
    if (status != PAWL_OK)
        return status;
    status = metadata->topic_cnt == 1 ? topic_status(client, &metadata->topics[0], error) : PAWL_ENOTFOUND;
    if (status == PAWL_ENOTFOUND)
        no_topic(topic, error);
    if (status == PAWL_OK) {
        *ret_partitions = (uint32_t)metadata->topics[0].partition_cnt;
        status = check_replicas(url, &metadata->topics[0], error);
    }
    rd_kafka_metadata_destroy(metadata);
    return status == PAWL_OK ? check_settings(client, url, topic, error) : status;
}

/* Some brokers do not know a new topic yet, and one of them may be asked. */
int topic_check(rd_kafka_t *client, const struct kafka_url *url, const char *topic, uint32_t *ret_partitions,
                pawl_error *error)
{
    uint32_t partitions = 0;
    int status = check_once(client, url, topic, &partitions, error);
    for (int tries = 1; status == PAWL_ENOTFOUND && tries < LOOKS_MAX; tries++) {
        rd_kafka_poll(client, LOOK_AGAIN_MS);
        status = check_once(client, url, topic, &partitions, error);
    }
    if (status == PAWL_OK && ret_partitions)
        *ret_partitions = partitions;
    return status;
}

const uint8_t topic_kinds[TOPIC_KINDS] = {PAWL_STREAM_GROUP0, PAWL_STREAM_PLOG, PAWL_STREAM_RAW};

/* Whether all of topic_kinds are there; otherwise the name of one that is not. */
static bool is_complete(const struct kafka_url *url, const rd_kafka_metadata_t *metadata, char *topic)
{
    for (size_t k = 0; k < TOPIC_KINDS; k++) {
        bool found = false;
        kafka_topic_of(url->cluster, (pawl_stream){.kind = topic_kinds[k]}, topic);
        for (int i = 0; i < metadata->topic_cnt && !found; i++)
            found = metadata->topics[i].partition_cnt > 0 && strcmp(metadata->topics[i].topic, topic) == 0;
        if (!found)
            return false;
    }
    return true;
}

static int all_topics(rd_kafka_t *client, const struct kafka_url *url, const rd_kafka_metadata_t **ret_metadata,
                      pawl_error *error)
{
    char topic[KAFKA_TOPIC_MAX];
    for (int tries = 0; tries < LOOKS_MAX; tries++) {
        if (tries > 0)
            rd_kafka_poll(client, LOOK_AGAIN_MS);
        int status = metadata_of(client, url, NULL, ret_metadata, error);
        if (status != PAWL_OK || is_complete(url, *ret_metadata, topic))
            return status;
        rd_kafka_metadata_destroy(*ret_metadata);
    }
    return no_topic(topic, error);
}

int topics_each(rd_kafka_t *client, const struct kafka_url *url,
                int (*visit)(void *arg, const char *topic, uint32_t partitions, pawl_error *error), void *arg,
                pawl_error *error)
{
    const rd_kafka_metadata_t *metadata;
    pawl_stream stream;
    int status = all_topics(client, url, &metadata, error);
    if (status != PAWL_OK)
        return status;
    for (int i = 0; i < metadata->topic_cnt && status == PAWL_OK; i++) {
        const rd_kafka_metadata_topic_t *t = &metadata->topics[i];
        if (kafka_stream_of(url->cluster, t->topic, 0, &stream))
            status = visit(arg, t->topic, (uint32_t)t->partition_cnt, error);
    }
    rd_kafka_metadata_destroy(metadata);
    return status;
}

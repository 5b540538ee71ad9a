/* test/kafka/client.c: a very small Kafka client, to show that brokers work and to damage a topic.
 *
 *     kafka_client BROKERS create TOPIC REPLICAS     with one partition
 *     kafka_client BROKERS delete TOPIC
 *     kafka_client BROKERS alter TOPIC NAME=VALUE... other settings go back to their defaults
 *     kafka_client BROKERS leader TOPIC              prints the number of the broker that leads; 0: none does
 *     kafka_client BROKERS insync TOPIC              prints how many replicas are in sync, of the partition that has the
 *                                                    fewest, in this topic and all that begin with its name and a dot
 *     kafka_client BROKERS topics NAME               prints all topics that begin with this name and a dot
 *     kafka_client BROKERS produce TOPIC TEXT        prints its Kafka offset, once all replicas have it
 *     kafka_client BROKERS consume TOPIC OFFSET      prints that record
 *     kafka_client BROKERS spoil TOPIC OFFSET        writes that record again, with its last bit flipped
 *
 * Records are read from, and written to, partition 0. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>

#define WAIT_MS   120000
#define VALUE_MAX 65536

static char words[512];

static int failed(const char *what, const char *why)
{
    fprintf(stderr, "kafka_client: %s: %s\n", what, why);
    return 1;
}

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    int64_t *offset = message->_private;
    if (message->err)
        failed("produce", rd_kafka_err2str(message->err));
    else
        *offset = message->offset;
}

static rd_kafka_t *open_client(rd_kafka_type_t type, const char *brokers)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_t *client = NULL;
    if (rd_kafka_conf_set(conf, "bootstrap.servers", brokers, words, sizeof words) == RD_KAFKA_CONF_OK)
        client = rd_kafka_new(type, conf, words, sizeof words);
    if (!client)
        failed(brokers, words);
    return client;
}

/* The answer to the one thing that was asked for. */
static int answer(const char *topic, rd_kafka_queue_t *queue)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS);
    rd_kafka_resp_err_t err = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    size_t count = 0;
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR && rd_kafka_event_type(event) == RD_KAFKA_EVENT_ALTERCONFIGS_RESULT) {
        const rd_kafka_ConfigResource_t **resources =
            rd_kafka_AlterConfigs_result_resources(rd_kafka_event_AlterConfigs_result(event), &count);
        err = rd_kafka_ConfigResource_error(resources[0]);
    } else if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        const rd_kafka_topic_result_t **topics =
            rd_kafka_event_type(event) == RD_KAFKA_EVENT_CREATETOPICS_RESULT
                ? rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count)
                : rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
        err = rd_kafka_topic_result_error(topics[0]);
    }
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    return err == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : failed(topic, rd_kafka_err2str(err));
}

static int create(rd_kafka_t *client, const char *topic, int replicas)
{
    rd_kafka_NewTopic_t *fresh = rd_kafka_NewTopic_new(topic, 1, replicas, words, sizeof words);
    if (!fresh)
        return failed(topic, words);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_CreateTopics(client, &fresh, 1, NULL, queue);
    rd_kafka_NewTopic_destroy(fresh);
    return answer(topic, queue);
}

static int remove_topic(rd_kafka_t *client, const char *name)
{
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(name);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_DeleteTopics(client, &topic, 1, NULL, queue);
    rd_kafka_DeleteTopic_destroy(topic);
    return answer(name, queue);
}

static int alter(rd_kafka_t *client, const char *topic, char **settings)
{
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    for (char **setting = settings; *setting; setting++) {
        const char *name = strsep(setting, "=");
        rd_kafka_ConfigResource_set_config(resource, name, *setting);
    }
    rd_kafka_AlterConfigs(client, &resource, 1, NULL, queue);
    rd_kafka_ConfigResource_destroy(resource);
    return answer(topic, queue);
}

static int leader(rd_kafka_t *client, const char *name)
{
    const rd_kafka_metadata_t *metadata;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    rd_kafka_resp_err_t err = rd_kafka_metadata(client, 0, topic, &metadata, WAIT_MS);
    rd_kafka_topic_destroy(topic);
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return failed(name, rd_kafka_err2str(err));
    bool known = metadata->topic_cnt == 1 && metadata->topics[0].partition_cnt > 0;
    int number =
        known && metadata->topics[0].partitions[0].leader > 0 ? metadata->topics[0].partitions[0].leader : 0;
    rd_kafka_metadata_destroy(metadata);
    printf("%d\n", number);
    return 0;
}

static bool is_of(const char *topic, const char *name)
{
    size_t size = strlen(name);
    return strncmp(topic, name, size) == 0 && (topic[size] == '\0' || topic[size] == '.');
}

static int topics(rd_kafka_t *client, const char *name)
{
    const rd_kafka_metadata_t *metadata;
    rd_kafka_resp_err_t err = rd_kafka_metadata(client, 1, NULL, &metadata, WAIT_MS);
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return failed(name, rd_kafka_err2str(err));
    for (int t = 0; t < metadata->topic_cnt; t++)
        if (is_of(metadata->topics[t].topic, name))
            printf("%s\n", metadata->topics[t].topic);
    rd_kafka_metadata_destroy(metadata);
    return 0;
}

static int insync(rd_kafka_t *client, const char *name)
{
    const rd_kafka_metadata_t *metadata;
    rd_kafka_resp_err_t err = rd_kafka_metadata(client, 1, NULL, &metadata, WAIT_MS);
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return failed(name, rd_kafka_err2str(err));
    int least = -1;
    for (int t = 0; t < metadata->topic_cnt; t++)
        for (int i = 0; i < metadata->topics[t].partition_cnt && is_of(metadata->topics[t].topic, name); i++) {
            int count = metadata->topics[t].partitions[i].isr_cnt;
            least = least < 0 || count < least ? count : least;
        }
    rd_kafka_metadata_destroy(metadata);
    printf("%d\n", least < 0 ? 0 : least);
    return 0;
}

static int produce(rd_kafka_t *client, const char *name, const void *value, size_t size)
{
    int64_t offset = -1;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    if (rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)value, size, NULL, 0, &offset) != 0)
        failed("produce", rd_kafka_err2str(rd_kafka_last_error()));
    rd_kafka_flush(client, WAIT_MS);
    rd_kafka_topic_destroy(topic);
    if (offset < 0)
        return failed("produce", "not acknowledged");
    printf("%" PRId64 "\n", offset);
    return 0;
}

static int consume(rd_kafka_t *client, const char *name, int64_t offset, char *value, size_t *size)
{
    int status = 1;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    rd_kafka_consume_start(topic, 0, offset);
    rd_kafka_message_t *message = rd_kafka_consume(topic, 0, WAIT_MS);
    if (!message) {
        failed("consume", "nothing came");
    } else if (message->err || message->len > VALUE_MAX) {
        failed("consume", message->err ? rd_kafka_message_errstr(message) : "too long");
    } else {
        *size = message->len;
        memcpy(value, message->payload, message->len);
        status = 0;
    }
    if (message)
        rd_kafka_message_destroy(message);
    rd_kafka_consume_stop(topic, 0);
    rd_kafka_topic_destroy(topic);
    return status;
}

static int read_one(const char *brokers, const char *topic, const char *offset, char *value, size_t *size)
{
    rd_kafka_t *client = open_client(RD_KAFKA_CONSUMER, brokers);
    if (!client)
        return 1;
    int status = consume(client, topic, strtoll(offset, NULL, 10), value, size);
    rd_kafka_destroy(client);
    return status;
}

int main(int argc, char **argv)
{
    static char value[VALUE_MAX];
    size_t size = 0;
    int status = 2;
    if (argc < 4)
        return 2;
    const char *brokers = argv[1], *verb = argv[2], *topic = argv[3];
    bool reads = strcmp(verb, "consume") == 0, spoils = strcmp(verb, "spoil") == 0;
    if ((reads || spoils) && argc == 5)
        status = read_one(brokers, topic, argv[4], value, &size);
    if (reads || (spoils && (status != 0 || size == 0))) {
        printf("%.*s\n", (int)size, value);
        return status;
    }
    rd_kafka_t *client = open_client(RD_KAFKA_PRODUCER, brokers);
    if (!client)
        return 1;
    if (spoils) {
        value[size - 1] ^= 1;
        status = produce(client, topic, value, size);
    } else if (strcmp(verb, "create") == 0 && argc == 5) {
        status = create(client, topic, (int)strtol(argv[4], NULL, 10));
    } else if (strcmp(verb, "delete") == 0) {
        status = remove_topic(client, topic);
    } else if (strcmp(verb, "leader") == 0) {
        status = leader(client, topic);
    } else if (strcmp(verb, "insync") == 0) {
        status = insync(client, topic);
    } else if (strcmp(verb, "topics") == 0) {
        status = topics(client, topic);
    } else if (strcmp(verb, "alter") == 0) {
        status = alter(client, topic, argv + 4);
    } else if (strcmp(verb, "produce") == 0 && argc == 5) {
        status = produce(client, topic, argv[4], strlen(argv[4]));
    }
    rd_kafka_destroy(client);
    return status;
}

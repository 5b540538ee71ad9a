/* test/kafka/client.c: as little of a Kafka client as shows that brokers work.
 *
 *     kafka_client BROKERS create TOPIC REPLICAS
 *     kafka_client BROKERS produce TOPIC TEXT        prints the record's Kafka offset, once all replicas have
 * it kafka_client BROKERS consume TOPIC OFFSET      prints that record */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>

#define WAIT_MS 30000

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

static int create(rd_kafka_t *client, const char *topic, int replicas)
{
    rd_kafka_NewTopic_t *fresh = rd_kafka_NewTopic_new(topic, 1, replicas, words, sizeof words);
    if (!fresh)
        return failed(topic, words);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_CreateTopics(client, &fresh, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS);
    int status = 0;
    if (!event || rd_kafka_event_error(event)) {
        status = failed(topic, event ? rd_kafka_event_error_string(event) : "no answer");
    } else {
        size_t count;
        const rd_kafka_topic_result_t **topics =
            rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
        if (rd_kafka_topic_result_error(topics[0]))
            status = failed(topic, rd_kafka_topic_result_error_string(topics[0]));
    }
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(fresh);
    return status;
}

static int produce(rd_kafka_t *client, const char *name, const char *text)
{
    int64_t offset = -1;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    if (rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)text, strlen(text), NULL, 0, &offset)
        != 0)
        failed("produce", rd_kafka_err2str(rd_kafka_last_error()));
    rd_kafka_flush(client, WAIT_MS);
    rd_kafka_topic_destroy(topic);
    if (offset < 0)
        return failed("produce", "not acknowledged");
    printf("%" PRId64 "\n", offset);
    return 0;
}

static int consume(rd_kafka_t *client, const char *name, int64_t offset)
{
    int status = 1;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    rd_kafka_consume_start(topic, 0, offset);
    rd_kafka_message_t *message = rd_kafka_consume(topic, 0, WAIT_MS);
    if (!message) {
        failed("consume", "nothing came");
    } else if (message->err) {
        failed("consume", rd_kafka_message_errstr(message));
    } else {
        printf("%.*s\n", (int)message->len, (const char *)message->payload);
        status = 0;
    }
    if (message)
        rd_kafka_message_destroy(message);
    rd_kafka_consume_stop(topic, 0);
    rd_kafka_topic_destroy(topic);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    bool reads = strcmp(argv[2], "consume") == 0;
    rd_kafka_t *client = open_client(reads ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, argv[1]);
    if (!client)
        return 1;
    int status = 2;
    if (reads)
        status = consume(client, argv[3], strtoll(argv[4], NULL, 10));
    else if (strcmp(argv[2], "create") == 0)
        status = create(client, argv[3], (int)strtol(argv[4], NULL, 10));
    else if (strcmp(argv[2], "produce") == 0)
        status = produce(client, argv[3], argv[4]);
    rd_kafka_destroy(client);
    return status;
}

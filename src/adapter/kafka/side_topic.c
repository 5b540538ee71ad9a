#include "adapter/kafka/side_topic.h"

#include "adapter/kafka/topics.h"
#include "base/error.h"
#include "base/wait.h"

#define LOAD_MS_MAX 10000
#define TAKE_MS     100

/* --- reading --- */

/* From the first record on everything must be there: what has no beginning will never have one again. */
static int judge_error(const char *topic, const rd_kafka_message_t *m, pawl_error *error)
{
    int status = client_status(m->err);
    if (status == PAWL_EACCES)
        return error_set(error, status, "topic %s: %s", topic, rd_kafka_err2str(m->err));
    if (status == PAWL_ECORRUPT)
        return error_set(error, status,
                         "topic %s cannot be read from its first record on: %s (were records deleted, by "
                         "retention.ms or retention.bytes?)",
                         topic, rd_kafka_message_errstr(m));
    return PAWL_OK; /* the client tries again by itself */
}

static int take_one(const char *topic, const rd_kafka_message_t *m, side_topic_take take, void *arg, bool *over,
                    pawl_error *error)
{
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        *over = true;
        return PAWL_OK;
    }
    if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return judge_error(topic, m, error);
    return take(arg, (pawl_bytes){m->payload, m->len}, error);
}

/* The client tries again by itself, whatever the brokers say, so that an error is told only if no record comes for long. */
static int no_record(const char *topic, rd_kafka_resp_err_t last, pawl_error *error)
{
    return error_set(error, PAWL_EIO, "topic %s: %s", topic,
                     last == RD_KAFKA_RESP_ERR_NO_ERROR ? "no broker answers" : rd_kafka_err2str(last));
}

static uint64_t patience(const struct kafka_url *url)
{
    uint32_t wait = url->timeout_ms < LOAD_MS_MAX ? url->timeout_ms : LOAD_MS_MAX;
    return clock_boot_ns() + (uint64_t)wait * 1000000;
}

static int read_all(const struct kafka_url *url, rd_kafka_topic_t *handle, const char *topic,
                    side_topic_take take, void *arg, pawl_error *error)
{
    uint64_t until = patience(url);
    rd_kafka_resp_err_t last = RD_KAFKA_RESP_ERR_NO_ERROR;
    bool over = false;
    int status = PAWL_OK;
    while (!over && status == PAWL_OK) {
        rd_kafka_message_t *m = rd_kafka_consume(handle, 0, TAKE_MS);
        bool good = m && m->err == RD_KAFKA_RESP_ERR_NO_ERROR;
        if (m) {
            last = m->err;
            status = take_one(topic, m, take, arg, &over, error);
            rd_kafka_message_destroy(m);
        }
        if (good)
            until = patience(url);
        else if (!over && status == PAWL_OK && clock_boot_ns() > until)
            status = no_record(topic, last, error);
    }
    return status;
}

int side_topic_read(rd_kafka_t *client, const struct kafka_url *url, const char *topic, side_topic_take take,
                    void *arg, pawl_error *error)
{
    uint32_t partitions = 0;
    int status = topic_partitions(client, url, topic, &partitions, error);
    if (status != PAWL_OK || partitions == 0)
        return status;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    if (!handle || rd_kafka_consume_start(handle, 0, 0))
        status = error_set(error, PAWL_EIO, "cannot read topic %s: %s", topic,
                           rd_kafka_err2str(rd_kafka_last_error()));
    if (status == PAWL_OK) {
        status = read_all(url, handle, topic, take, arg, error);
        (void)rd_kafka_consume_stop(handle, 0);
    }
    if (handle)
        rd_kafka_topic_destroy(handle);
    return status;
}

/* --- appending --- */

static int await_report(rd_kafka_t *producer, const struct kafka_url *url, const char *topic, const char *what,
                        pawl_error *error)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(producer);
    uint64_t until = clock_boot_ns() + ((uint64_t)url->timeout_ms + 5000) * 1000000;
    int status = PAWL_EBUSY;
    while (status == PAWL_EBUSY && clock_boot_ns() < until) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TAKE_MS);
        const rd_kafka_message_t *m = event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR
                                          ? rd_kafka_event_message_next(event)
                                          : NULL;
        if (m && m->err == RD_KAFKA_RESP_ERR_NO_ERROR)
            status = PAWL_OK;
        else if (m && client_refused(m))
            status = error_set(error, client_status(m->err), "topic %s: the brokers refused %s: %s", topic,
                               what, client_reason(m));
        else if (m)
            status = error_set(error, PAWL_EUNKNOWN, "topic %s: %s may be there or not: %s", topic, what,
                               client_reason(m));
        if (event)
            rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    return status != PAWL_EBUSY
               ? status
               : error_set(error, PAWL_EUNKNOWN, "topic %s: %s may be there or not", topic, what);
}

static int produce(rd_kafka_t *producer, const struct kafka_url *url, const char *topic, pawl_bytes value,
                   const char *what, pawl_error *error)
{
    int status;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(producer, topic, NULL);
    if (!handle
        || rd_kafka_produce(handle, 0, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)value.data, value.size, NULL, 0,
                            NULL))
        status = error_set(error, PAWL_EIO, "topic %s: %s", topic, rd_kafka_err2str(rd_kafka_last_error()));
    else
        status = await_report(producer, url, topic, what, error);
    if (handle)
        rd_kafka_topic_destroy(handle);
    return status;
}

int side_topic_append(rd_kafka_t *client, const struct kafka_url *url, const char *topic, pawl_bytes value,
                      const char *what, pawl_error *error)
{
    rd_kafka_t *producer;
    int status = topic_create(client, url, topic, 1, error);
    if (status == PAWL_OK)
        status = topic_check(client, url, topic, NULL, error);
    if (status == PAWL_OK)
        status = client_open(url, CLIENT_PRODUCER, &producer, error);
    if (status != PAWL_OK)
        return status;
    status = produce(producer, url, topic, value, what, error);
    client_close(producer);
    return status;
}

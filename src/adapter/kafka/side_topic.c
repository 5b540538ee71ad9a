#include "adapter/kafka/side_topic.h"

#include "adapter/kafka/record.h"
#include "adapter/kafka/topics.h"
#include "base/error.h"
#include "base/wait.h"

#define LOAD_MS_MAX 10000
#define TAKE_MS     100
#define AGAIN_NS    ((uint64_t)100 * 1000 * 1000)

/* --- reading --- */

struct reading {
    rd_kafka_t *client;
    const struct kafka_url *url;
    const char *topic;
    rd_kafka_topic_t *handle;
    side_topic_take take;
    void *arg;
    uint64_t seed;
    uint64_t first, next,
        end;                  /* offsets: of the first record and behind the last, as the present leader says */
    uint64_t until;           /* a record must have come by then */
    bool stopped;             /* librdkafka reads no more: the offset is said to be out of range */
    rd_kafka_resp_err_t last; /* that was told instead of a record */
};

static uint64_t patience(const struct kafka_url *url)
{
    uint32_t wait = url->timeout_ms < LOAD_MS_MAX ? url->timeout_ms : LOAD_MS_MAX;
    return clock_boot_ns() + (uint64_t)wait * 1000000;
}

static int ask_once(struct reading *r, pawl_error *error)
{
    uint32_t partitions = 0;
    uint64_t first = 0;
    int status = topic_partitions(r->client, r->url, r->topic, &partitions, error); /* and who leads it */
    if (status == PAWL_OK && partitions == 0)
        status = error_set(error, PAWL_ENOTFOUND, "the brokers do not know topic %s", r->topic);
    if (status == PAWL_OK)
        status = topic_offset(r->client, r->topic, 0, RD_KAFKA_OFFSET_BEGINNING, &first, error);
    if (status == PAWL_OK)
        status = topic_offset(r->client, r->topic, 0, RD_KAFKA_OFFSET_END, &r->end, error);
    if (status == PAWL_OK && first > r->first)
        r->first = first;
    if (r->next < r->first)
        r->next = r->first;
    return status;
}

static int ask(struct reading *r, pawl_error *error)
{
    int status = ask_once(r, error);
    while (status == PAWL_EIO && clock_boot_ns() < r->until) {
        wait_pause(AGAIN_NS);
        status = ask_once(r, error);
    }
    return status;
}

/* Of most errors the client tries again by itself. A leader that was replaced may tell an end that is not the end, or call an
 * offset out of range (bounds.c). */
static int take_error(struct reading *r, const rd_kafka_message_t *m, pawl_error *error)
{
    int status = client_status(m->err);
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF && m->offset > (int64_t)r->next)
        r->next = (uint64_t)m->offset; /* no record is left between */
    if (m->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || m->err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE)
        r->stopped = true;
    else if (status == PAWL_EACCES || status == PAWL_ECORRUPT)
        return error_set(error, status, "topic %s: %s", r->topic, rd_kafka_message_errstr(m));
    return PAWL_OK;
}

static int take_one(struct reading *r, const rd_kafka_message_t *m, pawl_error *error)
{
    r->last = m->err;
    if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return take_error(r, m, error);
    r->next = (uint64_t)m->offset + 1;
    r->until = patience(r->url);
    return r->take(r->arg, (pawl_bytes){m->payload, m->len}, r->seed, error);
}

static int no_record(const struct reading *r, pawl_error *error)
{
    const char *why = rd_kafka_err2str(r->last);
    if (r->last == RD_KAFKA_RESP_ERR_NO_ERROR)
        why = "no broker answers";
    if (r->stopped || r->last == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        why = "brokers have told an end that is not the end, as its leader knows";
    return error_set(error, PAWL_EIO, "topic %s: %s", r->topic, why);
}

static int read_on(struct reading *r, pawl_error *error)
{
    int status = PAWL_OK;
    r->stopped = false;
    if (rd_kafka_consume_start(r->handle, 0, (int64_t)r->next))
        return error_set(error, PAWL_EIO, "cannot read topic %s: %s", r->topic,
                         rd_kafka_err2str(rd_kafka_last_error()));
    while (status == PAWL_OK && r->next < r->end && !r->stopped) {
        rd_kafka_message_t *m = rd_kafka_consume(r->handle, 0, TAKE_MS);
        if (m) {
            status = take_one(r, m, error);
            rd_kafka_message_destroy(m);
        }
        if (status == PAWL_OK && r->next < r->end && clock_boot_ns() > r->until)
            status = no_record(r, error);
    }
    (void)rd_kafka_consume_stop(r->handle, 0);
    return status;
}

int side_topic_read(rd_kafka_t *client, const struct kafka_url *url, const char *topic, side_topic_take take,
                    void *arg, uint64_t *ret_first, pawl_error *error)
{
    struct reading r = {.client = client,
                        .url = url,
                        .topic = topic,
                        .take = take,
                        .arg = arg,
                        .seed = kafka_record_seed(topic, 0),
                        .until = patience(url)};
    int status = ask(&r, error);
    if (status != PAWL_OK)
        return status;
    r.handle = rd_kafka_topic_new(client, topic, NULL);
    if (!r.handle)
        return error_set(error, PAWL_EIO, "cannot read topic %s: %s", topic,
                         rd_kafka_err2str(rd_kafka_last_error()));
    while (status == PAWL_OK && r.next < r.end) {
        status = read_on(&r, error);
        if (status != PAWL_OK || !r.stopped)
            continue;
        wait_pause(AGAIN_NS);
        status = ask(&r, error);
    }
    rd_kafka_topic_destroy(r.handle);
    if (status == PAWL_OK)
        *ret_first = r.first;
    return status;
}

int side_topic_cut(const char *topic, pawl_error *error)
{
    return error_set(
        error, PAWL_ECORRUPT,
        "topic %s has lost its first records (were they deleted, by retention.ms or retention.bytes?)", topic);
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

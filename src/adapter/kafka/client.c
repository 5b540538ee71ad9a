#include "adapter/kafka/client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/kafka/record.h"
#include "base/error.h"

struct property {
    const char *name;
    const char *value;
};

/* A leader that hangs keeps its connection. It is given up when it has not answered for socket.timeout.ms; who
 * leads instead is learnt by asking for metadata, which may be asked of the one that hangs.
 * Asking makes no topic that was deleted: a producer's default would let the broker do so. */
static const struct property common[] = {
    {"client.id", "pawl"},
    {"socket.nagle.disable", "true"},
    {"socket.keepalive.enable", "true"},
    {"socket.timeout.ms", "6000"},
    {"topic.metadata.refresh.interval.ms", "2000"},
    {"allow.auto.create.topics", "false"},
    {"reconnect.backoff.ms", "20"},
    {"reconnect.backoff.max.ms", "500"},
    {NULL, NULL},
};

/* No message waits for others to come: those that come while five requests are under way are the next batch. */
static const struct property producing[] = {
    {"enable.idempotence", "true"},
    {"acks", "all"},
    {"max.in.flight.requests.per.connection", "5"},
    {"linger.ms", "0"},
    {"compression.codec", "none"},
    {"queue.buffering.max.messages", "10000000"},
    {"queue.buffering.max.kbytes", "2097151"},
    {"request.timeout.ms", "10000"},
    {NULL, NULL},
};

/* A short wait at the broker, because a stream that is added to a handle waits for the request under way. */
static const struct property consuming[] = {
    {"auto.offset.reset", "error"},
    {"isolation.level", "read_uncommitted"},
    {"enable.auto.commit", "false"},
    {"enable.partition.eof", "true"},
    {"check.crcs", "true"},
    {"fetch.wait.max.ms", "10"},
    {"fetch.error.backoff.ms", "20"},
    {"fetch.message.max.bytes", "2097152"},
    {"queued.max.messages.kbytes", "16384"},
    {NULL, NULL},
};

static void say_nothing(const rd_kafka_t *client, int level, const char *facility, const char *text)
{
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, pawl_error *error)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) == RD_KAFKA_CONF_OK)
        return PAWL_OK;
    return error_set(error, PAWL_EINVAL, "%s=%s: %s", name, value, why);
}

static int set_all(rd_kafka_conf_t *conf, const struct property *properties, pawl_error *error)
{
    int status = PAWL_OK;
    for (const struct property *p = properties; p->name && status == PAWL_OK; p++)
        status = set(conf, p->name, p->value, error);
    return status;
}

static char *trim(char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t\r\n", text[size - 1]))
        text[--size] = '\0';
    return text;
}

/* Lines of name=value; '#' begins a comment. */
static int set_from_file(rd_kafka_conf_t *conf, const char *path, pawl_error *error)
{
    char line[4096];
    FILE *file = fopen(path, "re");
    if (!file)
        return error_errno(error, errno, "cannot open %s", path);
    int status = PAWL_OK;
    for (int number = 1; status == PAWL_OK && fgets(line, sizeof line, file); number++) {
        char *name = trim(line);
        if (*name == '\0' || *name == '#')
            continue;
        char *equals = strchr(name, '=');
        if (!equals) {
            status = error_set(error, PAWL_EINVAL, "%s, line %d: expected NAME=VALUE", path, number);
            break;
        }
        *equals = '\0';
        status = set(conf, trim(name), trim(equals + 1), error);
        if (status != PAWL_OK)
            error_wrap(error, status, "%s, line %d", path, number);
    }
    fclose(file);
    return status;
}

static int configure(rd_kafka_conf_t *conf, const struct kafka_url *url, enum client_kind kind,
                     pawl_error *error)
{
    char number[24];
    int status = url->config[0] ? set_from_file(conf, url->config, error) : PAWL_OK;
    if (status == PAWL_OK)
        status = set_all(conf, common, error);
    if (status == PAWL_OK)
        status = set_all(conf, kind == CLIENT_PRODUCER ? producing : consuming, error);
    if (status == PAWL_OK)
        status = set(conf, "bootstrap.servers", url->brokers, error);
    snprintf(number, sizeof number, "%zu", KAFKA_MESSAGE_BYTES);
    if (status == PAWL_OK)
        status = set(conf, "message.max.bytes", number, error);
    snprintf(number, sizeof number, "%" PRIu32, url->timeout_ms);
    if (status == PAWL_OK && kind == CLIENT_PRODUCER)
        status = set(conf, "message.timeout.ms", number, error);
    rd_kafka_conf_set_log_cb(conf, say_nothing);
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR | (kind == CLIENT_PRODUCER ? RD_KAFKA_EVENT_DR : 0));
    return status;
}

int client_open(const struct kafka_url *url, enum client_kind kind, rd_kafka_t **ret_client, pawl_error *error)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    int status = configure(conf, url, kind, error);
    if (status != PAWL_OK) {
        rd_kafka_conf_destroy(conf);
        return status;
    }
    rd_kafka_t *client =
        rd_kafka_new(kind == CLIENT_PRODUCER ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (!client) {
        rd_kafka_conf_destroy(conf);
        return error_set(error, PAWL_EINVAL, "cannot make a client for %s: %s", url->brokers, why);
    }
    *ret_client = client;
    return PAWL_OK;
}

void client_close(rd_kafka_t *client)
{
    if (client)
        rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

int client_status(rd_kafka_resp_err_t err)
{
    switch (err) {
    case RD_KAFKA_RESP_ERR_NO_ERROR: return PAWL_OK;
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED: return PAWL_EACCES;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION: return PAWL_ENOTFOUND;
    case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS: return PAWL_EEXISTS;
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR__BAD_MSG: return PAWL_ECORRUPT;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE: return PAWL_ETOOBIG;
    case RD_KAFKA_RESP_ERR_INVALID_PARTITIONS:
    case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
    case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
    case RD_KAFKA_RESP_ERR_INVALID_REQUEST:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION: return PAWL_EINVAL;
    default: return PAWL_EIO;
    }
}

bool client_refused(const rd_kafka_message_t *report)
{
    switch (report->err) {
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS:
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
        return rd_kafka_message_status(report) == RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
    default: return false;
    }
}

const char *client_reason(const rd_kafka_message_t *report)
{
    if (report->err == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP)
        return "Broker: Invalid timestamp (is the clock of this machine right?)";
    return rd_kafka_err2str(report->err);
}

int client_complain(rd_kafka_t *client, rd_kafka_resp_err_t err, pawl_error *error, const char *words)
{
    char why[256] = "";
    int status = client_status(err);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(client);
    for (rd_kafka_event_t *event; (event = rd_kafka_queue_poll(queue, 0)); rd_kafka_event_destroy(event)) {
        if (rd_kafka_event_type(event) != RD_KAFKA_EVENT_ERROR)
            continue;
        if (client_status(rd_kafka_event_error(event)) == PAWL_EACCES)
            status = PAWL_EACCES;
        if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || why[0] == '\0')
            snprintf(why, sizeof why, "%s", rd_kafka_event_error_string(event));
    }
    rd_kafka_queue_destroy(queue);
    return error_set(error, status, "%s: %s%s%s%s", words, rd_kafka_err2str(err), why[0] ? " (" : "", why,
                     why[0] ? ")" : "");
}

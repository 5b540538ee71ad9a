#include "adapter/kafka/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

static const char scheme[] = "kafka://";
#define SCHEME_SIZE (sizeof scheme - 1)

bool kafka_url_is(const char *text)
{
    return strncmp(text, scheme, SCHEME_SIZE) == 0;
}

/* A decimal number without leading zeros, at most max; the whole of size bytes. */
static bool parse_number(const char *at, size_t size, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (size == 0 || size > 10 || (size > 1 && at[0] == '0'))
        return false;
    for (size_t i = 0; i < size; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(at[i] - '0');
    }
    *ret_number = number;
    return number <= max;
}

/* host:port, or [address]:port. */
static bool broker_valid(const char *at, size_t size)
{
    uint64_t port;
    const char *colon = memrchr(at, ':', size);
    if (!colon || colon == at)
        return false;
    bool bracketed = at[0] == '[';
    if (bracketed && (colon[-1] != ']' || colon - at < 3))
        return false;
    for (const char *c = at; c < colon; c++)
        if (*c <= ' ' || *c == '/' || *c == '@' || *c > '~' || (*c == ':' && !bracketed))
            return false;
    return parse_number(colon + 1, size - (size_t)(colon + 1 - at), 65535, &port) && port > 0;
}

static int parse_brokers(const char *at, size_t size, struct kafka_url *url, pawl_error *error)
{
    if (size == 0)
        return error_set(error, PAWL_EINVAL, "it names no broker: kafka://HOST:PORT/CLUSTER");
    if (size >= sizeof url->brokers)
        return error_set(error, PAWL_EINVAL, "its list of brokers is too long");
    for (size_t from = 0; from <= size;) {
        const char *comma = memchr(at + from, ',', size - from);
        size_t length = comma ? (size_t)(comma - at) - from : size - from;
        if (!broker_valid(at + from, length))
            return error_set(error, PAWL_EINVAL, "'%.*s' is not HOST:PORT", (int)length, at + from);
        from += length + 1;
    }
    memcpy(url->brokers, at, size);
    return PAWL_OK;
}

static int parse_cluster(const char *at, size_t size, struct kafka_url *url, pawl_error *error)
{
    if (size == 0)
        return error_set(error, PAWL_EINVAL, "it names no cluster: kafka://HOST:PORT/CLUSTER");
    if (size > KAFKA_CLUSTER_MAX)
        return error_set(error, PAWL_EINVAL, "the cluster's name has more than %d letters", KAFKA_CLUSTER_MAX);
    for (size_t i = 0; i < size; i++) {
        char c = at[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_'
              || c == '-'))
            return error_set(error, PAWL_EINVAL,
                             "the cluster's name may have letters, digits, '.', '_' and '-', not '%c'", c);
    }
    memcpy(url->cluster, at, size);
    return PAWL_OK;
}

static int parse_option(const char *at, size_t size, struct kafka_url *url, pawl_error *error)
{
    const char *equals = memchr(at, '=', size);
    size_t name = equals ? (size_t)(equals - at) : size;
    const char *value = equals ? equals + 1 : "";
    size_t length = equals ? size - name - 1 : 0;
    uint64_t number;
#define IS(text) (name == sizeof(text) - 1 && memcmp(at, text, sizeof(text) - 1) == 0)
    if (IS("no-broker-sync")) {
        if (!parse_number(value, length, 1, &number))
            return error_set(error, PAWL_EINVAL, "no-broker-sync is 0 or 1");
        url->no_broker_sync = number == 1;
    } else if (IS("replication")) {
        if (!parse_number(value, length, 100, &number) || number == 0)
            return error_set(error, PAWL_EINVAL, "replication is a number from 1 to 100");
        url->replication = (uint16_t)number;
    } else if (IS("timeout-ms")) {
        if (!parse_number(value, length, KAFKA_TIMEOUT_MS_MAX, &number) || number < KAFKA_TIMEOUT_MS_MIN)
            return error_set(error, PAWL_EINVAL, "timeout-ms is a number from %d to %d", KAFKA_TIMEOUT_MS_MIN,
                             KAFKA_TIMEOUT_MS_MAX);
        url->timeout_ms = (uint32_t)number;
    } else if (IS("check-ms")) {
        if (!parse_number(value, length, KAFKA_CHECK_MS_MAX, &number) || number < KAFKA_CHECK_MS_MIN)
            return error_set(error, PAWL_EINVAL, "check-ms is a number from %d to %d", KAFKA_CHECK_MS_MIN,
                             KAFKA_CHECK_MS_MAX);
        url->check_ms = (uint32_t)number;
    } else if (IS("config")) {
        if (length == 0 || length >= sizeof url->config)
            return error_set(error, PAWL_EINVAL, "config is the path of a file");
        memcpy(url->config, value, length);
        url->config[length] = '\0';
    } else {
        return error_set(error, PAWL_EINVAL,
                         "'%.*s' is no option; there are replication, no-broker-sync, timeout-ms, check-ms and "
                         "config",
                         (int)name, at);
    }
#undef IS
    return PAWL_OK;
}

static int parse(const char *text, struct kafka_url *url, pawl_error *error)
{
    if (!kafka_url_is(text))
        return error_set(error, PAWL_EINVAL, "it does not begin with kafka://");
    const char *at = text + SCHEME_SIZE;
    size_t size = strcspn(at, "/?");
    int status = parse_brokers(at, size, url, error);
    if (status != PAWL_OK)
        return status;
    at += size;
    at += *at == '/';
    size = strcspn(at, "?");
    status = parse_cluster(at, size, url, error);
    at += size;
    at += *at == '?';
    while (status == PAWL_OK && *at) {
        size = strcspn(at, "&");
        status = parse_option(at, size, url, error);
        at += size;
        at += *at == '&';
    }
    return status;
}

int kafka_url_parse(const char *text, struct kafka_url *ret_url, pawl_error *error)
{
    struct kafka_url url = {.replication = 3, .timeout_ms = KAFKA_TIMEOUT_MS, .check_ms = KAFKA_CHECK_MS};
    int status = parse(text, &url, error);
    if (status != PAWL_OK)
        return error_wrap(error, status, "%s", text);
    *ret_url = url;
    return PAWL_OK;
}

void kafka_topic_of(const char *cluster, pawl_stream stream, char *topic)
{
    switch (stream.kind) {
    case PAWL_STREAM_RAW: snprintf(topic, KAFKA_TOPIC_MAX, "%s.raw", cluster); break;
    case PAWL_STREAM_PLOG: snprintf(topic, KAFKA_TOPIC_MAX, "%s.plog", cluster); break;
    case PAWL_STREAM_OPLOG:
        snprintf(topic, KAFKA_TOPIC_MAX, "%s.oplog.%u.%" PRIu32, cluster, stream.lane, stream.generation);
        break;
    default: snprintf(topic, KAFKA_TOPIC_MAX, "%s.group0", cluster);
    }
}

bool kafka_stream_of(const char *cluster, const char *topic, uint16_t partition, pawl_stream *ret_stream)
{
    static const struct {
        const char *text;
        uint8_t kind;
    } plain[] = {{"raw", PAWL_STREAM_RAW}, {"plog", PAWL_STREAM_PLOG}, {"group0", PAWL_STREAM_GROUP0}};
    static const char oplog[] = "oplog.";
    size_t size = strlen(cluster);
    if (strncmp(topic, cluster, size) != 0 || topic[size] != '.')
        return false;
    const char *rest = topic + size + 1;
    pawl_stream stream = {.partition = partition};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(rest, plain[i].text) == 0)
            stream.kind = plain[i].kind;
    if (strncmp(rest, oplog, sizeof oplog - 1) == 0) {
        uint64_t lane, generation;
        const char *first = rest + sizeof oplog - 1, *dot = strchr(first, '.');
        if (!dot || !parse_number(first, (size_t)(dot - first), UINT16_MAX, &lane)
            || !parse_number(dot + 1, strlen(dot + 1), UINT32_MAX, &generation))
            return false;
        stream.kind = PAWL_STREAM_OPLOG;
        stream.lane = (uint16_t)lane;
        stream.generation = (uint32_t)generation;
    }
    if (!pawl_stream_valid(stream))
        return false;
    *ret_stream = stream;
    return true;
}

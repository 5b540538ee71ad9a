#include "adapter/kafka/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/kafka/record.h"
#include "base/error.h"

static void add(struct kafka_setting *settings, size_t *count, const char *name, size_t value, bool at_least,
                const char *why)
{
    struct kafka_setting *s = &settings[(*count)++];
    *s = (struct kafka_setting){.name = name, .at_least = at_least, .why = why};
    snprintf(s->value, sizeof s->value, "%zu", value);
}

static void add_word(struct kafka_setting *settings, size_t *count, const char *name, const char *value,
                     const char *why)
{
    struct kafka_setting *s = &settings[(*count)++];
    *s = (struct kafka_setting){.name = name, .why = why};
    snprintf(s->value, sizeof s->value, "%s", value);
}

size_t kafka_settings(const struct kafka_url *url, struct kafka_setting *settings)
{
    size_t count = 0;
    add(settings, &count, "min.insync.replicas", url->replication > 1 ? 2 : 1, true,
        "what is acknowledged must be on two brokers");
    add_word(settings, &count, "unclean.leader.election.enable", "false",
             "a broker that missed acknowledged events could become the leader");
    add_word(settings, &count, "cleanup.policy", "delete", "compaction removes events");
    add_word(settings, &count, "retention.ms", "-1", "old events would be deleted");
    add_word(settings, &count, "retention.bytes", "-1", "old events would be deleted");
    add(settings, &count, "max.message.bytes", KAFKA_TOPIC_MESSAGE_BYTES, true,
        "Pawl's records would be refused");
    if (!url->no_broker_sync)
        add(settings, &count, "flush.messages", 1, false,
            "brokers would acknowledge what is in their memory only; no-broker-sync=1 allows that");
    add_word(settings, &count, "message.timestamp.type", "LogAppendTime",
             "brokers would refuse the records of a machine whose clock is wrong");
    settings[count - 1].wished = true;
    return count;
}

int kafka_setting_check(const struct kafka_setting *s, const char *topic, const char *value, pawl_error *error)
{
    if (s->wished)
        return PAWL_OK;
    if (!value)
        return error_set(error, PAWL_EINVAL, "topic %s has no setting %s", topic, s->name);
    bool good = strcmp(value, s->value) == 0;
    if (!good && s->at_least) {
        char *end;
        long long has = strtoll(value, &end, 10);
        good = *value && *end == '\0' && has >= strtoll(s->value, NULL, 10);
    }
    if (good)
        return PAWL_OK;
    return error_set(error, PAWL_EINVAL, "topic %s has %s=%s, but needs %s%s: %s", topic, s->name, value,
                     s->at_least ? "at least " : "", s->value, s->why);
}

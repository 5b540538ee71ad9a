/* adapter/kafka/settings.h: what a topic must be like for Pawl's promises to hold on it. Pure.
 *
 * One table: a topic is created with these settings, and a claim refuses a topic that has weaker ones, except of
 * those that are only wished for. */
#ifndef KAFKA_SETTINGS_H
#define KAFKA_SETTINGS_H

#include "adapter/kafka/url.h"

#define KAFKA_SETTINGS_MAX  8
#define KAFKA_SETTING_VALUE 24

struct kafka_setting {
    const char *name;
    char value[KAFKA_SETTING_VALUE];
    bool at_least; /* a number, and more is as good; else it must be equal */
    bool wished;   /* topics are made with it, but one that has another value will do */
    const char *why;
};

/* Into an array of KAFKA_SETTINGS_MAX; how many there are. */
size_t kafka_settings(const struct kafka_url *url, struct kafka_setting *settings);

/* Whether a topic's value will do. value NULL: the topic does not have it. PAWL_EINVAL, naming topic and
 * setting. */
int kafka_setting_check(const struct kafka_setting *setting, const char *topic, const char *value,
                        pawl_error *error);

#endif

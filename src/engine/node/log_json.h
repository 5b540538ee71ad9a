/* engine/node/log_json.h: the part of pawl_figures_json that is about the log. */
#ifndef ENGINE_NODE_LOG_JSON_H
#define ENGINE_NODE_LOG_JSON_H

#include <pawl/figures.h>

#include "engine/json/json.h"

/* The member "log": syncs of a log in files; brokers, outcomes and claims of one on Kafka. PAWL_ENOMEM. */
int log_json_put(pawl_engine *engine, struct json_out *out, pawl_error *error);

/* A histogram of times as a member: how many, and how long. */
void times_json_put(struct json_out *out, const char *key, const pawl_histogram *histogram,
                    pawl_histogram_kind kind);

#endif

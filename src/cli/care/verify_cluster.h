/* cli/care/verify_cluster.h: pawl verify, of a log on Kafka. */
#ifndef CLI_VERIFY_CLUSTER_H
#define CLI_VERIFY_CLUSTER_H

#include <pawl/cluster.h>

#include <jansson.h>

#include "cli/command.h"

/* Read the log. What was found, as it is printed with --json; the member sound says whether that is all well. */
int cluster_verified(const char *url, json_t **ret_found, pawl_error *error);

/* The same in words for people. */
void print_cluster(const json_t *found);

/* A record that is skipped. */
json_t *skipped_json(const pawl_cluster_skipped *skipped);

/* Both, for a verb. Returns the exit code. */
int verify_cluster(const struct options *options, const char *url);

#endif

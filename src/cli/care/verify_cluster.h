/* cli/care/verify_cluster.h: pawl verify, of a log on Kafka. */
#ifndef CLI_VERIFY_CLUSTER_H
#define CLI_VERIFY_CLUSTER_H

#include "cli/command.h"

int verify_cluster(const struct options *options, const char *url);

#endif

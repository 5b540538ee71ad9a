/* bench/kafka/node.h: what a whole node on Kafka does: commands, opening, and coming back from nothing. */
#ifndef BENCH_KAFKA_NODE_H
#define BENCH_KAFKA_NODE_H

#include "bench/lib/bench.h"

#define NODE_EVENTS       1000000
#define NODE_EVENTS_QUICK 100000

/* The brokers, and how many replicas topics have. Before any question. */
void node_brokers(const char *brokers, unsigned replication);

/* Commands a second; arg: how many are under way (uint64_t). The peer: entries of the same size, by the log alone, over
 * as many streams as the node has partitions, as many in flight. */
double node_commands(const struct bench_round *round);
double node_entries(const struct bench_round *round);

/* The ms that it takes to open the node again, with so many events in the log. */
double node_open(const struct bench_round *round);

/* Events a second, when an empty directory takes over. The peer: pawl replay of the same log, in files. */
double node_back(const struct bench_round *round);
double node_replay(const struct bench_round *round);

/* The ms that it takes a node to read an event by its workspace and the workspace's offset: from its mirror; and from the
 * brokers, without a mirror. */
double node_read_mirrored(const struct bench_round *round);
double node_read_kafka(const struct bench_round *round);

/* Close what is open. */
void node_end(void);

#endif

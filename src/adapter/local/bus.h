/* adapter/local/bus.h: the bus port between nodes that live in one process.
 *
 *     shard of a node ── message ──► inbox of a shard ── post ──► served there ── message back ──► done
 *
 * A network knows its nodes; each node has one bus, over its own env. An engine makes a network with one node,
 * and its calls are posts between its shard threads. A simulation makes a network with several nodes, each an
 * env of its own, and orders faults by fate.
 *
 * A node that goes down leaves the network before its env is closed; calls to it then end with PAWL_EIO. When
 * it comes back it is a new env and a new bus with the same ID.
 *
 * A server is told that a call was cancelled; it is not told that the caller's time was over. */
#ifndef ADAPTER_LOCAL_BUS_H
#define ADAPTER_LOCAL_BUS_H

#include "port/bus.h"
#include "port/env.h"

struct local_network;
struct local_bus;

/* What becomes of one message: a call, an answer or a cancellation. All zeros: it arrives once, at once. */
struct local_fate {
    bool lost;
    bool twice;
    pawl_duration delay;
    pawl_duration delay_again; /* of the second one */
};

struct local_network_options {
    /* Faults to order; NULL: none. Called on the sender's thread, also for messages within one node. */
    void (*fate)(void *ctx, uint32_t from, uint32_t to, struct local_fate *fate);
    void *ctx;
    const pawl_allocator *allocator;
};

/* PAWL_ENOMEM. */
int local_network_open(const struct local_network_options *options, struct local_network **ret_network);

/* When all its buses are closed. NULL is allowed. */
void local_network_close(struct local_network *network);

/* The node joins the network. PAWL_EEXISTS: a node with this ID is there; PAWL_ENOMEM. */
int local_bus_open(struct local_network *network, uint32_t node, pawl_env *env, struct local_bus **ret_bus);

pawl_bus *local_bus_port(struct local_bus *bus);

/* From now on it calls nobody and nobody reaches it. Before its env is closed. Any thread; once or more. */
void local_bus_leave(struct local_bus *bus);

/* Leave, and free what was under way without a word to anybody. When nothing runs on its env any more. NULL is
 * allowed. */
void local_bus_close(struct local_bus *bus);

#endif

/* port/bus.h: calls between nodes, as the cores see them.
 *
 *     caller ── call(node, shard, verb, body) ──► served on that shard of that node ── answer ──► done
 *                     └── cancel ───────────────► cancelled
 *
 * Every node has one bus. A call is addressed to a shard of a node, which may be the caller's own; the server's
 * function runs on that shard, the caller's done on the shard that called. Nothing is promised about delivery:
 * a call may be lost, or served twice, or served after its caller has given up; an answer may be lost. A caller
 * learns no more than that it has an answer, or has none in time. So every verb is idempotent, and carries what
 * the server needs to refuse a caller that is out of date.
 *
 * Calls and requests are structs that the caller and the bus own as said below; bodies are copied.
 *
 * Caveats
 *   - done is never called from inside call, nor after cancel has returned.
 *   - A server that does not answer keeps the caller waiting until its time is over. */
#ifndef PAWL_PORT_BUS_H
#define PAWL_PORT_BUS_H

#include <pawl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_BUS_BODY_MAX ((size_t)16 << 20)

typedef struct pawl_bus pawl_bus;

/* The caller owns it from call to done or cancel, and zeroes it before the first use. */
typedef struct pawl_bus_call pawl_bus_call;
struct pawl_bus_call {
    uint32_t node;
    uint32_t shard; /* of that node */
    uint16_t verb;
    pawl_bytes body;       /* borrowed until call returns */
    pawl_duration timeout; /* PAWL_ETIMEOUT after this; 0: never */
    void (*done)(pawl_bus_call *call);
    void *arg;

    int status;       /* the server's, or PAWL_ETIMEOUT; PAWL_EIO: nobody serves it there, as far as is known */
    pawl_bytes reply; /* borrowed until done returns */
    void *impl[4];
};

/* A call that is being served. The bus owns it; the server keeps the pointer until it answers, or is told that
 * the caller has cancelled, whichever comes first. */
typedef struct pawl_bus_request pawl_bus_request;
struct pawl_bus_request {
    uint32_t from; /* the caller's node */
    uint16_t verb;
    pawl_bytes body; /* borrowed until it is answered or cancelled */

    /* For the server to set: the caller is gone; do not answer. May stay NULL: then an answer goes nowhere. */
    void (*cancelled)(pawl_bus_request *request);
    void *arg;
};

struct pawl_bus_ops {
    int (*call)(pawl_bus *bus, pawl_bus_call *call);
    void (*cancel)(pawl_bus *bus, pawl_bus_call *call);
    int (*serve)(pawl_bus *bus, uint32_t shard, uint16_t verb, void (*fn)(void *arg, pawl_bus_request *request),
                 void *arg);
    void (*answer)(pawl_bus *bus, pawl_bus_request *request, int status, pawl_bytes reply);
};

/* An implementation puts this first into its own struct. */
struct pawl_bus {
    const struct pawl_bus_ops *ops;
};

/* On a shard. PAWL_ETOOBIG; PAWL_EBUSY: too many are under way; PAWL_ENOMEM; PAWL_ECLOSED. After an error
 * done is not called. */
static inline int pawl_bus_call_begin(pawl_bus *bus, pawl_bus_call *call)
{
    return bus->ops->call(bus, call);
}

/* On the shard that called. Does nothing if the call is not under way. done is not called any more; the server
 * is told, if it can be reached; of a call whose time is over it is not told. */
static inline void pawl_bus_cancel(pawl_bus *bus, pawl_bus_call *call)
{
    bus->ops->cancel(bus, call);
}

/* Serve a verb on a shard of this node: fn runs there. NULL fn: no longer; requests that are under way are
 * cancelled, without a word to the server. On that shard. */
static inline int pawl_bus_serve(pawl_bus *bus, uint32_t shard, uint16_t verb,
                                 void (*fn)(void *arg, pawl_bus_request *request), void *arg)
{
    return bus->ops->serve(bus, shard, verb, fn, arg);
}

/* On the shard that serves it: once, unless it was cancelled. Copies the reply; the request is gone. */
static inline void pawl_bus_answer(pawl_bus *bus, pawl_bus_request *request, int status, pawl_bytes reply)
{
    bus->ops->answer(bus, request, status, reply);
}

#ifdef __cplusplus
}
#endif
#endif

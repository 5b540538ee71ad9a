/* adapter/local/bus.c: messages between the shards of one process.
 *
 * A call is a message that goes to the server's shard, waits there while it is served, and goes back as the
 * answer. A cancellation is a message of its own. Each shard has an inbox and one task that takes a message
 * from it at a time, so that nothing is allocated by the env, and a node that is killed leaves all its
 * messages here.
 *
 * Invariants
 *   L1  The network's lock guards the list of buses, left, and the inboxes. No function of a caller or a server
 *       is called under it.
 *   L2  What else a shard has (calls, requests, late messages, services) is touched on that shard only.
 *   L3  The number of a call is never given twice in a network: an answer for a node's former life finds no
 *       call.
 *   L4  A message is in one list, or in the hands of the function that has just taken it out. */
#include "adapter/local/bus.h"

#include <assert.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/heap.h"
#include "base/map.h"

#define CALLS_MAX ((size_t)65536) /* under way, of one shard */

enum kind { CALL = 1, ANSWER, CANCEL };

struct place {
    uint32_t node;
    uint32_t shard;
};

struct message {
    struct message *next;
    struct message **prev;    /* what points to it */
    pawl_bus_request request; /* while it is served */
    pawl_timer timer;         /* while it is late */
    struct shard *at;         /* late or served: where */
    enum kind kind;
    struct place from, to;
    uint64_t number; /* of the call */
    int status;      /* ANSWER */
    pawl_duration delay;
    uint8_t *body;
    size_t size;
};

struct list {
    struct message *first;
    struct message **last;
};

/* A call under way, at its caller. */
struct pending {
    pawl_bus_call *call;
    pawl_timer timer;
    struct shard *shard;
    uint64_t number;
};

struct service {
    uint16_t verb;
    void (*fn)(void *arg, pawl_bus_request *request);
    void *arg;
};

struct shard {
    struct local_bus *bus;
    uint32_t id;
    pawl_task task;
    struct list inbox; /* under the lock */
    struct list late;
    struct list served;
    struct map calls; /* number -> struct pending * */
    struct service *services;
    size_t service_count;
};

struct local_bus {
    pawl_bus port;
    struct local_network *network;
    struct local_bus *next;
    uint32_t node;
    pawl_env *env;
    bool left;
    uint32_t shard_count;
    struct shard shards[];
};

struct local_network {
    struct local_network_options options;
    pthread_mutex_t lock;
    struct local_bus *buses;
    uint64_t number; /* the last one that was given */
};

/* Lists. */

static void list_init(struct list *list)
{
    *list = (struct list){.last = &list->first};
}

static void list_add(struct list *list, struct message *m)
{
    m->next = NULL;
    m->prev = list->last;
    *list->last = m;
    list->last = &m->next;
}

static void list_remove(struct list *list, struct message *m)
{
    *m->prev = m->next;
    if (m->next)
        m->next->prev = m->prev;
    else
        list->last = m->prev;
}

static const pawl_allocator *memory_of(const struct local_bus *bus)
{
    return bus->network->options.allocator;
}

/* Messages. */

static void message_free(struct local_bus *bus, struct message *m)
{
    mem_free(memory_of(bus), m->body, m->size);
    mem_free(memory_of(bus), m, sizeof *m);
}

/* body may be the one that the message has: a server may answer with what it was sent. PAWL_ENOMEM: the message
 * has no body then. */
static int message_fill(struct local_bus *bus, struct message *m, pawl_bytes body)
{
    uint8_t *copy = body.size ? mem_resize(memory_of(bus), NULL, 0, body.size) : NULL;
    if (copy)
        memcpy(copy, body.data, body.size);
    mem_free(memory_of(bus), m->body, m->size);
    m->body = copy;
    m->size = copy ? body.size : 0;
    return body.size && !copy ? PAWL_ENOMEM : PAWL_OK;
}

static struct message *message_new(struct local_bus *bus, const struct message *as, pawl_bytes body)
{
    struct message *m = mem_new(memory_of(bus), 1, sizeof *m);
    if (!m)
        return NULL;
    *m = *as;
    m->body = NULL;
    m->size = 0;
    if (message_fill(bus, m, body) != PAWL_OK) {
        mem_free(memory_of(bus), m, sizeof *m);
        return NULL;
    }
    return m;
}

/* Into the inbox of the shard that it is for. PAWL_EIO: that node is down, or has no such shard; the message is
 * still the caller's. */
static int deliver(struct local_network *network, struct message *m)
{
    int status = PAWL_EIO;
    pthread_mutex_lock(&network->lock);
    for (struct local_bus *bus = network->buses; bus; bus = bus->next) {
        if (bus->node != m->to.node || bus->left || m->to.shard >= bus->shard_count)
            continue;
        struct shard *shard = &bus->shards[m->to.shard];
        if (pawl_env_post(bus->env, shard->id, &shard->task) != PAWL_OK)
            continue;
        list_add(&shard->inbox, m);
        status = PAWL_OK;
    }
    pthread_mutex_unlock(&network->lock);
    return status;
}

/* The same, as fate wants it. */
static int deliver_by_fate(struct local_bus *bus, struct message *m)
{
    const struct local_network_options *options = &bus->network->options;
    struct local_fate fate = {0};
    if (options->fate)
        options->fate(options->ctx, m->from.node, m->to.node, &fate);
    if (fate.twice && !fate.lost) {
        struct message *again = message_new(bus, m, (pawl_bytes){m->body, m->size});
        if (again) {
            again->delay = fate.delay_again;
            if (deliver(bus->network, again) != PAWL_OK)
                message_free(bus, again);
        }
    }
    m->delay = fate.delay;
    if (!fate.lost)
        return deliver(bus->network, m);
    message_free(bus, m);
    return PAWL_OK;
}

static void turn_round(struct message *m, int status)
{
    struct place from = m->from;
    m->from = m->to;
    m->to = from;
    m->kind = ANSWER;
    m->status = status;
    m->delay = 0;
}

/* The caller's side. */

static void pending_free(struct pending *p)
{
    struct shard *shard = p->shard;
    pawl_env_cancel(shard->bus->env, &p->timer);
    map_remove_u64(&shard->calls, p->number);
    p->call->impl[0] = NULL;
    mem_free(memory_of(shard->bus), p, sizeof *p);
}

static void pending_late(pawl_timer *timer)
{
    struct pending *p = heap_entry(timer, struct pending, timer);
    pawl_bus_call *call = p->call;
    pending_free(p);
    call->status = PAWL_ETIMEOUT;
    call->reply = (pawl_bytes){0};
    call->done(call);
}

static int pending_new(struct shard *shard, pawl_bus_call *call, uint64_t number)
{
    void *slot;
    bool is_new;
    struct pending *p = mem_new(memory_of(shard->bus), 1, sizeof *p);
    if (!p)
        return PAWL_ENOMEM;
    int status = map_put_u64(&shard->calls, number, &slot, &is_new);
    if (status != PAWL_OK) {
        mem_free(memory_of(shard->bus), p, sizeof *p);
        return status == PAWL_ETOOBIG ? PAWL_EBUSY : status;
    }
    memcpy(slot, &p, sizeof p);
    *p = (struct pending){.call = call, .timer.fn = pending_late, .shard = shard, .number = number};
    call->impl[0] = p;
    if (call->timeout > 0)
        pawl_env_after(shard->bus->env, &p->timer, call->timeout);
    return PAWL_OK;
}

static void on_answer(struct shard *shard, struct message *m)
{
    struct pending *p;
    const void *slot = map_get_u64(&shard->calls, m->number);
    if (slot) {
        memcpy(&p, slot, sizeof p);
        pawl_bus_call *call = p->call;
        pending_free(p);
        call->status = m->status;
        call->reply = (pawl_bytes){m->body, m->size};
        call->done(call);
    }
    message_free(shard->bus, m);
}

static struct local_bus *bus_of(pawl_bus *port)
{
    return (struct local_bus *)port;
}

static struct shard *self_of(struct local_bus *bus)
{
    uint32_t self = pawl_env_self(bus->env);
    assert(self < bus->shard_count);
    return &bus->shards[self];
}

/* A number for a call; 0: the node has left. */
static uint64_t take_number(struct local_bus *bus)
{
    pthread_mutex_lock(&bus->network->lock);
    uint64_t number = bus->left ? 0 : ++bus->network->number;
    pthread_mutex_unlock(&bus->network->lock);
    return number;
}

static int port_call(pawl_bus *port, pawl_bus_call *call)
{
    struct local_bus *bus = bus_of(port);
    struct shard *shard = self_of(bus);
    assert(!call->impl[0]);
    if (call->body.size > PAWL_BUS_BODY_MAX)
        return PAWL_ETOOBIG;
    uint64_t number = take_number(bus);
    if (number == 0)
        return PAWL_ECLOSED;
    struct message as = {
        .kind = CALL,
        .from = {bus->node, shard->id},
        .to = {call->node, call->shard},
        .number = number,
        .request = {.from = bus->node, .verb = call->verb},
    };
    struct message *m = message_new(bus, &as, call->body);
    if (!m)
        return PAWL_ENOMEM;
    int status = pending_new(shard, call, number);
    if (status == PAWL_OK && deliver_by_fate(bus, m) == PAWL_OK)
        return PAWL_OK;
    if (status == PAWL_OK) {
        turn_round(m, PAWL_EIO);
        message_fill(bus, m, (pawl_bytes){0});
        if (deliver(bus->network, m) == PAWL_OK)
            return PAWL_OK;
        pending_free(call->impl[0]);
        status = PAWL_ECLOSED;
    }
    message_free(bus, m);
    return status;
}

static void port_cancel(pawl_bus *port, pawl_bus_call *call)
{
    struct local_bus *bus = bus_of(port);
    struct pending *p = call->impl[0];
    if (!p)
        return;
    assert(p->shard == self_of(bus));
    struct message as = {
        .kind = CANCEL,
        .from = {bus->node, p->shard->id},
        .to = {call->node, call->shard},
        .number = p->number,
    };
    pending_free(p);
    struct message *m = message_new(bus, &as, (pawl_bytes){0});
    if (m && deliver_by_fate(bus, m) != PAWL_OK)
        message_free(bus, m);
}

/* The server's side. */

static struct service *service_find(struct shard *shard, uint16_t verb)
{
    for (size_t i = 0; i < shard->service_count; i++)
        if (shard->services[i].verb == verb)
            return &shard->services[i];
    return NULL;
}

static void on_call(struct shard *shard, struct message *m)
{
    const struct service *service = service_find(shard, m->request.verb);
    if (!service || !service->fn) {
        turn_round(m, PAWL_EIO);
        message_fill(shard->bus, m, (pawl_bytes){0});
        if (deliver_by_fate(shard->bus, m) != PAWL_OK)
            message_free(shard->bus, m);
        return;
    }
    m->at = shard;
    m->request.body = (pawl_bytes){m->body, m->size};
    list_add(&shard->served, m);
    service->fn(service->arg, &m->request);
}

/* A call that was served twice is cancelled twice. What the server does when it is told may end other requests:
 * so the list is looked through from its beginning each time. */
static void on_cancel(struct shard *shard, struct message *cancel)
{
    struct message *m = shard->served.first;
    while (m) {
        if (m->number != cancel->number) {
            m = m->next;
            continue;
        }
        list_remove(&shard->served, m);
        if (m->request.cancelled)
            m->request.cancelled(&m->request);
        message_free(shard->bus, m);
        m = shard->served.first;
    }
    message_free(shard->bus, cancel);
}

static void port_answer(pawl_bus *port, pawl_bus_request *request, int status, pawl_bytes reply)
{
    static const pawl_bytes none;
    struct local_bus *bus = bus_of(port);
    struct message *m = heap_entry(request, struct message, request);
    assert(m->at == self_of(bus));
    list_remove(&m->at->served, m);
    turn_round(m, reply.size > PAWL_BUS_BODY_MAX ? PAWL_ETOOBIG : status);
    if (message_fill(bus, m, m->status == PAWL_ETOOBIG ? none : reply) != PAWL_OK)
        m->status = PAWL_ENOMEM;
    if (deliver_by_fate(bus, m) != PAWL_OK)
        message_free(bus, m);
}

static int port_serve(pawl_bus *port, uint32_t shard_id, uint16_t verb,
                      void (*fn)(void *arg, pawl_bus_request *request), void *arg)
{
    struct local_bus *bus = bus_of(port);
    struct shard *shard = self_of(bus);
    assert(shard->id == shard_id);
    struct service *service = service_find(shard, verb);
    if (!service && fn) {
        size_t size = shard->service_count * sizeof *service;
        struct service *more = mem_resize(memory_of(bus), shard->services, size, size + sizeof *service);
        if (!more)
            return PAWL_ENOMEM;
        shard->services = more;
        service = &more[shard->service_count++];
    }
    if (service)
        *service = (struct service){verb, fn, arg};
    struct message *next;
    for (struct message *m = shard->served.first; m && !fn; m = next) {
        next = m->next;
        if (m->request.verb != verb)
            continue;
        list_remove(&shard->served, m);
        message_free(bus, m);
    }
    return PAWL_OK;
}

/* Arrival. */

static void arrive(struct shard *shard, struct message *m)
{
    switch (m->kind) {
    case CALL: on_call(shard, m); break;
    case ANSWER: on_answer(shard, m); break;
    case CANCEL: on_cancel(shard, m); break;
    }
}

static void late_arrives(pawl_timer *timer)
{
    struct message *m = heap_entry(timer, struct message, timer);
    list_remove(&m->at->late, m);
    arrive(m->at, m);
}

static void take_one(pawl_task *task)
{
    struct shard *shard = heap_entry(task, struct shard, task);
    struct local_bus *bus = shard->bus;
    pthread_mutex_lock(&bus->network->lock);
    struct message *m = shard->inbox.first;
    if (m)
        list_remove(&shard->inbox, m);
    if (shard->inbox.first)
        pawl_env_post(bus->env, shard->id, &shard->task); /* refused in shutdown: the rest is freed by close */
    pthread_mutex_unlock(&bus->network->lock);
    if (!m)
        return;
    if (m->delay == 0) {
        arrive(shard, m);
        return;
    }
    m->at = shard;
    m->timer = (pawl_timer){.fn = late_arrives};
    list_add(&shard->late, m);
    pawl_env_after(bus->env, &m->timer, m->delay);
}

static const struct pawl_bus_ops port_ops = {
    .call = port_call,
    .cancel = port_cancel,
    .serve = port_serve,
    .answer = port_answer,
};

/* Networks and nodes. */

int local_network_open(const struct local_network_options *options, struct local_network **ret_network)
{
    struct local_network *network = mem_new(options->allocator, 1, sizeof *network);
    if (!network)
        return PAWL_ENOMEM;
    network->options = *options;
    pthread_mutex_init(&network->lock, NULL);
    *ret_network = network;
    return PAWL_OK;
}

void local_network_close(struct local_network *network)
{
    if (!network)
        return;
    assert(!network->buses);
    pthread_mutex_destroy(&network->lock);
    mem_free(network->options.allocator, network, sizeof *network);
}

static void shard_init(struct shard *shard, struct local_bus *bus, uint32_t id)
{
    *shard = (struct shard){.bus = bus, .id = id, .task.fn = take_one};
    list_init(&shard->inbox);
    list_init(&shard->late);
    list_init(&shard->served);
    map_init(&shard->calls, memory_of(bus), sizeof(uint64_t), sizeof(struct pending *), CALLS_MAX);
}

int local_bus_open(struct local_network *network, uint32_t node, pawl_env *env, struct local_bus **ret_bus)
{
    uint32_t shards = pawl_env_shards(env);
    struct local_bus *bus =
        mem_new(network->options.allocator, 1, sizeof *bus + shards * sizeof bus->shards[0]);
    if (!bus)
        return PAWL_ENOMEM;
    bus->port.ops = &port_ops;
    bus->network = network;
    bus->node = node;
    bus->env = env;
    bus->shard_count = shards;
    for (uint32_t i = 0; i < shards; i++)
        shard_init(&bus->shards[i], bus, i);
    bool taken = false;
    pthread_mutex_lock(&network->lock);
    for (const struct local_bus *other = network->buses; other; other = other->next)
        taken = taken || (other->node == node && !other->left);
    if (!taken) {
        bus->next = network->buses;
        network->buses = bus;
    }
    pthread_mutex_unlock(&network->lock);
    if (taken) {
        mem_free(network->options.allocator, bus, sizeof *bus + shards * sizeof bus->shards[0]);
        return PAWL_EEXISTS;
    }
    *ret_bus = bus;
    return PAWL_OK;
}

pawl_bus *local_bus_port(struct local_bus *bus)
{
    return &bus->port;
}

void local_bus_leave(struct local_bus *bus)
{
    pthread_mutex_lock(&bus->network->lock);
    bus->left = true;
    pthread_mutex_unlock(&bus->network->lock);
}

static void list_free(struct local_bus *bus, struct list *list)
{
    while (list->first) {
        struct message *m = list->first;
        list_remove(list, m);
        message_free(bus, m);
    }
}

static void shard_release(struct shard *shard)
{
    const void *key;
    void *value;
    size_t cursor = 0;
    while (map_next(&shard->calls, &cursor, &key, &value)) {
        struct pending *p;
        memcpy(&p, value, sizeof p);
        mem_free(memory_of(shard->bus), p, sizeof *p);
    }
    map_release(&shard->calls);
    list_free(shard->bus, &shard->inbox);
    list_free(shard->bus, &shard->late);
    list_free(shard->bus, &shard->served);
    mem_free(memory_of(shard->bus), shard->services, shard->service_count * sizeof *shard->services);
}

void local_bus_close(struct local_bus *bus)
{
    if (!bus)
        return;
    struct local_network *network = bus->network;
    pthread_mutex_lock(&network->lock);
    struct local_bus **at = &network->buses;
    while (*at != bus)
        at = &(*at)->next;
    *at = bus->next;
    pthread_mutex_unlock(&network->lock);
    for (uint32_t i = 0; i < bus->shard_count; i++)
        shard_release(&bus->shards[i]);
    mem_free(network->options.allocator, bus, sizeof *bus + bus->shard_count * sizeof bus->shards[0]);
}

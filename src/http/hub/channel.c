/* http/hub/channel.c: the last events of a partition, as they come from its one follower in the engine. */
#include <stdlib.h>
#include <string.h>

#include "http/hub/impl.h"

/* --- messages --- */

struct message *message_new(pawl_bytes command, pawl_bytes json)
{
    struct message *message = malloc(sizeof *message + command.size + json.size);
    if (!message)
        return NULL;
    *message = (struct message){.holders = 1, .command_size = command.size, .size = json.size};
    if (command.size > 0)
        memcpy(message->text, command.data, command.size);
    memcpy(message->text + command.size, json.data, json.size);
    return message;
}

void message_hold(struct message *message)
{
    atomic_fetch_add_explicit(&message->holders, 1, memory_order_relaxed);
}

void message_let_go(struct message *message)
{
    if (message && atomic_fetch_sub_explicit(&message->holders, 1, memory_order_acq_rel) == 1)
        free(message);
}

/* --- the ring --- */

static struct message *at_place(const struct channel *c, uint64_t place)
{
    return c->ring[place % RING_EVENTS];
}

static void drop_oldest(struct channel *c)
{
    struct message *message = at_place(c, c->first++);
    c->from = message->offset + 1;
    c->bytes -= message->size;
    message_let_go(message);
}

/* The ring begins with this offset, and is empty. */
static void restart(struct channel *c, uint64_t from)
{
    while (c->first < c->end)
        drop_oldest(c);
    c->from = c->next = from;
}

/* A message that does not fit, and one that there is no memory for (NULL), is left for the log to tell. */
static void add(struct channel *c, struct message *message, uint64_t offset)
{
    if (!message || message->size > RING_BYTES) {
        restart(c, offset + 1);
        message_let_go(message);
        return;
    }
    while (c->first < c->end && (c->end - c->first == RING_EVENTS || c->bytes + message->size > RING_BYTES))
        drop_oldest(c);
    c->ring[c->end++ % RING_EVENTS] = message;
    c->bytes += message->size;
    c->next = offset + 1;
}

struct message *channel_find(const struct channel *c, uint64_t offset)
{
    uint64_t low = c->first, high = c->end;
    if (offset < c->from)
        return NULL;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (at_place(c, middle)->offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->end ? at_place(c, low) : NULL;
}

/* --- following --- */

static void tell(struct hub *hub)
{
    hub->version++;
    hub->fresh = true;
    pthread_cond_signal(&hub->changed);
}

static void ended_by_error(struct channel *c)
{
    c->followed = false;
    c->broken++;
    tell(c->hub);
}

/* On a thread of the engine's. Nobody follows any more: then it ends, and begins again with the next client. */
static bool come(void *arg, const pawl_event *event)
{
    struct channel *c = arg;
    struct hub *hub = c->hub;
    struct message *message = NULL;
    pawl_bytes json;
    pthread_mutex_lock(&hub->lock);
    bool wanted = c->clients > 0;
    if (!event)
        ended_by_error(c);
    else if (!wanted) {
        c->followed = false;
        restart(c, event->offset);
    }
    pthread_mutex_unlock(&hub->lock);
    if (!event || !wanted)
        return false;
    if (pawl_event_json(event, &json, NULL) == PAWL_OK)
        message = message_new(event->command, json);
    if (message) {
        message->offset = event->offset;
        message->wsid = event->wsid;
        message->workspace_offset = event->workspace_offset;
    }
    pthread_mutex_lock(&hub->lock);
    add(c, message, event->offset);
    hub->figures.messages++;
    tell(hub);
    pthread_mutex_unlock(&hub->lock);
    return true;
}

/* From what is applied on: that is in the log, and what came before is read from there. */
static int follow(struct channel *c, pawl_error *error)
{
    struct hub *hub = c->hub;
    pawl_engine *engine = hub->server->engine;
    pawl_partition_figures figures;
    if (c->events)
        (void)pawl_events_unfollow(c->events, NULL);
    c->events = NULL;
    int status = pawl_partition_figures_get(engine, c->partition, &figures, error);
    if (status != PAWL_OK)
        return status;
    if (!c->ring)
        c->ring = calloc(RING_EVENTS, sizeof *c->ring);
    if (!c->ring)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory to follow events");
    pthread_mutex_lock(&hub->lock);
    restart(c, figures.offset + 1);
    c->followed = true;
    pthread_mutex_unlock(&hub->lock);
    status = pawl_events_follow(engine, c->partition, figures.offset + 1, come, c, &c->events, error);
    if (status == PAWL_OK)
        return PAWL_OK;
    pthread_mutex_lock(&hub->lock);
    c->followed = false;
    pthread_mutex_unlock(&hub->lock);
    return status;
}

int channel_start(struct channel *c, pawl_error *error)
{
    struct hub *hub = c->hub;
    int status = PAWL_OK;
    pthread_mutex_lock(&hub->starting);
    pthread_mutex_lock(&hub->lock);
    bool followed = c->followed;
    pthread_mutex_unlock(&hub->lock);
    if (!followed)
        status = follow(c, error);
    pthread_mutex_unlock(&hub->starting);
    return status;
}

void channel_release(struct channel *c)
{
    if (c->events)
        (void)pawl_events_unfollow(c->events, NULL);
    restart(c, 1);
    free(c->ring);
}

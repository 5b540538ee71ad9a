/* http/hub/page.c: what a client that is behind the ring reads from the log.
 *
 * The events of a workspace are found by its own offsets, however many others lie between. Those are the events
 * that are applied. So when there is no more of them, the client goes on, in the ring, behind the offset that was
 * applied before it was looked: every later event of the workspace comes after that one. */
#include <stdlib.h>
#include <string.h>

#include "http/hub/impl.h"

#define SCAN_EVENTS 8192 /* of which a client with a list of commands wants few */

struct page {
    struct client *client;
    uint32_t index;
    size_t events;
    bool stopped;
    int status;
    pawl_error error;
};

static void pass_over(struct client *client, uint32_t index, uint64_t next)
{
    pthread_mutex_lock(&client->hub->lock);
    if (next > client->next[index])
        client->next[index] = next;
    pthread_mutex_unlock(&client->hub->lock);
}

static bool load_event(void *arg, const pawl_event *event)
{
    struct page *page = arg;
    struct client *client = page->client;
    pawl_bytes json;
    if (client->commands && !hub_lists(client->commands, event->command)) {
        pass_over(client, page->index, event->offset + 1);
        return true;
    }
    page->status = pawl_event_json(event, &json, &page->error);
    if (page->status == PAWL_OK
        && !client_write_page(client, page->index, event->offset, event->workspace_offset, json))
        page->status = pawl_error_set(&page->error, PAWL_ENOMEM, "no memory for events");
    page->stopped = page->status != PAWL_OK || ++page->events == PAGE_EVENTS || client->page_size >= PAGE_BYTES
                    || client->left == 0;
    return !page->stopped;
}

static int load_workspace(struct page *page)
{
    struct client *client = page->client;
    pawl_engine *engine = client->hub->server->engine;
    pawl_partition_figures figures;
    int status = pawl_partition_figures_get(engine, (uint16_t)client->first_partition, &figures, &page->error);
    if (status == PAWL_OK)
        status = pawl_workspace_events_read(engine, client->wsid, client->workspace_next, PAGE_EVENTS,
                                            load_event, page, NULL, &page->error);
    if (status == PAWL_OK && !page->stopped)
        pass_over(client, 0, figures.offset + 1);
    return status;
}

static int load_partition(struct page *page)
{
    struct client *client = page->client;
    return pawl_events_read(client->hub->server->engine, (uint16_t)(client->first_partition + page->index),
                            client->next[page->index], client->commands ? SCAN_EVENTS : PAGE_EVENTS, load_event,
                            page, NULL, &page->error);
}

static void write_failure(struct client *client, const pawl_error *error)
{
    static const char before[] = "event: error\ndata: ";
    char body[FAILURE_BODY_MAX];
    size_t size = failure_body(error, body);
    (void)(client_page_add(client, (pawl_bytes){before, sizeof before - 1})
           && client_page_add(client, (pawl_bytes){body, size})
           && client_page_add(client, (pawl_bytes){"\n", 1}));
    client->ended = true;
}

void client_load(struct client *client)
{
    struct message *message;
    struct page page = {.client = client};
    pthread_mutex_lock(&client->hub->lock);
    bool behind = client_next(client, &message, &page.index) == NEXT_PAGE;
    uint64_t before = client->next[page.index];
    client->hub->figures.pages++;
    pthread_mutex_unlock(&client->hub->lock);
    if (!behind)
        return;
    int status = client->kind == HUB_WORKSPACE ? load_workspace(&page) : load_partition(&page);
    if (status == PAWL_OK)
        status = page.status;
    if (status != PAWL_OK) {
        page.error.code = status;
        write_failure(client, &page.error);
    }
    if (page.events == 0 && client->next[page.index] == before)
        client->loaded_at = server_now();
}

/* http/hub/client.c: what comes next for a client, and how it is written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/hub/event_cursor.h"
#include "http/hub/impl.h"

#define RETRY_PAUSE (100 * PAWL_MILLISECOND)

static const char data_word[] = "data: ";
static const char end_words[] = "\n\n";
static const char beat_words[] = ":\n\n";

/* --- what comes next --- */

bool hub_lists(const char *list, pawl_bytes name)
{
    for (const char *at = list; *at;) {
        size_t size = strcspn(at, ",");
        if (size == name.size && memcmp(at, name.data, size) == 0)
            return true;
        at += size + (at[size] == ',');
    }
    return false;
}

static bool wants(const struct client *client, const struct message *message)
{
    if (client->kind == HUB_WORKSPACE)
        return message->wsid == client->wsid && message->workspace_offset >= client->workspace_next;
    return !client->commands || hub_lists(client->commands, (pawl_bytes){message->text, message->command_size});
}

/* Of one partition. What it does not want is passed over. */
static enum client_next next_of(struct client *client, uint32_t index, struct message **ret_message)
{
    const struct channel *c = &client->hub->channels[client->first_partition + index];
    struct message *message;
    if (c->broken != client->broken[index])
        return NEXT_BROKEN;
    if (client->next[index] < c->from)
        return NEXT_PAGE;
    while ((message = channel_find(c, client->next[index]))) {
        if (wants(client, message)) {
            *ret_message = message;
            return NEXT_MESSAGE;
        }
        client->next[index] = message->offset + 1;
    }
    return NEXT_NOTHING;
}

static enum client_next next_figures(const struct client *client, struct message **ret_message)
{
    if (!client->hub->board || client->version == client->hub->board_number)
        return NEXT_NOTHING;
    *ret_message = client->hub->board;
    return NEXT_MESSAGE;
}

enum client_next client_next(struct client *client, struct message **ret_message, uint32_t *ret_index)
{
    *ret_index = 0;
    if (client->kind == HUB_FIGURES)
        return next_figures(client, ret_message);
    if (client->version == client->hub->version)
        return NEXT_NOTHING;
    for (uint32_t i = 0; i < client->partitions; i++) {
        uint32_t index = (client->turn + i) % client->partitions;
        enum client_next next = next_of(client, index, ret_message);
        *ret_index = index;
        if (next != NEXT_NOTHING)
            return next;
    }
    client->version = client->hub->version;
    return NEXT_NOTHING;
}

/* --- writing --- */

static void add_head(struct client *client, const char *words)
{
    size_t size = strlen(words);
    memcpy(client->head + client->head_size, words, size);
    client->head_size += size;
}

/* The client has this event: its cursor is behind it. Writes what comes before the JSON. */
static void pass(struct client *client, uint32_t index, uint64_t offset, uint64_t workspace_offset)
{
    char number[24];
    client->next[index] = offset + 1;
    client->turn = (index + 1) % client->partitions;
    client->left -= client->left != UINT64_MAX;
    client->hub->figures.sent++;
    client->head_size = 0;
    add_head(client, "id: ");
    snprintf(number, sizeof number, "%" PRIu64, client->kind == HUB_WORKSPACE ? workspace_offset : offset);
    if (client->kind == HUB_EVERY)
        client->head_size +=
            event_cursor_format(client->next, client->partitions, client->head + client->head_size);
    else
        add_head(client, number);
    if (client->kind == HUB_WORKSPACE)
        client->workspace_next = workspace_offset + 1;
    add_head(client, "\n");
    add_head(client, data_word);
}

bool client_page_add(struct client *client, pawl_bytes bytes)
{
    if (client->page_room - client->page_size < bytes.size) {
        size_t room = client->page_room ? client->page_room : 4096;
        while (room - client->page_size < bytes.size)
            room *= 2;
        char *larger = realloc(client->page, room);
        if (!larger)
            return false;
        client->page = larger;
        client->page_room = room;
    }
    memcpy(client->page + client->page_size, bytes.data, bytes.size);
    client->page_size += bytes.size;
    return true;
}

bool client_write_page(struct client *client, uint32_t index, uint64_t offset, uint64_t workspace_offset,
                       pawl_bytes json)
{
    size_t before = client->page_size;
    pthread_mutex_lock(&client->hub->lock);
    pass(client, index, offset, workspace_offset);
    pthread_mutex_unlock(&client->hub->lock);
    if (client_page_add(client, (pawl_bytes){client->head, client->head_size}) && client_page_add(client, json)
        && client_page_add(client, (pawl_bytes){end_words, sizeof end_words - 1}))
        return true;
    client->page_size = before;
    client->ended = true; /* its cursor is behind an event that it does not get: it must come again */
    return false;
}

static size_t copy_part(pawl_bytes part, size_t *skip, char *memory, size_t room)
{
    if (*skip >= part.size) {
        *skip -= part.size;
        return 0;
    }
    size_t size = part.size - *skip < room ? part.size - *skip : room;
    memcpy(memory, (const char *)part.data + *skip, size);
    *skip = 0;
    return size;
}

/* What is left of the message that is being written, as far as there is room. */
static size_t copy_message(struct client *client, char *memory, size_t room)
{
    struct message *m = client->message;
    const pawl_bytes parts[] = {{client->head, client->head_size},
                                {m->text + m->command_size, m->size},
                                {end_words, sizeof end_words - 1}};
    size_t put = 0, skip = client->at;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        put += copy_part(parts[i], &skip, memory + put, room - put);
    client->at += put;
    if (client->at == client->head_size + m->size + sizeof end_words - 1) {
        client->message = NULL;
        client->at = 0;
        message_let_go(m);
    }
    return put;
}

static size_t copy_page(struct client *client, char *memory, size_t room)
{
    size_t skip = client->at;
    size_t put = copy_part((pawl_bytes){client->page, client->page_size}, &skip, memory, room);
    client->at += put;
    if (client->at == client->page_size) {
        free(client->page);
        client->page = NULL;
        client->page_size = client->page_room = client->at = 0;
    }
    return put;
}

/* --- reading --- */

static void take_message(struct client *client, struct message *message, uint32_t index)
{
    message_hold(message);
    client->message = message;
    if (client->kind != HUB_FIGURES) {
        pass(client, index, message->offset, message->workspace_offset);
        return;
    }
    client->version = client->hub->board_number;
    client->left -= client->left != UINT64_MAX;
    client->head_size = 0;
    add_head(client, data_word);
}

/* A page that had nothing for it: the state is a little behind the log, and it is asked for again in a while. */
static bool may_load(const struct client *client)
{
    return !client->wanting && !client->loading && server_now() - client->loaded_at >= RETRY_PAUSE;
}

enum chosen { CHOSEN_WRITE, CHOSEN_SLEEP, CHOSEN_END, CHOSEN_BROKEN };

/* Under the lock: what to do next. */
static enum chosen choose(struct client *client)
{
    struct message *message;
    uint32_t index;
    if (client->message)
        return CHOSEN_WRITE;
    if (client->loading || client->wanting)
        return CHOSEN_SLEEP;
    if (client->page)
        return CHOSEN_WRITE;
    if (client->ended || client->left == 0)
        return CHOSEN_END;
    switch (client_next(client, &message, &index)) {
    case NEXT_MESSAGE: take_message(client, message, index); return CHOSEN_WRITE;
    case NEXT_BROKEN: return CHOSEN_BROKEN;
    case NEXT_PAGE:
        if (may_load(client))
            hub_want_page(client->hub, client);
        return CHOSEN_SLEEP;
    default: return CHOSEN_SLEEP;
    }
}

static size_t copy_beat(struct client *client, char *memory, size_t room)
{
    if (!client->beat || room < sizeof beat_words)
        return 0;
    client->beat = false;
    client->said_at = server_now();
    memcpy(memory, beat_words, sizeof beat_words - 1);
    return sizeof beat_words - 1;
}

/* Under the lock; false: there is nothing to write. */
static bool choose_or_sleep(struct client *client, size_t put, enum chosen *ret_chosen)
{
    *ret_chosen = choose(client);
    client->idle = *ret_chosen == CHOSEN_SLEEP && put == 0 && !client->beat;
    client->awake_from = server_now();
    if (put > 0)
        client->said_at = client->awake_from;
    return *ret_chosen == CHOSEN_WRITE;
}

/* A stream that ends because its follower has failed just ends: its client knows where to go on. */
ptrdiff_t client_read(struct exchange *x, char *memory, size_t room)
{
    struct client *client = exchange_state(x);
    struct hub *hub = client->hub;
    enum chosen chosen;
    size_t put = 0;
    for (;;) {
        pthread_mutex_lock(&hub->lock);
        bool write = choose_or_sleep(client, put, &chosen);
        if (chosen == CHOSEN_SLEEP && put == 0)
            put = copy_beat(client, memory, room);
        pthread_mutex_unlock(&hub->lock);
        if (!write)
            break;
        put += client->message ? copy_message(client, memory + put, room - put)
                               : copy_page(client, memory + put, room - put);
        if (put == room)
            return (ptrdiff_t)put;
    }
    if (put > 0)
        return (ptrdiff_t)put;
    return chosen == CHOSEN_SLEEP ? 0 : STREAM_END;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    message_let_go(client->message);
    free(client->page);
    free(client->head);
    free(client->commands);
    free(client->next);
    free(client->broken);
    free(client);
}

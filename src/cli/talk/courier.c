#include "cli/talk/courier.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/show/say.h"

#define BATCH_MAX       256
#define BATCH_BYTES_MAX ((size_t)1 << 20) /* a longer command goes alone */

struct courier {
    struct remote *remote;
    const struct command_wish *wish;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct session_command *first; /* waiting, in order; under lock */
    struct session_command **last;
    bool ending;

    /* of the request under way */
    struct session_command *batch; /* not answered yet, in order */
    struct buffer body;
    struct buffer line; /* the beginning of one that has not come whole */
};

/* --- answers --- */

/* The first of the batch is answered. */
static void finish(struct courier *c, int status, const pawl_error *error)
{
    struct session_command *command = c->batch;
    c->batch = command->next;
    command->next = NULL;
    free(command->json);
    command->json = NULL;
    command->status = status;
    if (status != PAWL_OK)
        command->error = *error;
    command->done(command->arg); /* from here on it is the owner's again */
}

static void finish_all(struct courier *c, int status, const pawl_error *error)
{
    while (c->batch)
        finish(c, status, error);
}

static void finish_with(struct courier *c, const char *text, size_t size)
{
    pawl_error error;
    char *copy = malloc(size + 1);
    if (!copy) {
        finish(c, pawl_error_set(&error, PAWL_ENOMEM, "no memory for an answer"), &error);
        return;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    c->batch->answer = (pawl_text){.data = copy, .size = size, .room = size + 1};
    finish(c, PAWL_OK, NULL);
}

/* {"line":3,"error":{...}} of a refused one. */
static void take_answer(struct courier *c, const char *line, size_t size)
{
    static const char refused[] = "{\"line\":";
    pawl_error error;
    if (size < sizeof refused || memcmp(line, refused, sizeof refused - 1) != 0) {
        finish_with(c, line, size);
        return;
    }
    json_t *tree = json_loadb(line, size, 0, NULL);
    finish(c, remote_error(json_object_get(tree, "error"), &error), &error);
    json_decref(tree);
}

static bool take_lines(void *arg, const char *data, size_t size)
{
    struct courier *c = arg;
    if (!buffer_reserve(&c->line, size))
        return false;
    memcpy(c->line.data + c->line.size, data, size);
    c->line.size += size;
    size_t at = 0;
    const char *end;
    while (c->batch && (end = memchr(c->line.data + at, '\n', c->line.size - at))) {
        size_t length = (size_t)(end - c->line.data) - at;
        take_answer(c, c->line.data + at, length);
        at += length + 1;
    }
    memmove(c->line.data, c->line.data + at, c->line.size - at);
    c->line.size -= at;
    return true;
}

/* --- requests --- */

static const char *ack_text(pawl_ack ack)
{
    return ack == PAWL_ACK_DURABLE ? "durable" : NULL;
}

static void target_of(struct courier *c, struct target *ret_target)
{
    target_begin(ret_target, "/v1/ws");
    target_number(ret_target, c->wish->wsid);
    target_word(ret_target, "commands");
    target_add(ret_target, "ack", ack_text(c->wish->ack));
}

/* Alone: the body is the command as it was written, so that places in it are right. */
static int ask_one(struct courier *c, pawl_error *error)
{
    struct target target;
    struct remote_answer answer;
    char *header = NULL;
    target_of(c, &target);
    if (c->wish->key && asprintf(&header, "Idempotency-Key: %s", c->wish->key) < 0)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory for a request");
    const struct remote_call call = {.method = "POST",
                                     .target = &target,
                                     .type = "application/json",
                                     .body = {c->batch->json, c->batch->size},
                                     .header = header};
    int status = remote_ask(c->remote, &call, &answer, error);
    free(header);
    if (status != PAWL_OK)
        return status;
    size_t size = answer.text.size;
    size -= size > 0 && answer.text.data[size - 1] == '\n';
    finish_with(c, answer.text.data, size);
    remote_answer_release(&answer);
    return PAWL_OK;
}

static int ask_many(struct courier *c, pawl_error *error)
{
    struct target target;
    c->body.size = c->line.size = 0;
    for (const struct session_command *command = c->batch; command; command = command->next) {
        if (!buffer_reserve(&c->body, command->size + 1))
            return pawl_error_set(error, PAWL_ENOMEM, "no memory for a request");
        memcpy(c->body.data + c->body.size, command->json, command->size);
        c->body.size += command->size;
        c->body.data[c->body.size++] = '\n';
    }
    target_of(c, &target);
    const struct remote_call call = {.method = "POST",
                                     .target = &target,
                                     .type = "application/x-ndjson",
                                     .body = {c->body.data, c->body.size},
                                     .take = take_lines,
                                     .arg = c};
    return remote_ask(c->remote, &call, NULL, error);
}

/* What was sent, and whose answer has not come, may have taken effect. */
static void ask(struct courier *c)
{
    pawl_error error = {0};
    int status = c->batch->next ? ask_many(c, &error) : ask_one(c, &error);
    if (status == PAWL_OK)
        status = pawl_error_set(&error, PAWL_EUNKNOWN, "%.300s has not answered", remote_name(c->remote));
    if (status == PAWL_ECANCELED || (status == PAWL_EIO && strncmp(error.text, "lost ", 5) == 0)) {
        pawl_error_wrap(&error, PAWL_EUNKNOWN, "whether it took effect is not known");
        status = PAWL_EUNKNOWN;
    }
    finish_all(c, status, &error);
}

/* Take the first of those that wait, and as many behind it as may go together. Under lock. */
static void take_batch(struct courier *c)
{
    struct session_command **end = &c->first;
    size_t count = 0, bytes = 0;
    do {
        bytes += (*end)->size;
        end = &(*end)->next;
        count++;
    } while (*end && count < BATCH_MAX && bytes + (*end)->size <= BATCH_BYTES_MAX);
    struct session_command *rest = *end;
    *end = NULL;
    c->batch = c->first;
    c->first = rest;
    if (!rest)
        c->last = &c->first;
}

static void *work(void *arg)
{
    struct courier *c = arg;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        while (!c->first && !c->ending)
            pthread_cond_wait(&c->changed, &c->lock);
        if (c->first)
            take_batch(c);
        pthread_mutex_unlock(&c->lock);
        if (!c->batch)
            return NULL;
        ask(c);
    }
}

/* --- from outside --- */

int courier_start(struct remote *remote, const struct command_wish *wish, struct courier **ret_courier,
                  pawl_error *error)
{
    struct courier *c = calloc(1, sizeof *c);
    if (!c)
        return pawl_error_set(error, PAWL_ENOMEM, "no memory to send commands");
    c->remote = remote;
    c->wish = wish;
    c->last = &c->first;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    int number = pthread_create(&c->thread, NULL, work, c);
    if (number != 0) {
        free(c);
        return pawl_error_errno(error, number, "cannot start a thread to send commands");
    }
    *ret_courier = c;
    return PAWL_OK;
}

void courier_send(struct courier *c, struct session_command *command)
{
    command->next = NULL;
    pthread_mutex_lock(&c->lock);
    *c->last = command;
    c->last = &command->next;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void courier_stop(struct courier *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->ending = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    free(c->body.data);
    free(c->line.data);
    free(c);
}

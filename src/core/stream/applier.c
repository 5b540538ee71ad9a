#include "core/stream/applier.h"

#include <assert.h>

#include "base/error.h"
#include "base/heap.h"

#define DELAY_MIN (10 * PAWL_MILLISECOND)
#define DELAY_MAX PAWL_SECOND

static void run_task(pawl_task *task)
{
    struct applier *applier = heap_entry(task, struct applier, task);
    if (applier->delay == 0)
        applier_run(applier);
}

static void run_late(pawl_timer *timer)
{
    applier_run(heap_entry(timer, struct applier, timer));
}

void applier_init(struct applier *applier, pawl_env *env, uint32_t shard, pawl_store *store)
{
    *applier =
        (struct applier){.env = env, .shard = shard, .store = store, .task.fn = run_task, .timer.fn = run_late};
    applier->last = &applier->first;
}

void applier_add(struct applier *applier, struct apply_item *item)
{
    item->next = NULL;
    *applier->last = item;
    applier->last = &item->next;
}

bool applier_remove(struct applier *applier, struct apply_item *item)
{
    struct apply_item **link = &applier->first;
    while (*link && *link != item)
        link = &(*link)->next;
    if (!*link)
        return false;
    *link = item->next;
    if (!*link)
        applier->last = link;
    if (applier->first)
        return true;
    applier->stuck = PAWL_OK; /* nothing waits for the store any more */
    applier->delay = 0;
    pawl_env_cancel(applier->env, &applier->timer);
    return true;
}

void applier_soon(struct applier *applier)
{
    /* The env refuses only when it is closing, and then nothing runs any more. */
    (void)pawl_env_post(applier->env, applier->shard, &applier->task);
}

/* The one place where a transaction begins and ends. */
static void begin(struct applier *applier)
{
    assert(!applier->writing); /* A3 */
    applier->writing = true;
}

static int end(struct applier *applier, int status)
{
    struct apply_hook *hook = applier->hook;
    if (status == PAWL_OK && hook)
        status = hook->flush(hook, applier->store);
    applier->writing = false;
    if (status == PAWL_OK)
        status = pawl_store_commit(applier->store);
    else
        pawl_store_abort(applier->store);
    if (hook)
        hook->ended(hook, status == PAWL_OK);
    return status;
}

int applier_write(struct applier *applier, int (*put)(void *ctx, pawl_store *store, pawl_error *error),
                  void *ctx, pawl_error *error)
{
    begin(applier);
    int put_status = put(ctx, applier->store, error);
    int status = end(applier, put_status);
    return status == put_status
               ? status
               : error_set(error, status, "cannot write the state: %s", applier->store->error.text);
}

/* All or nothing: if one item fails, those before it are undone too. */
static int write_all(struct applier *applier)
{
    struct apply_item *item = applier->first;
    int status = PAWL_OK;
    begin(applier);
    for (; item && status == PAWL_OK; item = status == PAWL_OK ? item->next : item)
        status = item->write(item, applier->store);
    status = end(applier, status);
    if (status == PAWL_OK)
        return status;
    for (struct apply_item *written = applier->first; written != item; written = written->next)
        written->undo(written);
    return status;
}

static void tell_done(struct applier *applier)
{
    struct apply_item *item = applier->first;
    applier->first = NULL;
    applier->last = &applier->first;
    applier->telling = true;
    while (item) {
        struct apply_item *next = item->next; /* done may add it again */
        item->done(item);
        item = next;
    }
    applier->telling = false;
}

/* The items stay queued. Each is told, because its callers may have waited long enough. */
static void tell_late(struct applier *applier)
{
    applier->telling = true;
    for (struct apply_item *item = applier->first, *next; item; item = next) {
        next = item->next;
        if (item->late)
            item->late(item);
    }
    applier->telling = false;
}

void applier_run(struct applier *applier)
{
    if (!applier->first || applier->closed)
        return;
    if (applier->telling) { /* A2; and so that one done after the other does not use up the stack */
        applier_soon(applier);
        return;
    }
    int status = write_all(applier);
    applier->stuck = status;
    if (status != PAWL_OK) {
        applier->retries++;
        applier->delay = applier->delay == 0 ? DELAY_MIN : applier->delay * 2;
        applier->delay = applier->delay > DELAY_MAX ? DELAY_MAX : applier->delay;
        pawl_env_after(applier->env, &applier->timer, applier->delay);
        tell_late(applier);
        return;
    }
    applier->commits++;
    applier->delay = 0;
    tell_done(applier);
}

void applier_close(struct applier *applier)
{
    applier->closed = true;
    pawl_env_cancel(applier->env, &applier->timer);
}

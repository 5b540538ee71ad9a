#include "core/stream/applier.h"

#include <assert.h>

#include "base/error.h"
#include "base/heap.h"

#define DELAY_MIN (10 * PAWL_MILLISECOND)
#define DELAY_MAX PAWL_SECOND
#define AHEAD_MAX (20 * PAWL_MILLISECOND)

/* While the log has not answered all that is ahead, what it has answered waits: then all is written together. But a log
 * that does not answer keeps nobody waiting for long. */
static void run_task(pawl_task *task)
{
    struct applier *applier = heap_entry(task, struct applier, task);
    if (applier->delay > 0)
        return;
    if (applier->undurable == 0) {
        applier_run(applier);
    } else if (applier->first && !applier->waits) {
        applier->waits = true;
        pawl_env_after(applier->env, &applier->timer, AHEAD_MAX);
    }
}

static void run_late(pawl_timer *timer)
{
    struct applier *applier = heap_entry(timer, struct applier, timer);
    applier->waits = false;
    applier_run(applier);
}

static void wait_no_more(struct applier *applier)
{
    if (applier->waits)
        pawl_env_cancel(applier->env, &applier->timer);
    applier->waits = false;
}

static void run_ahead(pawl_task *task);

void applier_init(struct applier *applier, pawl_env *env, uint32_t shard, pawl_store *store)
{
    *applier = (struct applier){.env = env,
                                .shard = shard,
                                .store = store,
                                .task.fn = run_task,
                                .ahead_task.fn = run_ahead,
                                .timer.fn = run_late};
    applier->last = &applier->first;
}

static void forget_sent(struct applier *applier, struct apply_item *item)
{
    struct apply_item **link = &applier->sent;
    while (*link != item)
        link = &(*link)->beside;
    *link = item->beside;
    item->ahead_state = APPLY_NOT_PUT;
}

void applier_add(struct applier *applier, struct apply_item *item)
{
    if (item->ahead_state == APPLY_SENT) /* too late now */
        forget_sent(applier, item);
    if (item->ahead_state == APPLY_PUT)
        applier->undurable--;
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
    if (item->ahead_state == APPLY_PUT)
        applier_retreat(applier);
    *link = item->next;
    if (!*link)
        applier->last = link;
    if (applier->first)
        return true;
    applier->stuck = PAWL_OK; /* nothing waits for the store any more */
    applier->delay = 0;
    applier->waits = false;
    pawl_env_cancel(applier->env, &applier->timer);
    return true;
}

void applier_soon(struct applier *applier)
{
    /* The env refuses only when it is closing, and then nothing runs any more. */
    (void)pawl_env_post(applier->env, applier->shard, &applier->task);
}

/* The transaction has ended: it has no rows of theirs any more. */
static void forget_put(struct applier *applier)
{
    for (struct apply_item *item = applier->put; item; item = item->beside)
        item->ahead_state = APPLY_NOT_PUT;
    applier->put = NULL;
    applier->undurable = 0;
}

static void ahead_soon(struct applier *applier)
{
    (void)pawl_env_post(applier->env, applier->shard, &applier->ahead_task); /* refused: as in applier_soon */
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
    assert(status != PAWL_OK || applier->undurable == 0); /* A4 */
    if (status == PAWL_OK)
        status = pawl_store_commit(applier->store);
    else
        pawl_store_abort(applier->store);
    if (hook)
        hook->ended(hook, status == PAWL_OK);
    return status;
}

void applier_retreat(struct applier *applier)
{
    if (!applier->put)
        return;
    begin(applier);
    (void)end(applier, PAWL_ECANCELED);
    forget_put(applier);
    if (applier->waits)
        applier_soon(applier);
}

void applier_sent(struct applier *applier, struct apply_item *item)
{
    if (!applier->works_ahead)
        return;
    item->ahead_state = APPLY_SENT;
    item->beside = applier->sent;
    applier->sent = item;
    ahead_soon(applier);
}

void applier_lost(struct applier *applier, struct apply_item *item)
{
    if (item->ahead_state == APPLY_SENT)
        forget_sent(applier, item);
    else if (item->ahead_state == APPLY_PUT)
        applier_retreat(applier);
    if (applier->first)
        applier_soon(applier);
}

/* Put the rows of all items that were sent. If that fails, it does no harm: they are put again when they are written. */
static void run_ahead(pawl_task *task)
{
    struct applier *applier = heap_entry(task, struct applier, ahead_task);
    if (applier->put || applier->first || applier->closed) /* A5; sent items wait for the commit */
        return;
    int status = PAWL_OK;
    begin(applier);
    while (applier->sent && (status == PAWL_OK || status == PAWL_ECANCELED)) {
        struct apply_item *item = applier->sent;
        applier->sent = item->beside;
        item->ahead_state = APPLY_NOT_PUT;
        status = item->ahead(item, applier->store);
        if (status == PAWL_ECANCELED)
            continue;
        item->ahead_state = APPLY_PUT;
        item->beside = applier->put;
        applier->put = item;
        applier->undurable++;
    }
    applier->writing = false;
    if (status != PAWL_OK && status != PAWL_ECANCELED)
        applier_retreat(applier);
}

int applier_write(struct applier *applier, int (*put)(void *ctx, pawl_store *store, pawl_error *error),
                  void *ctx, pawl_error *error)
{
    applier_retreat(applier); /* A4 */
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
    forget_put(applier);
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
    wait_no_more(applier);
    if (applier->undurable > 0)
        applier_retreat(applier); /* A4 */
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
    if (applier->sent)
        ahead_soon(applier);
}

void applier_close(struct applier *applier)
{
    assert(!applier->sent && !applier->put);
    applier->closed = true;
    pawl_env_cancel(applier->env, &applier->timer);
}

/* engine/node/sequencer.c: the sequencer's calls that block: wait and free.
 *
 * Each puts a request on its own stack, lets the shard see to it, and sleeps on a latch. The shard sets the
 * latch last: after that the request is gone, and after free's so is the sequencer. */
#include <pawl/sequencer.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/latch.h"
#include "core/sequence/sequencer.h"

struct wait {
    pawl_task task;
    pawl_timer timer;
    struct sequencer_waiter waiter;
    struct latch latch;
    pawl_sequencer *sequencer;
    pawl_duration timeout;
    pawl_error *error;
    int status;
};

static void wait_end(struct wait *wait, int status)
{
    const pawl_error *words = pawl_sequencer_error(wait->sequencer);
    pawl_env_cancel(wait->sequencer->env, &wait->timer);
    wait->status = status;
    if (status == PAWL_ECORRUPT && wait->error)
        *wait->error = *words;
    else if (status == PAWL_ETIMEOUT)
        error_set(wait->error, status, "the sequencer is still recovering%s%s", words->text[0] ? ": " : "",
                  words->text);
    else if (status)
        error_set(wait->error, status, "the sequencer is being freed");
    latch_set(&wait->latch);
}

static void wait_told(struct sequencer_waiter *waiter, int status)
{
    wait_end(heap_entry(waiter, struct wait, waiter), status);
}

static void wait_late(pawl_timer *timer)
{
    struct wait *wait = heap_entry(timer, struct wait, timer);
    sequencer_unwait(wait->sequencer, &wait->waiter);
    wait_end(wait, PAWL_ETIMEOUT);
}

/* The timer first: once the waiter is known it may be told, and the request be gone. */
static void wait_begin(pawl_task *task)
{
    struct wait *wait = heap_entry(task, struct wait, task);
    pawl_env_after(wait->sequencer->env, &wait->timer, wait->timeout);
    sequencer_wait(wait->sequencer, &wait->waiter);
}

int pawl_sequencer_wait(pawl_sequencer *s, pawl_duration timeout, pawl_error *error)
{
    if (pawl_env_self(s->env) != PAWL_NO_SHARD)
        return error_set(error, PAWL_EMISUSE, "a shard cannot wait for what happens on shards");
    struct wait wait = {
        .task.fn = wait_begin,
        .timer.fn = wait_late,
        .waiter.fn = wait_told,
        .sequencer = s,
        .timeout = timeout,
        .error = error,
    };
    latch_init(&wait.latch);
    int status = pawl_env_post(s->env, s->options.shard, &wait.task);
    if (status)
        return error_set(error, status, "the env is closed");
    latch_wait(&wait.latch);
    return wait.status;
}

struct finish {
    pawl_task task;
    struct latch latch;
    pawl_sequencer *sequencer;
    int status;
};

static void finished(pawl_sequencer *s, void *arg, int status)
{
    struct finish *finish = arg;
    finish->status = status;
    latch_set(&finish->latch);
}

static void finish_begin(pawl_task *task)
{
    struct finish *finish = heap_entry(task, struct finish, task);
    sequencer_close(finish->sequencer, finished, finish);
}

int pawl_sequencer_free(pawl_sequencer *s)
{
    if (!s)
        return PAWL_OK;
    if (pawl_env_self(s->env) != PAWL_NO_SHARD)
        return PAWL_EMISUSE;
    struct finish finish = {.task.fn = finish_begin, .sequencer = s};
    latch_init(&finish.latch);
    int status = pawl_env_post(s->env, s->options.shard, &finish.task);
    if (status)
        return status;
    latch_wait(&finish.latch);
    sequencer_release(s);
    return finish.status;
}

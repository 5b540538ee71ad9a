/* adapter/uv/runner.c: one thread, one loop, one mailbox, one heap of timers; for one shard, or for several.
 *
 * The loop knows two handles: an async that says that there is mail, and a timer for the earliest of all that
 * are set. Both callbacks end in settle(), which empties the mailbox and sets the timer anew.
 *
 * A runner whose mailbox is empty stays awake for a moment if that is worth it (linger.h), looks into it again and again,
 * and yields to other threads meanwhile. A thread that puts something in then need not wake it.
 *
 * Invariants
 *   I1  While the mailbox is not empty, either the async has been sent, or the runner is awake, and will look
 *       again after it has said that it no longer is. So only a put into an empty mailbox of a runner that is
 *       not awake must send. The two orders, put and look for awake, say asleep and look for mail, are kept by
 *       a full fence on either side.
 *   I2  No timer fires before it is due by the boot clock, whatever libuv's clock says: it only wakes us.
 *   I3  Nothing of a task, a timer or a work is touched after its fn or done was entered: it may free itself.
 */
#include <assert.h>
#include <sched.h>
#include <stdio.h>

#include "adapter/uv/impl.h"
#include "base/wait.h"

/* The mailbox is emptied at most so many times before timers get their turn, even if tasks keep posting
 * tasks. */
#define ROUNDS_MAX 64

#define NEVER UINT64_MAX

void uv_runner_put(struct uv_runner *runner, struct uv_link *link)
{
    if (!uv_mailbox_put(&runner->mailbox, link) || uv_place.runner == runner)
        return;
    /* I1. And uv_async_send looks whether one is pending with a plain load, which must not be done before our
     * put is visible: the runner might clear pending, find no mail, and sleep. */
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load_explicit(&runner->awake, memory_order_relaxed))
        uv_async_send(&runner->async);
}

static void run_mail(struct uv_link *link)
{
    while (link) {
        struct uv_link *next = link->next;
        uv_place.shard = link->shard;
        if (link->kind == UV_LINK_TASK) {
            pawl_task *task = heap_entry(link, pawl_task, impl);
            uv_link_release(link);
            task->fn(task);
        } else {
            pawl_work *work = heap_entry(link, pawl_work, impl);
            work->done(work);
        }
        link = next;
    }
}

static void on_wake(uv_timer_t *handle);

/* libuv counts whole milliseconds from a time that it rounded down; so this may wake us up to a millisecond
 * early, which costs one more turn of the loop, and never makes a timer late by more than about one. */
static void arm(struct uv_runner *runner)
{
    const struct heap_node *min = heap_min(&runner->timers);
    if (uv_env_closing(runner->env) || (min ? min->key : NEVER) == runner->armed_for)
        return;
    if (!min) {
        uv_timer_stop(&runner->wake);
        runner->armed_for = NEVER;
        return;
    }
    uint64_t now = clock_boot_ns();
    uint64_t left = min->key > now ? min->key - now : 0;
    uv_update_time(&runner->loop);
    uv_timer_start(&runner->wake, on_wake, left / PAWL_MILLISECOND + (left % PAWL_MILLISECOND != 0), 0);
    runner->armed_for = min->key;
}

/* Stay awake for a moment if the mailbox is empty, but not past the next timer. Whether there is mail. */
static bool linger(struct uv_runner *runner)
{
    if (!uv_mailbox_empty(&runner->mailbox))
        return true;
    const struct heap_node *min = heap_min(&runner->timers);
    uint64_t now = clock_boot_ns(), until = linger_begin(&runner->linger, now);
    if (min && min->key < until)
        until = min->key;
    for (; now < until && !uv_env_closing(runner->env); now = clock_boot_ns()) {
        sched_yield();
        if (!uv_mailbox_empty(&runner->mailbox))
            return true;
    }
    return false;
}

static void settle(struct uv_runner *runner)
{
    atomic_store_explicit(&runner->awake, true, memory_order_relaxed);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct uv_link *mail = uv_mailbox_take(&runner->mailbox);
        if (!mail)
            break;
        if (runner->linger.since)
            linger_end(&runner->linger, clock_boot_ns());
        run_mail(mail);
        if (!linger(runner))
            break;
    }
    arm(runner);
    atomic_store_explicit(&runner->awake, false, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (!uv_mailbox_empty(&runner->mailbox))
        uv_async_send(&runner->async);
}

static void on_mail(uv_async_t *handle)
{
    settle(handle->data);
}

static void on_wake(uv_timer_t *handle)
{
    struct uv_runner *runner = handle->data;
    uint64_t now = clock_boot_ns();
    runner->armed_for = NEVER;
    for (;;) {
        struct heap_node *min = heap_min(&runner->timers);
        if (!min || min->key > now || uv_env_closing(runner->env))
            break;
        struct uv_wait *wait = heap_entry(min, struct uv_wait, node);
        pawl_timer *timer = heap_entry(wait, pawl_timer, impl);
        uv_place.shard = wait->shard;
        uv_runner_cancel(runner, wait);
        timer->fn(timer);
    }
    settle(runner);
}

void uv_runner_after(struct uv_runner *runner, struct uv_wait *wait, pawl_duration delay)
{
    uv_runner_cancel(runner, wait);
    if (__builtin_add_overflow(clock_boot_ns(), delay, &wait->node.key))
        wait->node.key = NEVER;
    wait->node.seq = runner->timer_seq++;
    wait->set = true;
    wait->shard = uv_place.shard;
    heap_insert(&runner->timers, &wait->node);
}

void uv_runner_cancel(struct uv_runner *runner, struct uv_wait *wait)
{
    if (!wait->set)
        return;
    assert(uv_env_runner(uv_place.env, wait->shard) == runner);
    heap_remove(&runner->timers, &wait->node);
    wait->set = false;
}

int uv_runner_open(struct uv_runner *runner, struct uv_env *env, uint32_t index)
{
    runner->env = env;
    runner->index = index;
    runner->armed_for = NEVER;
    int rc = uv_loop_init(&runner->loop);
    if (rc < 0)
        return rc;
    rc = uv_async_init(&runner->loop, &runner->async, on_mail);
    if (rc < 0)
        goto async_failed;
    uv_timer_init(&runner->loop, &runner->wake);
    runner->async.data = runner;
    runner->wake.data = runner;
    return 0;

async_failed:
    uv_loop_close(&runner->loop);
    return rc;
}

void uv_runner_stop(struct uv_runner *runner)
{
    uv_close((uv_handle_t *)&runner->async, NULL);
    uv_close((uv_handle_t *)&runner->wake, NULL);
}

static void run_loop(struct uv_runner *runner)
{
    uv_run(&runner->loop, UV_RUN_DEFAULT);
    int rc = uv_loop_close(&runner->loop);
    assert(rc == 0);
    (void)rc;
}

void uv_runner_discard(struct uv_runner *runner)
{
    uv_runner_stop(runner);
    run_loop(runner);
}

static void runner_main(void *arg)
{
    struct uv_runner *runner = arg;
    char name[16];
    snprintf(name, sizeof name, "pawl/%u", runner->index);
    pthread_setname_np(pthread_self(), name);
    uv_place = (struct uv_place){runner->env, runner, runner->index};
    run_loop(runner);
}

int uv_runner_start(struct uv_runner *runner)
{
    return uv_env_spawn(&runner->thread, runner_main, runner);
}

void uv_runner_join(struct uv_runner *runner)
{
    uv_thread_join(&runner->thread);
}

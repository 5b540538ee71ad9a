/* adapter/uv/shard.c: one thread, one loop, one mailbox, one heap of timers.
 *
 * The loop knows two handles: an async that says that there is mail, and a timer for the earliest of all that
 * are set. Both callbacks end in settle(), which empties the mailbox and sets the timer anew.
 *
 * A processor that sleeps takes 50 us to wake, which is longer than most things that a shard waits for. So a
 * shard whose mailbox is empty stays awake for a moment, looks into it again and again, and yields to other
 * threads meanwhile. A thread that puts something in then need not wake it.
 *
 * Invariants
 *   I1  While the mailbox is not empty, either the async has been sent, or the shard is awake, and will look
 *       again after it has said that it no longer is. So only a put into an empty mailbox of a shard that is
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

/* How long a shard with an empty mailbox stays awake. */
#define LINGER (50 * PAWL_MICROSECOND)

#define NEVER UINT64_MAX

void uv_shard_put(struct uv_shard *shard, struct uv_link *link)
{
    if (!uv_mailbox_put(&shard->mailbox, link) || uv_place.shard == shard)
        return;
    /* I1. And uv_async_send looks whether one is pending with a plain load, which must not be done before our
     * put is visible: the shard might clear pending, find no mail, and sleep. */
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load_explicit(&shard->awake, memory_order_relaxed))
        uv_async_send(&shard->async);
}

static void run_mail(struct uv_link *link)
{
    while (link) {
        struct uv_link *next = link->next;
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
static void arm(struct uv_shard *shard)
{
    const struct heap_node *min = heap_min(&shard->timers);
    if (uv_env_closing(shard->env) || (min ? min->key : NEVER) == shard->armed_for)
        return;
    if (!min) {
        uv_timer_stop(&shard->wake);
        shard->armed_for = NEVER;
        return;
    }
    uint64_t now = clock_boot_ns();
    uint64_t left = min->key > now ? min->key - now : 0;
    uv_update_time(&shard->loop);
    uv_timer_start(&shard->wake, on_wake, left / PAWL_MILLISECOND + (left % PAWL_MILLISECOND != 0), 0);
    shard->armed_for = min->key;
}

/* Stay awake for a moment if the mailbox is empty, but not past the next timer. Whether there is mail. */
static bool linger(struct uv_shard *shard)
{
    if (!uv_mailbox_empty(&shard->mailbox))
        return true;
    const struct heap_node *min = heap_min(&shard->timers);
    uint64_t now = clock_boot_ns(), until = now + LINGER;
    if (min && min->key < until)
        until = min->key;
    for (; now < until && !uv_env_closing(shard->env); now = clock_boot_ns()) {
        sched_yield();
        if (!uv_mailbox_empty(&shard->mailbox))
            return true;
    }
    return false;
}

static void settle(struct uv_shard *shard)
{
    atomic_store_explicit(&shard->awake, true, memory_order_relaxed);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct uv_link *mail = uv_mailbox_take(&shard->mailbox);
        if (!mail)
            break;
        run_mail(mail);
        if (!linger(shard))
            break;
    }
    arm(shard);
    atomic_store_explicit(&shard->awake, false, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (!uv_mailbox_empty(&shard->mailbox))
        uv_async_send(&shard->async);
}

static void on_mail(uv_async_t *handle)
{
    settle(handle->data);
}

static void on_wake(uv_timer_t *handle)
{
    struct uv_shard *shard = handle->data;
    uint64_t now = clock_boot_ns();
    shard->armed_for = NEVER;
    for (;;) {
        struct heap_node *min = heap_min(&shard->timers);
        if (!min || min->key > now || uv_env_closing(shard->env))
            break;
        struct uv_wait *wait = heap_entry(min, struct uv_wait, node);
        pawl_timer *timer = heap_entry(wait, pawl_timer, impl);
        uv_shard_cancel(shard, wait);
        timer->fn(timer);
    }
    settle(shard);
}

void uv_shard_after(struct uv_shard *shard, struct uv_wait *wait, pawl_duration delay)
{
    uv_shard_cancel(shard, wait);
    if (__builtin_add_overflow(clock_boot_ns(), delay, &wait->node.key))
        wait->node.key = NEVER;
    wait->node.seq = shard->timer_seq++;
    wait->shard = shard;
    heap_insert(&shard->timers, &wait->node);
}

void uv_shard_cancel(struct uv_shard *shard, struct uv_wait *wait)
{
    if (!wait->shard)
        return;
    assert(wait->shard == shard);
    heap_remove(&shard->timers, &wait->node);
    wait->shard = NULL;
}

int uv_shard_open(struct uv_shard *shard, struct uv_env *env, uint32_t index)
{
    shard->env = env;
    shard->index = index;
    shard->armed_for = NEVER;
    int rc = uv_loop_init(&shard->loop);
    if (rc < 0)
        return rc;
    rc = uv_async_init(&shard->loop, &shard->async, on_mail);
    if (rc < 0)
        goto async_failed;
    uv_timer_init(&shard->loop, &shard->wake);
    shard->async.data = shard;
    shard->wake.data = shard;
    return 0;

async_failed:
    uv_loop_close(&shard->loop);
    return rc;
}

void uv_shard_stop(struct uv_shard *shard)
{
    uv_close((uv_handle_t *)&shard->async, NULL);
    uv_close((uv_handle_t *)&shard->wake, NULL);
}

static void run_loop(struct uv_shard *shard)
{
    uv_run(&shard->loop, UV_RUN_DEFAULT);
    int rc = uv_loop_close(&shard->loop);
    assert(rc == 0);
    (void)rc;
}

void uv_shard_discard(struct uv_shard *shard)
{
    uv_shard_stop(shard);
    run_loop(shard);
}

static void shard_main(void *arg)
{
    struct uv_shard *shard = arg;
    char name[16];
    snprintf(name, sizeof name, "pawl/%u", shard->index);
    pthread_setname_np(pthread_self(), name);
    uv_place = (struct uv_place){shard->env, shard};
    run_loop(shard);
}

int uv_shard_start(struct uv_shard *shard)
{
    return uv_env_spawn(&shard->thread, shard_main, shard);
}

void uv_shard_join(struct uv_shard *shard)
{
    uv_thread_join(&shard->thread);
}

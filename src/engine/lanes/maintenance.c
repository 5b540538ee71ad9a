/* engine/lanes/maintenance.c: the thread that does the slow work of the lanes, which may block.
 *
 *     threads that hang are replaced                    worker_pool.c
 *     a generation that is complete takes over          generation_switch.c
 *     generations that nobody needs are freed           generations.c
 *     and then their rows are removed                   row_removal.c
 *
 * It sleeps until somebody asks for it; while some work is unfinished, it also wakes by itself. It never waits
 * for a handler. */
#include <signal.h>

#include "base/error.h"
#include "engine/lanes/impl.h"
#include "engine/lanes/worker_pool.h"

#define POLL_EVERY (50 * PAWL_MILLISECOND)

void maintenance_ask(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->maintenance_lock);
    lanes->maintenance_asked = true;
    pthread_cond_signal(&lanes->maintenance_wake);
    pthread_mutex_unlock(&lanes->maintenance_lock);
}

void maintenance_sleep(struct lanes *lanes, pawl_duration timeout)
{
    uint64_t end = wait_deadline(timeout);
    bool in_time = true;
    pthread_mutex_lock(&lanes->maintenance_lock);
    while (!lanes->maintenance_asked && !lanes->maintenance_stop && in_time)
        in_time = cond_wait_until(&lanes->maintenance_wake, &lanes->maintenance_lock, end);
    lanes->maintenance_asked = false;
    pthread_mutex_unlock(&lanes->maintenance_lock);
}

bool maintenance_look_after(pawl_engine *e)
{
    bool busy = false;
    struct generation *g = NULL;
    while ((g = generation_hold_any(e, g)))
        for (uint32_t i = 0; i < g->projections; i++)
            busy = worker_pool_look_after(&g->pools[i]) || busy;
    return busy;
}

static bool is_stopped(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->maintenance_lock);
    bool stop = lanes->maintenance_stop;
    pthread_mutex_unlock(&lanes->maintenance_lock);
    return stop;
}

static void *maintenance_main(void *arg)
{
    pawl_engine *e = arg;
    while (!is_stopped(e->lanes)) {
        bool again = maintenance_look_after(e);
        again = lanes_switch_generations(e) || again;
        (void)generations_free_retired(e); /* the last one to let go of a generation asks again */
        again = lanes_remove_rows(e) || again;
        maintenance_sleep(e->lanes, again ? POLL_EVERY : WAIT_FOREVER);
    }
    return NULL;
}

int maintenance_start(pawl_engine *e, pawl_error *error)
{
    sigset_t all, before;
    if (e->lanes->maintenance_started)
        return PAWL_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&e->lanes->maintenance, NULL, maintenance_main, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return error_errno(error, failed, "cannot start a thread for lanes");
    e->lanes->maintenance_started = true;
    return PAWL_OK;
}

void maintenance_stop(pawl_engine *e)
{
    struct lanes *lanes = e->lanes;
    if (!lanes->maintenance_started)
        return;
    pthread_mutex_lock(&lanes->maintenance_lock);
    lanes->maintenance_stop = true;
    pthread_cond_signal(&lanes->maintenance_wake);
    pthread_mutex_unlock(&lanes->maintenance_lock);
    pthread_join(lanes->maintenance, NULL);
    lanes->maintenance_started = lanes->maintenance_stop = false;
}

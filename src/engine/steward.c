/* engine/steward.c: the thread that looks after the lanes: whatever of theirs may have to wait.
 *
 *     threads that hang are replaced                    workers.c
 *     a generation that is complete takes over          switch.c
 *     generations that are done with are freed          generations.c
 *     and then their rows are removed                   drop.c
 *
 * It sleeps until somebody asks, or, while there is something to look after, for a moment. It never waits for a
 * handler. */
#include <signal.h>

#include "base/error.h"
#include "engine/node.h"
#include "engine/workers.h"

#define LOOK_AGAIN (50 * PAWL_MILLISECOND)

void steward_ask(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->steward_lock);
    lanes->steward_asked = true;
    pthread_cond_signal(&lanes->steward_wake);
    pthread_mutex_unlock(&lanes->steward_lock);
}

void steward_sleep(struct lanes *lanes, pawl_duration timeout)
{
    uint64_t end = wait_deadline(timeout);
    bool in_time = true;
    pthread_mutex_lock(&lanes->steward_lock);
    while (!lanes->steward_asked && !lanes->steward_stop && in_time)
        in_time = cond_wait_until(&lanes->steward_wake, &lanes->steward_lock, end);
    lanes->steward_asked = false;
    pthread_mutex_unlock(&lanes->steward_lock);
}

bool steward_look_after(pawl_engine *e)
{
    bool busy = false;
    struct generation *g = NULL;
    while ((g = generation_hold_any(e, g)))
        for (uint32_t i = 0; i < g->projections; i++)
            busy = crew_look_after(&g->crews[i]) || busy;
    return busy;
}

static bool is_stopped(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->steward_lock);
    bool stop = lanes->steward_stop;
    pthread_mutex_unlock(&lanes->steward_lock);
    return stop;
}

static void *steward_main(void *arg)
{
    pawl_engine *e = arg;
    while (!is_stopped(&e->lanes)) {
        bool again = steward_look_after(e);
        again = lanes_switch(e) || again;
        (void)generations_bury(e); /* whoever is the last to need one asks */
        again = lanes_drop(e) || again;
        steward_sleep(&e->lanes, again ? LOOK_AGAIN : WAIT_FOREVER);
    }
    return NULL;
}

int steward_start(pawl_engine *e, pawl_error *error)
{
    sigset_t all, before;
    if (e->lanes.steward_started)
        return PAWL_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&e->lanes.steward, NULL, steward_main, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return error_errno(error, failed, "cannot start a thread for lanes");
    e->lanes.steward_started = true;
    return PAWL_OK;
}

void steward_stop(pawl_engine *e)
{
    struct lanes *lanes = &e->lanes;
    if (!lanes->steward_started)
        return;
    pthread_mutex_lock(&lanes->steward_lock);
    lanes->steward_stop = true;
    pthread_cond_signal(&lanes->steward_wake);
    pthread_mutex_unlock(&lanes->steward_lock);
    pthread_join(lanes->steward, NULL);
    lanes->steward_started = lanes->steward_stop = false;
}

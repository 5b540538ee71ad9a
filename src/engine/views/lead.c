/* engine/views/lead.c: this node is the leader: the coordinator, and the thread that writes its commands.
 *
 * The coordinator lives on shard 0. A command takes a sync of the log and the schema's lock, which a shard must not
 * wait for: so a thread proposes it, one at a time, and posts what became of it. */
#include <signal.h>

#include "base/error.h"
#include "base/heap.h"
#include "engine/views/impl.h"

static const struct building *look(void *ctx)
{
    const struct views *v = ctx;
    return building_lock(v->engine);
}

static void looked(void *ctx)
{
    const struct views *v = ctx;
    building_unlock(v->engine);
}

static void propose(void *ctx, pawl_bytes command)
{
    struct views *v = ctx;
    pthread_mutex_lock(&v->lock);
    v->command = command;
    v->pending = true;
    pthread_cond_signal(&v->wake);
    pthread_mutex_unlock(&v->lock);
}

static void tell_proposed(pawl_task *task)
{
    struct views *v = heap_entry(task, struct views, proposed);
    if (v->coordinator)
        coordinator_proposed(v->coordinator, atomic_load(&v->proposed_status));
}

static void tell_changed(pawl_task *task)
{
    struct views *v = heap_entry(task, struct views, changed);
    if (v->coordinator)
        coordinator_changed(v->coordinator);
}

static void tell_covered(pawl_task *task)
{
    struct views *v = heap_entry(task, struct views, covered);
    if (v->coordinator)
        coordinator_covered(v->coordinator);
}

/* False: it is time to stop. */
static bool next_command(struct views *v, pawl_bytes *ret_command)
{
    pthread_mutex_lock(&v->lock);
    while (!v->pending && !v->stop)
        pthread_cond_wait(&v->wake, &v->lock);
    bool go_on = !v->stop;
    *ret_command = v->command;
    v->pending = false;
    pthread_mutex_unlock(&v->lock);
    return go_on;
}

static void *write_commands(void *arg)
{
    struct views *v = arg;
    pawl_bytes command;
    while (next_command(v, &command)) {
        enum group0_outcome outcome;
        pawl_error error = {0};
        knobs_step(&v->engine->knobs, "a command of the coordinator is written");
        int status = engine_group0_propose(v->engine, command, &outcome, &error);
        knobs_step(&v->engine->knobs, "a command of the coordinator was written");
        atomic_store(&v->proposed_status, status);
        (void)pawl_env_post(v->engine->env, 0, &v->proposed);
    }
    return NULL;
}

static void begin(void *arg)
{
    static const struct coordinator_ops ops = {.look = look, .looked = looked, .propose = propose};
    struct views *v = arg;
    const pawl_engine *e = v->engine;
    struct coordinator_options options = {.env = e->env,
                                          .shard = 0,
                                          .bus = local_bus_port(v->bus),
                                          .term = e->group0_epoch,
                                          .ops = &ops,
                                          .ctx = v,
                                          .allocator = e->options.allocator};
    atomic_store(&v->proposed_status, coordinator_new(&options, &v->coordinator));
}

/* A split or merge that nobody finished: the tasks it has aborted are made again, with new IDs. */
static int roll_back(pawl_engine *e, pawl_error *error)
{
    bool unfinished = building_lock(e)->map.resize_to != 0;
    building_unlock(e);
    struct group0_command command = {.kind = GROUP0_RESIZE_ROLLBACK};
    return unfinished ? views_propose(e, &command, error) : PAWL_OK;
}

static int start_thread(struct views *v, pawl_error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&v->thread, NULL, write_commands, v);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return error_errno(error, failed, "cannot start a thread for views");
    v->started = true;
    return PAWL_OK;
}

int lead_open(pawl_engine *e, pawl_error *error)
{
    struct views *v = e->views;
    int status = roll_back(e, error);
    if (status == PAWL_OK)
        status = start_thread(v, error);
    if (status != PAWL_OK)
        return status;
    v->proposed.fn = tell_proposed;
    v->changed.fn = tell_changed;
    v->covered.fn = tell_covered;
    status = pawl_env_call(e->env, 0, begin, v);
    status = status == PAWL_OK ? atomic_load(&v->proposed_status) : status;
    return status == PAWL_OK ? status : error_set(error, status, "cannot begin to build views");
}

struct ending {
    struct views *views;
    pawl_bytes command; /* of the coordinator's memory */
};

static void ask_last_words(void *arg)
{
    struct ending *ending = arg;
    if (ending->views->coordinator)
        (void)coordinator_last_words(ending->views->coordinator, &ending->command);
}

static void end(void *arg)
{
    struct views *v = arg;
    if (v->coordinator)
        coordinator_free(v->coordinator);
    v->coordinator = NULL;
}

/* A process that lives only shortly would otherwise leave to the next what it has done. */
static void say_last_words(struct views *v)
{
    struct ending ending = {.views = v};
    enum group0_outcome outcome;
    (void)pawl_env_call(v->engine->env, 0, ask_last_words, &ending);
    if (ending.command.size > 0)
        (void)engine_group0_propose(v->engine, ending.command, &outcome, NULL);
}

/* The thread may still have a command of the coordinator's, which must stay until it is written: so the thread ends
 * first. */
void lead_close(pawl_engine *e)
{
    struct views *v = e->views;
    pthread_mutex_lock(&v->lock);
    v->stop = true;
    pthread_cond_broadcast(&v->wake);
    pthread_cond_broadcast(&v->progress);
    pthread_mutex_unlock(&v->lock);
    if (v->started) {
        pthread_join(v->thread, NULL);
        say_last_words(v);
    }
    v->started = false;
    (void)pawl_env_call(e->env, 0, end, v);
}

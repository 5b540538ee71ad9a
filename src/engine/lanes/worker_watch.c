/* engine/lanes/worker_watch.c: whoever serves many workers is told when there is something to lease, instead of
 * having a thread wait for each of them. */
#include "base/alloc.h"
#include "base/error.h"
#include "engine/lanes/impl.h"

/* All but the constants under lanes.lock. */
struct pawl_worker_watch {
    struct pawl_worker_watch *next, **link;
    pawl_engine *engine;
    uint16_t projector;
    bool armed;
    void (*ready)(void *arg);
    void *arg;
};

void watches_tell(pawl_engine *e, uint16_t projector)
{
    struct lanes *lanes = e->lanes;
    pthread_mutex_lock(&lanes->lock);
    for (struct pawl_worker_watch *w = lanes->watches; w; w = w->next)
        if (w->armed && w->projector == projector) {
            w->armed = false;
            atomic_fetch_sub(&lanes->armed, 1);
            w->ready(w->arg);
        }
    pthread_mutex_unlock(&lanes->lock);
}

bool watches_has(const struct lanes *lanes, uint16_t projector)
{
    for (const struct pawl_worker_watch *w = lanes->watches; w; w = w->next)
        if (w->armed && w->projector == projector)
            return true;
    return false;
}

int pawl_worker_watch_new(pawl_engine *e, const char *projector, void (*ready)(void *arg), void *arg,
                          pawl_worker_watch **ret_watch, pawl_error *error)
{
    uint16_t id;
    int status = engine_enter_writing(e, error);
    if (status == PAWL_OK)
        status = worker_projector_find(e, projector, &id, error);
    if (status != PAWL_OK)
        return status;
    struct pawl_worker_watch *watch = mem_new(e->options.allocator, 1, sizeof *watch);
    if (!watch)
        return error_set(error, PAWL_ENOMEM, "no memory to watch %s", projector);
    *watch = (struct pawl_worker_watch){.engine = e, .projector = id, .ready = ready, .arg = arg};
    struct lanes *lanes = e->lanes;
    pthread_mutex_lock(&lanes->lock);
    watch->next = lanes->watches;
    watch->link = &lanes->watches;
    if (watch->next)
        watch->next->link = &watch->next;
    lanes->watches = watch;
    pthread_mutex_unlock(&lanes->lock);
    *ret_watch = watch;
    return PAWL_OK;
}

void pawl_worker_watch_arm(pawl_worker_watch *watch)
{
    struct lanes *lanes = watch->engine->lanes;
    pthread_mutex_lock(&lanes->lock);
    if (!watch->armed)
        atomic_fetch_add(&lanes->armed, 1);
    watch->armed = true;
    pthread_mutex_unlock(&lanes->lock);
}

void pawl_worker_watch_free(pawl_worker_watch *watch)
{
    if (!watch)
        return;
    pawl_engine *e = watch->engine;
    struct lanes *lanes = e->lanes;
    pthread_mutex_lock(&lanes->lock);
    *watch->link = watch->next;
    if (watch->next)
        watch->next->link = watch->link;
    if (watch->armed)
        atomic_fetch_sub(&lanes->armed, 1);
    pthread_mutex_unlock(&lanes->lock);
    mem_free(e->options.allocator, watch, sizeof *watch);
}

/* engine/node/figures.c: the figures of all shards, gathered. */
#include <pawl/pawl.h>

#include "engine/node/node.h"

struct gathering {
    struct shard *shard;
    pawl_figures *figures;
};

/* On the shard, because only the shard may read what its processors count. */
static void gather(void *arg)
{
    const struct gathering *g = arg;
    for (size_t i = 0; i < g->shard->partitions.count; i++)
        g->figures->replayed += processor_figures(shard_partition(g->shard, i)->processor)->replayed;
    g->figures->taken_over += g->shard->taken_over;
    g->figures->held += atomic_load(&g->shard->held);
}

int pawl_figures_get(pawl_engine *e, pawl_figures *ret_figures, pawl_error *error)
{
    pawl_figures figures = {.checkpoint_lag_max = e->options.checkpoint_lag_max};
    int status = engine_enter(e, error);
    for (uint32_t i = 0; status == PAWL_OK && i < e->file.shards && !e->options.read_only; i++) {
        struct gathering g = {.shard = &e->shards[i], .figures = &figures};
        status = pawl_env_call(e->env, i, gather, &g);
        if (e->shards[i].checkpointer)
            checkpointer_add_figures(e->shards[i].checkpointer, atomic_load(&e->shards[i].seen), &figures);
    }
    pthread_mutex_lock(&e->audit_lock);
    for (uint32_t i = 0; i < e->file.partitions; i++) {
        figures.audits += e->partitions[i].audit.compared;
        figures.audits_missed += e->partitions[i].audit.missed;
    }
    figures.alerts = e->alerted;
    pthread_mutex_unlock(&e->audit_lock);
    if (status == PAWL_OK)
        *ret_figures = figures;
    return status;
}

/* engine/node/figures.c: the figures of all shards, gathered. */
#include <pawl/pawl.h>

#include "base/error.h"
#include "engine/node/node.h"

struct gathering {
    struct shard *shard;
    pawl_figures *figures;
};

static void gather_partition(const struct processor *processor, pawl_figures *figures)
{
    pawl_sequencer_figures sequencer;
    pawl_error error;
    figures->replayed += processor_figures(processor)->replayed;
    processor_numbering(processor, &sequencer, &error);
    figures->sequencer_states[sequencer.state]++;
    pawl_sequencer_figures_add(&figures->sequencers, &sequencer);
}

/* On the shard, because only the shard may read what its processors count. */
static void gather(void *arg)
{
    const struct gathering *g = arg;
    for (size_t i = 0; i < g->shard->partitions.count; i++)
        gather_partition(shard_partition(g->shard, i)->processor, g->figures);
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
    pawl_alert now[LOG_ALERTS_MAX];
    figures.alerts += status == PAWL_OK ? engine_log_alerts(e, now) : 0;
    if (status == PAWL_OK)
        *ret_figures = figures;
    return status;
}

/* --- the numbering of a partition --- */

struct numbering {
    const struct processor *processor;
    pawl_numbering *numbering;
};

static void look_at_numbering(void *arg)
{
    const struct numbering *n = arg;
    processor_numbering(n->processor, &n->numbering->figures, &n->numbering->error);
}

int pawl_numbering_get(pawl_engine *e, uint16_t partition, pawl_numbering *ret_numbering, pawl_error *error)
{
    pawl_numbering numbering;
    int status = engine_enter_writing(e, error);
    if (status != PAWL_OK)
        return status;
    if (partition >= e->file.partitions)
        return error_set(error, PAWL_EINVAL, "there is no partition %u", partition);
    struct numbering n = {.processor = e->partitions[partition].processor, .numbering = &numbering};
    status = partition_call(e, partition, look_at_numbering, &n);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot ask partition %u", partition);
    *ret_numbering = numbering;
    return PAWL_OK;
}

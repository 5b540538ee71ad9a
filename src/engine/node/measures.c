/* engine/node/measures.c: what partitions and shards measure: offsets, queues, how long commands and syncs take. */
#include <pawl/pawl.h>

#include "adapter/journal/journal.h"
#include "base/error.h"
#include "engine/log/log.h"
#include "engine/node/node.h"

int pawl_partition_figures_get(pawl_engine *e, uint16_t partition, pawl_partition_figures *ret_figures,
                               pawl_error *error)
{
    uint64_t offset;
    int status = pawl_offset_get(e, partition, &offset, error);
    if (status == PAWL_OK)
        *ret_figures = (pawl_partition_figures){.offset = offset, .shard = shard_of(e, partition)->index};
    return status;
}

/* --- shards --- */

struct looking {
    const struct shard *shard;
    pawl_shard_figures *figures;
};

/* On the shard: only it reads its mailbox's head. */
static void look(void *arg)
{
    const struct looking *l = arg;
    l->figures->mailbox = mpsc_count(&l->shard->mailbox);
    l->figures->commands = l->shard->outstanding;
}

static uint64_t store_bytes(const pawl_engine *e, const char *kind, uint32_t shard)
{
    char path[NODE_PATH_MAX];
    return node_path(e->dir, path, NULL, "%s/%u", kind, shard) == PAWL_OK ? tree_bytes(path) : 0;
}

uint32_t pawl_shards(const pawl_engine *e)
{
    return e->file.shards;
}

int pawl_shard_figures_get(pawl_engine *e, uint32_t index, pawl_shard_figures *ret_figures, pawl_error *error)
{
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    if (index >= e->file.shards)
        return error_set(error, PAWL_EINVAL, "there is no shard %u", index);
    const struct shard *shard = &e->shards[index];
    pawl_shard_figures figures = {.live_bytes = store_bytes(e, "state", index),
                                  .checkpoint_bytes = store_bytes(e, "checkpoint", index)};
    struct looking looking = {.shard = shard, .figures = &figures};
    if (!e->options.read_only) {
        pawl_figures sum = {0};
        status = pawl_env_call(e->env, index, look, &looking);
        if (shard->checkpointer)
            checkpointer_add_figures(shard->checkpointer, atomic_load(&shard->seen), &sum);
        figures.checkpoint_lag = sum.checkpoint_lag;
    }
    if (status != PAWL_OK)
        return error_set(error, status, "cannot ask shard %u", index);
    *ret_figures = figures;
    return PAWL_OK;
}

/* --- the log --- */

int pawl_log_figures_get(pawl_engine *e, pawl_log_figures *ret_figures, pawl_error *error)
{
    pawl_log_figures figures = {0};
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    if (node_is_on_kafka(&e->file)) {
        cluster_look(e->kafka, &figures);
        figures.assignment = e->assignment;
        if (e->log != e->kafka)
            cluster_mirror_look(e->log, &figures.mirror);
    }
    *ret_figures = figures;
    return PAWL_OK;
}

int pawl_claim_figures_get(pawl_engine *e, pawl_claim_figures *claims, size_t room, size_t *ret_count,
                           pawl_error *error)
{
    int status = engine_enter(e, error);
    if (status == PAWL_OK)
        *ret_count = node_is_on_kafka(&e->file) ? cluster_claims(e->kafka, claims, room) : 0;
    return status;
}

/* --- histograms --- */

int pawl_histogram_get(pawl_engine *e, pawl_histogram_kind kind, uint32_t seconds,
                       pawl_histogram *ret_histogram, pawl_error *error)
{
    pawl_histogram sum = {0};
    bool journal = !node_is_on_kafka(&e->file); /* Kafka's brokers sync, and do not say how long it took */
    if (seconds > PAWL_HISTOGRAM_SECONDS_MAX)
        return error_set(error, PAWL_EINVAL, "only %d seconds are kept", PAWL_HISTOGRAM_SECONDS_MAX);
    switch (kind) {
    case PAWL_HISTOGRAM_COMMAND:
        for (uint32_t i = 0; i < e->file.shards; i++)
            histogram_sum(&e->shards[i].latency, pawl_env_now(e->env), seconds, &sum);
        break;
    case PAWL_HISTOGRAM_SYNC:
        if (journal)
            journal_syncs(e->log, seconds, &sum);
        break;
    case PAWL_HISTOGRAM_BATCH:
        if (journal)
            journal_batches(e->log, seconds, &sum);
        break;
    case PAWL_HISTOGRAM_ACK:
        if (!journal)
            cluster_acks(e->kafka, seconds, &sum);
        break;
    default: return error_set(error, PAWL_EINVAL, "there is no such histogram");
    }
    *ret_histogram = sum;
    return PAWL_OK;
}

uint64_t pawl_histogram_bound(pawl_histogram_kind kind, size_t bucket)
{
    unsigned scale = kind == PAWL_HISTOGRAM_BATCH ? HISTOGRAM_COUNT : HISTOGRAM_NS;
    if (kind < PAWL_HISTOGRAM_COMMAND || kind > PAWL_HISTOGRAM_ACK || bucket >= PAWL_HISTOGRAM_BUCKETS)
        return 0;
    return histogram_bound(scale, bucket);
}

uint64_t pawl_histogram_quantile(const pawl_histogram *histogram, pawl_histogram_kind kind, double share)
{
    uint64_t seen = 0;
    double wanted = share * (double)histogram->count;
    if (histogram->count == 0)
        return 0;
    for (size_t i = 0; i < PAWL_HISTOGRAM_BUCKETS - 1; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= wanted)
            return pawl_histogram_bound(kind, i);
    }
    return pawl_histogram_bound(kind, PAWL_HISTOGRAM_BUCKETS - 2);
}

void pawl_outcomes_get(pawl_engine *e, pawl_outcomes *ret_outcomes)
{
    pawl_outcomes outcomes = {0};
    for (uint32_t i = 0; i < e->file.shards; i++) {
        const struct shard *shard = &e->shards[i];
        outcomes.ok += atomic_load_explicit(&shard->answered, memory_order_relaxed);
        outcomes.repeated += atomic_load_explicit(&shard->repeated, memory_order_relaxed);
        for (size_t k = 0; k < PAWL_OUTCOMES_MAX; k++)
            outcomes.failed[k] += atomic_load_explicit(&shard->failed[k], memory_order_relaxed);
    }
    *ret_outcomes = outcomes;
}

/* engine/node/find.c: the directory that is opened: found or made, with the log that it was made with.
 *
 * A directory keeps its log for ever, unless the log itself was copied into a cluster (engine/log/adopt.h). One whose
 * log is on Kafka names the cluster, and may be told other brokers of it; by the ID of the Kafka cluster it knows that
 * they are of the same one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "engine/log/log.h"
#include "engine/node/node.h"

#define PARTITIONS_DEFAULT 16
#define SHARDS_DEFAULT     2

static int check_new(const char *dir, pawl_error *error)
{
    bool new;
    int failed = node_is_new(dir, &new);
    if (failed == ENOENT || (failed == 0 && new))
        return PAWL_OK;
    if (failed == ENOTDIR)
        return error_set(error, PAWL_EEXISTS, "it is there already, and is not a directory");
    return failed ? error_errno(error, failed, "cannot look into it")
                  : error_set(error, PAWL_EEXISTS, "it is there already, and is not empty");
}

/* Decide what a new directory is made with. */
static int choose(const pawl_engine *e, struct node_file *ret_file, pawl_error *error)
{
    const pawl_options *o = &e->options;
    if (o->take_over && !o->log)
        return error_set(error, PAWL_EINVAL, "nothing is taken over: its log would be its own, in files");
    struct node_file file = {.partitions = o->partitions, .shards = o->shards ? o->shards : SHARDS_DEFAULT};
    if (o->log) {
        struct cluster_identity cluster;
        int status = cluster_identity_get(o->log, &cluster, error);
        if (status != PAWL_OK)
            return status;
        if (file.partitions > 0 && file.partitions != cluster.partitions)
            return error_set(error, PAWL_EINVAL, "%u partitions are asked for, and %.300s has %u",
                             file.partitions, o->log, cluster.partitions);
        if (cluster.partitions > PARTITIONS_MAX || (cluster.partitions & (cluster.partitions - 1)))
            return error_set(error, PAWL_EINVAL,
                             "%.300s has %u partitions: it must be a power of two, at most %u", o->log,
                             cluster.partitions, PARTITIONS_MAX);
        file.partitions = cluster.partitions;
        file.node = node_id_new();
        memcpy(file.kafka, cluster.kafka, sizeof file.kafka);
        snprintf(file.log, sizeof file.log, "%s", o->log);
    } else if (file.partitions == 0) {
        file.partitions = PARTITIONS_DEFAULT;
    }
    if (file.shards > file.partitions)
        file.shards = file.partitions;
    *ret_file = file;
    return PAWL_OK;
}

/* Make the directory under the lock: two processes with different options must not make it at the same time. */
static int make(pawl_engine *e, pawl_error *error)
{
    const pawl_options *o = &e->options;
    struct node_file chosen;
    int status = choose(e, &chosen, error);
    if (status != PAWL_OK)
        return status;
    status = node_directory_make(e->dir, error);
    if (status == PAWL_OK)
        status = node_lock(e->dir, NODE_LOCK, &e->lock_fd, error);
    if (status == PAWL_OK)
        status = node_file_read(e->dir, &e->file, error);
    if (status == PAWL_OK && o->must_be_new)
        return error_set(error, PAWL_EEXISTS, "another process has made it meanwhile");
    if (status != PAWL_ENOTFOUND)
        return status;
    e->file = chosen;
    return node_file_make(e->dir, &e->file, error);
}

/* Whether the directory has a log in files, and is to have one on Kafka, if that was copied from it. */
static bool is_to_adopt(const pawl_engine *e)
{
    return e->options.log && !e->options.read_only && !e->file.log[0];
}

/* Whether the directory has the log that the options name. */
static int check_log(const pawl_engine *e, pawl_error *error)
{
    const pawl_options *o = &e->options;
    const struct node_file *file = &e->file;
    if (node_is_derived(file) && !o->read_only)
        return error_set(error, PAWL_EREADONLY,
                         "it holds only state, derived from the log in %s: open it read-only", file->log);
    if (is_to_adopt(e))
        return PAWL_OK;
    if (o->log && !node_is_on_kafka(file))
        return error_set(error, PAWL_EINVAL,
                         "its log is its own, in files, and not %.300s: a directory keeps the log that it was "
                         "made with",
                         o->log);
    if (o->log && !cluster_is_same(o->log, file->log))
        return error_set(error, PAWL_EINVAL,
                         "its log is %.180s, and not %.180s: a directory keeps the log that it was made with",
                         file->log, o->log);
    if (o->take_over && !node_is_on_kafka(file))
        return error_set(error, PAWL_EINVAL, "nothing is taken over: its log is its own, in files");
    return PAWL_OK;
}

/* Whether this is the cluster that the directory was made for. Its name says little: a trial cluster may have the same,
 * and what is written there is not where the rest of the log is. */
static int check_cluster(pawl_engine *e, pawl_error *error)
{
    struct cluster_identity cluster;
    struct node_file *file = &e->file;
    int status = cluster_identity_get(file->log, &cluster, error);
    if (status != PAWL_OK)
        return status;
    if (file->kafka[0] && strcmp(cluster.kafka, file->kafka) != 0)
        return error_set(
            error, PAWL_EINVAL,
            "%.200s is in the Kafka cluster with the ID %.64s, and the log of this directory in the one "
            "with the ID %.64s: a directory keeps the log that it was made with",
            file->log, cluster.kafka[0] ? cluster.kafka : "(none)", file->kafka);
    if (cluster.partitions != file->partitions)
        return error_set(error, PAWL_EINVAL, "%.300s has %u partitions, and the directory was made for %u",
                         file->log, cluster.partitions, file->partitions);
    if (strcmp(cluster.kafka, file->kafka) != 0) { /* made before IDs were kept */
        memcpy(file->kafka, cluster.kafka, sizeof file->kafka);
        e->file_is_ahead = true;
    }
    return PAWL_OK;
}

/* The brokers of this cluster have other addresses now: open the log at the URL that was given. */
static void use_url(pawl_engine *e)
{
    const char *url = e->options.log;
    if (!url || strcmp(url, e->file.log) == 0)
        return;
    snprintf(e->file.log, sizeof e->file.log, "%s", url);
    e->file_is_ahead = true;
}

static int find_or_make(pawl_engine *e, pawl_error *error)
{
    const pawl_options *o = &e->options;
    int status;
    if (o->must_be_new) {
        status = check_new(e->dir, error);
        return status == PAWL_OK ? make(e, error) : status;
    }
    status = node_file_read(e->dir, &e->file, error);
    return status != PAWL_ENOTFOUND || o->must_exist || o->read_only ? status : make(e, error);
}

int engine_find(pawl_engine *e, pawl_error *error)
{
    int status = find_or_make(e, error);
    if (status == PAWL_OK && e->knobs.log) {
        e->file.node = node_id_new();
        snprintf(e->file.log, sizeof e->file.log, "%s", e->knobs.log);
        return PAWL_OK;
    }
    if (status == PAWL_OK)
        status = check_log(e, error);
    if (status == PAWL_OK && !e->options.read_only && e->lock_fd < 0)
        status = node_lock(e->dir, NODE_LOCK, &e->lock_fd, error);
    if (status == PAWL_OK && is_to_adopt(e))
        status = directory_adopt(e->dir, e->options.log, &e->file, error);
    if (status != PAWL_OK || !node_is_on_kafka(&e->file))
        return status;
    use_url(e);
    return check_cluster(e, error);
}

int engine_keep_file(pawl_engine *e, pawl_error *error)
{
    if (e->options.read_only || !e->file_is_ahead)
        return PAWL_OK;
    int status = node_file_replace(e->dir, &e->file, error);
    e->file_is_ahead = status != PAWL_OK;
    return status;
}

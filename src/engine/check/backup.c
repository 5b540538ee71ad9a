/* engine/check/backup.c: backup and restore. DIR is copied to a directory beside TO, which is renamed when it
 * is complete.
 *
 *     TO.new, marked unfinished ── filled, synced ──► TO                           a new one
 *                                                └──► TO.before ◄─ exchanged ─► TO   one that replaces another
 *
 * Invariants
 *   B1  A directory that is being made gets the file "unfinished" first, and loses it after it got its name;
 *       both are synced. So a directory without this file was not left by an interrupted backup or restore.
 *   B2  A TO that is replaced is there at every moment: old and new change places in one rename. */
#include <pawl/admin.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapter/journal/copy.h"
#include "adapter/journal/salvage.h"
#include "adapter/journal/verify.h"
#include "adapter/lmdb/store.h"
#include "adapter/uv/env.h"
#include "base/error.h"
#include "base/partition_set.h"
#include "core/project/operation.h"
#include "core/state/position.h"
#include "engine/check/stores_check.h"
#include "engine/check/stores_sum.h"
#include "engine/directory/directory.h"
#include "engine/log/log.h"
#include "engine/node/node.h"

struct backing {
    const pawl_backup_options *options;
    pawl_backup_report report;
    struct node_file file;
    bool is_restore;   /* what is made is another node than the one that was saved */
    const char *place; /* where the stores go: a backup's are checkpoints, restored ones are live */
    /* Where the directory is made: TO.new; at the end of a replacement TO.before. */
    char fresh[NODE_PATH_MAX];
    bool placed;    /* it has its name TO: what is at fresh now is not ours */
    int unfinished; /* the locked file in fresh; -1: fresh is not ours */
    uint64_t before, done,
        total;       /* bytes of the log: read in earlier passes, in all so far, in all at the end */
    unsigned passes; /* how often the log is read in all */
    pawl_error *error;
};

/* False: the caller wants to cancel. */
static bool go_on(struct backing *b)
{
    const pawl_backup_options *o = b->options;
    return !o->progress || o->progress(o->arg, b->done, b->total);
}

static int cancelled(struct backing *b)
{
    return error_set(b->error, PAWL_ECANCELED, "%s is not made: it was cancelled", b->options->to);
}

/* A pawl_progress of one pass over the log. */
static bool pass_on(void *arg, uint64_t done, uint64_t total)
{
    struct backing *b = arg;
    uint64_t now = b->before + done, all = total * b->passes;
    b->done = now > b->done ? now : b->done;
    b->total = all > b->total ? all : b->total;
    b->total = b->done > b->total ? b->done : b->total;
    return go_on(b);
}

/* A pawl_progress of work that does not read the log: nothing is counted, but it can be cancelled. */
static bool derive_on(void *arg, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    return go_on(arg);
}

/* B1 */
#define UNFINISHED "unfinished"

static int check_absent(const char *path, pawl_error *error)
{
    if (access(path, F_OK) == 0)
        return error_set(error, PAWL_EEXISTS, "%s exists already", path);
    return errno == ENOENT ? PAWL_OK : error_errno(error, errno, "cannot look for %s", path);
}

/* The path with a suffix, without the slashes that it may end with. */
static int suffixed(const char *path, const char *suffix, char *ret_path, pawl_error *error)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    int size = snprintf(ret_path, NODE_PATH_MAX, "%.*s%s", (int)length, path, suffix);
    return size > 0 && size < NODE_PATH_MAX ? PAWL_OK
                                            : error_set(error, PAWL_ETOOBIG, "%s: the path is too long", path);
}

/* Remove what an interrupted backup or restore left there. Anything else is not ours: PAWL_EEXISTS. */
static int remove_unfinished(const char *dir, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    int lock, status = node_path(dir, path, error, UNFINISHED);
    if (status != PAWL_OK || rmdir(dir) == 0 || errno == ENOENT)
        return status;
    if (access(path, F_OK))
        return error_set(error, PAWL_EEXISTS,
                         "%s exists already, and was not left by a backup or restore that was interrupted",
                         dir);
    status = node_lock(dir, UNFINISHED, &lock, error);
    if (status != PAWL_OK)
        return error_wrap(error, status, "cannot remove %s", dir);
    tree_remove_marked(dir, UNFINISHED);
    close(lock);
    return PAWL_OK;
}

static int make_unfinished(struct backing *b)
{
    int status = remove_unfinished(b->fresh, b->error);
    if (status == PAWL_OK && mkdir(b->fresh, 0777))
        return error_errno(b->error, errno, "cannot make %s", b->fresh);
    if (status != PAWL_OK)
        return status;
    status = node_lock(b->fresh, UNFINISHED, &b->unfinished, b->error);
    if (status != PAWL_OK)
        (void)rmdir(b->fresh);
    return status == PAWL_OK ? tree_sync(b->fresh, b->error) : status; /* B1 */
}

/* Make TO.new, with nothing in it but the file "unfinished". */
static int begin(struct backing *b)
{
    char path[NODE_PATH_MAX];
    int status = node_file_read(b->options->dir, &b->file, b->error);
    if (status == PAWL_OK && node_is_derived(&b->file))
        status = error_set(b->error, PAWL_EREADONLY, "%s holds only state, derived from the log in %s",
                           b->options->dir, b->file.log);
    if (status == PAWL_OK && b->is_restore && node_is_on_kafka(&b->file))
        b->file.node = node_id_new();
    if (status == PAWL_OK)
        status = suffixed(b->options->to, ".new", b->fresh, b->error);
    if (status == PAWL_OK)
        status = make_unfinished(b);
    if (status == PAWL_OK)
        status = node_file_make(b->fresh, &b->file, b->error);
    if (status == PAWL_OK)
        status = node_path(b->fresh, path, b->error, "%s", b->place);
    if (status == PAWL_OK && mkdir(path, 0777) && errno != EEXIST)
        status = error_errno(b->error, errno, "cannot make %s", path);
    return status;
}

/* The checkpoint; while that is being made, the live store, which is durable until then. */
static int open_source(struct backing *b, uint32_t shard, pawl_store **ret_store)
{
    int status = PAWL_ENOTFOUND;
    for (size_t i = 0; i < 2 && status == PAWL_ENOTFOUND; i++) {
        char path[NODE_PATH_MAX];
        struct lmdb_options options = {
            .dir = path, .mode = PAWL_STORE_DURABLE, .read_only = true, .alloc = b->options->allocator};
        status = i == 0 ? node_path(b->options->dir, path, b->error, "checkpoint/%u", shard)
                        : node_path(b->options->dir, path, b->error, "state/%u", shard);
        if (status == PAWL_OK)
            status = lmdb_store_open(&options, NULL, ret_store, b->error);
    }
    return status;
}

static int count_events(struct backing *b, uint32_t shard, pawl_store *store)
{
    struct partition_set set = partition_set_of(shard, b->file.partitions, b->file.shards);
    pawl_reader *snapshot;
    int status = pawl_store_snapshot(store, &snapshot);
    if (status != PAWL_OK)
        return error_set(b->error, status, "cannot read what was copied");
    for (size_t i = 0; status == PAWL_OK && i < set.count; i++) {
        struct position position;
        position_init(&position, b->options->allocator, partition_set_at(&set, i));
        status = position_read(&position, snapshot, b->error);
        b->report.events += position.offset;
        position_release(&position);
    }
    pawl_store_release(store, snapshot);
    return status;
}

static int copy_stores(struct backing *b)
{
    int status = PAWL_OK;
    for (uint32_t i = 0; status == PAWL_OK && i < b->file.shards; i++) {
        char path[NODE_PATH_MAX];
        pawl_store *store;
        status = node_path(b->fresh, path, b->error, "%s/%u", b->place, i);
        if (status == PAWL_OK)
            status = open_source(b, i, &store);
        if (status != PAWL_OK)
            return status;
        status = pawl_store_copy(store, path, b->error);
        if (status == PAWL_OK)
            status = count_events(b, i, store);
        if (status == PAWL_OK && !go_on(b))
            status = cancelled(b);
        (void)pawl_store_close(store);
    }
    return status;
}

static int verify_log(struct backing *b, const char *dir)
{
    char path[NODE_PATH_MAX];
    struct journal_verify_options options = {
        .dir = path, .alloc = b->options->allocator, .progress = pass_on, .arg = b};
    pawl_log_report report;
    int status = node_path(dir, path, b->error, "log");
    if (status == PAWL_OK)
        status = journal_verify(&options, &report, b->error);
    if (status != PAWL_OK)
        return status;
    b->before = b->done;
    if (report.faults)
        status = error_set(b->error, PAWL_ECORRUPT, "%s", report.first.error.text);
    pawl_log_report_release(&report);
    return status;
}

static struct stores_sum sum_of(struct backing *b, const char *dir, uint32_t shards)
{
    return (struct stores_sum){
        .dir = dir, .shards = shards, .progress = derive_on, .arg = b, .alloc = b->options->allocator};
}

/* What makes restoring a node on Kafka quick: the sum of a backup's stores, and how far the streams are known. */
static int copy_knowledge(struct backing *b)
{
    const struct stores_sum sum = sum_of(b, b->fresh, b->file.shards);
    int status = b->is_restore ? PAWL_OK : stores_sum_write(&sum, b->error);
    return status == PAWL_OK ? known_copy(b->options->dir, b->fresh, b->options->allocator, b->error) : status;
}

/* Copy the stores first: the log, which is copied later, then has all that they have. */
static int copy_directory(struct backing *b)
{
    char from[NODE_PATH_MAX], to[NODE_PATH_MAX];
    const struct journal_copy_options copy = {
        .from = from, .to = to, .alloc = b->options->allocator, .progress = pass_on, .arg = b};
    int status = copy_stores(b);
    if (status == PAWL_OK && node_is_on_kafka(&b->file)) /* the log stays where it is */
        return copy_knowledge(b);
    if (status == PAWL_OK)
        status = node_path(b->options->dir, from, b->error, "log");
    if (status == PAWL_OK)
        status = node_path(b->fresh, to, b->error, "log");
    if (status == PAWL_OK)
        status = journal_copy(&copy, &b->report.log_bytes, b->error);
    b->before = b->done;
    return status == PAWL_OK ? verify_log(b, b->fresh) : status;
}

/* Whether an entry belongs to the copy: an event up to the offset, or an operation of one. */
static bool is_before(void *arg, pawl_stream stream, uint64_t offset, pawl_bytes body)
{
    const struct backing *b = arg;
    struct operation op;
    if (stream.kind == PAWL_STREAM_PLOG)
        return offset <= b->options->until;
    return stream.kind != PAWL_STREAM_OPLOG
           || (operation_decode(body, &op, NULL) == PAWL_OK && op.event <= b->options->until);
}

/* Copy up to an offset: only these entries of the log are written, and no store. */
static int copy_until(struct backing *b)
{
    char from[NODE_PATH_MAX], to[NODE_PATH_MAX];
    pawl_doctor_report report;
    struct uv_env *env;
    struct journal_salvage_options options = {.dir = from,
                                              .to = to,
                                              .keep = is_before,
                                              .keep_arg = b,
                                              .alloc = b->options->allocator,
                                              .progress = pass_on,
                                              .arg = b};
    int status = node_path(b->options->dir, from, b->error, "log");
    if (status == PAWL_OK)
        status = node_path(b->fresh, to, b->error, "log");
    if (status == PAWL_OK)
        status = uv_env_open(&(struct uv_env_options){.shards = 1, .pool_threads = 1}, &env, b->error);
    if (status != PAWL_OK)
        return status;
    options.env = uv_env_port(env);
    status = journal_salvage(&options, &report, b->error);
    uv_env_close(env);
    if (status == PAWL_OK)
        pawl_doctor_report_release(&report);
    return status;
}

/* Exchange two names in one rename. Not every file system can do this. Then TO is left alone: between two
 * renames there would be no TO, and a process that opened it at that moment would make an empty one. */
static int exchange(const char *fresh, const char *to, pawl_error *error)
{
    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
        return PAWL_OK;
    if (errno == EINVAL || errno == ENOSYS)
        return error_set(error, PAWL_EINVAL,
                         "the file system cannot exchange two directories in one step: rename %s yourself, and "
                         "restore without replacing it",
                         to);
    return error_errno(error, errno, "cannot exchange %s and %s", fresh, to);
}

/* B2: for a moment TO.before is the new directory, with the file "unfinished"; then it is the old one. */
static int replace(struct backing *b, const char *around)
{
    char before[NODE_PATH_MAX], to[NODE_PATH_MAX];
    int status = suffixed(b->options->to, ".before", before, b->error);
    if (status == PAWL_OK)
        status = suffixed(b->options->to, "", to, b->error);
    if (status == PAWL_OK)
        status = check_absent(before, b->error);
    if (status == PAWL_OK && rename(b->fresh, before))
        status = error_errno(b->error, errno, "cannot rename %s to %s", b->fresh, before);
    if (status != PAWL_OK)
        return status;
    memcpy(b->fresh, before, sizeof before);
    status = tree_sync(around, b->error);
    return status == PAWL_OK ? exchange(before, to, b->error) : status;
}

/* Give the directory its name, and sync the names in it and around it. Only then is it finished (B1). */
static int end(struct backing *b, bool there)
{
    char around[NODE_PATH_MAX], path[NODE_PATH_MAX];
    const char *to = b->options->to;
    b->done = b->total;
    if (!go_on(b)) /* the last chance to cancel */
        return cancelled(b);
    int status = suffixed(to, "/..", around, b->error);
    if (status == PAWL_OK)
        status = node_path(b->fresh, path, b->error, "log");
    if (status == PAWL_OK && !node_is_on_kafka(&b->file))
        status = tree_sync(path, b->error);
    if (status == PAWL_OK)
        status = tree_sync(b->fresh, b->error);
    if (status == PAWL_OK)
        status = node_path(to, path, b->error, UNFINISHED);
    if (status == PAWL_OK && there)
        status = replace(b, around);
    else if (status == PAWL_OK && rename(b->fresh, to))
        status = error_errno(b->error, errno, "cannot rename %s to %s", b->fresh, to);
    b->placed = status == PAWL_OK;
    if (status == PAWL_OK)
        status = tree_sync(around, b->error);
    if (status == PAWL_OK)
        (void)unlink(path); /* it does no harm if this fails: the directory has its name */
    return status;
}

/* After an error, remove what was made. */
static int put_away(struct backing *b, int status, pawl_backup_report *ret_report)
{
    if (status == PAWL_ECANCELED)
        (void)cancelled(b); /* the same words, whichever step was cancelled */
    if (status == PAWL_OK)
        *ret_report = b->report;
    else if (b->unfinished >= 0 && !b->placed)
        tree_remove_marked(b->fresh, UNFINISHED);
    if (b->unfinished >= 0)
        close(b->unfinished);
    return status;
}

/* The same, with the paths of both directories. */
static int find_paths(const pawl_backup_options *given, pawl_backup_options *ret_plain, pawl_error *error)
{
    pawl_backup_options plain = *given;
    int status = engine_directory(given->dir, &plain.dir, error);
    if (status == PAWL_OK)
        status = engine_directory(given->to, &plain.to, error);
    if (status == PAWL_OK)
        *ret_plain = plain;
    return status;
}

int pawl_backup(const pawl_backup_options *given, pawl_backup_report *ret_report, pawl_error *error)
{
    pawl_backup_options options;
    struct backing b = {
        .options = &options, .place = "checkpoint", .passes = 2, .unfinished = -1, .error = error};
    int status = find_paths(given, &options, error);
    if (status != PAWL_OK)
        return status;
    status = check_absent(options.to, error);
    if (status == PAWL_OK)
        status = begin(&b);
    if (status == PAWL_OK)
        status = copy_directory(&b);
    if (status == PAWL_OK)
        status = end(&b, false);
    return put_away(&b, status, ret_report);
}

/* All that is derived is compared. */
static int compare_stores(struct backing *b)
{
    pawl_replay_options options = {
        .dir = b->options->dir,
        .backup = true,
        .audit = true, /* the checkpoint is what is copied, if there is one */
        .progress = derive_on,
        .arg = b,
        .allocator = b->options->allocator,
    };
    pawl_state_report report;
    int status = pawl_replay(&options, &report, b->error);
    if (status == PAWL_OK)
        b->report.derived = report.events;
    if (status != PAWL_OK || report.live.differences + report.checkpoint.differences == 0)
        return status;
    return error_set(b->error, PAWL_ECORRUPT, "%s",
                     report.live.differences ? report.live.first.text : report.checkpoint.first.text);
}

/* Of a log on Kafka: read of it what must be there, and no more. */
static int look_at_log(struct backing *b)
{
    const struct stores_check check = {
        .dir = b->options->dir, .progress = derive_on, .arg = b, .alloc = b->options->allocator};
    return stores_check(&check, &b->report.records, b->error);
}

/* Of a log on Kafka: stores that are still what was saved need only be of this log. All others are derived again. */
static int check_on_kafka(struct backing *b, const struct node_file *file)
{
    const struct stores_sum sum = sum_of(b, b->options->dir, file->shards);
    bool saved = false;
    if (b->options->until)
        return error_set(b->error, PAWL_EINVAL,
                         "its log is %.300s, which goes on behind that offset: 'pawl replay --until' derives "
                         "the state of an "
                         "offset",
                         file->log);
    int status = b->options->derive ? PAWL_OK : stores_sum_check(&sum, &saved, b->error);
    if (status != PAWL_OK)
        return status;
    return saved ? look_at_log(b) : compare_stores(b);
}

/* Check that the log is valid and, if the stores are copied too, that they agree with it. */
static int check(struct backing *b)
{
    struct node_file file;
    int status = node_file_read(b->options->dir, &file, b->error);
    if (status == PAWL_OK && node_is_on_kafka(&file)) {
        status = check_on_kafka(b, &file);
    } else if (status == PAWL_OK) {
        status = verify_log(b, b->options->dir);
        if (status == PAWL_OK && !b->options->until)
            status = compare_stores(b);
    }
    return status == PAWL_OK ? status : error_wrap(b->error, status, "%s is not restored", b->options->dir);
}

/* TO will be kept as TO.before. If an interrupted restore has left the file "unfinished" in it, remove this
 * file, or a later restore would remove TO.before. If TO is not a Pawl directory, the file is not ours:
 * PAWL_EEXISTS. */
static int unmark(const char *to, bool ours, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    int status = node_path(to, path, error, UNFINISHED);
    if (status != PAWL_OK || access(path, F_OK))
        return status;
    if (!ours)
        return error_set(error, PAWL_EEXISTS, "%s is not a Pawl directory, and holds a file %s", to,
                         UNFINISHED);
    if (unlink(path))
        return error_errno(error, errno, "cannot remove %s", path);
    return tree_sync(to, error);
}

/* A directory that exists may be replaced if nobody writes to it. It is locked until the end, so nobody
 * will. */
static int reserve(const pawl_backup_options *o, bool *ret_there, int *ret_lock, pawl_error *error)
{
    struct node_file file;
    pawl_error none;
    char before[NODE_PATH_MAX];
    int status = check_absent(o->to, error);
    *ret_there = status == PAWL_EEXISTS;
    if (status != PAWL_EEXISTS || !o->replace)
        return status;
    status = suffixed(o->to, ".before", before, error);
    if (status == PAWL_OK)
        status = remove_unfinished(before, error); /* now, so that an error comes before all the reading */
    if (status != PAWL_OK)
        return status;
    bool ours = node_file_read(o->to, &file, &none) == PAWL_OK; /* if not, it is kept all the same */
    if (ours)
        status = node_lock(o->to, NODE_LOCK, ret_lock, error);
    if (status != PAWL_OK)
        return error_wrap(error, status, "cannot replace %s", o->to);
    return unmark(o->to, ours, error);
}

int pawl_restore(const pawl_backup_options *given, pawl_backup_report *ret_report, pawl_error *error)
{
    pawl_backup_options options;
    struct backing b = {
        .options = &options, .is_restore = true, .place = "state", .unfinished = -1, .error = error};
    bool there;
    int lock = -1;
    int status = find_paths(given, &options, error);
    if (status != PAWL_OK)
        return status;
    b.passes = options.until ? 2 : 3;
    status = reserve(&options, &there, &lock, error);
    if (status == PAWL_OK)
        status = check(&b);
    if (status == PAWL_OK)
        status = begin(&b);
    if (status == PAWL_OK)
        status = options.until ? copy_until(&b) : copy_directory(&b);
    if (status == PAWL_OK)
        status = end(&b, there);
    status = put_away(&b, status, ret_report);
    if (lock >= 0)
        close(lock);
    return status;
}

#include "engine/checkpoint/stores.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapter/lmdb/store.h"
#include "base/error.h"
#include "core/state/position.h"
#include "engine/directory/directory.h"

/* Remove a store's directory. Its mark goes first: after a crash, files without a mark are not used as a
 * store. */
static int remove_store(const char *path, pawl_error *error)
{
    static const char *const files[] = {"pawl.mark", "pawl.mark.tmp", "data.mdb", "lock.mdb", "pawl.lock"};
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? PAWL_OK : error_errno(error, errno, "cannot open %s", path);
    int failed = 0;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !failed; i++)
        failed = unlinkat(fd, files[i], 0) && errno != ENOENT ? errno : 0;
    close(fd);
    if (!failed && rmdir(path))
        failed = errno;
    return failed ? error_errno(error, failed, "cannot remove %s", path) : PAWL_OK;
}

static int move(const char *from, const char *to, pawl_error *error)
{
    return rename(from, to) ? error_errno(error, errno, "cannot rename %s to %s", from, to) : PAWL_OK;
}

/* How many events a store's partitions have, all together. */
static int sum_offsets(const struct stores_options *o, pawl_store *store, uint64_t *ret_sum, pawl_error *error)
{
    uint64_t sum = 0;
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < o->partitions.count; i++) {
        struct position position;
        position_init(&position, o->alloc, partition_set_at(&o->partitions, i));
        status = position_read(&position, pawl_store_writer(store), error);
        sum += position.offset;
        position_release(&position);
    }
    if (status == PAWL_OK)
        *ret_sum = sum;
    return status;
}

static int open_store(const struct stores_options *o, const char *path, enum pawl_store_mode mode,
                      pawl_store **ret_store, pawl_error *error)
{
    struct lmdb_options options = {.dir = path, .mode = mode, .alloc = o->alloc, .boot_id = o->knobs->boot_id};
    return lmdb_store_open(&options, NULL, ret_store, error);
}

static int open_to_read(const struct stores_options *o, const char *path, pawl_store **ret_store,
                        pawl_error *error)
{
    struct lmdb_options options = {.dir = path,
                                   .mode = PAWL_STORE_DURABLE,
                                   .read_only = true,
                                   .alloc = o->alloc,
                                   .boot_id = o->knobs->boot_id};
    return lmdb_store_open(&options, NULL, ret_store, error);
}

static int checkpoint_path(const struct stores_options *o, const char *suffix, char *path, pawl_error *error)
{
    return node_path(o->dir, path, error, "checkpoint/%u%s", o->shard, suffix);
}

int stores_discard_checkpoint(const struct stores_options *o, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    int status = checkpoint_path(o, "", path, error);
    return status == PAWL_OK ? remove_store(path, error) : status;
}

int stores_open_checkpoint(const struct stores_options *o, pawl_store **ret_store, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    int status = checkpoint_path(o, "", path, error);
    if (status != PAWL_OK)
        return status;
    if (access(path, F_OK))
        return errno == ENOENT ? PAWL_ENOTFOUND : error_errno(error, errno, "cannot look for %s", path);
    return open_store(o, path, PAWL_STORE_DURABLE, ret_store, error);
}

/* Whether there is a log. If not, the directory is new, and an empty checkpoint lacks nothing. A log that is on Kafka
 * may have anything. */
static int find_log(const struct stores_options *o, bool *ret_there, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    int status = node_path(o->dir, path, error, "log");
    if (status != PAWL_OK)
        return status;
    DIR *dir = opendir(path);
    if (!dir && errno == ENOENT) {
        *ret_there = true;
        return PAWL_OK;
    }
    if (!dir)
        return error_errno(error, errno, "cannot list %s", path);
    bool there = false;
    for (struct dirent *entry; !there && (entry = readdir(dir));)
        there = entry->d_name[0] != '.';
    closedir(dir);
    *ret_there = there;
    return PAWL_OK;
}

/* The sum of the checkpoint's offsets; 0 if there is none. A checkpoint that cannot be used is discarded,
 * because no live store is in use yet that would need it. */
static int count_checkpoint(const struct stores_options *o, bool *ret_there, uint64_t *ret_offsets,
                            pawl_error *error)
{
    pawl_store *store;
    uint64_t offsets = 0;
    char path[NODE_PATH_MAX];
    int status = stores_open_checkpoint(o, &store, error);
    if (status == PAWL_EFULL) { /* the disk of the checkpoint is full: the engine can be opened all the same */
        status = checkpoint_path(o, "", path, error);
        status = status == PAWL_OK ? open_to_read(o, path, &store, error) : status;
    }
    *ret_there = status == PAWL_OK;
    *ret_offsets = 0;
    if (status == PAWL_ECORRUPT || status == PAWL_EFORMAT)
        return stores_discard_checkpoint(o, error);
    if (status != PAWL_OK)
        return status == PAWL_ENOTFOUND ? PAWL_OK : status;
    status = sum_offsets(o, store, &offsets, error);
    int closed = pawl_store_close(store);
    if (status == PAWL_ECORRUPT) { /* a position is not valid, so the store cannot be used either */
        *ret_there = false;
        return stores_discard_checkpoint(o, error);
    }
    *ret_offsets = offsets;
    return status != PAWL_OK ? status : closed;
}

/* Copy the checkpoint to another file system; it stays where it is. */
static int copy_over(const struct stores_options *o, const char *checkpoint, const char *live,
                     pawl_error *error)
{
    char fresh[NODE_PATH_MAX];
    pawl_store *store;
    int status = node_path(o->dir, fresh, error, "state/%u.new", o->shard);
    if (status == PAWL_OK)
        status = remove_store(fresh, error);
    if (status == PAWL_OK)
        status = open_to_read(o, checkpoint, &store, error);
    if (status != PAWL_OK)
        return status;
    status = pawl_store_copy(store, fresh, error);
    (void)pawl_store_close(store);
    return status == PAWL_OK ? move(fresh, live, error) : status;
}

static int become_live(const struct stores_options *o, const char *checkpoint, const char *live,
                       pawl_error *error)
{
    if (rename(checkpoint, live) == 0)
        return PAWL_OK;
    return errno == EXDEV ? copy_over(o, checkpoint, live, error)
                          : error_errno(error, errno, "cannot rename %s to %s", checkpoint, live);
}

/* T2 */
static int take_over(const struct stores_options *o, const char *live, pawl_error *error)
{
    char checkpoint[NODE_PATH_MAX], states[NODE_PATH_MAX], checkpoints[NODE_PATH_MAX];
    int status = checkpoint_path(o, "", checkpoint, error);
    if (status == PAWL_OK)
        status = node_path(o->dir, states, error, "state");
    if (status == PAWL_OK)
        status = node_path(o->dir, checkpoints, error, "checkpoint");
    if (status == PAWL_OK)
        status = remove_store(live, error);
    knobs_step(o->knobs, "the live store is removed");
    if (status == PAWL_OK)
        status = tree_sync(states, error);
    if (status == PAWL_OK)
        status = become_live(o, checkpoint, live, error);
    knobs_step(o->knobs, "the checkpoint store is renamed");
    if (status == PAWL_OK)
        status = tree_sync(states, error);
    if (status == PAWL_OK)
        status = tree_sync(checkpoints, error);
    knobs_step(o->knobs, "the renaming is synced");
    return status;
}

static int make_empty_checkpoint(const struct stores_options *o, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    pawl_store *store;
    int status = checkpoint_path(o, "", path, error);
    if (status == PAWL_OK)
        status = open_store(o, path, PAWL_STORE_DURABLE, &store, error);
    return status == PAWL_OK ? pawl_store_close(store) : status;
}

static int make_directory(const struct stores_options *o, pawl_error *error)
{
    char path[NODE_PATH_MAX];
    int status = node_path(o->dir, path, error, "checkpoint");
    if (status != PAWL_OK)
        return status;
    if (mkdir(path, 0777) == 0)
        return tree_sync(o->dir, error);
    return errno == EEXIST ? PAWL_OK : error_errno(error, errno, "cannot make %s", path);
}

static int open_counted(const struct stores_options *o, const char *path, struct stores_opened *opened,
                        pawl_error *error)
{
    int status = open_store(o, path, PAWL_STORE_FAST, &opened->live, error);
    if (status != PAWL_OK)
        return status;
    status = sum_offsets(o, opened->live, &opened->live_offsets, error);
    if (status != PAWL_OK)
        (void)pawl_store_close(opened->live);
    return status;
}

/* A live store that LMDB cannot open, or with a position that is not valid, is treated as one that lost power:
 * it is removed. */
static int open_live(const struct stores_options *o, const char *path, struct stores_opened *opened,
                     pawl_error *error)
{
    int status = open_counted(o, path, opened, error);
    if (status != PAWL_ECORRUPT && status != PAWL_EFORMAT)
        return status;
    status = remove_store(path, error);
    return status == PAWL_OK ? open_counted(o, path, opened, error) : status;
}

int stores_open(const struct stores_options *o, struct stores_opened *ret_opened, pawl_error *error)
{
    struct stores_opened opened = {0};
    char path[NODE_PATH_MAX];
    bool there = false;
    int status = node_path(o->dir, path, error, "state/%u", o->shard);
    if (status == PAWL_OK && !o->knobs->no_checkpoint)
        status = make_directory(o, error);
    if (status == PAWL_OK)
        status = open_live(o, path, &opened, error);
    if (status != PAWL_OK)
        return status;
    knobs_step(o->knobs, "the live store is open");
    if (!o->knobs->no_checkpoint)
        status = count_checkpoint(o, &there, &opened.checkpoint_offsets, error);
    bool log = true;
    if (status == PAWL_OK && !there && opened.live_offsets == 0)
        status = find_log(o, &log, error);
    if (status == PAWL_OK && !log && !o->knobs->no_checkpoint) {
        status = make_empty_checkpoint(o, error);
        there = true;
    }
    opened.taken_over = opened.live_offsets == 0 && opened.checkpoint_offsets > 0;
    bool far = opened.live_offsets > opened.checkpoint_offsets
               && opened.live_offsets - opened.checkpoint_offsets > o->lag_max;
    opened.durable = !o->knobs->no_checkpoint && (!there || far || opened.taken_over);
    if (status == PAWL_OK && !opened.durable) {
        *ret_opened = opened;
        return PAWL_OK;
    }
    int closed = pawl_store_close(opened.live);
    status = status != PAWL_OK ? status : closed;
    if (status == PAWL_OK && opened.taken_over)
        status = take_over(o, path, error);
    if (status == PAWL_OK)
        status = open_store(o, path, PAWL_STORE_DURABLE, &opened.live, error);
    if (status != PAWL_OK)
        return status;
    if (opened.taken_over) {
        opened.live_offsets = opened.checkpoint_offsets;
        opened.checkpoint_offsets = 0;
    }
    *ret_opened = opened;
    return PAWL_OK;
}

int stores_make_checkpoint(const struct stores_options *o, pawl_store *live, pawl_error *error)
{
    char fresh[NODE_PATH_MAX], path[NODE_PATH_MAX], checkpoints[NODE_PATH_MAX];
    int status = checkpoint_path(o, ".new", fresh, error);
    if (status == PAWL_OK)
        status = checkpoint_path(o, "", path, error);
    if (status == PAWL_OK)
        status = node_path(o->dir, checkpoints, error, "checkpoint");
    if (status == PAWL_OK)
        status = remove_store(fresh, error);
    knobs_step(o->knobs, "a copy begins");
    if (status == PAWL_OK)
        status = pawl_store_copy(live, fresh, error);
    knobs_step(o->knobs, "a copy is made");
    if (status == PAWL_OK)
        status = remove_store(path, error);
    if (status == PAWL_OK)
        status = move(fresh, path, error);
    knobs_step(o->knobs, "the copy has its name");
    return status == PAWL_OK ? tree_sync(checkpoints, error) : status;
}

/* engine/check/export.c: the log of a cluster, copied into a new directory.
 *
 *     DIR.exporting, locked ─► its file "export": the cluster's name ─► DIR.exporting/log, copied, compared ─► nothing has come
 *     meanwhile ─► DIR.exporting/node ─► renamed: DIR
 *
 * Invariants
 *   E1  DIR is there whole or not at all: the directory gets its node file when its log is complete, and then its name.
 *   E2  DIR.exporting is written to only if its file "export" names the same cluster. */
#include <pawl/cluster.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "engine/check/move.h"
#include "engine/directory/directory.h"
#include "engine/log/log.h"

#define SHARDS_DEFAULT 2
#define SHARDS_MAX     64
#define MARK           "export"

struct exporting {
    const pawl_cluster_move_options *options;
    char dir[NODE_PATH_MAX];
    char fresh[NODE_PATH_MAX]; /* DIR.exporting */
    uint32_t partitions;
    int lock;
    struct engine_log *from;
    struct engine_log *to;
    struct move move;
    pawl_cluster_report content;
    bool has_content;
    pawl_cluster_move_report report;
    pawl_error *error;
};

/* --- the directory --- */

static int check_absent(struct exporting *e)
{
    bool empty;
    int failed = node_is_new(e->dir, &empty);
    if (failed == ENOENT || (failed == 0 && empty))
        return PAWL_OK;
    if (failed == 0)
        return error_set(e->error, PAWL_EEXISTS, "%s is there already, and is not empty", e->dir);
    return failed == ENOTDIR
               ? error_set(e->error, PAWL_EEXISTS, "%s is there already, and is not a directory", e->dir)
               : error_errno(e->error, failed, "cannot look into %s", e->dir);
}

/* The URL without what may change: brokers and options. */
static const char *cluster_of(const char *url, char name[256])
{
    const char *slash = strchr(url + strlen("kafka://"), '/');
    snprintf(name, 256, "%.*s\n", slash ? (int)strcspn(slash + 1, "?") : 0, slash ? slash + 1 : "");
    return name;
}

static int read_mark(struct exporting *e, const char *path, char text[256], bool *ret_found)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *ret_found = fd >= 0;
    if (fd < 0)
        return errno == ENOENT ? PAWL_OK : error_errno(e->error, errno, "cannot open %s", path);
    ssize_t size = read(fd, text, 255);
    int failed = errno;
    close(fd);
    if (size < 0)
        return error_errno(e->error, failed, "cannot read %s", path);
    text[size] = '\0';
    return PAWL_OK;
}

static int write_mark(struct exporting *e, const char *path, const char *text)
{
    char draft[NODE_PATH_MAX];
    int status = node_path(e->fresh, draft, e->error, MARK ".new");
    if (status != PAWL_OK)
        return status;
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_errno(e->error, errno, "cannot make %s", draft);
    ssize_t written = write(fd, text, strlen(text));
    int failed = written != (ssize_t)strlen(text) ? (written < 0 ? errno : ENOSPC) : fsync(fd) ? errno : 0;
    close(fd);
    if (failed)
        return error_errno(e->error, failed, "cannot write %s", draft);
    if (rename(draft, path))
        return error_errno(e->error, errno, "cannot make %s", path);
    return tree_sync(e->fresh, e->error);
}

/* Without the mark: whether there is nothing else, either. */
static int check_fresh(struct exporting *e)
{
    char draft[NODE_PATH_MAX];
    bool empty = false;
    int status = node_path(e->fresh, draft, e->error, MARK ".new");
    if (status != PAWL_OK)
        return status;
    (void)unlink(draft); /* left by a kill while the mark was made */
    if (node_is_new(e->fresh, &empty) == 0 && empty)
        return PAWL_OK;
    return error_set(e->error, PAWL_EEXISTS, "%s is there already, and was not begun by an export", e->fresh);
}

/* E2 */
static int open_fresh(struct exporting *e)
{
    char path[NODE_PATH_MAX], wanted[256], text[256];
    bool found = false;
    cluster_of(e->options->url, wanted);
    int status = node_directory_make(e->fresh, e->error);
    if (status == PAWL_OK)
        status = node_lock(e->fresh, NODE_LOCK, &e->lock, e->error);
    if (status != PAWL_OK)
        return error_wrap(e->error, status, "%s", e->fresh);
    status = node_path(e->fresh, path, e->error, MARK);
    if (status == PAWL_OK)
        status = read_mark(e, path, text, &found);
    if (status != PAWL_OK)
        return status;
    if (found && strcmp(text, wanted) != 0)
        return error_set(e->error, PAWL_EEXISTS, "%s is there already, and was begun from cluster %.*s",
                         e->fresh, (int)strcspn(text, "\n"), text);
    if (!found)
        status = check_fresh(e);
    return status == PAWL_OK && !found ? write_mark(e, path, wanted) : status;
}

static int open_target(struct exporting *e)
{
    char path[NODE_PATH_MAX];
    int status = open_fresh(e);
    if (status == PAWL_OK)
        status = node_path(e->fresh, path, e->error, "log");
    if (status == PAWL_OK)
        status = node_directory_make(path, e->error);
    if (status == PAWL_OK)
        status = engine_log_open(path, false, &e->to, e->error);
    if (status == PAWL_OK)
        e->move.to = engine_log_port(e->to);
    return status;
}

/* What node_is_new takes for nothing is in the way of a rename. */
static void clear_name(const struct exporting *e)
{
    static const char *const left[] = {"lock", "node.new", "state", "log"};
    char path[NODE_PATH_MAX];
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
        if (node_path(e->dir, path, NULL, "%s", left[i]) == PAWL_OK)
            (void)remove(path);
}

/* E1 */
static int finish(struct exporting *e)
{
    char path[NODE_PATH_MAX], around[NODE_PATH_MAX];
    struct node_file file = {.partitions = e->partitions, .shards = e->options->shards};
    file.shards = file.shards ? file.shards : SHARDS_DEFAULT;
    file.shards = file.shards < file.partitions ? file.shards : file.partitions;
    int status = engine_log_close(e->to);
    e->to = NULL;
    if (status != PAWL_OK)
        return error_set(e->error, status, "cannot close the log in %s", e->fresh);
    status = node_path(e->fresh, path, e->error, "log");
    if (status == PAWL_OK)
        status = tree_sync(path, e->error);
    if (status == PAWL_OK)
        status = node_file_make(e->fresh, &file, e->error);
    if (status == PAWL_OK)
        status = node_path(e->dir, around, e->error, "..");
    if (status == PAWL_OK)
        clear_name(e);
    if (status == PAWL_OK && rename(e->fresh, e->dir))
        status = error_errno(e->error, errno, "cannot rename %s to %s", e->fresh, e->dir);
    if (status == PAWL_OK)
        status = tree_sync(around, e->error);
    if (status == PAWL_OK && node_path(e->dir, path, e->error, MARK) == PAWL_OK)
        (void)unlink(path); /* it says nothing any more */
    return status;
}

/* --- the cluster --- */

static bool go_on(void *arg, uint64_t done, uint64_t total)
{
    struct exporting *e = arg;
    (void)done, (void)total; /* records, and not entries */
    return move_tell(&e->move, e->error) == PAWL_OK;
}

static int open_source(struct exporting *e)
{
    struct cluster_identity source = {0};
    int status = cluster_identity_get(e->options->url, &source, e->error);
    e->partitions = source.partitions;
    if (status == PAWL_OK && (e->partitions > PARTITIONS_MAX || (e->partitions & (e->partitions - 1))))
        status =
            error_set(e->error, PAWL_EINVAL, "%.300s has %" PRIu32 " partitions, which no directory can have",
                      e->options->url, e->partitions);
    if (status == PAWL_OK)
        status = engine_log_open(e->options->url, true, &e->from, e->error);
    if (status != PAWL_OK)
        return status;
    e->move.from = engine_log_port(e->from);
    status = import_check(e->move.from, e->options->url, e->error);
    if (status == PAWL_OK)
        status = pawl_cluster_verify(e->options->url, go_on, e, &e->content, e->error);
    if (status != PAWL_OK)
        return status;
    e->has_content = true;
    if (e->content.faults)
        return error_set(e->error, PAWL_ECORRUPT, "%s", e->content.first.text);
    e->report.entries = e->content.entries;
    e->move.total = 2 * e->content.entries;
    for (size_t i = 0; i < e->content.stream_count; i++)
        e->report.streams += e->content.streams[i].entries > 0;
    return PAWL_OK;
}

/* Streams only grow: if none has since the copy was made, the copy is what the cluster had at one moment. */
static int check_unchanged(struct exporting *e)
{
    pawl_cluster_report now;
    int status = pawl_cluster_verify(e->options->url, go_on, e, &now, e->error);
    if (status != PAWL_OK)
        return status;
    bool same = now.entries == e->content.entries && now.faults == 0;
    pawl_cluster_report_release(&now);
    return same ? PAWL_OK
                : error_set(e->error, PAWL_EBUSY,
                            "a node writes to %.300s while it is exported: stop that node, and run this again, "
                            "which goes "
                            "on where it was",
                            e->options->url);
}

static int copy_all(struct exporting *e)
{
    int status = PAWL_OK;
    const pawl_cluster_report *c = &e->content;
    for (size_t i = 0; status == PAWL_OK && i < c->stream_count; i++) {
        const struct move_stream stream = {.id = c->streams[i].id, .last = c->streams[i].entries};
        if (stream.last > 0)
            status = move_copy(&e->move, &stream, e->error);
    }
    for (size_t i = 0; status == PAWL_OK && i < c->stream_count; i++)
        status = move_compare(&e->move, c->streams[i].id, c->streams[i].entries, e->error);
    return status == PAWL_OK ? check_unchanged(e) : status;
}

static int export_all(struct exporting *e)
{
    int status = check_absent(e);
    if (status == PAWL_OK)
        status = open_source(e);
    if (status == PAWL_OK)
        status = open_target(e);
    if (status == PAWL_OK)
        status = copy_all(e);
    if (status == PAWL_OK)
        status = move_tell(&e->move, e->error); /* the last chance to cancel */
    return status == PAWL_OK ? finish(e) : status;
}

/* The path without the slashes that it may end with, and the name beside it. */
static int name_paths(struct exporting *e, const char *dir)
{
    size_t length = strlen(dir);
    while (length > 1 && dir[length - 1] == '/')
        length--;
    int size = snprintf(e->dir, sizeof e->dir, "%.*s", (int)length, dir);
    int more = snprintf(e->fresh, sizeof e->fresh, "%.*s.exporting", (int)length, dir);
    return size > 0 && more > 0 && (size_t)more < sizeof e->fresh
               ? PAWL_OK
               : error_set(e->error, PAWL_ETOOBIG, "%.100s: the path is too long", dir);
}

int pawl_cluster_export(const pawl_cluster_move_options *options, pawl_cluster_move_report *ret_report,
                        pawl_error *error)
{
    pawl_error words = {0};
    const char *dir;
    if (!cluster_is(options->url))
        return error_set(error, PAWL_EINVAL, "%s: a log on Kafka is kafka://HOST:PORT/CLUSTER", options->url);
    if (options->shards > SHARDS_MAX)
        return error_set(error, PAWL_EINVAL, "%" PRIu32 " shards; at most %d", options->shards, SHARDS_MAX);
    int status = engine_directory(options->dir, &dir, error);
    if (status != PAWL_OK)
        return status;
    struct exporting *e = mem_new(NULL, 1, sizeof *e);
    if (!e)
        return error_set(error, PAWL_ENOMEM, "no memory to export a log");
    e->options = options;
    e->lock = -1;
    e->error = error ? error : &words;
    e->move = (struct move){
        .verb = "the export", .to_name = e->fresh, .progress = options->progress, .arg = options->arg};
    status = name_paths(e, dir);
    if (status == PAWL_OK)
        status = export_all(e);
    if (e->to)
        (void)engine_log_close(e->to);
    if (e->from)
        (void)engine_log_close(e->from);
    if (e->has_content)
        pawl_cluster_report_release(&e->content);
    if (e->lock >= 0)
        close(e->lock);
    e->report.copied = e->move.copied;
    if (status == PAWL_OK)
        *ret_report = e->report;
    mem_free(NULL, e, sizeof *e);
    return status;
}

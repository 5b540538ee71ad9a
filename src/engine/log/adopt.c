#include "engine/log/adopt.h"

#include <inttypes.h>
#include <stdio.h>

#include "adapter/journal/journal.h"
#include "adapter/lmdb/store.h"
#include "base/error.h"
#include "base/partition_set.h"
#include "core/project/cursor.h"
#include "core/state/position.h"
#include "engine/log/import_state.h"
#include "engine/log/log.h"

static int refuse(const char *dir, const char *url, const char *why, pawl_error *error)
{
    return error_set(
        error, PAWL_EINVAL,
        "its log is its own, in files, and not %.200s: %s. A directory keeps the log that it was made with, "
        "unless 'pawl cluster import --log %.200s %.200s' has copied it",
        url, why, url, dir);
}

/* Whether the cluster has all that the directory's log has. */
static int check_source(const char *dir, const char *url, const struct import_done *done, pawl_error *error)
{
    struct engine_log *log;
    pawl_log_report report;
    int status = engine_log_open(dir, true, &log, error);
    if (status != PAWL_OK)
        return status;
    bool same = id128_equal(journal_id(engine_log_port(log)), done->source);
    (void)engine_log_close(log);
    if (!same)
        return refuse(dir, url, "another directory's log was imported there", error);
    status = pawl_verify_log(dir, NULL, NULL, &report, error);
    if (status != PAWL_OK)
        return status;
    uint64_t entries = report.entries;
    if (report.faults)
        status = error_set(error, PAWL_ECORRUPT, "%s", report.first.error.text);
    else if (entries != done->entries)
        status = error_set(error, PAWL_EINVAL,
                           "its log has %" PRIu64 " entries, and %" PRIu64
                           " of them were imported into %.300s: what was written to it since is not there",
                           entries, done->entries, url);
    pawl_log_report_release(&report);
    return status;
}

struct cursors {
    pawl_store *store;
    uint16_t partition;
    uint16_t lane; /* behind this one */
    uint32_t generation;
    bool found;
};

static bool take_cursor(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct cursors *c = arg;
    uint16_t partition;
    (void)value;
    c->found = cursor_key_read(key, &partition, &c->lane, &c->generation);
    return !c->found;
}

/* The next cursor behind the one that is named; c->found: there is one. */
static int next_cursor(struct cursors *c, bool first)
{
    uint8_t from[CURSOR_KEY + 1], key[CURSOR_KEY], end[CURSOR_KEY];
    pawl_bytes prefix = cursor_key(c->partition, 0, 0, key);
    prefix.size = CURSOR_PREFIX;
    memcpy(from, key, CURSOR_PREFIX);
    pawl_range range = {.space = STATE_SPACE, .from = prefix, .to = key_after_prefix(prefix, end)};
    if (!first) {
        (void)cursor_key(c->partition, c->lane, c->generation, from);
        from[CURSOR_KEY] = 0; /* the first key behind it */
        range.from = (pawl_bytes){from, sizeof from};
    }
    c->found = false;
    return pawl_store_scan(pawl_store_writer(c->store), range, false, take_cursor, c);
}

static int clear_cursors(pawl_store *store, uint16_t partition)
{
    struct cursors c = {.store = store, .partition = partition};
    int status = next_cursor(&c, true);
    while (status == PAWL_OK && c.found) {
        struct cursor cursor;
        cursor_init(&cursor, NULL, partition, c.lane, c.generation);
        status = cursor_read(&cursor, pawl_store_writer(store), NULL);
        cursor.place = (pawl_place){0};
        if (status == PAWL_OK)
            status = cursor_write(&cursor, store);
        cursor_release(&cursor);
        if (status == PAWL_OK)
            status = next_cursor(&c, false);
    }
    return status;
}

static int clear_places(pawl_store *store, const struct partition_set *set)
{
    int status = PAWL_OK;
    for (size_t i = 0; status == PAWL_OK && i < set->count; i++) {
        struct position position;
        position_init(&position, NULL, partition_set_at(set, i));
        status = position_read(&position, pawl_store_writer(store), NULL);
        if (status == PAWL_OK && position.offset > 0) {
            position.place = (pawl_place){0};
            status = position_write(&position, store);
        }
        position_release(&position);
        if (status == PAWL_OK)
            status = clear_cursors(store, partition_set_at(set, i));
    }
    return status == PAWL_OK ? pawl_store_commit(store) : status;
}

/* A store that is not there, or cannot be trusted, is not opened by a node either. */
static int clear_store(const char *path, enum pawl_store_mode mode, const struct partition_set *set,
                       pawl_error *error)
{
    pawl_store *store;
    struct lmdb_options options = {.dir = path, .mode = mode, .read_only = true};
    int status = lmdb_store_open(&options, NULL, &store, error);
    if (status == PAWL_ENOTFOUND || status == PAWL_ECORRUPT)
        return PAWL_OK;
    if (status != PAWL_OK)
        return status;
    (void)pawl_store_close(store);
    options.read_only = false;
    status = lmdb_store_open(&options, NULL, &store, error);
    if (status != PAWL_OK)
        return status;
    status = clear_places(store, set);
    if (status != PAWL_OK)
        pawl_store_abort(store);
    int closed = pawl_store_close(store);
    status = status != PAWL_OK ? status : closed;
    return status == PAWL_OK ? PAWL_OK : error_set(error, status, "cannot write to %s", path);
}

static int clear_stores(const char *dir, const struct node_file *file, pawl_error *error)
{
    int status = PAWL_OK;
    for (uint32_t i = 0; status == PAWL_OK && i < file->shards; i++) {
        char path[NODE_PATH_MAX];
        const struct partition_set set = partition_set_of(i, file->partitions, file->shards);
        status = node_path(dir, path, error, "state/%u", i);
        if (status == PAWL_OK)
            status = clear_store(path, PAWL_STORE_FAST, &set, error);
        if (status == PAWL_OK)
            status = node_path(dir, path, error, "checkpoint/%u", i);
        if (status == PAWL_OK)
            status = clear_store(path, PAWL_STORE_DURABLE, &set, error);
    }
    return status;
}

static int look_there(const char *url, struct import_watch *ret_watch, pawl_error *error)
{
    struct engine_log *log;
    int status = engine_log_open(url, true, &log, error);
    if (status != PAWL_OK)
        return status;
    status = import_check(engine_log_port(log), url, error);
    if (status == PAWL_OK)
        status = import_look(engine_log_port(log), ret_watch, error);
    (void)engine_log_close(log);
    return status;
}

int directory_adopt(const char *dir, const char *url, struct node_file *file, pawl_error *error)
{
    struct import_watch there;
    struct node_file now = *file;
    int status = look_there(url, &there, error);
    if (status == PAWL_OK && there.state != IMPORT_ENDED)
        status = refuse(dir, url, "nothing was imported there", error);
    if (status == PAWL_OK)
        status = check_source(dir, url, &there.done, error);
    if (status == PAWL_OK)
        status = clear_stores(dir, file, error);
    if (status != PAWL_OK)
        return status;
    now.node = node_id_new();
    snprintf(now.log, sizeof now.log, "%s", url);
    status = node_file_replace(dir, &now, error);
    if (status == PAWL_OK)
        *file = now;
    return status;
}

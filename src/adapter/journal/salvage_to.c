#include "adapter/journal/salvage_to.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "adapter/journal/journal.h"
#include "adapter/journal/streams.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/latch.h"

#define BATCH_ENTRIES 512
#define BATCH_BYTES   ((size_t)1 << 20)

/* One stream of the new journal, and of the file for what is behind its first hole. */
struct saved {
    uint64_t epoch; /* 0: not claimed yet */
    uint64_t next;
    uint64_t file_size;
};

struct rescue {
    const struct journal_salvage_options *options;
    const struct disk *disk;
    pawl_log *log;
    struct map streams; /* -> struct saved */

    pawl_append_entry entries[BATCH_ENTRIES];
    size_t count;
    uint8_t *bodies;
    size_t bodies_room;
    size_t bodies_size;

    int dir;  /* behind-holes, or -1 */
    int file; /* of file_stream, or -1 */
    pawl_stream file_stream;
};

static void see_name(void *arg, const char *name)
{
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        *(bool *)arg = true;
}

static int check_empty(const struct disk *disk, const char *path, pawl_error *error)
{
    int dir = disk->open_dir(disk->ctx, path);
    if (dir == -ENOENT)
        return PAWL_OK;
    if (dir < 0)
        return error_errno(error, -dir, "cannot open directory %s", path);
    bool used = false;
    int rc = disk->list(disk->ctx, dir, see_name, &used);
    disk->close(disk->ctx, dir);
    if (rc < 0)
        return error_errno(error, -rc, "cannot list directory %s", path);
    return used ? error_set(error, PAWL_EEXISTS, "%s is not empty: salvage writes into a new directory only",
                            path)
                : PAWL_OK;
}

int rescue_open(const struct journal_salvage_options *options, struct rescue **ret_rescue, pawl_error *error)
{
    const struct disk *disk = options->disk ? options->disk : &disk_real;
    if (!options->env)
        return error_set(error, PAWL_EINVAL, "salvaging into a directory needs an env");
    int status = check_empty(disk, options->to, error);
    if (status != PAWL_OK)
        return status;
    struct rescue *rescue = mem_new(options->alloc, 1, sizeof *rescue);
    if (!rescue)
        return error_set(error, PAWL_ENOMEM, "no memory to salvage");
    rescue->options = options;
    rescue->disk = disk;
    rescue->dir = rescue->file = -1;
    map_init(&rescue->streams, options->alloc, sizeof(struct stream_key), sizeof(struct saved), STREAMS_MAX);
    struct journal_options journal = {
        .dir = options->to, .env = options->env, .alloc = options->alloc, .disk = disk};
    status = journal_open(&journal, &rescue->log, error);
    if (status != PAWL_OK) {
        rescue_abandon(rescue);
        return status;
    }
    *ret_rescue = rescue;
    return PAWL_OK;
}

static void claim_done(pawl_claim *claim)
{
    latch_set(claim->arg);
}

static void append_done(pawl_append *append)
{
    latch_set(append->arg);
}

static int claim(struct rescue *rescue, pawl_stream stream, struct saved *saved, pawl_error *error)
{
    struct latch latch;
    latch_init(&latch);
    pawl_claim request = {.stream = stream, .done = claim_done, .arg = &latch, .error = error};
    int status = pawl_log_claim(rescue->log, &request);
    if (status != PAWL_OK)
        return status;
    latch_wait(&latch);
    if (request.status == PAWL_OK) {
        saved->epoch = request.epoch;
        saved->next = request.next;
    }
    return request.status;
}

static int flush(struct rescue *rescue, pawl_error *error)
{
    if (rescue->count == 0)
        return PAWL_OK;
    struct latch latch;
    latch_init(&latch);
    pawl_append request = {.entries = rescue->entries,
                           .count = rescue->count,
                           .alone = true,
                           .done = append_done,
                           .arg = &latch,
                           .error = error};
    size_t at = 0;
    for (size_t i = 0; i < rescue->count; i++) {
        rescue->entries[i].entry.body.data = rescue->bodies + at;
        at += rescue->entries[i].entry.body.size;
    }
    int status = pawl_log_append(rescue->log, &request);
    if (status == PAWL_OK)
        latch_wait(&latch);
    rescue->count = 0;
    rescue->bodies_size = 0;
    return status < 0 ? status : request.status;
}

static int save(struct rescue *rescue, const struct record *r, struct saved *saved, pawl_error *error)
{
    int status = PAWL_OK;
    if (rescue->count == BATCH_ENTRIES || rescue->bodies_size + r->body.size > BATCH_BYTES)
        status = flush(rescue, error);
    if (status == PAWL_OK && saved->epoch == 0)
        status = claim(rescue, r->stream, saved, error);
    if (status != PAWL_OK)
        return status;
    size_t need = rescue->bodies_size + r->body.size;
    if (need > rescue->bodies_room) {
        size_t room = need > BATCH_BYTES ? need : BATCH_BYTES;
        uint8_t *bodies = mem_resize(rescue->options->alloc, rescue->bodies, rescue->bodies_room, room);
        if (!bodies)
            return error_set(error, PAWL_ENOMEM, "no memory to salvage");
        rescue->bodies = bodies;
        rescue->bodies_room = room;
    }
    if (r->body.size)
        memcpy(rescue->bodies + rescue->bodies_size, r->body.data, r->body.size);
    rescue->bodies_size = need;
    rescue->entries[rescue->count++] = (pawl_append_entry){.entry = {.stream = r->stream,
                                                                     .epoch = saved->epoch,
                                                                     .offset = saved->next++,
                                                                     .kind = r->kind,
                                                                     .body.size = r->body.size}};
    return PAWL_OK;
}

static int close_file(struct rescue *rescue, pawl_error *error)
{
    if (rescue->file < 0)
        return PAWL_OK;
    int rc = disk_sync(rescue->disk, rescue->file);
    rescue->disk->close(rescue->disk->ctx, rescue->file);
    rescue->file = -1;
    return rc < 0 ? error_errno(error, -rc, "cannot sync a file in %s/behind-holes", rescue->options->to)
                  : PAWL_OK;
}

static int open_file(struct rescue *rescue, pawl_stream stream, pawl_error *error)
{
    const struct disk *disk = rescue->disk;
    const char *to = rescue->options->to;
    if (rescue->file >= 0 && pawl_stream_equal(rescue->file_stream, stream))
        return PAWL_OK;
    int status = close_file(rescue, error);
    if (status != PAWL_OK)
        return status;
    if (rescue->dir < 0) {
        char path[4096];
        if (snprintf(path, sizeof path, "%s/behind-holes", to) >= (int)sizeof path)
            return error_set(error, PAWL_EINVAL, "the path is too long: %.100s...", to);
        int rc = disk->make_dir(disk->ctx, path);
        if (rc == 0)
            rc = rescue->dir = disk->open_dir(disk->ctx, path);
        if (rc < 0)
            return error_errno(error, -rc, "cannot make directory %s", path);
    }
    char name[PAWL_STREAM_TEXT_MAX + 8];
    pawl_stream_format(stream, name);
    for (char *p = name; *p; p++)
        if (*p == '/')
            *p = '-';
    size_t length = strlen(name);
    snprintf(name + length, sizeof name - length, ".ndjson");
    rescue->file = disk->open(disk->ctx, rescue->dir, name, O_WRONLY | O_CREAT);
    if (rescue->file < 0)
        return error_errno(error, -rescue->file, "cannot make %s/behind-holes/%s", to, name);
    rescue->file_stream = stream;
    return PAWL_OK;
}

static int put_aside(struct rescue *rescue, const struct record *r, struct saved *saved, pawl_error *error)
{
    static const char digits[] = "0123456789abcdef";
    int status = open_file(rescue, r->stream, error);
    if (status != PAWL_OK)
        return status;
    size_t room = 80 + 2 * r->body.size;
    char *line = mem_new(rescue->options->alloc, 1, room);
    if (!line)
        return error_set(error, PAWL_ENOMEM, "no memory to salvage");
    const uint8_t *body = r->body.data;
    int head = snprintf(line, room, "{\"offset\":%" PRIu64 ",\"kind\":%u,\"hex\":\"", r->offset, r->kind);
    size_t size = (size_t)head;
    for (size_t i = 0; i < r->body.size; i++) {
        line[size++] = digits[body[i] >> 4];
        line[size++] = digits[body[i] & 15];
    }
    memcpy(line + size, "\"}\n", 3);
    size += 3;
    int rc = disk_write_all(rescue->disk, rescue->file, line, size, saved->file_size);
    mem_free(rescue->options->alloc, line, room);
    saved->file_size += size;
    return rc < 0 ? error_errno(error, -rc, "cannot write into %s/behind-holes", rescue->options->to) : PAWL_OK;
}

int rescue_entry(struct rescue *rescue, const struct record *r, pawl_error *error)
{
    struct stream_key key = stream_key(r->stream);
    void *value;
    bool fresh;
    if (map_put(&rescue->streams, stream_key_hash(key), &key, &value, &fresh) != PAWL_OK)
        return error_set(error, PAWL_ENOMEM, "no memory to salvage");
    struct saved *saved = value;
    if (fresh)
        saved->next = 1;
    return saved->next == r->offset ? save(rescue, r, saved, error) : put_aside(rescue, r, saved, error);
}

int rescue_close(struct rescue *rescue, pawl_error *error)
{
    int status = flush(rescue, error);
    if (status == PAWL_OK)
        status = close_file(rescue, error);
    int rc = rescue->dir >= 0 ? disk_sync_dir(rescue->disk, rescue->dir) : 0;
    if (status == PAWL_OK && rc < 0)
        status = error_errno(error, -rc, "cannot sync directory %s/behind-holes", rescue->options->to);
    rescue_abandon(rescue);
    return status;
}

void rescue_abandon(struct rescue *rescue)
{
    const pawl_allocator *alloc = rescue->options->alloc;
    if (rescue->log)
        (void)pawl_log_close(rescue->log);
    if (rescue->file >= 0)
        rescue->disk->close(rescue->disk->ctx, rescue->file);
    if (rescue->dir >= 0)
        rescue->disk->close(rescue->disk->ctx, rescue->dir);
    map_release(&rescue->streams);
    mem_free(alloc, rescue->bodies, rescue->bodies_room);
    mem_free(alloc, rescue, sizeof *rescue);
}

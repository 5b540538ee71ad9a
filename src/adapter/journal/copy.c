#include "adapter/journal/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "adapter/journal/home.h"
#include "adapter/journal/segment.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"

#define PAGE   ((size_t)4096)
#define STRIDE ((size_t)1 << 20)

struct copying {
    const struct disk *disk;
    struct home home; /* of the source */
    int to;           /* the copy's directory */
    uint8_t *buffer;  /* STRIDE */
    uint64_t bytes;
    uint64_t done, told, total; /* bytes, of all segments */
    pawl_progress progress;
    void *arg;
    pawl_error *error;
};

/* So many more bytes are copied. -ECANCELED: that is enough. */
static int tell(struct copying *c, uint64_t bytes)
{
    c->done += bytes;
    if (!c->progress || (c->done - c->told < STRIDE && c->done < c->total))
        return 0;
    c->told = c->done;
    return c->progress(c->arg, c->done, c->total > c->done ? c->total : c->done) ? 0 : -ECANCELED;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

/* A page of zeros need not be written: the file is as long as it should be already. */
static int copy_piece(struct copying *c, int in, int out, uint64_t at, size_t size, int64_t *ret_got)
{
    int64_t got = disk_read_all(c->disk, in, c->buffer, size, at);
    *ret_got = got;
    if (got < 0)
        return (int)got;
    return got == 0 || is_zero(c->buffer, (size_t)got)
               ? 0
               : disk_write_all(c->disk, out, c->buffer, (size_t)got, at);
}

/* Up to the size that it had: a segment that was closed may go on meanwhile, and is copied as it was. */
static int copy_backwards(struct copying *c, int in, int out, uint64_t size)
{
    int rc = 0;
    for (uint64_t end = size; rc == 0 && end > 0;) {
        uint64_t at = (end - 1) / PAGE * PAGE;
        int64_t got;
        rc = copy_piece(c, in, out, at, (size_t)(end - at), &got);
        if (rc == 0)
            rc = tell(c, end - at);
        end = at;
    }
    return rc;
}

static int copy_forwards(struct copying *c, int in, int out, uint64_t size)
{
    int rc = 0;
    for (uint64_t at = 0; rc == 0 && at < size; at += STRIDE) {
        int64_t got;
        rc = copy_piece(c, in, out, at, STRIDE, &got);
        if (rc == 0)
            rc = tell(c, size - at < STRIDE ? size - at : STRIDE);
    }
    return rc;
}

/* A segment to be copied, and its size when it was opened. */
struct source {
    char name[SEGMENT_NAME_MAX];
    int file;
    uint64_t size;
};

static int source_open(struct copying *c, struct source *ret_source)
{
    const struct disk *disk = c->disk;
    int file = disk->open(disk->ctx, c->home.dir, ret_source->name, O_RDONLY);
    int64_t size = file < 0 ? file : disk->size(disk->ctx, file);
    if (size < 0) {
        if (file >= 0)
            disk->close(disk->ctx, file);
        return error_errno(c->error, (int)-size, "cannot open %s", ret_source->name);
    }
    ret_source->file = file;
    ret_source->size = (uint64_t)size;
    return PAWL_OK;
}

/* Takes the source. */
static int copy_file(struct copying *c, const struct source *source, bool newest)
{
    const struct disk *disk = c->disk;
    int in = source->file;
    int out = disk->open(disk->ctx, c->to, source->name, O_RDWR | O_CREAT | O_EXCL);
    int rc = out < 0 ? out : disk->truncate(disk->ctx, out, source->size);
    if (rc == 0)
        rc = newest ? copy_backwards(c, in, out, source->size) : copy_forwards(c, in, out, source->size);
    if (rc == 0)
        rc = disk_sync(disk, out);
    if (out >= 0)
        disk->close(disk->ctx, out);
    disk->close(disk->ctx, in);
    c->bytes += rc == 0 ? source->size : 0;
    return rc == 0 ? PAWL_OK : error_errno(c->error, -rc, "cannot copy %s", source->name);
}

/* The segments, and the newest of them opened. The writer cuts a segment short when its successor has its name. So if
 * there is no successor after the newest's size was taken, that is the size that its header says, or it is sealed. */
static int open_newest(struct copying *c, struct segment_list *segments, struct source *ret_newest)
{
    for (;;) {
        struct segment_list after = {.alloc = segments->alloc};
        int status = segment_list_load(segments, c->disk, c->home.dir, c->error);
        if (status != PAWL_OK || segments->count == 0)
            return status;
        struct segment_ref newest = segments->items[segments->count - 1];
        segment_name(newest.number, newest.first_lsn, ret_newest->name);
        status = source_open(c, ret_newest);
        if (status != PAWL_OK)
            return status;
        status = segment_list_load(&after, c->disk, c->home.dir, c->error);
        bool has_successor = status == PAWL_OK && after.count > segments->count;
        segment_list_release(&after);
        if (status == PAWL_OK && !has_successor)
            return PAWL_OK;
        c->disk->close(c->disk->ctx, ret_newest->file);
        if (status != PAWL_OK)
            return status;
    }
}

static void add_size(struct copying *c, struct segment_ref ref)
{
    char name[SEGMENT_NAME_MAX];
    segment_name(ref.number, ref.first_lsn, name);
    int file = c->disk->open(c->disk->ctx, c->home.dir, name, O_RDONLY);
    int64_t size = file < 0 ? 0 : c->disk->size(c->disk->ctx, file);
    c->total += size > 0 ? (uint64_t)size : 0;
    if (file >= 0)
        c->disk->close(c->disk->ctx, file);
}

/* The newest first: what is older does not change any more. The id last, as when a journal is made. */
static int copy_all(struct copying *c, const pawl_allocator *alloc)
{
    struct segment_list segments = {.alloc = alloc};
    struct source source;
    int status = open_newest(c, &segments, &source);
    for (size_t i = 0; status == PAWL_OK && i < segments.count; i++)
        add_size(c, segments.items[i]);
    for (size_t i = segments.count; status == PAWL_OK && i-- > 0;) {
        bool newest = i + 1 == segments.count;
        segment_name(segments.items[i].number, segments.items[i].first_lsn, source.name);
        if (!newest)
            status = source_open(c, &source);
        if (status == PAWL_OK)
            status = copy_file(c, &source, newest);
    }
    segment_list_release(&segments);
    int rc = status == PAWL_OK ? disk_sync_dir(c->disk, c->to) : 0;
    if (rc < 0)
        return error_errno(c->error, -rc, "cannot sync the copy");
    c->progress = NULL; /* the id is no segment */
    snprintf(source.name, sizeof source.name, "id");
    if (status == PAWL_OK)
        status = source_open(c, &source);
    if (status == PAWL_OK)
        status = copy_file(c, &source, false);
    rc = status == PAWL_OK ? disk_sync_dir(c->disk, c->to) : 0;
    return rc < 0 ? error_errno(c->error, -rc, "cannot sync the copy") : status;
}

int journal_copy(const struct journal_copy_options *o, uint64_t *ret_bytes, pawl_error *error)
{
    struct copying c = {
        .disk = o->disk ? o->disk : &disk_real, .progress = o->progress, .arg = o->arg, .error = error};
    char path[4096];
    int size = snprintf(path, sizeof path, "%s/journal", o->to);
    if (size < 0 || (size_t)size >= sizeof path)
        return error_set(error, PAWL_ETOOBIG, "%s: the path is too long", o->to);
    int status = home_open(&c.home, c.disk, o->from, true, (struct id128){0}, error);
    if (status != PAWL_OK)
        return status;
    int rc = c.disk->make_dir(c.disk->ctx, path);
    c.to = rc < 0 ? rc : c.disk->open_dir(c.disk->ctx, path);
    c.buffer = mem_resize(o->alloc, NULL, 0, STRIDE);
    if (c.to < 0)
        status = error_errno(error, -c.to, "cannot make %s", path);
    else if (!c.buffer)
        status = error_set(error, PAWL_ENOMEM, "no memory to copy %s", o->from);
    else
        status = copy_all(&c, o->alloc);
    mem_free(o->alloc, c.buffer, c.buffer ? STRIDE : 0);
    if (c.to >= 0)
        c.disk->close(c.disk->ctx, c.to);
    home_close(&c.home);
    if (status == PAWL_OK)
        *ret_bytes = c.bytes;
    return status == PAWL_OK ? status : error_wrap(error, status, "cannot copy the journal of %s", o->from);
}

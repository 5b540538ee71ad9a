#include "test/lib/ramdisk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define FILES_MAX   256
#define HANDLES_MAX 64
#define NAME_MAX_   64

struct image {
    uint8_t *bytes;
    size_t size;
};

struct file {
    struct image now;
    struct image durable;
    size_t held;   /* so many bytes have their blocks: making a file longer takes none */
    uint8_t *lost; /* a sector whose sync failed: written, and never to be durable */
    size_t lost_size;
};

struct name {
    char text[NAME_MAX_];
    int file; /* -1: free */
};

struct names {
    struct name items[FILES_MAX];
};

struct handle {
    int file; /* -1: free, DIR_HANDLE: a directory */
    bool outer;
    bool above; /* the directory that the outer one lies in */
    bool locked;
};

#define DIR_HANDLE 1000000

struct ramdisk {
    struct disk disk;
    struct file *files[FILES_MAX];
    size_t file_count;
    struct names now;
    struct names durable;
    bool outer_exists, outer_durable;
    bool inner_exists, inner_durable;
    struct handle handles[HANDLES_MAX];
    uint64_t calls;     /* that change something */
    uint64_t all_calls; /* and all others */
    void (*on_call)(void *arg, const struct ramdisk_write *write);
    void *on_call_arg;
    bool off;
    uint64_t fail_at;
    int fail_number;
    bool full;
};

static void image_resize(struct image *image, size_t size)
{
    image->bytes = realloc(image->bytes, size ? size : 1);
    assert(image->bytes);
    if (size > image->size)
        memset(image->bytes + image->size, 0, size - image->size);
    image->size = size;
}

static void image_copy(struct image *to, const struct image *from)
{
    image_resize(to, from->size);
    memcpy(to->bytes, from->bytes, from->size);
}

/* Whether this call is the one that is to fail. Signals interrupt only what can be interrupted. */
static int fault(struct ramdisk *r, bool interruptible)
{
    if (r->off)
        return -EIO;
    if (++r->all_calls != r->fail_at || r->fail_number == RAMDISK_SHORT)
        return 0;
    return r->fail_number == EINTR && !interruptible ? 0 : -r->fail_number;
}

/* A call that changes something is about to be done. 0: do it; otherwise what to return. write NULL: it is not
 * a write; else its size may be made smaller. */
static int count(struct ramdisk *r, bool interruptible, struct ramdisk_write *write)
{
    static const struct ramdisk_write none = {.file = -1};
    int rc = fault(r, interruptible);
    if (r->off)
        return rc;
    r->calls++;
    if (r->on_call)
        r->on_call(r->on_call_arg, write ? write : &none);
    if (write && r->all_calls == r->fail_at && r->fail_number == RAMDISK_SHORT && write->size > 1)
        write->size /= 2;
    return rc;
}

static struct name *find(struct names *names, const char *text)
{
    for (size_t i = 0; i < FILES_MAX; i++)
        if (names->items[i].file >= 0 && strcmp(names->items[i].text, text) == 0)
            return &names->items[i];
    return NULL;
}

static struct name *free_name(struct names *names)
{
    for (size_t i = 0; i < FILES_MAX; i++)
        if (names->items[i].file < 0)
            return &names->items[i];
    abort();
}

static int new_handle(struct ramdisk *r, int file, bool outer)
{
    for (int i = 0; i < HANDLES_MAX; i++)
        if (r->handles[i].file < 0) {
            r->handles[i] = (struct handle){.file = file, .outer = outer};
            return i;
        }
    abort();
}

static bool is_inner(const char *path)
{
    return strstr(path, "/journal") != NULL;
}

static int ram_open_dir(void *ctx, const char *path)
{
    struct ramdisk *r = ctx;
    int rc = fault(r, false);
    if (rc < 0)
        return rc;
    bool inner = is_inner(path);
    if (inner ? !r->inner_exists : !r->outer_exists)
        return -ENOENT;
    int handle = new_handle(r, DIR_HANDLE, !inner);
    r->handles[handle].above = strstr(path, "/..") != NULL;
    return handle;
}

static int ram_make_dir(void *ctx, const char *path)
{
    struct ramdisk *r = ctx;
    int rc = count(r, false, NULL);
    if (rc < 0)
        return rc;
    *(is_inner(path) ? &r->inner_exists : &r->outer_exists) = true;
    return 0;
}

static int ram_sync_dir(void *ctx, int dir)
{
    struct ramdisk *r = ctx;
    int rc = count(r, true, NULL);
    if (rc < 0)
        return rc;
    if (r->handles[dir].above)
        r->outer_durable = r->outer_exists;
    else if (r->handles[dir].outer)
        r->inner_durable = r->inner_exists;
    else
        r->durable = r->now;
    return 0;
}

static int ram_list(void *ctx, int dir, void (*visit)(void *arg, const char *name), void *arg)
{
    struct ramdisk *r = ctx;
    int rc = fault(r, false);
    if (rc < 0)
        return rc;
    if (r->handles[dir].outer) {
        if (r->inner_exists)
            visit(arg, "journal");
        return 0;
    }
    struct names names = r->now;
    for (size_t i = 0; i < FILES_MAX; i++)
        if (names.items[i].file >= 0)
            visit(arg, names.items[i].text);
    return 0;
}

static int ram_open(void *ctx, int dir, const char *text, int flags)
{
    struct ramdisk *r = ctx;
    int rc = flags & O_CREAT ? count(r, false, NULL) : fault(r, false);
    if (rc < 0)
        return rc;
    struct name *name = find(&r->now, text);
    if (!name && !(flags & O_CREAT))
        return -ENOENT;
    if (!name) {
        assert(r->file_count < FILES_MAX && strlen(text) < NAME_MAX_);
        struct file *file = calloc(1, sizeof *file);
        image_resize(&file->now, 0);
        image_resize(&file->durable, 0);
        r->files[r->file_count] = file;
        name = free_name(&r->now);
        memcpy(name->text, text, strlen(text) + 1);
        name->file = (int)r->file_count++;
    }
    if (flags & O_TRUNC)
        image_resize(&r->files[name->file]->now, r->files[name->file]->held = 0);
    return new_handle(r, name->file, false);
}

static struct file *file_of(struct ramdisk *r, int handle)
{
    assert(handle >= 0 && handle < HANDLES_MAX && r->handles[handle].file >= 0);
    return r->files[r->handles[handle].file];
}

static int64_t ram_size(void *ctx, int handle)
{
    struct ramdisk *r = ctx;
    int rc = fault(r, false);
    return rc < 0 ? rc : (int64_t)file_of(r, handle)->now.size;
}

static int64_t ram_read(void *ctx, int handle, void *data, size_t size, uint64_t at)
{
    struct ramdisk *r = ctx;
    int rc = fault(r, true);
    if (rc < 0)
        return rc;
    const struct image *image = &file_of(r, handle)->now;
    if (at >= image->size)
        return 0;
    size_t n = size < image->size - at ? size : (size_t)(image->size - at);
    if (r->all_calls == r->fail_at && r->fail_number == RAMDISK_SHORT && n > 1)
        n /= 2;
    memcpy(data, image->bytes + at, n);
    return (int64_t)n;
}

static void mark_lost(struct file *file, size_t sector, bool lost)
{
    if (sector >= file->lost_size) {
        file->lost = realloc(file->lost, sector + 1);
        assert(file->lost);
        memset(file->lost + file->lost_size, 0, sector + 1 - file->lost_size);
        file->lost_size = sector + 1;
    }
    file->lost[sector] = lost;
}

static void write_into(struct file *file, const void *data, size_t size, uint64_t at)
{
    if (at + size > file->now.size)
        image_resize(&file->now, (size_t)at + size);
    if (size)
        memcpy(file->now.bytes + at, data, size);
    for (size_t s = (size_t)at / SECTOR; size && s <= (at + size - 1) / SECTOR; s++)
        mark_lost(file, s, false);
}

/* Have blocks for that many bytes; false if the disk is full. */
static bool hold(const struct ramdisk *r, struct file *file, size_t size)
{
    if (size <= file->held)
        return true;
    if (!r->full)
        file->held = size;
    return !r->full;
}

static int64_t ram_write(void *ctx, int handle, const void *data, size_t size, uint64_t at)
{
    struct ramdisk *r = ctx;
    struct ramdisk_write write = {.file = r->handles[handle].file, .data = data, .size = size, .at = at};
    int rc = count(r, true, &write);
    if (rc < 0)
        return rc;
    struct file *file = file_of(r, handle);
    if (!hold(r, file, (size_t)at + write.size))
        return -ENOSPC;
    write_into(file, data, write.size, at);
    return (int64_t)write.size;
}

static int ram_reserve(void *ctx, int handle, uint64_t size)
{
    struct ramdisk *r = ctx;
    int rc = count(r, true, NULL);
    if (rc < 0)
        return rc;
    return hold(r, file_of(r, handle), (size_t)size) ? 0 : -ENOSPC;
}

static int ram_truncate(void *ctx, int handle, uint64_t size)
{
    struct ramdisk *r = ctx;
    int rc = count(r, false, NULL);
    if (rc < 0)
        return rc;
    struct file *file = file_of(r, handle);
    image_resize(&file->now, (size_t)size);
    if (file->held > size)
        file->held = (size_t)size;
    return 0;
}

static size_t sectors(const struct file *file)
{
    size_t size = file->now.size > file->durable.size ? file->now.size : file->durable.size;
    return (size + SECTOR - 1) / SECTOR;
}

static bool sector_differs(const struct file *file, size_t sector)
{
    uint8_t now[SECTOR] = {0}, durable[SECTOR] = {0};
    size_t at = sector * SECTOR;
    if (at < file->now.size)
        memcpy(now, file->now.bytes + at, file->now.size - at < SECTOR ? file->now.size - at : SECTOR);
    if (at < file->durable.size)
        memcpy(durable, file->durable.bytes + at,
               file->durable.size - at < SECTOR ? file->durable.size - at : SECTOR);
    return memcmp(now, durable, SECTOR) != 0;
}

static bool sector_lost(const struct file *file, size_t sector)
{
    return sector < file->lost_size && file->lost[sector];
}

static void sector_keep(struct file *file, size_t sector)
{
    size_t at = sector * SECTOR;
    if (at >= file->now.size)
        return;
    size_t n = file->now.size - at < SECTOR ? file->now.size - at : SECTOR;
    if (at + n > file->durable.size)
        image_resize(&file->durable, at + n);
    memcpy(file->durable.bytes + at, file->now.bytes + at, n);
}

static int ram_sync(void *ctx, int handle)
{
    struct ramdisk *r = ctx;
    struct file *file = file_of(r, handle);
    int rc = count(r, true, NULL);
    if (rc == -EINTR || r->off)
        return rc < 0 ? rc : -EIO;
    if (rc == 0 && file->durable.size < file->now.size)
        image_resize(&file->durable, file->now.size);
    for (size_t s = 0; s < sectors(file); s++) {
        if (rc < 0 && sector_differs(file, s))
            mark_lost(file, s, true);
        else if (rc == 0 && !sector_lost(file, s))
            sector_keep(file, s);
    }
    if (rc == 0)
        image_resize(&file->durable, file->now.size);
    return rc;
}

/* What it wrote out may be lost all the same. */
static int ram_push(void *ctx, int handle, uint64_t at, uint64_t size)
{
    return count(ctx, false, NULL);
}

static int ram_lock(void *ctx, int handle)
{
    struct ramdisk *r = ctx;
    int rc = fault(r, false);
    if (rc < 0)
        return rc;
    for (int i = 0; i < HANDLES_MAX; i++)
        if (r->handles[i].file == r->handles[handle].file && r->handles[i].locked)
            return -EWOULDBLOCK;
    r->handles[handle].locked = true;
    return 0;
}

static int ram_locked(void *ctx, int handle)
{
    struct ramdisk *r = ctx;
    int rc = fault(r, false);
    for (int i = 0; i < HANDLES_MAX && rc == 0; i++)
        rc = r->handles[i].file == r->handles[handle].file && r->handles[i].locked;
    return rc;
}

static int ram_rename(void *ctx, int dir, const char *from, const char *to)
{
    struct ramdisk *r = ctx;
    int rc = count(r, false, NULL);
    if (rc < 0)
        return rc;
    struct name *old = find(&r->now, to);
    if (old)
        old->file = -1;
    struct name *name = find(&r->now, from);
    if (!name)
        return -ENOENT;
    memcpy(name->text, to, strlen(to) + 1);
    return 0;
}

static int ram_remove(void *ctx, int dir, const char *text)
{
    struct ramdisk *r = ctx;
    int rc = count(r, false, NULL);
    if (rc < 0)
        return rc;
    struct name *name = find(&r->now, text);
    if (!name)
        return -ENOENT;
    name->file = -1;
    return 0;
}

static void ram_close(void *ctx, int handle)
{
    struct ramdisk *r = ctx;
    assert(handle >= 0 && handle < HANDLES_MAX && r->handles[handle].file >= 0);
    r->handles[handle] = (struct handle){.file = -1};
}

static const struct disk ram_calls = {
    .open_dir = ram_open_dir,
    .make_dir = ram_make_dir,
    .sync_dir = ram_sync_dir,
    .list = ram_list,
    .open = ram_open,
    .size = ram_size,
    .read = ram_read,
    .write = ram_write,
    .reserve = ram_reserve,
    .truncate = ram_truncate,
    .sync = ram_sync,
    .push = ram_push,
    .lock = ram_lock,
    .locked = ram_locked,
    .rename = ram_rename,
    .remove = ram_remove,
    .close = ram_close,
};

static void close_all(struct ramdisk *r)
{
    for (size_t i = 0; i < HANDLES_MAX; i++)
        r->handles[i] = (struct handle){.file = -1};
}

struct ramdisk *ramdisk_new(void)
{
    struct ramdisk *r = calloc(1, sizeof *r);
    assert(r);
    r->disk = ram_calls;
    r->disk.ctx = r;
    r->outer_exists = r->outer_durable = true;
    for (size_t i = 0; i < FILES_MAX; i++)
        r->now.items[i].file = r->durable.items[i].file = -1;
    close_all(r);
    return r;
}

struct ramdisk *ramdisk_clone(const struct ramdisk *from)
{
    struct ramdisk *r = calloc(1, sizeof *r);
    assert(r);
    *r = *from;
    r->disk.ctx = r;
    for (size_t i = 0; i < r->file_count; i++) {
        const struct file *source = from->files[i];
        struct file *file = calloc(1, sizeof *file);
        assert(file);
        image_copy(&file->now, &source->now);
        image_copy(&file->durable, &source->durable);
        file->held = source->held;
        for (size_t s = 0; s < source->lost_size; s++)
            mark_lost(file, s, source->lost[s]);
        r->files[i] = file;
    }
    r->on_call = NULL;
    close_all(r);
    return r;
}

void ramdisk_free(struct ramdisk *r)
{
    for (size_t i = 0; i < r->file_count; i++) {
        free(r->files[i]->now.bytes);
        free(r->files[i]->durable.bytes);
        free(r->files[i]->lost);
        free(r->files[i]);
    }
    free(r);
}

const struct disk *ramdisk_disk(struct ramdisk *r)
{
    return &r->disk;
}

uint64_t ramdisk_calls(const struct ramdisk *r)
{
    return r->all_calls;
}

void ramdisk_on_call(struct ramdisk *r, void (*fn)(void *arg, const struct ramdisk_write *write), void *arg)
{
    r->on_call = fn;
    r->on_call_arg = arg;
}

void ramdisk_tear(struct ramdisk *clone, const struct ramdisk_write *write, size_t bytes)
{
    write_into(clone->files[write->file], write->data, bytes, write->at);
}

void ramdisk_off(struct ramdisk *r)
{
    r->off = true;
}

void ramdisk_fail_at(struct ramdisk *r, uint64_t call, int number)
{
    r->fail_at = call;
    r->fail_number = number;
}

void ramdisk_set_full(struct ramdisk *r, bool full)
{
    r->full = full;
}

size_t ramdisk_unsynced(const struct ramdisk *r)
{
    size_t total = 0;
    for (size_t i = 0; i < r->file_count; i++)
        for (size_t s = 0; s < sectors(r->files[i]); s++)
            total += sector_differs(r->files[i], s) && !sector_lost(r->files[i], s);
    return total;
}

void ramdisk_kill(struct ramdisk *r)
{
    close_all(r);
    r->off = false;
    r->fail_at = 0;
    r->calls = r->all_calls = 0;
}

void ramdisk_remove_dir(struct ramdisk *r)
{
    r->outer_exists = r->outer_durable = false;
}

void ramdisk_crash(struct ramdisk *r, bool (*keep)(void *arg, size_t i), void *arg, bool keep_names)
{
    size_t number = 0;
    for (size_t i = 0; i < r->file_count; i++) {
        struct file *file = r->files[i];
        for (size_t s = 0; s < sectors(file); s++)
            if (sector_differs(file, s) && !sector_lost(file, s) && keep(arg, number++))
                sector_keep(file, s);
        if (keep_names)
            image_resize(&file->durable, file->now.size);
        image_copy(&file->now, &file->durable);
        free(file->lost);
        file->lost = NULL;
        file->lost_size = 0;
    }
    if (keep_names) {
        r->durable = r->now;
        r->outer_durable = r->outer_exists;
        r->inner_durable = r->inner_exists;
    }
    /* What lies in a directory that is gone is gone with it. */
    r->outer_exists = r->outer_durable;
    r->inner_exists = r->inner_durable = r->inner_durable && r->outer_durable;
    for (size_t i = 0; i < FILES_MAX && !r->inner_exists; i++)
        r->durable.items[i].file = -1;
    r->now = r->durable;
    ramdisk_kill(r);
}

uint8_t *ramdisk_bytes(struct ramdisk *r, const char *text, size_t *ret_size)
{
    struct name *name = find(&r->now, text);
    if (!name)
        return NULL;
    *ret_size = r->files[name->file]->now.size;
    return r->files[name->file]->now.bytes;
}

void ramdisk_resize(struct ramdisk *r, const char *text, size_t size)
{
    struct name *name = find(&r->now, text);
    assert(name);
    image_resize(&r->files[name->file]->now, size);
}

void ramdisk_unlink(struct ramdisk *r, const char *text)
{
    struct name *name = find(&r->now, text);
    assert(name);
    name->file = -1;
}

uint64_t ramdisk_sum(const struct ramdisk *r)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < FILES_MAX; i++) {
        const struct name *name = &r->now.items[i];
        if (name->file < 0 || strcmp(name->text, "lock") == 0)
            continue;
        const struct image *image = &r->files[name->file]->now;
        sum += hash_checksum(hash_checksum(0, (pawl_bytes){name->text, strlen(name->text)}),
                             (pawl_bytes){image->bytes, image->size});
    }
    return sum;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *ramdisk_name(const struct ramdisk *r, const char *ending, size_t number)
{
    const char *found[FILES_MAX] = {0};
    size_t n = 0;
    for (size_t i = 0; i < FILES_MAX; i++) {
        const struct name *name = &r->now.items[i];
        size_t length = strlen(name->text);
        if (name->file >= 0 && length >= strlen(ending)
            && strcmp(name->text + length - strlen(ending), ending) == 0)
            found[n++] = name->text;
    }
    qsort(found, n, sizeof found[0], by_text);
    return number < n ? found[number] : NULL;
}

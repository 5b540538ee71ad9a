#include "test/crash/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/lib/test.h"

#define SECTOR    512
#define FDS_MAX   256
#define NAMES_MAX 16
#define NODES_MAX 4096
#define OPS_MAX   256

/* A write since the file's last sync; bytes NULL: a change of its size to at. */
struct change {
    uint64_t at;
    size_t size;
    uint8_t *bytes;
};

/* A file, by whatever name. */
struct node {
    uint8_t *bytes; /* durable */
    size_t size, room;
    uint64_t length; /* at least size; there are zeros behind that */
    int mapped;      /* the file itself, once it is written to through memory; else 0 */
    struct change *changes;
    size_t count, changes_room;
};

struct name {
    char text[64];
    struct node *node; /* NULL: no such file */
};

/* A change of a name since the directory's last sync. */
struct op {
    char text[64];
    char from[64];     /* a rename's old name: it goes in the same instant */
    struct node *node; /* NULL: the name goes */
};

struct handle {
    struct node *node;
    bool dir, dsync;
};

static struct {
    char dir[512];
    const char *const *ignored;
    uint64_t seed;
    bool inside; /* the disk's own calls, and those of the hook */
    void (*hook)(void *arg);
    void *hook_arg;
    struct handle handles[FDS_MAX];
    struct node *map; /* of the one writable map that there is */
    struct node *nodes[NODES_MAX];
    size_t nodes_count;
    struct name now[NAMES_MAX], durable[NAMES_MAX];
    struct op ops[OPS_MAX];
    size_t ops_count;
    struct disk_counts counts;
} disk;

static void broken(const char *what)
{
    fprintf(stderr, "# disk: %s\n", what);
    abort();
}

static struct node **name_slot(struct name *names, const char *text, bool make)
{
    struct name *empty = NULL;
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (strcmp(names[i].text, text) == 0)
            return &names[i].node;
        if (!names[i].text[0] && !empty)
            empty = &names[i];
    }
    if (!make)
        return NULL;
    if (!empty || strlen(text) >= sizeof empty->text)
        broken("too many names, or too long ones");
    snprintf(empty->text, sizeof empty->text, "%s", text);
    return &empty->node;
}

static void op_apply(struct name *names, const struct op *op)
{
    if (op->from[0])
        *name_slot(names, op->from, true) = NULL;
    *name_slot(names, op->text, true) = op->node;
}

static void set_name(const char *text, const char *from, struct node *node)
{
    if (disk.ops_count == OPS_MAX)
        broken("the directory is never synced");
    struct op *op = &disk.ops[disk.ops_count++];
    op->node = node;
    snprintf(op->text, sizeof op->text, "%s", text);
    snprintf(op->from, sizeof op->from, "%s", from);
    op_apply(disk.now, op);
}

static struct node *node_new(void)
{
    if (disk.nodes_count == NODES_MAX)
        broken("too many files");
    struct node *n = calloc(1, sizeof *n);
    disk.nodes[disk.nodes_count++] = n;
    return n;
}

/* Room for so many bytes; they are zeros if they were not there. */
static void node_fill(struct node *n, size_t size)
{
    if (size <= n->size)
        return;
    if (size > n->room) {
        n->room = size * 2;
        n->bytes = realloc(n->bytes, n->room);
    }
    memset(n->bytes + n->size, 0, size - n->size);
    n->size = size;
    n->length = n->length > size ? n->length : size;
}

static void node_resize(struct node *n, uint64_t length)
{
    n->size = n->size < length ? n->size : (size_t)length;
    n->length = length;
}

static void node_apply(struct node *n, const struct change *c)
{
    if (!c->bytes) {
        node_resize(n, c->at);
        return;
    }
    node_fill(n, c->at + c->size);
    if (c->size && !n->bytes)
        broken("out of memory");
    if (c->size)
        memcpy(n->bytes + c->at, c->bytes, c->size);
}

/* What is in the file by now, sector by sector, through whatever way it came there. */
static void each_sector(int fd, void (*fn)(struct node *n, uint64_t at, const uint8_t *bytes), struct node *n)
{
    uint8_t bytes[SECTOR];
    off_t end;
    for (off_t at = 0; (at = lseek(fd, at, SEEK_DATA)) >= 0; at = end) {
        end = lseek(fd, at, SEEK_HOLE);
        for (off_t i = at / SECTOR * SECTOR; i < end; i += SECTOR)
            if (pread(fd, bytes, SECTOR, i) == SECTOR)
                fn(n, (uint64_t)i, bytes);
    }
}

static void take_sector(struct node *n, uint64_t at, const uint8_t *bytes)
{
    node_apply(n, &(struct change){at, SECTOR, (uint8_t *)(uintptr_t)bytes});
}

static void node_sync(struct node *n)
{
    for (size_t i = 0; i < n->count; i++) {
        node_apply(n, &n->changes[i]);
        free(n->changes[i].bytes);
    }
    n->count = 0;
    if (n->mapped)
        each_sector(n->mapped, take_sector, n);
}

static void node_change(struct node *n, uint64_t at, const void *bytes, size_t size)
{
    struct change c = {.at = at, .size = size};
    if (bytes) {
        c.bytes = malloc(size ? size : 1);
        memcpy(c.bytes, bytes, size);
    }
    if (n->count == n->changes_room) {
        n->changes_room = n->changes_room * 2 + 16;
        n->changes = realloc(n->changes, n->changes_room * sizeof *n->changes);
    }
    n->changes[n->count++] = c;
}

/* An effect is about to be had on what is watched. */
static void effect(void)
{
    disk.counts.effects++;
    if (!disk.hook)
        return;
    disk.inside = true;
    disk.hook(disk.hook_arg);
    disk.inside = false;
}

static struct handle *handle_of(int fd)
{
    if (disk.inside || !disk.dir[0] || fd < 0 || fd >= FDS_MAX)
        return NULL;
    struct handle *h = &disk.handles[fd];
    return h->node || h->dir ? h : NULL;
}

/* Images. */

/* Of a sector that was written through memory any state that it ever had may be on the disk, and worse. */
static void maybe_take_sector(struct node *image, uint64_t at, const uint8_t *bytes)
{
    uint8_t garbage[SECTOR];
    node_fill(image, at + SECTOR);
    if (memcmp(image->bytes + at, bytes, SECTOR) == 0)
        return;
    uint64_t dice = test_below(&disk.seed, 8);
    if (dice < 4) {
        disk.counts.lost_sectors++;
        return;
    }
    disk.counts.kept_sectors++;
    for (size_t i = 0; i < SECTOR; i++)
        garbage[i] = (uint8_t)test_random(&disk.seed);
    memcpy(image->bytes + at, dice == 4 ? garbage : bytes, SECTOR);
}

static void write_image(const char *dir, const char *name, const struct node *n)
{
    struct node image = {0};
    char path[700];
    node_fill(&image, n->size);
    if (n->size)
        memcpy(image.bytes, n->bytes, n->size);
    image.length = n->length;
    for (size_t i = 0; i < n->count; i++) {
        const struct change *c = &n->changes[i];
        if (!c->bytes) {
            if (test_below(&disk.seed, 2))
                node_apply(&image, c);
            continue;
        }
        for (size_t done = 0; done < c->size;) {
            size_t piece = SECTOR - (c->at + done) % SECTOR;
            piece = piece < c->size - done ? piece : c->size - done;
            bool keep = test_below(&disk.seed, 2);
            if (keep)
                node_apply(&image, &(struct change){c->at + done, piece, c->bytes + done});
            keep ? disk.counts.kept_sectors++ : disk.counts.lost_sectors++;
            done += piece;
        }
    }
    if (n->mapped)
        each_sector(n->mapped, maybe_take_sector, &image);
    int length = snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = length > 0 && (size_t)length < sizeof path ? fopen(path, "w") : NULL;
    if (!f || (image.size && fwrite(image.bytes, image.size, 1, f) != 1) || fclose(f) != 0
        || truncate(path, (off_t)image.length) != 0)
        broken("cannot write an image");
    free(image.bytes);
}

static bool is_lost(const bool *lost, size_t before, const char *text)
{
    bool found = false;
    for (size_t i = 0; i < before && text[0] && !found; i++)
        found = lost[i] && (strcmp(disk.ops[i].text, text) == 0 || strcmp(disk.ops[i].from, text) == 0);
    return found;
}

/* Any of the unsynced changes may be kept without those before it, as long as these are of other names: only a
 * sync of the directory orders them. */
static void keep_names(struct name *names)
{
    bool lost[OPS_MAX];
    for (size_t i = 0; i < disk.ops_count; i++) {
        const struct op *op = &disk.ops[i];
        lost[i] = test_below(&disk.seed, 2) || is_lost(lost, i, op->text) || is_lost(lost, i, op->from);
        disk.counts.lost_names += lost[i];
        if (!lost[i])
            op_apply(names, op);
    }
}

void disk_cut(const char *image)
{
    struct name names[NAMES_MAX];
    bool was_inside = disk.inside;
    disk.inside = true;
    memcpy(names, disk.durable, sizeof names);
    keep_names(names);
    if (mkdir(image, 0700) != 0)
        broken("cannot make an image");
    for (size_t i = 0; i < NAMES_MAX; i++)
        if (names[i].node)
            write_image(image, names[i].text, names[i].node);
    disk.inside = was_inside;
}

void disk_watch(const char *dir, const char *const *ignored, uint64_t seed)
{
    for (size_t i = 0; i < disk.nodes_count; i++) {
        node_sync(disk.nodes[i]);
        free(disk.nodes[i]->changes);
        free(disk.nodes[i]->bytes);
        if (disk.nodes[i]->mapped)
            syscall(SYS_close, disk.nodes[i]->mapped);
        free(disk.nodes[i]);
    }
    memset(&disk, 0, sizeof disk);
    disk.ignored = ignored;
    disk.seed = seed;
    snprintf(disk.dir, sizeof disk.dir, "%s", dir ? dir : "");
}

void disk_on_effect(void (*fn)(void *arg), void *arg)
{
    disk.hook = fn;
    disk.hook_arg = arg;
}

void disk_pause(bool paused)
{
    disk.inside = paused;
}

struct disk_counts disk_counts(void)
{
    return disk.counts;
}

/* The calls. Named by their symbols, because the headers rename some of them. */
#define STAND_IN(type, name, ...)                                                                              \
    __attribute__((visibility("default"))) type disk_##name(__VA_ARGS__) __asm__(#name);                       \
    type disk_##name(__VA_ARGS__)

/* The name inside the watched directory, or NULL; "." is the directory. */
static const char *watched_name(int dir_fd, const char *path)
{
    if (disk.inside || !disk.dir[0])
        return NULL;
    size_t n = strlen(disk.dir);
    const char *name = NULL;
    if (strncmp(path, disk.dir, n) == 0 && (path[n] == '/' || path[n] == '\0'))
        name = path[n] && path[n + 1] ? path + n + 1 : ".";
    else if (path[0] != '/' && dir_fd >= 0 && dir_fd < FDS_MAX && disk.handles[dir_fd].dir)
        name = path;
    for (size_t i = 0; name && disk.ignored[i]; i++)
        if (strcmp(name, disk.ignored[i]) == 0)
            return NULL;
    return name && strcmp(name, "..") == 0 ? NULL : name;
}

static void opened(int fd, const char *name, int flags, bool was_there)
{
    if (fd >= FDS_MAX)
        broken("too many files are open");
    struct handle *h = &disk.handles[fd];
    *h = (struct handle){.dir = strcmp(name, ".") == 0, .dsync = (flags & O_DSYNC) == O_DSYNC};
    if (h->dir)
        return;
    if (!was_there)
        set_name(name, "", node_new());
    h->node = *name_slot(disk.now, name, true);
    if (was_there && flags & O_TRUNC)
        node_change(h->node, 0, NULL, 0);
}

static int open_any(int dir_fd, const char *path, int flags, mode_t mode)
{
    const char *name = watched_name(dir_fd, path);
    struct node **slot = name ? name_slot(disk.now, name, false) : NULL;
    bool was_there = slot && *slot;
    if (name && flags & (O_CREAT | O_TRUNC))
        effect();
    int fd = (int)syscall(SYS_openat, dir_fd, path, flags, mode);
    if (fd >= 0 && fd < FDS_MAX && !disk.inside)
        disk.handles[fd] = (struct handle){0};
    if (fd >= 0 && name)
        opened(fd, name, flags, was_there);
    return fd;
}

#define OPEN_MODE(mode, flags)                                                                                 \
    mode_t mode = 0;                                                                                           \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                     \
        va_list args;                                                                                          \
        va_start(args, flags);                                                                                 \
        mode = va_arg(args, mode_t);                                                                           \
        va_end(args);                                                                                          \
    }

STAND_IN(int, open, const char *path, int flags, ...)
{
    OPEN_MODE(mode, flags)
    return open_any(AT_FDCWD, path, flags, mode);
}

STAND_IN(int, open64, const char *path, int flags, ...)
{
    OPEN_MODE(mode, flags)
    return open_any(AT_FDCWD, path, flags, mode);
}

STAND_IN(int, openat, int dir_fd, const char *path, int flags, ...)
{
    OPEN_MODE(mode, flags)
    return open_any(dir_fd, path, flags, mode);
}

STAND_IN(int, openat64, int dir_fd, const char *path, int flags, ...)
{
    OPEN_MODE(mode, flags)
    return open_any(dir_fd, path, flags, mode);
}

STAND_IN(int, close, int fd)
{
    if (!disk.inside && fd >= 0 && fd < FDS_MAX)
        disk.handles[fd] = (struct handle){0};
    return (int)syscall(SYS_close, fd);
}

/* at < 0: at the file's position. */
static ssize_t write_any(int fd, const struct iovec *parts, int count, off_t at)
{
    struct handle *h = handle_of(fd);
    if (h)
        effect();
    off_t start = at >= 0 ? at : lseek(fd, 0, SEEK_CUR);
    ssize_t n = at >= 0 ? (ssize_t)syscall(SYS_pwritev, fd, parts, count, at, 0)
                        : (ssize_t)syscall(SYS_writev, fd, parts, count);
    if (!h || n <= 0)
        return n;
    disk.counts.writes++;
    size_t left = (size_t)n;
    for (int i = 0; i < count && left; i++) {
        size_t size = parts[i].iov_len < left ? parts[i].iov_len : left;
        if (h->dsync)
            node_apply(h->node, &(struct change){(uint64_t)start, size, parts[i].iov_base});
        else
            node_change(h->node, (uint64_t)start, parts[i].iov_base, size);
        start += (off_t)size;
        left -= size;
    }
    if (h->dsync)
        effect(); /* it is done, and its caller does not know yet */
    return n;
}

static ssize_t write_one(int fd, const void *bytes, size_t size, off_t at)
{
    return write_any(fd, &(struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = size}, 1, at);
}

STAND_IN(ssize_t, write, int fd, const void *bytes, size_t size)
{
    return write_one(fd, bytes, size, -1);
}

STAND_IN(ssize_t, pwrite, int fd, const void *bytes, size_t size, off_t at)
{
    return write_one(fd, bytes, size, at);
}

STAND_IN(ssize_t, pwrite64, int fd, const void *bytes, size_t size, off_t at)
{
    return write_one(fd, bytes, size, at);
}

STAND_IN(ssize_t, writev, int fd, const struct iovec *parts, int count)
{
    return write_any(fd, parts, count, -1);
}

static int truncate_any(int fd, off_t size)
{
    struct handle *h = handle_of(fd);
    if (h)
        effect();
    int rc = (int)syscall(SYS_ftruncate, fd, size);
    if (h && rc == 0)
        node_change(h->node, (uint64_t)size, NULL, 0);
    return rc;
}

STAND_IN(int, ftruncate, int fd, off_t size)
{
    return truncate_any(fd, size);
}

STAND_IN(int, ftruncate64, int fd, off_t size)
{
    return truncate_any(fd, size);
}

STAND_IN(int, fallocate, int fd, int mode, off_t at, off_t size)
{
    struct handle *h = handle_of(fd);
    struct stat st;
    if (h)
        effect();
    int rc = (int)syscall(SYS_fallocate, fd, mode, at, size);
    if (h && rc == 0 && fstat(fd, &st) == 0)
        node_change(h->node, (uint64_t)st.st_size, NULL, 0);
    return rc;
}

/* The kernel need not be asked: what is durable here is what this says. */
static int sync_any(int fd)
{
    struct handle *h = handle_of(fd);
    if (!h)
        return disk.inside ? 0 : (int)syscall(SYS_fsync, fd);
    effect();
    disk.counts.syncs++;
    if (h->node)
        node_sync(h->node);
    if (h->dir) {
        for (size_t i = 0; i < disk.ops_count; i++)
            op_apply(disk.durable, &disk.ops[i]);
        disk.ops_count = 0;
    }
    return 0;
}

STAND_IN(int, fsync, int fd)
{
    return sync_any(fd);
}

STAND_IN(int, fdatasync, int fd)
{
    return sync_any(fd);
}

STAND_IN(int, renameat, int from_fd, const char *from, int to_fd, const char *to)
{
    const char *from_name = watched_name(from_fd, from), *to_name = watched_name(to_fd, to);
    if (from_name)
        effect();
    int rc = (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
    if (rc != 0 || !from_name || !to_name)
        return rc;
    set_name(to_name, from_name, *name_slot(disk.now, from_name, true));
    return rc;
}

STAND_IN(int, unlinkat, int dir_fd, const char *path, int flags)
{
    const char *name = watched_name(dir_fd, path);
    if (name)
        effect();
    int rc = (int)syscall(SYS_unlinkat, dir_fd, path, flags);
    if (rc == 0 && name)
        set_name(name, "", NULL);
    return rc;
}

static void *map_any(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    struct handle *h = handle_of(fd);
    if (h && flags & MAP_SHARED && protection & PROT_WRITE) {
        disk.counts.mapped_writes++;
        if (!h->node->mapped)
            h->node->mapped = (int)syscall(SYS_dup, fd);
        disk.map = h->node;
    }
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset); // NOLINT
}

STAND_IN(void *, mmap, void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return map_any(at, size, protection, flags, fd, offset);
}

STAND_IN(void *, mmap64, void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return map_any(at, size, protection, flags, fd, offset);
}

STAND_IN(int, msync, void *at, size_t size, int flags)
{
    if (disk.inside)
        return 0;
    if (!disk.map)
        return (int)syscall(SYS_msync, at, size, flags);
    effect();
    disk.counts.syncs++;
    node_sync(disk.map);
    return 0;
}

#include "test/crash/power.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/lib/test.h"

#define SECTOR  512
#define MARK_AT 12 /* where a mark has its state */

/* What was where a write went, and how long the file was. */
struct undo {
    struct undo *older;
    uint64_t at;
    size_t size;
    uint8_t bytes[];
};

struct file {
    struct file *next;
    dev_t device;
    ino_t inode;
    struct undo *newest; /* since the last sync */
};

static struct {
    pthread_mutex_t lock;
    char dir[512];
    uint64_t seed;
    struct file *files;
    char hook_part[64], full_part[64];
    void (*hook)(void *arg);
    void *hook_arg;
    struct power_counts counts;
    const char *image; /* of the cut under way */
} power;

static _Thread_local bool inside; /* the disk's own calls, and those of the hook */

__attribute__((constructor)) static void begin(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&power.lock, &recursive);
}

static void broken(const char *what)
{
    fprintf(stderr, "# power: %s\n", what);
    abort();
}

static void forget(struct file *f)
{
    while (f->newest) {
        struct undo *older = f->newest->older;
        free(f->newest);
        f->newest = older;
    }
}

void power_watch(const char *dir, uint64_t seed)
{
    pthread_mutex_lock(&power.lock);
    while (power.files) {
        struct file *next = power.files->next;
        forget(power.files);
        free(power.files);
        power.files = next;
    }
    snprintf(power.dir, sizeof power.dir, "%s", dir ? dir : "");
    power.seed = seed;
    power.counts = (struct power_counts){0};
    power.hook = NULL;
    power.full_part[0] = '\0';
    pthread_mutex_unlock(&power.lock);
}

void power_before_write(const char *part, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&power.lock);
    snprintf(power.hook_part, sizeof power.hook_part, "%s", part ? part : "");
    power.hook = part ? fn : NULL;
    power.hook_arg = arg;
    pthread_mutex_unlock(&power.lock);
}

void power_fill(const char *part)
{
    pthread_mutex_lock(&power.lock);
    snprintf(power.full_part, sizeof power.full_part, "%s", part ? part : "");
    pthread_mutex_unlock(&power.lock);
}

struct power_counts power_counts(void)
{
    pthread_mutex_lock(&power.lock);
    struct power_counts counts = power.counts;
    pthread_mutex_unlock(&power.lock);
    return counts;
}

/* The path of a file that is watched; false: it is not. */
static bool watched(int fd, char *path, size_t size)
{
    char link[64];
    size_t length = strlen(power.dir);
    if (inside || length == 0)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(link, path, size - 1);
    if (got < 0 || (size_t)got >= size - 1)
        return false;
    path[got] = '\0';
    return strncmp(path, power.dir, length) == 0 && path[length] == '/';
}

static struct file *file_of(dev_t device, ino_t inode, bool make)
{
    for (struct file *f = power.files; f; f = f->next)
        if (f->device == device && f->inode == inode)
            return f;
    if (!make)
        return NULL;
    struct file *f = calloc(1, sizeof *f);
    if (!f)
        broken("no memory");
    *f = (struct file){.next = power.files, .device = device, .inode = inode};
    return power.files = f;
}

static void remember(int fd, uint64_t at, size_t size)
{
    struct stat s;
    if (fstat(fd, &s) || (fcntl(fd, F_GETFL) & (O_DSYNC | O_SYNC)))
        return; /* synced as it is written */
    struct file *f = file_of(s.st_dev, s.st_ino, true);
    struct undo *u = calloc(1, sizeof *u + size);
    if (!u)
        broken("no memory");
    u->older = f->newest;
    u->at = at;
    u->size = size;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int in = open(path, O_RDONLY | O_CLOEXEC);
    if (in < 0 || pread(in, u->bytes, size, (off_t)at) < 0) /* what is beyond the end was zeros */
        broken("cannot read what is written over");
    close(in);
    f->newest = u;
}

static ssize_t really_write(int fd, const struct iovec *parts, int count, off_t at)
{
    return at < 0 ? syscall(SYS_writev, fd, parts, count) : syscall(SYS_pwritev, fd, parts, count, at, 0);
}

static ssize_t write_any(int fd, const struct iovec *parts, int count, off_t at)
{
    char path[600];
    size_t size = 0;
    if (!watched(fd, path, sizeof path))
        return really_write(fd, parts, count, at);
    pthread_mutex_lock(&power.lock);
    inside = true;
    if (power.hook && strstr(path, power.hook_part))
        power.hook(power.hook_arg);
    ssize_t written = -1;
    int failed = ENOSPC;
    power.counts.writes++;
    if (power.full_part[0] && strstr(path, power.full_part))
        power.counts.refused++;
    else {
        for (int i = 0; i < count; i++)
            size += parts[i].iov_len;
        remember(fd, (uint64_t)(at < 0 ? lseek(fd, 0, SEEK_CUR) : at), size);
        written = really_write(fd, parts, count, at);
        failed = errno;
    }
    inside = false;
    pthread_mutex_unlock(&power.lock);
    errno = failed;
    return written;
}

static ssize_t write_one(int fd, const void *bytes, size_t size, off_t at)
{
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
    return write_any(fd, &part, 1, at);
}

static int sync_any(int fd)
{
    char path[600];
    struct stat s;
    if (!watched(fd, path, sizeof path) || fstat(fd, &s))
        return 0;
    pthread_mutex_lock(&power.lock);
    struct file *f = file_of(s.st_dev, s.st_ino, false);
    if (f)
        forget(f);
    power.counts.syncs++;
    pthread_mutex_unlock(&power.lock);
    return 0;
}

/* --- cutting --- */

static void revert(int out, const struct file *f, uint64_t length)
{
    uint8_t *decided = calloc(1, length / SECTOR + 1);
    if (!decided)
        broken("no memory");
    for (const struct undo *u = f->newest; u; u = u->older)
        for (uint64_t at = u->at; at < u->at + u->size;) {
            uint64_t sector = at / SECTOR, end = (sector + 1) * SECTOR;
            end = end < u->at + u->size ? end : u->at + u->size;
            if (sector <= length / SECTOR && !decided[sector]) {
                decided[sector] = test_below(&power.seed, 2) == 0;
                power.counts.kept_sectors += decided[sector];
                power.counts.lost_sectors += !decided[sector];
                if (!decided[sector] && pwrite(out, u->bytes + (at - u->at), end - at, (off_t)at) < 0)
                    broken("cannot write an image");
            }
            at = end;
        }
    free(decided);
}

static void garble(int out, uint64_t length)
{
    uint8_t page[4096];
    for (uint64_t at = 0; at + sizeof page <= length && at < (4 << 20); at += sizeof page) {
        if (test_below(&power.seed, 2))
            continue;
        for (size_t i = 0; i < sizeof page; i += 8) {
            uint64_t random = test_random(&power.seed);
            memcpy(page + i, &random, 8);
        }
        if (pwrite(out, page, sizeof page, (off_t)at) < 0)
            broken("cannot write an image");
    }
}

/* Whether a store's directory says that its data may be trusted: its mark is not DIRTY (3). */
static bool is_exposed(const char *path)
{
    char mark[700];
    uint8_t state[16] = {0};
    const char *slash = strrchr(path, '/');
    if (strcmp(slash, "/data.mdb") != 0)
        return false;
    snprintf(mark, sizeof mark, "%.*s/pawl.mark", (int)(slash - path), path);
    int fd = open(mark, O_RDONLY | O_CLOEXEC);
    bool exposed = fd >= 0 && read(fd, state, sizeof state) == (ssize_t)sizeof state && state[MARK_AT] == 3;
    if (fd >= 0)
        close(fd);
    return exposed;
}

static void copy_file(const char *path, const char *to, const struct stat *s)
{
    static uint8_t buffer[1 << 16];
    int in = open(path, O_RDONLY | O_CLOEXEC), out = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (in < 0 && errno == ENOENT)
        return;
    if (in < 0 || out < 0 || ftruncate(out, s->st_size))
        broken("cannot make an image");
    for (off_t at = 0; (at = lseek(in, at, SEEK_DATA)) >= 0;) {
        ssize_t got = pread(in, buffer, sizeof buffer, at);
        if (got <= 0)
            break;
        if (pwrite(out, buffer, (size_t)got, at) != got)
            broken("cannot write an image");
        at += got;
    }
    const struct file *f = file_of(s->st_dev, s->st_ino, false);
    if (f)
        revert(out, f, (uint64_t)s->st_size);
    if (is_exposed(path))
        garble(out, (uint64_t)s->st_size);
    close(in);
    close(out);
}

static int copy_one(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
    char to[1200];
    snprintf(to, sizeof to, "%s%s", power.image, path + strlen(power.dir));
    if (type == FTW_D)
        return mkdir(to, 0700);
    if (type == FTW_F)
        copy_file(path, to, s);
    return 0;
}

void power_cut(const char *image)
{
    pthread_mutex_lock(&power.lock);
    bool was = inside;
    inside = true;
    power.image = image;
    if (nftw(power.dir, copy_one, 8, FTW_PHYS) != 0)
        broken("cannot copy the directory");
    inside = was;
    pthread_mutex_unlock(&power.lock);
}

/* --- in libc's place; named by their symbols, because the headers rename some of them --- */

#define STAND_IN(type, name, ...)                                                                              \
    __attribute__((visibility("default"))) type power_##name(__VA_ARGS__) __asm__(#name);                      \
    type power_##name(__VA_ARGS__)

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

STAND_IN(ssize_t, pwritev, int fd, const struct iovec *parts, int count, off_t at)
{
    return write_any(fd, parts, count, at);
}

STAND_IN(ssize_t, pwritev64, int fd, const struct iovec *parts, int count, off_t at)
{
    return write_any(fd, parts, count, at);
}

STAND_IN(int, fsync, int fd)
{
    return sync_any(fd);
}

STAND_IN(int, fdatasync, int fd)
{
    return sync_any(fd);
}

STAND_IN(int, msync, void *at, size_t size, int flags)
{
    return 0;
}

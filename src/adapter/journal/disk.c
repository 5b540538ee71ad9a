#include "adapter/journal/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZERO_CHUNK ((size_t)256 << 10)

static int real_open_dir(void *ctx, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int real_make_dir(void *ctx, const char *path)
{
    return mkdir(path, 0750) < 0 ? -errno : 0;
}

static int real_sync_dir(void *ctx, int dir)
{
    return fsync(dir) < 0 ? -errno : 0;
}

static int real_list(void *ctx, int dir, void (*visit)(void *arg, const char *name), void *arg)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    DIR *listing = fdopendir(fd);
    if (!listing) {
        int error = errno;
        close(fd);
        return -error;
    }
    struct dirent *entry;
    errno = 0;
    while ((entry = readdir(listing)) != NULL) {
        visit(arg, entry->d_name);
        errno = 0;
    }
    int error = errno;
    closedir(listing);
    return -error;
}

static int real_open(void *ctx, int dir, const char *name, int flags)
{
    int fd = (int)TEMP_FAILURE_RETRY(openat(dir, name, flags | O_CLOEXEC, 0640));
    return fd < 0 ? -errno : fd;
}

static int64_t real_size(void *ctx, int file)
{
    struct stat st;
    return fstat(file, &st) < 0 ? -errno : (int64_t)st.st_size;
}

static int64_t real_read(void *ctx, int file, void *data, size_t size, uint64_t at)
{
    ssize_t n = pread(file, data, size, (off_t)at);
    return n < 0 ? -errno : n;
}

static int64_t real_write(void *ctx, int file, const void *data, size_t size, uint64_t at)
{
    ssize_t n = pwrite(file, data, size, (off_t)at);
    return n < 0 ? -errno : n;
}

static int real_reserve(void *ctx, int file, uint64_t size)
{
    return fallocate(file, 0, 0, (off_t)size) < 0 ? -errno : 0;
}

static int real_truncate(void *ctx, int file, uint64_t size)
{
    return TEMP_FAILURE_RETRY(ftruncate(file, (off_t)size)) < 0 ? -errno : 0;
}

static int real_sync(void *ctx, int file)
{
    return fdatasync(file) < 0 ? -errno : 0;
}

/* The kernel may report here that a page could not be written, so this failure counts as one of the file. */
static int real_push(void *ctx, int file, uint64_t at, uint64_t size)
{
    const unsigned all = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    return TEMP_FAILURE_RETRY(sync_file_range(file, (off_t)at, (off_t)size, all)) < 0 ? -errno : 0;
}

static struct flock lock_sign(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
}

/* flock decides who may write. Nobody can ask for such a lock without taking it, and a reader that took it for
 * a moment would turn a writer away. So its owner also locks the first byte with a kind of lock that can be
 * asked for without taking it. A file system without such locks shows no owner. */
static int real_lock(void *ctx, int file)
{
    struct flock sign = lock_sign();
    if (TEMP_FAILURE_RETRY(flock(file, LOCK_EX | LOCK_NB)) < 0)
        return -errno;
    (void)fcntl(file, F_OFD_SETLK, &sign);
    return 0;
}

static int real_locked(void *ctx, int file)
{
    struct flock sign = lock_sign();
    if (fcntl(file, F_OFD_GETLK, &sign) < 0)
        return -errno;
    return sign.l_type != F_UNLCK;
}

static int real_rename(void *ctx, int dir, const char *from, const char *to)
{
    return renameat(dir, from, dir, to) < 0 ? -errno : 0;
}

static int real_remove(void *ctx, int dir, const char *name)
{
    return unlinkat(dir, name, 0) < 0 ? -errno : 0;
}

static void real_close(void *ctx, int file_or_dir)
{
    close(file_or_dir);
}

const struct disk disk_real = {
    .open_dir = real_open_dir,
    .make_dir = real_make_dir,
    .sync_dir = real_sync_dir,
    .list = real_list,
    .open = real_open,
    .size = real_size,
    .read = real_read,
    .write = real_write,
    .reserve = real_reserve,
    .truncate = real_truncate,
    .sync = real_sync,
    .push = real_push,
    .lock = real_lock,
    .locked = real_locked,
    .rename = real_rename,
    .remove = real_remove,
    .close = real_close,
};

int64_t disk_read_all(const struct disk *disk, int file, void *data, size_t size, uint64_t at)
{
    size_t done = 0;
    while (done < size) {
        int64_t n = disk->read(disk->ctx, file, (uint8_t *)data + done, size - done, at + done);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return n;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (int64_t)done;
}

int disk_write_all(const struct disk *disk, int file, const void *data, size_t size, uint64_t at)
{
    size_t done = 0;
    while (done < size) {
        int64_t n = disk->write(disk->ctx, file, (const uint8_t *)data + done, size - done, at + done);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return (int)n;
        if (n == 0)
            return -EIO;
        done += (size_t)n;
    }
    return 0;
}

int disk_sync(const struct disk *disk, int file)
{
    int rc;
    do {
        rc = disk->sync(disk->ctx, file);
    } while (rc == -EINTR);
    return rc;
}

int disk_sync_dir(const struct disk *disk, int dir)
{
    int rc;
    do {
        rc = disk->sync_dir(disk->ctx, dir);
    } while (rc == -EINTR);
    return rc;
}

int disk_reserve(const struct disk *disk, int file, uint64_t size)
{
    int rc;
    do {
        rc = disk->reserve(disk->ctx, file, size);
    } while (rc == -EINTR);
    return rc == -EOPNOTSUPP ? 1 : rc;
}

int disk_write_zeros(const struct disk *disk, int file, uint64_t at, uint64_t size)
{
    static const uint8_t zeros[ZERO_CHUNK];
    int rc = 0;
    for (uint64_t done = 0; done < size && rc == 0; done += ZERO_CHUNK) {
        size_t n = size - done < ZERO_CHUNK ? (size_t)(size - done) : ZERO_CHUNK;
        rc = disk_write_all(disk, file, zeros, n, at + done);
    }
    return rc;
}

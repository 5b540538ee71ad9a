/* adapter/journal/disk.h: the system calls the journal makes, as a table.
 *
 * The journal's promises are about what a disk does between a write and a sync, so tests must be able to stand
 * in for it: record what was written, forget what was not synced, fail the k-th call. All calls go through
 * this table: nothing in the journal calls the kernel about a file in any other way.
 *
 * Every function returns a negative errno when it fails. Names are relative to the directory handle. */
#ifndef JOURNAL_DISK_H
#define JOURNAL_DISK_H

#include <pawl/types.h>

struct disk {
    void *ctx;
    int (*open_dir)(void *ctx, const char *path);
    int (*make_dir)(void *ctx, const char *path);
    int (*sync_dir)(void *ctx, int dir);
    int (*list)(void *ctx, int dir, void (*visit)(void *arg, const char *name), void *arg);
    int (*open)(void *ctx, int dir, const char *name, int flags); /* as openat(2), mode 0640 */
    int64_t (*size)(void *ctx, int file);
    int64_t (*read)(void *ctx, int file, void *data, size_t size, uint64_t at);
    int64_t (*write)(void *ctx, int file, const void *data, size_t size, uint64_t at);
    int (*reserve)(void *ctx, int file, uint64_t size); /* blocks for that many bytes, or none */
    int (*truncate)(void *ctx, int file, uint64_t size);
    int (*sync)(void *ctx, int file); /* data, and what is needed to find it: fdatasync(2) */
    int (*push)(void *ctx, int file, uint64_t at, uint64_t size); /* write these bytes out; promises nothing */
    int (*lock)(void *ctx, int file);   /* exclusive, until closed; -EWOULDBLOCK if another has it */
    int (*locked)(void *ctx, int file); /* 1 if somebody has that lock, 0 if nobody has; takes nothing */
    int (*rename)(void *ctx, int dir, const char *from, const char *to);
    int (*remove)(void *ctx, int dir, const char *name);
    void (*close)(void *ctx, int file_or_dir);
};

/* The kernel's. */
extern const struct disk disk_real;

/* Whole reads and writes: after EINTR and after a short count they go on. read returns how many bytes there
 * were before the end of the file. */
int64_t disk_read_all(const struct disk *disk, int file, void *data, size_t size, uint64_t at);
int disk_write_all(const struct disk *disk, int file, const void *data, size_t size, uint64_t at);

/* EINTR here is not an answer either. */
int disk_sync(const struct disk *disk, int file);
int disk_sync_dir(const struct disk *disk, int dir);

/* Have blocks for that many bytes, or fail before a byte is written. Returns 1 if the file system cannot
 * promise that: then it promises nothing. */
int disk_reserve(const struct disk *disk, int file, uint64_t size);

/* Write zeros. What a segment is made of must really be there and written, so that a later sync of a write into
 * it needs to change no metadata. Not synced. */
int disk_write_zeros(const struct disk *disk, int file, uint64_t at, uint64_t size);

#endif

/* test/lib/ramdisk.h: a disk that forgets, in memory, behind the journal's disk.h.
 *
 * It keeps for every file what was written and what is durable, by sectors of 512 bytes, and the same for the
 * directory. Power can be cut at any call, in the middle of a write; then each sector that was not synced is
 * kept or lost, as the test says. Any call can be made to fail. After a failed sync the file's unsynced sectors
 * still read as written, but no later sync brings them to the disk, as kernels do.
 *
 * One thread. */
#ifndef TEST_LIB_RAMDISK_H
#define TEST_LIB_RAMDISK_H

#include "adapter/journal/disk.h"

#define SECTOR ((size_t)512)

struct ramdisk;

struct ramdisk *ramdisk_new(void);
struct ramdisk *ramdisk_clone(const struct ramdisk *r); /* nothing is open in the clone */
void ramdisk_free(struct ramdisk *r);
const struct disk *ramdisk_disk(struct ramdisk *r);

/* How many calls there have been. */
uint64_t ramdisk_calls(const struct ramdisk *r);

/* Called before each counted call is done, with the disk as it is before it. A write can be done in part on a
 * clone. */
struct ramdisk_write {
    int file; /* -1: the call is not a write */
    const void *data;
    size_t size;
    uint64_t at;
};
void ramdisk_on_call(struct ramdisk *r, void (*fn)(void *arg, const struct ramdisk_write *write), void *arg);
void ramdisk_tear(struct ramdisk *clone, const struct ramdisk_write *write, size_t bytes);

/* That call fails with an errno, once; RAMDISK_SHORT: a read or write does half of its bytes and says so. */
#define RAMDISK_SHORT (-1)
void ramdisk_fail_at(struct ramdisk *r, uint64_t call, int number);

/* Every call that takes space fails with ENOSPC while full is set. */
void ramdisk_set_full(struct ramdisk *r, bool full);

/* The sectors that a power cut may lose. */
size_t ramdisk_unsynced(const struct ramdisk *r);

/* The power fails now: every call fails until ramdisk_crash. */
void ramdisk_off(struct ramdisk *r);

/* The process was killed, and the kernel goes on: everything is closed, and nothing is lost. */
void ramdisk_kill(struct ramdisk *r);

/* Before first use: not even the data directory is there. */
void ramdisk_remove_dir(struct ramdisk *r);

/* Power is back. Of the unsynced sectors, in the order of files and places, number i survives if keep(arg, i).
 * keep_names: so do the directory's unsynced changes, and unsynced changes of files' sizes. Everything is
 * closed, and all that is there is durable. */
void ramdisk_crash(struct ramdisk *r, bool (*keep)(void *arg, size_t i), void *arg, bool keep_names);

/* A file's bytes, to look at or to damage; NULL if there is none. Names are of the journal's directory. */
uint8_t *ramdisk_bytes(struct ramdisk *r, const char *name, size_t *ret_size);
void ramdisk_resize(struct ramdisk *r, const char *name, size_t size);
void ramdisk_unlink(struct ramdisk *r, const char *name);

/* A sum over all names and bytes, to see that nothing was changed. */
uint64_t ramdisk_sum(const struct ramdisk *r);

/* The number-th name that ends so, in order; NULL if there are not so many. */
const char *ramdisk_name(const struct ramdisk *r, const char *ending, size_t number);

#endif

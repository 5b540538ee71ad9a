/* test/crash/power.h: a disk that forgets, under a whole directory, and under as many threads as like.
 *
 * Linked into a test program, it stands between the program, its libraries and the kernel: it defines write,
 * fsync and their kin. Of every write below the watched directory it keeps what was there before, until the
 * file is synced. A cut copies the directory, and for each 512-byte sector that was written since its file's
 * last sync decides by chance which of those writes is the last one that the disk got, if any. What was written
 * through memory (the live stores) is garbage in every second page. Names are as they are: what is lost of them
 * is test/crash/disk.h's part.
 *
 * Nothing is really synced, so that many cuts take little time. */
#ifndef TEST_CRASH_POWER_H
#define TEST_CRASH_POWER_H

#include <stdbool.h>
#include <stdint.h>

/* From now on; the directory need not exist. NULL: forget all. */
void power_watch(const char *dir, uint64_t seed);

/* What loss of power at this moment could leave, into a directory that is made. Any thread. */
void power_cut(const char *image);

/* Called before a write to a file whose path has this part in it, and may cut; NULL: no more. On the thread
 * that writes, while no other does. */
void power_before_write(const char *part, void (*fn)(void *arg), void *arg);

/* Until it is called with NULL: writes to files whose path has this part in it find the disk full. */
void power_fill(const char *part);

struct power_counts {
    uint64_t writes, syncs, refused;
    uint64_t kept_sectors, lost_sectors; /* of unsynced ones, over all images */
};

struct power_counts power_counts(void);

#endif

/* test/crash/disk.h: a disk that forgets.
 *
 * Linked into a test program, it stands between the program, its libraries and the kernel: it defines open,
 * write, fsync and their kin. One directory is watched. For each of its files it keeps what is durable, and
 * every write since the last sync of that file; for the directory, every change of a name since its last sync.
 * A cut makes an image of what a loss of power could leave: of each unsynced write, each 512-byte sector was
 * kept or lost at random; and so was each unsynced change of a name, in any order, but for changes of one name.
 *
 * One thread. A file that is written to through memory is compared with what is durable when the power is cut:
 * a sector that differs was kept, lost, or is garbage. Such writes have no effect that a hook could see: cut
 * between them. */
#ifndef TEST_CRASH_DISK_H
#define TEST_CRASH_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Watch a directory, which is empty, from now on; NULL: forget all. Files named in ignored, up to a NULL, are
 * not watched. */
void disk_watch(const char *dir, const char *const *ignored, uint64_t seed);

/* Called before each effect on the watched directory; it may cut. Nothing inside it is watched. */
void disk_on_effect(void (*fn)(void *arg), void *arg);

/* Write an image into a directory, which is made. */
void disk_cut(const char *image);

/* While paused nothing is watched, and nothing is synced either: for looking at images. */
void disk_pause(bool paused);

struct disk_counts {
    uint64_t effects;
    uint64_t writes;
    uint64_t syncs;
    uint64_t kept_sectors; /* of unsynced writes, over all images */
    uint64_t lost_sectors;
    uint64_t lost_names;
    uint64_t mapped_writes; /* shared writable maps of watched files */
};

struct disk_counts disk_counts(void);

#endif

/* adapter/lmdb/mark.h: may the bytes in a store's directory be trusted?
 *
 * LMDB's own file cannot tell: after unsynced commits and a loss of power it may look sound and be torn. So a
 * small file beside it, replaced atomically and synced, says what it would be worth if everything stopped now:
 *
 *                 ┌────────── synced, at close ─────────┐
 *                 ▼                                     │
 *     VOID ──► CLEAN ── before the first fast write ──► DIRTY(identity)
 *       ▲         │ └─ before the first durable one ──► OPEN(file) ── relaxed ──► DIRTY ── tightened ──► CLEAN
 *       └─────────┴──────────── discarded ◄─────────────┘
 *
 *   VOID   being made, copied or discarded: whatever is there is worth nothing, and readers find no store
 *   CLEAN  all of it is on the disk; durable commits keep it so
 *   OPEN   the same, if this is the very file: a copy that was made file by file while it was written to is
 *          none of its states. A file is known by its inode and its birth, which no loss of power and no boot
 *          changes
 *   DIRTY  worth something only while the kernel that took the writes still has them: the same boot, the same
 *          mount, the same file
 *
 *   M1. The mark is DIRTY, on the disk, before the first unsynced write to the data.
 *   M2. The mark is CLEAN only after the data, and the name of its file, have been synced whole. */
#ifndef ADAPTER_LMDB_MARK_H
#define ADAPTER_LMDB_MARK_H

#include <pawl/types.h>

#include "port/store.h"

#define MARK_VERSION    1
#define MARK_FILE       "pawl.mark"
#define MARK_BOOT_BYTES 48

enum mark_state { MARK_VOID = 1, MARK_CLEAN = 2, MARK_DIRTY = 3, MARK_OPEN = 4 };

/* What must be the same for unsynced writes to be there still. An unknown boot, "", is like no other. */
struct mark_identity {
    char boot[MARK_BOOT_BYTES];
    uint64_t device; /* of an OPEN one: the file's birth, in nanoseconds; devices are numbered anew at a boot */
    uint64_t inode;
    uint64_t mount;
};

struct mark {
    enum mark_state state;
    struct mark_identity identity; /* of a DIRTY or an OPEN one */
};

/* The identity of a file in a directory. boot overrides the kernel's boot ID; NULL: ask the kernel. */
int mark_identify(int dir_fd, const char *file, const char *boot, struct mark_identity *ret_identity,
                  pawl_error *error);

/* The file alone, whatever the boot and the device. */
int mark_identify_file(int dir_fd, const char *file, struct mark_identity *ret_identity, pawl_error *error);

/* PAWL_ENOTFOUND: there is none. PAWL_ECORRUPT: there is one that does not decode. PAWL_EVERSION. */
int mark_read(int dir_fd, struct mark *ret_mark, pawl_error *error);

/* Replaces it, synced. */
int mark_write(int dir_fd, const struct mark *mark, pawl_error *error);

/* What a writer who opens the directory must do with what lies there. */
enum mark_verdict {
    MARK_MAKE,    /* nothing is there */
    MARK_USE,     /* a store is there, and all of it is on the disk */
    MARK_SYNC,    /* a store is there, but perhaps only in the kernel's memory */
    MARK_DISCARD, /* a derived store begins anew; why is said in words */
    MARK_DAMAGED, /* a durable store that ought to be whole and is not; why is said in words */
};

/* Pure. read is what mark_read returned, data whether the data file is there and is not too short to be one;
 * now is the identity of that file, taken in the way that fits the mark's state. */
enum mark_verdict mark_judge(int read, const struct mark *mark, bool data, const struct mark_identity *now,
                             enum pawl_store_mode mode, const char **ret_why);

#endif

/* engine/backup.h: a directory saved while it is in use, and brought back.
 *
 *     backup    DIR ── checkpoint stores, then the journal ──► NEW.new ── checked, renamed ──► NEW
 *     restore   BACKUP ── checked against its own log ──► DIR.new ── renamed ──► DIR
 *               and if DIR is to be replaced:              DIR.new ──► DIR.before ◄─ exchanged ─► DIR
 *
 * A backup is a directory as a loss of power leaves it: a log, and checkpoint stores that lack some of its end.
 * The stores are copied first, so that the log has all that they have. Opening one takes over and replays the
 * rest. What is restored has them as its live stores, which can be read at once. Both run in a process of their
 * own, beside the one that writes or without it.
 */
#ifndef ENGINE_BACKUP_H
#define ENGINE_BACKUP_H

#include <pawl/types.h>

struct backup_options {
    const char *dir; /* DIR, or BACKUP */
    const char *to;  /* NEW, or DIR */

    /* Of a restore. */
    bool replace; /* DIR may be there: it is kept as DIR.before, which must not be there */
    uint64_t
        until; /* not 0: each partition ends with this offset; the state is derived anew at the first opening */
    const pawl_allocator *allocator;
};

struct backup_report {
    uint64_t events;    /* that the copied stores have */
    uint64_t log_bytes; /* of the copied segments; 0 if the log was written anew */
};

/* Errors: PAWL_EEXISTS (NEW is there, or a NEW.new that is somebody's), PAWL_ELOCKED (another one makes it),
 * PAWL_ENOTFOUND, PAWL_EREADONLY (DIR has no log of its own), those of
 * reading and writing. NEW is there whole, or not at all. */
int engine_backup(const struct backup_options *options, struct backup_report *ret_report, pawl_error *error);

/* Errors: as above; PAWL_ELOCKED: DIR is to be replaced, and somebody writes to it; PAWL_ECORRUPT: the backup's
 * log is not sound, or its stores are not what its log says; PAWL_EINVAL: the file system cannot exchange DIR
 * with the new one in one step. DIR is then as it was. Interrupted at any moment, by a kill or a loss of power,
 * it leaves DIR as it was or as it is to be; the next one removes the rest. */
int engine_restore(const struct backup_options *options, struct backup_report *ret_report, pawl_error *error);

#endif

/* adapter/mirror/mirror.h: a bounded copy, on this machine, of what a node has seen of a log that is elsewhere.
 *
 *     append ──► log ── acknowledged ──► block in memory ── full ──► the thread ──► DIR/N.seg
 *     read ◄── blocks, as far as there are any ◄──────────────────────────┘
 *       └──── the rest ──► log
 *
 * It is a log port before another one, and answers reads of what it has: entries that were acknowledged, or read
 * from the log just behind those. Entries of one stream lie in blocks of 64 KiB, blocks of all streams in segments,
 * one behind the other. When there are more bytes than allowed, the oldest segment is removed.
 *
 * It is a cache, and never a witness: nothing is synced, and nobody learns from it what is durable. What it has is
 * true, because entries that were acknowledged never change. When that may not hold, all of it is removed, and it
 * begins anew: after another boot, when pages that were not written are lost; if it was made for another log; if a
 * checksum is wrong. Places in it are those of the log.
 *
 * It never stands in a writer's way: a block that the thread cannot write soon enough is dropped, and reads of it go to
 * the log. If the disk is full, everything in it is removed, and it is off, until the thread finds that it can write
 * again: it tries every retry_ns.
 *
 * Invariants
 *   M1  The blocks of a stream are in the order of their offsets. There may be gaps between them.
 *   M2  A block has a segment, or its bytes in memory. Only the last of a stream grows.
 *   M3  Blocks are written in the order in which they were closed: the oldest segment has the oldest blocks of each
 *       stream.
 *   M4  lock guards everything, and is never held while a file is read or written; a segment stays while it has
 *       users. */
#ifndef MIRROR_MIRROR_H
#define MIRROR_MIRROR_H

#include <pawl/figures.h>

#include "port/env.h"
#include "port/log.h"

#define MIRROR_BYTES_MIN ((uint64_t)1 << 20)

struct mirror_options {
    const char *dir;     /* made if it is not there */
    const char *id;      /* of the log: what was kept for another is removed */
    const char *boot_id; /* NULL: the kernel's */
    uint64_t bytes_max;  /* at least MIRROR_BYTES_MIN */
    uint64_t retry_ns;   /* 0: 10 s */
    pawl_env *env;       /* of the log, too */
    const pawl_allocator *alloc;
    pawl_log *log; /* which is mirrored; closed with it */
};

/* Copies the words. A directory that cannot be used is not an error: then it is off. PAWL_ENOMEM: nothing was
 * taken. */
int mirror_open(const struct mirror_options *options, pawl_log **ret_log, pawl_error *error);

/* Of a log that mirror_open opened. Any thread. */
void mirror_figures(pawl_log *log, pawl_mirror_figures *ret_figures);

#endif

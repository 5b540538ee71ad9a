/* test/lib/bed.h: a journal on a ramdisk, driven step by step in one thread, and a model of what it must hold.
 *
 * The model of a stream is its truth (what was acknowledged, or was found after a crash and is truth from then
 * on) and what is pending behind it (issued, outcome unknown). After every reopening, what is there must be the
 * truth followed by some of the pending, in order; that is the truth from then on, and the rest must never come
 * back. */
#ifndef TEST_LIB_BED_H
#define TEST_LIB_BED_H

#include "adapter/journal/journal.h"
#include "test/lib/ramdisk.h"

#define BED_STREAMS     2
#define BED_ENTRIES_MAX 512

struct bed_stream {
    pawl_stream id;
    uint64_t epoch;
    uint64_t next; /* as the writer believes */
    size_t truth;
    size_t pending;
    uint32_t tags[BED_ENTRIES_MAX]; /* of truth, then of pending: which attempt wrote it, and so its text */
};

struct model {
    struct bed_stream streams[BED_STREAMS];
    uint32_t attempts; /* every attempt to write has its own text */
};

struct bed {
    struct ramdisk *disk;
    struct mem_world *world;
    struct mem_env *env;
    const pawl_allocator *alloc;
    pawl_log *log;
    struct model model;
    pawl_error error;
};

void model_init(struct model *model);

/* Takes the disk. Its world is made from the seed. */
void bed_init(struct bed *bed, struct ramdisk *disk, uint64_t seed);
void bed_release(struct bed *bed); /* frees the disk too */

int bed_open(struct bed *bed);
void bed_close(struct bed *bed);

/* The machine is off: forget the log without letting it put anything away. */
void bed_abandon(struct bed *bed);

int bed_claim(struct bed *bed, size_t stream);

/* Append entries of that many bytes, as one group of count appends; each outcome goes into the model. Returns
 * the first that is not PAWL_OK. */
int bed_append(struct bed *bed, size_t stream, size_t count, size_t bytes);

/* Read everything and hold it against the model; fails the test if it does not fit. */
void bed_check(struct bed *bed);

/* Open, check, claim all, append something new to each stream; all of it must succeed. */
void bed_recover(struct bed *bed);

#endif

/* adapter/mirror/impl.h: what its files share. mirror.h has the invariants. */
#ifndef MIRROR_IMPL_H
#define MIRROR_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "adapter/mirror/mirror.h"
#include "base/map.h"

#define BLOCK_BYTES    ((size_t)64 << 10) /* of its entries, unless one is larger */
#define BLOCK_HEADER   56
#define ENTRY_HEADER   32
#define WAITING_MAX    ((size_t)16 << 20) /* bytes of blocks that wait to be written */
#define RETRY_NS       ((uint64_t)10 * 1000 * 1000 * 1000)
#define SEGMENTS       8 /* of which bytes_max consists */
#define MIRROR_PATH    4200
#define MIRROR_VERSION 1

struct segment {
    struct segment *next;
    uint64_t number;
    uint64_t size;
    int fd;
    uint32_t users; /* who read or write it without the lock */
    bool removed;
};

struct block {
    struct block *next; /* that waits to be written */
    struct mirrored *stream;
    uint64_t first, end; /* offsets: of its first entry, and behind its last */
    uint8_t *bytes;      /* header and entries, in memory; or */
    size_t size, room;
    struct segment *segment; /* where it lies */
    uint64_t at;
    bool closed;
};

/* A stream. */
struct mirrored {
    pawl_stream id;
    struct block **blocks; /* count of them, from begin on */
    size_t begin, count, room;
};

struct mirror {
    pawl_log port;
    pawl_log *log;
    pawl_env *env;
    const pawl_allocator *alloc;
    char dir[MIRROR_PATH];
    char mark[256]; /* what the directory was made for */
    uint64_t bytes_max;
    uint64_t retry_ns;
    _Atomic size_t outstanding;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool running, stop;
    bool marked;    /* its directory is there, with the mark */
    pawl_error off; /* PAWL_OK: it is not */
    uint64_t retry_at;
    struct map by_stream; /* struct mirrored * */
    struct mirrored **streams;
    size_t stream_count, stream_room;
    struct segment *segments; /* oldest first */
    struct segment *removed;  /* whose files are still there */
    uint64_t number;          /* of the newest that there was */
    uint64_t bytes;
    struct block *waiting, **last_waiting;
    size_t waiting_bytes;
    pawl_mirror_figures figures; /* its counters */
};

/* block.c. With the lock, but for what is about bytes. */
struct mirrored *mirror_stream(struct mirror *m, pawl_stream id, bool make);
void mirror_put(struct mirror *m, const pawl_entry *entry, pawl_place place, bool was_read);
const struct block *mirror_find(const struct mirrored *stream, uint64_t offset);
struct block *block_new(struct mirror *m, struct mirrored *stream, uint64_t first, size_t room);
int block_add(struct mirror *m, struct mirrored *stream, struct block *block); /* to the index */
void block_free(struct mirror *m, struct block *block);
void block_close(struct mirror *m, struct block *block);             /* it waits to be written */
uint64_t mirror_unwritten(const struct mirror *m);                   /* entries */
void mirror_forget(struct mirror *m, const struct segment *segment); /* blocks in it; NULL: in any */
void block_seal_bytes(struct block *block);                          /* make its header */
bool block_head_read(const uint8_t *head, pawl_stream *ret_id, uint64_t *ret_first, uint64_t *ret_end,
                     size_t *ret_size);
bool block_check(const uint8_t *bytes, size_t size);

/* An entry in the bytes of a block; NULL: the end. */
const uint8_t *block_entry(const uint8_t *bytes, size_t size, const uint8_t *at, pawl_stream stream,
                           uint64_t offset, pawl_entry *ret_entry, pawl_place *ret_place);

/* files.c. Without the lock. open: if running is not set afterwards, it never mirrors
 * anything; off says why. */
void mirror_files_open(struct mirror *m, const char *boot_id, const char *id);
void mirror_files_close(struct mirror *m);
/* The bytes of the block with this offset, in memory of the caller's allocator. PAWL_ENOTFOUND: it has none. */
int mirror_fetch(struct mirror *m, pawl_stream stream, uint64_t offset, uint8_t **ret_bytes, size_t *ret_size,
                 uint64_t *ret_first);

#endif

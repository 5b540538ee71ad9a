/* adapter/mem/log_disk.h: the physical log that all logs on it share.
 *
 * Per stream one array of records. Those before final have been reported or may be read, and stay; those
 * behind it may be cut by a crash, and their positions be used again. It judges nothing. */
#ifndef ADAPTER_MEM_LOG_DISK_H
#define ADAPTER_MEM_LOG_DISK_H

#include "adapter/mem/log.h"
#include "port/claim_owner.h"

/* A physical record, on the wire and on the disk. */
struct disk_record {
    struct claim_record head;
    struct disk_record *next; /* on a wire */
    uint64_t ticket;          /* 0: a claim */
    enum mem_log_fault_kind fate;
    uint32_t hold; /* works that it waits for */
    uint8_t kind;  /* the entry's */
    size_t size;
    uint8_t body[];
};

struct disk_watcher {
    void (*fn)(struct disk_watcher *watcher); /* there is more to read */
    struct disk_watcher *next;
};

struct disk_stream {
    pawl_stream id;
    struct disk_record **records;
    uint64_t count, capacity, final;
    struct disk_record *late; /* given up by their senders */
    struct disk_watcher *watchers;
    struct disk_stream *next;
};

struct mem_log;

struct mem_log_disk {
    const pawl_allocator *alloc;
    uint64_t random;
    uint64_t crashes;
    struct disk_stream *streams;
    struct mem_log *logs;
};

/* Found or made; NULL: no memory. */
struct disk_stream *disk_stream_of(struct mem_log_disk *disk, pawl_stream id);

/* body may be NULL, to be filled in later. NULL: no memory. */
struct disk_record *disk_record_new(struct mem_log_disk *disk, size_t size);
void disk_record_free(struct mem_log_disk *disk, struct disk_record *record);
uint64_t disk_record_checksum(const struct disk_record *record);

uint64_t disk_random(struct mem_log_disk *disk);

/* Put a record, as its fate says, at the end of the stream; takes it. Returns what its sender will be told. */
uint64_t disk_land(struct mem_log_disk *disk, struct disk_stream *stream, struct disk_record *record);

/* Everything before this position stays from now on. */
void disk_finalise(struct disk_stream *stream, uint64_t position);

void disk_watch(struct disk_stream *stream, struct disk_watcher *watcher);
void disk_unwatch(struct disk_stream *stream, struct disk_watcher *watcher);

#endif

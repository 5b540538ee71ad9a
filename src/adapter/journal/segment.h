/* adapter/journal/segment.h: a segment file's name and header. docs/FORMAT.md shows the same for users.
 *
 *      0  magic        8     "PAWLSEG" and a newline
 *      8  version      u32   1
 *     12  header size  u32   all of this, checksum included
 *     16  journal ID   16    random, the same in every segment
 *     32  number       u32   1, 2, 3, ... with no gap
 *     36  streams      u32   how many summaries follow
 *     40  first LSN    u64   of the first record here
 *     48  chain        u64   the checksum of the record before it
 *     56  size         u64   the file's length while it is written to; a sealed one ends behind its last record
 *     64  created      i64   wall clock, nanoseconds; for people
 *     72  summaries    32 each: kind u8, zero u8, partition u16, lane u16, zero u16, generation u32, zero u32,
 *                      epoch u64, next offset u64
 *         checksum     u64   XXH3_64 of everything before it, seed 0
 *
 * A file has a segment's name only after its header, and everything in earlier segments, has been synced. */
#ifndef JOURNAL_SEGMENT_H
#define JOURNAL_SEGMENT_H

#include "adapter/journal/disk.h"
#include "adapter/journal/streams.h"
#include "base/id.h"

#define FORMAT_VERSION       1
#define SEGMENT_NAME_MAX     40
#define SEGMENT_HEADER_FIXED ((size_t)72)
#define SEGMENT_STREAM_BYTES ((size_t)32)
#define SEGMENT_HEADER_MAX   ((size_t)64 << 20)

struct segment_header {
    struct id128 journal;
    uint32_t number;
    uint32_t size; /* of the header */
    uint64_t first_lsn;
    uint64_t chain;
    uint64_t file_size;
    int64_t created_ns;
};

/* The seed of a journal's checksums, and the chain value that its very first record has. */
uint64_t journal_seed(struct id128 journal);

void segment_name(uint32_t number, uint64_t first_lsn, char name[SEGMENT_NAME_MAX]);
void segment_index_name(uint32_t number, char name[SEGMENT_NAME_MAX]);
bool segment_name_parse(const char *name, uint32_t *ret_number, uint64_t *ret_first_lsn);

static inline size_t segment_header_size(size_t streams)
{
    return SEGMENT_HEADER_FIXED + streams * SEGMENT_STREAM_BYTES + 8;
}

/* How many of the streams a header summarises: those that were ever claimed. */
size_t segment_header_count(const struct streams *streams);

/* Encode into at, which has segment_header_size(segment_header_count(streams)) bytes; sets h->size. */
void segment_header_encode(struct segment_header *h, const struct streams *streams, uint8_t *at);

/* Decode. streams may be NULL; otherwise the summaries are added to it. Errors, with words but without the
 * file's name: PAWL_EFORMAT, PAWL_EVERSION, PAWL_ECORRUPT, PAWL_ENOMEM. *ret_fault is the byte at fault. */
int segment_header_decode(pawl_bytes bytes, struct segment_header *ret_header, struct streams *streams,
                          uint64_t *ret_fault, pawl_error *error);

/* Open a segment and read its header; check that it is the named segment of that journal (NULL: of any). On
 * PAWL_OK the caller closes *ret_file. Errors name file and byte. */
struct segment_ref {
    uint32_t number;
    uint64_t first_lsn;
};

/* The same of a file that is open. Its errors do not name the file; *ret_fault is the byte at fault. */
int segment_read(const struct disk *disk, int file, struct segment_ref ref, const struct id128 *journal,
                 const pawl_allocator *alloc, struct segment_header *ret_header, struct streams *streams,
                 uint64_t *ret_fault, pawl_error *error);

int segment_open(const struct disk *disk, int dir, struct segment_ref ref, const struct id128 *journal,
                 const pawl_allocator *alloc, struct segment_header *ret_header, struct streams *streams,
                 int *ret_file, pawl_error *error);

/* Every segment of a directory, by number; PAWL_ECORRUPT, naming it, if one is missing in between, or at the
 * end though its index is there. The list is loaded all the same then. */
struct segment_list {
    const pawl_allocator *alloc;
    struct segment_ref *items;
    size_t count;
    size_t room;
};

int segment_list_load(struct segment_list *list, const struct disk *disk, int dir, pawl_error *error);
int segment_list_reserve(struct segment_list *list); /* room for one more */
void segment_list_release(struct segment_list *list);

#endif

/* adapter/journal/record.h: one record of the journal, as bytes. docs/FORMAT.md shows the same for users.
 *
 *      0  checksum   u64   XXH3_64 of bytes 8 .. padded length, seeded by the journal's ID
 *      8  chain      u64   the checksum of the record before it
 *     16  lsn        u64   1, 2, 3, ... through all segments
 *     24  durable    u64   every record up to this LSN was known durable when this one was written
 *     32  length     u32   header and body, without padding
 *     36  type       u8    entry, claim, watermark
 *     37  kind       u8    entry: its own; watermark: 1 if it seals the journal at a clean close
 *     38  stream     u8    the stream's kind
 *     39  zero       u8
 *     40  partition  u16
 *     42  lane       u16
 *     44  generation u32
 *     48  offset     u64   entry: its offset; claim: the stream's next offset; watermark: 0
 *     56  guard      u64   XXH3_64 of bytes 8 .. 56, seeded likewise
 *     64  body             entry: the user's; claim: epoch u64, group0 u64; watermark: none
 *         zeros            up to a multiple of 8, under the checksum as well
 *
 * The chain makes a record valid in one place only: behind exactly the record that it was written behind, in
 * the journal it was written in. So neither what a cut tail left behind nor a body that looks like a record can
 * pass for a continuation. The guard lets a length be believed before the bytes it speaks of are read, so that
 * searching a damaged segment takes linear time even if a user filled it with what looks like records. */
#ifndef JOURNAL_RECORD_H
#define JOURNAL_RECORD_H

#include "port/log.h"

#define RECORD_HEADER    ((size_t)64)
#define RECORD_ALIGN     ((size_t)8)
#define RECORD_BYTES_MAX (RECORD_HEADER + PAWL_ENTRY_BYTES_MAX)
#define CLAIM_BODY       ((size_t)16)

enum record_type { RECORD_ENTRY = 1, RECORD_CLAIM = 2, RECORD_WATERMARK = 3 };

#define WATERMARK_SEALS 1

struct record {
    uint64_t checksum;
    uint64_t chain;
    uint64_t lsn;
    uint64_t durable;
    enum record_type type;
    uint8_t kind;
    pawl_stream stream;
    uint64_t offset;
    pawl_bytes body;
};

/* What a reader is shown of it. Field by field, and the stream from where it was known before: a processor that has just written the parts of a struct
 * waits before it can read them as a whole, which was a tenth of the time of reading. */
static inline void record_entry(const struct record *r, const pawl_stream *stream, pawl_entry *ret_entry)
{
    ret_entry->stream = *stream;
    ret_entry->epoch = 0;
    ret_entry->offset = r->offset;
    ret_entry->kind = r->kind;
    ret_entry->body.data = r->body.data;
    ret_entry->body.size = r->body.size;
}

/* What a record of this body takes in the file. */
static inline size_t record_size(size_t body_size)
{
    return (RECORD_HEADER + body_size + RECORD_ALIGN - 1) & ~(RECORD_ALIGN - 1);
}

/* Write r, all but its checksum given, to at, which has record_size() bytes. Sets and returns r->checksum. */
uint64_t record_encode(struct record *r, uint64_t seed, uint8_t *at);

enum record_verdict {
    RECORD_VALID,
    RECORD_NONE,     /* zeros: nothing was written here */
    RECORD_SHORT,    /* more bytes are needed to tell: *ret_need of them */
    RECORD_BAD_HEAD, /* its header does not match its guard, or has a value that no writer writes */
    RECORD_BAD_SUM,  /* the bytes do not match their checksum */
};

const char *record_verdict_text(enum record_verdict verdict);

/* Read the record at the beginning of bytes. Checks it by itself; whether it fits behind its predecessor
 * (chain, lsn) is for the caller to check. Only on RECORD_VALID does ret_record mean anything; its body points
 * into bytes, and *ret_need is the record's size. On RECORD_SHORT, *ret_need is how many bytes there must be,
 * at most record_size(PAWL_ENTRY_BYTES_MAX). */
enum record_verdict record_decode(pawl_bytes bytes, uint64_t seed, struct record *ret_record, size_t *ret_need);

/* Whether the RECORD_HEADER bytes at at match their guard. This takes the same time whatever the bytes are. */
bool record_guarded(const uint8_t *at, uint64_t seed);

/* How many bytes the record at the beginning of bytes says it takes, which may be false; 0 if they do not say
 * it. */
size_t record_claimed_size(pawl_bytes bytes);

/* The body of a claim. */
void claim_body_encode(uint64_t epoch, uint64_t group0, uint8_t body[CLAIM_BODY]);
bool claim_body_decode(pawl_bytes body, uint64_t *ret_epoch, uint64_t *ret_group0);

#endif

/* core/event/envelope.h: an event's body, as far as it can be read without any schema. docs/FORMAT.md shows the
 * same for users.
 *
 *      0  version  u8    1
 *      1  zero     u8
 *      2  kind     u16   of the workspace
 *      4  count    u16   n, of the numbers below
 *      6  zero     u16
 *      8  wsid     u64   the workspace; 0: a system event, which has no numbers
 *     16  numbers  16 each, by ascending seq: seq u16, zero u16, count u32, first u64
 *         content        what only a schema can read
 *
 * A sequencer is recovered from the numbers alone, so it never depends on a schema, and events of unknown kinds
 * count too. */
#ifndef CORE_EVENT_ENVELOPE_H
#define CORE_EVENT_ENVELOPE_H

#include <pawl/types.h>

#define ENVELOPE_VERSION     1
#define ENVELOPE_FIXED       ((size_t)16)
#define ENVELOPE_NUMBER      ((size_t)16)
#define ENVELOPE_NUMBERS_MAX ((size_t)4096)

/* What an event took from one sequence: first, first + 1, ..., count of them. */
struct event_numbers {
    uint16_t seq;
    uint32_t count;
    uint64_t first;
};

struct envelope {
    uint16_t kind;
    uint64_t wsid;
    size_t count;
    const uint8_t *numbers; /* into the body */
    pawl_bytes content;     /* into the body */
};

static inline size_t envelope_size(size_t count)
{
    return ENVELOPE_FIXED + count * ENVELOPE_NUMBER;
}

/* Write what comes before the content to at, which has envelope_size(count) bytes. */
void envelope_encode(uint16_t kind, uint64_t wsid, const struct event_numbers *numbers, size_t count,
                     uint8_t *at);

/* Checks everything it hands out. PAWL_EVERSION; PAWL_ECORRUPT, with the byte at fault. */
int envelope_decode(pawl_bytes body, struct envelope *ret_envelope, pawl_error *error);

/* The i-th numbers of an envelope that was decoded. */
struct event_numbers envelope_numbers(const struct envelope *envelope, size_t i);

#endif

/* adapter/kafka/record.h: one Pawl record as the value of one Kafka record. docs/FORMAT.md has the bytes.
 *
 * A record is bound to its place: its checksum is seeded with topic and partition, so that a record that was
 * copied to another topic or partition does not match there. Its position is Kafka's offset and is not in
 * it. */
#ifndef KAFKA_RECORD_H
#define KAFKA_RECORD_H

#include "port/claim.h"
#include "port/log.h"

#define KAFKA_RECORD_HEADER  ((size_t)48)
#define KAFKA_RECORD_VERSION 1

/* A larger body goes in fragments of this size. */
#define KAFKA_BODY_BYTES_MAX ((size_t)1 << 20)
#define KAFKA_FRAGMENTS_MAX  ((uint32_t)(PAWL_ENTRY_BYTES_MAX / KAFKA_BODY_BYTES_MAX))

/* What a message may take with all that Kafka puts around it: the client's limit, and the least of a topic's.
 */
#define KAFKA_MESSAGE_BYTES       (KAFKA_BODY_BYTES_MAX + ((size_t)64 << 10))
#define KAFKA_TOPIC_MESSAGE_BYTES ((size_t)2 << 20)

struct kafka_record {
    struct claim_record head; /* position left alone; checksum set by both directions */
    uint8_t kind;             /* event: the entry's */
    uint32_t fragments;       /* event: how many there are, at least 1 */
    pawl_bytes body;
};

uint64_t kafka_record_seed(const char *topic, uint16_t partition);

/* Into KAFKA_RECORD_HEADER + body.size bytes. Sets head.checksum. */
void kafka_record_encode(struct kafka_record *record, uint64_t seed, uint8_t *to);

enum kafka_record_fault {
    KAFKA_RECORD_GOOD,
    KAFKA_RECORD_FOREIGN,  /* it was not written by Pawl */
    KAFKA_RECORD_NEWER,    /* by a newer one */
    KAFKA_RECORD_UNSOUND,  /* its checksum does not match, or not in this place */
    KAFKA_RECORD_NONSENSE, /* its checksum matches, but no Pawl writes such a record */
};

/* The body is borrowed from the value. */
enum kafka_record_fault kafka_record_decode(pawl_bytes value, uint64_t seed, struct kafka_record *ret_record);

const char *kafka_record_fault_text(enum kafka_record_fault fault);

#endif

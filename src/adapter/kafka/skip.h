/* adapter/kafka/skip.h: records that an operator has decided to skip, as bytes. docs/FORMAT.md shows the same for users.
 *
 * A record that is not Pawl's, or is damaged, stops its stream. A person may decide that it is skipped. The decision is
 * the value of a record of topic CLUSTER.skips, partition 0:
 *
 *      0  checksum    u64   of all that follows, seeded with the topic
 *      8  magic       "PWS", version u8 1
 *     12  kind        u8    of the stream
 *     13  damaged     u8    1: it has Pawl's magic, and was perhaps an entry
 *     14  partition   u16
 *     16  lane        u16
 *     18  zero        u16
 *     20  generation  u32
 *     24  position    u64   Kafka's offset of the record that is skipped
 *     32  hash        u64   of that record's value: another record there is not skipped
 *     40  time        i64   nanoseconds since 1970
 *     48  who         u8 and as many bytes
 *         reason      u8 and as many bytes
 *
 * Why every reader agrees (R1 to R4 are those of port/claim.h)
 *   S1  A skipped record changes nothing, as a record that does not count (R4). So what counts behind it follows from the
 *       same records in the same order, for everyone who passes it.
 *   S2  Who does not know of the decision does not pass: a log reads all decisions when it is opened, before anything
 *       else, and stops at the record if it was opened earlier. It has then seen a beginning of what the others see, and
 *       nothing that they do not.
 *   S3  An owner that does not know of it acknowledges nothing behind the record: its next report names a position behind a
 *       gap, and what lies in the gap must be read first (port/claim_owner.h). What it has sent there counts or not by the
 *       same rules; a claim settles it. A zombie's records are of an old epoch, before and after.
 *   S4  A decision is never taken back, and never made for a record that counts, or that what follows rests on. Without the
 *       topic the stream stops again, and nothing is misread.
 *
 * The decision cannot be in the stream: it would come behind the record, and a reader would have to look ahead to the end
 * of the stream while it stands there. It is not in group0: who reads one stream would have to read that too, and group0
 * itself could have such a record. */
#ifndef KAFKA_SKIP_H
#define KAFKA_SKIP_H

#include <pawl/cluster.h>

#include "adapter/kafka/url.h"

#define KAFKA_SKIP_BYTES_MAX ((size_t)48 + 2 + 2 * 255)
#define KAFKA_SKIPS_MAX      4096 /* of a cluster */

struct kafka_skip {
    pawl_cluster_skipped shown;
    uint64_t hash;
};

/* CLUSTER.skips; topic has KAFKA_TOPIC_MAX bytes. */
void kafka_skips_topic(const char *cluster, char *topic);

/* The hash of a value that is skipped. */
uint64_t kafka_skip_hash(pawl_bytes value);

/* Into KAFKA_SKIP_BYTES_MAX bytes; how many it takes. */
size_t kafka_skip_encode(const struct kafka_skip *skip, uint64_t seed, uint8_t *to);

/* False: these are not such bytes. */
bool kafka_skip_decode(pawl_bytes value, uint64_t seed, struct kafka_skip *ret_skip);

#endif

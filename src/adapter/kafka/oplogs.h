/* adapter/kafka/oplogs.h: the operation logs of a cluster that have a topic.
 *
 * The topics of plog, raw and group0 are made with the cluster, so that a missing one is an error. Those of operation logs
 * are made one by one, when their lane is first claimed: if one is missing, somebody must know whether it ever existed. So
 * each is listed in the topic CLUSTER.oplogs, partition 0, for ever:
 *
 *      0  checksum    u64   of all that follows, seeded with the topic
 *      8  magic       "PWO", version u8 1
 *     12  lane        u16
 *     14  zero        u16
 *     16  generation  u32
 *
 * A first claim:   make the topic ──► list it ──► write the claim
 *
 * Invariants
 *   L1  A claim is written to an operation log only when it is listed, and that is on the brokers' disks. So a log that is
 *       not listed has never had an entry, and may be taken for empty if its topic is missing.
 *   L2  The topic of a log that is listed was there. If it is missing, it was deleted, and all in it is lost: PAWL_ECORRUPT
 *       for whoever reads, claims or verifies it, naming the topic. Nobody makes it again.
 *   L3  A crash between making and listing leaves an empty topic; the next claim lists it. One whose topic was made before
 *       there was a list is listed by its next claim, too. To list a log twice does no harm.
 *   L4  A broker that has just started may not know a topic that is there. So the topic of a listed log is taken for deleted
 *       only after no broker that was asked has known it for timeout-ms. Until then it is PAWL_EIO, and whoever wants the
 *       topic looks again.
 *   L5  A broker may not know the list, either. A claim never takes the list for empty because of that: it makes the list,
 *       which the controller refuses if there is one, and then reads it. A reader takes the list for empty only after no
 *       broker that was asked has known it for two seconds. Until then it is PAWL_EIO, too. A log whose topic is there is
 *       read without asking for the list.
 *   L6  A list whose first records were deleted may have listed any log. An operation log whose topic is there is read and
 *       claimed as ever, and its next claim in another opening lists it again. One that is neither listed nor there is
 *       PAWL_ECORRUPT, as in L2, and nobody makes it. Verifying names the list.
 *
 * The list is not one of the log's streams: whoever reads a stream would have to read and judge a second one first. It is
 * not in group0, because this adapter does not know what an entry means. If somebody deletes the list and a topic in it,
 * nobody can notice. */
#ifndef KAFKA_OPLOGS_H
#define KAFKA_OPLOGS_H

#include "adapter/kafka/client.h"
#include "port/log.h"

#define KAFKA_OPLOG_BYTES ((size_t)20)

/* Since when a topic is not known to the brokers, and when they were asked last. 0: it was seen, or nobody has looked. */
struct oplog_absence {
    uint64_t since, last;
};

struct oplog_list {
    pawl_stream *items; /* partition 0 of each */
    size_t count, room;
    uint64_t read_at;             /* when it was read last, or was found not to be there; 0: never */
    bool there;                   /* its topic was, then */
    bool cut;                     /* and its first records were gone (L6) */
    struct oplog_absence absence; /* of its topic */
    const pawl_allocator *alloc;
};

/* CLUSTER.oplogs; topic has KAFKA_TOPIC_MAX bytes. */
void kafka_oplogs_topic(const char *cluster, char *topic);

/* A record of the list; into KAFKA_OPLOG_BYTES bytes. */
void kafka_oplog_encode(pawl_stream stream, uint64_t seed, uint8_t *to);

/* False: these are not such bytes. */
bool kafka_oplog_decode(pawl_bytes value, uint64_t seed, pawl_stream *ret_stream);

/* Read the list from its topic, and add what was not in it. A topic that is absent for two seconds has none. Blocks. Errors
 * as of side_topic_read. */
int oplogs_load(rd_kafka_t *client, const struct kafka_url *url, struct oplog_list *list, pawl_error *error);
bool oplogs_have(const struct oplog_list *list, pawl_stream stream);
void oplogs_release(struct oplog_list *list);

/* L2, L4: a look at the topic of a log that was made has found so many partitions. PAWL_EIO: it is absent, but not for long
 * enough. PAWL_ECORRUPT: it was deleted. */
int oplog_judge(const struct kafka_url *url, const char *topic, uint32_t partitions,
                struct oplog_absence *absence, pawl_error *error);

/* Look for the topics of all logs of a list, until each was seen or is lost. lost: one is lost, or the beginning of the list
 * is (L6), as error says. wait: between two looks; may be NULL. An error of theirs ends it. Blocks. */
struct oplog_search {
    int (*lost)(void *arg, pawl_error *error);
    int (*wait)(void *arg, pawl_error *error);
    void *arg;
};

int oplogs_find_lost(rd_kafka_t *client, const struct kafka_url *url, const struct oplog_list *list,
                     const struct oplog_search *search, pawl_error *error);

#endif

/* adapter/kafka/skips.h: the records of a cluster that are skipped (skip.h), as they were decided. */
#ifndef KAFKA_SKIPS_H
#define KAFKA_SKIPS_H

#include "adapter/kafka/client.h"
#include "adapter/kafka/skip.h"

struct skip_list {
    struct kafka_skip *items;
    size_t count, room;
    const pawl_allocator *alloc;
};

/* Read the decisions into a list that is empty; a topic that is not there has none. Blocks; client is a consumer, of which
 * nobody else reads. PAWL_EIO: no broker answers. PAWL_ECORRUPT: the first decisions are gone. Release the list in any case. */
int skips_load(rd_kafka_t *client, const struct kafka_url *url, struct skip_list *list, pawl_error *error);
void skips_release(struct skip_list *list);

#endif

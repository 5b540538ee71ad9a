/* test/lib/plog.h: events written straight to a partition's log, as a processor would have written them, and
 * any stream read back. All calls drive the world until they are done. */
#ifndef TEST_LIB_PLOG_H
#define TEST_LIB_PLOG_H

#include "adapter/mem/env.h"
#include "core/schema/schema.h"
#include "port/log.h"

/* An event with an argument that has the int64 fields k and by, and no others. */
struct plog_event {
    uint64_t wsid;
    const char *command; /* qualified, as the next */
    const char *argument;
    int64_t k, by;
};

/* To be freed with free. */
pawl_bytes plog_body(const struct schema *schema, uint64_t offset, const struct plog_event *event);

struct plog {
    struct mem_world *world;
    pawl_log *log;
    uint16_t partition;
    uint64_t epoch;
    uint64_t last; /* durable */
};

void plog_open(struct plog *plog, struct mem_world *world, pawl_log *log, uint16_t partition);
void plog_append(struct plog *plog, const pawl_bytes *bodies, size_t count);

/* Visit a stream's durable entries from an offset on; drives nothing. */
void plog_read(pawl_log *log, pawl_stream stream, uint64_t from,
               bool (*visit)(void *arg, const pawl_entry *entry, pawl_place place), void *arg);

#endif

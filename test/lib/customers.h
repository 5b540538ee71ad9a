/* What the tests of a processor share: a partition of customers, a client that asks for one, and faults of the
 * log made to order. */
#ifndef TEST_LIB_CUSTOMERS_H
#define TEST_LIB_CUSTOMERS_H

#include "test/lib/ask.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

#define CUSTOMERS                                                                                              \
    "'types': {'Customer': {'kind': 'CDoc', 'fields': {'name': {'type': 'string', 'required': true},"          \
    "          'points': {'type': 'int64'}}}}, 'commands': {'Add': {'records': ['Customer']}}}"

static const char first_schema[] = "{'schema': 1, 'package': 'p', 'workspaces': {'w': {}}, " CUSTOMERS;

/* With another sequence, so that the sequencer has to be another too. */
static const char second_schema[] =
    "{'schema': 1, 'package': 'p', 'workspaces': {'w': {'sequences': {'s': {'first': 1}}}}, " CUSTOMERS;

static inline void open_partition(struct partition *p)
{
    partition_open(p, 1);
    partition_apply(p, first_schema);
    p->options.workspaces_max = p->options.windows_max = 8; /* small, because there are many lives */
}

/* Running, with workspace 7. */
static inline void boot(struct partition *p)
{
    struct ask ask;
    partition_boot(p);
    assert_int_equal(partition_wait(p), WRITER_RUNNING);
    ask_create(&ask, p, 7, "p.w");
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
}

static inline void finish(struct partition *p)
{
    partition_halt(p);
    partition_close(p);
}

static inline void ask_customer(struct ask *ask, struct partition *p, uint64_t wsid)
{
    ask_init(ask, p, wsid, "p.Add");
    ask_record(ask, 1, "p.Customer");
    ask_text(ask, "name", "Ann");
}

static inline void order(struct partition *p, enum mem_log_fault_kind kind, uint64_t after, uint32_t n)
{
    struct mem_log_fault fault = {kind, mem_log_requests(p->log) + after, n};
    assert_ok(mem_log_order(p->log, &fault));
}

static inline void steps(struct partition *p, int count)
{
    for (int i = 0; i < count; i++)
        mem_world_advance(p->world, PAWL_MILLISECOND);
}

#endif

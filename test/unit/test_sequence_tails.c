/* What the sequence storages of several partitions lack: it is read once for all, and given to each once. */
#include "adapter/mem/env.h"
#include "adapter/mem/log.h"
#include "adapter/mem/store.h"
#include "core/event/envelope.h"
#include "core/sequence/storage.h"
#include "engine/shard/sequence_tails.h"
#include "test/lib/alloc.h"
#include "test/lib/plog.h"
#include "test/lib/test.h"

enum { PARTITIONS = 4, FIRST = 1, STEP = 3, EVENTS = 40, STEPS_MAX = 1000000 };

static const uint64_t stored[PARTITIONS] = {0, 13, EVENTS, EVENTS + 5}; /* the last is ahead of its log */

struct bench {
    struct mem_world *world;
    struct mem_env *env;
    struct mem_log_disk *log_disk;
    mem_store_disk *store_disk;
    pawl_log *log;
    pawl_store *store;
    struct plog plogs[PARTITIONS];
    struct sequence_tails tails;
};

static uint16_t partition_of(size_t i)
{
    return (uint16_t)(FIRST + i * STEP);
}

static void append_events(struct plog *plog, uint64_t count)
{
    for (uint64_t n = 0; n < count; n++) {
        uint8_t body[ENVELOPE_FIXED + 2 * ENVELOPE_NUMBER + 30];
        struct event_numbers numbers[] = {{.seq = SEQ_WLOG_OFFSET, .count = 1, .first = plog->last + 1},
                                          {.seq = SEQ_REC_ID, .count = 3, .first = 1 + 3 * plog->last}};
        memset(body, 'x', sizeof body);
        envelope_encode(7, plog->partition, numbers, 2, body);
        plog_append(plog, &(pawl_bytes){body, sizeof body}, 1);
    }
}

static void write_offset(struct bench *b, uint16_t partition, uint64_t offset)
{
    uint8_t key[SEQUENCE_KEY_BYTES], value[SEQUENCE_VALUE_BYTES];
    put_u64(value, offset);
    assert_ok(pawl_store_put(b->store, SEQUENCE_SPACE, sequence_key(partition, 0, SEQ_PLOG_OFFSET, key),
                             (pawl_bytes){value, sizeof value}));
}

static void begin(struct bench *b)
{
    *b = (struct bench){0};
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = 1}, &b->world, NULL));
    assert_ok(mem_env_open(b->world, &(struct mem_env_options){.shards = 1}, &b->env, NULL));
    assert_ok(mem_log_disk_open(1, NULL, &b->log_disk));
    assert_ok(mem_log_open(b->log_disk, mem_env_port(b->env), &(struct mem_log_options){.node = 1}, &b->log));
    assert_ok(mem_store_disk_new(NULL, &b->store_disk));
    assert_ok(mem_store_open(b->store_disk, &(struct mem_store_options){.name = "s", .mode = PAWL_STORE_FAST},
                             NULL, &b->store, NULL));
    for (size_t i = 0; i < PARTITIONS; i++) {
        plog_open(&b->plogs[i], b->world, b->log, partition_of(i));
        append_events(&b->plogs[i], EVENTS);
        if (stored[i] > 0)
            write_offset(b, partition_of(i), stored[i]);
    }
    assert_ok(pawl_store_commit(b->store));
}

static void begin_tails(struct bench *b, const pawl_allocator *alloc)
{
    sequence_tails_init(&b->tails, &(struct sequence_tails_options){.log = b->log,
                                                                    .store = b->store,
                                                                    .partitions = {FIRST, STEP, PARTITIONS},
                                                                    .alloc = alloc});
}

static void end(struct bench *b)
{
    sequence_tails_release(&b->tails);
    assert_ok(pawl_log_close(b->log));
    assert_ok(pawl_store_close(b->store));
    assert_ok(mem_env_close(b->env));
    mem_log_disk_close(b->log_disk);
    mem_store_disk_free(b->store_disk);
    mem_world_close(b->world);
}

struct taking {
    uint16_t partition;
    uint64_t next;
    uint64_t fail_at;
};

static int take(void *arg, uint64_t offset, pawl_bytes bytes)
{
    struct taking *t = arg;
    struct envelope envelope;
    if (offset == t->fail_at)
        return PAWL_ECLOSED;
    assert_int_equal(offset, t->next++);
    assert_ok(envelope_decode(bytes, &envelope, NULL));
    assert_int_equal(envelope.wsid, t->partition);
    assert_int_equal(envelope.kind, 7);
    assert_int_equal(envelope.count, 2);
    assert_int_equal(envelope_numbers(&envelope, 0).first, offset);
    assert_int_equal(envelope_numbers(&envelope, 1).first, 3 * offset - 2);
    return PAWL_OK;
}

/* What is handed out behind an offset; 0: nothing. */
static uint64_t take_all(struct bench *b, size_t i, uint64_t after)
{
    struct taking t = {.partition = partition_of(i), .next = after + 1};
    uint64_t next = 77;
    assert_ok(sequence_tails_take(&b->tails, t.partition, after, take, &t, &next));
    assert_true(next == 0 || next == t.next);
    return next;
}

TEST(every_partition_gets_what_its_storage_lags_by_and_gets_it_once)
{
    struct bench b;
    begin(&b);
    begin_tails(&b, NULL);
    assert_int_equal(take_all(&b, 1, 13), EVENTS + 1);
    append_events(&b.plogs[0], 3); /* too late: its reader goes on behind what was read */
    assert_int_equal(take_all(&b, 0, 0), EVENTS + 1);
    assert_int_equal(take_all(&b, 0, 0), 0);
    assert_int_equal(take_all(&b, 2, EVENTS), EVENTS + 1);
    assert_int_equal(take_all(&b, 3, EVENTS + 5), 0);
    assert_null(b.tails.tails); /* nothing is kept once all have theirs */
    assert_int_equal(take_all(&b, 1, 13), 0);
    end(&b);
}

TEST(a_storage_that_has_moved_gets_nothing_and_an_error_of_its_reader_is_passed_on)
{
    struct bench b;
    uint64_t next = 77;
    begin(&b);
    begin_tails(&b, NULL);
    assert_int_equal(take_all(&b, 1, 14), 0);
    struct taking t = {.partition = partition_of(0), .next = 1, .fail_at = 5};
    assert_status(sequence_tails_take(&b.tails, t.partition, 0, take, &t, &next), PAWL_ECLOSED);
    assert_int_equal(next, 77);
    end(&b); /* with tails that nobody asked for */
}

TEST(without_memory_it_has_less_to_hand_out_and_nothing_that_is_wrong)
{
    struct bench b;
    bool failed = true;
    begin(&b);
    for (uint64_t k = 1; failed; k++) {
        struct test_alloc memory;
        test_alloc_init(&memory);
        begin_tails(&b, &memory.allocator);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        for (size_t i = 0; i < PARTITIONS; i++) {
            uint64_t next = take_all(&b, i, stored[i]);
            assert_true(next <= EVENTS + 1);
        }
        failed = test_alloc_failed(&memory);
        sequence_tails_release(&b.tails);
        test_alloc_release(&memory);
    }
    begin_tails(&b, NULL);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(every_partition_gets_what_its_storage_lags_by_and_gets_it_once),
        RUN(a_storage_that_has_moved_gets_nothing_and_an_error_of_its_reader_is_passed_on),
        RUN(without_memory_it_has_less_to_hand_out_and_nothing_that_is_wrong),
    };
    return TEST_MAIN(tests);
}

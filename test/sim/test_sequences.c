/* A partition's sequencer on the log and the store that Pawl itself uses, under virtual time: lives that end in
 * crashes of the process and of the machine, appends whose outcome is lost, and at the end the log itself must
 * show every sequence without a gap. */
#include "adapter/mem/env.h"
#include "adapter/mem/log.h"
#include "adapter/mem/store.h"
#include "core/event/envelope.h"
#include "core/sequence/sequencer.h"
#include "core/sequence/storage.h"
#include "engine/shard/sequences.h"
#include "test/lib/test.h"

enum { PARTITION = 5, WORKSPACES = 9, KIND = 1, SEQ_INVOICE = 100, STEPS_MAX = 1000000 };

static const pawl_sequence kind_sequences[] = {
    {SEQ_WLOG_OFFSET, 1, 0}, {SEQ_REC_ID, 200001, 0}, {SEQ_CREC_ID, 200001, 0}, {SEQ_INVOICE, 1000, 0}};
static const pawl_workspace_kind kinds[] = {{KIND, kind_sequences, 4}};
static const pawl_stream plog = {.kind = PAWL_STREAM_PLOG, .partition = PARTITION};

struct node {
    struct mem_world *world;
    struct mem_log_disk *log_disk;
    mem_store_disk *store_disk;
    uint64_t random;

    struct mem_env *env;
    pawl_log *log;
    pawl_store *store;
    struct applier applier;
    struct sequences sequences;
    struct sequence_tails tails;
    pawl_sequencer *sequencer;
    uint64_t epoch;
    pawl_error error;

    int ready; /* 1: not known yet */
    struct sequencer_waiter waiter;
    pawl_claim claim;
    pawl_append append;
    bool done;
    bool closed;
    uint64_t acknowledged; /* events, ever */
};

/* Run something on the shard, as the engine would. */
static void on_shard(struct node *n, void (*fn)(void *arg))
{
    assert_ok(pawl_env_call(mem_env_port(n->env), 0, fn, n));
}

static void told(struct sequencer_waiter *waiter, int status)
{
    ((struct node *)((char *)waiter - offsetof(struct node, waiter)))->ready = status;
}

static void start_waiting(void *arg)
{
    struct node *n = arg;
    n->waiter.fn = told;
    sequencer_wait(n->sequencer, &n->waiter);
}

static bool is_ready(void *arg)
{
    return ((struct node *)arg)->ready != 1;
}

static int wait_ready(struct node *n)
{
    n->ready = 1;
    on_shard(n, start_waiting);
    assert_true(mem_world_run_until(n->world, is_ready, n, STEPS_MAX));
    return n->ready;
}

static bool is_done(void *arg)
{
    return ((struct node *)arg)->done;
}

static void claim_done(pawl_claim *claim)
{
    ((struct node *)claim->arg)->done = true;
}

static void issue_claim(void *arg)
{
    struct node *n = arg;
    n->claim = (pawl_claim){.stream = plog, .done = claim_done, .arg = n, .error = &n->error};
    assert_ok(pawl_log_claim(n->log, &n->claim));
}

static void claim(struct node *n)
{
    do {
        n->done = false;
        on_shard(n, issue_claim);
        assert_true(mem_world_run_until(n->world, is_done, n, STEPS_MAX));
    } while (n->claim.status != PAWL_OK);
    n->epoch = n->claim.epoch;
}

static int boot(struct node *n)
{
    assert_ok(mem_env_open(n->world, &(struct mem_env_options){.shards = 1}, &n->env, NULL));
    pawl_env *env = mem_env_port(n->env);
    assert_ok(mem_log_open(n->log_disk, env, &(struct mem_log_options){.node = 1}, &n->log));
    struct mem_store_options live = {.name = "live", .mode = PAWL_STORE_FAST};
    assert_ok(mem_store_open(n->store_disk, &live, NULL, &n->store, NULL));
    claim(n);
    struct sequence_tails_options tails = {
        .log = n->log, .store = n->store, .partitions = {PARTITION - 1, 1, 3}};
    sequence_tails_init(&n->tails, &tails);
    applier_init(&n->applier, env, 0, n->store);
    n->sequences = (struct sequences){
        .log = n->log, .store = n->store, .applier = &n->applier, .env = env, .partition = PARTITION};
    if (test_below(&n->random, 2))
        n->sequences.tails = &n->tails;
    pawl_sequencer_options options = {.env = env,
                                      .storage = sequences_storage(&n->sequences),
                                      .kinds = kinds,
                                      .kind_count = 1,
                                      .kinds_elsewhere = true, /* as in the engine */
                                      .limits = {.flush_events = 3, .workspaces_max = 4, .recovery_batch = 16}};
    assert_ok(pawl_sequencer_new(&options, &n->sequencer, &n->error));
    return wait_ready(n);
}

static void closed(pawl_sequencer *s, void *arg, int status)
{
    ((struct node *)arg)->closed = true;
}

static void start_closing(void *arg)
{
    struct node *n = arg;
    sequencer_close(n->sequencer, closed, n);
}

static bool is_closed(void *arg)
{
    return ((struct node *)arg)->closed;
}

static void halt(struct node *n)
{
    n->closed = false;
    on_shard(n, start_closing);
    assert_true(mem_world_run_until(n->world, is_closed, n, STEPS_MAX));
    sequencer_release(n->sequencer);
    sequence_tails_release(&n->tails);
    assert_true(mem_world_run(n->world, STEPS_MAX));
    assert_ok(pawl_log_close(n->log));
    assert_ok(pawl_store_close(n->store));
    assert_ok(mem_env_close(n->env));
}

/* The process dies with all that it had in memory; with it the machine, or not. */
static void crash(struct node *n, bool power)
{
    mem_env_kill(n->env);
    mem_log_kill(n->log);
    sequencer_release(n->sequencer);
    sequence_tails_release(&n->tails);
    mem_store_disk_crash(n->store_disk);
    if (power) {
        mem_log_disk_crash(n->log_disk);
        mem_store_disk_power_cut(n->store_disk);
    }
    assert_ok(mem_env_close(n->env));
}

struct event {
    pawl_append_entry entry;
    uint8_t body[512];
};

static struct event batch[4];
static size_t batch_count;
static uint64_t batch_last;

static void append_done(pawl_append *append)
{
    ((struct node *)append->arg)->done = true;
}

/* Number some events, stage them, and send them to the log as one append. */
static void number_and_append(void *arg)
{
    struct node *n = arg;
    static pawl_append_entry entries[4];
    batch_count = 0;
    n->done = true;
    size_t want = 1 + test_below(&n->random, 4);
    while (batch_count < want) {
        struct event *e = &batch[batch_count];
        uint64_t wsid = test_below(&n->random, 12) == 0 ? 0 : 1 + test_below(&n->random, WORKSPACES);
        struct event_numbers taken[4];
        size_t count = 0;
        uint64_t offset;
        if (pawl_sequencer_start(n->sequencer, KIND, wsid, &offset) == PAWL_EBUSY)
            break;
        for (size_t i = 0; wsid && i < 4; i++) {
            uint32_t numbers = i == 0 ? 1 : (uint32_t)test_below(&n->random, 3);
            for (uint32_t k = 0; k < numbers; k++) {
                uint64_t number;
                assert_ok(pawl_sequencer_next(n->sequencer, kind_sequences[i].seq, &number));
                if (k == 0)
                    taken[count] = (struct event_numbers){kind_sequences[i].seq, numbers, number};
                assert_int_equal(number, taken[count].first + k);
            }
            count += numbers != 0;
        }
        if (test_below(&n->random, 7) == 0) {
            assert_ok(pawl_sequencer_cancel(n->sequencer));
            continue;
        }
        assert_ok(pawl_sequencer_stage(n->sequencer));
        envelope_encode(KIND, wsid, taken, count, e->body);
        entries[batch_count] = (pawl_append_entry){
            .entry = {
                .stream = plog, .epoch = n->epoch, .offset = offset, .body = {e->body, envelope_size(count)}}};
        batch_last = offset;
        batch_count++;
    }
    if (batch_count == 0)
        return;
    n->done = false;
    n->append = (pawl_append){
        .entries = entries, .count = batch_count, .done = append_done, .arg = n, .error = &n->error};
    assert_ok(pawl_log_append(n->log, &n->append));
}

static void settle(void *arg)
{
    struct node *n = arg;
    if (n->append.status == PAWL_OK)
        assert_ok(pawl_sequencer_flush(n->sequencer, batch_last));
    else
        assert_ok(pawl_sequencer_actualize(n->sequencer));
}

/* One round of the processor. False: the outcome was not known, and the log has been claimed and read again. */
static void live_a_little(struct node *n)
{
    if (test_below(&n->random, 9) == 0) {
        static const enum mem_log_fault_kind faults[] = {MEM_LOG_FAIL, MEM_LOG_LANDED, MEM_LOG_LOST,
                                                         MEM_LOG_LATE};
        struct mem_log_fault fault = {faults[test_below(&n->random, 4)], mem_log_requests(n->log) + 1, 0};
        assert_ok(mem_log_order(n->log, &fault));
    }
    on_shard(n, number_and_append);
    if (batch_count == 0) {
        mem_world_advance(n->world, PAWL_SECOND);
        return;
    }
    assert_true(mem_world_run_until(n->world, is_done, n, STEPS_MAX));
    n->acknowledged += n->append.status == PAWL_OK ? batch_count : 0;
    if (n->append.status != PAWL_OK)
        claim(n); /* what is not there by now never will be */
    on_shard(n, settle);
    if (n->append.status != PAWL_OK)
        assert_ok(wait_ready(n));
    if (test_below(&n->random, 5) == 0)
        mem_world_advance(n->world, test_below(&n->random, 700) * PAWL_MILLISECOND);
}

struct proof {
    uint64_t last[WORKSPACES + 1][4];
    uint64_t events;
};

static bool check_event(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct proof *proof = read->arg;
    struct envelope e;
    assert_ok(envelope_decode(entry->body, &e, NULL));
    proof->events++;
    assert_int_equal(entry->offset, proof->events);
    for (size_t i = 0; i < e.count; i++) {
        struct event_numbers taken = envelope_numbers(&e, i);
        for (size_t k = 0; k < 4; k++) {
            if (kind_sequences[k].seq != taken.seq)
                continue;
            uint64_t *last = &proof->last[e.wsid][k];
            assert_int_equal(taken.first, *last ? *last + 1 : kind_sequences[k].first);
            *last = taken.first + taken.count - 1;
        }
    }
    return true;
}

static void not_called(pawl_read *read)
{
    abort();
}

static void check_log(struct node *n)
{
    struct proof proof = {0};
    pawl_read read = {.stream = plog,
                      .from = 1,
                      .limit = UINT64_MAX,
                      .alone = true,
                      .visit = check_event,
                      .done = not_called,
                      .arg = &proof};
    assert_int_equal(pawl_log_read(n->log, &read), PAWL_READ_DONE);
    assert_ok(read.status);
    assert_true(proof.events >= n->acknowledged);
    pawl_sequencer_figures figures;
    pawl_sequencer_figures_get(n->sequencer, &figures);
    assert_int_equal(figures.offset_flushed, proof.events);
}

static void node_init(struct node *n, uint64_t seed)
{
    *n = (struct node){.random = seed};
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = seed}, &n->world, NULL));
    assert_ok(mem_log_disk_open(seed, NULL, &n->log_disk));
    assert_ok(mem_store_disk_new(NULL, &n->store_disk));
}

static void node_free(struct node *n)
{
    mem_world_close(n->world);
    mem_log_disk_close(n->log_disk);
    mem_store_disk_free(n->store_disk);
}

TEST(every_sequence_is_dense_in_the_log_whatever_crashes)
{
    uint64_t first = test_seed(1);
    uint64_t events = 0;
    for (uint64_t seed = first; seed < first + 60; seed++) {
        struct node n;
        node_init(&n, seed);
        for (int life = 0; life < 4; life++) {
            assert_ok(boot(&n));
            check_log(&n);
            for (uint64_t i = test_below(&n.random, 40); i > 0; i--)
                live_a_little(&n);
            uint64_t end = test_below(&n.random, 3);
            if (end == 0)
                halt(&n);
            else
                crash(&n, end == 1);
        }
        assert_ok(boot(&n));
        check_log(&n);
        halt(&n);
        events += n.acknowledged;
        node_free(&n);
    }
    assert_true(events > 5000);
}

static void put_offset_ahead(void *arg)
{
    struct node *n = arg;
    uint8_t key[SEQUENCE_KEY_BYTES], value[8];
    put_u64(value, 1234567);
    assert_ok(pawl_store_put(n->store, SEQUENCE_SPACE, sequence_key(PARTITION, 0, SEQ_PLOG_OFFSET, key),
                             (pawl_bytes){value, 8}));
    assert_ok(pawl_store_commit(n->store));
}

TEST(a_storage_that_is_ahead_of_the_log_is_refused_naming_both)
{
    struct node n;
    node_init(&n, 3);
    assert_ok(boot(&n));
    for (int i = 0; i < 20; i++)
        live_a_little(&n);
    pawl_sequencer_figures figures;
    pawl_sequencer_figures_get(n.sequencer, &figures);
    uint64_t last = figures.offset_flushed;
    halt(&n);

    assert_ok(mem_env_open(n.world, &(struct mem_env_options){.shards = 1}, &n.env, NULL));
    struct mem_store_options live = {.name = "live", .mode = PAWL_STORE_FAST};
    assert_ok(mem_store_open(n.store_disk, &live, NULL, &n.store, NULL));
    on_shard(&n, put_offset_ahead);
    assert_ok(pawl_store_close(n.store));
    assert_ok(mem_env_close(n.env));

    assert_status(boot(&n), PAWL_ECORRUPT);
    char ours[32];
    snprintf(ours, sizeof ours, "%" PRIu64, last);
    assert_contains(pawl_sequencer_error(n.sequencer)->text, "1234567");
    assert_contains(pawl_sequencer_error(n.sequencer)->text, ours);
    halt(&n);
    node_free(&n);
}

static void expect_row(struct node *n, const uint8_t key[18], const uint8_t value[8])
{
    pawl_reader *snapshot;
    pawl_bytes found;
    assert_ok(pawl_store_snapshot(n->store, &snapshot));
    assert_ok(pawl_store_get(snapshot, 1, (pawl_bytes){key, 18}, &found));
    assert_int_equal(found.size, 8);
    assert_memory_equal(found.data, value, 8);
    pawl_store_release(n->store, snapshot);
}

/* docs/FORMAT.md, "The sequence storage". Written out by hand: whoever changes them changes what is on
 * disks. */
TEST(the_bytes_of_a_row_of_the_storage_are_these)
{
    static const pawl_sequence_row row = {
        .wsid = 0x0102030405060708, .number = 0x1112131415161718, .seq = 0x2122};
    static const uint8_t key[18] = {0, 0, 0, 0, 0, 0, 0, PARTITION, 1, 2, 3, 4, 5, 6, 7, 8, 0x21, 0x22};
    static const uint8_t value[8] = {0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11};
    static const uint8_t offset_key[18] = {0, 0, 0, 0, 0, 0, 0, PARTITION, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    static const uint8_t offset_value[8] = {0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31};
    struct node n;
    uint64_t number, last;
    node_init(&n, 1);
    assert_ok(boot(&n));
    pawl_sequence_storage storage = sequences_storage(&n.sequences);
    assert_ok(storage.write_values_and_offset(storage.ctx, &row, 1, 0x3132333435363738, &n.error));
    expect_row(&n, key, value);
    expect_row(&n, offset_key, offset_value);
    assert_ok(storage.read_numbers(storage.ctx, row.wsid, &row.seq, 1, &number, &n.error));
    assert_int_equal(number, row.number);
    assert_ok(storage.read_last_offset(storage.ctx, &last, &n.error));
    assert_int_equal(last, 0x3132333435363738);
    halt(&n);
    node_free(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(every_sequence_is_dense_in_the_log_whatever_crashes),
        RUN(a_storage_that_is_ahead_of_the_log_is_refused_naming_both),
        RUN(the_bytes_of_a_row_of_the_storage_are_these),
    };
    return TEST_MAIN(tests);
}

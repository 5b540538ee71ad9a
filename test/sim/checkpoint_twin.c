#include "test/sim/checkpoint_twin.h"

#include "core/sequence/storage.h"
#include "core/state/checkpoint.h"
#include "core/state/key.h"
#include "test/lib/test.h"

enum { NUMBERS_MAX = 4096 };

struct twin {
    struct partition *p;
    uint64_t *random;
    mem_store_disk *disk;
    pawl_store *store;
    struct checkpoint *checkpoint;
    uint64_t last;      /* of the log */
    uint64_t committed; /* offset */
    uint64_t marked;
    int status;
    pawl_error error;
};

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    const struct twin *t = ctx;
    return group0_schema_at(t->p->group0, position);
}

static void audit(void *ctx, const struct position *position, uint64_t offset)
{
    struct twin *t = ctx;
    assert_int_equal(offset % 3, 0);
    assert_int_equal(offset, position->offset);
    t->marked++;
}

static void begin(struct twin *t)
{
    mem_store_disk_fail(t->disk, (struct mem_store_fault){0});
    assert_ok(mem_store_open(t->disk, &(struct mem_store_options){.name = "twin", .mode = PAWL_STORE_DURABLE},
                             NULL, &t->store, &t->error));
    struct checkpoint_options options = {.store = t->store,
                                         .partitions = {PARTITION_NUMBER, 1, 1},
                                         .events_max = 1 + test_below(t->random, 40),
                                         .bytes_max = 1 + test_below(t->random, 1 << 20),
                                         .rows_max = 1 + test_below(t->random, 200),
                                         .schema_at = schema_at,
                                         .audit = audit,
                                         .audit_every = 3,
                                         .ctx = t};
    assert_ok(checkpoint_new(&options, &t->checkpoint, &t->error));
    assert_int_equal(checkpoint_position(t->checkpoint, 0)->offset, t->committed);
}

static bool take(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct twin *t = read->arg;
    t->status = checkpoint_take(t->checkpoint, 0, entry->offset, place, entry->body, &t->error);
    return t->status == PAWL_OK && !checkpoint_is_full(t->checkpoint);
}

static void not_called(pawl_read *read)
{
    abort();
}

static int follow(struct twin *t)
{
    uint64_t rows;
    pawl_read read = {.stream = {.kind = PAWL_STREAM_PLOG, .partition = PARTITION_NUMBER},
                      .from = checkpoint_next(t->checkpoint, 0),
                      .limit = 1 + test_below(t->random, 50),
                      .alone = true,
                      .visit = take,
                      .done = not_called,
                      .arg = t};
    t->status = PAWL_OK;
    assert_int_equal(pawl_log_read(t->p->observer, &read), PAWL_READ_DONE);
    assert_ok(read.status);
    t->last = read.next - 1 > t->last ? read.next - 1 : t->last;
    if (t->status != PAWL_OK || test_below(t->random, 3))
        return t->status;
    uint64_t offset = checkpoint_position(t->checkpoint, 0)->offset;
    int status = checkpoint_commit(t->checkpoint, &rows, &t->error);
    if (status == PAWL_OK)
        t->committed = offset;
    return status;
}

static void live_a_little(struct twin *t)
{
    if (test_below(t->random, 3) == 0)
        mem_store_disk_fail(t->disk, (struct mem_store_fault){.op = MEM_STORE_ANY,
                                                              .countdown = 1 + test_below(t->random, 60),
                                                              .times = 1,
                                                              .status = PAWL_EFULL});
    if (follow(t) != PAWL_OK) {
        mem_store_disk_fail(t->disk, (struct mem_store_fault){0});
        assert_ok(checkpoint_forget(t->checkpoint, &t->error));
    }
    if (test_below(t->random, 8) == 0) {
        checkpoint_free(t->checkpoint);
        mem_store_disk_power_cut(t->disk);
        begin(t);
    }
}

struct compare {
    const uint8_t *at;
    size_t left;
};

static bool compare_bytes(struct compare *c, pawl_bytes bytes)
{
    assert_true(c->left >= 4 + bytes.size);
    assert_int_equal(get_u32(c->at), bytes.size);
    assert_memory_equal(c->at + 4, bytes.data, bytes.size);
    c->at += 4 + bytes.size;
    c->left -= 4 + bytes.size;
    return true;
}

static bool compare_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    return compare_bytes(arg, key) && compare_bytes(arg, value);
}

/* What the log says of the sequences. */
struct numbers {
    struct twin *twin;
    struct {
        uint64_t wsid, last;
        uint16_t seq;
    } rows[NUMBERS_MAX];
    size_t count;
};

static bool note_numbers(void *arg, const pawl_entry *entry)
{
    struct numbers *n = arg;
    struct envelope envelope;
    assert_ok(envelope_decode(entry->body, &envelope, NULL));
    for (size_t i = 0; i < envelope.count; i++) {
        struct event_numbers taken = envelope_numbers(&envelope, i);
        size_t k = 0;
        while (k < n->count && (n->rows[k].wsid != envelope.wsid || n->rows[k].seq != taken.seq))
            k++;
        assert_true(k < NUMBERS_MAX);
        n->count += k == n->count;
        n->rows[k].wsid = envelope.wsid;
        n->rows[k].seq = taken.seq;
        n->rows[k].last = taken.first + taken.count - 1;
    }
    return true;
}

static void check_number(struct twin *t, uint64_t wsid, uint16_t seq, uint64_t last)
{
    uint8_t key[SEQUENCE_KEY_BYTES];
    pawl_bytes value;
    assert_ok(pawl_store_get(pawl_store_writer(t->store), SEQUENCE_SPACE,
                             sequence_key(PARTITION_NUMBER, wsid, seq, key), &value));
    assert_int_equal(value.size, SEQUENCE_VALUE_BYTES);
    assert_int_equal(get_u64(value.data), last);
}

static void check_numbers(struct twin *t)
{
    static struct numbers numbers;
    pawl_digest digest;
    numbers.count = 0;
    partition_read_log(t->p, 1, note_numbers, &numbers);
    for (size_t i = 0; i < numbers.count; i++)
        check_number(t, numbers.rows[i].wsid, numbers.rows[i].seq, numbers.rows[i].last);
    check_number(t, 0, SEQ_PLOG_OFFSET, t->last);
    assert_ok(pawl_store_digest(pawl_store_writer(t->store), (pawl_range){.space = SEQUENCE_SPACE}, &digest));
    assert_int_equal(digest.rows, numbers.count + 1);
}

static bool any(void *arg, const pawl_entry *entry)
{
    return true;
}

static void check_state(struct twin *t, pawl_bytes state)
{
    struct compare c = {.at = state.data, .left = state.size};
    mem_store_disk_fail(t->disk, (struct mem_store_fault){0});
    assert_ok(pawl_store_scan(pawl_store_writer(t->store), (pawl_range){.space = STATE_SPACE}, false,
                              compare_row, &c));
    assert_int_equal(c.left, 0);
    if (t->last > 0)
        check_numbers(t);
}

/* One that begins as a copy of the live store, whose sequence storage may be behind its position: here it is
 * empty. */
static void check_copy(struct partition *p, uint64_t *random, uint64_t last, pawl_bytes state)
{
    struct twin t = {.p = p, .random = random, .disk = p->store_disk, .last = last, .committed = last};
    uint64_t rows;
    assert_ok(pawl_store_copy(p->store, "twin", &t.error));
    assert_ok(mem_store_open(t.disk, &(struct mem_store_options){.name = "twin", .mode = PAWL_STORE_DURABLE},
                             NULL, &t.store, &t.error));
    assert_ok(pawl_store_remove_range(t.store, (pawl_range){.space = SEQUENCE_SPACE}));
    assert_ok(pawl_store_commit(t.store));
    assert_ok(pawl_store_close(t.store));
    begin(&t);
    while (checkpoint_next(t.checkpoint, 0) <= last) {
        (void)follow(&t);
        assert_ok(t.status);
    }
    assert_ok(checkpoint_commit(t.checkpoint, &rows, &t.error));
    check_state(&t, state);
    checkpoint_free(t.checkpoint);
    assert_ok(pawl_store_close(t.store));
}

void twin_check(struct partition *p, uint64_t *random, pawl_bytes state)
{
    struct twin t = {.p = p, .random = random};
    uint64_t last = partition_read_log(p, 1, any, NULL) - 1;
    assert_ok(mem_store_disk_new(NULL, &t.disk));
    begin(&t);
    while (t.committed < last)
        live_a_little(&t);
    check_state(&t, state);
    assert_true(t.marked >= last / 3);
    checkpoint_free(t.checkpoint);
    mem_store_disk_free(t.disk);
    check_copy(p, random, last, state);
}

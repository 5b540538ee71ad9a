/* Random histories of a sequencer against a model that is a plain array.
 *
 * The model knows the log, the events that are staged, and the open one; what a sequence gives next is one more
 * than the greatest number in any of them. The storage fails, tears its writes, is slow; the cache is tiny; the
 * process dies. After each history every sequence in the log is dense, and a sequencer that recovers knows
 * exactly what a replay of the whole log says. */
#include "test/lib/test.h"

#include "test/lib/sequence.h"

enum { HISTORIES = 10000, OPS = 120, WORKSPACES = 7, STAGED_MAX = 16 };

struct model {
    struct bed bed;
    uint64_t random;
    struct mock_event staged[STAGED_MAX + 1]; /* the open one is behind the last */
    size_t staged_count;
    size_t logged; /* so many of the staged are in the log, and not flushed yet */
    bool open;
};

static uint64_t below(struct model *m, uint64_t bound)
{
    return test_below(&m->random, bound);
}

static uint16_t kind_of(uint64_t wsid)
{
    return wsid % 2 ? KIND_SHOP : KIND_BANK;
}

static uint64_t first_of(uint16_t kind, uint16_t seq)
{
    return seq == SEQ_WLOG ? 1 : kind == KIND_BANK ? 1000 : 200001;
}

static uint16_t any_seq(struct model *m, uint16_t kind)
{
    static const uint16_t shop[] = {SEQ_WLOG, SEQ_REC, SEQ_CREC};
    static const uint16_t bank[] = {SEQ_WLOG, SEQ_INVOICE};
    return kind == KIND_SHOP ? shop[below(m, 3)] : bank[below(m, 2)];
}

/* Where the event has this sequence; count if it does not. */
static uint16_t find(const struct mock_event *event, uint16_t seq)
{
    uint16_t i = 0;
    while (i < event->count && event->numbers[i].seq != seq)
        i++;
    return i;
}

static uint64_t expected_next(struct model *m, uint64_t wsid, uint16_t seq)
{
    uint64_t greatest = mock_replay(&m->bed.mock, wsid, seq);
    for (size_t i = 0; i < m->staged_count + m->open; i++) {
        uint16_t at = find(&m->staged[i], seq);
        if (m->staged[i].wsid == wsid && at < m->staged[i].count && m->staged[i].numbers[at].number > greatest)
            greatest = m->staged[i].numbers[at].number;
    }
    return greatest ? greatest + 1 : first_of(kind_of(wsid), seq);
}

static uint64_t expected_offset(const struct model *m)
{
    return m->bed.mock.log_count + (m->staged_count - m->logged) + 1;
}

static void op_start(struct model *m)
{
    uint64_t wsid = below(m, WORKSPACES);
    uint64_t offset;
    pawl_sequencer_figures before = bed_figures(&m->bed);
    int status = bed_start(&m->bed, kind_of(wsid), wsid, &offset);
    if (m->open) {
        assert_status(status, PAWL_EMISUSE);
        return;
    }
    if (status == PAWL_EBUSY) { /* only for a reason */
        assert_true(m->staged_count == STAGED_MAX || before.unflushed + 3 * m->staged_count >= 24);
        mem_world_advance(m->bed.world, 20 * PAWL_MILLISECOND);
        return;
    }
    assert_ok(status);
    assert_int_equal(offset, expected_offset(m));
    m->staged[m->staged_count] = (struct mock_event){.offset = offset, .wsid = wsid, .kind = kind_of(wsid)};
    m->open = true;
}

static void op_next(struct model *m)
{
    struct mock_event *event = &m->staged[m->staged_count];
    uint16_t seq = any_seq(m, m->open ? event->kind : KIND_SHOP);
    uint64_t number;
    uint64_t expected = m->open && event->wsid ? expected_next(m, event->wsid, seq) : 0;
    int status = bed_next(&m->bed, seq, &number);
    if (expected == 0) {
        assert_status(status, PAWL_EMISUSE);
        return;
    }
    if (status == PAWL_EIO) /* ordered, and nothing is consumed */
        return;
    if (seq == SEQ_CREC && expected > 200020) {
        assert_status(status, PAWL_EEXHAUSTED);
        return;
    }
    assert_ok(status);
    assert_int_equal(number, expected);
    uint16_t at = find(event, seq);
    if (at == event->count) {
        event->count++;
        event->first[at] = number;
    }
    event->numbers[at] = (pawl_sequence_number){seq, number};
}

static void op_stage(struct model *m)
{
    assert_status(bed_stage(&m->bed), m->open ? PAWL_OK : PAWL_EMISUSE);
    m->staged_count += m->open;
    m->open = false;
}

static void op_cancel(struct model *m)
{
    assert_status(bed_cancel(&m->bed), m->open ? PAWL_OK : PAWL_EMISUSE);
    m->open = false;
}

/* Some of what is staged becomes durable; nobody has been told yet. */
static void append_some(struct model *m)
{
    for (uint64_t n = below(m, m->staged_count - m->logged + 1); n > 0; n--)
        mock_append(&m->bed.mock, &m->staged[m->logged++]);
}

static void flush(struct model *m, size_t count)
{
    uint64_t upto = m->bed.mock.log_count - m->logged + count;
    assert_ok(bed_flush(&m->bed, upto));
    memmove(m->staged, m->staged + count, (STAGED_MAX + 1 - count) * sizeof m->staged[0]);
    m->staged_count -= count;
    m->logged -= count;
}

static void op_flush(struct model *m)
{
    if (m->open && m->staged_count == 0) {
        mock_append(&m->bed.mock, &m->staged[0]);
        m->open = false;
        assert_ok(bed_flush(&m->bed, m->bed.mock.log_count));
    } else if (m->staged_count == 0) {
        assert_status(bed_flush(&m->bed, m->bed.mock.log_count), PAWL_EMISUSE);
    } else {
        append_some(m);
        flush(m, below(m, m->logged + 1));
    }
}

/* Of what was on its way a part may have arrived; the rest never will. */
static void forget(struct model *m)
{
    if (m->open && below(m, 2)) {
        m->staged_count++;
        m->open = false;
    }
    append_some(m);
    m->staged_count = m->logged = 0;
    m->open = false;
}

static void op_actualize(struct model *m)
{
    bool something = m->open || m->staged_count;
    if (!something) {
        assert_status(bed_actualize(&m->bed), PAWL_EMISUSE);
        return;
    }
    forget(m);
    assert_ok(bed_actualize(&m->bed));
    bed_ready(&m->bed);
}

static void op_crash(struct model *m)
{
    forget(m);
    bed_crash(&m->bed);
    assert_ok(bed_new(&m->bed));
    if (below(m, 3) == 0) { /* and again, in the middle of the recovery */
        mem_world_advance(m->bed.world, below(m, 3 * PAWL_MILLISECOND));
        bed_crash(&m->bed);
        assert_ok(bed_new(&m->bed));
    }
    bed_ready(&m->bed);
}

static void op_restart(struct model *m)
{
    forget(m);
    int status = bed_close(&m->bed);
    assert_true(status == PAWL_OK || status == PAWL_ETIMEOUT);
    bed_new_ready(&m->bed);
}

static void op_fault(struct model *m)
{
    m->bed.mock.fail[below(m, MOCK_CALLS)] = (uint32_t)below(m, 4);
    m->bed.mock.tear = (enum mock_tear)below(m, 3);
    m->bed.mock.scan_fails_after = (uint32_t)below(m, 10);
    if (below(m, 4) == 0)
        mem_env_delay(m->bed.env, MEM_WORK, below(m, 30) + 1, below(m, 2 * PAWL_SECOND));
}

static void op_wait(struct model *m)
{
    mem_world_advance(m->bed.world, below(m, 4) ? below(m, 2 * PAWL_MILLISECOND) : below(m, PAWL_SECOND));
}

static const struct {
    void (*run)(struct model *m);
    uint32_t weight;
} ops[] = {{op_start, 20},    {op_next, 40}, {op_stage, 14},  {op_flush, 14}, {op_cancel, 3},
           {op_actualize, 2}, {op_crash, 2}, {op_restart, 1}, {op_fault, 4},  {op_wait, 10}};

static void step(struct model *m)
{
    uint64_t pick = below(m, 110);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        if (pick < ops[i].weight) {
            ops[i].run(m);
            return;
        }
        pick -= ops[i].weight;
    }
}

/* Offsets are 1, 2, 3, ..., and each event's numbers begin where the last one's ended. */
static void check_density(const struct mock *mock)
{
    for (size_t i = 0; i < mock->log_count; i++) {
        const struct mock_event *event = &mock->log[i];
        assert_int_equal(event->offset, i + 1);
        for (uint16_t k = 0; k < event->count; k++) {
            uint64_t before = first_of(event->kind, event->numbers[k].seq) - 1;
            for (size_t j = 0; j < i; j++) {
                uint16_t at = find(&mock->log[j], event->numbers[k].seq);
                if (mock->log[j].wsid == event->wsid && at < mock->log[j].count)
                    before = mock->log[j].numbers[at].number;
            }
            assert_int_equal(event->first[k], before + 1);
            assert_true(event->numbers[k].number >= event->first[k]);
        }
    }
}

static void check_recovered(struct model *m)
{
    static const uint16_t seqs[2][3] = {{SEQ_WLOG, SEQ_INVOICE, 0}, {SEQ_WLOG, SEQ_REC, SEQ_CREC}};
    memset(m->bed.mock.fail, 0, sizeof m->bed.mock.fail);
    forget(m);
    bed_crash(&m->bed);
    bed_new_ready(&m->bed);
    for (uint64_t wsid = 1; wsid < WORKSPACES; wsid++) {
        bed_expect_start(&m->bed, kind_of(wsid), wsid, m->bed.mock.log_count + 1);
        for (size_t i = 0; i < 3 && seqs[wsid % 2][i]; i++) {
            uint64_t expected = expected_next(m, wsid, seqs[wsid % 2][i]);
            if (seqs[wsid % 2][i] != SEQ_CREC || expected <= 200020)
                bed_expect_next(&m->bed, seqs[wsid % 2][i], expected);
        }
        assert_ok(bed_cancel(&m->bed));
    }
    /* And the storage is a faithful summary: never ahead of the log. */
    assert_true(m->bed.mock.stored_last == m->bed.mock.log_count);
}

/* The seed of the history that ran last: PAWL_SEED with it begins there. */
static uint64_t current;

static int print_current(void **state)
{
    print_message("# last history %" PRIu64 "\n", current);
    return 0;
}

TEST(ten_thousand_histories_agree_with_a_plain_array)
{
    uint64_t seed = test_seed(20260101);
    for (uint64_t history = 0; history < HISTORIES; history++) {
        struct model m = {.random = current = seed + history};
        bed_open(&m.bed, test_random(&m.random));
        m.bed.options.limits.workspaces_max = (uint32_t)below(&m, 4) + 1;
        m.bed.options.limits.flush_events = (uint32_t)below(&m, 6) + 1;
        m.bed.options.limits.unflushed_max = 24;
        m.bed.options.limits.recovery_batch = (uint32_t)below(&m, 12) + 1;
        m.bed.options.limits.staged_max = STAGED_MAX;
        m.bed.options.kinds_elsewhere = below(&m, 2);
        m.bed.mock.batch = below(&m, 9) + 1;
        bed_new_ready(&m.bed);
        for (int i = 0; i < OPS; i++)
            step(&m);
        check_density(&m.bed.mock);
        check_recovered(&m);
        bed_release(&m.bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(ten_thousand_histories_agree_with_a_plain_array, print_current),
    };
    return TEST_MAIN(tests);
}

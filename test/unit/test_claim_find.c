/* How far a finder (port/claim_find.h) goes for an entry. test_claim_model.c has what it may believe. */
#include "test/lib/test.h"

#include "port/claim_find.h"

enum { WINDOW = 2048, RUN = 64, EVENTS = 1000000 };

/* A stream whose claims lie every so many records, and whose events have so many fragments. */
struct stream {
    uint64_t reign;
    uint32_t fragments;
    bool zombie; /* the first half of a window behind each claim is the old owner's */
};

static uint64_t records_of(const struct stream *s)
{
    return (uint64_t)EVENTS * s->fragments + EVENTS * (uint64_t)s->fragments / s->reign * (s->zombie ? 1025 : 1)
           + 1;
}

/* Only as far as the finder looks: chains are those of a sound stream. */
static void record_at(const struct stream *s, uint64_t position, struct claim_record *ret)
{
    uint64_t extra = s->zombie ? 1024 : 0, period = s->reign + 1 + extra;
    uint64_t epoch = position / period + 1, within = position % period;
    bool old = within > 0 && within <= extra;
    *ret = (struct claim_record){.position = position, .epoch = epoch, .checksum = position + 1};
    if (within == 0) {
        ret->kind = CLAIM_KIND_CLAIM;
        return;
    }
    uint64_t n = (epoch - 1) * s->reign + within - 1 - (old ? 0 : extra); /* the how many-th fragment */
    ret->kind = CLAIM_KIND_EVENT;
    ret->epoch = old ? epoch - 1 : epoch;
    ret->offset = n / s->fragments + 1;
    ret->fragment = (uint32_t)(n % s->fragments);
    ret->last = ret->fragment + 1 == s->fragments;
    ret->chain = position; /* of the record before */
}

static bool find(const struct stream *s, uint64_t wanted, const struct find_fact *fact, uint64_t high,
                 struct finder *finder, uint32_t *ret_runs, uint64_t *ret_records)
{
    struct finder_options options = {.wanted = wanted,
                                     .low_next = 1,
                                     .high = high,
                                     .guess = FIND_NO_GUESS,
                                     .window = WINDOW,
                                     .run = RUN,
                                     .facts = fact,
                                     .fact_count = fact != NULL};
    enum find_step step;
    uint64_t at;
    uint32_t count;
    *ret_runs = 0;
    *ret_records = 0;
    finder_init(finder, &options);
    while ((step = finder_next(finder, &at, &count)) == FIND_READ) {
        ++*ret_runs;
        for (bool more = true; more && count > 0 && at < high; at++, count--) {
            struct claim_record r;
            record_at(s, at, &r);
            more = finder_take(finder, &r);
            ++*ret_records;
        }
    }
    return step == FIND_FOUND;
}

TEST(an_entry_is_found_by_a_few_runs_however_long_the_stream)
{
    static const struct {
        struct stream stream;
        uint32_t runs;
    } cases[] = {
        {{UINT64_C(1) << 40, 1, false}, 3}, /* one owner: the first guess is right */
        {{10000, 1, false}, 24},            /* claims in between */
        {{10000, 3, false}, 32},            /* fragments */
        {{10000, 1, true}, 40},             /* zombies */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct stream *s = &cases[i].stream;
        uint64_t random = test_seed(1), high = records_of(s);
        for (int n = 0; n < 200; n++) {
            struct finder finder;
            uint32_t runs;
            uint64_t wanted = 1 + test_below(&random, EVENTS - 3 * WINDOW), records;
            if (wanted * s->fragments % s->reign > s->reign - WINDOW * s->fragments
                || wanted * s->fragments % s->reign < 1100)
                continue; /* at the end of a reign the chain is followed, and here it is no real one */
            if (!find(s, wanted, NULL, high, &finder, &runs, &records))
                fail_msg("case %zu: %" PRIu64 " was not found", i, wanted);
            assert_int_equal(finder.record.offset, wanted);
            assert_true(finder.upto >= wanted && finder.upto < EVENTS);
            if (runs > cases[i].runs || records > 4 * WINDOW)
                fail_msg("case %zu: %u runs, %" PRIu64 " records for %" PRIu64, i, runs, records, wanted);
        }
    }
}

TEST(the_end_of_a_stream_of_which_nothing_is_known_is_not_found)
{
    const struct stream s = {UINT64_C(1) << 40, 1, false};
    struct finder finder;
    uint32_t runs;
    uint64_t records, end = EVENTS + 1;
    assert_true(find(&s, EVENTS - WINDOW, NULL, end, &finder, &runs, &records));
    assert_int_equal(finder.upto, EVENTS - WINDOW);
    assert_false(find(&s, EVENTS - WINDOW + 1, NULL, end, &finder, &runs, &records));
    assert_false(find(&s, EVENTS, NULL, end, &finder, &runs, &records));
    assert_false(find(&s, EVENTS + 1, NULL, end, &finder, &runs, &records));
    assert_true(find(&s, EVENTS, &(struct find_fact){1, EVENTS}, end, &finder, &runs, &records));
    assert_int_equal(finder.upto, EVENTS);
}

TEST(the_place_that_is_given_is_looked_at_first)
{
    const struct stream s = {10000, 1, false};
    struct find_fact fact = {50, EVENTS};
    struct finder finder;
    struct claim_record r;
    uint64_t at = 49 * 10001 + 77;
    uint32_t count;
    record_at(&s, at, &r);
    struct finder_options options = {.wanted = r.offset,
                                     .low_next = 1,
                                     .high = EVENTS,
                                     .guess = at,
                                     .window = WINDOW,
                                     .run = RUN,
                                     .facts = &fact,
                                     .fact_count = 1};
    uint64_t position;
    finder_init(&finder, &options);
    assert_int_equal(finder_next(&finder, &position, &count), FIND_READ);
    assert_int_equal(position, at);
    assert_false(finder_take(&finder, &r));
    assert_int_equal(finder_next(&finder, &position, &count), FIND_FOUND);
    assert_int_equal(finder.record.position, at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_found_by_a_few_runs_however_long_the_stream),
        cmocka_unit_test(the_end_of_a_stream_of_which_nothing_is_known_is_not_found),
        cmocka_unit_test(the_place_that_is_given_is_looked_at_first),
    };
    return TEST_MAIN(tests);
}

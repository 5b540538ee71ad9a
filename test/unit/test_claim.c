/* The rules of port/claim.h and port/claim_owner.h, one by one. test_claim_model.c mixes them. */
#include "test/lib/test.h"

#include "port/claim_owner.h"

static struct claim_record claim_of(uint64_t epoch, uint64_t nonce, uint64_t group0)
{
    return (struct claim_record){.kind = CLAIM_KIND_CLAIM,
                                 .epoch = epoch,
                                 .node = nonce / 100,
                                 .nonce = nonce,
                                 .group0 = group0,
                                 .checksum = 7000 + nonce};
}

static struct claim_record fragment_of(uint64_t epoch, uint64_t offset, uint32_t fragment, bool last)
{
    return (struct claim_record){.kind = CLAIM_KIND_EVENT,
                                 .epoch = epoch,
                                 .offset = offset,
                                 .fragment = fragment,
                                 .last = last,
                                 .checksum = epoch * 1000000 + offset * 100 + fragment};
}

static struct claim_record event_of(uint64_t epoch, uint64_t offset)
{
    return fragment_of(epoch, offset, 0, true);
}

/* Judge a record at the next position. The chain is what the judge expects, so that only the rule is tested. */
static enum claim_verdict put(struct judge *j, struct claim_record r)
{
    r.position = j->at;
    if (r.kind == CLAIM_KIND_EVENT)
        r.chain = judge_chain(j);
    return judge_next(j, &r);
}

TEST(a_claim_counts_one_above_the_current_epoch_on_no_older_assignment)
{
    static const struct {
        uint64_t epoch, group0;
        enum claim_verdict verdict;
    } cases[] = {
        {0, 9, CLAIM_STALE},  {1, 9, CLAIM_STALE},  {2, 9, CLAIM_STALE}, {3, 4, CLAIM_OUTRANKED},
        {3, 5, CLAIM_COUNTS}, {3, 9, CLAIM_COUNTS}, {4, 9, CLAIM_EARLY}, {UINT64_MAX, 9, CLAIM_EARLY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct judge j;
        judge_init(&j, 40);
        assert_int_equal(put(&j, claim_of(1, 100, 5)), CLAIM_COUNTS);
        assert_int_equal(put(&j, event_of(1, 1)), CLAIM_COUNTS);
        assert_int_equal(put(&j, claim_of(2, 200, 5)), CLAIM_COUNTS);
        struct judge before = j;
        assert_int_equal(put(&j, claim_of(cases[i].epoch, 300, cases[i].group0)), cases[i].verdict);
        assert_int_equal(j.at, before.at + 1);
        assert_int_equal(j.next, 2);
        if (cases[i].verdict == CLAIM_COUNTS) {
            assert_int_equal(j.epoch, 3);
            assert_int_equal(j.node, 3);
            assert_int_equal(j.nonce, 300);
            assert_int_equal(j.group0, cases[i].group0);
            assert_true(j.chain != before.chain);
        } else {
            before.at++;
            assert_memory_equal(&j, &before, sizeof j);
        }
    }
}

TEST(an_event_counts_in_the_current_epoch_at_the_next_offset)
{
    static const struct {
        uint64_t epoch, offset;
        enum claim_verdict verdict;
    } cases[] = {
        {0, 3, CLAIM_STALE},    {1, 3, CLAIM_STALE},          {2, 3, CLAIM_COUNTS},   {3, 3, CLAIM_EARLY},
        {2, 2, CLAIM_REPEATED}, {2, 1, CLAIM_REPEATED},       {2, 0, CLAIM_REPEATED}, {2, 4, CLAIM_AHEAD},
        {1, 2, CLAIM_STALE},    {2, UINT64_MAX, CLAIM_AHEAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct judge j;
        judge_init(&j, 0);
        assert_int_equal(put(&j, claim_of(1, 100, 0)), CLAIM_COUNTS);
        assert_int_equal(put(&j, event_of(1, 1)), CLAIM_COUNTS);
        assert_int_equal(put(&j, claim_of(2, 200, 0)), CLAIM_COUNTS);
        assert_int_equal(put(&j, event_of(2, 2)), CLAIM_COUNTS);
        assert_int_equal(put(&j, event_of(cases[i].epoch, cases[i].offset)), cases[i].verdict);
        assert_int_equal(j.next, cases[i].verdict == CLAIM_COUNTS ? 4 : 3);
        assert_int_equal(j.at, 5);
    }
}

TEST(nothing_counts_before_the_first_claim)
{
    struct judge j;
    judge_init(&j, 0);
    assert_int_equal(put(&j, event_of(0, 1)), CLAIM_STALE);
    assert_int_equal(put(&j, event_of(1, 1)), CLAIM_EARLY);
    assert_int_equal(put(&j, claim_of(2, 100, 0)), CLAIM_EARLY);
    assert_int_equal(j.next, 1);
}

/* One letter a record: the digits are fragments of event 1 ('.' marks the last, which has index 3), "c" a
 * claim that counts, "n" an event of that claimant, "x" a claim that does not count, "s" an event of an earlier
 * epoch, "o" an event ahead. */
static const struct {
    const char *records;
    uint64_t next;
} fragment_cases[] = {
    {"012.", 2},     /* plain */
    {"012", 1},      /* the last is missing */
    {"01.", 1},      /* one in the middle is missing */
    {"12.", 1},      /* the first is missing */
    {"01012.", 2},   /* a batch sent again after its first half */
    {"0.12.", 2},    /* out of order, and again */
    {"021012.", 2},  /* reordered, then sent again */
    {"01x2.", 2},    /* a rival that loses changes nothing */
    {"01so2.", 2},   /* nor does what does not count */
    {"01c2.", 1},    /* a rival that wins ends it */
    {"01cn", 2},     /* and the winner's event starts afresh */
    {"01c012.", 1},  /* for good */
    {"012.012.", 2}, /* the whole again */
};

TEST(an_event_in_fragments_counts_with_its_last)
{
    for (size_t i = 0; i < sizeof fragment_cases / sizeof fragment_cases[0]; i++) {
        struct judge j;
        judge_init(&j, 0);
        put(&j, claim_of(1, 100, 3));
        put(&j, claim_of(2, 200, 3));
        for (const char *p = fragment_cases[i].records; *p; p++) {
            switch (*p) {
            case 'c': put(&j, claim_of(3, 300, 3)); break;
            case 'x': put(&j, claim_of(3, 300, 2)); break;
            case 's': put(&j, event_of(1, 1)); break;
            case 'n': put(&j, event_of(3, 1)); break;
            case 'o': put(&j, event_of(2, 2)); break;
            case '.': put(&j, fragment_of(2, 1, 3, true)); break;
            default: put(&j, fragment_of(2, 1, (uint32_t)(*p - '0'), false));
            }
        }
        if (j.next != fragment_cases[i].next)
            fail_msg("'%s': next is %" PRIu64, fragment_cases[i].records, j.next);
    }
}

TEST(a_record_that_counts_but_breaks_the_chain_is_corruption)
{
    struct judge j;
    judge_init(&j, 0);
    put(&j, claim_of(1, 100, 0));
    put(&j, event_of(1, 1));
    struct claim_record r = event_of(1, 2);
    r.position = j.at;
    r.chain = judge_chain(&j) + 1;
    struct judge before = j;
    assert_int_equal(judge_next(&j, &r), CLAIM_BROKEN);
    assert_memory_equal(&j, &before, sizeof j);
    assert_int_equal(judge_next(&j, &r), CLAIM_BROKEN);
    r.offset = 3; /* what does not count is not looked at */
    assert_int_equal(judge_next(&j, &r), CLAIM_AHEAD);
    put(&j, fragment_of(1, 2, 0, false));
    r = fragment_of(1, 2, 1, true);
    r.position = j.at;
    r.chain = j.chain; /* of the event before, not of the fragment before */
    assert_int_equal(judge_next(&j, &r), CLAIM_BROKEN);
}

TEST(the_first_event_of_an_owner_carries_all_that_lies_before_its_claim)
{
    struct judge whole, poorer;
    judge_init(&whole, 0);
    put(&whole, claim_of(1, 100, 0));
    poorer = whole;
    put(&whole, event_of(1, 1));
    put(&whole, claim_of(2, 200, 0));
    put(&poorer, claim_of(2, 200, 0)); /* the event is lost */
    poorer.next = whole.next;
    struct claim_record r = event_of(2, 2);
    r.chain = judge_chain(&whole);
    r.position = poorer.at;
    assert_int_equal(judge_next(&poorer, &r), CLAIM_BROKEN);
    r.position = whole.at;
    assert_int_equal(judge_next(&whole, &r), CLAIM_COUNTS);
}

TEST(a_hole_stops_the_judge)
{
    struct judge j;
    judge_init(&j, 10);
    struct claim_record r = claim_of(1, 100, 0);
    r.position = 11;
    assert_int_equal(judge_next(&j, &r), CLAIM_HOLE);
    r.position = 9;
    assert_int_equal(judge_next(&j, &r), CLAIM_HOLE);
    r.position = 10;
    assert_int_equal(judge_next(&j, &r), CLAIM_COUNTS);
}

TEST(every_verdict_has_its_words)
{
#define X(name, text) assert_string_equal(claim_verdict_text(CLAIM_##name), text);
    CLAIM_VERDICT_TABLE(X)
#undef X
    assert_string_equal(claim_verdict_text((enum claim_verdict)99), "?");
}

/* An owner over a stream whose log begins with its own claim at position 0. */
struct writer {
    struct owner owner;
    struct owner_actions actions;
    uint64_t sum;
};

static void own(struct writer *w, uint32_t window)
{
    struct judge j;
    judge_init(&j, 0);
    *w = (struct writer){0};
    assert_ok(owner_init(&w->owner, NULL, window, &j));
    struct claim_record claim;
    assert_ok(owner_claim(&w->owner, 1, 11, 5, &claim));
    assert_int_equal(claim.epoch, 1);
    claim.checksum = 99;
    assert_ok(owner_read(&w->owner, &claim, &w->actions));
    assert_true(w->actions.owning && w->owner.state == OWNER_OWNING);
}

static struct claim_record send_part(struct writer *w, uint32_t records, uint64_t *ret_ticket)
{
    struct claim_record r;
    assert_ok(owner_draft(&w->owner, records, &r));
    r.checksum = ++w->sum;
    *ret_ticket = owner_sent(&w->owner, &r);
    return r;
}

static uint64_t send(struct writer *w)
{
    uint64_t ticket;
    send_part(w, 1, &ticket);
    return ticket;
}

static void feed(struct writer *w, struct claim_record r, uint64_t position)
{
    r.position = position;
    assert_ok(owner_read(&w->owner, &r, &w->actions));
}

static void report(struct writer *w, uint64_t ticket, uint64_t position)
{
    assert_ok(owner_report(&w->owner, ticket, position, &w->actions));
}

TEST(reports_in_any_order_acknowledge_in_order)
{
    struct writer w;
    own(&w, 8);
    uint64_t a = send(&w), b = send(&w), c = send(&w);
    report(&w, c, 3);
    assert_int_equal(w.actions.ack_upto, 0);
    report(&w, a, 1);
    assert_int_equal(w.actions.ack_upto, 1);
    report(&w, b, 2);
    assert_int_equal(w.actions.ack_upto, 3);
    assert_false(w.actions.resolved || w.actions.must_reclaim);
    assert_int_equal(w.owner.count, 0);
    owner_release(&w.owner);
}

TEST(a_gap_is_read_and_if_nobody_claimed_there_the_owner_goes_on)
{
    struct writer w;
    own(&w, 8);
    uint64_t a = send(&w), b = send(&w);
    report(&w, a, 3);
    assert_int_equal(w.actions.ack_upto, 0);
    assert_int_equal(w.actions.read_from, 1);
    assert_int_equal(w.actions.read_to, 3);
    report(&w, b, 4); /* held too, and nothing is asked for twice */
    assert_int_equal(w.actions.ack_upto, 0);
    assert_int_equal(w.actions.read_to, 0);
    feed(&w, event_of(0, 1), 1);
    assert_int_equal(w.actions.ack_upto, 0);
    assert_int_equal(w.actions.verdict, CLAIM_STALE);
    feed(&w, claim_of(1, 200, 9), 2);
    assert_int_equal(w.actions.ack_upto, 2);
    assert_int_equal(w.owner.state, OWNER_OWNING);
    feed(&w, claim_of(1, 200, 9), 2); /* a reader that is behind does no harm */
    assert_int_equal(w.owner.judge.at, 5);
    owner_release(&w.owner);
}

TEST(a_rivals_claim_in_a_gap_fences_and_resolves)
{
    struct writer w;
    own(&w, 8);
    uint64_t a = send(&w), b = send(&w), c = send(&w);
    report(&w, a, 1);
    report(&w, b, 3);
    assert_int_equal(w.actions.read_from, 2);
    report(&w, c, 4);
    feed(&w, claim_of(2, 200, 5), 2);
    assert_true(w.actions.fenced && w.actions.resolved && !w.actions.must_reclaim);
    assert_int_equal(w.actions.ack_upto, 0); /* the first was acknowledged before, the others are lost */
    assert_int_equal(w.owner.state, OWNER_OUT);
    assert_int_equal(w.owner.judge.next, 2);
    struct claim_record r;
    assert_status(owner_draft(&w.owner, 1, &r), PAWL_EFENCED);
    owner_release(&w.owner);
}

TEST(what_counted_before_a_rivals_claim_is_acknowledged_though_its_report_is_late)
{
    struct writer w;
    own(&w, 8);
    uint64_t a, b;
    struct claim_record ra = send_part(&w, 1, &a), rb = send_part(&w, 1, &b);
    report(&w, b, CLAIM_NOWHERE);
    assert_true(w.actions.must_reclaim);
    feed(&w, ra, 1);
    assert_int_equal(w.actions.ack_upto, 1);
    feed(&w, claim_of(2, 200, 5), 2);
    assert_true(w.actions.fenced && w.actions.resolved);
    feed(&w, rb, 3);
    assert_int_equal(w.actions.verdict, CLAIM_STALE);
    assert_int_equal(w.actions.ack_upto, 0);
    report(&w, a, 1); /* late: resolved long ago */
    assert_int_equal(w.actions.ack_upto, 0);
    owner_release(&w.owner);
}

TEST(an_unknown_outcome_is_resolved_by_claiming_again)
{
    struct writer w;
    own(&w, 8);
    uint64_t a, b, c;
    struct claim_record ra = send_part(&w, 1, &a);
    struct claim_record rb = send_part(&w, 1, &b);
    send_part(&w, 1, &c);
    report(&w, b, CLAIM_NOWHERE);
    assert_true(w.actions.must_reclaim);
    assert_int_equal(w.owner.state, OWNER_UNSURE);
    struct claim_record r;
    assert_status(owner_draft(&w.owner, 1, &r), PAWL_EFENCED);
    report(&w, a, 1); /* those before it are still acknowledged as they are reported */
    assert_int_equal(w.actions.ack_upto, 1);
    assert_false(w.actions.must_reclaim);
    report(&w, c, CLAIM_NOWHERE);
    assert_false(w.actions.must_reclaim);

    struct claim_record again;
    assert_ok(owner_claim(&w.owner, 1, 12, 5, &again));
    assert_int_equal(again.epoch, 2);
    assert_status(owner_draft(&w.owner, 1, &r), PAWL_EFENCED);
    feed(&w, ra, 2); /* a copy */
    assert_int_equal(w.actions.verdict, CLAIM_REPEATED);
    feed(&w, rb, 3);
    assert_int_equal(w.actions.ack_upto, 2);
    feed(&w, again, 4);
    assert_true(w.actions.owning && w.actions.resolved && !w.actions.fenced);
    assert_int_equal(w.owner.judge.next, 3);
    assert_ok(owner_draft(&w.owner, 1, &r)); /* the third was never written: its offset is given again */
    assert_int_equal(r.epoch, 2);
    assert_int_equal(r.offset, 3);
    owner_release(&w.owner);
}

TEST(a_claim_that_is_too_late_leaves_the_owner_out)
{
    struct writer w;
    own(&w, 4);
    struct claim_record again;
    assert_ok(owner_claim(&w.owner, 1, 12, 5, &again));
    feed(&w, claim_of(2, 200, 7), 1);
    assert_true(w.actions.fenced);
    feed(&w, again, 2);
    assert_int_equal(w.actions.verdict, CLAIM_STALE);
    assert_int_equal(w.owner.state, OWNER_OUT);
    assert_status(owner_claim(&w.owner, 1, 13, 6, &again), PAWL_EFENCED); /* 200 rests on a newer assignment */
    assert_ok(owner_claim(&w.owner, 1, 13, 7, &again));
    assert_int_equal(again.epoch, 3);
    owner_release(&w.owner);
}

/* Its own claims are those of node 1 with the upper half of nonce 11. */
TEST(a_stream_is_taken_by_a_claim_on_an_assignment_that_is_not_older)
{
    struct writer w;
    own(&w, 4); /* on assignment 5 */
    assert_false(owner_is_taken(&w.owner, 1, 12, 5));
    feed(&w, claim_of(2, 200, 5), 1);
    assert_true(w.actions.fenced);
    assert_true(owner_is_taken(&w.owner, 1, 12, 5));  /* an equal one: nobody takes it back */
    assert_false(owner_is_taken(&w.owner, 1, 12, 6)); /* its own is newer */
    assert_false(owner_is_taken(&w.owner, 1, 12, 0)); /* without one, whoever comes last has it */
    assert_true(owner_is_taken(&w.owner, 2, UINT64_C(1) << 32 | 9, 5)); /* the same node, opened twice */
    owner_release(&w.owner);
}

TEST(a_first_claim_takes_the_stream_of_whoever_had_it)
{
    struct writer w = {0};
    struct judge j;
    struct claim_record claim;
    judge_init(&j, 0);
    assert_ok(owner_init(&w.owner, NULL, 4, &j));
    feed(&w, claim_of(1, 200, 5), 0);
    assert_false(owner_is_taken(&w.owner, 1, 12, 5));
    assert_ok(owner_claim(&w.owner, 1, 12, 5, &claim));
    feed(&w, claim_of(2, 200, 5), 1); /* a rival is faster */
    assert_true(owner_is_taken(&w.owner, 1, 13, 5));
    owner_release(&w.owner);
}

TEST(a_claim_that_was_never_written_may_be_made_again)
{
    struct writer w = {0};
    struct judge j;
    struct claim_record lost, again;
    judge_init(&j, 0);
    assert_ok(owner_init(&w.owner, NULL, 4, &j));
    feed(&w, claim_of(1, 200, 5), 0); /* of whoever had it before, on the same assignment */
    assert_ok(owner_claim(&w.owner, 1, 12, 5, &lost));
    assert_false(owner_is_taken(&w.owner, 1, 13, 5));
    assert_ok(owner_claim(&w.owner, 1, 13, 5, &again));
    feed(&w, again, 1);
    assert_true(w.actions.owning);
    owner_release(&w.owner);
}

TEST(records_that_arrive_out_of_order_make_the_owner_unsure)
{
    struct writer w;
    own(&w, 8);
    uint64_t a, b;
    send_part(&w, 1, &a);
    struct claim_record rb = send_part(&w, 1, &b);
    report(&w, b, 1);
    report(&w, a, 2);
    assert_int_equal(w.actions.read_to, 2);
    feed(&w, rb, 1);
    assert_int_equal(w.actions.ack_upto, 1);
    assert_true(w.actions.must_reclaim); /* the second lies before the first, so it does not count */
    owner_release(&w.owner);
}

TEST(an_event_in_fragments_is_acknowledged_with_its_last)
{
    struct writer w;
    own(&w, 4);
    uint64_t t[4];
    for (int i = 0; i < 3; i++)
        send_part(&w, 3, &t[i]);
    struct claim_record r;
    assert_status(owner_draft(&w.owner, 2, &r), PAWL_EBUSY);
    assert_status(owner_draft(&w.owner, 5, &r), PAWL_ETOOBIG);
    send_part(&w, 1, &t[3]);
    assert_status(owner_draft(&w.owner, 1, &r), PAWL_EBUSY);
    report(&w, t[0], 1);
    report(&w, t[1], 2);
    assert_int_equal(w.actions.ack_upto, 0);
    report(&w, t[2], 3);
    assert_int_equal(w.actions.ack_upto, 1);
    report(&w, t[3], 4);
    assert_int_equal(w.actions.ack_upto, 2);
    owner_release(&w.owner);
}

TEST(what_is_taken_back_was_never_sent)
{
    struct writer w;
    struct claim_record before, after;
    own(&w, 4);
    uint64_t first = send(&w), part;
    assert_ok(owner_draft(&w.owner, 2, &before));
    uint64_t second = w.owner.first + w.owner.count;
    send_part(&w, 2, &part);
    assert_int_equal(part, second);
    send_part(&w, 2, &part);
    send(&w);
    owner_unsend(&w.owner, second);
    assert_ok(owner_draft(&w.owner, 2, &after));
    assert_int_equal(after.offset, before.offset);
    assert_int_equal(after.chain, before.chain);
    assert_int_equal(after.fragment, 0);
    assert_int_equal(send(&w), second);
    report(&w, first, 1);
    report(&w, second, 2);
    assert_int_equal(w.actions.ack_upto, 2);
    owner_release(&w.owner);
}

TEST(a_log_that_is_not_what_was_written_is_corrupt)
{
    struct writer w;
    own(&w, 4);
    struct claim_record r = event_of(1, 1);
    r.position = 1;
    r.chain = 12345;
    assert_status(owner_read(&w.owner, &r, &w.actions), PAWL_ECORRUPT);
    assert_int_equal(w.actions.verdict, CLAIM_BROKEN);
    r.position = 2;
    assert_status(owner_read(&w.owner, &r, &w.actions), PAWL_ECORRUPT);
    assert_int_equal(w.actions.verdict, CLAIM_HOLE);
    owner_release(&w.owner);
}

static void *no_memory(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    return NULL;
}

TEST(an_owner_needs_a_window_and_its_memory)
{
    static const pawl_allocator none = {.resize = no_memory};
    struct owner owner;
    struct judge j;
    judge_init(&j, 0);
    assert_status(owner_init(&owner, NULL, 0, &j), PAWL_EINVAL);
    assert_status(owner_init(&owner, &none, 4, &j), PAWL_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_claim_counts_one_above_the_current_epoch_on_no_older_assignment),
        RUN(an_event_counts_in_the_current_epoch_at_the_next_offset),
        RUN(nothing_counts_before_the_first_claim),
        RUN(an_event_in_fragments_counts_with_its_last),
        RUN(a_record_that_counts_but_breaks_the_chain_is_corruption),
        RUN(the_first_event_of_an_owner_carries_all_that_lies_before_its_claim),
        RUN(a_hole_stops_the_judge),
        RUN(every_verdict_has_its_words),
        RUN(reports_in_any_order_acknowledge_in_order),
        RUN(a_gap_is_read_and_if_nobody_claimed_there_the_owner_goes_on),
        RUN(a_rivals_claim_in_a_gap_fences_and_resolves),
        RUN(what_counted_before_a_rivals_claim_is_acknowledged_though_its_report_is_late),
        RUN(an_unknown_outcome_is_resolved_by_claiming_again),
        RUN(a_claim_that_is_too_late_leaves_the_owner_out),
        RUN(a_stream_is_taken_by_a_claim_on_an_assignment_that_is_not_older),
        RUN(a_first_claim_takes_the_stream_of_whoever_had_it),
        RUN(a_claim_that_was_never_written_may_be_made_again),
        RUN(records_that_arrive_out_of_order_make_the_owner_unsure),
        RUN(an_event_in_fragments_is_acknowledged_with_its_last),
        RUN(what_is_taken_back_was_never_sent),
        RUN(a_log_that_is_not_what_was_written_is_corrupt),
        RUN(an_owner_needs_a_window_and_its_memory),
    };
    return TEST_MAIN(tests);
}

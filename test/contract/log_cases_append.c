/* The log suite: claims, appends, and where their outcomes come. */
#include "test/contract/log_cases.h"

/* Claims. */

void a_claim_gives_growing_epochs_and_the_next_offset(struct log_fixture *f)
{
    uint64_t epoch, next, last = 0;
    for (uint64_t n = 0; n < 5; n++) {
        log_claim_stream(f, raw(1), &epoch, &next);
        assert_true(epoch > last);
        assert_int_equal(next, 1 + 3 * n);
        log_append_some(f, raw(1), epoch, next, 3);
        last = epoch;
    }
    log_claim_stream(f, raw(2), &epoch, &next);
    assert_true(epoch >= 1);
    assert_int_equal(next, 1);
}

/* Two for each of several streams, which are all under way together. */
void claims_of_many_streams_at_once_all_count(struct log_fixture *f)
{
    enum { STREAMS = 4, JOBS = 2 * STREAMS };
    for (int round = 0; round < 5; round++) {
        struct job *jobs[JOBS];
        for (size_t i = 0; i < JOBS; i++) {
            jobs[i] = job_new(f, JOB_CLAIM, raw((uint16_t)(i % STREAMS)));
            assert_ok(job_start(jobs[i]));
        }
        for (size_t i = 0; i < JOBS; i++) {
            job_await(jobs[i]);
            assert_ok(job_status(jobs[i]));
            if (i >= STREAMS)
                assert_true(jobs[i]->claim.epoch > jobs[i - STREAMS]->claim.epoch);
        }
        for (size_t i = 0; i < JOBS; i++)
            job_free(jobs[i]);
    }
}

void an_earlier_epoch_is_fenced_from_the_next_claim_on(struct log_fixture *f)
{
    uint64_t old, now, next;
    log_claim_stream(f, raw(1), &old, NULL);
    log_append_some(f, raw(1), old, 1, 2);
    log_claim_stream(f, raw(1), &now, &next);
    struct job *late = job_new(f, JOB_APPEND, raw(1));
    job_add(late, raw(1), old, 3, 10, 1);
    assert_status(job_run(late), PAWL_EFENCED);
    assert_status(late->entries[0].status, PAWL_EFENCED);
    job_free(late);
    log_append_some(f, raw(1), now, next, 1);
    assert_int_equal(log_tail_of(f, raw(1)), 3);
}

void a_claim_settles_what_is_in_flight(struct log_fixture *f)
{
    uint64_t epoch, next, ok = 0;
    enum { JOBS = 6 };
    struct job *jobs[JOBS], *claim = job_new(f, JOB_CLAIM, raw(1));
    log_claim_stream(f, raw(1), &epoch, NULL);
    for (uint64_t i = 0; i < JOBS; i++) {
        jobs[i] = job_new(f, JOB_APPEND, raw(1));
        job_add(jobs[i], raw(1), epoch, 1 + i, 100, i);
        assert_ok(job_start(jobs[i]));
    }
    assert_ok(job_run(claim));
    next = claim->claim.next;
    for (int i = 0; i < JOBS; i++) {
        job_await(jobs[i]);
        ok += job_status(jobs[i]) == PAWL_OK;
        job_free(jobs[i]);
    }
    assert_int_equal(next, 1 + ok);
    assert_int_equal(log_tail_of(f, raw(1)), ok);
    log_append_some(f, raw(1), claim->claim.epoch, next, 1);
    job_free(claim);
}

/* Appends. */

void entries_read_back_as_they_were_written(struct log_fixture *f)
{
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_append_some(f, raw(1), epoch, 1, 100);
    struct job *read = job_new(f, JOB_READ, raw(1));
    assert_ok(job_run(read));
    assert_int_equal(read->visited, 100);
    assert_int_equal(read->read.next, 101);
    for (uint64_t i = 0; i < 100; i++) {
        struct visit *v = &read->visits[i];
        assert_int_equal(v->offset, i + 1);
        assert_int_equal(v->kind, i + 1);
        assert_int_equal(v->size, 8 + (i + 1) % 50);
        assert_int_equal(v->sum, body_sum(v->size, i + 1));
        assert_true(v->epoch == epoch || v->epoch == 0);
        assert_true(v->place.position > (i ? v[-1].place.position : 0));
    }
    job_free(read);
}

void many_appends_in_flight_are_written_and_come_back_in_order(struct log_fixture *f)
{
    enum { JOBS = 40 };
    struct job *jobs[JOBS];
    uint64_t epoch, offset = 1, position = 0;
    log_claim_stream(f, raw(1), &epoch, NULL);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = job_new(f, JOB_APPEND, raw(1));
        for (int n = 0; n <= i % 3; n++, offset++)
            job_add(jobs[i], raw(1), epoch, offset, 20, offset);
        assert_ok(job_start(jobs[i]));
    }
    for (int i = 0; i < JOBS; i++) {
        job_await(jobs[i]);
        assert_ok(job_status(jobs[i]));
        assert_true(i == 0 || jobs[i]->order > jobs[i - 1]->order);
        for (size_t n = 0; n < jobs[i]->append.count; n++) {
            assert_ok(jobs[i]->entries[n].status);
            assert_true(jobs[i]->entries[n].place.position > position);
            position = jobs[i]->entries[n].place.position;
        }
    }
    for (int i = 0; i < JOBS; i++)
        job_free(jobs[i]);
    assert_int_equal(log_tail_of(f, raw(1)), offset - 1);
}

void outcomes_of_a_stream_come_in_order_refused_ones_too(struct log_fixture *f)
{
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    struct job *a = job_new(f, JOB_APPEND, raw(1)), *b = job_new(f, JOB_APPEND, raw(1)),
               *c = job_new(f, JOB_APPEND, raw(1));
    job_add(a, raw(1), epoch, 1, 100000, 1);
    job_add(b, raw(1), epoch, 7, 1, 1);
    job_add(c, raw(1), epoch, 2, 1, 2);
    assert_ok(job_start(a));
    assert_ok(job_start(b));
    assert_ok(job_start(c));
    job_await(a);
    job_await(b);
    job_await(c);
    assert_ok(job_status(a));
    assert_status(job_status(b), PAWL_EFENCED);
    assert_ok(job_status(c));
    assert_true(a->order < b->order && b->order < c->order);
    job_free(a);
    job_free(b);
    job_free(c);
}

void a_wrong_offset_or_epoch_is_refused_with_the_streams_later_entries_and_nothing_else(struct log_fixture *f)
{
    static const struct {
        uint64_t epoch_by, offset;
    } cases[] = {{0, 2}, {0, 4}, {0, 5}, {0, UINT64_MAX}, {1, 3}, {(uint64_t)-1, 3}};
    uint64_t one, two, next_two = 1;
    log_claim_stream(f, raw(1), &one, NULL);
    log_claim_stream(f, raw(1), &one, NULL);
    log_claim_stream(f, raw(2), &two, NULL);
    log_append_some(f, raw(1), one, 1, 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *job = job_new(f, JOB_APPEND, raw(1));
        job_add(job, raw(2), two, next_two++, 10, 1);
        job_add(job, raw(1), one + cases[i].epoch_by, cases[i].offset, 10, 2);
        job_add(job, raw(1), one, 3, 10, 3);
        job_add(job, raw(2), two, next_two++, 10, 4);
        job_add(job, raw(1), one, 4, 10, 5);
        assert_status(job_run(job), PAWL_EFENCED);
        static const int expected[] = {PAWL_OK, PAWL_EFENCED, PAWL_EFENCED, PAWL_OK, PAWL_EFENCED};
        for (size_t n = 0; n < 5; n++)
            assert_status(job->entries[n].status, expected[n]);
        job_free(job);
    }
    assert_int_equal(log_tail_of(f, raw(1)), 2);
    assert_int_equal(log_tail_of(f, raw(2)), next_two - 1);
    log_append_some(f, raw(1), one, 3, 1); /* a refusal takes nothing from the owner */
}

void entries_before_a_refused_one_are_written(struct log_fixture *f)
{
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    struct job *job = job_new(f, JOB_APPEND, raw(1));
    job_add(job, raw(1), epoch, 1, 10, 1);
    job_add(job, raw(1), epoch, 2, 10, 2);
    job_add(job, raw(1), epoch, 4, 10, 3);
    assert_status(job_run(job), PAWL_EFENCED);
    assert_ok(job->entries[0].status);
    assert_ok(job->entries[1].status);
    assert_status(job->entries[2].status, PAWL_EFENCED);
    job_free(job);
    assert_int_equal(log_tail_of(f, raw(1)), 2);
}

void an_append_without_a_claim_is_refused(struct log_fixture *f)
{
    struct job *job = job_new(f, JOB_APPEND, raw(1));
    job_add(job, raw(1), 1, 1, 10, 1);
    assert_status(job_run(job), PAWL_EFENCED);
    job_free(job);
    assert_int_equal(log_tail_of(f, raw(1)), 0);
}

void a_caller_that_is_alone_gets_the_same_outcome(struct log_fixture *f)
{
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    for (uint64_t i = 1; i <= 20; i++) {
        struct job *job = job_new(f, JOB_APPEND, raw(1));
        job->append.alone = true;
        job_add(job, raw(1), epoch, i, i, i);
        assert_ok(job_run(job));
        assert_true(job->entries[0].place.position > 0);
        job_free(job);
    }
    assert_int_equal(log_tail_of(f, raw(1)), 20);
}

void an_entry_may_be_empty_and_may_be_as_large_as_the_limit(struct log_fixture *f)
{
    static const size_t sizes[] = {0, 1, (size_t)1 << 20, ((size_t)1 << 20) + 1, PAWL_ENTRY_BYTES_MAX, 7};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    for (uint64_t i = 0; i < SIZES; i++) {
        struct job *job = job_new(f, JOB_APPEND, raw(1));
        job_add(job, raw(1), epoch, i + 1, sizes[i], i);
        assert_ok(job_run(job));
        job_free(job);
    }
    struct job *read = job_new(f, JOB_READ, raw(1));
    assert_ok(job_run(read));
    assert_int_equal(read->visited, SIZES);
    for (uint64_t i = 0; i < SIZES; i++) {
        assert_int_equal(read->visits[i].size, sizes[i]);
        assert_int_equal(read->visits[i].sum, body_sum(sizes[i], i));
    }
    job_free(read);
}

void an_entry_over_the_limit_is_refused_and_nothing_of_its_append_is_written(struct log_fixture *f)
{
    uint64_t epoch, other;
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_claim_stream(f, raw(2), &other, NULL);
    struct job *job = job_new(f, JOB_APPEND, raw(1));
    job_add(job, raw(2), other, 1, 10, 1);
    job_add(job, raw(1), epoch, 1, PAWL_ENTRY_BYTES_MAX + 1, 2);
    job_add(job, raw(1), epoch, 2, 10, 3);
    assert_status(job_run(job), PAWL_ETOOBIG);
    assert_status(job->entries[1].status, PAWL_ETOOBIG);
    job_free(job);
    assert_int_equal(log_tail_of(f, raw(1)), 0);
    assert_int_equal(log_tail_of(f, raw(2)), 0);
    log_append_some(f, raw(1), epoch, 1, 1);
}

/* Callbacks. That they come once, on the right thread and not from inside, is checked with every job. */

static void append_next(struct job *job)
{
    if (job->append.status != PAWL_OK || job->entries[0].entry.offset == 50)
        return;
    job->entries[0].entry.offset++;
    job_issue(job);
}

void the_same_append_may_be_made_again_from_inside_its_done(struct log_fixture *f)
{
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    struct job *job = job_new(f, JOB_APPEND, raw(1));
    job_add(job, raw(1), epoch, 1, 30, 1);
    job->then = append_next;
    assert_ok(job_start(job));
    job_await(job); /* it is finished when it is not made again */
    assert_ok(job_status(job));
    assert_int_equal(job->entries[0].entry.offset, 50);
    job_free(job);
    assert_int_equal(log_tail_of(f, raw(1)), 50);
}

/* claim ──► append ──► read, tail and follow, each from inside the done of the one before. */
struct chain {
    struct job *claim, *append, *read, *tail, *follow;
};

static struct chain chain;

static void chain_read(struct job *job)
{
    job_issue(chain.read);
    job_issue(chain.tail);
    job_issue(chain.follow);
}

static void chain_append(struct job *job)
{
    chain.append->entries[0].entry.epoch = job->claim.epoch;
    job_issue(chain.append);
}

static bool chain_ended(void *arg)
{
    return chain.claim->finished && chain.append->finished && chain.read->finished && chain.tail->finished
           && chain.follow->finished;
}

void any_call_may_be_made_from_inside_done_and_sees_what_was_acknowledged(struct log_fixture *f)
{
    chain = (struct chain){job_new(f, JOB_CLAIM, raw(3)), job_new(f, JOB_APPEND, raw(3)),
                           job_new(f, JOB_READ, raw(3)), job_new(f, JOB_TAIL, raw(3)),
                           job_new(f, JOB_FOLLOW, raw(3))};
    job_add(chain.append, raw(3), 0, 1, 10, 1);
    chain.claim->then = chain_append;
    chain.append->then = chain_read;
    chain.follow->stop_after = 1;
    assert_ok(job_start(chain.claim));
    log_await(f, chain_ended, NULL);
    assert_ok(job_status(chain.append));
    assert_int_equal(chain.read->visited, 1);
    assert_int_equal(chain.tail->tail.last, 1);
    assert_int_equal(chain.follow->visited, 1);
    job_free(chain.claim);
    job_free(chain.append);
    job_free(chain.read);
    job_free(chain.tail);
    job_free(chain.follow);
}

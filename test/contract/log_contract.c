/* What port/log.h promises, sentence by sentence. The random test against a model is in log_model.c. */
#include "test/contract/log_contract.h"

#include "test/contract/log_fixture.h"
#include "test/contract/log_model.h"

#define CONTRACT(name) static void name##_in(struct log_fixture *f)

/* Claims. */

CONTRACT(a_claim_gives_growing_epochs_and_the_next_offset)
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

CONTRACT(an_earlier_epoch_is_fenced_from_the_next_claim_on)
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

CONTRACT(a_claim_settles_what_is_in_flight)
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

CONTRACT(entries_read_back_as_they_were_written)
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

CONTRACT(many_appends_in_flight_are_written_and_come_back_in_order)
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

CONTRACT(outcomes_of_a_stream_come_in_order_refused_ones_too)
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

CONTRACT(a_wrong_offset_or_epoch_is_refused_with_the_streams_later_entries_and_nothing_else)
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

CONTRACT(entries_before_a_refused_one_are_written)
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

CONTRACT(an_append_without_a_claim_is_refused)
{
    struct job *job = job_new(f, JOB_APPEND, raw(1));
    job_add(job, raw(1), 1, 1, 10, 1);
    assert_status(job_run(job), PAWL_EFENCED);
    job_free(job);
    assert_int_equal(log_tail_of(f, raw(1)), 0);
}

CONTRACT(a_caller_that_is_alone_gets_the_same_outcome)
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

CONTRACT(an_entry_may_be_empty_and_may_be_as_large_as_the_limit)
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

CONTRACT(an_entry_over_the_limit_is_refused_and_nothing_of_its_append_is_written)
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

static bool has_fifty(void *arg)
{
    struct job *job = arg;
    return job->finished && job->entries[0].entry.offset == 50;
}

CONTRACT(the_same_append_may_be_made_again_from_inside_its_done)
{
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    struct job *job = job_new(f, JOB_APPEND, raw(1));
    job_add(job, raw(1), epoch, 1, 30, 1);
    job->then = append_next;
    assert_ok(job_start(job));
    log_await(f, has_fifty, job);
    assert_ok(job_status(job));
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
    return chain.append->finished && chain.read->finished && chain.tail->finished && chain.follow->finished;
}

CONTRACT(any_call_may_be_made_from_inside_done_and_sees_what_was_acknowledged)
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

/* Reads. */

CONTRACT(a_read_keeps_to_from_and_limit_and_stops_when_told)
{
    static const struct {
        uint64_t from, limit;
        size_t stop_after, visited;
    } cases[] = {
        {1, UINT64_MAX, 0, 90}, {1, 1, 0, 1},   {1, 90, 0, 90}, {1, 91, 0, 90},
        {40, 10, 0, 10},        {90, 10, 0, 1}, {91, 10, 0, 0}, {1000, 10, 0, 0},
        {5, UINT64_MAX, 1, 1},  {5, 3, 3, 3},   {5, 10, 4, 4},  {UINT64_MAX, UINT64_MAX, 0, 0},
    };
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_append_some(f, raw(1), epoch, 1, 90);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *read = job_new(f, JOB_READ, raw(1));
        read->read.from = cases[i].from;
        read->read.limit = cases[i].limit;
        read->stop_after = cases[i].stop_after;
        assert_ok(job_run(read));
        assert_int_equal(read->visited, cases[i].visited);
        assert_int_equal(read->read.next, cases[i].from + cases[i].visited);
        for (size_t n = 0; n < read->visited; n++)
            assert_int_equal(read->visits[n].offset, cases[i].from + n);
        job_free(read);
    }
}

CONTRACT(a_place_may_be_given_back_and_one_that_does_not_fit_does_no_harm)
{
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_claim_stream(f, raw(2), &epoch, NULL);
    log_append_some(f, raw(2), epoch, 1, 10);
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_append_some(f, raw(1), epoch, 1, 60);
    struct job *all = job_new(f, JOB_READ, raw(1));
    assert_ok(job_run(all));
    const struct visit *v = all->visits;
    const struct {
        uint64_t from;
        pawl_place at;
    } cases[] = {
        {30, v[29].place},                                  /* its own */
        {30, v[0].place},                                   /* an earlier entry's */
        {30, v[59].place},                                  /* a later entry's */
        {30, {v[29].place.position + 1, v[29].place.hint}}, /* in the middle of nowhere */
        {30, {v[29].place.position, ~v[29].place.hint}},    /* a hint that is not one */
        {30, {UINT64_MAX, UINT64_MAX}},                     /* far behind the end */
        {1, {1, 1}},
        {61, v[59].place},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *read = job_new(f, JOB_READ, raw(1));
        read->read.from = cases[i].from;
        read->read.limit = 5;
        read->read.at = cases[i].at;
        assert_ok(job_run(read));
        assert_int_equal(read->visited, cases[i].from == 61 ? 0 : 5);
        for (size_t n = 0; n < read->visited; n++) {
            assert_int_equal(read->visits[n].offset, cases[i].from + n);
            assert_int_equal(read->visits[n].sum, v[cases[i].from + n - 1].sum);
            assert_int_equal(read->visits[n].place.position, v[cases[i].from + n - 1].place.position);
        }
        job_free(read);
    }
    job_free(all);
}

CONTRACT(an_appends_place_is_the_one_that_a_read_shows)
{
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    struct job *job = job_new(f, JOB_APPEND, raw(1)), *read = job_new(f, JOB_READ, raw(1));
    for (uint64_t i = 1; i <= 5; i++)
        job_add(job, raw(1), epoch, i, 100, i);
    assert_ok(job_run(job));
    assert_ok(job_run(read));
    for (int i = 0; i < 5; i++)
        assert_int_equal(job->entries[i].place.position, read->visits[i].place.position);
    job_free(job);
    job_free(read);
}

CONTRACT(a_stream_that_was_never_written_is_empty)
{
    struct job *read =
        job_new(f, JOB_READ, (pawl_stream){.kind = PAWL_STREAM_OPLOG, .partition = 9, .lane = 3});
    read->read.from = 7;
    assert_ok(job_run(read));
    assert_int_equal(read->visited, 0);
    assert_int_equal(read->read.next, 7);
    job_free(read);
    assert_int_equal(log_tail_of(f, (pawl_stream){.kind = PAWL_STREAM_GROUP0}), 0);
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    assert_int_equal(log_tail_of(f, raw(1)), 0); /* claimed, but not written */
}

CONTRACT(streams_that_differ_in_any_field_are_different)
{
    static const pawl_stream streams[] = {
        {.kind = PAWL_STREAM_RAW, .partition = 1},
        {.kind = PAWL_STREAM_PLOG, .partition = 1},
        {.kind = PAWL_STREAM_PLOG, .partition = 2},
        {.kind = PAWL_STREAM_OPLOG, .partition = 1, .lane = 1},
        {.kind = PAWL_STREAM_OPLOG, .partition = 1, .lane = 2},
        {.kind = PAWL_STREAM_OPLOG, .partition = 1, .lane = 1, .generation = 1},
        {.kind = PAWL_STREAM_GROUP0},
    };
    enum { STREAMS = sizeof streams / sizeof streams[0] };
    struct job *job = job_new(f, JOB_APPEND, raw(1));
    for (uint64_t i = 0; i < STREAMS; i++) {
        uint64_t epoch;
        log_claim_stream(f, streams[i], &epoch, NULL);
        for (uint64_t n = 0; n <= i; n++)
            job_add(job, streams[i], epoch, n + 1, 20, i * 100 + n);
    }
    assert_ok(job_run(job));
    job_free(job);
    for (uint64_t i = 0; i < STREAMS; i++) {
        struct job *read = job_new(f, JOB_READ, streams[i]);
        assert_ok(job_run(read));
        assert_int_equal(read->visited, i + 1);
        for (uint64_t n = 0; n <= i; n++)
            assert_int_equal(read->visits[n].sum, body_sum(20, i * 100 + n));
        job_free(read);
    }
}

/* Follows. */

static void unfollow_task(pawl_task *task)
{
    struct job *follow = (struct job *)(void *)((char *)task - offsetof(struct job, task));
    follow->call = pawl_log_unfollow(follow->log, &follow->follow);
}

/* On the thread that called follow. */
static void unfollow(struct job *follow)
{
    if (follow->f->foreign) {
        unfollow_task(&follow->task);
    } else {
        follow->task.fn = unfollow_task;
        assert_ok(pawl_env_post(follow->f->env, 0, &follow->task));
    }
    job_await(follow);
    assert_ok(follow->call);
    assert_status(job_status(follow), PAWL_ECLOSED);
}

static void check_visits(const struct job *job, uint64_t from)
{
    for (uint64_t i = 0; i < job->visited; i++) {
        assert_int_equal(job->visits[i].offset, from + i);
        assert_int_equal(job->visits[i].sum, body_sum(job->visits[i].size, from + i));
    }
}

CONTRACT(a_follow_visits_what_is_there_and_then_what_comes)
{
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_append_some(f, raw(1), epoch, 1, 30);
    struct job *follow = job_new(f, JOB_FOLLOW, raw(1)), *other = job_new(f, JOB_FOLLOW, raw(1));
    follow->follow.from = 11;
    assert_ok(job_start(follow));
    assert_ok(job_start(other));
    job_await_visits(follow, 20);
    for (uint64_t n = 31; n < 60; n += 3)
        log_append_some(f, raw(1), epoch, n, 3);
    job_await_visits(follow, 50);
    job_await_visits(other, 60);
    check_visits(follow, 11);
    check_visits(other, 1);
    unfollow(other);
    assert_int_equal(follow->finished, false);
    log_append_some(f, raw(1), epoch, 61, 1);
    job_await_visits(follow, 51);
    unfollow(follow);
    assert_int_equal(follow->follow.next, 62);
    assert_int_equal(other->follow.next, 61);
    log_append_some(f, raw(1), epoch, 62, 1); /* nobody looks any more */
    assert_int_equal(follow->visited, 51);
    job_free(follow);
    job_free(other);
}

CONTRACT(a_follow_may_start_in_the_future)
{
    uint64_t epoch;
    struct job *follow = job_new(f, JOB_FOLLOW, raw(1));
    follow->follow.from = 6;
    follow->stop_after = 2;
    assert_ok(job_start(follow));
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_append_some(f, raw(1), epoch, 1, 5);
    assert_int_equal(follow->visited, 0);
    log_append_some(f, raw(1), epoch, 6, 3);
    job_await(follow);
    assert_ok(job_status(follow));
    assert_int_equal(follow->visited, 2);
    assert_int_equal(follow->follow.next, 8);
    check_visits(follow, 6);
    job_free(follow);
}

CONTRACT(a_follow_may_be_ended_from_inside_its_visit)
{
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_append_some(f, raw(1), epoch, 1, 10);
    struct job *stopped = job_new(f, JOB_FOLLOW, raw(1)), *ended = job_new(f, JOB_FOLLOW, raw(1));
    stopped->stop_after = ended->stop_after = 4;
    ended->unfollow_then = true;
    assert_ok(job_run(stopped));
    assert_status(job_run(ended), PAWL_ECLOSED);
    assert_int_equal(stopped->visited, 4);
    assert_int_equal(ended->visited, 4);
    assert_int_equal(stopped->follow.next, 5);
    assert_int_equal(ended->follow.next, 5);
    job_free(stopped);
    job_free(ended);
}

CONTRACT(an_idle_follow_can_be_ended)
{
    struct job *follow = job_new(f, JOB_FOLLOW, raw(5));
    assert_ok(job_start(follow));
    unfollow(follow);
    assert_int_equal(follow->visited, 0);
    assert_int_equal(follow->follow.next, 1);
    job_free(follow);
}

/* Closing, and what remains. */

CONTRACT(close_with_a_request_outstanding_is_misuse)
{
    struct job *follow = job_new(f, JOB_FOLLOW, raw(1));
    assert_ok(job_start(follow));
    assert_status(pawl_log_close(f->log), PAWL_EMISUSE);
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL); /* and it is still open */
    log_append_some(f, raw(1), epoch, 1, 1);
    job_await_visits(follow, 1);
    unfollow(follow);
    job_free(follow);
}

CONTRACT(what_was_acknowledged_is_there_after_reopening)
{
    uint64_t epoch, last = 0, next;
    for (uint64_t round = 0; round < 3; round++) {
        log_claim_stream(f, raw(1), &epoch, &next);
        assert_true(epoch > last);
        assert_int_equal(next, round * 70 + 1);
        last = epoch;
        log_append_some(f, raw(1), epoch, next, 70);
        log_fixture_reopen(f);
        struct job *read = job_new(f, JOB_READ, raw(1));
        assert_ok(job_run(read)); /* without a claim */
        assert_int_equal(read->visited, (round + 1) * 70);
        check_visits(read, 1);
        job_free(read);
    }
    struct job *late = job_new(f, JOB_APPEND, raw(1)); /* an epoch of before is no claim of this process */
    job_add(late, raw(1), last, 211, 10, 1);
    assert_status(job_run(late), PAWL_EFENCED);
    job_free(late);
}

CONTRACT(what_was_acknowledged_is_there_after_a_crash_and_the_rest_is_a_dense_tail)
{
    if (!f->contract->crash)
        skip();
    uint64_t epoch, next;
    enum { JOBS = 8 };
    struct job *jobs[JOBS];
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_append_some(f, raw(1), epoch, 1, 40);
    for (uint64_t i = 0; i < JOBS; i++) {
        jobs[i] = job_new(f, JOB_APPEND, raw(1));
        job_add(jobs[i], raw(1), epoch, 41 + i, 8 + (41 + i) % 50, 41 + i);
        assert_ok(job_start(jobs[i]));
    }
    job_await(jobs[2]);
    uint64_t acked = 40;
    for (int i = 0; i < JOBS; i++)
        acked += jobs[i]->finished;
    log_fixture_crash(f);
    for (int i = 0; i < JOBS; i++)
        job_free(jobs[i]);
    log_claim_stream(f, raw(1), &epoch, &next);
    assert_true(next > acked && next <= 41 + JOBS);
    struct job *read = job_new(f, JOB_READ, raw(1));
    assert_ok(job_run(read));
    assert_int_equal(read->visited, next - 1);
    check_visits(read, 1);
    job_free(read);
    log_append_some(f, raw(1), epoch, next, 5);
}

/* What is not a request. */

static bool no_visit(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    return false;
}

CONTRACT(malformed_requests_are_refused_by_the_call)
{
    static const pawl_stream bad[] = {
        {0}, {.kind = 9}, {.kind = PAWL_STREAM_RAW, .lane = 1}, {.kind = PAWL_STREAM_GROUP0, .partition = 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (enum job_kind kind = JOB_CLAIM; kind <= JOB_TAIL; kind++) {
            struct job *job = job_new(f, kind, bad[i]);
            if (kind == JOB_APPEND)
                job_add(job, bad[i], 1, 1, 1, 1);
            assert_status(job_start(job), PAWL_EINVAL);
            job_free(job);
        }
    }
    struct job *empty = job_new(f, JOB_APPEND, raw(1)), *zero = job_new(f, JOB_APPEND, raw(1)),
               *nothing = job_new(f, JOB_APPEND, raw(1)), *read = job_new(f, JOB_READ, raw(1)),
               *blind = job_new(f, JOB_READ, raw(1)), *mute = job_new(f, JOB_READ, raw(1)),
               *follow = job_new(f, JOB_FOLLOW, raw(1));
    assert_status(job_start(empty), PAWL_EINVAL);
    job_add(zero, raw(1), 1, 0, 1, 1);
    assert_status(job_start(zero), PAWL_EINVAL);
    job_add(nothing, raw(1), 1, 1, 0, 1);
    nothing->entries[0].entry.body.size = 1;
    assert_status(job_start(nothing), PAWL_EINVAL);
    read->read.from = 0;
    assert_status(job_start(read), PAWL_EINVAL);
    blind->read.visit = NULL;
    assert_status(job_start(blind), PAWL_EINVAL);
    mute->read.visit = no_visit;
    mute->read.done = NULL;
    assert_status(job_start(mute), PAWL_EINVAL);
    follow->follow.from = 0;
    assert_status(job_start(follow), PAWL_EINVAL);
    job_free(empty);
    job_free(zero);
    job_free(nothing);
    job_free(read);
    job_free(blind);
    job_free(mute);
    job_free(follow);
}

/* Rivals. */

static void claim_as(struct log_fixture *f, pawl_log *log, uint64_t *ret_epoch, uint64_t *ret_next)
{
    pawl_log *own = f->log;
    f->log = log;
    log_claim_stream(f, raw(1), ret_epoch, ret_next);
    f->log = own;
}

CONTRACT(a_rivals_claim_fences_this_log_and_both_see_the_same)
{
    if (!f->contract->rival)
        skip();
    pawl_log *own = f->log, *rival = f->contract->rival(f->impl);
    uint64_t mine, his, next;
    log_claim_stream(f, raw(1), &mine, NULL);
    log_append_some(f, raw(1), mine, 1, 5);
    struct job *follow = job_new(f, JOB_FOLLOW, raw(1));
    follow->stop_after = 9;
    assert_ok(job_start(follow));
    claim_as(f, rival, &his, &next);
    assert_true(his > mine);
    assert_int_equal(next, 6);
    struct job *late = job_new(f, JOB_APPEND, raw(1));
    job_add(late, raw(1), mine, 6, 10, 99);
    assert_status(job_run(late), PAWL_EFENCED);
    job_free(late);
    f->log = rival;
    log_append_some(f, raw(1), his, 6, 2);
    f->log = own;
    claim_as(f, own, &mine, &next);
    assert_true(mine > his);
    assert_int_equal(next, 8);
    log_append_some(f, raw(1), mine, 8, 2);
    job_await(follow);
    assert_ok(job_status(follow));
    check_visits(follow, 1);
    job_free(follow);
    f->log = rival;
    assert_int_equal(log_tail_of(f, raw(1)), 9);
    f->log = own;
    assert_ok(pawl_log_close(rival));
}

CONTRACT(random_pipelined_appends_agree_with_a_model)
{
    log_model_run(f, test_seed(1));
}

#define LOG_CONTRACT_TESTS(X)                                                                                  \
    X(a_claim_gives_growing_epochs_and_the_next_offset)                                                        \
    X(an_earlier_epoch_is_fenced_from_the_next_claim_on)                                                       \
    X(a_claim_settles_what_is_in_flight)                                                                       \
    X(entries_read_back_as_they_were_written)                                                                  \
    X(many_appends_in_flight_are_written_and_come_back_in_order)                                               \
    X(outcomes_of_a_stream_come_in_order_refused_ones_too)                                                     \
    X(a_wrong_offset_or_epoch_is_refused_with_the_streams_later_entries_and_nothing_else)                      \
    X(entries_before_a_refused_one_are_written)                                                                \
    X(an_append_without_a_claim_is_refused)                                                                    \
    X(a_caller_that_is_alone_gets_the_same_outcome)                                                            \
    X(an_entry_may_be_empty_and_may_be_as_large_as_the_limit)                                                  \
    X(an_entry_over_the_limit_is_refused_and_nothing_of_its_append_is_written)                                 \
    X(the_same_append_may_be_made_again_from_inside_its_done)                                                  \
    X(any_call_may_be_made_from_inside_done_and_sees_what_was_acknowledged)                                    \
    X(a_read_keeps_to_from_and_limit_and_stops_when_told)                                                      \
    X(a_place_may_be_given_back_and_one_that_does_not_fit_does_no_harm)                                        \
    X(an_appends_place_is_the_one_that_a_read_shows)                                                           \
    X(a_stream_that_was_never_written_is_empty)                                                                \
    X(streams_that_differ_in_any_field_are_different)                                                          \
    X(a_follow_visits_what_is_there_and_then_what_comes)                                                       \
    X(a_follow_may_start_in_the_future)                                                                        \
    X(a_follow_may_be_ended_from_inside_its_visit)                                                             \
    X(an_idle_follow_can_be_ended)                                                                             \
    X(close_with_a_request_outstanding_is_misuse)                                                              \
    X(what_was_acknowledged_is_there_after_reopening)                                                          \
    X(what_was_acknowledged_is_there_after_a_crash_and_the_rest_is_a_dense_tail)                               \
    X(malformed_requests_are_refused_by_the_call)                                                              \
    X(a_rivals_claim_fences_this_log_and_both_see_the_same)                                                    \
    X(random_pipelined_appends_agree_with_a_model)

struct run {
    const struct log_contract *contract;
    bool foreign;
    struct log_fixture *f;
};

static int open_run(void **state)
{
    struct run *run = *state;
    run->f = log_fixture_open(run->contract, run->foreign);
    return 0;
}

static int close_run(void **state)
{
    struct run *run = *state;
    log_fixture_close(run->f);
    return 0;
}

#define X(name)                                                                                                \
    static void name(void **state)                                                                             \
    {                                                                                                          \
        name##_in(((struct run *)*state)->f);                                                                  \
    }
LOG_CONTRACT_TESTS(X)
#undef X

int log_contract_run(const char *name, const struct log_contract *contract)
{
    static struct run shard, foreign;
    shard = (struct run){contract, false, NULL};
    foreign = (struct run){contract, true, NULL};
    const struct CMUnitTest tests[] = {
#define X(test) {#test "_from_a_shard", test, open_run, close_run, &shard},
        LOG_CONTRACT_TESTS(X)
#undef X
#define X(test) {#test "_from_elsewhere", test, open_run, close_run, &foreign},
            LOG_CONTRACT_TESTS(X)
#undef X
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

/* The log suite: reads and follows. */
#include "test/contract/log_cases.h"

/* Reads. */

void a_read_keeps_to_from_and_limit_and_stops_when_told(struct log_fixture *f)
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

void a_place_may_be_given_back_and_one_that_does_not_fit_does_no_harm(struct log_fixture *f)
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

void an_appends_place_is_the_one_that_a_read_shows(struct log_fixture *f)
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

void a_stream_that_was_never_written_is_empty(struct log_fixture *f)
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

void streams_that_differ_in_any_field_are_different(struct log_fixture *f)
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

void a_follow_visits_what_is_there_and_then_what_comes(struct log_fixture *f)
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
    job_check_visits(follow, 11);
    job_check_visits(other, 1);
    job_unfollow(other);
    assert_false(job_is_finished(follow));
    log_append_some(f, raw(1), epoch, 61, 1);
    job_await_visits(follow, 51);
    job_unfollow(follow);
    assert_int_equal(follow->follow.next, 62);
    assert_int_equal(other->follow.next, 61);
    log_append_some(f, raw(1), epoch, 62, 1); /* nobody looks any more */
    assert_int_equal(follow->visited, 51);
    job_free(follow);
    job_free(other);
}

void a_follow_may_start_in_the_future(struct log_fixture *f)
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
    job_check_visits(follow, 6);
    job_free(follow);
}

void a_follow_may_be_ended_from_inside_its_visit(struct log_fixture *f)
{
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_append_some(f, raw(1), epoch, 1, 10);
    struct job *stopped = job_new(f, JOB_FOLLOW, raw(1)), *ended = job_new(f, JOB_FOLLOW, raw(1));
    stopped->stop_after = ended->stop_after = 4;
    ended->unfollow_then = true;
    assert_ok(job_run(stopped));
    assert_status(job_run(ended), PAWL_ECLOSED);
    assert_ok(ended->unfollowed);
    assert_int_equal(stopped->visited, 4);
    assert_int_equal(ended->visited, 4);
    assert_int_equal(stopped->follow.next, 5);
    assert_int_equal(ended->follow.next, 5);
    job_free(stopped);
    job_free(ended);
}

void an_idle_follow_can_be_ended(struct log_fixture *f)
{
    struct job *follow = job_new(f, JOB_FOLLOW, raw(3));
    assert_ok(job_start(follow));
    job_unfollow(follow);
    assert_int_equal(follow->visited, 0);
    assert_int_equal(follow->follow.next, 1);
    job_free(follow);
}

static bool count_in_order(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    uint64_t *seen = read->arg;
    return entry->offset == read->from + *seen && ++*seen < 50;
}

static void never_done(pawl_read *read)
{
    abort();
}

void a_read_alone_is_over_when_the_call_returns(struct log_fixture *f)
{
    uint64_t epoch, seen = 0;
    log_claim_stream(f, raw(1), &epoch, NULL);
    log_append_some(f, raw(1), epoch, 1, 90);
    pawl_read read = {.stream = raw(1),
                      .from = 11,
                      .limit = 40,
                      .alone = true,
                      .visit = count_in_order,
                      .done = never_done,
                      .arg = &seen};
    assert_int_equal(pawl_log_read(f->log, &read), PAWL_READ_DONE);
    assert_ok(read.status);
    assert_int_equal(seen, 40);
    assert_int_equal(read.next, 51);
    seen = 0;
    read.limit = UINT64_MAX;
    read.done = NULL;
    assert_int_equal(pawl_log_read(f->log, &read), PAWL_READ_DONE);
    assert_int_equal(seen, 50); /* and stops when it is told to */
    assert_int_equal(read.next, 61);
}

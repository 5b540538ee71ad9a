/* The log suite: what is left after closing and crashing, malformed requests, rivals, and the model. */
#include "test/contract/log_cases.h"
#include "test/contract/log_model.h"

/* Closing, and what remains. */

void close_with_a_request_outstanding_is_misuse(struct log_fixture *f)
{
    struct job *follow = job_new(f, JOB_FOLLOW, raw(1));
    assert_ok(job_start(follow));
    assert_status(pawl_log_close(f->log), PAWL_EMISUSE);
    uint64_t epoch;
    log_claim_stream(f, raw(1), &epoch, NULL); /* and it is still open */
    log_append_some(f, raw(1), epoch, 1, 1);
    job_await_visits(follow, 1);
    job_unfollow(follow);
    job_free(follow);
}

void what_was_acknowledged_is_there_after_reopening(struct log_fixture *f)
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
        job_check_visits(read, 1);
        job_free(read);
    }
    struct job *late = job_new(f, JOB_APPEND, raw(1)); /* an epoch of before is no claim of this process */
    job_add(late, raw(1), last, 211, 10, 1);
    assert_status(job_run(late), PAWL_EFENCED);
    job_free(late);
}

void what_was_acknowledged_is_there_after_a_crash_and_the_rest_is_a_dense_tail(struct log_fixture *f)
{
    if (!f->contract->crash) {
        print_message("# not tried: this log cannot be made to crash\n");
        return;
    }
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
        acked += job_is_finished(jobs[i]) && job_status(jobs[i]) == PAWL_OK;
    log_fixture_crash(f);
    for (int i = 0; i < JOBS; i++)
        job_free(jobs[i]);
    log_claim_stream(f, raw(1), &epoch, &next);
    assert_true(next > acked && next <= 41 + JOBS);
    struct job *read = job_new(f, JOB_READ, raw(1));
    assert_ok(job_run(read));
    assert_int_equal(read->visited, next - 1);
    job_check_visits(read, 1);
    job_free(read);
    log_append_some(f, raw(1), epoch, next, 5);
}

/* What is not a request. */

static bool no_visit(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    return false;
}

void malformed_requests_are_refused_by_the_call(struct log_fixture *f)
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

void a_rivals_claim_fences_this_log_and_both_see_the_same(struct log_fixture *f)
{
    if (!f->contract->rival) {
        print_message("# not tried: this log can have no rival\n");
        return;
    }
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
    job_check_visits(follow, 1);
    job_free(follow);
    f->log = rival;
    assert_int_equal(log_tail_of(f, raw(1)), 9);
    f->log = own;
    assert_ok(pawl_log_close(rival));
}

void random_pipelined_appends_agree_with_a_model(struct log_fixture *f)
{
    log_model_run(f, test_seed(1));
}

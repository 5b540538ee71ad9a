#include "test/contract/log_fixture.h"

#include "base/hash.h"
#include "base/heap.h"
#include "base/wait.h"

static _Thread_local const struct job *calling;
static _Thread_local const struct job *finishing; /* until it is issued again from inside its own done */

struct log_fixture *log_fixture_open(const struct log_contract *contract, bool foreign)
{
    struct log_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->contract = contract;
    f->foreign = foreign;
    pthread_mutex_init(&f->mutex, NULL);
    cond_init(&f->cond);
    f->impl = contract->open(&f->env, &f->log);
    return f;
}

void log_fixture_close(struct log_fixture *f)
{
    assert_ok(pawl_log_close(f->log));
    f->contract->free(f->impl);
    pthread_cond_destroy(&f->cond);
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

void log_fixture_reopen(struct log_fixture *f)
{
    assert_ok(pawl_log_close(f->log));
    f->contract->reopen(f->impl, &f->env, &f->log);
}

void log_fixture_crash(struct log_fixture *f)
{
    f->contract->crash(f->impl, &f->env, &f->log);
}

static void note(struct log_fixture *f, const char *wrong)
{
    if (!f->wrong)
        f->wrong = wrong;
}

void log_await(struct log_fixture *f, bool (*holds)(void *arg), void *arg)
{
    bool held = true;
    const char *wrong;
    if (f->contract->drive) {
        held = holds(arg) || f->contract->drive(f->impl, holds, arg);
    } else {
        uint64_t end = wait_deadline(120 * PAWL_SECOND);
        pthread_mutex_lock(&f->mutex);
        while (!holds(arg) && held)
            held = cond_wait_until(&f->cond, &f->mutex, end);
        pthread_mutex_unlock(&f->mutex);
    }
    pthread_mutex_lock(&f->mutex);
    wrong = f->wrong;
    pthread_mutex_unlock(&f->mutex);
    if (wrong)
        fail_msg("%s", wrong);
    if (!held)
        fail_msg("what was waited for never came");
}

/* Bodies. */

static void body_fill(uint8_t *at, size_t size, uint64_t salt)
{
    uint64_t state = salt;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t v = test_random(&state);
        memcpy(at + i, &v, size - i < 8 ? size - i : 8);
    }
}

pawl_bytes body_new(size_t size, uint64_t salt)
{
    uint8_t *at = size ? malloc(size) : NULL;
    assert_true(at || size == 0);
    body_fill(at, size, salt);
    return (pawl_bytes){at, size};
}

uint64_t body_sum(size_t size, uint64_t salt)
{
    pawl_bytes body = body_new(size, salt);
    uint64_t sum = hash_checksum(0, body);
    free((void *)body.data);
    return sum;
}

/* Callbacks. */

static void check_place(struct job *job)
{
    struct log_fixture *f = job->f;
    if (calling == job)
        note(f, "a callback was called from inside the call");
    if (job->finished)
        note(f, "a callback was called after done");
    if (pawl_env_self(f->env) != job->shard)
        note(f, "a callback was called on a wrong shard");
    if (!f->contract->drive && job->from_test && pthread_equal(pthread_self(), job->thread))
        note(f, "a callback was called on the foreign thread that made the call");
}

static void finish_now(struct job *job)
{
    job->order = ++job->f->completed;
    job->finished = true;
    pthread_cond_broadcast(&job->f->cond);
}

static void finish(struct job *job)
{
    struct log_fixture *f = job->f;
    pthread_mutex_lock(&f->mutex);
    check_place(job);
    pthread_mutex_unlock(&f->mutex);
    if (job->then) {
        finishing = job;
        job->then(job);
        bool again = finishing != job;
        finishing = NULL;
        if (again)
            return;
    }
    pthread_mutex_lock(&f->mutex);
    finish_now(job);
    pthread_mutex_unlock(&f->mutex);
}

static void claim_done(pawl_claim *claim)
{
    finish(claim->arg);
}

static void append_done(pawl_append *append)
{
    finish(append->arg);
}

static void read_done(pawl_read *read)
{
    finish(read->arg);
}

static void follow_done(pawl_follow *follow)
{
    finish(follow->arg);
}

static void tail_done(pawl_tail *tail)
{
    finish(tail->arg);
}

static bool visit(struct job *job, const pawl_entry *entry, pawl_place place, pawl_stream stream)
{
    struct log_fixture *f = job->f;
    struct visit v = {.epoch = entry->epoch,
                      .offset = entry->offset,
                      .kind = entry->kind,
                      .size = entry->body.size,
                      .sum = hash_checksum(0, entry->body),
                      .place = place};
    pthread_mutex_lock(&f->mutex);
    check_place(job);
    if (!pawl_stream_equal(entry->stream, stream))
        note(f, "an entry of another stream was visited");
    if (job->stop_after && job->visited >= job->stop_after)
        note(f, "an entry was visited after the last that was wanted");
    if (job->visited < JOB_VISITS_MAX)
        job->visits[job->visited++] = v;
    bool enough = job->visited == job->stop_after;
    pthread_cond_broadcast(&f->cond);
    pthread_mutex_unlock(&f->mutex);
    if (enough && job->unfollow_then)
        job->unfollowed = pawl_log_unfollow(job->log, &job->follow);
    return !enough || job->unfollow_then;
}

static bool read_visit(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    return visit(read->arg, entry, place, read->stream);
}

static bool follow_visit(pawl_follow *follow, const pawl_entry *entry, pawl_place place)
{
    return visit(follow->arg, entry, place, follow->stream);
}

/* Jobs. */

struct job *job_new(struct log_fixture *f, enum job_kind kind, pawl_stream stream)
{
    struct job *job = calloc(1, sizeof *job);
    assert_non_null(job);
    job->f = f;
    job->log = f->log;
    job->kind = kind;
    switch (kind) {
    case JOB_CLAIM:
        job->claim = (pawl_claim){.stream = stream, .done = claim_done, .arg = job, .error = &job->error};
        break;
    case JOB_APPEND:
        job->append =
            (pawl_append){.entries = job->entries, .done = append_done, .arg = job, .error = &job->error};
        break;
    case JOB_READ:
        job->read = (pawl_read){.stream = stream,
                                .from = 1,
                                .limit = UINT64_MAX,
                                .visit = read_visit,
                                .done = read_done,
                                .arg = job,
                                .error = &job->error};
        break;
    case JOB_FOLLOW:
        job->follow = (pawl_follow){.stream = stream,
                                    .from = 1,
                                    .visit = follow_visit,
                                    .done = follow_done,
                                    .arg = job,
                                    .error = &job->error};
        break;
    case JOB_TAIL:
        job->tail = (pawl_tail){.stream = stream, .done = tail_done, .arg = job, .error = &job->error};
        break;
    }
    if (kind == JOB_READ || kind == JOB_FOLLOW) {
        job->visits = calloc(JOB_VISITS_MAX, sizeof *job->visits);
        assert_non_null(job->visits);
    }
    return job;
}

void job_free(struct job *job)
{
    for (size_t i = 0; job->kind == JOB_APPEND && i < job->append.count; i++)
        free((void *)job->entries[i].entry.body.data);
    free(job->visits);
    free(job);
}

void job_add(struct job *job, pawl_stream stream, uint64_t epoch, uint64_t offset, size_t size, uint64_t salt)
{
    assert_true(job->append.count < JOB_ENTRIES_MAX);
    job->entries[job->append.count++].entry = (pawl_entry){.stream = stream,
                                                           .epoch = epoch,
                                                           .offset = offset,
                                                           .kind = (uint8_t)salt,
                                                           .body = body_new(size, salt)};
}

static int call(struct job *job)
{
    switch (job->kind) {
    case JOB_CLAIM: return pawl_log_claim(job->log, &job->claim);
    case JOB_APPEND: return pawl_log_append(job->log, &job->append);
    case JOB_READ: return pawl_log_read(job->log, &job->read);
    case JOB_FOLLOW: return pawl_log_follow(job->log, &job->follow);
    case JOB_TAIL: return pawl_log_tail(job->log, &job->tail);
    }
    return PAWL_EINVAL;
}

/* When the call has succeeded the job may be finished, and freed by whoever waited for it. */
static int issue(struct job *job)
{
    struct log_fixture *f = job->f;
    pthread_mutex_lock(&f->mutex);
    job->shard = pawl_env_self(f->env);
    job->finished = false;
    pthread_mutex_unlock(&f->mutex);
    if (finishing == job)
        finishing = NULL;
    const struct job *outer = calling;
    calling = job;
    int status = call(job);
    calling = outer;
    return status;
}

void job_issue(struct job *job)
{
    struct log_fixture *f = job->f;
    int status = issue(job);
    if (status == PAWL_OK)
        return;
    pthread_mutex_lock(&f->mutex);
    if (status != PAWL_APPEND_DONE)
        note(f, "a call from inside a callback failed");
    finish_now(job);
    pthread_mutex_unlock(&f->mutex);
}

/* For job_start, which waits until it is issued before it looks at anything. */
static void issue_first(struct job *job)
{
    struct log_fixture *f = job->f;
    int status = issue(job);
    pthread_mutex_lock(&f->mutex);
    job->call = status == PAWL_APPEND_DONE ? PAWL_OK : status;
    job->issued = true;
    if (status == PAWL_APPEND_DONE)
        finish_now(job);
    pthread_cond_broadcast(&f->cond);
    pthread_mutex_unlock(&f->mutex);
}

static void issue_task(pawl_task *task)
{
    issue_first(heap_entry(task, struct job, task));
}

static bool is_issued(void *arg)
{
    return ((struct job *)arg)->issued;
}

int job_start(struct job *job)
{
    job->issued = false;
    if (job->f->foreign) {
        job->from_test = true;
        job->thread = pthread_self();
        issue_first(job);
    } else {
        job->task.fn = issue_task;
        assert_ok(pawl_env_post(job->f->env, 0, &job->task));
        log_await(job->f, is_issued, job);
    }
    return job->call;
}

static bool is_finished(void *arg)
{
    return ((struct job *)arg)->finished;
}

void job_await(struct job *job)
{
    log_await(job->f, is_finished, job);
}

int job_status(const struct job *job)
{
    switch (job->kind) {
    case JOB_CLAIM: return job->claim.status;
    case JOB_APPEND: return job->append.status;
    case JOB_READ: return job->read.status;
    case JOB_FOLLOW: return job->follow.status;
    case JOB_TAIL: return job->tail.status;
    }
    return PAWL_EINVAL;
}

int job_run(struct job *job)
{
    int status = job_start(job);
    if (status != PAWL_OK)
        return status;
    job_await(job);
    return job_status(job);
}

bool job_is_finished(struct job *job)
{
    pthread_mutex_lock(&job->f->mutex);
    bool finished = job->finished;
    pthread_mutex_unlock(&job->f->mutex);
    return finished;
}

struct visits_wanted {
    struct job *job;
    size_t count;
};

static bool has_visits(void *arg)
{
    struct visits_wanted *w = arg;
    return w->job->visited >= w->count || w->job->finished;
}

void job_await_visits(struct job *job, size_t count)
{
    struct visits_wanted w = {job, count};
    log_await(job->f, has_visits, &w);
    assert_true(job->visited >= count);
}

static void unfollow_task(pawl_task *task)
{
    struct job *follow = heap_entry(task, struct job, task);
    follow->unfollowed = pawl_log_unfollow(follow->log, &follow->follow);
}

void job_unfollow(struct job *follow)
{
    if (follow->f->foreign) {
        unfollow_task(&follow->task);
    } else {
        follow->task.fn = unfollow_task;
        assert_ok(pawl_env_post(follow->f->env, 0, &follow->task));
    }
    job_await(follow);
    assert_ok(follow->unfollowed);
    assert_status(job_status(follow), PAWL_ECLOSED);
}

void job_check_visits(const struct job *job, uint64_t from)
{
    for (uint64_t i = 0; i < job->visited; i++) {
        assert_int_equal(job->visits[i].offset, from + i);
        assert_int_equal(job->visits[i].sum, body_sum(job->visits[i].size, from + i));
    }
}

/* The common cases. */

void log_claim_stream(struct log_fixture *f, pawl_stream stream, uint64_t *ret_epoch, uint64_t *ret_next)
{
    struct job *job = job_new(f, JOB_CLAIM, stream);
    assert_ok(job_run(job));
    *ret_epoch = job->claim.epoch;
    if (ret_next)
        *ret_next = job->claim.next;
    job_free(job);
}

void log_append_some(struct log_fixture *f, pawl_stream stream, uint64_t epoch, uint64_t from, uint64_t count)
{
    while (count > 0) {
        struct job *job = job_new(f, JOB_APPEND, stream);
        for (; count > 0 && job->append.count < JOB_ENTRIES_MAX; count--, from++)
            job_add(job, stream, epoch, from, 8 + from % 50, from);
        assert_ok(job_run(job));
        job_free(job);
    }
}

uint64_t log_tail_of(struct log_fixture *f, pawl_stream stream)
{
    struct job *job = job_new(f, JOB_TAIL, stream);
    assert_ok(job_run(job));
    uint64_t last = job->tail.last;
    job_free(job);
    return last;
}

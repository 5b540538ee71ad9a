/* test/contract/log_fixture.h: what the log suite is written in.
 *
 * A job is one request with room for its outcome. job_start makes the call where the fixture says that calls
 * are made, a shard or the test's own thread; log_await waits, or drives a simulated world, until something
 * holds. Callbacks run anywhere, so they assert nothing: they note what is wrong (done from inside the call, on
 * a wrong thread, twice), and log_await fails the test. */
#ifndef TEST_CONTRACT_LOG_FIXTURE_H
#define TEST_CONTRACT_LOG_FIXTURE_H

#include <pthread.h>

#include "test/contract/log_contract.h"

struct log_fixture {
    const struct log_contract *contract;
    void *impl;
    pawl_env *env;
    pawl_log *log;
    bool foreign; /* calls are made from no shard */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    const char *wrong;  /* what a callback noted first */
    uint64_t completed; /* jobs, ever */
};

enum job_kind { JOB_CLAIM, JOB_APPEND, JOB_READ, JOB_FOLLOW, JOB_TAIL };
enum { JOB_ENTRIES_MAX = 64, JOB_VISITS_MAX = 4096 };

struct visit {
    uint64_t epoch, offset;
    uint8_t kind;
    size_t size;
    uint64_t sum;
    pawl_place place;
};

struct job {
    struct log_fixture *f;
    pawl_log *log; /* f->log unless a rival's */
    enum job_kind kind;
    union {
        pawl_claim claim;
        pawl_append append;
        pawl_read read;
        pawl_follow follow;
        pawl_tail tail;
    };
    pawl_append_entry entries[JOB_ENTRIES_MAX];
    struct visit *visits; /* read, follow: of JOB_VISITS_MAX */
    size_t visited;
    size_t stop_after;             /* visit returns false then; 0: never */
    bool unfollow_then;            /* and calls unfollow, instead of returning false */
    void (*then)(struct job *job); /* inside done */
    pawl_error error;

    int call;       /* what the call returned */
    int unfollowed; /* what unfollow returned */
    bool issued;
    bool finished;
    uint64_t order; /* of its completion: f->completed then */
    uint32_t shard;
    bool from_test;
    pthread_t thread;
    pawl_task task;
};

struct log_fixture *log_fixture_open(const struct log_contract *contract, bool foreign);
void log_fixture_close(struct log_fixture *f); /* closes the log, frees all */
void log_fixture_reopen(struct log_fixture *f);
void log_fixture_crash(struct log_fixture *f);

void log_await(struct log_fixture *f, bool (*holds)(void *arg), void *arg);

struct job *job_new(struct log_fixture *f, enum job_kind kind, pawl_stream stream);
void job_free(struct job *job);

/* An append's next entry: its body is made from salt. */
void job_add(struct job *job, pawl_stream stream, uint64_t epoch, uint64_t offset, size_t size, uint64_t salt);

int job_start(struct job *job);  /* the call's own status */
void job_issue(struct job *job); /* from inside a callback: right here */
void job_await(struct job *job); /* until it is finished */
int job_status(const struct job *job);
int job_run(struct job *job); /* start, await: the outcome, or the call's error */
bool job_is_finished(struct job *job);
void job_await_visits(struct job *job, size_t count);

/* On the thread that called follow; it ends with PAWL_ECLOSED. */
void job_unfollow(struct job *follow);

/* What was visited is what log_append_some wrote, from that offset on. */
void job_check_visits(const struct job *job, uint64_t from);

pawl_bytes body_new(size_t size, uint64_t salt);
uint64_t body_sum(size_t size, uint64_t salt);

/* The common cases. They fail the test on an error. */
void log_claim_stream(struct log_fixture *f, pawl_stream stream, uint64_t *ret_epoch, uint64_t *ret_next);
void log_append_some(struct log_fixture *f, pawl_stream stream, uint64_t epoch, uint64_t from, uint64_t count);
uint64_t log_tail_of(struct log_fixture *f, pawl_stream stream);

static inline pawl_stream raw(uint16_t partition)
{
    return (pawl_stream){.kind = PAWL_STREAM_RAW, .partition = partition};
}

#endif

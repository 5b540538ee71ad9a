/* test_engine_kept_kill.c: a process in which external workers hold leases is killed with -9, again and again, at
 * moments that nobody chose. What it had answered is there when the next process opens the directory.
 *
 * The dying process says over a pipe what it answered, in the order in which it did. */
#include "test/lib/kept.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "engine/lanes/impl.h"

enum { WORKERS = 4, EVENTS = 60, KILLS = 12, TICKETS_MAX = 4096 };

/* What is said over the pipe: of a lease that was answered, or whose commit or release was. */
enum outcome { GRANTED, COMMITTED, RELEASED };

struct said {
    enum outcome what;
    struct ticket ticket;
};

struct dying {
    struct lanes_bed *bed;
    int pipe;
    uint64_t seed;
};

static void say(int pipe, enum outcome what, const struct ticket *ticket)
{
    struct said said;
    memset(&said, 0, sizeof said);
    said.what = what;
    said.ticket = *ticket;
    if (write(pipe, &said, sizeof said) != sizeof said) /* one write is whole: it is below PIPE_BUF */
        _exit(3);
}

/* Works until it is killed. It does not wait long for a turn, so that leases pile up behind those it gave up. */
static void *work(void *arg)
{
    struct dying *d = arg;
    uint64_t dice = d->seed;
    pawl_error error;
    for (;;) {
        pawl_worker_lease lease;
        if (pawl_worker_acquire(d->bed->engine, "t.notes", 0, BED_PATIENCE, &lease, &error) != PAWL_OK)
            continue;
        struct ticket t = ticket_of(&lease);
        say(d->pipe, GRANTED, &t);
        pawl_worker_lease_free(&lease);
        uint64_t way = test_below(&dice, 4);
        pawl_worker_lease mine = ticket_lease(&t);
        static const char json[] = "{\"writes\": []}";
        if (way == 0) {
            if (pawl_worker_release(d->bed->engine, &mine, false, false, "", &error) == PAWL_OK)
                say(d->pipe, RELEASED, &t);
        } else if (way < 3
                   && pawl_worker_commit_json(d->bed->engine, &mine, text_bytes(json), 50 * PAWL_MILLISECOND,
                                              &error)
                          == PAWL_OK)
            say(d->pipe, COMMITTED, &t);
    }
    return NULL;
}

/* In the child. */
static void live_until_killed(struct lanes_bed *bed, int pipe, uint64_t seed)
{
    static struct dying dying[WORKERS];
    pthread_t thread;
    bed_open(bed);
    for (unsigned i = 0; i < WORKERS; i++) {
        dying[i] = (struct dying){bed, pipe, seed + i};
        if (pthread_create(&thread, NULL, work, &dying[i]) != 0)
            _exit(2);
    }
    for (;;)
        pause();
}

static struct said heard[TICKETS_MAX];
static size_t heard_count;

/* Kill it when it has said so much. */
static void run_and_kill(struct lanes_bed *bed, size_t after, uint64_t seed)
{
    int ends[2], how;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        live_until_killed(bed, ends[1], seed);
    }
    close(ends[1]);
    struct said said;
    for (size_t n = 0; read(ends[0], &said, sizeof said) == sizeof said;) {
        assert_true(heard_count < TICKETS_MAX);
        heard[heard_count++] = said;
        if (++n == after)
            kill(child, SIGKILL); /* what it says until it is dead counts, too */
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

static bool is_same(const struct ticket *a, const struct ticket *b)
{
    return a->partition == b->partition && a->number == b->number && a->operation.high == b->operation.high
           && a->operation.low == b->operation.low;
}

/* What is known to have become of what was granted. */
static enum outcome fate_of(const struct ticket *ticket)
{
    enum outcome fate = GRANTED;
    for (size_t i = 0; i < heard_count; i++)
        if (heard[i].what != GRANTED && is_same(&heard[i].ticket, ticket))
            fate = heard[i].what;
    return fate;
}

struct totals {
    unsigned held, committed, released;
};

static void check_each(struct lanes_bed *bed, struct totals *totals)
{
    for (size_t i = 0; i < heard_count; i++) {
        const struct ticket *t = &heard[i].ticket;
        if (heard[i].what != GRANTED)
            continue;
        enum outcome fate = fate_of(t);
        int status = kept_extend(bed, t, 0);
        if (fate == GRANTED && status == PAWL_OK) {
            totals->held++;
        } else if (fate
                   == GRANTED) { /* its commit or release was not answered any more: then one of them counts */
            status = kept_commit(bed, t, 0);
            assert_true(status == PAWL_OK || status == PAWL_EFENCED);
        } else if (fate == COMMITTED) {
            assert_status(status, PAWL_EFENCED);
            assert_ok(kept_commit(bed, t, 0));
            totals->committed++;
        } else {
            assert_status(status, PAWL_EFENCED);
            totals->released++;
        }
    }
}

TEST(what_a_killed_process_had_answered_is_held_by_its_workers)
{
    uint64_t dice = test_seed(1);
    struct totals totals = {0};
    for (unsigned i = 0; i < KILLS; i++) {
        struct lanes_bed bed = {0};
        bed_begin(&bed, LANES_SCHEMA(""));
        for (unsigned n = 0; n < EVENTS; n++)
            bed_send(&bed, 1 + n % 8, "t.Ask", "ada", 1);
        bed_close(&bed);
        heard_count = 0;
        for (unsigned life = 0; life < 2; life++)
            run_and_kill(&bed, 1 + test_below(&dice, 12), test_random(&dice));
        bed_open(&bed);
        check_each(&bed, &totals);
        bed_end(&bed);
    }
    print_message("# held %u, committed %u, released %u\n", totals.held, totals.committed, totals.released);
    assert_true(totals.held > KILLS && totals.committed > 0 && totals.released > 0);
}

/* The shortest way: acquire, say so, die. Nothing but the store can know. */
static void acquire_and_die(struct lanes_bed *bed, int pipe)
{
    bed_open(bed);
    struct ticket t = kept_acquire(bed, 0);
    say(pipe, GRANTED, &t);
    kill(getpid(), SIGKILL);
}

TEST(a_lease_that_was_answered_is_there_though_the_process_died_at_once)
{
    struct lanes_bed bed = {0};
    int ends[2], how;
    struct said said;
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    bed_close(&bed);
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        acquire_and_die(&bed, ends[1]);
        _exit(1);
    }
    assert_int_equal(read(ends[0], &said, sizeof said), sizeof said);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    bed_open(&bed);
    kept_wait_bound(&bed, said.ticket.partition, said.ticket.number);
    assert_true(kept_is_nothing_left(&bed));
    assert_ok(kept_commit(&bed, &said.ticket, BED_PATIENCE));
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
    close(ends[0]);
    close(ends[1]);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_lease_that_was_answered_is_there_though_the_process_died_at_once),
        RUN(what_a_killed_process_had_answered_is_held_by_its_workers),
    };
    return TEST_MAIN(tests);
}

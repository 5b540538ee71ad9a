/* The log suite: sweeps. They block, so they are made from the test's own thread. */
#include "base/hash.h"
#include "test/contract/log_cases.h"

enum { STREAMS = 5, ENTRIES_MAX = 400 };

/* Of a log with as few partitions as the suite has to do with. */
static pawl_stream stream_of(size_t index)
{
    return index + 1 < STREAMS ? raw((uint16_t)index) : (pawl_stream){.kind = PAWL_STREAM_PLOG};
}

/* raw/0 to raw/3, and plog/0: one in every round, one in every third, few at the beginning, few at the end,
 * none.
 */
static uint64_t written(size_t stream)
{
    static const uint64_t counts[STREAMS] = {300, 100, 7, 9, 0};
    return counts[stream];
}

static void write_streams(struct log_fixture *f)
{
    uint64_t epochs[STREAMS], next[STREAMS] = {0};
    for (size_t i = 0; i < STREAMS; i++)
        log_claim_stream(f, stream_of(i), &epochs[i], NULL);
    for (uint64_t round = 0; round < 300;) {
        struct job *job = job_new(f, JOB_APPEND, raw(0));
        for (int some = 0; some < 15; some++, round++) {
            const bool is_due[STREAMS] = {true, round % 3 == 0, round < 7, round >= 291, false};
            for (size_t i = 0; i < STREAMS; i++) {
                next[i] += is_due[i];
                if (is_due[i])
                    job_add(job, stream_of(i), epochs[i], next[i], 8 + (round * 7 + i) % 150,
                            i * 1000 + next[i]);
            }
        }
        assert_ok(job_run(job));
        job_free(job);
    }
    for (size_t i = 0; i < STREAMS; i++)
        assert_int_equal(next[i], written(i));
}

struct sweeping {
    pawl_sweep sweep;
    pawl_sweep_stream streams[STREAMS];
    uint64_t next[STREAMS]; /* of the entry that must come */
    pawl_place places[STREAMS][ENTRIES_MAX];
    uint64_t visited, stop_after;
    pawl_error error;
};

static bool check_entry(pawl_sweep *sweep, size_t index, const pawl_entry *entry, pawl_place place)
{
    struct sweeping *s = sweep->arg;
    assert_true(index < STREAMS);
    assert_true(pawl_stream_equal(entry->stream, stream_of(index)));
    assert_int_equal(entry->offset, s->next[index]++);
    uint64_t salt = index * 1000 + entry->offset;
    assert_int_equal(hash_checksum(0, entry->body), body_sum(entry->body.size, salt));
    assert_int_equal(entry->kind, (uint8_t)salt);
    s->places[index][entry->offset - 1] = place;
    return ++s->visited != s->stop_after;
}

static void sweep_from(struct sweeping *s, const uint64_t from[STREAMS])
{
    s->sweep = (pawl_sweep){.streams = s->streams,
                            .count = STREAMS,
                            .limit = UINT64_MAX,
                            .visit = check_entry,
                            .arg = s,
                            .error = &s->error};
    s->visited = 0;
    for (size_t i = 0; i < STREAMS; i++) {
        s->streams[i] = (pawl_sweep_stream){.stream = stream_of(i), .from = from[i], .next = 77};
        s->next[i] = from[i];
    }
}

/* Everything that was visited follows on, and what next says is what was visited. */
static void run(struct log_fixture *f, struct sweeping *s)
{
    assert_ok(pawl_log_sweep(f->log, &s->sweep));
    for (size_t i = 0; i < STREAMS; i++)
        assert_int_equal(s->streams[i].next, s->next[i]);
}

static bool has_ended(const struct sweeping *s)
{
    bool ended = true;
    for (size_t i = 0; i < STREAMS; i++)
        ended = ended && s->streams[i].ended;
    return ended;
}

static void check_ended(const struct sweeping *s)
{
    assert_true(has_ended(s));
    for (size_t i = 0; i < STREAMS; i++)
        assert_int_equal(s->next[i], s->streams[i].from > written(i) ? s->streams[i].from : written(i) + 1);
}

static const uint64_t ones[STREAMS] = {1, 1, 1, 1, 1};

void a_sweep_visits_every_stream_from_where_it_is_told_to_its_end(struct log_fixture *f)
{
    static const uint64_t cases[][STREAMS] = {
        {1, 1, 1, 1, 1},     {300, 1, 7, 9, 1}, {301, 101, 8, 10, 1},         {150, 99, 1, 1, 5},
        {301, 101, 1, 1, 1}, {299, 2, 8, 1, 1}, {1000, 50, UINT64_MAX, 3, 1},
    };
    struct sweeping s = {0};
    sweep_from(&s, ones);
    run(f, &s); /* nothing was ever written */
    assert_int_equal(s.visited, 0);
    write_streams(f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sweep_from(&s, cases[i]);
        run(f, &s);
        check_ended(&s);
    }
    s.sweep.count = 0;
    assert_ok(pawl_log_sweep(f->log, &s.sweep));
    log_fixture_reopen(f);
    sweep_from(&s, ones);
    run(f, &s);
    check_ended(&s);
    assert_int_equal(s.visited, 416);
}

void a_sweep_keeps_to_its_limit_and_another_goes_on_from_there(struct log_fixture *f)
{
    static const uint64_t limits[] = {120, 299, 415, 416, 417};
    struct sweeping s = {0};
    write_streams(f);
    sweep_from(&s, ones);
    s.sweep.limit = STREAMS; /* the least by which all come on */
    run(f, &s);
    assert_true(s.visited > 0 && s.visited <= STREAMS);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint64_t all = 0;
        sweep_from(&s, ones);
        do {
            uint64_t from[STREAMS];
            memcpy(from, s.next, sizeof from);
            sweep_from(&s, from);
            s.sweep.limit = limits[i];
            run(f, &s);
            assert_true(s.visited <= limits[i]);
            all += s.visited;
            assert_true(s.visited > 0 || has_ended(&s));
        } while (!has_ended(&s));
        check_ended(&s);
        assert_int_equal(all, 416);
    }
    sweep_from(&s, ones);
    s.sweep.limit = 0;
    run(f, &s);
    assert_int_equal(s.visited, 0);
}

void a_sweep_stops_when_told(struct log_fixture *f)
{
    struct sweeping s = {0};
    write_streams(f);
    for (s.stop_after = 1; s.stop_after < 420; s.stop_after += 83) {
        sweep_from(&s, ones);
        run(f, &s);
        assert_int_equal(s.visited, s.stop_after);
        assert_true(s.visited == 416 || !has_ended(&s));
    }
}

void a_sweep_takes_places_back_and_one_that_does_not_fit_does_no_harm(struct log_fixture *f)
{
    static const uint64_t from[STREAMS] = {200, 30, 7, 2, 1};
    struct sweeping s = {0}, all = {0};
    write_streams(f);
    sweep_from(&all, ones);
    run(f, &all);
    const pawl_place own = all.places[0][199], first = all.places[0][0], last = all.places[0][299];
    const pawl_place places[] = {own,
                                 first,
                                 last,
                                 all.places[3][8], /* another stream's, at the end */
                                 {own.position + 1, own.hint},
                                 {own.position, ~own.hint},
                                 {UINT64_MAX, UINT64_MAX},
                                 {1, 1}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        sweep_from(&s, from);
        for (size_t k = 1; k < STREAMS; k++) /* the others' fit, or are not given */
            s.streams[k].at = i % 2 ? all.places[k][from[k] - 1] : (pawl_place){0};
        s.streams[0].at = places[i];
        run(f, &s);
        check_ended(&s);
        for (size_t k = 0; k < STREAMS; k++)
            for (uint64_t n = from[k] - 1; n < written(k); n++)
                assert_int_equal(s.places[k][n].position, all.places[k][n].position);
    }
    struct job *read = job_new(f, JOB_READ, raw(0));
    assert_ok(job_run(read));
    for (size_t n = 0; n < 300; n++)
        assert_int_equal(read->visits[n].place.position, all.places[0][n].position);
    job_free(read);
}

/* Appends of two streams are under way, and sweeps go on from each other's end. */
void a_sweep_sees_what_is_appended_between_its_steps_or_leaves_it_to_the_next(struct log_fixture *f)
{
    enum { JOBS = 4, EACH = 30 };
    struct job *jobs[JOBS];
    struct sweeping s = {0};
    uint64_t epochs[2], from[STREAMS] = {1, 1, 1, 1, 1};
    for (size_t i = 0; i < 2; i++)
        log_claim_stream(f, stream_of(i), &epochs[i], NULL);
    for (uint64_t j = 0; j < JOBS; j++) {
        jobs[j] = job_new(f, JOB_APPEND, raw(0));
        for (uint64_t n = 1; n <= EACH; n++)
            for (size_t i = 0; i < 2; i++)
                job_add(jobs[j], stream_of(i), epochs[i], j * EACH + n, 200, i * 1000 + j * EACH + n);
        assert_ok(job_start(jobs[j]));
    }
    for (uint64_t j = 0; j < JOBS; j++) {
        sweep_from(&s, from);
        run(f, &s);
        memcpy(from, s.next, sizeof from);
        job_await(jobs[j]);
        assert_ok(job_status(jobs[j]));
        job_free(jobs[j]);
        sweep_from(&s, from);
        run(f, &s);
        memcpy(from, s.next, sizeof from);
        assert_true(from[0] > (j + 1) * EACH && from[1] > (j + 1) * EACH);
    }
    assert_int_equal(from[0], JOBS * EACH + 1);
    assert_int_equal(from[1], JOBS * EACH + 1);
}

void a_malformed_sweep_is_refused(struct log_fixture *f)
{
    static const pawl_stream bad[] = {{0}, {.kind = PAWL_STREAM_RAW, .lane = 1}, {.kind = PAWL_STREAM_RAW}};
    struct sweeping s = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) { /* the last one is there already */
        sweep_from(&s, ones);
        s.streams[3].stream = bad[i];
        assert_status(pawl_log_sweep(f->log, &s.sweep), PAWL_EINVAL);
        assert_int_equal(s.streams[3].next, 1);
    }
    sweep_from(&s, ones);
    s.streams[2].from = 0;
    assert_status(pawl_log_sweep(f->log, &s.sweep), PAWL_EINVAL);
    sweep_from(&s, ones);
    s.sweep.visit = NULL;
    assert_status(pawl_log_sweep(f->log, &s.sweep), PAWL_EINVAL);
    assert_contains(s.error.text, "sweep");
}

/* Short histories of a lane, told as they happen. What is printed is the specification. */
#include "test/lib/two_lanes.h"

enum { WORKERS = 4 };

struct script {
    struct lane_bed bed;
    struct attempt attempts[WORKERS];
    bool is_open[WORKERS], is_shown[WORKERS];
    uint64_t shown; /* operations */
    char text[4096];
    size_t size;
};

static const char *const names[WORKERS] = {"Ann", "Bob", "Cem", "Dora"};
enum { ANN, BOB, CEM, DORA };

static void say(struct script *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct script *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    s->size += (size_t)vsnprintf(s->text + s->size, sizeof s->text - s->size, format, args);
    va_end(args);
    assert_true(s->size < sizeof s->text);
}

/* What has become of everything since the last time. */
static void look(struct script *s)
{
    struct operation op;
    char reason[OPERATION_REASON + 1];
    enum operation_kind kind;
    while ((kind = lane_bed_operation(&s->bed, MAIN, s->shown + 1, &op, reason))) {
        s->shown++;
        say(s, "    operation %" PRIu64 ", of event %" PRIu64, op.number, op.event);
        say(s, kind == OPERATION_VOID ? ", is void: %s\n" : ", attempt %.0s%u\n", reason, op.attempt);
    }
    for (int i = 0; i < WORKERS; i++)
        if (s->is_open[i] && s->attempts[i].is_told && !s->is_shown[i]) {
            s->is_shown[i] = true;
            say(s, "    %s is told: %s\n", names[i], pawl_status_name(s->attempts[i].told));
        }
}

static void pass(struct script *s, pawl_duration duration)
{
    lane_bed_pass(&s->bed, duration);
    look(s);
}

static void event(struct script *s, const char *command, int64_t k, int64_t by)
{
    say(s, "event %" PRIu64 ": %s %" PRId64 ", %" PRId64 "\n", s->bed.plog.last + 1, command, k, by);
    lane_bed_event(&s->bed, command, WS, k, by);
    pass(s, PAWL_SECOND / 10);
}

static void close_attempt(struct script *s, int who)
{
    if (s->is_open[who])
        attempt_release(&s->attempts[who]);
    s->is_open[who] = false;
}

static void acquires(struct script *s, int who)
{
    struct attempt *a = &s->attempts[who];
    close_attempt(s, who);
    s->is_open[who] = true;
    s->is_shown[who] = false;
    if (attempt_acquire(a, &s->bed, MAIN, SLOW, 10 * PAWL_SECOND))
        say(s, "%s gets number %" PRIu64 ", attempt %u, for %u s\n", names[who], a->run.number, a->run.attempt,
            (unsigned)(a->run.duration / PAWL_SECOND));
    else
        say(s, "%s gets nothing\n", names[who]);
}

/* It adds to what it reads. */
static void reads_and_hands_in(struct script *s, int who, int64_t k)
{
    struct attempt *a = &s->attempts[who];
    int64_t x = attempt_read(a, k);
    if (x < 0)
        say(s, "%s reads row %" PRId64 ": there is none\n", names[who], k);
    else
        say(s, "%s reads row %" PRId64 ": %" PRId64 "\n", names[who], k, x);
    attempt_put(a, k, (x < 0 ? 0 : x) + 100);
    attempt_explode(a);
    int status = attempt_hand_in(a);
    say(s, "%s hands in number %" PRIu64 "%s%s\n", names[who], a->run.number, status == PAWL_OK ? "" : ": ",
        status == PAWL_OK ? "" : pawl_status_name(status));
    pass(s, PAWL_SECOND / 10);
}

static void fails(struct script *s, int who, const char *words)
{
    say(s, "%s fails: %s\n", names[who], words);
    assert_ok(attempt_fail(&s->attempts[who], false, words));
    pass(s, PAWL_MILLISECOND);
}

static void begin(struct script *s)
{
    *s = (struct script){0};
    open_lanes(&s->bed);
}

static void row(struct script *s, int64_t k)
{
    say(s, "row %" PRId64 ": %" PRId64 "\n", k, x_of(&s->bed, k));
}

static void end(struct script *s, const char *expected)
{
    for (int i = 0; i < WORKERS; i++)
        close_attempt(s, i);
    close_lanes(&s->bed);
    if (strcmp(s->text, expected) != 0)
        print_error("%s", s->text);
    assert_string_equal(s->text, expected);
}

TEST(a_run_that_is_early_waits_for_its_turn_and_one_that_read_too_early_begins_again)
{
    static struct script s;
    begin(&s);
    event(&s, "Add", 1, 5);
    event(&s, "Slow", 1, 0);
    event(&s, "Slow", 2, 0);
    event(&s, "Slow", 1, 0);
    event(&s, "Add", 1, 5);
    acquires(&s, ANN);
    acquires(&s, BOB);
    acquires(&s, CEM);
    acquires(&s, DORA);
    reads_and_hands_in(&s, CEM, 1);
    reads_and_hands_in(&s, BOB, 2);
    reads_and_hands_in(&s, ANN, 1);
    acquires(&s, DORA);
    reads_and_hands_in(&s, DORA, 1);
    row(&s, 1);
    row(&s, 2);
    end(&s, "event 1: Add 1, 5\n"
            "    operation 1, of event 1, attempt 1\n"
            "event 2: Slow 1, 0\n"
            "event 3: Slow 2, 0\n"
            "event 4: Slow 1, 0\n"
            "event 5: Add 1, 5\n"
            "Ann gets number 2, attempt 1, for 10 s\n"
            "Bob gets number 3, attempt 1, for 10 s\n"
            "Cem gets number 4, attempt 1, for 10 s\n"
            "Dora gets nothing\n"
            "Cem reads row 1: 5\n"
            "Cem hands in number 4\n"
            "Bob reads row 2: there is none\n"
            "Bob hands in number 3\n"
            "Ann reads row 1: 5\n"
            "Ann hands in number 2\n"
            "    operation 2, of event 2, attempt 1\n"
            "    operation 3, of event 3, attempt 1\n"
            "    Ann is told: PAWL_OK\n"
            "    Bob is told: PAWL_OK\n"
            "    Cem is told: PAWL_ECONFLICT\n"
            "Dora gets number 4, attempt 1, for 10 s\n"
            "Dora reads row 1: 105\n"
            "Dora hands in number 4\n"
            "    operation 4, of event 4, attempt 1\n"
            "    operation 5, of event 5, attempt 1\n"
            "    Dora is told: PAWL_OK\n"
            "row 1: 210\n"
            "row 2: 100\n");
}

TEST(a_number_is_never_lost_it_is_worked_on_again_or_void)
{
    static struct script s;
    begin(&s);
    event(&s, "Slow", 1, 0);
    event(&s, "Slow", 2, 0);
    event(&s, "Add", 3, 5);
    acquires(&s, ANN);
    acquires(&s, BOB);
    reads_and_hands_in(&s, BOB, 2);
    say(&s, "Ann sleeps\n");
    pass(&s, 11 * PAWL_SECOND);
    acquires(&s, CEM);
    say(&s, "Ann wakes\n");
    reads_and_hands_in(&s, ANN, 1);
    fails(&s, CEM, "no connection");
    acquires(&s, DORA);
    say(&s, "a while later\n");
    pass(&s, PAWL_SECOND);
    acquires(&s, DORA);
    fails(&s, DORA, "no connection");
    say(&s, "a day later\n");
    pass(&s, 86400 * PAWL_SECOND);
    acquires(&s, ANN);
    say(&s, "the operator says: not needed\n");
    assert_ok(lane_bed_void(&s.bed, MAIN, 1, "not needed"));
    pass(&s, PAWL_SECOND);
    row(&s, 2);
    row(&s, 3);
    end(&s, "event 1: Slow 1, 0\n"
            "event 2: Slow 2, 0\n"
            "event 3: Add 3, 5\n"
            "Ann gets number 1, attempt 1, for 10 s\n"
            "Bob gets number 2, attempt 1, for 10 s\n"
            "Bob reads row 2: there is none\n"
            "Bob hands in number 2\n"
            "Ann sleeps\n"
            "Cem gets number 1, attempt 2, for 20 s\n"
            "Ann wakes\n"
            "Ann reads row 1: there is none\n"
            "Ann hands in number 1: PAWL_EFENCED\n"
            "Cem fails: no connection\n"
            "Dora gets nothing\n"
            "a while later\n"
            "Dora gets number 1, attempt 3, for 20 s\n"
            "Dora fails: no connection\n"
            "a day later\n"
            "Ann gets nothing\n"
            "the operator says: not needed\n"
            "    operation 1, of event 1, is void: not needed\n"
            "    operation 2, of event 2, attempt 1\n"
            "    operation 3, of event 3, attempt 1\n"
            "    Bob is told: PAWL_OK\n"
            "row 2: 100\n"
            "row 3: 5\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_run_that_is_early_waits_for_its_turn_and_one_that_read_too_early_begins_again),
        RUN(a_number_is_never_lost_it_is_worked_on_again_or_void),
    };
    return TEST_MAIN(tests);
}

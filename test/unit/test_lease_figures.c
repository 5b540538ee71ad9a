/* What a lease table says of itself: estimates, rates, waits, alerts; and what it does when much is due at
 * once. */
#include "test/lib/test.h"

#include "core/lease/estimate.h"
#include "core/lease/minute.h"
#include "core/lease/words.h"
#include "test/lib/alloc.h"
#include "test/lib/lease.h"

static const struct estimate_limits limits = {30 * PAWL_SECOND, PAWL_SECOND, 600 * PAWL_SECOND};

TEST(sizes_fall_into_classes_by_powers_of_two)
{
    static const struct {
        size_t bytes;
        uint8_t size_class;
    } cases[] = {
        {0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {1023, 10}, {1024, 11}, {SIZE_MAX, 63}, {SIZE_MAX / 2, 63}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(estimate_class(cases[i].bytes), cases[i].size_class);
}

TEST(an_estimate_is_twice_the_average_within_its_limits)
{
    struct estimate e = {0};
    assert_int_equal(estimate_get(&e, 5, &limits), 30 * PAWL_SECOND);
    estimate_observe(&e, 5, 8 * PAWL_SECOND);
    assert_int_equal(estimate_get(&e, 5, &limits), 16 * PAWL_SECOND);
    estimate_observe(&e, 5, 16 * PAWL_SECOND);
    assert_int_equal(estimate_get(&e, 5, &limits), 18 * PAWL_SECOND);
    estimate_observe(&e, 5, PAWL_SECOND);
    assert_int_equal(estimate_get(&e, 5, &limits), 16 * PAWL_SECOND);
    for (int i = 0; i < 200; i++)
        estimate_observe(&e, 5, 1);
    assert_int_equal(estimate_get(&e, 5, &limits), PAWL_SECOND);
    for (int i = 0; i < 200; i++)
        estimate_observe(&e, 5, 600 * PAWL_SECOND);
    assert_int_equal(estimate_get(&e, 5, &limits), 600 * PAWL_SECOND);
}

TEST(a_size_that_was_never_seen_borrows_from_the_nearest)
{
    struct estimate e = {0};
    estimate_observe(&e, 10, 10 * PAWL_SECOND);
    assert_int_equal(estimate_get(&e, 0, &limits), 20 * PAWL_SECOND);
    assert_int_equal(estimate_get(&e, 63, &limits), 20 * PAWL_SECOND);
    estimate_observe(&e, 20, 40 * PAWL_SECOND);
    assert_int_equal(estimate_get(&e, 14, &limits), 20 * PAWL_SECOND);
    assert_int_equal(estimate_get(&e, 15, &limits), 80 * PAWL_SECOND);
    assert_int_equal(estimate_get(&e, 16, &limits), 80 * PAWL_SECOND);
    estimate_observe(&e, 0, 5 * PAWL_SECOND);
    estimate_observe(&e, 63, 50 * PAWL_SECOND);
    assert_int_equal(estimate_get(&e, 0, &limits), 10 * PAWL_SECOND);
    assert_int_equal(estimate_get(&e, 63, &limits), 100 * PAWL_SECOND);
}

TEST(leases_follow_what_work_of_their_size_and_projection_takes)
{
    pawl_leases_options two = {.projections = 2};
    play(&two, "bind x1000        -> 1\n"
               "bind x1000        -> 2\n"
               "bind p1           -> 3\n"
               "acquire a         -> a=1\n"
               "wait 7s           -> quiet\n"
               "ready a           -> ok\n"
               "estimate x1000    -> 14s\n"
               "estimate x9       -> 14s\n"
               "estimate p1 x1000 -> 30s\n"
               "acquire b         -> b=2\n"
               "look 2            -> leased try 1 for 14s\n"
               "acquire c p1      -> c=3\n"
               "look 3            -> leased try 1 for 30s\n"
               "wait 15s          -> changed 1\n"
               "ready b           -> ok\n" /* late, and learnt from */
               "estimate x1000    -> 16s\n"
               "estimate p2       -> 0s\n");
}

static struct minute *minute_new(void)
{
    struct minute *minute = malloc(sizeof *minute);
    assert_non_null(minute);
    minute_init(minute);
    return minute;
}

TEST(the_ninety_ninth_percentile_is_right_within_an_eighth)
{
    uint64_t state = test_seed(99);
    for (int round = 0; round < 100; round++) {
        struct minute *minute = minute_new();
        pawl_instant now = {test_random(&state) % (UINT64_C(1) << 50)};
        pawl_duration wait = test_random(&state) >> test_below(&state, 64);
        assert_int_equal(minute_p99(minute, now), 0);
        for (int i = 0; i < 99; i++)
            minute_turn(minute, now, wait);
        minute_turn(minute, now, UINT64_MAX);
        pawl_duration p99 = minute_p99(minute, now);
        assert_true(p99 >= wait && p99 - wait <= wait / 8);
        minute_turn(minute, now, UINT64_MAX);
        assert_true(minute_p99(minute, now) == UINT64_MAX);
        free(minute);
    }
}

TEST(after_a_minute_nothing_is_left)
{
    struct minute *minute = minute_new();
    pawl_instant then = {123 * PAWL_SECOND};
    minute_now(minute, then)->expired += 7;
    minute_turn(minute, then, 5 * PAWL_SECOND);
    for (uint64_t s = 0; s < 300; s++) {
        pawl_instant now = {then.ns + s * PAWL_SECOND};
        pawl_lease_minute sums = minute_sum(minute, now);
        if (s <= 59)
            assert_true(sums.expired == 7 && sums.turns == 1 && sums.waited == 5 * PAWL_SECOND);
        if (s > 61)
            assert_true(sums.expired == 0 && sums.turns == 0 && sums.waited == 0);
        if (s <= 34)
            assert_true(minute_p99(minute, now) >= 5 * PAWL_SECOND);
        if (s > 69)
            assert_true(minute_p99(minute, now) == 0);
    }
    pawl_instant round_later = {then.ns + ((uint64_t)MINUTE_SLICES << MINUTE_SLICE_BITS)};
    minute_now(minute, round_later)->voids++;
    assert_int_equal(minute_sum(minute, round_later).expired, 0);
    free(minute);
}

/* So many numbers are bound, acquired and handed in one after the other, each after this time. */
static void hand_in(struct desk *desk, int count, const char *wait)
{
    for (int i = 0; i < count; i++) {
        uint64_t number = desk->held['h' - 'a'].number + 1;
        char script[200];
        snprintf(script, sizeof script,
                 "bind -> %llu\nacquire h for 600s -> h=%llu\nwait %s -> quiet\nready h -> ok\n",
                 (unsigned long long)number, (unsigned long long)number, wait);
        desk_play(desk, script);
    }
}

TEST(expiries_alert_above_their_share_and_not_below_20_samples)
{
    struct desk desk;
    desk_open(&desk, NULL);
    hand_in(&desk, 18, "1ms");
    desk_play(&desk, "bind                   -> 19\n"
                     "acquire x              -> x=19\n"
                     "wait 2s                -> changed 1\n"
                     "figures expired alerts -> 1 0\n" /* of 19 */
                     "acquire x for 600s     -> x=19\n"
                     "ready x                -> ok\n"
                     "figures alerts         -> 0\n"); /* 1 of 20 is not above 5 % */
    desk_play(&desk, "bind                   -> 20\n"
                     "acquire x              -> x=20\n"
                     "wait 2s                -> changed 1\n"
                     "figures alerts         -> 1\n" /* 2 of 21 */
                     "wait 61s               -> quiet\n"
                     "figures alerts expired -> 0 2\n");
    desk_close(&desk);
}

TEST(long_waits_alert_and_not_below_20_samples)
{
    struct desk desk;
    desk_open(&desk, NULL);
    desk_play(&desk, "bind                   -> 1\n"
                     "acquire a for 600s     -> a=1\n");
    desk.held['h' - 'a'].number = 1;
    hand_in(&desk, 18, "1ms");
    desk_play(
        &desk,
        "wait 6s                -> quiet\n"
        "ready a                -> ok\n"
        "take                   -> 1=a 2=h 3=h 4=h 5=h 6=h 7=h 8=h 9=h 10=h 11=h 12=h 13=h 14=h 15=h 16=h "
        "17=h 18=h 19=h\n"
        "figures alerts well    -> 0 0\n"
        "bind                   -> 20\n"
        "acquire b              -> b=20\n"
        "ready b                -> ok\n"
        "wait 6s                -> quiet\n"
        "take                   -> 20=b\n"
        "figures alerts well    -> 2 0\n"
        "figures wait_ms p99_ms -> 5707 6442\n"
        "wait 70s               -> quiet\n"
        "figures alerts well wait_ms p99_ms -> 0 1 0 0\n");
    desk_close(&desk);
}

TEST(many_active_leases_and_many_voids_alert)
{
    pawl_leases_options options = {.thresholds = {.active = 3, .voids = 2}};
    play(&options, "bind 4                 -> 1 2 3 4\n"
                   "acquire abc            -> a=1 b=2 c=3\n"
                   "figures active alerts  -> 3 0\n"
                   "acquire d              -> d=4\n"
                   "figures active alerts  -> 4 4\n"
                   "void 1 x               -> ok\n"
                   "void 2 x               -> ok\n"
                   "figures active alerts  -> 2 0\n"
                   "break c x              -> ok\n"
                   "figures voids alerts   -> 3 8\n"
                   "wait 20s               -> quiet\n"
                   "figures voids alerts   -> 3 8\n"
                   "wait 41s               -> changed 1\n"
                   "figures voids alerts   -> 3 0\n");
}

TEST(efficiency_and_utilisation_are_of_the_last_minute)
{
    play(NULL, "figures percent well used -> 100 1 0\n"
               "bind 3                    -> 1 2 3\n"
               "acquire abc for 10s       -> a=1 b=2 c=3\n"
               "wait 5s                   -> quiet\n"
               "ready a                   -> ok\n"
               "figures used              -> 50\n"
               "ready b                   -> ok\n"
               "wait 6s                   -> changed 1\n"
               "figures used              -> 67\n" /* (5 + 5 + 10) / 30 */
               "take                      -> 1=a 2=b\n"
               "commit 2                  -> ok\n"
               "figures percent well      -> 67 0\n"
               "wait 62s                  -> quiet\n"
               "figures percent well used -> 100 1 0\n"
               "figures committed expired -> 2 1\n");
}

TEST(every_alert_says_what_it_means_and_what_to_do)
{
    for (unsigned alert = PAWL_LEASE_ALERT_EXPIRED; alert <= PAWL_LEASE_ALERT_STALLED; alert *= 2) {
        assert_true(strlen(pawl_lease_alert_text((pawl_lease_alert)alert)) > 10);
        assert_true(strlen(pawl_lease_alert_advice((pawl_lease_alert)alert)) > 10);
    }
    assert_string_equal(pawl_lease_alert_text((pawl_lease_alert)3), "");
    assert_string_equal(pawl_lease_alert_advice((pawl_lease_alert)3), "");
}

enum { CROWD = 1000 };

struct crowd {
    struct desk *desk;
    pawl_lease leases[CROWD];
    size_t count;
};

static void bind_crowd(void *arg)
{
    struct crowd *crowd = arg;
    uint64_t number;
    for (int i = 0; i < CROWD; i++)
        assert_ok(pawl_leases_bind(crowd->desk->leases, 0, NULL, 0, &number));
}

static void acquire_crowd(void *arg)
{
    struct crowd *crowd = arg;
    assert_ok(pawl_leases_acquire(crowd->desk->leases, 0, PAWL_SECOND, CROWD, crowd->leases, &crowd->count));
}

static void take_here(void *arg)
{
    struct crowd *crowd = arg;
    pawl_turn turns[CROWD];
    crowd->count = pawl_leases_take(crowd->desk->leases, CROWD, turns);
}

static size_t take_all(struct desk *desk)
{
    struct crowd crowd = {.desk = desk};
    desk_run(desk, take_here, &crowd);
    return crowd.count;
}

/* So many numbers are bound and acquired, on the shard. */
struct taking {
    struct desk *desk;
    size_t count;
};

static void take_many(void *arg)
{
    const struct taking *taking = arg;
    pawl_leases *leases = taking->desk->leases;
    for (size_t i = 0; i < taking->count; i++) {
        pawl_lease lease;
        uint64_t number;
        size_t count;
        assert_ok(pawl_leases_bind(leases, 0, NULL, 0, &number));
        assert_ok(pawl_leases_acquire(leases, 0, 600 * PAWL_SECOND, 1, &lease, &count));
    }
}

static void void_many(void *arg)
{
    const struct taking *taking = arg;
    uint64_t number;
    for (size_t i = 0; i < taking->count; i++) {
        assert_ok(pawl_leases_bind(taking->desk->leases, 0, NULL, 0, &number));
        assert_ok(pawl_leases_void(taking->desk->leases, number, "x"));
    }
}

TEST(a_thousand_active_leases_and_a_hundred_voids_are_not_alarming_and_one_more_is)
{
    struct desk desk;
    desk_open(&desk, NULL);
    desk_run(&desk, take_many, &(struct taking){&desk, 1000});
    desk_play(&desk, "figures active alerts -> 1000 0\n");
    desk_run(&desk, take_many, &(struct taking){&desk, 1});
    desk_play(&desk, "figures active alerts -> 1001 4\n");
    desk_close(&desk);
    desk_open(&desk, NULL);
    desk_run(&desk, void_many, &(struct taking){&desk, 100});
    desk_play(&desk, "figures voids alerts -> 100 0\n");
    desk_run(&desk, void_many, &(struct taking){&desk, 1});
    desk_play(&desk, "figures voids alerts -> 101 8\n"
                     "wait 62s             -> quiet\n"
                     "figures voids alerts -> 101 0\n");
    desk_close(&desk);
}

static const pawl_lease_thresholds usual;

/* What so many tables of the same figures raise together. */
static uint32_t alerts_of(pawl_lease_figures one, size_t tables)
{
    pawl_lease_figures sum = {0};
    for (size_t i = 0; i < tables; i++)
        pawl_lease_figures_add(&sum, &one);
    return pawl_lease_alerts(&sum, &usual);
}

TEST(figures_of_many_tables_are_judged_together)
{
    static const struct {
        pawl_lease_figures one;
        size_t quiet; /* so many tables raise nothing */
        size_t alarming;
        uint32_t alert;
    } cases[] = {
        {{.active = 900}, 1, 16, PAWL_LEASE_ALERT_ACTIVE},
        {{.active = 250}, 4, 5, PAWL_LEASE_ALERT_ACTIVE},
        {{.minute = {.voids = 25}}, 4, 5, PAWL_LEASE_ALERT_VOIDS},
        {{.minute = {.ended = 1, .expired = 1}}, 19, 20, PAWL_LEASE_ALERT_EXPIRED},
        {{.minute = {.turns = 1, .waited = 6 * PAWL_SECOND}}, 19, 20, PAWL_LEASE_ALERT_WAIT},
        {{.stalled = 1}, 0, 1, PAWL_LEASE_ALERT_STALLED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(alerts_of(cases[i].one, cases[i].quiet), 0);
        assert_int_equal(alerts_of(cases[i].one, cases[i].alarming), cases[i].alert);
    }
    assert_int_equal(alerts_of((pawl_lease_figures){.minute = {.ended = 100, .expired = 5}}, 16), 0);
    assert_int_equal(alerts_of((pawl_lease_figures){.minute = {.turns = 9, .waited = 45 * PAWL_SECOND}}, 16),
                     0);
}

TEST(rates_of_many_tables_are_those_of_all_their_work)
{
    pawl_lease_figures sum = {0};
    pawl_lease_figures busy = {.p99_wait = 2 * PAWL_SECOND,
                               .minute = {.turns = 99,
                                          .waited = 99 * PAWL_SECOND,
                                          .used = 90,
                                          .granted = 100,
                                          .committed = 98,
                                          .expired = 1}};
    pawl_lease_figures idle = {.p99_wait = 9 * PAWL_SECOND,
                               .minute = {.turns = 1, .waited = 9 * PAWL_SECOND, .granted = 100, .expired = 1}};
    pawl_lease_figures_add(&sum, &(pawl_lease_figures){0});
    assert_true(sum.efficiency == 1 && sum.performing_well && sum.utilisation == 0);
    pawl_lease_figures_add(&sum, &idle);
    assert_false(sum.performing_well);
    pawl_lease_figures_add(&sum, &busy);
    assert_int_equal(sum.average_wait, (99 + 9) * PAWL_SECOND / 100);
    assert_true(sum.utilisation == 0.45 && sum.efficiency == 0.98);
    assert_int_equal(sum.p99_wait, 9 * PAWL_SECOND);
    assert_false(sum.performing_well); /* by its wait */
}

TEST(what_is_not_counted_dilutes_no_rate_and_no_wait)
{
    struct desk desk;
    pawl_leases_options options = {.projections = 2};
    desk_open(&desk, &options);
    assert_ok(pawl_leases_uncounted(desk.leases, 1));
    assert_status(pawl_leases_uncounted(desk.leases, 2), PAWL_EINVAL);
    desk_play(&desk, "bind                -> 1\n"
                     "acquire a for 10s   -> a=1\n");
    for (int number = 2; number <= 101; number++) {
        char script[200];
        snprintf(script, sizeof script, "bind p1 -> %d\nacquire b p1 -> b=%d\nready b -> ok\n", number, number);
        desk_play(&desk, script);
    }
    desk_play(&desk, "wait 5s                      -> quiet\n"
                     "ready a                      -> ok\n"
                     "wait 2s                      -> quiet\n"
                     "figures used                 -> 50\n"
                     "figures waiting acquired     -> 101 101\n");
    assert_int_equal(take_all(&desk), 101);
    desk_play(&desk, "commit 101                   -> ok\n"
                     "figures committed wait_ms    -> 101 2000\n"
                     "bind                         -> 102\n"
                     "acquire a for 1s             -> a=102\n"
                     "wait 2s                      -> changed 1\n"
                     "figures percent              -> 50\n" /* 1 of 2 */
                     "bind p1                      -> 103\n"
                     "void 103 x                   -> ok\n");
    pawl_lease_figures figures;
    pawl_leases_figures_get(desk.leases, &figures);
    assert_int_equal(figures.minute.ended, 2);
    assert_int_equal(figures.minute.turns, 1);
    assert_int_equal(figures.minute.voids, 1); /* somebody should be told of these, whoever made them */
    desk_close(&desk);
}

TEST(a_thousand_that_expire_at_once_are_a_few_firings_and_lose_no_order)
{
    struct desk desk;
    struct crowd crowd = {.desk = &desk};
    desk_open(&desk, NULL);
    desk_run(&desk, bind_crowd, &crowd);
    desk_run(&desk, acquire_crowd, &crowd);
    assert_int_equal(crowd.count, CROWD);
    desk_play(&desk, "wait 2s                -> changed 4\n" /* 256 each */
                     "figures active expired -> 0 1000\n");
    desk_run(&desk, acquire_crowd, &crowd);
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(crowd.leases[i].number, i + 1);
        assert_int_equal(crowd.leases[i].attempt, 2);
        assert_int_equal(crowd.leases[i].duration, 2 * PAWL_SECOND);
    }
    desk_close(&desk);
}

TEST(a_number_is_handed_in_between_its_deadline_and_its_turn_to_expire)
{
    pawl_leases_options untimed = {.untimed = true};
    struct desk desk;
    struct crowd crowd = {.desk = &desk};
    desk_open(&desk, &untimed);
    desk_run(&desk, bind_crowd, &crowd);
    desk_run(&desk, acquire_crowd, &crowd);
    desk.held[0].number = CROWD;
    desk.held[0].operation = crowd.leases[CROWD - 1].operation;
    desk_play(&desk, "wait 2s        -> quiet\n"
                     "tick           -> changed 1, more\n"
                     "figures active -> 744\n"
                     "ready a        -> ok\n"
                     "tick           -> changed 1, more\n"
                     "tick           -> changed 1, more\n"
                     "tick           -> changed 1, nothing runs\n"
                     "figures active waiting expired -> 0 1 999\n");
    desk_close(&desk);
}

TEST(words_are_cut_at_a_character_and_given_back)
{
    struct test_alloc memory;
    struct words words;
    uint32_t places[130] = {0};
    char text[PAWL_LEASE_WORDS_MAX + 10];
    test_alloc_init(&memory);
    assert_ok(words_init(&words, &memory.allocator, 130));
    memset(text, 'a', sizeof text);
    memcpy(text + PAWL_LEASE_WORDS_MAX - 1, "\xc3\xa4", 3);
    words_set(&words, &places[0], text);
    assert_int_equal(strlen(words_get(&words, places[0])), PAWL_LEASE_WORDS_MAX - 1);
    text[PAWL_LEASE_WORDS_MAX - 1] = 'a';
    text[PAWL_LEASE_WORDS_MAX] = 0;
    words_set(&words, &places[0], text);
    assert_string_equal(words_get(&words, places[0]), text);
    words_set(&words, &places[0], words_get(&words, places[0])); /* its own */
    assert_string_equal(words_get(&words, places[0]), text);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 130; i++) {
            snprintf(text, sizeof text, "number %d", i);
            words_set(&words, &places[i], text);
        }
        for (int i = 0; i < 130; i++) {
            snprintf(text, sizeof text, "number %d", i);
            assert_string_equal(words_get(&words, places[i]), text);
            words_set(&words, &places[i], NULL);
            assert_string_equal(words_get(&words, places[i]), "");
        }
    }
    assert_int_equal(memory.calls, 1 + 3); /* chunks of 64 */
    words_release(&words);
    test_alloc_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(sizes_fall_into_classes_by_powers_of_two),
        RUN(an_estimate_is_twice_the_average_within_its_limits),
        RUN(a_size_that_was_never_seen_borrows_from_the_nearest),
        RUN(leases_follow_what_work_of_their_size_and_projection_takes),
        RUN(the_ninety_ninth_percentile_is_right_within_an_eighth),
        RUN(after_a_minute_nothing_is_left),
        RUN(expiries_alert_above_their_share_and_not_below_20_samples),
        RUN(long_waits_alert_and_not_below_20_samples),
        RUN(many_active_leases_and_many_voids_alert),
        RUN(efficiency_and_utilisation_are_of_the_last_minute),
        RUN(every_alert_says_what_it_means_and_what_to_do),
        RUN(a_thousand_active_leases_and_a_hundred_voids_are_not_alarming_and_one_more_is),
        RUN(figures_of_many_tables_are_judged_together),
        RUN(rates_of_many_tables_are_those_of_all_their_work),
        RUN(what_is_not_counted_dilutes_no_rate_and_no_wait),
        RUN(a_thousand_that_expire_at_once_are_a_few_firings_and_lose_no_order),
        RUN(a_number_is_handed_in_between_its_deadline_and_its_turn_to_expire),
        RUN(words_are_cut_at_a_character_and_given_back),
    };
    return TEST_MAIN(tests);
}

#include "test/lib/test.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/lib/bench.h"
#include "bench/peers/load.h"

/* What the next rounds return, and who was asked in which order. */
static double next_ours[8], next_peer[8];
static char order[32];
static char last_dir[256];
static char *extra; /* one more option */

static double take(const struct bench_round *round, char who, const double *values)
{
    struct stat st;
    size_t asked = strlen(order), turn = 0;
    for (size_t i = 0; i < asked; i++)
        turn += order[i] == who;
    order[asked] = who;
    order[asked + 1] = '\0';
    assert_int_equal(stat(round->dir, &st), 0);
    assert_ptr_equal(round->arg, order);
    snprintf(last_dir, sizeof last_dir, "%s", round->dir);
    return values[turn];
}

static double ours(const struct bench_round *round)
{
    char path[300];
    snprintf(path, sizeof path, "%s/left-behind", round->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    return take(round, 'a', next_ours);
}

static double peer(const struct bench_round *round)
{
    return take(round, 'b', next_peer);
}

/* Runs one question for three rounds; returns the exit status, and the JSON in text. */
static int run(struct bench_question q, char *text, size_t size)
{
    char json[] = "/tmp/pawl-test-bench-XXXXXX";
    int fd = mkstemp(json);
    assert_true(fd >= 0);
    close(fd);
    char *argv[] = {"./bench_tried", "--rounds", "3", "--dir", "/tmp", "--json", json, extra, NULL};
    q.arg = order;
    order[0] = '\0';
    int status = bench_main(extra ? 8 : 7, argv, &q, 1);
    FILE *file = fopen(json, "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    unlink(json);
    return status;
}

static void set(double *values, double a, double b, double c)
{
    values[0] = a;
    values[1] = b;
    values[2] = c;
}

TEST(rounds_alternate_and_the_ratio_is_the_median_of_theirs)
{
    char text[2048];
    set(next_ours, 900, 100, 200);
    set(next_peer, 1, 50, 25);
    struct bench_question q = {"a \"quoted\\\" one\n", "op/s", BENCH_MORE, 8, ours, peer, NULL};
    assert_int_equal(run(q, text, sizeof text), 0);
    assert_string_equal(order, "ababab");
    assert_contains(text, "{\"question\": \"a \\\"quoted\\\\\\\" one\\u000a\", \"unit\": \"op/s\", \"ours\": "
                          "{\"median\": 200, \"least\": 100, \"most\": 900, \"processor_us\": ");
    assert_contains(text, "\"peer\": {\"median\": 25, \"least\": 1, \"most\": 50, ");
    assert_contains(text, "\"ratio\": 8, \"of\": \"ratio\", \"better\": \"more\", \"goal\": 8, \"met\": true}");
}

TEST(the_json_says_what_was_run)
{
    char text[2048];
    set(next_ours, 1, 1, 1);
    assert_int_equal(
        run((struct bench_question){"q", "ms", BENCH_LESS, 1, ours, NULL, NULL}, text, sizeof text), 0);
    assert_contains(text, "{\n  \"bench\": \"tried\",\n  \"commit\": \"");
    assert_contains(text, "\"rounds\": 3,\n  \"quick\": false,\n  \"peers\": {},\n  \"load_before\": ");
    assert_contains(text, "\"per\": \"round\"}");
}

static void use_processor(void)
{
    clock_t began = clock();
    while (clock() - began < CLOCKS_PER_SEC / 50)
        continue;
}

/* Prepares for 20 ms of processor time, works for none, and tidies up for as long. */
static double counts(const struct bench_round *round)
{
    use_processor();
    bench_per_second(1000, bench_begin());
    use_processor();
    return take(round, 'a', next_ours);
}

TEST(processor_time_is_of_the_work_alone_and_for_each_operation)
{
    char text[2048];
    set(next_ours, 1, 1, 1);
    set(next_peer, 1, 1, 1);
    struct bench_question q = {"q", "op/s", BENCH_MORE, 1, counts, peer, NULL};
    assert_int_equal(run(q, text, sizeof text), 0);
    const char *own = strstr(text, "\"ours\""), *other = strstr(text, "\"peer\"");
    assert_true(own && other && strstr(own, "\"per\": \"operation\"}") < other);
    assert_contains(other, "\"per\": \"round\"}");
    assert_true(strtod(strstr(own, "processor_us") + strlen("processor_us\": "), NULL) < 20);
}

TEST(without_its_peer_a_ratio_is_not_judged)
{
    char text[2048];
    set(next_ours, 1, 2, 3);
    extra = "--ours";
    struct bench_question q = {"q", "op/s", BENCH_MORE, 1, ours, peer, NULL};
    assert_int_equal(run(q, text, sizeof text), 0);
    extra = NULL;
    assert_string_equal(order, "aaa");
    assert_contains(text,
                    "\"peer\": null, \"ratio\": null, \"of\": \"ratio\", \"better\": \"more\", \"goal\": 1, "
                    "\"met\": null}");
}

TEST(a_goal_is_a_floor_or_a_ceiling)
{
    static const struct {
        enum bench_better better;
        double goal;
        const char *met;
    } cases[] = {
        {BENCH_MORE, 1.9, "\"met\": true"},
        {BENCH_MORE, 2.1, "\"met\": false"},
        {BENCH_LESS, 2.1, "\"met\": true"},
        {BENCH_LESS, 1.9, "\"met\": false"},
    };
    char text[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set(next_ours, 20, 20, 20);
        set(next_peer, 10, 10, 10);
        struct bench_question q = {"q", "ns/op", cases[i].better, cases[i].goal, ours, peer, NULL};
        assert_int_equal(run(q, text, sizeof text), 0);
        assert_contains(text, cases[i].met);
    }
}

TEST(without_a_peer_the_goal_is_absolute)
{
    char text[2048];
    set(next_ours, 110, 110, 110);
    struct bench_question q = {"q", "ns/op", BENCH_LESS, 120, ours, NULL, NULL};
    assert_int_equal(run(q, text, sizeof text), 0);
    assert_contains(text,
                    "\"peer\": null, \"ratio\": null, \"of\": \"ours\", \"better\": \"less\", \"goal\": 120, "
                    "\"met\": true}");
}

TEST(a_round_that_fails_ends_the_bench_and_leaves_nothing)
{
    char text[2048];
    struct stat st;
    set(next_ours, 1, 1, 1);
    set(next_peer, 1, -1, 1);
    struct bench_question q = {"q", "op/s", BENCH_MORE, 1, ours, peer, NULL};
    assert_int_equal(run(q, text, sizeof text), 1);
    assert_string_equal(order, "abab");
    assert_string_equal(text, "");
    assert_int_equal(stat(last_dir, &st), -1);
}

/* A server that gives its one client these answers, one for each question. */
struct answers {
    int listener;
    const char *const *list;
};

static void *answer_all(void *arg)
{
    const struct answers *a = arg;
    char question[64];
    int fd = accept(a->listener, NULL, NULL);
    for (size_t i = 0; a->list[i] && recv(fd, question, sizeof question, 0) > 0; i++)
        (void)!send(fd, a->list[i], strlen(a->list[i]), MSG_NOSIGNAL);
    close(fd);
    return NULL;
}

static bool load_redis(const char *const *list, uint64_t most)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof to;
    struct answers a = {socket(AF_INET, SOCK_STREAM, 0), list};
    struct loaded loaded;
    pawl_bytes ask = text_bytes("XADD");
    pthread_t thread;
    assert_int_equal(bind(a.listener, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(listen(a.listener, 1), 0);
    assert_int_equal(getsockname(a.listener, (struct sockaddr *)&to, &size), 0);
    assert_int_equal(pthread_create(&thread, NULL, answer_all, &a), 0);
    bool ok = load_run(&(struct load){.speech = SPEAK_RESP,
                                      .port = ntohs(to.sin_port),
                                      .clients = 1,
                                      .ask_count = 1,
                                      .asks = &ask,
                                      .duration = UINT64_C(600000000000),
                                      .most = most},
                       &loaded);
    pthread_join(thread, NULL);
    close(a.listener);
    return ok;
}

TEST(what_redis_refuses_is_no_operation)
{
    assert_true(load_redis((const char *const[]){"$3\r\n1-0\r\n", "$3\r\n2-0\r\n", NULL}, 2));
    assert_false(load_redis((const char *const[]){"$3\r\n1-0\r\n", "-MISCONF the disk is full\r\n", NULL}, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(rounds_alternate_and_the_ratio_is_the_median_of_theirs),
        RUN(the_json_says_what_was_run),
        RUN(processor_time_is_of_the_work_alone_and_for_each_operation),
        RUN(without_its_peer_a_ratio_is_not_judged),
        RUN(a_goal_is_a_floor_or_a_ceiling),
        RUN(without_a_peer_the_goal_is_absolute),
        RUN(a_round_that_fails_ends_the_bench_and_leaves_nothing),
        RUN(what_redis_refuses_is_no_operation),
    };
    return TEST_MAIN(tests);
}

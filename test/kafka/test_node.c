/* test_node.c: an engine whose log is on real brokers, which PAWL_KAFKA names: it works as one with a log of its own, one
 * node at a time owns it, and its machine may be lost. Every test has a cluster of its own on those brokers. */
#include <pawl/cluster.h>

#include <signal.h>

#include "adapter/kafka/kafka.h"
#include "adapter/mirror/mirror.h"
#include "base/latch.h"
#include "engine/directory/directory.h"
#include "engine/node/node.h"
#include "test/lib/child.h"
#include "test/lib/lanes.h"

#define PARTITIONS 4
#define NOTES      ", \"workers\": 2"
#define VIEW       "t.by_who"

static char url[400];

static void begin_cluster(const char *name)
{
    pawl_error error = {0};
    snprintf(url, sizeof url, "kafka://%s/%s-%d", getenv("PAWL_KAFKA"), name, (int)getpid());
    int status = pawl_cluster_init(url, PARTITIONS, 0, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
}

/* A node on this test's cluster, with the schema and the workspaces. */
static void begin_first(struct lanes_bed *bed, const char *cluster)
{
    begin_cluster(cluster);
    *bed = (struct lanes_bed){.options = {.log = url, .partitions = PARTITIONS, .shards = 2}};
    bed_begin(bed, LANES_SCHEMA(NOTES));
}

/* Another one, which is not open yet. */
static void begin_other(struct lanes_bed *bed)
{
    *bed = (struct lanes_bed){.options = {.log = url, .wait = BED_PATIENCE}};
    test_dir_make(bed->dir, sizeof bed->dir);
    snprintf(bed->path, sizeof bed->path, "%s/data", bed->dir);
}

static void take_over(struct lanes_bed *bed)
{
    bed->options.take_over = true;
    bed_open(bed);
    bed->options.take_over = false;
}

static int send_keyed(struct lanes_bed *bed, uint64_t wsid, const char *key, pawl_answer *ret_answer)
{
    pawl_request_begin(bed->request, wsid, "t.Bill");
    pawl_request_key(bed->request, key);
    pawl_request_record(bed->request, 1, "t.Item");
    pawl_request_set_string(bed->request, "who", "ada");
    pawl_request_set_int64(bed->request, "cents", 1);
    return pawl_command(bed->engine, bed->request, ret_answer, &bed->error);
}

static void assert_bills(struct lanes_bed *bed, uint64_t wsid, int bills)
{
    char words[32];
    bed_wait(bed, "t.totals");
    snprintf(words, sizeof words, "\"bills\":%d", bills);
    assert_contains(bed_row(bed, wsid, "t.Total", "[\"ada\"]", 0), words);
}

/* The state is what the log says, in both stores. */
static void assert_sound(const char *dir)
{
    pawl_state_report report;
    pawl_error error = {0};
    const pawl_replay_options options = {.dir = dir, .backup = true, .audit = true, .reproject = true};
    int status = pawl_replay(&options, &report, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    if (report.live.differences + report.checkpoint.differences + report.lanes.differences > 0)
        print_error("%s %s\n", report.live.first.text, report.checkpoint.first.text);
    assert_int_equal(report.live.differences + report.checkpoint.differences + report.lanes.differences, 0);
    assert_int_equal(report.live.compared, PARTITIONS);
    assert_int_equal(report.live.behind, 0);
    assert_true(report.events > 0 && report.live.views > 0);
}

static void make_view(struct lanes_bed *bed)
{
    static const char *const key[] = {"who"};
    const pawl_view_definition view = {.name = VIEW, .base = "t.Total", .key = key, .key_count = 1};
    assert_ok(pawl_view_create(bed->engine, &view, &bed->error));
    assert_ok(pawl_view_wait(bed->engine, VIEW, BED_PATIENCE, &bed->error));
}

static size_t view_rows(struct lanes_bed *bed)
{
    pawl_text text;
    pawl_view_answer answer;
    const pawl_view_query query = {.complete = true};
    assert_ok(pawl_view_list(bed->engine, VIEW, &query, (pawl_bytes){0}, (pawl_bytes){0}, (pawl_bytes){0},
                             &text, &answer, &bed->error));
    pawl_text_free(&text);
    return answer.rows;
}

/* --- the same engine --- */

TEST(a_node_does_what_one_on_files_does_and_an_empty_directory_brings_all_of_it_back)
{
    struct lanes_bed bed, other;
    pawl_answer first, again;
    pawl_histogram histogram = {.count = 7};
    begin_first(&bed, "all");
    for (int i = 0; i < 200; i++)
        bed_send(&bed, 1 + (uint64_t)i % TENANTS, "t.Bill", "ada", 1);
    assert_ok(send_keyed(&bed, 1, "k1", &first));
    make_view(&bed);
    assert_bills(&bed, 1, 26);
    assert_ok(pawl_lane_rebuild(bed.engine, "t.totals", &bed.error));
    bed_send(&bed, 2, "t.Ask", "bob", 1);
    assert_bills(&bed, 1, 26);
    assert_ok(pawl_view_wait(bed.engine, VIEW, BED_PATIENCE, &bed.error));
    assert_int_equal(view_rows(&bed), TENANTS);
    assert_ok(pawl_histogram_get(bed.engine, PAWL_HISTOGRAM_SYNC, 10, &histogram, &bed.error));
    assert_int_equal(histogram.count, 0); /* the brokers sync, not this process */
    bed_close(&bed);

    bed.options.log = NULL; /* the directory knows */
    bed_open(&bed);
    assert_ok(send_keyed(&bed, 1, "k1", &again));
    assert_true(again.repeated);
    assert_int_equal(again.offset, first.offset);
    assert_bills(&bed, 1, 26);
    assert_int_equal(view_rows(&bed), TENANTS);
    bed_wait(&bed, "t.marks");
    bed_close(&bed);
    assert_sound(bed.path);

    begin_other(&other);
    take_over(&other);
    assert_ok(pawl_view_wait(other.engine, VIEW, BED_PATIENCE, &other.error));
    assert_ok(send_keyed(&other, 1, "k1", &again));
    assert_true(again.repeated);
    assert_int_equal(again.offset, first.offset);
    assert_bills(&other, 1, 26);
    assert_int_equal(view_rows(&other), TENANTS);
    bed_wait(&other, "t.marks");
    assert_int_equal(bed_count(&other, 2, "t.Mark"), 1);
    bed_close(&other);
    assert_sound(other.path);
    bed_end(&bed);
    bed_end(&other);
}

TEST(a_node_claims_from_where_it_knows_its_streams)
{
    struct lanes_bed bed;
    struct kafka_figures figures;
    pawl_mirror_figures mirror;
    begin_first(&bed, "known");
    for (int i = 0; i < 300; i++)
        bed_send(&bed, 1 + (uint64_t)i % TENANTS, "t.Bill", "ada", 1);
    make_view(&bed);
    assert_bills(&bed, 1, 38);
    mirror_figures(bed.engine->log, &mirror);
    assert_true(mirror.hits > 0); /* lanes and checkpoints have read there */
    bed_close(&bed);
    bed_open(&bed);
    kafka_log_figures(bed.engine->kafka, &figures);
    uint64_t claims = figures.claims_won;
    assert_true(claims >= PARTITIONS);
    assert_true(figures.owner_read
                <= 2 * claims); /* each reads its own claim, and what the close before left */
    bed_close(&bed);
    assert_sound(bed.path);
    bed_end(&bed);
}

TEST(a_backup_holds_the_state_and_what_is_restored_is_another_node)
{
    struct lanes_bed bed, other;
    struct node_file file, saved, restored;
    pawl_backup_report report;
    pawl_log_report log;
    pawl_doctor_report doctor;
    char saved_to[300], derived_to[300];
    begin_first(&bed, "saved");
    begin_other(&other);
    for (int i = 0; i < 50; i++)
        bed_send(&bed, 1, "t.Bill", "ada", 1);
    assert_bills(&bed, 1, 50);
    snprintf(saved_to, sizeof saved_to, "%s/saved", other.dir);
    snprintf(derived_to, sizeof derived_to, "%s/derived", other.dir);
    pawl_backup_options backup = {.dir = bed.path, .to = saved_to};
    bed_close(&bed);
    assert_ok(pawl_backup(&backup, &report, &bed.error));
    assert_int_equal(report.log_bytes, 0);
    bed_open(&bed);
    bed_send(&bed, 1, "t.Bill", "ada", 1); /* behind the backup: the log has it */
    bed_close(&bed);

    pawl_backup_options restore = {.dir = saved_to, .to = other.path, .until = 7};
    assert_status(pawl_restore(&restore, &report, &other.error), PAWL_EINVAL);
    assert_contains(other.error.text, "replay --until");
    restore.until = 0;
    int status = pawl_restore(&restore, &report, &other.error);
    if (status != PAWL_OK)
        print_error("%s\n", other.error.text);
    assert_ok(status);
    assert_ok(node_file_read(bed.path, &file, NULL));
    assert_ok(node_file_read(saved_to, &saved, NULL));
    assert_ok(node_file_read(other.path, &restored, NULL));
    assert_string_equal(restored.log, file.log);
    assert_true(saved.node == file.node && restored.node != file.node && restored.node != 0);
    assert_status(pawl_open(other.path, &other.options, &other.engine, &other.error), PAWL_ELOCKED);
    take_over(&other);
    assert_bills(&other, 1, 51);
    bed_close(&other);

    /* What is for files says what to do instead. */
    assert_status(pawl_verify_log(bed.path, NULL, NULL, &log, &bed.error), PAWL_EINVAL);
    assert_contains(bed.error.text, "verify --log");
    assert_status(pawl_doctor(bed.path, NULL, NULL, NULL, &doctor, &bed.error), PAWL_EINVAL);
    assert_contains(bed.error.text, "verify --log");
    assert_status(pawl_log_recover(bed.path, &bed.error), PAWL_EINVAL);

    /* A derived state may become a node, too. */
    pawl_state_report state;
    const pawl_replay_options derive = {.dir = other.path, .to = derived_to, .until = 20};
    assert_ok(pawl_replay(&derive, &state, &other.error));
    snprintf(other.path, sizeof other.path, "%s", derived_to);
    take_over(&other);
    assert_bills(&other, 1, 51);
    bed_end(&other);
    bed_end(&bed);
}

/* --- one node at a time --- */

TEST(a_second_node_is_refused_and_told_who_the_first_is)
{
    struct lanes_bed bed, other;
    char host[128];
    begin_first(&bed, "second");
    begin_other(&other);
    assert_int_equal(gethostname(host, sizeof host), 0);
    for (int round = 0; round < 2; round++) {
        assert_status(pawl_open(other.path, &other.options, &other.engine, &other.error), PAWL_ELOCKED);
        assert_contains(other.error.text, bed.path);
        assert_contains(other.error.text, host);
        assert_contains(other.error.text, "take_over");
        bed_send(&bed, 1, "t.Bill", "ada", 1); /* the first one was not disturbed */
        assert_ok(pawl_owner_check(bed.engine, &bed.error));
        bed_close(&bed); /* it owns its log when it is closed, too */
        bed_open(&bed);
    }
    bed_end(&bed);
    bed_end(&other);
}

struct client {
    pawl_engine *engine;
    uint64_t wsid;
    int acknowledged; /* keys 0 .. acknowledged - 1 */
    int status;
    pawl_error error;
};

static void *go_on_sending(void *arg)
{
    struct client *c = arg;
    pawl_request *request;
    assert_ok(pawl_request_new(c->engine, &request));
    while (c->status == PAWL_OK) {
        char key[32];
        snprintf(key, sizeof key, "key %d", c->acknowledged);
        pawl_request_begin(request, c->wsid, "t.Bill");
        pawl_request_key(request, key);
        pawl_request_record(request, 1, "t.Item");
        pawl_request_set_string(request, "who", "ada");
        pawl_request_set_int64(request, "cents", 1);
        c->status = pawl_command(c->engine, request, NULL, &c->error);
        c->acknowledged += c->status == PAWL_OK;
    }
    pawl_request_free(request);
    return NULL;
}

static bool has_given_up(void *arg, const pawl_lane_status *status)
{
    return *(bool *)arg = status->state == PAWL_LANE_REFUSED;
}

static bool lanes_gave_up(struct lanes_bed *bed)
{
    bool gave_up = true;
    assert_ok(pawl_lanes_read(bed->engine, NULL, has_given_up, &gave_up, &bed->error));
    return gave_up;
}

TEST(a_node_that_is_taken_over_is_out_and_nothing_that_it_acknowledged_is_lost)
{
    struct lanes_bed bed, other;
    struct client clients[4] = {{0}};
    pthread_t threads[4];
    pawl_answer answer;
    begin_first(&bed, "taken");
    begin_other(&other);
    bed_send(&bed, 1, "t.Bill", "ada", 1);
    bed_wait(&bed, "t.totals");
    for (size_t i = 0; i < 4; i++) {
        clients[i] = (struct client){.engine = bed.engine, .wsid = 1 + i};
        assert_int_equal(pthread_create(&threads[i], NULL, go_on_sending, &clients[i]), 0);
    }
    take_over(&other);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(clients[i].status == PAWL_EFENCED || clients[i].status == PAWL_EUNKNOWN);
        assert_true(clients[i].error.text[0] != '\0');
    }
    BED_UNTIL(pawl_owner_check(bed.engine, &bed.error) == PAWL_EFENCED);
    assert_contains(bed.error.text, other.path); /* from the first moment on */
    assert_status(send_keyed(&bed, 1, "late", NULL), PAWL_EFENCED);
    assert_contains(bed.error.text, "has taken over");
    assert_contains(bed.error.text, other.path);
    assert_status(pawl_schema_apply(bed.engine, LANES_SCHEMA(NOTES), NULL, &bed.error), PAWL_EFENCED);
    pawl_alert alert;
    size_t alerts;
    pawl_alerts(bed.engine, &alert, 1, &alerts);
    assert_true(alerts == 1 && alert.kind == PAWL_ALERT_FENCED);
    assert_contains(alert.text, other.path);
    assert_contains(pawl_alert_advice(alert.kind), "take_over");
    pawl_alerts(other.engine, &alert, 1, &alerts);
    assert_int_equal(alerts, 0);
    BED_UNTIL(lanes_gave_up(&bed)); /* also those that have nothing to write, and would not notice */
    assert_true(bed_row(&bed, 1, "t.Total", "[\"ada\"]", 0)[0] != '\0'); /* it still reads */

    for (size_t i = 0; i < 4; i++) {
        char key[32];
        int last = clients[i].acknowledged - 1;
        if (last < 0)
            continue;
        snprintf(key, sizeof key, "key %d", last);
        assert_ok(send_keyed(&other, clients[i].wsid, key, &answer));
        assert_true(answer.repeated);
    }
    bed_send(&other, 1, "t.Bill", "bob", 1);
    assert_ok(pawl_owner_check(other.engine, &other.error));
    bed_close(&bed);

    /* It does not come back by itself, and neither does it disturb. */
    assert_status(pawl_open(bed.path, &bed.options, &bed.engine, &bed.error), PAWL_ELOCKED);
    assert_contains(bed.error.text, other.path);
    bed.engine = NULL;
    bed_send(&other, 1, "t.Bill", "bob", 1);
    take_over(&bed); /* it is told to */
    assert_contains(bed_row(&bed, 1, "t.Total", "[\"bob\"]", bed_send(&bed, 1, "t.Bill", "bob", 1)),
                    "\"bills\":3");
    BED_UNTIL(pawl_owner_check(other.engine, &other.error) == PAWL_EFENCED);
    bed_end(&other);
    bed_end(&bed);
}

static bool is_running(void *arg, const pawl_lane_status *status)
{
    return *(bool *)arg = status->state == PAWL_LANE_RUNNING;
}

/* Whether the node has claimed the operation logs of all its lanes. */
static bool lanes_run(struct lanes_bed *bed)
{
    bool running = true;
    assert_ok(pawl_lanes_read(bed->engine, NULL, is_running, &running, &bed->error));
    return running;
}

/* Two processes with the ID of one node: the second has it, and they do not take back from each other. A claim of the
 * first that came late would count, so it has made all of them before the second begins. */
TEST(of_a_directory_and_its_copy_the_one_that_was_opened_last_has_the_log)
{
    struct lanes_bed bed, copy;
    struct node_file file;
    int lock;
    begin_first(&bed, "copied");
    begin_other(&copy);
    bed_send(&bed, 1, "t.Bill", "ada", 1);
    BED_UNTIL(lanes_run(&bed));
    assert_ok(node_file_read(bed.path, &file, NULL));
    assert_ok(node_file_make(copy.path, &file, NULL));
    bed_open(&copy);
    assert_status(send_keyed(&bed, 1, "k", NULL), PAWL_EFENCED);
    BED_UNTIL(pawl_owner_check(bed.engine, &bed.error) == PAWL_EFENCED);
    assert_contains(bed.error.text, "copy");
    for (uint64_t wsid = 1; wsid <= TENANTS; wsid++) {
        assert_status(send_keyed(&bed, wsid, "k", NULL), PAWL_EFENCED);
        assert_ok(send_keyed(&copy, wsid, "k", NULL));
    }
    assert_bills(&copy, 1, 2);
    assert_ok(pawl_owner_check(copy.engine, &copy.error));
    assert_status(node_lock(copy.path, NODE_LOCK, &lock, &copy.error), PAWL_ELOCKED);
    bed_end(&bed);
    bed_end(&copy);
}

TEST(a_directory_keeps_its_log)
{
    struct lanes_bed bed, other;
    char elsewhere[500];
    begin_first(&bed, "kept");
    begin_other(&other);
    bed_close(&bed);
    snprintf(elsewhere, sizeof elsewhere, "kafka://%s/others", getenv("PAWL_KAFKA"));
    bed.options.log = elsewhere;
    assert_status(pawl_open(bed.path, &bed.options, &bed.engine, &bed.error), PAWL_EINVAL);
    assert_contains(bed.error.text, url);
    bed.options.log = "/tmp/log";
    assert_status(pawl_open(bed.path, &bed.options, &bed.engine, &bed.error), PAWL_EINVAL);
    assert_contains(bed.error.text, "kafka://HOST:PORT/CLUSTER");

    other.options.log = elsewhere; /* which was never made */
    assert_status(pawl_open(other.path, &other.options, &other.engine, &other.error), PAWL_ENOTFOUND);
    assert_contains(other.error.text, "others.plog");
    assert_true(access(other.path, F_OK) != 0); /* nothing was left behind */
    other.options = (pawl_options){.log = url, .partitions = 2 * PARTITIONS};
    assert_status(pawl_open(other.path, &other.options, &other.engine, &other.error), PAWL_EINVAL);
    assert_contains(other.error.text, "partitions");
    other.options = (pawl_options){.take_over = true};
    assert_status(pawl_open(other.path, &other.options, &other.engine, &other.error), PAWL_EINVAL);
    other.options = (pawl_options){.partitions = 1};
    bed_open(&other); /* on files */
    bed_close(&other);
    other.options = (pawl_options){.log = url};
    assert_status(pawl_open(other.path, &other.options, &other.engine, &other.error), PAWL_EINVAL);
    assert_contains(other.error.text, "in files");

    /* The same cluster by another list of brokers is the same log, and the directory notes it. */
    struct node_file file;
    snprintf(elsewhere, sizeof elsewhere, "%s?timeout-ms=20000", url);
    bed.options.log = elsewhere;
    bed_open(&bed);
    bed_close(&bed);
    assert_ok(node_file_read(bed.path, &file, NULL));
    assert_string_equal(file.log, elsewhere);
    bed_end(&bed);
    bed_end(&other);
}

/* --- killed --- */

static char killed_path[300];
static int told[2];

/* Sends commands and tells how many were acknowledged, until it is killed. */
static int send_until_killed(void)
{
    pawl_engine *engine;
    pawl_request *request;
    const pawl_options options = {.must_exist = true};
    CHECK(pawl_open(killed_path, &options, &engine, NULL) == PAWL_OK);
    CHECK(pawl_request_new(engine, &request) == PAWL_OK);
    for (;;) {
        CHECK(bed_command(engine, request, 1, "t.Bill", "ada", 1, NULL, NULL) == PAWL_OK);
        CHECK(write(told[1], ".", 1) == 1);
    }
}

static size_t kill_after(int (*fn)(void), size_t acknowledged)
{
    char dots[64];
    size_t count = 0;
    ssize_t n;
    assert_int_equal(pipe(told), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(told[0]);
        _exit(fn());
    }
    close(told[1]);
    while (count < acknowledged && (n = read(told[0], dots, sizeof dots)) > 0)
        count += (size_t)n;
    kill(child, SIGKILL);
    while ((n = read(told[0], dots, sizeof dots)) > 0)
        count += (size_t)n;
    close(told[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return count;
}

static void one_less(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                     const pawl_error *error)
{
    atomic_fetch_sub((atomic_int *)arg, status == PAWL_OK);
    pawl_request_free(request);
}

/* Commands that are under way at the same time. */
static void send_together(struct lanes_bed *bed, int count)
{
    atomic_int left = count;
    for (int i = 0; i < count; i++) {
        pawl_request *request;
        assert_ok(pawl_request_new(bed->engine, &request));
        pawl_request_begin(request, 1, "t.Bill");
        pawl_request_record(request, 1, "t.Item");
        pawl_request_set_string(request, "who", "ada");
        pawl_request_set_int64(request, "cents", 1);
        assert_ok(pawl_command_async(bed->engine, request, one_less, &left, &bed->error));
    }
    BED_UNTIL(atomic_load(&left) == 0);
}

static bool count_up(void *arg, uint64_t done, uint64_t total)
{
    uint64_t *most = arg;
    assert_true(total == 0 || done <= total);
    *most = done > *most ? done : *most;
    return true;
}

/* Derives a part of the state, and is killed. */
static bool tell_done(void *arg, uint64_t done, uint64_t total)
{
    if (done > 0 && done < total)
        (void)!write(told[1], "....", 4);
    return true;
}

static int derive_until_killed(void)
{
    pawl_engine *engine;
    const pawl_options options = {.log = url, .take_over = true, .progress = tell_done};
    CHECK(pawl_open(killed_path, &options, &engine, NULL) == PAWL_OK);
    CHECK(write(told[1], "....", 4) == 4); /* it was too fast to be caught */
    return 0;
}

static bool refuse_to_wait(void *arg, uint64_t done, uint64_t total)
{
    return false;
}

TEST(after_a_kill_the_same_directory_opens_again_and_an_empty_one_goes_on_where_it_was)
{
    struct lanes_bed bed, other;
    uint64_t most = 0, offset;
    begin_first(&bed, "killed");
    begin_other(&other);
    bed_close(&bed);
    memcpy(killed_path, bed.path, sizeof killed_path);
    size_t acknowledged = kill_after(send_until_killed, 40);
    assert_true(acknowledged >= 40);
    bed_open(&bed);
    bed_wait(&bed, "t.totals");
    int64_t bills = 0;
    const char *row = strstr(bed_row(&bed, 1, "t.Total", "[\"ada\"]", 0), "\"bills\":");
    assert_non_null(row);
    bills = strtoll(row + 8, NULL, 10);
    assert_true(bills == (int64_t)acknowledged || bills == (int64_t)acknowledged + 1);
    for (int i = 0; i < 12; i++) /* more than one read's worth */
        send_together(&bed, 256);
    assert_ok(pawl_offset_get(bed.engine, pawl_partition_of(bed.engine, 1), &offset, &bed.error));
    bed_close(&bed);

    memcpy(killed_path, other.path, sizeof killed_path);
    (void)kill_after(derive_until_killed, 1);
    other.options.progress = refuse_to_wait;
    int status = pawl_open(other.path, &other.options, &other.engine, &other.error);
    if (status == PAWL_OK)
        assert_ok(pawl_close(other.engine));
    else
        assert_true(status == PAWL_ECANCELED);
    other.options.progress = count_up;
    other.options.progress_arg = &most;
    bed_open(&other);
    uint64_t now;
    assert_ok(pawl_offset_get(other.engine, pawl_partition_of(other.engine, 1), &now, &other.error));
    assert_int_equal(now, offset);
    assert_bills(&other, 1, (int)bills + 12 * 256);
    bed_end(&other);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_node_does_what_one_on_files_does_and_an_empty_directory_brings_all_of_it_back),
        RUN(a_node_claims_from_where_it_knows_its_streams),
        RUN(a_backup_holds_the_state_and_what_is_restored_is_another_node),
        RUN(a_second_node_is_refused_and_told_who_the_first_is),
        RUN(a_node_that_is_taken_over_is_out_and_nothing_that_it_acknowledged_is_lost),
        RUN(of_a_directory_and_its_copy_the_one_that_was_opened_last_has_the_log),
        RUN(a_directory_keeps_its_log),
        RUN(after_a_kill_the_same_directory_opens_again_and_an_empty_one_goes_on_where_it_was),
    };
    if (!getenv("PAWL_KAFKA")) {
        fputs("PAWL_KAFKA names no brokers\n", stderr);
        return 1;
    }
    return TEST_MAIN(tests);
}

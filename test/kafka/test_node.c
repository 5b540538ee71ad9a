/* test_node.c: an engine whose log is on real brokers, which PAWL_KAFKA names: it works as one with a log of its own, one
 * node at a time owns it, and its machine may be lost. Every test has a cluster of its own on those brokers. */
#include <pawl/cluster.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

#include "adapter/kafka/kafka.h"
#include "adapter/lmdb/store.h"
#include "adapter/mirror/mirror.h"
#include "base/bytes.h"
#include "base/latch.h"
#include "base/partition_set.h"
#include "core/sequence/storage.h"
#include "core/state/key.h"
#include "core/state/position.h"
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

/* A broker may take long to answer. Meanwhile no command waits in a mailbox, and no transaction of a store is open. */
static void assert_nothing_is_held(const pawl_engine *engine)
{
    for (uint32_t i = 0; i < engine->file.shards; i++) {
        const struct shard *shard = &engine->shards[i];
        assert_false(shard->gathers);
        assert_false(atomic_load(&shard->gathering));
        assert_false(shard->applier.works_ahead);
        assert_null(shard->applier.put);
    }
}

/* --- the same engine --- */

TEST(a_node_does_what_one_on_files_does_and_an_empty_directory_brings_all_of_it_back)
{
    struct lanes_bed bed, other;
    pawl_answer first, again;
    pawl_histogram histogram = {.count = 7};
    begin_first(&bed, "all");
    assert_nothing_is_held(bed.engine);
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
    assert_status(pawl_open(other.path, &other.options, &other.engine, &other.error), PAWL_EFENCED);
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
        assert_status(pawl_open(other.path, &other.options, &other.engine, &other.error), PAWL_EFENCED);
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

/* How many there are, and the first one. That brokers which are busy acknowledge nothing is one for a moment. */
static size_t alerts_of(struct lanes_bed *bed, pawl_alert *ret_first)
{
    size_t alerts;
    pawl_alerts(bed->engine, ret_first, 1, &alerts);
    return alerts;
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
    BED_UNTIL(alerts_of(&bed, &alert) == 1 && alert.kind == PAWL_ALERT_FENCED);
    assert_contains(alert.text, other.path);
    assert_contains(pawl_alert_advice(alert.kind), "take_over");
    BED_UNTIL(alerts_of(&other, &alert) == 0);
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
    assert_status(pawl_open(bed.path, &bed.options, &bed.engine, &bed.error), PAWL_EFENCED);
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

    /* One that was made before it noted the Kafka cluster notes it now. */
    struct node_file before = file;
    assert_true(file.kafka[0] != '\0');
    before.kafka[0] = '\0';
    assert_ok(node_file_replace(bed.path, &before, NULL));
    bed_open(&bed);
    bed_close(&bed);
    assert_ok(node_file_read(bed.path, &before, NULL));
    assert_string_equal(before.kafka, file.kafka);

    /* A URL is noted only if it leads there: who says nothing next time is not misled by what was mistyped once. */
    char *cluster = strrchr(url, '/'), mistyped[500];
    snprintf(mistyped, sizeof mistyped, "kafka://127.0.0.1:1%s?timeout-ms=1000", cluster);
    bed.options.log = mistyped;
    assert_status(pawl_open(bed.path, &bed.options, &bed.engine, &bed.error), PAWL_EIO);
    assert_contains(bed.error.text, "127.0.0.1:1");
    assert_ok(node_file_read(bed.path, &file, NULL));
    assert_string_equal(file.log, elsewhere);
    bed.options.log = NULL;
    bed_open(&bed);
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
static void send_together(struct lanes_bed *bed, int count, const char *command, const char *who)
{
    atomic_int left = count;
    for (int i = 0; i < count; i++) {
        pawl_request *request;
        assert_ok(pawl_request_new(bed->engine, &request));
        pawl_request_begin(request, 1, command);
        pawl_request_record(request, 1, "t.Item");
        pawl_request_set_string(request, "who", who);
        pawl_request_set_int64(request, "cents", 1);
        assert_ok(pawl_command_async(bed->engine, request, one_less, &left, &bed->error));
    }
    BED_UNTIL(atomic_load(&left) == 0);
}

static bool check_progress(void *arg, uint64_t done, uint64_t total)
{
    assert_true(total == 0 || done <= total);
    return true;
}

static int go_on[2];

/* Each time that events were applied it says so, and waits until it is told to go on, or is killed. */
static void say_and_wait(void *arg, const char *what)
{
    char c;
    if (strcmp(what, "events were applied") == 0 && write(told[1], ".", 1) == 1)
        (void)!read(go_on[0], &c, 1);
}

static int derive_and_wait(void)
{
    pawl_engine *engine;
    const pawl_options options = {.log = url, .take_over = true};
    const struct engine_knobs knobs = {.threads = 1, .step = say_and_wait};
    return engine_open(killed_path, &options, &knobs, &engine, NULL) == PAWL_OK ? 0 : 1;
}

/* How far the live state of a partition has come, on the disk. */
static uint64_t stored_offset(const char *dir, uint16_t partition)
{
    char path[400];
    pawl_store *store;
    pawl_reader *snapshot;
    pawl_error error = {0};
    struct position position;
    const struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_FAST, .read_only = true};
    snprintf(path, sizeof path, "%s/state/%u", dir, partition_shard(partition, 2));
    assert_ok(lmdb_store_open(&options, NULL, &store, &error));
    assert_ok(pawl_store_snapshot(store, &snapshot));
    position_init(&position, NULL, partition);
    assert_ok(position_read(&position, snapshot, &error));
    uint64_t offset = position.offset;
    position_release(&position);
    pawl_store_release(store, snapshot);
    assert_ok(pawl_store_close(store));
    return offset;
}

static uint64_t stored_events(const char *dir)
{
    uint64_t events = 0;
    for (uint16_t i = 0; i < PARTITIONS; i++)
        events += stored_offset(dir, i);
    return events;
}

/* Kill it when it has derived a part of this partition, and waits. */
static void kill_while_it_derives(uint16_t partition)
{
    char dot;
    uint64_t at = 0;
    assert_int_equal(pipe(told) + pipe(go_on), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(told[0]);
        close(go_on[1]);
        _exit(derive_and_wait());
    }
    close(told[1]);
    close(go_on[0]);
    while (at == 0 && read(told[0], &dot, 1) == 1) {
        at = stored_offset(killed_path, partition);
        assert_int_equal(write(go_on[1], ".", at == 0), at == 0);
    }
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(told[0]);
    close(go_on[1]);
}

static bool refuse_to_wait(void *arg, uint64_t done, uint64_t total)
{
    return false;
}

/* What is opened derives exactly what the state on the disk lacks. */
static void assert_goes_on(struct lanes_bed *bed, uint64_t all)
{
    pawl_figures figures;
    uint64_t before = stored_events(bed->path);
    bed->options.progress = check_progress;
    bed_open(bed);
    assert_ok(pawl_figures_get(bed->engine, &figures, &bed->error));
    assert_int_equal(figures.replayed, all - before);
}

TEST(after_a_kill_the_same_directory_opens_again_and_an_empty_one_goes_on_where_it_was)
{
    struct lanes_bed bed, other;
    uint64_t offset;
    static char long_name[32768];
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
    send_together(&bed, 256, "t.Bill", "ada");
    memset(long_name, 'x', sizeof long_name - 1);
    send_together(&bed, 256, "t.Raise", long_name); /* more than is read, and applied, at once */
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    assert_ok(pawl_offset_get(bed.engine, partition, &offset, &bed.error));
    bed_close(&bed);
    uint64_t all = stored_events(bed.path);

    memcpy(killed_path, other.path, sizeof killed_path);
    kill_while_it_derives(partition);
    uint64_t before = stored_offset(other.path, partition);
    assert_true(before > 0 && before < offset);
    assert_goes_on(&other, all);
    assert_bills(&other, 1, (int)bills + 256);
    bed_close(&other);

    /* The same when it is told to stop, wherever it is then. */
    snprintf(other.path, sizeof other.path, "%s/again", other.dir);
    other.options.take_over = true;
    other.options.progress = refuse_to_wait;
    int status = pawl_open(other.path, &other.options, &other.engine, &other.error);
    assert_true(status == PAWL_OK || status == PAWL_ECANCELED);
    if (status == PAWL_OK)
        assert_ok(pawl_close(other.engine));
    other.options.take_over = false;
    assert_goes_on(&other, all);
    assert_bills(&other, 1, (int)bills + 256);
    bed_end(&other);
    bed_end(&bed);
}

/* --- what was saved --- */

#define MANY (24 * 256) /* more than is read rather than searched for */

static uint64_t lag_of_checkpoints(struct lanes_bed *bed)
{
    pawl_figures figures;
    assert_ok(pawl_figures_get(bed->engine, &figures, &bed->error));
    return figures.checkpoint_lag + (figures.checkpoints_ready < 2);
}

TEST(a_backup_comes_back_without_reading_what_it_has)
{
    struct lanes_bed bed, other;
    struct kafka_figures log;
    pawl_figures figures;
    pawl_backup_report saved, restored;
    char path[300];
    begin_first(&bed, "short");
    begin_other(&other);
    for (int i = 0; i < MANY / 256; i++)
        send_together(&bed, 256, "t.Bill", "ada");
    make_view(&bed);
    assert_bills(&bed, 1, MANY);
    BED_UNTIL(lag_of_checkpoints(&bed) == 0);
    bed_close(&bed);
    snprintf(path, sizeof path, "%s/saved", other.dir);
    assert_ok(pawl_backup(&(pawl_backup_options){.dir = bed.path, .to = path}, &saved, &bed.error));
    assert_true(saved.events >= MANY);
    bed_open(&bed);
    for (int i = 0; i < 3; i++)
        bed_send(&bed, 1, "t.Bill", "ada", 1); /* behind the backup */
    bed_close(&bed);

    pawl_backup_options options = {.dir = path, .to = other.path};
    int status = pawl_restore(&options, &restored, &other.error);
    if (status != PAWL_OK)
        print_error("%s\n", other.error.text);
    assert_ok(status);
    assert_int_equal(restored.events, saved.events);
    assert_int_equal(restored.derived, 0);
    assert_true(restored.records > 0 && restored.records < saved.events / 4);
    take_over(&other);
    assert_bills(&other, 1, MANY + 3);
    assert_ok(pawl_figures_get(other.engine, &figures, &other.error));
    assert_int_equal(figures.replayed, 3);
    kafka_log_figures(other.engine->kafka, &log);
    assert_true(log.owner_read < saved.events / 4);
    assert_ok(pawl_view_wait(other.engine, VIEW, BED_PATIENCE, &other.error));
    bed_close(&other);
    assert_sound(other.path);

    snprintf(other.path, sizeof other.path, "%s/derived", other.dir);
    options = (pawl_backup_options){.dir = path, .to = other.path, .derive = true};
    assert_ok(pawl_restore(&options, &restored, &other.error));
    assert_int_equal(restored.derived, saved.events + 3);
    bed_end(&other);
    bed_end(&bed);
}

/* What is done to the stores that a backup is made of. */
enum harm { OTHER_LOG, LOSE_FIRST, LOSE_LAST, OTHER_NUMBER, HARMS };

/* The first or the last row of a store that speaks of ada (of a record, and of what a lane made of it), or a number that
 * was given. */
struct harmed_row {
    enum harm harm;
    uint8_t key[256], value[64];
    size_t key_size, value_size;
};

static bool find_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct harmed_row *r = arg;
    bool wanted = r->harm == OTHER_NUMBER
                      ? key.size == SEQUENCE_KEY_BYTES && get_u64_sorted((const uint8_t *)key.data + 8) > 0
                      : memmem(value.data, value.size, "ada", 3) != NULL;
    if (!wanted || key.size > sizeof r->key)
        return true;
    memcpy(r->key, key.data, key.size);
    r->key_size = key.size;
    r->value_size = value.size < sizeof r->value ? value.size : sizeof r->value;
    memcpy(r->value, value.data, r->value_size);
    return r->harm == LOSE_LAST;
}

static void harm_row(pawl_store *store, struct harmed_row *r)
{
    pawl_bytes key = {r->key, r->key_size};
    r->value[r->value_size - 1] ^= 1;
    assert_ok(r->harm == OTHER_NUMBER
                  ? pawl_store_put(store, SEQUENCE_SPACE, key, (pawl_bytes){r->value, r->value_size})
                  : pawl_store_remove(store, STATE_SPACE, key));
    assert_ok(pawl_store_commit(store));
}

static void harm_checkpoint(const char *dir, enum harm harm)
{
    struct harmed_row row = {.harm = harm};
    for (int shard = 0; shard < 2 && row.key_size == 0; shard++) {
        char path[400];
        pawl_error error = {0};
        pawl_store *store;
        pawl_reader *snapshot;
        const struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_DURABLE};
        pawl_range all = {.space = harm == OTHER_NUMBER ? SEQUENCE_SPACE : STATE_SPACE};
        snprintf(path, sizeof path, "%s/checkpoint/%d", dir, shard);
        assert_ok(lmdb_store_open(&options, NULL, &store, &error));
        assert_ok(pawl_store_snapshot(store, &snapshot));
        assert_ok(pawl_store_scan(snapshot, all, false, find_row, &row));
        pawl_store_release(store, snapshot);
        if (row.key_size > 0)
            harm_row(store, &row);
        assert_ok(pawl_store_close(store));
    }
    assert_true(row.key_size > 0);
}

static void refused(struct lanes_bed *bed, const char *from, const char *words)
{
    char to[400];
    pawl_backup_report report;
    snprintf(to, sizeof to, "%s/restored", bed->dir);
    const pawl_backup_options restore = {.dir = from, .to = to};
    assert_status(pawl_restore(&restore, &report, &bed->error), PAWL_ECORRUPT);
    assert_contains(bed->error.text, words);
    assert_true(access(to, F_OK) != 0);
}

/* Its stores are those of another log, lack a row, or have another number. */
TEST(a_backup_that_is_damaged_or_not_of_its_log_is_not_restored)
{
    static const char *const words[HARMS] = {"than the log has", "has it", "has it", "sequence"};
    struct lanes_bed bed, other;
    struct node_file file;
    pawl_backup_report report;
    char saved[300];
    begin_first(&bed, "one");
    for (int i = 0; i < 3; i++)
        bed_send(&bed, 1, "t.Bill", "ada", 1);
    assert_bills(&bed, 1, 3);
    BED_UNTIL(lag_of_checkpoints(&bed) == 0);
    bed_close(&bed);
    begin_first(&other, "two");
    for (int i = 0; i < 3; i++)
        bed_send(&other, 1, "t.Bill", "eve", 1);
    bed_close(&other);
    for (enum harm harm = OTHER_LOG; harm < HARMS; harm++) {
        snprintf(saved, sizeof saved, "%s/saved%d", bed.dir, (int)harm);
        const pawl_backup_options backup = {.dir = bed.path, .to = saved};
        assert_ok(pawl_backup(&backup, &report, &bed.error));
        assert_ok(node_file_read(saved, &file, NULL));
        if (harm == OTHER_LOG)
            snprintf(file.log, sizeof file.log, "%s", url);
        assert_ok(node_file_replace(saved, &file, &bed.error));
        if (harm != OTHER_LOG)
            harm_checkpoint(saved, harm);
        refused(&bed, saved, words[harm]);
    }
    bed_end(&other);
    bed_end(&bed);
}

/* What is copied is the checkpoint, so a live state that is sound beside it is not enough. */
TEST(a_directory_is_restored_from_its_checkpoint_which_is_compared)
{
    struct lanes_bed bed;
    char to[400];
    pawl_backup_report report;
    begin_first(&bed, "whole");
    for (int i = 0; i < 3; i++)
        bed_send(&bed, 1, "t.Bill", "ada", 1);
    assert_bills(&bed, 1, 3);
    BED_UNTIL(lag_of_checkpoints(&bed) == 0);
    bed_close(&bed);
    snprintf(to, sizeof to, "%s/sound", bed.dir);
    const pawl_backup_options restore = {.dir = bed.path, .to = to};
    assert_ok(pawl_restore(&restore, &report, &bed.error));
    assert_true(report.derived > 0); /* it is no backup */
    harm_checkpoint(bed.path, LOSE_FIRST);
    refused(&bed, bed.path, "has it");
    bed_end(&bed);
}

/* --- a loss of power --- */

static void open_in(struct lanes_bed *bed, const char *boot)
{
    static struct engine_knobs knobs; /* until it is closed */
    knobs = (struct engine_knobs){.boot_id = boot};
    int status = engine_open(bed->path, &bed->options, &knobs, &bed->engine, &bed->error);
    if (status != PAWL_OK)
        print_error("%s\n", bed->error.text);
    assert_ok(status);
    assert_ok(pawl_request_new(bed->engine, &bed->request));
}

/* As send_until_killed, in a boot that has a name. */
static int send_until_power_is_lost(void)
{
    struct lanes_bed bed = {.options = {.must_exist = true}};
    memcpy(bed.path, killed_path, sizeof bed.path);
    open_in(&bed, "this boot");
    for (;;) {
        CHECK(bed_command(bed.engine, bed.request, 1, "t.Bill", "ada", 1, NULL, NULL) == PAWL_OK);
        CHECK(write(told[1], ".", 1) == 1);
    }
}

/* Of what was not synced, anything may be there. From this byte on. */
static void spoil(const char *path, off_t from)
{
    static const char garbage[4096] = {'?'};
    const off_t step = sizeof garbage;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    off_t size = lseek(fd, 0, SEEK_END);
    for (off_t at = from; at < size && at < from + 1000 * step; at += step)
        assert_true(pwrite(fd, garbage, (size_t)(size - at < step ? size - at : step), at) > 0);
    close(fd);
}

/* The live stores behind LMDB's first two pages, and the mirror but for its mark: both say that they are of this boot. */
static int spoil_what_is_not_synced(const char *dir)
{
    char path[700];
    int segments = 0;
    for (int shard = 0; shard < 2; shard++) {
        snprintf(path, sizeof path, "%s/state/%d/data.mdb", dir, shard);
        spoil(path, 2 * 4096);
    }
    snprintf(path, sizeof path, "%s/mirror", dir);
    DIR *mirror = opendir(path);
    assert_non_null(mirror);
    for (struct dirent *entry; (entry = readdir(mirror));) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "mark") == 0)
            continue;
        snprintf(path, sizeof path, "%s/mirror/%s", dir, entry->d_name);
        spoil(path, 0);
        segments++;
    }
    closedir(mirror);
    return segments;
}

TEST(after_a_loss_of_power_a_node_has_all_that_it_acknowledged_and_trusts_no_copy_of_it)
{
    struct lanes_bed bed;
    pawl_figures figures;
    pawl_mirror_figures mirror;
    begin_first(&bed, "power");
    bed_close(&bed);
    open_in(&bed, "this boot");
    bed_send(&bed, 1, "t.Bill", "ada", 1);
    make_view(&bed);
    BED_UNTIL(lag_of_checkpoints(&bed) == 0);
    bed_close(&bed);
    memcpy(killed_path, bed.path, sizeof killed_path);
    size_t acknowledged = 1 + kill_after(send_until_power_is_lost, 40);
    assert_true(acknowledged > 40);
    assert_true(spoil_what_is_not_synced(bed.path) > 0);

    open_in(&bed, "the next boot");
    assert_ok(pawl_figures_get(bed.engine, &figures, &bed.error));
    assert_int_equal(figures.taken_over, 2);
    mirror_figures(bed.engine->log, &mirror);
    assert_int_equal(mirror.discarded, 1);
    bed_wait(&bed, "t.totals");
    const char *row = strstr(bed_row(&bed, 1, "t.Total", "[\"ada\"]", 0), "\"bills\":");
    assert_non_null(row);
    size_t bills = strtoull(row + 8, NULL, 10);
    assert_true(bills == acknowledged || bills == acknowledged + 1); /* one may have been on its way */
    send_together(&bed, 100, "t.Bill", "ada");
    assert_bills(&bed, 1, (int)bills + 100);
    assert_int_equal(view_rows(&bed), 1);
    bed_close(&bed);

    open_in(&bed, "the next boot"); /* what was closed is trusted, and the mirror has something again */
    assert_ok(pawl_figures_get(bed.engine, &figures, &bed.error));
    assert_int_equal(figures.taken_over, 0);
    mirror_figures(bed.engine->log, &mirror);
    assert_int_equal(mirror.discarded, 0);
    assert_true(mirror.bytes > 0);
    bed_close(&bed);
    assert_sound(bed.path);
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
        RUN(a_backup_comes_back_without_reading_what_it_has),
        RUN(a_backup_that_is_damaged_or_not_of_its_log_is_not_restored),
        RUN(a_directory_is_restored_from_its_checkpoint_which_is_compared),
        RUN(after_a_loss_of_power_a_node_has_all_that_it_acknowledged_and_trusts_no_copy_of_it),
    };
    if (!getenv("PAWL_KAFKA")) {
        fputs("PAWL_KAFKA names no brokers\n", stderr);
        return 1;
    }
    return TEST_MAIN(tests);
}

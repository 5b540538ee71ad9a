/* test_move.c: the log of a directory goes into a cluster on a real broker, which PAWL_KAFKA names, and comes back: offsets
 * and state are the same everywhere, whenever it was killed, and only an empty cluster is written to. Every test has
 * clusters of its own on that broker. */
#include <pawl/cluster.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

#include "adapter/lmdb/store.h"
#include "base/latch.h"
#include "base/partition_set.h"
#include "core/group0/import.h"
#include "core/project/cursor.h"
#include "core/state/position.h"
#include "engine/directory/directory.h"
#include "engine/log/log.h"
#include "test/lib/child.h"
#include "test/lib/lanes.h"

#define PARTITIONS 4
#define NOTES      ", \"workers\": 2"
#define VIEW       "t.by_who"

static char url[400];

static void begin_cluster(const char *name, uint32_t partitions)
{
    pawl_error error = {0};
    snprintf(url, sizeof url, "kafka://%s/%s-%d?replication=1", getenv("PAWL_KAFKA"), name, (int)getpid());
    int status = pawl_cluster_init(url, partitions, 0, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
}

static int send_keyed(struct lanes_bed *bed, const char *key, pawl_answer *ret_answer)
{
    pawl_request_begin(bed->request, 1, "t.Bill");
    pawl_request_key(bed->request, key);
    pawl_request_record(bed->request, 1, "t.Item");
    pawl_request_set_string(bed->request, "who", "ada");
    pawl_request_set_int64(bed->request, "cents", 1);
    return pawl_command(bed->engine, bed->request, ret_answer, &bed->error);
}

/* A directory with a log in files: lanes, one of them rebuilt, a view, events in all partitions; closed. */
static void begin_files(struct lanes_bed *bed, int bills, pawl_answer *ret_keyed)
{
    static const char *const key[] = {"who"};
    const pawl_view_definition view = {.name = VIEW, .base = "t.Total", .key = key, .key_count = 1};
    *bed = (struct lanes_bed){.options = {.partitions = PARTITIONS, .shards = 2}};
    bed_begin(bed, LANES_SCHEMA(NOTES));
    for (int i = 0; i < bills; i++)
        bed_send(bed, 1 + (uint64_t)i % TENANTS, "t.Bill", "ada", 1);
    assert_ok(send_keyed(bed, "k1", ret_keyed));
    assert_ok(pawl_view_create(bed->engine, &view, &bed->error));
    assert_ok(pawl_view_wait(bed->engine, VIEW, BED_PATIENCE, &bed->error));
    assert_ok(pawl_lane_rebuild(bed->engine, "t.totals", &bed->error));
    bed_send(bed, 2, "t.Ask", "bob", 1);
    bed_wait(bed, "t.totals");
    bed_wait(bed, "t.marks");
    bed_close(bed);
}

/* Another directory, which is not there yet. */
static void begin_other(struct lanes_bed *bed, const char *log)
{
    *bed = (struct lanes_bed){.options = {.log = log, .shards = 2, .wait = BED_PATIENCE}};
    test_dir_make(bed->dir, sizeof bed->dir);
    snprintf(bed->path, sizeof bed->path, "%s/data", bed->dir);
}

static pawl_cluster_move_report import(const char *dir)
{
    pawl_cluster_move_report report;
    pawl_error error = {0};
    const pawl_cluster_move_options options = {.url = url, .dir = dir};
    int status = pawl_cluster_import(&options, &report, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    return report;
}

static pawl_cluster_move_report export(const char *dir)
{
    pawl_cluster_move_report report;
    pawl_error error = {0};
    const pawl_cluster_move_options options = {.url = url, .dir = dir};
    int status = pawl_cluster_export(&options, &report, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    return report;
}

static uint64_t entries_of_directory(const char *dir)
{
    pawl_log_report report;
    pawl_error error = {0};
    assert_ok(pawl_verify_log(dir, NULL, NULL, &report, &error));
    assert_int_equal(report.faults, 0);
    uint64_t entries = report.entries;
    pawl_log_report_release(&report);
    return entries;
}

static uint64_t entries_of_cluster(void)
{
    pawl_cluster_report report;
    pawl_error error = {0};
    assert_ok(pawl_cluster_verify(url, NULL, NULL, &report, &error));
    assert_int_equal(report.faults, 0);
    uint64_t entries = report.entries;
    pawl_cluster_report_release(&report);
    return entries;
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
    assert_true(report.events > 0 && report.live.views > 0);
}

/* --- the same digests --- */

struct kept_state {
    struct position positions[PARTITIONS];
    struct cursor cursors[64];
    size_t count;
    pawl_reader *snapshot;
};

static bool take_cursor(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct kept_state *s = arg;
    uint16_t partition, lane;
    uint32_t generation;
    assert_true(s->count < 64);
    assert_true(cursor_key_read(key, &partition, &lane, &generation));
    struct cursor *cursor = &s->cursors[s->count++];
    cursor_init(cursor, NULL, partition, lane, generation);
    assert_ok(cursor_read(cursor, s->snapshot, NULL));
    return true;
}

static void read_state(const char *dir, struct kept_state *s)
{
    *s = (struct kept_state){0};
    for (uint32_t shard = 0; shard < 2; shard++) {
        char path[400];
        pawl_store *store;
        struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_FAST, .read_only = true};
        const struct partition_set set = partition_set_of(shard, PARTITIONS, 2);
        snprintf(path, sizeof path, "%s/state/%u", dir, shard);
        assert_ok(lmdb_store_open(&options, NULL, &store, NULL));
        assert_ok(pawl_store_snapshot(store, &s->snapshot));
        for (size_t i = 0; i < set.count; i++) {
            uint16_t partition = partition_set_at(&set, i);
            uint8_t key[CURSOR_KEY], end[CURSOR_KEY];
            pawl_bytes prefix = cursor_key(partition, 0, 0, key);
            prefix.size = CURSOR_PREFIX;
            position_init(&s->positions[partition], NULL, partition);
            assert_ok(position_read(&s->positions[partition], s->snapshot, NULL));
            assert_ok(pawl_store_scan(
                s->snapshot,
                (pawl_range){.space = STATE_SPACE, .from = prefix, .to = key_after_prefix(prefix, end)}, false,
                take_cursor, s));
        }
        pawl_store_release(store, s->snapshot);
        assert_ok(pawl_store_close(store));
    }
}

static void release_state(struct kept_state *s)
{
    for (size_t i = 0; i < PARTITIONS; i++)
        position_release(&s->positions[i]);
    for (size_t i = 0; i < s->count; i++)
        cursor_release(&s->cursors[i]);
}

static void assert_same_digests(const struct digests *a, const struct digests *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->tables[i].table, b->tables[i].table);
        assert_true(pawl_digest_equal(&a->tables[i].digest, &b->tables[i].digest));
    }
}

/* Both directories are at the same offsets, with the same rows in every table. */
static void assert_same_state(const char *one, const char *other)
{
    struct kept_state a, b;
    size_t lanes = 0;
    read_state(one, &a);
    read_state(other, &b);
    for (size_t i = 0; i < PARTITIONS; i++) {
        assert_true(a.positions[i].offset > 0);
        assert_int_equal(a.positions[i].offset, b.positions[i].offset);
        assert_int_equal(a.positions[i].checksum, b.positions[i].checksum);
        assert_same_digests(&a.positions[i].digests, &b.positions[i].digests);
    }
    for (size_t i = 0; i < a.count; i++)
        for (size_t k = 0; k < b.count; k++) {
            const struct cursor *x = &a.cursors[i], *y = &b.cursors[k];
            if (x->partition != y->partition || x->lane != y->lane || x->generation != y->generation)
                continue;
            assert_int_equal(x->applied, y->applied);
            assert_int_equal(x->checksum, y->checksum);
            assert_same_digests(&x->digests, &y->digests);
            lanes += x->applied > 0;
        }
    assert_true(lanes > 0);
    release_state(&a);
    release_state(&b);
}

struct stop {
    uint64_t calls;
    uint64_t at; /* the call that ends it */
    bool kill;
    uint64_t done;
    bool went_back;
};

static bool stop_at(void *arg, uint64_t done, uint64_t total)
{
    struct stop *s = arg;
    s->went_back |= done < s->done || done > total;
    s->done = done;
    if (++s->calls != s->at)
        return true;
    if (s->kill)
        (void)raise(SIGKILL);
    return false;
}

/* Begin an import, and cancel it when something is there. */
static void begin_import(const char *dir)
{
    pawl_error error = {0};
    pawl_cluster_move_report report = {.entries = 77};
    struct stop cancel;
    const pawl_cluster_move_options options = {.url = url, .dir = dir, .progress = stop_at, .arg = &cancel};
    for (uint64_t at = 1; entries_of_cluster() == 0; at++) {
        cancel = (struct stop){.at = at};
        assert_status(pawl_cluster_import(&options, &report, &error), PAWL_ECANCELED);
        assert_contains(error.text, "cancelled");
        assert_false(cancel.went_back);
    }
    assert_int_equal(report.entries, 77);
}

TEST(a_log_goes_into_a_cluster_and_back_and_its_state_is_the_same_everywhere)
{
    struct lanes_bed bed, empty, files, second;
    pawl_answer first, again;
    begin_files(&bed, 200, &first);
    uint64_t entries = entries_of_directory(bed.path);
    begin_cluster("there", PARTITIONS);
    pawl_cluster_move_report report = import(bed.path);
    assert_int_equal(report.entries, entries);
    assert_int_equal(report.copied, entries);
    assert_int_equal(report.compared, PARTITIONS);
    assert_false(report.ended_before);
    assert_int_equal(entries_of_cluster(), entries + 1);
    report = import(bed.path);
    assert_true(report.ended_before);
    assert_int_equal(entries_of_cluster(), entries + 1);

    /* An empty directory derives what the first one had. */
    begin_other(&empty, url);
    bed_open(&empty);
    assert_ok(pawl_view_wait(empty.engine, VIEW, BED_PATIENCE, &empty.error));
    bed_wait(&empty, "t.totals");
    bed_wait(&empty, "t.marks");
    assert_ok(send_keyed(&empty, "k1", &again));
    assert_true(again.repeated);
    assert_int_equal(again.offset, first.offset);
    bed_close(&empty);
    assert_same_state(bed.path, empty.path);
    assert_sound(empty.path);

    /* So does the first one itself, which keeps its state. */
    bed.options = (pawl_options){.log = url, .wait = BED_PATIENCE};
    assert_status(pawl_open(bed.path, &bed.options, &bed.engine, &bed.error), PAWL_EFENCED);
    assert_contains(bed.error.text, empty.path);
    assert_sound(bed.path);
    bed.options.take_over = true;
    bed_open(&bed);
    assert_ok(send_keyed(&bed, "k1", &again));
    assert_true(again.repeated);
    bed_wait(&bed, "t.totals");
    bed_close(&bed);
    assert_same_state(bed.path, empty.path);
    bed.options = (pawl_options){.wait = BED_PATIENCE}; /* it knows its log from now on */
    bed_open(&bed);
    bed_send(&bed, 3, "t.Bill", "cyd", 7);
    bed_wait(&bed, "t.totals");
    bed_close(&bed);
    assert_sound(bed.path);

    /* And back. */
    begin_other(&files, NULL);
    report = export(files.path);
    assert_int_equal(report.entries, entries_of_cluster());
    assert_int_equal(entries_of_directory(files.path), report.entries);
    bed_open(&files);
    bed_wait(&files, "t.totals");
    bed_wait(&files, "t.marks");
    assert_ok(send_keyed(&files, "k1", &again));
    assert_true(again.repeated);
    assert_int_equal(again.offset, first.offset);
    assert_contains(bed_row(&files, 3, "t.Total", "[\"cyd\"]", 0), "\"cents\":7");
    bed_close(&files);
    assert_same_state(bed.path, files.path);
    assert_sound(files.path);

    /* A log that has been in a cluster before goes into the next one: what was assigned there counts for nothing. */
    begin_cluster("next", PARTITIONS);
    entries = entries_of_directory(files.path);
    begin_other(&second, url);
    begin_import(files.path); /* group0 is there, with an assignment and the end of the import before */
    second.options.take_over = true;
    assert_status(pawl_open(second.path, &second.options, &second.engine, &second.error), PAWL_EBUSY);
    second.options.take_over = false;
    report = import(files.path);
    assert_int_equal(report.entries, entries);
    assert_true(report.copied < entries);
    assert_int_equal(entries_of_cluster(), entries + 1);
    bed_open(&second);
    bed_wait(&second, "t.totals");
    bed_wait(&second, "t.marks");
    bed_close(&second);
    assert_same_state(files.path, second.path);
    bed_end(&second);
    bed_end(&files);
    bed_end(&empty);
    bed_end(&bed);
}

/* --- interrupted --- */

static const char *moved_dir;
static struct stop stop;
static bool imports;

static int move_until_killed(void)
{
    pawl_cluster_move_report report;
    const pawl_cluster_move_options options = {.url = url, .dir = moved_dir, .progress = stop_at, .arg = &stop};
    CHECK((imports ? pawl_cluster_import : pawl_cluster_export)(&options, &report, NULL) == PAWL_OK);
    return 0;
}

/* False: it was killed. */
static bool ends(uint64_t at)
{
    int how = 0;
    stop = (struct stop){.at = at, .kill = true};
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(move_until_killed());
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) ? WTERMSIG(how) == SIGKILL : WEXITSTATUS(how) == 0);
    return !WIFSIGNALED(how);
}

TEST(killed_again_and_again_it_goes_on_where_it_was_and_no_entry_is_there_twice)
{
    struct lanes_bed bed, files;
    pawl_answer first;
    unsigned kills = 0;
    begin_files(&bed, 3000, &first);
    uint64_t entries = entries_of_directory(bed.path);
    begin_cluster("killed", PARTITIONS);
    imports = true;
    moved_dir = bed.path;
    for (uint64_t at = 1; !ends(at); at += 1 + at / 3)
        kills++;
    assert_true(kills > 5);
    assert_int_equal(entries_of_cluster(), entries + 1);
    assert_true(import(bed.path).ended_before);

    begin_other(&files, NULL);
    imports = false;
    moved_dir = files.path;
    kills = 0;
    for (uint64_t at = 1; !ends(at); at += 1 + at / 3)
        kills++;
    assert_true(kills > 5);
    assert_int_equal(entries_of_directory(files.path), entries + 1);
    bed_open(&files);
    bed_wait(&files, "t.totals");
    bed_wait(&files, "t.marks");
    bed_close(&files);
    assert_same_state(bed.path, files.path);
    bed_end(&files);
    bed_end(&bed);
}

TEST(nodes_and_exports_and_other_directories_are_refused_until_an_import_has_ended)
{
    struct lanes_bed bed, other, node;
    pawl_answer first;
    pawl_error error = {0};
    pawl_cluster_move_report report;
    char elsewhere[400];
    pawl_cluster_move_options options = {.url = url};
    begin_files(&bed, 100, &first);
    begin_files(&other, 90, &first);
    begin_other(&node, url);
    begin_cluster("begun", PARTITIONS);
    begin_import(bed.path);
    assert_status(pawl_open(node.path, &node.options, &node.engine, &error), PAWL_EBUSY);
    assert_contains(error.text, "cluster import");
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", node.dir);
    options.dir = elsewhere;
    assert_status(pawl_cluster_export(&options, &report, &error), PAWL_EBUSY);
    options.dir = other.path;
    assert_status(pawl_cluster_import(&options, &report, &error), PAWL_EEXISTS);
    assert_contains(error.text, "not empty");
    bed.options.log = url;
    assert_status(pawl_open(bed.path, &bed.options, &bed.engine, &error), PAWL_EBUSY);
    uint64_t entries = entries_of_directory(bed.path);
    (void)import(bed.path);
    assert_int_equal(entries_of_cluster(), entries + 1);
    options.dir = other.path;
    assert_status(pawl_cluster_import(&options, &report, &error), PAWL_EEXISTS);
    assert_contains(error.text, bed.path);

    /* Another directory, and this one after more was written to it, do not go over to the cluster. */
    other.options.log = url;
    assert_status(pawl_open(other.path, &other.options, &other.engine, &error), PAWL_EINVAL);
    assert_contains(error.text, "another directory");
    bed.options = (pawl_options){.wait = BED_PATIENCE};
    bed_open(&bed);
    bed_send(&bed, 1, "t.Bill", "ada", 1);
    bed_close(&bed);
    bed.options.log = url;
    assert_status(pawl_open(bed.path, &bed.options, &bed.engine, &error), PAWL_EINVAL);
    assert_contains(error.text, "since");
    bed_end(&node);
    bed_end(&other);
    bed_end(&bed);
}

static void claimed(pawl_claim *claim)
{
    latch_set(claim->arg);
}

/* What an import leaves that is ended directly behind its claim of group0. */
static void leave_a_claim(void)
{
    struct engine_log *log;
    struct latch latch;
    pawl_error error = {0};
    pawl_claim claim = {
        .stream = {.kind = PAWL_STREAM_GROUP0}, .done = claimed, .arg = &latch, .error = &error};
    latch_init(&latch);
    assert_ok(engine_log_open_as(url, IMPORT_NODES | 5, &log, &error));
    assert_ok(pawl_log_claim(engine_log_port(log), &claim));
    latch_wait(&latch);
    assert_ok(claim.status);
    assert_ok(engine_log_close(log));
}

TEST(a_cluster_that_an_import_has_only_claimed_takes_any_directory_also_an_empty_one)
{
    struct lanes_bed empty, node;
    pawl_error error = {0};
    begin_cluster("claimed", PARTITIONS);
    leave_a_claim();
    begin_other(&node, url);
    assert_status(pawl_open(node.path, &node.options, &node.engine, &error), PAWL_EBUSY);
    assert_contains(error.text, "cluster import");
    begin_other(&empty, NULL);
    empty.options.partitions = PARTITIONS;
    bed_open(&empty);
    bed_close(&empty);
    assert_int_equal(import(empty.path).entries, 0);
    bed_open(&node);
    bed_apply(&node, LANES_SCHEMA(NOTES));
    bed_close(&node);
    bed_end(&node);
    bed_end(&empty);
}

static void damage(const char *dir)
{
    char path[800];
    DIR *entries;
    const struct dirent *entry;
    uint8_t byte;
    snprintf(path, sizeof path, "%s/log/journal", dir);
    assert_non_null(entries = opendir(path));
    while ((entry = readdir(entries)))
        if (strncmp(entry->d_name, "00000001-", 9) == 0)
            snprintf(path, sizeof path, "%s/log/journal/%s", dir, entry->d_name);
    closedir(entries);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, 6000), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, 6000), 1);
    close(fd);
}

TEST(only_a_sound_directory_that_nobody_writes_to_goes_into_a_cluster_that_is_empty_and_as_wide)
{
    struct lanes_bed bed, node;
    pawl_answer first;
    pawl_error error = {0};
    pawl_cluster_move_report report;
    pawl_cluster_move_options options = {.url = url};
    begin_files(&bed, 20, &first);
    options.dir = bed.path;
    begin_cluster("wide", 2 * PARTITIONS);
    assert_status(pawl_cluster_import(&options, &report, &error), PAWL_EINVAL);
    assert_contains(error.text, "8 partitions");

    begin_cluster("used", PARTITIONS);
    bed_open(&bed);
    assert_status(pawl_cluster_import(&options, &report, &error), PAWL_ELOCKED);
    bed_close(&bed);
    begin_other(&node, url);
    bed_open(&node);
    assert_status(pawl_cluster_import(&options, &report, &error), PAWL_EEXISTS);
    assert_contains(error.text, "group0");
    bed_apply(&node, LANES_SCHEMA(NOTES)); /* it was not disturbed */
    assert_ok(pawl_owner_check(node.engine, &error));
    bed_close(&node);
    options.dir = node.path;
    assert_status(pawl_cluster_import(&options, &report, &error), PAWL_EINVAL);
    assert_contains(error.text, "on Kafka already");
    options.dir = bed.path;
    assert_status(pawl_cluster_export(&options, &report, &error), PAWL_EEXISTS);
    assert_contains(error.text, "not empty");

    begin_cluster("damaged", PARTITIONS);
    damage(bed.path);
    assert_status(pawl_cluster_import(&options, &report, &error), PAWL_ECORRUPT);
    assert_int_equal(entries_of_cluster(), 0);
    options.dir = "/nowhere/at/all";
    assert_status(pawl_cluster_import(&options, &report, &error), PAWL_ENOTFOUND);
    options.url = "/tmp";
    assert_status(pawl_cluster_import(&options, &report, &error), PAWL_EINVAL);
    assert_status(pawl_cluster_export(&options, &report, &error), PAWL_EINVAL);
    bed_end(&node);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_log_goes_into_a_cluster_and_back_and_its_state_is_the_same_everywhere),
        RUN(killed_again_and_again_it_goes_on_where_it_was_and_no_entry_is_there_twice),
        RUN(nodes_and_exports_and_other_directories_are_refused_until_an_import_has_ended),
        RUN(a_cluster_that_an_import_has_only_claimed_takes_any_directory_also_an_empty_one),
        RUN(only_a_sound_directory_that_nobody_writes_to_goes_into_a_cluster_that_is_empty_and_as_wide),
    };
    if (!getenv("PAWL_KAFKA")) {
        fputs("PAWL_KAFKA names no brokers\n", stderr);
        return 1;
    }
    return TEST_MAIN(tests);
}

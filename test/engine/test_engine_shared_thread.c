/* test_engine_shared_thread.c: shards that share a thread, on a disk that takes a while to sync, or does not answer. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pawl/pawl.h>

#include "base/latch.h"
#include "base/wait.h"
#include "engine/knobs.h"
#include "test/lib/dir.h"
#include "test/lib/test.h"

#define PARTITIONS 4
#define SHARDS     2
#define WORKSPACES 16
#define FLIGHTS    1500
#define COMMANDS   100000 /* of all flights */
#define SYNC       (10 * PAWL_MILLISECOND)

static const char schema[] =
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {}},"
    " \"types\": {\"Note\": {\"kind\": \"WDoc\", \"fields\": {\"n\": {\"type\": \"int64\"}}}},"
    " \"commands\": {\"Add\": {\"records\": [\"Note\"]}}}";

#define WAIT    (200 * PAWL_MILLISECOND)
#define HANGS   (60 * PAWL_SECOND) /* at most: a net for a test that fails */
#define AT_ONCE 64

static atomic_bool must_hang, hangs;

/* In place of the C library's: the disk. */
int fdatasync(int fd)
{
    wait_pause(SYNC);
    uint64_t until = clock_boot_ns() + HANGS;
    while (atomic_load(&must_hang) && clock_boot_ns() < until) {
        atomic_store(&hangs, true);
        wait_pause(SYNC);
    }
    atomic_store(&hangs, false);
    return (int)syscall(SYS_fdatasync, fd);
}

struct load {
    pawl_engine *engine;
    uint64_t wsids[WORKSPACES]; /* whose commands these are */
    size_t count;
    _Atomic uint64_t sent, answered, failed;
    _Atomic unsigned flying;
    struct latch over;
};

static void add(pawl_request *request, uint64_t wsid)
{
    pawl_request_begin(request, wsid, "t.Add");
    pawl_request_record(request, 1, "t.Note");
    pawl_request_set_int64(request, "n", 7);
}

static void flown(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                  const pawl_error *error);

static void fly(struct load *l, pawl_request *request)
{
    uint64_t n = atomic_fetch_add(&l->sent, 1);
    if (n < COMMANDS) {
        add(request, l->wsids[n % l->count]);
        if (pawl_command_async(l->engine, request, flown, l, NULL) == PAWL_OK)
            return;
        atomic_fetch_add(&l->failed, 1);
    }
    if (atomic_fetch_sub(&l->flying, 1) == 1)
        latch_set(&l->over);
}

static void flown(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                  const pawl_error *error)
{
    struct load *l = arg;
    atomic_fetch_add(status == PAWL_OK ? &l->answered : &l->failed, 1);
    fly(l, request);
}

/* All of its commands are those of one shard, which never waits for the disk: so many are outstanding that the next ones
 * are sent before the last ones are synced. */
TEST(commands_of_a_shard_do_not_wait_until_another_one_on_its_thread_has_no_more)
{
    char dir[256], path[300];
    pawl_engine *engine;
    pawl_request *request;
    pawl_error error = {0};
    pawl_options options = {.partitions = PARTITIONS, .shards = SHARDS};
    const struct engine_knobs knobs = {.threads = 1, .gather_time = HANGS};
    static struct load load;
    static pawl_request *requests[FLIGHTS];
    uint64_t lone = 0;
    test_dir_make(dir, sizeof dir);
    snprintf(path, sizeof path, "%s/data", dir);
    assert_ok(engine_open(path, &options, &knobs, &engine, &error));
    assert_ok(pawl_schema_apply(engine, schema, NULL, &error));
    assert_ok(pawl_request_new(engine, &request));
    load = (struct load){.engine = engine, .flying = FLIGHTS};
    latch_init(&load.over);
    for (uint64_t wsid = 1; wsid <= WORKSPACES; wsid++) {
        pawl_answer answer;
        assert_ok(pawl_workspace_create(engine, request, wsid, "t.tenant", &answer, &error));
        if (answer.partition % SHARDS == 0)
            load.wsids[load.count++] = wsid;
        else
            lone = wsid;
    }
    assert_true(lone != 0 && load.count > 0);
    for (size_t i = 0; i < FLIGHTS; i++)
        assert_ok(pawl_request_new(engine, &requests[i]));
    for (size_t i = 0; i < FLIGHTS; i++)
        fly(&load, requests[i]);
    uint64_t most = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t before = atomic_load(&load.answered);
        add(request, lone);
        assert_ok(pawl_command(engine, request, NULL, &error));
        uint64_t others = atomic_load(&load.answered) - before;
        most = others > most ? others : most;
    }
    latch_wait(&load.over);
    print_message("# up to %" PRIu64 " commands of the other shard while one waited\n", most);
    assert_in_range(most, 0, COMMANDS / 10);
    assert_int_equal(atomic_load(&load.failed), 0);
    for (size_t i = 0; i < FLIGHTS; i++)
        pawl_request_free(requests[i]);
    pawl_request_free(request);
    assert_ok(pawl_close(engine));
    test_dir_remove(dir);
}

/* One whose done sends many more: they are one group, so the shard's thread does not sync them itself. */
struct burst {
    pawl_engine *engine;
    uint64_t wsid;
    pawl_request *requests[AT_ONCE];
    _Atomic unsigned left;
    struct latch over;
};

static void burst_ended(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                        const pawl_error *error)
{
    struct burst *b = arg;
    if (atomic_fetch_sub(&b->left, 1) == 1)
        latch_set(&b->over);
}

static void begin_burst(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                        const pawl_error *error)
{
    struct burst *b = arg;
    atomic_store(&must_hang, true);
    for (size_t i = 0; i < AT_ONCE; i++) {
        add(b->requests[i], b->wsid);
        if (pawl_command_async(b->engine, b->requests[i], burst_ended, b, NULL) != PAWL_OK)
            burst_ended(b, b->requests[i], PAWL_EIO, NULL, NULL);
    }
}

/* A command that comes while the disk syncs a burst, and does not answer. */
struct late {
    char dir[256];
    pawl_request *first, *request;
    int status;
    struct latch told;
};

static void told(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                 const pawl_error *error)
{
    struct late *late = arg;
    late->status = status;
    latch_set(&late->told);
}

static void send_late(struct late *late, struct burst *burst, pawl_duration wait, pawl_duration gather_time)
{
    char path[300];
    pawl_error error = {0};
    pawl_options options = {.partitions = PARTITIONS, .shards = SHARDS, .wait = wait};
    const struct engine_knobs knobs = {.threads = 1, .gather_time = gather_time};
    test_dir_make(late->dir, sizeof late->dir);
    snprintf(path, sizeof path, "%s/data", late->dir);
    *burst = (struct burst){.wsid = 1, .left = AT_ONCE};
    latch_init(&burst->over);
    latch_init(&late->told);
    assert_ok(engine_open(path, &options, &knobs, &burst->engine, &error));
    assert_ok(pawl_schema_apply(burst->engine, schema, NULL, &error));
    assert_ok(pawl_request_new(burst->engine, &late->request));
    assert_ok(pawl_request_new(burst->engine, &late->first));
    assert_ok(pawl_workspace_create(burst->engine, late->request, 1, "t.tenant", NULL, &error));
    for (size_t i = 0; i < AT_ONCE; i++)
        assert_ok(pawl_request_new(burst->engine, &burst->requests[i]));
    add(late->first, 1);
    assert_ok(pawl_command_async(burst->engine, late->first, begin_burst, burst, &error));
    while (!atomic_load(&hangs))
        wait_pause(PAWL_MILLISECOND);
    add(late->request, 1);
    assert_ok(pawl_command_async(burst->engine, late->request, told, late, &error));
}

static void end_late(struct late *late, struct burst *burst)
{
    latch_wait(&burst->over);
    for (size_t i = 0; i < AT_ONCE; i++)
        pawl_request_free(burst->requests[i]);
    pawl_request_free(late->first);
    pawl_request_free(late->request);
    assert_ok(pawl_close(burst->engine));
    test_dir_remove(late->dir);
}

TEST(who_comes_while_the_disk_does_not_answer_is_answered_in_time)
{
    static struct burst burst;
    struct late late;
    send_late(&late, &burst, WAIT, 0);
    latch_wait(&late.told);
    assert_true(atomic_load(&hangs)); /* still */
    atomic_store(&must_hang, false);
    end_late(&late, &burst);
}

TEST(what_has_gathered_is_taken_when_the_disk_has_answered)
{
    static struct burst burst;
    struct late late;
    send_late(&late, &burst, 0, WAIT_FOREVER / 2);
    atomic_store(&must_hang, false);
    assert_ok(latch_wait_until(&late.told, (pawl_instant){clock_boot_ns() + HANGS}));
    assert_ok(late.status);
    end_late(&late, &burst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(commands_of_a_shard_do_not_wait_until_another_one_on_its_thread_has_no_more),
        RUN(who_comes_while_the_disk_does_not_answer_is_answered_in_time),
        RUN(what_has_gathered_is_taken_when_the_disk_has_answered),
    };
    return TEST_MAIN(tests);
}

#include "test/lib/test.h"

#include "adapter/mem/env.h"
#include "adapter/mem/log.h"
#include "engine/shard/turn_appends.h"
#include "test/lib/alloc.h"

#define PARTS   4
#define ENTRIES 3 /* of one append, at most */

struct bed;

/* A partition's stream, and its present append. */
struct part {
    struct bed *bed;
    uint16_t number;
    pawl_claim claim;
    pawl_append append;
    pawl_append_entry entries[ENTRIES];
    pawl_error error;
    int sent; /* what the call returned */
    bool again;
};

struct bed {
    struct test_alloc memory;
    struct mem_world *world;
    struct mem_env *env;
    struct mem_log_disk *disk;
    pawl_log *log;
    struct turn_appends appends;
    struct part parts[PARTS];
    struct part *other;
    char trace[64]; /* of dones: the partition's number, with "!" behind it if it failed */
    uint8_t large[TURN_APPENDS_BYTES_MAX];
    pawl_task task;
    uint32_t shard; /* on which fn runs */
    void (*fn)(struct bed *bed);
    bool ran;
};

static void run_task(pawl_task *task)
{
    struct bed *bed = (struct bed *)(void *)((char *)task - offsetof(struct bed, task));
    bed->fn(bed);
    bed->ran = true;
}

/* Run it on the shard, and nothing after it. */
static void on_shard(struct bed *bed, void (*fn)(struct bed *bed))
{
    bed->task = (pawl_task){.fn = run_task};
    bed->fn = fn;
    bed->ran = false;
    assert_ok(pawl_env_post(mem_env_port(bed->env), bed->shard, &bed->task));
    while (!bed->ran)
        assert_true(mem_world_step(bed->world));
}

static void run_all(struct bed *bed)
{
    assert_true(mem_world_run(bed->world, 10000));
}

static void claimed(pawl_claim *claim)
{
    assert_ok(claim->status);
}

static void claim_next(struct bed *bed)
{
    struct part *p = bed->other;
    p->claim = (pawl_claim){.stream = {.kind = PAWL_STREAM_PLOG, .partition = p->number}, .done = claimed};
    assert_ok(pawl_log_claim(turn_appends_port(&bed->appends), &p->claim));
}

static void bed_open(struct bed *bed, uint32_t requests)
{
    *bed = (struct bed){0};
    test_alloc_init(&bed->memory);
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = 1}, &bed->world, NULL));
    assert_ok(mem_env_open(bed->world, &(struct mem_env_options){.shards = 2}, &bed->env, NULL));
    assert_ok(mem_log_disk_open(1, NULL, &bed->disk));
    struct mem_log_options options = {.node = 1, .message_bytes = sizeof bed->large, .requests = requests};
    assert_ok(mem_log_open(bed->disk, mem_env_port(bed->env), &options, &bed->log));
    turn_appends_init(&bed->appends, bed->log, mem_env_port(bed->env), 0, &bed->memory.allocator);
    for (size_t i = 0; i < PARTS; i++) {
        bed->parts[i] = (struct part){.bed = bed, .number = (uint16_t)i};
        bed->other = &bed->parts[i];
        on_shard(bed, claim_next);
        run_all(bed);
    }
}

static void bed_close(struct bed *bed)
{
    turn_appends_release(&bed->appends);
    test_alloc_release(&bed->memory);
    assert_ok(pawl_log_close(bed->log));
    mem_world_close(bed->world);
    mem_log_disk_close(bed->disk);
}

static void part_send(struct part *p, size_t count, pawl_bytes body);

static void part_done(pawl_append *append)
{
    struct part *p = append->arg;
    size_t size = strlen(p->bed->trace);
    assert_true(size + 4 < sizeof p->bed->trace);
    snprintf(p->bed->trace + size, sizeof p->bed->trace - size, "%u%s", p->number, append->status ? "!" : "");
    for (size_t i = 0; i < append->count; i++) {
        assert_true(append->entries[i].status == PAWL_OK || append->status != PAWL_OK);
        assert_true(append->entries[i].place.position != 0 || append->status != PAWL_OK);
        p->claim.next += append->entries[i].status == PAWL_OK;
    }
    if (p->again) {
        p->again = false;
        part_send(p, 1, text_bytes("again"));
    }
}

static void part_send(struct part *p, size_t count, pawl_bytes body)
{
    for (size_t i = 0; i < count; i++)
        p->entries[i] = (pawl_append_entry){
            .entry = {
                .stream = p->claim.stream, .epoch = p->claim.epoch, .offset = p->claim.next + i, .body = body}};
    p->append =
        (pawl_append){.entries = p->entries, .count = count, .done = part_done, .arg = p, .error = &p->error};
    p->sent = pawl_log_append(turn_appends_port(&p->bed->appends), &p->append);
}

/* Of as many entries as their number says, so that what is given to the wrong one is seen. */
static void send_0_1_2(struct bed *bed)
{
    for (size_t i = 0; i < 3; i++) {
        part_send(&bed->parts[i], i + 1, text_bytes("event"));
        assert_ok(bed->parts[i].sent);
    }
}

static void send_other(struct bed *bed)
{
    part_send(bed->other, 1, text_bytes("event"));
}

static void end_turn(struct bed *bed)
{
    turn_appends_send(&bed->appends, false);
}

/* What the log has taken since it had taken so many. */
static uint64_t requests_since(const struct bed *bed, uint64_t before)
{
    return mem_log_requests(bed->log) - before;
}

static uint64_t offset_of(const struct bed *bed, size_t i)
{
    return bed->parts[i].claim.next - 1;
}

TEST(appends_of_one_turn_of_the_loop_are_one_append)
{
    struct bed bed;
    bed_open(&bed, 0);
    uint64_t before = mem_log_requests(bed.log);
    on_shard(&bed, send_0_1_2);
    assert_int_equal(requests_since(&bed, before), 0);
    run_all(&bed);
    assert_int_equal(requests_since(&bed, before), 1);
    assert_string_equal(bed.trace, "012");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(offset_of(&bed, i), i + 1);
    bed_close(&bed);
}

TEST(the_turn_s_end_sends_and_leaves_nothing_for_the_loop)
{
    struct bed bed;
    bed_open(&bed, 0);
    uint64_t before = mem_log_requests(bed.log);
    on_shard(&bed, send_0_1_2);
    on_shard(&bed, end_turn);
    assert_int_equal(requests_since(&bed, before), 1);
    run_all(&bed);
    assert_int_equal(requests_since(&bed, before), 1);
    assert_string_equal(bed.trace, "012");
    bed_close(&bed);
}

static void note_idle(void *arg)
{
    struct bed *bed = arg;
    assert_false(turn_appends_under_way(&bed->appends));
    size_t size = strlen(bed->trace);
    snprintf(bed->trace + size, sizeof bed->trace - size, "i");
}

TEST(whoever_waits_for_the_log_is_told_when_it_has_answered_all)
{
    struct bed bed;
    bed_open(&bed, 0);
    bed.appends.idle = note_idle;
    bed.appends.arg = &bed;
    assert_false(turn_appends_under_way(&bed.appends));
    on_shard(&bed, send_0_1_2);
    assert_false(turn_appends_under_way(&bed.appends));
    on_shard(&bed, end_turn);
    assert_true(turn_appends_under_way(&bed.appends));
    bed.other = &bed.parts[3];
    on_shard(&bed, send_other);
    on_shard(&bed, end_turn);
    run_all(&bed);
    assert_int_equal(strlen(bed.trace), 5);
    assert_int_equal(bed.trace[4], 'i'); /* the log answers streams in any order */
    struct mem_log_fault fault = {MEM_LOG_LOST, mem_log_requests(bed.log) + 1, 0};
    assert_ok(mem_log_order(bed.log, &fault));
    on_shard(&bed, send_other);
    run_all(&bed);
    assert_string_equal(bed.trace + 5, "3!i");
    bed_close(&bed);
}

static void send_again(struct bed *bed)
{
    bed->parts[0].again = bed->parts[2].again = true;
    send_0_1_2(bed);
}

TEST(appends_made_by_dones_go_together_again)
{
    struct bed bed;
    bed_open(&bed, 0);
    uint64_t before = mem_log_requests(bed.log);
    on_shard(&bed, send_again);
    run_all(&bed);
    assert_int_equal(requests_since(&bed, before), 2);
    assert_string_equal(bed.trace, "01202");
    assert_int_equal(offset_of(&bed, 2), 4);
    bed_close(&bed);
}

TEST(a_failure_of_the_log_reaches_all_of_them)
{
    static const struct {
        enum mem_log_fault_kind fault;
        int status;
    } cases[] = {
        {MEM_LOG_FAIL, PAWL_EIO},
        {MEM_LOG_FULL, PAWL_EFULL},
        {MEM_LOG_LOST, PAWL_EUNKNOWN},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct bed bed;
        bed_open(&bed, 0);
        struct mem_log_fault fault = {cases[c].fault, mem_log_requests(bed.log) + 1, 0};
        assert_ok(mem_log_order(bed.log, &fault));
        on_shard(&bed, send_0_1_2);
        run_all(&bed);
        assert_string_equal(bed.trace, "0!1!2!");
        for (size_t i = 0; i < 3; i++) {
            assert_status(bed.parts[i].append.status, cases[c].status);
            assert_status(bed.parts[i].error.code, cases[c].status);
            for (size_t k = 0; k <= i; k++)
                assert_status(bed.parts[i].entries[k].status, cases[c].status);
        }
        bed_close(&bed);
    }
}

static void send_with_1_fenced(struct bed *bed)
{
    bed->parts[1].claim.epoch = 77;
    send_0_1_2(bed);
}

TEST(a_refused_append_leaves_the_others_of_its_turn_alone)
{
    struct bed bed;
    bed_open(&bed, 0);
    on_shard(&bed, send_with_1_fenced);
    run_all(&bed);
    assert_string_equal(bed.trace, "01!2");
    assert_status(bed.parts[1].append.status, PAWL_EFENCED);
    assert_int_equal(offset_of(&bed, 0), 1);
    assert_int_equal(offset_of(&bed, 1), 0);
    assert_int_equal(offset_of(&bed, 2), 3);
    bed_close(&bed);
}

static void send_one_malformed(struct bed *bed)
{
    struct part *p = &bed->parts[1];
    part_send(&bed->parts[0], 1, text_bytes("event"));
    part_send(p, 1, text_bytes("event"));
    p->entries[0].entry.stream.kind = 99;
    part_send(&bed->parts[2], 1, text_bytes("event"));
}

TEST(an_append_that_the_log_does_not_take_holds_up_no_other)
{
    struct bed bed;
    bed_open(&bed, 0);
    on_shard(&bed, send_one_malformed);
    run_all(&bed);
    assert_int_equal(strncmp(bed.trace, "1!", 2), 0); /* told at once, in place of being sent */
    assert_int_equal(strlen(bed.trace), 4);
    assert_status(bed.parts[1].append.status, PAWL_EIO);
    bed_close(&bed);
}

static void send_large(struct bed *bed)
{
    part_send(&bed->parts[0], 1, text_bytes("event"));
    part_send(&bed->parts[1], 1, (pawl_bytes){bed->large, sizeof bed->large});
    part_send(&bed->parts[2], 1, text_bytes("event"));
    part_send(&bed->parts[3], 1, text_bytes("event"));
}

TEST(a_large_one_goes_by_itself_and_in_its_place)
{
    struct bed bed;
    bed_open(&bed, 0);
    uint64_t before = mem_log_requests(bed.log);
    on_shard(&bed, send_large);
    run_all(&bed);
    assert_int_equal(requests_since(&bed, before), 3);
    for (size_t i = 0; i < PARTS; i++)
        assert_int_equal(offset_of(&bed, i), 1);
    bed_close(&bed);
}

static void send_3(struct bed *bed)
{
    part_send(&bed->parts[3], 1, text_bytes("event"));
}

/* Its requests are outstanding until they are told, so one that is under way fills a log that takes one. */
TEST(while_the_log_is_busy_what_is_kept_stays_and_more_is_refused)
{
    struct bed bed;
    bed_open(&bed, 1);
    on_shard(&bed, send_3);
    on_shard(&bed, end_turn);
    on_shard(&bed, send_0_1_2);
    on_shard(&bed, end_turn);
    assert_true(bed.appends.busy);
    struct part *late = &bed.parts[3];
    struct part copy = *late; /* its append is under way: another partition's would be refused like this */
    copy.number = 9;
    bed.other = &copy;
    on_shard(&bed, send_other);
    assert_status(copy.sent, PAWL_EBUSY);
    run_all(&bed);
    assert_string_equal(bed.trace, "3012");
    bed_close(&bed);
}

TEST(without_memory_each_append_goes_by_itself)
{
    for (uint64_t k = 1; k <= 2; k++) { /* the request, and its entries */
        struct bed bed;
        bed_open(&bed, 0);
        uint64_t before = mem_log_requests(bed.log);
        test_alloc_fail(&bed.memory, k, TEST_ALLOC_FROM_THEN_ON);
        on_shard(&bed, send_0_1_2);
        run_all(&bed);
        assert_true(test_alloc_failed(&bed.memory));
        assert_int_equal(requests_since(&bed, before), 3);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(offset_of(&bed, i), i + 1);
        bed_close(&bed);
    }
}

/* A log that does at once what is alone: nothing of it, but with a place. */
static int append_here(pawl_log *log, pawl_append *append)
{
    if (!append->alone)
        return PAWL_EIO;
    append->status = PAWL_OK;
    for (size_t i = 0; i < append->count; i++) {
        append->entries[i].status = PAWL_OK;
        append->entries[i].place = (pawl_place){.position = i + 1};
    }
    return PAWL_APPEND_DONE;
}

static void send_0_1_2_alone(struct bed *bed)
{
    send_0_1_2(bed);
    turn_appends_send(&bed->appends, true);
}

static void send_3_alone(struct bed *bed)
{
    send_3(bed);
    turn_appends_send(&bed->appends, true);
}

static void send_large_alone(struct bed *bed)
{
    send_large(bed);
    turn_appends_send(&bed->appends, true);
}

/* Of what goes in several the second would overtake the first: such is not alone, and refused here. */
TEST(appends_that_are_alone_in_the_log_are_done_when_they_were_sent)
{
    static const struct pawl_log_ops ops = {.append = append_here};
    static const struct {
        void (*send)(struct bed *bed);
        const char *trace;
    } cases[] = {
        {send_0_1_2_alone, "012"},
        {send_3_alone, "3"},
        {send_large_alone, "0!1!2!3!"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bed bed;
        pawl_log here = {.ops = &ops};
        bed_open(&bed, 0);
        bed.appends.log = &here;
        on_shard(&bed, cases[i].send);
        assert_string_equal(bed.trace, cases[i].trace);
        assert_int_equal(turn_appends_kept(&bed.appends), 0);
        run_all(&bed);
        assert_string_equal(bed.trace, cases[i].trace);
        bed_close(&bed);
    }
}

/* A log that is told of each append at once, and notes on which shard, and whether it is alone. */
struct noting_log {
    pawl_log log;
    pawl_env *env;
    uint32_t shard;
    bool alone;
};

static int append_and_note(pawl_log *log, pawl_append *append)
{
    struct noting_log *noting = (struct noting_log *)log;
    noting->shard = pawl_env_self(noting->env);
    noting->alone = append->alone;
    append->alone = true;
    return append_here(log, append);
}

static void send_as_alone(void *arg)
{
    struct bed *bed = arg;
    turn_appends_send(&bed->appends, true);
}

/* A log answers what one shard has asked in order; between shards there is none, though they share a thread. */
TEST(the_log_is_asked_on_one_shard_whichever_appends)
{
    static const struct pawl_log_ops ops = {.append = append_and_note};
    for (int alone = 0; alone < 2; alone++) {
        struct bed bed;
        bed_open(&bed, 0);
        struct noting_log noting = {.log.ops = &ops, .env = mem_env_port(bed.env), .shard = PAWL_NO_SHARD};
        bed.appends.log = &noting.log;
        bed.appends.send = alone ? send_as_alone : NULL;
        bed.appends.arg = &bed;
        bed.shard = 1;
        on_shard(&bed, send_3);
        assert_int_equal(noting.shard, PAWL_NO_SHARD); /* it is left to the end of the turn */
        run_all(&bed);
        assert_int_equal(noting.shard, 0);
        assert_int_equal(noting.alone, alone);
        assert_string_equal(bed.trace, "3");
        bed_close(&bed);
    }
}

TEST(kept_appends_are_counted_in_entries)
{
    struct bed bed;
    bed_open(&bed, 0);
    assert_int_equal(turn_appends_kept(&bed.appends), 0);
    on_shard(&bed, send_0_1_2);
    assert_int_equal(turn_appends_kept(&bed.appends), 1 + 2 + 3);
    on_shard(&bed, end_turn);
    assert_int_equal(turn_appends_kept(&bed.appends), 0);
    run_all(&bed);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(appends_of_one_turn_of_the_loop_are_one_append),
        RUN(the_turn_s_end_sends_and_leaves_nothing_for_the_loop),
        RUN(whoever_waits_for_the_log_is_told_when_it_has_answered_all),
        RUN(appends_made_by_dones_go_together_again),
        RUN(a_failure_of_the_log_reaches_all_of_them),
        RUN(a_refused_append_leaves_the_others_of_its_turn_alone),
        RUN(an_append_that_the_log_does_not_take_holds_up_no_other),
        RUN(a_large_one_goes_by_itself_and_in_its_place),
        RUN(while_the_log_is_busy_what_is_kept_stays_and_more_is_refused),
        RUN(without_memory_each_append_goes_by_itself),
        RUN(appends_that_are_alone_in_the_log_are_done_when_they_were_sent),
        RUN(the_log_is_asked_on_one_shard_whichever_appends),
        RUN(kept_appends_are_counted_in_entries),
    };
    return TEST_MAIN(tests);
}

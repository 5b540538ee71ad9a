#include "test/lib/test.h"

#include "adapter/mem/env.h"
#include "adapter/mem/store.h"
#include "core/stream/applier.h"

#define ITEMS 8
#define SPACE 0

struct bed;

/* Writes one row, its name. */
struct item {
    struct apply_item item;
    struct bed *bed;
    char name;
    int status;                    /* of its write, before it has touched the store */
    void (*then)(struct bed *bed); /* in done; may be NULL */
};

struct bed {
    struct mem_world *world;
    struct mem_env *env;
    mem_store_disk *disk;
    pawl_store *store;
    struct applier applier;
    struct item items[ITEMS];
    size_t depth;    /* of dones, one inside the other */
    char trace[256]; /* "p" put ahead, "w" write, "u" undo, "d" done, and the item's name */
    pawl_task task;
    void (*fn)(struct bed *bed);
    bool ran;
};

static void trace(struct bed *bed, char what, char name)
{
    size_t size = strlen(bed->trace);
    assert_true(size + 4 < sizeof bed->trace);
    snprintf(bed->trace + size, sizeof bed->trace - size, "%s%c%c", size ? " " : "", what, name);
}

static void assert_trace(struct bed *bed, const char *expected)
{
    assert_string_equal(bed->trace, expected);
    bed->trace[0] = '\0';
}

static int write_item(struct apply_item *apply, pawl_store *store)
{
    struct item *item = (struct item *)apply;
    trace(item->bed, 'w', item->name);
    if (item->status != PAWL_OK)
        return item->status;
    return apply->ahead_state == APPLY_PUT
               ? PAWL_OK
               : pawl_store_put(store, SPACE, (pawl_bytes){&item->name, 1}, text_bytes("row"));
}

static int put_item_ahead(struct apply_item *apply, pawl_store *store)
{
    struct item *item = (struct item *)apply;
    trace(item->bed, 'p', item->name);
    if (item->status != PAWL_OK)
        return item->status;
    return pawl_store_put(store, SPACE, (pawl_bytes){&item->name, 1}, text_bytes("row"));
}

static void undo_item(struct apply_item *apply)
{
    struct item *item = (struct item *)apply;
    trace(item->bed, 'u', item->name);
}

static void done_item(struct apply_item *apply)
{
    struct item *item = (struct item *)apply;
    assert_int_equal(item->bed->depth++, 0);
    trace(item->bed, 'd', item->name);
    if (item->then)
        item->then(item->bed);
    item->bed->depth--;
}

static void bed_open(struct bed *bed)
{
    *bed = (struct bed){0};
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = 1}, &bed->world, NULL));
    assert_ok(mem_env_open(bed->world, &(struct mem_env_options){.shards = 1}, &bed->env, NULL));
    assert_ok(mem_store_disk_new(NULL, &bed->disk));
    assert_ok(mem_store_open(bed->disk, &(struct mem_store_options){.name = "state"}, NULL, &bed->store, NULL));
    applier_init(&bed->applier, mem_env_port(bed->env), 0, bed->store);
    bed->applier.works_ahead = true;
    for (size_t i = 0; i < ITEMS; i++)
        bed->items[i] = (struct item){
            .item = {.ahead = put_item_ahead, .write = write_item, .undo = undo_item, .done = done_item},
            .bed = bed,
            .name = (char)('1' + i)};
}

static void bed_close(struct bed *bed)
{
    mem_world_close(bed->world);
    mem_store_disk_free(bed->disk);
}

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
    assert_ok(pawl_env_post(mem_env_port(bed->env), 0, &bed->task));
    while (!bed->ran)
        assert_true(mem_world_step(bed->world));
}

static void run_ready(struct bed *bed)
{
    while (mem_world_step(bed->world))
        ;
}

static void add(struct bed *bed, size_t i)
{
    applier_add(&bed->applier, &bed->items[i - 1].item);
}

static void soon(struct bed *bed)
{
    applier_soon(&bed->applier);
}

static void run_now(struct bed *bed)
{
    applier_run(&bed->applier);
}

static void add_1_2_3(struct bed *bed)
{
    for (size_t i = 1; i <= 3; i++) {
        add(bed, i);
        soon(bed);
    }
}

static void break_store(struct bed *bed, enum mem_store_op op, uint64_t countdown, uint64_t times)
{
    mem_store_disk_fail(bed->disk, (struct mem_store_fault){op, countdown, times, PAWL_EFULL});
}

static bool is_stored(struct bed *bed, char name)
{
    pawl_reader *snapshot;
    pawl_bytes value;
    assert_ok(pawl_store_snapshot(bed->store, &snapshot));
    int status = pawl_store_get(snapshot, SPACE, (pawl_bytes){&name, 1}, &value);
    pawl_store_release(bed->store, snapshot);
    return status == PAWL_OK;
}

TEST(what_has_gathered_is_written_in_one_transaction_and_done_in_order)
{
    struct bed bed;
    bed_open(&bed);
    on_shard(&bed, add_1_2_3);
    assert_trace(&bed, "");
    run_ready(&bed);
    assert_trace(&bed, "w1 w2 w3 d1 d2 d3");
    assert_int_equal(bed.applier.commits, 1);
    assert_true(is_stored(&bed, '1') && is_stored(&bed, '2') && is_stored(&bed, '3'));
    bed_close(&bed);
}

TEST(with_nothing_to_write_nothing_is_committed)
{
    struct bed bed;
    bed_open(&bed);
    on_shard(&bed, run_now);
    on_shard(&bed, soon);
    run_ready(&bed);
    assert_int_equal(bed.applier.commits, 0);
    bed_close(&bed);
}

static void add_1_run(struct bed *bed)
{
    add(bed, 1);
    run_now(bed);
}

TEST(it_can_be_run_at_once)
{
    struct bed bed;
    bed_open(&bed);
    on_shard(&bed, add_1_run);
    assert_trace(&bed, "w1 d1");
    bed_close(&bed);
}

TEST(an_item_whose_write_fails_has_those_before_it_undone_and_is_not_itself)
{
    struct bed bed;
    bed_open(&bed);
    bed.items[1].status = PAWL_ENOMEM;
    on_shard(&bed, add_1_2_3);
    run_ready(&bed);
    assert_trace(&bed, "w1 w2 u1");
    assert_int_equal(bed.applier.stuck, PAWL_ENOMEM);
    assert_false(is_stored(&bed, '1'));
    bed.items[1].status = PAWL_OK;
    mem_world_advance(bed.world, 10 * PAWL_MILLISECOND);
    assert_trace(&bed, "w1 w2 w3 d1 d2 d3");
    assert_int_equal(bed.applier.stuck, PAWL_OK);
    assert_true(is_stored(&bed, '1') && is_stored(&bed, '3'));
    bed_close(&bed);
}

TEST(a_put_that_fails_undoes_what_was_put_before_it)
{
    struct bed bed;
    bed_open(&bed);
    break_store(&bed, MEM_STORE_PUT, 3, 1);
    on_shard(&bed, add_1_2_3);
    run_ready(&bed);
    assert_trace(&bed, "w1 w2 w3 u1 u2");
    assert_int_equal(bed.applier.stuck, PAWL_EFULL);
    assert_false(is_stored(&bed, '1'));
    mem_world_advance(bed.world, 10 * PAWL_MILLISECOND);
    assert_trace(&bed, "w1 w2 w3 d1 d2 d3");
    bed_close(&bed);
}

TEST(a_commit_that_fails_undoes_all)
{
    struct bed bed;
    bed_open(&bed);
    break_store(&bed, MEM_STORE_COMMIT, 1, 1);
    on_shard(&bed, add_1_2_3);
    run_ready(&bed);
    assert_trace(&bed, "w1 w2 w3 u1 u2 u3");
    assert_false(is_stored(&bed, '1'));
    mem_world_advance(bed.world, 10 * PAWL_MILLISECOND);
    assert_trace(&bed, "w1 w2 w3 d1 d2 d3");
    assert_true(is_stored(&bed, '1'));
    assert_int_equal(bed.applier.commits, 1);
    assert_int_equal(bed.applier.retries, 1);
    bed_close(&bed);
}

static void add_2_soon(struct bed *bed)
{
    add(bed, 2);
    soon(bed);
}

TEST(what_comes_while_it_is_stuck_waits_for_the_next_attempt)
{
    struct bed bed;
    bed_open(&bed);
    break_store(&bed, MEM_STORE_COMMIT, 1, 1);
    on_shard(&bed, add_1_run);
    assert_trace(&bed, "w1 u1");
    on_shard(&bed, add_2_soon);
    run_ready(&bed);
    assert_trace(&bed, "");
    mem_world_advance(bed.world, 10 * PAWL_MILLISECOND);
    assert_trace(&bed, "w1 w2 d1 d2");
    bed_close(&bed);
}

TEST(attempts_come_later_and_later_up_to_a_second_and_begin_anew_after_a_success)
{
    static const pawl_duration delays[] = {10, 20, 40, 80, 160, 320, 640, 1000, 1000};
    const size_t count = sizeof delays / sizeof delays[0];
    struct bed bed;
    bed_open(&bed);
    for (int round = 0; round < 2; round++) {
        break_store(&bed, MEM_STORE_COMMIT, 1, count);
        on_shard(&bed, add_1_run);
        for (size_t i = 0; i < count; i++) {
            uint64_t retries = bed.applier.retries;
            assert_trace(&bed, "w1 u1");
            mem_world_advance(bed.world, delays[i] * PAWL_MILLISECOND - 1);
            assert_trace(&bed, "");
            mem_world_advance(bed.world, 1);
            assert_true(bed.applier.retries == retries + (i + 1 < count));
        }
        assert_trace(&bed, "w1 d1");
        assert_int_equal(bed.applier.stuck, PAWL_OK);
    }
    bed_close(&bed);
}

static void then_add_1_again(struct bed *bed)
{
    bed->items[0].then = NULL;
    add(bed, 1);
    soon(bed);
}

TEST(done_may_add_its_item_again)
{
    struct bed bed;
    bed_open(&bed);
    bed.items[0].then = then_add_1_again;
    on_shard(&bed, add_1_2_3);
    run_ready(&bed);
    assert_trace(&bed, "w1 w2 w3 d1 d2 d3 w1 d1");
    bed_close(&bed);
}

static void then_add_4_run(struct bed *bed)
{
    add(bed, 4);
    run_now(bed);
}

/* An overlay would show an older change of a key, not yet taken off, over the newer one in the store. */
TEST(an_item_that_is_run_from_a_done_is_done_after_all_those_before_it)
{
    struct bed bed;
    bed_open(&bed);
    bed.items[0].then = then_add_4_run;
    on_shard(&bed, add_1_2_3);
    run_ready(&bed);
    assert_trace(&bed, "w1 w2 w3 d1 d2 d3 w4 d4");
    bed_close(&bed);
}

static void then_add_1_run(struct bed *bed)
{
    bed->trace[0] = '\0';
    add(bed, 1);
    run_now(bed);
}

TEST(a_caller_that_asks_again_in_every_done_takes_turns_and_not_the_stack)
{
    struct bed bed;
    bed_open(&bed);
    bed.items[0].then = then_add_1_run;
    on_shard(&bed, add_1_run);
    for (uint64_t turn = 1; turn < 5000; turn++) {
        assert_true(bed.applier.commits == turn);
        assert_true(mem_world_step(bed.world));
    }
    bed_close(&bed);
}

static void remove_1(struct bed *bed)
{
    applier_remove(&bed->applier, &bed->items[0].item);
}

static void remove_3(struct bed *bed)
{
    applier_remove(&bed->applier, &bed->items[2].item);
}

static void add_4_soon(struct bed *bed)
{
    add(bed, 4);
    soon(bed);
}

TEST(an_item_whose_owner_goes_is_forgotten_and_the_others_are_not)
{
    struct bed bed;
    bed_open(&bed);
    break_store(&bed, MEM_STORE_COMMIT, 1, 1);
    on_shard(&bed, add_1_2_3);
    run_ready(&bed);
    assert_trace(&bed, "w1 w2 w3 u1 u2 u3");
    on_shard(&bed, remove_1);
    on_shard(&bed, remove_3);
    on_shard(&bed, remove_3); /* it is not there any more */
    on_shard(&bed, add_4_soon);
    mem_world_advance(bed.world, 10 * PAWL_MILLISECOND);
    assert_trace(&bed, "w2 w4 d2 d4");
    bed_close(&bed);
}

TEST(is_not_stuck_after_its_last_item_was_taken_back_and_takes_the_next_at_once)
{
    struct bed bed;
    bed_open(&bed);
    break_store(&bed, MEM_STORE_COMMIT, 1, 5);
    on_shard(&bed, add_1_run);
    assert_int_equal(bed.applier.stuck, PAWL_EFULL);
    assert_trace(&bed, "w1 u1");
    on_shard(&bed, remove_1);
    assert_int_equal(bed.applier.stuck, PAWL_OK);
    mem_world_advance(bed.world, 10 * PAWL_SECOND);
    assert_trace(&bed, "");
    break_store(&bed, MEM_STORE_ANY, 0, 0);
    on_shard(&bed, add_4_soon);
    run_ready(&bed);
    assert_trace(&bed, "w4 d4");
    bed_close(&bed);
}

static void close_applier(struct bed *bed)
{
    applier_close(&bed->applier);
}

TEST(closed_while_stuck_it_makes_no_more_attempts)
{
    struct bed bed;
    bed_open(&bed);
    break_store(&bed, MEM_STORE_COMMIT, 1, 1);
    on_shard(&bed, add_1_run);
    assert_trace(&bed, "w1 u1");
    on_shard(&bed, close_applier);
    mem_world_advance(bed.world, 10 * PAWL_SECOND);
    assert_trace(&bed, "");
    assert_ptr_equal(bed.applier.first, &bed.items[0].item);
    bed_close(&bed);
}

static void add_1_2_3_close(struct bed *bed)
{
    add_1_2_3(bed);
    applier_close(&bed->applier);
}

TEST(closed_before_the_loops_next_turn_it_makes_no_attempt_then)
{
    struct bed bed;
    bed_open(&bed);
    on_shard(&bed, add_1_2_3_close);
    run_ready(&bed);
    assert_trace(&bed, "");
    assert_ptr_equal(bed.applier.first, &bed.items[0].item);
    bed_close(&bed);
}

/* --- what is no batch --- */

struct other {
    struct bed *bed;
    int put_status;
    int status;
    pawl_error error;
};

static int put_other(void *ctx, pawl_store *store, pawl_error *error)
{
    struct other *o = ctx;
    int status = pawl_store_put(store, SPACE, text_bytes("other"), text_bytes("row"));
    if (status != PAWL_OK || o->put_status == PAWL_OK)
        return status;
    error->code = o->put_status;
    snprintf(error->text, sizeof error->text, "it does not want to");
    return o->put_status;
}

static struct other other;

static void write_other(struct bed *bed)
{
    other.status = applier_write(&bed->applier, put_other, &other, &other.error);
}

static bool has_other(struct bed *bed)
{
    pawl_bytes value;
    return pawl_store_get(pawl_store_writer(bed->store), SPACE, text_bytes("other"), &value) == PAWL_OK;
}

TEST(another_write_has_a_transaction_of_its_own)
{
    struct bed bed;
    bed_open(&bed);
    other = (struct other){.bed = &bed};
    bed.items[0].then = write_other; /* between others' transactions */
    add(&bed, 1);
    on_shard(&bed, run_now);
    assert_trace(&bed, "w1 d1");
    assert_ok(other.status);
    assert_true(has_other(&bed));
    bed_close(&bed);
}

TEST(another_write_that_fails_leaves_nothing_for_the_next_transaction)
{
    struct bed bed;
    bed_open(&bed);
    other = (struct other){.bed = &bed, .put_status = PAWL_EINVAL};
    on_shard(&bed, write_other);
    assert_status(other.status, PAWL_EINVAL);
    assert_string_equal(other.error.text, "it does not want to");
    add(&bed, 1);
    on_shard(&bed, run_now);
    assert_false(has_other(&bed));
    bed_close(&bed);
}

TEST(another_write_says_why_it_could_not_be_committed)
{
    struct bed bed;
    bed_open(&bed);
    other = (struct other){.bed = &bed};
    break_store(&bed, MEM_STORE_COMMIT, 1, 1);
    on_shard(&bed, write_other);
    assert_status(other.status, PAWL_EFULL);
    assert_non_null(strstr(other.error.text, "cannot write the state"));
    assert_false(has_other(&bed));
    on_shard(&bed, write_other);
    assert_ok(other.status);
    bed_close(&bed);
}

/* --- ahead --- */

static void send_1_2(struct bed *bed)
{
    applier_sent(&bed->applier, &bed->items[1].item);
    applier_sent(&bed->applier, &bed->items[0].item);
}

static void send_3(struct bed *bed)
{
    applier_sent(&bed->applier, &bed->items[2].item);
}

static void add_1_soon(struct bed *bed)
{
    add(bed, 1);
    soon(bed);
}

static void lose_1(struct bed *bed)
{
    applier_lost(&bed->applier, &bed->items[0].item);
}

static void lose_2(struct bed *bed)
{
    applier_lost(&bed->applier, &bed->items[1].item);
}

static void open_ahead(struct bed *bed)
{
    bed_open(bed);
    on_shard(bed, send_1_2);
    assert_trace(bed, ""); /* the log is told first */
    run_ready(bed);
    assert_trace(bed, "p1 p2");
}

TEST(rows_that_are_ahead_are_committed_when_all_of_them_are_durable)
{
    struct bed bed;
    open_ahead(&bed);
    on_shard(&bed, add_1_soon);
    run_ready(&bed);
    assert_trace(&bed, "");
    assert_false(is_stored(&bed, '1') || is_stored(&bed, '2'));
    on_shard(&bed, add_2_soon);
    run_ready(&bed);
    assert_trace(&bed, "w1 w2 d1 d2");
    assert_true(is_stored(&bed, '1') && is_stored(&bed, '2'));
    assert_int_equal(bed.applier.commits, 1);
    bed_close(&bed);
}

TEST(what_is_durable_waits_only_a_moment_for_what_is_ahead)
{
    struct bed bed;
    open_ahead(&bed);
    on_shard(&bed, add_1_soon);
    run_ready(&bed);
    assert_trace(&bed, "");
    mem_world_advance(bed.world, 20 * PAWL_MILLISECOND);
    run_ready(&bed);
    assert_trace(&bed, "w1 d1");
    assert_true(is_stored(&bed, '1'));
    assert_false(is_stored(&bed, '2'));
    on_shard(&bed, add_2_soon);
    run_ready(&bed);
    assert_trace(&bed, "w2 d2");
    assert_true(is_stored(&bed, '2'));
    bed_close(&bed);
}

TEST(another_write_commits_nothing_that_is_ahead)
{
    struct bed bed;
    open_ahead(&bed);
    other = (struct other){.bed = &bed};
    on_shard(&bed, write_other);
    assert_ok(other.status);
    assert_true(has_other(&bed));
    assert_false(is_stored(&bed, '1') || is_stored(&bed, '2'));
    on_shard(&bed, add_1_soon);
    run_ready(&bed);
    assert_trace(&bed, "w1 d1"); /* the other is not in this transaction any more */
    assert_true(is_stored(&bed, '1'));
    assert_false(is_stored(&bed, '2'));
    on_shard(&bed, add_2_soon);
    run_ready(&bed);
    assert_true(is_stored(&bed, '2'));
    bed_close(&bed);
}

TEST(what_waits_for_rows_that_are_ahead_is_written_soon_when_they_are_aborted)
{
    struct bed bed;
    open_ahead(&bed);
    on_shard(&bed, add_1_soon);
    run_ready(&bed);
    other = (struct other){.bed = &bed};
    on_shard(&bed, write_other);
    assert_ok(other.status);
    run_ready(&bed);
    assert_trace(&bed, "w1 d1");
    assert_true(is_stored(&bed, '1'));
    assert_false(is_stored(&bed, '2'));
    bed_close(&bed);
}

TEST(when_an_item_is_lost_its_rows_are_gone_and_others_are_put_again)
{
    struct bed bed;
    open_ahead(&bed);
    on_shard(&bed, add_1_soon);
    on_shard(&bed, lose_2);
    run_ready(&bed);
    assert_trace(&bed, "w1 d1");
    assert_true(is_stored(&bed, '1'));
    assert_false(is_stored(&bed, '2'));
    assert_null(bed.applier.put);
    bed_close(&bed);
}

TEST(an_item_that_is_lost_before_its_turn_is_never_put)
{
    struct bed bed;
    bed_open(&bed);
    on_shard(&bed, send_1_2);
    on_shard(&bed, lose_1);
    run_ready(&bed);
    assert_string_equal(bed.trace + strlen(bed.trace) - 2, "p2");
    on_shard(&bed, lose_2);
    assert_null(bed.applier.put);
    assert_null(bed.applier.sent);
    bed_close(&bed);
}

TEST(an_item_that_is_durable_before_its_turn_is_put_when_it_is_written)
{
    struct bed bed;
    bed_open(&bed);
    send_3(&bed);
    add(&bed, 3);
    on_shard(&bed, run_now);
    run_ready(&bed);
    assert_trace(&bed, "w3 d3");
    assert_true(is_stored(&bed, '3'));
    bed_close(&bed);
}

TEST(what_must_be_written_now_does_not_wait_for_what_is_ahead)
{
    struct bed bed;
    open_ahead(&bed);
    add(&bed, 4);
    on_shard(&bed, run_now);
    assert_trace(&bed, "w4 d4");
    assert_true(is_stored(&bed, '4'));
    assert_false(is_stored(&bed, '1'));
    bed_close(&bed);
}

TEST(rows_are_put_ahead_only_into_a_transaction_that_is_empty)
{
    struct bed bed;
    open_ahead(&bed);
    on_shard(&bed, send_3);
    run_ready(&bed);
    assert_trace(&bed, "");
    on_shard(&bed, add_1_soon);
    on_shard(&bed, add_2_soon);
    run_ready(&bed);
    assert_trace(&bed, "w1 w2 d1 d2 p3");
    assert_false(is_stored(&bed, '3'));
    bed_close(&bed);
}

TEST(rows_that_cannot_be_put_ahead_are_put_when_they_are_written)
{
    static const int statuses[] = {PAWL_ECANCELED, PAWL_EFULL};
    for (size_t i = 0; i < 2; i++) {
        struct bed bed;
        bed_open(&bed);
        bed.items[1].status = statuses[i];
        on_shard(&bed, send_1_2);
        run_ready(&bed);
        assert_trace(&bed, "p1 p2");
        assert_int_equal(bed.applier.undurable, statuses[i] == PAWL_ECANCELED);
        bed.items[1].status = PAWL_OK;
        on_shard(&bed, add_1_soon);
        on_shard(&bed, add_2_soon);
        run_ready(&bed);
        assert_true(is_stored(&bed, '1') && is_stored(&bed, '2'));
        bed_close(&bed);
    }
}

TEST(after_a_commit_that_fails_rows_that_were_ahead_are_put_again)
{
    struct bed bed;
    open_ahead(&bed);
    break_store(&bed, MEM_STORE_COMMIT, 1, 1);
    on_shard(&bed, add_1_soon);
    on_shard(&bed, add_2_soon);
    run_ready(&bed);
    assert_trace(&bed, "w1 w2 u1 u2");
    mem_world_advance(bed.world, 10 * PAWL_MILLISECOND);
    assert_trace(&bed, "w1 w2 d1 d2");
    assert_true(is_stored(&bed, '1') && is_stored(&bed, '2'));
    bed_close(&bed);
}

TEST(an_item_that_is_ahead_can_be_taken_back)
{
    struct bed bed;
    open_ahead(&bed);
    add(&bed, 1);
    on_shard(&bed, remove_1);
    on_shard(&bed, add_2_soon);
    run_ready(&bed);
    assert_trace(&bed, "w2 d2");
    assert_false(is_stored(&bed, '1'));
    assert_true(is_stored(&bed, '2'));
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(what_has_gathered_is_written_in_one_transaction_and_done_in_order),
        RUN(with_nothing_to_write_nothing_is_committed),
        RUN(it_can_be_run_at_once),
        RUN(an_item_whose_write_fails_has_those_before_it_undone_and_is_not_itself),
        RUN(a_put_that_fails_undoes_what_was_put_before_it),
        RUN(a_commit_that_fails_undoes_all),
        RUN(what_comes_while_it_is_stuck_waits_for_the_next_attempt),
        RUN(attempts_come_later_and_later_up_to_a_second_and_begin_anew_after_a_success),
        RUN(done_may_add_its_item_again),
        RUN(an_item_that_is_run_from_a_done_is_done_after_all_those_before_it),
        RUN(a_caller_that_asks_again_in_every_done_takes_turns_and_not_the_stack),
        RUN(an_item_whose_owner_goes_is_forgotten_and_the_others_are_not),
        RUN(is_not_stuck_after_its_last_item_was_taken_back_and_takes_the_next_at_once),
        RUN(closed_while_stuck_it_makes_no_more_attempts),
        RUN(closed_before_the_loops_next_turn_it_makes_no_attempt_then),
        RUN(another_write_has_a_transaction_of_its_own),
        RUN(another_write_that_fails_leaves_nothing_for_the_next_transaction),
        RUN(another_write_says_why_it_could_not_be_committed),
        RUN(rows_that_are_ahead_are_committed_when_all_of_them_are_durable),
        RUN(what_is_durable_waits_only_a_moment_for_what_is_ahead),
        RUN(another_write_commits_nothing_that_is_ahead),
        RUN(what_waits_for_rows_that_are_ahead_is_written_soon_when_they_are_aborted),
        RUN(when_an_item_is_lost_its_rows_are_gone_and_others_are_put_again),
        RUN(an_item_that_is_lost_before_its_turn_is_never_put),
        RUN(an_item_that_is_durable_before_its_turn_is_put_when_it_is_written),
        RUN(what_must_be_written_now_does_not_wait_for_what_is_ahead),
        RUN(rows_are_put_ahead_only_into_a_transaction_that_is_empty),
        RUN(rows_that_cannot_be_put_ahead_are_put_when_they_are_written),
        RUN(after_a_commit_that_fails_rows_that_were_ahead_are_put_again),
        RUN(an_item_that_is_ahead_can_be_taken_back),
    };
    return TEST_MAIN(tests);
}

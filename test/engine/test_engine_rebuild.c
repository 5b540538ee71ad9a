/* test_engine_rebuild.c: a lane is rebuilt while commands are written and its tables are read: no read fails,
 * and none sees less than an earlier one. */
#include "test/lib/lanes.h"

#include <pthread.h>
#include <stdatomic.h>

#include "adapter/lmdb/store.h"
#include "core/schema/schema.h"
#include "core/state/key.h"
#include "engine/knobs.h"

#define CHANGED                                                                                                \
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {}},"                                    \
    " \"types\": {\"Item\": {\"kind\": \"WDoc\", \"fields\": {\"who\": {\"type\": \"string\"},"                \
    "   \"cents\": {\"type\": \"int64\"}}}},"                                                                  \
    " \"commands\": {\"Bill\": {\"records\": [\"Item\"]}, \"Raise\": {\"records\": [\"Item\"]},"               \
    "   \"Ask\": {\"records\": [\"Item\"]}},"                                                                  \
    " \"entities\": {"                                                                                         \
    "   \"Total\": {\"key\": [\"who\"], \"fields\": {\"who\": {\"type\": \"string\"},"                         \
    "     \"cents\": {\"type\": \"int64\"}, \"bills\": {\"type\": \"int64\"}}},"                               \
    "   \"Note\": {\"key\": [\"event\"], \"fields\": {\"event\": {\"type\": \"int64\"},"                       \
    "     \"text\": {\"type\": \"string\"}, \"sum\": {\"type\": \"int64\"}}},"                                 \
    "   \"Mark\": {\"key\": [\"event\"], \"fields\": {\"event\": {\"type\": \"int64\"}}}},"                    \
    " \"projectors\": {"                                                                                       \
    "   \"totals\": {\"on\": [\"Bill\"], \"do\": [{\"upsert\": \"Total\","                                     \
    "     \"key\": {\"who\": \"$event.records.Item.who\"},"                                                    \
    "     \"set\": {\"bills\": \"coalesce(bills, 0) + 1\","                                                    \
    "       \"cents\": \"coalesce(cents, 0) + 1000 * $event.records.Item.cents\"}}]},"                         \
    "   \"marks\": {\"on\": [\"Ask\"], \"do\": [{\"upsert\": \"Mark\","                                        \
    "     \"key\": {\"event\": \"$event.offset\"}, \"set\": {}}]}}}"

static uint32_t serving(struct lanes_bed *bed, const char *lane)
{
    return bed_status(bed, lane, 0, 0).generation;
}

static int64_t field_of(const char *row, const char *name)
{
    const char *at = strstr(row, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : -1;
}

/* --- under load --- */

struct load {
    struct lanes_bed *bed;
    uint64_t wsid;
    _Atomic bool stop;
    _Atomic uint64_t sent;
    int status;
    pawl_error error;
};

static void *write_main(void *arg)
{
    struct load *l = arg;
    pawl_request *request;
    pawl_answer answer;
    l->status = pawl_request_new(l->bed->engine, &request);
    while (l->status == PAWL_OK && !atomic_load(&l->stop)) {
        l->status = bed_command(l->bed->engine, request, l->wsid, "t.Bill", "ada", 1, &answer, &l->error);
        l->status = l->status
                        ? l->status
                        : bed_command(l->bed->engine, request, l->wsid, "t.Ask", "ada", 1, &answer, &l->error);
        atomic_fetch_add(&l->sent, 1);
    }
    pawl_request_free(request);
    return NULL;
}

struct reader {
    struct lanes_bed *bed;
    uint64_t wsid;
    _Atomic bool stop;
    uint64_t reads;
    int64_t bills, marks;
    bool backwards;
    int status;
    pawl_error error;
};

static void *read_main(void *arg)
{
    struct reader *r = arg;
    while (r->status == PAWL_OK && !atomic_load(&r->stop) && !r->backwards) {
        pawl_text text;
        int64_t marks = 0;
        r->status = pawl_entity_get(r->bed->engine, r->wsid, "t.Total", text_bytes("[\"ada\"]"), NULL, &text,
                                    &r->error);
        if (r->status != PAWL_OK)
            break;
        int64_t bills = field_of(text.data, "\"bills\":");
        pawl_text_free(&text);
        r->status = pawl_entity_list(r->bed->engine, r->wsid, "t.Mark", (pawl_bytes){0}, 1000000, NULL, &text,
                                     &r->error);
        if (r->status != PAWL_OK)
            break;
        for (const char *at = text.data; (at = strchr(at, '\n')); at++)
            marks++;
        pawl_text_free(&text);
        r->backwards = bills < r->bills || marks < r->marks;
        r->bills = bills;
        r->marks = marks;
        r->reads++;
    }
    return NULL;
}

TEST(a_rebuild_under_load_fails_no_read_and_shows_no_less_than_before)
{
    struct lanes_bed bed = {0};
    struct load load = {.bed = &bed, .wsid = 2};
    struct reader reader = {.bed = &bed, .wsid = 2};
    pthread_t writer, looker;
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 2, "t.Bill", "ada", 1);
    bed_wait(&bed, "t.totals");
    assert_int_equal(pthread_create(&writer, NULL, write_main, &load), 0);
    assert_int_equal(pthread_create(&looker, NULL, read_main, &reader), 0);
    for (uint32_t round = 2; round <= 5; round++) {
        uint64_t before = atomic_load(&load.sent);
        BED_UNTIL(atomic_load(&load.sent) > before + 20);
        assert_ok(pawl_lane_rebuild(bed.engine, "t.totals", &bed.error));
        assert_ok(pawl_lane_rebuild(bed.engine, "t.marks", &bed.error));
        BED_UNTIL(serving(&bed, "t.totals") == round && serving(&bed, "t.marks") == round);
    }
    atomic_store(&load.stop, true);
    pthread_join(writer, NULL);
    atomic_store(&reader.stop, true);
    pthread_join(looker, NULL);
    assert_ok(load.status);
    if (reader.status != PAWL_OK)
        print_error("%s\n", reader.error.text);
    assert_ok(reader.status);
    assert_false(reader.backwards);
    bed_wait(&bed, "t.totals");
    bed_wait(&bed, "t.marks");
    assert_int_equal(field_of(bed_row(&bed, 2, "t.Total", "[\"ada\"]", 0), "\"bills\":"),
                     atomic_load(&load.sent) + 1);
    assert_int_equal(bed_count(&bed, 2, "t.Mark"), atomic_load(&load.sent));
    print_message("# %" PRIu64 " reads, %" PRIu64 " writes\n", reader.reads, atomic_load(&load.sent));
    bed_end(&bed);
}

TEST(a_lane_that_is_being_rebuilt_is_not_rebuilt_again)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Bill", "ada", 1);
    bed_wait(&bed, "t.totals");
    assert_status(pawl_lane_rebuild(bed.engine, "t.nothing", &bed.error), PAWL_ENOTFOUND);
    assert_ok(pawl_lane_pause(bed.engine, "t.totals", true, &bed.error)); /* so that it cannot be done */
    assert_ok(pawl_lane_rebuild(bed.engine, "t.totals", &bed.error));
    assert_status(pawl_lane_rebuild(bed.engine, "t.totals", &bed.error), PAWL_EBUSY);
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    assert_true(bed_status(&bed, "t.totals", partition, 2).building);
    assert_int_equal(serving(&bed, "t.totals"), 1);
    assert_int_equal(bed_count(&bed, 1, "t.Total"), 1);
    bed_close(&bed);
    bed_open(&bed); /* both go on */
    assert_int_equal(serving(&bed, "t.totals"), 1);
    assert_int_equal(bed_count(&bed, 1, "t.Total"), 1);
    assert_ok(pawl_lane_pause(bed.engine, "t.totals", false, &bed.error));
    BED_UNTIL(serving(&bed, "t.totals") == 2);
    assert_int_equal(bed_count(&bed, 1, "t.Total"), 1);
    assert_ok(pawl_lane_rebuild(bed.engine, "t.totals", &bed.error));
    bed_wait(&bed, "t.totals");
    assert_int_equal(serving(&bed, "t.totals"), 3);
    bed_end(&bed);
}

TEST(a_changed_projector_is_worked_out_from_the_beginning)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    for (int i = 0; i < 30; i++)
        bed_send(&bed, 1, "t.Bill", "ada", 2);
    bed_send(&bed, 1, "t.Ask", "ada", 2);
    bed_wait(&bed, "t.totals");
    assert_contains(bed_row(&bed, 1, "t.Total", "[\"ada\"]", 0), "\"cents\":60,");
    bed_apply(&bed, CHANGED);
    uint64_t last = bed_send(&bed, 1, "t.Bill", "ada", 2);
    bed_wait(&bed, NULL);
    assert_contains(bed_row(&bed, 1, "t.Total", "[\"ada\"]", last), "\"cents\":62000,");
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 0); /* nobody fills it any more */
    assert_int_equal(bed_count(&bed, 1, "t.Mark"), 1);
    bed_close(&bed);
    bed_open(&bed);
    bed_wait(&bed, NULL);
    assert_contains(bed_row(&bed, 1, "t.Total", "[\"ada\"]", last), "\"cents\":62000,");
    bed_end(&bed);
}

TEST(a_generation_that_is_given_up_leaves_the_one_that_serves)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    for (int i = 0; i < 10; i++)
        bed_send(&bed, 1, "t.Bill", "ada", 2);
    bed_wait(&bed, "t.totals");
    assert_ok(pawl_lane_pause(bed.engine, "t.totals", true, &bed.error));
    bed_apply(&bed, CHANGED);
    bed_apply(&bed, LANES_SCHEMA("")); /* before it was complete */
    assert_int_equal(serving(&bed, "t.totals"), 1);
    assert_contains(bed_row(&bed, 1, "t.Total", "[\"ada\"]", 0), "\"cents\":20,");
    assert_ok(pawl_lane_pause(bed.engine, "t.totals", false, &bed.error));
    bed_wait(&bed, "t.totals");
    assert_int_equal(serving(&bed, "t.totals"), 3);
    assert_contains(bed_row(&bed, 1, "t.Total", "[\"ada\"]", 0), "\"cents\":20,");
    bed_end(&bed);
}

/* --- what is left behind --- */

struct table_rows {
    size_t cursors;
    size_t rows[8]; /* by generation */
};

static bool count_key(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct table_rows *t = arg;
    uint32_t table = key_table(key), generation = table >> SCHEMA_TABLE_BITS;
    (void)value;
    t->cursors += table == TABLE_LANE;
    assert_true(generation < 8);
    t->rows[generation]++;
    return true;
}

/* Of a directory that is closed. */
static struct table_rows count_stored(struct lanes_bed *bed)
{
    struct table_rows t = {0};
    for (uint32_t shard = 0; shard < bed->options.shards; shard++) {
        char path[400];
        struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_FAST, .read_only = true};
        pawl_store *store;
        pawl_reader *snapshot;
        snprintf(path, sizeof path, "%s/state/%u", bed->path, shard);
        assert_ok(lmdb_store_open(&options, NULL, &store, &bed->error));
        assert_ok(pawl_store_snapshot(store, &snapshot));
        assert_ok(pawl_store_scan(snapshot, (pawl_range){.space = STATE_SPACE}, false, count_key, &t));
        pawl_store_release(store, snapshot);
        assert_ok(pawl_store_close(store));
    }
    return t;
}

static void see_step(void *arg, const char *what)
{
    if (strcmp(what, "rows of lanes are removed") == 0)
        atomic_store((_Atomic bool *)arg, true);
}

TEST(rows_of_a_generation_that_was_replaced_are_removed_at_the_next_opening)
{
    struct lanes_bed bed = {0};
    _Atomic bool removed = false;
    struct engine_knobs knobs = {.step = see_step, .arg = &removed};
    bed_begin(&bed, LANES_SCHEMA(""));
    for (int i = 0; i < 700; i++)
        bed_send(&bed, 1 + (uint64_t)i % 2, "t.Ask", "ada", 2);
    for (int i = 0; i < 5; i++)
        bed_send(&bed, 1, "t.Bill", "ada", 2);
    bed_wait(&bed, "t.marks");
    bed_wait(&bed, "t.totals");
    assert_ok(pawl_lane_rebuild(bed.engine, "t.marks", &bed.error));
    bed_wait(&bed, "t.marks");
    bed_close(&bed);
    struct table_rows before = count_stored(&bed);
    assert_int_equal(before.rows[1], 700 + 1); /* and the total of another lane's first generation */
    assert_int_equal(before.rows[2], 700);
    assert_ok(engine_open(bed.path, &bed.options, &knobs, &bed.engine, &bed.error));
    assert_ok(pawl_request_new(bed.engine, &bed.request));
    BED_UNTIL(atomic_load(&removed));
    assert_int_equal(bed_count(&bed, 1, "t.Mark"), 350);
    bed_close(&bed);
    struct table_rows after = count_stored(&bed);
    assert_int_equal(after.rows[1], 1);
    assert_int_equal(after.rows[2], 700);
    assert_true(after.cursors < before.cursors);
    bed_end(&bed);
}

struct halting {
    _Atomic bool halted, go_on;
};

static void halt_before(void *arg, const char *what)
{
    struct halting *h = arg;
    if (strcmp(what, "rows of lanes are looked for") != 0)
        return;
    atomic_store(&h->halted, true);
    while (!atomic_load(&h->go_on))
        bed_moment();
}

TEST(rows_of_a_generation_that_begins_while_others_are_removed_stay)
{
    struct lanes_bed bed = {0};
    struct halting halting = {0};
    struct engine_knobs knobs = {.step = halt_before, .arg = &halting};
    bed_begin(&bed, LANES_SCHEMA(""));
    for (int i = 0; i < 20; i++)
        bed_send(&bed, 1, "t.Ask", "ada", 2);
    bed_wait(&bed, "t.marks");
    bed_close(&bed);
    assert_ok(engine_open(bed.path, &bed.options, &knobs, &bed.engine, &bed.error));
    assert_ok(pawl_request_new(bed.engine, &bed.request));
    BED_UNTIL(atomic_load(&halting.halted));
    assert_ok(pawl_lane_rebuild(bed.engine, "t.marks", &bed.error));
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    BED_UNTIL(bed_status(&bed, "t.marks", partition, 2).operations == 20);
    atomic_store(&halting.go_on, true);
    bed_wait(&bed, "t.marks");
    assert_int_equal(serving(&bed, "t.marks"), 2);
    assert_int_equal(bed_count(&bed, 1, "t.Mark"), 20);
    bed_end(&bed);
}

/* --- handlers --- */

struct slow {
    _Atomic bool hold;
    _Atomic unsigned held;
    _Atomic uint64_t fail; /* the event of this offset; and of another */
    _Atomic uint64_t fail_too;
};

static int slow_note(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    struct slow *s = arg;
    if (atomic_load(&s->hold)) {
        atomic_fetch_add(&s->held, 1);
        while (atomic_load(&s->hold) && !pawl_handler_given_up(ctx))
            bed_moment();
    }
    if (atomic_load(&s->fail) == event->offset || atomic_load(&s->fail_too) == event->offset)
        return pawl_results_fail(results, false, "not again");
    pawl_results_upsert(results, "t.Note");
    return pawl_results_set_int64(results, "event", (int64_t)event->offset);
}

TEST(a_generation_that_stalls_while_it_is_built_leaves_the_other_one_going)
{
    struct lanes_bed bed = {0};
    struct slow slow = {0};
    bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 1"));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", slow_note, &slow, &bed.error));
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    uint64_t last = bed_send(&bed, 1, "t.Ask", "ada", 2);
    bed_wait(&bed, "t.notes");
    atomic_store(&slow.fail, last);
    assert_ok(pawl_lane_rebuild(bed.engine, "t.notes", &bed.error));
    BED_UNTIL(bed_status(&bed, "t.notes", partition, 2).leases.stalled == 1);
    for (unsigned i = 2; i <= 20; i++) {
        last = bed_send(&bed, 1, "t.Ask", "ada", 2);
        bed_row(&bed, 1, "t.Note", "[1]", last);
        assert_int_equal(bed_count(&bed, 1, "t.Note"), i);
    }
    assert_status(pawl_lanes_wait(bed.engine, "t.notes", BED_PATIENCE, &bed.error), PAWL_EBUSY);
    assert_contains(bed.error.text, "stalled");
    assert_int_equal(serving(&bed, "t.notes"), 1);
    atomic_store(&slow.fail, 0);
    assert_ok(pawl_lane_retry(bed.engine, partition, "t.notes", 0, 1, &bed.error));
    bed_wait(&bed, "t.notes");
    assert_int_equal(serving(&bed, "t.notes"), 2);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 20);
    bed_end(&bed);
}

static bool see_number(void *arg, const pawl_lease *lease, uint64_t event, const char *projector)
{
    (void)event;
    (void)projector;
    *(uint64_t *)arg = lease->number;
    return false;
}

static uint64_t first_in(struct lanes_bed *bed, uint16_t partition, uint32_t generation)
{
    uint64_t number = 0;
    assert_ok(pawl_lane_leases(bed->engine, partition, "t.notes", generation, 0, 1, see_number, &number,
                               &bed->error));
    return number;
}

TEST(a_number_that_is_under_way_in_two_generations_needs_the_generation)
{
    struct lanes_bed bed = {0};
    struct slow slow = {0};
    bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 1"));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", slow_note, &slow, &bed.error));
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    uint64_t event = bed_send(&bed, 1, "t.Ask", "ada", 2);
    bed_wait(&bed, "t.notes");
    atomic_store(&slow.fail, event);
    assert_ok(pawl_lane_rebuild(bed.engine, "t.notes", &bed.error));
    BED_UNTIL(bed_status(&bed, "t.notes", partition, 2).leases.stalled == 1);
    atomic_store(&slow.fail_too, event + 1);
    assert_int_equal(bed_send(&bed, 1, "t.Ask", "ada", 2), event + 1);
    BED_UNTIL(bed_status(&bed, "t.notes", partition, 1).leases.stalled == 1);
    BED_UNTIL(bed_status(&bed, "t.notes", partition, 2).leases.stalled == 2);
    assert_int_equal(first_in(&bed, partition, 1), 2);
    assert_int_equal(first_in(&bed, partition, 0), 1);

    assert_status(pawl_lane_void(bed.engine, partition, "t.notes", 0, 2, "no", &bed.error), PAWL_EINVAL);
    assert_contains(bed.error.text, "generations 1 and 2");
    assert_status(pawl_lane_void(bed.engine, partition, "t.notes", 3, 2, "no", &bed.error), PAWL_ENOTFOUND);
    assert_ok(pawl_lane_void(bed.engine, partition, "t.notes", 1, 2, "no", &bed.error));
    bed_row(&bed, 1, "t.Note", "[1]", event + 1); /* what serves goes on */
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
    assert_int_equal(bed_status(&bed, "t.notes", partition, 2).leases.stalled, 2);

    atomic_store(&slow.fail, 0);
    atomic_store(&slow.fail_too, 0);
    assert_ok(pawl_lane_retry(bed.engine, partition, "t.notes", 0, 1, &bed.error)); /* the only ones now */
    assert_ok(pawl_lane_retry(bed.engine, partition, "t.notes", 0, 2, &bed.error));
    bed_wait(&bed, "t.notes");
    assert_int_equal(serving(&bed, "t.notes"), 2);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 2); /* it was void in the first, and is not in the second */
    /* Each shard drops the first by itself, once it knows that the second serves. */
    BED_UNTIL(pawl_lane_leases(bed.engine, partition, "t.notes", 1, 0, 1, see_number, &event, &bed.error)
              == PAWL_ENOTFOUND);
    bed_end(&bed);
}

TEST(what_is_to_be_done_when_a_projector_fails_changes_with_the_schema)
{
    struct lanes_bed bed = {0};
    struct slow slow = {0};
    bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 1"));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", slow_note, &slow, &bed.error));
    bed_apply(&bed, LANES_SCHEMA(", \"max_attempts\": 1, \"on_failure\": \"void\""));
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    atomic_store(&slow.fail, bed_send(&bed, 1, "t.Bill", "ada", 2) + 1);
    uint64_t event = bed_send(&bed, 1, "t.Ask", "ada", 2);
    bed_row(&bed, 1, "t.Note", "[1]", event);
    assert_int_equal(bed_status(&bed, "t.notes", partition, 1).leases.voids, 1);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 0);
    bed_end(&bed);
}

/* The event that fails is new; those before it are held, and so is the generation that is built of them. */
static int hold_or_fail(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    const struct slow *s = arg;
    while (event->offset < atomic_load(&s->fail) && !pawl_handler_given_up(ctx))
        bed_moment();
    if (atomic_load(&s->fail) == event->offset)
        return pawl_results_fail(results, false, "not again");
    pawl_results_upsert(results, "t.Note");
    return pawl_results_set_int64(results, "event", (int64_t)event->offset);
}

TEST(what_is_to_be_done_when_a_projector_fails_is_the_same_after_the_next_opening)
{
    struct lanes_bed bed = {0};
    struct slow slow = {0};
    bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 1"));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", hold_or_fail, &slow, &bed.error));
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    uint64_t event = bed_send(&bed, 1, "t.Ask", "ada", 2);
    bed_wait(&bed, "t.notes");
    atomic_store(&slow.fail, event + 1);
    bed_close(&bed);

    bed_open(&bed); /* and nobody works on what is built */
    assert_ok(pawl_lane_rebuild(bed.engine, "t.notes", &bed.error));
    bed_apply(&bed, LANES_SCHEMA(", \"max_attempts\": 1, \"on_failure\": \"void\""));
    bed_close(&bed);

    bed_open(&bed);
    assert_ok(pawl_projector_register(bed.engine, "t.notes", hold_or_fail, &slow, &bed.error));
    assert_int_equal(bed_send(&bed, 1, "t.Ask", "ada", 2), event + 1);
    pawl_lane_status status = {0};
    BED_UNTIL(
        (status = bed_status(&bed, "t.notes", partition, 1), status.leases.voids + status.leases.stalled > 0));
    assert_int_equal(status.leases.voids, 1);
    bed_end(&bed);
}

TEST(a_handler_of_a_generation_that_is_gone_is_given_up_and_waited_for)
{
    struct lanes_bed bed = {0};
    struct slow slow = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", slow_note, &slow, &bed.error));
    bed_send(&bed, 1, "t.Ask", "ada", 2);
    bed_wait(&bed, "t.notes");
    assert_ok(pawl_lane_rebuild(bed.engine, "t.notes", &bed.error));
    bed_wait(&bed, "t.notes");
    assert_int_equal(serving(&bed, "t.notes"), 2);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
    atomic_store(&slow.hold, true);
    bed_send(&bed, 1, "t.Ask", "ada", 2);
    BED_UNTIL(atomic_load(&slow.held) == 1);
    bed_apply(&bed, CHANGED); /* without the lane */
    bed_end(&bed);
}

/* The same projector, which says in the schema what it does: not by key, so that threads run it. */
#define NOTES_SAY                                                                                              \
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {}},"                                    \
    " \"types\": {\"Item\": {\"kind\": \"WDoc\", \"fields\": {\"who\": {\"type\": \"string\"},"                \
    "   \"cents\": {\"type\": \"int64\"}}}},"                                                                  \
    " \"commands\": {\"Bill\": {\"records\": [\"Item\"]}, \"Raise\": {\"records\": [\"Item\"]},"               \
    "   \"Ask\": {\"records\": [\"Item\"]}},"                                                                  \
    " \"entities\": {"                                                                                         \
    "   \"Total\": {\"key\": [\"who\"], \"fields\": {\"who\": {\"type\": \"string\"},"                         \
    "     \"cents\": {\"type\": \"int64\"}, \"bills\": {\"type\": \"int64\"}}},"                               \
    "   \"Note\": {\"key\": [\"event\"], \"fields\": {\"event\": {\"type\": \"int64\"},"                       \
    "     \"text\": {\"type\": \"string\"}, \"sum\": {\"type\": \"int64\"}}},"                                 \
    "   \"Mark\": {\"key\": [\"event\"], \"fields\": {\"event\": {\"type\": \"int64\"}}}},"                    \
    " \"projectors\": {\"notes\": {\"on\": [\"Ask\"], \"do\": [{\"update\": \"Note\","                         \
    "     \"where\": \"event > 0\", \"set\": {\"sum\": \"1\"}}]}}}"

TEST(a_handler_is_not_run_for_a_projector_that_says_now_what_it_does)
{
    struct lanes_bed bed = {0};
    struct slow slow = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    assert_ok(pawl_projector_register(bed.engine, "t.notes", slow_note, &slow, &bed.error));
    bed_send(&bed, 1, "t.Ask", "ada", 2);
    bed_wait(&bed, "t.notes");
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 1);
    bed_apply(&bed, NOTES_SAY);
    bed_wait(&bed, "t.notes");
    assert_int_equal(serving(&bed, "t.notes"), 2);
    assert_int_equal(bed_count(&bed, 1, "t.Note"), 0);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_rebuild_under_load_fails_no_read_and_shows_no_less_than_before),
        RUN(a_lane_that_is_being_rebuilt_is_not_rebuilt_again),
        RUN(a_changed_projector_is_worked_out_from_the_beginning),
        RUN(a_generation_that_is_given_up_leaves_the_one_that_serves),
        RUN(rows_of_a_generation_that_was_replaced_are_removed_at_the_next_opening),
        RUN(rows_of_a_generation_that_begins_while_others_are_removed_stay),
        RUN(a_generation_that_stalls_while_it_is_built_leaves_the_other_one_going),
        RUN(a_number_that_is_under_way_in_two_generations_needs_the_generation),
        RUN(what_is_to_be_done_when_a_projector_fails_changes_with_the_schema),
        RUN(what_is_to_be_done_when_a_projector_fails_is_the_same_after_the_next_opening),
        RUN(a_handler_of_a_generation_that_is_gone_is_given_up_and_waited_for),
        RUN(a_handler_is_not_run_for_a_projector_that_says_now_what_it_does),
    };
    return TEST_MAIN(tests);
}

/* The check of unique views, without a processor: what staged events take and give up, in one event, across
 * events, between commit and applied, undone; and at random against an array of codes. */
#include "core/view/unique.h"
#include "test/lib/codes.h"
#include "test/lib/state.h"

#define WSID   7
#define EVENTS 6
#define ITEMS  5
#define STEPS  3000

struct written {
    struct changes changes;
    struct changes keys;
    struct arena memory;
    char codes[ITEMS + 1]; /* before it */
};

struct bed {
    struct state_bed state;
    struct group0 *group0;
    struct view_tables tables;
    struct unique unique;
    const struct schema_type *item;
    struct written events[EVENTS]; /* oldest first */
    size_t count;
    char codes[ITEMS + 1]; /* by ID, behind all staged events; 0: null */
    pawl_error error;
};

static void bed_commit(struct bed *b)
{
    assert_ok(view_tables_flush(&b->tables));
    assert_ok(pawl_store_commit(b->state.store));
    view_tables_committed(&b->tables);
}

static void bed_refresh(struct bed *b, const char *schema)
{
    enum group0_outcome outcome;
    assert_ok(schema_apply(b->group0, schema, &outcome, &b->error));
    const struct schema *now = group0_schema(b->group0);
    b->item = schema_type_by_id(now, schema_name_id(now, text_bytes("p.Item")));
    assert_ok(view_tables_refresh(&b->tables, group0_building(b->group0)->views, now, &b->error));
    bed_commit(b);
}

/* Find out which views bind, and note what is staged. */
static bool bed_bind(struct bed *b)
{
    bool more;
    assert_ok(unique_bind(&b->unique, &more, &b->error));
    for (size_t i = 0; i < b->count && !b->unique.noted; i++)
        assert_ok(unique_note(&b->unique, &b->state.state, &b->events[i].changes, &b->events[i].memory,
                              &b->events[i].keys, &b->error));
    b->unique.noted = true;
    return more;
}

static void bed_open(struct bed *b, const char *schema)
{
    *b = (struct bed){0};
    state_bed_open(&b->state);
    assert_ok(group0_new(NULL, &b->group0));
    const pawl_allocator *alloc = &b->state.alloc.allocator;
    view_tables_init(&b->tables, b->state.store, partition_set_of(0, 1, 1), 1, alloc);
    unique_init(&b->unique, &b->tables, 0, alloc);
    for (size_t i = 0; i < EVENTS; i++)
        arena_init(&b->events[i].memory, alloc, 4096);
    assert_false(unique_is_current(&b->unique));
    bed_refresh(b, schema);
    bed_bind(b);
}

static void bed_close(struct bed *b)
{
    for (size_t i = 0; i < EVENTS; i++)
        arena_release(&b->events[i].memory);
    unique_release(&b->unique);
    view_tables_release(&b->tables);
    state_bed_close(&b->state);
    group0_free(b->group0);
}

static pawl_bytes item_key(const struct bed *b, uint64_t id, uint8_t key[KEY_NUMBERED])
{
    return key_numbered(b->item->table, WSID, id, key);
}

/* One more change of an event that is being made. code 0: null; '-': the row is removed. */
static void change(struct bed *b, struct written *e, uint64_t id, char code)
{
    uint8_t key[KEY_NUMBERED], row[256];
    struct value values[2] = {{.type = VALUE_STRING, .bytes = {&code, 1}}, {.type = VALUE_NULL}};
    size_t size;
    if (code == 0)
        values[0] = (struct value){.type = VALUE_NULL};
    assert_ok(row_size(values, 2, &size));
    assert_true(RECORD_BYTES + size <= sizeof row);
    record_head_write(&(struct record_row){.active = true, .type = b->item->id}, row);
    row_write(values, 2, row + RECORD_BYTES);
    pawl_bytes value = {row, RECORD_BYTES + size};
    if (code == '-')
        value = (pawl_bytes){0};
    assert_ok(state_bed_change(&b->state, &e->memory, &e->changes, item_key(b, id, key), value));
    b->codes[id] = code == '-' ? 0 : code;
}

static struct written *event_begin(struct bed *b)
{
    struct written *e = &b->events[b->count];
    arena_reset(&e->memory);
    e->changes = e->keys = (struct changes){0};
    memcpy(e->codes, b->codes, sizeof e->codes);
    return e;
}

static void take_back(struct bed *b, struct written *e)
{
    overlay_remove(&b->state.overlay, &e->changes);
    memcpy(b->codes, e->codes, sizeof e->codes);
}

/* Staged, or refused and gone. */
static int event_check(struct bed *b, struct written *e)
{
    size_t before = b->unique.staged.count;
    int status = unique_check(&b->unique, &b->state.state, &e->changes, &e->memory, &e->keys, &b->error);
    if (status == PAWL_OK) {
        b->count++;
        return status;
    }
    assert_int_equal(b->unique.staged.count, before);
    take_back(b, e);
    return status;
}

static int stage(struct bed *b, const char *what)
{
    struct written *e = event_begin(b);
    for (; *what; what += 2)
        change(b, e, (uint64_t)(what[0] - '0'), what[1] == '0' ? 0 : what[1]);
    return event_check(b, e);
}

/* The store has the first events. */
static void commit(struct bed *b, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        assert_ok(changes_put(&b->events[i].changes, b->state.store, &b->tables.watch));
    bed_commit(b);
}

static void drop_first(struct bed *b)
{
    struct written first = b->events[0];
    overlay_remove(&b->state.overlay, &first.changes);
    unique_remove(&b->unique, &first.keys);
    memmove(b->events, b->events + 1, (EVENTS - 1) * sizeof first);
    b->events[EVENTS - 1] = first;
    b->count--;
}

static void undo_last(struct bed *b)
{
    struct written *e = &b->events[--b->count];
    unique_remove(&b->unique, &e->keys);
    take_back(b, e);
}

static uint32_t codes_table(const struct bed *b)
{
    const struct view_list *list = group0_building(b->group0)->views;
    return view_table(view_list_by_name(list, text_bytes("p.codes"), NULL)->view->number, 0);
}

TEST(without_a_unique_view_there_is_nothing_to_check)
{
    struct bed b;
    bed_open(&b, codes_without);
    assert_true(unique_is_current(&b.unique));
    assert_int_equal(b.unique.count, 0);
    bed_close(&b);
    struct unique none;
    unique_init(&none, NULL, 3, NULL);
    assert_true(unique_is_current(&none));
    unique_release(&none);
}

TEST(an_event_of_other_tables_leaves_nothing_behind)
{
    struct bed b;
    bed_open(&b, codes_schema);
    struct written *e = event_begin(&b);
    uint8_t key[KEY_NUMBERED];
    assert_ok(state_bed_change(&b.state, &e->memory, &e->changes, key_numbered(TABLE_WLOG, WSID, 1, key),
                               text_bytes("x")));
    assert_ok(event_check(&b, e));
    assert_int_equal(b.unique.staged.count, 0);
    assert_null(e->keys.first);
    undo_last(&b);
    bed_close(&b);
}

TEST(removals_come_before_additions)
{
    struct bed b;
    bed_open(&b, codes_schema);
    assert_ok(stage(&b, "1a2b"));
    assert_ok(stage(&b, "1b2a"));
    assert_ok(stage(&b, "1c2b3a"));
    assert_status(stage(&b, "4a"), PAWL_EEXISTS);
    assert_string_equal(b.error.text, "p.codes: record 3 has the same key");
    assert_status(stage(&b, "4d5d"), PAWL_EEXISTS);
    assert_string_equal(b.error.text, "p.codes: record 4 has the same key");
    while (b.count)
        undo_last(&b);
    assert_int_equal(b.unique.staged.count, 0);
    assert_ok(stage(&b, "4a"));
    undo_last(&b);
    bed_close(&b);
}

TEST(the_last_change_of_a_row_counts)
{
    struct bed b;
    bed_open(&b, codes_schema);
    assert_ok(stage(&b, "1a"));
    assert_ok(stage(&b, "2a2b")); /* it passes by another's key */
    assert_ok(stage(&b, "1c1d3a1e"));
    assert_status(stage(&b, "4a"), PAWL_EEXISTS);
    assert_status(stage(&b, "4b"), PAWL_EEXISTS);
    assert_status(stage(&b, "4e"), PAWL_EEXISTS);
    assert_ok(stage(&b, "4c5d"));
    commit(&b, 0, 4);
    while (b.count)
        drop_first(&b);
    assert_status(stage(&b, "1b2e"), PAWL_OK);
    undo_last(&b);
    bed_close(&b);
}

TEST(a_removed_row_has_no_key)
{
    struct bed b;
    bed_open(&b, codes_schema);
    assert_ok(stage(&b, "1a"));
    assert_ok(stage(&b, "1-"));
    assert_ok(stage(&b, "2a"));
    assert_ok(stage(&b, "1b"));
    assert_status(stage(&b, "1a"), PAWL_EEXISTS);
    commit(&b, 0, 4);
    assert_status(stage(&b, "1a"), PAWL_EEXISTS);
    assert_ok(stage(&b, "1a2-"));
    undo_last(&b);
    while (b.count)
        drop_first(&b);
    bed_close(&b);
}

/* Between the commit and applied, the view's rows and the overlay both know of an event. */
TEST(what_the_store_has_already_counts_once)
{
    struct bed b;
    bed_open(&b, codes_schema);
    assert_ok(stage(&b, "1a2b"));
    assert_ok(stage(&b, "1c"));
    commit(&b, 0, 2);
    assert_ok(stage(&b, "3a"));
    assert_status(stage(&b, "3c"), PAWL_EEXISTS);
    drop_first(&b);
    drop_first(&b);
    assert_status(stage(&b, "2a"), PAWL_EEXISTS);
    assert_status(stage(&b, "2c"), PAWL_EEXISTS);
    undo_last(&b);
    assert_ok(stage(&b, "2a"));
    undo_last(&b);
    bed_close(&b);
}

/* Staged before the view was known: noted, not checked. */
TEST(what_was_staged_before_counts_behind_the_binding)
{
    struct bed b;
    bed_open(&b, codes_without);
    assert_ok(stage(&b, "1a2b"));
    assert_ok(stage(&b, "3a1c"));
    assert_ok(stage(&b, "4b"));
    bed_refresh(&b, codes_schema);
    assert_false(unique_is_current(&b.unique));
    assert_true(bed_bind(&b));
    assert_false(bed_bind(&b));
    assert_status(stage(&b, "5a"), PAWL_EEXISTS);
    assert_status(stage(&b, "5c"), PAWL_EEXISTS);
    assert_status(stage(&b, "5b"), PAWL_EEXISTS); /* two have it */
    assert_ok(stage(&b, "2d"));
    assert_status(stage(&b, "5b"), PAWL_EEXISTS); /* one has */
    assert_ok(stage(&b, "4e5b"));
    commit(&b, 0, 3);
    while (b.count > 2)
        drop_first(&b);
    assert_status(unique_verdict(&b.tables, codes_table(&b), 0, &b.error), PAWL_EEXISTS);
    assert_string_equal(b.error.text, "p.codes: workspace 7: records 2 and 4 have the same key");
    assert_status(stage(&b, "3d"), PAWL_EEXISTS);
    commit(&b, 0, 2);
    assert_ok(unique_verdict(&b.tables, codes_table(&b), 0, &b.error));
    while (b.count)
        drop_first(&b);
    bed_close(&b);
}

TEST(the_verdict_is_about_complete_views_that_are_there)
{
    struct bed b;
    bed_open(&b, codes_schema);
    assert_status(unique_verdict(&b.tables, 1, 0, &b.error), PAWL_ENOTFOUND);
    assert_ok(stage(&b, "102030"));
    commit(&b, 0, 1);
    drop_first(&b);
    assert_ok(unique_verdict(&b.tables, codes_table(&b), 0, &b.error));
    struct kept_state *kept = view_tables_state(&b.tables, codes_table(&b), 0);
    kept->state.equal = 1; /* which is wrong: rows with a null are not held to be unique */
    assert_status(unique_verdict(&b.tables, codes_table(&b), 0, &b.error), PAWL_EEXISTS);
    assert_contains(b.error.text, "1 records have the key of another one");
    kept->state.complete = false;
    assert_status(unique_verdict(&b.tables, codes_table(&b), 0, &b.error), PAWL_EBUSY);
    bed_close(&b);
}

TEST(a_check_without_memory_leaves_nothing_behind)
{
    for (uint64_t k = 1;; k++) {
        struct bed b;
        bed_open(&b, codes_schema);
        assert_ok(stage(&b, "1a2b"));
        struct written *e = event_begin(&b);
        change(&b, e, 1, 'b');
        change(&b, e, 2, 'a');
        for (uint64_t id = 3; id <= ITEMS; id++)
            change(&b, e, id, (char)('a' + id));
        arena_take(&e->memory, 4096 - e->memory.used % 4096); /* so that the next one needs a chunk */
        test_alloc_fail(&b.state.alloc, k, TEST_ALLOC_ONCE);
        int status = event_check(&b, e);
        bool failed = test_alloc_failed(&b.state.alloc);
        test_alloc_fail(&b.state.alloc, 0, TEST_ALLOC_ONCE);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        if (failed) {
            assert_contains(b.error.text, "no memory");
            assert_status(stage(&b, "3a"), PAWL_EEXISTS);
        }
        while (b.count)
            undo_last(&b);
        assert_int_equal(b.unique.staged.count, 0);
        bed_close(&b);
        if (!failed) {
            assert_true(k > 1);
            break;
        }
    }
}

/* --- at random --- */

static bool are_unique(const struct bed *b)
{
    for (size_t i = 1; i <= ITEMS; i++)
        for (size_t k = 1; k < i; k++)
            if (b->codes[i] && b->codes[i] == b->codes[k])
                return false;
    return true;
}

static void stage_random(struct bed *b, uint64_t *random, size_t *refused)
{
    struct written *e = event_begin(b);
    for (uint64_t n = 1 + test_below(random, 4); n > 0; n--) {
        uint64_t id = 1 + test_below(random, ITEMS);
        uint64_t code = test_below(random, 7);
        uint8_t key[KEY_NUMBERED];
        pawl_bytes value;
        bool there = state_get(&b->state.state, item_key(b, id, key), &value) == PAWL_OK;
        change(b, e, id, code == 0 ? 0 : code == 1 && there ? '-' : (char)('a' + code));
    }
    bool fine = are_unique(b);
    assert_status(event_check(b, e), fine ? PAWL_OK : PAWL_EEXISTS);
    *refused += !fine;
}

TEST(random_events_against_an_array_of_codes)
{
    uint64_t random = test_seed(5);
    struct bed b;
    size_t refused = 0, committed = 0;
    bed_open(&b, codes_schema);
    for (int step = 0; step < STEPS; step++) {
        uint64_t what = test_below(&random, 12);
        if (what < 6 && b.count < EVENTS)
            stage_random(&b, &random, &refused);
        else if (what < 8 && committed < b.count) { /* and the overlay keeps it for a while */
            commit(&b, committed, 1);
            committed++;
        } else if (what < 9 && committed > 0) {
            drop_first(&b);
            committed--;
        } else if (what < 10 && b.count > committed)
            undo_last(&b);
        else if (what == 11 && test_below(&random, 4) == 0) { /* all is noted again */
            overlay_clear(&b.unique.staged);
            b.unique.noted = false;
            bed_bind(&b);
        }
        assert_ok(unique_verdict(&b.tables, codes_table(&b), 0, &b.error));
    }
    assert_true(refused > STEPS / 20);
    while (b.count > committed)
        undo_last(&b);
    while (b.count)
        drop_first(&b);
    assert_int_equal(b.unique.staged.count, 0);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(without_a_unique_view_there_is_nothing_to_check),
        RUN(an_event_of_other_tables_leaves_nothing_behind),
        RUN(removals_come_before_additions),
        RUN(the_last_change_of_a_row_counts),
        RUN(a_removed_row_has_no_key),
        RUN(what_the_store_has_already_counts_once),
        RUN(what_was_staged_before_counts_behind_the_binding),
        RUN(the_verdict_is_about_complete_views_that_are_there),
        RUN(a_check_without_memory_leaves_nothing_behind),
        RUN(random_events_against_an_array_of_codes),
    };
    return TEST_MAIN(tests);
}

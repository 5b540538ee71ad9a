/* What intents become: the rows, the log's bytes, and the reads.
 *
 * Rows of the entity that most tests use: i0 is the key; i1, i2, s3 are its fields. */
#include "test/lib/explode.h"
#include "test/lib/test.h"

TEST(an_upsert_makes_a_row_or_changes_the_one_that_is_there)
{
    struct bed b;
    open_bed(&b, "iiis");
    put_numbers(&b, 1, 10, 20);
    struct schema_set sets[] = {{1, expr(&b, VALUE_INT64, "coalesce(i1, 100) + $event.offset")}};
    for (int64_t id = 1; id <= 2; id++) {
        struct value key = number(id);
        struct intent intent = {ACTION_UPSERT, b.type, .key = &key, .sets = sets, .set_count = 1};
        run_well(&b, &intent, 1);
    }
    assert_true(get(&b, 1, 1) == 60 && get(&b, 1, 2) == 20);
    assert_true(get(&b, 2, 0) == 2 && get(&b, 2, 1) == 150 && get(&b, 2, 2) == NONE);
    close_bed(&b);
}

TEST(sets_are_computed_on_the_row_as_it_was)
{
    struct bed b;
    open_bed(&b, "iiis");
    put_numbers(&b, 1, 10, 20);
    put_numbers(&b, 2, 30, NONE);
    struct schema_set swap[] = {{1, expr(&b, VALUE_INT64, "i2")}, {2, expr(&b, VALUE_INT64, "i1")}};
    struct intent intent = {ACTION_UPDATE, b.type, .sets = swap, .set_count = 2};
    run_well(&b, &intent, 1);
    assert_true(get(&b, 1, 1) == 20 && get(&b, 1, 2) == 10);
    assert_true(get(&b, 2, 1) == NONE && get(&b, 2, 2) == 30);
    close_bed(&b);
}

TEST(an_intent_sees_what_those_before_it_did_and_never_its_own_work)
{
    struct bed b;
    open_bed(&b, "iiis");
    put_numbers(&b, 1, 1, 0);
    put_numbers(&b, 2, 5, 0);
    struct value key = number(3);
    struct schema_set make[] = {{1, expr(&b, VALUE_INT64, "6")}};
    struct schema_set lower[] = {{1, expr(&b, VALUE_INT64, "i1 - 4")}};
    struct intent intents[] = {
        {ACTION_UPSERT, b.type, .key = &key, .sets = make, .set_count = 1},
        {ACTION_UPDATE, b.type, .sets = lower, .set_count = 1, .where = expr(&b, VALUE_BOOL, "i1 > 0")},
        {ACTION_DELETE, b.type, .where = expr(&b, VALUE_BOOL, "i1 < 0")},
    };
    run_well(&b, intents, 3);
    assert_true(get(&b, 1, 1) == NO_ROW && get(&b, 2, 1) == 1 && get(&b, 3, 1) == 2);
    close_bed(&b);
}

TEST(by_a_key_that_is_not_there_nothing_is_updated_or_deleted)
{
    struct bed b;
    open_bed(&b, "iiis");
    put_numbers(&b, 1, 10, 20);
    struct schema_set sets[] = {{1, expr(&b, VALUE_INT64, "i1 + 1")}};
    for (int64_t id = 2; id >= 1; id--) {
        struct value key = number(id);
        struct intent intents[] = {{ACTION_UPDATE, b.type, .key = &key, .sets = sets, .set_count = 1},
                                   {ACTION_DELETE, b.type, .key = &key}};
        run_well(&b, intents, 1);
        assert_int_equal(b.changes.count, id == 1);
        assert_true(get(&b, 1, 1) == (id == 1 ? 11 : 10));
        run_well(&b, intents, 2);
        assert_int_equal(b.changes.count, id == 1 ? 2 : 0);
    }
    assert_true(get(&b, 1, 1) == NO_ROW);
    assert_int_equal(b.reads.row_count, 2 * 3); /* that there was none was looked at, too */
    close_bed(&b);
}

TEST(a_row_of_an_earlier_schema_becomes_one_of_this_and_one_of_a_later_is_refused)
{
    struct bed b;
    open_bed(&b, "iiis");
    struct value early[] = {number(1), number(10)};
    struct value late[] = {number(1), number(10), number(20), {.type = VALUE_NULL}, number(5)};
    struct schema_set sets[] = {{2, NULL}, {1, NULL}};
    struct value values[] = {number(3), number(NONE)}; /* the second is cleared */
    struct intent intent = {ACTION_UPDATE, b.type, .sets = sets, .values = values, .set_count = 2};
    put(&b, 1, early, 2);
    run_well(&b, &intent, 1);
    assert_true(get(&b, 1, 0) == 1 && get(&b, 1, 1) == NONE && get(&b, 1, 2) == 3);

    overlay_remove(&b.state.overlay, &b.changes);
    struct operation o = {.kind = OPERATION_WRITES, .wsid = 7};
    assert_ok(operation_maker_writes(&b.maker, &o.writes, &o.count));
    put(&b, 1, late, 5);
    struct changes changes;
    assert_status(operation_derive(&o, &b.entities.schema, ENTITY_GENERATION, &b.state.state, &b.state.memory,
                                   &changes, &b.error),
                  PAWL_ECORRUPT);
    assert_contains(b.error.text, "later schema");
    assert_status(run(&b, &intent, 1), PAWL_ECORRUPT);
    assert_int_equal(b.state.overlay.count, 0);
    close_bed(&b);
}

TEST(other_workspaces_and_other_generations_are_left_alone)
{
    struct bed b;
    open_bed(&b, "iiis");
    put_numbers(&b, 1, 1, 1);
    uint32_t own = b.type->table;
    b.event.envelope.wsid = 8;
    put_numbers(&b, 2, 1, 1);
    b.event.envelope.wsid = 7;
    b.type->table = own | 1u << 20; /* another table */
    put_numbers(&b, 3, 1, 1);
    b.type->table = own;
    struct intent all = {ACTION_DELETE, b.type};
    run_well(&b, &all, 1);
    assert_int_equal(b.changes.count, 1);
    assert_int_equal(key_table(b.changes.first->key), (uint32_t)ENTITY_GENERATION << 16 | own);
    close_bed(&b);
}

TEST(reads_are_only_what_decides_about_the_writes)
{
    struct bed b;
    open_bed(&b, "iIis"); /* i1 is required */
    put_numbers(&b, 1, 1, 1);
    put_numbers(&b, 2, 2, 2);
    struct value key = number(1);
    struct schema_set blind[] = {{1, expr(&b, VALUE_INT64, "$event.offset")}};
    struct schema_set computed[] = {{1, expr(&b, VALUE_INT64, "i2 + 1")}};
    struct schema_set other[] = {{2, expr(&b, VALUE_INT64, "4")}};
    const struct expr *where = expr(&b, VALUE_BOOL, "i1 > 1"), *all = expr(&b, VALUE_BOOL, "i1 > 0");
    const struct {
        const char *name;
        struct intent intent;
        size_t row, rows;
        uint64_t fields;
    } cases[] = {
        {"an upsert that sees nothing", {ACTION_UPSERT, b.type, NULL, &key, blind, NULL, 1, NULL}, 0, 0, 0},
        {"an upsert that sees the row", {ACTION_UPSERT, b.type, NULL, &key, computed, NULL, 1, NULL}, 1, 0, 0},
        {"an upsert that needs the row", {ACTION_UPSERT, b.type, NULL, &key, other, NULL, 1, NULL}, 1, 0, 0},
        {"an update by key", {ACTION_UPDATE, b.type, NULL, &key, blind, NULL, 1, NULL}, 1, 0, 0},
        {"a delete by key", {ACTION_DELETE, b.type, NULL, &key, NULL, NULL, 0, NULL}, 1, 0, 0},
        {"an update of what matches", {ACTION_UPDATE, b.type, NULL, NULL, blind, NULL, 1, where}, 0, 1, 2},
        {"a computed one", {ACTION_UPDATE, b.type, NULL, NULL, computed, NULL, 1, where}, 1, 1, 2},
        {"a computed one of two rows", {ACTION_UPDATE, b.type, NULL, NULL, computed, NULL, 1, all}, 2, 1, 2},
        {"a delete of what matches", {ACTION_DELETE, b.type, NULL, NULL, NULL, NULL, 0, where}, 0, 1, 2},
        {"a delete of all", {ACTION_DELETE, b.type, NULL, NULL, NULL, NULL, 0, NULL}, 0, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        reads_reset(&b.reads, 3);
        run_well(&b, &cases[i].intent, 1);
        overlay_remove(&b.state.overlay, &b.changes);
        uint64_t fields = 0;
        if (b.reads.rows_count && b.reads.rows[0].words)
            fields = b.reads.rows[0].fields[0];
        if (b.reads.row_count != cases[i].row || b.reads.rows_count != cases[i].rows
            || fields != cases[i].fields)
            fail_msg("%s: %zu rows, %zu clauses, fields %" PRIx64, cases[i].name, b.reads.row_count,
                     b.reads.rows_count, fields);
        assert_true(b.reads.at == 3);
    }
    close_bed(&b);
}

TEST(an_intent_that_fails_is_named_and_nothing_is_pushed)
{
    struct bed b;
    open_bed(&b, "iiis");
    put_numbers(&b, 1, 0, 0);
    struct value key = number(2);
    struct schema_set good[] = {{1, expr(&b, VALUE_INT64, "1")}},
                      bad[] = {{1, expr(&b, VALUE_INT64, "1 / i2")}};
    struct intent intents[] = {{ACTION_UPSERT, b.type, .key = &key, .sets = good, .set_count = 1},
                               {ACTION_UPDATE, b.type, .sets = bad, .set_count = 1}};
    b.changes.count = 77;
    assert_status(run(&b, intents, 2), PAWL_EINVAL);
    assert_contains(b.error.text, "intent 1: ");
    assert_true(b.state.overlay.count == 0 && b.changes.count == 77);
    close_bed(&b);
}

TEST(what_a_row_cannot_hold_is_refused)
{
    struct bed b;
    open_bed(&b, "iIfs");
    const struct {
        struct value key;
        uint16_t field;
        struct value value;
        const char *words;
    } cases[] = {
        {number(1), 1, {.type = VALUE_BOOL}, "not a value of the field i1"},
        {number(1), 1, number(NONE), "the required field i1"},
        {number(1), 2, {.type = VALUE_FLOAT64, .real = 1e308 * 10}, "f2"},
        {number(1), 3, {.type = VALUE_STRING, .bytes = {"\xff", 1}}, "s3"},
        {number(1), 0, number(1), "field 0 cannot be set"},
        {number(1), 4, number(1), "field 4 cannot be set"},
        {number(NONE), 1, number(1), "the key's field i0 would be null"},
        {{.type = VALUE_STRING}, 1, number(1), "not a value of the field i0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct schema_set set = {cases[i].field, NULL};
        struct intent intent = {
            ACTION_UPSERT, b.type, .key = &cases[i].key, .sets = &set, .values = &cases[i].value,
            .set_count = 1};
        assert_status(run(&b, &intent, 1), PAWL_EINVAL);
        assert_contains(b.error.text, cases[i].words);
        assert_int_equal(b.state.overlay.count, 0);
    }
    struct intent nowhere = {ACTION_UPSERT, b.type};
    assert_status(run(&b, &nowhere, 1), PAWL_EINVAL);
    struct intent twice = {ACTION_DELETE, b.type, .key = &cases[0].key, .where = expr(&b, VALUE_BOOL, "true")};
    assert_status(run(&b, &twice, 1), PAWL_EINVAL);
    close_bed(&b);
}

#define MANY ((int64_t)5000)

struct pausing {
    pawl_store *store;
    pawl_reader *reader;
    unsigned calls;
    unsigned fail_at;
};

static int renew(void *ctx, pawl_reader **reader)
{
    struct pausing *p = ctx;
    if (++p->calls == p->fail_at)
        return PAWL_ECLOSED;
    assert_ptr_equal(*reader, p->reader);
    pawl_store_release(p->store, p->reader);
    assert_ok(pawl_store_snapshot(p->store, &p->reader));
    *reader = p->reader;
    return PAWL_OK;
}

static void put_many(struct bed *b)
{
    for (int64_t id = 0; id < MANY; id++)
        put_numbers(b, id, id % 2, id);
    assert_ok(pawl_store_commit(b->state.store));
}

TEST(a_clause_is_cut_into_slices_and_finds_the_same)
{
    struct bed b;
    open_bed(&b, "iiis");
    put_many(&b);
    struct schema_set sets[] = {{2, expr(&b, VALUE_INT64, "i2 + 1")}};
    struct intent intent = {ACTION_UPDATE, b.type, .sets = sets, .set_count = 1,
                            .where = expr(&b, VALUE_BOOL, "i1 = 1")};
    pawl_bytes whole, sliced;
    uint32_t count;
    run_well(&b, &intent, 1);
    assert_int_equal(b.changes.count, MANY / 2);
    overlay_remove(&b.state.overlay, &b.changes);
    assert_ok(operation_maker_writes(&b.maker, &whole, &count));
    whole = arena_copy(&b.state.memory, whole);

    struct pausing p = {.store = b.state.store};
    pawl_reader *writer = b.state.state.reader;
    b.explosion.pause = renew;
    b.explosion.pause_ctx = &p;
    for (p.fail_at = 8; p.fail_at > 0; p.fail_at--, p.calls = 0) {
        /* The slices of 1024 rows: four of the scan, two of the changes. */
        assert_ok(pawl_store_snapshot(p.store, &p.reader));
        b.state.state.reader = p.reader;
        if (p.fail_at > 6) {
            assert_ok(run(&b, &intent, 1));
            assert_int_equal(p.calls, 6);
            assert_ok(operation_maker_writes(&b.maker, &sliced, &count));
            assert_true(bytes_equal(whole, sliced));
            overlay_remove(&b.state.overlay, &b.changes);
        } else
            assert_status(run(&b, &intent, 1), PAWL_ECLOSED);
        assert_int_equal(b.state.overlay.count, 0);
        pawl_store_release(p.store, p.reader);
    }
    b.state.state.reader = writer;
    close_bed(&b);
}

/* Deletes every row but the first from under a run that is between two slices. */
static int delete_others(void *ctx, pawl_reader **reader)
{
    struct bed *b = ctx;
    for (int64_t id = 1; id < MANY; id++) {
        uint8_t key[64];
        int status = pawl_store_remove(b->state.store, STATE_SPACE, key_of(b, id, key));
        assert_true(status == PAWL_OK || status == PAWL_ENOTFOUND);
    }
    *reader = pawl_store_writer(b->state.store);
    return PAWL_OK;
}

TEST(a_row_that_is_gone_in_a_later_slice_is_passed_over)
{
    struct bed b;
    open_bed(&b, "iiis");
    put_many(&b);
    struct intent intent = {ACTION_DELETE, b.type};
    b.explosion.pause = delete_others;
    b.explosion.pause_ctx = &b;
    assert_ok(run(&b, &intent, 1));
    assert_int_equal(b.changes.count, 1);
    close_bed(&b);
}

TEST(a_row_that_does_not_match_costs_no_memory)
{
    uint64_t calls[2];
    size_t bytes[2];
    for (size_t many = 0; many < 2; many++) {
        struct bed b;
        open_bed(&b, "iiis");
        if (many)
            put_many(&b);
        put_numbers(&b, MANY, 7, 7);
        struct intent intent = {ACTION_DELETE, b.type, .where = expr(&b, VALUE_BOOL, "i1 = 7")};
        b.state.alloc.calls = 0;
        run_well(&b, &intent, 1);
        assert_int_equal(b.changes.count, 1);
        calls[many] = b.state.alloc.calls;
        bytes[many] = b.state.alloc.live_bytes_max;
        close_bed(&b);
    }
    assert_true(calls[0] == calls[1] && bytes[0] == bytes[1]);
}

TEST(what_does_not_fit_into_an_operation_is_the_projectors_error)
{
    struct bed b;
    open_bed(&b, "iiis");
    for (int64_t id = 0; id < 9; id++)
        put_numbers(&b, id, 0, 0);
    struct value large = {.type = VALUE_STRING, .bytes = {.size = (size_t)8 << 20}};
    char *text = malloc(large.bytes.size);
    assert_non_null(text);
    memset(text, 'x', large.bytes.size);
    large.bytes.data = text;
    struct schema_set set = {3, NULL};
    struct intent intent = {ACTION_UPDATE, b.type, .sets = &set, .values = &large, .set_count = 1};
    assert_status(run(&b, &intent, 1), PAWL_ETOOBIG);
    assert_contains(b.error.text, "intent 0: it writes more than an operation may hold");
    assert_int_equal(b.state.overlay.count, 0);
    free(text);
    close_bed(&b);
}

TEST(a_projectors_actions_are_intents)
{
    struct bed b;
    open_bed(&b, "iiis");
    const struct expr *key[] = {expr(&b, VALUE_INT64, "$event.offset")};
    struct schema_set sets[] = {{1, expr(&b, VALUE_INT64, "7")}};
    struct schema_action actions[] = {
        {ACTION_UPSERT, b.type, .key = key, .sets = sets, .set_count = 1},
        {ACTION_UPDATE, b.type, .sets = sets, .set_count = 1, .where = expr(&b, VALUE_BOOL, "i1 = 1")},
    };
    struct schema_projector projector = {.actions = actions, .action_count = 2};
    const struct intent *intents;
    size_t count;
    assert_ok(intents_of(&projector, &b.state.memory, &intents, &count));
    assert_int_equal(count, 2);
    assert_true(intents_are_quick(intents, 1) && !intents_are_quick(intents, 2));
    run_well(&b, intents, count);
    assert_true(get(&b, 50, 1) == 7);
    close_bed(&b);
}

TEST(every_allocation_may_fail_and_then_nothing_is_pushed)
{
    for (uint64_t k = 1;; k++) {
        struct bed b;
        open_bed(&b, "iiis");
        for (int64_t id = 0; id < 20; id++)
            put_numbers(&b, id, id, id);
        arena_release(&b.state.memory);
        arena_init(&b.state.memory, &b.state.alloc.allocator, 1); /* each thing by itself */
        struct value key = number(30);
        struct schema_set sets[] = {{1, expr(&b, VALUE_INT64, "i2 + 1")}};
        struct intent intents[] = {
            {ACTION_UPSERT, b.type, .key = &key, .sets = sets, .set_count = 1},
            {ACTION_UPDATE, b.type, .sets = sets, .set_count = 1, .where = expr(&b, VALUE_BOOL, "i1 > 3")},
            {ACTION_DELETE, b.type, .where = expr(&b, VALUE_BOOL, "i1 > 15")}};
        struct operation o = {.kind = OPERATION_WRITES, .wsid = 7};
        struct changes derived;
        test_alloc_fail(&b.state.alloc, k, TEST_ALLOC_ONCE);
        int status = run(&b, intents, 3);
        if (status == PAWL_OK) {
            overlay_remove(&b.state.overlay, &b.changes);
            assert_ok(operation_maker_writes(&b.maker, &o.writes, &o.count));
            status = operation_derive(&o, &b.entities.schema, ENTITY_GENERATION, &b.state.state,
                                      &b.state.memory, &derived, &b.error);
            if (status == PAWL_OK)
                overlay_remove(&b.state.overlay, &derived);
        }
        bool failed = test_alloc_failed(&b.state.alloc);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        assert_int_equal(b.state.overlay.count, 0);
        close_bed(&b);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(an_upsert_makes_a_row_or_changes_the_one_that_is_there),
        RUN(sets_are_computed_on_the_row_as_it_was),
        RUN(an_intent_sees_what_those_before_it_did_and_never_its_own_work),
        RUN(by_a_key_that_is_not_there_nothing_is_updated_or_deleted),
        RUN(a_row_of_an_earlier_schema_becomes_one_of_this_and_one_of_a_later_is_refused),
        RUN(other_workspaces_and_other_generations_are_left_alone),
        RUN(reads_are_only_what_decides_about_the_writes),
        RUN(an_intent_that_fails_is_named_and_nothing_is_pushed),
        RUN(what_a_row_cannot_hold_is_refused),
        RUN(a_clause_is_cut_into_slices_and_finds_the_same),
        RUN(a_row_that_is_gone_in_a_later_slice_is_passed_over),
        RUN(a_row_that_does_not_match_costs_no_memory),
        RUN(what_does_not_fit_into_an_operation_is_the_projectors_error),
        RUN(a_projectors_actions_are_intents),
        RUN(every_allocation_may_fail_and_then_nothing_is_pushed),
    };
    return TEST_MAIN(tests);
}

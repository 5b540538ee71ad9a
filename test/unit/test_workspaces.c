#include "test/lib/test.h"

#include "core/command/workspaces.h"
#include "test/lib/state.h"

enum { KIND = 9 };

struct facts_bed {
    struct state_bed state;
    struct workspaces workspaces;
};

static void open_bed(struct facts_bed *bed, uint32_t capacity)
{
    state_bed_open(&bed->state);
    assert_ok(workspaces_init(&bed->workspaces, &bed->state.alloc.allocator, capacity));
}

static void close_bed(struct facts_bed *bed)
{
    workspaces_release(&bed->workspaces);
    state_bed_close(&bed->state);
}

static void store(struct facts_bed *bed, pawl_bytes key, pawl_bytes value)
{
    assert_ok(pawl_store_put(bed->state.store, STATE_SPACE, key, value));
}

static void store_workspace(struct facts_bed *bed, uint64_t wsid)
{
    uint8_t key[KEY_WORKSPACE], value[WORKSPACE_BYTES] = {KIND};
    store(bed, key_of_workspace(TABLE_WORKSPACE, wsid, key), (pawl_bytes){value, sizeof value});
}

static pawl_bytes wlog_value(uint64_t record, uint8_t value[WLOG_BYTES])
{
    return wlog_row_write((struct wlog_row){.plog_offset = 1, .record = record}, value);
}

static void store_wlog(struct facts_bed *bed, uint64_t wsid, uint64_t offset, uint64_t record)
{
    uint8_t key[KEY_NUMBERED], value[WLOG_BYTES];
    store(bed, key_numbered(TABLE_WLOG, wsid, offset, key), wlog_value(record, value));
}

static void stage_wlog(struct facts_bed *bed, struct changes *changes, uint64_t wsid, uint64_t offset,
                       uint64_t record)
{
    uint8_t key[KEY_NUMBERED], value[WLOG_BYTES];
    assert_ok(state_bed_change(&bed->state, &bed->state.memory, changes,
                               key_numbered(TABLE_WLOG, wsid, offset, key), wlog_value(record, value)));
}

static int get(struct facts_bed *bed, uint64_t wsid, struct workspace_facts *ret_facts, pawl_error *error)
{
    struct workspace_facts *facts;
    int status = workspaces_get(&bed->workspaces, &bed->state.state, wsid, &facts, error);
    if (status == PAWL_OK)
        *ret_facts = *facts;
    return status;
}

static void assert_facts(struct facts_bed *bed, uint64_t wsid, uint64_t last, uint64_t record)
{
    struct workspace_facts facts = {0};
    assert_ok(get(bed, wsid, &facts, NULL));
    assert_int_equal(facts.kind, KIND);
    assert_true(facts.last == last && facts.record == record);
}

TEST(a_workspace_that_is_not_there_is_named)
{
    struct facts_bed bed;
    struct workspace_facts facts;
    pawl_error error = {0};
    open_bed(&bed, 2);
    assert_status(get(&bed, 1234, &facts, &error), PAWL_ENOTFOUND);
    assert_contains(error.text, "1234");
    close_bed(&bed);
}

TEST(the_last_event_is_that_of_the_store_or_one_staged_behind_it)
{
    static const struct {
        uint64_t stored, staged;
    } cases[] = {{0, 0}, {1, 0}, {300, 0}, {0, 1}, {0, 4}, {300, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct facts_bed bed;
        struct changes changes = {0};
        open_bed(&bed, 2);
        for (uint64_t wsid = 1; wsid <= 40; wsid++) { /* neighbours in every direction */
            store_workspace(&bed, wsid);
            if (wsid != 20)
                store_wlog(&bed, wsid, 5000, 999);
        }
        for (uint64_t offset = 1; offset <= cases[i].stored + cases[i].staged; offset++)
            if (offset <= cases[i].stored)
                store_wlog(&bed, 20, offset, 200000 + offset);
            else
                stage_wlog(&bed, &changes, 20, offset, 200000 + offset);
        uint64_t last = cases[i].stored + cases[i].staged;
        assert_facts(&bed, 20, last, last ? 200000 + last : 0);
        close_bed(&bed);
    }
}

TEST(a_frozen_workspace_is_known_as_such_and_a_flag_that_is_not_known_is_refused)
{
    struct facts_bed bed;
    struct workspace_facts facts = {0};
    pawl_error error = {0};
    uint8_t key[KEY_WORKSPACE], value[WORKSPACE_BYTES];
    open_bed(&bed, 4);
    store(&bed, key_of_workspace(TABLE_WORKSPACE, 5, key),
          workspace_row_write((struct workspace_row){.kind = KIND, .frozen = true}, value));
    assert_ok(get(&bed, 5, &facts, NULL));
    assert_true(facts.frozen && facts.kind == KIND);
    store_workspace(&bed, 6);
    assert_ok(get(&bed, 6, &facts, NULL));
    assert_false(facts.frozen);
    value[2] = 2;
    store(&bed, key_of_workspace(TABLE_WORKSPACE, 7, key), (pawl_bytes){value, sizeof value});
    assert_status(get(&bed, 7, &facts, &error), PAWL_ECORRUPT);
    close_bed(&bed);
}

TEST(a_workspace_that_is_staged_exists)
{
    struct facts_bed bed;
    struct changes changes = {0};
    uint8_t key[KEY_WORKSPACE], value[WORKSPACE_BYTES] = {KIND};
    open_bed(&bed, 2);
    assert_ok(state_bed_change(&bed.state, &bed.state.memory, &changes,
                               key_of_workspace(TABLE_WORKSPACE, 5, key), (pawl_bytes){value, sizeof value}));
    stage_wlog(&bed, &changes, 5, 1, 0);
    assert_facts(&bed, 5, 1, 0);
    close_bed(&bed);
}

TEST(facts_are_kept_until_they_are_cleared_or_pushed_out)
{
    struct facts_bed bed;
    open_bed(&bed, 2);
    for (uint64_t wsid = 5; wsid <= 7; wsid++)
        store_workspace(&bed, wsid);
    store_wlog(&bed, 5, 1, 100);
    assert_facts(&bed, 5, 1, 100);
    store_wlog(&bed, 5, 2, 200); /* behind its back: what is kept does not see it */
    assert_facts(&bed, 5, 1, 100);
    workspaces_clear(&bed.workspaces);
    assert_facts(&bed, 5, 2, 200);
    workspaces_put(&bed.workspaces, 5, (struct workspace_facts){.kind = KIND, .last = 8, .record = 800});
    assert_facts(&bed, 5, 8, 800);
    assert_facts(&bed, 6, 0, 0);
    assert_facts(&bed, 7, 0, 0);
    assert_facts(&bed, 5, 2, 200);
    close_bed(&bed);
}

TEST(rows_that_are_none_are_reported_and_not_kept)
{
    struct facts_bed bed;
    struct workspace_facts facts;
    struct changes changes = {0};
    pawl_error error = {0};
    uint8_t key[KEY_NUMBERED], of[KEY_WORKSPACE];
    open_bed(&bed, 2);
    store(&bed, key_of_workspace(TABLE_WORKSPACE, 5, of), text_bytes("short"));
    assert_status(get(&bed, 5, &facts, &error), PAWL_ECORRUPT);
    assert_contains(error.text, "workspace 5");
    store_workspace(&bed, 5);
    store(&bed, key_numbered(TABLE_WLOG, 5, 1, key), text_bytes("not a row"));
    assert_status(get(&bed, 5, &facts, &error), PAWL_ECORRUPT);
    store_wlog(&bed, 5, 1, 100);
    assert_ok(state_bed_change(&bed.state, &bed.state.memory, &changes, key_numbered(TABLE_WLOG, 5, 2, key),
                               text_bytes("not one either")));
    assert_status(get(&bed, 5, &facts, &error), PAWL_ECORRUPT);
    overlay_remove(&bed.state.overlay, &changes);
    assert_facts(&bed, 5, 1, 100);
    close_bed(&bed);
}

TEST(a_store_that_cannot_be_read_is_an_error_with_words_and_nothing_is_kept)
{
    static const struct mem_store_fault faults[] = {
        {MEM_STORE_GET, 1, 1, PAWL_EIO}, {MEM_STORE_SCAN, 1, 1, PAWL_EIO}, {MEM_STORE_GET, 2, 1, PAWL_EIO}};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct facts_bed bed;
        struct workspace_facts facts;
        pawl_error error = {0};
        open_bed(&bed, 2);
        store_workspace(&bed, 5);
        store_wlog(&bed, 5, 1, 100);
        mem_store_disk_fail(bed.state.disk, faults[i]);
        assert_status(get(&bed, 5, &facts, &error), PAWL_EIO);
        assert_contains(error.text, "workspace 5");
        assert_facts(&bed, 5, 1, 100);
        close_bed(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_workspace_that_is_not_there_is_named),
        RUN(the_last_event_is_that_of_the_store_or_one_staged_behind_it),
        RUN(a_frozen_workspace_is_known_as_such_and_a_flag_that_is_not_known_is_refused),
        RUN(a_workspace_that_is_staged_exists),
        RUN(facts_are_kept_until_they_are_cleared_or_pushed_out),
        RUN(rows_that_are_none_are_reported_and_not_kept),
        RUN(a_store_that_cannot_be_read_is_an_error_with_words_and_nothing_is_kept),
    };
    return TEST_MAIN(tests);
}

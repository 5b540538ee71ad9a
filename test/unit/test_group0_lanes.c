/* group0's commands about lanes: rebuild and switch; and the schema that a generation goes by. */
#include "base/bytes.h"
#include "base/id.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

/* Lane 1, p.x, fills A; lane 2, p.y, fills B. */
#define SHOP(value, more)                                                                                      \
    "{'schema': 1, 'package': 'p', 'commands': {'Do': {}},"                                                    \
    "'entities': {'A': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'v': {'type': 'int64'}}},"            \
    "             'B': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'v': {'type': 'int64'}" more "}}},"   \
    "'projectors': {" value "'y': {'on': ['Do'], 'do': [{'update': 'B', 'set': {'v': '1'}}]}}}"
#define X(value) "'x': {'on': ['Do'], 'do': [{'update': 'A', 'set': {'v': '" value "'}}]},"

static struct group0 *fresh(void)
{
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    return group0;
}

static void apply(struct group0 *group0, const char *schema)
{
    enum group0_outcome outcome;
    pawl_error error = {0};
    assert_ok(schema_apply(group0, schema, &outcome, &error));
    assert_int_equal(outcome, GROUP0_CHANGED);
}

static enum group0_outcome rebuild(struct group0 *group0, uint16_t lane)
{
    enum group0_outcome outcome;
    assert_ok(lane_rebuild(group0, lane, &outcome, NULL));
    return outcome;
}

static enum group0_outcome switch_to(struct group0 *group0, uint16_t lane, uint32_t generation)
{
    enum group0_outcome outcome;
    assert_ok(lane_switch(group0, lane, generation, 1000 + generation, &outcome, NULL));
    return outcome;
}

static void assert_lane(const struct group0 *group0, uint16_t id, uint32_t generation, uint64_t born,
                        uint32_t serving, uint64_t serving_born, uint64_t serving_last)
{
    const struct schema_lane *lane = schema_lane_by_id(group0_schema(group0), id);
    assert_non_null(lane);
    assert_int_equal(lane->generation, generation);
    assert_int_equal(lane->born, born);
    assert_int_equal(lane->serving, serving);
    assert_int_equal(lane->serving_born, serving_born);
    assert_int_equal(lane->serving_last, serving_last);
}

static uint32_t served(const struct schema *schema, const char *entity)
{
    return schema_serving_table(schema, schema_type_by_name(schema, text_bytes(entity))) >> SCHEMA_TABLE_BITS;
}

TEST(a_rebuilt_lane_serves_its_old_generation_until_it_is_switched)
{
    struct group0 *group0 = fresh();
    apply(group0, SHOP(X("1"), ""));
    assert_int_equal(rebuild(group0, 1), GROUP0_CHANGED);
    assert_lane(group0, 1, 2, 2, 1, 1, 1);
    assert_lane(group0, 2, 1, 1, 1, 1, UINT64_MAX);
    assert_int_equal(served(group0_schema(group0), "p.A"), 1);
    assert_int_equal(group0_schema(group0)->lanes[0].switched_count, 0);

    /* Once more: the second was in vain. */
    assert_int_equal(rebuild(group0, 1), GROUP0_CHANGED);
    assert_lane(group0, 1, 3, 3, 1, 1, 1);

    assert_int_equal(switch_to(group0, 1, 3), GROUP0_CHANGED);
    assert_lane(group0, 1, 3, 3, 3, 3, UINT64_MAX);
    assert_int_equal(served(group0_schema(group0), "p.A"), 3);
    assert_int_equal(served(group0_schema(group0), "p.B"), 1);
    assert_int_equal(group0_schema(group0)->lanes[0].switched_count, 1);
    assert_int_equal(group0_schema(group0)->lanes[0].switched[0], 1003);

    /* What was, is what it was. */
    assert_int_equal(served(group0_schema_at(group0, 3), "p.A"), 1);
    assert_int_equal(group0_schema(group0)->position, 4);

    /* And on: where it was switched is kept, whatever else is applied. */
    apply(group0, SHOP(X("2"), ""));
    assert_lane(group0, 1, 4, 5, 3, 3, 4);
    assert_int_equal(group0_schema(group0)->lanes[0].switched[0], 1003);
    group0_free(group0);
}

TEST(only_the_newest_generation_of_a_lane_that_is_there_can_be_switched_to)
{
    static const struct {
        uint16_t lane;
        uint32_t generation;
        const char *error;
    } cases[] = {
        {0, 1, "group0 position 5: there is no lane 0"},
        {3, 1, "group0 position 5: there is no lane 3"},
        {2, 1, "group0 position 5: there is no lane 2"},
        {1, 0, "group0 position 5: generation 0 of lane p.x is not its newest, which is 3, and cannot serve"},
        {1, 2, "group0 position 5: generation 2 of lane p.x is not its newest, which is 3, and cannot serve"},
        {1, 4, "group0 position 5: generation 4 of lane p.x is not its newest, which is 3, and cannot serve"},
    };
    struct group0 *group0 = fresh();
    enum group0_outcome outcome;
    pawl_error error = {0};
    apply(group0, SHOP(X("1"), ""));
    rebuild(group0, 1);
    rebuild(group0, 1);
    assert_ok(schema_apply(
        group0,
        "{'schema': 1, 'package': 'p', 'commands': {'Do': {}}, 'projectors': {" X(
            "1") "'z': "
                 "{'on': ['Do'], 'sync': true, 'do': [{'delete': 'C'}]}},"
                 "'entities': {'A': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'v': {'type': "
                 "'int64'}}}, 'B': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'v': {'type': "
                 "'int64'}}}, 'C': {'key': ['k'], 'fields': {'k': {'type': 'int64'}}}}}",
        &outcome, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hash128 before = group0_digest(group0);
        assert_status(lane_switch(group0, cases[i].lane, cases[i].generation, 7, &outcome, &error),
                      PAWL_EINVAL);
        assert_string_equal(error.text, cases[i].error);
        assert_int_equal(group0_digest(group0).low, before.low);
    }
    assert_status(lane_rebuild(group0, 2, &outcome, &error), PAWL_EINVAL);
    assert_string_equal(error.text, "group0 position 5: there is no lane 2");
    group0_free(group0);
}

TEST(a_switch_can_be_repeated)
{
    struct group0 *group0 = fresh();
    apply(group0, SHOP(X("1"), ""));
    assert_int_equal(switch_to(group0, 1, 1), GROUP0_UNCHANGED);
    rebuild(group0, 1);
    assert_int_equal(switch_to(group0, 1, 2), GROUP0_CHANGED);
    const struct schema *schema = group0_schema(group0);
    assert_int_equal(switch_to(group0, 1, 2), GROUP0_UNCHANGED);
    assert_ptr_equal(group0_schema(group0), schema);
    group0_free(group0);
}

/* A lane that takes over what another one filled begins beside it. */
TEST(a_lane_that_takes_an_entity_over_serves_it_when_it_is_switched)
{
    struct group0 *group0 = fresh();
    apply(group0, SHOP(X("1"), ""));
    apply(group0, SHOP("'z': {'on': ['Do'], 'do': [{'delete': 'A'}]},", ""));
    assert_lane(group0, 3, 2, 2, 0, 0, 0);
    assert_int_equal(served(group0_schema(group0), "p.A"), 1);
    assert_int_equal(switch_to(group0, 3, 2), GROUP0_CHANGED);
    assert_lane(group0, 3, 2, 2, 2, 2, UINT64_MAX);
    assert_int_equal(served(group0_schema(group0), "p.A"), 2);
    group0_free(group0);
}

TEST(a_generation_projects_an_event_with_the_newest_schema_that_has_it)
{
    struct group0 *group0 = fresh();
    apply(group0, SHOP("", ""));                             /* 1: lane p.y alone */
    apply(group0, SHOP(X("1"), ""));                         /* 2: p.x.1 */
    apply(group0, SHOP(X("1"), ", 'w': {'type': 'int64'}")); /* 3 */
    apply(group0, SHOP(X("2"), ", 'w': {'type': 'int64'}")); /* 4: p.x.2 */
    rebuild(group0, 2);                                      /* 5: p.x.3 */
    switch_to(group0, 2, 3);                                 /* 6 */
    apply(group0, SHOP("", ", 'w': {'type': 'int64'}"));     /* 7: without p.x */
    apply(group0, SHOP(X("2"), ", 'w': {'type': 'int64'}")); /* 8: p.x.4 */
    static const struct {
        uint16_t lane;
        uint32_t generation;
        uint64_t event;
        uint64_t expected; /* 0: none */
    } cases[] = {
        {1, 1, 1, 1}, {1, 1, 2, 2}, {1, 1, 6, 6}, {1, 1, 8, 8}, {1, 1, 99, 8}, {1, 2, 8, 0}, {1, 0, 8, 0},
        {2, 1, 1, 2}, {2, 1, 2, 2}, {2, 1, 3, 3}, {2, 1, 4, 3}, {2, 1, 8, 3},  {2, 2, 1, 4}, {2, 2, 4, 4},
        {2, 2, 5, 4}, {2, 2, 8, 4}, {2, 3, 1, 5}, {2, 3, 5, 5}, {2, 3, 6, 6},  {2, 3, 7, 6}, {2, 3, 8, 6},
        {2, 4, 1, 8}, {2, 4, 8, 8}, {2, 5, 8, 0}, {0, 1, 8, 0}, {3, 1, 8, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct schema *schema =
            group0_schema_for(group0, cases[i].lane, cases[i].generation, cases[i].event);
        assert_int_equal(schema ? schema->position : 0, cases[i].expected);
        if (schema)
            assert_int_equal(schema_lane_by_id(schema, cases[i].lane)->generation, cases[i].generation);
    }
    group0_free(group0);
}

TEST(the_digest_has_the_decisions_about_lanes)
{
    struct group0 *a = fresh(), *b = fresh();
    enum group0_outcome outcome;
    apply(a, SHOP(X("1"), ""));
    apply(b, SHOP(X("1"), ""));
    assert_int_equal(group0_digest(a).low, group0_digest(b).low);
    rebuild(a, 1);
    assert_true(group0_digest(a).low != group0_digest(b).low);
    rebuild(b, 1);
    assert_int_equal(group0_digest(a).low, group0_digest(b).low);
    assert_ok(lane_switch(a, 1, 2, 10, &outcome, NULL));
    assert_ok(lane_switch(b, 1, 2, 11, &outcome, NULL));
    assert_true(group0_digest(a).low != group0_digest(b).low);
    group0_free(a);
    group0_free(b);
}

TEST(refuses_bytes_that_are_no_command_about_a_lane)
{
    static const struct {
        uint8_t bytes[32];
        size_t size;
    } cases[] = {
        {{1, 2, 0, 0}, 4},
        {{1, 2, 0, 0, 1, 0, 0}, 7},
        {{1, 2, 0, 0, 1, 0, 1, 0}, 8},
        {{1, 2, 0, 0, 1, 0, 0, 0, 0}, 9},
        {{1, 3, 0, 0, 1, 0, 0, 0}, 8},
        {{1, 3, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 16},
        {{1, 3, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, 16},
        {{1, 3, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0}, 23},
        {{1, 3, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0}, 25},
        {{1, 3, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255, 7, 0, 0, 0, 0, 0, 0, 0}, 24},
    };
    struct group0 *group0 = fresh();
    struct arena arena;
    enum group0_outcome outcome;
    pawl_bytes command;
    uint64_t offset = 1;
    apply(group0, SHOP(X("1"), ""));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pawl_error error = {0};
        assert_status(group0_check(group0, (pawl_bytes){cases[i].bytes, cases[i].size}, &outcome, &error),
                      PAWL_ECORRUPT);
        assert_string_equal(error.text, "byte 4: these are not bytes of a command about a lane");
    }
    arena_init(&arena, NULL, 64);
    assert_status(group0_switch_encode(1, 1, &offset, 0, &arena, &command), PAWL_EINVAL);
    assert_status(group0_switch_encode(1, 1, &offset, PARTITIONS_MAX + 1, &arena, &command), PAWL_EINVAL);
    arena_release(&arena);
    group0_free(group0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_rebuilt_lane_serves_its_old_generation_until_it_is_switched),
        RUN(only_the_newest_generation_of_a_lane_that_is_there_can_be_switched_to),
        RUN(a_switch_can_be_repeated),
        RUN(a_lane_that_takes_an_entity_over_serves_it_when_it_is_switched),
        RUN(a_generation_projects_an_event_with_the_newest_schema_that_has_it),
        RUN(the_digest_has_the_decisions_about_lanes),
        RUN(refuses_bytes_that_are_no_command_about_a_lane),
    };
    return TEST_MAIN(tests);
}

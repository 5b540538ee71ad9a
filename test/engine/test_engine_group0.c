/* test_engine_group0.c: commands of group0 through a running engine: they are written once, known to all
 * shards, and there again after a restart. */
#include <pawl/pawl.h>

#include "base/bytes.h"
#include "engine/node/node.h"
#include "test/lib/alloc.h"
#include "test/lib/dir.h"

#define PACKAGE(set)                                                                                           \
    "{\"schema\": 1, \"package\": \"t\", \"commands\": {\"Do\": {}},"                                          \
    " \"entities\": {\"E\": {\"key\": [\"k\"], \"fields\": {\"k\": {\"type\": \"int64\"}, \"v\": {\"type\": "  \
    "\"int64\"}}}},"                                                                                           \
    " \"projectors\": {\"q\": {\"on\": [\"Do\"], \"do\": [{\"update\": \"E\", \"set\": {\"v\": \"" set         \
    "\"}}]}}}"

struct bench {
    char dir[256];
    char data[300];
    pawl_engine *engine;
    struct arena arena;
    pawl_error error;
};

static void open_it(struct bench *b)
{
    assert_ok(pawl_open(b->data, &(pawl_options){.partitions = 4, .shards = 2}, &b->engine, &b->error));
}

static void begin(struct bench *b)
{
    *b = (struct bench){0};
    arena_init(&b->arena, NULL, 4096);
    test_dir_make(b->dir, sizeof b->dir);
    snprintf(b->data, sizeof b->data, "%s/data", b->dir);
    open_it(b);
}

static void end(struct bench *b)
{
    assert_ok(pawl_close(b->engine));
    test_dir_remove(b->dir);
    arena_release(&b->arena);
}

struct shown {
    char text[1024];
    size_t size;
};

static void put(struct shown *shown, const char *before, pawl_bytes name, const char *behind)
{
    int size = snprintf(shown->text + shown->size, sizeof shown->text - shown->size, "%s%.*s%s", before,
                        (int)name.size, (const char *)name.data, behind);
    assert_true(size >= 0 && (size_t)size < sizeof shown->text - shown->size);
    shown->size += (size_t)size;
}

static void put_names(struct shown *shown, const char *word, const pawl_bytes *names, size_t count)
{
    put(shown, ",\"", text_bytes(word), "\":[");
    for (size_t i = 0; i < count; i++)
        put(shown, i ? ",\"" : "\"", names[i], "\"");
    put(shown, "]", (pawl_bytes){0}, "");
}

/* As the JSON has it, made of the fields. */
static bool put_lane(void *arg, const pawl_schema_lane *lane)
{
    char numbers[100];
    snprintf(numbers, sizeof numbers, "\",\"id\":%u,\"generation\":%u,\"serving\":%u", lane->id,
             lane->generation, lane->serving);
    put(arg, "{\"lane\":\"", lane->name, numbers);
    put_names(arg, "projectors", lane->projectors, lane->projector_count);
    put_names(arg, "entities", lane->entities, lane->entity_count);
    put(arg, "}\n", (pawl_bytes){0}, "");
    return true;
}

/* Both ways to read them say the same. */
static void assert_lanes(struct bench *b, const char *expected)
{
    pawl_text text;
    struct shown shown = {0};
    assert_ok(pawl_schema_lanes_read(b->engine, put_lane, &shown, &b->error));
    assert_string_equal(shown.text, expected);
    assert_ok(pawl_schema_lanes_list(b->engine, &text, &b->error));
    assert_string_equal(text.data, expected);
    pawl_text_free(&text);
}

static int switch_to(struct bench *b, uint32_t generation, enum group0_outcome *ret_outcome)
{
    static const uint64_t offsets[4] = {1, 2, 3, 4};
    pawl_bytes command;
    assert_ok(group0_switch_encode(1, generation, offsets, 4, &b->arena, &command));
    return engine_group0_propose(b->engine, command, ret_outcome, &b->error);
}

#define LANE(generation, serving)                                                                              \
    "{\"lane\":\"t.q\",\"id\":1,\"generation\":" generation ",\"serving\":" serving                            \
    ",\"projectors\":[\"t.q\"],\"entities\":[\"t.E\"]}\n"

TEST(a_lane_is_rebuilt_and_switched_and_stays_so)
{
    struct bench b;
    enum group0_outcome outcome;
    uint64_t position;
    pawl_bytes command;
    begin(&b);
    assert_lanes(&b, "");
    assert_ok(pawl_schema_apply(b.engine, PACKAGE("1"), &position, &b.error));
    assert_lanes(&b, LANE("1", "1"));

    assert_ok(group0_rebuild_encode(1, &b.arena, &command));
    assert_ok(engine_group0_propose(b.engine, command, &outcome, &b.error));
    assert_int_equal(outcome, GROUP0_CHANGED);
    assert_ok(pawl_lanes_wait(b.engine, NULL, 300 * PAWL_SECOND, &b.error)); /* it is switched by itself */
    assert_lanes(&b, LANE("2", "2"));
    assert_int_equal(engine_schema_at(b.engine, position + 1)->lanes[0].serving, 1);
    assert_int_equal(engine_schema(b.engine)->position, position + 2);

    assert_status(switch_to(&b, 3, &outcome), PAWL_EINVAL);
    assert_ok(switch_to(&b, 2, &outcome));
    assert_int_equal(outcome, GROUP0_UNCHANGED);
    assert_lanes(&b, LANE("2", "2"));
    assert_int_equal(engine_schema(b.engine)->position, position + 2);

    assert_ok(pawl_schema_apply(b.engine, PACKAGE("2"), NULL, &b.error));
    assert_ok(pawl_lanes_wait(b.engine, NULL, 300 * PAWL_SECOND, &b.error));
    assert_ok(pawl_close(b.engine));
    open_it(&b);
    assert_lanes(&b, LANE("3", "3"));
    assert_int_equal(engine_schema(b.engine)->lanes[0].switched_count, 4);
    assert_int_equal(engine_schema_at(b.engine, position + 2)->lanes[0].generation, 2);
    end(&b);
}

static int apply_package(struct bench *b, const char *letter, unsigned number)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"schema\": 1, \"package\": \"%s%u\", \"types\": {\"T\": {\"kind\": \"CDoc\", \"fields\": "
             "{\"name\": {\"type\": \"string\"}}}}, \"commands\": {\"Do\": {\"records\": [\"T\"]}}}",
             letter, number);
    return pawl_schema_apply(b->engine, text, NULL, &b->error);
}

/* What is written and cannot be taken in for want of memory is taken in before the next one is written. */
TEST(the_schema_is_that_of_the_log_after_any_allocation_has_failed)
{
    struct bench b = {0};
    struct test_alloc memory;
    bool failed = true;
    test_alloc_init(&memory);
    arena_init(&b.arena, NULL, 4096);
    test_dir_make(b.dir, sizeof b.dir);
    snprintf(b.data, sizeof b.data, "%s/data", b.dir);
    pawl_options options = {.partitions = 1, .shards = 1, .allocator = &memory.allocator};
    assert_ok(pawl_open(b.data, &options, &b.engine, &b.error));
    for (unsigned k = 1; failed; k++) {
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        (void)apply_package(&b, "a", k); /* other threads may be the ones that get none */
        failed = test_alloc_failed(&memory);
        test_alloc_fail(&memory, 0, TEST_ALLOC_ONCE);
        assert_ok(apply_package(&b, "b", k));
    }
    struct hash128 before = group0_digest(b.engine->group0);
    uint64_t position = group0_position(b.engine->group0);
    assert_ok(pawl_close(b.engine));
    assert_ok(pawl_open(b.data, &options, &b.engine, &b.error));
    struct hash128 after = group0_digest(b.engine->group0);
    assert_int_equal(group0_position(b.engine->group0), position);
    assert_true(before.low == after.low && before.high == after.high);
    end(&b);
    test_alloc_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(a_lane_is_rebuilt_and_switched_and_stays_so),
                                       RUN(the_schema_is_that_of_the_log_after_any_allocation_has_failed)};
    return TEST_MAIN(tests);
}

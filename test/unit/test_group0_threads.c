/* Schemas that are handed to other threads outlive the group0 that made them, and are freed once. */
#include <pthread.h>

#include "test/lib/alloc.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

#define THREADS 4
#define ROUNDS  2000

static void *use(void *arg)
{
    const struct schema *schema = arg;
    for (int i = 0; i < ROUNDS; i++) {
        const struct schema *again = schema_hold(schema);
        const struct schema_type *order = schema_type_by_name(again, text_bytes("shop.Order"));
        if (!order || schema_field_place(order, text_bytes("number")) != 1)
            abort();
        schema_drop(again);
    }
    schema_drop(schema);
    return NULL;
}

TEST(schemas_are_held_by_many_threads)
{
    struct test_alloc memory;
    struct group0 *group0;
    enum group0_outcome outcome;
    pthread_t threads[THREADS];
    test_alloc_init(&memory);
    assert_ok(group0_new(&memory.allocator, &group0));
    assert_ok(schema_apply(group0, schema_shop, &outcome, NULL));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, use, (void *)(uintptr_t)schema_hold(group0_schema(group0))), 0);
    assert_ok(schema_apply(group0, schema_crm, &outcome, NULL));
    group0_free(group0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    test_alloc_release(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(schemas_are_held_by_many_threads)};
    return TEST_MAIN(tests);
}

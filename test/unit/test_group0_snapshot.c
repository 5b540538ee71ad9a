/* Snapshots of group0: what is restored is what was, and goes on as it would have. */
#include "core/group0/group0.h"
#include "test/lib/alloc.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"
#include "test/lib/views.h"

#define PARTITIONS 4

static struct group0 *opened(const pawl_allocator *alloc)
{
    struct group0 *group0;
    assert_ok(group0_new(alloc, &group0));
    group0_configure(group0, PARTITIONS, 1, 2);
    return group0;
}

static void assert_same(const struct group0 *a, const struct group0 *b)
{
    struct hash128 x = group0_digest(a), y = group0_digest(b);
    assert_memory_equal(&x, &y, sizeof x);
    assert_int_equal(group0_position(a), group0_position(b));
}

static int assign(struct group0 *group0, uint64_t node)
{
    struct arena arena;
    pawl_bytes command;
    enum group0_outcome outcome;
    const struct assignment to = {.node = node, .time = 5, .name_size = 4, .name = "web1"};
    arena_init(&arena, NULL, 4096);
    assert_ok(group0_assign_encode(&to, &arena, &command));
    int status = group0_apply(group0, group0_position(group0) + 1, command, &outcome, NULL);
    arena_release(&arena);
    return status;
}

/* One step of a history in which most that there is happens. False: it is over. */
static bool step(struct group0 *group0, int i)
{
    static const struct view_text by_tier = {
        .package = "run", .name = "v", .base = "shop.Customer", .key = "tier name", .filter = "active"};
    static const struct view_text unique = {
        .package = "run", .name = "u", .base = "shop.Customer", .key = "name", .unique = true};
    static const struct view_text totals = {
        .package = "run", .name = "e", .base = "shop.CustomerTotal", .key = "orders"};
    enum group0_outcome outcome;
    const struct building *b = group0_building(group0);
    uint64_t id = b->tasks.count > 0 ? b->tasks.groups[0].first : 0;
    struct group0_command command = {.kind = GROUP0_FINISHED, .ids = &id, .id_count = 1};
    switch (i) {
    case 0: assert_ok(schema_apply(group0, schema_shop, &outcome, NULL)); break;
    case 1: assert_ok(views_create(group0, &by_tier, &outcome, NULL)); break;
    case 2: assert_ok(schema_apply(group0, schema_crm, &outcome, NULL)); break;
    case 3: assert_ok(views_create(group0, &unique, &outcome, NULL)); break;
    case 4: assert_ok(views_command(group0, &command, &outcome, NULL)); break;
    case 5: assert_ok(lane_rebuild(group0, 1, &outcome, NULL)); break;
    case 6: assert_ok(views_create(group0, &totals, &outcome, NULL)); break;
    case 7: assert_ok(views_resize(group0, GROUP0_RESIZE_BEGIN, 8, &outcome, NULL)); break;
    case 8: assert_ok(views_resize(group0, GROUP0_RESIZE_FINISH, 0, &outcome, NULL)); break;
    case 9: assert_ok(views_named(group0, GROUP0_VIEW_REBUILD, "run.v", &outcome, NULL)); break;
    case 10:
        command = (struct group0_command){
            .kind = GROUP0_FAILED, .table = view_table(b->number, 0), .words = text_bytes("two rows")};
        assert_ok(views_command(group0, &command, &outcome, NULL));
        break;
    case 11: assert_ok(views_named(group0, GROUP0_VIEW_PAUSE, "", &outcome, NULL)); break;
    case 12:
        command = (struct group0_command){.kind = GROUP0_VIEW_THROTTLE, .throttle = 77};
        assert_ok(views_command(group0, &command, &outcome, NULL));
        break;
    case 13:
        command = (struct group0_command){.kind = GROUP0_BASE, .table = b->tasks.groups[0].base};
        assert_ok(views_command(group0, &command, &outcome, NULL));
        break;
    case 14: assert_ok(views_named(group0, GROUP0_VIEW_REBUILD, "run.v", &outcome, NULL)); break;
    case 15: assert_ok(lane_switch(group0, 1, 2, 7, &outcome, NULL)); break;
    case 16: assert_ok(views_named(group0, GROUP0_VIEW_DROP, "run.u", &outcome, NULL)); break;
    case 17: assert_ok(views_finish(group0, 0, &outcome)); break;
    case 18: assert_ok(assign(group0, 7)); break;
    case 19: assert_ok(assign(group0, 8)); break;
    default: return false;
    }
    return true;
}

TEST(what_is_restored_at_any_point_goes_on_as_it_would_have)
{
    for (int cut = 0; cut <= 20; cut++) {
        struct group0 *a = opened(NULL), *b = opened(NULL);
        struct arena arena;
        pawl_bytes snapshot, again;
        arena_init(&arena, NULL, 4096);
        for (int i = 0; i < cut; i++)
            assert_true(step(a, i));
        assert_ok(group0_snapshot(a, &arena, &snapshot));
        assert_ok(group0_restore(b, snapshot, NULL));
        assert_same(a, b);
        assert_ok(group0_snapshot(b, &arena, &again));
        assert_true(bytes_equal(snapshot, again));
        assert_int_equal(group0_building(a)->views->version, group0_building(b)->views->version);
        for (int i = cut; step(a, i); i++) {
            assert_true(step(b, i));
            assert_same(a, b);
        }
        for (uint64_t position = 0; position <= group0_position(a); position++)
            assert_int_equal(group0_schema_at(a, position)->position, group0_schema_at(b, position)->position);
        arena_release(&arena);
        group0_free(a);
        group0_free(b);
    }
}

/* A field of that name came later: the view goes on with what its name meant. */
TEST(a_view_means_what_it_meant_when_it_was_made)
{
    static const char before[] =
        "{'schema': 1, 'package': 'p', 'types': {'T': {'kind': 'CDoc', 'fields': {'a': "
        "{'type': 'int64'}}}}, 'views': {'d': {'base': 'T', 'key': ['parent'], 'filter': 'active'}}}";
    static const char after[] =
        "{'schema': 1, 'package': 'p', 'types': {'T': {'kind': 'CDoc', 'fields': {'a': {'type': "
        "'int64'}, 'parent': {'type': 'string'}, 'active': {'type': 'string'}}}}, 'views': {'d': "
        "{'base': 'T', 'key': ['parent'], 'filter': 'active'}}}";
    struct group0 *a = opened(NULL), *b = opened(NULL);
    enum group0_outcome outcome;
    struct arena arena;
    pawl_bytes snapshot;
    pawl_error error = {0};
    arena_init(&arena, NULL, 4096);
    assert_ok(schema_apply(a, before, &outcome, &error));
    assert_ok(schema_apply(a, after, &outcome, &error));
    assert_ok(group0_snapshot(a, &arena, &snapshot));
    assert_ok(group0_restore(b, snapshot, &error));
    assert_same(a, b);
    const struct view *x = group0_building(a)->views->entries[0].view,
                      *y = group0_building(b)->views->entries[0].view;
    assert_int_equal(x->fields[0].source, VIEW_OF_PARENT);
    assert_int_equal(y->fields[0].source, VIEW_OF_PARENT);
    assert_int_equal(y->row.fields[0].type, VALUE_REF);
    arena_release(&arena);
    group0_free(a);
    group0_free(b);
}

static int restore(pawl_bytes bytes)
{
    struct group0 *group0 = opened(NULL);
    pawl_error error = {0};
    int status = group0_restore(group0, bytes, &error);
    assert_int_equal(error.code, status);
    group0_free(group0);
    return status;
}

TEST(a_snapshot_that_was_cut_or_changed_is_refused)
{
    struct group0 *group0 = opened(NULL);
    struct arena arena;
    pawl_bytes snapshot;
    arena_init(&arena, NULL, 4096);
    for (int i = 0; i < 11; i++)
        assert_true(step(group0, i));
    assert_ok(group0_snapshot(group0, &arena, &snapshot));
    uint8_t *bytes = malloc(snapshot.size);
    for (size_t cut = 0; cut < snapshot.size; cut++) {
        memcpy(bytes, snapshot.data, cut);
        assert_status(restore((pawl_bytes){bytes, cut}), PAWL_ECORRUPT);
    }
    memcpy(bytes, snapshot.data, snapshot.size);
    for (size_t bit = 0; bit < snapshot.size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        /* A version above ours is believed before the checksum, which it may have elsewhere. */
        int expected = bit >= 32 && bit < 64 ? PAWL_EVERSION : PAWL_ECORRUPT;
        if (bit == 32)
            expected = PAWL_ECORRUPT; /* version 0 */
        assert_status(restore((pawl_bytes){bytes, snapshot.size}), expected);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_ok(restore(snapshot));
    free(bytes);
    arena_release(&arena);
    group0_free(group0);
}

/* With the checksum made right again, each changed bit is refused, or is another sound state: never a crash. */
TEST(a_changed_bit_with_a_right_checksum_is_refused_or_gives_a_sound_state)
{
    struct group0 *group0 = opened(NULL);
    struct arena arena;
    pawl_bytes snapshot;
    arena_init(&arena, NULL, 4096);
    for (int i = 0; i < 15; i++)
        assert_true(step(group0, i));
    assert_ok(group0_snapshot(group0, &arena, &snapshot));
    uint8_t *bytes = malloc(snapshot.size);
    memcpy(bytes, snapshot.data, snapshot.size);
    size_t restored = 0;
    for (size_t bit = 0; bit < (snapshot.size - 8) * 8; bit += TEST_SANITIZED ? 7 : 1) {
        struct group0 *other = opened(NULL);
        enum group0_outcome outcome;
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        put_u64(bytes + snapshot.size - 8, hash_checksum(0, (pawl_bytes){bytes, snapshot.size - 8}));
        if (group0_restore(other, (pawl_bytes){bytes, snapshot.size}, NULL) == PAWL_OK) {
            restored++;
            if (group0_position(other) < UINT64_MAX - 3
                && group0_building(other)->tasks.next < UINT64_C(1) << 61) {
                assert_ok(views_finish(other, 0, &outcome));
                assert_ok(views_resize(other, GROUP0_RESIZE_BEGIN, group0_building(other)->map.tablets * 2,
                                       &outcome, NULL));
                assert_ok(views_resize(other, GROUP0_RESIZE_FINISH, 0, &outcome, NULL));
            }
        }
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        group0_free(other);
    }
    assert_true(restored > 0); /* counts, times and words are what they are */
    free(bytes);
    arena_release(&arena);
    group0_free(group0);
}

TEST(a_snapshot_of_another_number_of_partitions_is_refused)
{
    struct group0 *a = opened(NULL), *b;
    struct arena arena;
    pawl_bytes snapshot;
    arena_init(&arena, NULL, 4096);
    assert_ok(group0_new(NULL, &b));
    assert_true(step(a, 0));
    assert_ok(group0_snapshot(a, &arena, &snapshot));
    assert_status(group0_restore(b, snapshot, NULL), PAWL_ECORRUPT);
    group0_free(a);
    group0_free(b);
    arena_release(&arena);
}

static uint64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * PAWL_SECOND + (uint64_t)now.tv_nsec;
}

static void assert_within_a_second(uint64_t from, const char *what)
{
    uint64_t took = thread_ns() - from;
    print_message("# %s took %" PRIu64 " us\n", what, took / PAWL_MICROSECOND);
    assert_true(took < (TEST_SANITIZED ? 20 : 1) * PAWL_SECOND);
}

/* 64 views of 16384 tablets: how group0 is opened, from the stream and from a snapshot. */
TEST(a_million_tasks_are_small_and_soon_opened)
{
    struct test_alloc memory, other;
    test_alloc_init(&memory);
    test_alloc_init(&other);
    struct group0 *a, *b;
    struct arena arena;
    pawl_bytes snapshot;
    enum group0_outcome outcome;
    assert_ok(group0_new(&memory.allocator, &a));
    assert_ok(group0_new(&other.allocator, &b));
    group0_configure(a, 16384, 1, 1);
    group0_configure(b, 16384, 1, 1);
    assert_ok(schema_apply(a, schema_shop, &outcome, NULL));
    uint64_t from = thread_ns();
    for (int i = 0; i < 64; i++) {
        char name[8];
        snprintf(name, sizeof name, "v%d", i);
        assert_ok(views_create(
            a, &(struct view_text){.package = "run", .name = name, .base = "shop.Customer", .key = "name"},
            &outcome, NULL));
    }
    assert_within_a_second(from, "applying the stream");
    assert_true(group0_building(a)->tasks.left > 1000000);
    print_message("# %zu bytes of memory\n", memory.live_bytes);
    assert_true(memory.live_bytes_max < (size_t)4 << 20);
    arena_init(&arena, NULL, 4096);
    assert_ok(group0_snapshot(a, &arena, &snapshot));
    print_message("# %zu bytes of snapshot\n", snapshot.size);
    assert_true(snapshot.size < (size_t)1 << 20);
    from = thread_ns();
    assert_ok(group0_restore(b, snapshot, NULL));
    assert_within_a_second(from, "restoring the snapshot");
    assert_true(other.live_bytes_max < (size_t)4 << 20);
    assert_same(a, b);
    arena_release(&arena);
    group0_free(a);
    group0_free(b);
    test_alloc_release(&memory);
    test_alloc_release(&other);
}

/* 1024 views of 1024 tablets, all declared by one package. What a command costs, and what a list of views takes that
 * is kept, must not grow with the square of their number. */
TEST(a_million_tasks_of_many_views_are_cheap_too)
{
    enum { MANY = 1024 };
    static char text[MANY * 48 + 1024];
    struct test_alloc memory;
    struct group0 *a, *b;
    struct arena arena;
    pawl_bytes snapshot;
    enum group0_outcome outcome;
    size_t size = (size_t)snprintf(
        text, sizeof text,
        "{'schema': 1, 'package': 'p', 'types': {'T': {'kind': 'CDoc', 'fields': {'a': {'type': 'int64'}}}},"
        "'commands': {'Do': {'records': ['T']}}, 'views': {");
    for (int i = 0; i < MANY; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s'v%d': {'base': 'T', 'key': ['a']}",
                                 i ? "," : "", i);
    snprintf(text + size, sizeof text - size, "}}");
    test_alloc_init(&memory);
    assert_ok(group0_new(&memory.allocator, &a));
    assert_ok(group0_new(NULL, &b));
    group0_configure(a, MANY, 1, 1);
    group0_configure(b, MANY, 1, 1);
    assert_ok(schema_apply(a, text, &outcome, NULL));
    assert_int_equal(group0_building(a)->tasks.left, MANY * MANY);
    uint64_t from, ids[64], finishing = UINT64_MAX;
    struct group0_command command = {.kind = GROUP0_FINISHED, .ids = ids, .id_count = 64};
    for (uint64_t round = 0; round < 5;
         round++) { /* the best of them counts: the machine may do other things */
        for (uint64_t i = 0; i < 64; i++)
            ids[i] = 1 + 64 * round + i;
        from = thread_ns();
        assert_ok(views_command(a, &command, &outcome, NULL));
        uint64_t took = thread_ns() - from;
        finishing = took < finishing ? took : finishing;
    }
    size_t before = memory.live_bytes;
    command = (struct group0_command){.kind = GROUP0_VIEW_PAUSE, .paused = true, .name = text_bytes("p.v7")};
    assert_ok(views_command(a, &command, &outcome, NULL));
    assert_int_equal(outcome, GROUP0_CHANGED);
    size_t list = memory.live_bytes - before;
    arena_init(&arena, NULL, 4096);
    assert_ok(group0_snapshot(a, &arena, &snapshot));
    from = thread_ns();
    assert_ok(group0_restore(b, snapshot, NULL));
    uint64_t opening = thread_ns() - from;
    assert_same(a, b);
    print_message("# %" PRIu64 " us to finish 64 tasks, %" PRIu64
                  " us to open, %zu bytes of memory, %zu a list\n",
                  finishing / PAWL_MICROSECOND, opening / PAWL_MICROSECOND, memory.live_bytes, list);
    assert_true(finishing < (TEST_SANITIZED ? 20 : 1) * PAWL_MILLISECOND);
    assert_true(opening < (TEST_SANITIZED ? 20 : 1) * PAWL_SECOND);
    assert_true(memory.live_bytes_max < (size_t)200 << 20);
    assert_true(list < (size_t)64 * MANY);
    arena_release(&arena);
    group0_free(a);
    group0_free(b);
    test_alloc_release(&memory);
}

TEST(snapshot_and_restore_survive_every_failed_allocation)
{
    struct group0 *a = opened(NULL);
    struct arena arena;
    pawl_bytes snapshot;
    arena_init(&arena, NULL, 4096);
    for (int i = 0; i < 11; i++)
        assert_true(step(a, i));
    assert_ok(group0_snapshot(a, &arena, &snapshot));
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        test_alloc_init(&memory);
        struct group0 *b = opened(&memory.allocator);
        struct arena own;
        pawl_bytes again;
        arena_init(&own, &memory.allocator, 1);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        int status = group0_restore(b, snapshot, NULL);
        if (status == PAWL_OK)
            status = group0_snapshot(b, &own, &again);
        bool failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        arena_release(&own);
        group0_free(b);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
    arena_release(&arena);
    group0_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(what_is_restored_at_any_point_goes_on_as_it_would_have),
        RUN(a_view_means_what_it_meant_when_it_was_made),
        RUN(a_snapshot_that_was_cut_or_changed_is_refused),
        RUN(a_changed_bit_with_a_right_checksum_is_refused_or_gives_a_sound_state),
        RUN(a_snapshot_of_another_number_of_partitions_is_refused),
        RUN(a_million_tasks_are_small_and_soon_opened),
        RUN(a_million_tasks_of_many_views_are_cheap_too),
        RUN(snapshot_and_restore_survive_every_failed_allocation),
    };
    return TEST_MAIN(tests);
}

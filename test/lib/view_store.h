/* test/lib/view_store.h: a store in memory with records and their views, for tests of what keeps views current.
 *
 * Rows are put as whoever applies events puts them: the watch is told, then the row is put. Every commit is
 * checked (T1). */
#ifndef TEST_LIB_VIEW_STORE_H
#define TEST_LIB_VIEW_STORE_H

#include "adapter/mem/store.h"
#include "core/view/slice.h"
#include "core/view/tables.h"
#include "test/lib/alloc.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"
#include "test/lib/views.h"

#define BED_PARTITIONS 2

static const char bed_schema[] =
    "{'schema': 1, 'package': 'p',"
    "'types': {'T': {'kind': 'CDoc', 'fields': {'a': {'type': 'int64'}, 'b': {'type': 'string'}, 'c': {'type': "
    "'int64'}}}},"
    "'commands': {'Do': {'records': ['T']}},"
    "'entities': {'E': {'key': ['k'], 'fields': {'k': {'type': 'string'}, 'n': {'type': 'int64'}}}},"
    "'projectors': {'q': {'on': ['Do'], 'do': [{'upsert': 'E', 'key': {'k': '`x`'}, 'set': {'n': '1'}}]}}}";

struct view_bed {
    struct test_alloc alloc;
    mem_store_disk *disk;
    pawl_store *store;
    struct group0 *group0;
    struct view_tables tables;
    bool removing; /* rows of dropped views may be there */
};

static inline void view_bed_open_tables(struct view_bed *bed)
{
    assert_ok(mem_store_open(bed->disk, &(struct mem_store_options){.name = "state"}, NULL, &bed->store, NULL));
    view_tables_init(&bed->tables, bed->store,
                     (struct partition_set){.first = 0, .step = 1, .count = BED_PARTITIONS}, BED_PARTITIONS,
                     &bed->alloc.allocator);
}

static inline void view_bed_open(struct view_bed *bed)
{
    enum group0_outcome outcome;
    *bed = (struct view_bed){0};
    test_alloc_init(&bed->alloc);
    assert_ok(mem_store_disk_new(NULL, &bed->disk));
    assert_ok(group0_new(NULL, &bed->group0));
    group0_configure(bed->group0, BED_PARTITIONS, 1, 1);
    assert_ok(schema_apply(bed->group0, bed_schema, &outcome, NULL));
    view_bed_open_tables(bed);
}

static inline void view_bed_close(struct view_bed *bed)
{
    view_tables_release(&bed->tables);
    mem_store_disk_free(bed->disk);
    group0_free(bed->group0);
    test_alloc_release(&bed->alloc);
}

static inline const struct view_list *view_bed_list(const struct view_bed *bed)
{
    return group0_building(bed->group0)->views;
}

static inline bool view_bed_right(struct view_bed *bed)
{
    static const uint16_t which[] = {0, 1};
    pawl_reader *reader;
    assert_ok(pawl_store_snapshot(bed->store, &reader));
    bool right = views_are_right(reader, view_bed_list(bed), group0_schema(bed->group0), BED_PARTITIONS, which,
                                 2, bed->removing);
    pawl_store_release(bed->store, reader);
    return right;
}

static inline int view_bed_try_commit(struct view_bed *bed)
{
    int status = view_tables_flush(&bed->tables);
    if (status == PAWL_OK)
        status = pawl_store_commit(bed->store);
    if (status == PAWL_OK) {
        view_tables_committed(&bed->tables);
        return status;
    }
    pawl_store_abort(bed->store);
    view_tables_aborted(&bed->tables);
    return status;
}

static inline void view_bed_commit(struct view_bed *bed)
{
    assert_ok(view_bed_try_commit(bed));
    assert_true(view_bed_right(bed));
}

static inline void view_bed_abort(struct view_bed *bed)
{
    pawl_store_abort(bed->store);
    view_tables_aborted(&bed->tables);
}

static inline int view_bed_refresh(struct view_bed *bed)
{
    return view_tables_refresh(&bed->tables, view_bed_list(bed), group0_schema(bed->group0), NULL);
}

/* A view, known to the store. Returns its table. */
static inline uint32_t view_bed_create(struct view_bed *bed, const struct view_text *text)
{
    enum group0_outcome outcome;
    assert_ok(views_create(bed->group0, text, &outcome, NULL));
    assert_ok(view_bed_refresh(bed));
    view_bed_commit(bed);
    return view_table(group0_building(bed->group0)->number, 0);
}

static inline uint32_t view_bed_base(const struct view_bed *bed)
{
    return schema_type_by_name(group0_schema(bed->group0), text_bytes("p.T"))->table;
}

/* A record of T. a, c: INT64_MIN is null; b: NULL is null. */
struct view_bed_row {
    uint64_t wsid;
    uint64_t id;
    int64_t a;
    const char *b;
    int64_t c;
    bool inactive;
    bool removed;
};

static inline struct value view_bed_integer(int64_t integer)
{
    if (integer == INT64_MIN)
        return (struct value){.type = VALUE_NULL};
    return (struct value){.type = VALUE_INT64, .integer = integer};
}

static inline pawl_bytes view_bed_value(const struct view_bed_row *row, uint8_t *room, size_t size)
{
    struct value values[] = {view_bed_integer(row->a),
                             row->b ? (struct value){.type = VALUE_STRING, .bytes = text_bytes(row->b)}
                                    : (struct value){.type = VALUE_NULL},
                             view_bed_integer(row->c)};
    size_t bytes;
    assert_ok(row_size(values, 3, &bytes));
    assert_true(RECORD_BYTES + bytes <= size);
    struct record_row head = {.active = !row->inactive, .type = 300};
    record_head_write(&head, room);
    row_write(values, 3, room + RECORD_BYTES);
    return (pawl_bytes){room, RECORD_BYTES + bytes};
}

static inline int view_bed_try_put(struct view_bed *bed, const struct view_bed_row *row)
{
    uint8_t key_room[KEY_NUMBERED], room[4096];
    pawl_bytes key = key_numbered(view_bed_base(bed), row->wsid, row->id, key_room);
    pawl_bytes value = {0};
    if (!row->removed)
        value = view_bed_value(row, room, sizeof room);
    struct put_watch *watch = view_tables_watch(&bed->tables);
    int status = watch ? watch->put(watch, bed->store, key, NULL, value) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    status = value.data ? pawl_store_put(bed->store, STATE_SPACE, key, value)
                        : pawl_store_remove(bed->store, STATE_SPACE, key);
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

static inline void view_bed_put(struct view_bed *bed, const struct view_bed_row *row)
{
    assert_ok(view_bed_try_put(bed, row));
}

/* Random rows of few keys, so that they meet. */
static inline void view_bed_put_random(struct view_bed *bed, uint64_t *random)
{
    static const char *const texts[] = {NULL, "", "x", "y", "longer"};
    uint64_t kind = test_below(random, 8);
    view_bed_put(bed,
                 &(struct view_bed_row){.wsid = 1 + test_below(random, 12),
                                        .id = 1 + test_below(random, 20),
                                        .a = test_below(random, 9) ? (int64_t)test_below(random, 6) : INT64_MIN,
                                        .b = texts[test_below(random, 5)],
                                        .c = (int64_t)test_below(random, 3),
                                        .inactive = kind == 0,
                                        .removed = kind < 3});
}

#endif

#include "test/sim/views_sim.h"

#include "base/bytes.h"

void check_coverage(struct sim *sim, struct node *node, bool all)
{
    for (uint32_t i = 0; i < sim->shards; i++) {
        struct view_tables *t = &node->shards[i].tables;
        for (size_t k = 0; k < t->count; k++)
            for (size_t p = 0; p < t->set.count; p++) {
                const struct view_table *table = &t->tables[k];
                struct kept_state *kept = view_tables_state(t, table->table, partition_set_at(&t->set, p));
                assert_non_null(kept);
                assert_true(kept->state.complete || !(table->built || (all && !table->failed)));
            }
    }
}

/* One view in one partition of one store. */
struct comparison {
    struct view_tables *tables;
    const struct view_table *table;
    const struct view_state *state;
    uint64_t rows, failed, stored, equal;
    pawl_digest digest;
    uint8_t
        before[KEY_WORKSPACE + VIEW_KEY_BYTES_MAX]; /* the fields of the row before; and whether it counts */
    size_t before_size;
    bool before_null;
};

/* What the base says must be there. */
static bool expect_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct comparison *c = arg;
    struct view_row row;
    pawl_bytes stored;
    if (!coverage_has(&c->state->coverage, key))
        return true;
    assert_ok(view_evaluate(c->table->view, key, value, &c->tables->is, &row, NULL));
    c->failed += row.failed;
    if (!row.there)
        return true;
    c->rows++;
    assert_ok(pawl_store_get(pawl_store_writer(c->tables->store), VIEW_SPACE, row.key, &stored));
    assert_int_equal(stored.size, row.value.size);
    assert_memory_equal(stored.data, row.value.data, stored.size);
    return true;
}

/* What is there. */
static bool sum_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct comparison *c = arg;
    pawl_bytes own, row;
    bool has_null;
    assert_ok(view_row_read(key, value, &own, &row, &has_null));
    size_t fields = key.size - own.size;
    c->stored++;
    pawl_digest_add(&c->digest, key, value);
    c->equal +=
        !has_null && !c->before_null && fields == c->before_size && memcmp(key.data, c->before, fields) == 0;
    memcpy(c->before, key.data, fields);
    c->before_size = fields;
    c->before_null = has_null;
    return true;
}

static void compare(struct sim *sim, struct view_tables *t, const struct view_table *table, uint16_t partition)
{
    uint8_t from[KEY_TOKEN], to[KEY_TOKEN];
    const struct kept_state *kept = view_tables_state(t, table->table, partition);
    assert_non_null(kept);
    struct comparison c = {.tables = t, .table = table, .state = &kept->state};
    pawl_reader *reader = pawl_store_writer(t->store);
    pawl_range base = view_partition_range(sim->partitions, partition, STATE_SPACE, table->base, from, to);
    assert_ok(pawl_store_scan(reader, base, false, expect_row, &c));
    pawl_range rows = view_partition_range(sim->partitions, partition, VIEW_SPACE, table->table, from, to);
    assert_ok(pawl_store_scan(reader, rows, false, sum_row, &c));
    assert_int_equal(c.stored, c.rows);
    assert_int_equal(kept->state.failed, c.failed);
    assert_int_equal(kept->state.digest.rows, c.digest.rows);
    assert_int_equal(kept->state.digest.low, c.digest.low);
    assert_int_equal(kept->state.digest.high, c.digest.high);
    if (table->view->unique)
        assert_int_equal(kept->state.equal, c.equal);
}

static bool is_known(void *arg, pawl_bytes key, pawl_bytes value)
{
    assert_non_null(view_tables_find(arg, key_table(key)));
    return true;
}

static void remove_what_is_nobodys(struct view_tables *t)
{
    bool more = true;
    while (more) {
        assert_ok(view_tables_remove_piece(t, 16, &more));
        assert_ok(view_tables_flush(t));
        assert_ok(pawl_store_commit(t->store));
        view_tables_committed(t);
    }
    uint8_t from[KEY_TABLE];
    put_u32_sorted(from, VIEW_TABLE_BIT);
    pawl_range all = {.space = VIEW_SPACE, .from = {from, sizeof from}};
    assert_ok(pawl_store_scan(pawl_store_writer(t->store), all, false, is_known, t));
}

void check_rows(struct sim *sim, struct node *node)
{
    for (uint32_t i = 0; i < sim->shards; i++) {
        struct view_tables *t = &node->shards[i].tables;
        for (size_t k = 0; k < t->count; k++)
            for (size_t p = 0; p < t->set.count; p++)
                compare(sim, t, &t->tables[k], partition_set_at(&t->set, p));
        remove_what_is_nobodys(t);
    }
}

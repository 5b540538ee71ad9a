/* Whether events and rows are what the model says. */
#include "base/bytes.h"
#include "base/id.h"
#include "core/schema/row.h"
#include "core/sequence/storage.h"
#include "core/state/key.h"
#include "test/lib/test.h"
#include "test/sim/commands_model_impl.h"

static void assert_values(const struct model_value *expected, const struct schema_type *type, pawl_bytes bytes)
{
    struct row row;
    assert_ok(row_open(type->fields, type->field_count, bytes, &row, NULL));
    for (size_t i = 0; i < type->field_count; i++) {
        struct value found = row_get(row, i, type->fields[i].type);
        struct model_value value = model_value_of(&found);
        assert_int_equal(value.type, expected[i].type);
        assert_int_equal(value.number, expected[i].number);
        assert_int_equal(value.size, expected[i].size);
        assert_memory_equal(value.text, expected[i].text, sizeof value.text);
    }
}

/* --- events --- */

static void check_numbers(const struct event *event, uint16_t seq, uint64_t before, uint64_t after,
                          uint64_t first)
{
    struct event_numbers taken = event_numbers_of(event, seq);
    uint64_t next = before ? before + 1 : first;
    assert_int_equal(taken.count, after == before ? 0 : after - next + 1);
    if (taken.count)
        assert_int_equal(taken.first, next);
}

void model_check_event(struct model *m, const struct request *r, const struct model_plan *plan,
                       const struct schema *schema, const struct event *event)
{
    const struct model_workspace none = {0}, *w = model_find(m, r->wsid);
    w = w ? w : &none;
    assert_int_equal(event->envelope.wsid, r->wsid);
    assert_int_equal(event->head.command, r->command);
    assert_int_equal(event->head.object_count, r->object_count);
    assert_int_equal(event->head.argument_count, r->argument_count);
    assert_int_equal(event->head.record, plan->rec);
    struct event_numbers offset = event_numbers_of(event, SEQ_WLOG_OFFSET);
    assert_int_equal(offset.first, w->event_count + 1);
    assert_int_equal(offset.count, 1);
    check_numbers(event, SEQ_REC_ID, w->rec, plan->rec, RECORD_FIRST);
    check_numbers(event, SEQ_CREC_ID, w->crec, plan->crec, RECORD_FIRST);
    for (int s = 1; s < MODEL_SEQUENCES; s++)
        check_numbers(event, schema_name_id(schema, text_bytes(model_sequences[s].name)), w->numbers[s],
                      plan->numbers[s], model_sequences[s].first);
    struct event_object object;
    for (size_t cursor = 0, i = 0; event_next(event, &cursor, &object); i++) {
        const struct model_record *planned = &plan->objects[i];
        assert_int_equal(object.id, planned->id);
        assert_int_equal(object.parent, planned->parent);
        assert_int_equal(object.type, m->type_ids[planned->type]);
        assert_int_equal(object.op, record_is_raw(r->objects[i].id) ? EVENT_CREATE : EVENT_UPDATE);
        assert_values(planned->values, schema_type_by_id(schema, object.type), object.row);
    }
}

/* --- the state --- */

struct comparing {
    struct model *model;
    const struct schema *schema;
    size_t rows;
};

static void compare_total(const struct model_workspace *w, const struct schema_type *type, pawl_bytes value)
{
    struct row row;
    assert_ok(row_open(type->fields, type->field_count, value, &row, NULL));
    struct value customer = row_get(row, 0, VALUE_REF);
    for (size_t i = 0; i < w->total_count; i++) {
        const struct model_total *t = &w->totals[i];
        if (t->customer != customer.id)
            continue;
        const struct model_value expected[] = {
            {.type = VALUE_REF, .number = (int64_t)t->customer}, t->orders, t->cents, t->label};
        assert_values(expected, type, value);
        return;
    }
    fail_msg("the state has a total that the model has not");
}

static void compare_record(const struct model *m, const struct model_workspace *w,
                           const struct schema_type *type, uint64_t id, pawl_bytes value)
{
    struct record_row row = {0};
    assert_true(record_row_read(value, &row));
    const struct model_record *record = model_find_record(w, model_type_of(m, type->id), id);
    assert_non_null(record);
    assert_int_equal(row.active, record->active);
    assert_int_equal(row.type, type->id);
    assert_int_equal(row.parent, record->parent);
    assert_int_equal(row.container, record->container);
    assert_values(record->values, type, row.row);
}

static bool compare_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct comparing *c = arg;
    uint32_t table = key_table(key);
    const uint8_t *at = key.data;
    if (table == TABLE_PARTITION)
        return true;
    c->rows++;
    const struct model_workspace *w = model_find(c->model, get_u64_sorted(at + 12));
    assert_non_null(w);
    assert_int_equal(get_u64_sorted(at + 4), hash_token(w->wsid));
    if (table == TABLE_WORKSPACE) {
        struct workspace_row row = {0};
        assert_true(workspace_row_read(value, &row));
        assert_int_equal(row.kind, c->model->kind_ids[w->kind]);
        assert_int_equal(row.frozen, w->frozen);
        return true;
    }
    if (table == TABLE_WLOG) {
        struct wlog_row row = {0};
        uint64_t offset = get_u64_sorted(at + KEY_WORKSPACE);
        assert_true(offset >= 1 && offset <= w->event_count);
        const struct model_event *e = &w->events[offset - 1];
        assert_true(wlog_row_read(value, &row));
        assert_int_equal(row.plog_offset, e->offset);
        assert_int_equal(row.record, e->record);
        assert_int_equal(row.key_hash, e->key[0] ? idempotency_hash(text_bytes(e->key)) : 0);
        return true;
    }
    for (size_t i = 0; i < c->schema->type_count; i++) {
        const struct schema_type *type = &c->schema->types[i];
        if (type->table != table)
            continue;
        if (type->kind == TYPE_ENTITY)
            compare_total(w, type, value);
        else
            compare_record(c->model, w, type, get_u64_sorted(at + KEY_WORKSPACE), value);
        return true;
    }
    fail_msg("a row of table %u, which no type has", table);
    return false;
}

void model_check_state(struct model *m, const struct schema *schema, pawl_reader *reader)
{
    struct comparing c = {.model = m, .schema = schema};
    size_t rows = 0;
    assert_ok(pawl_store_scan(reader, (pawl_range){.space = STATE_SPACE}, false, compare_row, &c));
    for (size_t i = 0; i < m->workspace_count; i++)
        rows += 1 + m->workspaces[i].event_count + m->workspaces[i].record_count + m->workspaces[i].total_count;
    assert_int_equal(c.rows, rows);
}

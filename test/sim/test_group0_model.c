/* A package that grows at random and is written in another order each time: what has a number keeps it, rows
 * stay readable, old schemas stay what they were, and another node that sees the same commands has the same
 * state. */
#include "base/bytes.h"
#include "core/schema/row.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

#define TYPES  12
#define FIELDS 20
#define STEPS  40

static const char *const kinds[] = {"CDoc", "WDoc", "ODoc", "CRecord"};
static const char *const types[] = {"int64", "string", "bool", "ref", "float64"};

struct model_type {
    const char *kind;
    bool singleton;
    size_t fields;
    const char *field_types[FIELDS];
    int places[FIELDS]; /* -1: not seen yet */
    struct schema_name name;
    uint8_t row[1024]; /* written under the schema in which the type was new */
    size_t row_size;
    size_t row_fields;
};

struct model {
    struct model_type types[TYPES];
    size_t count;
    size_t projectors; /* as many as there are, each on its own command */
    uint64_t seed;
};

static void grow(struct model *m)
{
    if (m->count < TYPES && (m->count == 0 || test_below(&m->seed, 3) == 0)) {
        struct model_type *t = &m->types[m->count++];
        *t = (struct model_type){.kind = kinds[test_below(&m->seed, 4)]};
        t->singleton = (t->kind == kinds[0] || t->kind == kinds[1]) && test_below(&m->seed, 4) == 0;
    }
    for (size_t n = test_below(&m->seed, 4); n > 0; n--) {
        struct model_type *t = &m->types[test_below(&m->seed, m->count)];
        if (t->fields == FIELDS)
            continue;
        t->places[t->fields] = -1;
        t->field_types[t->fields++] = types[test_below(&m->seed, 5)];
    }
    m->projectors = test_below(&m->seed, 5);
}

static void shuffle(struct model *m, size_t *order, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t k = test_below(&m->seed, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
}

struct text {
    char bytes[1 << 16];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(t->bytes + t->used, sizeof t->bytes - t->used, format, args);
    va_end(args);
    assert_true(length >= 0 && (size_t)length < sizeof t->bytes - t->used);
    t->used += (size_t)length;
}

static void write_package(struct model *m, struct text *t)
{
    size_t order[TYPES], fields[FIELDS];
    t->used = 0;
    say(t, "{'schema': 1, 'package': 'm', 'types': {");
    shuffle(m, order, m->count);
    for (size_t i = 0; i < m->count; i++) {
        const struct model_type *type = &m->types[order[i]];
        say(t, "%s'T%zu': {'kind': '%s', 'singleton': %s, 'fields': {", i ? ", " : "", order[i], type->kind,
            type->singleton ? "true" : "false");
        shuffle(m, fields, type->fields);
        for (size_t k = 0; k < type->fields; k++)
            say(t, "%s'f%zu': {'type': '%s'}", k ? ", " : "", fields[k], type->field_types[fields[k]]);
        say(t, "}}");
    }
    say(t, "}, 'commands': {'Do': {}}, 'entities': {");
    for (size_t i = 0; i < 5; i++)
        say(t, "%s'E%zu': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'v': {'type': 'int64'}}}",
            i ? ", " : "", i);
    say(t, "}, 'projectors': {");
    for (size_t i = 0; i < m->projectors; i++)
        say(t, "%s'p%zu': {'on': ['Do'], 'do': [{'update': 'E%zu', 'set': {'v': '%" PRIu64 "'}}]}",
            i ? ", " : "", i, i, test_below(&m->seed, 2));
    say(t, "}}");
}

static struct value value_of(const struct schema_field *field, size_t i)
{
    struct value v = {.type = field->type};
    switch (field->type) {
    case VALUE_INT64: v.integer = (int64_t)i; break;
    case VALUE_STRING: v.bytes = text_bytes("text"); break;
    case VALUE_BOOL: v.boolean = true; break;
    case VALUE_REF: v.id = i + 1; break;
    case VALUE_FLOAT64: v.real = (double)i; break;
    default: fail();
    }
    return v;
}

static void write_row(struct model_type *m, const struct schema_type *type)
{
    struct value values[FIELDS];
    for (size_t i = 0; i < type->field_count; i++)
        values[i] = value_of(&type->fields[i], i);
    assert_ok(row_size(values, type->field_count, &m->row_size));
    assert_true(m->row_size <= sizeof m->row);
    row_write(values, type->field_count, m->row);
    m->row_fields = type->field_count;
}

static void read_row(const struct model_type *m, const struct schema_type *type)
{
    struct row row;
    assert_ok(row_open(type->fields, type->field_count, (pawl_bytes){m->row, m->row_size}, &row, NULL));
    for (size_t i = 0; i < type->field_count; i++) {
        struct value v = row_get(row, i, type->fields[i].type);
        assert_int_equal(v.type, i < m->row_fields ? type->fields[i].type : VALUE_NULL);
        if (v.type == VALUE_INT64)
            assert_int_equal(v.integer, i);
    }
}

static void compare(struct model *m, const struct schema *schema)
{
    for (size_t i = 0; i < m->count; i++) {
        struct model_type *t = &m->types[i];
        char name[16], field[16];
        snprintf(name, sizeof name, "m.T%zu", i);
        const struct schema_name *now = schema_name_by_text(schema, text_bytes(name));
        const struct schema_type *type = schema_type_by_name(schema, text_bytes(name));
        assert_non_null(type);
        if (t->name.id == 0) {
            t->name = *now;
            write_row(t, type);
        }
        assert_int_equal(now->id, t->name.id);
        assert_int_equal(type->table, t->name.table);
        assert_int_equal(type->singleton, t->name.singleton);
        assert_int_equal(type->table != 0, t->kind != kinds[2]);
        assert_int_equal(type->singleton != 0, t->singleton);
        assert_int_equal(type->field_count, t->fields);
        for (size_t k = 0; k < t->fields; k++) {
            snprintf(field, sizeof field, "f%zu", k);
            int place = schema_field_place(type, text_bytes(field));
            if (t->places[k] < 0)
                t->places[k] = place;
            assert_int_equal(place, t->places[k]);
        }
        read_row(t, type);
    }
    for (size_t i = 0; i < schema->projector_count; i++)
        assert_true(schema->projectors[i].lane >= 1);
    assert_int_equal(schema->lane_count, m->projectors);
}

static void run(uint64_t seed)
{
    static struct model m;
    static struct text text;
    struct group0 *a, *b;
    struct hash128 digests[STEPS + 1];
    size_t names[STEPS + 1];
    m = (struct model){.seed = seed};
    assert_ok(group0_new(NULL, &a));
    assert_ok(group0_new(NULL, &b));
    for (size_t step = 1; step <= STEPS; step++) {
        enum group0_outcome one, other;
        pawl_error error = {0};
        grow(&m);
        write_package(&m, &text);
        int status = schema_apply(a, text.bytes, &one, &error);
        if (status)
            print_error("%s\n%s\n", error.text, text.bytes);
        assert_ok(status);
        compare(&m, group0_schema(a));
        assert_ok(schema_apply(b, text.bytes, &other, &error));
        digests[step] = group0_digest(a);
        names[step] = group0_schema(a)->name_count;
        assert_int_equal(one, other);
        assert_int_equal(digests[step].low, group0_digest(b).low);
        assert_int_equal(digests[step].high, group0_digest(b).high);
        for (size_t back = 1; back <= step; back++)
            assert_int_equal(group0_schema_at(a, back)->name_count, names[back]);
    }
    group0_free(a);
    group0_free(b);
}

TEST(a_growing_package_keeps_its_numbers)
{
    uint64_t seed = test_seed(1);
    for (int i = 0; i < 50; i++)
        run(test_random(&seed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(a_growing_package_keeps_its_numbers)};
    return TEST_MAIN(tests);
}

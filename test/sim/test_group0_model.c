/* A package that grows at random and is written in another order each time, and lanes that are rebuilt and
 * switched meanwhile: what has a number keeps it, rows stay readable, generations are as one would count them
 * by hand, old schemas stay what they were, and another node that sees the same commands has the same state. */
#include "base/bytes.h"
#include "core/schema/row.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

#define TYPES  12
#define FIELDS 20
#define LANES  5
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

/* The lane of one projector. */
struct model_lane {
    uint16_t id; /* 0: there never was one */
    bool present;
    uint64_t value; /* what the projector sets */
    uint32_t generation;
    uint64_t born;
    uint32_t serving;
};

struct model {
    struct model_type types[TYPES];
    size_t count;
    size_t projectors; /* as many as there are, each with an entity of its own */
    uint64_t values[LANES];
    struct model_lane lanes[LANES];
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
    m->projectors = test_below(&m->seed, LANES + 1);
    for (size_t i = 0; i < LANES; i++)
        m->values[i] = test_below(&m->seed, 2);
}

static void begin_generation(struct model_lane *lane, uint64_t position)
{
    lane->generation++;
    lane->born = position;
    if (lane->generation == 1)
        lane->serving = 1;
}

static void settle_lanes(struct model *m, uint64_t position)
{
    for (size_t i = 0; i < LANES; i++) {
        struct model_lane *lane = &m->lanes[i];
        bool present = i < m->projectors;
        if (present && !(lane->present && lane->value == m->values[i]))
            begin_generation(lane, position);
        lane->present = present;
        lane->value = m->values[i];
    }
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
    for (size_t i = 0; i < LANES; i++)
        say(t, "%s'E%zu': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'v': {'type': 'int64'}}}",
            i ? ", " : "", i);
    say(t, "}, 'projectors': {");
    for (size_t i = 0; i < m->projectors; i++)
        say(t, "%s'p%zu': {'on': ['Do'], 'do': [{'update': 'E%zu', 'set': {'v': '%" PRIu64 "'}}]}",
            i ? ", " : "", i, i, m->values[i]);
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
}

static void compare_lanes(struct model *m, const struct schema *schema)
{
    assert_int_equal(schema->lane_count, schema->projector_count);
    for (size_t i = 0; i < LANES; i++) {
        struct model_lane *lane = &m->lanes[i];
        char name[16];
        snprintf(name, sizeof name, "m.p%zu", i);
        const struct schema_lane *now = schema_lane_by_name(schema, text_bytes(name));
        assert_int_equal(now != NULL, lane->present);
        if (now && lane->id == 0)
            lane->id = now->id;
        snprintf(name, sizeof name, "m.E%zu", i);
        const struct schema_type *entity = schema_type_by_name(schema, text_bytes(name));
        assert_int_equal(schema_serving_table(schema, entity), schema_table(entity, lane->serving));
        assert_int_equal(entity->lane, lane->present ? lane->id : 0);
        if (!now)
            continue;
        assert_int_equal(now->id, lane->id);
        assert_int_equal(now->generation, lane->generation);
        assert_int_equal(now->born, lane->born);
        assert_int_equal(now->serving, lane->serving);
        assert_int_equal(now->serving_last == UINT64_MAX, lane->serving == lane->generation);
    }
}

/* By looking at all of them. */
static const struct schema *schema_for(const struct group0 *group0, const struct model_lane *lane,
                                       uint32_t generation, uint64_t event)
{
    const struct schema *found = NULL;
    for (uint64_t position = 1; position <= group0_position(group0); position++) {
        const struct schema *schema = group0_schema_at(group0, position);
        const struct schema_lane *there = schema_lane_by_id(schema, lane->id);
        if (there && there->generation == generation && (!found || schema->position <= event))
            found = schema;
    }
    return found;
}

static void compare_schemas(struct model *m, const struct group0 *group0)
{
    const struct model_lane *lane = &m->lanes[test_below(&m->seed, LANES)];
    uint32_t generation = (uint32_t)test_below(&m->seed, lane->generation + 2u);
    uint64_t event = test_below(&m->seed, group0_position(group0) + 2);
    assert_ptr_equal(group0_schema_for(group0, lane->id, generation, event),
                     schema_for(group0, lane, generation, event));
}

/* A rebuild, or a switch to a generation that may be the newest; on both nodes. */
static void command_lane(struct model *m, struct group0 *a, struct group0 *b, struct model_lane *lane)
{
    enum group0_outcome one = GROUP0_UNCHANGED, other = GROUP0_UNCHANGED, expected = GROUP0_CHANGED;
    uint64_t position = group0_position(a) + 1, offset = test_random(&m->seed);
    uint32_t generation = lane->generation - (uint32_t)test_below(&m->seed, 2);
    int status, again, fine = PAWL_OK;
    if (test_below(&m->seed, 2)) {
        status = lane_rebuild(a, lane->id, &one, NULL);
        again = lane_rebuild(b, lane->id, &other, NULL);
        if (lane->present)
            begin_generation(lane, position);
    } else {
        status = lane_switch(a, lane->id, generation, offset, &one, NULL);
        again = lane_switch(b, lane->id, generation, offset, &other, NULL);
        if (generation == lane->serving)
            expected = GROUP0_UNCHANGED;
        else if (generation != lane->generation)
            fine = PAWL_EINVAL;
        else if (lane->present)
            lane->serving = generation;
    }
    if (!lane->present)
        fine = PAWL_EINVAL;
    assert_status(status, fine);
    assert_status(again, fine);
    if (fine == PAWL_OK)
        assert_int_equal(one, expected);
    assert_int_equal(one, other);
}

static void run(uint64_t seed)
{
    static struct model m;
    static struct text text;
    struct group0 *a, *b;
    uint64_t positions[STEPS + 1];
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
        settle_lanes(&m, group0_position(a));
        compare(&m, group0_schema(a));
        assert_ok(schema_apply(b, text.bytes, &other, &error));
        assert_int_equal(one, other);
        positions[step] = group0_position(a);
        names[step] = group0_schema(a)->name_count;
        compare_lanes(&m, group0_schema(a));
        for (uint64_t n = test_below(&m.seed, 4); n > 0; n--) {
            struct model_lane *lane = &m.lanes[test_below(&m.seed, LANES)];
            if (lane->id)
                command_lane(&m, a, b, lane);
            compare_lanes(&m, group0_schema(a));
            compare_schemas(&m, a);
        }
        assert_int_equal(group0_digest(a).low, group0_digest(b).low);
        assert_int_equal(group0_digest(a).high, group0_digest(b).high);
        for (size_t back = 1; back <= step; back++)
            assert_int_equal(group0_schema_at(a, positions[back])->name_count, names[back]);
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

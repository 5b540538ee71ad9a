/* Random schemas: a few entities and projectors in one or two lanes, and events for them. */
#include "test/lib/schema.h"
#include "test/sim/lanes.h"

static void say(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct sim *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int size = vsnprintf(s->text + s->text_size, sizeof s->text - s->text_size, format, args);
    va_end(args);
    s->text_size += (size_t)size;
    assert_true(s->text_size < sizeof s->text);
}

/* Values stay small: what overflows would fail for ever. */
#define SMALL(z) "(" z ") - (" z ") / 1000 * 1000"

static const char *some_set(struct sim *s)
{
    static const char *const sets[] = {
        "'x': '" SMALL("coalesce(x, 0) * 3 + $event.argument.by") "'",
        "'y': '$event.offset'",
        "'x': 'coalesce(y, 0) - coalesce(x, 0)', 'y': 'coalesce(x, 0)'",
        "'y': '" SMALL("coalesce(y, 0) + 1") "', 's': '$event.actor'",
        "'x': '$event.argument.by', 'y': 'null'",
        "'s': 'coalesce(s, `a`)', 'x': '" SMALL("coalesce(x, 1) + coalesce(y, 1)") "'",
        "'x': '60 / (coalesce(x, 0) - 7)'",
        "'y': '$event.argument.by / (coalesce(y, 1) - $event.argument.k)'",
    };
    return sets[below(s, below(s, 3) ? 6 : 8)];
}

static const char *some_where(struct sim *s)
{
    static const char *const clauses[] = {
        "k = $event.argument.k",
        "x > $event.argument.by",
        "y = $event.argument.by or x is null",
        "x = 123456",
        "k >= 0",
        "s = `a`",
        "x > 500 and y < 500",
        "12 / (x - 5) > 1",
    };
    return clauses[below(s, below(s, 4) ? 7 : 8)];
}

/* What is chosen is chosen in statements of its own: compilers evaluate arguments in whichever order. */
static void say_update(struct sim *s, unsigned entity, const char *where)
{
    say(s, "{'update': 'E%u', ", entity);
    if (where)
        say(s, "'where': '%s', ", where);
    say(s, "'set': {%s}}", some_set(s));
}

static void say_upsert(struct sim *s, unsigned entity, const char *key)
{
    say(s, "{'upsert': 'E%u', 'key': {'k': '%s'}, 'set': {%s}}", entity, key, some_set(s));
}

static void say_action(struct sim *s, unsigned entity, bool quick)
{
    uint64_t way = quick ? 0 : below(s, 8);
    if (way < 2)
        say_upsert(s, entity, below(s, 3) ? "$event.argument.k" : "$event.argument.k + 1");
    else if (way < 6)
        say_update(s, entity, below(s, 8) ? some_where(s) : NULL);
    else if (below(s, 12))
        say(s, "{'delete': 'E%u', 'where': '%s'}", entity, some_where(s));
    else
        say(s, "{'delete': 'E%u'}", entity);
}

/* An entity of this lane. */
static unsigned some_entity(struct sim *s, unsigned lane)
{
    unsigned entity = (unsigned)below(s, s->entities);
    while (s->entity_lane[entity] != lane)
        entity = (entity + 1) % s->entities;
    return entity;
}

static void say_on(struct sim *s)
{
    uint64_t which = 1 + below(s, (1 << (COMMANDS - 1)) - 1);
    const char *between = "";
    say(s, "'on': [");
    for (unsigned c = 0; c + 1 < COMMANDS; c++)
        if (which >> c & 1) {
            say(s, "%s'C%u'", between, c);
            between = ", ";
        }
    say(s, "], ");
}

static void say_policy(struct sim *s)
{
    if (below(s, 2))
        say(s, ", 'on_failure': 'void'");
    if (below(s, 2))
        say(s, ", 'max_attempts': %u", (unsigned)(1 + below(s, 3)));
}

static void say_handler(struct sim *s, struct sim_projector *p)
{
    p->kind = (enum handler_kind)below(s, HANDLER_KINDS);
    p->reads = some_entity(s, p->lane);
    p->writes = some_entity(s, p->lane);
    say(s, "'writes': [");
    const char *between = "";
    for (unsigned e = 0; e < s->entities; e++)
        if (s->entity_lane[e] == p->lane) {
            say(s, "%s'E%u'", between, e);
            between = ", ";
        }
    say(s, "]");
}

static void say_projector(struct sim *s, unsigned number)
{
    struct sim_projector *p = &s->projectors[number];
    p->lane = number < s->lanes ? number : (unsigned)below(s, s->lanes);
    p->handler = below(s, 2) == 0;
    say(s, "'p%u': {'lane': 'l%u', ", number, p->lane);
    say_on(s);
    if (p->handler)
        say_handler(s, p);
    else {
        bool quick = below(s, 3) == 0;
        say(s, "'do': [");
        for (uint64_t n = 1 + below(s, 3); n > 0; n--) {
            say_action(s, some_entity(s, p->lane), quick);
            say(s, "%s", n > 1 ? ", " : "]");
        }
    }
    say_policy(s);
    say(s, "}, ");
}

/* What handlers borrow their expressions from: an update by a clause, a delete, an upsert. */
static void say_lender(struct sim *s, unsigned lane)
{
    say(s, "'lender%u': {'lane': 'l%u', 'on': ['C%u'], 'do': [", lane, lane, COMMANDS - 1);
    unsigned entity = some_entity(s, lane);
    say_update(s, entity, some_where(s));
    say(s, ", {'delete': 'E%u', 'where': 'k = $event.argument.k and x > 300'}, ", some_entity(s, lane));
    say_upsert(s, entity, "$event.argument.k");
    for (unsigned e = 0; e < s->entities; e++) /* so that all of them are filled by the lane */
        if (s->entity_lane[e] == lane)
            say(s, ", {'update': 'E%u', 'set': {'x': 'x + 1'}}", e);
    say(s, "]}%s", lane + 1 < s->lanes ? ", " : "");
}

static const char *const version_fields[] = {"", ", 'z': {'type': 'int64'}"};

static void say_types(struct sim *s, unsigned version)
{
    say(s, "{'schema': 1, 'package': 'sim', 'workspaces': {'w': {}}, 'types': {'Arg': {'kind': 'ODoc', "
           "'fields': {'k': {'type': 'int64'}, 'by': {'type': 'int64'}}}}, 'commands': {");
    for (unsigned c = 0; c < COMMANDS; c++)
        say(s, "%s'C%u': {'argument': 'Arg'}", c ? ", " : "", c);
    say(s, "}, 'entities': {");
    for (unsigned e = 0; e < s->entities; e++)
        say(s,
            "%s'E%u': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'x': {'type': 'int64'}, "
            "'y': {'type': 'int64'}, 's': {'type': 'string'}%s}}",
            e ? ", " : "", e, version_fields[version]);
    say(s, "}, 'projectors': {");
}

void sim_apply_version(struct sim *s, unsigned version)
{
    enum group0_outcome outcome;
    pawl_error error = {0};
    uint64_t random = s->random;
    s->random = s->schema_seed; /* the same projectors again */
    s->text_size = 0;
    say_types(s, version);
    for (unsigned i = 0; i < s->projector_count; i++)
        say_projector(s, i);
    for (unsigned i = 0; i < s->lanes; i++)
        say_lender(s, i);
    say(s, "}}");
    s->random = random;
    int status = schema_apply(s->group0, s->text, &outcome, &error);
    if (status != PAWL_OK)
        print_error("%s\n%s\n", error.text, s->text);
    assert_ok(status);
    s->schema = group0_schema(s->group0);
}

void sim_make_schema(struct sim *s)
{
    s->entities = (unsigned)(1 + below(s, ENTITIES_MAX));
    s->lanes = s->entities > 1 ? (unsigned)(1 + below(s, LANES_MAX)) : 1;
    s->projector_count = s->lanes + (unsigned)below(s, PROJECTORS_MAX - s->lanes + 1);
    for (unsigned e = 0; e < s->entities; e++)
        s->entity_lane[e] = e < s->lanes ? e : (unsigned)below(s, s->lanes);
    s->versions = 1 + (unsigned)below(s, 2);
    s->schema_seed = below(s, UINT64_MAX);
    sim_apply_version(s, 0);
}

/* --- names --- */

const struct schema_type *sim_entity(const struct schema *schema, unsigned entity)
{
    char name[] = "sim.E0";
    name[5] = (char)('0' + entity);
    return schema_type_by_name(schema, text_bytes(name));
}

const struct sim_projector *sim_projector(const struct sim *s, const struct schema *schema,
                                          const struct schema_projector *projector)
{
    return &s->projectors[projector - schema->projectors];
}

const struct schema_projector *sim_lender(const struct schema *schema, unsigned lane)
{
    char name[] = "sim.lender0";
    name[10] = (char)('0' + lane);
    return schema_projector_by_name(schema, text_bytes(name));
}

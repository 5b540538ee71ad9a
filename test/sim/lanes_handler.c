/* What handlers do. They depend on their event and on what they read, and on nothing else. Everything that they
 * write depends on what they read, so a read that did not stand shows in the tables. */
#include "base/bytes.h"
#include "core/schema/row.h"
#include "core/state/key.h"
#include "test/sim/lanes.h"

enum { KEY_ROOM = 64, PLACE_X = 1, PLACE_Y = 2, PLACE_S = 3 };

unsigned handler_steps(const struct sim_projector *projector)
{
    return projector->kind == HANDLER_TWICE ? 2 : 1;
}

static pawl_bytes row_key(const struct schema_type *entity, uint32_t generation, uint64_t wsid, int64_t k,
                          uint8_t key[KEY_ROOM])
{
    struct value value = {.type = VALUE_INT64, .integer = k};
    pawl_bytes bytes = key_of_workspace(schema_table(entity, generation), wsid, key);
    bytes.size += row_key_write(&value, 1, key + bytes.size, KEY_ROOM - bytes.size);
    return bytes;
}

static int64_t field(const struct schema_type *entity, pawl_bytes bytes, size_t place)
{
    struct row row;
    assert_ok(row_open(entity->fields, entity->field_count, bytes, &row, NULL));
    struct value value = row_get(row, place, entity->fields[place].type);
    return value.type == VALUE_INT64 ? value.integer : -3;
}

static int read_row(struct handling *h, const struct schema_type *entity, const struct state *state,
                    struct reads *reads, int64_t k)
{
    uint8_t room[KEY_ROOM];
    pawl_bytes key = row_key(entity, h->site->generation, h->event.wsid, k, room), value;
    int status = reads ? reads_add_row(reads, key) : PAWL_OK;
    if (status == PAWL_OK)
        status = state_get(state, key, &value);
    h->found[h->step] = status == PAWL_OK;
    h->seen[h->step] = h->found[h->step] ? field(entity, value, PLACE_X) : -1;
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

struct adding {
    struct handling *handling;
    const struct schema_type *entity;
};

static bool add_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct adding *a = arg;
    int64_t *sum = &a->handling->seen[0];
    *sum = (*sum * 31 + (int64_t)(hash_checksum(0, key) % 97) + field(a->entity, value, PLACE_X) * 7
            + field(a->entity, value, PLACE_Y) + 1)
           % 100000;
    return true;
}

static int read_range(struct handling *h, const struct schema_type *entity, const struct state *state,
                      struct reads *reads, struct arena *memory)
{
    uint8_t from[KEY_WORKSPACE], end[KEY_WORKSPACE];
    struct adding adding = {.handling = h, .entity = entity};
    uint32_t table = schema_table(entity, h->site->generation);
    pawl_bytes first = key_of_workspace(table, h->event.wsid, from);
    int status = reads ? reads_add_range(reads, table, h->event.wsid) : PAWL_OK;
    h->seen[0] = 0;
    if (status == PAWL_OK)
        status = state_scan(state, first, key_after_prefix(first, end), memory, add_row, &adding);
    return status;
}

int handler_read(struct handling *h, const struct schema *schema, const struct state *state,
                 struct reads *reads, struct arena *memory)
{
    const struct sim_projector *p = h->projector;
    const struct schema_type *entity = sim_entity(schema, h->step == 0 ? p->reads : p->writes);
    int status = p->kind == HANDLER_RANGE ? read_range(h, entity, state, reads, memory)
                                          : read_row(h, entity, state, reads, h->event.k + h->step);
    h->step += status == PAWL_OK;
    return status;
}

/* --- what it wants --- */

static int64_t modulo(int64_t a, int64_t b)
{
    return (a % b + b) % b;
}

bool handler_fails(const struct handling *h)
{
    return modulo(h->seen[0], 13) == 7;
}

static void *take(struct arena *memory, size_t size)
{
    void *taken = arena_take(memory, size);
    assert_non_null(taken);
    return taken;
}

static const struct value *number(struct arena *memory, int64_t value)
{
    struct value *v = take(memory, sizeof *v);
    *v = (struct value){.type = VALUE_INT64, .integer = value};
    return v;
}

/* x and y of one row. */
static struct intent put(const struct handling *h, const struct schema *schema, struct arena *memory,
                         enum action_kind kind, int64_t k, int64_t x, int64_t y)
{
    struct schema_set *sets = take(memory, 2 * sizeof *sets);
    struct value *values = take(memory, 2 * sizeof *values);
    sets[0] = (struct schema_set){.field = PLACE_X};
    sets[1] = (struct schema_set){.field = PLACE_Y};
    values[0] = (struct value){.type = VALUE_INT64, .integer = x};
    values[1] = (struct value){.type = y == 0 ? VALUE_NULL : VALUE_INT64, .integer = y};
    return (struct intent){.kind = kind,
                           .entity = sim_entity(schema, h->projector->writes),
                           .key = number(memory, k),
                           .sets = sets,
                           .values = values,
                           .set_count = 2};
}

static size_t choose(const struct handling *h, const struct schema *schema, struct arena *memory,
                     struct intent *intents)
{
    const struct schema_projector *lender = sim_lender(schema, h->projector->lane);
    int64_t x = h->seen[0];
    if (!h->found[0]) {
        intents[0] = put(h, schema, memory, ACTION_UPSERT, h->event.k, h->event.by, 1);
        intents[1] = intent_of(&lender->actions[0]);
        return 2;
    }
    if (modulo(x, 4) == 0)
        return 0; /* nothing to do */
    if (modulo(x, 4) == 1) {
        intents[0] = (struct intent){.kind = ACTION_DELETE,
                                     .entity = sim_entity(schema, h->projector->reads),
                                     .key = number(memory, h->event.k)};
        return 1;
    }
    intents[0] = intent_of(&lender->actions[modulo(x, 4) - 2]);
    intents[1] = intent_of(&lender->actions[2]);
    return 2;
}

void handler_intents(const struct handling *h, const struct schema *schema, struct arena *memory,
                     const struct intent **ret_intents, size_t *ret_count)
{
    const struct schema_projector *lender = sim_lender(schema, h->projector->lane);
    struct intent *intents = take(memory, 2 * sizeof *intents);
    int64_t sum = h->seen[0] * 7 + h->event.by + (h->projector->kind == HANDLER_TWICE ? h->seen[1] * 3 : 0);
    int64_t k = modulo(sum, (int64_t)h->sim->keys);
    size_t count = 1;
    switch (h->projector->kind) {
    case HANDLER_CHOICE: count = choose(h, schema, memory, intents); break;
    case HANDLER_KEYED:
        intents[0] = intent_of(&lender->actions[0]);
        intents[0].where = NULL;
        intents[0].key = number(memory, k);
        break;
    default:
        intents[0] =
            put(h, schema, memory, h->found[0] && sum % 5 == 0 ? ACTION_UPDATE : ACTION_UPSERT,
                h->projector->kind == HANDLER_ROW ? k : h->event.k, modulo(sum, 1000), modulo(h->seen[0], 9));
    }
    *ret_intents = intents;
    *ret_count = count;
}

/* core/project/operation_derive.c: what a logged operation does to the state.
 *
 * The rows and values are in the operation, so this reads no event and runs no expression; it gives the very
 * bytes that exploding gave. What does not fit the schema or the rows that are there can only come from a wrong
 * log or a wrong state. */
#include <assert.h>

#include "base/bytes.h"
#include "base/error.h"
#include "core/project/explode.h"
#include "core/state/key.h"

struct deriving {
    struct acting acting;
    const struct operation *operation;
    const struct schema *schema;
    const struct schema_type *entity; /* of the write at hand */
    struct value *values;
    enum value_type *key_types;
    uint8_t *key;
    size_t key_room;
};

static int corrupt(struct deriving *d, const char *what)
{
    return error_set(d->acting.error, PAWL_ECORRUPT, "a row of %.*s %s", (int)d->entity->name.size,
                     (const char *)d->entity->name.data, what);
}

static int begin_write(struct deriving *d, const struct operation_write *write)
{
    const struct schema_type *entity = schema_type_by_id(d->schema, write->entity);
    if (!entity || entity->kind != TYPE_ENTITY)
        return error_set(d->acting.error, PAWL_ECORRUPT,
                         "the operation writes entity %u, which its schema does not have", write->entity);
    struct arena *memory = d->acting.memory;
    d->entity = entity;
    d->values = arena_take(memory, entity->field_count * sizeof d->values[0]);
    d->key_types = arena_take(memory, entity->key_count * sizeof d->key_types[0]);
    if (!d->values || !d->key_types)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < entity->key_count; i++)
        d->key_types[i] = entity->fields[entity->key[i]].type;
    return PAWL_OK;
}

/* The whole key, in room that is used for the next one again. */
static int make_key(struct deriving *d, pawl_bytes own, pawl_bytes *ret_key)
{
    size_t size = KEY_WORKSPACE + own.size;
    if (size > PAWL_KEY_BYTES_MAX)
        return corrupt(d, "has a key that is too long");
    if (!d->key || size > d->key_room) {
        uint8_t *key = arena_take(d->acting.memory, 2 * size);
        if (!key)
            return PAWL_ENOMEM;
        d->key = key;
        d->key_room = 2 * size;
    }
    key_of_workspace(schema_table(d->entity, d->acting.generation), d->operation->wsid, d->key);
    memcpy(d->key + KEY_WORKSPACE, own.data, own.size);
    *ret_key = (pawl_bytes){d->key, size};
    return PAWL_OK;
}

/* A row that was not there before: nothing but its key. */
static int values_of_key(struct deriving *d, pawl_bytes own)
{
    const struct schema_type *entity = d->entity;
    struct value *key = arena_take(d->acting.memory, entity->key_count * sizeof *key);
    uint8_t *scratch = arena_take(d->acting.memory, own.size);
    if (!key || !scratch)
        return PAWL_ENOMEM;
    memset(d->values, 0, entity->field_count * sizeof d->values[0]);
    if (row_key_read(own, d->key_types, entity->key_count, scratch, key) != PAWL_OK)
        return corrupt(d, "has a key that is none");
    for (size_t i = 0; i < entity->key_count; i++) {
        if (key[i].type == VALUE_NULL)
            return corrupt(d, "has null in its key");
        d->values[entity->key[i]] = key[i];
    }
    return PAWL_OK;
}

static int values_of_row(struct deriving *d, pawl_bytes old)
{
    struct row was;
    int status = act_open(&d->acting, d->entity, old, &was);
    for (size_t i = 0; status == PAWL_OK && i < d->entity->field_count; i++)
        d->values[i] = row_get(was, i, d->entity->fields[i].type);
    return status;
}

static int set_values(struct deriving *d, const struct operation_row *row)
{
    const struct schema_type *entity = d->entity;
    struct row set;
    int status = act_open(&d->acting, entity, row->set, &set);
    if (status != PAWL_OK)
        return status;
    for (size_t i = 0; i < entity->field_count; i++)
        if (row_has(set, i))
            d->values[i] = row_get(set, i, entity->fields[i].type);
    for (size_t i = 0; i < row->cleared_count; i++) {
        uint16_t place = operation_cleared(row, i);
        if (place >= entity->field_count)
            return corrupt(d, "is cleared of a field that it does not have");
        d->values[place] = (struct value){.type = VALUE_NULL};
    }
    for (size_t i = 0; i < entity->key_count; i++)
        if (row_has(set, entity->key[i]) || d->values[entity->key[i]].type == VALUE_NULL)
            return corrupt(d, "is set in its key");
    return PAWL_OK;
}

static int derive_row(struct deriving *d, enum action_kind kind, const struct operation_row *row)
{
    struct acting *a = &d->acting;
    pawl_bytes key, old = {0};
    int status = make_key(d, row->key, &key);
    if (status != PAWL_OK)
        return status;
    status = state_get(&a->state, key, &old);
    bool there = status == PAWL_OK;
    if (status != PAWL_OK && status != PAWL_ENOTFOUND)
        return status;
    if (!there && kind != ACTION_UPSERT)
        return corrupt(d, "is not there");
    if (kind == ACTION_DELETE)
        return state_change(&a->state, a->memory, a->changes, key, old, (pawl_bytes){0});
    status = there ? values_of_row(d, old) : values_of_key(d, row->key);
    if (status == PAWL_OK)
        status = set_values(d, row);
    if (status == PAWL_OK)
        status = act_put(a, d->entity, key, there ? old : (pawl_bytes){0}, d->values);
    return status == PAWL_EINVAL ? error_set(a->error, PAWL_ECORRUPT, "a required field is null") : status;
}

static int derive_all(struct deriving *d)
{
    struct operation_write write;
    struct operation_row row;
    int status = PAWL_OK;
    for (size_t at = 0; status == PAWL_OK && operation_next_write(d->operation, &at, &write);) {
        status = begin_write(d, &write);
        for (size_t in = 0; status == PAWL_OK && operation_next_row(&write, &in, &row);)
            status = derive_row(d, write.kind, &row);
    }
    return status;
}

int operation_derive(const struct operation *operation, const struct schema *schema, uint32_t generation,
                     const struct state *state, struct arena *memory, struct changes *ret_changes,
                     pawl_error *error)
{
    assert(state->overlay); /* a write sees those before it */
    struct changes changes = {0};
    struct deriving d = {.acting = {.state = *state,
                                    .generation = generation,
                                    .memory = memory,
                                    .changes = &changes,
                                    .error = error},
                         .operation = operation,
                         .schema = schema};
    int status = derive_all(&d);
    if (status == PAWL_OK)
        *ret_changes = changes;
    else
        overlay_remove(state->overlay, &changes);
    if (status == PAWL_ENOMEM)
        return error_set(error, status, "no memory to derive what an operation writes");
    return status;
}

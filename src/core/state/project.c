/* core/state/project.c: upsert, update and delete of entities.
 *
 * All sets of an action are computed on the row as it was before the action, as in SQL. A clause is first run
 * over the workspace's rows of the entity, and what it matched is changed afterwards: so an action never sees
 * its own work. */
#include "core/state/project.h"

#include <string.h>

#include "base/error.h"
#include "core/schema/row.h"
#include "core/state/key.h"
#include "core/state/scope.h"

bool projector_is_on(const struct schema_projector *projector, uint16_t command)
{
    if (!projector->sync)
        return false;
    for (size_t i = 0; i < projector->on_count; i++)
        if (projector->on[i] == command)
            return true;
    return false;
}

/* One action at work. */
struct acting {
    const struct derivation *derivation;
    const struct schema_action *action;
    const struct state *state;
    struct arena *memory;
    struct changes *changes;
    struct expr_scratch scratch;
    pawl_error *error;
};

static int evaluate(struct acting *a, const struct expr *expr, const struct row *row, struct value *ret_value)
{
    struct scope scope = {.derivation = a->derivation, .type = a->action->entity, .row = row};
    struct expr_source source = scope_source(&scope);
    return expr_eval(expr, &source, &a->scratch, ret_value, a->error);
}

/* The row as it will be: what was, or nothing, with the action's sets. */
static int compute_row(struct acting *a, const struct row *was, struct value *values)
{
    const struct schema_type *entity = a->action->entity;
    if (was)
        for (size_t i = 0; i < entity->field_count; i++)
            values[i] = row_get(*was, i, entity->fields[i].type);
    for (size_t i = 0; i < a->action->set_count; i++) {
        const struct schema_set *set = &a->action->sets[i];
        int status = evaluate(a, set->value, was, &values[set->field]);
        if (status != PAWL_OK)
            return status;
    }
    for (size_t i = 0; i < entity->field_count; i++)
        if (entity->fields[i].required && values[i].type == VALUE_NULL)
            return error_set(a->error, PAWL_EINVAL, "the required field %.*s would be null",
                             (int)entity->fields[i].name.size, (const char *)entity->fields[i].name.data);
    return PAWL_OK;
}

static int put_row(struct acting *a, pawl_bytes key, pawl_bytes old, const struct value *values)
{
    size_t size, count = a->action->entity->field_count;
    int status = row_size(values, count, &size);
    if (status != PAWL_OK)
        return error_set(a->error, status, "the row would be larger than a row may be");
    uint8_t *bytes = arena_take(a->memory, size);
    if (!bytes)
        return PAWL_ENOMEM;
    row_write(values, count, bytes);
    return state_change(a->state, a->memory, a->changes, key, old, (pawl_bytes){bytes, size});
}

static int open_row(struct acting *a, pawl_bytes bytes, struct row *ret_row)
{
    const struct schema_type *entity = a->action->entity;
    return row_open(entity->fields, entity->field_count, bytes, ret_row, a->error);
}

static struct value *new_values(struct acting *a)
{
    size_t size = a->action->entity->field_count * sizeof(struct value);
    struct value *values = arena_take(a->memory, size);
    if (values)
        memset(values, 0, size);
    return values;
}

static int upsert_key(struct acting *a, struct value *values, pawl_bytes *ret_key)
{
    const struct schema_type *entity = a->action->entity;
    struct value *key = arena_take(a->memory, entity->key_count * sizeof *key);
    if (!key)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < entity->key_count; i++) {
        int status = evaluate(a, a->action->key[i], NULL, &key[i]);
        if (status != PAWL_OK)
            return status;
        const struct schema_field *field = &entity->fields[entity->key[i]];
        if (key[i].type == VALUE_NULL)
            return error_set(a->error, PAWL_EINVAL, "the key's field %.*s would be null", (int)field->name.size,
                             (const char *)field->name.data);
        values[entity->key[i]] = key[i];
    }
    uint8_t workspace[KEY_WORKSPACE];
    size_t size = row_key_write(key, entity->key_count, NULL, 0);
    if (size > PAWL_KEY_BYTES_MAX - KEY_WORKSPACE)
        return error_set(a->error, PAWL_ETOOBIG, "the key would have %zu bytes", size);
    uint8_t *bytes = arena_take(a->memory, KEY_WORKSPACE + size);
    if (!bytes)
        return PAWL_ENOMEM;
    key_of_workspace(entity->table, a->derivation->event->envelope.wsid, workspace);
    memcpy(bytes, workspace, KEY_WORKSPACE);
    row_key_write(key, entity->key_count, bytes + KEY_WORKSPACE, size);
    *ret_key = (pawl_bytes){bytes, KEY_WORKSPACE + size};
    return PAWL_OK;
}

static int upsert(struct acting *a)
{
    struct value *values = new_values(a);
    pawl_bytes key, old = {0};
    struct row row;
    if (!values)
        return PAWL_ENOMEM;
    int status = upsert_key(a, values, &key);
    if (status != PAWL_OK)
        return status;
    status = state_get(a->state, key, &old);
    if (status == PAWL_ENOTFOUND) {
        status = compute_row(a, NULL, values);
        return status == PAWL_OK ? put_row(a, key, (pawl_bytes){0}, values) : status;
    }
    if (status == PAWL_OK)
        status = open_row(a, old, &row);
    if (status == PAWL_OK)
        status = compute_row(a, &row, values);
    return status == PAWL_OK ? put_row(a, key, old, values) : status;
}

/* A row that a clause matched: its key, and what it was, copied because what follows changes the state. */
struct match {
    struct match *next;
    pawl_bytes key;
    pawl_bytes value;
};

struct matching {
    struct acting *acting;
    struct match *first;
    struct match **last;
    int status;
};

static bool match_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct matching *m = arg;
    struct acting *a = m->acting;
    struct row row;
    struct value matches = {.type = VALUE_BOOL, .boolean = true};
    m->status = open_row(a, value, &row);
    size_t used = a->scratch.used;
    if (m->status == PAWL_OK && a->action->where)
        m->status = evaluate(a, a->action->where, &row, &matches);
    a->scratch.used = used;
    if (m->status != PAWL_OK)
        return false;
    if (matches.type != VALUE_BOOL || !matches.boolean)
        return true;
    struct match *match = arena_take(a->memory, sizeof *match);
    if (match)
        *match = (struct match){.key = arena_copy(a->memory, key), .value = arena_copy(a->memory, value)};
    if (!match || !match->key.data || !match->value.data) {
        m->status = PAWL_ENOMEM;
        return false;
    }
    *m->last = match;
    m->last = &match->next;
    return true;
}

static int change_match(struct acting *a, const struct match *match)
{
    if (a->action->kind == ACTION_DELETE)
        return state_change(a->state, a->memory, a->changes, match->key, match->value, (pawl_bytes){0});
    struct value *values = new_values(a);
    struct row row;
    if (!values)
        return PAWL_ENOMEM;
    size_t used = a->scratch.used;
    int status = open_row(a, match->value, &row);
    if (status == PAWL_OK)
        status = compute_row(a, &row, values);
    if (status == PAWL_OK)
        status = put_row(a, match->key, match->value, values);
    a->scratch.used = used;
    return status;
}

static int change_where(struct acting *a)
{
    struct matching m = {.acting = a, .last = &m.first};
    uint8_t from[KEY_WORKSPACE], to[KEY_WORKSPACE];
    pawl_bytes prefix = key_of_workspace(a->action->entity->table, a->derivation->event->envelope.wsid, from);
    struct arena gathered; /* not a->memory, which the scan's own use would be interleaved with */
    arena_init(&gathered, a->memory->alloc, a->memory->chunk_size);
    int status = state_scan(a->state, prefix, key_after_prefix(prefix, to), &gathered, match_row, &m);
    arena_release(&gathered);
    if (status == PAWL_OK)
        status = m.status;
    for (const struct match *match = m.first; status == PAWL_OK && match; match = match->next)
        status = change_match(a, match);
    return status;
}

int project(const struct derivation *derivation, const struct schema_projector *projector,
            const struct state *state, struct arena *memory, struct changes *changes, pawl_error *error)
{
    struct acting acting = {.derivation = derivation,
                            .state = state,
                            .memory = memory,
                            .changes = changes,
                            .scratch = {.data = state->scratch, .size = STATE_SCRATCH_BYTES},
                            .error = error};
    for (size_t i = 0; i < projector->action_count; i++) {
        acting.action = &projector->actions[i];
        acting.scratch.used = 0;
        int status = acting.action->kind == ACTION_UPSERT ? upsert(&acting) : change_where(&acting);
        if (status != PAWL_OK && status != PAWL_ENOMEM)
            return error_wrap(error, status, "projector %.*s, action %zu", (int)projector->name.size,
                              (const char *)projector->name.data, i);
        if (status != PAWL_OK)
            return status;
    }
    return PAWL_OK;
}

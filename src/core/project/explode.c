#include "core/project/explode.h"

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "core/schema/text.h"
#include "core/state/key.h"

int intents_of(const struct schema_projector *projector, struct arena *memory,
               const struct intent **ret_intents, size_t *ret_count)
{
    struct intent *intents = arena_take(memory, projector->action_count * sizeof *intents);
    if (!intents)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < projector->action_count; i++)
        intents[i] = intent_of(&projector->actions[i]);
    *ret_intents = intents;
    *ret_count = projector->action_count;
    return PAWL_OK;
}

bool intents_are_quick(const struct intent *intents, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!intents[i].key_exprs && !intents[i].key)
            return false;
    return true;
}

/* Values come from handlers: refuse what a row cannot hold before anything is written. */

static int check_value(const struct schema_field *field, const struct value *value, pawl_error *error)
{
    bool good = value->type == VALUE_NULL || value->type == field->type;
    if (good && value->type == VALUE_STRING)
        good = text_is_utf8(value->bytes);
    if (good && value->type == VALUE_FLOAT64)
        good = isfinite(value->real);
    if (good)
        return PAWL_OK;
    return error_set(error, PAWL_EINVAL, "this is not a value of the field %.*s", (int)field->name.size,
                     (const char *)field->name.data);
}

static int check_intent(const struct intent *intent, pawl_error *error)
{
    const struct schema_type *entity = intent->entity;
    int status = PAWL_OK;
    bool by_key = intent->key || intent->key_exprs;
    if (by_key ? intent->where != NULL : intent->kind == ACTION_UPSERT)
        return error_set(error, PAWL_EINVAL, "it needs a key or a clause, but not both; an upsert needs a key");
    for (size_t i = 0; status == PAWL_OK && intent->key && i < entity->key_count; i++)
        status = check_value(&entity->fields[entity->key[i]], &intent->key[i], error);
    for (size_t i = 0; status == PAWL_OK && i < intent->set_count; i++) {
        const struct schema_set *set = &intent->sets[i];
        if (set->field >= entity->field_count || schema_in_key(entity, set->field))
            return error_set(error, PAWL_EINVAL, "field %u cannot be set", set->field);
        if (!set->value)
            status = check_value(&entity->fields[set->field], &intent->values[i], error);
    }
    return status;
}

static int watch_row(void *ctx, pawl_bytes key)
{
    const struct explosion *x = ctx;
    return x->reads ? reads_add_row(x->reads, key) : PAWL_OK;
}

static int watch_rows(void *ctx, uint32_t table, uint64_t wsid, const struct intent *intent)
{
    const struct explosion *x = ctx;
    return x->reads ? reads_add_rows(x->reads, table, wsid, intent->where, intent->entity->field_count)
                    : PAWL_OK;
}

static int watch_wrote(void *ctx, const struct intent *intent, pawl_bytes key, const struct value *values,
                       const uint64_t *set)
{
    const struct explosion *x = ctx;
    pawl_bytes own = {(const uint8_t *)key.data + KEY_WORKSPACE, key.size - KEY_WORKSPACE};
    operation_maker_row(x->writes, own, values, set, intent->entity->field_count);
    return x->writes->status;
}

static int watch_pause(void *ctx, pawl_reader **reader)
{
    const struct explosion *x = ctx;
    return x->pause(x->pause_ctx, reader);
}

static int explode_all(const struct explosion *x, struct acting *acting)
{
    for (size_t i = 0; i < x->intent_count; i++) {
        const struct intent *intent = &x->intents[i];
        int status = check_intent(intent, acting->error);
        operation_maker_write(x->writes, intent->kind, intent->entity->id);
        if (status == PAWL_OK)
            status = act(acting, intent);
        if (status == PAWL_ETOOBIG && x->writes->status == PAWL_ETOOBIG)
            error_set(acting->error, status, "it writes more than an operation may hold");
        if (status != PAWL_OK && status != PAWL_ENOMEM)
            return error_wrap(acting->error, status, "intent %zu", i);
        if (status != PAWL_OK)
            return status;
    }
    return x->writes->status;
}

int explode(const struct explosion *x, const struct state *state, struct arena *memory,
            struct changes *ret_changes, pawl_error *error)
{
    struct changes changes = {0};
    struct acting_watch watch = {.ctx = (void *)x,
                                 .row = watch_row,
                                 .rows = watch_rows,
                                 .wrote = watch_wrote,
                                 .pause = x->pause ? watch_pause : NULL,
                                 .match_bytes_max = OPERATION_BYTES_MAX};
    struct acting acting = {.derivation = x->derivation,
                            .state = *state,
                            .generation = x->generation,
                            .memory = memory,
                            .changes = &changes,
                            .watch = &watch,
                            .error = error};
    operation_maker_reset(x->writes);
    int status = explode_all(x, &acting);
    if (status == PAWL_OK)
        *ret_changes = changes;
    else
        overlay_remove(state->overlay, &changes);
    if (status == PAWL_ENOMEM)
        return error_set(error, status, "no memory for what a projector writes");
    return status;
}

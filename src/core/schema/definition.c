/* core/schema/definition.c: looking into a definition, and bringing it into its settled form. */
#include "core/schema/definition.h"

#include "base/bytes.h"

static const struct {
    const char *text;
    enum value_type type;
} value_types[] = {
    {"int64", VALUE_INT64}, {"float64", VALUE_FLOAT64},     {"bool", VALUE_BOOL},   {"string", VALUE_STRING},
    {"bytes", VALUE_BYTES}, {"timestamp", VALUE_TIMESTAMP}, {"qname", VALUE_QNAME}, {"ref", VALUE_REF},
};

static const struct {
    const char *text;
    enum type_kind kind;
} type_kinds[] = {
    {"CDoc", TYPE_CDOC},       {"CRecord", TYPE_CRECORD}, {"WDoc", TYPE_WDOC},
    {"WRecord", TYPE_WRECORD}, {"ODoc", TYPE_ODOC},       {"ORecord", TYPE_ORECORD},
};

static bool text_is(pawl_bytes text, const char *word)
{
    return bytes_equal(text, (pawl_bytes){word, strlen(word)});
}

enum value_type definition_value_type(pawl_bytes text)
{
    for (size_t i = 0; i < sizeof value_types / sizeof *value_types; i++)
        if (text_is(text, value_types[i].text))
            return value_types[i].type;
    return VALUE_NULL;
}

const char *value_type_text(enum value_type type)
{
    for (size_t i = 0; i < sizeof value_types / sizeof *value_types; i++)
        if (value_types[i].type == type)
            return value_types[i].text;
    return "null";
}

enum type_kind definition_type_kind(pawl_bytes text)
{
    for (size_t i = 0; i < sizeof type_kinds / sizeof *type_kinds; i++)
        if (text_is(text, type_kinds[i].text))
            return type_kinds[i].kind;
    return (enum type_kind)0;
}

enum on_failure definition_on_failure(pawl_bytes text)
{
    return text_is(text, "stall")  ? ON_FAILURE_STALL
           : text_is(text, "void") ? ON_FAILURE_VOID
                                   : (enum on_failure)0;
}

void *definition_find(const void *items, size_t count, size_t item_size, pawl_bytes name)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *item = (const uint8_t *)items + i * item_size;
        if (bytes_equal(*(const pawl_bytes *)(const void *)item, name))
            return (void *)item;
    }
    return NULL;
}

struct settling {
    const struct definition *definition;
    struct arena *arena;
    int status;
};

/* Reorder items: first those that before has, in its order. */
static void settle_order(struct settling *s, void *items, size_t count, size_t item_size, const void *before,
                         size_t before_count)
{
    if (before_count == 0 || count == 0 || s->status)
        return;
    struct arena_point start = arena_point(s->arena);
    uint8_t *ordered = arena_take(s->arena, count * item_size);
    if (!ordered) {
        s->status = PAWL_ENOMEM;
        return;
    }
    size_t used = 0;
    for (size_t i = 0; i < before_count; i++) {
        const void *old = (const uint8_t *)before + i * item_size;
        const void *item = definition_find(items, count, item_size, *(const pawl_bytes *)old);
        if (item)
            memcpy(ordered + used++ * item_size, item, item_size);
    }
    for (size_t i = 0; i < count; i++) {
        const void *item = (const uint8_t *)items + i * item_size;
        if (!definition_find(before, before_count, item_size, *(const pawl_bytes *)item))
            memcpy(ordered + used++ * item_size, item, item_size);
    }
    memcpy(items, ordered, count * item_size);
    arena_rewind(s->arena, start);
}

#define ORDER(s, new, items, count, old)                                                                       \
    settle_order((s), (new)->items, (new)->count, sizeof *(new)->items, (old) ? (old)->items : NULL,           \
                 (old) ? (old)->count : 0)
#define OLD(items, count, before, name)                                                                        \
    ((before) ? definition_find((before)->items, (before)->count, sizeof *(before)->items, (name)) : NULL)

/* "shop.Order" in package shop is "Order". */
static void settle_name(const struct settling *s, pawl_bytes *name)
{
    pawl_bytes package = s->definition->package;
    const char *text = name->data;
    if (name->size > package.size + 1 && memcmp(text, package.data, package.size) == 0
        && text[package.size] == '.')
        *name = (pawl_bytes){text + package.size + 1, name->size - package.size - 1};
}

static void settle_names(const struct settling *s, pawl_bytes *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        settle_name(s, &names[i]);
}

static void settle_fields(const struct settling *s, struct definition_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        settle_name(s, &fields[i].sequence);
        settle_name(s, &fields[i].to);
    }
}

static void settle_type(struct settling *s, struct definition_type *type, const struct definition_type *old)
{
    settle_fields(s, type->fields, type->field_count);
    for (size_t i = 0; i < type->child_count; i++)
        settle_name(s, &type->children[i].text);
    ORDER(s, type, fields, field_count, old);
    ORDER(s, type, children, child_count, old);
}

static void settle_entity(struct settling *s, struct definition_entity *entity,
                          const struct definition_entity *old)
{
    settle_fields(s, entity->fields, entity->field_count);
    ORDER(s, entity, fields, field_count, old);
}

/* A member that is set to its default is left out, so that writing the default changes nothing. */
static void settle_projector(const struct settling *s, struct definition_projector *projector)
{
    settle_names(s, projector->on, projector->on_count);
    for (size_t i = 0; i < projector->action_count; i++)
        settle_name(s, &projector->actions[i].entity);
    settle_names(s, projector->writes, projector->write_count);
    settle_names(s, projector->reads, projector->read_count);
    if (definition_on_failure(projector->on_failure) == ON_FAILURE_STALL)
        projector->on_failure = (pawl_bytes){NULL, 0};
    if (projector->attempts_max == PROJECTOR_ATTEMPTS)
        projector->attempts_max = 0;
    if (projector->workers == PROJECTOR_WORKERS)
        projector->workers = 0;
}

/* A member that was left out gets its default, so that writing the default changes nothing. */
static void settle_sequences(struct definition_workspace *workspace)
{
    for (size_t i = 0; i < workspace->sequence_count; i++) {
        struct definition_sequence *sequence = &workspace->sequences[i];
        if (sequence->first == 0)
            sequence->first = 1;
        if (sequence->end == INT64_MAX)
            sequence->end = 0;
    }
}

int definition_settle(struct definition *d, const struct definition *before, struct arena *arena)
{
    struct settling s = {.definition = d, .arena = arena};
    for (size_t i = 0; i < d->workspace_count; i++) {
        struct definition_workspace *w = &d->workspaces[i];
        const struct definition_workspace *old = OLD(workspaces, workspace_count, before, w->name);
        ORDER(&s, w, sequences, sequence_count, old);
        settle_sequences(w);
    }
    for (size_t i = 0; i < d->type_count; i++)
        settle_type(&s, &d->types[i], OLD(types, type_count, before, d->types[i].name));
    for (size_t i = 0; i < d->entity_count; i++)
        settle_entity(&s, &d->entities[i], OLD(entities, entity_count, before, d->entities[i].name));
    for (size_t i = 0; i < d->command_count; i++) {
        settle_name(&s, &d->commands[i].argument);
        settle_names(&s, d->commands[i].records, d->commands[i].record_count);
    }
    for (size_t i = 0; i < d->projector_count; i++)
        settle_projector(&s, &d->projectors[i]);
    for (size_t i = 0; i < d->view_count; i++)
        settle_name(&s, &d->views[i].base);

    ORDER(&s, d, workspaces, workspace_count, before);
    ORDER(&s, d, types, type_count, before);
    ORDER(&s, d, commands, command_count, before);
    ORDER(&s, d, entities, entity_count, before);
    ORDER(&s, d, views, view_count, before);
    return s.status;
}

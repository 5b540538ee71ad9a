/* core/schema/resolve_project.c: projectors of a schema. */
#include <stdlib.h>

#include "base/bytes.h"
#include "core/schema/resolve_impl.h"

/* An upsert finds its row by a whole key, computed from the event alone. */
static void resolve_action_key(struct resolver *r, const struct path *action,
                               const struct definition_action *from, const struct compile_scope *event,
                               struct schema_action *to)
{
    const struct schema_type *entity = to->entity;
    struct path group = path_member(action, "key");
    for (size_t i = 0; i < from->key_count; i++) {
        struct path here = path_name(&group, from->key[i].name);
        int place = schema_field_place(entity, from->key[i].name);
        if (!schema_in_key(entity, place))
            verdict_refuse(&r->v, &here, "'%.*s' is not in the key of %.*s", TEXT(from->key[i].name),
                           TEXT(entity->name));
    }
    const struct expr **key = resolver_take(r, entity->key_count, sizeof(void *));
    for (size_t i = 0; i < entity->key_count && key && r->v.status == PAWL_OK; i++) {
        const struct schema_field *field = &entity->fields[entity->key[i]];
        const struct definition_pair *given =
            definition_find(from->key, from->key_count, sizeof *from->key, field->name);
        if (!given) {
            verdict_refuse(&r->v, &group, "'%.*s', of the key of %.*s, is missing", TEXT(field->name),
                           TEXT(entity->name));
            return;
        }
        struct path here = path_name(&group, given->name);
        struct compile_scope scope = *event;
        scope.row = NULL;
        scope.want = field->type;
        key[i] = resolver_compile(r, &here, given->text, &scope);
    }
    to->key = key;
}

static void resolve_sets(struct resolver *r, const struct path *action, const struct definition_action *from,
                         const struct compile_scope *event, struct schema_action *to)
{
    struct path group = path_member(action, "set");
    struct schema_set *sets = resolver_take(r, from->set_count, sizeof *sets);
    for (size_t i = 0; i < from->set_count && sets && r->v.status == PAWL_OK; i++) {
        pawl_bytes name = from->sets[i].name;
        struct path here = path_name(&group, name);
        int place = schema_field_place(to->entity, name);
        if (place < 0) {
            verdict_refuse(&r->v, &here, "%.*s has no field '%.*s'", TEXT(to->entity->name), TEXT(name));
            return;
        }
        if (schema_in_key(to->entity, place))
            verdict_refuse(&r->v, &here, "'%.*s' is in the key of %.*s, and cannot be set", TEXT(name),
                           TEXT(to->entity->name));
        struct compile_scope scope = *event;
        scope.want = to->entity->fields[place].type;
        sets[i].field = (uint16_t)place;
        sets[i].value = resolver_compile(r, &here, from->sets[i].text, &scope);
    }
    to->sets = sets;
    to->set_count = sets ? from->set_count : 0;
}

static const char *const action_words[] = {
    [ACTION_UPSERT] = "upsert",
    [ACTION_UPDATE] = "update",
    [ACTION_DELETE] = "delete",
};

static void resolve_action(struct resolver *r, const struct path *here, const struct definition_action *from,
                           const struct schema_type *argument, struct schema_action *to)
{
    struct path at = path_member(here, action_words[from->kind]), where = path_member(here, "where");
    const struct schema_name *name = resolver_refer(r, &at, from->entity, NAMED_ENTITY);
    if (!name)
        return;
    *to = (struct schema_action){.kind = from->kind, .entity = schema_type_by_id(&r->out->schema, name->id)};
    struct compile_scope event = {.row = to->entity, .event = true, .argument = argument, .want = VALUE_BOOL};
    if (from->kind == ACTION_UPSERT)
        resolve_action_key(r, here, from, &event, to);
    resolve_sets(r, here, from, &event, to);
    if (from->where.size)
        to->where = resolver_compile(r, &where, from->where, &event);
}

static int name_order(const void *a, const void *b)
{
    uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;
    return (x > y) - (x < y);
}

/* ret_argument: the type of argument that all of the commands take, NULL if they differ. */
static void resolve_on(struct resolver *r, const struct path *here, const struct definition_projector *from,
                       struct schema_projector *to, const struct schema_type **ret_argument)
{
    struct path group = path_member(here, "on");
    uint16_t *on = resolver_take(r, from->on_count, sizeof *on);
    bool same = true;
    for (size_t i = 0; i < from->on_count && on; i++) {
        struct path at = path_index(&group, i);
        const struct schema_name *name = resolver_refer(r, &at, from->on[i], NAMED_COMMAND);
        if (!name)
            return;
        for (size_t k = 0; k < i; k++)
            if (on[k] == name->id)
                verdict_refuse(&r->v, &at, "%.*s is there twice", TEXT(name->text));
        on[i] = name->id;
        const struct schema_type *argument = schema_command_by_id(&r->out->schema, name->id)->argument;
        same = same && (i == 0 || argument == *ret_argument);
        *ret_argument = argument;
    }
    if (!on)
        return;
    if (!same)
        *ret_argument = NULL;
    qsort(on, from->on_count, sizeof *on, name_order);
    to->on = on;
    to->on_count = from->on_count;
}

static int type_order(const void *a, const void *b)
{
    return name_order(*(const struct schema_type *const *)a, *(const struct schema_type *const *)b);
}

/* Entities by their names, sorted; each once. */
static const struct schema_type *const *resolve_entities(struct resolver *r, const struct path *projector,
                                                         const char *member, const pawl_bytes *names,
                                                         size_t count)
{
    struct path group = path_member(projector, member);
    const struct schema_type **entities = resolver_take(r, count, sizeof(void *));
    for (size_t i = 0; i < count && entities; i++) {
        struct path at = path_index(&group, i);
        const struct schema_name *name = resolver_refer(r, &at, names[i], NAMED_ENTITY);
        if (!name)
            return NULL;
        entities[i] = schema_type_by_id(&r->out->schema, name->id);
        for (size_t k = 0; k < i; k++)
            if (entities[k] == entities[i])
                verdict_refuse(&r->v, &at, "%.*s is there twice", TEXT(name->text));
    }
    if (entities)
        qsort(entities, count, sizeof *entities, type_order);
    return entities;
}

static void resolve_handler(struct resolver *r, const struct path *here,
                            const struct definition_projector *from, struct schema_projector *to)
{
    to->handler = true;
    to->writes = resolve_entities(r, here, "writes", from->writes, from->write_count);
    to->write_count = to->writes ? from->write_count : 0;
    to->reads = resolve_entities(r, here, "reads", from->reads, from->read_count);
    to->read_count = to->reads ? from->read_count : 0;
}

static void resolve_attempts(const struct definition_projector *from, struct schema_projector *to)
{
    to->on_failure = from->on_failure.size ? definition_on_failure(from->on_failure) : ON_FAILURE_STALL;
    to->attempts_max = from->attempts_max ? (uint32_t)from->attempts_max : PROJECTOR_ATTEMPTS;
    to->workers = from->workers ? (uint32_t)from->workers : PROJECTOR_WORKERS;
}

/* What the actions fill, each once. */
static void resolve_writes(struct resolver *r, struct schema_projector *to)
{
    const struct schema_type **writes = resolver_take(r, to->action_count, sizeof(void *));
    size_t used = 0;
    for (size_t i = 0; i < to->action_count && writes; i++) {
        size_t k = 0;
        while (k < used && writes[k] != to->actions[i].entity)
            k++;
        if (k == used)
            writes[used++] = to->actions[i].entity;
    }
    if (!writes)
        return;
    qsort(writes, used, sizeof *writes, type_order);
    to->writes = writes;
    to->write_count = used;
}

static void resolve_projector(struct resolver *r, const struct path *group,
                              const struct definition_projector *from, struct schema_projector *to)
{
    struct path here = path_name(group, from->name), all = path_member(&here, "do");
    const struct schema_name *own = resolver_own(r, from->name);
    const struct schema_type *argument = NULL;
    *to = (struct schema_projector){.id = own->id, .name = own->text, .sync = from->sync};
    resolve_on(r, &here, from, to, &argument);
    struct schema_action *actions = resolver_take(r, from->action_count, sizeof *actions);
    for (size_t i = 0; i < from->action_count && r->v.status == PAWL_OK; i++) {
        struct path at = path_index(&all, i);
        resolve_action(r, &at, &from->actions[i], argument, &actions[i]);
    }
    to->actions = actions;
    to->action_count = actions ? from->action_count : 0;
    if (!from->sync)
        resolve_attempts(from, to);
    if (from->action_count == 0)
        resolve_handler(r, &here, from, to);
    else if (r->v.status == PAWL_OK)
        resolve_writes(r, to);
}

void resolve_projectors(struct resolver *r)
{
    size_t count = 0, used = 0;
    for (size_t p = 0; p < r->source->package_count; p++)
        count += r->source->packages[p].projector_count;
    r->projectors = resolver_take(r, count, sizeof *r->projectors);
    r->origins = resolver_take(r, count, sizeof *r->origins);
    if (!r->projectors || !r->origins)
        return;
    for (size_t p = 0; p < r->source->package_count; p++) {
        const struct definition *d = &r->source->packages[p];
        resolver_enter(r, d);
        struct path root = {0}, group = path_member(&root, "projectors");
        for (size_t i = 0; i < d->projector_count && r->v.status == PAWL_OK; i++) {
            r->origins[used] = (struct origin){.package = d, .projector = &d->projectors[i]};
            resolve_projector(r, &group, &d->projectors[i], &r->projectors[used++]);
        }
    }
    r->out->schema.projectors = r->projectors;
    r->out->schema.projector_count = used;
}

/* core/schema/definition_check.c: the checks that need no other package. resolve.c looks up what its names
 * refer to, and may rely on all these checks. */
#include <stdlib.h>

#include "base/bytes.h"
#include "core/schema/definition.h"
#include "core/schema/path.h"
#include "core/schema/text.h"

struct check {
    struct verdict v;
    const struct definition *d;
    struct arena *arena;
};

/* False: it is beyond its limit, and not looked at any further. */
static bool within(struct check *c, const struct path *at, size_t count, size_t max)
{
    if (count > max)
        verdict_refuse(&c->v, at, "%zu of them; %zu are the most", count, max);
    return count <= max;
}

static void check_name(struct check *c, const struct path *at, pawl_bytes name)
{
    if (!text_is_name(name))
        verdict_refuse(&c->v, at,
                       "'%.*s' is not a name: those are letters, digits and _, do not begin with a digit, and "
                       "have at most %d characters",
                       TEXT(name), SCHEMA_NAME_BYTES_MAX);
}

/* A list of references: none twice, none empty. */
static void check_texts(struct check *c, const struct path *at, const pawl_bytes *texts, size_t count,
                        size_t max)
{
    if (!within(c, at, count, max))
        return;
    for (size_t i = 0; i < count; i++) {
        struct path here = path_index(at, i);
        if (texts[i].size == 0)
            verdict_refuse(&c->v, &here, "a name is missing");
        for (size_t k = 0; k < i; k++)
            if (bytes_equal(texts[i], texts[k]))
                verdict_refuse(&c->v, &here, "'%.*s' is there twice", TEXT(texts[i]));
    }
}

/* Pairs and fields, which begin with their names: each is a name, and there once. */
static void check_named(struct check *c, const struct path *at, const void *items, size_t count,
                        size_t item_size, size_t max)
{
    if (!within(c, at, count, max))
        return;
    for (size_t i = 0; i < count; i++) {
        pawl_bytes name = *(const pawl_bytes *)(const void *)((const uint8_t *)items + i * item_size);
        struct path here = path_name(at, name);
        check_name(c, &here, name);
        if (definition_find(items, i, item_size, name))
            verdict_refuse(&c->v, &here, "'%.*s' is there twice", TEXT(name));
    }
}

static void check_field(struct check *c, const struct path *at, const struct definition_field *field,
                        bool entity)
{
    struct path here = path_name(at, field->name), type = path_member(&here, "type");
    struct path required = path_member(&here, "required"), sequence = path_member(&here, "sequence");
    struct path to = path_member(&here, "to");
    enum value_type value = definition_value_type(field->type);
    if (expr_is_reserved(field->name))
        verdict_refuse(&c->v, &here, "'%.*s' is a word of the expression language", TEXT(field->name));
    if (!entity && bytes_equal(field->name, (pawl_bytes){"id", 2}))
        verdict_refuse(&c->v, &here, "'id' is the record's own");
    if (value == VALUE_NULL)
        verdict_refuse(
            &c->v, &type,
            "'%.*s' is not a type; those are int64, float64, bool, string, bytes, timestamp, qname, ref",
            TEXT(field->type));
    if (entity && field->required)
        verdict_refuse(&c->v, &required,
                       "the fields of an entity are set by projectors, and cannot be required");
    if (entity && field->sequence.size)
        verdict_refuse(&c->v, &sequence,
                       "the fields of an entity are set by projectors, and cannot be numbered");
    if (field->sequence.size && value != VALUE_INT64)
        verdict_refuse(&c->v, &sequence, "a numbered field must be of type int64");
    if (field->sequence.size && field->required)
        verdict_refuse(&c->v, &required, "a numbered field is not given, and so cannot be required");
    if (field->to.size && value != VALUE_REF)
        verdict_refuse(&c->v, &to, "only a field of type ref refers to something");
}

static void check_fields(struct check *c, const struct path *owner, const struct definition_field *fields,
                         size_t count, bool entity)
{
    struct path at = path_member(owner, "fields");
    check_named(c, &at, fields, count, sizeof *fields, SCHEMA_FIELDS_MAX);
    for (size_t i = 0; i < count && c->v.status == PAWL_OK; i++)
        check_field(c, &at, &fields[i], entity);
}

static void check_type(struct check *c, const struct path *group, const struct definition_type *type)
{
    struct path here = path_name(group, type->name), kind_at = path_member(&here, "kind");
    struct path singleton = path_member(&here, "singleton"), children = path_member(&here, "children");
    enum type_kind kind = definition_type_kind(type->kind);
    if (!kind)
        verdict_refuse(&c->v, &kind_at,
                       "'%.*s' is not a kind; those are CDoc, CRecord, WDoc, WRecord, ODoc, ORecord",
                       TEXT(type->kind));
    if (type->singleton && kind != TYPE_CDOC && kind != TYPE_WDOC)
        verdict_refuse(&c->v, &singleton, "only a CDoc or a WDoc can be a singleton");
    check_fields(c, &here, type->fields, type->field_count, false);
    check_named(c, &children, type->children, type->child_count, sizeof *type->children,
                DEFINITION_CHILDREN_MAX);
    for (size_t i = 0; i < type->child_count && c->v.status == PAWL_OK; i++) {
        const struct definition_pair *child = &type->children[i];
        struct path at = path_name(&children, child->name);
        if (definition_find(type->fields, type->field_count, sizeof *type->fields, child->name)
            || bytes_equal(child->name, (pawl_bytes){"id", 2}))
            verdict_refuse(&c->v, &at, "'%.*s' is a field's name already", TEXT(child->name));
        if (child->text.size == 0)
            verdict_refuse(&c->v, &at, "the type's name is missing");
    }
}

static void check_entity(struct check *c, const struct path *group, const struct definition_entity *entity)
{
    struct path here = path_name(group, entity->name), key = path_member(&here, "key");
    check_fields(c, &here, entity->fields, entity->field_count, true);
    if (entity->key_count == 0)
        verdict_refuse(&c->v, &key, "an entity needs a key of at least one field");
    check_texts(c, &key, entity->key, entity->key_count, DEFINITION_KEY_MAX);
    for (size_t i = 0; i < entity->key_count && c->v.status == PAWL_OK; i++) {
        struct path at = path_index(&key, i);
        if (!definition_find(entity->fields, entity->field_count, sizeof *entity->fields, entity->key[i]))
            verdict_refuse(&c->v, &at, "there is no field '%.*s'", TEXT(entity->key[i]));
    }
}

static void check_pairs(struct check *c, const struct path *action, const char *member,
                        const struct definition_pair *pairs, size_t count)
{
    struct path at = path_member(action, member);
    check_named(c, &at, pairs, count, sizeof *pairs, SCHEMA_FIELDS_MAX);
    for (size_t i = 0; i < count && c->v.status == PAWL_OK; i++) {
        struct path here = path_name(&at, pairs[i].name);
        if (pairs[i].text.size == 0)
            verdict_refuse(&c->v, &here, "an expression is missing");
    }
}

static void check_action(struct check *c, const struct path *here, const struct definition_action *action)
{
    if (action->entity.size == 0)
        verdict_refuse(&c->v, here, "the entity is missing");
    if (action->kind != ACTION_UPSERT && action->key_count)
        verdict_refuse(&c->v, here, "only an upsert has a key");
    if (action->kind == ACTION_UPSERT && action->where.size)
        verdict_refuse(&c->v, here, "an upsert has no where");
    if (action->kind == ACTION_DELETE && action->set_count)
        verdict_refuse(&c->v, here, "a delete sets nothing");
    if (action->kind == ACTION_UPDATE && action->set_count == 0)
        verdict_refuse(&c->v, here, "an update must set something");
    check_pairs(c, here, "key", action->key, action->key_count);
    check_pairs(c, here, "set", action->sets, action->set_count);
}

/* What only a projector has that is in a lane. */
static void check_attempts(struct check *c, const struct path *here, const struct definition_projector *p)
{
    struct path on_failure = path_member(here, "on_failure"), attempts = path_member(here, "max_attempts");
    struct path workers = path_member(here, "workers");
    static const char once[] = "a synchronous projector is run once, with its command";
    if (p->sync && p->on_failure.size)
        verdict_refuse(&c->v, &on_failure, once);
    if (p->sync && p->attempts_max)
        verdict_refuse(&c->v, &attempts, once);
    if (p->sync && p->workers)
        verdict_refuse(&c->v, &workers, once);
    if (p->on_failure.size && !definition_on_failure(p->on_failure))
        verdict_refuse(&c->v, &on_failure, "'%.*s' is neither stall nor void", TEXT(p->on_failure));
    if (p->attempts_max > PROJECTOR_ATTEMPTS_MAX)
        verdict_refuse(&c->v, &attempts, "it must be at most %d", PROJECTOR_ATTEMPTS_MAX);
    if (p->workers > PROJECTOR_WORKERS_MAX)
        verdict_refuse(&c->v, &workers, "it must be at most %d", PROJECTOR_WORKERS_MAX);
}

/* Actions show all that they read and write; for a handler the schema must say it. */
static void check_handler(struct check *c, const struct path *here, const struct definition_projector *p)
{
    struct path all = path_member(here, "do"), sync = path_member(here, "sync");
    struct path writes = path_member(here, "writes"), reads = path_member(here, "reads");
    if (p->action_count && p->write_count)
        verdict_refuse(&c->v, &writes, "what it does says what it writes");
    if (p->action_count && p->read_count)
        verdict_refuse(&c->v, &reads, "what it does says what it reads");
    if (p->action_count == 0 && p->write_count == 0)
        verdict_refuse(&c->v, &all, "a projector needs something to do, or says what its handler writes");
    if (p->action_count == 0 && p->sync)
        verdict_refuse(&c->v, &sync, "a handler takes its time: only what is all in 'do' can be synchronous");
    check_texts(c, &writes, p->writes, p->write_count, DEFINITION_ENTITIES_MAX);
    check_texts(c, &reads, p->reads, p->read_count, DEFINITION_ENTITIES_MAX);
}

static void check_projector(struct check *c, const struct path *group, const struct definition_projector *p)
{
    struct path here = path_name(group, p->name), on = path_member(&here, "on"), all = path_member(&here, "do");
    struct path lane = path_member(&here, "lane");
    if (p->on_count == 0)
        verdict_refuse(&c->v, &on, "a projector needs a command to be on");
    check_texts(c, &on, p->on, p->on_count, DEFINITION_ON_MAX);
    if (p->sync && p->lane.size)
        verdict_refuse(&c->v, &lane, "a synchronous projector is in no lane");
    if (p->lane.size)
        check_name(c, &lane, p->lane);
    check_handler(c, &here, p);
    check_attempts(c, &here, p);
    if (!within(c, &all, p->action_count, DEFINITION_ACTIONS_MAX))
        return;
    for (size_t i = 0; i < p->action_count && c->v.status == PAWL_OK; i++) {
        struct path at = path_index(&all, i);
        check_action(c, &at, &p->actions[i]);
    }
}

static void check_view(struct check *c, const struct path *group, const struct definition_view *view)
{
    struct path here = path_name(group, view->name), key = path_member(&here, "key");
    struct path include = path_member(&here, "include"), base = path_member(&here, "base");
    if (view->base.size == 0)
        verdict_refuse(&c->v, &base, "the type is missing");
    if (view->key_count == 0)
        verdict_refuse(&c->v, &key, "a view needs a key of at least one field");
    check_texts(c, &key, view->key, view->key_count, DEFINITION_KEY_MAX);
    check_texts(c, &include, view->include, view->include_count, SCHEMA_FIELDS_MAX);
}

static void check_workspace(struct check *c, const struct path *group, const struct definition_workspace *w)
{
    struct path here = path_name(group, w->name), at = path_member(&here, "sequences");
    check_named(c, &at, w->sequences, w->sequence_count, sizeof *w->sequences, DEFINITION_SEQUENCES_MAX);
    for (size_t i = 0; i < w->sequence_count && c->v.status == PAWL_OK; i++) {
        const struct definition_sequence *s = &w->sequences[i];
        struct path sequence = path_name(&at, s->name), first = path_member(&sequence, "first");
        struct path end = path_member(&sequence, "end");
        if (s->first > INT64_MAX)
            verdict_refuse(&c->v, &first, "the first number is beyond what an int64 holds");
        if (s->end > INT64_MAX)
            verdict_refuse(&c->v, &end, "the last number is beyond what an int64 holds");
        if (s->end && s->end < (s->first ? s->first : 1))
            verdict_refuse(&c->v, &end, "the last number is below the first");
    }
}

/* What a name of a package was given to. */
struct taken {
    pawl_bytes name;
    const char *group;
    pawl_bytes workspace; /* of a sequence */
    size_t order;
};

static int taken_order(const void *a, const void *b)
{
    const struct taken *x = a, *y = b;
    int order = bytes_compare(x->name, y->name);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static void take_names(struct taken *taken, size_t *used, const char *group, pawl_bytes workspace,
                       const void *items, size_t count, size_t item_size)
{
    for (size_t i = 0; i < count; i++) {
        const void *item = (const uint8_t *)items + i * item_size;
        taken[*used] = (struct taken){
            .name = *(const pawl_bytes *)item, .group = group, .workspace = workspace, .order = *used};
        ++*used;
    }
}

/* A qualified name means one thing. Only a sequence may be in several kinds of workspaces. */
static void check_taken(struct check *c)
{
    const struct definition *d = c->d;
    size_t count = d->workspace_count + d->type_count + d->entity_count + d->command_count + d->projector_count
                   + d->view_count;
    for (size_t i = 0; i < d->workspace_count; i++)
        count += d->workspaces[i].sequence_count;
    struct taken *taken = arena_take(c->arena, count * sizeof *taken);
    if (!taken) {
        verdict_fail(&c->v, PAWL_ENOMEM);
        return;
    }
    size_t used = 0;
    const pawl_bytes none = {NULL, 0};
    take_names(taken, &used, "workspaces", none, d->workspaces, d->workspace_count, sizeof *d->workspaces);
    for (size_t i = 0; i < d->workspace_count; i++) {
        const struct definition_workspace *w = &d->workspaces[i];
        take_names(taken, &used, "sequences", w->name, w->sequences, w->sequence_count, sizeof *w->sequences);
    }
    take_names(taken, &used, "types", none, d->types, d->type_count, sizeof *d->types);
    take_names(taken, &used, "entities", none, d->entities, d->entity_count, sizeof *d->entities);
    take_names(taken, &used, "commands", none, d->commands, d->command_count, sizeof *d->commands);
    take_names(taken, &used, "projectors", none, d->projectors, d->projector_count, sizeof *d->projectors);
    take_names(taken, &used, "views", none, d->views, d->view_count, sizeof *d->views);
    qsort(taken, used, sizeof *taken, taken_order);
    for (size_t i = 1; i < used; i++) {
        const struct taken *a = &taken[i - 1], *b = &taken[i];
        if ((a->workspace.size && b->workspace.size) || !bytes_equal(a->name, b->name))
            continue;
        struct path root = {0}, kinds = path_member(&root, "workspaces"),
                    kind = path_name(&kinds, b->workspace);
        struct path group = path_member(b->workspace.size ? &kind : &root, b->group);
        struct path here = path_name(&group, b->name);
        verdict_refuse(&c->v, &here, "the name is one of the package's %s already", a->group);
    }
}

static void check_group_names(struct check *c, const struct path *at, const void *items, size_t count,
                              size_t item_size, size_t max)
{
    if (!within(c, at, count, max))
        return;
    for (size_t i = 0; i < count; i++) {
        pawl_bytes name = *(const pawl_bytes *)(const void *)((const uint8_t *)items + i * item_size);
        struct path here = path_name(at, name);
        check_name(c, &here, name);
    }
}

#define GROUP(c, member, items, count, max, check_one)                                                         \
    do {                                                                                                       \
        struct path at = path_member(&root, member);                                                           \
        check_group_names((c), &at, d->items, d->count, sizeof *d->items, (max));                              \
        for (size_t i = 0; i < d->count && (c)->v.status == PAWL_OK; i++)                                      \
            check_one((c), &at, &d->items[i]);                                                                 \
    } while (0)

static void check_command(struct check *c, const struct path *group, const struct definition_command *command)
{
    struct path here = path_name(group, command->name), records = path_member(&here, "records");
    check_texts(c, &records, command->records, command->record_count, DEFINITION_RECORDS_MAX);
}

int definition_check(const struct definition *d, struct arena *arena, pawl_error *error)
{
    struct check c = {.v = {.error = error}, .d = d, .arena = arena};
    struct path root = {0}, package = path_member(&root, "package");
    check_name(&c, &package, d->package);
    if (bytes_equal(d->package, (pawl_bytes){"sys", 3}))
        verdict_refuse(&c.v, &package, "'sys' is the system's own");
    GROUP(&c, "workspaces", workspaces, workspace_count, DEFINITION_WORKSPACES_MAX, check_workspace);
    GROUP(&c, "types", types, type_count, DEFINITION_TYPES_MAX, check_type);
    GROUP(&c, "entities", entities, entity_count, DEFINITION_TYPES_MAX, check_entity);
    GROUP(&c, "commands", commands, command_count, DEFINITION_COMMANDS_MAX, check_command);
    GROUP(&c, "projectors", projectors, projector_count, DEFINITION_PROJECTORS_MAX, check_projector);
    GROUP(&c, "views", views, view_count, DEFINITION_VIEWS_MAX, check_view);
    if (c.v.status == PAWL_OK)
        check_taken(&c);
    return c.v.status;
}

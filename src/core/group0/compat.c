#include "core/group0/compat.h"

#include "base/bytes.h"
#include "core/schema/path.h"

#define FIND(list, count, name) definition_find((list), (count), sizeof *(list), (name))

static void compare_fields(struct verdict *v, const struct path *owner, const struct definition_field *before,
                           size_t before_count, const struct definition_field *after, size_t after_count)
{
    struct path group = path_member(owner, "fields");
    for (size_t i = 0; i < before_count; i++) {
        const struct definition_field *old = &before[i], *new = FIND(after, after_count, old->name);
        struct path here = path_name(&group, old->name), type = path_member(&here, "type");
        struct path required = path_member(&here, "required"), sequence = path_member(&here, "sequence");
        struct path to = path_member(&here, "to");
        if (!new) {
            verdict_refuse(v, &here, "the field was removed; stored rows have it");
            continue;
        }
        if (!bytes_equal(old->type, new->type))
            verdict_refuse(v, &type, "it was %.*s and cannot become %.*s: stored rows hold the former",
                           TEXT(old->type), TEXT(new->type));
        if (!old->required && new->required)
            verdict_refuse(v, &required, "the field was optional, and stored rows may lack it");
        if (!bytes_equal(old->sequence, new->sequence))
            verdict_refuse(v, &sequence,
                           "a field's sequence cannot change: its numbers would no longer be dense");
        if (new->to.size && !bytes_equal(old->to, new->to))
            verdict_refuse(v, &to,
                           "what a ref refers to can be dropped, not changed: stored rows refer to others");
    }
    for (size_t i = 0; i < after_count; i++) {
        struct path here = path_name(&group, after[i].name), required = path_member(&here, "required");
        if (after[i].required && !FIND(before, before_count, after[i].name))
            verdict_refuse(v, &required, "a field that is new cannot be required: stored rows lack it");
    }
}

static void compare_type(struct verdict *v, const struct path *group, const struct definition_type *old,
                         const struct definition_type *new)
{
    struct path here = path_name(group, old->name), kind = path_member(&here, "kind");
    struct path singleton = path_member(&here, "singleton"), children = path_member(&here, "children");
    if (!new) {
        verdict_refuse(v, &here, "the type was removed; records of it are stored");
        return;
    }
    if (!bytes_equal(old->kind, new->kind))
        verdict_refuse(v, &kind, "it was %.*s and cannot become %.*s", TEXT(old->kind), TEXT(new->kind));
    if (old->singleton != new->singleton)
        verdict_refuse(v, &singleton,
                       "whether a type is a singleton cannot change: its records have their IDs");
    compare_fields(v, &here, old->fields, old->field_count, new->fields, new->field_count);
    for (size_t i = 0; i < old->child_count; i++) {
        const struct definition_pair *child = FIND(new->children, new->child_count, old->children[i].name);
        struct path at = path_name(&children, old->children[i].name);
        if (!child)
            verdict_refuse(v, &at, "the container was removed; records are stored in it");
        else if (!bytes_equal(child->text, old->children[i].text))
            verdict_refuse(v, &at, "it held %.*s and cannot hold %.*s", TEXT(old->children[i].text),
                           TEXT(child->text));
    }
}

static bool same_names(const pawl_bytes *a, size_t a_count, const pawl_bytes *b, size_t b_count)
{
    if (a_count != b_count)
        return false;
    for (size_t i = 0; i < a_count; i++)
        if (!bytes_equal(a[i], b[i]))
            return false;
    return true;
}

static void compare_entity(struct verdict *v, const struct path *group, const struct definition_entity *old,
                           const struct definition_entity *new)
{
    struct path here = path_name(group, old->name), key = path_member(&here, "key");
    if (!new) {
        verdict_refuse(v, &here, "the entity was removed; rows of it are stored");
        return;
    }
    if (!same_names(old->key, old->key_count, new->key, new->key_count))
        verdict_refuse(v, &key, "an entity's key cannot change: its rows are stored by it");
    compare_fields(v, &here, old->fields, old->field_count, new->fields, new->field_count);
}

static void compare_workspace(struct verdict *v, const struct path *group,
                              const struct definition_workspace *old, const struct definition_workspace *new)
{
    struct path here = path_name(group, old->name), sequences = path_member(&here, "sequences");
    if (!new) {
        verdict_refuse(v, &here, "the workspace kind was removed; there may be workspaces of it");
        return;
    }
    for (size_t i = 0; i < old->sequence_count; i++) {
        const struct definition_sequence *was = &old->sequences[i];
        const struct definition_sequence *is = FIND(new->sequences, new->sequence_count, was->name);
        struct path at = path_name(&sequences, was->name), first = path_member(&at, "first");
        struct path end = path_member(&at, "end");
        if (!is) {
            verdict_refuse(v, &at, "the sequence was removed; numbers of it are stored");
            continue;
        }
        if (was->first != is->first)
            verdict_refuse(v, &first, "a sequence's first number cannot change: it may have been given");
        if (is->end && (was->end == 0 || is->end < was->end))
            verdict_refuse(v, &end,
                           "a sequence's end can be raised, not lowered: numbers above may have been given");
    }
}

int compat_check(const struct definition *before, const struct definition *after, pawl_error *error)
{
    struct verdict v = {.error = error};
    struct path root = {0};
    struct path workspaces = path_member(&root, "workspaces"), types = path_member(&root, "types");
    struct path entities = path_member(&root, "entities"), commands = path_member(&root, "commands");
    for (size_t i = 0; i < before->workspace_count; i++)
        compare_workspace(&v, &workspaces, &before->workspaces[i],
                          FIND(after->workspaces, after->workspace_count, before->workspaces[i].name));
    for (size_t i = 0; i < before->type_count; i++)
        compare_type(&v, &types, &before->types[i],
                     FIND(after->types, after->type_count, before->types[i].name));
    for (size_t i = 0; i < before->entity_count; i++)
        compare_entity(&v, &entities, &before->entities[i],
                       FIND(after->entities, after->entity_count, before->entities[i].name));
    for (size_t i = 0; i < before->command_count; i++) {
        const struct definition_command *old = &before->commands[i];
        const struct definition_command *new = FIND(after->commands, after->command_count, old->name);
        struct path here = path_name(&commands, old->name), argument = path_member(&here, "argument");
        if (!new)
            verdict_refuse(&v, &here, "the command was removed; events name it");
        else if (old->argument.size && !bytes_equal(old->argument, new->argument))
            verdict_refuse(
                &v, &argument,
                "a command's argument can be added, not changed: projectors would read events that have "
                "the former");
    }
    return v.status;
}

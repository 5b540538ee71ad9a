/* core/schema/resolve.c: names, workspaces, types and commands of a schema. */
#include "core/schema/resolve.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "core/schema/resolve_impl.h"

static const char *const type_words[] = {
    [TYPE_CDOC] = "CDoc", [TYPE_CRECORD] = "CRecord", [TYPE_WDOC] = "WDoc",     [TYPE_WRECORD] = "WRecord",
    [TYPE_ODOC] = "ODoc", [TYPE_ORECORD] = "ORecord", [TYPE_ENTITY] = "entity",
};

void resolver_enter(struct resolver *r, const struct definition *package)
{
    r->package = package;
    bool at_hand = bytes_equal(package->package, r->source->subject);
    r->v.package = at_hand ? (pawl_bytes){NULL, 0} : package->package;
}

void *resolver_take(struct resolver *r, size_t count, size_t size)
{
    void *memory = count <= SIZE_MAX / size ? arena_take(r->arena, count * size) : NULL;
    if (memory)
        memset(memory, 0, count * size);
    else
        verdict_fail(&r->v, PAWL_ENOMEM);
    return memory;
}

const struct schema_name *resolver_look(const struct resolver *r, pawl_bytes text)
{
    return schema_name_from(&r->out->schema, r->package->package, text);
}

const struct schema_name *resolver_own(const struct resolver *r, pawl_bytes name)
{
    const struct schema_name *own = resolver_look(r, name);
    assert(own);
    return own;
}

const struct schema_name *resolver_refer(struct resolver *r, const struct path *at, pawl_bytes text,
                                         enum named_kind kind)
{
    const struct schema_name *name = resolver_look(r, text);
    const char *word = named_kind_text(kind);
    const char *noun = strchr(word, ' ') + 1;
    if (!name)
        verdict_refuse(&r->v, at, "there is no %s '%.*s'", noun, TEXT(text));
    else if (name->kind != kind)
        verdict_refuse(&r->v, at, "'%.*s' is %s, not %s", TEXT(text), named_kind_text(name->kind), word);
    return name && name->kind == kind ? name : NULL;
}

static int id_order(const void *a, const void *b)
{
    uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;
    return (x > y) - (x < y);
}

static void resolve_sequences(struct resolver *r, const struct definition_workspace *from,
                              struct schema_workspace *to)
{
    struct schema_sequence *sequences = resolver_take(r, from->sequence_count, sizeof *sequences);
    if (!sequences)
        return;
    for (size_t i = 0; i < from->sequence_count; i++) {
        const struct schema_name *name = resolver_own(r, from->sequences[i].name);
        uint64_t first = from->sequences[i].first, end = from->sequences[i].end;
        sequences[i] = (struct schema_sequence){
            .id = name->id, .name = name->text, .first = first ? first : 1, .end = end ? end : INT64_MAX};
    }
    qsort(sequences, from->sequence_count, sizeof *sequences, id_order);
    to->sequences = sequences;
    to->sequence_count = from->sequence_count;
}

static void resolve_workspaces(struct resolver *r)
{
    size_t count = 0, used = 0;
    for (size_t p = 0; p < r->source->package_count; p++)
        count += r->source->packages[p].workspace_count;
    struct schema_workspace *workspaces = resolver_take(r, count, sizeof *workspaces);
    for (size_t p = 0; p < r->source->package_count && workspaces; p++) {
        const struct definition *d = &r->source->packages[p];
        resolver_enter(r, d);
        for (size_t i = 0; i < d->workspace_count; i++) {
            struct schema_workspace *to = &workspaces[used++];
            const struct schema_name *name = resolver_own(r, d->workspaces[i].name);
            *to = (struct schema_workspace){.id = name->id, .name = name->text};
            resolve_sequences(r, &d->workspaces[i], to);
        }
    }
    if (!workspaces)
        return;
    qsort(workspaces, used, sizeof *workspaces, id_order);
    r->out->schema.workspaces = workspaces;
    r->out->schema.workspace_count = used;
}

/* Their IDs and kinds first, so that they can refer to each other. */
static void enter_types(struct resolver *r)
{
    size_t count = 0, used = 0;
    for (size_t p = 0; p < r->source->package_count; p++)
        count += r->source->packages[p].type_count + r->source->packages[p].entity_count;
    r->types = resolver_take(r, count, sizeof *r->types);
    for (size_t p = 0; p < r->source->package_count && r->types; p++) {
        const struct definition *d = &r->source->packages[p];
        resolver_enter(r, d);
        for (size_t i = 0; i < d->type_count + d->entity_count; i++) {
            bool entity = i >= d->type_count;
            const struct schema_name *name =
                resolver_own(r, entity ? d->entities[i - d->type_count].name : d->types[i].name);
            r->types[used++] = (struct schema_type){
                .id = name->id,
                .kind = entity ? TYPE_ENTITY : definition_type_kind(d->types[i].kind),
                .table = name->table,
                .singleton = name->singleton,
                .name = name->text,
            };
        }
    }
    if (!r->types)
        return;
    qsort(r->types, used, sizeof *r->types, id_order);
    r->out->schema.types = r->types;
    r->out->schema.type_count = used;
}

static struct schema_type *own_type(struct resolver *r, pawl_bytes name)
{
    return (struct schema_type *)schema_type_by_id(&r->out->schema, resolver_own(r, name)->id);
}

static void resolve_fields(struct resolver *r, const struct path *owner, const struct definition_field *from,
                           size_t count, struct schema_type *to)
{
    struct schema_field *fields = resolver_take(r, count, sizeof *fields);
    struct path group = path_member(owner, "fields");
    for (size_t i = 0; i < count && fields; i++) {
        struct path here = path_name(&group, from[i].name), sequence = path_member(&here, "sequence");
        struct path target = path_member(&here, "to");
        fields[i] = (struct schema_field){
            .name = from[i].name, .type = definition_value_type(from[i].type), .required = from[i].required};
        if (from[i].sequence.size) {
            const struct schema_name *name = resolver_refer(r, &sequence, from[i].sequence, NAMED_SEQUENCE);
            fields[i].sequence = name ? name->id : 0;
        }
        if (from[i].to.size) {
            const struct schema_name *name = resolver_refer(r, &target, from[i].to, NAMED_TYPE);
            fields[i].to = name ? name->id : 0;
        }
    }
    to->fields = fields;
    to->field_count = fields ? count : 0;
}

static enum type_kind child_kind(enum type_kind parent)
{
    switch (parent) {
    case TYPE_CDOC:
    case TYPE_CRECORD: return TYPE_CRECORD;
    case TYPE_WDOC:
    case TYPE_WRECORD: return TYPE_WRECORD;
    default: return TYPE_ORECORD;
    }
}

static void resolve_containers(struct resolver *r, const struct path *owner, const struct definition_type *from,
                               struct schema_type *to)
{
    struct schema_container *containers = resolver_take(r, from->child_count, sizeof *containers);
    struct path group = path_member(owner, "children");
    for (size_t i = 0; i < from->child_count && containers; i++) {
        struct path here = path_name(&group, from->children[i].name);
        const struct schema_name *name = resolver_refer(r, &here, from->children[i].text, NAMED_TYPE);
        if (!name)
            return;
        const struct schema_type *type = schema_type_by_id(&r->out->schema, name->id);
        if (type->kind != child_kind(to->kind))
            verdict_refuse(&r->v, &here, "%.*s is of kind %s; the children of a %s are %ss", TEXT(name->text),
                           type_words[type->kind], type_words[to->kind], type_words[child_kind(to->kind)]);
        containers[i] = (struct schema_container){.name = from->children[i].name, .type = type};
    }
    to->containers = containers;
    to->container_count = containers ? from->child_count : 0;
}

static void resolve_key(struct resolver *r, const struct definition_entity *from, struct schema_type *to)
{
    uint16_t *key = resolver_take(r, from->key_count, sizeof *key);
    for (size_t i = 0; i < from->key_count && key; i++)
        key[i] = (uint16_t)schema_field_place(to, from->key[i]);
    to->key = key;
    to->key_count = key ? from->key_count : 0;
}

/* How deep types nest below each, and whether one is inside itself (S2). */
struct nesting {
    uint8_t *heights; /* by the type's place; 0: not known yet */
    uint8_t *open;    /* being looked at */
};

static uint8_t measure(struct resolver *r, struct nesting *n, const struct path *at,
                       const struct schema_type *type, unsigned level)
{
    size_t place = (size_t)(type - r->types);
    if (n->heights[place])
        return n->heights[place];
    if (n->open[place])
        verdict_refuse(&r->v, at, "%.*s would contain itself", TEXT(type->name));
    else if (level > SCHEMA_DEPTH_MAX)
        verdict_refuse(&r->v, at, "types nest more than %d deep", SCHEMA_DEPTH_MAX);
    if (r->v.status)
        return 1;
    n->open[place] = 1;
    uint8_t height = 1;
    for (size_t i = 0; i < type->container_count && r->v.status == PAWL_OK; i++) {
        uint8_t below = measure(r, n, at, type->containers[i].type, level + 1);
        height = below >= height ? (uint8_t)(below + 1) : height;
    }
    n->open[place] = 0;
    if (height > SCHEMA_DEPTH_MAX)
        verdict_refuse(&r->v, at, "types nest more than %d deep", SCHEMA_DEPTH_MAX);
    return n->heights[place] = height;
}

static void check_nesting(struct resolver *r)
{
    size_t count = r->out->schema.type_count;
    struct nesting n = {.heights = resolver_take(r, count, 1), .open = resolver_take(r, count, 1)};
    if (!n.heights || !n.open)
        return;
    for (size_t p = 0; p < r->source->package_count; p++) {
        const struct definition *d = &r->source->packages[p];
        resolver_enter(r, d);
        struct path root = {0}, group = path_member(&root, "types");
        for (size_t i = 0; i < d->type_count && r->v.status == PAWL_OK; i++) {
            struct path here = path_name(&group, d->types[i].name), at = path_member(&here, "children");
            measure(r, &n, &at, own_type(r, d->types[i].name), 1);
        }
    }
}

static void resolve_types(struct resolver *r)
{
    enter_types(r);
    for (size_t p = 0; p < r->source->package_count && r->types; p++) {
        const struct definition *d = &r->source->packages[p];
        resolver_enter(r, d);
        struct path root = {0}, types = path_member(&root, "types"), entities = path_member(&root, "entities");
        for (size_t i = 0; i < d->type_count && r->v.status == PAWL_OK; i++) {
            struct path here = path_name(&types, d->types[i].name);
            struct schema_type *to = own_type(r, d->types[i].name);
            resolve_fields(r, &here, d->types[i].fields, d->types[i].field_count, to);
            resolve_containers(r, &here, &d->types[i], to);
        }
        for (size_t i = 0; i < d->entity_count && r->v.status == PAWL_OK; i++) {
            struct path here = path_name(&entities, d->entities[i].name);
            struct schema_type *to = own_type(r, d->entities[i].name);
            resolve_fields(r, &here, d->entities[i].fields, d->entities[i].field_count, to);
            if (r->v.status == PAWL_OK)
                resolve_key(r, &d->entities[i], to);
        }
    }
    if (r->v.status == PAWL_OK)
        check_nesting(r);
}

static void resolve_records(struct resolver *r, const struct path *command,
                            const struct definition_command *from, struct schema_command *to)
{
    const struct schema_type **records = resolver_take(r, from->record_count, sizeof(void *));
    struct path group = path_member(command, "records");
    for (size_t i = 0; i < from->record_count && records; i++) {
        struct path here = path_index(&group, i);
        const struct schema_name *name = resolver_refer(r, &here, from->records[i], NAMED_TYPE);
        if (!name)
            return;
        records[i] = schema_type_by_id(&r->out->schema, name->id);
        for (size_t k = 0; k < i; k++)
            if (records[k] == records[i])
                verdict_refuse(&r->v, &here, "%.*s is there twice", TEXT(name->text));
    }
    to->records = records;
    to->record_count = records ? from->record_count : 0;
}

static void resolve_command(struct resolver *r, const struct path *group, const struct definition_command *from,
                            struct schema_command *to)
{
    struct path here = path_name(group, from->name), at = path_member(&here, "argument");
    const struct schema_name *own = resolver_own(r, from->name);
    *to = (struct schema_command){.id = own->id, .name = own->text};
    if (from->argument.size) {
        const struct schema_name *name = resolver_refer(r, &at, from->argument, NAMED_TYPE);
        to->argument = name ? schema_type_by_id(&r->out->schema, name->id) : NULL;
        enum type_kind kind = to->argument ? to->argument->kind : TYPE_ODOC;
        if (kind != TYPE_CDOC && kind != TYPE_WDOC && kind != TYPE_ODOC)
            verdict_refuse(&r->v, &at, "%.*s is of kind %s; an argument is a document", TEXT(name->text),
                           type_words[kind]);
    }
    resolve_records(r, &here, from, to);
}

static void resolve_commands(struct resolver *r)
{
    size_t count = 0, used = 0;
    for (size_t p = 0; p < r->source->package_count; p++)
        count += r->source->packages[p].command_count;
    r->commands = resolver_take(r, count, sizeof *r->commands);
    for (size_t p = 0; p < r->source->package_count && r->commands; p++) {
        const struct definition *d = &r->source->packages[p];
        resolver_enter(r, d);
        struct path root = {0}, group = path_member(&root, "commands");
        for (size_t i = 0; i < d->command_count && r->v.status == PAWL_OK; i++)
            resolve_command(r, &group, &d->commands[i], &r->commands[used++]);
    }
    if (!r->commands)
        return;
    qsort(r->commands, used, sizeof *r->commands, id_order);
    r->out->schema.commands = r->commands;
    r->out->schema.command_count = used;
}

int schema_resolve(const struct schema_source *source, struct arena *arena, struct resolved *ret_resolved,
                   pawl_error *error)
{
    struct resolved out = {.schema = {.position = source->position,
                                      .names = source->names,
                                      .name_count = source->name_count,
                                      .names_by_text = source->names_by_text}};
    struct resolver r = {.v = {.error = error}, .source = source, .arena = arena, .out = &out};
    void (*const steps[])(struct resolver *) = {resolve_workspaces, resolve_types, resolve_commands,
                                                resolve_projectors, resolve_lanes};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && r.v.status == PAWL_OK; i++)
        steps[i](&r);
    if (r.v.status) {
        resolved_release(&out);
        return r.v.status;
    }
    *ret_resolved = out;
    return PAWL_OK;
}

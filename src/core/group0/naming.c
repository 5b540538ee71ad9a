#include "core/group0/naming.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/id.h"
#include "core/schema/path.h"

struct namer {
    struct verdict v;
    struct arena *arena;
    const struct schema *before; /* what was named then; sequences may come several times in one package */
    struct naming out;
    size_t room;
    pawl_bytes package;
    uint32_t next_id;
    uint32_t next_table;
    uint64_t next_singleton; /* without its register */
};

static pawl_bytes qualify(struct namer *n, pawl_bytes name)
{
    size_t size = n->package.size + 1 + name.size;
    char *text = arena_take(n->arena, size);
    if (!text) {
        verdict_fail(&n->v, PAWL_ENOMEM);
        return (pawl_bytes){NULL, 0};
    }
    memcpy(text, n->package.data, n->package.size);
    text[n->package.size] = '.';
    memcpy(text + n->package.size + 1, name.data, name.size);
    return (pawl_bytes){text, size};
}

static const struct schema_name *known(const struct namer *n, pawl_bytes qname, enum named_kind kind)
{
    const struct schema_name *name = schema_name_by_text(n->before, qname);
    /* Only sequences are met twice in a package, and there are few of them that are new. */
    for (size_t i = n->before->name_count; !name && kind == NAMED_SEQUENCE && i < n->out.count; i++)
        if (bytes_equal(n->out.names[i].text, qname))
            name = &n->out.names[i];
    return name;
}

/* NULL if it is not new, or cannot be. */
static struct schema_name *name_one(struct namer *n, const struct path *at, pawl_bytes name,
                                    enum named_kind kind)
{
    if (n->v.status)
        return NULL;
    pawl_bytes qname = qualify(n, name);
    if (!qname.data)
        return NULL;
    const struct schema_name *there = known(n, qname, kind);
    if (there && there->kind != kind)
        verdict_refuse(&n->v, at, "the name was given to %s, and keeps its meaning",
                       named_kind_text(there->kind));
    if (there)
        return NULL;
    if (n->next_id > UINT16_MAX) {
        verdict_refuse(&n->v, at, "all %d names are given", UINT16_MAX + 1 - SCHEMA_NAME_FIRST);
        return NULL;
    }
    assert(n->out.count < n->room);
    struct schema_name *new = &n->out.names[n->out.count++];
    *new = (struct schema_name){.id = (uint16_t)n->next_id++, .kind = kind, .text = qname};
    return new;
}

/* Each has a name of its own, so that tables are below 65536 as IDs are: schema_table relies on it. */
static uint32_t take_table(struct namer *n)
{
    assert(n->next_table <= UINT16_MAX);
    return n->next_table++;
}

static void name_type(struct namer *n, const struct path *group, const struct definition_type *type)
{
    struct path here = path_name(group, type->name), at = path_member(&here, "singleton");
    struct schema_name *name = name_one(n, &here, type->name, NAMED_TYPE);
    enum type_kind kind = definition_type_kind(type->kind);
    if (!name)
        return;
    if (type_has_table(kind))
        name->table = take_table(n);
    if (!type->singleton)
        return;
    if (n->next_singleton > RECORD_SINGLETON_LAST)
        verdict_refuse(&n->v, &at, "there are %d singletons already, and no more IDs for them",
                       (int)(RECORD_SINGLETON_LAST - RECORD_SINGLETON_FIRST + 1));
    else
        name->singleton = record_id(n->next_singleton++, type_in_c(kind));
}

static void name_list(struct namer *n, const char *member, const void *items, size_t count, size_t item_size,
                      enum named_kind kind)
{
    struct path root = {0}, group = path_member(&root, member);
    for (size_t i = 0; i < count && n->v.status == PAWL_OK; i++) {
        const void *item = (const uint8_t *)items + i * item_size;
        struct path here = path_name(&group, *(const pawl_bytes *)item);
        struct schema_name *name = name_one(n, &here, *(const pawl_bytes *)item, kind);
        if (name && kind == NAMED_ENTITY)
            name->table = take_table(n);
    }
}

static void name_package(struct namer *n, const struct definition *d)
{
    struct path root = {0}, workspaces = path_member(&root, "workspaces"), types = path_member(&root, "types");
    for (size_t i = 0; i < d->workspace_count; i++) {
        const struct definition_workspace *w = &d->workspaces[i];
        struct path here = path_name(&workspaces, w->name), group = path_member(&here, "sequences");
        name_one(n, &here, w->name, NAMED_WORKSPACE);
        for (size_t k = 0; k < w->sequence_count; k++) {
            struct path at = path_name(&group, w->sequences[k].name);
            name_one(n, &at, w->sequences[k].name, NAMED_SEQUENCE);
        }
    }
    for (size_t i = 0; i < d->type_count; i++)
        name_type(n, &types, &d->types[i]);
    name_list(n, "entities", d->entities, d->entity_count, sizeof *d->entities, NAMED_ENTITY);
    name_list(n, "commands", d->commands, d->command_count, sizeof *d->commands, NAMED_COMMAND);
    name_list(n, "projectors", d->projectors, d->projector_count, sizeof *d->projectors, NAMED_PROJECTOR);
    name_list(n, "views", d->views, d->view_count, sizeof *d->views, NAMED_VIEW);
}

static void copy_names(struct namer *n)
{
    for (size_t i = 0; i < n->before->name_count && n->v.status == PAWL_OK; i++) {
        struct schema_name name = n->before->names[i];
        name.text = arena_copy(n->arena, name.text);
        if (!name.text.data)
            verdict_fail(&n->v, PAWL_ENOMEM);
        if (name.id >= n->next_id)
            n->next_id = name.id + 1u;
        if (name.table >= n->next_table)
            n->next_table = name.table + 1;
        if (name.singleton && record_base(name.singleton) >= n->next_singleton)
            n->next_singleton = record_base(name.singleton) + 1;
        n->out.names[n->out.count++] = name;
    }
}

static int text_order(const void *a, const void *b, void *names)
{
    const struct schema_name *n = names;
    return schema_name_order(n[*(const uint16_t *)a].text, n[*(const uint16_t *)b].text);
}

static size_t names_of(const struct definition *d)
{
    if (!d)
        return 0;
    size_t count = d->workspace_count + d->type_count + d->entity_count + d->command_count + d->projector_count
                   + d->view_count;
    for (size_t i = 0; i < d->workspace_count; i++)
        count += d->workspaces[i].sequence_count;
    return count;
}

int naming_extend(const struct schema *before, const struct definition *package, struct arena *arena,
                  struct naming *ret_naming, pawl_error *error)
{
    struct namer n = {.v = {.error = error},
                      .arena = arena,
                      .before = before,
                      .room = before->name_count + names_of(package),
                      .package = package ? package->package : (pawl_bytes){NULL, 0},
                      .next_id = SCHEMA_NAME_FIRST,
                      .next_table = SCHEMA_TABLE_FIRST,
                      .next_singleton = RECORD_SINGLETON_FIRST};
    n.out.names = arena_take(arena, n.room * sizeof *n.out.names);
    if (!n.out.names)
        return PAWL_ENOMEM;
    copy_names(&n);
    if (package)
        name_package(&n, package);
    if (n.v.status)
        return n.v.status;
    n.out.by_text = arena_take(arena, n.out.count * sizeof *n.out.by_text);
    if (!n.out.by_text)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < n.out.count; i++)
        n.out.by_text[i] = (uint16_t)i;
    qsort_r(n.out.by_text, n.out.count, sizeof *n.out.by_text, text_order, n.out.names);
    *ret_naming = n.out;
    return PAWL_OK;
}

/* engine/json/schema_show.c: a definition becomes JSON, in the order of docs/SCHEMA.md.
 *
 * A jansson function that takes over a reference fails if this is NULL, and does nothing else. So errors need
 * not be checked one by one: any of them shows in the sum at the end. */
#include <jansson.h>
#include <string.h>

#include "engine/json/schema.h"

struct writer {
    bool failed;
};

static void put(struct writer *w, json_t *object, pawl_bytes name, json_t *value)
{
    char key[SCHEMA_NAME_BYTES_MAX + 1];
    size_t size = name.size < sizeof key ? name.size : sizeof key - 1;
    memcpy(key, name.data, size);
    key[size] = '\0';
    if (json_object_set_new(object, key, value))
        w->failed = true;
}

static void put_member(struct writer *w, json_t *object, const char *member, json_t *value)
{
    put(w, object, (pawl_bytes){member, strlen(member)}, value);
}

static json_t *text_json(pawl_bytes text)
{
    return json_stringn(text.data, text.size);
}

static void put_text(struct writer *w, json_t *object, const char *member, pawl_bytes text)
{
    if (text.size)
        put_member(w, object, member, text_json(text));
}

static void put_flag(struct writer *w, json_t *object, const char *member, bool flag)
{
    if (flag)
        put_member(w, object, member, json_true());
}

static void put_number(struct writer *w, json_t *object, const char *member, uint64_t number)
{
    if (number)
        put_member(w, object, member, json_integer((json_int_t)number));
}

static void put_texts(struct writer *w, json_t *object, const char *member, const pawl_bytes *texts,
                      size_t count)
{
    if (count == 0)
        return;
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(array, text_json(texts[i])))
            w->failed = true;
    put_member(w, object, member, array);
}

/* Add a member with items, each of which begins with its name. No items: no member. */
static void put_group(struct writer *w, json_t *object, const char *member, const void *items, size_t count,
                      size_t item_size, json_t *(*show)(struct writer *w, const void *item))
{
    if (count == 0)
        return;
    json_t *group = json_object();
    for (size_t i = 0; i < count; i++) {
        const void *item = (const uint8_t *)items + i * item_size;
        put(w, group, *(const pawl_bytes *)item, show(w, item));
    }
    put_member(w, object, member, group);
}

static json_t *show_pair(struct writer *w, const void *item)
{
    return text_json(((const struct definition_pair *)item)->text);
}

static json_t *show_sequence(struct writer *w, const void *item)
{
    const struct definition_sequence *s = item;
    json_t *json = json_object();
    put_number(w, json, "first", s->first);
    put_number(w, json, "end", s->end);
    return json;
}

static json_t *show_workspace(struct writer *w, const void *item)
{
    const struct definition_workspace *from = item;
    json_t *json = json_object();
    put_group(w, json, "sequences", from->sequences, from->sequence_count, sizeof *from->sequences,
              show_sequence);
    return json;
}

static json_t *show_field(struct writer *w, const void *item)
{
    const struct definition_field *f = item;
    json_t *json = json_object();
    put_text(w, json, "type", f->type);
    put_flag(w, json, "required", f->required);
    put_text(w, json, "sequence", f->sequence);
    put_text(w, json, "to", f->to);
    return json;
}

static json_t *show_type(struct writer *w, const void *item)
{
    const struct definition_type *t = item;
    json_t *json = json_object();
    put_text(w, json, "kind", t->kind);
    put_flag(w, json, "singleton", t->singleton);
    put_group(w, json, "fields", t->fields, t->field_count, sizeof *t->fields, show_field);
    put_group(w, json, "children", t->children, t->child_count, sizeof *t->children, show_pair);
    return json;
}

static json_t *show_command(struct writer *w, const void *item)
{
    const struct definition_command *c = item;
    json_t *json = json_object();
    put_text(w, json, "argument", c->argument);
    put_texts(w, json, "records", c->records, c->record_count);
    return json;
}

static json_t *show_entity(struct writer *w, const void *item)
{
    const struct definition_entity *e = item;
    json_t *json = json_object();
    put_texts(w, json, "key", e->key, e->key_count);
    put_group(w, json, "fields", e->fields, e->field_count, sizeof *e->fields, show_field);
    return json;
}

static json_t *show_action(struct writer *w, const struct definition_action *a)
{
    static const char *const words[] = {
        [ACTION_UPSERT] = "upsert", [ACTION_UPDATE] = "update", [ACTION_DELETE] = "delete"};
    json_t *json = json_object();
    put_text(w, json, words[a->kind], a->entity);
    put_group(w, json, "key", a->key, a->key_count, sizeof *a->key, show_pair);
    put_text(w, json, "where", a->where);
    put_group(w, json, "set", a->sets, a->set_count, sizeof *a->sets, show_pair);
    return json;
}

static void put_actions(struct writer *w, json_t *object, const struct definition_projector *p)
{
    if (p->action_count == 0)
        return;
    json_t *actions = json_array();
    for (size_t i = 0; i < p->action_count; i++)
        if (json_array_append_new(actions, show_action(w, &p->actions[i])))
            w->failed = true;
    put_member(w, object, "do", actions);
}

static json_t *show_projector(struct writer *w, const void *item)
{
    const struct definition_projector *p = item;
    json_t *json = json_object();
    put_texts(w, json, "on", p->on, p->on_count);
    put_flag(w, json, "sync", p->sync);
    put_text(w, json, "lane", p->lane);
    put_actions(w, json, p);
    put_texts(w, json, "writes", p->writes, p->write_count);
    put_texts(w, json, "reads", p->reads, p->read_count);
    put_text(w, json, "on_failure", p->on_failure);
    put_number(w, json, "max_attempts", p->attempts_max);
    put_number(w, json, "workers", p->workers);
    return json;
}

static json_t *show_view(struct writer *w, const void *item)
{
    const struct definition_view *v = item;
    json_t *json = json_object();
    put_text(w, json, "base", v->base);
    put_texts(w, json, "key", v->key, v->key_count);
    put_texts(w, json, "include", v->include, v->include_count);
    put_text(w, json, "filter", v->filter);
    put_flag(w, json, "unique", v->unique);
    return json;
}

static json_t *show_package(struct writer *w, const struct definition *d)
{
    json_t *json = json_object();
    put_number(w, json, "schema", 1);
    put_text(w, json, "package", d->package);
    put_group(w, json, "workspaces", d->workspaces, d->workspace_count, sizeof *d->workspaces, show_workspace);
    put_group(w, json, "types", d->types, d->type_count, sizeof *d->types, show_type);
    put_group(w, json, "commands", d->commands, d->command_count, sizeof *d->commands, show_command);
    put_group(w, json, "entities", d->entities, d->entity_count, sizeof *d->entities, show_entity);
    put_group(w, json, "projectors", d->projectors, d->projector_count, sizeof *d->projectors, show_projector);
    put_group(w, json, "views", d->views, d->view_count, sizeof *d->views, show_view);
    return json;
}

static int gather(const char *bytes, size_t size, void *ctx)
{
    pawl_bytes *text = ctx;
    if (text->data)
        memcpy((char *)(uintptr_t)text->data + text->size, bytes, size);
    text->size += size;
    return 0;
}

static int show_as(const struct definition *definition, size_t flags, struct arena *arena, pawl_bytes *ret_text)
{
    struct writer w = {.failed = false};
    json_t *json = show_package(&w, definition);
    pawl_bytes size = {NULL, 0}, text = {NULL, 0};
    if (!json || w.failed || json_dump_callback(json, gather, &size, flags))
        goto no_memory;
    text.data = arena_take(arena, size.size + 1);
    if (!text.data || json_dump_callback(json, gather, &text, flags))
        goto no_memory;
    json_decref(json);
    gather("\n", 1, &text);
    *ret_text = text;
    return PAWL_OK;

no_memory:
    json_decref(json);
    return PAWL_ENOMEM;
}

int schema_show(const struct definition *definition, struct arena *arena, pawl_bytes *ret_text)
{
    return show_as(definition, JSON_INDENT(2) | JSON_PRESERVE_ORDER, arena, ret_text);
}

int schema_show_line(const struct definition *definition, struct arena *arena, pawl_bytes *ret_text)
{
    return show_as(definition, JSON_COMPACT | JSON_PRESERVE_ORDER, arena, ret_text);
}

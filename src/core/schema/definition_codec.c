/* core/schema/definition_codec.c: a definition to bytes and back.
 *
 * One walk does all three: counting the bytes, writing them, reading them. So what is written is what is read,
 * and a member cannot be forgotten in one of them. */
#include "base/bytes.h"
#include "base/error.h"
#include "core/schema/definition.h"

enum codec_mode { COUNT, WRITE, READ };

struct codec {
    enum codec_mode mode;
    uint8_t version; /* of the bytes */
    struct encoder out;
    struct decoder in;
    size_t size; /* COUNT: so far */
    struct arena *arena;
    int status; /* the first thing that went wrong, but for a bad decoder */
};

static void code_u64(struct codec *c, uint64_t *number)
{
    if (c->mode == COUNT)
        c->size += 8;
    else if (c->mode == WRITE)
        encode_u64(&c->out, *number);
    else
        *number = decode_u64(&c->in);
}

static void code_u16(struct codec *c, uint16_t *number)
{
    if (c->mode == COUNT)
        c->size += 2;
    else if (c->mode == WRITE)
        encode_u16(&c->out, *number);
    else
        *number = decode_u16(&c->in);
}

static void code_u8(struct codec *c, uint8_t *number)
{
    if (c->mode == COUNT)
        c->size += 1;
    else if (c->mode == WRITE)
        encode_u8(&c->out, *number);
    else
        *number = decode_u8(&c->in);
}

static void code_flag(struct codec *c, bool *flag)
{
    uint8_t byte = *flag;
    code_u8(c, &byte);
    if (byte > 1)
        c->in.bad = true;
    *flag = byte != 0;
}

static void code_text(struct codec *c, pawl_bytes *text)
{
    if (c->mode == COUNT) {
        if (text->size > DEFINITION_BYTES_MAX)
            c->status = PAWL_ETOOBIG;
        else
            c->size += 4 + text->size;
    } else if (c->mode == WRITE) {
        encode_u32(&c->out, (uint32_t)text->size);
        encode_raw(&c->out, *text);
    } else {
        text->size = decode_u32(&c->in);
        text->data = decode_raw(&c->in, text->size);
        if (c->in.bad || text->size == 0)
            *text = (pawl_bytes){NULL, 0};
    }
}

/* An item takes four bytes at least, so a count that the rest cannot hold is refused before memory is asked
 * for. */
static void *list_room(struct codec *c, size_t count, size_t item_size)
{
    if (count > c->in.left / 4)
        c->in.bad = true;
    if (c->in.bad || count == 0 || c->status)
        return NULL;
    void *items = arena_take(c->arena, count * item_size);
    if (!items)
        c->status = PAWL_ENOMEM;
    else
        memset(items, 0, count * item_size);
    return items;
}

/* A list, with only the items that were read whole, so that nobody who walks it meets a half-made one. */
static void *code_list(struct codec *c, void *items, size_t *count, size_t item_size,
                       void (*code_item)(struct codec *c, void *item))
{
    if (*count > UINT16_MAX)
        c->status = PAWL_ETOOBIG;
    uint16_t written = (uint16_t)*count;
    code_u16(c, &written);
    if (c->mode == READ) {
        items = list_room(c, written, item_size);
        *count = items ? written : 0;
    }
    for (size_t i = 0; i < *count && !c->in.bad && !c->status; i++)
        code_item(c, (uint8_t *)items + i * item_size);
    return items;
}

#define LIST(c, items, count, code_item)                                                                       \
    ((items) = code_list((c), (items), &(count), sizeof *(items), (code_item)))

static void code_name(struct codec *c, void *item)
{
    code_text(c, item);
}

static void code_sequence(struct codec *c, void *item)
{
    struct definition_sequence *s = item;
    code_text(c, &s->name);
    code_u64(c, &s->first);
    code_u64(c, &s->end);
}

static void code_workspace(struct codec *c, void *item)
{
    struct definition_workspace *w = item;
    code_text(c, &w->name);
    LIST(c, w->sequences, w->sequence_count, code_sequence);
}

static void code_field(struct codec *c, void *item)
{
    struct definition_field *f = item;
    code_text(c, &f->name);
    code_text(c, &f->type);
    code_flag(c, &f->required);
    code_text(c, &f->sequence);
    code_text(c, &f->to);
}

static void code_pair(struct codec *c, void *item)
{
    struct definition_pair *p = item;
    code_text(c, &p->name);
    code_text(c, &p->text);
}

static void code_type(struct codec *c, void *item)
{
    struct definition_type *t = item;
    code_text(c, &t->name);
    code_text(c, &t->kind);
    code_flag(c, &t->singleton);
    LIST(c, t->fields, t->field_count, code_field);
    LIST(c, t->children, t->child_count, code_pair);
}

static void code_entity(struct codec *c, void *item)
{
    struct definition_entity *e = item;
    code_text(c, &e->name);
    LIST(c, e->key, e->key_count, code_name);
    LIST(c, e->fields, e->field_count, code_field);
}

static void code_command(struct codec *c, void *item)
{
    struct definition_command *m = item;
    code_text(c, &m->name);
    code_text(c, &m->argument);
    LIST(c, m->records, m->record_count, code_name);
}

static void code_action(struct codec *c, void *item)
{
    struct definition_action *a = item;
    uint8_t kind = (uint8_t)a->kind;
    code_u8(c, &kind);
    if (kind < ACTION_UPSERT || kind > ACTION_DELETE)
        c->in.bad = true;
    else
        a->kind = (enum action_kind)kind;
    code_text(c, &a->entity);
    LIST(c, a->key, a->key_count, code_pair);
    LIST(c, a->sets, a->set_count, code_pair);
    code_text(c, &a->where);
}

static void code_projector(struct codec *c, void *item)
{
    struct definition_projector *p = item;
    code_text(c, &p->name);
    LIST(c, p->on, p->on_count, code_name);
    code_flag(c, &p->sync);
    code_text(c, &p->lane);
    LIST(c, p->actions, p->action_count, code_action);
    if (c->version < 2)
        return;
    LIST(c, p->writes, p->write_count, code_name);
    LIST(c, p->reads, p->read_count, code_name);
    code_text(c, &p->on_failure);
    code_u64(c, &p->attempts_max);
    code_u64(c, &p->workers);
}

static void code_view(struct codec *c, void *item)
{
    struct definition_view *v = item;
    code_text(c, &v->name);
    code_text(c, &v->base);
    LIST(c, v->key, v->key_count, code_name);
    LIST(c, v->include, v->include_count, code_name);
    code_text(c, &v->filter);
    if (c->version >= 3)
        code_flag(c, &v->unique);
}

static void code_definition(struct codec *c, struct definition *d)
{
    code_text(c, &d->package);
    LIST(c, d->workspaces, d->workspace_count, code_workspace);
    LIST(c, d->types, d->type_count, code_type);
    LIST(c, d->commands, d->command_count, code_command);
    LIST(c, d->entities, d->entity_count, code_entity);
    LIST(c, d->projectors, d->projector_count, code_projector);
    LIST(c, d->views, d->view_count, code_view);
}

int definition_encode(const struct definition *definition, struct arena *arena, pawl_bytes *ret_bytes)
{
    /* Counting and writing put back only what was there. */
    struct definition walked = *definition;
    struct codec counter = {.mode = COUNT, .version = DEFINITION_VERSION, .size = 2};
    code_definition(&counter, &walked);
    if (counter.status || counter.size > DEFINITION_BYTES_MAX)
        return PAWL_ETOOBIG;
    void *bytes = arena_take(arena, counter.size);
    if (!bytes)
        return PAWL_ENOMEM;
    struct codec writer = {
        .mode = WRITE, .version = DEFINITION_VERSION, .out = encoder_over(bytes, counter.size)};
    encode_u8(&writer.out, DEFINITION_VERSION);
    encode_u8(&writer.out, 0);
    code_definition(&writer, &walked);
    *ret_bytes = (pawl_bytes){bytes, counter.size};
    return PAWL_OK;
}

int definition_decode(pawl_bytes bytes, struct arena *arena, struct definition *ret_definition,
                      pawl_error *error)
{
    struct codec c = {.mode = READ, .in = decoder_over(bytes), .arena = arena};
    uint8_t version = decode_u8(&c.in), zero = decode_u8(&c.in);
    if (!c.in.bad && version > DEFINITION_VERSION)
        return error_set(error, PAWL_EVERSION,
                         "byte 0: the package is of version %u; this program knows up to %d", version,
                         DEFINITION_VERSION);
    if (c.in.bad || version == 0 || zero != 0 || bytes.size > DEFINITION_BYTES_MAX)
        return error_set(error, PAWL_ECORRUPT, "byte 0: this is not the head of a package");
    struct definition d = {0};
    c.version = version;
    code_definition(&c, &d);
    if (c.status)
        return error_set(error, c.status, "%s", pawl_status_text(c.status));
    if (c.in.bad || c.in.left != 0)
        return error_set(error, PAWL_ECORRUPT, "byte %zu: these are not bytes of a package",
                         bytes.size - c.in.left);
    *ret_definition = d;
    return PAWL_OK;
}

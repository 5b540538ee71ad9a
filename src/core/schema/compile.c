/* core/schema/compile.c: what names mean in the expressions of a schema; schema.h describes the slots.
 *
 *     field                       of the row at hand
 *     $event.offset, ...          enum event_slot
 *     $event.argument.FIELD       of the command's argument
 *     $event.records.TYPE.FIELD   of the event's first record of a type, its own name or a qualified one
 *
 * and id in place of FIELD in the latter two. In a view over records also id, parent and active. */
#include "core/schema/compile.h"

#include "base/bytes.h"
#include "core/schema/resolve_impl.h"

struct names {
    const struct schema *schema; /* its names and types are there, whatever else is still to come */
    pawl_bytes package;
    const struct compile_scope *scope;
};

static const struct {
    const char *name;
    enum event_slot slot;
    enum value_type type;
} event_names[] = {
    {"offset", EVENT_OFFSET, VALUE_INT64},
    {"wsid", EVENT_WSID, VALUE_INT64},
    {"workspace_offset", EVENT_WORKSPACE_OFFSET, VALUE_INT64},
    {"time", EVENT_TIME, VALUE_TIMESTAMP},
    {"command", EVENT_COMMAND, VALUE_QNAME},
    {"actor", EVENT_ACTOR, VALUE_STRING},
    {"correlation", EVENT_CORRELATION, VALUE_STRING},
    {"causation", EVENT_CAUSATION, VALUE_STRING},
};

static int give(uint32_t of, uint32_t place, enum value_type type, uint32_t *ret_slot,
                enum value_type *ret_type)
{
    *ret_slot = slot_make(of, place);
    *ret_type = type;
    return PAWL_OK;
}

static int give_field(uint32_t of, const struct schema_type *type, pawl_bytes field, uint32_t *ret_slot,
                      enum value_type *ret_type)
{
    int place = schema_field_place(type, field);
    if (place >= 0)
        return give(of, (uint32_t)place, type->fields[place].type, ret_slot, ret_type);
    if (of != SLOT_ROW && bytes_equal(field, (pawl_bytes){"id", 2}))
        return give(of, SLOT_ID, VALUE_REF, ret_slot, ret_type);
    return PAWL_ENOTFOUND;
}

/* Whether the text begins with this word, and then what follows. */
static bool begins(pawl_bytes text, const char *word, pawl_bytes *ret_rest)
{
    size_t size = strlen(word);
    if (text.size <= size || memcmp(text.data, word, size) != 0)
        return false;
    *ret_rest = (pawl_bytes){(const char *)text.data + size, text.size - size};
    return true;
}

static int find_record(const struct names *n, pawl_bytes path, uint32_t *ret_slot, enum value_type *ret_type)
{
    const char *text = path.data;
    size_t dot = path.size;
    while (dot > 0 && text[dot - 1] != '.')
        dot--;
    if (dot == 0)
        return PAWL_ENOTFOUND;
    pawl_bytes type_name = {text, dot - 1}, field = {text + dot, path.size - dot};
    const struct schema_name *name = schema_name_from(n->schema, n->package, type_name);
    if (!name || name->kind != NAMED_TYPE)
        return PAWL_ENOTFOUND;
    const struct schema_type *type = schema_type_by_id(n->schema, name->id);
    return type ? give_field(name->id, type, field, ret_slot, ret_type) : PAWL_ENOTFOUND;
}

static int find_event(const struct names *n, pawl_bytes path, uint32_t *ret_slot, enum value_type *ret_type)
{
    if (!n->scope->event)
        return PAWL_ENOTFOUND;
    for (size_t i = 0; i < sizeof event_names / sizeof *event_names; i++)
        if (bytes_equal(path, (pawl_bytes){event_names[i].name, strlen(event_names[i].name)}))
            return give(SLOT_EVENT, event_names[i].slot, event_names[i].type, ret_slot, ret_type);
    pawl_bytes rest;
    if (begins(path, "argument.", &rest))
        return n->scope->argument ? give_field(SLOT_ARGUMENT, n->scope->argument, rest, ret_slot, ret_type)
                                  : PAWL_ENOTFOUND;
    if (begins(path, "records.", &rest))
        return find_record(n, rest, ret_slot, ret_type);
    return PAWL_ENOTFOUND;
}

/* What every record has besides its fields. */
static int find_head(pawl_bytes name, uint32_t *ret_slot, enum value_type *ret_type)
{
    static const struct {
        const char *name;
        uint32_t place;
        enum value_type type;
    } heads[] = {
        {"id", SLOT_ID, VALUE_REF}, {"parent", SLOT_PARENT, VALUE_REF}, {"active", SLOT_ACTIVE, VALUE_BOOL}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (bytes_equal(name, (pawl_bytes){heads[i].name, strlen(heads[i].name)}))
            return give(SLOT_ROW, heads[i].place, heads[i].type, ret_slot, ret_type);
    return PAWL_ENOTFOUND;
}

static int find(void *ctx, enum expr_name kind, pawl_bytes path, uint32_t *ret_slot, enum value_type *ret_type)
{
    const struct names *n = ctx;
    if (kind == EXPR_EVENT)
        return find_event(n, path, ret_slot, ret_type);
    int status = n->scope->row ? give_field(SLOT_ROW, n->scope->row, path, ret_slot, ret_type) : PAWL_ENOTFOUND;
    return status == PAWL_ENOTFOUND && n->scope->record ? find_head(path, ret_slot, ret_type) : status;
}

static int find_qname(void *ctx, pawl_bytes text, uint16_t *ret_name)
{
    const struct names *n = ctx;
    const struct schema_name *name = schema_name_from(n->schema, n->package, text);
    if (!name)
        return PAWL_ENOTFOUND;
    *ret_name = name->id;
    return PAWL_OK;
}

const struct schema_name *schema_name_from(const struct schema *schema, pawl_bytes package, pawl_bytes text)
{
    char qualified[SCHEMA_QNAME_BYTES_MAX];
    if (text.size == 0 || text.size > SCHEMA_QNAME_BYTES_MAX)
        return NULL;
    if (!memchr(text.data, '.', text.size)) {
        if (package.size + 1 + text.size > sizeof qualified)
            return NULL;
        memcpy(qualified, package.data, package.size);
        qualified[package.size] = '.';
        memcpy(qualified + package.size + 1, text.data, text.size);
        text = (pawl_bytes){qualified, package.size + 1 + text.size};
    }
    return schema_name_by_text(schema, text);
}

int schema_compile(const struct schema *schema, pawl_bytes package, pawl_bytes text,
                   const struct compile_scope *scope, const pawl_allocator *alloc, struct expr **ret_expr,
                   pawl_error *error)
{
    struct names names = {.schema = schema, .package = package, .scope = scope};
    struct expr_scope inner = {
        .ctx = &names, .resolve = find, .resolve_qname = find_qname, .want = scope->want};
    return expr_compile(text, &inner, alloc, ret_expr, error);
}

const struct expr *resolver_compile(struct resolver *r, const struct path *at, pawl_bytes text,
                                    const struct compile_scope *scope)
{
    if (r->v.status)
        return NULL;
    struct compiled *compiled = resolver_take(r, 1, sizeof *compiled);
    if (!compiled)
        return NULL;
    pawl_error why = {0};
    int status = schema_compile(&r->out->schema, r->package->package, text, scope, r->arena->alloc,
                                &compiled->expr, &why);
    if (status == PAWL_ENOMEM) {
        verdict_fail(&r->v, status);
        return NULL;
    }
    if (status) {
        verdict_refuse(&r->v, at, "%s", why.text);
        return NULL;
    }
    compiled->next = r->out->compiled;
    r->out->compiled = compiled;
    return compiled->expr;
}

void resolved_release(struct resolved *resolved)
{
    for (const struct compiled *c = resolved->compiled; c; c = c->next)
        expr_free(c->expr);
    resolved->compiled = NULL;
}

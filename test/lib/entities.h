/* test/lib/entities.h: a schema of entities, made in place, for tests of what is done to their rows.
 *
 * Entity e has ID 300 + e and table 400 + e. A field is named by the first letter of its type and its place:
 * "i0", "s1", "f2", "b3". Expressions may also name $event.offset and $event.wsid. */
#ifndef TEST_LIB_ENTITIES_H
#define TEST_LIB_ENTITIES_H

#include "core/schema/schema.h"
#include "test/lib/test.h"

#define ENTITIES_MAX      3
#define ENTITY_FIELDS_MAX 8
#define ENTITY_EXPRS_MAX  1024
#define ENTITY_GENERATION 2

struct entities {
    struct schema schema;
    struct schema_type types[ENTITIES_MAX];
    struct schema_field fields[ENTITIES_MAX][ENTITY_FIELDS_MAX];
    uint16_t key[ENTITIES_MAX][2];
    char names[ENTITIES_MAX][ENTITY_FIELDS_MAX][4];
    struct expr *exprs[ENTITY_EXPRS_MAX];
    size_t expr_count;
};

static inline void entities_init(struct entities *e, uint64_t position)
{
    memset(e, 0, sizeof *e);
    e->schema.position = position;
    e->schema.types = e->types;
}

static inline void entities_release(struct entities *e)
{
    for (size_t i = 0; i < e->expr_count; i++)
        expr_free(e->exprs[i]);
    e->expr_count = 0;
}

/* types: a letter for each field; the first keys of them are the key. A capital letter: it is required. */
static inline struct schema_type *entities_add(struct entities *e, const char *types, size_t keys)
{
    size_t at = e->schema.type_count++;
    struct schema_type *type = &e->types[at];
    assert_true(at < ENTITIES_MAX && strlen(types) <= ENTITY_FIELDS_MAX && keys <= 2);
    *type = (struct schema_type){.id = (uint16_t)(300 + at),
                                 .kind = TYPE_ENTITY,
                                 .table = (uint32_t)(400 + at),
                                 .name = text_bytes("p.Entity"),
                                 .fields = e->fields[at],
                                 .field_count = strlen(types),
                                 .key = e->key[at],
                                 .key_count = keys};
    for (size_t i = 0; types[i]; i++) {
        char letter = types[i] | 0x20, *name = e->names[at][i];
        name[0] = letter;
        name[1] = (char)('0' + i);
        struct schema_field *field = &e->fields[at][i];
        *field = (struct schema_field){.name = {name, 2}, .required = letter != types[i]};
        field->type = letter == 'i'   ? VALUE_INT64
                      : letter == 's' ? VALUE_STRING
                      : letter == 'f' ? VALUE_FLOAT64
                                      : VALUE_BOOL;
    }
    for (size_t i = 0; i < keys; i++)
        e->key[at][i] = (uint16_t)i;
    return type;
}

static inline int entities_resolve(void *ctx, enum expr_name kind, pawl_bytes path, uint32_t *ret_slot,
                                   enum value_type *ret_type)
{
    const struct schema_type *type = ctx;
    if (kind == EXPR_EVENT) {
        bool wsid = path.size == 4;
        *ret_slot = slot_make(SLOT_EVENT, wsid ? EVENT_WSID : EVENT_OFFSET);
        *ret_type = VALUE_INT64;
        return PAWL_OK;
    }
    int place = schema_field_place(type, path);
    if (place < 0)
        return PAWL_ENOTFOUND;
    *ret_slot = slot_make(SLOT_ROW, (uint32_t)place);
    *ret_type = type->fields[place].type;
    return PAWL_OK;
}

/* Freed with the entities. */
static inline const struct expr *entities_expr(struct entities *e, const struct schema_type *type,
                                               enum value_type want, const char *text)
{
    struct expr_scope scope = {.ctx = (void *)type, .resolve = entities_resolve, .want = want};
    pawl_error error;
    assert_true(e->expr_count < ENTITY_EXPRS_MAX);
    int status = expr_compile(text_bytes(text), &scope, NULL, &e->exprs[e->expr_count], &error);
    if (status != PAWL_OK)
        print_error("%s: %s\n", text, error.text);
    assert_ok(status);
    return e->exprs[e->expr_count++];
}

#endif

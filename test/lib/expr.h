/* test/lib/expr.h: a scope and a source for expressions, over a few variables of every type.
 *
 * A variable's slot is its place in the table. The fields and the values of $event have the same names, but
 * not the same slots: those of $event are EXPR_VARIABLES further on, behind "doc.". */
#ifndef TEST_LIB_EXPR_H
#define TEST_LIB_EXPR_H

#include <string.h>

#include "core/schema/expr.h"

enum {
    VAR_I,
    VAR_J,
    VAR_F,
    VAR_G,
    VAR_B,
    VAR_C,
    VAR_S,
    VAR_T,
    VAR_BYTES,
    VAR_TIME,
    VAR_NAME,
    VAR_REF,
    VAR_BOOM, /* an int64 that cannot be loaded */
    EXPR_VARIABLES
};

static const struct {
    const char *name;
    enum value_type type;
} expr_variables[EXPR_VARIABLES] = {
    {"i", VALUE_INT64},    {"j", VALUE_INT64},      {"f", VALUE_FLOAT64},  {"g", VALUE_FLOAT64},
    {"b", VALUE_BOOL},     {"c", VALUE_BOOL},       {"s", VALUE_STRING},   {"t", VALUE_STRING},
    {"y", VALUE_BYTES},    {"at", VALUE_TIMESTAMP}, {"kind", VALUE_QNAME}, {"owner", VALUE_REF},
    {"boom", VALUE_INT64},
};

/* The values, and the slots in the order in which they were loaded. */
struct expr_bed {
    struct value values[2 * EXPR_VARIABLES];
    uint32_t loads[64];
    size_t load_count;
};

static inline int bed_resolve(void *ctx, enum expr_name kind, pawl_bytes path, uint32_t *ret_slot,
                              enum value_type *ret_type)
{
    (void)ctx;
    const char *text = path.data;
    size_t skip = kind == EXPR_EVENT ? strlen("doc.") : 0;
    if (path.size < skip || memcmp(text, "doc.", skip) != 0)
        return PAWL_ENOTFOUND;
    for (uint32_t i = 0; i < EXPR_VARIABLES; i++)
        if (strlen(expr_variables[i].name) == path.size - skip
            && memcmp(expr_variables[i].name, text + skip, path.size - skip) == 0) {
            *ret_slot = kind == EXPR_EVENT ? EXPR_VARIABLES + i : i;
            *ret_type = expr_variables[i].type;
            return PAWL_OK;
        }
    return PAWL_ENOTFOUND;
}

static inline int bed_resolve_qname(void *ctx, pawl_bytes text, uint16_t *ret_name)
{
    (void)ctx;
    static const char *const names[] = {"shop.order", "shop.item"};
    for (uint16_t i = 0; i < 2; i++)
        if (strlen(names[i]) == text.size && memcmp(names[i], text.data, text.size) == 0) {
            *ret_name = (uint16_t)(i + 1);
            return PAWL_OK;
        }
    return PAWL_ENOTFOUND;
}

static inline int bed_load(void *ctx, uint32_t slot, struct value *ret_value, pawl_error *error)
{
    struct expr_bed *bed = ctx;
    (void)error;
    if (bed->load_count < sizeof bed->loads / sizeof bed->loads[0])
        bed->loads[bed->load_count++] = slot;
    if (slot % EXPR_VARIABLES == VAR_BOOM)
        return PAWL_EIO;
    *ret_value = bed->values[slot];
    return PAWL_OK;
}

static inline struct expr_scope bed_scope(enum value_type want)
{
    return (struct expr_scope){.resolve = bed_resolve, .resolve_qname = bed_resolve_qname, .want = want};
}

static inline int bed_compile(const char *text, enum value_type want, struct expr **ret_expr, pawl_error *error)
{
    struct expr_scope scope = bed_scope(want);
    return expr_compile((pawl_bytes){text, strlen(text)}, &scope, NULL, ret_expr, error);
}

static inline struct expr_source bed_source(struct expr_bed *bed)
{
    return (struct expr_source){.ctx = bed, .load = bed_load};
}

#endif

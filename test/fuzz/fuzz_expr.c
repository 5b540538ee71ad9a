/* fuzz_expr.c: any text is refused with a place, or gives null or a value of the type that it was compiled to;
 * brackets around it change nothing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static struct expr_bed some_values(bool nulls)
{
    struct expr_bed bed = {0};
    for (uint32_t i = 0; i < 2 * EXPR_VARIABLES; i++) {
        struct value *v = &bed.values[i];
        v->type = nulls && i % 2 ? VALUE_NULL : expr_variables[i % EXPR_VARIABLES].type;
        if (v->type == VALUE_FLOAT64)
            v->real = i % 3 ? -0.5 : 1e300;
        else if (v->type == VALUE_BOOL)
            v->boolean = i % 3 == 0;
        else if (v->type == VALUE_STRING || v->type == VALUE_BYTES)
            v->bytes = (pawl_bytes){"abc", i % 4};
        else if (v->type == VALUE_QNAME)
            v->name = (uint16_t)(i % 2);
        else if (v->type != VALUE_NULL)
            v->integer = i % 3 ? (int64_t)i : INT64_MAX; /* a REF's id too */
    }
    return bed;
}

static int check_slot(void *ctx, uint32_t slot)
{
    (void)ctx;
    require(slot < 2 * EXPR_VARIABLES);
    return 0;
}

static bool same(const struct value *a, const struct value *b)
{
    if (a->type != b->type || a->type == VALUE_NULL)
        return a->type == b->type;
    if (a->type == VALUE_STRING || a->type == VALUE_BYTES)
        return a->bytes.size == b->bytes.size
               && (a->bytes.size == 0 || memcmp(a->bytes.data, b->bytes.data, a->bytes.size) == 0);
    if (a->type == VALUE_BOOL || a->type == VALUE_QNAME)
        return a->type == VALUE_BOOL ? a->boolean == b->boolean : a->name == b->name;
    return a->id == b->id; /* all 64 bits, of whatever they are */
}

static int evaluate(const struct expr *expr, bool nulls, uint8_t *room, size_t room_size,
                    struct value *ret_value)
{
    struct expr_bed bed = some_values(nulls);
    struct expr_source source = bed_source(&bed);
    struct expr_scratch scratch = {.data = room, .size = room_size};
    pawl_error error = {0};
    int status = expr_eval(expr, &source, &scratch, ret_value, &error);
    require(status == PAWL_OK || status == PAWL_EIO || strncmp(error.text, "line ", 5) == 0);
    require(status != PAWL_EMISUSE);
    require(status != PAWL_OK || ret_value->type == VALUE_NULL || ret_value->type == expr_type(expr));
    require(scratch.used <= room_size && (status == PAWL_OK || scratch.used == 0));
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t rooms[2][256];
    static uint8_t bracketed[EXPR_TEXT_BYTES_MAX + 2];
    struct expr_scope scope = bed_scope(VALUE_NULL);
    struct expr *exprs[2];
    pawl_error error = {0};
    if (expr_compile((pawl_bytes){data, size}, &scope, NULL, &exprs[0], &error) != PAWL_OK) {
        require(strncmp(error.text, "line ", 5) == 0);
        return 0;
    }
    expr_uses(exprs[0], check_slot, NULL);

    bracketed[0] = '(';
    memcpy(bracketed + 1, data, size);
    bracketed[size + 1] = ')';
    int status = expr_compile((pawl_bytes){bracketed, size + 2}, &scope, NULL, &exprs[1], &error);
    require(status == PAWL_OK || status == PAWL_ETOOBIG);
    for (int nulls = 0; nulls < 2; nulls++) {
        struct value values[2] = {{0}};
        int outcome = evaluate(exprs[0], nulls, rooms[0], sizeof rooms[0], &values[0]);
        if (status != PAWL_OK)
            continue;
        require(evaluate(exprs[1], nulls, rooms[1], sizeof rooms[1], &values[1]) == outcome);
        require(outcome != PAWL_OK || same(&values[0], &values[1]));
    }
    expr_free(exprs[0]);
    if (status == PAWL_OK)
        expr_free(exprs[1]);
    return 0;
}

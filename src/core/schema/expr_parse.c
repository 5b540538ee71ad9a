/* expr_parse.c: the grammar, one function a rule, and the making of a struct expr. */
#include "core/schema/expr_impl.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static struct operand parse_expr(struct parser *p);

static enum token_kind present(const struct parser *p)
{
    return p->lexer.token.kind;
}

static void next(struct parser *p)
{
    if (p->status == PAWL_OK)
        p->status = expr_lex(&p->lexer, p->error);
    if (p->status != PAWL_OK)
        p->lexer.token.kind = TOKEN_END;
}

static void refuse_token(struct parser *p, const char *expected)
{
    const struct token *found = &p->lexer.token;
    if (found->kind == TOKEN_END)
        refuse(p, found->place, PAWL_EINVAL, "expected %s, found the end", expected);
    else if (found->kind == TOKEN_STRING)
        refuse(p, found->place, PAWL_EINVAL, "expected %s, found a string", expected);
    else
        refuse(p, found->place, PAWL_EINVAL, "expected %s, found '%s%.*s'", expected,
               found->kind == TOKEN_EVENT ? "$event." : "", expr_shown(found->text),
               (const char *)found->text.data);
}

static bool accept(struct parser *p, enum token_kind kind)
{
    if (present(p) != kind)
        return false;
    next(p);
    return true;
}

static void expect(struct parser *p, enum token_kind kind)
{
    char quoted[16];
    if (accept(p, kind))
        return;
    snprintf(quoted, sizeof quoted, "'%s'", expr_token_text(kind));
    refuse_token(p, quoted);
}

/* Every rule that contains itself passes here, so that a text cannot exhaust the thread's stack. */
static void enter(struct parser *p)
{
    if (p->depth++ > EXPR_DEPTH_MAX) /* the whole is at 0, and counts as no level */
        refuse(p, p->lexer.token.place, PAWL_ETOOBIG, "nested deeper than %d levels", EXPR_DEPTH_MAX);
}

static void leave(struct parser *p)
{
    p->depth--;
}

static struct operand parse_starts_with(struct parser *p)
{
    struct place place = p->lexer.token.place;
    next(p);
    expect(p, TOKEN_OPEN);
    struct operand whole = parse_expr(p);
    expr_require_type(p, &whole, VALUE_STRING, "starts_with");
    expect(p, TOKEN_COMMA);
    struct operand part = parse_expr(p);
    expr_require_type(p, &part, VALUE_STRING, "starts_with");
    expect(p, TOKEN_CLOSE);
    expr_emit(p, OP_STARTS_WITH, place);
    return (struct operand){.type = VALUE_BOOL, .place = place};
}

/* The jumps of one list, until its end is known, are linked through their arguments; 0 ends the list, where no
 * jump can be. */
static uint32_t emit_linked(struct parser *p, enum op op, struct place place, uint32_t previous)
{
    uint32_t jump = expr_emit(p, op, place);
    p->code[jump].argument = previous;
    return jump;
}

static void land_linked(struct parser *p, uint32_t jump)
{
    while (jump != 0 && p->status == PAWL_OK) {
        uint32_t previous = p->code[jump].argument;
        expr_emit_landing(p, jump);
        jump = previous;
    }
}

static struct operand parse_coalesce(struct parser *p)
{
    struct place place = p->lexer.token.place;
    enum value_type type = VALUE_NULL;
    uint32_t skips = 0;
    bool integers = false;
    next(p);
    expect(p, TOKEN_OPEN);
    for (uint32_t i = 0;; i++) {
        struct operand argument = parse_expr(p);
        type = expr_unite_type(p, type, &argument);
        integers |= argument.type == VALUE_INT64;
        if (i > 0 && present(p) != TOKEN_COMMA)
            break;
        expect(p, TOKEN_COMMA);
        skips = emit_linked(p, OP_COALESCE_SKIP, place, skips);
        if (p->status != PAWL_OK)
            break;
    }
    expect(p, TOKEN_CLOSE);
    land_linked(p, skips);
    if (type == VALUE_FLOAT64 && integers)
        expr_emit(p, OP_TO_FLOAT, place);
    return (struct operand){.type = type, .place = place};
}

static struct operand parse_integer(struct parser *p, bool negative, struct place place)
{
    uint64_t magnitude = p->lexer.token.magnitude;
    if (magnitude > (uint64_t)INT64_MAX && !negative)
        refuse(p, place, PAWL_EINVAL, "the number is too large for an int64");
    next(p);
    int64_t integer = magnitude > (uint64_t)INT64_MAX ? INT64_MIN
                      : negative                      ? -(int64_t)magnitude
                                                      : (int64_t)magnitude;
    return expr_emit_constant(p, (struct value){.type = VALUE_INT64, .integer = integer}, place);
}

static struct operand parse_float(struct parser *p, bool negative, struct place place)
{
    double real = p->lexer.token.real;
    next(p);
    return expr_emit_constant(p, (struct value){.type = VALUE_FLOAT64, .real = negative ? -real : real}, place);
}

static struct operand parse_word(struct parser *p, struct value value)
{
    struct place place = p->lexer.token.place;
    next(p);
    return expr_emit_constant(p, value, place);
}

static struct operand parse_nested(struct parser *p)
{
    next(p);
    struct operand inner = parse_expr(p);
    expect(p, TOKEN_CLOSE);
    return inner;
}

static struct operand parse_primary(struct parser *p)
{
    struct token token = p->lexer.token;
    switch (token.kind) {
    case TOKEN_INT: return parse_integer(p, false, token.place);
    case TOKEN_FLOAT: return parse_float(p, false, token.place);
    case TOKEN_NULL: return parse_word(p, (struct value){.type = VALUE_NULL});
    case TOKEN_TRUE: return parse_word(p, (struct value){.type = VALUE_BOOL, .boolean = true});
    case TOKEN_FALSE: return parse_word(p, (struct value){.type = VALUE_BOOL, .boolean = false});
    case TOKEN_STRING: next(p); return expr_emit_string(p, &token);
    case TOKEN_NAME:
    case TOKEN_EVENT: next(p); return expr_emit_load(p, &token);
    case TOKEN_OPEN: return parse_nested(p);
    case TOKEN_STARTS_WITH: return parse_starts_with(p);
    case TOKEN_COALESCE: return parse_coalesce(p);
    default: refuse_token(p, "a value"); return (struct operand){.place = token.place};
    }
}

static struct operand parse_unary(struct parser *p)
{
    struct place place = p->lexer.token.place;
    if (!accept(p, TOKEN_MINUS))
        return parse_primary(p);
    if (present(p) == TOKEN_INT)
        return parse_integer(p, true, place);
    if (present(p) == TOKEN_FLOAT)
        return parse_float(p, true, place);
    enter(p);
    struct operand inner = parse_unary(p);
    leave(p);
    expr_require_number(p, &inner, "-");
    expr_emit(p, OP_NEGATE, place);
    return (struct operand){.type = inner.type, .place = place};
}

static struct operand parse_product(struct parser *p)
{
    struct operand left = parse_unary(p);
    while (present(p) == TOKEN_TIMES || present(p) == TOKEN_DIVIDE) {
        enum op op = present(p) == TOKEN_TIMES ? OP_MULTIPLY : OP_DIVIDE;
        struct place place = p->lexer.token.place;
        next(p);
        left = expr_emit_arithmetic(p, op, left, parse_unary(p), place);
    }
    return left;
}

static struct operand parse_sum(struct parser *p)
{
    struct operand left = parse_product(p);
    while (present(p) == TOKEN_PLUS || present(p) == TOKEN_MINUS || present(p) == TOKEN_CONCAT) {
        enum token_kind sign = present(p);
        struct place place = p->lexer.token.place;
        next(p);
        struct operand right = parse_product(p);
        left = sign == TOKEN_CONCAT
                   ? expr_emit_concat(p, left, right, place)
                   : expr_emit_arithmetic(p, sign == TOKEN_PLUS ? OP_ADD : OP_SUBTRACT, left, right, place);
    }
    return left;
}

static struct operand parse_in(struct parser *p, struct operand left, struct place place)
{
    uint32_t steps = 0;
    expr_emit(p, OP_IN_BEGIN, place);
    expect(p, TOKEN_OPEN);
    do {
        struct place at = p->lexer.token.place;
        struct operand element = parse_expr(p);
        expr_require_comparable(p, OP_EQ, &left, &element, at);
        steps = emit_linked(p, OP_IN_STEP, place, steps);
        left.literal = NULL; /* compared as what it is: it can become nothing else any more */
    } while (accept(p, TOKEN_COMMA));
    expect(p, TOKEN_CLOSE);
    land_linked(p, steps);
    expr_emit(p, OP_IN_END, place);
    return (struct operand){.type = VALUE_BOOL, .place = left.place};
}

static bool is_comparison(enum token_kind kind)
{
    return kind >= TOKEN_EQ && kind <= TOKEN_GT;
}
_Static_assert(TOKEN_GT - TOKEN_EQ == OP_GT - OP_EQ, "comparisons are in the tokens' order");

static struct operand parse_comparison(struct parser *p)
{
    struct operand left = parse_sum(p);
    struct place place = p->lexer.token.place;
    enum token_kind kind = present(p);
    if (is_comparison(kind)) {
        next(p);
        return expr_emit_comparison(p, (enum op)(kind - TOKEN_EQ + OP_EQ), left, parse_sum(p), place);
    }
    bool negated = accept(p, TOKEN_NOT);
    if (!negated && kind != TOKEN_IN)
        return left;
    expect(p, TOKEN_IN);
    left = parse_in(p, left, place);
    if (negated)
        expr_emit(p, OP_NOT, place);
    return left;
}

static struct operand parse_test(struct parser *p)
{
    struct operand left = parse_comparison(p);
    for (struct place place = p->lexer.token.place; accept(p, TOKEN_IS); place = p->lexer.token.place) {
        bool negated = accept(p, TOKEN_NOT);
        expect(p, TOKEN_NULL);
        expr_emit(p, OP_IS_NULL, place);
        if (negated)
            expr_emit(p, OP_NOT, place);
        left = (struct operand){.type = VALUE_BOOL, .place = left.place};
    }
    if (is_comparison(present(p)) || present(p) == TOKEN_IN || present(p) == TOKEN_NOT)
        refuse_token(p, "'and', 'or' or the end, as comparisons do not chain without brackets");
    return left;
}

static struct operand parse_not(struct parser *p)
{
    struct place place = p->lexer.token.place;
    if (!accept(p, TOKEN_NOT))
        return parse_test(p);
    enter(p);
    struct operand inner = parse_not(p);
    leave(p);
    expr_require_type(p, &inner, VALUE_BOOL, "not");
    expr_emit(p, OP_NOT, place);
    return (struct operand){.type = VALUE_BOOL, .place = place};
}

/* left OPERATOR right OPERATOR right ..., where each right may be jumped over. */
static struct operand parse_logic(struct parser *p, enum token_kind sign, enum op skip, enum op op,
                                  struct operand (*parse_side)(struct parser *p))
{
    struct operand left = parse_side(p);
    for (struct place place = p->lexer.token.place; accept(p, sign); place = p->lexer.token.place) {
        expr_require_type(p, &left, VALUE_BOOL, expr_token_text(sign));
        uint32_t jump = expr_emit(p, skip, place);
        struct operand right = parse_side(p);
        expr_require_type(p, &right, VALUE_BOOL, expr_token_text(sign));
        expr_emit(p, op, place);
        expr_emit_landing(p, jump);
        left = (struct operand){.type = VALUE_BOOL, .place = left.place};
    }
    return left;
}

static struct operand parse_and(struct parser *p)
{
    return parse_logic(p, TOKEN_AND, OP_AND_SKIP, OP_AND, parse_not);
}

static struct operand parse_expr(struct parser *p)
{
    enter(p);
    struct operand whole = parse_logic(p, TOKEN_OR, OP_OR_SKIP, OP_OR, parse_and);
    leave(p);
    return whole;
}

/* The parser's arrays, at the size they turned out to need, in one block. */
static int finish(const struct parser *p, enum value_type type, const pawl_allocator *alloc,
                  struct expr **ret_expr, pawl_error *error)
{
    size_t constants_size = p->constant_count * sizeof(struct value);
    size_t code_size = p->count * sizeof(struct instruction);
    size_t size = sizeof(struct expr) + constants_size + code_size + p->string_bytes;
    struct expr *expr = mem_new(alloc, 1, size);
    if (!expr)
        return error_set(error, PAWL_ENOMEM, "no memory for an expression of %zu bytes", size);
    struct value *constants = (struct value *)(void *)(expr + 1);
    struct instruction *code = (struct instruction *)(void *)(constants + p->constant_count);
    uint8_t *strings = (uint8_t *)(code + p->count);
    memcpy(constants, p->constants, constants_size);
    memcpy(code, p->code, code_size);
    memcpy(strings, p->strings, p->string_bytes);
    for (uint32_t i = 0; i < p->constant_count; i++)
        if (constants[i].type == VALUE_STRING)
            constants[i].bytes.data = strings + ((const uint8_t *)constants[i].bytes.data - p->strings);
    *expr = (struct expr){
        .alloc = alloc, .size = size, .type = type, .count = p->count, .code = code, .constants = constants};
    *ret_expr = expr;
    return PAWL_OK;
}
_Static_assert(sizeof(struct expr) % _Alignof(struct value) == 0, "the constants follow the head");
_Static_assert(_Alignof(struct value) % _Alignof(struct instruction) == 0, "the code follows the constants");

int expr_compile(pawl_bytes text, const struct expr_scope *scope, const pawl_allocator *alloc,
                 struct expr **ret_expr, pawl_error *error)
{
    if (text.size > EXPR_TEXT_BYTES_MAX)
        return error_set(error, PAWL_ETOOBIG, "line 1, column 1: an expression has at most %zu bytes, not %zu",
                         EXPR_TEXT_BYTES_MAX, text.size);
    size_t size = sizeof(struct parser) + text.size;
    struct parser *p = mem_new(alloc, 1, size);
    if (!p)
        return error_set(error, PAWL_ENOMEM, "no memory to read an expression of %zu bytes", text.size);
    p->lexer.at = text.size ? text.data : p->strings;
    p->lexer.end = p->lexer.at + text.size;
    p->lexer.place = (struct place){1, 1};
    p->scope = scope;
    p->error = error;

    next(p);
    struct operand whole = parse_expr(p);
    if (present(p) != TOKEN_END)
        refuse_token(p, "an operator or the end");
    whole = expr_fit_result(p, whole);
    int status = p->status;
    if (status == PAWL_OK) {
        assert(p->stack == 1 && p->depth == 0);
        status = finish(p, whole.type, alloc, ret_expr, error);
    }
    mem_free(alloc, p, size);
    return status;
}

void expr_free(struct expr *expr)
{
    if (expr)
        mem_free(expr->alloc, expr, expr->size);
}

enum value_type expr_type(const struct expr *expr)
{
    return expr->type;
}

static bool loaded_before(const struct expr *expr, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (expr->code[i].op == OP_LOAD && expr->code[i].argument == expr->code[at].argument)
            return true;
    return false;
}

int expr_uses(const struct expr *expr, int (*visit)(void *ctx, uint32_t slot), void *ctx)
{
    for (uint32_t i = 0; i < expr->count; i++) {
        if (expr->code[i].op != OP_LOAD || loaded_before(expr, i))
            continue;
        int status = visit(ctx, expr->code[i].argument);
        if (status != 0)
            return status;
    }
    return 0;
}

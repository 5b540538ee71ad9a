/* expr_emit.c: the static types of expressions, and the instructions that follow from them. */
#include "core/schema/expr_impl.h"

#include <assert.h>
#include <string.h>

static const char *const type_words[] = {
    [VALUE_NULL] = "null",
    [VALUE_INT64] = "an int64",
    [VALUE_FLOAT64] = "a float64",
    [VALUE_BOOL] = "a bool",
    [VALUE_STRING] = "a string",
    [VALUE_BYTES] = "bytes",
    [VALUE_TIMESTAMP] = "a timestamp",
    [VALUE_QNAME] = "a qualified name",
    [VALUE_REF] = "a ref",
};
_Static_assert(sizeof type_words / sizeof type_words[0] == VALUE_TYPE_LAST + 1, "every type has its words");

/* What each adds to the stack where it does not jump. A jump leaves what its target expects (X2). */
static const int8_t stack_effect[OP_COUNT] = {
    [OP_CONSTANT] = 1,
    [OP_LOAD] = 1,
    [OP_EQ] = -1,
    [OP_NE] = -1,
    [OP_LE] = -1,
    [OP_GE] = -1,
    [OP_LT] = -1,
    [OP_GT] = -1,
    [OP_CONCAT] = -1,
    [OP_ADD] = -1,
    [OP_SUBTRACT] = -1,
    [OP_MULTIPLY] = -1,
    [OP_DIVIDE] = -1,
    [OP_AND] = -1,
    [OP_OR] = -1,
    [OP_STARTS_WITH] = -1,
    [OP_COALESCE_SKIP] = -1,
    [OP_IN_BEGIN] = 1,
    [OP_IN_STEP] = -1,
    [OP_IN_END] = -1,
};

uint32_t expr_emit(struct parser *p, enum op op, struct place place)
{
    if (p->count == EXPR_INSTRUCTIONS_MAX)
        refuse(p, place, PAWL_ETOOBIG, "an expression has at most %d names, literals and operators",
               EXPR_INSTRUCTIONS_MAX);
    if (stack_effect[op] > 0 && p->stack == EXPR_STACK_MAX)
        refuse(p, place, PAWL_ETOOBIG, "nested too deeply: more than %d values wait for their operators",
               EXPR_STACK_MAX);
    if (p->status != PAWL_OK)
        return 0;
    p->stack = (uint32_t)((int32_t)p->stack + stack_effect[op]);
    assert(p->stack <= EXPR_STACK_MAX);
    p->code[p->count] = (struct instruction){.op = (uint8_t)op, .place = place};
    return p->count++;
}

void expr_emit_landing(struct parser *p, uint32_t jump)
{
    p->code[jump].argument = p->count;
}

struct operand expr_emit_constant(struct parser *p, struct value value, struct place place)
{
    uint32_t at = expr_emit(p, OP_CONSTANT, place);
    struct operand literal = {.type = value.type, .place = place};
    if (p->status != PAWL_OK)
        return literal;
    literal.literal = &p->constants[p->constant_count];
    *literal.literal = value;
    p->code[at].argument = p->constant_count++;
    return literal;
}

struct operand expr_emit_string(struct parser *p, const struct token *token)
{
    const uint8_t *from = token->text.data;
    uint8_t *to = p->strings + p->string_bytes;
    size_t size = 0;
    for (size_t i = 0; i < token->text.size; i++) {
        to[size++] = from[i];
        i += from[i] == '\'';
    }
    p->string_bytes += size;
    return expr_emit_constant(p, (struct value){.type = VALUE_STRING, .bytes = {to, size}}, token->place);
}

struct operand expr_emit_load(struct parser *p, const struct token *token)
{
    bool event = token->kind == TOKEN_EVENT;
    uint32_t slot = 0;
    enum value_type type = VALUE_NULL;
    int status = p->scope->resolve(p->scope->ctx, event ? EXPR_EVENT : EXPR_FIELD, token->text, &slot, &type);
    if (status == PAWL_ENOTFOUND)
        refuse(p, token->place, PAWL_EINVAL, "there is no %s '%s%.*s'", event ? "value" : "field",
               event ? "$event." : "", expr_shown(token->text), (const char *)token->text.data);
    else if (status != PAWL_OK)
        refuse(p, token->place, status, "cannot look up '%s%.*s': %s", event ? "$event." : "",
               expr_shown(token->text), (const char *)token->text.data, pawl_status_text(status));
    assert(status != PAWL_OK || (type > VALUE_NULL && type <= VALUE_TYPE_LAST));
    uint32_t at = expr_emit(p, OP_LOAD, token->place);
    p->code[at].argument = slot;
    p->code[at].type = (uint8_t)type;
    return (struct operand){.type = type, .place = token->place};
}

static void make_qname(struct parser *p, struct operand *operand)
{
    pawl_bytes text = operand->literal->bytes;
    uint16_t name = 0;
    int status = p->scope->resolve_qname ? p->scope->resolve_qname(p->scope->ctx, text, &name) : PAWL_ENOTFOUND;
    if (status == PAWL_ENOTFOUND)
        refuse(p, operand->place, PAWL_EINVAL, "there is no qualified name '%.*s'", expr_shown(text),
               (const char *)text.data);
    else if (status != PAWL_OK)
        refuse(p, operand->place, status, "cannot look up '%.*s': %s", expr_shown(text),
               (const char *)text.data, pawl_status_text(status));
    *operand->literal = (struct value){.type = VALUE_QNAME, .name = name};
}

static void make_timestamp(struct parser *p, struct operand *operand)
{
    int64_t ns = 0;
    if (!expr_parse_timestamp(operand->literal->bytes, &ns))
        refuse(p, operand->place, PAWL_EINVAL,
               "expected a timestamp from 1677-09-21 to 2262-04-11, such as '2026-11-16' or "
               "'2026-11-16T03:20:00.5Z'");
    *operand->literal = (struct value){.type = VALUE_TIMESTAMP, .integer = ns};
}

/* A literal that meets this type becomes it, if there is a way. */
static void adapt(struct parser *p, struct operand *operand, enum value_type type)
{
    struct value *literal = operand->literal;
    if (!literal || p->status != PAWL_OK)
        return;
    if (type == VALUE_QNAME && literal->type == VALUE_STRING)
        make_qname(p, operand);
    else if (type == VALUE_TIMESTAMP && literal->type == VALUE_STRING)
        make_timestamp(p, operand);
    else if (type == VALUE_REF && literal->type == VALUE_INT64 && literal->integer >= 0)
        *literal = (struct value){.type = VALUE_REF, .id = (uint64_t)literal->integer};
    operand->type = literal->type;
}

static bool is_number(enum value_type type)
{
    return type == VALUE_INT64 || type == VALUE_FLOAT64;
}

void expr_require_type(struct parser *p, const struct operand *operand, enum value_type type, const char *who)
{
    if (operand->type != type && operand->type != VALUE_NULL)
        refuse(p, operand->place, PAWL_EINVAL, "%s takes %s, and this is %s", who, type_words[type],
               type_words[operand->type]);
}

void expr_require_number(struct parser *p, const struct operand *operand, const char *who)
{
    if (!is_number(operand->type) && operand->type != VALUE_NULL)
        refuse(p, operand->place, PAWL_EINVAL, "%s takes numbers, and this is %s", who,
               type_words[operand->type]);
}

struct operand expr_emit_arithmetic(struct parser *p, enum op op, struct operand left, struct operand right,
                                    struct place place)
{
    const char *who = expr_token_text((enum token_kind)(op - OP_ADD + TOKEN_PLUS));
    expr_require_number(p, &left, who);
    expr_require_number(p, &right, who);
    expr_emit(p, op, place);
    /* The types' numbers are in the order in which they win: null, integer, float. */
    return (struct operand){.type = left.type > right.type ? left.type : right.type, .place = left.place};
}

struct operand expr_emit_concat(struct parser *p, struct operand left, struct operand right, struct place place)
{
    expr_require_type(p, &left, VALUE_STRING, "||");
    expr_require_type(p, &right, VALUE_STRING, "||");
    expr_emit(p, OP_CONCAT, place);
    return (struct operand){.type = VALUE_STRING, .place = left.place};
}

static bool comparable(enum value_type a, enum value_type b)
{
    return a == b || a == VALUE_NULL || b == VALUE_NULL || (is_number(a) && is_number(b))
           || (a == VALUE_REF && b == VALUE_INT64) || (a == VALUE_INT64 && b == VALUE_REF);
}

static bool has_order(enum value_type type)
{
    return type != VALUE_BOOL && type != VALUE_QNAME;
}

void expr_require_comparable(struct parser *p, enum op op, struct operand *left, struct operand *right,
                             struct place place)
{
    adapt(p, left, right->type);
    adapt(p, right, left->type);
    if (!comparable(left->type, right->type))
        refuse(p, place, PAWL_EINVAL, "%s does not compare with %s", type_words[left->type],
               type_words[right->type]);
    enum value_type type = left->type == VALUE_NULL ? right->type : left->type;
    if (op != OP_EQ && op != OP_NE && !has_order(type))
        refuse(p, place, PAWL_EINVAL, "%s has no order: only = and !=", type_words[type]);
}

struct operand expr_emit_comparison(struct parser *p, enum op op, struct operand left, struct operand right,
                                    struct place place)
{
    expr_require_comparable(p, op, &left, &right, place);
    expr_emit(p, op, place);
    return (struct operand){.type = VALUE_BOOL, .place = left.place};
}

enum value_type expr_unite_type(struct parser *p, enum value_type so_far, struct operand *next)
{
    adapt(p, next, so_far);
    if (so_far == VALUE_NULL || so_far == next->type)
        return next->type;
    if (next->type == VALUE_NULL)
        return so_far;
    if (is_number(so_far) && is_number(next->type))
        return VALUE_FLOAT64;
    refuse(p, next->place, PAWL_EINVAL, "expected %s, as before, and this is %s", type_words[so_far],
           type_words[next->type]);
    return so_far;
}

struct operand expr_fit_result(struct parser *p, struct operand whole)
{
    enum value_type want = p->scope->want;
    if (want == VALUE_NULL || p->status != PAWL_OK)
        return whole;
    adapt(p, &whole, want);
    if (want == VALUE_FLOAT64 && whole.type == VALUE_INT64)
        expr_emit(p, OP_TO_FLOAT, whole.place);
    else if (whole.type != want && whole.type != VALUE_NULL)
        refuse(p, whole.place, PAWL_EINVAL, "expected an expression that gives %s, and this gives %s",
               type_words[want], type_words[whole.type]);
    return (struct operand){.type = want, .place = whole.place};
}

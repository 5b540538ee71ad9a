/* expr_eval.c: the machine that runs a compiled expression on one row. */
#include "core/schema/expr_impl.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"

/* Each operation rounds to a double, and once. */
_Static_assert(FLT_EVAL_METHOD == 0 && sizeof(double) == 8, "floats are IEEE doubles, computed as such");

static const struct value null = {.type = VALUE_NULL};

static struct value truth(bool boolean)
{
    return (struct value){.type = VALUE_BOOL, .boolean = boolean};
}

static bool is_null(const struct value *v)
{
    return v->type == VALUE_NULL;
}

static bool is(const struct value *v, bool boolean)
{
    return v->type == VALUE_BOOL && v->boolean == boolean;
}

static struct value both(const struct value *a, const struct value *b)
{
    if (is(a, false) || is(b, false))
        return truth(false);
    return is_null(a) || is_null(b) ? null : truth(true);
}

static struct value either(const struct value *a, const struct value *b)
{
    if (is(a, true) || is(b, true))
        return truth(true);
    return is_null(a) || is_null(b) ? null : truth(false);
}

#define order_of(a, b) (((a) > (b)) - ((a) < (b)))

static double real_of(const struct value *v)
{
    return v->type == VALUE_INT64 ? (double)v->integer : v->real;
}

static int order_with_ref(const struct value *a, const struct value *b)
{
    if (a->type == VALUE_INT64 && a->integer < 0)
        return -1;
    if (b->type == VALUE_INT64 && b->integer < 0)
        return 1;
    uint64_t left = a->type == VALUE_REF ? a->id : (uint64_t)a->integer;
    uint64_t right = b->type == VALUE_REF ? b->id : (uint64_t)b->integer;
    return order_of(left, right);
}

/* Of two values that are not null, whose types compare. */
static int order(const struct value *a, const struct value *b)
{
    if (a->type == VALUE_REF || b->type == VALUE_REF)
        return order_with_ref(a, b);
    if (a->type != b->type)
        return order_of(real_of(a), real_of(b));
    switch (a->type) {
    case VALUE_INT64:
    case VALUE_TIMESTAMP: return order_of(a->integer, b->integer);
    case VALUE_FLOAT64: return order_of(a->real, b->real);
    case VALUE_BOOL: return order_of(a->boolean, b->boolean);
    case VALUE_QNAME: return order_of(a->name, b->name);
    default:
        assert(a->type == VALUE_STRING || a->type == VALUE_BYTES); /* X3 */
        return bytes_compare(a->bytes, b->bytes);
    }
}

static struct value compare(enum op op, const struct value *a, const struct value *b)
{
    if (is_null(a) || is_null(b))
        return null;
    int o = order(a, b);
    switch (op) {
    case OP_EQ: return truth(o == 0);
    case OP_NE: return truth(o != 0);
    case OP_LT: return truth(o < 0);
    case OP_LE: return truth(o <= 0);
    case OP_GT: return truth(o > 0);
    default: return truth(o >= 0);
    }
}

/* False: it overflows. The divisor is not 0. */
static bool compute_integer(enum op op, int64_t a, int64_t b, int64_t *ret)
{
    switch (op) {
    case OP_ADD: return !__builtin_add_overflow(a, b, ret);
    case OP_SUBTRACT: return !__builtin_sub_overflow(a, b, ret);
    case OP_MULTIPLY: return !__builtin_mul_overflow(a, b, ret);
    default:
        if (a == INT64_MIN && b == -1)
            return false;
        *ret = a / b;
        return true;
    }
}

static double compute_float(enum op op, double a, double b)
{
    switch (op) {
    case OP_ADD: return a + b;
    case OP_SUBTRACT: return a - b;
    case OP_MULTIPLY: return a * b;
    default: return a / b;
    }
}

static int arithmetic(const struct instruction *in, const struct value *a, const struct value *b,
                      struct value *ret, pawl_error *error)
{
    enum op op = (enum op)in->op;
    const char *sign = expr_token_text((enum token_kind)(op - OP_ADD + TOKEN_PLUS));
    if (is_null(a) || is_null(b)) {
        *ret = null;
        return PAWL_OK;
    }
    if (op == OP_DIVIDE && (b->type == VALUE_INT64 ? b->integer == 0 : b->real == 0))
        return fail_at(error, in->place, PAWL_EINVAL, "division by zero");
    if (a->type == VALUE_INT64 && b->type == VALUE_INT64) {
        int64_t integer;
        if (!compute_integer(op, a->integer, b->integer, &integer))
            return fail_at(error, in->place, PAWL_EINVAL, "%s overflows an int64", sign);
        *ret = (struct value){.type = VALUE_INT64, .integer = integer};
        return PAWL_OK;
    }
    double real = compute_float(op, real_of(a), real_of(b));
    if (!isfinite(real))
        return fail_at(error, in->place, PAWL_EINVAL, "%s overflows a float64", sign);
    *ret = (struct value){.type = VALUE_FLOAT64, .real = real};
    return PAWL_OK;
}

static int negate(const struct instruction *in, struct value *v, pawl_error *error)
{
    if (v->type == VALUE_FLOAT64)
        v->real = -v->real;
    else if (v->type == VALUE_INT64 && __builtin_sub_overflow(0, v->integer, &v->integer))
        return fail_at(error, in->place, PAWL_EINVAL, "- overflows an int64");
    return PAWL_OK;
}

/* A left side that ends where the free room begins is lengthened in place, so that a || b || c copies each
 * once. */
static bool ends_at_room(const struct expr_scratch *scratch, pawl_bytes left)
{
    uintptr_t start = (uintptr_t)scratch->data, at = (uintptr_t)left.data;
    return at >= start && at < start + scratch->used && at + left.size == start + scratch->used;
}

static int concat(const struct instruction *in, struct expr_scratch *scratch, struct value *a,
                  const struct value *b, pawl_error *error)
{
    if (is_null(a) || is_null(b)) {
        *a = null;
        return PAWL_OK;
    }
    if (a->bytes.size == 0 || b->bytes.size == 0) {
        *a = a->bytes.size ? *a : *b;
        return PAWL_OK;
    }
    size_t room = scratch ? scratch->size - scratch->used : 0;
    bool in_place = scratch && ends_at_room(scratch, a->bytes);
    size_t head = in_place ? 0 : a->bytes.size;
    if (!scratch || head > room || b->bytes.size > room - head)
        return fail_at(error, in->place, PAWL_ETOOBIG, "the string is longer than the room for it");
    uint8_t *end = scratch->data + scratch->used;
    memcpy(end, a->bytes.data, head);
    memcpy(end + head, b->bytes.data, b->bytes.size);
    a->bytes = (pawl_bytes){in_place ? a->bytes.data : end, a->bytes.size + b->bytes.size};
    scratch->used += head + b->bytes.size;
    return PAWL_OK;
}

static struct value starts_with(const struct value *whole, const struct value *part)
{
    if (is_null(whole) || is_null(part))
        return null;
    size_t size = part->bytes.size;
    return truth(size <= whole->bytes.size && bytes_equal((pawl_bytes){whole->bytes.data, size}, part->bytes));
}

static int load(const struct instruction *in, const struct expr_source *source, struct value *ret_value,
                pawl_error *error)
{
    struct value v = null;
    int status = source->load(source->ctx, in->argument, &v, error);
    if (status != PAWL_OK)
        return status;
    if (!is_null(&v) && v.type != (enum value_type)in->type)
        return fail_at(error, in->place, PAWL_EMISUSE, "the value is not of the type that was declared");
    *ret_value = v;
    return PAWL_OK;
}

/* Two values, a and what is behind it, become one. */
static int operate(const struct instruction *in, struct expr_scratch *scratch, struct value *a,
                   pawl_error *error)
{
    const struct value *b = a + 1;
    switch ((enum op)in->op) {
    case OP_ADD:
    case OP_SUBTRACT:
    case OP_MULTIPLY:
    case OP_DIVIDE: return arithmetic(in, a, b, a, error);
    case OP_CONCAT: return concat(in, scratch, a, b, error);
    case OP_AND: *a = both(a, b); return PAWL_OK;
    case OP_OR: *a = either(a, b); return PAWL_OK;
    case OP_STARTS_WITH: *a = starts_with(a, b); return PAWL_OK;
    default: *a = compare((enum op)in->op, a, b); return PAWL_OK;
    }
}

static int run(const struct expr *expr, const struct expr_source *source, struct expr_scratch *scratch,
               struct value *ret_value, pawl_error *error)
{
    struct value stack[EXPR_STACK_MAX];
    struct value *end = stack; /* behind the top */
    int status = PAWL_OK;
    for (uint32_t at = 0; at < expr->count && status == PAWL_OK;) {
        const struct instruction *in = &expr->code[at++];
        bool jump = false;
        switch ((enum op)in->op) {
        case OP_CONSTANT: *end++ = expr->constants[in->argument]; break;
        case OP_LOAD: status = load(in, source, end++, error); break;
        case OP_NEGATE: status = negate(in, end - 1, error); break;
        case OP_NOT: end[-1] = is_null(end - 1) ? null : truth(!end[-1].boolean); break;
        case OP_IS_NULL: end[-1] = truth(is_null(end - 1)); break;
        case OP_TO_FLOAT:
            if (end[-1].type == VALUE_INT64)
                end[-1] = (struct value){.type = VALUE_FLOAT64, .real = real_of(end - 1)};
            break;
        case OP_AND_SKIP: jump = is(end - 1, false); break;
        case OP_OR_SKIP: jump = is(end - 1, true); break;
        case OP_COALESCE_SKIP:
            jump = !is_null(end - 1);
            end -= !jump;
            break;
        case OP_IN_BEGIN: *end++ = truth(false); break;
        case OP_IN_STEP: {
            end--;
            struct value same = compare(OP_EQ, end - 2, end);
            end[-1] = either(end - 1, &same);
            jump = is(end - 1, true);
            break;
        }
        case OP_IN_END:
            end--;
            end[-1] = end[0];
            break;
        default: end--; status = operate(in, scratch, end - 1, error);
        }
        if (jump)
            at = in->argument;
    }
    if (status == PAWL_OK)
        *ret_value = stack[0];
    return status;
}

int expr_eval(const struct expr *expr, const struct expr_source *source, struct expr_scratch *scratch,
              struct value *ret_value, pawl_error *error)
{
    size_t used = scratch ? scratch->used : 0;
    int status = run(expr, source, scratch, ret_value, error);
    if (status != PAWL_OK && scratch)
        scratch->used = used;
    return status;
}

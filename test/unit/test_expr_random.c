/* Random expressions, printed with as few brackets as possible and with as many, have the same value for the
 * compiler and for an evaluator that walks their tree. */
#include "test/lib/test.h"

#include <math.h>

#include "test/lib/expr.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define NODES_MAX     256
#define KIDS_MAX      4
#define TREES         4000
#define ROWS          6

enum kind {
    CONSTANT,
    VARIABLE,
    NEGATE,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    CONCAT,
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    AND,
    OR,
    NOT,
    IN,
    NOT_IN,
    IS_NULL,
    IS_NOT_NULL,
    STARTS_WITH,
    COALESCE,
};

static const char *const signs[] = {
    [ADD] = "+", [SUBTRACT] = "-", [MULTIPLY] = "*", [DIVIDE] = "/", [CONCAT] = "||", [EQ] = "=",  [NE] = "!=",
    [LT] = "<",  [LE] = "<=",      [GT] = ">",       [GE] = ">=",    [AND] = "and",   [OR] = "or",
};

struct node {
    enum kind kind;
    struct value value; /* CONSTANT */
    uint32_t slot;      /* VARIABLE */
    const struct node *kids[KIDS_MAX];
    size_t kid_count;
};

struct tree {
    struct node nodes[NODES_MAX];
    size_t count;
    uint64_t *seed;
};

static const int64_t integers[] = {0, 1, -1, 2, 3, -7, 10, INT64_MAX, INT64_MIN, INT64_C(1) << 53, 3037000500};
static const double reals[] = {0.0, 0.5, -1.5, 2.0, 3.0, 1e308, -1e308, 9007199254740992.0, 1e-308, 1e200};
static const char *const strings[] = {"", "a", "ab", "abc", "b", "it's", "gr\xc3\xbc\xc3\x9f"};

static struct value random_value(uint64_t *seed, enum value_type type)
{
    struct value v = {.type = type};
    if (type == VALUE_INT64 || type == VALUE_TIMESTAMP)
        v.integer = integers[test_below(seed, LENGTH(integers))];
    else if (type == VALUE_FLOAT64)
        v.real = reals[test_below(seed, LENGTH(reals))];
    else if (type == VALUE_BOOL)
        v.boolean = test_below(seed, 2) == 1;
    else if (type == VALUE_REF)
        v.id = test_below(seed, 4) ? test_below(seed, 4) : UINT64_MAX;
    else if (type == VALUE_QNAME)
        v.name = (uint16_t)test_below(seed, 3);
    else
        v.bytes = text_bytes(strings[test_below(seed, LENGTH(strings))]);
    return v;
}

static struct node *grow(struct tree *tree, enum value_type type, int depth);

static struct node *leaf(struct tree *tree, enum value_type type)
{
    struct node *n = &tree->nodes[tree->count++];
    bool literal = type != VALUE_TIMESTAMP && type != VALUE_REF && type != VALUE_QNAME && type != VALUE_BYTES;
    assert_true(tree->count < NODES_MAX);
    *n = (struct node){.kind = CONSTANT};
    if (test_below(tree->seed, 12) == 0)
        return n; /* null */
    if (literal && test_below(tree->seed, 2)) {
        n->value = random_value(tree->seed, type);
        return n;
    }
    n->kind = VARIABLE;
    do
        n->slot = (uint32_t)test_below(tree->seed, 2 * EXPR_VARIABLES);
    while (expr_variables[n->slot % EXPR_VARIABLES].type != type || n->slot % EXPR_VARIABLES == VAR_BOOM);
    return n;
}

static struct node *branch(struct tree *tree, enum kind kind, size_t kid_count, const enum value_type *types,
                           int depth)
{
    struct node *n = &tree->nodes[tree->count++];
    *n = (struct node){.kind = kind, .kid_count = kid_count};
    for (size_t i = 0; i < kid_count; i++)
        n->kids[i] = grow(tree, types[i], depth - 1);
    return n;
}

static struct node *grow_number(struct tree *tree, enum value_type type, int depth)
{
    enum value_type other = type == VALUE_FLOAT64 && test_below(tree->seed, 2) ? VALUE_INT64 : type;
    bool swap = test_below(tree->seed, 2);
    enum value_type types[] = {swap ? other : type, swap ? type : other, type};
    switch (test_below(tree->seed, 7)) {
    case 0: return branch(tree, NEGATE, 1, &type, depth);
    case 1: return branch(tree, COALESCE, 2 + test_below(tree->seed, 2), types, depth);
    default: return branch(tree, (enum kind)(ADD + test_below(tree->seed, 4)), 2, types, depth);
    }
}

/* Two types that compare; sometimes with an order. */
static void choose_compared(uint64_t *seed, enum value_type *types, bool *ret_ordered)
{
    static const struct {
        enum value_type a, b;
        bool ordered;
    } pairs[] = {
        {VALUE_INT64, VALUE_INT64, true},
        {VALUE_INT64, VALUE_FLOAT64, true},
        {VALUE_FLOAT64, VALUE_INT64, true},
        {VALUE_FLOAT64, VALUE_FLOAT64, true},
        {VALUE_STRING, VALUE_STRING, true},
        {VALUE_BOOL, VALUE_BOOL, false},
        {VALUE_REF, VALUE_REF, true},
        {VALUE_REF, VALUE_INT64, true},
        {VALUE_INT64, VALUE_REF, true},
        {VALUE_QNAME, VALUE_QNAME, false},
        {VALUE_TIMESTAMP, VALUE_TIMESTAMP, true},
        {VALUE_BYTES, VALUE_BYTES, true},
    };
    size_t i = test_below(seed, LENGTH(pairs));
    types[0] = pairs[i].a;
    types[1] = types[2] = types[3] = pairs[i].b;
    *ret_ordered = pairs[i].ordered;
}

static struct node *grow_bool(struct tree *tree, int depth)
{
    static const enum value_type bools[] = {VALUE_BOOL, VALUE_BOOL}, texts[] = {VALUE_STRING, VALUE_STRING};
    enum value_type types[KIDS_MAX];
    bool ordered;
    choose_compared(tree->seed, types, &ordered);
    switch (test_below(tree->seed, 8)) {
    case 0:
    case 1: return branch(tree, test_below(tree->seed, 2) ? AND : OR, 2, bools, depth);
    case 2: return branch(tree, NOT, 1, bools, depth);
    case 3:
        return branch(tree, test_below(tree->seed, 2) ? IN : NOT_IN, 2 + test_below(tree->seed, 3), types,
                      depth);
    case 4: return branch(tree, test_below(tree->seed, 2) ? IS_NULL : IS_NOT_NULL, 1, types, depth);
    case 5: return branch(tree, STARTS_WITH, 2, texts, depth);
    default: return branch(tree, (enum kind)(EQ + test_below(tree->seed, ordered ? 6 : 2)), 2, types, depth);
    }
}

static struct node *grow(struct tree *tree, enum value_type type, int depth)
{
    static const enum value_type texts[] = {VALUE_STRING, VALUE_STRING, VALUE_STRING};
    if (depth <= 0 || tree->count > NODES_MAX - 80 || test_below(tree->seed, 6) == 0)
        return leaf(tree, type);
    switch (type) {
    case VALUE_INT64:
    case VALUE_FLOAT64: return grow_number(tree, type, depth);
    case VALUE_BOOL: return grow_bool(tree, depth);
    case VALUE_STRING: return branch(tree, test_below(tree->seed, 3) ? CONCAT : COALESCE, 2, texts, depth);
    default: return leaf(tree, type);
    }
}

/* How tight a node binds, and how tight its kids must, if they are to do without brackets. */
enum { LOOSE, DISJUNCTION, CONJUNCTION, NEGATION, COMPARISON, SUM, PRODUCT, UNARY, PRIMARY };

static int tightness(const struct node *n)
{
    switch (n->kind) {
    case OR: return DISJUNCTION;
    case AND: return CONJUNCTION;
    case NOT: return NEGATION;
    case ADD:
    case SUBTRACT:
    case CONCAT: return SUM;
    case MULTIPLY:
    case DIVIDE: return PRODUCT;
    case NEGATE: return UNARY;
    case CONSTANT:
    case VARIABLE:
    case STARTS_WITH:
    case COALESCE: return PRIMARY;
    default: return COMPARISON;
    }
}

struct printer {
    char text[32 * 1024];
    size_t used;
    bool full;
};

__attribute__((format(printf, 2, 3))) static void put(struct printer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int size = vsnprintf(p->text + p->used, sizeof p->text - p->used, format, args);
    va_end(args);
    assert_true(size >= 0 && (size_t)size < sizeof p->text - p->used);
    p->used += (size_t)size;
}

static void print_constant(struct printer *p, const struct value *v)
{
    if (v->type == VALUE_NULL)
        put(p, "null");
    else if (v->type == VALUE_INT64)
        put(p, "%" PRId64, v->integer);
    else if (v->type == VALUE_FLOAT64)
        put(p, "%.17e", v->real);
    else if (v->type == VALUE_BOOL)
        put(p, "%s", v->boolean ? "true" : "FALSE");
    else {
        put(p, "'");
        for (size_t i = 0; i < v->bytes.size; i++) {
            char c = ((const char *)v->bytes.data)[i];
            put(p, c == '\'' ? "''" : "%c", c);
        }
        put(p, "'");
    }
}

static void print(struct printer *p, const struct node *n, int needed);

static void print_list(struct printer *p, const struct node *n, size_t from)
{
    put(p, "(");
    for (size_t i = from; i < n->kid_count; i++) {
        put(p, i == from ? "" : ", ");
        print(p, n->kids[i], LOOSE);
    }
    put(p, ")");
}

static void print_bare(struct printer *p, const struct node *n)
{
    int own = tightness(n);
    switch (n->kind) {
    case CONSTANT: print_constant(p, &n->value); break;
    case VARIABLE:
        put(p, "%s%s", n->slot >= EXPR_VARIABLES ? "$event.doc." : "",
            expr_variables[n->slot % EXPR_VARIABLES].name);
        break;
    case NEGATE:
    case NOT:
        put(p, n->kind == NOT ? "not " : "-");
        print(p, n->kids[0], own);
        break;
    case IN:
    case NOT_IN:
        print(p, n->kids[0], SUM);
        put(p, n->kind == IN ? " in " : " not in ");
        print_list(p, n, 1);
        break;
    case IS_NULL:
    case IS_NOT_NULL:
        print(p, n->kids[0], COMPARISON);
        put(p, n->kind == IS_NULL ? " is null" : " is not null");
        break;
    case STARTS_WITH:
    case COALESCE:
        put(p, n->kind == COALESCE ? "coalesce" : "starts_with");
        print_list(p, n, 0);
        break;
    default:
        print(p, n->kids[0], own == COMPARISON ? SUM : own);
        put(p, " %s ", signs[n->kind]);
        print(p, n->kids[1], own + 1);
    }
}

static void print(struct printer *p, const struct node *n, int needed)
{
    bool brackets = p->full || tightness(n) < needed;
    put(p, brackets ? "(" : "");
    print_bare(p, n);
    put(p, brackets ? ")" : "");
}

/* The naive evaluator: what is wrong, or NULL and the value. */
static const char *walk(const struct node *n, const struct expr_bed *bed, struct value *ret);

static enum value_type type_of(const struct node *n)
{
    if (n->kind == CONSTANT)
        return n->value.type;
    if (n->kind == VARIABLE)
        return expr_variables[n->slot % EXPR_VARIABLES].type;
    if (n->kind == CONCAT)
        return VALUE_STRING;
    if (n->kind != COALESCE && (n->kind < NEGATE || n->kind > DIVIDE))
        return VALUE_BOOL;
    enum value_type type = VALUE_NULL;
    for (size_t i = 0; i < n->kid_count; i++) {
        enum value_type kid = type_of(n->kids[i]);
        type = type == VALUE_FLOAT64 || kid == VALUE_NULL ? type : kid;
    }
    return type;
}

static bool is_null(const struct value *v)
{
    return v->type == VALUE_NULL;
}

static struct value truth(bool boolean)
{
    return (struct value){.type = VALUE_BOOL, .boolean = boolean};
}

static double as_real(const struct value *v)
{
    return v->type == VALUE_INT64 ? (double)v->integer : v->real;
}

__extension__ typedef __int128 wide;

static const char *calculate(enum kind kind, const struct value *a, const struct value *b, struct value *ret)
{
    if (is_null(a) || is_null(b)) {
        *ret = (struct value){0};
        return NULL;
    }
    if (a->type == VALUE_INT64 && b->type == VALUE_INT64) {
        wide x = a->integer, y = b->integer;
        if (kind == DIVIDE && y == 0)
            return "division by zero";
        wide r = kind == ADD ? x + y : kind == SUBTRACT ? x - y : kind == MULTIPLY ? x * y : x / y;
        if (r < INT64_MIN || r > INT64_MAX)
            return "overflows an int64";
        *ret = (struct value){.type = VALUE_INT64, .integer = (int64_t)r};
        return NULL;
    }
    double x = as_real(a), y = as_real(b);
    if (kind == DIVIDE && y == 0)
        return "division by zero";
    double r = kind == ADD ? x + y : kind == SUBTRACT ? x - y : kind == MULTIPLY ? x * y : x / y;
    if (isinf(r) || isnan(r))
        return "overflows a float64";
    *ret = (struct value){.type = VALUE_FLOAT64, .real = r};
    return NULL;
}

static int compare(const struct value *a, const struct value *b)
{
    if (a->type == VALUE_STRING || a->type == VALUE_BYTES) {
        size_t n = 0;
        const uint8_t *x = a->bytes.data, *y = b->bytes.data;
        while (n < a->bytes.size && n < b->bytes.size && x[n] == y[n])
            n++;
        int left = n < a->bytes.size ? x[n] : -1, right = n < b->bytes.size ? y[n] : -1;
        return left - right;
    }
    if (a->type == VALUE_FLOAT64 || b->type == VALUE_FLOAT64)
        return as_real(a) < as_real(b) ? -1 : as_real(a) > as_real(b);
    const struct value *sides[] = {a, b};
    wide numbers[2];
    for (int i = 0; i < 2; i++)
        numbers[i] = sides[i]->type == VALUE_REF     ? (wide)sides[i]->id
                     : sides[i]->type == VALUE_BOOL  ? sides[i]->boolean
                     : sides[i]->type == VALUE_QNAME ? sides[i]->name
                                                     : sides[i]->integer;
    return numbers[0] < numbers[1] ? -1 : numbers[0] > numbers[1];
}

static struct value relate(enum kind kind, const struct value *a, const struct value *b)
{
    if (is_null(a) || is_null(b))
        return (struct value){0};
    int o = compare(a, b);
    return truth(kind == EQ   ? o == 0
                 : kind == NE ? o != 0
                 : kind == LT ? o < 0
                 : kind == LE ? o <= 0
                 : kind == GT ? o > 0
                              : o >= 0);
}

/* A list of alternatives, of which the first true one decides; and its mirror image. */
static const char *walk_logic(const struct node *n, const struct expr_bed *bed, struct value *ret)
{
    bool decisive = n->kind != AND;
    bool in = n->kind == IN || n->kind == NOT_IN;
    struct value x = {0}, sum = truth(!decisive);
    const char *wrong = in ? walk(n->kids[0], bed, &x) : NULL;
    for (size_t i = in; i < n->kid_count && !wrong; i++) {
        struct value v;
        wrong = walk(n->kids[i], bed, &v);
        if (wrong)
            break;
        if (in)
            v = relate(EQ, &x, &v);
        if (is_null(&v))
            sum = v;
        else if (v.boolean == decisive) {
            sum = v;
            break;
        }
    }
    if (n->kind == NOT_IN && !is_null(&sum))
        sum.boolean = !sum.boolean;
    *ret = sum;
    return wrong;
}

static const char *walk_coalesce(const struct node *n, const struct expr_bed *bed, struct value *ret)
{
    struct value v = {0};
    const char *wrong = NULL;
    for (size_t i = 0; i < n->kid_count && !wrong && is_null(&v); i++)
        wrong = walk(n->kids[i], bed, &v);
    if (!wrong && v.type == VALUE_INT64 && type_of(n) == VALUE_FLOAT64)
        v = (struct value){.type = VALUE_FLOAT64, .real = (double)v.integer};
    *ret = v;
    return wrong;
}

static struct value join(const struct value *a, const struct value *b)
{
    static char memory[1 << 20];
    static size_t used;
    if (is_null(a) || is_null(b))
        return (struct value){0};
    size_t size = a->bytes.size + b->bytes.size;
    used = used + size > sizeof memory ? 0 : used; /* long enough for one tree */
    char *at = memory + used;
    memcpy(at, a->bytes.data, a->bytes.size);
    memcpy(at + a->bytes.size, b->bytes.data, b->bytes.size);
    used += size;
    return (struct value){.type = VALUE_STRING, .bytes = {at, size}};
}

static struct value begins(const struct value *a, const struct value *b)
{
    if (is_null(a) || is_null(b))
        return (struct value){0};
    return truth(a->bytes.size >= b->bytes.size && memcmp(a->bytes.data, b->bytes.data, b->bytes.size) == 0);
}

static const char *walk(const struct node *n, const struct expr_bed *bed, struct value *ret)
{
    static const struct value zero = {.type = VALUE_INT64};
    if (n->kind == AND || n->kind == OR || n->kind == IN || n->kind == NOT_IN)
        return walk_logic(n, bed, ret);
    if (n->kind == COALESCE)
        return walk_coalesce(n, bed, ret);
    struct value kids[2] = {{0}};
    for (size_t i = 0; i < n->kid_count; i++) {
        const char *wrong = walk(n->kids[i], bed, &kids[i]);
        if (wrong)
            return wrong;
    }
    *ret = kids[0];
    switch (n->kind) {
    case CONSTANT: *ret = n->value; break;
    case VARIABLE: *ret = bed->values[n->slot]; break;
    case NEGATE:
        if (kids[0].type == VALUE_FLOAT64)
            ret->real = -kids[0].real;
        else
            return calculate(SUBTRACT, &zero, &kids[0], ret);
        break;
    case NOT: ret->boolean = !kids[0].boolean; break;
    case IS_NULL: *ret = truth(is_null(&kids[0])); break;
    case IS_NOT_NULL: *ret = truth(!is_null(&kids[0])); break;
    case CONCAT: *ret = join(&kids[0], &kids[1]); break;
    case STARTS_WITH: *ret = begins(&kids[0], &kids[1]); break;
    case ADD:
    case SUBTRACT:
    case MULTIPLY:
    case DIVIDE: return calculate(n->kind, &kids[0], &kids[1], ret);
    default: *ret = relate(n->kind, &kids[0], &kids[1]);
    }
    return NULL;
}

/* To the last bit. */
static bool same(const struct value *a, const struct value *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case VALUE_NULL: return true;
    case VALUE_FLOAT64: return a->id == b->id; /* the same bits */
    default: return compare(a, b) == 0;
    }
}

static void check_row(const struct node *root, const struct expr *expr, const char *text, struct expr_bed *bed)
{
    static uint8_t room[64 * 1024];
    struct expr_scratch scratch = {.data = room, .size = sizeof room};
    struct expr_source source = bed_source(bed);
    struct value expected, v;
    pawl_error error = {0};
    const char *wrong = walk(root, bed, &expected);
    int status = expr_eval(expr, &source, &scratch, &v, &error);
    if (status != (wrong ? PAWL_EINVAL : PAWL_OK) || (wrong && !strstr(error.text, wrong)))
        fail_msg("%s\n%s, expected %s", text, error.text, wrong ? wrong : "a value");
    if (!wrong && !same(&v, &expected))
        fail_msg("%s\nis of type %d, expected %d, or is another value", text, v.type, expected.type);
    if (!wrong && v.type != VALUE_NULL)
        assert_int_equal(v.type, expr_type(expr));
}

TEST(random_expressions_mean_what_their_trees_mean)
{
    static const enum value_type types[] = {VALUE_BOOL, VALUE_INT64, VALUE_FLOAT64, VALUE_STRING};
    static struct printer printers[2];
    uint64_t seed = test_seed(20261116);
    size_t values = 0, errors = 0;
    for (int t = 0; t < TREES; t++) {
        struct tree tree = {.seed = &seed};
        const struct node *root = grow(&tree, types[test_below(&seed, LENGTH(types))], 6);
        struct expr *exprs[2];
        for (int i = 0; i < 2; i++) {
            struct expr_scope scope = bed_scope(VALUE_NULL);
            pawl_error error = {0};
            printers[i].used = 0;
            printers[i].full = i == 1;
            print(&printers[i], root, LOOSE);
            if (expr_compile((pawl_bytes){printers[i].text, printers[i].used}, &scope, NULL, &exprs[i], &error)
                != PAWL_OK)
                fail_msg("%s\n%s", printers[i].text, error.text);
            assert_int_equal(expr_type(exprs[i]), type_of(root));
        }
        for (int r = 0; r < ROWS; r++) {
            struct expr_bed bed = {0};
            struct value v;
            for (uint32_t k = 0; k < 2 * EXPR_VARIABLES; k++)
                if (test_below(&seed, 4))
                    bed.values[k] = random_value(&seed, expr_variables[k % EXPR_VARIABLES].type);
            for (int i = 0; i < 2; i++)
                check_row(root, exprs[i], printers[i].text, &bed);
            if (walk(root, &bed, &v))
                errors++;
            else
                values += !is_null(&v);
        }
        for (int i = 0; i < 2; i++)
            expr_free(exprs[i]);
    }
    /* Else it would prove little. */
    assert_true(values > TREES * ROWS / 4);
    assert_true(errors > TREES * ROWS / 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RUN(random_expressions_mean_what_their_trees_mean)};
    return TEST_MAIN(tests);
}

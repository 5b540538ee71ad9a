/* core/schema/expr.h: the expression language of where-clauses, computed sets and view filters.
 *
 *     text ──► expr_compile ──► struct expr ──► expr_eval ──► value
 *                   ▲ scope: names                  ▲ source: values
 *
 * A text is compiled once into a flat program and evaluated for every row. This module knows neither rows nor
 * events: a scope turns names into slots, a source gives the slots' values. docs/EXPRESSIONS.md is the
 * language's manual for users. What is stored of an expression is its text.
 *
 * Grammar. Keywords are case-insensitive; names are as the schema spells them. Lower lines bind tighter;
 * operators of one line group to the left, and comparisons do not chain.
 *
 *     expr    = conj { "or" conj }
 *     conj    = neg { "and" neg }
 *     neg     = "not" neg | test
 *     test    = sum [ compare sum | [ "not" ] "in" "(" expr { "," expr } ")" ] { "is" [ "not" ] "null" }
 *     compare = "=" | "!=" | "<" | "<=" | ">" | ">="
 *     sum     = product { ( "+" | "-" | "||" ) product }
 *     product = unary { ( "*" | "/" ) unary }
 *     unary   = "-" unary | primary
 *     primary = literal | path | "$event." path | "(" expr ")"
 *             | "starts_with" "(" expr "," expr ")" | "coalesce" "(" expr "," expr { "," expr } ")"
 *     literal = "true" | "false" | "null" | integer | float | string
 *     path    = name { "." name }              name = letter or "_", then letters, digits, "_"
 *     float   = digits, then "." digits or an exponent ("e", "e+", "e-" and digits) or both
 *     string  = "'" any valid UTF-8, a quote written twice "'"
 *
 * Types. Every sub-expression has one, known when it is compiled; VALUE_NULL is that of what is always null,
 * and goes where any type goes. Integers and floats mix, as floats. Refs also compare with integers. A string
 * literal that meets a name (QNAME) or a timestamp becomes one, an integer literal that meets a ref too. Bools
 * and names have = and != only. Strings and bytes are ordered by their bytes.
 *
 * Null is SQL's: a comparison, an operator or starts_with with null is null; false and null is false; true or
 * null is true; x in (a, b) is x = a or x = b.
 *
 * Order. Operands are evaluated from left to right, each once, except that nothing more is evaluated, and
 * neither loaded nor able to fail, behind: a false left of "and"; a true left of "or"; the first element of an
 * "in" list that is equal; the first argument of coalesce that is not null. Nothing else is left out, so
 * whether an evaluation fails, and how, depends on the values alone. No rounding depends on the machine or its
 * locale. */
#ifndef CORE_SCHEMA_EXPR_H
#define CORE_SCHEMA_EXPR_H

#include "core/schema/value.h"

#define EXPR_TEXT_BYTES_MAX   ((size_t)64 * 1024)
#define EXPR_DEPTH_MAX        100  /* brackets, "not" and "-" inside each other */
#define EXPR_INSTRUCTIONS_MAX 1000 /* a name or literal is one, an operator one or two */
#define EXPR_STACK_MAX        128  /* values that wait for their operator: 3 KiB of the thread's stack */
#define EXPR_NUMBER_CHARS_MAX 100  /* of a number as it is written */

struct expr;

enum expr_name { EXPR_FIELD, EXPR_EVENT };

/* What names mean. Borrowed during expr_compile only. */
struct expr_scope {
    void *ctx;

    /* A field, or what stands behind "$event.", with its dots. The slot is any number that the source will
     * know. PAWL_ENOTFOUND if there is none; any other error is handed on. */
    int (*resolve)(void *ctx, enum expr_name kind, pawl_bytes path, uint32_t *ret_slot,
                   enum value_type *ret_type);

    /* A qualified name's number, likewise. NULL: there are none here. */
    int (*resolve_qname)(void *ctx, pawl_bytes text, uint16_t *ret_name);

    /* The type that the result must have: VALUE_BOOL for a filter, the field's for a set, to which literals and
     * integers are fitted. VALUE_NULL: any. */
    enum value_type want;
};

/* Where values come from. load gives null or a value of the type that the slot was resolved with; what it
 * points to stays until the result was used. Its error is handed on as it is. */
struct expr_source {
    void *ctx;
    int (*load)(void *ctx, uint32_t slot, struct value *ret_value, pawl_error *error);
};

/* Room for the strings that || makes. What lies below used is left alone, so that the results of several
 * evaluations may live in one; the caller sets it back. After a failure it is as it was. */
struct expr_scratch {
    uint8_t *data;
    size_t size;
    size_t used;
};

/* Errors, all but the last with "line 1, column 14: " in front, columns counted in characters: PAWL_EINVAL (not
 * in the grammar, of a wrong type, an unknown name), PAWL_ETOOBIG (one of the limits above), what the scope
 * returned; PAWL_ENOMEM. The allocator is borrowed until expr_free; the text is not. */
int expr_compile(pawl_bytes text, const struct expr_scope *scope, const pawl_allocator *alloc,
                 struct expr **ret_expr, pawl_error *error);

/* NULL is allowed. */
void expr_free(struct expr *expr);

/* The type of every result that is not null; scope.want if that was given. */
enum value_type expr_type(const struct expr *expr);

/* Visit every slot that the text names, once each, by first appearance, whether or not an evaluation would come
 * to it. A visit that does not return 0 ends it and is returned. */
int expr_uses(const struct expr *expr, int (*visit)(void *ctx, uint32_t slot), void *ctx);

/* Does not allocate, nor recurse; any thread, many at once. A string in the result is borrowed from the
 * expression, the source or the scratch, which may be NULL where there is no ||. Errors: PAWL_EINVAL, with line
 * and column (an integer overflows, a float would be infinite, division by zero); PAWL_ETOOBIG (the scratch is
 * full); PAWL_EMISUSE (the source gave another type than the scope said); the source's. */
int expr_eval(const struct expr *expr, const struct expr_source *source, struct expr_scratch *scratch,
              struct value *ret_value, pawl_error *error);

/* Whether it is a keyword, and so cannot be the name of a field. */
bool expr_is_reserved(pawl_bytes name);

#endif

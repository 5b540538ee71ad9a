/* core/schema/expr_impl.h: what the files of the expression language share.
 *
 *     expr_lex ──► expr_parse ──► expr_emit ──► struct expr ──► expr_eval
 *         └─ expr_literal ─┘ (numbers, timestamps)
 *
 * X1  A program is straight but for jumps forward; each instruction runs at most once.
 * X2  Whichever way an instruction is reached, as many values are on the stack; never more than EXPR_STACK_MAX.
 * X3  The compiler has checked the operands' types; the evaluation only checks for nulls, overflows and
 * zeros. */
#ifndef CORE_SCHEMA_EXPR_IMPL_H
#define CORE_SCHEMA_EXPR_IMPL_H

#include "base/error.h"
#include "core/schema/expr.h"

struct place {
    uint32_t line;
    uint32_t column;
};

#define fail_at(error, place, status, format, ...)                                                             \
    error_set((error), (status), "line %u, column %u: " format, (place).line, (place).column, ##__VA_ARGS__)

/* The keywords, then the symbols, where a longer one stands before its own beginning. */
enum token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_EVENT,
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_STRING,
    TOKEN_AND,
    TOKEN_OR,
    TOKEN_NOT,
    TOKEN_IN,
    TOKEN_IS,
    TOKEN_NULL,
    TOKEN_TRUE,
    TOKEN_FALSE,
    TOKEN_STARTS_WITH,
    TOKEN_COALESCE,
    TOKEN_EQ,
    TOKEN_NE,
    TOKEN_LE,
    TOKEN_GE,
    TOKEN_LT,
    TOKEN_GT,
    TOKEN_CONCAT,
    TOKEN_PLUS,
    TOKEN_MINUS,
    TOKEN_TIMES,
    TOKEN_DIVIDE,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_COMMA,
};

struct token {
    enum token_kind kind;
    struct place place;
    pawl_bytes text; /* as written; of a string, what is between the quotes; of $event.a.b, a.b */
    union {
        uint64_t magnitude; /* INT: up to 2^63, which only a minus in front makes an integer */
        double real;        /* FLOAT */
    };
};

struct lexer {
    const uint8_t *at;
    const uint8_t *end;
    struct place place;
    struct token token; /* the present one */
};

/* Go on to the next token; at the end it is END for ever. PAWL_EINVAL, PAWL_ETOOBIG, with the place. */
int expr_lex(struct lexer *x, pawl_error *error);

/* How a keyword or symbol is written. */
const char *expr_token_text(enum token_kind kind);

/* How many bytes of a text, in whole characters, go well into a message. */
int expr_shown(pawl_bytes text);

/* The float nearest to digits[.digits][e[+-]digits], which the lexer has found it to be. False: too large. */
bool expr_parse_float(pawl_bytes text, double *ret_real);

/* 2026-11-16, or 2026-11-16T03:20:00Z with up to nine digits of a fraction behind the seconds. */
bool expr_parse_timestamp(pawl_bytes text, int64_t *ret_ns);

/* Comparisons are in the tokens' order. */
enum op {
    OP_CONSTANT, /* push constants[argument] */
    OP_LOAD,     /* push the value of slot argument, which is of this type */
    OP_EQ,       /* two values become one, as with all operators */
    OP_NE,
    OP_LE,
    OP_GE,
    OP_LT,
    OP_GT,
    OP_CONCAT,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_AND,
    OP_OR,
    OP_STARTS_WITH,
    OP_NEGATE, /* one value becomes another */
    OP_NOT,
    OP_IS_NULL,
    OP_TO_FLOAT,      /* an integer; anything else stays */
    OP_AND_SKIP,      /* jump to argument if false */
    OP_OR_SKIP,       /* jump if true */
    OP_COALESCE_SKIP, /* jump if not null, else pop */
    OP_IN_BEGIN,      /* x -> x false */
    OP_IN_STEP,       /* x found element -> x (found or x = element); jump if that is true */
    OP_IN_END,        /* x found -> found */
    OP_COUNT,
};

struct instruction {
    uint8_t op;
    uint8_t type; /* LOAD */
    uint32_t argument;
    struct place place;
};

/* One block of memory: this, the constants, the instructions, the constants' strings. */
struct expr {
    const pawl_allocator *alloc;
    size_t size;
    enum value_type type;
    uint32_t count;
    const struct instruction *code;
    const struct value *constants;
};

/* A sub-expression whose instructions have been written. */
struct operand {
    enum value_type type;
    struct place place;
    struct value *literal; /* its constant, if it is nothing but one */
};

/* A compilation. Like a decoder, it goes bad once: then status and *error say why, the present token is END,
 * and all further calls do nothing. */
struct parser {
    struct lexer lexer;
    const struct expr_scope *scope;
    pawl_error *error;
    int status;
    uint32_t depth;
    uint32_t stack;
    uint32_t count;
    uint32_t constant_count;
    size_t string_bytes;
    struct instruction code[EXPR_INSTRUCTIONS_MAX];
    struct value constants[EXPR_INSTRUCTIONS_MAX];
    uint8_t strings[]; /* as long as the text */
};

#define refuse(p, at, why, ...)                                                                                \
    do {                                                                                                       \
        if ((p)->status == PAWL_OK) {                                                                          \
            (p)->status = fail_at((p)->error, at, why, __VA_ARGS__);                                           \
            (p)->lexer.token.kind = TOKEN_END;                                                                 \
        }                                                                                                      \
    } while (0)

/* Emitting. Each checks its operands, and writes what follows them. An instruction is named by its index. */
uint32_t expr_emit(struct parser *p, enum op op, struct place place);
void expr_emit_landing(struct parser *p, uint32_t jump);
struct operand expr_emit_constant(struct parser *p, struct value value, struct place place);
struct operand expr_emit_string(struct parser *p, const struct token *token);
struct operand expr_emit_load(struct parser *p, const struct token *token);
struct operand expr_emit_arithmetic(struct parser *p, enum op op, struct operand left, struct operand right,
                                    struct place place);
struct operand expr_emit_concat(struct parser *p, struct operand left, struct operand right,
                                struct place place);
struct operand expr_emit_comparison(struct parser *p, enum op op, struct operand left, struct operand right,
                                    struct place place);

/* Checking alone. */
void expr_require_type(struct parser *p, const struct operand *operand, enum value_type type, const char *who);
void expr_require_comparable(struct parser *p, enum op op, struct operand *left, struct operand *right,
                             struct place place);
void expr_require_number(struct parser *p, const struct operand *operand, const char *who);

/* next is an alternative to the expression so far: the common type of both. */
enum value_type expr_unite_type(struct parser *p, enum value_type so_far, struct operand *next);

/* Make the whole what the scope wants. */
struct operand expr_fit_result(struct parser *p, struct operand whole);

#endif

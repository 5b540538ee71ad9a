/* expr_lex.c: from the text of an expression to its tokens, one at a time. */
#include "core/schema/expr_impl.h"

#include <string.h>

#define SHOWN_BYTES_MAX ((size_t)60)

static const char *const spelling[] = {
    [TOKEN_AND] = "and",
    [TOKEN_OR] = "or",
    [TOKEN_NOT] = "not",
    [TOKEN_IN] = "in",
    [TOKEN_IS] = "is",
    [TOKEN_NULL] = "null",
    [TOKEN_TRUE] = "true",
    [TOKEN_FALSE] = "false",
    [TOKEN_STARTS_WITH] = "starts_with",
    [TOKEN_COALESCE] = "coalesce",
    [TOKEN_EQ] = "=",
    [TOKEN_NE] = "!=",
    [TOKEN_LE] = "<=",
    [TOKEN_GE] = ">=",
    [TOKEN_LT] = "<",
    [TOKEN_GT] = ">",
    [TOKEN_CONCAT] = "||",
    [TOKEN_PLUS] = "+",
    [TOKEN_MINUS] = "-",
    [TOKEN_TIMES] = "*",
    [TOKEN_DIVIDE] = "/",
    [TOKEN_OPEN] = "(",
    [TOKEN_CLOSE] = ")",
    [TOKEN_COMMA] = ",",
};

const char *expr_token_text(enum token_kind kind)
{
    return spelling[kind];
}

int expr_shown(pawl_bytes text)
{
    const uint8_t *c = text.data;
    size_t size = text.size < SHOWN_BYTES_MAX ? text.size : SHOWN_BYTES_MAX;
    while (size > 0 && size < text.size && (c[size] & 0xc0) == 0x80)
        size--;
    return (int)size;
}

/* Not ctype.h's, which ask the locale. */
static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

static bool same_word(pawl_bytes text, const char *word)
{
    const uint8_t *c = text.data;
    if (text.size != strlen(word))
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (lower(c[i]) != (uint8_t)word[i])
            return false;
    return true;
}

static enum token_kind find_keyword(pawl_bytes text)
{
    for (enum token_kind k = TOKEN_AND; k <= TOKEN_COALESCE; k++)
        if (same_word(text, spelling[k]))
            return k;
    return TOKEN_NAME;
}

bool expr_is_reserved(pawl_bytes name)
{
    return find_keyword(name) != TOKEN_NAME;
}

/* 0 at the end, which no rule below takes for one of its own. */
static uint8_t peek(const struct lexer *x, size_t ahead)
{
    return (size_t)(x->end - x->at) > ahead ? x->at[ahead] : 0;
}

static void advance(struct lexer *x, size_t ascii)
{
    x->at += ascii;
    x->place.column += (uint32_t)ascii;
}

static void advance_line(struct lexer *x)
{
    x->at++;
    x->place.line++;
    x->place.column = 1;
}

static void skip_space(struct lexer *x)
{
    for (;; advance(x, 1)) {
        while (peek(x, 0) == '\n')
            advance_line(x);
        if (peek(x, 0) != ' ' && peek(x, 0) != '\t' && peek(x, 0) != '\r')
            return;
    }
}

static void close_token(struct lexer *x, enum token_kind kind, const uint8_t *start)
{
    x->token.kind = kind;
    x->token.text = (pawl_bytes){start, (size_t)(x->at - start)};
}

static int lex_path(struct lexer *x, enum token_kind kind, pawl_error *error)
{
    const uint8_t *start = x->at;
    for (;; advance(x, 1)) {
        if (!is_letter(peek(x, 0)))
            return fail_at(error, x->place, PAWL_EINVAL, "expected a name behind the dot");
        while (is_letter(peek(x, 0)) || is_digit(peek(x, 0)))
            advance(x, 1);
        if (peek(x, 0) != '.')
            break;
    }
    close_token(x, kind, start);
    if (kind == TOKEN_NAME)
        x->token.kind = find_keyword(x->token.text);
    return PAWL_OK;
}

static int lex_event(struct lexer *x, pawl_error *error)
{
    static const char prefix[] = "$event.";
    const size_t size = sizeof prefix - 1;
    if ((size_t)(x->end - x->at) < size || !same_word((pawl_bytes){x->at, size}, prefix))
        return fail_at(error, x->place, PAWL_EINVAL, "expected $event.NAME: no other name begins with '$'");
    advance(x, size);
    return lex_path(x, TOKEN_EVENT, error);
}

static bool skip_digits(struct lexer *x)
{
    bool some = is_digit(peek(x, 0));
    while (is_digit(peek(x, 0)))
        advance(x, 1);
    return some;
}

static bool take_magnitude(struct token *token)
{
    const uint8_t *digit = token->text.data;
    uint64_t v = 0;
    for (size_t i = 0; i < token->text.size; i++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(digit[i] - '0'), &v))
            return false;
    token->magnitude = v;
    return v <= (uint64_t)INT64_MAX + 1;
}

static int lex_number(struct lexer *x, pawl_error *error)
{
    const uint8_t *start = x->at;
    enum token_kind kind = TOKEN_INT;
    bool whole = skip_digits(x);
    if (peek(x, 0) == '.') {
        kind = TOKEN_FLOAT;
        advance(x, 1);
        whole = skip_digits(x);
    }
    if (whole && lower(peek(x, 0)) == 'e') {
        kind = TOKEN_FLOAT;
        advance(x, peek(x, 1) == '+' || peek(x, 1) == '-' ? 2 : 1);
        whole = skip_digits(x);
    }
    if (!whole)
        return fail_at(error, x->place, PAWL_EINVAL, "expected a digit");
    if (is_letter(peek(x, 0)) || peek(x, 0) == '.')
        return fail_at(error, x->place, PAWL_EINVAL, "a number does not go on with '%c'", peek(x, 0));
    close_token(x, kind, start);
    if (x->token.text.size > EXPR_NUMBER_CHARS_MAX)
        return fail_at(error, x->token.place, PAWL_ETOOBIG, "a number has at most %d characters",
                       EXPR_NUMBER_CHARS_MAX);
    if (!(kind == TOKEN_INT ? take_magnitude(&x->token) : expr_parse_float(x->token.text, &x->token.real)))
        return fail_at(error, x->token.place, PAWL_EINVAL, "the number is too large for %s",
                       kind == TOKEN_INT ? "an int64" : "a float64");
    return PAWL_OK;
}

/* How many bytes the character has; 0 if it is none. */
static size_t utf8_size(const uint8_t *c, size_t left)
{
    if (c[0] < 0x80)
        return 1;
    size_t size = c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;
    if (size == 0 || left < size)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    bool longer_than_needed = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool surrogate = c[0] == 0xed && c[1] >= 0xa0;
    bool beyond_unicode = c[0] == 0xf4 && c[1] >= 0x90;
    return longer_than_needed || surrogate || beyond_unicode ? 0 : size;
}

static int lex_string(struct lexer *x, pawl_error *error)
{
    advance(x, 1);
    const uint8_t *start = x->at;
    while (x->at < x->end) {
        if (*x->at == '\'' && peek(x, 1) != '\'') {
            close_token(x, TOKEN_STRING, start);
            advance(x, 1);
            return PAWL_OK;
        }
        size_t size = utf8_size(x->at, (size_t)(x->end - x->at));
        if (size == 0)
            return fail_at(error, x->place, PAWL_EINVAL, "the string is not valid UTF-8");
        if (*x->at == '\'')
            advance(x, 2);
        else if (*x->at == '\n')
            advance_line(x);
        else {
            x->at += size;
            x->place.column++;
        }
    }
    return fail_at(error, x->token.place, PAWL_EINVAL, "the string that begins here has no end");
}

static int lex_symbol(struct lexer *x, pawl_error *error)
{
    for (enum token_kind k = TOKEN_EQ; k <= TOKEN_COMMA; k++) {
        size_t size = strlen(spelling[k]);
        if ((size_t)(x->end - x->at) < size || memcmp(x->at, spelling[k], size) != 0)
            continue;
        const uint8_t *start = x->at;
        advance(x, size);
        close_token(x, k, start);
        return PAWL_OK;
    }
    if (*x->at > ' ' && *x->at < 0x7f)
        return fail_at(error, x->place, PAWL_EINVAL, "'%c' means nothing here", *x->at);
    return fail_at(error, x->place, PAWL_EINVAL, "the byte 0x%02x means nothing outside a string", *x->at);
}

int expr_lex(struct lexer *x, pawl_error *error)
{
    skip_space(x);
    x->token = (struct token){.kind = TOKEN_END, .place = x->place};
    if (x->at == x->end)
        return PAWL_OK;
    if (is_digit(*x->at))
        return lex_number(x, error);
    if (is_letter(*x->at))
        return lex_path(x, TOKEN_NAME, error);
    if (*x->at == '$')
        return lex_event(x, error);
    if (*x->at == '\'')
        return lex_string(x, error);
    return lex_symbol(x, error);
}

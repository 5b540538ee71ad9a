/* engine/json/tree_read.c: reads JSON (RFC 8259) into nodes.
 *
 * Every command that comes as text goes through here; jansson, which allocates and hashes each member, took a tenth of a
 * command's processor time. It still finds the words for a text that is refused here, and it agrees about which texts
 * those are: test/fuzz/fuzz_tree.c compares. */
#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "engine/json/tree.h"

#define FEW_MEMBERS 8 /* are compared with each other; more are sorted */

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    struct arena *memory;
    bool zeros;
    bool no_memory; /* otherwise a failure means: not JSON */
};

/* One that is being read, in a list; the list becomes an array when its end is known. */
struct listed {
    struct listed *next;
    struct tree tree;
};

static void *take(struct reader *r, size_t size)
{
    void *memory = arena_take(r->memory, size);
    r->no_memory = r->no_memory || !memory;
    return memory;
}

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

static bool skip(struct reader *r, uint8_t byte)
{
    if (r->at == r->end || *r->at != byte)
        return false;
    r->at++;
    return true;
}

/* --- strings --- */

static bool read_hex(struct reader *r, uint32_t *ret_unit)
{
    uint32_t unit = 0;
    if (r->end - r->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        uint8_t c = *r->at++;
        if (c >= '0' && c <= '9')
            unit = unit << 4 | (uint32_t)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            unit = unit << 4 | (uint32_t)((c | 0x20) - 'a' + 10);
        else
            return false;
    }
    *ret_unit = unit;
    return true;
}

static uint8_t *write_point(uint8_t *to, uint32_t point)
{
    if (point < 0x80) {
        *to++ = (uint8_t)point;
        return to;
    }
    if (point < 0x800) {
        *to++ = (uint8_t)(0xc0 | point >> 6);
    } else {
        if (point < 0x10000) {
            *to++ = (uint8_t)(0xe0 | point >> 12);
        } else {
            *to++ = (uint8_t)(0xf0 | point >> 18);
            *to++ = (uint8_t)(0x80 | (point >> 12 & 0x3f));
        }
        *to++ = (uint8_t)(0x80 | (point >> 6 & 0x3f));
    }
    *to++ = (uint8_t)(0x80 | (point & 0x3f));
    return to;
}

/* Behind \u: one unit of UTF-16, or two that belong together. */
static bool read_point(struct reader *r, uint32_t *ret_point)
{
    uint32_t high, low;
    if (!read_hex(r, &high))
        return false;
    *ret_point = high;
    if (high < 0xd800 || high > 0xdfff)
        return high != 0 || r->zeros;
    if (high > 0xdbff || !skip(r, '\\') || !skip(r, 'u') || !read_hex(r, &low) || low < 0xdc00 || low > 0xdfff)
        return false;
    *ret_point = 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff));
    return true;
}

/* Behind a backslash. It takes no more bytes than stood there. */
static uint8_t *read_escape(struct reader *r, uint8_t *to)
{
    static const char from[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    uint32_t point;
    if (r->at == r->end)
        return NULL;
    uint8_t c = *r->at++;
    if (c == 'u')
        return read_point(r, &point) ? write_point(to, point) : NULL;
    const char *found = c ? strchr(from, c) : NULL;
    if (found)
        *to++ = (uint8_t)means[found - from];
    return found ? to : NULL;
}

/* The bytes of a character of UTF-8 beyond ASCII; 0: it is none. The shortest form only, no halves of pairs. */
static size_t wide_size(const uint8_t *at, size_t left)
{
    uint8_t first = at[0], least = 0x80, most = 0xbf;
    size_t size = first >= 0xc2 && first <= 0xdf ? 2 : first >= 0xe0 && first <= 0xef ? 3 : 4;
    if (first < 0xc2 || first > 0xf4 || size > left)
        return 0;
    if (first == 0xe0)
        least = 0xa0;
    else if (first == 0xed)
        most = 0x9f;
    else if (first == 0xf0)
        least = 0x90;
    else if (first == 0xf4)
        most = 0x8f;
    if (at[1] < least || at[1] > most)
        return 0;
    for (size_t i = 2; i < size; i++)
        if (at[i] < 0x80 || at[i] > 0xbf)
            return 0;
    return size;
}

/* The bytes from here to the quote that ends the string; SIZE_MAX: there is none. */
static size_t string_size(const struct reader *r)
{
    for (const uint8_t *at = r->at; at < r->end; at++) {
        if (*at == '"')
            return (size_t)(at - r->at);
        if (*at == '\\')
            at++;
    }
    return SIZE_MAX;
}

/* Behind the quote that begins it. Text never has more bytes than the JSON that stands for it. */
static bool read_string(struct reader *r, pawl_bytes *ret_text)
{
    size_t room = string_size(r);
    uint8_t *text = room == SIZE_MAX ? NULL : take(r, room + 1);
    if (!text)
        return false;
    uint8_t *to = text;
    while (*r->at != '"') {
        uint8_t c = *r->at;
        size_t size = 1;
        if (c == '\\') {
            r->at++;
            to = read_escape(r, to);
            if (!to)
                return false;
            continue;
        }
        if (c < 0x20)
            return false;
        if (c >= 0x80 && (size = wide_size(r->at, (size_t)(r->end - r->at))) == 0)
            return false;
        while (size-- > 0)
            *to++ = *r->at++;
    }
    r->at++;
    *to = '\0';
    *ret_text = (pawl_bytes){text, (size_t)(to - text)};
    return true;
}

/* --- numbers --- */

static size_t skip_digits(struct reader *r)
{
    const uint8_t *from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return (size_t)(r->at - from);
}

static bool read_integer(const uint8_t *from, const uint8_t *end, struct tree *tree)
{
    bool minus = *from == '-';
    int64_t value = 0;
    for (from += minus; from < end; from++) {
        int digit = *from - '0';
        if (__builtin_mul_overflow(value, 10, &value)
            || (minus ? __builtin_sub_overflow(value, digit, &value)
                      : __builtin_add_overflow(value, digit, &value)))
            return false;
    }
    tree->kind = TREE_INTEGER;
    tree->integer = value;
    return true;
}

/* The point is that of the C locale, whatever the host's is. */
static bool read_real(struct reader *r, const uint8_t *from, const uint8_t *end, struct tree *tree)
{
    size_t size = (size_t)(end - from);
    char *copy = take(r, size + 1);
    if (!copy)
        return false;
    memcpy(copy, from, size);
    copy[size] = '\0';
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), host = uselocale(plain);
    errno = 0;
    double real = strtod(copy, NULL);
    bool overflow = errno == ERANGE && fabs(real) == HUGE_VAL;
    uselocale(host);
    freelocale(plain);
    tree->kind = TREE_REAL;
    tree->real = real;
    return !overflow;
}

static bool read_number(struct reader *r, struct tree *tree)
{
    const uint8_t *from = r->at;
    (void)skip(r, '-');
    bool zero = skip(r, '0');
    bool whole = true;
    if (!zero && skip_digits(r) == 0)
        return false;
    if (skip(r, '.')) {
        whole = false;
        if (skip_digits(r) == 0)
            return false;
    }
    if (r->at < r->end && (*r->at | 0x20) == 'e') {
        whole = false;
        r->at++;
        if (!skip(r, '+'))
            (void)skip(r, '-');
        if (skip_digits(r) == 0)
            return false;
    }
    return whole ? read_integer(from, r->at, tree) : read_real(r, from, r->at, tree);
}

/* --- arrays and objects --- */

static bool read_value(struct reader *r, struct tree *tree);

static bool gather(struct reader *r, struct listed *first, size_t count, struct tree *tree)
{
    tree->items = take(r, count * sizeof tree->items[0]);
    tree->count = count;
    if (!tree->items)
        return false;
    for (size_t i = 0; i < count; i++, first = first->next)
        tree->items[i] = &first->tree;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const pawl_bytes *x = &(*(struct tree *const *)a)->name, *y = &(*(struct tree *const *)b)->name;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return memcmp(x->data, y->data, x->size);
}

static bool all_different(struct reader *r, const struct tree *tree)
{
    if (tree->count <= FEW_MEMBERS) {
        for (size_t i = 1; i < tree->count; i++)
            for (size_t j = 0; j < i; j++)
                if (by_name(&tree->items[i], &tree->items[j]) == 0)
                    return false;
        return true;
    }
    struct tree **sorted = take(r, tree->count * sizeof sorted[0]);
    if (!sorted)
        return false;
    memcpy(sorted, tree->items, tree->count * sizeof sorted[0]);
    qsort(sorted, tree->count, sizeof sorted[0], by_name);
    for (size_t i = 1; i < tree->count; i++)
        if (by_name(&sorted[i], &sorted[i - 1]) == 0)
            return false;
    return true;
}

/* The name of a member, and the colon behind it. */
static bool read_name(struct reader *r, pawl_bytes *ret_name)
{
    if (!skip(r, '"') || !read_string(r, ret_name) || memchr(ret_name->data, '\0', ret_name->size))
        return false;
    skip_space(r);
    return skip(r, ':');
}

/* Behind the bracket that begins it. */
static bool read_items(struct reader *r, struct tree *tree, bool object)
{
    struct listed *first = NULL, **last = &first;
    size_t count = 0;
    uint8_t end = object ? '}' : ']';
    tree->kind = object ? TREE_OBJECT : TREE_ARRAY;
    skip_space(r);
    for (bool more = !skip(r, end); more; more = !skip(r, end)) {
        if (count > 0 && !skip(r, ','))
            return false;
        struct listed *item = take(r, sizeof *item);
        if (!item)
            return false;
        *item = (struct listed){0};
        skip_space(r);
        if ((object && !read_name(r, &item->tree.name)) || !read_value(r, &item->tree))
            return false;
        *last = item;
        last = &item->next;
        count++;
        skip_space(r);
    }
    return gather(r, first, count, tree) && (!object || all_different(r, tree));
}

static bool read_word(struct reader *r, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0)
        return false;
    r->at += size;
    return true;
}

/* Recurses as deep as brackets nest, which was checked before. */
static bool read_value(struct reader *r, struct tree *tree)
{
    skip_space(r);
    if (r->at == r->end)
        return false;
    switch (*r->at) {
    case '{':
    case '[': return read_items(r, tree, *r->at++ == '{');
    case '"':
        r->at++;
        tree->kind = TREE_STRING;
        return read_string(r, &tree->text);
    case 't':
        tree->kind = TREE_BOOL;
        tree->boolean = true;
        return read_word(r, "true");
    case 'f':
        tree->kind = TREE_BOOL;
        tree->boolean = false;
        return read_word(r, "false");
    case 'n': tree->kind = TREE_NULL; return read_word(r, "null");
    default: return read_number(r, tree);
    }
}

/* --- the whole --- */

/* Check how deep brackets nest, before the parser recurses into them. Strings are skipped; if the text is not
 * JSON at all, the parser will say so. */
static int check_depth(pawl_bytes text, size_t depth_max, pawl_error *error)
{
    const char *at = text.data;
    size_t depth = 0, line = 1, column = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.size; i++) {
        column++;
        if (at[i] == '\n') {
            line++;
            column = 0;
        } else if (quoted && at[i] == '\\') {
            i++;
            column++;
        } else if (at[i] == '"')
            quoted = !quoted;
        else if (!quoted && (at[i] == '{' || at[i] == '['))
            depth++;
        else if (!quoted && (at[i] == '}' || at[i] == ']') && depth > 0)
            depth--;
        if (depth > depth_max)
            return error_set(error, PAWL_EINVAL, "line %zu, column %zu: brackets are more than %zu deep", line,
                             column, depth_max);
    }
    return PAWL_OK;
}

/* What is wrong with a text, and where. */
static int refuse(pawl_bytes text, const struct tree_limits *limits, pawl_error *error)
{
    json_error_t why = {.line = 1, .text = "this is not JSON"};
    json_t *tree = json_loadb(text.size ? text.data : "", text.size,
                              JSON_REJECT_DUPLICATES | (limits->zeros ? JSON_ALLOW_NUL : 0), &why);
    bool no_memory = !tree && json_error_code(&why) == json_error_out_of_memory;
    json_decref(tree);
    if (no_memory)
        return error_set(error, PAWL_ENOMEM, "%s", pawl_status_text(PAWL_ENOMEM));
    return error_set(error, PAWL_EINVAL, "line %d, column %d: %s", why.line, why.column, why.text);
}

int tree_read(pawl_bytes text, const struct tree_limits *limits, struct arena *memory, struct tree **ret_tree,
              pawl_error *error)
{
    if (text.size > limits->bytes_max)
        return error_set(error, PAWL_ETOOBIG, "the text has %zu bytes; %zu are the most", text.size,
                         limits->bytes_max);
    int status = check_depth(text, limits->depth_max, error);
    if (status)
        return status;
    const uint8_t *from = text.size ? text.data : (const uint8_t *)"";
    struct reader r = {.at = from, .end = from + text.size, .memory = memory, .zeros = limits->zeros};
    struct tree *tree = take(&r, sizeof *tree);
    bool good = tree != NULL;
    if (good) {
        *tree = (struct tree){0};
        skip_space(&r);
        good = r.at < r.end && (*r.at == '{' || *r.at == '[') && read_value(&r, tree);
        skip_space(&r);
    }
    if (r.no_memory)
        return error_set(error, PAWL_ENOMEM, "%s", pawl_status_text(PAWL_ENOMEM));
    if (!good || r.at < r.end)
        return refuse(text, limits, error);
    *ret_tree = tree;
    return PAWL_OK;
}

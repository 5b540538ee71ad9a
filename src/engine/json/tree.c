#include "engine/json/tree.h"

#include <locale.h>
#include <string.h>

#include "base/error.h"

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

int tree_read(pawl_bytes text, const struct tree_limits *limits, json_t **ret_json, pawl_error *error)
{
    if (text.size > limits->bytes_max)
        return error_set(error, PAWL_ETOOBIG, "the text has %zu bytes; %zu are the most", text.size,
                         limits->bytes_max);
    int status = check_depth(text, limits->depth_max, error);
    if (status)
        return status;
    json_error_t why;
    size_t flags = JSON_REJECT_DUPLICATES | (limits->zeros ? JSON_ALLOW_NUL : 0);
    /* jansson handles a decimal point of the host's locale, but not one of several bytes: use the C locale. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), host = uselocale(plain);
    json_t *json = json_loadb(text.size ? text.data : "", text.size, flags, &why);
    uselocale(host);
    freelocale(plain);
    if (!json && json_error_code(&why) == json_error_out_of_memory)
        return error_set(error, PAWL_ENOMEM, "%s", pawl_status_text(PAWL_ENOMEM));
    if (!json)
        return error_set(error, PAWL_EINVAL, "line %d, column %d: %s", why.line, why.column, why.text);
    *ret_json = json;
    return PAWL_OK;
}

static const char *kind_words(const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE: return "a bool";
    case JSON_NULL: return "null";
    }
    return "something else";
}

bool tree_expect(struct verdict *v, const struct path *at, const json_t *json, bool good, const char *what)
{
    if (!good)
        verdict_refuse(v, at, "expected %s, not %s", what, kind_words(json));
    return good;
}

bool tree_expect_members(struct verdict *v, const struct path *at, json_t *json, const char *const *members)
{
    if (!tree_expect(v, at, json, json_is_object(json), "an object"))
        return false;
    const char *key;
    json_t *value;
    json_object_foreach(json, key, value)
    {
        size_t i = 0;
        while (members[i] && strcmp(members[i], key) != 0)
            i++;
        if (members[i])
            continue;
        struct path here = path_member(at, key);
        verdict_refuse(v, &here, "there is no such member");
        return false;
    }
    return true;
}

#include "http/routes/body.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool body_begin(struct exchange *x, struct body *ret_body)
{
    *ret_body = (struct body){.x = x};
    ret_body->tree = exchange_body(x).size == 0 ? json_object() : exchange_body_json(x);
    return ret_body->tree != NULL;
}

void body_release(struct body *body)
{
    json_decref(body->tree);
    body->tree = NULL;
}

void body_complain(struct body *body, const char *name, const char *format, ...)
{
    char words[160];
    va_list arguments;
    if (body->failed)
        return;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    body->failed = true;
    pawl_error_set(&body->error, PAWL_EINVAL, "$.%s: %s", name, words);
}

json_t *body_member(struct body *body, const char *name)
{
    assert(body->known_count < BODY_MEMBERS_MAX);
    body->known[body->known_count++] = name;
    return json_object_get(body->tree, name);
}

const char *body_string(struct body *body, const char *name, bool needed)
{
    const json_t *member = body_member(body, name);
    const char *text = json_string_value(member);
    if (!member && needed)
        body_complain(body, name, "it is missing");
    else if (member && (!text || strlen(text) != json_string_length(member)))
        body_complain(body, name, "expected a string");
    return text;
}

bool body_flag(struct body *body, const char *name)
{
    const json_t *member = body_member(body, name);
    if (member && !json_is_boolean(member))
        body_complain(body, name, "expected true or false");
    return json_is_true(member);
}

bool body_has(const struct body *body, const char *name)
{
    return json_object_get(body->tree, name) != NULL;
}

bool body_value_number(const json_t *value, uint64_t least, uint64_t most, uint64_t *ret_number)
{
    pawl_error error;
    if (json_is_string(value))
        return target_number(json_string_value(value), least, most, "", ret_number, &error) == PAWL_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) < least
        || (uint64_t)json_integer_value(value) > most)
        return false;
    *ret_number = (uint64_t)json_integer_value(value);
    return true;
}

uint64_t body_number(struct body *body, const char *name, uint64_t least, uint64_t most, bool needed)
{
    const json_t *member = body_member(body, name);
    uint64_t number = 0;
    if (!member && !needed)
        return 0;
    if (!member)
        body_complain(body, name, "it is missing");
    else if (!body_value_number(member, least, most, &number))
        body_complain(body, name, "expected a number from %" PRIu64 " to %" PRIu64, least, most);
    return number;
}

pawl_duration body_duration(struct body *body, const char *name, pawl_duration most, pawl_duration fallback)
{
    const json_t *member = body_member(body, name);
    pawl_duration duration = fallback;
    pawl_error error;
    bool good = !member;
    if (json_is_string(member))
        good = target_duration(json_string_value(member), most, "", &duration, &error) == PAWL_OK;
    else if (json_is_number(member)) {
        double seconds = json_number_value(member);
        good = isfinite(seconds) && seconds >= 0 && seconds <= (double)most / (double)PAWL_SECOND;
        duration = good ? (pawl_duration)(seconds * (double)PAWL_SECOND) : 0;
    }
    if (!good)
        body_complain(body, name,
                      "expected a duration up to %" PRIu64 "s: 500ms, 30s, 5m, or a number of seconds",
                      most / PAWL_SECOND);
    return duration;
}

pawl_operation_id body_operation(struct body *body)
{
    pawl_operation_id id = {0};
    pawl_error error;
    const char *text = body_string(body, "operation", BODY_NEEDED);
    if (text && pawl_operation_parse(text, &id, &error) != PAWL_OK)
        body_complain(body, "operation", "%s", error.text);
    return id;
}

size_t body_strings(struct body *body, const char *name, size_t most, bool needed, const char **names)
{
    const json_t *member = body_member(body, name);
    size_t count = json_array_size(member);
    if (!member) {
        if (needed)
            body_complain(body, name, "it is missing");
        return 0;
    }
    if (!json_is_array(member) || count > most) {
        body_complain(body, name, "expected a list of at most %zu names", most);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = json_string_value(json_array_get(member, i));
        if (!names[i]) {
            body_complain(body, name, "expected a list of names");
            return 0;
        }
    }
    return count;
}

bool body_end(struct body *body)
{
    const char *name;
    json_t *value;
    json_object_foreach(body->tree, name, value)
    {
        bool known = false;
        for (size_t i = 0; i < body->known_count; i++)
            known = known || strcmp(body->known[i], name) == 0;
        if (!known)
            body_complain(body, "", "there is no member '%.64s'", name);
    }
    if (!body->failed)
        return true;
    exchange_fail(body->x, &body->error);
    body_release(body);
    return false;
}

json_t *json_number64(uint64_t number)
{
    char text[24];
    if (number < UINT64_C(1) << 53)
        return json_integer((json_int_t)number);
    snprintf(text, sizeof text, "%" PRIu64, number);
    return json_string(text);
}

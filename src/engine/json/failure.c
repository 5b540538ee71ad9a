#include "engine/json/failure.h"

#include <assert.h>

/* How many bytes of the words name a place; 0: none do. */
static size_t place_size(const char *text)
{
    if (text[0] != '$' && strncmp(text, "line ", 5) != 0)
        return 0;
    const char *end = strstr(text, ": ");
    return end ? (size_t)(end - text) : 0;
}

void json_failure(struct json_out *out, const pawl_error *error)
{
    const char *text = error->text[0] ? error->text : pawl_status_text(error->code);
    size_t place = place_size(text);
    const char *words = place ? text + place + 2 : text;
    out_open(out, '{');
    out_key(out, "code");
    out_text(out, (pawl_bytes){pawl_status_name(error->code), strlen(pawl_status_name(error->code))});
    out_key(out, "message");
    out_text(out, (pawl_bytes){words, strlen(words)});
    if (place) {
        out_key(out, "where");
        out_text(out, (pawl_bytes){text, place});
    }
    out_close(out, '}');
}

/* An allocator that has one place of PAWL_ERROR_JSON_MAX bytes, its ctx. */
static void *resize_in_place(void *ctx, void *memory, size_t old_size, size_t new_size)
{
    (void)memory, (void)old_size;
    return new_size > 0 && new_size <= PAWL_ERROR_JSON_MAX ? ctx : NULL;
}

/* A byte becomes six at most ("\u0001"), and json_out asks for powers of two. */
_Static_assert(6 * sizeof((pawl_error){0}.text) + 128 < PAWL_ERROR_JSON_MAX, "the longest error fits");
_Static_assert((PAWL_ERROR_JSON_MAX & (PAWL_ERROR_JSON_MAX - 1)) == 0, "so that all of the place is used");

size_t pawl_error_json(const pawl_error *error, char *text)
{
    const pawl_allocator place = {.resize = resize_in_place, .ctx = text};
    struct json_out out;
    json_out_init(&out, &place);
    json_failure(&out, error);
    out_raw(&out, (pawl_bytes){"", 1});
    assert(out.status == PAWL_OK);
    return out.size - 1;
}

#include "engine/json/failure.h"

/* How many bytes at the beginning of the text name a place; 0: none. */
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

/* http/routes/page.c: the page that a browser shows, and its files.
 *
 * They hold no data: the page asks for that by the other routes, with the user's token. So they need no token. */
#include <string.h>

#include "http/routes/assets.h"
#include "http/routes/routes.h"

/* Nothing from elsewhere, nothing inline, nobody's frame. */
#define POLICY                                                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "            \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* Whether an If-None-Match header names this tag: it is a list, and a cache may have marked a tag as weak. */
static bool names_tag(const char *header, const char *etag)
{
    if (!header)
        return false;
    return strcmp(header, "*") == 0 || strstr(header, etag) != NULL;
}

static void answer_asset(struct exchange *x, const struct asset *asset)
{
    exchange_add_header(x, "ETag", "%s", asset->etag);
    exchange_add_header(x, "Cache-Control", "no-cache"); /* keep it, and ask whether it has changed */
    exchange_add_header(x, "Content-Security-Policy", POLICY);
    exchange_add_header(x, "Cross-Origin-Opener-Policy", "same-origin");
    if (names_tag(exchange_header(x, "If-None-Match"), asset->etag))
        exchange_answer_empty(x, HTTP_NOT_MODIFIED);
    else
        exchange_answer_constant(x, HTTP_OK, asset->type, asset->data);
}

static void answer_file(struct exchange *x, const char *name)
{
    for (size_t i = 0; i < asset_count; i++)
        if (strcmp(assets[i].name, name) == 0) {
            answer_asset(x, &assets[i]);
            return;
        }
    exchange_refuse(x, HTTP_NOT_FOUND, PAWL_ENOTFOUND, "$path.file: the page has no such file");
}

void page_index(struct exchange *x)
{
    answer_file(x, "index.html");
}

void page_file(struct exchange *x)
{
    answer_file(x, exchange_path(x, "file"));
}

/* engine/json/schema_views.c: a view that was made at run time as JSON, on a line. */
#include "engine/json/schema.h"

static void show_names(struct json_out *out, const char *member, const pawl_bytes *names, size_t count)
{
    out_key(out, member);
    out_open(out, '[');
    for (size_t i = 0; i < count; i++)
        out_text(out, names[i]);
    out_close(out, ']');
}

void schema_view_show(pawl_bytes name, pawl_bytes base, const struct definition_view *view,
                      struct json_out *out)
{
    out_open(out, '{');
    out_key(out, "view");
    out_text(out, name);
    out_key(out, "base");
    out_text(out, base);
    show_names(out, "key", view->key, view->key_count);
    if (view->include_count)
        show_names(out, "include", view->include, view->include_count);
    if (view->filter.size) {
        out_key(out, "filter");
        out_text(out, view->filter);
    }
    if (view->unique) {
        out_key(out, "unique");
        out_flag(out, true);
    }
    out_close(out, '}');
    out_raw(out, (pawl_bytes){"\n", 1});
}

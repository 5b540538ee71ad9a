/* engine/read/workspace_show.c: workspaces as JSON. */
#include <pawl/pawl.h>

#include "engine/node/node.h"
#include "engine/read/read.h"

static void show(struct json_out *out, const pawl_workspace *w)
{
    out_open(out, '{');
    out_key(out, "wsid");
    out_unsigned(out, w->wsid);
    out_key(out, "kind");
    out_text(out, w->kind);
    out_key(out, "partition");
    out_unsigned(out, w->partition);
    out_key(out, "offset");
    out_unsigned(out, w->offset);
    out_key(out, "workspace_offset");
    out_unsigned(out, w->workspace_offset);
    out_key(out, "frozen");
    out_flag(out, w->frozen);
}

static bool show_number(void *arg, const pawl_last_number *last)
{
    struct json_out *out = arg;
    out_name(out, last->sequence);
    out_unsigned(out, last->number);
    return true;
}

int pawl_workspace_show(pawl_engine *e, uint64_t wsid, const pawl_read_options *options, pawl_text *ret_text,
                        pawl_error *error)
{
    pawl_workspace workspace;
    struct json_out out;
    int status = pawl_workspace_get(e, wsid, options, &workspace, error);
    if (status != PAWL_OK)
        return status;
    json_out_init(&out, e->options.allocator);
    show(&out, &workspace);
    out_key(&out, "sequences");
    out_open(&out, '{');
    status = pawl_last_numbers_read(e, workspace.partition, wsid, show_number, &out, error);
    out_close(&out, '}');
    out_close(&out, '}');
    return text_take(&out, status, ret_text, error);
}

struct workspace_list {
    struct json_out out;
    uint64_t last;
    size_t count;
};

static bool show_line(void *arg, const pawl_workspace *workspace)
{
    struct workspace_list *list = arg;
    show(&list->out, workspace);
    out_close(&list->out, '}');
    out_raw(&list->out, (pawl_bytes){"\n", 1});
    list->last = workspace->wsid;
    list->count++;
    return true;
}

int pawl_workspaces_list(pawl_engine *e, uint64_t after, size_t limit, pawl_text *ret_text, uint64_t *ret_after,
                         pawl_error *error)
{
    struct workspace_list list = {.count = 0};
    json_out_init(&list.out, e->options.allocator);
    int status = pawl_workspaces_read(e, after, limit, show_line, &list, error);
    status = text_take(&list.out, status, ret_text, error);
    if (status == PAWL_OK && ret_after)
        *ret_after = list.count == limit ? list.last : 0;
    return status;
}

#include "engine/read/text.h"

#include "base/alloc.h"
#include "base/error.h"

int text_take(struct json_out *out, int status, pawl_text *ret_text, pawl_error *error)
{
    size_t size = out->size;
    out_raw(out, (pawl_bytes){"", 1});
    if (status == PAWL_OK && out->status != PAWL_OK)
        status = error_set(error, out->status, "no memory for a text");
    if (status != PAWL_OK) {
        json_out_release(out);
        return status;
    }
    *ret_text = (pawl_text){.data = out->data, .size = size, .room = out->room, .allocator = out->alloc};
    return PAWL_OK;
}

void pawl_text_free(pawl_text *text)
{
    mem_free(text->allocator, text->data, text->room);
    *text = (pawl_text){.allocator = text->allocator};
}

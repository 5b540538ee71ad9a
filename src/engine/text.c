#include "engine/text.h"

#include <string.h>

#include "base/alloc.h"

#define ROOM_FIRST ((size_t)256)

int text_add(pawl_text *text, pawl_bytes bytes)
{
    if (bytes.size >= SIZE_MAX / 2 - text->size)
        return PAWL_ENOMEM;
    size_t need = text->size + bytes.size + 1, room = text->room ? text->room : ROOM_FIRST;
    while (room < need)
        room *= 2;
    if (room != text->room) {
        char *data = mem_resize(text->allocator, text->data, text->room, room);
        if (!data)
            return PAWL_ENOMEM;
        text->data = data;
        text->room = room;
    }
    if (bytes.size)
        memcpy(text->data + text->size, bytes.data, bytes.size);
    text->size += bytes.size;
    text->data[text->size] = '\0';
    return PAWL_OK;
}

void pawl_text_free(pawl_text *text)
{
    mem_free(text->allocator, text->data, text->room);
    *text = (pawl_text){.allocator = text->allocator};
}

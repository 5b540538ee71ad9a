/* engine/read/cursor.c: where a scan has stopped, in memory and as text.
 *
 * The text is base64 with - and _ and without padding, so that it can stand in an address. It is of these
 * bytes:
 *
 *      0  version   u8    1
 *      1  flags     u8    1: there are no more rows; 2: there is a key
 *      2  of        u64   what the cursor is of
 *     10  key             all bytes up to the last eight
 *         checksum  u64   of all bytes before
 *
 * A text comes from outside. The checksum tells mistakes; whoever goes on from a key checks it all the same. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "engine/json/json.h"
#include "engine/node/node.h"
#include "engine/read/row.h"
#include "engine/read/text.h"
#include "port/store.h"

#define TEXT_VERSION 1
#define FLAG_DONE    1
#define FLAG_KEY     2
#define HEAD         ((size_t)10)
#define SUM          ((size_t)8)
#define SEED         UINT64_C(0x6375722e)
#define BYTES_MAX    (HEAD + PAWL_KEY_BYTES_MAX + SUM)

struct cursor_memory {
    const pawl_allocator *alloc;
    uint64_t of;
    size_t size; /* of the key */
    uint8_t key[];
};

pawl_bytes scan_cursor_key(const pawl_cursor *cursor)
{
    const struct cursor_memory *memory = cursor ? cursor->memory : NULL;
    return memory ? (pawl_bytes){memory->key, memory->size} : (pawl_bytes){0};
}

uint64_t scan_cursor_of(const pawl_cursor *cursor)
{
    const struct cursor_memory *memory = cursor->memory;
    return memory ? memory->of : 0;
}

int scan_cursor_move(pawl_cursor *cursor, const pawl_allocator *alloc, uint64_t of, pawl_bytes key)
{
    struct cursor_memory *memory = mem_new(alloc, 1, sizeof *memory + key.size);
    if (!memory)
        return PAWL_ENOMEM;
    memory->alloc = alloc;
    memory->of = of;
    memory->size = key.size;
    memcpy(memory->key, key.data, key.size);
    pawl_cursor_free(cursor);
    cursor->memory = memory;
    return PAWL_OK;
}

void pawl_cursor_free(pawl_cursor *cursor)
{
    struct cursor_memory *memory = cursor->memory;
    if (memory)
        mem_free(memory->alloc, memory, sizeof *memory + memory->size);
    *cursor = (pawl_cursor){0};
}

/* --- as text --- */

/* Put back the two digits that an address cannot have. */
static void exchange(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
}

static void write_bytes(const pawl_cursor *cursor, pawl_bytes key, uint8_t *bytes)
{
    put_u8(bytes, TEXT_VERSION);
    put_u8(bytes + 1, (uint8_t)((cursor->done ? FLAG_DONE : 0) | (key.data ? FLAG_KEY : 0)));
    put_u64(bytes + 2, scan_cursor_of(cursor));
    if (key.data)
        memcpy(bytes + HEAD, key.data, key.size);
    put_u64(bytes + HEAD + key.size, hash_checksum(SEED, (pawl_bytes){bytes, HEAD + key.size}));
}

int pawl_cursor_format(const pawl_cursor *cursor, pawl_text *ret_text, pawl_error *error)
{
    const struct cursor_memory *memory = cursor->memory;
    const pawl_allocator *alloc = memory ? memory->alloc : NULL;
    pawl_bytes key = scan_cursor_key(cursor);
    size_t size = HEAD + key.size + SUM, room = form_base64_size(size);
    uint8_t *bytes = mem_new(alloc, 1, size);
    char *text = mem_new(alloc, 1, room);
    struct json_out out;
    json_out_init(&out, alloc);
    int status = bytes && text ? PAWL_OK : error_set(error, PAWL_ENOMEM, "no memory for a cursor");
    if (status == PAWL_OK) {
        write_bytes(cursor, key, bytes);
        out_raw(&out, (pawl_bytes){text, form_base64url_write((pawl_bytes){bytes, size}, text)});
    }
    mem_free(alloc, text, text ? room : 0);
    mem_free(alloc, bytes, bytes ? size : 0);
    return text_take(&out, status, ret_text, error);
}

static int read_bytes(const pawl_allocator *alloc, const uint8_t *bytes, size_t size, pawl_cursor *ret_cursor,
                      pawl_error *error)
{
    if (size < HEAD + SUM || get_u64(bytes + size - SUM) != hash_checksum(SEED, (pawl_bytes){bytes, size - SUM})
        || bytes[0] != TEXT_VERSION || bytes[1] > (FLAG_DONE | FLAG_KEY)
        || (!(bytes[1] & FLAG_KEY) && size != HEAD + SUM))
        return error_set(error, PAWL_EINVAL, "this is not a cursor");
    pawl_cursor cursor = {0};
    if (bytes[1] & FLAG_KEY) {
        pawl_bytes key = {bytes + HEAD, size - SUM - HEAD};
        if (scan_cursor_move(&cursor, alloc, get_u64(bytes + 2), key) != PAWL_OK)
            return error_set(error, PAWL_ENOMEM, "no memory for a cursor");
    }
    cursor.done = bytes[1] & FLAG_DONE;
    *ret_cursor = cursor;
    return PAWL_OK;
}

int pawl_cursor_parse(pawl_engine *e, const char *text, pawl_cursor *ret_cursor, pawl_error *error)
{
    const pawl_allocator *alloc = e->options.allocator;
    size_t length = strlen(text), padded = (length + 3) / 4 * 4, size;
    if (length == 0 || length > form_base64_size(BYTES_MAX) || strpbrk(text, "+/="))
        return error_set(error, PAWL_EINVAL, "this is not a cursor");
    char *copy = mem_new(alloc, 1, padded);
    uint8_t *bytes = mem_new(alloc, 1, padded / 4 * 3);
    int status = copy && bytes ? PAWL_OK : error_set(error, PAWL_ENOMEM, "no memory for a cursor");
    if (status == PAWL_OK) {
        memset(copy, '=', padded);
        memcpy(copy, text, length);
        exchange(copy, length);
        if (!form_base64_read((pawl_bytes){copy, padded}, bytes, &size))
            size = 0;
        status = read_bytes(alloc, bytes, size, ret_cursor, error);
    }
    mem_free(alloc, bytes, bytes ? padded / 4 * 3 : 0);
    mem_free(alloc, copy, copy ? padded : 0);
    return status;
}

/* core/group0/command_view.c: commands of group0 about views and tablets, as bytes (command.h). */
#include "base/bytes.h"
#include "base/error.h"
#include "core/group0/command.h"

#define GUARD    ((size_t)24)
#define NAME_MAX ((size_t)SCHEMA_QNAME_BYTES_MAX)
#define WORDS    ((size_t)1024)

/* What a kind's body takes; SIZE_MAX: it cannot be encoded. */
static size_t body_size(const struct group0_command *c, pawl_bytes definition)
{
    switch (c->kind) {
    case GROUP0_VIEW_CREATE: return definition.size;
    case GROUP0_VIEW_DROP:
    case GROUP0_VIEW_REBUILD: return c->name.size > NAME_MAX ? SIZE_MAX : 2 + c->name.size;
    case GROUP0_VIEW_PAUSE: return c->name.size > NAME_MAX ? SIZE_MAX : 3 + c->name.size;
    case GROUP0_VIEW_THROTTLE: return 8;
    case GROUP0_BASE:
    case GROUP0_RESIZE_BEGIN: return 4;
    case GROUP0_FINISHED: return c->id_count > GROUP0_IDS_MAX ? SIZE_MAX : 4 + 8 * c->id_count;
    case GROUP0_FAILED: return c->words.size > WORDS ? SIZE_MAX : 6 + c->words.size;
    case GROUP0_TASKS:
        return c->uncovered_count > GROUP0_UNCOVERED_MAX ? SIZE_MAX : 4 + 12 * c->uncovered_count;
    default: return 0;
    }
}

static void encode_text(struct encoder *e, pawl_bytes text)
{
    encode_u16(e, (uint16_t)text.size);
    encode_raw(e, text);
}

static void encode_body(struct encoder *e, const struct group0_command *c, pawl_bytes definition)
{
    switch (c->kind) {
    case GROUP0_VIEW_CREATE: encode_raw(e, definition); break;
    case GROUP0_VIEW_PAUSE:
        encode_u8(e, c->paused);
        encode_text(e, c->name);
        break;
    case GROUP0_VIEW_DROP:
    case GROUP0_VIEW_REBUILD: encode_text(e, c->name); break;
    case GROUP0_VIEW_THROTTLE: encode_u64(e, c->throttle); break;
    case GROUP0_BASE: encode_u32(e, c->table); break;
    case GROUP0_RESIZE_BEGIN: encode_u32(e, c->tablets); break;
    case GROUP0_FINISHED:
        encode_u32(e, (uint32_t)c->id_count);
        for (size_t i = 0; i < c->id_count; i++)
            encode_u64(e, c->ids[i]);
        break;
    case GROUP0_FAILED:
        encode_u32(e, c->table);
        encode_text(e, c->words);
        break;
    case GROUP0_TASKS:
        encode_u32(e, (uint32_t)c->uncovered_count);
        for (size_t i = 0; i < c->uncovered_count; i++) {
            encode_u32(e, c->uncovered[i].base);
            encode_u32(e, c->uncovered[i].view);
            encode_u32(e, c->uncovered[i].tablet);
        }
        break;
    default: break;
    }
}

int group0_view_encode(const struct group0_command *c, struct arena *arena, pawl_bytes *ret_command)
{
    pawl_bytes definition = {0};
    int status = c->kind == GROUP0_VIEW_CREATE ? definition_encode(&c->schema, arena, &definition) : PAWL_OK;
    if (status != PAWL_OK)
        return status;
    size_t body = body_size(c, definition);
    if (body == SIZE_MAX)
        return PAWL_ETOOBIG;
    size_t size = GROUP0_COMMAND_FIXED + GUARD + body;
    void *bytes = arena_take(arena, size);
    if (!bytes)
        return PAWL_ENOMEM;
    struct encoder e = encoder_over(bytes, size);
    encode_u8(&e, GROUP0_COMMAND_VERSION);
    encode_u8(&e, (uint8_t)c->kind);
    encode_u16(&e, 0);
    encode_u64(&e, c->guard.term);
    encode_u64(&e, c->guard.map_version);
    encode_u64(&e, c->guard.views_version);
    encode_body(&e, c, definition);
    *ret_command = (pawl_bytes){bytes, size};
    return PAWL_OK;
}

static int decode_text(struct decoder *d, size_t most, pawl_bytes *ret_text)
{
    size_t size = decode_u16(d);
    const uint8_t *text = size <= most ? decode_raw(d, size) : NULL;
    if (d->bad || !text)
        return PAWL_ECORRUPT;
    *ret_text = (pawl_bytes){text, size};
    return PAWL_OK;
}

/* A count of items of this size, which must be all that is left. */
static int decode_count(struct decoder *d, size_t item, size_t most, size_t *ret_count)
{
    size_t count = decode_u32(d);
    if (d->bad || count > most || d->left != count * item)
        return PAWL_ECORRUPT;
    *ret_count = count;
    return PAWL_OK;
}

static int decode_ids(struct decoder *d, struct arena *arena, struct group0_command *c)
{
    int status = decode_count(d, 8, GROUP0_IDS_MAX, &c->id_count);
    if (status != PAWL_OK)
        return status;
    uint64_t *ids = arena_take(arena, c->id_count * sizeof *ids);
    if (!ids)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < c->id_count; i++)
        ids[i] = decode_u64(d);
    c->ids = ids;
    return PAWL_OK;
}

static int decode_uncovered(struct decoder *d, struct arena *arena, struct group0_command *c)
{
    int status = decode_count(d, 12, GROUP0_UNCOVERED_MAX, &c->uncovered_count);
    if (status != PAWL_OK)
        return status;
    struct uncovered *list = arena_take(arena, c->uncovered_count * sizeof *list);
    if (!list)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < c->uncovered_count; i++) {
        list[i].base = decode_u32(d);
        list[i].view = decode_u32(d);
        list[i].tablet = decode_u32(d);
    }
    c->uncovered = list;
    return PAWL_OK;
}

static int decode_pause(struct decoder *d, struct group0_command *c)
{
    uint8_t paused = decode_u8(d);
    c->paused = paused == 1;
    return paused > 1 ? PAWL_ECORRUPT : decode_text(d, NAME_MAX, &c->name);
}

static int decode_create(struct decoder *d, struct arena *arena, struct group0_command *c, pawl_error *error)
{
    int status = definition_decode((pawl_bytes){d->at, d->left}, arena, &c->schema, error);
    d->left = 0;
    return status;
}

static int decode_body(struct decoder *d, struct arena *arena, struct group0_command *c, pawl_error *error)
{
    switch (c->kind) {
    case GROUP0_VIEW_CREATE: return decode_create(d, arena, c, error);
    case GROUP0_VIEW_DROP:
    case GROUP0_VIEW_REBUILD: return decode_text(d, NAME_MAX, &c->name);
    case GROUP0_VIEW_PAUSE: return decode_pause(d, c);
    case GROUP0_VIEW_THROTTLE: c->throttle = decode_u64(d); return PAWL_OK;
    case GROUP0_BASE: c->table = decode_u32(d); return PAWL_OK;
    case GROUP0_FINISHED: return decode_ids(d, arena, c);
    case GROUP0_FAILED: c->table = decode_u32(d); return decode_text(d, WORDS, &c->words);
    case GROUP0_TASKS: return decode_uncovered(d, arena, c);
    case GROUP0_RESIZE_BEGIN: c->tablets = decode_u32(d); return PAWL_OK;
    default: return PAWL_OK;
    }
}

int group0_view_decode(struct decoder *d, struct arena *arena, struct group0_command *c, pawl_error *error)
{
    c->guard = (struct group0_guard){.term = decode_u64(d)};
    c->guard.map_version = decode_u64(d);
    c->guard.views_version = decode_u64(d);
    int status = d->bad ? PAWL_ECORRUPT : decode_body(d, arena, c, error);
    if (status == PAWL_OK && (d->bad || d->left != 0))
        status = PAWL_ECORRUPT;
    if (status == PAWL_ECORRUPT && c->kind != GROUP0_VIEW_CREATE)
        error_set(error, status, "byte %zu: these are not bytes of a command about views",
                  GROUP0_COMMAND_FIXED);
    return status;
}

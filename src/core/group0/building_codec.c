/* core/group0/building_codec.c: what group0 knows of views and tasks, as bytes, for its snapshots.
 *
 *      0  version     u8    1
 *      1  paused      u8
 *      2  number      u16   the last one that an incarnation was given
 *      4  partitions  u32
 *      8  tablets     u32
 *     12  resize to   u32
 *     16  processing  u32
 *     20  views       u32   n
 *     24  throttle, map version, views version, list version   u64 each
 *     56  views             for each: number u16, replaces u16, progress u8, declared u8, paused u8, zero u8,
 *                           created u64, words: u32 and bytes, source: u32 and bytes
 *         tasks             core/group0/tasks.h */
#include "base/error.h"
#include "core/group0/building.h"

#define CODEC_VERSION 1
#define FIXED         ((size_t)56)
#define ENTRY_FIXED   ((size_t)24)
#define CHUNK         ((size_t)1024)

int building_encode(const struct building *b, struct arena *arena, pawl_bytes *ret_bytes)
{
    const struct view_list *list = b->views;
    size_t size = FIXED + tasks_encoded_size(&b->tasks);
    for (size_t i = 0; i < list->count; i++)
        size += ENTRY_FIXED + list->entries[i].words.size + list->entries[i].view->source.size;
    void *bytes = arena_take(arena, size);
    if (!bytes)
        return PAWL_ENOMEM;
    struct encoder e = encoder_over(bytes, size);
    encode_u8(&e, CODEC_VERSION);
    encode_u8(&e, b->paused);
    encode_u16(&e, b->number);
    encode_u32(&e, b->map.partitions);
    encode_u32(&e, b->map.tablets);
    encode_u32(&e, b->map.resize_to);
    encode_u32(&e, b->processing);
    encode_u32(&e, (uint32_t)list->count);
    encode_u64(&e, b->throttle);
    encode_u64(&e, b->map_version);
    encode_u64(&e, b->views_version);
    encode_u64(&e, list->version);
    for (size_t i = 0; i < list->count; i++) {
        const struct view_entry *v = &list->entries[i];
        encode_u16(&e, v->view->number);
        encode_u16(&e, v->replaces);
        encode_u8(&e, (uint8_t)v->progress);
        encode_u8(&e, v->declared);
        encode_u8(&e, v->paused);
        encode_u8(&e, 0);
        encode_u64(&e, v->created);
        encode_u32(&e, (uint32_t)v->words.size);
        encode_raw(&e, v->words);
        encode_u32(&e, (uint32_t)v->view->source.size);
        encode_raw(&e, v->view->source);
    }
    tasks_encode(&b->tasks, &e);
    *ret_bytes = (pawl_bytes){bytes, size};
    return PAWL_OK;
}

static pawl_bytes decode_bytes(struct decoder *d)
{
    size_t size = decode_u32(d);
    return (pawl_bytes){decode_raw(d, size), size};
}

static int decode_view(pawl_bytes bytes, uint16_t number, const struct schema *schema,
                       const pawl_allocator *alloc, struct view **ret_view, pawl_error *error)
{
    struct definition source;
    struct arena arena;
    struct view *view = NULL;
    arena_init(&arena, alloc, CHUNK);
    int status = definition_decode(bytes, &arena, &source, error);
    if (status == PAWL_OK && source.view_count != 1)
        status = PAWL_ECORRUPT;
    if (status == PAWL_OK)
        status = view_resolve(schema, source.package, &source.views[0], number, NULL, alloc, &view, error);
    arena_release(&arena);
    if (status != PAWL_OK)
        return status;
    view->source = arena_copy(&view->arena, bytes);
    if (!view->source.data) {
        view_drop(view);
        return PAWL_ENOMEM;
    }
    *ret_view = view;
    return PAWL_OK;
}

/* What is decoded, and with which schemas. */
struct decoding {
    struct decoder d;
    building_schema_at *schema_at;
    const void *ctx;
};

static int decode_entry(struct decoding *decoding, struct view_list *list, const pawl_allocator *alloc,
                        pawl_error *error)
{
    struct decoder *d = &decoding->d;
    uint16_t number = decode_u16(d), before = list->count ? list->entries[list->count - 1].view->number : 0;
    struct view_entry entry = {.replaces = decode_u16(d)};
    uint8_t progress = decode_u8(d), declared = decode_u8(d), paused = decode_u8(d), zero = decode_u8(d);
    entry.created = decode_u64(d);
    pawl_bytes words = decode_bytes(d), source = decode_bytes(d);
    if (d->bad || number <= before || progress < VIEW_STARTED || progress > VIEW_FAILED || declared > 1
        || paused > 1 || zero != 0)
        return PAWL_ECORRUPT;
    entry.progress = (enum view_progress)progress;
    entry.declared = declared;
    entry.paused = paused;
    entry.words = arena_copy(&list->arena, words);
    if (!entry.words.data)
        return PAWL_ENOMEM;
    int status = decode_view(source, number, decoding->schema_at(decoding->ctx, entry.created), alloc,
                             &entry.view, error);
    if (status == PAWL_OK)
        list->entries[list->count++] = entry;
    return status;
}

/* An incarnation that is to be replaced is there, and no other one replaces it, B1; B2, B3. */
static bool is_sound(const struct building *b, const struct view_list *list, uint16_t number,
                     uint32_t processing)
{
    struct view_numbers unfinished;
    bool sound = list->count == 0 || list->entries[list->count - 1].view->number <= number;
    building_unfinished(&b->tasks, &unfinished);
    for (size_t i = 0; i < list->count && sound; i++) {
        const struct view_entry *e = &list->entries[i];
        bool tasks = view_numbers_has(&unfinished, e->view->number), replaced = e->replaces == 0;
        for (size_t k = 0; k < i && !replaced; k++)
            replaced = list->entries[k].view->number == e->replaces && list->entries[k].replaces == 0;
        sound = replaced && tasks == (e->progress == VIEW_STARTED);
    }
    for (size_t i = 0; i < b->tasks.count && sound; i++)
        sound = b->tasks.groups[i].view == 0 || view_list_by_table(list, b->tasks.groups[i].view);
    return sound && (processing == 0 || tasks_of_base(&b->tasks, processing) > 0);
}

static int decode_all(struct building *b, struct decoding *decoding, struct view_list *list, size_t count,
                      pawl_error *error)
{
    int status = PAWL_OK;
    for (size_t i = 0; i < count && status == PAWL_OK; i++)
        status = decode_entry(decoding, list, b->tasks.alloc, error);
    if (status == PAWL_OK)
        status = tasks_decode(&b->tasks, &decoding->d);
    return status == PAWL_OK && decoding->d.left != 0 ? PAWL_ECORRUPT : status;
}

/* Whether there can be so many tablets, or could be after the operation that is under way. */
static bool is_map(uint32_t partitions, uint32_t tablets)
{
    return tablets >= partitions && (tablets & (tablets - 1)) == 0
           && tablets <= TABLETS_PER_PARTITION_MAX * partitions;
}

static bool is_resize(uint32_t partitions, uint32_t tablets, uint32_t to)
{
    return to == 0 || (is_map(partitions, to) && (to == 2 * tablets || 2 * to == tablets));
}

int building_decode(struct building *b, pawl_bytes bytes, building_schema_at *schema_at, const void *ctx,
                    pawl_error *error)
{
    struct decoding decoding = {.d = decoder_over(bytes), .schema_at = schema_at, .ctx = ctx};
    struct decoder *d = &decoding.d;
    uint8_t version = decode_u8(d), paused = decode_u8(d);
    if (!d->bad && version > CODEC_VERSION)
        return error_set(error, PAWL_EVERSION, "the snapshot's views are of version %u", version);
    uint16_t number = decode_u16(d);
    uint32_t partitions = decode_u32(d), tablets = decode_u32(d), resize_to = decode_u32(d);
    uint32_t processing = decode_u32(d), count = decode_u32(d);
    uint64_t throttle = decode_u64(d), map_version = decode_u64(d), views_version = decode_u64(d);
    uint64_t list_version = decode_u64(d);
    bool whole = !d->bad && version > 0 && paused <= 1 && partitions == b->map.partitions
                 && is_map(partitions, tablets) && is_resize(partitions, tablets, resize_to)
                 && count <= VIEW_NUMBERS_MAX && count <= d->left / ENTRY_FIXED;
    struct view_list *list = whole ? view_list_draft(b, count) : NULL;
    if (whole && !list)
        return error_set(error, PAWL_ENOMEM, "no memory for a snapshot");
    int status = whole ? decode_all(b, &decoding, list, count, error) : PAWL_ECORRUPT;
    if (status == PAWL_OK && b->tasks.count > 0 && b->tasks.groups[0].tablets != tablets)
        status = PAWL_ECORRUPT;
    if (status == PAWL_OK && !is_sound(b, list, number, processing))
        status = PAWL_ECORRUPT;
    if (status != PAWL_OK) {
        view_list_free(list, b->tasks.alloc);
        return error && error->code == status ? status
                                              : error_set(error, status, "the snapshot's views cannot be read");
    }
    b->paused = paused;
    b->number = number;
    b->map.tablets = tablets;
    b->map.resize_to = resize_to;
    b->processing = processing;
    b->throttle = throttle;
    b->map_version = map_version;
    b->views_version = views_version;
    building_publish(b, list, schema_at(ctx, list_version), list_version);
    return PAWL_OK;
}

/* core/group0/snapshot.c: group0's state as bytes.
 *
 *      0  magic     u32   "PWG0"
 *      4  version   u32   1; 2 if there is an assignment
 *      8  position  u64   of the last command that it includes
 *     16  schemas   u32   n: commands that made a version of the schema
 *     20  size      u32   of the views' bytes
 *     24  assignment      version 2: position u64, node u64, time i64, name: u16 and as many bytes
 *         schemas         for each: position u64, size u32, the command
 *         views           core/group0/building_codec.c
 *         checksum  u64   of all before it */
#include <string.h>

#include "base/error.h"
#include "core/group0/group0_impl.h"

#define MAGIC            UINT32_C(0x30475750)
#define SNAPSHOT_VERSION 2
#define FIXED            ((size_t)24)
#define ASSIGNMENT_FIXED ((size_t)26)

static void encode_assignment(struct encoder *e, const struct assignment *a)
{
    encode_u64(e, a->position);
    encode_u64(e, a->node);
    encode_u64(e, (uint64_t)a->time);
    encode_u16(e, a->name_size);
    encode_raw(e, (pawl_bytes){a->name, a->name_size});
}

static int decode_assignment(struct decoder *d, uint64_t last, struct assignment *ret_assignment)
{
    struct assignment a = {.position = decode_u64(d), .node = decode_u64(d)};
    a.time = (int64_t)decode_u64(d);
    a.name_size = decode_u16(d);
    const uint8_t *name = a.name_size <= ASSIGNMENT_NAME_MAX ? decode_raw(d, a.name_size) : NULL;
    if (!name || d->bad || a.position == 0 || a.position > last || a.node == 0)
        return PAWL_ECORRUPT;
    memcpy(a.name, name, a.name_size);
    *ret_assignment = a;
    return PAWL_OK;
}

int group0_snapshot(const struct group0 *g, struct arena *arena, pawl_bytes *ret_bytes)
{
    pawl_bytes views;
    int status = building_encode(&g->building, arena, &views);
    if (status != PAWL_OK)
        return status;
    const struct assignment *assignment = g->assignment.position > 0 ? &g->assignment : NULL;
    size_t size = FIXED + views.size + 8 + (assignment ? ASSIGNMENT_FIXED + assignment->name_size : 0);
    for (size_t i = 1; i < g->count; i++)
        size += 12 + g->versions[i].command.size;
    uint8_t *bytes = arena_take(arena, size);
    if (!bytes)
        return PAWL_ENOMEM;
    struct encoder e = encoder_over(bytes, size);
    encode_u32(&e, MAGIC);
    encode_u32(&e, assignment ? 2 : 1);
    encode_u64(&e, g->position);
    encode_u32(&e, (uint32_t)(g->count - 1));
    encode_u32(&e, (uint32_t)views.size);
    if (assignment)
        encode_assignment(&e, assignment);
    for (size_t i = 1; i < g->count; i++) {
        encode_u64(&e, g->versions[i].version->resolved.schema.position);
        encode_u32(&e, (uint32_t)g->versions[i].command.size);
        encode_raw(&e, g->versions[i].command);
    }
    encode_raw(&e, views);
    encode_u64(&e, hash_checksum(0, (pawl_bytes){bytes, size - 8}));
    *ret_bytes = (pawl_bytes){bytes, size};
    return PAWL_OK;
}

/* A schema, without what follows from it for views: that is behind the schemas. */
static int restore_version(struct group0 *g, uint64_t position, pawl_bytes bytes, pawl_error *error)
{
    struct arena arena;
    struct group0_command command;
    struct version *version = NULL;
    pawl_bytes copy;
    int status = group0_keep(g, bytes, &copy);
    if (status != PAWL_OK)
        return status;
    arena_init(&arena, g->alloc, VERSION_CHUNK);
    status = group0_command_decode(bytes, &arena, &command, error);
    if (status == PAWL_OK && command.kind > GROUP0_SWITCH)
        status = PAWL_ECORRUPT;
    if (status == PAWL_OK)
        status = version_next(g->versions[g->count - 1].version, position, &command, &version, error);
    arena_release(&arena);
    if (status == PAWL_OK && version) {
        g->versions[g->count++] = (struct kept_version){version, copy};
        return PAWL_OK;
    }
    group0_unkeep(g, copy);
    return status == PAWL_OK ? PAWL_ECORRUPT : status;
}

static int restore_versions(struct group0 *g, struct decoder *d, uint32_t count, uint64_t last,
                            pawl_error *error)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t position = decode_u64(d);
        size_t size = decode_u32(d);
        const uint8_t *bytes = decode_raw(d, size);
        if (d->bad || position <= before || position > last)
            return PAWL_ECORRUPT;
        int status = restore_version(g, position, (pawl_bytes){bytes, size}, error);
        if (status != PAWL_OK)
            return status;
        before = position;
    }
    return PAWL_OK;
}

static const struct schema *schema_at(const void *ctx, uint64_t position)
{
    return group0_schema_at(ctx, position);
}

int group0_restore(struct group0 *g, pawl_bytes bytes, pawl_error *error)
{
    const uint8_t *at = bytes.data;
    struct decoder d = decoder_over(bytes);
    uint32_t magic = decode_u32(&d), version = decode_u32(&d);
    if (!d.bad && magic == MAGIC && version > SNAPSHOT_VERSION)
        return error_set(error, PAWL_EVERSION, "the snapshot of group0 is of version %u", version);
    uint64_t position = decode_u64(&d);
    uint32_t schemas = decode_u32(&d), size = decode_u32(&d);
    bool whole = !d.bad && magic == MAGIC && version > 0 && bytes.size >= FIXED + 8
                 && get_u64(at + bytes.size - 8) == hash_checksum(0, (pawl_bytes){at, bytes.size - 8});
    int status = whole ? PAWL_OK : PAWL_ECORRUPT;
    d.left -= whole ? 8 : 0;
    if (status == PAWL_OK && version == 2)
        status = decode_assignment(&d, position, &g->assignment);
    if (status == PAWL_OK)
        status = restore_versions(g, &d, schemas, position, error);
    if (status == PAWL_OK && d.left != size)
        status = PAWL_ECORRUPT;
    if (status == PAWL_OK)
        status = building_decode(&g->building, (pawl_bytes){d.at, d.left}, schema_at, g, error);
    if (status == PAWL_OK) {
        g->position = position;
        return PAWL_OK;
    }
    return error && error->code == status ? status
                                          : error_set(error, status, "the snapshot of group0 cannot be read");
}

#include "core/group0/command.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/id.h"

#define REBUILD_BYTES ((size_t)8)
#define SWITCH_FIXED  ((size_t)16)

static struct encoder begin(void *bytes, size_t size, enum group0_command_kind kind)
{
    struct encoder e = encoder_over(bytes, size);
    encode_u8(&e, GROUP0_COMMAND_VERSION);
    encode_u8(&e, (uint8_t)kind);
    encode_u16(&e, 0);
    return e;
}

int group0_schema_encode(const struct definition *definition, struct arena *arena, pawl_bytes *ret_command)
{
    pawl_bytes body;
    int status = definition_encode(definition, arena, &body);
    if (status)
        return status;
    uint8_t *command = arena_take(arena, GROUP0_COMMAND_FIXED + body.size);
    if (!command)
        return PAWL_ENOMEM;
    struct encoder e = begin(command, GROUP0_COMMAND_FIXED + body.size, GROUP0_SCHEMA);
    encode_raw(&e, body);
    *ret_command = (pawl_bytes){command, GROUP0_COMMAND_FIXED + body.size};
    return PAWL_OK;
}

int group0_rebuild_encode(uint16_t lane, struct arena *arena, pawl_bytes *ret_command)
{
    void *command = arena_take(arena, REBUILD_BYTES);
    if (!command)
        return PAWL_ENOMEM;
    struct encoder e = begin(command, REBUILD_BYTES, GROUP0_REBUILD);
    encode_u16(&e, lane);
    encode_u16(&e, 0);
    *ret_command = (pawl_bytes){command, REBUILD_BYTES};
    return PAWL_OK;
}

int group0_switch_encode(uint16_t lane, uint32_t generation, const uint64_t *offsets, size_t count,
                         struct arena *arena, pawl_bytes *ret_command)
{
    if (count == 0 || count > PARTITIONS_MAX)
        return PAWL_EINVAL;
    size_t size = SWITCH_FIXED + count * 8;
    void *command = arena_take(arena, size);
    if (!command)
        return PAWL_ENOMEM;
    struct encoder e = begin(command, size, GROUP0_SWITCH);
    encode_u16(&e, lane);
    encode_u16(&e, 0);
    encode_u32(&e, generation);
    encode_u32(&e, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        encode_u64(&e, offsets[i]);
    *ret_command = (pawl_bytes){command, size};
    return PAWL_OK;
}

static int decode_offsets(struct decoder *d, struct arena *arena, struct group0_command *command)
{
    command->generation = decode_u32(d);
    command->offset_count = decode_u32(d);
    if (d->bad || command->offset_count == 0 || command->offset_count > PARTITIONS_MAX
        || d->left != command->offset_count * 8)
        return PAWL_ECORRUPT;
    uint64_t *offsets = arena_take(arena, command->offset_count * sizeof *offsets);
    if (!offsets)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < command->offset_count; i++)
        offsets[i] = decode_u64(d);
    command->offsets = offsets;
    return PAWL_OK;
}

static int decode_lane(struct decoder *d, struct arena *arena, struct group0_command *command,
                       pawl_error *error)
{
    command->lane = decode_u16(d);
    uint16_t zero = decode_u16(d);
    int status = d->bad || zero != 0 ? PAWL_ECORRUPT : PAWL_OK;
    if (status == PAWL_OK && command->kind == GROUP0_SWITCH)
        status = decode_offsets(d, arena, command);
    if (status == PAWL_ENOMEM)
        return status;
    if (status || d->left != 0)
        return error_set(error, PAWL_ECORRUPT, "byte %zu: these are not bytes of a command about a lane",
                         GROUP0_COMMAND_FIXED);
    return PAWL_OK;
}

static int decode_assignment(struct decoder *d, struct assignment *a, pawl_error *error)
{
    a->node = decode_u64(d);
    a->time = (int64_t)decode_u64(d);
    a->name_size = decode_u16(d);
    if (d->bad || a->node == 0 || a->name_size > ASSIGNMENT_NAME_MAX || d->left != a->name_size)
        return error_set(error, PAWL_ECORRUPT, "byte %zu: these are not bytes of an assignment",
                         GROUP0_COMMAND_FIXED);
    if (a->name_size > 0)
        memcpy(a->name, d->at, a->name_size);
    return PAWL_OK;
}

int group0_command_decode(pawl_bytes bytes, struct arena *arena, struct group0_command *ret_command,
                          pawl_error *error)
{
    struct decoder d = decoder_over(bytes);
    uint8_t version = decode_u8(&d), kind = decode_u8(&d);
    uint16_t zero = decode_u16(&d);
    if (!d.bad && version > GROUP0_COMMAND_VERSION)
        return error_set(error, PAWL_EVERSION,
                         "byte 0: the command is of version %u; this program knows up to %d", version,
                         GROUP0_COMMAND_VERSION);
    if (d.bad || version == 0 || zero != 0)
        return error_set(error, PAWL_ECORRUPT, "byte 0: this is not the head of a command");
    if (kind < GROUP0_SCHEMA || kind > GROUP0_IMPORT_DONE)
        return error_set(error, PAWL_EVERSION, "byte 1: this program knows no command of kind %u", kind);
    struct group0_command command = {.kind = (enum group0_command_kind)kind};
    int status;
    if (command.kind == GROUP0_SCHEMA) {
        status = definition_decode((pawl_bytes){d.at, d.left}, arena, &command.schema, error);
        if (status && status != PAWL_ENOMEM)
            error_wrap(error, status, "behind byte %zu", GROUP0_COMMAND_FIXED);
    } else if (command.kind == GROUP0_ASSIGN) {
        status = decode_assignment(&d, &command.assignment, error);
    } else if (command.kind == GROUP0_IMPORT_DONE) {
        status = group0_import_done_decode(&d, &command.imported, error);
    } else if (group0_is_about_views(command.kind)) {
        status = group0_view_decode(&d, arena, &command, error);
    } else {
        status = decode_lane(&d, arena, &command, error);
    }
    if (status == PAWL_OK)
        *ret_command = command;
    return status;
}

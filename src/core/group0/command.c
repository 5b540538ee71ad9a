#include "core/group0/command.h"

#include "base/bytes.h"
#include "base/error.h"

int group0_schema_encode(const struct definition *definition, struct arena *arena, pawl_bytes *ret_command)
{
    pawl_bytes body;
    int status = definition_encode(definition, arena, &body);
    if (status)
        return status;
    uint8_t *command = arena_take(arena, GROUP0_COMMAND_FIXED + body.size);
    if (!command)
        return PAWL_ENOMEM;
    put_u8(command, GROUP0_COMMAND_VERSION);
    put_u8(command + 1, GROUP0_SCHEMA);
    put_u16(command + 2, 0);
    memcpy(command + GROUP0_COMMAND_FIXED, body.data, body.size);
    *ret_command = (pawl_bytes){command, GROUP0_COMMAND_FIXED + body.size};
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
    if (kind != GROUP0_SCHEMA)
        return error_set(error, PAWL_EVERSION, "byte 1: this program knows no command of kind %u", kind);
    struct group0_command command = {.kind = GROUP0_SCHEMA};
    int status = definition_decode((pawl_bytes){d.at, d.left}, arena, &command.schema, error);
    if (status)
        return status == PAWL_ENOMEM ? status
                                     : error_wrap(error, status, "behind byte %zu", GROUP0_COMMAND_FIXED);
    *ret_command = command;
    return PAWL_OK;
}

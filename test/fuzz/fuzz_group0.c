/* fuzz_group0.c: bytes that decode as a command are those that it is encoded as, unless they are of an older
 * version; and whatever they say, group0 refuses it or makes a schema of it, twice the same, that says nothing
 * new the second time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/group0/group0.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int encode(const struct group0_command *command, struct arena *arena, pawl_bytes *ret_bytes)
{
    switch (command->kind) {
    case GROUP0_SCHEMA: return group0_schema_encode(&command->schema, arena, ret_bytes);
    case GROUP0_REBUILD: return group0_rebuild_encode(command->lane, arena, ret_bytes);
    case GROUP0_SWITCH:
        return group0_switch_encode(command->lane, command->generation, command->offsets, command->offset_count,
                                    arena, ret_bytes);
    }
    abort();
}

static void same_bytes(pawl_bytes bytes)
{
    struct arena arena;
    struct group0_command command;
    pawl_bytes again;
    arena_init(&arena, NULL, 4096);
    if (group0_command_decode(bytes, &arena, &command, NULL) == PAWL_OK) {
        bool older = command.kind == GROUP0_SCHEMA
                     && ((const uint8_t *)bytes.data)[GROUP0_COMMAND_FIXED] < DEFINITION_VERSION;
        if (encode(&command, &arena, &again) != PAWL_OK)
            abort();
        if (older)
            same_bytes(again);
        else if (again.size != bytes.size || memcmp(again.data, bytes.data, bytes.size) != 0)
            abort();
    }
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pawl_bytes bytes = {data, size};
    same_bytes(bytes);
    struct group0 *a, *b;
    enum group0_outcome outcome;
    pawl_error error = {0};
    if (group0_new(NULL, &a) != PAWL_OK || group0_new(NULL, &b) != PAWL_OK)
        abort();
    int status = group0_apply(a, 1, bytes, &outcome, &error);
    if (status != error.code || group0_apply(b, 1, bytes, &outcome, NULL) != status)
        abort();
    if (group0_digest(a).low != group0_digest(b).low || group0_digest(a).high != group0_digest(b).high)
        abort();
    if (status == PAWL_OK
        && (group0_apply(a, 2, bytes, &outcome, NULL) != PAWL_OK || outcome != GROUP0_UNCHANGED))
        abort();
    group0_free(a);
    group0_free(b);
    return 0;
}

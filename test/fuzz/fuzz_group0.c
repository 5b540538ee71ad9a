/* fuzz_group0.c: bytes that decode as a command are the same bytes that encoding it gives, unless they are of
 * an older version. group0 refuses the command, or makes the same state of it twice. The second time the
 * command changes nothing, unless it is a rebuild, an assignment, the end of an import, or about views. A snapshot of the state restores it. */
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
    case GROUP0_ASSIGN: return group0_assign_encode(&command->assignment, arena, ret_bytes);
    case GROUP0_IMPORT_DONE: return group0_import_done_encode(&command->imported, arena, ret_bytes);
    default: return group0_view_encode(command, arena, ret_bytes);
    }
}

static void same_bytes(pawl_bytes bytes)
{
    struct arena arena;
    struct group0_command command;
    pawl_bytes again;
    arena_init(&arena, NULL, 4096);
    if (group0_command_decode(bytes, &arena, &command, NULL) == PAWL_OK) {
        const uint8_t *at = bytes.data;
        bool older =
            (command.kind == GROUP0_SCHEMA && at[GROUP0_COMMAND_FIXED] < DEFINITION_VERSION)
            || (command.kind == GROUP0_VIEW_CREATE && at[GROUP0_COMMAND_FIXED + 24] < DEFINITION_VERSION);
        if (encode(&command, &arena, &again) != PAWL_OK)
            abort();
        if (older)
            same_bytes(again);
        else if (again.size != bytes.size || memcmp(again.data, bytes.data, bytes.size) != 0)
            abort();
    }
    arena_release(&arena);
}

/* With a lane, so that a command can be about one: its newest generation is 2, and 1 serves. And with a view, of
 * which both have tasks. */
static struct group0 *with_a_lane(void)
{
    static pawl_bytes name = {"E", 1}, key = {"k", 1}, on = {"Do", 2};
    static struct definition_field field = {.name = {"k", 1}, .type = {"int64", 5}};
    static struct definition_command command = {.name = {"Do", 2}};
    static struct definition_entity entity = {
        .name = {"E", 1}, .key = &key, .key_count = 1, .fields = &field, .field_count = 1};
    static struct definition_projector projector = {
        .name = {"q", 1}, .on = &on, .on_count = 1, .writes = &name, .write_count = 1};
    static struct definition_view view = {.name = {"v", 1}, .base = {"E", 1}, .key = &key, .key_count = 1};
    const struct group0_command create = {
        .kind = GROUP0_VIEW_CREATE, .schema = {.package = {"fuzzed", 6}, .views = &view, .view_count = 1}};
    const struct definition package = {.package = {"fuzzed", 6},
                                       .commands = &command,
                                       .command_count = 1,
                                       .entities = &entity,
                                       .entity_count = 1,
                                       .projectors = &projector,
                                       .projector_count = 1};
    struct group0 *group0;
    struct arena arena;
    pawl_bytes schema, rebuild, created;
    enum group0_outcome outcome;
    arena_init(&arena, NULL, 4096);
    if (group0_new(NULL, &group0) || group0_schema_encode(&package, &arena, &schema)
        || group0_rebuild_encode(1, &arena, &rebuild) || group0_apply(group0, 1, schema, &outcome, NULL)
        || group0_apply(group0, 2, rebuild, &outcome, NULL) || group0_view_encode(&create, &arena, &created)
        || group0_apply(group0, 3, created, &outcome, NULL) || outcome != GROUP0_CHANGED)
        abort();
    arena_release(&arena);
    return group0;
}

static void same_digest(const struct group0 *a, const struct group0 *b)
{
    if (group0_digest(a).low != group0_digest(b).low || group0_digest(a).high != group0_digest(b).high)
        abort();
}

static void restores(const struct group0 *group0)
{
    struct group0 *again;
    struct arena arena;
    pawl_bytes snapshot;
    arena_init(&arena, NULL, 4096);
    if (group0_new(NULL, &again) || group0_snapshot(group0, &arena, &snapshot)
        || group0_restore(again, snapshot, NULL))
        abort();
    same_digest(group0, again);
    group0_free(again);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pawl_bytes bytes = {data, size};
    same_bytes(bytes);
    struct group0 *a = with_a_lane(), *b = with_a_lane();
    enum group0_outcome outcome = GROUP0_UNCHANGED;
    pawl_error error = {0};
    int status = group0_apply(a, 4, bytes, &outcome, &error);
    if ((status != error.code && outcome != GROUP0_REFUSED)
        || group0_apply(b, 4, bytes, &outcome, NULL) != status)
        abort();
    same_digest(a, b);
    restores(a);
    bool about_views = status == PAWL_OK && group0_is_about_views(data[1]);
    bool always = status == PAWL_OK
                  && (data[1] == GROUP0_REBUILD || data[1] == GROUP0_ASSIGN || data[1] == GROUP0_IMPORT_DONE);
    enum group0_outcome again = always ? GROUP0_CHANGED : GROUP0_UNCHANGED;
    if (status == PAWL_OK
        && (group0_apply(a, 5, bytes, &outcome, NULL) != PAWL_OK || (!about_views && outcome != again)))
        abort();
    group0_free(a);
    group0_free(b);
    return 0;
}

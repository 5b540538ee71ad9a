#include "core/group0/assignment.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/timestamp.h"
#include "core/group0/command.h"

#define SECOND INT64_C(1000000000)

enum assignment_step assignment_decide(const struct assignment *present, uint64_t node, bool take_over)
{
    if (present->position > 0 && present->node == node)
        return ASSIGNMENT_CLAIM;
    return present->position == 0 || take_over ? ASSIGNMENT_WRITE : ASSIGNMENT_REFUSE;
}

int group0_assign_encode(const struct assignment *a, struct arena *arena, pawl_bytes *ret_command)
{
    if (a->node == 0 || a->name_size > ASSIGNMENT_NAME_MAX)
        return PAWL_EINVAL;
    size_t size = GROUP0_COMMAND_FIXED + 18 + a->name_size;
    void *command = arena_take(arena, size);
    if (!command)
        return PAWL_ENOMEM;
    struct encoder e = encoder_over(command, size);
    encode_u8(&e, GROUP0_COMMAND_VERSION);
    encode_u8(&e, GROUP0_ASSIGN);
    encode_u16(&e, 0);
    encode_u64(&e, a->node);
    encode_u64(&e, (uint64_t)a->time);
    encode_u16(&e, a->name_size);
    encode_raw(&e, (pawl_bytes){a->name, a->name_size});
    *ret_command = (pawl_bytes){command, size};
    return PAWL_OK;
}

void assignment_describe(const struct assignment *a, char text[ASSIGNMENT_TEXT_MAX])
{
    char name[ASSIGNMENT_NAME_MAX + 1], time[TIMESTAMP_CHARS];
    size_t size = timestamp_write(a->time - a->time % SECOND, time);
    for (size_t i = 0; i < a->name_size; i++)
        name[i] = a->name[i] >= ' ' && a->name[i] <= '~' ? a->name[i] : '?';
    name[a->name_size] = '\0';
    snprintf(text, ASSIGNMENT_TEXT_MAX, "node %s (ID %016" PRIx64 ", since %.*s)", name, a->node, (int)size,
             time);
}

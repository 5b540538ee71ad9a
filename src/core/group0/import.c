#include "core/group0/import.h"

#include "base/bytes.h"
#include "base/error.h"
#include "core/group0/command.h"

#define FIXED ((size_t)42) /* behind the head, without the name */

void import_claimed(struct import_watch *w, uint64_t node)
{
    bool in_use = w->entries > 0; /* if it is IMPORT_NONE: a node has written them */
    if (import_is_node(node) && w->state == IMPORT_NONE && !in_use) /* what has ended stays so */
        w->state = IMPORT_UNDER_WAY;
}

void import_entry(struct import_watch *w, uint64_t node, pawl_bytes command)
{
    struct decoder d = decoder_over(command);
    struct import_done done = {0};
    w->entries++;
    if (w->state == IMPORT_NONE || !import_is_node(node) || decode_u8(&d) != GROUP0_COMMAND_VERSION
        || decode_u8(&d) != GROUP0_IMPORT_DONE || decode_u16(&d) != 0)
        return;
    if (group0_import_done_decode(&d, &done, NULL) != PAWL_OK || done.node != node)
        return;
    w->state = IMPORT_ENDED;
    w->done = done;
}

int group0_import_done_encode(const struct import_done *done, struct arena *arena, pawl_bytes *ret_command)
{
    if (!import_is_node(done->node) || done->name_size > ASSIGNMENT_NAME_MAX)
        return PAWL_EINVAL;
    size_t size = GROUP0_COMMAND_FIXED + FIXED + done->name_size;
    void *command = arena_take(arena, size);
    if (!command)
        return PAWL_ENOMEM;
    struct encoder e = encoder_over(command, size);
    encode_u8(&e, GROUP0_COMMAND_VERSION);
    encode_u8(&e, GROUP0_IMPORT_DONE);
    encode_u16(&e, 0);
    encode_u64(&e, done->node);
    encode_u64(&e, (uint64_t)done->time);
    encode_u64(&e, done->entries);
    encode_u64(&e, done->source.high);
    encode_u64(&e, done->source.low);
    encode_u16(&e, done->name_size);
    encode_raw(&e, (pawl_bytes){done->name, done->name_size});
    *ret_command = (pawl_bytes){command, size};
    return PAWL_OK;
}

int group0_import_done_decode(struct decoder *d, struct import_done *done, pawl_error *error)
{
    done->node = decode_u64(d);
    done->time = (int64_t)decode_u64(d);
    done->entries = decode_u64(d);
    done->source.high = decode_u64(d);
    done->source.low = decode_u64(d);
    done->name_size = decode_u16(d);
    if (d->bad || !import_is_node(done->node) || done->name_size > ASSIGNMENT_NAME_MAX
        || d->left != done->name_size)
        return error_set(error, PAWL_ECORRUPT, "byte %zu: these are not bytes of an import's end",
                         GROUP0_COMMAND_FIXED);
    if (done->name_size > 0)
        memcpy(done->name, d->at, done->name_size);
    return PAWL_OK;
}

/* fuzz_snapshot.c: bytes behind which a right checksum is put are refused as a snapshot of group0, or are one: it
 * restores to a state whose snapshot is the same bytes, and that takes further commands. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "core/group0/group0.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void go_on(struct group0 *group0, struct arena *arena)
{
    static const enum group0_command_kind kinds[] = {GROUP0_RESIZE_ROLLBACK, GROUP0_RESIZE_BEGIN,
                                                     GROUP0_RESIZE_FINISH, GROUP0_VIEW_THROTTLE};
    uint64_t position = group0_position(group0);
    const struct building *b = group0_building(group0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && position < UINT64_MAX - 10; i++) {
        struct group0_command command = {.kind = kinds[i], .tablets = b->map.tablets * 2, .throttle = 7};
        enum group0_outcome outcome;
        pawl_bytes bytes;
        check(group0_view_encode(&command, arena, &bytes) == PAWL_OK);
        check(group0_apply(group0, ++position, bytes, &outcome, NULL) == PAWL_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct group0 *group0 = NULL;
    struct arena arena;
    pawl_bytes again;
    uint8_t *bytes = malloc(size + 8);
    check(bytes && group0_new(NULL, &group0) == PAWL_OK);
    memcpy(bytes, data, size);
    put_u64(bytes + size, hash_checksum(0, (pawl_bytes){bytes, size}));
    arena_init(&arena, NULL, 4096);
    if (group0_restore(group0, (pawl_bytes){bytes, size + 8}, NULL) == PAWL_OK) {
        check(group0_snapshot(group0, &arena, &again) == PAWL_OK);
        check(again.size == size + 8 && memcmp(again.data, bytes, size + 8) == 0);
        /* Near their end there are no IDs left for new tasks. */
        if (group0_building(group0)->tasks.next < UINT64_C(1) << 61)
            go_on(group0, &arena);
    }
    arena_release(&arena);
    group0_free(group0);
    free(bytes);
    return 0;
}

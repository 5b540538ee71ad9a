/* fuzz_work.c: bytes that decode as a call or a reply of view building are the same bytes that encoding it
 * gives. The first byte says which of the four they are tried as. */
#include <stdint.h>
#include <stdlib.h>

#include "core/view/work.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* False: they are not such bytes. */
static bool again(unsigned which, pawl_bytes bytes, struct arena *arena, pawl_bytes *ret_again)
{
    uint64_t term, *ids;
    struct work_result *results;
    struct uncovered_reply reply;
    size_t count;
    int status;
    switch (which) {
    case 0:
        status = work_decode(bytes, arena, &term, &ids, &count);
        return status == PAWL_OK && work_encode(term, ids, count, arena, ret_again) == PAWL_OK;
    case 1:
        status = work_reply_decode(bytes, arena, &results, &count);
        return status == PAWL_OK && work_reply_encode(results, count, arena, ret_again) == PAWL_OK;
    case 2:
        status = uncovered_decode(bytes, &term);
        return status == PAWL_OK && uncovered_encode(term, arena, ret_again) == PAWL_OK;
    default:
        status = uncovered_reply_decode(bytes, arena, &reply);
        return status == PAWL_OK && uncovered_reply_encode(&reply, arena, ret_again) == PAWL_OK;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    pawl_bytes bytes = {data + 1, size - 1}, encoded;
    struct arena arena;
    arena_init(&arena, NULL, 4096);
    if (again(data[0] % 4, bytes, &arena, &encoded))
        check(bytes_equal(encoded, bytes));
    arena_release(&arena);
    return 0;
}

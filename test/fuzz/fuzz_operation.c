/* fuzz_operation.c: bytes that decode as an operation are the same bytes that encoding it gives, and no pointer
 * leads outside them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "core/project/operation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static size_t walk_rows(const struct operation_write *write)
{
    struct operation_row row;
    uint32_t rows = 0;
    size_t bytes = 0;
    for (size_t at = 0; operation_next_row(write, &at, &row); rows++) {
        for (size_t i = 1; i < row.cleared_count; i++)
            check(operation_cleared(&row, i - 1) < operation_cleared(&row, i));
        check((write->kind == ACTION_DELETE) == (row.set.size == 0));
        bytes += 8 + row.key.size + row.set.size + 2 * row.cleared_count;
        check(bytes == at && bytes <= write->bytes.size);
    }
    check(rows == write->rows && bytes == write->bytes.size);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct operation o;
    if (operation_decode((pawl_bytes){data, size}, &o, NULL) != PAWL_OK)
        return 0;
    struct operation_write write;
    size_t bytes = 0;
    uint32_t count = 0;
    for (size_t at = 0; operation_next_write(&o, &at, &write); count++)
        bytes += 8 + walk_rows(&write);
    check(count == o.count && bytes == o.writes.size);
    struct arena arena;
    pawl_bytes again;
    arena_init(&arena, NULL, 4096);
    check(operation_encode(&o, &arena, &again) == PAWL_OK);
    check(bytes_equal(again, (pawl_bytes){data, size}));
    arena_release(&arena);
    return 0;
}

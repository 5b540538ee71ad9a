/* fuzz_row.c: bytes that open as a row are the same bytes that writing its values gives; and the same for keys.
 *
 * Input: a byte n, n bytes that choose the fields' types, a byte: 0 row, else key; then the row or key. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/schema/row.h"

#define FIELDS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_row(const struct schema_field *fields, size_t count, pawl_bytes bytes)
{
    struct row row;
    if (row_open(fields, count, bytes, &row, NULL) != PAWL_OK || row_fields(row) > count)
        return;
    struct value values[FIELDS];
    for (size_t i = 0; i < row_fields(row); i++)
        values[i] = row_get(row, i, fields[i].type);
    size_t size;
    if (row_size(values, row_fields(row), &size) != PAWL_OK || size != bytes.size)
        abort();
    uint8_t *again = malloc(size);
    if (!again)
        abort();
    row_write(values, row_fields(row), again);
    if (memcmp(again, bytes.data, size) != 0)
        abort();
    free(again);
}

static void try_key(const enum value_type *types, size_t count, pawl_bytes bytes)
{
    uint8_t *scratch = malloc(bytes.size + 1), *again = malloc(bytes.size + 1);
    struct value values[FIELDS];
    if (!scratch || !again)
        abort();
    if (row_key_read(bytes, types, count, scratch, values) == PAWL_OK
        && (row_key_write(values, count, again, bytes.size) != bytes.size
            || (bytes.size && memcmp(again, bytes.data, bytes.size) != 0)))
        abort();
    free(scratch);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count = size ? data[0] % FIELDS : 0;
    if (size < count + 2)
        return 0;
    struct schema_field fields[FIELDS];
    enum value_type types[FIELDS];
    for (size_t i = 0; i < count; i++) {
        types[i] = 1 + (enum value_type)(data[1 + i] % VALUE_TYPE_LAST);
        fields[i] = (struct schema_field){.name = {"f", 1}, .type = types[i]};
    }
    pawl_bytes rest = {data + count + 2, size - count - 2};
    if (data[count + 1] == 0)
        try_row(fields, count, rest);
    else
        try_key(types, count, rest);
    return 0;
}

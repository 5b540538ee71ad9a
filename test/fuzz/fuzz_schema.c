/* fuzz_schema.c: JSON that reads as a package, shown as JSON again, reads as the same package and is shown as
 * the same JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "engine/json/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct definition first, second;
    pawl_bytes text, bytes, again, text_again;
    pawl_error error;
    arena_init(&arena, NULL, 4096);
    int status = schema_read((pawl_bytes){data, size}, &arena, &first, &error);
    if (status && error.code != status)
        abort();
    /* A member's name that is too long to be one is cut when it is shown; group0 never has such. */
    if (status == PAWL_OK && definition_check(&first, &arena, NULL) == PAWL_OK) {
        if (schema_show(&first, &arena, &text) || schema_read(text, &arena, &second, NULL)
            || definition_encode(&first, &arena, &bytes) || definition_encode(&second, &arena, &again)
            || schema_show(&second, &arena, &text_again))
            abort();
        if (!bytes_equal(bytes, again) || !bytes_equal(text, text_again))
            abort();
    }
    arena_release(&arena);
    return 0;
}

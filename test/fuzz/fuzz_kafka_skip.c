/* fuzz_kafka_skip.c: a value that decodes as a decision to skip a record is the same value that encoding it gives. The
 * input is tried as it is, and with its checksum put right, so that the code behind it is reached too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/kafka/skip.h"
#include "base/bytes.h"
#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEED 42

static void require(int condition)
{
    if (!condition)
        abort();
}

static void try(const uint8_t *bytes, size_t size)
{
    struct kafka_skip skip;
    uint8_t again[KAFKA_SKIP_BYTES_MAX];
    if (!kafka_skip_decode((pawl_bytes){bytes, size}, SEED, &skip))
        return;
    require(kafka_skip_encode(&skip, SEED, again) == size);
    require(memcmp(again, bytes, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try(data, size);
    if (size < 8)
        return 0;
    uint8_t *mended = malloc(size);
    if (!mended)
        return 0;
    memcpy(mended, data, size);
    put_u64(mended, hash_checksum(SEED, (pawl_bytes){mended + 8, size - 8}));
    try(mended, size);
    free(mended);
    return 0;
}

/* fuzz_kafka_record.c: a value that decodes is the same value that encoding its record gives. The input is
 * tried as it is, and with its checksum put right, so that the code behind it is reached too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/kafka/record.h"
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
    struct kafka_record r;
    if (kafka_record_decode((pawl_bytes){bytes, size}, SEED, &r) != KAFKA_RECORD_GOOD)
        return;
    require(KAFKA_RECORD_HEADER + r.body.size == size);
    uint8_t *again = malloc(size);
    require(again != NULL);
    kafka_record_encode(&r, SEED, again);
    require(memcmp(again, bytes, size) == 0);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try(data, size);
    if (size < KAFKA_RECORD_HEADER)
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

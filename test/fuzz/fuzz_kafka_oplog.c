/* fuzz_kafka_oplog.c: a value that decodes as the name of an operation log that was made is the same value that encoding it
 * gives; and what is encoded decodes as the same log. The input is tried as it is, with its checksum put right, so that the
 * code behind it is reached too, and as the numbers of a log. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/kafka/oplogs.h"
#include "base/bytes.h"
#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEED    42
#define NUMBERS 6 /* bytes of a lane and a generation */

static void require(int condition)
{
    if (!condition)
        abort();
}

static void try(const uint8_t *bytes, size_t size)
{
    pawl_stream stream;
    uint8_t again[KAFKA_OPLOG_BYTES];
    if (!kafka_oplog_decode((pawl_bytes){bytes, size}, SEED, &stream))
        return;
    kafka_oplog_encode(stream, SEED, again);
    require(size == sizeof again && memcmp(again, bytes, size) == 0);
}

static void try_numbers(const uint8_t *bytes)
{
    struct decoder d = decoder_over((pawl_bytes){bytes, NUMBERS});
    pawl_stream stream = {.kind = PAWL_STREAM_OPLOG}, again;
    uint8_t value[KAFKA_OPLOG_BYTES];
    stream.lane = decode_u16(&d);
    stream.generation = decode_u32(&d);
    if (!pawl_stream_valid(stream))
        return;
    kafka_oplog_encode(stream, SEED, value);
    require(kafka_oplog_decode((pawl_bytes){value, sizeof value}, SEED, &again));
    require(pawl_stream_equal(stream, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t mended[KAFKA_OPLOG_BYTES];
    try(data, size);
    if (size >= NUMBERS)
        try_numbers(data);
    if (size != sizeof mended)
        return 0;
    memcpy(mended, data, size);
    put_u64(mended, hash_checksum(SEED, (pawl_bytes){mended + 8, size - 8}));
    try(mended, size);
    return 0;
}

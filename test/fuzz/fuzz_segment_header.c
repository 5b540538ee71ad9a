/* fuzz_segment_header.c: bytes that decode as a header are the same bytes that encoding it gives. Other bytes
 * are refused, with the wrong byte and the reason. The input is tried as it is, and with its checksum put
 * right. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/journal/segment.h"
#include "base/bytes.h"
#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void try(const uint8_t *bytes, size_t size)
{
    struct segment_header h;
    struct streams streams;
    uint64_t fault;
    pawl_error error = {0};
    streams_init(&streams, NULL);
    int status = segment_header_decode((pawl_bytes){bytes, size}, &h, &streams, &fault, &error);
    if (status == PAWL_OK) {
        require(h.size <= size);
        if (segment_header_size(streams.count) == h.size) { /* each stream once */
            uint8_t *again = malloc(h.size);
            require(again != NULL);
            segment_header_encode(&h, &streams, again);
            require(memcmp(again, bytes, h.size) == 0);
            free(again);
        }
    } else {
        require(status < 0 && error.text[0] != '\0' && fault <= SEGMENT_HEADER_MAX);
    }
    streams_release(&streams);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try(data, size);
    if (size < segment_header_size(0))
        return 0;
    uint8_t *mended = malloc(size);
    if (!mended)
        return 0;
    memcpy(mended, data, size);
    size_t header = get_u32(mended + 12);
    if (header >= segment_header_size(0) && header <= size) {
        put_u64(mended + header - 8, hash_checksum(0, (pawl_bytes){mended, header - 8}));
        try(mended, size);
    }
    free(mended);
    return 0;
}

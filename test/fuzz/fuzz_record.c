/* fuzz_record.c: bytes that decode as a record are the same bytes that encoding it gives. Other bytes are
 * refused with the number of bytes wanted, never more than the largest record has. The input is tried as it is,
 * and with its guard and checksum put right, so that the code behind them is reached too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/journal/record.h"
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
    struct record r;
    size_t need = 0;
    switch (record_decode((pawl_bytes){bytes, size}, SEED, &r, &need)) {
    case RECORD_VALID: {
        uint64_t epoch, group0;
        uint8_t *again = malloc(need);
        require(again && need <= size && need == record_size(r.body.size));
        require(record_claimed_size((pawl_bytes){bytes, size}) == need);
        require(record_encode(&r, SEED, again) == get_u64(bytes));
        require(memcmp(again, bytes, need) == 0);
        if (r.type == RECORD_CLAIM && claim_body_decode(r.body, &epoch, &group0))
            require(epoch != 0);
        free(again);
        break;
    }
    case RECORD_SHORT: require(need > size && need <= record_size(PAWL_ENTRY_BYTES_MAX)); break;
    case RECORD_NONE: require(bytes_all_zero(bytes, RECORD_HEADER)); break;
    case RECORD_BAD_HEAD:
    case RECORD_BAD_SUM: require(size >= RECORD_HEADER); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try(data, size);
    if (size < RECORD_HEADER)
        return 0;
    uint8_t *mended = malloc(size);
    if (!mended)
        return 0;
    memcpy(mended, data, size);
    put_u64(mended + 56, hash_checksum(SEED, (pawl_bytes){mended + 8, 48}));
    try(mended, size);
    size_t claimed = record_claimed_size((pawl_bytes){mended, size});
    if (claimed >= RECORD_HEADER && claimed <= size) {
        put_u64(mended, hash_checksum(SEED, (pawl_bytes){mended + 8, claimed - 8}));
        try(mended, size);
    }
    free(mended);
    return 0;
}

/* fuzz_index.c: an index file is believed or not, and an index that is believed answers with one of its own
 * entries. The input is tried as it is, and with its checksum put right. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/journal/index.h"
#include "base/bytes.h"
#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct id128 journal = {1, 2};
#define NUMBER 7

static void require(int condition)
{
    if (!condition)
        abort();
}

/* A disk that has one file: the input. */
static int open_input(void *ctx, int dir, const char *name, int flags)
{
    (void)ctx, (void)dir, (void)flags;
    return strcmp(name, "00000007.idx") == 0 ? 3 : -ENOENT;
}

static int64_t size_of_input(void *ctx, int file)
{
    (void)file;
    return (int64_t)((const pawl_bytes *)ctx)->size;
}

static int64_t read_input(void *ctx, int file, void *data, size_t size, uint64_t at)
{
    const pawl_bytes *input = ctx;
    (void)file;
    if (at >= input->size)
        return 0;
    size_t n = input->size - at < size ? input->size - (size_t)at : size;
    memcpy(data, (const uint8_t *)input->data + at, n);
    return (int64_t)n;
}

static void close_input(void *ctx, int file)
{
    (void)ctx, (void)file;
}

static void try(const uint8_t *bytes, size_t size)
{
    pawl_bytes input = {bytes, size};
    struct disk disk = {
        .ctx = &input, .open = open_input, .size = size_of_input, .read = read_input, .close = close_input};
    struct index index;
    struct index_entry found;
    index_init(&index, NULL);
    if (index_load(&index, &disk, 0, journal, NUMBER) == PAWL_OK)
        for (size_t i = 0; i < index.count && i < 64; i++) {
            const struct index_entry *e = &index.items[i];
            require(index_find(&index, e->stream, e->offset, &found));
            require(found.offset <= e->offset && pawl_stream_equal(found.stream, e->stream));
        }
    index_release(&index);
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
    put_u64(mended + size - 8, hash_checksum(0, (pawl_bytes){mended, size - 8}));
    try(mended, size);
    free(mended);
    return 0;
}

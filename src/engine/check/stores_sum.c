#include "engine/check/stores_sum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "engine/directory/directory.h"

#define FILE_NAME   "stores.sum"
#define PIECE_BYTES ((size_t)1 << 20)
#define TEXT_BYTES  36 /* "1 ", 32 digits, a line's end, and the zero byte */

/* Read up to a piece; 0: the file ends here. */
static ssize_t read_piece(int file, uint8_t *to)
{
    size_t size = 0;
    while (size < PIECE_BYTES) {
        ssize_t n = read(file, to + size, PIECE_BYTES - size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return n;
        if (n == 0)
            break;
        size += (size_t)n;
    }
    return (ssize_t)size;
}

/* The pieces of a file, and its size, which tells where the next one begins. */
static int add_file(const struct stores_sum *s, const char *path, uint8_t *room, struct hash128 *sum,
                    pawl_error *error)
{
    uint64_t bytes = 0;
    uint8_t size[8];
    ssize_t n;
    int status = PAWL_OK, file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return error_errno(error, errno, "cannot read %s", path);
    while (status == PAWL_OK && (n = read_piece(file, room)) != 0) {
        if (n < 0)
            status = error_errno(error, errno, "cannot read %s", path);
        else if (!s->progress(s->arg, 0, 0))
            status = error_set(error, PAWL_ECANCELED, "reading %s was cancelled", path);
        else
            hash_chain(sum, (pawl_bytes){room, (size_t)n});
        bytes += n > 0 ? (uint64_t)n : 0;
    }
    close(file);
    put_u64(size, bytes);
    hash_chain(sum, (pawl_bytes){size, sizeof size});
    return status;
}

static int compose(const struct stores_sum *s, char text[TEXT_BYTES], pawl_error *error)
{
    char path[NODE_PATH_MAX];
    struct hash128 sum = {0};
    uint8_t *room = mem_take(s->alloc, PIECE_BYTES, 1);
    int status = room ? PAWL_OK : error_set(error, PAWL_ENOMEM, "no memory to read the stores of %s", s->dir);
    for (uint32_t i = 0; status == PAWL_OK && i < s->shards; i++) {
        status = node_path(s->dir, path, error, "checkpoint/%u/data.mdb", i);
        if (status == PAWL_OK)
            status = add_file(s, path, room, &sum, error);
    }
    mem_free(s->alloc, room, PIECE_BYTES);
    snprintf(text, TEXT_BYTES, "1 %016" PRIx64 "%016" PRIx64 "\n", sum.high, sum.low);
    return status;
}

int stores_sum_write(const struct stores_sum *s, pawl_error *error)
{
    char path[NODE_PATH_MAX], text[TEXT_BYTES];
    int status = compose(s, text, error);
    if (status == PAWL_OK)
        status = node_path(s->dir, path, error, FILE_NAME);
    return status == PAWL_OK ? node_text_write(path, text, error) : status;
}

int stores_sum_check(const struct stores_sum *s, bool *ret_same, pawl_error *error)
{
    char path[NODE_PATH_MAX], text[TEXT_BYTES], written[TEXT_BYTES] = "";
    int status = node_path(s->dir, path, error, FILE_NAME);
    if (status != PAWL_OK)
        return status;
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(written, 1, sizeof written, file) : 0;
    if (file)
        fclose(file);
    if (size == TEXT_BYTES - 1)
        status = compose(s, text, error);
    if (status == PAWL_ECANCELED || status == PAWL_ENOMEM)
        return status;
    *ret_same = status == PAWL_OK && size == TEXT_BYTES - 1 && memcmp(text, written, size) == 0;
    return PAWL_OK;
}

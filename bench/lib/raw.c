/* raw.c: records round and round in a file that has its zeros before the clock starts. */
#include "bench/lib/raw.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES ((size_t)64 << 20)
#define CHUNK      ((size_t)1 << 20)

double raw_append(const struct bench_round *round, size_t bytes, size_t records, uint64_t duration)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/raw", round->dir);
    size_t size = records * bytes;
    uint8_t *data = calloc(1, CHUNK);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    bool ok = file >= 0 && data && size <= CHUNK;
    for (size_t at = 0; ok && at < FILE_BYTES; at += CHUNK)
        ok = pwrite(file, data, CHUNK, (off_t)at) == (ssize_t)CHUNK;
    ok = ok && fsync(file) == 0;
    if (ok)
        memset(data, 'r', size);
    uint64_t count = 0, began = bench_begin(), deadline = began + duration;
    for (size_t at = 0; ok && bench_now() < deadline; at = at + 2 * size > FILE_BYTES ? 0 : at + size) {
        ok = pwrite(file, data, size, (off_t)at) == (ssize_t)size && fdatasync(file) == 0;
        count += records;
    }
    double rate = bench_per_second(count, began);
    if (file >= 0)
        close(file);
    free(data);
    return ok ? rate : bench_failed(path, NULL);
}

/* fuzz_event_cursor.c: what is taken as a cursor has an offset for each partition, and is the same place when it is
 * written and read again; what is refused names its place. The first byte says how many partitions there are. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/hub/event_cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check(const uint64_t *next, uint32_t partitions)
{
    uint64_t again[EVENT_CURSOR_PARTITIONS_MAX];
    char text[8192];
    for (uint32_t i = 0; i < partitions; i++)
        require(next[i] > 0);
    require(event_cursor_format(next, partitions, text) < event_cursor_room(partitions));
    require(event_cursor_parse(text, partitions, "$", again, NULL) == PAWL_OK);
    require(memcmp(next, again, partitions * sizeof next[0]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t next[EVENT_CURSOR_PARTITIONS_MAX];
    pawl_error error = {0};
    if (size == 0)
        return 0;
    uint32_t partitions = data[0] % EVENT_CURSOR_PARTITIONS_MAX + 1;
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (event_cursor_parse(text, partitions, "$query.after", next, &error) == PAWL_OK)
        check(next, partitions);
    else
        require(error.code == PAWL_EINVAL && error.text[0] == '$');
    free(text);
    return 0;
}

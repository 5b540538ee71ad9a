#include "cli/show/left_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void left_out_note(void *arg, const char *stream, uint64_t first, uint64_t count)
{
    struct left_out *l = arg;
    if (l->only && strcmp(l->only, stream) != 0)
        return;
    if (l->streams++ == 0) {
        snprintf(l->stream, sizeof l->stream, "%s", stream);
        l->first = first;
    }
    l->entries += count;
}

void left_out_say(const struct left_out *l)
{
    if (l->streams == 0)
        return;
    fflush(stdout); /* so that the words come behind what was printed */
    fprintf(stderr, "pawl: %" PRIu64 " %s of ", l->entries, l->entries == 1 ? "entry" : "entries");
    if (l->streams == 1)
        fprintf(stderr, "%s, from offset %" PRIu64 " on,", l->stream, l->first);
    else
        fprintf(stderr, "%" PRIu64 " streams, the first %s from offset %" PRIu64 " on,", l->streams, l->stream,
                l->first);
    fprintf(stderr,
            " %s whole but not known to be durable, and not shown; 'pawl log read --recover' recovers %s\n",
            l->entries == 1 ? "is" : "are", l->entries == 1 ? "it" : "them");
}

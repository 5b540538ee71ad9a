#include "cli/care/verify_show.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/care/state.h"
#include "cli/care/verify_cluster.h"
#include "cli/show/say.h"

static void print_streams(const json_t *streams)
{
    size_t empty = 0, i;
    const json_t *s;
    printf("%-20s %12s %12s %12s %8s\n", "stream", "entries", "first", "last", "epoch");
    json_array_foreach(streams, i, s)
    {
        if (json_u64_in(s, "entries") == 0) { /* lanes have a stream in every partition, used or not */
            empty++;
            continue;
        }
        printf("%-20s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %8" PRIu64 "\n", json_text_in(s, "stream"),
               json_u64_in(s, "entries"), json_u64_in(s, "first"), json_u64_in(s, "last"),
               json_u64_in(s, "epoch"));
    }
    if (empty)
        printf("and %zu that were claimed, and have no entries yet\n", empty);
}

static void print_notes(const json_t *found)
{
    uint64_t dead_bytes = json_u64_in(found, "dead_bytes"), torn_bytes = json_u64_in(found, "torn_bytes"),
             unwitnessed = json_u64_in(found, "unwitnessed"), bad_indexes = json_u64_in(found, "bad_indexes");
    const json_t *torn = json_object_get(found, "torn");
    char dead[BYTES_TEXT_MAX];
    bytes_format(dead_bytes, dead);
    if (dead_bytes)
        printf("note: %s are dead, left behind by recoveries\n", dead);
    if (torn_bytes)
        printf("note: %" PRIu64 " bytes at byte %" PRIu64 " of segment %s were never finished\n", torn_bytes,
               json_u64_in(torn, "byte"), json_text_in(torn, "file"));
    if (unwitnessed)
        printf("note: the last %" PRIu64
               " records are whole, but not known to be durable; readers do not show them\n",
               unwitnessed);
    if (bad_indexes)
        printf("note: %" PRIu64 " index files cannot be believed; they are made anew when needed\n",
               bad_indexes);
}

static void print_log(const json_t *found)
{
    char bytes[BYTES_TEXT_MAX], rate[BYTES_TEXT_MAX];
    double seconds = json_number_value(json_object_get(found, "seconds"));
    uint64_t read = json_u64_in(found, "bytes"), faults = json_u64_in(found, "faults");
    bytes_format(read, bytes);
    bytes_format((uint64_t)((double)read / seconds), rate);
    print_streams(json_object_get(found, "streams"));
    printf("\n%" PRIu64 " entries, %" PRIu64 " claims, %" PRIu64 " watermarks in %" PRIu64 " segments of %s\n",
           json_u64_in(found, "entries"), json_u64_in(found, "claims"), json_u64_in(found, "watermarks"),
           json_u64_in(found, "segments"), bytes);
    printf("read in %.3f s: %s/s, %.0f records/s\n", seconds, rate,
           (double)json_u64_in(found, "records") / seconds);
    print_notes(found);
    if (faults == 0)
        return;
    printf("CORRUPT: %s\n", json_text_in(json_object_get(found, "first_fault"), "text"));
    if (faults > 1)
        printf("and %" PRIu64 " more faults behind it\n", faults - 1);
    printf("'pawl doctor --dir %s' shows what can be saved\n", json_text_in(found, "dir"));
}

void print_verified(const json_t *found)
{
    const json_t *state = json_object_get(found, "state"), *audit = json_object_get(found, "audit");
    const json_t *kafka = json_object_get(found, "kafka");
    const char *dir = json_text_in(found, "dir");
    if (kafka)
        print_cluster(kafka);
    else
        print_log(found);
    if (state)
        print_state(state, audit, json_number_value(json_object_get(state, "seconds")));
    if (audit)
        print_audit(audit);
    if (json_u64_in(state, "differences") && kafka)
        printf("the log is sound: an empty directory with --log and --take-over has the state that it says\n");
    else if (json_u64_in(state, "differences"))
        printf("the log is sound: 'pawl replay --dir %s --to NEWDIR' keeps the state that it says\n", dir);
    if (json_is_true(json_object_get(found, "sound")))
        printf("%s is sound\n", dir);
}

#include "cli/care/verify_cluster.h"

#include <pawl/cluster.h>

#include <inttypes.h>
#include <stdio.h>

#include "cli/show/progress.h"
#include "cli/show/say.h"

static void print_text(const char *url, const pawl_cluster_report *r, double seconds)
{
    char bytes[BYTES_TEXT_MAX];
    bytes_format(r->bytes, bytes);
    printf("%-20s %12s %12s %12s %8s\n", "stream", "records", "entries", "ignored", "epoch");
    for (size_t i = 0; i < r->stream_count; i++) {
        const pawl_cluster_report_stream *s = &r->streams[i];
        char name[PAWL_STREAM_TEXT_MAX];
        pawl_stream_format(s->id, name);
        printf("%-20s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %8" PRIu64 "\n", name, s->records, s->entries,
               s->ignored, s->epoch);
    }
    printf("\n%" PRIu64 " entries, %" PRIu64 " claims, %" PRIu64 " records that do not count, %s\n", r->entries,
           r->claims, r->ignored, bytes);
    printf("read in %.3f s: %.0f records/s\n", seconds, (double)r->records / seconds);
    if (r->faults == 0) {
        printf("%s is sound\n", url);
        return;
    }
    printf("CORRUPT: %s\n", r->first.text);
    if (r->faults > 1)
        printf("and %" PRIu64 " more streams with faults\n", r->faults - 1);
}

static void print_json(const pawl_cluster_report *r, double seconds)
{
    json_t *streams = json_array();
    for (size_t i = 0; i < r->stream_count; i++) {
        const pawl_cluster_report_stream *s = &r->streams[i];
        char name[PAWL_STREAM_TEXT_MAX];
        pawl_stream_format(s->id, name);
        json_array_append_new(streams, json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "stream", name, "records",
                                                 json_u64(s->records), "entries", json_u64(s->entries),
                                                 "claims", json_u64(s->claims), "ignored", json_u64(s->ignored),
                                                 "epoch", json_u64(s->epoch)));
    }
    json_t *object = json_pack(
        "{s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:f,s:o}", "sound", r->faults == 0, "records", json_u64(r->records),
        "entries", json_u64(r->entries), "claims", json_u64(r->claims), "ignored", json_u64(r->ignored),
        "bytes", json_u64(r->bytes), "faults", json_u64(r->faults), "seconds", seconds, "streams", streams);
    if (r->faults)
        json_object_set_new(object, "first_fault", json_pack("{s:s}", "text", r->first.text));
    say_json(object);
}

int verify_cluster(const struct options *options, const char *url)
{
    pawl_cluster_report report;
    struct progress progress;
    pawl_error error = {0};
    progress_begin(&progress, "verifying", "records");
    int status = pawl_cluster_verify(url, progress_count, &progress, &report, &error);
    double seconds = seconds_now() - progress.begun;
    progress_end(&progress);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    if (options_get(options, "json"))
        print_json(&report, seconds);
    else
        print_text(url, &report, seconds);
    bool sound = report.faults == 0;
    pawl_cluster_report_release(&report);
    status = say_finish(&error);
    if (status != PAWL_OK && status != PAWL_ECLOSED)
        return say_failure(options, &error);
    return sound ? CLI_OK : CLI_CORRUPT;
}

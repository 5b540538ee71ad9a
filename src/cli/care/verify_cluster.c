#include "cli/care/verify_cluster.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/show/progress.h"
#include "cli/show/say.h"

void print_cluster(const json_t *found)
{
    char bytes[BYTES_TEXT_MAX];
    const json_t *s;
    size_t i;
    uint64_t faults = json_u64_in(found, "faults");
    double seconds = json_number_value(json_object_get(found, "seconds"));
    bytes_format(json_u64_in(found, "bytes"), bytes);
    printf("%-20s %12s %12s %12s %8s\n", "stream", "records", "entries", "ignored", "epoch");
    json_array_foreach(json_object_get(found, "streams"), i, s)
        printf("%-20s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %8" PRIu64 "\n", json_text_in(s, "stream"),
               json_u64_in(s, "records"), json_u64_in(s, "entries"), json_u64_in(s, "ignored"),
               json_u64_in(s, "epoch"));
    printf("\n%" PRIu64 " entries, %" PRIu64 " claims, %" PRIu64 " records that do not count, %s\n",
           json_u64_in(found, "entries"), json_u64_in(found, "claims"), json_u64_in(found, "ignored"), bytes);
    json_array_foreach(json_object_get(found, "skipped"), i, s)
        printf("skipped: %s, Kafka offset %" PRIu64 "%s, by %s at %s: %s\n", json_text_in(s, "stream"),
               json_u64_in(s, "at"), json_is_true(json_object_get(s, "damaged")) ? " (damaged)" : "",
               json_text_in(s, "who"), json_text_in(s, "time"), json_text_in(s, "reason"));
    printf("read in %.3f s: %.0f records/s\n", seconds, (double)json_u64_in(found, "records") / seconds);
    if (faults == 0) {
        printf("%s is sound\n", json_text_in(found, "log"));
        return;
    }
    printf("CORRUPT: %s\n", json_text_in(json_object_get(found, "first_fault"), "text"));
    if (faults > 1)
        printf("and %" PRIu64 " more streams with faults\n", faults - 1);
}

/* Somebody has typed it: only printable ASCII is shown. */
static const char *printable(const char *text, char shown[256])
{
    size_t i = 0;
    for (; text[i] && i < 255; i++)
        shown[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    shown[i] = '\0';
    return shown;
}

json_t *skipped_json(const pawl_cluster_skipped *s)
{
    char name[PAWL_STREAM_TEXT_MAX], time[PAWL_WALL_TEXT_MAX], who[256], reason[256];
    pawl_stream_format(s->stream, name);
    pawl_wall_format(s->time, time);
    return json_pack("{s:s,s:o,s:b,s:s,s:s,s:s}", "stream", name, "at", json_u64(s->at), "damaged",
                     (int)s->damaged, "time", time, "who", printable(s->who, who), "reason",
                     printable(s->reason, reason));
}

static json_t *report_json(const char *url, const pawl_cluster_report *r, double seconds)
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
    json_t *object =
        json_pack("{s:s,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:f,s:o}", "log", url, "sound", r->faults == 0, "records",
                  json_u64(r->records), "entries", json_u64(r->entries), "claims", json_u64(r->claims),
                  "ignored", json_u64(r->ignored), "bytes", json_u64(r->bytes), "faults", json_u64(r->faults),
                  "seconds", seconds, "streams", streams);
    json_t *skipped = json_array();
    for (size_t i = 0; i < r->skipped_count; i++)
        json_array_append_new(skipped, skipped_json(&r->skipped[i]));
    json_object_set_new(object, "skipped", skipped);
    if (r->faults)
        json_object_set_new(object, "first_fault", json_pack("{s:s}", "text", r->first.text));
    return object;
}

int cluster_verified(const char *url, json_t **ret_found, pawl_error *error)
{
    pawl_cluster_report report;
    struct progress progress;
    progress_begin(&progress, "verifying", "records");
    int status = pawl_cluster_verify(url, progress_count, &progress, &report, error);
    double seconds = seconds_now() - progress.begun;
    progress_end(&progress);
    if (status != PAWL_OK)
        return status;
    *ret_found = report_json(url, &report, seconds);
    pawl_cluster_report_release(&report);
    return PAWL_OK;
}

int verify_cluster(const struct options *options, const char *url)
{
    json_t *found;
    pawl_error error = {0};
    int status = cluster_verified(url, &found, &error);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    bool sound = json_is_true(json_object_get(found, "sound"));
    if (options_get(options, "json"))
        say_json(found);
    else {
        print_cluster(found);
        json_decref(found);
    }
    status = say_finish(&error);
    if (status != PAWL_OK && status != PAWL_ECLOSED)
        return say_failure(options, &error);
    return sound ? CLI_OK : CLI_CORRUPT;
}

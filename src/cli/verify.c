/* cli/verify.c: read everything, and say whether it is as it was written. */
#include "engine/verify.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "cli/verify_cluster.h"
#include "engine/cluster.h"

static void print_table(const struct journal_verify_report *r)
{
    printf("%-20s %12s %12s %12s %8s\n", "stream", "entries", "first", "last", "epoch");
    for (size_t i = 0; i < r->stream_count; i++) {
        const struct journal_verify_stream *s = &r->streams[i];
        char name[PAWL_STREAM_TEXT_MAX];
        pawl_stream_format(s->id, name);
        printf("%-20s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %8" PRIu64 "\n", name, s->entries, s->first,
               s->last, s->epoch);
    }
}

static void print_text(const char *dir, const struct journal_verify_report *r, double seconds)
{
    char bytes[BYTES_TEXT_MAX], rate[BYTES_TEXT_MAX], dead[BYTES_TEXT_MAX];
    bytes_format(r->bytes, bytes);
    bytes_format((uint64_t)((double)r->bytes / seconds), rate);
    bytes_format(r->dead_bytes, dead);
    print_table(r);
    printf("\n%" PRIu64 " entries, %" PRIu64 " claims, %" PRIu64 " watermarks in %" PRIu64 " segments of %s\n",
           r->entries, r->claims, r->watermarks, r->segments, bytes);
    printf("read in %.3f s: %s/s, %.0f records/s\n", seconds, rate, (double)r->records / seconds);
    if (r->dead_bytes)
        printf("note: %s are dead, left behind by recoveries\n", dead);
    if (r->torn_bytes)
        printf("note: %" PRIu64 " bytes at byte %" PRIu64 " of segment %s were never finished\n", r->torn_bytes,
               r->torn_at, r->torn_file);
    if (r->unwitnessed)
        printf("note: the last %" PRIu64 " records are whole, but not yet known to be durable\n",
               r->unwitnessed);
    if (r->bad_indexes)
        printf("note: %" PRIu64 " index files cannot be believed; they are made anew when needed\n",
               r->bad_indexes);
    if (r->faults == 0) {
        printf("%s is sound\n", dir);
        return;
    }
    printf("CORRUPT: %s\n", r->first.error.text);
    if (r->faults > 1)
        printf("and %" PRIu64 " more faults behind it\n", r->faults - 1);
    printf("'pawl doctor --dir %s' shows what can be saved\n", dir);
}

static json_t *fault_json(const struct journal_fault *f)
{
    json_t *fault = json_pack("{s:s,s:s}", "file", f->file, "text", f->error.text);
    if (f->at != JOURNAL_NO_BYTE)
        json_object_set_new(fault, "byte", json_u64(f->at));
    if (f->lsn)
        json_object_set_new(fault, "lsn", json_u64(f->lsn));
    return fault;
}

static void print_json(const struct journal_verify_report *r, double seconds)
{
    json_t *streams = json_array();
    for (size_t i = 0; i < r->stream_count; i++) {
        const struct journal_verify_stream *s = &r->streams[i];
        char name[PAWL_STREAM_TEXT_MAX];
        pawl_stream_format(s->id, name);
        json_array_append_new(streams, json_pack("{s:s,s:o,s:o,s:o,s:o}", "stream", name, "entries",
                                                 json_u64(s->entries), "first", json_u64(s->first), "last",
                                                 json_u64(s->last), "epoch", json_u64(s->epoch)));
    }
    json_t *object = json_pack(
        "{s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:f,s:o}", "sound", r->faults == 0, "segments",
        json_u64(r->segments), "records", json_u64(r->records), "entries", json_u64(r->entries), "claims",
        json_u64(r->claims), "watermarks", json_u64(r->watermarks), "unwitnessed", json_u64(r->unwitnessed),
        "bytes", json_u64(r->bytes), "dead_bytes", json_u64(r->dead_bytes), "torn_bytes",
        json_u64(r->torn_bytes), "bad_indexes", json_u64(r->bad_indexes), "faults", json_u64(r->faults),
        "clean", (int)r->clean, "seconds", seconds, "streams", streams);
    if (r->faults)
        json_object_set_new(object, "first_fault", fault_json(&r->first));
    if (r->torn_bytes)
        json_object_set_new(object, "torn",
                            json_pack("{s:s,s:o}", "file", r->torn_file, "byte", json_u64(r->torn_at)));
    say_json(object);
}

static int run(const struct options *options)
{
    struct journal_verify_report report;
    struct progress progress;
    pawl_error error = {0};
    const char *dir;
    if (options_log(options, &dir, &error) != PAWL_OK)
        return say_usage(&error);
    if (cluster_is(dir))
        return verify_cluster(options, dir);
    progress_begin(&progress, "verifying");
    int status = engine_verify(dir, progress_step, &progress, &report, &error);
    double seconds = seconds_now() - progress.begun;
    progress_end(&progress);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    if (options_get(options, "json"))
        print_json(&report, seconds);
    else
        print_text(dir, &report, seconds);
    bool sound = report.faults == 0;
    journal_verify_release(&report);
    status = say_finish(&error);
    if (status != PAWL_OK && status != PAWL_ECLOSED)
        return say_failure(options, &error);
    return sound ? CLI_OK : CLI_CORRUPT;
}

const struct command command_verify = {
    .name = "verify",
    .summary = "read everything, and check that it is as it was written",
    .about =
        "Checks every record's checksum, place and offset, and every segment's header. Changes nothing, and\n"
        "may run beside a writer. Ends with exit code 3, naming file and byte, if something is not as it was\n"
        "written. What a crash left unfinished is no fault, and is told.\n",
    .options = {OPTION_DIR, OPTION_LOG, OPTION_JSON},
    .run = run,
};

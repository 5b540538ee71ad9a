/* cli/care/doctor.c: shows what a damaged log still holds, and saves it elsewhere. */
#include <pawl/admin.h>

#include <inttypes.h>
#include <stdio.h>

#include "cli/show/progress.h"
#include "cli/show/say.h"

#define RANGES_SHOWN 6

/* The lost offsets before range i, or behind the last one; false if there are none. */
static bool hole(const pawl_doctor_stream *s, size_t i, pawl_offset_range *ret_hole)
{
    uint64_t first = i ? s->intact[i - 1].last + 1 : 1;
    uint64_t end = i < s->count ? s->intact[i].first : s->next;
    if (first >= end)
        return false;
    *ret_hole = (pawl_offset_range){first, end - 1};
    return true;
}

static void print_range(pawl_offset_range r, size_t shown)
{
    if (shown == RANGES_SHOWN)
        fputs(" ...", stdout);
    if (shown >= RANGES_SHOWN)
        return;
    printf(r.first == r.last ? " %" PRIu64 : " %" PRIu64 "-%" PRIu64, r.first, r.last);
}

static void print_stream(const pawl_doctor_stream *s)
{
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_offset_range lost;
    pawl_stream_format(s->id, name);
    printf("%s: %" PRIu64 " entries, %" PRIu64 " lost\n", name, s->entries, s->next - 1 - s->entries);
    if (s->entries != s->next - 1) {
        size_t shown = 0;
        fputs("  lost:  ", stdout);
        for (size_t i = 0; i <= s->count; i++)
            if (hole(s, i, &lost))
                print_range(lost, shown++);
        fputs("\n  intact:", stdout);
        for (size_t i = 0; i < s->count; i++)
            print_range(s->intact[i], i);
        printf("\n  up to the first hole: %" PRIu64 "; behind it: %" PRIu64 "\n", s->dense,
               s->entries - s->dense);
    }
}

static void print_text(const char *dir, const char *to, const pawl_doctor_report *r)
{
    uint64_t behind = 0;
    char bytes[BYTES_TEXT_MAX];
    for (size_t i = 0; i < r->stream_count; i++) {
        print_stream(&r->streams[i]);
        behind += r->streams[i].entries - r->streams[i].dense;
    }
    if (r->first.code == PAWL_OK) {
        printf("%s is not damaged\n", dir);
    } else {
        bytes_format(r->bytes_damaged, bytes);
        printf("damage: %" PRIu64 " places (%s), %" PRIu64 " headers, %" PRIu64 " missing of %" PRIu64
               " segments\n",
               r->places_damaged, bytes, r->headers_damaged, r->segments_missing,
               r->segments + r->segments_missing);
        printf("the first: %s\n", r->first.text);
    }
    if (to)
        printf("saved into %s\n", to);
    else if (r->first.code != PAWL_OK)
        printf("'pawl doctor --dir %s --to NEWDIR' saves each stream up to its first hole\n", dir);
    if (to && behind)
        printf("and %" PRIu64 " entries from behind holes into %s/behind-holes\n", behind, to);
}

static json_t *range_json(pawl_offset_range r)
{
    return json_pack("[o,o]", json_u64(r.first), json_u64(r.last));
}

static json_t *stream_json(const pawl_doctor_stream *s)
{
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_offset_range lost;
    json_t *intact = json_array(), *holes = json_array();
    pawl_stream_format(s->id, name);
    for (size_t i = 0; i < s->count; i++)
        json_array_append_new(intact, range_json(s->intact[i]));
    for (size_t i = 0; i <= s->count; i++)
        if (hole(s, i, &lost))
            json_array_append_new(holes, range_json(lost));
    return json_pack("{s:s,s:o,s:o,s:o,s:o}", "stream", name, "entries", json_u64(s->entries),
                     "up_to_first_hole", json_u64(s->dense), "intact", intact, "lost", holes);
}

static void print_json(const char *to, const pawl_doctor_report *r)
{
    json_t *streams = json_array();
    for (size_t i = 0; i < r->stream_count; i++)
        json_array_append_new(streams, stream_json(&r->streams[i]));
    json_t *object =
        json_pack("{s:b,s:o,s:o,s:o,s:o,s:o,s:o}", "damaged", r->first.code != PAWL_OK, "segments",
                  json_u64(r->segments), "segments_missing", json_u64(r->segments_missing), "headers_damaged",
                  json_u64(r->headers_damaged), "places_damaged", json_u64(r->places_damaged), "bytes_damaged",
                  json_u64(r->bytes_damaged), "streams", streams);
    if (r->first.code != PAWL_OK)
        json_object_set_new(object, "first", json_string(r->first.text));
    if (to)
        json_object_set_new(object, "saved_to", json_string(to));
    say_json(object);
}

static int run(const struct options *options)
{
    pawl_doctor_report report;
    struct progress progress;
    pawl_error error = {0};
    const char *dir, *to = options_get(options, "to");
    if (options_dir(options, &dir, &error) != PAWL_OK)
        return say_usage(&error);
    progress_begin(&progress, to ? "saving" : "looking", "bytes");
    int status = pawl_doctor(dir, to, progress_step, &progress, &report, &error);
    progress_end(&progress);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    if (options_get(options, "json"))
        print_json(to, &report);
    else
        print_text(dir, to, &report);
    bool damaged = report.first.code != PAWL_OK;
    pawl_doctor_report_release(&report);
    status = say_finish(&error);
    if (status != PAWL_OK && status != PAWL_ECLOSED)
        return say_failure(options, &error);
    return damaged && !to ? CLI_CORRUPT : CLI_OK;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "see what a damaged log still holds, and save it into a new directory",
    .about =
        "Reads past damage, and tells for each stream which offsets are intact and which are lost. Changes\n"
        "nothing. With --to it writes what is intact into a new directory: each stream up to its first hole "
        "as\n"
        "a log, and what lies behind a hole into NEWDIR/behind-holes/STREAM.ndjson. Without --to it ends with\n"
        "exit code 3 if something is damaged.\n",
    .options = {OPTION_DIR, {"to", "NEWDIR", "where to save it; must not exist, or be empty"}, OPTION_JSON},
    .run = run,
};

/* cli/verify.c: read everything, and say whether it is as it was written. */
#include <pawl/admin.h>

#include <inttypes.h>
#include <stdio.h>

#include "cli/progress.h"
#include "cli/say.h"
#include "cli/state.h"
#include "cli/verify_cluster.h"

static void print_table(const pawl_log_report *r)
{
    size_t empty = 0;
    printf("%-20s %12s %12s %12s %8s\n", "stream", "entries", "first", "last", "epoch");
    for (size_t i = 0; i < r->stream_count; i++) {
        const pawl_log_report_stream *s = &r->streams[i];
        char name[PAWL_STREAM_TEXT_MAX];
        if (s->entries == 0) { /* lanes have a stream in every partition, used or not */
            empty++;
            continue;
        }
        pawl_stream_format(s->id, name);
        printf("%-20s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %8" PRIu64 "\n", name, s->entries, s->first,
               s->last, s->epoch);
    }
    if (empty)
        printf("and %zu that were claimed, and have no entries yet\n", empty);
}

static void print_text(const char *dir, const pawl_log_report *r, double seconds)
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
        printf("note: the last %" PRIu64
               " records are whole, but not known to be durable; readers do not show them\n",
               r->unwitnessed);
    if (r->bad_indexes)
        printf("note: %" PRIu64 " index files cannot be believed; they are made anew when needed\n",
               r->bad_indexes);
    if (r->faults == 0)
        return;
    printf("CORRUPT: %s\n", r->first.error.text);
    if (r->faults > 1)
        printf("and %" PRIu64 " more faults behind it\n", r->faults - 1);
    printf("'pawl doctor --dir %s' shows what can be saved\n", dir);
}

static json_t *fault_json(const pawl_log_fault *f)
{
    json_t *fault = json_pack("{s:s,s:s}", "file", f->file, "text", f->error.text);
    if (f->at != PAWL_NO_BYTE)
        json_object_set_new(fault, "byte", json_u64(f->at));
    if (f->lsn)
        json_object_set_new(fault, "lsn", json_u64(f->lsn));
    return fault;
}

static json_t *report_json(const pawl_log_report *r, double seconds)
{
    json_t *streams = json_array();
    for (size_t i = 0; i < r->stream_count; i++) {
        const pawl_log_report_stream *s = &r->streams[i];
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
    return object;
}

/* What is verified, and what was found. */
struct verifying {
    const char *where;
    const char *dir; /* the engine's directory, if its log is sound; NULL: it is not, or there is only a log */
    pawl_log_report log;
    double log_seconds;
    pawl_state_report state;
    double state_seconds;
};

static int verify_log(struct verifying *v, pawl_error *error)
{
    struct progress progress;
    pawl_directory directory;
    int engine = pawl_directory_get(v->where, &directory, error);
    if (engine != PAWL_OK && engine != PAWL_ENOTFOUND)
        return engine;
    progress_begin(&progress, "verifying", "bytes");
    int status = pawl_verify_log(v->where, progress_step, &progress, &v->log, error);
    v->log_seconds = seconds_now() - progress.begun;
    progress_end(&progress);
    if (status == PAWL_OK && engine == PAWL_OK && v->log.faults == 0)
        v->dir = v->where;
    return status;
}

static int verify_state(struct verifying *v, const struct options *asked, pawl_error *error)
{
    struct progress progress;
    pawl_replay_options options = {.dir = v->dir,
                                   .backup = true,
                                   .audit = options_get(asked, "audit") != NULL,
                                   .reproject = options_get(asked, "replay") != NULL,
                                   .progress = progress_count,
                                   .arg = &progress};
    progress_begin(&progress, "deriving", "events");
    int status = pawl_replay(&options, &v->state, error);
    v->state_seconds = seconds_now() - progress.begun;
    progress_end(&progress);
    return status;
}

static bool say_found(const struct options *options, const struct verifying *v)
{
    bool audit = v->dir && (options_get(options, "audit") || v->state.checkpoint.compared);
    bool sound = v->log.faults == 0 && v->state.live.differences == 0 && v->state.checkpoint.differences == 0
                 && v->state.lanes.differences == 0;
    if (options_get(options, "json")) {
        json_t *object = report_json(&v->log, v->log_seconds);
        json_object_set_new(object, "sound", json_boolean(sound));
        if (v->dir)
            json_object_set_new(object, "state", state_json(&v->state));
        if (audit)
            json_object_set_new(object, "audit", audit_json(&v->state));
        say_json(object);
        return sound;
    }
    print_text(v->where, &v->log, v->log_seconds);
    if (v->dir)
        print_state(&v->state, v->state_seconds);
    if (audit)
        print_audit(&v->state);
    if (v->state.live.differences)
        printf("the log is sound: 'pawl replay --dir %s --to NEWDIR' keeps the state that it says\n", v->where);
    if (sound)
        printf("%s is sound\n", v->where);
    return sound;
}

static bool say_state(const struct options *options, const struct verifying *v)
{
    bool sound = v->state.live.differences + v->state.checkpoint.differences + v->state.lanes.differences == 0;
    bool audit = options_get(options, "audit") || v->state.checkpoint.compared;
    if (options_get(options, "json")) {
        json_t *object = json_pack("{s:b,s:o}", "sound", (int)sound, "state", state_json(&v->state));
        if (audit)
            json_object_set_new(object, "audit", audit_json(&v->state));
        say_json(object);
        return sound;
    }
    print_state(&v->state, v->state_seconds);
    if (audit)
        print_audit(&v->state);
    if (sound)
        printf("%s is sound\n", v->where);
    else
        printf("the log is sound: an empty directory with --log and --take-over has the state that it says\n");
    return sound;
}

/* A directory whose log is on Kafka: the log, and then the state. With --json a line each. */
static int verify_node(const struct options *options, struct verifying *v, const char *url)
{
    pawl_error error = {0};
    int code = verify_cluster(options, url);
    if (code != CLI_OK)
        return code;
    v->dir = v->where;
    int status = verify_state(v, options, &error);
    bool sound = status == PAWL_OK && say_state(options, v);
    if (status == PAWL_OK)
        status = say_finish(&error);
    if (status != PAWL_OK && status != PAWL_ECLOSED)
        return say_failure(options, &error);
    return sound ? CLI_OK : CLI_CORRUPT;
}

static int run(const struct options *options)
{
    struct verifying v = {0};
    pawl_directory directory;
    pawl_error error = {0};
    int status = options_log(options, &v.where, &error);
    if (status == PAWL_OK && options_get(options, "log")
        && (options_get(options, "audit") || options_get(options, "replay")))
        status = pawl_error_set(&error, PAWL_EINVAL, "a log alone has no state to compare: say --dir DIR");
    if (status != PAWL_OK)
        return say_usage(&error);
    if (options_is_cluster(v.where))
        return verify_cluster(options, v.where);
    if (!options_get(options, "log") && pawl_directory_get(v.where, &directory, NULL) == PAWL_OK
        && options_is_cluster(directory.log))
        return verify_node(options, &v, directory.log);
    status = verify_log(&v, &error);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    if (options_get(options, "log"))
        v.dir = NULL;
    if (v.dir)
        status = verify_state(&v, options, &error);
    bool sound = status == PAWL_OK && say_found(options, &v);
    pawl_log_report_release(&v.log);
    if (status == PAWL_OK)
        status = say_finish(&error);
    if (status != PAWL_OK && status != PAWL_ECLOSED)
        return say_failure(options, &error);
    return sound ? CLI_OK : CLI_CORRUPT;
}

const struct command command_verify = {
    .name = "verify",
    .summary = "read everything, and check that it is as it was written, and the state as the log says",
    .about =
        "Checks every record's checksum, place and offset, and every segment's header; then derives records,\n"
        "entities, logs of workspaces and sequences from the log again, and compares them with those that are\n"
        "stored. Changes nothing, and may run beside a writer. Ends with exit code 3, naming file and byte,\n"
        "or the row, if something is not as it was written. What a crash left unfinished is no fault, and is\n"
        "told. With --audit the checkpoint stores are compared, too: of the two states it says which one "
        "agrees\n"
        "with the log. With --replay the operations of lanes are not only applied, but worked out again from\n"
        "their events, and the first one that comes out differently is named.\n",
    .options = {OPTION_DIR,
                OPTION_LOG,
                {"audit", NULL, "compare the checkpoint stores with the log, too"},
                {"replay", NULL, "work operations of lanes out again, and compare them with the log"},
                OPTION_JSON},
    .run = run,
};

/* cli/care/verify.c: read everything, and say whether it is as it was written. */
#include <pawl/admin.h>

#include <stdio.h>

#include "cli/care/state.h"
#include "cli/care/verify_cluster.h"
#include "cli/care/verify_show.h"
#include "cli/show/progress.h"
#include "cli/show/say.h"
#include "cli/talk/job.h"
#include "cli/talk/session.h"

static json_t *fault_json(const pawl_log_fault *f)
{
    json_t *fault = json_pack("{s:s,s:s}", "file", f->file, "text", f->error.text);
    if (f->at != PAWL_NO_BYTE)
        json_object_set_new(fault, "byte", json_u64(f->at));
    if (f->lsn)
        json_object_set_new(fault, "lsn", json_u64(f->lsn));
    return fault;
}

static json_t *report_json(const char *where, const pawl_log_report *r, double seconds)
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
        "{s:s,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:f,s:o}", "dir", where, "sound",
        r->faults == 0, "segments", json_u64(r->segments), "records", json_u64(r->records), "entries",
        json_u64(r->entries), "claims", json_u64(r->claims), "watermarks", json_u64(r->watermarks),
        "unwitnessed", json_u64(r->unwitnessed), "bytes", json_u64(r->bytes), "dead_bytes",
        json_u64(r->dead_bytes), "torn_bytes", json_u64(r->torn_bytes), "bad_indexes", json_u64(r->bad_indexes),
        "faults", json_u64(r->faults), "clean", (int)r->clean, "seconds", seconds, "streams", streams);
    if (r->faults)
        json_object_set_new(object, "first_fault", fault_json(&r->first));
    if (r->torn_bytes)
        json_object_set_new(object, "torn",
                            json_pack("{s:s,s:o}", "file", r->torn_file, "byte", json_u64(r->torn_at)));
    return object;
}

/* What was asked for. */
struct wish {
    bool log; /* alone */
    bool audit;
    bool replay;
};

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

static int verify_state(struct verifying *v, const struct wish *wish, pawl_error *error)
{
    struct progress progress;
    pawl_replay_options options = {.dir = v->dir,
                                   .backup = true,
                                   .audit = wish->audit,
                                   .reproject = wish->replay,
                                   .progress = progress_count,
                                   .arg = &progress};
    progress_begin(&progress, "deriving", "events");
    int status = pawl_replay(&options, &v->state, error);
    v->state_seconds = seconds_now() - progress.begun;
    progress_end(&progress);
    return status;
}

/* Put what was found of the state into an object that says what was found of the log. */
static void add_state(json_t *object, const struct verifying *v, const struct wish *wish)
{
    json_t *state = state_json(&v->state);
    json_object_set_new(state, "seconds", json_real(v->state_seconds));
    json_object_set_new(object, "state", state);
    if (wish->audit || v->state.checkpoint.compared)
        json_object_set_new(object, "audit", audit_json(&v->state));
    if (v->state.live.differences || v->state.checkpoint.differences || v->state.lanes.differences)
        json_object_set_new(object, "sound", json_false());
}

/* Takes found. Returns the exit code. */
static int say_found(const struct options *options, json_t *found)
{
    pawl_error error = {0};
    bool sound = json_is_true(json_object_get(found, "sound"));
    if (options_get(options, "json"))
        say_json(found);
    else {
        print_verified(found);
        json_decref(found);
    }
    int status = say_finish(&error);
    if (status != PAWL_OK && status != PAWL_ECLOSED)
        return say_failure(options, &error);
    return sound ? CLI_OK : CLI_CORRUPT;
}

static int verify_here(const struct options *options, const struct wish *wish, const char *where)
{
    struct verifying v = {.where = where};
    pawl_error error = {0};
    json_t *found = NULL;
    int status = verify_log(&v, &error);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    if (wish->log)
        v.dir = NULL;
    if (v.dir)
        status = verify_state(&v, wish, &error);
    if (status == PAWL_OK)
        found = report_json(where, &v.log, v.log_seconds);
    if (found && v.dir)
        add_state(found, &v, wish);
    pawl_log_report_release(&v.log);
    return status == PAWL_OK ? say_found(options, found) : say_failure(options, &error);
}

/* A directory whose log is on Kafka: the log, and then the state. */
static int verify_node(const struct options *options, const struct wish *wish, const char *where,
                       const char *url)
{
    struct verifying v = {.where = where, .dir = where};
    pawl_error error = {0};
    json_t *log;
    int status = cluster_verified(url, &log, &error);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    bool sound = json_is_true(json_object_get(log, "sound"));
    json_t *found = json_pack("{s:s,s:b,s:o}", "dir", where, "sound", (int)sound, "kafka", log);
    if (sound)
        status = verify_state(&v, wish, &error);
    if (status != PAWL_OK) {
        json_decref(found);
        return say_failure(options, &error);
    }
    if (sound)
        add_state(found, &v, wish);
    return say_found(options, found);
}

static int verify_there(const struct options *options, const struct wish *wish)
{
    json_t *found;
    json_t *body = json_pack("{s:b,s:b}", "audit", (int)wish->audit, "replay", (int)wish->replay);
    int code = job_run(options, "verify", body, &found);
    return code == CLI_OK ? say_found(options, found) : code;
}

static int verify(const struct options *options, const struct wish *wish)
{
    pawl_error error = {0};
    pawl_directory directory;
    const char *url = NULL, *where;
    int status = wish->log ? PAWL_OK : session_url(options, &url, &error);
    if (status == PAWL_OK && url)
        return verify_there(options, wish);
    if (status == PAWL_OK && wish->log && (wish->audit || wish->replay))
        status = pawl_error_set(&error, PAWL_EINVAL, "a log alone has no state to compare: say --dir DIR");
    if (status == PAWL_OK)
        status = wish->log ? options_log(options, &where, &error) : options_dir(options, &where, &error);
    if (status != PAWL_OK)
        return say_usage(&error);
    if (options_is_cluster(where))
        return verify_cluster(options, where);
    if (!wish->log && pawl_directory_get(where, &directory, NULL) == PAWL_OK
        && options_is_cluster(directory.log))
        return verify_node(options, wish, where, directory.log);
    return verify_here(options, wish, where);
}

static int run_verify(const struct options *options)
{
    const struct wish wish = {.log = options_get(options, "log") != NULL,
                              .audit = options_get(options, "audit") != NULL,
                              .replay = options_get(options, "replay") != NULL};
    return verify(options, &wish);
}

static int run_audit(const struct options *options)
{
    const struct wish wish = {.audit = true, .replay = options_get(options, "replay") != NULL};
    return verify(options, &wish);
}

#define OPTION_REPLAY                                                                                          \
    {                                                                                                          \
        "replay", NULL, "work operations of lanes out again, and compare them with the log"                    \
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
        "their events, and the first one that comes out differently is named. Of a server it is a job, which "
        "is\n"
        "cancelled if this program is ended by SIGINT or SIGTERM.\n",
    .options = {OPTIONS_WHERE,
                OPTION_LOG,
                {"audit", NULL, "compare the checkpoint stores with the log, too"},
                OPTION_REPLAY,
                OPTION_JSON},
    .run = run_verify,
};

const struct command command_audit = {
    .name = "audit",
    .summary = "verify, and compare both stores of the state with the log",
    .about = "The same as 'pawl verify --audit': of the live and of the checkpoint stores it says which agree "
             "with\n"
             "the log.\n",
    .options = {OPTIONS_WHERE, OPTION_REPLAY, OPTION_JSON},
    .run = run_audit,
};

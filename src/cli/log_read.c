/* cli/log_read.c: print a stream's entries, and, if asked, go on as more become durable.
 *
 * Opens read-only: works beside a writer, and shows what is witnessed durable; after a writer that was killed
 * it says what it does not show, and with --recover has that recovered first. Everything runs on the log's one
 * shard, which has nothing else to do; the main thread only waits. What was printed is flushed whenever the
 * shard has come to the end of what it was given, so a follower sees an entry at once. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/latch.h"
#include "cli/left_out.h"
#include "cli/say.h"
#include "engine/log/log.h"

struct reading {
    pawl_task start;
    pawl_task flush;
    struct engine_log *log;
    pawl_stream stream;
    uint64_t from;
    uint64_t left; /* entries that may still be printed */
    bool json;
    bool following;
    pawl_read read;
    pawl_follow follow;
    struct latch over;
    int status;
    pawl_error error;
};

static void print_json(const pawl_entry *e)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *body = e->body.data;
    json_t *object = json_pack("{s:o,s:i}", "offset", json_u64(e->offset), "kind", (int)e->kind);
    json_t *text = json_stringn(e->body.size ? e->body.data : "", e->body.size);
    if (object && text) {
        json_object_set_new(object, "text", text);
        say_json(object);
        return;
    }
    json_decref(object);
    printf("{\"offset\":%" PRIu64 ",\"kind\":%u,\"hex\":\"", e->offset, e->kind);
    for (size_t i = 0; i < e->body.size; i++) {
        putchar(digits[body[i] >> 4]);
        putchar(digits[body[i] & 15]);
    }
    puts("\"}");
}

/* False: enough, or nobody reads it. */
static bool print(struct reading *r, const pawl_entry *e)
{
    if (r->json) {
        print_json(e);
    } else {
        printf("%" PRIu64 "\t", e->offset);
        if (e->body.size)
            fwrite(e->body.data, 1, e->body.size, stdout);
        putchar('\n');
    }
    if (r->following)
        (void)pawl_env_post(engine_log_env(r->log), 0, &r->flush);
    return --r->left > 0 && !ferror(stdout);
}

static bool visit_read(pawl_read *read, const pawl_entry *e, pawl_place place)
{
    (void)place;
    return print(read->arg, e);
}

static bool visit_follow(pawl_follow *follow, const pawl_entry *e, pawl_place place)
{
    (void)place;
    return print(follow->arg, e);
}

static void read_done(pawl_read *read)
{
    struct reading *r = read->arg;
    r->status = read->status;
    latch_set(&r->over);
}

static void follow_done(pawl_follow *follow)
{
    struct reading *r = follow->arg;
    r->status = follow->status;
    latch_set(&r->over);
}

static void flush(pawl_task *task)
{
    (void)task;
    fflush(stdout);
}

static void start(pawl_task *task)
{
    struct reading *r = (struct reading *)task;
    pawl_log *log = engine_log_port(r->log);
    if (r->following)
        r->follow = (pawl_follow){.stream = r->stream,
                                  .from = r->from,
                                  .visit = visit_follow,
                                  .done = follow_done,
                                  .arg = r,
                                  .error = &r->error};
    else
        r->read = (pawl_read){.stream = r->stream,
                              .from = r->from,
                              .limit = r->left,
                              .visit = visit_read,
                              .done = read_done,
                              .arg = r,
                              .error = &r->error};
    int status = r->following ? pawl_log_follow(log, &r->follow) : pawl_log_read(log, &r->read);
    if (status != PAWL_OK) {
        r->status = status;
        latch_set(&r->over);
    }
}

static int prepare(struct reading *r, const struct options *options, const char **ret_dir, pawl_error *error)
{
    const char *stream = options_get(options, "stream");
    int status = options_log(options, ret_dir, error);
    if (status == PAWL_OK && !stream)
        status = error_set(error, PAWL_EINVAL, "which stream? Say --stream raw/0");
    if (status == PAWL_OK)
        status = pawl_stream_parse(stream, &r->stream, error);
    if (status == PAWL_OK)
        status = options_number(options, "from", 1, 1, &r->from, error);
    if (status == PAWL_OK)
        status = options_number(options, "limit", 1, UINT64_MAX, &r->left, error);
    return status;
}

static void say_unwitnessed(struct reading *r)
{
    char stream[PAWL_STREAM_TEXT_MAX];
    struct left_out left_out = {.only = stream};
    pawl_stream_format(r->stream, stream);
    if (pawl_log_unwitnessed(engine_log_port(r->log), left_out_note, &left_out, NULL) == PAWL_OK)
        left_out_say(&left_out);
}

/* Where somebody writes there is nothing to recover: that one will say that it is durable, or die and leave it.
 */
static int recover(const char *dir, pawl_error *error)
{
    int status = pawl_log_recover(dir, error);
    if (status != PAWL_ELOCKED)
        return status;
    fprintf(stderr, "pawl: not recovered: %s\n", error->text);
    error_clear(error);
    return PAWL_OK;
}

static int run(const struct options *options)
{
    struct reading r = {.start.fn = start,
                        .flush.fn = flush,
                        .json = options_get(options, "json") != NULL,
                        .following = options_get(options, "follow") != NULL};
    pawl_error error = {0};
    const char *dir;
    if (prepare(&r, options, &dir, &error) != PAWL_OK)
        return say_usage(&error);
    int status = options_get(options, "recover") ? recover(dir, &error) : PAWL_OK;
    if (status == PAWL_OK)
        status = engine_log_open(dir, true, &r.log, &error);
    if (status != PAWL_OK)
        return say_failure(options, &error);
    if (r.following)
        say_unwitnessed(&r);
    latch_init(&r.over);
    status = pawl_env_post(engine_log_env(r.log), 0, &r.start);
    if (status == PAWL_OK) {
        latch_wait(&r.over);
        status = r.status;
        error = r.error;
    }
    if (status == PAWL_OK && !r.following)
        say_unwitnessed(&r);
    (void)engine_log_close(r.log);
    if (status != PAWL_OK) {
        fflush(stdout);
        error.code = status;
        return say_failure(options, &error);
    }
    status = say_finish(&error);
    return status == PAWL_OK || status == PAWL_ECLOSED ? CLI_OK : say_failure(options, &error);
}

const struct command command_log_read = {
    .name = "log read",
    .summary = "print a stream's entries, each with its offset",
    .about =
        "Prints OFFSET, a tab and the entry's bytes as they are, one entry a line. Works beside a writer, and\n"
        "shows what is known to be durable. After a crash, entries that were written last may be whole and "
        "not\n"
        "known to be durable: they are not shown, and stderr says how many they are, until a writer has "
        "opened\n"
        "the directory again, or --recover did. Without --recover nothing is written.\n",
    .options = {OPTION_DIR,
                OPTION_LOG,
                {"stream", "STREAM", "the stream to read: raw/0, plog/5, oplog/5/7.2, group0"},
                {"from", "N", "begin with this offset (1)"},
                {"limit", "N", "end after so many entries"},
                {"recover", NULL, "first make durable what a writer that was killed has left"},
                {"follow", NULL, "go on as more entries come, until interrupted"},
                OPTION_JSON},
    .run = run,
};

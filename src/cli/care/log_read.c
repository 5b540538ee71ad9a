/* cli/care/log_read.c: print a stream's entries, and, if asked, go on as more become durable.
 *
 * It opens the log read-only, so it works beside a writer, and shows only entries that are witnessed durable.
 * If a writer was killed, it says how many entries it does not show; with --recover it has them recovered
 * first.
 *
 * The main thread reads the entries that exist. Later ones are printed by the log's one shard, which has
 * nothing else to do and may wait for stdout; the main thread flushes stdout. The shard rings the bell for the
 * first entry after a flush: so an entry is seen at once, and many that come together cost one flush. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/show/left_out.h"
#include "cli/talk/feed.h"
#include "cli/talk/open.h"

struct reading {
    struct open_log log;
    pawl_stream stream;
    uint64_t from;
    uint64_t left; /* entries that may still be printed */
    bool json;
    int status;
    pawl_error error;

    /* While it follows. */
    bool following;
    pawl_follow follow;
    int bell; /* eventfd; -1: do not follow */
    atomic_bool unflushed;
    atomic_bool over;
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

/* False: no more entries are wanted, or nobody reads stdout. */
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
    if (r->following && !atomic_exchange(&r->unflushed, true))
        feed_ring(r->bell);
    return --r->left > 0 && !ferror(stdout);
}

/* --- entries that exist --- */

static bool visit_read(pawl_read *read, const pawl_entry *e, pawl_place place)
{
    (void)place;
    return print(read->arg, e);
}

static void read_all(struct reading *r)
{
    pawl_read request = {.stream = r->stream,
                         .from = r->from,
                         .limit = r->left,
                         .alone = true,
                         .visit = visit_read,
                         .arg = r,
                         .error = &r->error};
    int status = pawl_log_read(r->log.log, &request);
    r->status = status == PAWL_READ_DONE ? request.status : status;
    r->from = request.next;
}

/* --- entries to come --- */

static bool visit_follow(pawl_follow *follow, const pawl_entry *e, pawl_place place)
{
    (void)place;
    return print(follow->arg, e);
}

static void end_following(struct reading *r, int status)
{
    r->status = status;
    atomic_store(&r->over, true);
    feed_ring(r->bell);
}

static void follow_done(pawl_follow *follow)
{
    end_following(follow->arg, follow->status);
}

static void start_following(void *arg)
{
    struct reading *r = arg;
    r->follow = (pawl_follow){.stream = r->stream,
                              .from = r->from,
                              .visit = visit_follow,
                              .done = follow_done,
                              .arg = r,
                              .error = &r->error};
    int status = pawl_log_follow(r->log.log, &r->follow);
    if (status != PAWL_OK)
        end_following(r, status);
}

/* unflushed is cleared before the flush, so an entry that is printed meanwhile rings again. */
static void follow_all(struct reading *r)
{
    uint64_t rung;
    r->following = true;
    int status = pawl_env_run(r->log.env, 0, start_following, r);
    if (status != PAWL_OK)
        end_following(r, status);
    while (!atomic_load(&r->over)) {
        (void)!read(r->bell, &rung, sizeof rung);
        atomic_store(&r->unflushed, false);
        fflush(stdout);
    }
}

static int prepare(struct reading *r, const struct options *options, const char **ret_dir, pawl_error *error)
{
    const char *stream = options_get(options, "stream");
    int status = options_log(options, ret_dir, error);
    if (status == PAWL_OK && !stream)
        status = pawl_error_set(error, PAWL_EINVAL, "which stream? Say --stream raw/0");
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
    if (pawl_log_unwitnessed(r->log.log, left_out_note, &left_out, NULL) == PAWL_OK)
        left_out_say(&left_out);
}

/* If another process writes, there is nothing to recover: it will make the entries durable, or die and leave
 * them. */
static int recover(const char *dir, pawl_error *error)
{
    int status = pawl_log_recover(dir, error);
    if (status != PAWL_ELOCKED)
        return status;
    fprintf(stderr, "pawl: not recovered: %s\n", error->text);
    *error = (pawl_error){0};
    return PAWL_OK;
}

/* A follower says at once what it does not show, because it may never end. */
static void read_and_follow(struct reading *r)
{
    bool follow = r->bell >= 0;
    if (follow)
        say_unwitnessed(r);
    read_all(r);
    if (r->status == PAWL_OK && !follow)
        say_unwitnessed(r);
    fflush(stdout);
    if (r->status == PAWL_OK && follow && r->left > 0 && !ferror(stdout))
        follow_all(r);
}

static int open_reading(struct reading *r, const struct options *options, const char *dir, pawl_error *error)
{
    int status = options_get(options, "recover") ? recover(dir, error) : PAWL_OK;
    if (status == PAWL_OK && options_get(options, "follow")) {
        r->bell = eventfd(0, EFD_CLOEXEC);
        status = r->bell < 0 ? pawl_error_errno(error, errno, "cannot prepare to wait") : PAWL_OK;
    }
    return status == PAWL_OK ? open_log(dir, true, &r->log, error) : status;
}

static int run(const struct options *options)
{
    struct reading r = {.bell = -1, .json = options_get(options, "json") != NULL};
    pawl_error error = {0};
    const char *dir;
    if (prepare(&r, options, &dir, &error) != PAWL_OK)
        return say_usage(&error);
    if (open_reading(&r, options, dir, &error) != PAWL_OK)
        return say_failure(options, &error);
    read_and_follow(&r);
    (void)close_log(&r.log);
    if (r.bell >= 0)
        close(r.bell);
    if (r.status != PAWL_OK) {
        fflush(stdout);
        r.error.code = r.status;
        return say_failure(options, &r.error);
    }
    int status = say_finish(&error);
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
                {"stream", "STREAM", "the stream to read: raw/0, plog/5, oplog/5/7.2, group0", .needed = true},
                {"from", "N", "begin with this offset (1)"},
                {"limit", "N", "end after so many entries"},
                {"recover", NULL, "first make durable what a writer that was killed has left"},
                {"follow", NULL, "go on as more entries come, until interrupted"},
                OPTION_JSON},
    .run = run,
};

/* engine/check/import.c: the log of a directory, copied into an empty cluster.
 *
 *     lock DIR ─► recover, verify its log ─► look at the cluster ─► claim group0 ─► copy group0, then the rest ─► compare
 *     ─► derive the state from the cluster, compare it with DIR's ─► import_done
 *
 * Invariants
 *   I1  Before import_done counts, every entry of DIR's log is in the cluster, and nothing else.
 *   I2  group0 is claimed under an ID of imports before anything is written, so nodes refuse from then on
 *       (core/group0/import.h).
 *   I3  Only a cluster without entries, or one that an import has claimed, is written to. */
#include <pawl/cluster.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter/journal/journal.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "core/group0/command.h"
#include "engine/check/move.h"
#include "engine/check/replay.h"
#include "engine/directory/directory.h"
#include "engine/log/log.h"

#define ATTEMPTS    8
#define ARENA_CHUNK ((size_t)1024)

static const pawl_stream GROUP0 = {.kind = PAWL_STREAM_GROUP0};

struct importing {
    const pawl_cluster_move_options *options;
    const char *dir;
    struct node_file file;
    int lock;
    struct engine_log *from;
    struct engine_log *to;
    uint64_t node; /* this run's */
    struct move move;
    struct move_stream
        *streams; /* in the order in which they are copied: group0 is the first, even if it is empty */
    size_t count, room;
    pawl_cluster_move_report report;
    pawl_error *error;
};

/* --- the directory --- */

static int order(pawl_stream s)
{
    return s.kind == PAWL_STREAM_GROUP0  ? 0
           : s.kind == PAWL_STREAM_PLOG  ? 1
           : s.kind == PAWL_STREAM_OPLOG ? 2
                                         : 3;
}

static int in_order(const void *a, const void *b)
{
    const struct move_stream *x = a, *y = b;
    return order(x->id) - order(y->id);
}

static int list_streams(struct importing *i, const pawl_log_report *report)
{
    bool group0 = false;
    i->room = report->stream_count + 1;
    i->streams = mem_new(NULL, i->room, sizeof *i->streams);
    if (!i->streams)
        return error_set(i->error, PAWL_ENOMEM, "no memory for a list of streams");
    for (size_t k = 0; k < report->stream_count; k++) {
        const pawl_log_report_stream *s = &report->streams[k];
        if (s->entries == 0)
            continue;
        group0 = group0 || s->id.kind == PAWL_STREAM_GROUP0;
        i->streams[i->count++] = (struct move_stream){.id = s->id, .last = s->last};
        i->report.entries += s->last;
        i->report.streams++;
        i->move.total += 2 * s->last + (s->id.kind == PAWL_STREAM_PLOG ? s->last : 0);
    }
    if (!group0)
        i->streams[i->count++] = (struct move_stream){.id = GROUP0};
    qsort(i->streams, i->count, sizeof *i->streams, in_order);
    return PAWL_OK;
}

static bool go_on(void *arg, uint64_t done, uint64_t total)
{
    struct importing *i = arg;
    (void)done, (void)total; /* bytes, and not entries */
    return move_tell(&i->move, i->error) == PAWL_OK;
}

static int verify_source(struct importing *i)
{
    pawl_log_report report;
    int status = pawl_verify_log(i->dir, go_on, i, &report, i->error);
    if (status != PAWL_OK)
        return status;
    if (report.faults)
        status = error_set(i->error, PAWL_ECORRUPT, "the log of %s is damaged: %.300s; see 'pawl doctor'",
                           i->dir, report.first.error.text);
    else
        status = list_streams(i, &report);
    pawl_log_report_release(&report);
    return status;
}

/* Opened for writing, it has made durable what a killed writer left. */
static int open_source(struct importing *i)
{
    int status = node_file_read(i->dir, &i->file, i->error);
    if (status != PAWL_OK)
        return status;
    if (node_is_derived(&i->file))
        return error_set(i->error, PAWL_EREADONLY, "%s holds only state, derived from the log in %.300s",
                         i->dir, i->file.log);
    if (node_is_on_kafka(&i->file))
        return error_set(i->error, PAWL_EINVAL, "the log of %s is on Kafka already: %.300s", i->dir,
                         i->file.log);
    status = node_lock(i->dir, NODE_LOCK, &i->lock, i->error);
    if (status != PAWL_OK)
        return error_wrap(i->error, status, "%s", i->dir);
    status = engine_log_open(i->dir, false, &i->from, i->error);
    if (status != PAWL_OK)
        return error_wrap(i->error, status, "the log of %s", i->dir);
    i->move.from = engine_log_port(i->from);
    return verify_source(i);
}

/* --- the cluster --- */

static const struct move_stream *find(const struct importing *i, pawl_stream id)
{
    for (size_t k = 0; k < i->count; k++)
        if (pawl_stream_equal(i->streams[k].id, id))
            return &i->streams[k];
    return NULL;
}

/* I3. begun: by an import that was not ended; then only what DIR has may be there. */
static int check_content(struct importing *i, bool begun)
{
    pawl_cluster_report report;
    int status = pawl_cluster_verify(i->options->url, go_on, i, &report, i->error);
    if (status != PAWL_OK)
        return status;
    if (report.faults)
        status = error_set(i->error, PAWL_ECORRUPT, "%s", report.first.text);
    for (size_t k = 0; status == PAWL_OK && k < report.stream_count; k++) {
        const pawl_cluster_report_stream *s = &report.streams[k];
        const struct move_stream *mine = find(i, s->id);
        char name[PAWL_STREAM_TEXT_MAX];
        if (s->entries == 0 || (begun && mine && s->entries <= mine->last))
            continue;
        pawl_stream_format(s->id, name);
        status = error_set(
            i->error, PAWL_EEXISTS,
            "%.300s is not empty: %s has %" PRIu64 " entries%s; a log is imported into an empty cluster",
            i->options->url, name, s->entries, begun ? ", which the log of the directory has not" : "");
    }
    pawl_cluster_report_release(&report);
    return status;
}

static int refuse_ended(struct importing *i, const struct import_watch *watch)
{
    const struct import_done *done = &watch->done;
    if (id128_equal(done->source, journal_id(i->move.from)) && done->entries == i->report.entries) {
        i->report.ended_before = true;
        return PAWL_OK;
    }
    return error_set(i->error, PAWL_EEXISTS,
                     "%.300s is not empty: the log of %.*s was imported into it, %" PRIu64 " entries",
                     i->options->url, (int)done->name_size, done->name, done->entries);
}

static int check_partitions(struct importing *i)
{
    pawl_cluster_topics topics;
    int status = pawl_cluster_check(i->options->url, 0, &topics, i->error);
    if (status == PAWL_OK && topics.partitions != i->file.partitions)
        status = error_set(i->error, PAWL_EINVAL,
                           "%.300s has %" PRIu32 " partitions, and %s has %" PRIu32
                           ": they must be as many ('pawl cluster init --partitions %" PRIu32 "')",
                           i->options->url, topics.partitions, i->dir, i->file.partitions, i->file.partitions);
    return status;
}

static int open_target(struct importing *i)
{
    struct import_watch watch;
    int status = check_partitions(i);
    if (status != PAWL_OK)
        return status;
    i->node = IMPORT_NODES | (uint32_t)node_id_new();
    status = engine_log_open_as(i->options->url, i->node, &i->to, i->error);
    if (status != PAWL_OK)
        return status;
    i->move.to = engine_log_port(i->to);
    status = import_look(i->move.to, &watch, i->error);
    if (status != PAWL_OK)
        return status;
    if (watch.state == IMPORT_ENDED)
        return refuse_ended(i, &watch);
    return check_content(i, watch.state == IMPORT_UNDER_WAY);
}

/* --- the copy --- */

static int copy_all(struct importing *i)
{
    int status = PAWL_OK;
    for (size_t k = 0; status == PAWL_OK && k < i->count; k++) /* I2: group0 is the first */
        status = move_copy(&i->move, &i->streams[k], i->error);
    for (size_t k = 0; status == PAWL_OK && k < i->count; k++)
        status = move_compare(&i->move, i->streams[k].id, i->streams[k].last, i->error);
    return status;
}

static bool derived_on(void *arg, uint64_t done, uint64_t total)
{
    struct importing *i = arg;
    uint64_t copied = i->move.done;
    (void)total;
    i->move.done = copied + done;
    int status = move_tell(&i->move, i->error);
    i->move.done = copied;
    return status == PAWL_OK;
}

/* The state that the cluster's log leads to is the one that DIR has. */
static int compare_state(struct importing *i)
{
    pawl_state_report state;
    const pawl_replay_options replay = {
        .dir = i->dir, .progress = derived_on, .arg = i, .backup = true, .audit = true};
    int status = replay_with_log(&replay, i->options->url, &state, i->error);
    if (status == PAWL_ENOTFOUND) /* it has no state, and derives it when it is opened */
        return PAWL_OK;
    if (status != PAWL_OK)
        return status;
    const pawl_state_side *side = state.live.differences ? &state.live : &state.checkpoint;
    if (side->differences)
        return error_set(i->error, PAWL_ECORRUPT,
                         "the state of %s is not the one that its log leads to: %.300s; see 'pawl verify'",
                         i->dir, side->first.text);
    i->report.events = state.events;
    i->report.compared = state.live.compared + state.checkpoint.compared;
    i->report.compared = i->report.compared < i->file.partitions ? i->report.compared : i->file.partitions;
    i->move.done += state.events;
    return PAWL_OK;
}

static int write_done(struct importing *i, uint64_t epoch, struct arena *arena)
{
    pawl_env *env = engine_log_env(i->to);
    struct import_done done = {.node = i->node,
                               .time = pawl_env_wall_now(env).ns,
                               .entries = i->report.entries,
                               .source = journal_id(i->move.from)};
    pawl_entry entry = {.stream = GROUP0, .epoch = epoch, .offset = i->streams[0].last + 1};
    done.name_size = name_directory(i->dir, done.name);
    int status = group0_import_done_encode(&done, arena, &entry.body);
    if (status != PAWL_OK)
        return error_set(i->error, status, "no memory to end the import");
    return move_append(&i->move, &entry, i->error);
}

/* I1. After an unknown outcome the next claim tells whether it is there. */
static int end(struct importing *i)
{
    struct arena arena;
    uint64_t epoch, next;
    int status = PAWL_EUNKNOWN;
    arena_init(&arena, NULL, ARENA_CHUNK);
    for (unsigned attempt = 0; status == PAWL_EUNKNOWN && attempt < ATTEMPTS; attempt++) {
        status = move_claim(&i->move, GROUP0, &epoch, &next, i->error);
        if (status != PAWL_OK)
            continue;
        if (next == i->streams[0].last + 1) {
            status = write_done(i, epoch, &arena);
            continue;
        }
        struct import_watch watch;
        status = import_look(i->move.to, &watch, i->error);
        if (status == PAWL_OK && (watch.state != IMPORT_ENDED || next != i->streams[0].last + 2))
            status = error_set(i->error, PAWL_EEXISTS,
                               "%.300s: another process has written to group0 meanwhile", i->options->url);
    }
    arena_release(&arena);
    return status;
}

static int import_all(struct importing *i)
{
    int status = open_source(i);
    if (status == PAWL_OK)
        status = open_target(i);
    if (status == PAWL_OK && i->report.ended_before)
        return move_tell(&i->move, i->error);
    if (status == PAWL_OK)
        status = copy_all(i);
    if (status == PAWL_OK)
        status = compare_state(i);
    if (status == PAWL_OK) {
        i->move.done = i->move.total;
        status = move_tell(&i->move, i->error); /* the last chance to cancel */
    }
    return status == PAWL_OK ? end(i) : status;
}

int pawl_cluster_import(const pawl_cluster_move_options *options, pawl_cluster_move_report *ret_report,
                        pawl_error *error)
{
    pawl_error words = {0};
    struct importing i = {
        .options = options,
        .lock = -1,
        .error = error ? error : &words,
        .move = {
            .verb = "the import", .to_name = options->url, .progress = options->progress, .arg = options->arg}};
    if (!cluster_is(options->url))
        return error_set(error, PAWL_EINVAL, "%s: a log on Kafka is kafka://HOST:PORT/CLUSTER", options->url);
    int status = engine_directory(options->dir, &i.dir, error);
    if (status != PAWL_OK)
        return status;
    status = import_all(&i);
    if (i.to)
        (void)engine_log_close(i.to);
    if (i.from)
        (void)engine_log_close(i.from);
    if (i.lock >= 0)
        close(i.lock);
    mem_free(NULL, i.streams, i.streams ? i.room * sizeof *i.streams : 0);
    i.report.copied = i.move.copied;
    if (status == PAWL_OK)
        *ret_report = i.report;
    return status;
}

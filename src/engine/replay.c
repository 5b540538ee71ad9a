#include "engine/replay.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter/lmdb/store.h"
#include "base/alloc.h"
#include "base/error.h"
#include "core/state/key.h"
#include "core/state/replay.h"
#include "engine/node.h"

#define EVENTS_AT_ONCE 4096 /* in one transaction */
#define ARENA_CHUNK    ((size_t)256 * 1024)

struct replaying {
    const struct replay_options *options;
    struct replay_report *report;
    pawl_engine *source;
    pawl_store **stores; /* of the derived state, one a shard */
    char to[NODE_PATH_MAX];

    /* The partition at hand. */
    uint16_t partition;
    pawl_store *theirs;    /* DIR's */
    pawl_reader *snapshot; /* of it */
    struct position stored;
    uint64_t view_offset; /* up to which DIR's sequences view is complete */
    struct position position;
    struct replay replay;
    struct overlay overlay;
    struct arena memory;
    uint64_t uncommitted;
    int status;
    pawl_error *error;
};

static const struct schema *schema_at(void *ctx, uint64_t position)
{
    return engine_schema_at(ctx, position);
}

__attribute__((format(printf, 2, 3))) static void differ(struct replaying *r, const char *format, ...)
{
    char words[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    if (r->report->differences++ == 0)
        error_set(&r->report->first, PAWL_ECORRUPT, "partition %u: %s", r->partition, words);
}

/* --- comparing --- */

/* The range of a table's rows that belong to the partition: a slice of its tokens. */
static pawl_range table_range(const struct replaying *r, uint32_t table, uint8_t from[12], uint8_t to[12])
{
    unsigned bits = (unsigned)__builtin_ctz(r->source->file.partitions);
    uint64_t width = bits == 0 ? 0 : UINT64_C(1) << (64 - bits); /* 0: all of them */
    bool last = (uint32_t)r->partition + 1 == r->source->file.partitions;
    put_u32_sorted(from, table);
    put_u64_sorted(from + 4, r->partition * width);
    put_u32_sorted(to, last ? table + 1 : table);
    put_u64_sorted(to + 4, last ? 0 : (r->partition + UINT64_C(1)) * width);
    return (pawl_range){.space = STATE_SPACE, .from = {from, 12}, .to = {to, 12}};
}

struct comparing {
    struct replaying *replaying;
    pawl_reader *other;
    uint8_t space;
    const char *here; /* which side the scan is of */
    const char *there;
    uint64_t rows;
    bool only_missing; /* rows that both have were compared by the other scan */
    int status;
};

static void describe_key(pawl_bytes key, char *text, size_t size)
{
    const uint8_t *at = key.data;
    if (key.size < KEY_WORKSPACE)
        snprintf(text, size, "a key of %zu bytes", key.size);
    else if (key.size == KEY_NUMBERED)
        snprintf(text, size, "table %u, workspace %" PRIu64 ", row %" PRIu64, key_table(key),
                 get_u64_sorted(at + 12), get_u64_sorted(at + KEY_WORKSPACE));
    else
        snprintf(text, size, "table %u, workspace %" PRIu64 ", a key of %zu bytes", key_table(key),
                 get_u64_sorted(at + 12), key.size - KEY_WORKSPACE);
}

static bool compare_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct comparing *c = arg;
    pawl_bytes other;
    char text[128];
    int status = pawl_store_get(c->other, c->space, key, &other);
    c->rows++;
    if (status != PAWL_OK && status != PAWL_ENOTFOUND) {
        c->status = status;
        return false;
    }
    if (status == PAWL_OK && (c->only_missing || bytes_equal(value, other)))
        return true;
    describe_key(key, text, sizeof text);
    if (status == PAWL_ENOTFOUND)
        differ(c->replaying, "%s: %s has it, %s has not", text, c->here, c->there);
    else
        differ(c->replaying, "%s: %s and %s have different values", text, c->here, c->there);
    return true;
}

static int compare_range(struct replaying *r, pawl_range range)
{
    pawl_reader *derived = pawl_store_writer(r->replay.store);
    struct comparing c = {.replaying = r,
                          .other = derived,
                          .space = range.space,
                          .here = "the stored state",
                          .there = "the derived one"};
    int status = pawl_store_scan(r->snapshot, range, false, compare_row, &c);
    if (status != PAWL_OK || c.status != PAWL_OK)
        return status != PAWL_OK ? status : c.status;
    struct comparing back = {.replaying = r,
                             .other = r->snapshot,
                             .space = range.space,
                             .here = "the derived state",
                             .there = "the stored one",
                             .only_missing = true};
    status = pawl_store_scan(derived, range, false, compare_row, &back);
    return status != PAWL_OK ? status : back.status;
}

static const pawl_digest *digest_of(const struct position *position, uint32_t table)
{
    static const pawl_digest none;
    for (size_t i = 0; i < position->table_count; i++)
        if (position->tables[i].table == table)
            return &position->tables[i].digest;
    return &none;
}

static int compare_table(struct replaying *r, uint32_t table)
{
    uint8_t from[12], to[12];
    pawl_range range = table_range(r, table, from, to);
    pawl_digest there;
    uint64_t before = r->report->differences;
    int status = pawl_store_digest(r->snapshot, range, &there);
    if (status != PAWL_OK)
        return status;
    const pawl_digest *derived = digest_of(&r->position, table), *kept = digest_of(&r->stored, table);
    if (!pawl_digest_equal(&there, derived))
        status = compare_range(r, range);
    if (status == PAWL_OK && before == r->report->differences && !pawl_digest_equal(kept, derived))
        differ(r, "table %u: the rows are right, but not the digest that the state keeps of them", table);
    return status;
}

/* Every table that either side has. */
static int compare_state(struct replaying *r)
{
    int status = PAWL_OK;
    r->report->compared++;
    if (r->stored.offset > 0 && r->stored.checksum != r->position.checksum)
        differ(r, "the state was made from another event at offset %" PRIu64, r->stored.offset);
    for (size_t i = 0; status == PAWL_OK && i < r->position.table_count; i++)
        status = compare_table(r, r->position.tables[i].table);
    for (size_t i = 0; status == PAWL_OK && i < r->stored.table_count; i++)
        if (digest_of(&r->position, r->stored.tables[i].table)->rows == 0)
            status = compare_table(r, r->stored.tables[i].table);
    return status;
}

static int compare_view(struct replaying *r)
{
    uint8_t from[VIEW_KEY_BYTES], to[VIEW_KEY_BYTES];
    pawl_range range = {.space = VIEW_SPACE,
                        .from = view_key(r->partition, 1, 0, from),
                        .to = view_key((uint64_t)r->partition + 1, 0, 0, to)};
    return compare_range(r, range);
}

/* --- deriving --- */

/* The last numbers that the event took, as the view would have them. */
static int note_numbers(struct replaying *r, pawl_bytes body)
{
    struct envelope envelope;
    int status = envelope_decode(body, &envelope, r->error);
    for (size_t i = 0; status == PAWL_OK && i < envelope.count; i++) {
        struct event_numbers n = envelope_numbers(&envelope, i);
        uint8_t key[VIEW_KEY_BYTES], value[VIEW_VALUE_BYTES];
        put_u64(value, n.first + n.count - 1);
        status = pawl_store_put(r->replay.store, VIEW_SPACE, view_key(r->partition, envelope.wsid, n.seq, key),
                                (pawl_bytes){value, sizeof value});
    }
    return status;
}

static int commit(struct replaying *r)
{
    int status = replay_commit(&r->replay);
    r->uncommitted = 0;
    arena_reset(&r->memory);
    if (status != PAWL_OK)
        return error_set(r->error, status, "cannot write to %s", r->to);
    if (r->options->progress)
        r->options->progress(r->options->arg, r->report->events);
    return PAWL_OK;
}

static bool derive_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct replaying *r = read->arg;
    r->status = replay_event(&r->replay, entry->offset, place, entry->body, r->error);
    if (r->status == PAWL_OK && entry->offset <= r->view_offset)
        r->status = note_numbers(r, entry->body);
    if (r->status != PAWL_OK) {
        error_wrap(r->error, r->status, "plog/%u, offset %" PRIu64, r->partition, entry->offset);
        return false;
    }
    r->report->events++;
    if (++r->uncommitted == EVENTS_AT_ONCE)
        r->status = commit(r);
    if (r->status == PAWL_OK && entry->offset == r->view_offset)
        r->status = compare_view(r);
    if (r->status == PAWL_OK && entry->offset == r->stored.offset)
        r->status = compare_state(r);
    return r->status == PAWL_OK;
}

static int read_view_offset(struct replaying *r)
{
    uint8_t key[VIEW_KEY_BYTES];
    pawl_bytes value;
    int status =
        pawl_store_get(r->snapshot, VIEW_SPACE, view_key(r->partition, 0, SEQ_PLOG_OFFSET, key), &value);
    r->view_offset = status == PAWL_OK && value.size == VIEW_VALUE_BYTES ? get_u64(value.data) : 0;
    return status == PAWL_ENOTFOUND ? PAWL_OK : status;
}

static int derive_partition(struct replaying *r)
{
    uint64_t limit = r->options->until ? r->options->until : UINT64_MAX, next;
    int status = engine_read_plog(r->source, r->partition, 1, limit, derive_entry, r, &next, r->error);
    if (status == PAWL_OK)
        status = r->status;
    if (status == PAWL_OK && r->uncommitted > 0)
        status = commit(r);
    if (status != PAWL_OK)
        return status;
    uint64_t last = next - 1;
    if (!r->options->until && last < r->stored.offset)
        differ(r, "the state is at offset %" PRIu64 ", the log ends at %" PRIu64, r->stored.offset, last);
    if (!r->options->until && last < r->view_offset)
        differ(r, "the sequences view is at offset %" PRIu64 ", the log ends at %" PRIu64, r->view_offset,
               last);
    r->report->behind += last > r->stored.offset;
    if (r->stored.offset == 0 && !r->options->until)
        r->report->compared++; /* nothing derived yet: nothing can differ */
    for (size_t i = 0; i < r->position.table_count; i++)
        r->report->rows += r->position.tables[i].digest.rows;
    return PAWL_OK;
}

/* One snapshot of DIR's state for a partition: it is a file that nobody may be writing to, or a moment of one
 * that somebody is. */
static int replay_partition(struct replaying *r, uint32_t partition)
{
    const pawl_allocator *alloc = r->options->allocator;
    uint32_t shard = partition % r->source->file.shards;
    r->partition = (uint16_t)partition;
    r->theirs = r->source->shards[shard].store;
    r->status = PAWL_OK;
    r->uncommitted = 0;
    position_init(&r->stored, alloc, r->partition);
    position_init(&r->position, alloc, r->partition);
    r->replay.store = r->stores[shard];
    r->replay.position = &r->position;
    int status = pawl_store_snapshot(r->theirs, &r->snapshot);
    if (status != PAWL_OK)
        return error_set(r->error, status, "cannot read the state of partition %u", partition);
    status = position_read(&r->stored, r->snapshot, r->error);
    if (status == PAWL_OK)
        status = read_view_offset(r);
    if (status == PAWL_OK)
        status = derive_partition(r);
    pawl_store_abort(r->replay.store);
    pawl_store_release(r->theirs, r->snapshot);
    position_release(&r->position);
    position_release(&r->stored);
    return status;
}

/* --- where it goes --- */

static int open_target(struct replaying *r, pawl_error *error)
{
    const struct replay_options *o = r->options;
    struct node_file file = r->source->file;
    if (o->to) {
        char source[NODE_PATH_MAX], absolute[NODE_PATH_MAX];
        snprintf(r->to, sizeof r->to, "%s", o->to);
        if (access(r->to, F_OK) == 0)
            return error_set(error, PAWL_EEXISTS, "%s exists already", r->to);
        int status = node_path(o->dir, source, error, "log");
        if (status != PAWL_OK)
            return status;
        if (!file.log[0] && !realpath(source, absolute))
            return error_errno(error, errno, "cannot find %s", source);
        if (!file.log[0])
            snprintf(file.log, sizeof file.log, "%s", absolute);
    } else {
        const char *temporary = getenv("TMPDIR");
        snprintf(r->to, sizeof r->to, "%s/pawl-replay-XXXXXX", temporary ? temporary : "/tmp");
        if (!mkdtemp(r->to))
            return error_errno(error, errno, "cannot make %s", r->to);
    }
    return node_file_make(r->to, &file, error);
}

static int open_stores(struct replaying *r, pawl_error *error)
{
    r->stores = mem_new(r->options->allocator, r->source->file.shards, sizeof r->stores[0]);
    if (!r->stores)
        return error_set(error, PAWL_ENOMEM, "no memory to replay");
    for (uint32_t i = 0; i < r->source->file.shards; i++) {
        char path[NODE_PATH_MAX];
        struct lmdb_options options = {.dir = path, .mode = PAWL_STORE_FAST, .alloc = r->options->allocator};
        int status = node_path(r->to, path, error, "state/%u", i);
        if (status == PAWL_OK)
            status = lmdb_store_open(&options, NULL, &r->stores[i], error);
        if (status != PAWL_OK)
            return status;
    }
    return PAWL_OK;
}

static int close_stores(struct replaying *r, pawl_error *error)
{
    int status = PAWL_OK;
    for (uint32_t i = 0; r->stores && i < r->source->file.shards; i++) {
        int closed = r->stores[i] ? pawl_store_close(r->stores[i]) : PAWL_OK;
        if (status == PAWL_OK && closed != PAWL_OK)
            status = error_set(error, closed, "cannot close %s", r->to);
    }
    mem_free(r->options->allocator, r->stores, r->stores ? r->source->file.shards * sizeof r->stores[0] : 0);
    return status;
}

/* The tree that this call made: files and folders, two levels deep. */
static void remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char below[NODE_PATH_MAX + 256];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (unlink(below) != 0 && errno == EISDIR && strlen(below) < NODE_PATH_MAX)
            remove_tree(below);
    }
    if (dir)
        closedir(dir);
    (void)rmdir(path);
}

static int replay_all(struct replaying *r, pawl_error *error)
{
    int status = open_stores(r, error);
    r->error = error;
    for (uint32_t i = 0; status == PAWL_OK && i < r->source->file.partitions; i++)
        status = replay_partition(r, i);
    int closed = close_stores(r, error);
    return status != PAWL_OK ? status : closed;
}

int engine_replay(const struct replay_options *options, struct replay_report *ret_report, pawl_error *error)
{
    struct replay_report report = {0};
    struct replaying r = {.options = options, .report = &report};
    pawl_options reading = {.read_only = true, .allocator = options->allocator};
    int status = pawl_open(options->dir, &reading, &r.source, error);
    if (status != PAWL_OK)
        return status;
    status = open_target(&r, error);
    if (status == PAWL_OK) {
        arena_init(&r.memory, options->allocator, ARENA_CHUNK);
        overlay_init(&r.overlay, options->allocator);
        uint8_t *scratch = mem_new(options->allocator, 1, STATE_SCRATCH_BYTES);
        r.replay = (struct replay){.overlay = &r.overlay,
                                   .memory = &r.memory,
                                   .scratch = scratch,
                                   .schema_at = schema_at,
                                   .ctx = r.source};
        status = scratch ? replay_all(&r, error) : error_set(error, PAWL_ENOMEM, "no memory to replay");
        mem_free(options->allocator, scratch, STATE_SCRATCH_BYTES);
        arena_release(&r.memory);
        overlay_release(&r.overlay);
        if (!options->to || status != PAWL_OK)
            remove_tree(r.to);
    }
    pawl_close(r.source);
    if (status == PAWL_OK)
        *ret_report = report;
    return status;
}

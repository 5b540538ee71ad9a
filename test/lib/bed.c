#include "test/lib/bed.h"

#include "adapter/mem/env.h"
#include "test/lib/test.h"

#define SEGMENT_BYTES 8192
#define GROUP_MAX     8
#define TEXT_MAX      4096

void model_init(struct model *model)
{
    *model = (struct model){0};
    model->streams[0].id = (pawl_stream){.kind = PAWL_STREAM_RAW};
    model->streams[1].id = (pawl_stream){.kind = PAWL_STREAM_PLOG, .partition = 7};
}

void bed_init(struct bed *bed, struct ramdisk *disk, uint64_t seed)
{
    *bed = (struct bed){.disk = disk};
    model_init(&bed->model);
    struct mem_world_options world = {.seed = seed};
    struct mem_env_options env = {.shards = 1};
    assert_ok(mem_world_open(&world, &bed->world, NULL));
    assert_ok(mem_env_open(bed->world, &env, &bed->env, NULL));
}

void bed_release(struct bed *bed)
{
    if (bed->log)
        bed_close(bed);
    mem_world_close(bed->world);
    ramdisk_free(bed->disk);
}

int bed_open(struct bed *bed)
{
    struct journal_options options = {
        .dir = "/ram",
        .env = mem_env_port(bed->env),
        .alloc = bed->alloc,
        .disk = ramdisk_disk(bed->disk),
        .segment_bytes = SEGMENT_BYTES,
        .no_threads = true,
    };
    bed->error.text[0] = '\0';
    return journal_open(&options, &bed->log, &bed->error);
}

void bed_close(struct bed *bed)
{
    assert_true(pawl_log_close(bed->log) != PAWL_EMISUSE);
    bed->log = NULL;
}

void bed_abandon(struct bed *bed)
{
    ramdisk_off(bed->disk);
    bed_close(bed);
}

static void no_more(pawl_claim *claim)
{
    claim->arg = NULL;
}

/* One that is acknowledged is truth from this moment on: the next call of the disk may already be the last. */
static void acknowledge(struct bed_stream *s, int status)
{
    if (status == PAWL_OK) {
        s->truth++;
        s->pending--;
    }
}

static void append_over(pawl_append *append)
{
    acknowledge(append->arg, append->status);
    append->arg = NULL;
}

int bed_claim(struct bed *bed, size_t stream)
{
    struct bed_stream *s = &bed->model.streams[stream];
    pawl_claim claim = {.stream = s->id, .done = no_more, .arg = bed, .error = &bed->error};
    int status = pawl_log_claim(bed->log, &claim);
    if (status != PAWL_OK)
        return status;
    journal_pump(bed->log);
    assert_null(claim.arg);
    if (claim.status == PAWL_OK) {
        s->epoch = claim.epoch;
        s->next = claim.next;
    }
    return claim.status;
}

/* The text of an attempt: its number and padding, so that no two are the same. */
static void make_text(uint32_t tag, size_t bytes, char *text)
{
    char head[16];
    int n = snprintf(head, sizeof head, "#%u.", tag);
    for (size_t i = 0; i < bytes; i++)
        text[i] = i < (size_t)n ? head[i] : (char)('a' + (tag + i) % 26);
}

static void issue(struct bed_stream *s, uint32_t tag)
{
    assert_true(s->truth + s->pending < BED_ENTRIES_MAX);
    s->tags[s->truth + s->pending++] = tag;
}

int bed_append(struct bed *bed, size_t stream, size_t count, size_t bytes)
{
    struct bed_stream *s = &bed->model.streams[stream];
    char texts[GROUP_MAX][TEXT_MAX];
    pawl_append appends[GROUP_MAX];
    pawl_append_entry entries[GROUP_MAX];
    int first = PAWL_OK;
    size_t refused = 0;
    assert_true(count <= GROUP_MAX && bytes <= TEXT_MAX && bytes >= 8);
    for (size_t i = 0; i < count; i++) {
        uint32_t tag = ++bed->model.attempts;
        make_text(tag, bytes, texts[i]);
        issue(s, tag);
        entries[i] = (pawl_append_entry){
            .entry = {.stream = s->id, .epoch = s->epoch, .offset = s->next + i, .body = {texts[i], bytes}}};
        appends[i] = (pawl_append){.entries = &entries[i],
                                   .count = 1,
                                   .alone = count == 1,
                                   .done = append_over,
                                   .arg = s,
                                   .error = &bed->error};
        int status = pawl_log_append(bed->log, &appends[i]);
        assert_int_equal(status, count == 1 ? PAWL_APPEND_DONE : PAWL_OK);
        if (status == PAWL_APPEND_DONE)
            append_over(&appends[i]);
    }
    journal_pump(bed->log);
    for (size_t i = 0; i < count; i++) {
        assert_null(appends[i].arg);
        refused += appends[i].status != PAWL_OK && appends[i].status != PAWL_EUNKNOWN;
        if (appends[i].status != PAWL_OK && first == PAWL_OK)
            first = appends[i].status;
    }
    s->pending -= refused; /* they come last: once one is refused, so are those behind it */
    if (first == PAWL_OK)
        s->next += count;
    return first;
}

struct reading {
    const struct bed_stream *stream;
    size_t seen;
    bool done;
};

static void check_entry(struct reading *r, const pawl_entry *entry)
{
    const struct bed_stream *s = r->stream;
    char expected[TEXT_MAX];
    assert_int_equal(entry->offset, r->seen + 1);
    if (r->seen >= s->truth + s->pending)
        fail_msg("offset %zu was never written, but is there", r->seen + 1);
    make_text(s->tags[r->seen], entry->body.size, expected);
    if (memcmp(expected, entry->body.data, entry->body.size) != 0)
        fail_msg("offset %zu holds '%.20s', not '%.20s'", r->seen + 1, (const char *)entry->body.data,
                 expected);
    r->seen++;
}

static bool visit_read(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    check_entry(read->arg, entry);
    return true;
}

static bool visit_sweep(pawl_sweep *sweep, size_t index, const pawl_entry *entry, pawl_place place)
{
    check_entry((struct reading *)sweep->arg + index, entry);
    return true;
}

static void read_over(pawl_read *read)
{
    ((struct reading *)read->arg)->done = true;
}

static int read_stream(struct bed *bed, const struct bed_stream *s, size_t *ret_seen)
{
    struct reading r = {.stream = s};
    pawl_read read = {.stream = s->id,
                      .from = 1,
                      .limit = UINT64_MAX,
                      .visit = visit_read,
                      .done = read_over,
                      .arg = &r,
                      .error = &bed->error};
    assert_ok(pawl_log_read(bed->log, &read));
    assert_true(mem_world_run(bed->world, 100000));
    assert_true(r.done);
    *ret_seen = r.seen;
    return read.status;
}

/* All streams once more, in one pass. */
static int sweep_streams(struct bed *bed)
{
    struct reading readings[BED_STREAMS] = {0};
    pawl_sweep_stream streams[BED_STREAMS];
    pawl_sweep sweep = {.streams = streams,
                        .count = BED_STREAMS,
                        .limit = UINT64_MAX,
                        .visit = visit_sweep,
                        .arg = readings,
                        .error = &bed->error};
    for (size_t i = 0; i < BED_STREAMS; i++) {
        readings[i].stream = &bed->model.streams[i];
        streams[i] = (pawl_sweep_stream){.stream = bed->model.streams[i].id, .from = 1};
    }
    int status = pawl_log_sweep(bed->log, &sweep);
    for (size_t i = 0; i < BED_STREAMS && status == PAWL_OK; i++)
        assert_int_equal(readings[i].seen, bed->model.streams[i].truth);
    return status;
}

void bed_check(struct bed *bed)
{
    for (size_t i = 0; i < BED_STREAMS; i++) {
        struct bed_stream *s = &bed->model.streams[i];
        size_t seen;
        int status = read_stream(bed, s, &seen);
        if (status == PAWL_EIO || status == PAWL_EFULL) /* an ordered fault: it happens once */
            status = read_stream(bed, s, &seen);
        if (status != PAWL_OK)
            fail_msg("cannot read: %s", bed->error.text);
        if (seen < s->truth)
            fail_msg("stream %zu: %zu entries were acknowledged, %zu are there", i, s->truth, seen);
        s->truth = seen;
        s->pending = 0;
    }
    int status = sweep_streams(bed);
    if (status == PAWL_EIO || status == PAWL_EFULL)
        status = sweep_streams(bed);
    if (status != PAWL_OK)
        fail_msg("cannot sweep: %s", bed->error.text);
}

void bed_recover(struct bed *bed)
{
    int status = bed_open(bed);
    if (status != PAWL_OK)
        fail_msg("cannot open after a crash: %s", bed->error.text);
    bed_check(bed);
    for (size_t i = 0; i < BED_STREAMS; i++) {
        assert_ok(bed_claim(bed, i));
        assert_int_equal(bed->model.streams[i].next, bed->model.streams[i].truth + 1);
        assert_ok(bed_append(bed, i, 2, 40));
    }
}

#include "test/lib/writer_bed.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/heap.h"

static const pawl_stream stream = {.kind = PAWL_STREAM_PLOG, .partition = 5};

static void trace(struct bed *bed, char what, uint64_t offset)
{
    size_t size = strlen(bed->trace);
    if (size + 24 < sizeof bed->trace)
        snprintf(bed->trace + size, sizeof bed->trace - size, "%s%c%" PRIu64, size ? " " : "", what, offset);
}

/* --- the user --- */

static void closed(void *arg)
{
    struct bed *bed = arg;
    bed->closings++;
    bed->closed = true;
}

static void close_now(void *arg)
{
    struct bed *bed = arg;
    if (bed->writer.state != WRITER_CLOSED)
        writer_close(&bed->writer, closed, bed);
}

static void called(struct bed *bed, enum call call)
{
    if (bed->close_in == call)
        close_now(bed);
}

static void end_of(struct bed *bed, const struct writer_batch *batch, size_t i, enum end from, enum end to)
{
    uint64_t id = ((const struct staged *)batch->staged)[i].id;
    assert_int_equal(bed->ends[id], from); /* W3 */
    bed->ends[id] = to;
}

static uint64_t first_of(const struct writer_batch *batch)
{
    return batch->entries[0].entry.offset;
}

static uint64_t last_of(const struct writer_batch *batch)
{
    return batch->entries[batch->count - 1].entry.offset;
}

void bed_position_put(const struct bed *bed, pawl_store *store, int *status)
{
    if (*status == PAWL_OK)
        *status = pawl_store_put(store, SPACE, text_bytes("position"),
                                 (pawl_bytes){&bed->position, sizeof bed->position});
}

static void row_put(pawl_store *store, uint64_t offset, pawl_bytes body, int *status)
{
    uint8_t key[8];
    put_u64(key, offset);
    if (*status == PAWL_OK)
        *status = pawl_store_put(store, SPACE, (pawl_bytes){key, sizeof key}, body);
}

static void move_on(struct bed *bed, uint64_t offset, pawl_place place, pawl_bytes body)
{
    assert_int_equal(offset, bed->position.offset + 1); /* nothing is left out, nothing comes twice */
    bed->position =
        (struct writer_position){.offset = offset, .place = place, .checksum = hash_checksum(0, body)};
}

static int read_position(void *ctx, bool again, struct writer_position *ret_position, pawl_error *error)
{
    struct bed *bed = ctx;
    pawl_bytes value;
    (void)error;
    if (again) {
        bed->rereads++;
        int status = pawl_store_get(pawl_store_writer(bed->store), SPACE, text_bytes("position"), &value);
        if (status != PAWL_OK && status != PAWL_ENOTFOUND)
            return status;
        bed->position = (struct writer_position){0};
        if (status == PAWL_OK)
            memcpy(&bed->position, value.data, sizeof bed->position);
        bed->committed = bed->position;
    }
    *ret_position = bed->position;
    return PAWL_OK;
}

struct replaying {
    struct bed *bed;
    const struct copied_entry *entries;
};

static int put_entries(void *ctx, pawl_store *store, pawl_error *error)
{
    const struct replaying *r = ctx;
    int status = PAWL_OK;
    (void)error;
    for (const struct copied_entry *e = r->entries; e; e = e->next) {
        row_put(store, e->offset, e->body, &status);
        move_on(r->bed, e->offset, e->place, e->body);
    }
    bed_position_put(r->bed, store, &status);
    return status;
}

static int replay(void *ctx, const struct copied_entry *entries, struct arena *memory, pawl_error *error)
{
    struct bed *bed = ctx;
    struct replaying replaying = {.bed = bed, .entries = entries};
    (void)memory;
    assert_non_null(entries);
    bed->replays++;
    int status = applier_write(&bed->applier, put_entries, &replaying, error);
    if (status == PAWL_OK)
        bed->committed = bed->position;
    called(bed, ON_REPLAY);
    return status;
}

/* The log has it, and has not answered. */
static void sent(struct bed *bed, struct writer_batch *batch)
{
    assert_int_equal(batch->state, BATCH_SENT);
    assert_int_equal(first_of(batch), bed->sent_to + 1); /* W1 */
    bed->sent_to = last_of(batch);
    trace(bed, 's', first_of(batch));
}

static int ahead(void *ctx, struct writer_batch *batch, pawl_store *store)
{
    struct bed *bed = ctx;
    int status = PAWL_OK;
    assert_int_equal(batch->state, BATCH_SENT);
    assert_int_equal(first_of(batch), bed->applied_to + 1); /* A5 */
    for (size_t i = 0; i < batch->count; i++)
        row_put(store, batch->entries[i].entry.offset, batch->entries[i].entry.body, &status);
    trace(bed, 'p', first_of(batch));
    return status;
}

static void durable(void *ctx, struct writer_batch *batch)
{
    struct bed *bed = ctx;
    assert_int_equal(batch->state, BATCH_DURABLE);
    assert_int_equal(first_of(batch), bed->durable_to + 1); /* W4 */
    bed->durable_to = last_of(batch);
    trace(bed, 'd', first_of(batch));
    called(bed, ON_DURABLE);
}

static int write_rows(void *ctx, struct writer_batch *batch, pawl_store *store)
{
    struct bed *bed = ctx;
    int status = PAWL_OK;
    struct writer_position before = bed->position;
    for (size_t i = 0; i < batch->count; i++) {
        const pawl_append_entry *entry = &batch->entries[i];
        if (!batch_is_put(batch))
            row_put(store, entry->entry.offset, entry->entry.body, &status);
        move_on(bed, entry->entry.offset, entry->place, entry->entry.body);
    }
    bed_position_put(bed, store, &status);
    if (status != PAWL_OK)
        bed->position = before;
    trace(bed, 'w', first_of(batch));
    return status;
}

static void unwrite(void *ctx, struct writer_batch *batch)
{
    struct bed *bed = ctx;
    trace(bed, 'x', first_of(batch));
    bed->position = bed->committed;
}

static void late(void *ctx, struct writer_batch *batch)
{
    struct bed *bed = ctx;
    trace(bed, 'l', first_of(batch));
    called(bed, ON_LATE);
}

static void applied(void *ctx, struct writer_batch *batch)
{
    struct bed *bed = ctx;
    assert_int_equal(first_of(batch), bed->applied_to + 1); /* W4 */
    bed->applied_to = last_of(batch);
    bed->committed = bed->position;
    for (size_t i = 0; i < batch->count; i++)
        end_of(bed, batch, i, STAGED, APPLIED);
    trace(bed, 'a', first_of(batch));
    called(bed, ON_APPLIED);
}

static void undo(void *ctx, struct writer_batch *batch)
{
    struct bed *bed = ctx;
    enum end to = batch->state == BATCH_LOST ? LOST : batch->state == BATCH_FILLING ? NEVER_SENT : GIVEN_UP;
    assert_true(batch->state != BATCH_SENT && batch->state != BATCH_FREE);
    for (size_t i = 0; i < batch->count; i++)
        end_of(bed, batch, i, STAGED, to);
    trace(bed, 'u', first_of(batch));
    called(bed, ON_UNDO);
}

static void fate(void *ctx, struct writer_batch *batch, size_t index, enum writer_fate what)
{
    struct bed *bed = ctx;
    assert_true(what != FATE_UNKNOWN || bed->writer.state >= WRITER_REFUSED);
    assert_true(what != FATE_WRITTEN || batch->entries[index].entry.offset <= bed->committed.offset); /* W5 */
    end_of(bed, batch, index, LOST,
           what == FATE_WRITTEN       ? WRITTEN
           : what == FATE_NOT_WRITTEN ? NOT_WRITTEN
                                      : UNKNOWN);
    trace(bed,
          what == FATE_WRITTEN       ? '+'
          : what == FATE_NOT_WRITTEN ? '-'
                                     : '?',
          batch->entries[index].entry.offset);
    called(bed, ON_FATE);
}

static void moved(void *ctx, enum writer_state from)
{
    struct bed *bed = ctx;
    assert_int_not_equal(from, bed->writer.state);
    bed->seen |= 1u << bed->writer.state;
    called(bed, ON_MOVED);
}

static void will_retry(void *ctx)
{
    struct bed *bed = ctx;
    bed->retries++;
    called(bed, ON_WILL_RETRY);
}

static bool drained(void *ctx)
{
    struct bed *bed = ctx;
    for (size_t i = 0; i < BATCHES; i++)
        assert_true(bed->writer.batches[i].state == BATCH_FREE || bed->writer.batches[i].state == BATCH_LOST);
    called(bed, ON_DRAINED);
    return true;
}

static void prepare(void *ctx)
{
    struct bed *bed = ctx;
    bed->prepares++;
    bed->sent_to = bed->durable_to = bed->applied_to = bed->position.offset;
    bed->next = bed->position.offset + 1;
    called(bed, ON_PREPARE);
    if (!bed->prepare_later)
        writer_ready(&bed->writer);
}

static void run(void *ctx)
{
    struct bed *bed = ctx;
    struct writer *w = &bed->writer;
    called(bed, ON_RUN);
    while (w->state == WRITER_RUNNING && !w->pausing) {
        struct writer_batch *batch = bed->wanted > 0 || w->first ? writer_fill(w) : NULL;
        if (!batch)
            return;
        for (; bed->wanted > 0 && batch->count < PER_BATCH; bed->wanted--) {
            struct staged *staged = &((struct staged *)batch->staged)[batch->count];
            staged->id = ++bed->ids;
            assert_true(staged->id <= IDS_MAX);
            bed->ends[staged->id] = STAGED;
            snprintf(staged->body, sizeof staged->body, "entry %" PRIu64, staged->id);
            writer_add(batch, bed->next++, text_bytes(staged->body));
        }
        if (batch->count == 0)
            writer_unfill(batch);
        if (batch->count == 0 || (bed->not_full && batch->count < PER_BATCH))
            return;
        if (!writer_send(w, batch))
            return;
        if (batch->state == BATCH_SENT)
            sent(bed, batch);
    }
}

static bool end(void *ctx)
{
    struct bed *bed = ctx;
    assert_null(bed->writer.first);
    return true;
}

const struct writer_ops bed_ops = {.position = read_position,
                                   .replay = replay,
                                   .ahead = ahead,
                                   .durable = durable,
                                   .write = write_rows,
                                   .unwrite = unwrite,
                                   .late = late,
                                   .applied = applied,
                                   .undo = undo,
                                   .fate = fate,
                                   .moved = moved,
                                   .will_retry = will_retry,
                                   .drained = drained,
                                   .prepare = prepare,
                                   .run = run,
                                   .end = end};

/* --- the log in front --- */

static int front_claim(pawl_log *log, pawl_claim *claim)
{
    return pawl_log_claim(((struct front *)log)->behind, claim);
}

static void front_done(pawl_append *append)
{
    struct front *front = append->arg;
    assert_ok(append->status);
    for (size_t i = 0; i < append->count; i++)
        append->entries[i].status = PAWL_EUNKNOWN;
    append->status = PAWL_EUNKNOWN;
    front->done(append);
}

static void front_drop(pawl_task *task)
{
    pawl_append *append = heap_entry(task, struct front, drop)->dropped;
    for (size_t i = 0; i < append->count; i++)
        append->entries[i].status = PAWL_EIO;
    append->status = PAWL_EIO;
    append->done(append);
}

static int front_append(pawl_log *log, pawl_append *append)
{
    struct front *front = (struct front *)log;
    if (front->drops > 0 && --front->drops == 0) {
        front->dropped = append;
        front->drop.fn = front_drop;
        return pawl_env_post(front->env, 0, &front->drop);
    }
    if (front->unsure) {
        front->unsure = false;
        front->done = append->done;
        append->done = front_done;
        append->arg = front;
    }
    int says = front->says;
    front->says = PAWL_OK;
    return says == PAWL_OK ? pawl_log_append(front->behind, append) : says;
}

static int front_read(pawl_log *log, pawl_read *read)
{
    return pawl_log_read(((struct front *)log)->behind, read);
}

static const struct pawl_log_ops front_ops = {.claim = front_claim, .append = front_append, .read = front_read};

/* --- lives --- */

static void open_log(struct bed *bed, uint64_t node, struct mem_env **ret_env, pawl_log **ret_log)
{
    assert_ok(mem_env_open(bed->world, &(struct mem_env_options){.shards = 1}, ret_env, NULL));
    assert_ok(
        mem_log_open(bed->log_disk, mem_env_port(*ret_env), &(struct mem_log_options){.node = node}, ret_log));
}

void bed_open(struct bed *bed, uint64_t seed)
{
    *bed = (struct bed){.close_in = CALLS, .works_ahead = true};
    assert_ok(mem_world_open(&(struct mem_world_options){.seed = seed}, &bed->world, NULL));
    assert_ok(mem_log_disk_open(seed, NULL, &bed->log_disk));
    assert_ok(mem_store_disk_new(NULL, &bed->store_disk));
    open_log(bed, 2, &bed->rival_env, &bed->rival);
}

void bed_close(struct bed *bed)
{
    assert_ok(pawl_log_close(bed->rival));
    assert_ok(mem_env_close(bed->rival_env));
    mem_world_close(bed->world);
    mem_log_disk_close(bed->log_disk);
    mem_store_disk_free(bed->store_disk);
}

static void boot_now(void *arg)
{
    struct bed *bed = arg;
    struct writer_position position;
    applier_init(&bed->applier, mem_env_port(bed->env), 0, bed->store);
    bed->applier.works_ahead = bed->works_ahead;
    assert_ok(read_position(bed, true, &position, NULL));
    bed->rereads = 0;
    struct writer_options options = {.env = mem_env_port(bed->env),
                                     .log = &bed->front.log,
                                     .applier = &bed->applier,
                                     .stream = stream,
                                     .assignment = bed->assignment,
                                     .ops = &bed_ops,
                                     .ctx = bed,
                                     .batches = BATCHES,
                                     .batch_entries = PER_BATCH,
                                     .staged_size = sizeof(struct staged),
                                     .memory_chunk = 4096,
                                     .allocator = &bed->memory.allocator};
    assert_ok(writer_init(&bed->writer, &options));
    bed->seen = 1u << WRITER_CLAIMING;
    assert_ok(writer_begin(&bed->writer));
}

void bed_boot(struct bed *bed)
{
    mortal_init(&bed->memory);
    open_log(bed, 1, &bed->env, &bed->log);
    bed->front = (struct front){.log.ops = &front_ops, .behind = bed->log, .env = mem_env_port(bed->env)};
    assert_ok(
        mem_store_open(bed->store_disk, &(struct mem_store_options){.name = "state"}, NULL, &bed->store, NULL));
    assert_ok(pawl_env_call(mem_env_port(bed->env), 0, boot_now, bed));
}

bool bed_is_closed(void *arg)
{
    return ((struct bed *)arg)->closed;
}

static void close_applier(void *arg)
{
    applier_close(&((struct bed *)arg)->applier);
}

/* The end of a life, whatever state it is in. */
void bed_halt(struct bed *bed)
{
    assert_ok(pawl_env_call(mem_env_port(bed->env), 0, close_now, bed));
    assert_true(mem_world_run_until(bed->world, bed_is_closed, bed, STEPS_MAX));
    writer_deinit(&bed->writer);
    assert_null(bed->memory.blocks);
    assert_null(bed->applier.first);
    assert_ok(pawl_env_call(mem_env_port(bed->env), 0, close_applier, bed));
    assert_true(mem_world_run(bed->world, STEPS_MAX)); /* nothing comes back: W7 */
    assert_int_equal(bed->closings, 1);
    assert_ok(pawl_log_close(bed->log));
    mem_store_disk_fail(bed->store_disk, (struct mem_store_fault){0});
    assert_ok(pawl_store_close(bed->store));
    assert_ok(mem_env_close(bed->env));
    bed->closed = false;
    bed->closings = 0;
    bed->wanted = 0;
}

static bool is_settled(void *arg)
{
    const struct bed *bed = arg;
    return bed->writer.state == WRITER_REFUSED || (bed->writer.state == WRITER_RUNNING && !bed->writer.first);
}

enum writer_state bed_settle(struct bed *bed)
{
    assert_true(mem_world_run_until(bed->world, is_settled, bed, STEPS_MAX));
    return bed->writer.state;
}

static void run_now(void *arg)
{
    struct bed *bed = arg;
    run(bed);
}

/* Stage so many entries, as far as there is room. */
void bed_want(struct bed *bed, uint64_t entries)
{
    bed->wanted += entries;
    bed->trace[0] = '\0';
    assert_ok(pawl_env_call(mem_env_port(bed->env), 0, run_now, bed));
}

void bed_drain_now(void *arg)
{
    writer_drain(&((struct bed *)arg)->writer);
}

void bed_order(struct bed *bed, enum mem_log_fault_kind kind, uint64_t nth, uint32_t n)
{
    struct mem_log_fault fault = {.kind = kind, .request = mem_log_requests(bed->log) + nth, .n = n};
    if (kind != 0)
        assert_ok(mem_log_order(bed->log, &fault));
}

/* --- a rival --- */

struct rivalry {
    struct bed *bed;
    pawl_claim claim;
    pawl_append append;
    pawl_append_entry entry;
    char body[24];
    uint64_t left;
    bool over;
};

static void rival_write(struct rivalry *r);

static void rival_wrote(pawl_append *append)
{
    struct rivalry *r = append->arg;
    assert_ok(append->status);
    r->claim.next++;
    rival_write(r);
}

static void rival_write(struct rivalry *r)
{
    if (r->left-- == 0) {
        r->over = true;
        return;
    }
    snprintf(r->body, sizeof r->body, "rival %" PRIu64, r->claim.next);
    r->entry = (pawl_append_entry){
        .entry = {
            .stream = stream, .epoch = r->claim.epoch, .offset = r->claim.next, .body = text_bytes(r->body)}};
    r->append = (pawl_append){.entries = &r->entry, .count = 1, .done = rival_wrote, .arg = r};
    assert_ok(pawl_log_append(r->bed->rival, &r->append));
}

static void rival_claimed(pawl_claim *claim)
{
    assert_ok(claim->status);
    rival_write(claim->arg);
}

static void rival_begin(void *arg)
{
    struct rivalry *r = arg;
    r->claim =
        (pawl_claim){.stream = stream, .group0 = r->bed->rival_assignment, .done = rival_claimed, .arg = r};
    assert_ok(pawl_log_claim(r->bed->rival, &r->claim));
}

static bool rival_is_over(void *arg)
{
    return ((struct rivalry *)arg)->over;
}

/* Somebody else claims the stream and writes so many entries. */
void bed_rival_writes(struct bed *bed, uint64_t entries)
{
    struct rivalry r = {.bed = bed, .left = entries};
    assert_ok(pawl_env_call(mem_env_port(bed->rival_env), 0, rival_begin, &r));
    assert_true(mem_world_run_until(bed->world, rival_is_over, &r, STEPS_MAX));
}

/* --- what is true in the end --- */

struct comparison {
    struct bed *bed;
    bool in_log[IDS_MAX + 1];
    uint64_t last;
    bool over;
};

static bool compare_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct comparison *c = read->arg;
    char text[32] = {0};
    uint8_t key[8];
    pawl_bytes value;
    (void)place;
    c->last = entry->offset;
    assert_true(entry->body.size < sizeof text);
    memcpy(text, entry->body.data, entry->body.size);
    if (strncmp(text, "entry ", 6) == 0) {
        uint64_t id = strtoull(text + 6, NULL, 10);
        assert_in_range(id, 1, c->bed->ids);
        assert_false(c->in_log[id]);
        c->in_log[id] = true;
    }
    put_u64(key, entry->offset);
    if (entry->offset > c->bed->committed.offset)
        return true;
    assert_ok(pawl_store_get(pawl_store_writer(c->bed->store), SPACE, (pawl_bytes){key, sizeof key}, &value));
    assert_true(bytes_equal(value, entry->body));
    return true;
}

static void compared(pawl_read *read)
{
    struct comparison *c = read->arg;
    assert_ok(read->status);
    c->over = true;
}

static bool comparison_is_over(void *arg)
{
    return ((struct comparison *)arg)->over;
}

/* The store has what the log has, and everybody was told the truth. whole: nothing is missing in the store. */
void bed_check_truth(struct bed *bed, bool whole)
{
    struct comparison c = {.bed = bed};
    pawl_read read = {
        .stream = stream, .from = 1, .limit = UINT64_MAX, .visit = compare_entry, .done = compared, .arg = &c};
    assert_ok(pawl_log_read(bed->rival, &read));
    assert_true(mem_world_run_until(bed->world, comparison_is_over, &c, STEPS_MAX));
    assert_true(whole ? bed->committed.offset == c.last : bed->committed.offset <= c.last);
    for (uint64_t id = 1; id <= bed->ids; id++) {
        enum end is = bed->ends[id];
        assert_true(is != STAGED && is != LOST);
        if (is == APPLIED || is == WRITTEN || is == GIVEN_UP)
            assert_true(c.in_log[id]);
        if (is == NEVER_SENT || is == NOT_WRITTEN)
            assert_false(c.in_log[id]);
    }
}

/* --- batches --- */

/* adapter/journal/group.c: a list of appends and claims becomes records, with one write and one sync.
 *
 * Everything here has the writer's role. Each op is refused, or encoded behind what is there; then the whole
 * group is written and synced, and every op has its outcome. If a write or the sync fails, the outcome of what
 * was encoded is unknown, and the journal writes nothing more until a claim has it read again (J6). */
#include <inttypes.h>

#include "adapter/journal/impl.h"
#include "base/alloc.h"
#include "base/error.h"

static void fail(struct journal *j, const pawl_error *error)
{
    pthread_mutex_lock(&j->lock);
    j->failed = true;
    j->failure = *error;
    pthread_mutex_unlock(&j->lock);
}

static int write_buffer(struct journal *j, pawl_error *error)
{
    if (j->buffer_size == 0)
        return PAWL_OK;
    uint64_t end = j->active.at + j->buffer_size;
    int rc = end > j->active.filled ? journal_fill(j, end) : 0;
    if (rc == 0)
        rc = disk_write_all(j->disk, j->active.file, j->buffer, j->buffer_size, j->active.at);
    if (rc < 0) {
        error_errno(error, -rc, "cannot write segment %08" PRIx32 " at byte %" PRIu64, j->active.ref.number,
                    j->active.at);
        return PAWL_EUNKNOWN;
    }
    j->active.at = end;
    j->buffer_size = 0;
    return PAWL_OK;
}

static int sync_active(struct journal *j, pawl_error *error)
{
    int rc = disk_sync(j->disk, j->active.file);
    if (rc < 0) {
        error_errno(error, -rc, "cannot sync segment %08" PRIx32, j->active.ref.number);
        return PAWL_EUNKNOWN;
    }
    return PAWL_OK;
}

static bool grow_buffer(struct journal *j, size_t need)
{
    size_t room = need > BUFFER_KEEP ? need : j->buffer_room * 2 > need ? j->buffer_room * 2 : need;
    uint8_t *larger = mem_resize(j->alloc, j->buffer, j->buffer_room, room);
    if (!larger)
        return false;
    j->buffer = larger;
    j->buffer_room = room;
    return true;
}

int group_make_room(struct journal *j, size_t bytes, pawl_error *error)
{
    size_t need = j->buffer_size + bytes;
    if (need > j->buffer_room && (need > BUFFER_KEEP || !grow_buffer(j, need))) {
        int status = write_buffer(j, error);
        if (status != PAWL_OK)
            return status;
        if (bytes > j->buffer_room && !grow_buffer(j, bytes))
            return error_set(error, PAWL_ENOMEM, "no memory for an append of %zu bytes", bytes);
    }
    if (j->active.at + j->buffer_size + bytes + WATERMARK_BYTES <= j->active.size)
        return PAWL_OK;
    if (j->active.sealed && journal_extend(j, bytes))
        return PAWL_OK;
    int status = write_buffer(j, error);
    return status == PAWL_OK ? journal_roll(j, bytes, error) : status;
}

pawl_place group_encode(struct journal *j, struct record *r)
{
    uint64_t at = j->active.at + j->buffer_size;
    r->lsn = j->next_lsn++;
    r->chain = j->chain;
    r->durable = j->durable_lsn;
    j->chain = record_encode(r, j->seed, j->buffer + j->buffer_size);
    j->buffer_size += record_size(r->body.size);
    if (r->type == RECORD_ENTRY && index_wants(&j->index, r->stream, at)) {
        pthread_mutex_lock(&j->lock);
        index_add(&j->index, r->stream, r->offset, r->lsn, at);
        pthread_mutex_unlock(&j->lock);
    }
    return (pawl_place){.position = r->lsn, .hint = (uint64_t)j->active.ref.number << 32 | at};
}

static void refuse_append(pawl_append *append, int status, const pawl_error *error)
{
    for (size_t i = 0; i < append->count; i++)
        append->entries[i].status = status;
    append->status = status;
    if (append->error)
        *append->error = *error;
}

static int refuse_entry(pawl_append *append, size_t i, const struct stream *s)
{
    const pawl_entry *e = &append->entries[i].entry;
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_stream_format(e->stream, name);
    append->entries[i].status = PAWL_EFENCED;
    if (append->status != PAWL_OK)
        return PAWL_EFENCED;
    append->status = PAWL_EFENCED;
    if (!s || !s->claimed)
        return error_set(append->error, PAWL_EFENCED, "%s is not claimed", name);
    if (s->given != e->epoch)
        return error_set(append->error, PAWL_EFENCED,
                         "%s is at epoch %" PRIu64 ", the entry is of epoch %" PRIu64, name, s->given,
                         e->epoch);
    return error_set(append->error, PAWL_EFENCED,
                     "the next offset of %s is %" PRIu64 ", the entry has %" PRIu64, name, s->next, e->offset);
}

static struct stream *find_stream(struct journal *j, pawl_stream id)
{
    pthread_mutex_lock(&j->lock);
    struct stream *s = streams_find(&j->streams, id);
    pthread_mutex_unlock(&j->lock);
    return s;
}

/* Encode the entries that may be written. A refused entry makes all later entries of its stream be refused too,
 * because the stream's next offset does not move. */
static int take_append(struct journal *j, pawl_append *append, pawl_error *error)
{
    size_t bytes = ((struct op *)append->impl)->bytes;
    int status = bytes == OP_TOO_BIG
                     ? error_set(error, PAWL_ETOOBIG, "an entry may have %zu bytes, and an append %zu in all",
                                 PAWL_ENTRY_BYTES_MAX, APPEND_BYTES_MAX)
                     : group_make_room(j, bytes + claims_room(j, append->count), error);
    if (status != PAWL_OK) {
        refuse_append(append, status, error);
        return status;
    }
    append->status = PAWL_OK;
    uint64_t number = ++j->appends;
    struct stream *s = NULL;
    for (size_t i = 0; i < append->count; i++) {
        const pawl_entry *e = &append->entries[i].entry;
        if (!s || !pawl_stream_equal(s->id, e->stream))
            s = find_stream(j, e->stream);
        if (!s || !s->claimed || s->given != e->epoch || s->next != e->offset || s->refused == number) {
            if (s)
                s->refused = number;
            refuse_entry(append, i, s);
            continue;
        }
        if (s->epoch < s->given)
            claims_write(j, s);
        struct record r = {
            .type = RECORD_ENTRY, .kind = e->kind, .stream = e->stream, .offset = e->offset, .body = e->body};
        append->entries[i].place = group_encode(j, &r);
        append->entries[i].status = PAWL_OK;
        s->next++;
        if (!s->touched) {
            s->touched = true;
            s->touched_next = j->touched;
            j->touched = s;
        }
    }
    return PAWL_OK;
}

/* Everything that was encoded, up to end, has an unknown outcome. */
static void unknown(struct op *ops, const struct op *end, const pawl_error *error)
{
    for (struct op *op = ops; op != end; op = op->next) {
        if (op->kind == OP_CLAIM) {
            pawl_claim *claim = op->request;
            if (claim->status == PAWL_OK && claim->error)
                *claim->error = *error;
            claim->status = claim->status == PAWL_OK ? PAWL_EUNKNOWN : claim->status;
            continue;
        }
        pawl_append *append = op->request;
        for (size_t i = 0; i < append->count; i++)
            if (append->entries[i].status == PAWL_OK)
                append->entries[i].status = PAWL_EUNKNOWN;
        append->status = append->entries[0].status; /* no entry is PAWL_OK now */
        if (append->status == PAWL_EUNKNOWN && append->error)
            *append->error = *error;
    }
}

/* A failed journal writes nothing. A claim is what brings it back. */
static int take_failed(struct journal *j, struct op *op)
{
    pawl_error error = j->failure;
    if (op->kind == OP_APPEND) {
        error_wrap(&error, PAWL_EIO, "the journal has failed; claim again");
        refuse_append(op->request, PAWL_EIO, &error);
        return PAWL_EIO;
    }
    pawl_claim *claim = op->request;
    error_clear(&error);
    int status = journal_recover(j, j->durable_lsn, &error);
    if (status != PAWL_OK) {
        claim->status = status;
        if (claim->error)
            *claim->error = error;
        return status;
    }
    pthread_mutex_lock(&j->lock);
    j->failed = false;
    pthread_mutex_unlock(&j->lock);
    return PAWL_OK;
}

/* PAWL_EUNKNOWN: the journal has failed while it was encoded. Otherwise it is encoded, or refused. */
static int take_op(struct journal *j, struct op *op, pawl_error *error)
{
    if (j->failed && take_failed(j, op) != PAWL_OK)
        return PAWL_OK;
    int status = op->kind == OP_CLAIM ? claims_take(j, op->request, error) : take_append(j, op->request, error);
    return status == PAWL_EUNKNOWN ? PAWL_EUNKNOWN : PAWL_OK;
}

static void forget_touched(struct journal *j)
{
    for (struct stream *s = j->touched; s; s = s->touched_next)
        s->touched = false;
    j->touched = NULL;
}

/* Everything written is durable: readers may see it. Followers that wait for it join wake. */
static void show(struct journal *j, uint64_t records, uint64_t bytes, struct op_list *wake)
{
    pthread_mutex_lock(&j->lock);
    j->durable_lsn = j->next_lsn - 1;
    j->durable_at = j->active.at;
    for (struct stream *s = j->touched; s; s = s->touched_next) {
        s->visible = s->next - 1;
        followers_wake(s, wake);
    }
    maker_pace(j);
    j->stats.syncs++;
    j->stats.records += records;
    j->stats.bytes += bytes;
    pthread_mutex_unlock(&j->lock);
    forget_touched(j);
}

/* Write and sync ops with one sync. Returns those that are left, if the journal failed before it came to them.
 */
static struct op *run_once(struct journal *j, struct op *ops, struct op_list *wake)
{
    pawl_error error = {0};
    uint64_t first_lsn = j->next_lsn;
    struct op *op = ops;
    int status = PAWL_OK;
    for (; op && status == PAWL_OK; op = op->next)
        status = take_op(j, op, &error);
    uint64_t records = j->next_lsn - first_lsn;
    uint64_t bytes = j->buffer_size;
    if (status == PAWL_OK && records == 0)
        return NULL;
    if (status == PAWL_OK)
        status = write_buffer(j, &error);
    uint64_t began = pawl_env_now(j->env).ns;
    if (status == PAWL_OK)
        status = sync_active(j, &error);
    if (status == PAWL_OK) {
        pawl_instant now = pawl_env_now(j->env);
        histogram_add(&j->syncs, now, now.ns - began);
        histogram_add(&j->batches, now, records);
        show(j, records, bytes, wake);
        return op;
    }
    fail(j, &error);
    forget_touched(j);
    j->buffer_size = 0;
    unknown(ops, op, &error);
    return op;
}

void group_run(struct journal *j, struct op *ops, struct op_list *wake)
{
    while (ops)
        ops = run_once(j, ops, wake);
    if (j->buffer_room > 2 * BUFFER_KEEP) {
        uint8_t *smaller = mem_resize(j->alloc, j->buffer, j->buffer_room, BUFFER_KEEP);
        if (smaller) {
            j->buffer = smaller;
            j->buffer_room = BUFFER_KEEP;
        }
    }
}

static int write_watermark(struct journal *j, uint8_t kind, pawl_error *error)
{
    struct record r = {.type = RECORD_WATERMARK, .kind = kind};
    group_encode(j, &r);
    return write_buffer(j, error);
}

/* Nothing waits: write a watermark, so that the file itself says that all its records are durable. It is not
 * synced: if it is lost, nothing else is. */
void group_rest(struct journal *j)
{
    pawl_error error = {0};
    if (j->failed || j->next_lsn - 1 != j->durable_lsn)
        return;
    if (j->active.at + 2 * WATERMARK_BYTES > j->active.size)
        return; /* J5: the last place is for the seal */
    if (write_watermark(j, 0, &error) != PAWL_OK)
        fail(j, &error);
}

int group_seal(struct journal *j, pawl_error *error)
{
    if (j->failed || j->active.file < 0 || j->active.sealed)
        return PAWL_OK;
    int status = write_watermark(j, WATERMARK_SEALS, error);
    if (status == PAWL_OK)
        status = sync_active(j, error);
    if (status != PAWL_OK)
        return status;
    (void)index_save(&j->index, j->next_lsn, j->disk, j->home.dir, j->home.id, j->active.ref.number);
    (void)j->disk->truncate(j->disk->ctx, j->active.file, j->active.at);
    return PAWL_OK;
}

/* adapter/journal/recover.c: opening, and opening again after a failure.
 *
 *     newest segment ──► probe: D witnessed, N whole ──► judge: torn or corrupt?
 *         │ corrupt: stop, change nothing
 *         │ sealed:  this very segment, behind its seal (extend.c); until the first record nothing is changed
 *         └ torn:    a new segment that continues behind D, beginning with a copy of D+1 .. N, synced
 *
 * A segment was closed cleanly if its file ends with its seal: the file was cut there only after the seal, and
 * everything before it, had been synced. So everything in it is durable, and nothing is in doubt.
 *
 * From any other segment the copy is made, even if the old segment could be synced as it is. A sync may have
 * failed, perhaps in a process that is gone; then the kernel takes pages for clean that never reached the disk,
 * and no later sync of that file would report it. Records behind D in the old segment are dead from then on,
 * because the new header says where it continues. They stay in the file. */
#include <fcntl.h>
#include <inttypes.h>

#include "adapter/journal/impl.h"
#include "base/alloc.h"
#include "base/error.h"

/* The summaries of the tail become the journal's streams. Nobody has claimed any of them yet. Existing stream
 * structs stay where they are: followers wait on them. */
static int adopt_streams(struct journal *j, const struct streams *found)
{
    int status = PAWL_OK;
    pthread_mutex_lock(&j->lock);
    for (size_t i = 0; i < j->streams.count; i++) {
        struct stream *s = j->streams.items[i];
        s->epoch = 0; /* .given stays: a writer that was given that epoch may still run (J7) */
        s->next = 1;
        s->claimed = s->touched = false;
    }
    j->unwritten = 0;
    for (size_t i = 0; i < found->count && status == PAWL_OK; i++) {
        struct stream *s = streams_add(&j->streams, found->items[i]->id);
        if (!s) {
            status = PAWL_ENOMEM;
            break;
        }
        s->epoch = found->items[i]->epoch;
        if (s->given < s->epoch)
            s->given = s->epoch;
        s->next = found->items[i]->next;
        s->visible = s->next - 1;
    }
    pthread_mutex_unlock(&j->lock);
    return status;
}

struct indexing {
    struct journal *journal;
    uint64_t old_at;
    uint64_t new_at;
};

/* Readers see the segment, and its index, from the moment it is published. */
static void index_record(void *arg, const struct record *r, uint64_t at)
{
    struct indexing *x = arg;
    struct journal *j = x->journal;
    uint64_t moved = at - x->old_at + x->new_at;
    if (r->type != RECORD_ENTRY || !index_wants(&j->index, r->stream, moved))
        return;
    pthread_mutex_lock(&j->lock);
    index_add(&j->index, r->stream, r->offset, r->lsn, moved);
    pthread_mutex_unlock(&j->lock);
}

/* Begin a segment behind the tail's present record, with a copy of those up to end->useful. */
static int continue_behind(struct journal *j, struct tail *t, const struct tail_end *end, pawl_error *error)
{
    size_t copied = end->useful > end->witnessed ? (size_t)(end->useful_at - t->at) : 0;
    uint8_t *records = NULL;
    if (copied) {
        records = mem_new(j->alloc, 1, copied);
        if (!records)
            return error_set(error, PAWL_ENOMEM, "no memory for %zu bytes of the journal's tail", copied);
        int64_t n = disk_read_all(j->disk, t->file, records, copied, t->at);
        if (n != (int64_t)copied) {
            mem_free(j->alloc, records, copied);
            return n < 0 ? error_errno(error, (int)-n, "cannot read segment %08" PRIx32, t->header.number)
                         : error_set(error, PAWL_EIO, "segment %08" PRIx32 " became shorter", t->header.number);
        }
    }
    struct segment_header header = {
        .journal = j->home.id,
        .number = t->header.number + 1,
        .first_lsn = t->lsn + 1,
        .chain = t->chain,
        .created_ns = pawl_env_wall_now(j->env).ns,
    };
    struct draft draft;
    size_t head = journal_header_size(j, &t->streams);
    int status = journal_take_draft(j, head + copied + 2 * WATERMARK_BYTES, &draft, error);
    if (status == PAWL_OK)
        status = journal_publish(j, &draft, &header, &t->streams, (pawl_bytes){records, copied}, error);
    mem_free(j->alloc, records, copied);
    struct indexing x = {.journal = j, .old_at = t->at, .new_at = head};
    if (status == PAWL_OK)
        status = tail_advance(t, end->useful, index_record, &x, error);
    return status;
}

/* Stand behind the seal, ready to go on there. Takes the file. */
static int continue_in(struct journal *j, struct tail *t, const struct tail_end *end, int file,
                       pawl_error *error)
{
    struct indexing x = {.journal = j};
    pthread_mutex_lock(&j->lock);
    index_clear(&j->index);
    pthread_mutex_unlock(&j->lock);
    int status = tail_advance(t, end->whole, index_record, &x, error);
    if (status != PAWL_OK) {
        j->disk->close(j->disk->ctx, file);
        return status;
    }
    j->active = (struct active){.ref = {t->header.number, t->header.first_lsn},
                                .file = file,
                                .at = t->at,
                                .size = t->at,
                                .filled = t->at,
                                .full = t->header.file_size,
                                .sealed = true};
    pthread_mutex_lock(&j->lock);
    j->durable_at = t->at;
    pthread_mutex_unlock(&j->lock);
    return PAWL_OK;
}

/* What lies behind the tail is decided: go on from there. */
static int go_on(struct journal *j, struct tail *t, const struct tail_end *end, pawl_error *error)
{
    char name[SEGMENT_NAME_MAX];
    segment_name(t->header.number, t->header.first_lsn, name);
    int file = end->sealed ? j->disk->open(j->disk->ctx, j->home.dir, name, O_RDWR) : -1;
    if (file >= 0)
        return continue_in(j, t, end, file, error);
    int status = tail_advance(t, end->witnessed, NULL, NULL, error);
    return status == PAWL_OK ? continue_behind(j, t, end, error) : status;
}

/* A journal whose making was interrupted: segment 1 may be there, but must be empty. */
static int remove_unfinished(struct journal *j, pawl_error *error)
{
    if (j->segments.count == 0)
        return PAWL_OK;
    struct segment_ref ref = j->segments.items[0];
    char name[SEGMENT_NAME_MAX];
    segment_name(ref.number, ref.first_lsn, name);
    struct tail t;
    struct tail_end end;
    bool empty = false;
    if (j->segments.count == 1 && tail_open(&t, j->disk, j->home.dir, ref, NULL, j->alloc, NULL) == PAWL_OK) {
        empty = tail_probe(&t, &end, NULL) == PAWL_OK && tail_judge(&t, &end, 0, false, NULL) == PAWL_OK
                && end.whole == 0 && end.scraps == 0;
        tail_close(&t);
    }
    if (!empty)
        return error_set(error, PAWL_ECORRUPT, "%s/journal/id is missing, but segment %s is there", j->path,
                         name);
    int rc = j->disk->remove(j->disk->ctx, j->home.dir, name);
    if (rc < 0)
        return error_errno(error, -rc, "cannot remove the unfinished segment %s", name);
    j->segments.count = 0;
    return PAWL_OK;
}

static int make_first(struct journal *j, pawl_error *error)
{
    struct segment_header header = {
        .journal = j->home.id,
        .number = 1,
        .first_lsn = 1,
        .chain = j->seed,
        .created_ns = pawl_env_wall_now(j->env).ns,
    };
    struct draft draft;
    int status = remove_unfinished(j, error);
    if (status == PAWL_OK)
        status = journal_take_draft(j, segment_header_size(0) + WATERMARK_BYTES, &draft, error);
    if (status == PAWL_OK)
        status = journal_publish(j, &draft, &header, &j->streams, (pawl_bytes){0}, error);
    if (status == PAWL_OK)
        status = home_settle(&j->home, header.created_ns, error);
    j->next_lsn = 1;
    j->chain = j->seed;
    return status;
}

/* List the segments. Until they are known, readers go on with the old list. */
static int list_segments(struct journal *j, pawl_error *error)
{
    struct segment_list fresh = {.alloc = j->alloc};
    int status = segment_list_load(&fresh, j->disk, j->home.dir, error);
    if (status == PAWL_OK) {
        pthread_mutex_lock(&j->lock);
        struct segment_list old = j->segments;
        j->segments = fresh;
        fresh = old;
        pthread_mutex_unlock(&j->lock);
    }
    segment_list_release(&fresh);
    return status;
}

/* Followers are told of the entries that were found and made durable. */
static void wake_followers(struct journal *j)
{
    struct op_list wake;
    op_list_init(&wake);
    pthread_mutex_lock(&j->lock);
    for (size_t i = 0; i < j->streams.count; i++)
        followers_wake(j->streams.items[i], &wake);
    pthread_mutex_unlock(&j->lock);
    journal_deliver(j, wake.first);
}

int journal_recover(struct journal *j, uint64_t witness, pawl_error *error)
{
    if (j->active.file >= 0)
        j->disk->close(j->disk->ctx, j->active.file);
    j->active.file = -1;
    j->buffer_size = 0;
    j->next_size = JOURNAL_SEGMENT_FIRST < j->segment_bytes ? JOURNAL_SEGMENT_FIRST : j->segment_bytes;
    int status = list_segments(j, error);
    if (status != PAWL_OK)
        return status;
    if (j->home.is_new)
        return make_first(j, error);
    if (j->segments.count == 0)
        return error_set(error, PAWL_ECORRUPT, "%s/journal has no segment: all of them are missing", j->path);

    struct tail t;
    struct tail_end end;
    status = tail_open(&t, j->disk, j->home.dir, j->segments.items[j->segments.count - 1], &j->home.id,
                       j->alloc, error);
    if (status != PAWL_OK)
        return status;
    uint64_t indexed = index_witness(j->disk, j->home.dir, j->home.id, t.header.number, j->alloc);
    status = tail_probe(&t, &end, error);
    if (status == PAWL_OK)
        status = tail_judge(&t, &end, witness > indexed ? witness : indexed, false, error);
    if (status == PAWL_OK)
        status = go_on(j, &t, &end, error);
    if (status == PAWL_OK)
        status = adopt_streams(j, &t.streams);
    if (status == PAWL_OK) {
        j->next_lsn = t.lsn + 1;
        j->chain = t.chain;
        pthread_mutex_lock(&j->lock);
        j->durable_lsn = t.lsn;
        j->report = (struct journal_report){
            .segments = j->segments.count,
            .records_recovered = end.useful - end.witnessed,
            .bytes_cut = end.scraps,
            .cut_segment = end.scraps ? t.header.number : 0,
            .cut_at = end.scraps ? end.whole_at : 0,
            .clean = end.sealed,
        };
        pthread_mutex_unlock(&j->lock);
    }
    tail_close(&t);
    if (status == PAWL_OK)
        wake_followers(j);
    return status;
}

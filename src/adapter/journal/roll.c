/* adapter/journal/roll.c: from one segment to the next.
 *
 *     draft (zeros, synced) ──► header written, synced ──► named ──► directory synced ──► active
 *
 * A thread of its own makes drafts ahead, because filling one takes longer than any append should. Disk space
 * is taken here and nowhere else, so a full disk is found here, before a byte of the append has been
 * written. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "adapter/journal/impl.h"
#include "base/alloc.h"
#include "base/error.h"

#define SLICE  ((uint64_t)1 << 20)
#define BEHIND (SLICE / 2)

/* Wait until the next slice is due. Whoever opens a journal for a few entries never needs a draft: so even the first
 * slice is filled only when there are more. False: the journal is being closed. */
static bool wait_turn(struct journal *j, uint64_t filled)
{
    pthread_mutex_lock(&j->lock);
    while (!j->stopping && !j->maker.urgent && filled + BEHIND > j->maker.due)
        pthread_cond_wait(&j->maker.wake, &j->lock);
    bool go = !j->stopping;
    pthread_mutex_unlock(&j->lock);
    return go;
}

/* The draft is ready when the present segment is half full, also while each is twice as large as the one before. */
void maker_pace(struct journal *j)
{
    uint64_t larger = j->next_size > j->active.size ? j->next_size / j->active.size : 1;
    uint64_t due = 2 * larger * j->active.at;
    bool next = (due + BEHIND) / SLICE != (j->maker.due + BEHIND) / SLICE;
    j->maker.due = due;
    if (next)
        pthread_cond_signal(&j->maker.wake);
}

/* A draft that is made ahead is filled slice by slice as the present segment fills (maker_pace), and each
 * slice is written out at once: written out together at the end, they would delay the syncs of the appends. A
 * sync of each slice would delay them too, because the file system then commits the file's metadata. So there
 * is one sync, at the end. */
static int draft_fill(struct journal *j, const struct draft *draft, bool ahead)
{
    int rc = disk_reserve(j->disk, draft->file, draft->size);
    rc = rc > 0 ? 0 : rc; /* every byte of it is written here anyway */
    for (uint64_t at = 0; at < draft->size && rc == 0; at += SLICE) {
        uint64_t size = draft->size - at < SLICE ? draft->size - at : SLICE;
        if (ahead && !wait_turn(j, at))
            return -ECANCELED;
        rc = disk_write_zeros(j->disk, draft->file, at, size);
        if (rc == 0 && at + size == draft->size)
            rc = disk_sync(j->disk, draft->file);
        else if (rc == 0 && ahead)
            rc = j->disk->push(j->disk->ctx, draft->file, at, size);
    }
    return rc;
}

static int draft_make(struct journal *j, uint64_t size, uint32_t number, bool ahead, struct draft *ret_draft,
                      pawl_error *error)
{
    const struct disk *disk = j->disk;
    struct draft draft = {.size = size};
    snprintf(draft.name, sizeof draft.name, "draft-%" PRIu32 ".tmp", number);
    draft.file = disk->open(disk->ctx, j->home.dir, draft.name, O_RDWR | O_CREAT | O_TRUNC);
    if (draft.file < 0)
        return error_errno(error, -draft.file, "cannot make a segment in %s/journal", j->path);
    int rc = draft_fill(j, &draft, ahead);
    if (rc < 0) {
        journal_discard_draft(j, &draft);
        return error_errno(error, -rc, "cannot make a segment of %" PRIu64 " bytes in %s/journal", size,
                           j->path);
    }
    *ret_draft = draft;
    return PAWL_OK;
}

void journal_discard_draft(struct journal *j, struct draft *draft)
{
    j->disk->close(j->disk->ctx, draft->file);
    j->disk->remove(j->disk->ctx, j->home.dir, draft->name);
}

static void *maker_main(void *arg)
{
    struct journal *j = arg;
    struct maker *m = &j->maker;
    pthread_mutex_lock(&j->lock);
    while (!j->stopping) {
        if (m->wanted == 0 || m->ready) {
            pthread_cond_wait(&m->wake, &j->lock);
            continue;
        }
        uint64_t size = m->wanted;
        uint32_t number = ++m->drafts;
        pthread_mutex_unlock(&j->lock);
        struct draft draft;
        /* If this fails, the draft is made when it is needed, and that attempt reports the error. */
        int status = draft_make(j, size, number, true, &draft, NULL);
        pthread_mutex_lock(&j->lock);
        m->wanted = 0;
        m->urgent = false;
        m->ready = status == PAWL_OK;
        if (m->ready)
            m->draft = draft;
        pthread_cond_broadcast(&m->made);
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

int maker_start(struct journal *j)
{
    pthread_cond_init(&j->maker.wake, NULL);
    pthread_cond_init(&j->maker.made, NULL);
    if (j->threads && pthread_create(&j->maker.thread, NULL, maker_main, j) != 0)
        return PAWL_ENOMEM;
    return PAWL_OK;
}

void maker_stop(struct journal *j)
{
    struct maker *m = &j->maker;
    if (j->threads) {
        pthread_mutex_lock(&j->lock);
        pthread_cond_signal(&m->wake);
        pthread_mutex_unlock(&j->lock);
        pthread_join(m->thread, NULL);
    }
    if (m->ready)
        journal_discard_draft(j, &m->draft);
    m->ready = false;
    pthread_cond_destroy(&m->wake);
    pthread_cond_destroy(&m->made);
}

void maker_order(struct journal *j)
{
    if (!j->threads)
        return;
    pthread_mutex_lock(&j->lock);
    j->maker.wanted = j->next_size;
    j->maker.due = 0;
    pthread_cond_signal(&j->maker.wake);
    pthread_mutex_unlock(&j->lock);
}

/* Take the draft that was made ahead, if it is large enough; else make one now. */
int journal_take_draft(struct journal *j, uint64_t size, struct draft *ret_draft, pawl_error *error)
{
    struct maker *m = &j->maker;
    pthread_mutex_lock(&j->lock);
    while (m->wanted != 0) {
        m->urgent = true;
        pthread_cond_signal(&m->wake);
        pthread_cond_wait(&m->made, &j->lock);
    }
    bool ready = m->ready;
    struct draft draft = m->draft;
    m->ready = false;
    uint32_t number = ready && draft.size >= size ? 0 : ++m->drafts;
    pthread_mutex_unlock(&j->lock);
    if (ready && draft.size >= size) {
        *ret_draft = draft;
        return PAWL_OK;
    }
    if (ready)
        journal_discard_draft(j, &draft);
    return draft_make(j, size > j->next_size ? size : j->next_size, number, false, ret_draft, error);
}

/* A follower may add a stream to the table meanwhile. It does not count here, because it has no epoch. */
size_t journal_header_size(struct journal *j, const struct streams *streams)
{
    pthread_mutex_lock(&j->lock);
    size_t size = segment_header_size(segment_header_count(streams));
    pthread_mutex_unlock(&j->lock);
    return size;
}

/* Everything but the zeros of a new segment: header, the records it begins with, name. Takes the draft, also on
 * failure. PAWL_EUNKNOWN: it may have its name, in memory or on the disk. Any other error: it is gone. */
int journal_publish(struct journal *j, struct draft *draft, struct segment_header *header,
                    const struct streams *streams, pawl_bytes records, pawl_error *error)
{
    const struct disk *disk = j->disk;
    size_t size = journal_header_size(j, streams);
    uint8_t *bytes = mem_new(j->alloc, 1, size);
    int status = bytes ? PAWL_OK : PAWL_ENOMEM;
    char name[SEGMENT_NAME_MAX];
    segment_name(header->number, header->first_lsn, name);
    struct segment_ref ref = {header->number, header->first_lsn};
    if (status == PAWL_OK) {
        pthread_mutex_lock(&j->lock);
        status = segment_list_reserve(&j->segments);
        pthread_mutex_unlock(&j->lock);
    }
    if (status != PAWL_OK) {
        error_set(error, status, "no memory for the header of segment %s", name);
        goto not_named;
    }
    header->file_size = draft->size;
    pthread_mutex_lock(&j->lock);
    segment_header_encode(header, streams, bytes);
    pthread_mutex_unlock(&j->lock);
    int rc = disk_write_all(disk, draft->file, bytes, size, 0);
    if (rc == 0 && records.size)
        rc = disk_write_all(disk, draft->file, records.data, records.size, size);
    if (rc == 0)
        rc = disk_sync(disk, draft->file);
    if (rc < 0) {
        status = error_errno(error, -rc, "cannot begin segment %s", name);
        goto not_named;
    }
    rc = disk->rename(disk->ctx, j->home.dir, draft->name, name);
    if (rc < 0) {
        /* Without room it was not done. Of any other failure that is not sure, and a segment that has its name
         * ends the one before it: look at the directory again before writing on there. */
        status = error_errno(error, -rc, "cannot name segment %s", name);
        if (status != PAWL_EFULL)
            status = error_wrap(error, PAWL_EUNKNOWN, "the journal has failed");
        goto not_named;
    }
    rc = disk_sync_dir(disk, j->home.dir);
    if (rc < 0) {
        disk->close(disk->ctx, draft->file);
        mem_free(j->alloc, bytes, size);
        error_errno(error, -rc, "cannot sync the directory of segment %s", name);
        return error_wrap(error, PAWL_EUNKNOWN, "the journal has failed");
    }
    mem_free(j->alloc, bytes, size);

    pthread_mutex_lock(&j->lock);
    j->segments.items[j->segments.count++] = ref;
    index_clear(&j->index);
    j->durable_at = size + records.size;
    j->stats.segments_made++;
    pthread_mutex_unlock(&j->lock);
    j->active = (struct active){
        .ref = ref, .file = draft->file, .at = size + records.size, .size = draft->size, .filled = draft->size};
    j->next_size = j->active.size * 2 < j->segment_bytes ? j->active.size * 2 : j->segment_bytes;
    maker_order(j);
    return PAWL_OK;

not_named:
    mem_free(j->alloc, bytes, size);
    journal_discard_draft(j, draft);
    return status;
}

int journal_roll(struct journal *j, uint64_t need, pawl_error *error)
{
    const struct disk *disk = j->disk;
    struct draft draft;
    uint64_t size = journal_header_size(j, &j->streams) + need + WATERMARK_BYTES;
    int status = journal_take_draft(j, size, &draft, error);
    if (status != PAWL_OK)
        return status == PAWL_EFULL || status == PAWL_ENOMEM ? status : PAWL_EIO;

    int rc = disk_sync(disk, j->active.file); /* J1 */
    if (rc < 0) {
        journal_discard_draft(j, &draft);
        error_errno(error, -rc, "cannot sync segment %08" PRIx32, j->active.ref.number);
        return PAWL_EUNKNOWN;
    }
    struct active old = j->active;
    (void)index_save(&j->index, j->next_lsn, disk, j->home.dir, j->home.id, old.ref.number);
    struct segment_header header = {
        .journal = j->home.id,
        .number = old.ref.number + 1,
        .first_lsn = j->next_lsn,
        .chain = j->chain,
        .created_ns = pawl_env_wall_now(j->env).ns,
    };
    status = journal_publish(j, &draft, &header, &j->streams, (pawl_bytes){0}, error);
    if (status == PAWL_EUNKNOWN || status == PAWL_EFULL || status == PAWL_ENOMEM)
        return status;
    if (status != PAWL_OK)
        return PAWL_EIO;
    /* Only room is given back: what is behind .at was never written (J4), and the header of the next segment
     * says where this one ends. */
    (void)disk->truncate(disk->ctx, old.file, old.at);
    disk->close(disk->ctx, old.file);
    return PAWL_OK;
}

/* adapter/journal/refresh.c: a read-only journal, beside a writer that may be alive.
 *
 * It claims nothing and cuts nothing. It shows exactly the records that the files prove to be durable: those up
 * to the highest durable field in the newest segment, or up to a later record that is known durable from
 * elsewhere, if it is there. A writer that goes idle leaves a watermark, so nothing stays hidden for long.
 * After a writer that was killed, the hidden records can be counted.
 */
#include "adapter/journal/impl.h"
#include "base/error.h"

/* Let the journal's readers see what the tail has taken in. */
static int show_tail(struct journal *j, struct segment_list *fresh)
{
    int status = PAWL_OK;
    pthread_mutex_lock(&j->lock);
    for (size_t i = 0; i < j->tail.streams.count && status == PAWL_OK; i++) {
        const struct stream *found = j->tail.streams.items[i];
        struct stream *s = streams_add(&j->streams, found->id);
        if (s)
            s->visible = found->next - 1;
        else
            status = PAWL_ENOMEM;
    }
    if (status == PAWL_OK) {
        struct segment_list old = j->segments;
        j->segments = *fresh;
        *fresh = old;
        j->durable_lsn = j->tail.lsn;
        j->durable_at = j->tail.at;
    }
    pthread_mutex_unlock(&j->lock);
    return status;
}

static int look_again(struct journal *j, struct segment_list *list, struct tail_end *ret_end, pawl_error *error)
{
    int status = segment_list_load(list, j->disk, j->home.dir, error);
    /* Listing a directory takes time: a writer that begins new segments meanwhile can make it look as if one
     * were missing. */
    if (status == PAWL_ECORRUPT)
        status = segment_list_load(list, j->disk, j->home.dir, error);
    if (status != PAWL_OK)
        return status;
    if (list->count == 0)
        return error_set(error, PAWL_ECORRUPT, "%s/journal has no segment: all of them are missing", j->path);
    struct segment_ref newest = list->items[list->count - 1];
    bool moved = j->tail.file < 0 || j->tail.header.number != newest.number;
    if (moved) {
        struct tail next;
        status = tail_open(&next, j->disk, j->home.dir, newest, &j->home.id, j->alloc, error);
        if (status != PAWL_OK)
            return status;
        if (j->tail.file >= 0)
            tail_close(&j->tail);
        j->tail = next;
    }
    struct tail_end end;
    status = tail_probe(&j->tail, &end, error);
    if (status == PAWL_OK && moved)
        status = tail_judge(&j->tail, &end, 0, true, error);
    if (status != PAWL_OK)
        return status;
    uint64_t elsewhere = j->witness < end.whole ? j->witness : end.whole;
    uint64_t durable = end.witnessed > elsewhere ? end.witnessed : elsewhere;
    status = tail_advance(&j->tail, durable, NULL, NULL, error);
    *ret_end = end;
    return status == PAWL_OK ? show_tail(j, list) : status;
}

/* Take note of what stands between the tail's present record and the end of the whole ones: of each stream that
 * has entries there, .visible is the last that is shown, and .next is behind the last that is not. */
static int find_unwitnessed(struct tail *t, const struct tail_end *end, struct streams *found,
                            pawl_error *error)
{
    struct record r;
    int status = PAWL_OK;
    scan_seek(&t->scan, t->file, t->at, t->lsn + 1, t->chain, true);
    while (status == PAWL_OK && t->scan.at < end->whole_at && scan_next(&t->scan, &r, &status) == SCAN_RECORD) {
        if (r.type != RECORD_ENTRY)
            continue;
        struct stream *s = streams_add(found, r.stream);
        if (!s)
            return error_set(error, PAWL_ENOMEM, "no memory to count what is not shown");
        if (!s->touched)
            s->visible = r.offset - 1;
        s->touched = true;
        s->next = r.offset + 1;
    }
    return status == PAWL_OK ? PAWL_OK : error_set(error, status, "%s", pawl_status_text(status));
}

int journal_unwitnessed(pawl_log *log, journal_unwitnessed_visit visit, void *arg, pawl_error *error)
{
    struct journal *j = (struct journal *)log;
    struct segment_list list = {.alloc = j->alloc};
    struct streams found;
    struct tail_end end;
    if (!j->read_only)
        return PAWL_OK; /* opening recovered it */
    streams_init(&found, j->alloc);
    pthread_mutex_lock(&j->refresh);
    int status = look_again(j, &list, &end, error);
    if (status == PAWL_OK)
        status = find_unwitnessed(&j->tail, &end, &found, error);
    pthread_mutex_unlock(&j->refresh);
    for (size_t i = 0; status == PAWL_OK && i < found.count; i++) {
        const struct stream *s = found.items[i];
        visit(arg, s->id, s->visible + 1, s->next - 1 - s->visible);
    }
    streams_release(&found);
    segment_list_release(&list);
    return status;
}

bool journal_has_writer(pawl_log *log)
{
    const struct journal *j = (const struct journal *)log;
    return !j->read_only || home_has_writer(&j->home);
}

struct id128 journal_id(pawl_log *log)
{
    return ((const struct journal *)log)->home.id;
}

struct telling {
    pawl_unwitnessed_visit visit;
    void *arg;
};

static void tell(void *arg, pawl_stream stream, uint64_t first, uint64_t count)
{
    const struct telling *t = arg;
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_stream_format(stream, name);
    t->visit(t->arg, name, first, count);
}

/* Beside a writer they are what it is writing just now. */
int journal_left_out(pawl_log *log, pawl_unwitnessed_visit visit, void *arg, pawl_error *error)
{
    struct telling telling = {.visit = visit, .arg = arg};
    return journal_has_writer(log) ? PAWL_OK : journal_unwitnessed(log, tell, &telling, error);
}

void journal_witness(pawl_log *log, pawl_place place)
{
    struct journal *j = (struct journal *)log;
    pthread_mutex_lock(&j->refresh);
    if (place.position > j->witness)
        j->witness = place.position;
    pthread_mutex_unlock(&j->refresh);
}

int journal_refresh(struct journal *j, pawl_error *error)
{
    struct segment_list list = {.alloc = j->alloc};
    struct tail_end end;
    pthread_mutex_lock(&j->refresh);
    int status = look_again(j, &list, &end, error);
    pthread_mutex_unlock(&j->refresh);
    segment_list_release(&list);
    return status;
}

#include "engine/check/move.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/latch.h"
#include "base/wait.h"
#include "engine/log/log.h"

#define ENTRIES_AT_ONCE ((size_t)1024)
#define BYTES_AT_ONCE   ((size_t)1 << 20)
#define ATTEMPTS        8 /* without an entry between them */
#define PAUSE_NS        ((uint64_t)500 * 1000 * 1000)

int move_tell(struct move *m, pawl_error *error)
{
    m->total = m->total < m->done ? m->done : m->total;
    if (!m->progress || m->progress(m->arg, m->done, m->total))
        return PAWL_OK;
    return error_set(error, PAWL_ECANCELED, "%s was cancelled; when it is run again, it goes on there",
                     m->verb);
}

static void claimed(pawl_claim *claim)
{
    latch_set(claim->arg);
}

int move_claim(struct move *m, pawl_stream stream, uint64_t *ret_epoch, uint64_t *ret_next, pawl_error *error)
{
    struct latch latch;
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_claim claim = {.stream = stream, .done = claimed, .arg = &latch, .error = error};
    latch_init(&latch);
    pawl_stream_format(stream, name);
    int status = pawl_log_claim(m->to, &claim);
    if (status != PAWL_OK)
        return error_set(error, status, "cannot claim %s", name);
    latch_wait(&latch);
    if (claim.status != PAWL_OK)
        return error_wrap(error, claim.status, "cannot claim %s", name);
    *ret_epoch = claim.epoch;
    *ret_next = claim.next;
    return PAWL_OK;
}

/* --- comparing --- */

static int differ(const struct move *m, pawl_stream stream, uint64_t offset, const char *how, pawl_error *error)
{
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_stream_format(stream, name);
    return error_set(error, PAWL_EEXISTS,
                     "%.300s is not empty, and is no copy of this log: %s, offset %" PRIu64 " %s", m->to_name,
                     name, offset, how);
}

static int compare_entries(struct move *m, struct log_entries *from, struct log_entries *to, uint64_t count,
                           pawl_error *error)
{
    int status = PAWL_OK;
    for (uint64_t i = 1; status == PAWL_OK && i <= count; i++) {
        const struct copied_entry *was, *is;
        status = log_entries_next(from, &was, error);
        if (status == PAWL_ENOTFOUND)
            return differ(m, from->stream, i, "is there, and not in the log that is copied", error);
        if (status == PAWL_OK)
            status = log_entries_next(to, &is, error);
        if (status == PAWL_ENOTFOUND)
            return differ(m, from->stream, i, "is not there", error);
        if (status == PAWL_OK
            && (was->offset != i || is->offset != i || was->kind != is->kind
                || !bytes_equal(was->body, is->body)))
            return differ(m, from->stream, i, "is another entry", error);
        m->done++;
        if (status == PAWL_OK && i % ENTRIES_AT_ONCE == 0)
            status = move_tell(m, error);
    }
    return status == PAWL_OK ? move_tell(m, error) : status;
}

int move_compare(struct move *m, pawl_stream stream, uint64_t count, pawl_error *error)
{
    struct log_entries from, to;
    log_entries_init(&from, m->from, stream, 1, NULL);
    log_entries_init(&to, m->to, stream, 1, NULL);
    int status = compare_entries(m, &from, &to, count, error);
    log_entries_release(&from);
    log_entries_release(&to);
    return status;
}

/* --- copying --- */

static void appended(pawl_append *append)
{
    latch_set(append->arg);
}

static int append_all(struct move *m, pawl_append_entry *entries, size_t count, pawl_error *error)
{
    struct latch latch;
    pawl_append append = {
        .entries = entries, .count = count, .alone = true, .done = appended, .arg = &latch, .error = error};
    latch_init(&latch);
    int status = pawl_log_append(m->to, &append);
    if (status == PAWL_OK)
        latch_wait(&latch);
    else if (status != PAWL_APPEND_DONE)
        return error_set(error, status, "cannot write to %.300s", m->to_name);
    return append.status;
}

int move_append(struct move *m, const pawl_entry *entry, pawl_error *error)
{
    pawl_append_entry one = {.entry = *entry};
    return append_all(m, &one, 1, error);
}

/* Append what the source has from an offset on, under one claim; *next: what is not there yet. */
static int append_from(struct move *m, const struct move_stream *s, uint64_t epoch, uint64_t *next,
                       pawl_error *error)
{
    struct log_entries from;
    pawl_append_entry entries[ENTRIES_AT_ONCE];
    int status = PAWL_OK;
    log_entries_init(&from, m->from, s->id, *next, NULL);
    while (status == PAWL_OK && *next <= s->last) {
        size_t count = 0, bytes = 0;
        do {
            const struct copied_entry *e;
            status = log_entries_next(&from, &e, error);
            if (status == PAWL_ENOTFOUND || (status == PAWL_OK && e->offset != *next + count))
                status = error_set(error, PAWL_ECORRUPT,
                                   "the log that is copied has no entry %" PRIu64 " any more", *next + count);
            if (status != PAWL_OK)
                break;
            bytes += e->body.size;
            entries[count++] = (pawl_append_entry){
                .entry = {
                    .stream = s->id, .epoch = epoch, .offset = e->offset, .kind = e->kind, .body = e->body}};
        } while (count < ENTRIES_AT_ONCE && bytes < BYTES_AT_ONCE && *next + count <= s->last
                 && log_entries_has_more(&from));
        if (status == PAWL_OK)
            status = append_all(m, entries, count, error);
        if (status != PAWL_OK)
            break;
        *next += count;
        m->copied += count;
        m->done += count;
        status = move_tell(m, error);
    }
    log_entries_release(&from);
    return status;
}

static int refuse_more(const struct move *m, const struct move_stream *s, uint64_t next, pawl_error *error)
{
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_stream_format(s->id, name);
    return error_set(error, PAWL_EEXISTS,
                     "%.300s is not empty: %s has %" PRIu64 " entries, and the log that is copied has %" PRIu64
                     " of it",
                     m->to_name, name, next - 1, s->last);
}

int move_copy(struct move *m, const struct move_stream *s, pawl_error *error)
{
    uint64_t epoch, next, compared = 0;
    int status = PAWL_EUNKNOWN;
    for (unsigned attempt = 0; status == PAWL_EUNKNOWN && attempt < ATTEMPTS; attempt++) {
        uint64_t before = m->copied;
        if (attempt > 0) {
            wait_pause(PAUSE_NS);
            status = move_tell(m, error);
            if (status != PAWL_OK)
                break;
        }
        status = move_claim(m, s->id, &epoch, &next, error); /* M2 */
        if (status != PAWL_OK)
            continue;
        if (next - 1 > s->last)
            return refuse_more(m, s, next, error);
        if (compared == 0 && next > 1) /* what this call has appended itself is compared in the end */
            status = move_compare(m, s->id, next - 1, error); /* M1 */
        compared = 1;
        if (status == PAWL_OK)
            status = append_from(m, s, epoch, &next, error);
        attempt = m->copied > before ? 0 : attempt;
    }
    return status;
}

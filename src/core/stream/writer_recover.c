/* core/stream/writer_recover.c: how a writer comes back to RUNNING from any other state.
 *
 * Entries are copied while they are read, and replayed in one transaction at the end of each read. They cannot
 * be replayed one by one: between two turns of the loop others write to the store, and would commit an entry
 * that is half applied. */
#include <inttypes.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/heap.h"
#include "core/stream/writer_impl.h"

#define ENTRIES_AT_ONCE ((uint64_t)8192)
#define BYTES_AT_ONCE   ((size_t)4 << 20)
#define RETRY_MIN       (10 * PAWL_MILLISECOND)
#define RETRY_MAX       PAWL_SECOND

static void retry_over(pawl_timer *timer)
{
    struct writer *w = heap_entry(timer, struct writer, retry);
    w->retrying = false;
    writer_step(w);
}

void writer_retry(struct writer *w)
{
    w->retry_delay = w->retry_delay == 0 ? RETRY_MIN : w->retry_delay * 2;
    w->retry_delay = w->retry_delay > RETRY_MAX ? RETRY_MAX : w->retry_delay;
    w->retrying = true;
    w->retry.fn = retry_over;
    pawl_env_after(w->options.env, &w->retry, w->retry_delay);
    if (w->options.ops->will_retry)
        w->options.ops->will_retry(w->options.ctx);
}

/* The store's position, as the user has it at hand. */
static struct writer_position position_of(const struct writer *w)
{
    struct writer_position position = {0};
    (void)w->options.ops->position(w->options.ctx, false, &position, NULL);
    return position;
}

/* --- draining --- */

static void drain(struct writer *w)
{
    const struct writer_ops *ops = w->options.ops;
    for (const struct writer_batch *b = w->first; b; b = b->next)
        if (b->state == BATCH_SENT || b->state == BATCH_DURABLE)
            return;
    for (struct writer_batch *b = w->first, *next; b; b = next) {
        next = b->next;
        if (b->state != BATCH_FILLING)
            continue;
        ops->undo(w->options.ctx, b);
        writer_free_batch(b);
    }
    if (ops->drained && !ops->drained(w->options.ctx))
        return;
    if (w->state == WRITER_DRAINING) /* drained may have closed it */
        writer_move(w, w->cause == PAWL_OK ? WRITER_PREPARING : WRITER_CLAIMING);
}

/* --- claiming --- */

static void claimed(pawl_claim *claim)
{
    struct writer *w = claim->arg;
    char name[PAWL_STREAM_TEXT_MAX];
    w->claiming = false;
    if (w->state == WRITER_CLOSED || w->given_up) {
        writer_step(w);
        return;
    }
    if (claim->status == PAWL_EFENCED && claim->group0 > 0 && claim->rival >= claim->group0) {
        writer_refuse(w, PAWL_EFENCED);
        return;
    }
    if (claim->status == PAWL_ECORRUPT) { /* no other claim would find anything else */
        writer_refuse(w, PAWL_ECORRUPT);
        return;
    }
    if (claim->status != PAWL_OK) {
        writer_retry(w);
        return;
    }
    w->retry_delay = 0;
    w->epoch = claim->epoch;
    w->next = claim->next;
    uint64_t offset = position_of(w).offset;
    if (offset >= w->next) {
        pawl_stream_format(w->options.stream, name);
        error_set(&w->error, PAWL_ECORRUPT, "%s: the state is at offset %" PRIu64 ", the log ends at %" PRIu64,
                  name, offset, w->next - 1);
        writer_refuse(w, PAWL_ECORRUPT);
        return;
    }
    writer_move(w, WRITER_CATCHING_UP);
    writer_step(w);
}

static void claim(struct writer *w)
{
    w->claim = (pawl_claim){.stream = w->options.stream,
                            .group0 = w->options.assignment,
                            .done = claimed,
                            .arg = w,
                            .error = &w->error};
    w->claiming = pawl_log_claim(w->options.log, &w->claim) == PAWL_OK;
    if (!w->claiming)
        writer_retry(w);
}

/* --- the fate of what was lost --- */

/* Tell the fate of lost entries up to an offset. written: entries of the log that were read just now. An entry
 * that is not among them gets the fate otherwise. */
static void settle_upto(struct writer *w, uint64_t upto, const struct copied_entry *written,
                        enum writer_fate otherwise)
{
    const struct writer_ops *ops = w->options.ops;
    for (struct writer_batch *b = w->first, *next; b; b = next) {
        next = b->next;
        if (b->state != BATCH_LOST)
            continue;
        for (; b->settled < b->count; b->settled++) {
            const pawl_entry *entry = &b->entries[b->settled].entry;
            if (entry->offset > upto)
                return;
            while (written && written->offset < entry->offset)
                written = written->next;
            bool found = written && written->offset == entry->offset && bytes_equal(written->body, entry->body);
            if (ops->fate)
                ops->fate(w->options.ctx, b, b->settled, found ? FATE_WRITTEN : otherwise);
        }
        writer_free_batch(b);
    }
}

void writer_settle(struct writer *w, enum writer_fate fate)
{
    settle_upto(w, UINT64_MAX, NULL, fate);
}

/* --- catching up --- */

static bool take_entry(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct writer *w = read->arg;
    return copies_take(&w->copies, entry, place, BYTES_AT_ONCE);
}

/* The first read begins with the last entry that the store has. Compare the two, and leave it out of what is
 * replayed. */
static int verify_first(struct writer *w, const char *name)
{
    const struct copied_entry *first = w->copies.first;
    struct writer_position position = position_of(w);
    if (!first)
        return error_set(&w->error, PAWL_ECORRUPT, "%s ends at offset %" PRIu64 ", and was claimed at %" PRIu64,
                         name, w->read.from - 1, w->next);
    if (w->verified || position.offset == 0)
        return PAWL_OK;
    if (first->offset != position.offset || hash_checksum(0, first->body) != position.checksum)
        return error_set(&w->error, PAWL_ECORRUPT,
                         "%s: the entry at offset %" PRIu64 " is not the one that the state was made from",
                         name, position.offset);
    w->copies.first = first->next;
    return PAWL_OK;
}

/* Replay all entries of a read in one transaction. After a failure the position must be read again. */
static int replay(struct writer *w)
{
    char name[PAWL_STREAM_TEXT_MAX];
    pawl_stream_format(w->options.stream, name);
    int status = verify_first(w, name);
    if (status != PAWL_OK)
        return status;
    w->unread = true;
    if (w->copies.first)
        status = w->options.ops->replay(w->options.ctx, w->copies.first, &w->copies.memory, &w->error);
    if (status != PAWL_OK)
        return error_wrap(&w->error, status, "%s", name);
    w->unread = false;
    w->verified = true;
    return PAWL_OK;
}

static void caught_up(struct writer *w)
{
    writer_settle(w, FATE_NOT_WRITTEN);   /* W5: it was read up to the claim */
    if (w->state == WRITER_CATCHING_UP) { /* a callback may have closed it */
        w->cause = PAWL_OK;
        copies_release(&w->copies);
        writer_move(w, WRITER_PREPARING);
    }
    writer_step(w);
}

static bool is_for_good(int status)
{
    return status == PAWL_ECORRUPT || status == PAWL_EVERSION || status == PAWL_EINVAL
           || status == PAWL_ETOOBIG;
}

static void entries_read(pawl_read *read)
{
    struct writer *w = read->arg;
    w->reading = false;
    if (w->state == WRITER_CLOSED || w->given_up) {
        writer_step(w);
        return;
    }
    int status = read->status == PAWL_OK ? w->copies.status : read->status;
    if (status == PAWL_OK)
        status = replay(w);
    if (is_for_good(status)) {
        writer_refuse(w, status == PAWL_EVERSION ? status : PAWL_ECORRUPT);
        return;
    }
    if (status != PAWL_OK) {
        writer_retry(w);
        return;
    }
    w->retry_delay = 0;
    settle_upto(w, position_of(w).offset, w->copies.first, FATE_NOT_WRITTEN);
    writer_step(w);
}

static void catch_up(struct writer *w)
{
    struct writer_position position;
    if (w->options.ops->position(w->options.ctx, w->unread, &position, &w->error) != PAWL_OK) {
        writer_retry(w);
        return;
    }
    w->unread = false;
    bool whole = w->verified || position.offset == 0;
    uint64_t from = whole ? position.offset + 1 : position.offset;
    if (from >= w->next) {
        caught_up(w);
        return;
    }
    uint64_t left = w->next - from;
    copies_reset(&w->copies);
    w->read = (pawl_read){.stream = w->options.stream,
                          .from = from,
                          .limit = left < ENTRIES_AT_ONCE ? left : ENTRIES_AT_ONCE,
                          .visit = take_entry,
                          .done = entries_read,
                          .arg = w,
                          .error = &w->error};
    if (!whole)
        w->read.at = position.place;
    w->reading = pawl_log_read(w->options.log, &w->read) == PAWL_OK;
    if (!w->reading)
        writer_retry(w);
}

/* writer_give_up was called. What was sent is waited for. */
static void give_up(struct writer *w)
{
    if (w->state == WRITER_RUNNING)
        writer_drain(w);
    if (w->state == WRITER_DRAINING || w->state == WRITER_REFUSED || w->claiming || w->reading)
        return;
    w->error = w->given_up_to;
    writer_refuse(w, PAWL_EFENCED);
}

void writer_recover(struct writer *w)
{
    if (w->state == WRITER_DRAINING)
        drain(w);
    if (w->state == WRITER_CLOSED)
        writer_end(w);
    else if (w->given_up)
        give_up(w);
    else if (w->retrying)
        return;
    else if (w->state == WRITER_CLAIMING && !w->claiming)
        claim(w);
    else if (w->state == WRITER_CATCHING_UP && !w->reading)
        catch_up(w);
    else if (w->state == WRITER_PREPARING)
        w->options.ops->prepare(w->options.ctx);
}

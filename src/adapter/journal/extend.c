/* adapter/journal/extend.c: a segment that was closed cleanly goes on.
 *
 *     sealed, cut behind its seal ──► full size, reserved ──► zeros, synced ──► active
 *
 * This is done when the first record comes: a journal that is opened and closed without one is left as it was.
 * If any step fails, the segment stays sealed and a new one is begun instead. So extending only saves a file,
 * and nothing else depends on it.
 *
 * A loss of power before the sync may leave any of it: the file ends behind its seal, or has its full size, or
 * one in between. Behind the seal there are only zeros, whatever the size, because the first record is written
 * after the sync. So a seal with zeros behind it is an end like any other; a file that is short and ends in
 * anything else is damaged.
 *
 * The seal is a watermark like any other once a record stands behind it: it no longer ends the file. */
#include "adapter/journal/impl.h"

#define STEP_FIRST ((uint64_t)64 << 10)
#define STEP_MAX   ((uint64_t)1 << 20)

/* How many zeros are written next: each time twice as many. If all were written at once, an opening that appends
 * one entry would write a whole segment. */
static uint64_t next_step(struct journal *j)
{
    uint64_t quarter = j->segment_bytes / 4, most = quarter < STEP_MAX ? quarter : STEP_MAX;
    uint64_t step = j->active.step ? j->active.step * 2 : STEP_FIRST;
    return j->active.step = step < most ? step : most;
}

static int write_ahead(struct journal *j, uint64_t from, uint64_t until)
{
    struct active *a = &j->active;
    uint64_t end = until < a->full ? until : a->full;
    int rc = disk_write_zeros(j->disk, a->file, from, end - from);
    if (rc == 0)
        a->filled = end;
    return rc;
}

/* Reserved blocks read as zeros. The zeros are written too, ahead of the records: then the syncs of the appends
 * change metadata only once a step. */
int journal_fill(struct journal *j, uint64_t end)
{
    return write_ahead(j, end, end + next_step(j));
}

/* The full size, with blocks for all of it. A disk without room leaves the file as it was. */
static int take_space(struct journal *j, bool *ret_promised)
{
    struct active *a = &j->active;
    int rc = j->disk->truncate(j->disk->ctx, a->file, a->full);
    if (rc < 0)
        return rc;
    rc = disk_reserve(j->disk, a->file, a->full);
    if (rc < 0)
        (void)j->disk->truncate(j->disk->ctx, a->file, a->at);
    *ret_promised = rc == 0;
    return rc < 0 ? rc : 0;
}

bool journal_extend(struct journal *j, uint64_t need)
{
    struct active *a = &j->active;
    bool promised;
    if (a->at + need + WATERMARK_BYTES > a->full)
        return false;
    if (take_space(j, &promised) < 0)
        return false;
    int rc = write_ahead(j, a->at, promised ? a->at + next_step(j) : a->full);
    if (rc == 0)
        rc = disk_sync(j->disk, a->file);
    if (rc < 0) {
        a->full = 0; /* the state of the file is not known now: do not try again */
        return false;
    }
    a->size = a->full;
    a->sealed = false;
    maker_order(j);
    return true;
}

#include "engine/log/entries.h"

#include "base/error.h"

#define ENTRIES_AT_ONCE ((uint64_t)4096)
#define BYTES_AT_ONCE   ((size_t)1 << 20)
#define CHUNK           ((size_t)64 * 1024)

void log_entries_init(struct log_entries *e, pawl_log *log, pawl_stream stream, uint64_t from,
                      const pawl_allocator *alloc)
{
    *e = (struct log_entries){.log = log, .stream = stream, .from = from};
    copies_init(&e->copies, alloc, CHUNK);
}

void log_entries_release(struct log_entries *e)
{
    copies_release(&e->copies);
}

static bool take(pawl_read *read, const pawl_entry *entry, pawl_place place)
{
    struct log_entries *e = read->arg;
    if (entry->offset < e->from)
        return true; /* where the piece before ended */
    e->place = place;
    return copies_take(&e->copies, entry, place, BYTES_AT_ONCE);
}

static void never_called(pawl_read *read)
{
    (void)read;
}

static int read_on(struct log_entries *e, pawl_error *error)
{
    char name[PAWL_STREAM_TEXT_MAX];
    bool placed = e->place.position != 0;
    pawl_read read = {.stream = e->stream,
                      .from = placed ? e->from - 1 : e->from,
                      .at = e->place,
                      .limit = ENTRIES_AT_ONCE,
                      .alone = true,
                      .visit = take,
                      .done = never_called,
                      .arg = e,
                      .error = error};
    copies_reset(&e->copies);
    int status = pawl_log_read(e->log, &read);
    if (status != PAWL_READ_DONE) {
        pawl_stream_format(e->stream, name);
        return error_set(error, status, "cannot read %s", name);
    }
    e->from = read.next;
    return read.status != PAWL_OK ? read.status : e->copies.status;
}

int log_entries_next(struct log_entries *e, const struct copied_entry **ret_entry, pawl_error *error)
{
    int status = e->copies.first ? PAWL_OK : read_on(e, error);
    if (status != PAWL_OK)
        return status;
    if (!e->copies.first)
        return PAWL_ENOTFOUND;
    *ret_entry = e->copies.first;
    e->copies.first = e->copies.first->next;
    return PAWL_OK;
}

/* adapter/kafka/eye.c: a stream as a reader sees it: judged, and put together. */
#include <stdio.h>
#include <string.h>

#include "adapter/kafka/impl.h"
#include "base/alloc.h"
#include "base/error.h"

/* It begins one record early: that one is known, so it proves that the topic still is the same, and it brings
 * an answer at once where nothing new has come. */
int eye_open(struct view *view, uint64_t from, bool bell, struct eye *eye, pawl_error *error)
{
    *eye = (struct eye){.mark = *view_mark_before(view, from), .known = view->latest.judge.at};
    uint64_t at = eye->mark.judge.at;
    return cursor_open(view, at > 0 ? at - 1 : 0, bell, &eye->cursor, error);
}

void eye_close(struct eye *eye)
{
    if (!eye->cursor.view)
        return;
    const pawl_allocator *alloc = eye->cursor.view->log->alloc;
    cursor_close(&eye->cursor);
    mem_free(alloc, eye->part, eye->part_room);
    eye->part = NULL;
    eye->part_room = 0;
}

bool eye_at_end(const struct eye *eye)
{
    uint64_t at = eye->mark.judge.at;
    return at >= eye->known && cursor_end(&eye->cursor) <= at;
}

static int keep_part(struct eye *eye, const struct kafka_record *r, pawl_error *error)
{
    const struct view *v = eye->cursor.view;
    size_t size = (r->head.fragment == 0 ? 0 : eye->part_size) + r->body.size;
    if (size > PAWL_ENTRY_BYTES_MAX)
        return view_fault(v, PAWL_ECORRUPT, r->head.position, error,
                          "its entry is larger than any entry may be");
    if (size > eye->part_room) {
        size_t room = (size_t)r->fragments * KAFKA_BODY_BYTES_MAX;
        room = room < size ? size : room;
        void *part = mem_resize(v->log->alloc, eye->part, eye->part_room, room);
        if (!part)
            return error_set(error, PAWL_ENOMEM, "no memory for an entry of %zu bytes", room);
        eye->part = part;
        eye->part_room = room;
    }
    if (r->body.size > 0)
        memcpy(eye->part + size - r->body.size, r->body.data, r->body.size);
    eye->part_size = size;
    return PAWL_OK;
}

int eye_see(struct eye *eye, const rd_kafka_message_t *m, enum sight *ret_sight, pawl_entry *ret_entry,
            pawl_place *ret_place, pawl_error *error)
{
    const struct view *v = eye->cursor.view;
    struct kafka_record r;
    enum sight sight;
    int status = message_read(v, m, &eye->mark, &sight, &r, error);
    *ret_sight = SIGHT_NOTHING;
    if (status != PAWL_OK || sight == SIGHT_NOTHING)
        return status;
    if (sight == SIGHT_END) {
        if (r.head.position >= eye->mark.judge.at && r.head.position >= eye->known)
            *ret_sight = SIGHT_END;
        return PAWL_OK;
    }
    enum claim_verdict verdict = judge_next(&eye->mark.judge, &r.head);
    if (claim_verdict_fatal(verdict))
        return view_fault(v, PAWL_ECORRUPT, verdict == CLAIM_HOLE ? eye->mark.judge.at : r.head.position, error,
                          verdict == CLAIM_HOLE ? "it is missing" : "it does not continue the chain");
    eye->mark.sum = r.head.checksum;
    if (verdict != CLAIM_COUNTS && verdict != CLAIM_PART)
        eye->ignored++;
    if (r.head.kind != CLAIM_KIND_EVENT || (verdict != CLAIM_COUNTS && verdict != CLAIM_PART))
        return PAWL_OK;
    if (r.head.fragment == 0)
        eye->first = r.head.position;
    if (r.fragments > 1) {
        status = keep_part(eye, &r, error);
        if (status != PAWL_OK)
            return status;
    }
    if (verdict == CLAIM_PART)
        return PAWL_OK;
    *ret_entry = (pawl_entry){.stream = v->stream,
                              .epoch = r.head.epoch,
                              .offset = r.head.offset,
                              .kind = r.kind,
                              .body = r.fragments > 1 ? (pawl_bytes){eye->part, eye->part_size} : r.body};
    *ret_place = (pawl_place){.position = eye->first + 1, .hint = r.head.epoch};
    *ret_sight = SIGHT_ENTRY;
    return PAWL_OK;
}

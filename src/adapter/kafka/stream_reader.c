/* adapter/kafka/stream_reader.c: messages of a stream in, judged entries out. */
#include <stdio.h>
#include <string.h>

#include "adapter/kafka/impl.h"
#include "base/alloc.h"
#include "base/error.h"

/* The reader begins one record early. That record is known, so it proves that the topic is still the same one,
 * and it brings an answer at once if nothing new has come. */
int stream_reader_open(struct stream *stream, uint64_t from, bool bell, struct stream_reader *reader,
                       pawl_error *error)
{
    *reader = (struct stream_reader){
        .judged = *stream_resume_before(stream, from), .known = stream->latest.judge.at, .bell = bell};
    uint64_t at = reader->judged.judge.at;
    return cursor_open(stream, at > 0 ? at - 1 : 0, bell, &reader->cursor, error);
}

int stream_reader_open_at(struct stream *stream, const struct seek *seek, bool bell,
                          struct stream_reader *reader, pawl_error *error)
{
    *reader = (struct stream_reader){.judged.judge = seek->judge, .upto = seek->upto, .bell = bell};
    return cursor_open(stream, seek->judge.at, bell, &reader->cursor, error);
}

void stream_reader_suspend(struct stream_reader *reader)
{
    cursor_close(&reader->cursor);
}

int stream_reader_resume(struct stream_reader *reader, uint64_t high, pawl_error *error)
{
    struct stream *stream = reader->cursor.stream;
    uint64_t at = reader->judged.judge.at;
    cursor_close(&reader->cursor);
    reader->known = reader->known < high ? high : reader->known;
    return cursor_open(stream, at > 0 ? at - 1 : 0, reader->bell, &reader->cursor, error);
}

void stream_reader_close(struct stream_reader *reader)
{
    if (!reader->cursor.stream)
        return;
    const pawl_allocator *alloc = reader->cursor.stream->log->alloc;
    cursor_close(&reader->cursor);
    mem_free(alloc, reader->part, reader->part_room);
    reader->part = NULL;
    reader->part_room = 0;
}

bool stream_reader_at_end(const struct stream_reader *reader)
{
    uint64_t at = reader->judged.judge.at;
    return reader->upto == 0 && at >= reader->known && cursor_end(&reader->cursor) <= at;
}

static int keep_part(struct stream_reader *reader, const struct kafka_record *r, pawl_error *error)
{
    const struct stream *s = reader->cursor.stream;
    size_t size = (r->head.fragment == 0 ? 0 : reader->part_size) + r->body.size;
    if (size > PAWL_ENTRY_BYTES_MAX)
        return stream_fault(s, PAWL_ECORRUPT, r->head.position, error,
                            "its entry is larger than any entry may be");
    if (size > reader->part_room) {
        size_t room = (size_t)r->fragments * KAFKA_BODY_BYTES_MAX;
        room = room < size ? size : room;
        void *part = mem_resize(s->log->alloc, reader->part, reader->part_room, room);
        if (!part)
            return error_set(error, PAWL_ENOMEM, "no memory for an entry of %zu bytes", room);
        reader->part = part;
        reader->part_room = room;
    }
    if (r->body.size > 0)
        memcpy(reader->part + size - r->body.size, r->body.data, r->body.size);
    reader->part_size = size;
    return PAWL_OK;
}

/* Of a reader that began at a place that was found. False: it is lost. */
static bool judge_found(struct stream_reader *reader, const struct claim_record *r,
                        enum claim_verdict *ret_verdict)
{
    if (reader->judged.judge.next > reader->upto)
        return false;
    *ret_verdict = finder_judge_next(&reader->judged.judge, r);
    return *ret_verdict == CLAIM_COUNTS || *ret_verdict == CLAIM_PART || *ret_verdict == CLAIM_STALE;
}

static int judge_record(struct stream_reader *reader, const struct claim_record *r,
                        enum claim_verdict *ret_verdict, pawl_error *error)
{
    const struct stream *s = reader->cursor.stream;
    enum claim_verdict verdict = judge_next(&reader->judged.judge, r);
    reader->verdict = verdict;
    if (claim_verdict_fatal(verdict))
        return stream_fault(s, PAWL_ECORRUPT, verdict == CLAIM_HOLE ? reader->judged.judge.at : r->position,
                            error, verdict == CLAIM_HOLE ? "it is missing" : "it does not continue the chain");
    reader->judged.sum = r->checksum;
    if (verdict != CLAIM_COUNTS && verdict != CLAIM_PART)
        reader->ignored++;
    *ret_verdict = verdict;
    return PAWL_OK;
}

int stream_reader_take(struct stream_reader *reader, const rd_kafka_message_t *m, enum found *ret_found,
                       pawl_entry *ret_entry, pawl_place *ret_place, pawl_error *error)
{
    const struct stream *s = reader->cursor.stream;
    struct kafka_record r;
    enum found found;
    enum claim_verdict verdict = CLAIM_STALE;
    atomic_fetch_add_explicit(&s->log->read, m->err == RD_KAFKA_RESP_ERR_NO_ERROR, memory_order_relaxed);
    int status = message_read(s, m, &reader->judged, &found, &r, error);
    *ret_found = FOUND_NOTHING;
    if (reader->upto > 0
        && (status != PAWL_OK || found == FOUND_DOUBT || found == FOUND_END
            || (found == FOUND_ENTRY && !judge_found(reader, &r.head, &verdict)))) {
        *ret_found = FOUND_LOST; /* whatever it is: whoever reads from a resume point will say it */
        return PAWL_OK;
    }
    if (status != PAWL_OK)
        return status;
    if (found == FOUND_DOUBT)
        *ret_found = FOUND_DOUBT;
    if (found != FOUND_ENTRY && found != FOUND_END)
        return PAWL_OK;
    if (found == FOUND_END) {
        if (r.head.position < reader->known)
            *ret_found = FOUND_DOUBT;
        else if (r.head.position >= reader->judged.judge.at)
            *ret_found = FOUND_END;
        return PAWL_OK;
    }
    if (reader->upto == 0) {
        status = judge_record(reader, &r.head, &verdict, error);
        if (status != PAWL_OK)
            return status;
    }
    if (r.head.kind != CLAIM_KIND_EVENT || (verdict != CLAIM_COUNTS && verdict != CLAIM_PART))
        return PAWL_OK;
    if (r.head.fragment == 0)
        reader->first = r.head.position;
    if (r.fragments > 1) {
        status = keep_part(reader, &r, error);
        if (status != PAWL_OK)
            return status;
    }
    if (verdict == CLAIM_PART)
        return PAWL_OK;
    *ret_entry = (pawl_entry){.stream = s->id,
                              .epoch = r.head.epoch,
                              .offset = r.head.offset,
                              .kind = r.kind,
                              .body = r.fragments > 1 ? (pawl_bytes){reader->part, reader->part_size} : r.body};
    *ret_place = (pawl_place){.position = reader->first + 1, .hint = r.head.epoch};
    *ret_found = FOUND_ENTRY;
    return PAWL_OK;
}

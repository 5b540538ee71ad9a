/* adapter/kafka/bounds.c: where a stream begins and ends, as its present leader says.
 *
 * A leader that hung and was replaced does not know that when it goes on. For a moment it answers readers from a
 * log that lacks what was acknowledged meanwhile: it tells an end that is not the end, and says of a position
 * behind it that it is out of range. The fetches of librdkafka 2.0.2 carry no leader epoch, by which it would
 * notice. And a broker that has just started may not know the topic, and the handle that asks it believes that there is
 * none. So whoever wants all entries asks first how far the stream reaches; and a position that is out of range, a topic
 * that is unknown though records of it are known, or an end before what is known of the stream, is only a doubt. After
 * fresh metadata the present leader is asked:
 *
 *      the stream begins behind the position    records were deleted: corrupt, at once. A beginning only ever
 *                                               moves on, so that an old leader tells the truth about it, too.
 *      it ends before the position, or before   asked again, until the URL's timeout; then it is corrupt
 *      what is known of it
 *      otherwise                                the doubt is gone, and reading goes on
 *
 * Reading may lead back to the old leader, because each handle has metadata of its own. So a reader that is in doubt
 * again, and has not got on since, waits a little before it asks; and it gives up when it has not got on for the URL's
 * timeout. Then it is PAWL_EIO, and not corrupt, whatever the leader says last: it has shown all that is known. */
#include <inttypes.h>

#include "adapter/kafka/impl.h"
#include "adapter/kafka/topics.h"
#include "base/error.h"

static int ask(const struct stream *s, int64_t which, uint64_t *ret_offset, pawl_error *error)
{
    return topic_offset(s->log->front, s->topic, s->id.partition, which, ret_offset, error);
}

int stream_bounds(const struct stream *s, struct bounds *ret_bounds, pawl_error *error)
{
    struct kafka_log *log = s->log;
    struct bounds bounds = {0};
    uint32_t partitions = 0;
    int status = topic_partitions(log->front, &log->url, s->topic, &partitions, error);
    if (status == PAWL_OK && s->id.partition < partitions) {
        bounds.there = true;
        status = ask(s, RD_KAFKA_OFFSET_BEGINNING, &bounds.low, error);
        if (status == PAWL_OK)
            status = ask(s, RD_KAFKA_OFFSET_END, &bounds.high, error);
    }
    if (status == PAWL_OK)
        *ret_bounds = bounds;
    return status;
}

int stream_bounds_wait(const struct stream *s, uint64_t known, struct bounds *ret_bounds, pawl_error *error)
{
    uint64_t until = kafka_deadline(s->log);
    for (;;) {
        struct bounds bounds;
        int status = stream_bounds(s, &bounds, error);
        bool absent = status == PAWL_OK && !bounds.there;
        if (status == PAWL_OK && bounds.there)
            *ret_bounds = bounds;
        if (!absent && status != PAWL_EIO)
            return status;
        if (clock_boot_ns() >= until)
            return absent ? stream_absent(s, known, error) : status;
        wait_pause(LOOK_AGAIN_NS);
    }
}

enum doubt bounds_judge(const struct bounds *bounds, uint64_t at, uint64_t known)
{
    if (bounds->low > (at > 0 ? at - 1 : 0))
        return DOUBT_DELETED;
    return bounds->high < at || bounds->high < known ? DOUBT_BEYOND : DOUBT_NONE;
}

int stream_lost(const struct stream *s, enum doubt doubt, uint64_t at, uint64_t known, pawl_error *error)
{
    uint64_t end = doubt == DOUBT_BEYOND && at < known ? known : at;
    return stream_fault(s, PAWL_ECORRUPT, end > 0 ? end - 1 : 0, error,
                        "it is not there any more: records were deleted, or the topic was");
}

int stream_absent(const struct stream *s, uint64_t known, pawl_error *error)
{
    if (known > 0)
        return stream_lost(s, DOUBT_BEYOND, 0, known, error);
    return error_set(error, PAWL_EIO, "topic %s, partition %u: the brokers do not know it any more", s->topic,
                     s->id.partition);
}

int stream_stale(const struct stream *s, pawl_error *error)
{
    return error_set(
        error, PAWL_EIO,
        "topic %s, partition %u: for %" PRIu32
        " ms brokers have said that it ends earlier, or is not there, though its leader has all of it",
        s->topic, s->id.partition, s->log->url.timeout_ms);
}

int stream_reader_settle(struct stream_reader *reader, pawl_error *error)
{
    struct stream *s = reader->cursor.stream;
    uint64_t at = reader->judged.judge.at;
    bool again = reader->reopened && reader->reopened_at == at;
    if (again)
        wait_pause(LOOK_AGAIN_NS);
    else
        reader->until = kafka_deadline(s->log);
    for (;;) {
        struct bounds bounds = {0};
        int status = stream_bounds(s, &bounds, error);
        enum doubt doubt = status == PAWL_OK ? bounds_judge(&bounds, at, reader->known) : DOUBT_BEYOND;
        bool over = clock_boot_ns() >= reader->until;
        if (doubt == DOUBT_NONE && !(again && over)) {
            reader->reopened = true;
            reader->reopened_at = at;
            return stream_reader_resume(reader, bounds.high, error);
        }
        if (status != PAWL_OK && (over || status != PAWL_EIO))
            return status;
        if (doubt != DOUBT_DELETED && over && again)
            return stream_stale(s, error);
        if (doubt == DOUBT_DELETED || over)
            return stream_lost(s, doubt, at, reader->known, error);
        wait_pause(LOOK_AGAIN_NS);
    }
}

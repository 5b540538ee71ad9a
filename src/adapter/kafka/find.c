/* adapter/kafka/find.c: a place in the middle of a stream, found by a few reads (port/claim_find.h).
 *
 * What it does not find is read from the last resume point on, as if nobody had looked. */
#include "adapter/kafka/impl.h"
#include "base/error.h"

/* Entries that are read rather than searched for: about what one search reads. */
#define WORTH 4096
/* A read of which nothing shows where it ends may have to read the stream from its beginning, too, when it comes to
 * what the finder cannot prove. Only a short one is worth a search. */
#define SHORT 4096

bool stream_seek_begin(const struct stream *s, uint64_t from, uint64_t limit, pawl_place at, struct seek *seek)
{
    const struct judged *low = stream_resume_before(s, from);
    *seek = (struct seek){
        .from = from, .limit = limit, .low = low->judge.at, .low_next = low->judge.next, .at = at};
    if (from - low->judge.next < WORTH || (from >= s->latest.judge.next && limit > SHORT))
        return false;
    const struct judged *above = stream_resume_after(s, from);
    seek->high = s->latest.judge.at;
    seek->facts[seek->fact_count++] = (struct find_fact){s->latest.judge.epoch, s->latest.judge.next - 1};
    if (above)
        seek->facts[seek->fact_count++] = (struct find_fact){above->judge.epoch, above->judge.next - 1};
    for (size_t i = 0; i < ENDED_MAX; i++)
        if (s->ended[i].epoch > 0)
            seek->facts[seek->fact_count++] = s->ended[i];
    for (size_t i = 0; i < PROVEN_MAX; i++)
        if (s->proven[i].epoch > 0)
            seek->facts[seek->fact_count++] = s->proven[i];
    return true;
}

/* Give the finder what lies from a position on. */
static int read_run(struct stream *s, struct finder *finder, uint64_t position, uint32_t count,
                    pawl_error *error)
{
    rd_kafka_message_t *messages[TAKE_MAX];
    struct cursor cursor = {0};
    uint64_t deadline = clock_boot_ns() + (uint64_t)s->log->url.timeout_ms * 1000000;
    const struct judged nothing = {.judge.at = position};
    int status = cursor_open(s, position, false, &cursor, error);
    bool more = status == PAWL_OK;
    while (more && clock_boot_ns() < deadline) {
        size_t taken = cursor_take(&cursor, 100, messages);
        for (size_t i = 0; i < taken; i++) {
            struct kafka_record r;
            enum found found = FOUND_NOTHING;
            if (more)
                status = message_read(s, messages[i], &nothing, &found, &r, error);
            if (more && status == PAWL_OK && found == FOUND_ENTRY)
                more = finder_take(finder, &r.head) && --count > 0;
            else if (status != PAWL_OK || found == FOUND_END || found == FOUND_DOUBT)
                more = false;
            rd_kafka_message_destroy(messages[i]);
        }
    }
    cursor_close(&cursor);
    return more ? error_set(error, PAWL_EIO, "no broker has answered") : status;
}

void stream_seek(struct stream *s, uint64_t high, struct seek *seek)
{
    struct kafka_log *log = s->log;
    struct finder finder;
    struct finder_options options = {.wanted = seek->from,
                                     .low = seek->low,
                                     .low_next = seek->low_next,
                                     .high = high > seek->high ? high : seek->high,
                                     .guess = seek->at.position ? seek->at.position - 1 : FIND_NO_GUESS,
                                     .ahead = seek->limit - 1,
                                     .window = KAFKA_WINDOW_MAX,
                                     .run = FIND_RUN,
                                     .facts = seek->facts,
                                     .fact_count = seek->fact_count};
    uint64_t position;
    uint32_t count;
    enum find_step step;
    int status = PAWL_OK;
    finder_init(&finder, &options);
    while ((step = finder_next(&finder, &position, &count)) == FIND_READ && status == PAWL_OK)
        status = read_run(s, &finder, position, count, NULL);
    seek->found = step == FIND_FOUND;
    pthread_mutex_lock(&log->lock);
    log->figures.sought++;
    log->figures.found += seek->found;
    if (seek->found) {
        finder_judge_start(&finder, &seek->judge);
        seek->upto = finder.upto;
        s->proven[s->proven_next++ % PROVEN_MAX] = (struct find_fact){finder.record.epoch, finder.upto};
    }
    pthread_mutex_unlock(&log->lock);
}
